import tritonclient.http as client

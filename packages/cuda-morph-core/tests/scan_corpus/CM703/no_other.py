import os

os.environ["LAUNCH_BLOCKING"] = "1"

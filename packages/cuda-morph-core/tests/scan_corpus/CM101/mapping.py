SETTINGS = {"device": "cuda", "note": "cuda"}  # >> CM101

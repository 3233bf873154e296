import logging

logging.info("running", extra={"tag": "cuda"})
dict(label="cuda", title="cuda:0")

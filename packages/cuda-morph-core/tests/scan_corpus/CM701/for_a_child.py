import os
import subprocess

subprocess.run(["python", "x.py"], env={**os.environ, "CUDA_VISIBLE_DEVICES": "1"})  # >> CM701
env = dict(os.environ, CUDA_VISIBLE_DEVICES="0")  # >> CM701

import shutil
import subprocess

subprocess.run(["nvidia-smi", "-L"], check=True)  # >> CM715
path = shutil.which("nvcc")  # >> CM715

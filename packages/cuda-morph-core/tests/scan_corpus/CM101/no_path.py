from pathlib import Path

folder = Path("cuda") / "kernels"
name = "cuda.txt"
url = "https://example.com/cuda"

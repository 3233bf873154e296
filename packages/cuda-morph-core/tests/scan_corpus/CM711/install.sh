pip install torch --index-url https://download.pytorch.org/whl/cu124 # >> CM711

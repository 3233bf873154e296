echo "no nvidia-smi here"

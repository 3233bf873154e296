ADVICE = "try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"

names = ["is_cuda", "is_cpu"]

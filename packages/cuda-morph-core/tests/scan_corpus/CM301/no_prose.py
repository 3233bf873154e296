print("nccl is fast")
words = ["nccl", "mpi"]

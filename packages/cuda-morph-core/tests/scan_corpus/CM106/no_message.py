def f(rank):
    print(f"cuda:{rank} is slow")
    return f"cuda {rank}"

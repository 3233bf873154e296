def f(step):
    return open(f"cuda_{step}.log"), f"cuda-{step}"

def f(line, path):
    if "cuda" in line:
        return True
    return path.startswith("cuda")

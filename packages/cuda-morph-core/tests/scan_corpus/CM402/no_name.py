triton = "a moon"
print(triton)

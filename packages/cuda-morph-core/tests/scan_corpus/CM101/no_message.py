print("cuda is not available")
print("cuda")
raise SystemExit("use cuda:0 instead")

from mylib import version

print(version.cuda)

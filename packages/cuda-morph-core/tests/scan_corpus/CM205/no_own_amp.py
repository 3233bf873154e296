from mylib.amp import autocast

with autocast():
    pass

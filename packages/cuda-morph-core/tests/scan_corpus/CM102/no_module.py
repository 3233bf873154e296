import types

options = types.SimpleNamespace(cuda=True)
enabled = options.cuda

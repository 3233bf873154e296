def call(module, name):
    return getattr(module, name)()

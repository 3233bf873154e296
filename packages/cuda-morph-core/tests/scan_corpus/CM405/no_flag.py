def build(use_xformers=False):
    return use_xformers

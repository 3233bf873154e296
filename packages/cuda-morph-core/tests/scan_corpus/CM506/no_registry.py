registry = {}
registry["my::op"] = "cuda op"

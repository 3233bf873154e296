import apex.parallel  # >> CM404

from cuda import cudart  # >> CM406

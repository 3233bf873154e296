from apex import amp  # >> CM404

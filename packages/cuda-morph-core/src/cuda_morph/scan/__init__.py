"""Finding CUDA dependences in source trees, by meaning. Never imports torch or what it reads."""

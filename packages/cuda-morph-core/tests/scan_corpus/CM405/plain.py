import xformers  # >> CM405

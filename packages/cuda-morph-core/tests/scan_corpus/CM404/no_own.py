from .apex import peak

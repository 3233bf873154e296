import numpy as cp

a = cp.zeros(3)

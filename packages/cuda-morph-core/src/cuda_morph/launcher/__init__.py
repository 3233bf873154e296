"""Running a program as ``python`` would, with cuda-morph active in it and in its children."""

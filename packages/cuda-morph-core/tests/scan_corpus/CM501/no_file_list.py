SOURCES = ["a.cu", "b.cuh"]

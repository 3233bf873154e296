names = ["_cuda_getDeviceCount"]

from torch.cuda import Stream, synchronize as wait  # >> CM201, CM201

wait()  # >> CM201
s = Stream()  # >> CM201

def f(x, rank):
    a = x.to("cuda:%d" % rank)  # >> CM106
    return a.to("cuda:{}".format(rank))  # >> CM106

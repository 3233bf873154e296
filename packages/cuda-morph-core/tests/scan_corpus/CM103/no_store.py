class Fake:
    pass


fake = Fake()
fake.is_cuda = False

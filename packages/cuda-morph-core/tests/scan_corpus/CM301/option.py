import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default="nccl")  # >> CM301

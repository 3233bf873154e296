import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")  # >> CM101
parser.add_argument("--name", default="cuda")

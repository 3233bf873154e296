from transformers import AutoModel

name = "xformers"

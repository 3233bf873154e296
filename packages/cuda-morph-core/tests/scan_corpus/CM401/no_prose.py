MESSAGE = "pip install flash_attn"
attn_implementation = "flash_attention_2"

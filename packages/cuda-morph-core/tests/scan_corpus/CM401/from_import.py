from flash_attn import flash_attn_func  # >> CM401
from flash_attn.bert_padding import unpad_input  # >> CM401

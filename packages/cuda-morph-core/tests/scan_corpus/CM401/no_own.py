from .flash_attn import flash_attn_func
from mylib.flash_attn import other

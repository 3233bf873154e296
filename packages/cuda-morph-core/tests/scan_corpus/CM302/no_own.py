from mylib import is_nccl_available

is_nccl_available()

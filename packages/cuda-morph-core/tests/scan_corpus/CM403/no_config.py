quantization = {"method": "bitsandbytes"}

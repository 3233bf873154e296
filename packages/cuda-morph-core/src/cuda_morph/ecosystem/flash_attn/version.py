"""Which flash_attn the stand-in follows."""

VERSION = "2.8.4+cuda.morph"
"""The public interface is that of 2.8.4; the local part tells it from the real package."""

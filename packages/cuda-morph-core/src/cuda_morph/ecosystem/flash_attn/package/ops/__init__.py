"""Operators of flash_attn."""

"""Runs on cuda, or on "cuda:1"."""


def f():
    """Device may be "cuda"."""

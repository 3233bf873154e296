"""``python -m cuda_morph_conformance``."""

from cuda_morph_conformance.cli import main

main(prog_name="cuda-morph-conformance")

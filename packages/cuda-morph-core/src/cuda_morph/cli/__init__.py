"""The ``cuda-morph`` command line. Importing it imports neither click nor torch."""

"""Measurements for users: what the shim costs, how fast operators and models are."""

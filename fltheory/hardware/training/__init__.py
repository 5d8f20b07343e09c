"""Experiments as TOML files: what is trained on which images, and the paper's table beside it."""

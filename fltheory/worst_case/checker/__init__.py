"""The checker of proofs, a program apart: ``python -I -S fltheory/worst_case/checker FILE``."""

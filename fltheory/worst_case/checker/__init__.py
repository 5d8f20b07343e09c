"""The checker of proofs, a separate program: ``python -I -S fltheory/worst_case/checker FILE``."""

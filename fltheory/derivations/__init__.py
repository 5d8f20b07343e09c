"""The steps of proofs as data, and their checks."""

"""Proofs as files, and their export to Rocq."""

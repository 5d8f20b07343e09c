"""Proofs as files, and the programs that check them by the standard library alone."""

"""Sampling, and bounds on the values that a sample has not seen."""

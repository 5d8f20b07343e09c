"""Sampling, and what bounds the draws that a sample has not seen."""

"""Sampling, and bounds on values that a sample may have missed."""

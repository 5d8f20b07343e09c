"""Moments of independent rounds, round after round and in the limit."""

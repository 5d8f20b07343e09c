"""Moments of the model, round by round and in the limit."""

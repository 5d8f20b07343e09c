"""Moments conditional on the history: paths of participants, counts and states of a chain."""

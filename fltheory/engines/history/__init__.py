"""Moments conditional on what has happened: paths, histories, states of a chain."""

"""Moments kept apart by what has happened: paths, histories, states of a chain."""

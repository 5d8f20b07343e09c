"""Bounds, truths and samples as figures."""

"""Processes whose rounds are independent and alike."""

"""Certificates of refutation: written from a setting, checked by a program of its own."""

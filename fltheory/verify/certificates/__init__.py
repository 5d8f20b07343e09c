"""Certificates of refutation: written from a setting, checked by an independent program."""

"""Certificates of refutation, written from a setting and checked by an independent program."""

"""Bounds for every client loss where availability is correlated in time."""

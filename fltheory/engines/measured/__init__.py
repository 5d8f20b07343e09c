"""Measurements of theorems' quantities and constants on runs with real data."""

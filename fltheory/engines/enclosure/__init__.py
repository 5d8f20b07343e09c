"""Exact moments in fractions and balls, every rounding accounted for."""

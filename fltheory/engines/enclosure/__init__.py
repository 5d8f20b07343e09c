"""Exact moments in fractions and balls, with every rounding accounted for."""

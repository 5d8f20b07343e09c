"""Printed theorems compared with the best provable bounds: audits, witnesses, step intervals."""

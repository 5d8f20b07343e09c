"""Printed theorems against the best provable bound: audits, witnesses, intervals of steps."""

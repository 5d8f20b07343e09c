"""Processes whose rounds hang on those before: chains, cycles, records, waiting for a subset."""

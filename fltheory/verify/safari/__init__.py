"""The search of SAFARI's low-dimensional extremal instances."""

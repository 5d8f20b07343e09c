"""The search among low-dimensional extremal instances of SAFARI."""

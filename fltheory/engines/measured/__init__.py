"""What runs on real data show of the quantities and constants that theorems name."""

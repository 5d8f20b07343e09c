"""The law of the empirical minimiser's error: exact for thresholds, and drawn."""

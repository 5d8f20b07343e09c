"""What statements are made of: hypotheses, relations, units, regimes, refutations."""

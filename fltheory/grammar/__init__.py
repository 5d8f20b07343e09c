"""The parts of statements: hypotheses, relations, units, regimes, refutations."""

"""Reading a round's affine map from the algorithm's own code, in floats, fractions or balls."""

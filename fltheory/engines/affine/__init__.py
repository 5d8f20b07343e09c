"""Reading a round's affine map off the algorithm's own code, in floats, fractions or balls."""

"""Reading a round's affine map off the algorithm's own code, in whatever numbers."""

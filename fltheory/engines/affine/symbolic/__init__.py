"""What a round is run on to read its map off: affine forms, clients that answer in them, a mask."""

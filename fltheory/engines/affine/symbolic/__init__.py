"""Stand-ins on which a round is run to read its map: affine forms, clients, and a mask."""

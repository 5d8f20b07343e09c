"""Joint presence of clients: sets, pairs, and moments of weighted shares."""

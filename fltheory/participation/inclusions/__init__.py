"""Who is there with whom: sets of clients, pairs, and the moments of weighted shares."""

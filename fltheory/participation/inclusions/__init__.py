"""Clients present together: sets of clients, pairs, and the moments of weighted shares."""

"""Clients whose losses differ by linear terms only, convex or not."""

"""The kinds of claims that statements make."""

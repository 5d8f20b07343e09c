"""The truth and its evidence: how it is obtained, enclosed, and turned into a verdict."""

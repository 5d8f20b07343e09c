"""The truth and its evidence: how truths are obtained, enclosed, and turned into verdicts."""

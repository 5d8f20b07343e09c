"""Results as files that are there whole: verdicts, and long work to be resumed."""

"""What a truth is, how it is obtained and enclosed, and what a verdict says."""

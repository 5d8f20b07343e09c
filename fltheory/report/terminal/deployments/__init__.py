"""What those who train read: advice on a log, weights, cut-offs, trained experiments."""

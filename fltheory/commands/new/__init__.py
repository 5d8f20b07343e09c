"""``fltheory new ...``: files of your own to begin with."""

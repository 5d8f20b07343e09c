"""``fltheory trace ...``: logs of who was online."""

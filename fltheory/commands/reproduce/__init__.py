"""``fltheory reproduce ...``: what makes this project's own pages."""

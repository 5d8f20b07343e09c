"""Check on quadratic clients, law by law, that an implementation computes what its paper says."""

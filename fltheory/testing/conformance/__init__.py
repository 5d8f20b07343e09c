"""Check, law by law on quadratic clients, that an implementation computes what its paper says."""

"""Does an implementation compute what its paper says? Law by law, on quadratic clients."""

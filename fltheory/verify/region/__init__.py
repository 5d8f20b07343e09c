"""Where a theorem applies, over two of its parameters."""

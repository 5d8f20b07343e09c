"""The usual slips, as mutations of the parts of the package's own algorithms."""

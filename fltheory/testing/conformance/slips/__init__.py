"""Common slips of implementations, as mutations of parts of the package's own algorithms."""

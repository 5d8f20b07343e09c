"""What usually goes wrong, as mutations of the parts of the package's own algorithms."""

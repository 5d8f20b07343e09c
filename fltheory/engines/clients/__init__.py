"""The NumPy backend: local SGD of analytic clients."""

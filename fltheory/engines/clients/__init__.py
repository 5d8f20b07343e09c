"""What a backend in NumPy answers: the local SGD of analytic clients."""

"""Long work: on all processors, and how far it is."""

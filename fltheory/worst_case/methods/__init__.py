"""Other methods: weighted averaging over those present, and methods with memory."""

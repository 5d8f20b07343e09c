"""The steps of a proof as data, and how each is checked."""

"""The lemmas that SA-FL cites for its Theorems 4 and 5."""

"""Laws of labelled points, what they have in common, and how far apart two of them are."""

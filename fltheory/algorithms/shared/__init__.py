"""Code that several algorithms share: averages, memories, weights, step sizes, constants."""

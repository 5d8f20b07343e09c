"""What several algorithms share: averages, memories, weights, step sizes, constants of clients."""

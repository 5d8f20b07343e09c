"""The search for a setting that meets every hypothesis and violates the bound."""

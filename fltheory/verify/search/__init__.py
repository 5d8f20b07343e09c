"""The search for a setting that meets every hypothesis and breaks the bound."""

"""Numbers of a setting by name."""

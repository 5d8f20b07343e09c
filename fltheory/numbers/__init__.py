"""The numbers of a setting by name."""

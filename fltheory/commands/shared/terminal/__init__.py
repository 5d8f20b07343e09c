"""What stands on a terminal: tables and lines that fit it."""

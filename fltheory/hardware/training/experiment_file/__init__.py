"""What an experiment file says, as checked objects: its tables, and what they name."""

"""Files: those that somebody else wrote, those written whole or not at all, users' own modules."""

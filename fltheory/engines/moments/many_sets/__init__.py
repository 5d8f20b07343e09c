"""Maps of a round where participant sets are too many to go through one by one."""

"""Reading untrusted files, writing files atomically, and running users' modules."""

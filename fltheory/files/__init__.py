"""Files: reading untrusted ones, writing atomically, and running users' modules."""

"""Cases that laws are checked on: clients, who is present when, hyper-parameters."""

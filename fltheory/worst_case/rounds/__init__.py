"""One round of FedAvg or SAFARI: its program, the best bound, and a certificate for the bound."""

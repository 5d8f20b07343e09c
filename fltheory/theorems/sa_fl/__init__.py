"""SA-FL's statements on SAFARI's convergence, in both versions of the paper."""

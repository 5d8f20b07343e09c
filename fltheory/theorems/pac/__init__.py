"""SA-FL's statements on PAC learnability."""

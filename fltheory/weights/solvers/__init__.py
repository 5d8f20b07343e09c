"""How the best weights are found: in closed form, by Newton's method, as a conic program."""

"""Clients with their own samples: logistic regression with two classes or more."""

"""Clients on samples of their own: logistic regression with two classes, or with many."""

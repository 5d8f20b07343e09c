"""Bounds proved for every client loss of a class, compared with printed theorems.

A semidefinite program whose size does not depend on the number of clients finds the best bound on a
round over all L-smooth, mu-strongly convex clients in all dimensions; its multipliers, rounded to
fractions, are a proof that a separate checker verifies.
"""

from fltheory.worst_case.audits.audit import audit
from fltheory.worst_case.audits.played_round import SafariRound
from fltheory.worst_case.best_bounds import best_bound, certificate, read_proof
from fltheory.worst_case.rounds.best_settings import best_settings
from fltheory.worst_case.rounds.client_class import ClientClass, SmoothClass

__all__ = [
    "ClientClass",
    "SafariRound",
    "SmoothClass",
    "audit",
    "best_bound",
    "best_settings",
    "certificate",
    "read_proof",
]

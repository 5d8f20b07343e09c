"""Bounds proved for every client loss of a class, and printed theorems beside them.

A semidefinite program whose size does not depend on the number of clients finds the best bound on
a round over all L-smooth, mu-strongly convex clients in all dimensions; its multipliers, rounded
to fractions, are a proof that a checker of its own verifies.
"""

from fltheory.worst_case.audits.audit import audit, threshold
from fltheory.worst_case.audits.played_round import SafariRound
from fltheory.worst_case.audits.step_interval import interval_certificate
from fltheory.worst_case.audits.witness import worst_clients
from fltheory.worst_case.methods.averaging import (
    averaging_certificate,
    best_averaging_bound,
    least_floor_weights,
)
from fltheory.worst_case.methods.averaging_round import AveragingRound
from fltheory.worst_case.methods.lyapunov import lyapunov_bound
from fltheory.worst_case.methods.memory import MemoryRound
from fltheory.worst_case.proof_kinds import read_proof
from fltheory.worst_case.rounds.best_settings import Costs, best_settings
from fltheory.worst_case.rounds.bound import best_bound
from fltheory.worst_case.rounds.certificate import Certificate, certificate
from fltheory.worst_case.rounds.client_class import ClientClass, SmoothClass
from fltheory.worst_case.rounds.descent import best_descent, descent_certificate

__all__ = [
    "AveragingRound",
    "Certificate",
    "ClientClass",
    "Costs",
    "MemoryRound",
    "SafariRound",
    "SmoothClass",
    "audit",
    "averaging_certificate",
    "best_averaging_bound",
    "best_bound",
    "best_descent",
    "best_settings",
    "certificate",
    "descent_certificate",
    "interval_certificate",
    "least_floor_weights",
    "lyapunov_bound",
    "read_proof",
    "threshold",
    "worst_clients",
]

"""Bounds for every client loss: times of a bound, its certificate and the check, and counts."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fltheory import theorems
from fltheory.worst_case import ClientClass, SafariRound, certificate
from fltheory.worst_case.audits.audit import interval_certificate
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.certificate import proved, raised
from fltheory.worst_case.rounds.measure import Claim
from tests.worst_case.settings import a_round, drawn

SETTINGS = 200
MARGIN = 1e-5


def seconds(case: Callable[[], object], repeats: int = 5) -> float:
    """Return the median of several runs after a warm-up."""
    case()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        case()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def timings() -> None:
    played = replace(a_round(excluded=2), n_clients=10**6)
    for name, clients in (
        ("exact gradients", ClientClass(1, "1/10")),
        ("noise", ClientClass(1, "1/10", sigma=1)),
    ):
        bound = best_bound_of(played, clients)
        made = certificate(bound)
        print(f"K = 5, N = 10^6, {name}:")
        made_in = seconds(lambda clients=clients: certificate(best_bound_of(played, clients)))
        print(f"  bound and certificate {made_in:.3f} s (target 0.5 s)")
        print(f"  check {seconds(made.verify):.3f} s (target 0.1 s)")
    everywhere = ClientClass(1, "1/10", "everywhere")
    played = SafariRound(eligible=10, participants=4, local_steps=5, q="1/2", client_lr="1/40")
    derived = theorems.get("sa-fl/5", "derived")
    start = time.perf_counter()
    found = interval_certificate(derived, everywhere, played, first="1/400", last="1/40")
    took = time.perf_counter() - start
    boxes = 0 if found is None else len(found.proof.boxes)
    print(f"every eta_c in [1/400, 1/40]: {took:.2f} s, {boxes} boxes (target 5 s)")


def counts() -> None:
    rng = np.random.default_rng(7)
    accepted = refused = 0
    for _ in range(SETTINGS):
        played, clients = drawn(rng)
        bound = best_bound_of(played, clients)
        try:
            certificate(bound, MARGIN)
            accepted += 1
        except ArithmeticError:
            pass
        whole = raised(bound, Fraction(1))
        part = Fraction(98, 100)
        lower = Claim(
            Fraction(bound.rate), whole.heterogeneity * part, whole.noise * part, whole.server_noise
        )
        refused += proved(played, clients, lower) is None
    print(f"proved at a margin of {MARGIN:g}: {accepted} of {SETTINGS} (target 95%)")
    print(f"2% below the optimum refused: {refused} of {SETTINGS} (target all)")


if __name__ == "__main__":
    timings()
    counts()

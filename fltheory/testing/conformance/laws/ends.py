"""The law on options at the ends of their ranges, which are clipped or taken for left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.bench import Bench, LawTrial, ModelComparison
from fltheory.testing.conformance.cases import case_maker
from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.case_maker import CaseMaker
from fltheory.testing.conformance.ties import steady

Ends: TypeAlias = Callable[[int], dict[str, Any]]


def _spread(least: float, largest: float, n: int) -> tuple[float, ...]:
    return tuple(np.linspace(least, largest, n).tolist())


def _rare(n: int) -> dict[str, Any]:
    """Return availabilities down to one round in three hundred, and correlations of both signs."""
    rates = np.geomspace(1.0, 0.003, n) if n > 1 else np.array([0.003])
    return {"availability": tuple(rates.tolist()), "correlation": _spread(-0.9, 0.97, n)}


def _negative(n: int) -> dict[str, Any]:
    return {
        "availability": _spread(0.4, 0.6, n),
        "correlation": _spread(-0.9, -0.1, n),
        "threshold": 0.0,
        "kappa_bar": 0.2,
    }


def _one_matters(n: int) -> dict[str, Any]:
    weights = np.geomspace(1.0, 1e-3, n)
    return {"target_weights": tuple((weights / weights.sum()).tolist())}


# A zero is where `value or default` goes wrong, a large number where a cap of one's own is.
ENDS: tuple[Ends, ...] = (
    _rare,
    # The order in which clients are tried makes a difference in four cases of ten.
    *(_negative,) * 4,
    _one_matters,
    lambda n: {"proximal": 0.0},
    lambda n: {"cutoff": 1},
    lambda n: {"growth": 0.0, "largest": 5.0},
    lambda n: {"growth": 20.0, "largest": 50.0},
    lambda n: {"largest": 1.0},
    lambda n: {"size": 1},
    lambda n: {"size": n},
    lambda n: {"smoothing": 0.003},
    lambda n: {"smoothing": 0.95},
    # The first report stays, so that nobody is excluded but by minima that are known.
    lambda n: {
        "loss_smoothing": 0.0,
        "known_minima": _spread(-3.0, 0.0, n),
        "threshold": 0.0,
    },
    lambda n: {"loss_smoothing": 1.0},
    lambda n: {"threshold": 1.0},
    lambda n: {"threshold": 4.0},
    lambda n: {"kappa_bar": 0.0},
    lambda n: {"kappa_bar": 8.0},
    lambda n: {"prior": (0.02, 9.0)},
    lambda n: {"prior": (9.0, 0.02)},
    lambda n: {"known_minima": _spread(-3.0, 0.0, n)},
)
"""Options by name, for a number of clients; those that an algorithm has are used."""


def ends_of(options: Collection[str], n: int = 2) -> list[dict[str, Any]]:
    """Return what of the ends is about these options, for n clients."""
    found = ({k: v for k, v in ends(n).items() if k in options} for ends in ENDS)
    return [one for one in found if one]


def at_the_ends(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases with one option after the other at an end of its range."""
    chooses, left_open = make.specification.chooses, set(make.specification.options)
    n = make.number_of_clients(8 if chooses else 4)
    for wanted in ends_of(left_open - set(make.hyper), n):
        # Rounds are few: weights of hundreds make models grow by as much in each.
        rounds = 10 if chooses else 6
        case = make.case(case_maker.uneven, n=n, dim=1, rounds=rounds, options=wanted)
        # With kappa_bar and threshold 0, clients that are at their minima go or stay by rounding.
        if steady(make.specification, case, make.rtol):
            yield LawTrial(case, _against_ours)


def _against_ours(bench: Bench, case: Case) -> ModelComparison:
    return bench.against_ours(case)

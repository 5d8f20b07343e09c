"""Xiang, Ioannidis, Yeh, Joe-Wong and Su, FedAWE (NeurIPS 2024): its lemmas on availability.

Clients are available independently, with probabilities of at least delta that may change from
round to round (Assumption 1). What its models do is in `fedawe_run`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAWE
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.exact_or_float import largest
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import PURE
from fltheory.participation import Bernoulli, VaryingBernoulli
from fltheory.problems import quadratic
from fltheory.theorems.atlas.waiting_models import availability_rows, number_for

PAPER = "Xiang et al. (NeurIPS 2024)"
_EIGENVALUE_ERROR = 1e-13
"""Of a symmetric matrix of norm one, by LAPACK: far above n times the unit roundoff."""


def _largest_absence(setting: Setting, power: int) -> Any:
    """Return the largest ``E (t - tau_i(t))^power`` over clients and t = 0 .. R.

    tau_i(t) is the last round before t in which i was available, -1 if there is none. With
    ``a = t - tau_i(t)`` the next is 1 with probability p_i^t, and a + 1 without.
    """
    rows = availability_rows(setting)
    means = squares = largest = [Fraction(1)] * len(rows[0])
    for t in range(setting.rounds):
        row = rows[t % len(rows)]
        moments = zip(row, means, squares, strict=True)
        squares = [p + (1 - p) * (square + 2 * mean + 1) for p, mean, square in moments]
        means = [p + (1 - p) * (mean + 1) for p, mean in zip(row, means, strict=True)]
        largest = list(map(max, largest, means if power == 1 else squares))
    return number_for(setting, max(largest))


def second_eigenvalue(setting: Setting) -> tuple[Any, float]:
    """Return ``max_t lambda_2(E W(t)^2)`` over the rounds, and its rounding.

    W is a projection, so that ``W^2 = W``. Rows sum to one: with two clients, or probabilities that
    are all alike, every other eigenvalue is ``M_11 - M_12``, a fraction.
    """
    found: list[Any] = []
    error = 0.0
    for row in availability_rows(setting):
        count = len(row)
        mixing = np.full((count, count), Fraction(0))
        for here in product((False, True), repeat=count):
            chance = math.prod((p if there else 1 - p for p, there in zip(row, here, strict=True)))
            members = np.flatnonzero(here)
            mixing[np.ix_(members, members)] += chance / Fraction(max(members.size, 1))
            away = np.flatnonzero(~np.array(here))
            mixing[away, away] += chance
        if count == 2 or len(set(row)) == 1:
            found.append(number_for(setting, mixing[0, 0] - mixing[0, 1]))
        else:
            found.append(float(np.linalg.eigvalsh(mixing.astype(np.float64))[-2]))
            error = _EIGENVALUE_ERROR
    return largest(found), error


def _least(setting: Setting) -> Any:
    return number_for(setting, min(p for row in availability_rows(setting) for p in row))


delta = symbol(
    "delta", "least probability that a client is available", PURE, _least, nonnegative=True
)
m = symbol("m", "clients", PURE, "n_clients", positive=True, integer=True)

AVAILABLE = Hypothesis("everybody is available at times", sp.Gt(delta, 0), "Assumption 1")


def _setting(availability: Any, rounds: int = 40) -> Setting:
    table = np.atleast_2d(availability)
    problem = quadratic(table.shape[1], 1, L=1.0, mu=1.0, sigma_G=1.0)
    who = Bernoulli(table[0]) if len(table) == 1 else VaryingBernoulli(table)
    return Setting(FedAWE(0.1, 2), problem, who, rounds, problem.x_star + 1)


def _two_phases(*, least: float, other: float, rounds: float) -> Setting:
    """Three clients that are rarely online in turn."""
    return _setting([[least, other, other], [other, least, other]], int(rounds))


_REGIMES = {
    "two alike": Regime("m = 2, p = 1/2", partial(_setting, [0.5, 0.5])),
    "four alike": Regime("m = 4, p = 1/5", partial(_setting, [0.2] * 4)),
    "rare": Regime("m = 4, p = 1/100", partial(_setting, [0.01] * 4, 400)),
    "day and night": Regime(
        "m = 2, probabilities swap", partial(_setting, [[0.9, 0.1], [0.1, 0.9]])
    ),
    "one rare client": Regime(
        "m = 4, p = (1/10, 1, 1, 1)", partial(_setting, [0.1, 1.0, 1.0, 1.0])
    ),
    "always": Regime("m = 4, p = 1", partial(_setting, [1.0] * 4)),
    "never by night": Regime("delta = 0", partial(_setting, [[0.5, 0.5], [0.5, 0.0]])),
}
_FAMILY = Family(
    _two_phases,
    (
        Parameter("least", 0.001, 1, 0.1, "delta"),
        Parameter("other", 0.01, 1, 0.9, "the other probabilities"),
        Parameter("rounds", 1, 200, 40, "R", whole=True),
    ),
)

LEMMA_2 = PointClaim(
    id="fedawe/lemma-2",
    reading="printed",
    title="How long clients are away in the mean",
    source=f"{PAPER}, Lemma 2",
    quantity=PointQuantity(
        lambda setting: (_largest_absence(setting, 1), 0.0),
        "largest E[t - tau_i(t)] over clients and rounds",
        PURE,
    ),
    bound=as_printed(lambda: 1 / delta),
    hypotheses=(AVAILABLE,),
    regimes=_REGIMES,
    family=_FAMILY,
    note="To the letter, for all clients and rounds; tau_i(0) = -1 as in Algorithm 1.",
    kind=StatementKind.LEMMA,
)

LEMMA_2_SQUARES = replace(
    LEMMA_2,
    id="fedawe/lemma-2-squares",
    title="How long clients are away in the mean square",
    quantity=PointQuantity(
        lambda setting: (_largest_absence(setting, 2), 0.0),
        "largest E[(t - tau_i(t))^2] over clients and rounds",
        PURE,
    ),
    bound=as_printed(lambda: 2 / delta**2),
)

LEMMA_4 = PointClaim(
    id="fedawe/lemma-4",
    reading="printed",
    title="How fast gossip mixes",
    source=f"{PAPER}, Lemma 4",
    quantity=PointQuantity(second_eigenvalue, "max_t lambda_2(E[W(t)^2])", PURE),
    bound=as_printed(lambda: 1 - delta**4 * (1 - (1 - delta) ** m) ** 2 / 8),
    hypotheses=(AVAILABLE,),
    regimes=_REGIMES,
    family=_FAMILY,
    note="To the letter, over the rounds that the setting repeats.",
    kind=StatementKind.LEMMA,
)

STATEMENTS: tuple[Statement, ...] = (LEMMA_2, LEMMA_2_SQUARES, LEMMA_4)

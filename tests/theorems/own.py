"""A theorem of one's own: gradient descent on one client, with a factor that may be wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import (
    BoundedQuantity,
    Family,
    Hypothesis,
    Parameter,
    RateAxis,
    RateClaim,
    Regime,
    RoundRange,
    Theorem,
    symbol,
)

ETA = symbol("eta", "step size", number=lambda run: run.algorithm.client_lr, positive=True)
R = symbol("R", "rounds", number=lambda run: run.rounds, positive=True, integer=True)
D_0 = symbol("D_0", "||x_0||", number=lambda run: float(np.linalg.norm(run.x0)), positive=True)


def make(step: float, rounds: float, distance: float) -> Setting:
    if step == 0.05:
        raise ValueError("step must be another number")
    problem = QuadraticProblem([[1.0]], [[0.0]])
    return Setting(FedAvg(step, 1), problem, UniformSubset(1, 1), int(rounds), [distance])


FAMILY = Family(
    make,
    (
        Parameter("step", 0.01, 4.0, 0.5, "eta"),
        Parameter("rounds", 1, 50, 5, "R", whole=True),
        Parameter("distance", 0.1, 100, 1, "||x_0||"),
    ),
)


def contraction(factor: sp.Expr, identifier: str) -> Theorem:
    """Return ``||x_R||^2 <= factor^(2R) D_0^2`` for steps below 2; with |1 - eta| it is true."""
    return Theorem(
        id=identifier,
        reading="printed",
        title="Gradient descent contracts",
        source="a textbook",
        quantity=BoundedQuantity(
            "squared_distance", "last", RoundRange(0, 0), "||x_R||^2", r"\|x_R\|^2"
        ),
        bound=factor ** (2 * R) * D_0**2,
        hypotheses=(Hypothesis("small steps", sp.Lt(ETA, 2), "textbook"),),
        regimes={"usual": Regime("eta = 1/2", FAMILY.setting)},
        family=FAMILY,
    )


TRUE = contraction(sp.Abs(1 - ETA) + sp.Rational(1, 10**6), "own/true")
FALSE = contraction(sp.Max(1 - ETA, 0) + sp.Rational(1, 10), "own/false")
STATEMENTS = (TRUE, FALSE)


def one_bowl(setting: Setting) -> Setting:
    """Return a setting where ||x_R||^2 is (1 - eta)^(2R) D_0^2, and refuse all else."""
    algorithm, problem = setting.algorithm, setting.problem
    made = algorithm.local_steps, algorithm.server_lr, problem.L, problem.sigma
    if made != (1, 1.0, 1.0, 0.0) or problem.x_star.any():
        raise ValueError("setting must be gradient descent on x^2/2")
    return setting


def order(identifier: str, bound: sp.Expr) -> RateClaim:
    """Return the claim that ||x_R||^2 = O(1/R), with a bound of that order, for steps below 2.

    The truth is (1 - eta)^(2R) D_0^2, at most exp(-2R eta (2 - eta)/2) D_0^2, and exp(-x) < 1/x:
    so it is below D_0^2/(eta (2 - eta) R). Without that constant it is not, at eta near 0 or 2.
    """
    contracts = contraction(sp.Integer(1), identifier)
    theorem = replace(
        contracts,
        bound=bound,
        hypotheses=(Hypothesis("steps", ETA < 2, "here"),),
        domain=one_bowl,
    )
    axis = RateAxis(
        R, 1 / R, lambda setting: (3, 30, 300, 3000), lambda setting, r: replace(setting, rounds=r)
    )
    return RateClaim(
        id=identifier,
        reading="printed",
        title="an order",
        source="a textbook",
        theorem=theorem,
        axes=(axis,),
        regimes=contracts.regimes,
    )


TRUE_ORDER = order("own/true-order", D_0**2 / (ETA * (2 - ETA) * R))
FALSE_ORDER = order("own/false-order", D_0**2 / R)

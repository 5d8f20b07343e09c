"""Wang, Liu, Liang, Joshi and Poor, "Tackling the Objective Inconsistency Problem" (FedNova, 2020).

Theorem 1 is an order with hidden constants, and the text at hand is garbled in it: it is not here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import WeightedFedAvg
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.exact_or_float import number, root
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import GRADIENT, PURE
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem


def _weights(setting: Setting) -> Any:
    """Return w, the weights of what is optimised in place of F, which must sum to one.

    Raises
    ------
    ValueError
        For another algorithm than WeightedFedAvg, or clients of unequal Hessians.
    """
    if not isinstance(setting.algorithm, WeightedFedAvg):
        raise ValueError(
            f"algorithm must be WeightedFedAvg, whose weights are w, got {setting.algorithm!r}"
        )
    problem: Any = setting.problem
    if not isinstance(problem, QuadraticProblem) or not problem.shared_hessian:
        raise ValueError(
            "problem must be quadratic with one Hessian for all, so that Assumption 3 holds with "
            f"beta = 1, got {problem!r}"
        )
    return np.asarray(setting.algorithm.aggregation_weights)


def _gradients(setting: Setting) -> Any:
    count = setting.problem.n_clients
    return setting.problem.client_gradients(np.array([setting.x0] * count), np.arange(count))


def _chi(setting: Setting) -> Any:
    w, alpha = _weights(setting), setting.problem.alpha
    return root(number(((alpha - w) * (alpha - w) / w).sum()))


def _dissimilarity(setting: Setting) -> Any:
    w, gradients = _weights(setting), _gradients(setting)
    apart = gradients - w @ gradients
    return root(number(w @ (apart * apart).sum(axis=1)))


def _surrogate(setting: Setting) -> Any:
    gradient = _weights(setting) @ _gradients(setting)
    return number((gradient * gradient).sum())


def _total(setting: Setting) -> Any:
    return number(_weights(setting).sum())


def _true(setting: Setting) -> tuple[Any, float]:
    gradient = setting.problem.alpha @ _gradients(setting)
    return number((gradient * gradient).sum()), 0.0


chi = symbol("chi", "root of sum_i (p_i - w_i)^2/w_i", PURE, _chi, nonnegative=True)
kappa = symbol(
    "kappa", "root of sum_i w_i ||grad F_i - grad F~||^2", GRADIENT, _dissimilarity, real=True
)
surrogate = symbol(
    "epsilon", "||grad F~(x)||^2, F~ = sum_i w_i F_i", GRADIENT**2, _surrogate, real=True
)
total = symbol("W", "sum of w", PURE, _total, positive=True)
beta = symbol("beta", "1, as all have one Hessian", PURE, lambda setting: 1, positive=True)


def _setting(
    *,
    w: tuple[float, ...] = (0.25,) * 4,
    p: tuple[float, ...] = (0.5, 0.25, 0.125, 0.125),
    spread: float = 1.0,
    start: float = 1.0,
    turn: float = 0.0,
) -> Setting:
    """Four clients in the plane with one Hessian; the model is ``start`` away from x*."""
    problem = QuadraticProblem(
        np.diag([1.0, 0.25]),
        spread * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.0, -1.0]]),
        target_weights=p,
    )
    x0 = problem.x_star + start * np.array([np.cos(turn), np.sin(turn)])
    return Setting(WeightedFedAvg(w, 0.1, 5), problem, UniformSubset(4, 4), 1, x0)


def _weighted(*, tilt: float, spread: float, start: float, turn: float) -> Setting:
    """Weights w from equal ones to nearly all on one client."""
    rest = (1 - 0.25) * (1 - tilt) / 3
    return _setting(w=(1 - 3 * rest, rest, rest, rest), spread=spread, start=start, turn=turn)


THEOREM_2 = PointClaim(
    id="fednova/2",
    reading="printed",
    title="What a gradient of the surrogate objective says of that of F",
    source="Wang et al. (NeurIPS 2020), Theorem 2",
    quantity=PointQuantity(_true, "||grad F(x)||^2", GRADIENT**2),
    bound=as_printed(lambda: 2 * (chi**2 * (beta**2 - 1) + 1) * surrogate + 2 * chi**2 * kappa**2),
    hypotheses=(Hypothesis("weights that sum to one", sp.Eq(total, 1), "Assumption 3"),),
    regimes={
        "usual": Regime("w = 1/4, p = (1/2, 1/4, 1/8, 1/8)", _setting),
        "at the surrogate's optimum": Regime(
            "x = 0.5 from x*", partial(_setting, start=0.5, turn=np.pi / 3)
        ),
        "equal weights": Regime("w = p", partial(_setting, p=(0.25,) * 4)),
        "equal clients": Regime("nobody's optimum is apart", partial(_setting, spread=0.0)),
        "far apart": Regime("optima 100 times as far", partial(_setting, spread=100.0)),
        "a rare client": Regime(
            "w = 1/64 for a client of p = 1/2",
            partial(_setting, w=(0.015625, 0.328125, 0.328125, 0.328125)),
        ),
        "weights that sum to 3/4": Regime(
            "three of 1/4", partial(_setting, w=(0.25, 0.25, 0.125, 0.125))
        ),
    },
    family=Family(
        _weighted,
        (
            Parameter("tilt", 0.001, 0.999, 0.5, "0 for equal weights w", logarithmic=False),
            Parameter("spread", 0.01, 100, 1, "distance of the clients' optima"),
            Parameter("start", 0.001, 100, 1, "||x - x*||"),
            Parameter("turn", 0, 6.28, 0, "direction of x - x*", logarithmic=False),
        ),
    ),
    note=(
        "At every point x, from which the minima over rounds follow. With one Hessian for all "
        "Assumption 3 holds with beta = 1 and kappa^2 = sum_i w_i ||grad F_i - grad F~||^2 "
        "everywhere, and no kappa can be smaller."
    ),
)

STATEMENTS: tuple[Statement, ...] = (THEOREM_2,)

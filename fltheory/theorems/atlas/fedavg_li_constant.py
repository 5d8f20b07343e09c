"""Li et al., Theorem 4: with constant steps FedAvg ends elsewhere.

The theorem is about a ridge regression that is built in the paper's appendix, which is not in the
text at hand, and hides the constants that depend on it. Here any quadratic clients stand for it
whose first-order pull ``v = sum_k p_k H_k grad F_k(w*)`` is not zero: without it they may end at w*
for every step size. With exact gradients and everybody present the limit w~* solves
``sum_k p_k P_k H_k (w - o_k) = 0``, ``P_k = sum_{j<E} (I - eta H_k)^j``.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import Constant, LocalSgd
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.shared.rate_axis import RateAxis
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import Derivation, Implied, Step
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, norm, number, solve
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, PURE, STEP
from fltheory.participation import UniformSubset
from fltheory.theorems.atlas.client_models import local_sgd
from fltheory.theorems.atlas.fedavg_li import EVERYBODY, PAPER, E, L, S, clients_in_the_plane

_DIVISORS = (1, 10, 100, 1000)
_ROUNDING = 1e-14
_LEAST = 1e-10
"""Of a sum over its terms' norms, in floats: what is below may be their rounding alone."""


def _step(setting: Setting) -> Any:
    steps = local_sgd(setting).step_sizes
    if not isinstance(steps, Constant):
        raise ValueError(f"step_sizes must be Constant for Theorem 4 of Li et al., got {steps!r}")
    return steps.value


def _pulls(setting: Setting, power: int) -> Any:
    """(N, d) ``p_k H_k^power grad F_k(w*)``."""
    problem: Any = setting.problem
    pulls = problem.gradients_at_optimum[:, :, None]
    for _ in range(power):
        pulls = np.matmul(problem.hessians, pulls)
    return problem.alpha[:, None] * pulls[:, :, 0]


def _first_order(setting: Setting) -> Any:
    """Return v; zero where it is but the rounding of what cancels."""
    v = norm(_pulls(setting, 1).sum(axis=0))
    return v if is_exact(v) or v > _LEAST * _apart(setting, 1) else 0.0


def _apart(setting: Setting, power: int) -> Any:
    """Return ``sum_k p_k ||H_k^power grad F_k(w*)||``."""
    return number(sum(norm(one) for one in _pulls(setting, power)))


def _second_order(setting: Setting) -> Any:
    return _apart(setting, 2)


def _with_rounding(setting: Setting, value: Any) -> tuple[Any, float]:
    """Return a multiple of v or of 1/D with its rounding, in floats: both are sums that cancel."""
    if is_exact(value):
        return value, 0.0
    lost = _apart(setting, 1) / max(_first_order(setting), sys.float_info.min)
    return value, abs(value) * _ROUNDING * (lost + setting.problem.L / setting.problem.mu)


def _limit_distance(setting: Setting) -> Any:
    """Return ``||w~* - w*||``; P_k - E I is summed, as ``sum_k p_k grad F_k(w*)`` is zero."""
    problem: Any = setting.problem
    lr, one = _step(setting), np.eye(problem.dim, dtype=int)
    hessians = np.broadcast_to(problem.hessians, (problem.n_clients, problem.dim, problem.dim))
    power = excess = hessians * 0
    for _ in range(1, local_sgd(setting).local_steps):
        power = power - lr * np.matmul(hessians, power + one)
        excess = excess + power
    steps = excess + local_sgd(setting).local_steps * one
    weights = problem.alpha[:, None, None]
    slope = (weights * np.matmul(steps, hessians)).sum(axis=0)
    gradients = problem.gradients_at_optimum[:, :, None]
    pull = (weights * np.matmul(excess, gradients)).sum(axis=0)[:, 0]
    return norm(solve(slope, pull))


def _relative(setting: Setting) -> tuple[Any, float]:
    """Return ``(E-1) eta ||w*|| / ||w~* - w*||``; NaN where FedAvg ends at w*."""
    distance = _limit_distance(setting)
    if not float(distance):
        return math.nan, 0.0
    steps = (local_sgd(setting).local_steps - 1) * _step(setting)
    return _with_rounding(setting, steps * norm(setting.problem.x_star) / distance)


def _pulled(setting: Setting) -> tuple[Any, float]:
    steps = (local_sgd(setting).local_steps - 1) * _step(setting)
    return _with_rounding(setting, steps * _first_order(setting))


def _size_of_optimum(setting: Setting) -> Any:
    return norm(setting.problem.x_star)


def _shorter(setting: Setting, divisor: int) -> Setting:
    method = replace(local_sgd(setting), step_sizes=Constant(_step(setting) / divisor))
    return Setting(method, setting.problem, setting.participation, setting.rounds, setting.x0)


eta = symbol("eta", "the step size", STEP, _step, positive=True)
n = symbol("n", "by how much the step size is divided", PURE, positive=True, integer=True)
v = symbol(
    "v",
    "||sum_k p_k H_k grad F_k(w*)||, what pulls in the first order of eta",
    CURVATURE * GRADIENT,
    _first_order,
    nonnegative=True,
)
V = symbol(
    "V",
    "sum_k p_k ||H_k^2 grad F_k(w*)||, what pulls in the second order",
    CURVATURE**2 * GRADIENT,
    _second_order,
    nonnegative=True,
)
D = symbol("D", "||w~* - w*||, w~* the limit of FedAvg", LENGTH, _limit_distance, nonnegative=True)
W = symbol("W", "||w*||", LENGTH, _size_of_optimum, nonnegative=True)


def setting_at(
    *,
    condition: float = 4.0,
    spread: float = 1.0,
    local_steps: float = 5,
    step: float = 0.005,
    first_weight: float = 0.25,
    sigma: float = 0.0,
) -> Setting:
    """Return four clients in the plane, L = 1, where w* is not zero; ``step`` is eta L."""
    p = (first_weight, *[(1 - first_weight) / 3] * 3)
    problem = clients_in_the_plane(condition, spread, sigma, p=p)
    method = LocalSgd(Constant(step), int(local_steps), p)
    return Setting(method, problem, UniformSubset(4, 4), 10 * int(local_steps), problem.x_star)


def _safe(*, share: float, **numbers: float) -> Setting:
    """Return one whose step is a share of the longest that the explicit bound allows."""
    setting = setting_at(**numbers)
    second = (local_sgd(setting).local_steps - 2) * _second_order(setting)
    longest = 1.5 * _first_order(setting) / max(second, _first_order(setting))
    return setting_at(**numbers, step=share * min(longest, 1.0))


_SMALL = "Theorem 4: small enough"
_HYPOTHESES = (
    Hypothesis("full batch", sp.Eq(S, 0), "Theorem 4"),
    Hypothesis("more than one local step", sp.Gt(E, 1), "Theorem 4"),
    EVERYBODY,
    Hypothesis("what pulls does not cancel", sp.Gt(v, 0), "Theorem 4: a constructed problem"),
    Hypothesis("small steps", as_printed(lambda: sp.Le(eta, 1 / L)), _SMALL),
    Hypothesis(
        "first order before second",
        as_printed(lambda: sp.Le(eta * (E - 2) * V, sp.Rational(3, 2) * v)),
        _SMALL,
    ),
)
_REGIMES = {
    "usual": Regime("kappa = 4, E = 5, eta = 1/(200 L)", setting_at),
    "two local steps": Regime("E = 2, eta = 1/L", partial(setting_at, local_steps=2, step=1.0)),
    "many local steps": Regime(
        "E = 50, eta = 1/(2000 L)", partial(setting_at, local_steps=50, step=0.0005)
    ),
    "ill conditioned": Regime(
        "kappa = 100, eta = 1/(2000 L)", partial(setting_at, condition=100.0, step=0.0005)
    ),
    "nearly equal curvatures": Regime(
        "kappa = 1.01, eta = 3/(10^4 L)", partial(setting_at, condition=1.01, step=0.0003)
    ),
    "uneven weights": Regime(
        "p_1 = 0.9, eta = 1/(50 L)", partial(setting_at, first_weight=0.9, step=0.02)
    ),
    "one local step": Regime("E = 1: gradient descent", partial(setting_at, local_steps=1)),
    "equal curvatures": Regime("kappa = 1: no pull", partial(setting_at, condition=1.0)),
    "noisy gradients": Regime("sigma = 1", partial(setting_at, sigma=1.0)),
    "steps too long": Regime("eta = 1/(20 L)", partial(setting_at, step=0.05)),
}


_LAST_STEP = Derivation(
    (
        Step(
            "two orders of eta",
            "half of the first order is left",
            Implied(
                given=(
                    sp.Le(
                        eta * E * (E - 1) / 2 * v - eta**2 * E * (E - 1) * (E - 2) / 6 * V,
                        E * L * D,
                    ),
                    sp.Le(eta * (E - 2) * V, sp.Rational(3, 2) * v),
                ),
                claimed=sp.Le((E - 1) * eta * v, 4 * L * D),
                domain=(sp.Ge(E, 1, evaluate=False),),
                multipliers=(4 / E, sp.Rational(2, 3) * eta * (E - 1)),
            ),
        ),
    ),
    (
        "The limit: sum_k p_k P_k H_k (w~* - w*) = -sum_k p_k P_k grad F_k(w*).",
        "P_k = E I - eta E(E-1)/2 H_k + R_k with 0 <= R_k <= eta^2 E(E-1)(E-2)/6 H_k^2, and "
        "P_k H_k <= E H_k, for eta L <= 1.",
    ),
)

EXPLICIT = PointClaim(
    id="fedavg-li/4",
    reading="with constants",
    title="With constant steps FedAvg ends elsewhere, at least so far",
    source=f"{PAPER}, Theorem 4",
    quantity=PointQuantity(_pulled, "(E-1) eta v", GRADIENT),
    bound=as_printed(lambda: 4 * L * D),
    hypotheses=_HYPOTHESES,
    regimes=_REGIMES,
    family=Family(
        _safe,
        (
            Parameter("condition", 1.01, 1000, 4, "kappa, with L = 1"),
            Parameter("local_steps", 2, 50, 5, "E", whole=True),
            Parameter("spread", 0.01, 100, 1, "distance of the clients' optima"),
            Parameter("first_weight", 0.01, 0.99, 0.25, "p_1", logarithmic=False),
            Parameter("share", 0.001, 0.99, 0.99, "eta over the longest that is small enough"),
        ),
    ),
    derivation=_LAST_STEP,
    note=(
        "Constants of our own, as the paper's are not in the text at hand. As P_k = E I - "
        "eta E(E-1)/2 H_k + R_k with 0 <= R_k <= eta^2 E(E-1)(E-2)/6 H_k^2 for eta L <= 1, and "
        "sum_k p_k P_k H_k <= E L, ||w~* - w*|| >= (E-1) eta/(2 L) (v - eta (E-2) V/3), of which "
        "half is left where eta (E-2) V <= 3 v/2."
    ),
)

PRINTED = RateClaim(
    id="fedavg-li/4",
    reading="printed",
    title="With constant steps FedAvg ends elsewhere: Omega((E-1) eta) ||w*||",
    source=f"{PAPER}, Theorem 4",
    theorem=replace(
        EXPLICIT,
        reading="printed",
        derivation=None,
        quantity=PointQuantity(
            _relative,
            "(E-1) eta ||w*|| / ||w~* - w*||",
            STEP,
            r"\frac{(E-1)\,\eta\,\|w^*\|}{\|\tilde w^*-w^*\|}",
        ),
        bound=as_printed(lambda: 4 * L * W / v),
        regimes={},
        family=None,
    ),
    axes=(RateAxis(n, sp.Integer(1), lambda setting: _DIVISORS, _shorter),),
    regimes=_REGIMES,
    note=(
        "The distance is of order (E-1) eta ||w*|| at least: their ratio stays bounded as eta/n "
        "takes the place of eta. The bound shown is that of the reading with constants, and so is "
        "what small enough means. The problem of the theorem, a ridge regression, is not in the "
        "text at hand; other quadratic clients with v > 0 stand for it. How small eta must be "
        "depends on E: for one eta and every E the claim fails, as w~* tends to a mean of the "
        "clients' minimisers and (E-1) eta to infinity."
    ),
)

STATEMENTS: tuple[Statement, ...] = (PRINTED, EXPLICIT)

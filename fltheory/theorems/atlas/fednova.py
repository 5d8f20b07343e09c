"""Wang, Liu, Liang, Joshi and Poor, "Tackling the Objective Inconsistency Problem" (FedNova, 2020).

Theorem 1 is an order with hidden constants, and in our copy of the text two of its four terms,
those in 1/T, are garbled. The other two "dominate when T is sufficiently large" (Section 4.2). They
give the order in T that is stated here for plain local SGD, where a_i consists of tau_i ones.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedNova, WeightedFedAvg
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis, three_decades
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.exact_or_float import largest, number, root, with_rounding
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, PURE, STEP
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.problems.base import gradients_at


def _weights(setting: Setting) -> Any:
    """Return w, the weights of the objective optimised in place of F, which must sum to one.

    Raises
    ------
    ValueError
        If the algorithm is not WeightedFedAvg, or clients have unequal Hessians.
    """
    if not isinstance(setting.algorithm, WeightedFedAvg):
        raise ValueError(
            f"algorithm must be WeightedFedAvg, whose weights are w, got {setting.algorithm!r}"
        )
    problem: Any = setting.problem
    if not isinstance(problem, QuadraticProblem) or not problem.shared_hessian:
        raise ValueError(
            "problem must be quadratic with the same Hessian for every client, so that Assumption "
            f"3 holds with beta = 1, got {problem!r}"
        )
    return np.asarray(setting.algorithm.aggregation_weights)


def _chi(setting: Setting) -> Any:
    w, alpha = _weights(setting), setting.problem.alpha
    return root(number(((alpha - w) * (alpha - w) / w).sum()))


def _dissimilarity(setting: Setting) -> Any:
    w, gradients = _weights(setting), gradients_at(setting.problem, setting.x0)
    apart = gradients - w @ gradients
    return root(number(w @ (apart * apart).sum(axis=1)))


def _surrogate(setting: Setting) -> Any:
    gradient = _weights(setting) @ gradients_at(setting.problem, setting.x0)
    return number((gradient * gradient).sum())


def _total(setting: Setting) -> Any:
    return number(_weights(setting).sum())


def _true(setting: Setting) -> tuple[Any, float]:
    gradients = gradients_at(setting.problem, setting.x0)
    gradient = setting.problem.alpha @ gradients
    squares = largest((gradients * gradients).sum(axis=1))
    # Both sides are sums that cancel; the rounding of the right side grows with chi^2.
    size = squares * (3 + 2 * _chi(setting) ** 2)
    return with_rounding(number((gradient * gradient).sum()), gradients.size, number(size))


chi = symbol("chi", "root of sum_i (p_i - w_i)^2/w_i", PURE, _chi, nonnegative=True)
kappa = symbol(
    "kappa", "root of sum_i w_i ||grad F_i - grad F~||^2", GRADIENT, _dissimilarity, real=True
)
surrogate = symbol(
    "epsilon", "||grad F~(x)||^2, F~ = sum_i w_i F_i", GRADIENT**2, _surrogate, real=True
)
total = symbol("W", "sum of w", PURE, _total, positive=True)
beta = symbol(
    "beta", "1, because all clients have the same Hessian", PURE, lambda setting: 1, positive=True
)


def _setting(
    *,
    w: tuple[float, ...] = (0.25,) * 4,
    p: tuple[float, ...] = (0.5, 0.25, 0.125, 0.125),
    spread: float = 1.0,
    start: float = 1.0,
    turn: float = 0.0,
) -> Setting:
    """Return four clients in the plane with one Hessian, starting ``start`` away from x*."""
    problem = QuadraticProblem(
        np.diag([1.0, 0.25]),
        spread * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.0, -1.0]]),
        target_weights=p,
    )
    x0 = problem.x_star + start * np.array([np.cos(turn), np.sin(turn)])
    return Setting(WeightedFedAvg(w, 0.1, 5), problem, UniformSubset(4, 4), 1, x0)


def _weighted(*, tilt: float, spread: float, start: float, turn: float) -> Setting:
    """Return a setting with weights w between equal ones and nearly all on one client."""
    rest = (1 - 0.25) * (1 - tilt) / 3
    return _setting(w=(1 - 3 * rest, rest, rest, rest), spread=spread, start=start, turn=turn)


THEOREM_2 = PointClaim(
    id="fednova/2",
    title="What the gradient of the surrogate objective says about that of F",
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
        "equal clients": Regime("all clients have the same optimum", partial(_setting, spread=0.0)),
        "far apart": Regime("optima 100 times as far apart", partial(_setting, spread=100.0)),
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
            Parameter("spread", 0.01, 100, 1, "distance between the clients' optima"),
            Parameter("start", 0.001, 100, 1, "||x - x*||"),
            Parameter("turn", 0, 6.28, 0, "direction of x - x*", logarithmic=False),
        ),
    ),
    note=(
        "Checked at every point x, from which the statement about minima over rounds follows. If "
        "all clients have the same Hessian, Assumption 3 holds with beta = 1 and kappa^2 = sum_i "
        "w_i ||grad F_i - grad F~||^2 everywhere, and no smaller kappa is possible."
    ),
)


# ------------------------------------------------------------ Theorem 1, as an order in T


def _fednova(setting: Setting) -> tuple[Any, Any]:
    """Return w and tau, with one entry per client.

    Raises
    ------
    ValueError
        If the algorithm is not FedNova with a server step of 1, weights are not the target weights,
        or clients are absent.
    """
    method, problem = setting.algorithm, setting.problem
    if not isinstance(method, FedNova) or method.server_lr != 1:
        raise ValueError(f"algorithm must be FedNova with server_lr 1, got {method!r}")
    given = method.client_weights
    weights = np.ones(problem.n_clients) if given is None else np.array(given)
    w = weights / weights.sum()
    if not np.allclose(w.astype(float), problem.alpha.astype(float), rtol=1e-12):
        raise ValueError(f"client_weights must be the target weights, which define F, got {given}")
    if setting.participation.fixed_size != problem.n_clients:
        raise ValueError(
            f"participation must include every client in every round, got {setting.participation!r}"
        )
    return problem.alpha, np.broadcast_to(method.local_steps, (problem.n_clients,))


def _mean_steps(setting: Setting) -> Any:
    _, tau = _fednova(setting)
    return number(sum(tau.tolist())) / len(tau)


def _effective_steps(setting: Setting) -> Any:
    w, tau = _fednova(setting)
    return number((w * tau).sum())


def _most_steps(setting: Setting) -> Any:
    _, tau = _fednova(setting)
    return int(max(tau.tolist()))


def _noise_share(setting: Setting) -> Any:
    """Return A, where ``||a_i||_2^2/||a_i||_1^2 = 1/tau_i`` since all entries of a_i are 1."""
    w, tau = _fednova(setting)
    return number(len(tau) * (w * tau).sum() * (w * w / tau).sum())


def _at_rounds(setting: Setting, rounds: int) -> Setting:
    """Change T and the step size."""
    count, steps = setting.problem.n_clients, float(_mean_steps(setting))
    method: Any = setting.algorithm
    longer = replace(method, client_lr=math.sqrt(count / (steps * rounds)))
    return replace(setting, algorithm=longer, rounds=rounds)


def _nova(
    *,
    steps: tuple[int, ...] = (2, 4, 8, 2),
    p: tuple[float, ...] = (0.5, 0.25, 0.125, 0.125),
    curvatures: tuple[float, ...] = (0.5, 0.125),
    spread: float = 1.0,
    sigma: float = 1.0,
    start: float = 1.0,
    rounds: int = 100_000,
) -> Setting:
    """Return clients in the plane with two alternating kinds of curvature."""
    count = len(p)
    angles = np.arange(count) * 2.0
    hessians = [np.diag([curvatures[k % 2], curvatures[1 - k % 2]]) for k in range(count)]
    problem = QuadraticProblem(
        hessians,
        spread * np.stack([np.cos(angles), np.sin(angles)], axis=1),
        sigma=sigma,
        target_weights=p,
    )
    x0 = problem.x_star + np.array([start, 0.0])
    method = FedNova(0.1, steps, client_weights=p)
    return _at_rounds(Setting(method, problem, UniformSubset(count, count), rounds, x0), rounds)


def _drawn(
    *, steep: float, condition: float, most: float, first_weight: float, **numbers: Any
) -> Setting:
    """Return four clients, of which the first and the third make one local step."""
    p = (first_weight, *[(1 - first_weight) / 3] * 3)
    steps = (1, int(most), 1, int(most))
    return _nova(steps=steps, p=p, curvatures=(steep, steep / condition), **numbers)


L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
sigma = symbol("sigma", "noise of the gradients", GRADIENT, "sigma", nonnegative=True)
m = symbol("m", "clients", PURE, "n_clients", positive=True, integer=True)
T = symbol("T", "rounds", PURE, "rounds", positive=True, integer=True)
eta = symbol("eta", "client_lr", STEP, "client_lr", positive=True)
tau = symbol(
    "tau", "1/m sum_i tau_i, the mean number of local steps", PURE, _mean_steps, positive=True
)
tau_max = symbol(
    "tau_max", "the largest number of local steps of a client", PURE, _most_steps, positive=True
)
tau_eff = symbol("tau_eff", "sum_i w_i tau_i", PURE, _effective_steps, positive=True)
A = symbol(
    "A",
    "m tau_eff sum_i w_i^2/tau_i, because a_i consists of tau_i ones",
    PURE,
    _noise_share,
    positive=True,
)
C = symbol(
    "C",
    "a constant that the text hides and that contains L and F(x_0) - F*",
    GRADIENT**2,
    lambda setting: math.nan,
    positive=True,
)
_ORDER = as_printed(
    lambda: tau / tau_eff / sp.sqrt(m * tau * T) + A * sigma**2 / sp.sqrt(m * tau * T)
)

THEOREM_1 = RateClaim(
    id="fednova/1",
    title="FedNova: the least squared gradient, O(1/sqrt(m tau T))",
    source="Wang et al. (NeurIPS 2020), Theorem 1",
    theorem=Theorem(
        id="fednova/1",
        title="FedNova: the least squared gradient",
        source="Wang et al. (NeurIPS 2020), Theorem 1",
        quantity=BoundedQuantity(
            "squared_gradient",
            "min",
            RoundRange(0, -1),
            "min_{t<T} E||grad F(x_t)||^2",
            r"\min_{t<T}\mathbb E\|\nabla F(x_t)\|^2",
        ),
        bound=C * _ORDER,
        family=Family(
            _drawn,
            (
                Parameter("steep", 0.3, 0.5, 0.5, "the larger curvature, L"),
                Parameter("condition", 1, 4, 4, "kappa"),
                Parameter("most", 1, 8, 8, "the largest number of local steps", whole=True),
                Parameter("first_weight", 0.1, 0.9, 0.25, "w_1", logarithmic=False),
                Parameter("spread", 0.1, 3, 1, "distance between the clients' optima"),
                Parameter("sigma", 0.1, 1, 1, "noise"),
                Parameter(
                    "start", 3, 10, 3, "||x_0 - x*||, so large that the minimum is not at t = 0"
                ),
            ),
        ),
        hypotheses=(
            Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 1"),
            Hypothesis(
                "step size", as_printed(lambda: sp.Eq(eta, sp.sqrt(m / (tau * T)))), "Theorem 1"
            ),
            Hypothesis(
                "small steps",
                as_printed(lambda: sp.Le(eta * L * tau_max, 1)),
                "Theorem 1: small enough",
            ),
        ),
    ),
    axes=(RateAxis(T, _ORDER, three_decades, _at_rounds),),
    regimes={
        "usual": Regime("tau = (2, 4, 8, 2), kappa = 4", _nova),
        "equal steps": Regime("tau_i = 4", partial(_nova, steps=(4,) * 4)),
        "one local step": Regime("tau_i = 1", partial(_nova, steps=(1,) * 4)),
        "one slow client": Regime("tau = (1, 20, 20, 20)", partial(_nova, steps=(1, 20, 20, 20))),
        "one Hessian": Regime("kappa = 1", partial(_nova, curvatures=(0.5, 0.5))),
        "exact gradients": Regime("sigma = 0", partial(_nova, sigma=0.0)),
        "equal clients": Regime("all clients have the same optimum", partial(_nova, spread=0.0)),
        "far apart": Regime("optima 10 times as far apart", partial(_nova, spread=10.0)),
        "steps too long": Regime(
            "L = 4, so that eta L tau_max > 1 for few rounds", partial(_nova, curvatures=(4.0, 1.0))
        ),
        "ten clients": Regime(
            "m = 10, equal weights", partial(_nova, p=(0.1,) * 10, steps=(1, 2, 3, 4, 5) * 2)
        ),
    },
    note=(
        "Checked only as an order in T: the first two terms of (8), with constants left open. Our "
        "copy of the text lacks the third term, in B, and is garbled in the fourth, in C. Both "
        "are of order 1/T, and Section 4.2 says that the first two dominate when T is large. Here "
        "w = p and clients run plain local SGD, so F~ is F, tau_eff is FedNova's own and a_i "
        "consists of ones. The text does not say which eta is small enough; we take eta L tau_max "
        "<= 1, with which FedNova never diverges. Assumption 3 allows any kappa^2 and beta^2, and "
        "quadratic clients meet it. eta = sqrt(m/(tau T)) has no unit, because the O hides L."
    ),
)

STATEMENTS: tuple[Statement, ...] = (THEOREM_1, THEOREM_2)

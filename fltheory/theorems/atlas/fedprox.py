"""Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, FedProx (MLSys 2020): Theorem 4, on one round.

Conventions
-----------
``mu`` is the proximal strength. A device's inexact solution is the result of K local steps of
gradient descent, and gamma is the smallest number for which all devices' solutions are
gamma-inexact; B is B(w^t). Devices are equally important and drawn uniformly without replacement;
the paper says "the set of K devices". Convex clients satisfy the bound on the Hessian for every L_-
> 0, and, in the limit, for L_- = 0, where rho is largest.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedProx
from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import largest, number, root
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LOSS, PURE
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex
from fltheory.problems.base import gradients_at


def _of_fedprox(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError if the theorem is not about it."""
    method, alpha = setting.algorithm, setting.problem.alpha
    if not isinstance(method, FedProx):
        raise ValueError(f"algorithm must be FedProx for its theorem, got {method!r}")
    if method.client_weights is not None or (alpha != alpha[0]).any():
        raise ValueError(
            "client_weights must be left out and target_weights must all be equal for FedProx's "
            "Theorem 4"
        )
    drawn = setting.participation
    if not isinstance(drawn, UniformSubset) or drawn.excluded:
        raise ValueError(f"participation must be a uniform draw of K clients, got {drawn!r}")
    return setting


@cached_by_content(16)
def _gradients(setting: Setting) -> Any:
    """Return the clients' gradients at the initial model, (N, d)."""
    return gradients_at(setting.problem, setting.x0)


@cached_by_content(16)
def _inexactness(setting: Setting) -> Any:
    """Return ``max_k ||grad h_k(w_k; w_0)|| / ||grad F_k(w_0)||`` after the local steps."""
    problem: Any = setting.problem
    method: Any = setting.algorithm
    count = problem.n_clients
    every, start = np.arange(count), np.array([setting.x0] * count)

    def slope(models: Any) -> Any:
        return problem.client_gradients(models, every) + method.proximal * (models - start)

    models = start
    for _ in range(method.local_steps):
        models = models - method.client_lr * slope(models)
    left, before = slope(models), _gradients(setting)
    ratios = (left * left).sum(axis=1) / (before * before).sum(axis=1)
    return root(number(largest(ratios)))


def _squared_gradient(setting: Setting) -> Any:
    mean = setting.problem.alpha @ _gradients(setting)
    return number((mean * mean).sum())


def _dissimilarity(setting: Setting) -> Any:
    squares = (_gradients(setting) * _gradients(setting)).sum(axis=1)
    total = _squared_gradient(setting)
    return root(number(setting.problem.alpha @ squares) / total) if total > 0 else sp.oo


def _least_curvature(setting: Setting) -> Any:
    return largest([-setting.problem.mu, 0 * setting.problem.mu])


L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
L_minus = symbol(
    "L_minus",
    "smallest value with Hessians of at least -L_-",
    CURVATURE,
    _least_curvature,
    nonnegative=True,
)
mu = symbol("mu", "proximal strength", CURVATURE, lambda s: s.algorithm.proximal, positive=True)
mu_bar = symbol("mu_bar", "mu - L_-", CURVATURE, real=True)
K = symbol("K", "devices drawn", PURE, "participants", positive=True, integer=True)
gamma = symbol(
    "gamma",
    "smallest value for which all solutions are gamma-inexact",
    PURE,
    _inexactness,
    nonnegative=True,
)
B = symbol(
    "B", "root of E_k||grad F_k(w^t)||^2/||grad f(w^t)||^2", PURE, _dissimilarity, positive=True
)
rho = symbol("rho", "decrease of the loss over the squared gradient", PURE / CURVATURE, real=True)
g = symbol("g", "||grad f(w^t)||", GRADIENT, lambda s: root(_squared_gradient(s)), nonnegative=True)
F_0 = symbol("F_0", "f(w^t) - f*", LOSS, "excess_loss", nonnegative=True)
noise = symbol("s", "noise of the gradients", GRADIENT, "sigma", nonnegative=True)
T = symbol("T", "rounds", PURE, "rounds", positive=True, integer=True)


def _setting(
    *,
    condition: float = 2.0,
    spread: float = 0.0,
    start: float = 1.0,
    proximal: float = 20.0,
    local_steps: int = 20,
    drawn: int = 10,
    sigma: float = 0.0,
    rounds: int = 1,
) -> Setting:
    """Return twelve clients in the plane with L = 1, and local steps of 1/(mu + L)."""
    curvatures = [[1.0, 1 / condition], [1.0, 1.0]] * 6
    turns = 2 * np.pi * np.arange(12) / 12
    problem = QuadraticProblem(
        [np.diag(one) for one in curvatures],
        spread * np.stack([np.cos(turns), np.sin(turns)], axis=1).round(3),
        sigma=sigma,
    )
    method = FedProx(1 / (proximal + 1), int(local_steps), proximal)
    x0 = problem.x_star + np.array([start, 0.0])
    return Setting(method, problem, UniformSubset(12, int(drawn)), rounds, x0)


def _nonconvex() -> Setting:
    problem = nonconvex(12, 2, L=1.0, sigma_G=0.01)
    method = FedProx(1 / 21, 20, 20.0)
    return Setting(method, problem, UniformSubset(12, 10), 1, problem.x_star + np.array([0.5, 0.0]))


THEOREM_4 = Theorem(
    id="fedprox/4",
    title="FedProx: the loss falls in a round",
    source="Li, Sahu et al. (MLSys 2020), Theorem 4",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "E[f(w^{t+1})] - f*",
        r"\mathbb E_{S_t}[f(w^{t+1})]-f^*",
        LOSS,
    ),
    bound=as_printed(lambda: F_0 - rho * g**2),
    hypotheses=(
        Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Theorem 4"),
        Hypothesis("mu_bar above 0", sp.Gt(mu_bar, 0, evaluate=False), "Theorem 4"),
        Hypothesis("not stationary", sp.Lt(B, sp.oo, evaluate=False), "Theorem 4"),
        Hypothesis("rho above 0", sp.Gt(rho, 0, evaluate=False), "Theorem 4"),
        Hypothesis("exact gradients", sp.Eq(noise, 0), "Definition 2"),
        Hypothesis("one round", sp.Eq(T, 1), "Theorem 4"),
    ),
    domain=_of_fedprox,
    definitions={
        mu_bar: as_printed(lambda: mu - L_minus),
        rho: as_printed(
            lambda: (
                1 / mu
                - gamma * B / mu
                - B * (1 + gamma) * sp.sqrt(2) / (mu_bar * sp.sqrt(K))
                - L * B * (1 + gamma) / (mu_bar * mu)
                - L * (1 + gamma) ** 2 * B**2 / (2 * mu_bar**2)
                - L * B**2 * (1 + gamma) ** 2 / (mu_bar**2 * K) * (2 * sp.sqrt(2 * K) + 2)
            )
        ),
    },
    regimes={
        "usual": Regime("equal optima, mu = 20 L, 10 of 12 drawn", _setting),
        "clients a little apart": Regime(
            "optima on a circle of 1/10", partial(_setting, spread=0.1)
        ),
        "everybody": Regime("all 12 drawn", partial(_setting, drawn=12)),
        "equal clients": Regime("kappa = 1", partial(_setting, condition=1.0)),
        "strong proximal term": Regime("mu = 1000 L", partial(_setting, proximal=1000.0)),
        "inexact solutions": Regime("3 local steps", partial(_setting, local_steps=3)),
        "nonconvex": Regime("rippled losses, sampled", _nonconvex),
        "few drawn": Regime("1 of 12: rho below 0", partial(_setting, drawn=1)),
        "weak proximal term": Regime("mu = L: rho below 0", partial(_setting, proximal=1.0)),
        "noisy gradients": Regime("s = 1", partial(_setting, sigma=1.0)),
    },
    family=Family(
        _setting,
        (
            Parameter("condition", 1, 100, 2, "kappa, with L = 1"),
            Parameter("spread", 0.001, 1, 0.1, "distance between the clients' optima"),
            Parameter("start", 0.01, 100, 1, "||w^t - w*||"),
            Parameter("proximal", 2, 1000, 20, "mu"),
            Parameter("local_steps", 1, 50, 20, "local steps", whole=True),
            Parameter("drawn", 3, 12, 10, "K", whole=True),
        ),
    ),
    note="Checked to the letter, for one round from the initial model.",
)

STATEMENTS: tuple[Statement, ...] = (THEOREM_4,)

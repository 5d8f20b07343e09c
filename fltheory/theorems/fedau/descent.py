"""FedAU: Lemma B.3.3, the general descent lemma on which every derived constant rests."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAU
from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.exact_or_float import number
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LOSS, PURE, STEP
from fltheory.theorems.fedau import regimes
from fltheory.theorems.fedau.setting import FedAUSetting
from fltheory.theorems.fedau.weights import PAPER
from fltheory.validation import FloatArray


def _weights(setting: Setting) -> FloatArray:
    """Return omega_0^n: 1 for FedAU's, or the constant ones."""
    of = FedAUSetting(setting)
    return of.p / of.p if isinstance(of.algorithm, FedAU) else of.constant_weights


def _weight_error(setting: Setting) -> Any:
    p, n_clients = FedAUSetting(setting).p, setting.problem.n_clients
    return number(((p * _weights(setting) - 1) ** 2).sum()) / n_clients**2


def _weight_square(setting: Setting) -> Any:
    return number((FedAUSetting(setting).p * _weights(setting) ** 2).sum())


def _squared_gradient(setting: Setting) -> Any:
    problem = setting.problem
    every = np.arange(problem.n_clients)
    gradients = problem.client_gradients(np.stack([setting.x0] * problem.n_clients), every)
    gradient = (gradients * problem.alpha[:, None]).sum(axis=0)
    return number((gradient * gradient).sum())


L = symbol("L", "smoothness of every client", CURVATURE, lambda s: s.problem.L, positive=True)
N = symbol("N", "clients", PURE, lambda s: s.problem.n_clients, positive=True, integer=True)
I_steps = symbol("I", "local_steps", PURE, "local_steps", positive=True)
T = symbol("T", "rounds", PURE, lambda s: s.rounds, positive=True, integer=True)
gamma = symbol("gamma", "client_lr", STEP, "client_lr", positive=True)
eta = symbol("eta", "server_lr", PURE, "server_lr", positive=True)
sigma = symbol(
    "sigma",
    "clients' gradient noise, E||noise||^2 <= sigma^2",
    GRADIENT,
    lambda s: s.problem.sigma,
    nonnegative=True,
)
delta = symbol(
    "delta",
    "sup over clients and points of ||grad F_n - grad f||",
    GRADIENT,
    lambda s: s.problem.sigma_G,
    extended_nonnegative=True,
)
tau = symbol(
    "tau",
    "how far the past can move the probability that a client takes part: 0 for Bernoulli",
    PURE,
    "dependence",
    nonnegative=True,
)
E_w = symbol("E_w", "sum_n (p_n omega_t^n/N - 1/N)^2", PURE, _weight_error, nonnegative=True)
S_w = symbol("S_w", "sum_n p_n (omega_t^n)^2", PURE, _weight_square, positive=True)
F_t = symbol(
    "F_t",
    "f(x_t) - f*, x_t the model before the round",
    LOSS,
    lambda s: number(s.problem.excess_loss(s.x0)),
    nonnegative=True,
)
g_2 = symbol("g_2", "||grad f(x_t)||^2", GRADIENT**2, _squared_gradient, nonnegative=True)


def _bound() -> sp.Expr:
    """Return the right side, less f*, with phi_n = 1/N."""
    weighted = 3 * gamma * eta * I_steps * N / 2 * E_w
    drift = 5 * gamma**3 * eta * L**2 * I_steps**2 / 2
    square = gamma**2 * eta**2 * L * I_steps / N**2 * S_w
    slope = (
        sp.Rational(81, 16) * N * E_w
        + 15 * L**2 * I_steps**2 * gamma**2
        + 27 * gamma * eta * L * I_steps / (8 * N**2) * S_w
        - sp.Rational(1, 4)
    )
    return (
        F_t
        + weighted * (15 * L**2 * I_steps * gamma**2 * sigma**2 + 27 * delta**2 / 8)
        + drift * (sigma**2 + 6 * I_steps * delta**2)
        + square * (17 * sigma**2 / 16 + 27 * I_steps * delta**2 / 8)
        + gamma * eta * I_steps * slope * g_2
    )


DESCENT = Theorem(
    id="fedau/lemma-b-3-3",
    reading="printed",
    title="What one round of weighted averaging does to the loss: the general descent lemma",
    source=f"{PAPER}, Lemma B.3.3, by a restatement",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "E f(x_{t+1}) - f*",
        r"\mathbb E_t[f(x_{t+1})]-f^*",
        LOSS,
    ),
    bound=as_printed(_bound),
    hypotheses=(
        Hypothesis("participation independent of the past", sp.Eq(tau, 0), "Assumption 4"),
        Hypothesis("bounded divergence", sp.Lt(delta, sp.oo, evaluate=False), "Assumption 3"),
        Hypothesis(
            "small local steps",
            as_printed(lambda: sp.Le(gamma, 1 / (4 * sp.sqrt(15) * L * I_steps))),
            "Lemma B.3.3",
        ),
        Hypothesis(
            "small server steps",
            as_printed(lambda: sp.Le(gamma * eta, 1 / (4 * L * I_steps))),
            "Lemma B.3.3 itself",
        ),
        Hypothesis("one round", sp.Eq(T, 1), "Lemma B.3.3 is about one round"),
    ),
    regimes=regimes.DESCENT,
    kind=StatementKind.LEMMA,
    note=(
        "With phi_n = 1/N, as for Theorem 2, and the weights of the first round: 1 for FedAU's, or "
        "constant ones, which are as large as one likes. f* is taken off both sides. The text at "
        "hand is a restatement with all constants. For other phi_n it is the same of other target "
        "weights."
    ),
)

STATEMENTS: tuple[Statement, ...] = (DESCENT,)

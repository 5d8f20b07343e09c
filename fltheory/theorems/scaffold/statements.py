"""SCAFFOLD: the theorems on finitely many rounds, with their constants.

Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, "SCAFFOLD: Stochastic Controlled Averaging for
Federated Learning" (ICML 2020; arXiv 1910.06378v4), as restated with page numbers: Lemma 15
telescoped for convex losses, Lemma 19 for nonconvex ones. The paper's own summary, Theorem VII,
gives orders only, and leaves out the initial controls and the warm start.

Conventions
-----------
``x^r`` is the model before round r = 0 .. T-1. ``eta_g >= 1`` is stated with h, in the convex
theorem, and taken to belong to h in both. Algorithm 1's option I takes c_i^+ = g_i(x); the paper
says of it that it makes an additional pass over the local data, so that g_i(x) averages at least as
many gradients as a round's local steps. Read off the pseudo-code alone, in the reading of that
name, g_i(x) is one stochastic gradient, of variance sigma^2 like that of a local step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.algorithms import Scaffold, WarmStarted
from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.exact_or_float import powers
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, Weight
from fltheory.grammar.units import LENGTH, LOSS
from fltheory.theorems.scaffold import proof, regimes
from fltheory.theorems.scaffold.symbols import (
    C_0,
    D_0,
    F_0,
    W_T,
    K,
    N,
    S,
    T,
    beta,
    cold,
    eta_g,
    eta_l,
    h,
    memory,
    mu,
    option,
    sigma,
    unlike,
)
from fltheory.validation import FloatArray


def of_scaffold(setting: Setting) -> Setting:
    """Return the setting.

    Raises
    ------
    ValueError
        For another algorithm than SCAFFOLD, warm started or not, or unequal target weights.
    """
    _scaffold(setting)
    alpha = setting.problem.alpha
    if (alpha != alpha[0]).any():
        raise ValueError(
            "target_weights must be equal for the theorems of SCAFFOLD, where f is the clients' "
            f"mean, got {alpha.tolist()}"
        )
    return setting


def with_cold_start(setting: Setting) -> Setting:
    """Return the setting; ValueError where controls do not start at zero, as C_0 is of those."""
    if isinstance(setting.algorithm, WarmStarted):
        raise ValueError(
            "algorithm must be Scaffold, with controls of zero at first, for the theorem on "
            f"convex losses, got {setting.algorithm!r}"
        )
    return of_scaffold(setting)


def _scaffold(setting: Setting) -> Scaffold:
    algorithm = setting.algorithm
    scaffold = algorithm.scaffold if isinstance(algorithm, WarmStarted) else algorithm
    if not isinstance(scaffold, Scaffold):
        raise ValueError(
            f"algorithm must be Scaffold, or WarmStarted, for its theorems, got {algorithm!r}"
        )
    return scaffold


def geometric_weights(setting: Setting) -> FloatArray:
    """Return ``w_r = (1 - mu h/2)^-(r+1)`` for r = 0 .. T-1, over the last one."""
    scaffold = _scaffold(setting)
    step = scaffold.local_steps * scaffold.client_lr * scaffold.server_lr
    before_last = np.arange(setting.rounds - 1, -1, -1)
    return powers(1 - setting.problem.mu * step / 2, before_last)


def rounds_that_count(setting: Setting) -> NDArray[np.int64]:
    """Return 1 for r = 0 .. T-1, and 0 for the round of a warm start."""
    weights = np.ones(setting.rounds, dtype=np.int64)
    weights[: isinstance(setting.algorithm, WarmStarted)] = 0
    return weights


_PAPER = "SCAFFOLD (ICML 2020, arXiv v4)"
_LEMMA_15 = f"{_PAPER}, Lemma 15 telescoped, p. 30-31"
_BEFORE_EACH_ROUND = RoundRange(0, -1)
_STEP = {h: K * eta_l * eta_g}
_NOISE = proof.NOISE

_UNIFORM = (
    Hypothesis("clients drawn uniformly", sp.Eq(unlike, 0, evaluate=False), "Algorithm 1"),
    Hypothesis("draws independent of each other", sp.Eq(memory, 0, evaluate=False), "Algorithm 1"),
)
_SMOOTH = Hypothesis("smooth clients", sp.Lt(beta, sp.oo, evaluate=False), "Lemma 15")
_SERVER = Hypothesis("server step of at least one", sp.Ge(eta_g, 1), "Lemma 15")
_SMALL = Hypothesis("small effective step", sp.Le(h, 1 / (81 * beta)), "Lemma 15")
_FEW_OF_MANY = Hypothesis(
    "mu h at most S/(15N)", as_printed(lambda: sp.Le(mu * h, S / (15 * N))), "Lemma 15"
)
_PASS = Hypothesis(
    "option I with an additional pass over the local data, or option II",
    sp.Ge(option, 2, evaluate=False),
    "Algorithm 1",
)
_OPTION_2 = Hypothesis(
    "controls that average K gradients", sp.Ge(option, 2, evaluate=False), "12 h^2 sigma^2/(KS)"
)
_ONE_GRADIENT = Refutation(
    "The K in the term 12 h^2 sigma^2/(KS) needs control variates of variance sigma^2/K, but line "
    "12 of Algorithm 1, taken alone, makes c_i^+ = g_i(x) a single stochastic gradient, of "
    "variance sigma^2.",
    Weight.MISSING_HYPOTHESIS,
    "in option I, an additional pass over the local data, as the paper's text says",
    "printed",
    ("one gradient as control",),
)
_ONE_STOCHASTIC_GRADIENT = (
    "The pseudo-code alone, in which option I's g_i(x) is a single stochastic gradient. The "
    "paper's text says that option I makes an additional pass over the local data; see the "
    "printed reading."
)


def _without_pass(theorem: Theorem) -> tuple[Hypothesis, ...]:
    return tuple(item for item in theorem.hypotheses if item is not _PASS)


def _pseudo_code(theorem: Theorem) -> Theorem:
    """Return the reading in which option I's control is one stochastic gradient."""
    return replace(
        theorem,
        reading="pseudo-code",
        hypotheses=_without_pass(theorem),
        note=_ONE_STOCHASTIC_GRADIENT,
        refutations=(
            replace(_ONE_GRADIENT, certificates=(f"{theorem.id.replace('/', '-')}.json",)),
        ),
    )


STRONGLY_CONVEX = Theorem(
    id="scaffold/strongly-convex",
    reading="printed",
    title="SCAFFOLD on strongly convex losses: a weighted mean of the excess losses",
    source=_LEMMA_15,
    quantity=BoundedQuantity(
        "excess_loss",
        "mean",
        _BEFORE_EACH_ROUND,
        "1/W_T sum_{r<T} w_r E[f(x^r) - f(x*)]",
        r"\frac1{W_T}\sum_{r<T}w_r\mathbb E[f(x^r)-f(x^\star)]",
        LOSS,
        weights=geometric_weights,
        weights_text="(1 - mu*h/2)**(T - 1 - r)",
    ),
    bound=proof.BOUND,
    hypotheses=(
        _SMOOTH,
        Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Lemma 15"),
        _SERVER,
        _SMALL,
        _FEW_OF_MANY,
        *_UNIFORM,
        _PASS,
    ),
    domain=with_cold_start,
    definitions={**_STEP, W_T: as_printed(lambda: ((1 - mu * h / 2) ** (-T) - 1) / (mu * h / 2))},
    regimes=regimes.CONVEX,
    own_run=regimes.OWN_STRONGLY_CONVEX,
    note=(
        "To the letter, for Algorithm 1 in either option. The short statement, Theorem VII, "
        "leaves out the term in C_0."
    ),
)

STRONGLY_CONVEX_DERIVED = replace(
    STRONGLY_CONVEX,
    reading="derived",
    hypotheses=(*_without_pass(STRONGLY_CONVEX), _OPTION_2),
    derivation=proof.strongly_convex(),
    note=(
        "The K in the server's variance, 12 h^2 sigma^2/(KS), needs control variates of variance "
        "sigma^2/K: option II, or an extra pass of K gradients. With a single gradient as control "
        "variate (option I) the noise does not shrink with K."
    ),
)

CONVEX = replace(
    STRONGLY_CONVEX,
    id="scaffold/convex",
    title="SCAFFOLD on convex losses: the mean of the excess losses",
    source=f"{_LEMMA_15}, mu = 0",
    quantity=BoundedQuantity(
        "excess_loss",
        "mean",
        _BEFORE_EACH_ROUND,
        "1/T sum_{r<T} E[f(x^r) - f(x*)]",
        r"\frac1T\sum_{r<T}\mathbb E[f(x^r)-f(x^\star)]",
        LOSS,
    ),
    bound=as_printed(lambda: (D_0**2 + 9 * N * h**2 / S * C_0) / (h * T) + _NOISE),
    hypotheses=(
        _SMOOTH,
        Hypothesis("convex clients", sp.Ge(mu, 0, evaluate=False), "Lemma 15"),
        _SERVER,
        _SMALL,
        *_UNIFORM,
        _PASS,
    ),
    definitions=_STEP,
    own_run=regimes.OWN_CONVEX,
    note="To the letter, at mu = 0, where w_r = 1; for Algorithm 1 in either option.",
)

CONVEX_DERIVED = replace(
    CONVEX,
    reading="derived",
    hypotheses=(*_without_pass(CONVEX), _OPTION_2),
    derivation=proof.convex(),
    note=f"{STRONGLY_CONVEX_DERIVED.note} At mu = 0.",
)

NONCONVEX = Theorem(
    id="scaffold/nonconvex",
    reading="printed",
    title="SCAFFOLD on smooth losses: the mean squared gradient",
    source=f"{_PAPER}, Lemma 19, p. 34-35",
    quantity=BoundedQuantity(
        "squared_gradient",
        "mean",
        _BEFORE_EACH_ROUND,
        "1/T sum_{r<T} E||grad f(x^r)||^2",
        r"\frac1T\sum_{r<T}\mathbb E\|\nabla f(x^r)\|^2",
        (LOSS / LENGTH) ** 2,
        weights=rounds_that_count,
        weights_text="Min(r + k, 1)",
    ),
    bound=as_printed(
        lambda: 14 * F_0 / (h * T) + 70 * beta * h * sigma**2 / (K * S) * (1 + S / eta_g**2)
    ),
    hypotheses=(
        replace(_SMOOTH, source="Lemma 19"),
        _SERVER,
        Hypothesis(
            "small effective step",
            as_printed(lambda: sp.Le(h, (S / N) ** sp.Rational(2, 3) / (24 * beta))),
            "Lemma 19",
        ),
        Hypothesis("warm start by all clients", sp.Eq(cold, 0, evaluate=False), "Lemma 19"),
        *_UNIFORM,
        _PASS,
    ),
    domain=of_scaffold,
    definitions=_STEP,
    regimes=regimes.NONCONVEX,
    own_run=regimes.OWN_NONCONVEX,
    note=(
        "To the letter, for Algorithm 1 in either option. The short statement, Theorem VII, "
        "leaves out the warm start; without it the bound is 0 at x^0 = x* with exact gradients, "
        "and yet the model moves."
    ),
)

NONCONVEX_DERIVED = replace(
    NONCONVEX,
    reading="derived",
    hypotheses=(*_without_pass(NONCONVEX), replace(_OPTION_2, source="70 beta h sigma^2/(KS)")),
    note=(
        "The 1/K in the noise term needs control variates of variance sigma^2/K, as in the convex "
        "theorem: option II, or an extra pass of K gradients."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    STRONGLY_CONVEX,
    _pseudo_code(STRONGLY_CONVEX),
    STRONGLY_CONVEX_DERIVED,
    CONVEX,
    _pseudo_code(CONVEX),
    CONVEX_DERIVED,
    NONCONVEX,
    _pseudo_code(NONCONVEX),
    NONCONVEX_DERIVED,
)

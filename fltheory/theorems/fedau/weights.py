"""FedAU: Theorem 3 on the weight error, and the steps of its proof.

Wang and Ji, "A Lightweight Method for Tackling Unknown Participation Statistics in Federated
Averaging" (ICLR 2024), from the author's slides and, for the steps of proofs, from restatements.
p_n is the long-run share of rounds in which client n takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.algorithms import FedAU
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis, three_decades, with_rounds
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.fedau_weights.dependent_weight_error import sampled_weight_errors
from fltheory.engines.fedau_weights.weight_error import interval_moments
from fltheory.exact_or_float import is_exact, largest, number
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.units import PURE
from fltheory.theorems.fedau import regimes
from fltheory.theorems.fedau.setting import (
    H_T,
    K,
    N,
    S_n,
    T,
    b_K,
    fedau_of,
    omega_t,
    p_n,
    tau,
    v_1,
    v_2,
    with_cutoff,
)
from fltheory.validation import FloatArray

_Line = Callable[[FloatArray, float, NDArray[Any]], FloatArray]

PAPER = "FedAU (ICLR 2024; arXiv 2306.03401; from the author's slides)"

INDEPENDENT = Hypothesis("participation independent of the past", sp.Eq(tau, 0), "Assumption 4")
_LETTERS = (p_n, omega_t, S_n, N, T, K)
_ROUNDS = Hypothesis("two rounds", sp.Ge(T, 2, evaluate=False), "Theorem 3")
_HYPOTHESES = (INDEPENDENT, _ROUNDS)
_BEYOND_CUTOFF = Hypothesis("rounds beyond the cut-off", sp.Gt(T, K), "floor(t/K) >= 1")


def _mean_error(setting: Setting) -> tuple[float, float]:
    errors = fedau_of(setting).weight_errors
    return number(errors.values.mean()), float(errors.error.mean())


def _drawn_mean_error(setting: Setting, replicas: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(sampled_weight_errors(setting, replicas, rng).mean(axis=1))


def last_line(p: FloatArray, cutoff: float, t: NDArray[Any]) -> FloatArray:
    """Return ``2K(1-p)/t + (1-p)^(2K)``, (N, rounds), the proof's last line."""
    absent = 1 - p[:, None]
    return np.asarray(2 * cutoff * absent / t + absent ** (2 * cutoff))


def counted(p: FloatArray, cutoff: float, t: NDArray[Any]) -> FloatArray:
    """Return ``p^2 Var S / max(floor(t/K), 1) + (1-p)^(2K)``, (N, rounds), the step before."""
    variance = np.array([each**2 * interval_moments(number(each), cutoff)[1] for each in p])
    intervals = np.maximum(t // cutoff, 1)
    return np.asarray(variance[:, None] / intervals + (1 - p[:, None]) ** (2 * cutoff))


def _worst_ratio(setting: Setting, line: _Line, *, from_cutoff: bool) -> tuple[float, float]:
    """Return the largest ratio, over clients and t >= 1 (or K), of a weight's error to a line."""
    s = fedau_of(setting)
    first = int(min(s.cutoff, s.rounds)) if from_cutoff else 1
    t = np.arange(first, s.rounds)
    bound = line(s.p, s.cutoff, t)
    positive = np.asarray(bound > 0, dtype=bool)
    if not positive.any():
        return 0, 0.0
    ratios = s.weight_errors.values[:, first:][positive] / bound[positive]
    if is_exact(ratios):
        return largest(ratios), 0.0
    worst = int(np.argmax(ratios))
    return float(ratios[worst]), float(
        (s.weight_errors.error[:, first:][positive] / bound[positive])[worst]
    )


def _against_last_line(setting: Setting) -> tuple[float, float]:
    return _worst_ratio(setting, last_line, from_cutoff=False)


def _against_count(setting: Setting) -> tuple[float, float]:
    return _worst_ratio(setting, counted, from_cutoff=False)


def _against_count_from_cutoff(setting: Setting) -> tuple[float, float]:
    return _worst_ratio(setting, counted, from_cutoff=True)


def _with_cutoff(setting: Setting, cutoff: int) -> Setting:
    algorithm = setting.algorithm
    if not isinstance(algorithm, FedAU):
        raise ValueError(f"algorithm must be FedAU to have a cut-off, got {algorithm!r}")
    return replace(setting, algorithm=replace(algorithm, cutoff=cutoff))


def _three_decades_of_cutoffs(setting: Setting) -> tuple[int, ...]:
    return (1, 10, 100, 316, 1000)


_on_weights = partial(
    PointClaim,
    hypotheses=_HYPOTHESES,
    domain=with_cutoff,
    symbols=_LETTERS,
    regimes=regimes.THEOREM_3,
)

THEOREM_3 = _on_weights(
    id="fedau/3",
    reading="derived",
    title="FedAU's weights: their mean squared error over rounds and clients",
    source=f"{PAPER}, Theorem 3",
    quantity=PointQuantity(
        _mean_error,
        "1/(NT) sum over t, n of E[(p_n omega_t^n - 1)^2]",
        PURE,
        r"\frac{1}{NT}\sum_{t,n}\mathbb{E}[(p_n\omega_t^n-1)^2]",
        _drawn_mean_error,
        certified="mean_weight_error",
    ),
    bound=as_printed(lambda: (v_2 + 2 * K * v_1 * H_T) / T + b_K),
    note=(
        "This is the last line of the proof, 2K(1-p)/t + (1-p)^(2K), summed over t = 1 .. T-1, "
        "plus (1-p)^2 for round 0, where omega is 1. The proof reaches this line by a step that "
        "fails for t < K (fedau/3-step), but the line itself is true in every round "
        "(docs/fedau.md)."
    ),
)

THEOREM_3_PRINTED = RateClaim(
    id="fedau/3",
    title=THEOREM_3.title,
    source=THEOREM_3.source,
    theorem=THEOREM_3,
    axes=(
        RateAxis(T, K * sp.log(T) / T + b_K, three_decades, with_rounds),
        RateAxis(K, K * sp.log(T) / T + b_K, _three_decades_of_cutoffs, _with_cutoff),
    ),
    regimes=regimes.THEOREM_3_ORDER,
    note="Checked to the letter: O(K log T/T + 1/N sum_n (1 - p_n)^(2K)), with the constant left "
    "open.",
)

LAST_LINE = _on_weights(
    id="fedau/3-rounds",
    title="FedAU's weights: the error in every round, last line of Theorem 3's proof",
    source=f"{PAPER}, proof of Theorem 3",
    quantity=PointQuantity(
        _against_last_line,
        "max over t >= 1 and n of E[(p_n omega_t^n - 1)^2] / (2K(1-p_n)/t + (1-p_n)^(2K))",
        PURE,
        certified="weight_error_share",
    ),
    bound=sp.Integer(1),
    note="Checked to the letter, in every round and for every client.",
    kind=StatementKind.STEP,
)


def _against_count_latex(first: str) -> str:
    return (
        rf"\max_{{n,\,t\geq {first}}}\frac{{\mathbb{{E}}[(p_n\omega_t^n-1)^2]}}"
        r"{p_n^2\operatorname{Var}S_n/\max(\lfloor t/K\rfloor,1)+(1-p_n)^{2K}}"
    )


STEP = _on_weights(
    id="fedau/3-step",
    title="FedAU's weights: their error if at least floor(t/K) intervals are averaged",
    source=f"{PAPER}, proof of Theorem 3",
    quantity=PointQuantity(
        _against_count,
        "max over t >= 1 and n of E[(p_n omega_t^n - 1)^2] / "
        "(p_n^2 Var S_n/max(floor(t/K), 1) + (1-p_n)^(2K))",
        PURE,
        latex=_against_count_latex("1"),
        certified="weight_error_ratio",
    ),
    bound=sp.Integer(1),
    note=(
        "Checked to the letter: the error is split as if E omega_t were E S_n, and the number of "
        "completed intervals is taken to be at least floor(t/K), and at least one before round K. "
        "But before round K, it is possible that no interval has ended, and omega is then 1."
    ),
    kind=StatementKind.STEP,
)

STEP_DERIVED = replace(
    STEP,
    reading="derived",
    hypotheses=(*_HYPOTHESES, _BEYOND_CUTOFF),
    quantity=PointQuantity(
        _against_count_from_cutoff,
        STEP.quantity.text.replace("t >= 1", "t >= K"),
        PURE,
        latex=_against_count_latex("K"),
        certified="late_weight_error_ratio",
    ),
    note=(
        "This reading begins at t = K, when at least one interval has ended. Given their number, "
        "the completed intervals are exchangeable, so E omega_t = E S_n. For the same reason, "
        "omega_t is the conditional mean of the average of the first floor(t/K) intervals, and a "
        "conditional mean has no larger variance. So the randomness of the number of intervals "
        "costs nothing."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    THEOREM_3_PRINTED,
    THEOREM_3,
    LAST_LINE,
    replace(
        STEP,
        refutations=(
            Refutation(
                "For t < K it is possible that no interval has ended yet, so that omega_t is "
                "still 1. But the line counts at least one completed interval, by max(floor(t/K), "
                "1).",
                Weight.GAP,
                "t >= K",
                "derived",
                ("K = 5", "K = 50", "before an interval ends"),
                ("fedau-3-step.json",),
                answer=(
                    "Rounds before the first interval ends add at most K/T, so the order stays the "
                    "same."
                ),
            ),
        ),
    ),
    STEP_DERIVED,
)

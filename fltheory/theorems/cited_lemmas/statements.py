"""The lemmas that SA-FL cites for its Theorems 4 and 5, each as a statement of its own.

SCAFFOLD's Lemma 5, perturbed strong convexity, at (63); its Lemma 4, separation of mean and
variance, at (44) and (61); and the bounded local drift at (41) and (75), cited as Lemma 2 of Yang
et al. (2021) and Lemma 3 of Reddi et al. (2021). Lemmas 5 and the drift are as SA-FL writes them.
SA-FL does not write Lemma 4 out: its form here is what its proof gives, not a quotation.

Each is claimed for all points, sequences or functions of a class. A setting gives the constants,
and the quantity is the largest that its class allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, number, root
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, PURE, STEP
from fltheory.theorems.cited_lemmas import regimes as regimes
from fltheory.theorems.cited_lemmas.drift_tightness import gradient_constant, noise_constant
from fltheory.theorems.cited_lemmas.local_run import LocalRun
from fltheory.validation import FloatArray

_SAFL = "SA-FL (ICML 2024)"
_ROUNDINGS = 64 * float(np.finfo(np.float64).eps)


@cached_by_content(16)
def _run_of(setting: Setting) -> LocalRun:
    return LocalRun(setting)


def _local(number_of: Callable[[LocalRun], Any]) -> Callable[[Setting], Any]:
    return lambda setting: number_of(_run_of(setting))


def _local_steps_on_quadratics(setting: Setting) -> Setting:
    """Return the setting; ValueError unless a client's local steps on it are in closed form."""
    _run_of(setting)
    return setting


L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
mu = symbol("mu", "strong convexity of every client", CURVATURE, "mu", positive=True)
eta = symbol("eta", "client_lr", STEP, "client_lr", positive=True)
K = symbol(
    "K", "local_steps, the number of terms", PURE, "local_steps", positive=True, integer=True
)
sigma = symbol(
    "sigma",
    "noise of a stochastic gradient given the past, E||noise||^2 <= sigma^2",
    GRADIENT,
    "sigma",
    nonnegative=True,
)
sigma_G = symbol(
    "sigma_G", "gradient dissimilarity", GRADIENT, "sigma_G", extended_nonnegative=True
)
gradient = symbol(
    "g", "||grad F(x)||", GRADIENT, _local(lambda run: run.gradient_of_mean), nonnegative=True
)
spread = symbol(
    "s",
    "root of the largest E||g_i(y_k) - E g_i(y_k)||^2",
    GRADIENT,
    _local(lambda run: root(run.largest_variance[_worst_fixed(run)])),
    nonnegative=True,
)
mean = symbol(
    "m",
    "||sum_k E g_i(y_k)||",
    GRADIENT,
    _local(lambda run: root(run.summed_mean[_worst_fixed(run)])),
    nonnegative=True,
)
exact_sum = symbol(
    "A",
    "root of E||sum_k grad F_i(y_k)||^2, the gradients without their own noise",
    GRADIENT,
    _local(lambda run: root(run.summed_exact[_worst_exact(run)])),
    nonnegative=True,
)
c_K = symbol(
    "c_K",
    "(K-1)/K [(1 + 1/(K-1))^K - 1], about e - 1",
    PURE,
    _local(lambda run: _unrolled(run.steps) if is_exact(run.lr) else unrolled_constant(run.steps)),
    positive=True,
)
c_noise = symbol(
    "c_1",
    "((1 + eta L)^(2K) - 1)/(K ((1 + eta L)^2 - 1)), at most 1.14 for eta <= 1/(8LK)",
    PURE,
    _local(lambda run: noise_constant(run.steps, run.size)),
    positive=True,
)
c_gradient = symbol(
    "c_2",
    "2 (((1 + eta L)^K - 1)/(K eta L))^2, at most 2.27",
    PURE,
    _local(lambda run: gradient_constant(run.steps, run.size)),
    positive=True,
)


def _needed_curvature(setting: Setting) -> tuple[float, float]:
    """Return the least c for (63) on the setting's clients, over all x, y and z.

    With u = z - y, v = z - x and curvature a the gap is ``(a/2 - mu/4) u^2 - a u v + c v^2`` along
    each eigenvector, nonnegative for all u and v exactly if ``c >= a^2/(2a - mu)``.
    """
    run = _run_of(setting)
    curvatures = run.curvatures
    needed = curvatures**2 / (2 * curvatures - run.problem.mu)
    value = number(needed.max())
    error = 0.0 if is_exact(value) else _ROUNDINGS * value * run.problem.L / run.problem.mu
    return value, error


def _worst_client(numerator: FloatArray, denominator: FloatArray) -> int:
    return int(np.argmax(numerator / denominator))


def _worst_fixed(run: LocalRun) -> int:
    return _worst_client(run.summed_noisy, run.summed_mean + run.steps**2 * run.largest_variance)


def _worst_exact(run: LocalRun) -> int:
    return _worst_client(
        run.summed_noisy, run.summed_exact + run.steps * run.problem.client_sigmas**2
    )


def _with_rounding(run: LocalRun, value: float) -> tuple[float, float]:
    """Attach a bound on rounding: sums of positive terms, of powers of numbers near one."""
    if is_exact(value):
        return value, 0.0
    operations = run.steps * (run.steps + run.problem.dim)
    return value, _ROUNDINGS * operations * value


def _summed_with_fixed_means(setting: Setting) -> tuple[float, float]:
    run = _run_of(setting)
    return _with_rounding(run, number(run.summed_noisy[_worst_fixed(run)]))


def _summed_as_in_61(setting: Setting) -> tuple[float, float]:
    run = _run_of(setting)
    return _with_rounding(run, number(run.summed_noisy[_worst_exact(run)]))


def _summed_with_the_worst_martingale(setting: Setting) -> tuple[float, float]:
    """Return the largest ``E||sum Xi_i||^2`` given K, sigma and ``A^2 = E||sum xi_i||^2``.

    ``sum xi_i`` is known before the last noise, so its correlation with the noises is at most
    ``A sqrt(K-1) sigma``: it is that where all of it is the last xi, along the noises before.
    """
    run = _run_of(setting)
    size, steps, noise = root(run.summed_exact[_worst_exact(run)]), run.steps, run.problem.sigma
    crossed = root(size**2 * (steps - 1)) * noise
    value = size**2 + 2 * crossed + steps * noise**2
    return _with_rounding(run, value)


def _worst_drift(setting: Setting) -> tuple[float, float]:
    """Return the largest ``E||y_K - x||^2`` over quadratics with the setting's constants.

    Curvature -L everywhere, and ``grad F_i(x)`` as long as sigma_G and ||grad F(x)|| allow.
    """
    run = _run_of(setting)
    problem, steps, size = run.problem, run.steps, run.size
    of_noise = noise_constant(steps, size) * steps * problem.sigma**2
    longest = problem.sigma_G + run.gradient_of_mean
    of_gradient = gradient_constant(steps, size) / 2 * (steps * longest) ** 2
    return _with_rounding(run, run.lr**2 * (of_noise + of_gradient))


def unrolled_constant(local_steps: int) -> float:
    """Return ``(K-1)/K [(1 + 1/(K-1))^K - 1]``, at most its limit e - 1.

    It is 1 for K = 1, where nothing is unrolled.

    Examples
    --------
    >>> unrolled_constant(1), unrolled_constant(2)
    (1.0, 1.5)
    """
    return float(_unrolled(local_steps))


def _unrolled(local_steps: int) -> Fraction:
    if local_steps == 1:
        return Fraction(1)
    grown = (1 + Fraction(1, local_steps - 1)) ** local_steps
    return Fraction(local_steps - 1, local_steps) * (grown - 1)


PERTURBED_CONVEXITY = PointClaim(
    id="lemmas/perturbed-strong-convexity",
    reading="printed",
    title="Perturbed strong convexity, for all x, y and z",
    source=f"SCAFFOLD, Lemma 5, as in {_SAFL}, (63)",
    quantity=PointQuantity(
        _needed_curvature,
        "least c with <grad f(x), z-y> >= f(z) - f(y) + mu/4 ||y-z||^2 - c ||z-x||^2",
        CURVATURE,
    ),
    bound=L,
    hypotheses=(Hypothesis("strongly convex", sp.Le(mu, L), "Lemma 5"),),
    domain=_local_steps_on_quadratics,
    regimes=regimes.CURVATURES,
    kind=StatementKind.LEMMA,
    note="To the letter, c = L. It is needed in full only where mu = L.",
)

PERTURBED_CONVEXITY_TIGHT = replace(
    PERTURBED_CONVEXITY,
    reading="tight",
    bound=as_printed(lambda: (L + mu) / 2),
    note=(
        "What the proof's inequalities, mu/2 ||y-x||^2 >= mu/4 ||y-z||^2 - mu/2 ||z-x||^2 and L/2 "
        "||z-x||^2, give. No smaller c will do for all functions of the class; quadratics need "
        "the maximum of a^2/(2a - mu) over their curvatures a."
    ),
)

SEPARATION = PointClaim(
    id="lemmas/separation",
    reading="printed",
    title="Separation of mean and variance, means fixed",
    source=f"SCAFFOLD, Lemma 4, cited in {_SAFL} below (44)",
    quantity=PointQuantity(
        _summed_with_fixed_means, "E||sum_k Xi_k||^2, Xi_k = g_i(y_k)", GRADIENT**2
    ),
    bound=as_printed(lambda: mean**2 + K**2 * spread**2),
    hypotheses=(Hypothesis("bounded variance", sp.Lt(spread, sp.oo, evaluate=False), "Lemma 4"),),
    domain=_local_steps_on_quadratics,
    regimes=regimes.SUMS,
    kind=StatementKind.LEMMA,
    note=(
        "E||sum Xi||^2 <= ||sum E Xi||^2 + K^2 s^2 under any dependence, here for a client's "
        "local gradients. SA-FL does not write the lemma out. It holds with equality where all Xi "
        "- E Xi are equal."
    ),
)

MARTINGALE = PointClaim(
    id="lemmas/martingale-separation",
    reading="printed",
    title="Separation of mean and variance, means given the past",
    source=f"SCAFFOLD, Lemma 4, cited in {_SAFL} below (44)",
    quantity=PointQuantity(
        _summed_with_the_worst_martingale,
        "largest E||sum_k Xi_k||^2, given E||sum_k xi_k||^2 = A^2, xi_k = E[Xi_k | past]",
        GRADIENT**2,
    ),
    bound=2 * exact_sum**2 + 2 * K * sigma**2,
    hypotheses=(Hypothesis("bounded noise", sp.Lt(sigma, sp.oo, evaluate=False), "Lemma 4"),),
    domain=_local_steps_on_quadratics,
    regimes=regimes.SUMS,
    kind=StatementKind.LEMMA,
    note=(
        "E||sum Xi||^2 <= 2 E||sum xi||^2 + 2 K sigma^2. SA-FL does not write the lemma out. The "
        "quantity is the largest over all sequences, not the one that local SGD has."
    ),
)

MARTINGALE_TIGHT = replace(
    MARTINGALE,
    reading="tight",
    bound=as_printed(lambda: (1 + sp.sqrt((K - 1) / K)) * (exact_sum**2 + K * sigma**2)),
    note=(
        "The least factor common to both terms: 1 + sqrt((K-1)/K), which is 1 for one summand and "
        "2 only in the limit. It follows by Cauchy-Schwarz, as sum xi does not depend on the last "
        "noise, and is reached at A = sqrt(K) sigma."
    ),
)

SEPARATION_61 = PointClaim(
    id="lemmas/separation-in-61",
    reading="printed",
    title="Mean and variance of local gradients, without the factor 2",
    source=f"{_SAFL}, (60) to (61)",
    quantity=PointQuantity(
        _summed_as_in_61, "E||sum_k g_i(y_k)||^2, the worst client", GRADIENT**2
    ),
    bound=exact_sum**2 + K * sigma**2,
    hypotheses=(
        Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Theorem 5"),
        Hypothesis("steps that do not expand", sp.Le(eta, 2 / L), "eta_c of Theorem 5"),
    ),
    domain=_local_steps_on_quadratics,
    regimes=regimes.SUMS,
    kind=StatementKind.STEP,
    note=(
        "(61) lacks the factor 2 of the lemma. Convex clients with additive noise do not need it: "
        "y_K is a nonexpansive function of y_1, so <n_0, sum_{k>=1} grad F_i(y_k)> = <n_0, y_1 - "
        "y_K>/eta minus later noise is at most 0 in expectation. Clients with curvature -L do need "
        "it."
    ),
)

DRIFT = PointClaim(
    id="lemmas/bounded-drift",
    reading="printed",
    title="Bounded local drift, for every client and k <= K",
    source=f"{_SAFL}, (41) and (75)",
    quantity=PointQuantity(
        _worst_drift, "largest E||y_K - x||^2 over L-smooth quadratics", LENGTH**2
    ),
    bound=as_printed(
        lambda: 5 * K * eta**2 * (sigma**2 + 6 * K * sigma_G**2) + 30 * K**2 * eta**2 * gradient**2
    ),
    hypotheses=(
        Hypothesis(
            "small local steps", as_printed(lambda: sp.Le(eta, 1 / (8 * L * K))), "below (41)"
        ),
        Hypothesis("bounded dissimilarity", sp.Lt(sigma_G, sp.oo, evaluate=False), "Assumption 5"),
    ),
    domain=_local_steps_on_quadratics,
    regimes=regimes.DRIFT,
    kind=StatementKind.LEMMA,
    note=(
        "To the letter, at k = K, where the drift is largest. The quantity is the supremum over "
        "quadratics with the setting's constants; it is reached at curvature -L with grad F_i - "
        "grad F along grad F."
    ),
)

DRIFT_DERIVED = replace(
    DRIFT,
    reading="derived",
    bound=as_printed(lambda: c_K * K * eta**2 * (sigma**2 + 6 * K * (sigma_G**2 + gradient**2))),
    note=(
        "What follows from unrolling e_{k+1} <= (1 + 1/(K-1)) e_k + eta^2 sigma^2 + 6 K eta^2 "
        "(sigma_G^2 + ||grad F||^2): about 1.72 and 10.3 in place of 5 and 30."
    ),
)

DRIFT_TIGHT = replace(
    DRIFT,
    reading="tight",
    bound=as_printed(
        lambda: (
            c_noise * K * eta**2 * sigma**2
            + c_gradient * K**2 * eta**2 * (sigma_G**2 + gradient**2)
        )
    ),
    hypotheses=DRIFT.hypotheses[1:],
    note=(
        "The smallest constants that hold on quadratics, for every step size; no class that "
        "contains the quadratics allows smaller ones. For all smooth clients the two together may "
        "be up to 2% too small at eta = 1/(8LK)."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    PERTURBED_CONVEXITY,
    PERTURBED_CONVEXITY_TIGHT,
    SEPARATION,
    MARTINGALE,
    MARTINGALE_TIGHT,
    SEPARATION_61,
    DRIFT,
    DRIFT_DERIVED,
    DRIFT_TIGHT,
)

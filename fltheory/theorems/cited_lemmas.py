"""The lemmas that SA-FL cites for its Theorems 4 and 5, as separate statements.

SCAFFOLD's Lemma 5, perturbed strong convexity, at (63); its Lemma 4, separation of mean and
variance, at (44) and (61); and the bounded local drift at (41) and (75), cited as Lemma 2 of Yang
et al. (2021) and Lemma 3 of Reddi et al. (2021). Lemma 5 and the drift are as SA-FL prints them.
SA-FL does not print Lemma 4; its form here is what SA-FL's proof uses, not a quotation.

Each is claimed for all points, sequences or functions of a class. The constants come from a
setting, and the quantity is the largest value that its class allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.algorithms import FedAvg, Safari
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, norm, number, root, with_rounding
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, PURE, STEP
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, quadratic
from fltheory.problems.base import gradients_at
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

# ------------------------------------------------------------ how tight 5 and 30 are
# The lemma bounds ``E||y_k - x||^2`` for k <= K local steps of size eta = s/(LK) by
# ``5 K eta^2 sigma^2 + 30 K^2 eta^2 (sigma_G^2 + ||grad F(x)||^2)``.
#
# Smallest constants, derived here: *Quadratics.* Along an eigenvector of curvature a, ``y_K - x``
# has the mean ``-eta g (1 + r + .. + r^(K-1))``, ``r = 1 - eta a``, and the noise's share of its
# variance is ``eta^2 (1 + r^2 + .. + r^(2(K-1)))``. Both are largest for the largest |r|: at a = -L
# if clients need not be convex, and as a -> 0 if they are convex. ``g = grad F_i(x)`` has ``||g||^2
# <= 2 (sigma_G^2 + ||grad F||^2)``, with equality where ``grad F_i - grad F = grad F``.
#
# *All smooth clients.* Without noise, ``||y_{k+1} - x|| <= (1 + eta L) ||y_k - x|| + eta ||g||``;
# with noise and g = 0, ``E||y_{k+1} - x||^2 <= (1 + eta L)^2 E||y_k - x||^2 + eta^2 sigma^2``. Both
# are equalities at a = -L. So neither constant can be smaller for any class in between. On
# quadratics, both constants together are exactly enough; in general, `excess_for_all_smooth` bounds
# the shortfall.

PRINTED_NOISE, PRINTED_GRADIENT = 5.0, 30.0
PRINTED_STEP = 1 / 8

_RATIOS = np.geomspace(1e-3, 1e3, 241)
_BISECTIONS = 80


def noise_constant(local_steps: int, step: Any, *, convex: bool = False) -> Any:
    """Return the smallest valid constant in place of 5.

    Parameters
    ----------
    local_steps : int
        K.
    step : float
        s = eta K L.
    convex : bool
        Whether only convex quadratics are considered.

    Raises
    ------
    ValueError
        If ``local_steps`` is less than one, or the step size is not positive.

    Examples
    --------
    >>> round(noise_constant(100, 0.125), 4), noise_constant(100, 0.125, convex=True)
    (1.1346, 1.0)
    """
    if is_exact(step) and not convex:
        square = (1 + step / local_steps) ** 2
        return (square**local_steps - 1) / (local_steps * (square - 1))
    growth = _log_growth(local_steps, step)
    if convex:
        return 1.0
    return math.expm1(2 * local_steps * growth) / (local_steps * math.expm1(2 * growth))


def gradient_constant(local_steps: int, step: Any, *, convex: bool = False) -> Any:
    """Return the smallest valid constant in place of 30; arguments as in `noise_constant`.

    Examples
    --------
    >>> round(gradient_constant(100, 0.125), 4), gradient_constant(100, 0.125, convex=True)
    (2.2662, 2.0)
    """
    if is_exact(step) and not convex:
        return 2 * (((1 + step / local_steps) ** local_steps - 1) / step) ** 2
    growth = _log_growth(local_steps, step)
    if convex:
        return 2.0
    return 2 * (math.expm1(local_steps * growth) / step) ** 2


def _log_growth(local_steps: int, step: float) -> float:
    steps = validation.whole_number("local_steps", local_steps, at_least=1)
    return math.log1p(validation.positive("step", step) / steps)


def largest_ratio(local_steps: int, step: float, *, convex: bool = False) -> float:
    """Return the supremum of drift/bound over quadratics, with the printed constants 5 and 30.

    A quotient of sums is at most the largest quotient of their terms, and either term can be made
    negligible relative to the other.
    """
    return max(
        noise_constant(local_steps, step, convex=convex) / PRINTED_NOISE,
        gradient_constant(local_steps, step, convex=convex) / PRINTED_GRADIENT,
    )


def largest_step(local_steps: int) -> float:
    """Return the largest s = eta K L for which 5 and 30 are enough on quadratics, by bisection.

    The result is infinite for one step, after which the drift is
    ``eta^2 (sigma^2 + ||grad F_i(x)||^2)``.
    """
    if validation.whole_number("local_steps", local_steps, at_least=1) == 1:
        return math.inf
    low, high = PRINTED_STEP, 1.0
    while largest_ratio(local_steps, high) <= 1:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if largest_ratio(local_steps, middle) <= 1 else (low, middle)
    return low


def excess_for_all_smooth(local_steps: int, step: float) -> float:
    """Bound the factor by which both smallest constants may be too small for smooth clients.

    With ``M = ||E y_k - x||``, ``e^2 = E||y_k - x||^2`` and g = ||grad F_i(x)||, every L-smooth
    client and all noise of conditional mean zero and variance at most sigma^2 satisfy

        ``M' <= M + eta g + eta L e``,
        ``e'^2 <= (sqrt(e^2 + 2 eta M g + eta^2 g^2) + eta L e)^2 + eta^2 sigma^2``.

    The factor is the largest ratio of ``e_K^2`` to the bound with the smallest constants, for
    g/sigma from 1e-3 to 1e3. It is 1 on quadratics.
    """
    noise = noise_constant(local_steps, step)
    gradient = gradient_constant(local_steps, step)
    lr = step / local_steps  # L = 1
    g = _RATIOS / math.sqrt(local_steps)  # sigma = 1
    mean, square = np.zeros_like(g), np.zeros_like(g)
    for _ in range(local_steps):
        drift = lr * np.sqrt(square)
        square = (np.sqrt(square + 2 * lr * mean * g + (lr * g) ** 2) + drift) ** 2 + lr**2
        mean = mean + lr * g + drift
    least = lr**2 * (noise * local_steps + gradient / 2 * (local_steps * g) ** 2)
    return float((square / least).max())


# ------------------------------------------------------------ moments of K local steps
# With ``y_{k+1} = y_k - eta (grad F_i(y_k) + n_k)`` from x, curvature ``a`` along an eigenvector
# and ``r = 1 - eta a``: ``E grad F_i(y_k) = r^k grad F_i(x)``, and the noise of step j enters
# ``grad F_i(y_k)`` with the factor ``-eta a r^(k-1-j)``.


@dataclass(frozen=True, eq=False)
class LocalRun(ReadOnlyArrays):
    """Every client's local steps from the initial model.

    Attributes
    ----------
    steps : int
        K.
    lr : float
        eta.
    problem : QuadraticProblem
    start : array, (d,)

    Raises
    ------
    ValueError
        If clients are not quadratic, or the algorithm is neither FedAvg nor Safari.
    """

    steps: int
    lr: float
    problem: QuadraticProblem
    start: FloatArray

    def __init__(self, setting: Setting) -> None:
        algorithm, problem = setting.algorithm, quadratic_for("for the lemmas", setting.problem)
        if not isinstance(algorithm, FedAvg | Safari):
            raise ValueError(
                f"algorithm must be FedAvg or Safari for the lemmas, got {algorithm!r}"
            )
        object.__setattr__(self, "steps", algorithm.local_steps)
        object.__setattr__(self, "lr", algorithm.client_lr)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "start", setting.x0)

    @property
    def size(self) -> Any:
        """``eta K L``."""
        return self.lr * self.steps * self.problem.L

    @property
    def noise(self) -> FloatArray:
        """Variance of a gradient's noise along one coordinate, (N,)."""
        return np.asarray(self.problem.client_sigmas**2 / self.problem.dim)

    @cached_property
    def curvatures(self) -> FloatArray:
        """Eigenvalues of each client's Hessian, (N, d)."""
        values, _ = self.problem.eigenbasis
        return np.broadcast_to(values, (self.problem.n_clients, self.problem.dim))

    @cached_property
    def _decay(self) -> FloatArray:
        """``r^k`` for k < K, (N, d, K)."""
        return np.asarray((1 - self.lr * self.curvatures)[..., None] ** np.arange(self.steps))

    @cached_property
    def _gradients(self) -> FloatArray:
        """Gradients at x in each client's eigenbasis, (N, d)."""
        _, vectors = self.problem.eigenbasis
        gradients = gradients_at(self.problem, self.start)
        frames = np.broadcast_to(vectors, (len(gradients), *vectors.shape[-2:]))
        return np.einsum("nba,nb->na", frames, gradients)

    @cached_property
    def summed_mean(self) -> FloatArray:
        """``||sum_k E grad F_i(y_k)||^2``, (N,), which is the same for noisy gradients."""
        total = self._gradients * self._decay.sum(axis=-1)
        return np.asarray((total**2).sum(axis=1))

    @cached_property
    def summed_noisy(self) -> FloatArray:
        """``E||sum_k g_i(y_k)||^2``, (N,); noise enters with the factor ``r^(K-1-j)``."""
        spread = (self._decay**2).sum(axis=(1, 2))
        return np.asarray(self.summed_mean + self.noise * spread)

    @cached_property
    def summed_exact(self) -> FloatArray:
        """``E||sum_k grad F_i(y_k)||^2``, (N,); noise enters with the factor ``r^(K-1-j) - 1``."""
        spread = ((self._decay - 1) ** 2).sum(axis=(1, 2))
        return np.asarray(self.summed_mean + self.noise * spread)

    @cached_property
    def largest_variance(self) -> FloatArray:
        """The largest ``E||g_i(y_k) - E g_i(y_k)||^2`` over k < K, at the last step, (N,)."""
        before = (self._decay[..., :-1] ** 2).sum(axis=-1)
        spread = 1 + (self.lr * self.curvatures) ** 2 * before
        return np.asarray(self.noise * spread.sum(axis=1))

    @property
    def gradient_of_mean(self) -> Any:
        """``||grad F(x)||``."""
        return norm(self.problem.gradient(self.start))


# ------------------------------------------------------------ settings on which they are checked

_CLIENTS, _DIM = 4, 3


def _setting(
    *,
    mu: float = 0.25,
    sigma: float = 1.0,
    sigma_G: float = 0.5,
    distance: float = 2.0,
    local_steps: int = 10,
    step: float = 1 / 8,
) -> Setting:
    """Return four clients with L = 1; ``step`` is eta L K."""
    problem = quadratic(_CLIENTS, _DIM, L=1.0, mu=mu, sigma_G=sigma_G, sigma=sigma)
    x0 = np.zeros(_DIM)
    x0[0] = distance  # along the largest curvature: ||grad F(x)|| is the distance
    algorithm = FedAvg(step / local_steps * (1 - 1e-12), local_steps)
    return Setting(algorithm, problem, UniformSubset(_CLIENTS, 2), 1, x0)


def _regimes(named: Mapping[str, tuple[str, Callable[[], Setting]]]) -> Mapping[str, Regime]:
    return {name: Regime(about, make) for name, (about, make) in named.items()}


CURVATURES = _regimes(
    {
        "kappa = 1.001": ("mu almost L", partial(_setting, mu=1 / 1.001)),
        "kappa = 2": ("mu = L/2", partial(_setting, mu=0.5)),
        "kappa = 10": ("mu = L/10", partial(_setting, mu=0.1)),
        "kappa = 10000": ("mu = L/10000", partial(_setting, mu=1e-4)),
    }
)

SUMS = _regimes(
    {
        "ten steps": ("eta at the drift lemma's limit", _setting),
        "two steps": ("K = 2", partial(_setting, local_steps=2)),
        "a hundred steps": ("K = 100", partial(_setting, local_steps=100)),
        "long steps": ("eta L = 1, K = 10", partial(_setting, step=10.0)),
        "noise only": (
            "at x*, equal clients",
            partial(_setting, sigma_G=0.0, distance=0.0),
        ),
        "little noise": ("sigma = 0.01", partial(_setting, sigma=0.01)),
        "as much noise as gradient": (
            "100 steps, E||sum xi||^2 about K sigma^2",
            partial(_setting, local_steps=100, sigma=10.0, distance=0.5),
        ),
        "expanding steps": ("eta L = 3: local SGD diverges", partial(_setting, step=30.0)),
    }
)

_NEAR = partial(_setting, sigma_G=0.0, distance=0.01)
DRIFT_REGIMES = _regimes(
    {
        "at the limit": ("eta = 1/(8LK), K = 10", _setting),
        "one step": ("K = 1", partial(_setting, local_steps=1)),
        "two steps": ("K = 2", partial(_setting, local_steps=2)),
        "a hundred steps": ("K = 100", partial(_setting, local_steps=100)),
        "almost noise only": ("close to x*, equal clients", _NEAR),
        "gradient only": (
            "exact gradients, equal clients",
            partial(_setting, sigma=0.0, sigma_G=0.0),
        ),
        "gradients of one length": (
            "exact gradients, sigma_G almost ||grad F(x)||",
            partial(_setting, sigma=0.0, sigma_G=1.0, distance=1.001),
        ),
        "small steps": ("a hundredth of the limit", partial(_setting, step=1 / 800)),
        "eight times the limit": ("eta = 1/(LK)", partial(_setting, step=1.0, local_steps=100)),
        "twenty times the limit": (
            "eta = 2.5/(LK), almost only noise",
            partial(_NEAR, step=2.5, local_steps=100),
        ),
    }
)


# ------------------------------------------------------------ the lemmas

_SAFL = "SA-FL (ICML 2024)"


@cached_by_content(16)
def _run_of(setting: Setting) -> LocalRun:
    return LocalRun(setting)


def _local(number_of: Callable[[LocalRun], Any]) -> Callable[[Setting], Any]:
    return lambda setting: number_of(_run_of(setting))


def _local_steps_on_quadratics(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError unless its local steps have a closed form."""
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
    "root of E||sum_k grad F_i(y_k)||^2, where the gradients have no noise of their own",
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
    """Return the smallest c in (63) for the setting's clients and all x, y and z.

    With u = z - y, v = z - x and curvature a, the gap is ``(a/2 - mu/4) u^2 - a u v + c v^2`` along
    each eigenvector, nonnegative for all u and v if and only if ``c >= a^2/(2a - mu)``.
    """
    run = _run_of(setting)
    curvatures = run.curvatures
    needed = curvatures**2 / (2 * curvatures - run.problem.mu)
    return with_rounding(number(needed.max()), run.problem.L / run.problem.mu)


def _worst_client(numerator: FloatArray, denominator: FloatArray) -> int:
    return int(np.argmax(numerator / denominator))


def _worst_fixed(run: LocalRun) -> int:
    return _worst_client(run.summed_noisy, run.summed_mean + run.steps**2 * run.largest_variance)


def _worst_exact(run: LocalRun) -> int:
    return _worst_client(
        run.summed_noisy, run.summed_exact + run.steps * run.problem.client_sigmas**2
    )


def _with_rounding(run: LocalRun, value: float) -> tuple[float, float]:
    """Return a value with a bound on its rounding: it sums positive powers of numbers near 1."""
    return with_rounding(value, run.steps * (run.steps + run.problem.dim))


def _summed_with_fixed_means(setting: Setting) -> tuple[float, float]:
    run = _run_of(setting)
    return _with_rounding(run, number(run.summed_noisy[_worst_fixed(run)]))


def _summed_as_in_61(setting: Setting) -> tuple[float, float]:
    run = _run_of(setting)
    return _with_rounding(run, number(run.summed_noisy[_worst_exact(run)]))


def _summed_with_the_worst_martingale(setting: Setting) -> tuple[float, float]:
    """Return the largest ``E||sum Xi_i||^2`` given K, sigma and ``A^2 = E||sum xi_i||^2``.

    ``sum xi_i`` is known before the last noise, so its inner product with the sum of noises is at
    most ``A sqrt(K-1) sigma`` in expectation, with equality if that sum consists only of the last
    xi, in the direction of the earlier noises.
    """
    run = _run_of(setting)
    size, steps, noise = root(run.summed_exact[_worst_exact(run)]), run.steps, run.problem.sigma
    crossed = root(size**2 * (steps - 1)) * noise
    value = size**2 + 2 * crossed + steps * noise**2
    return _with_rounding(run, value)


def _worst_drift(setting: Setting) -> tuple[float, float]:
    """Return the largest ``E||y_K - x||^2`` over quadratics with the setting's constants.

    The worst case has curvature -L everywhere, and the longest ``grad F_i(x)`` that sigma_G and
    ||grad F(x)|| allow.
    """
    run = _run_of(setting)
    problem, steps, size = run.problem, run.steps, run.size
    of_noise = noise_constant(steps, size) * steps * problem.sigma**2
    longest = problem.sigma_G + run.gradient_of_mean
    of_gradient = gradient_constant(steps, size) / 2 * (steps * longest) ** 2
    return _with_rounding(run, run.lr**2 * (of_noise + of_gradient))


def unrolled_constant(local_steps: int) -> float:
    """Return ``(K-1)/K [(1 + 1/(K-1))^K - 1]``, which is at most its limit e - 1.

    For K = 1, there is nothing to unroll, and the result is 1.

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


_lemma = partial(PointClaim, domain=_local_steps_on_quadratics, kind=StatementKind.LEMMA)

PERTURBED_CONVEXITY = _lemma(
    id="lemmas/perturbed-strong-convexity",
    title="Perturbed strong convexity, for all x, y and z",
    source=f"SCAFFOLD, Lemma 5, as in {_SAFL}, (63)",
    quantity=PointQuantity(
        _needed_curvature,
        "least c with <grad f(x), z-y> >= f(z) - f(y) + mu/4 ||y-z||^2 - c ||z-x||^2",
        CURVATURE,
    ),
    bound=L,
    hypotheses=(Hypothesis("strongly convex", sp.Le(mu, L), "Lemma 5"),),
    regimes=CURVATURES,
    note="Checked to the letter: c = L. This full value is needed only if mu = L.",
)

PERTURBED_CONVEXITY_TIGHT = replace(
    PERTURBED_CONVEXITY,
    reading="tight",
    bound=as_printed(lambda: (L + mu) / 2),
    note=(
        "This is what the proof's inequalities give: mu/2 ||y-x||^2 >= mu/4 ||y-z||^2 - mu/2 "
        "||z-x||^2 and the term L/2 ||z-x||^2. No smaller c is enough for all functions of the "
        "class; quadratics need the maximum of a^2/(2a - mu) over their curvatures a."
    ),
)

SEPARATION = _lemma(
    id="lemmas/separation",
    title="Separation of mean and variance, with fixed means",
    source=f"SCAFFOLD, Lemma 4, cited in {_SAFL} below (44)",
    quantity=PointQuantity(
        _summed_with_fixed_means, "E||sum_k Xi_k||^2, Xi_k = g_i(y_k)", GRADIENT**2
    ),
    bound=as_printed(lambda: mean**2 + K**2 * spread**2),
    hypotheses=(Hypothesis("bounded variance", sp.Lt(spread, sp.oo, evaluate=False), "Lemma 4"),),
    regimes=SUMS,
    note=(
        "The lemma is E||sum Xi||^2 <= ||sum E Xi||^2 + K^2 s^2, whatever the dependence between "
        "the Xi, which are a client's local gradients here. SA-FL does not write the lemma out. "
        "Both sides are equal if all Xi - E Xi are equal."
    ),
)

MARTINGALE = _lemma(
    id="lemmas/martingale-separation",
    title="Separation of mean and variance, with means given the past",
    source=f"SCAFFOLD, Lemma 4, cited in {_SAFL} below (44)",
    quantity=PointQuantity(
        _summed_with_the_worst_martingale,
        "largest E||sum_k Xi_k||^2, given E||sum_k xi_k||^2 = A^2, xi_k = E[Xi_k | past]",
        GRADIENT**2,
    ),
    bound=2 * exact_sum**2 + 2 * K * sigma**2,
    hypotheses=(Hypothesis("bounded noise", sp.Lt(sigma, sp.oo, evaluate=False), "Lemma 4"),),
    regimes=SUMS,
    note=(
        "The lemma is E||sum Xi||^2 <= 2 E||sum xi||^2 + 2 K sigma^2. SA-FL does not write the "
        "lemma out. The quantity is the largest over all sequences, not its value for the "
        "sequence of local SGD."
    ),
)

MARTINGALE_TIGHT = replace(
    MARTINGALE,
    reading="tight",
    bound=as_printed(lambda: (1 + sp.sqrt((K - 1) / K)) * (exact_sum**2 + K * sigma**2)),
    note=(
        "The smallest common factor of both terms is 1 + sqrt((K-1)/K), which is 1 for one "
        "summand and tends to 2. It follows by Cauchy-Schwarz, because sum xi does not depend on "
        "the last noise, and it is attained at A = sqrt(K) sigma."
    ),
)

SEPARATION_61 = _lemma(
    id="lemmas/separation-in-61",
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
    regimes=SUMS,
    kind=StatementKind.STEP,
    note=(
        "(61) lacks the factor 2 of the lemma. Convex clients with additive noise do not need it. "
        "There y_K is a nonexpansive function of y_1. So <n_0, sum_{k>=1} grad F_i(y_k)>, which "
        "is <n_0, y_1 - y_K>/eta minus later noise, is at most 0 in expectation. Clients with "
        "curvature -L do need the factor."
    ),
)

DRIFT = _lemma(
    id="lemmas/bounded-drift",
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
    regimes=DRIFT_REGIMES,
    note=(
        "Checked to the letter, at k = K, where the drift is largest. The quantity is the "
        "supremum over quadratics with the setting's constants; it is attained at curvature -L "
        "with grad F_i - grad F parallel to grad F."
    ),
)

DRIFT_DERIVED = replace(
    DRIFT,
    reading="derived",
    bound=as_printed(lambda: c_K * K * eta**2 * (sigma**2 + 6 * K * (sigma_G**2 + gradient**2))),
    note=(
        "These constants follow from unrolling e_{k+1} <= (1 + 1/(K-1)) e_k + eta^2 sigma^2 + 6 K "
        "eta^2 (sigma_G^2 + ||grad F||^2). They are about 1.72 and 10.3, in place of 5 and 30."
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
        "These are the smallest constants that hold on quadratics, for every step size; no class "
        "that contains the quadratics allows smaller ones. For all smooth clients, the two "
        "together may be up to 2% too small at eta = 1/(8LK)."
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

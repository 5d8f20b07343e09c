"""Tang and Peng, "Beyond Client Averaging" (preprint, 2026): where stochastic SCAFFOLD settles.

With constant steps SCAFFOLD converges to a stationary distribution, whose mean is not the minimiser
if the loss has a third derivative. The theorem states an order: the mean minus two displayed terms
is at most ``C_H (gamma^2/N + gamma^3)``, uniformly in N. It is checked along two sequences of
smaller steps: with a fixed number of clients, and with more clients as steps get smaller. Only the
latter shows the term that does not depend on N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from math import comb, factorial, perm
from operator import add
from typing import Any, Literal

import numpy as np
import sympy as sp
from flint import arb, arb_mat, ctx, fmpq

from fltheory.algorithms import Scaffold
from fltheory.claims.at_point import PointClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import KnownDecay, RateAxis
from fltheory.claims.statement import Statement
from fltheory.decimals import as_fraction
from fltheory.derivations.derivation import Derivation, Equal, Step, deferred
from fltheory.engines import Setting
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, PURE, STEP, Unit
from fltheory.participation import UniformSubset
from fltheory.problems.skewed import SkewedProblem

# ------------------------------------------------------------ stationary moments
# One dimension, everybody takes part, option II. A client's H local steps from x are ``z <- z -
# (f'(x + g z) + xi + noise)`` from z = 0, g the step size; with ``y = z + H xi`` the round is ``x+
# = x + g mean(y)`` and ``xi_c+ = (y_c - mean(y))/H``, as controls sum to zero. For every monomial
# phi in x and the controls of a few clients, ``E phi(state+) = E phi(state)``, and clients are
# independent given the state. This gives linear equations for the moments ``E x^i xi_1^j ..``, for
# any number of clients. The equations do not close. Because x is of order sqrt(g), terms of higher
# order than `ORDER` are dropped. The change of a moment by the last order is its error, an estimate
# rather than a bound. The equations are solved in balls of hundreds of bits, so rounding errors are
# enclosed.

ORDER = 8
"""The highest order, in powers of sqrt(g): moments up to x^8 are kept."""
_BITS = 256

Exponents = tuple[int, ...]
Polynomial = Mapping[Exponents, fmpq]
"""Coefficients, by the exponents of x, g and the variables that have no order."""
Moment = tuple[int, Exponents]
"""The exponent of x, and the exponents of the clients' controls in decreasing order."""


@dataclass(frozen=True)
class OneLoss:
    """A loss near its minimiser, the noise of its gradient, and the number of local steps.

    Attributes
    ----------
    slopes : tuple of Fraction
        ``f''/1!, f'''/2!, ..`` at the minimiser.
    noise : tuple of Fraction
        ``E e, E e^2, ..`` of a gradient's noise, which has mean zero.
    local_steps : int
        H.
    """

    slopes: tuple[Fraction, ...]
    noise: tuple[Fraction, ...]
    local_steps: int


def _rational(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _order(exponents: Exponents) -> int:
    return exponents[0] + 2 * exponents[1]


def _times(one: Polynomial, other: Polynomial, most: int) -> dict[Exponents, fmpq]:
    found: dict[Exponents, fmpq] = {}
    for left, factor in one.items():
        room = most - _order(left)
        for right, value in other.items():
            if _order(right) <= room:
                place = tuple(map(add, left, right))
                found[place] = found.get(place, fmpq(0)) + factor * value
    return found


def _plus(one: Polynomial, other: Polynomial, factor: fmpq) -> dict[Exponents, fmpq]:
    found = dict(one)
    for place, value in other.items():
        found[place] = found.get(place, fmpq(0)) + factor * value
    return found


def _after_a_step(loss: OneLoss, most_z: int, order: int) -> list[dict[Exponents, fmpq]]:
    """Return ``E (z after a step)^k`` in x, g, xi and z, for k = 0 .. most_z."""
    one: Polynomial = {(0, 0, 0, 0): fmpq(1)}
    place: Polynomial = {(1, 0, 0, 0): fmpq(1), (0, 1, 0, 1): fmpq(1)}
    step: dict[Exponents, fmpq] = {(0, 0, 0, 1): fmpq(1), (0, 0, 1, 0): fmpq(-1)}
    power: Polynomial = one
    for slope in loss.slopes:
        power = _times(power, place, order)
        step = _plus(step, power, -_rational(slope))
    powers: list[Polynomial] = [one]
    for _ in range(most_z):
        powers.append(_times(powers[-1], step, order))
    noise = (fmpq(1), *map(_rational, loss.noise))
    found = []
    for k in range(most_z + 1):
        total: dict[Exponents, fmpq] = {}
        for used in range(k + 1):
            total = _plus(total, powers[k - used], comb(k, used) * (-1) ** used * noise[used])
        found.append(total)
    return found


@lru_cache(maxsize=32)
def _of_one_client(loss: OneLoss, most: int, order: int) -> tuple[Polynomial, ...]:
    """Return ``E[y^m | x, xi]`` in x, g and xi, for m = 0 .. most."""
    # Each further power of g brings a power of z.
    after = _after_a_step(loss, most + order // 2, order)
    found = []
    for m in range(most + 1):
        now: dict[Exponents, fmpq] = {
            (0, 0, m - k, k): fmpq(comb(m, k) * loss.local_steps ** (m - k)) for k in range(m + 1)
        }
        for _ in range(loss.local_steps):
            before: dict[Exponents, fmpq] = {}
            for (x, g, xi, z), factor in now.items():
                rest: Polynomial = {(x, g, xi, 0): factor}
                before = _plus(before, _times(rest, after[z], order), fmpq(1))
            now = before
        found.append({key[:3]: value for key, value in now.items() if key[3] == 0 and value})
    return tuple(found)


def _shares(total: int, largest: int) -> Iterator[Exponents]:
    """Yield the partitions of a number, with parts in decreasing order."""
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in _shares(total - first, first):
            yield (first, *rest)


def _tuples(total: int, named: int) -> Iterator[tuple[Exponents, Exponents, int]]:
    """Yield how often ``total`` draws hit each named client and others, and in how many ways.

    The number of ways is per ordered choice of the other clients.
    """
    for hits in product(range(total + 1), repeat=named):
        left = total - sum(hits)
        if left < 0:
            continue
        for others in _shares(left, left):
            ways = factorial(total)
            for size in (*hits, *others):
                ways //= factorial(size)
            for size in set(others):
                ways //= factorial(others.count(size))
            yield hits, others, ways


Equation = Mapping[tuple[Moment, int, int, int], fmpq]
"""Coefficients of (N - r)!/(N - r - others)! / N^draws, by moment, power of g, others and draws."""


def _moments_up_to(order: int) -> list[Moment]:
    return [
        (i, controls)
        for degree in range(order // 2 + 1)
        for controls in _shares(degree, degree)
        for i in range(order - 2 * degree + 1)
        if (i, controls) != (0, ())
    ]


def _products(moment: Moment, most: int) -> Iterator[tuple[int, Exponents, int, fmpq]]:
    """Expand ``(x + g Y)^i prod_k (y_k - Y)^j_k``, Y the mean of y.

    It yields the powers of g and of each y_k, the number of factors Y, and the coefficient.
    """
    i, controls = moment
    for n in range(0 if controls else 1, min(i, most - i) + 1):
        for own in product(*(range(j + 1) for j in controls)):
            factor = comb(i, n)
            for j, kept in zip(controls, own, strict=True):
                factor *= comb(j, kept) * (-1) ** (j - kept)
            yield n, own, n + sum(controls) - sum(own), fmpq(factor)


def _equation(loss: OneLoss, moment: Moment, order: int) -> Equation:
    """Return ``E phi(state+) - E phi(state)`` for ``x^i xi_1^j ..``, over g if it has no xi."""
    i, controls = moment
    named, degree = len(controls), sum(controls)
    most = order - 2 * degree if controls else order + 2
    client = _of_one_client(loss, order // 2 + 1, order)
    found: dict[tuple[Moment, int, int, int], fmpq] = {}
    if controls:
        found[moment, 0, 0, 0] = fmpq(-1)
    for n, own, draws, factor in _products(moment, most):
        for hits, others, ways in _tuples(draws, named):
            sizes = (*map(add, own, hits), *others)
            start = (i - n, n, *[0] * len(sizes))
            state: Polynomial = {start: factor * ways / loss.local_steps**degree}
            for place, size in enumerate(sizes):
                state = _times(state, _of_client(client[size], place, len(sizes)), most)
            for (x, g, *powers), value in state.items():
                about = (x, tuple(sorted(filter(None, powers), reverse=True)))
                key = (about, g - (not controls), len(others), draws)
                found[key] = found.get(key, fmpq(0)) + value
    return {key: value for key, value in found.items() if value}


def _of_client(one: Polynomial, place: int, clients: int) -> dict[Exponents, fmpq]:
    return {
        (x, g, *[0] * place, xi, *[0] * (clients - place - 1)): value
        for (x, g, xi), value in one.items()
    }


@lru_cache(maxsize=32)
def _equations(loss: OneLoss) -> Mapping[Moment, Equation]:
    return {moment: _equation(loss, moment, ORDER) for moment in _moments_up_to(ORDER)}


def _solved(loss: OneLoss, step: Fraction, clients: int, order: int) -> Mapping[Moment, arb]:
    moments = [one for one in _moments_up_to(order) if len(one[1]) <= clients]
    places = {moment: place for place, moment in enumerate(moments)}
    rows = [[arb(0)] * len(places) for _ in places]
    right = [[arb(0)] for _ in places]
    powers = [_rational(step) ** k for k in range(order + 1)]
    for row, moment in enumerate(moments):
        named, most = len(moment[1]), order - 2 * sum(moment[1])
        for (about, g, others, draws), value in _equations(loss)[moment].items():
            if about[0] + 2 * g > most:
                continue
            drawn = fmpq(perm(clients - named, others), clients**draws)
            factor = arb(value * powers[g] * drawn)
            if about == (0, ()):
                right[row][0] -= factor
            elif about in places:
                rows[row][places[about]] += factor
    found = arb_mat(rows).solve(arb_mat(right))
    return {moment: found[place, 0] for moment, place in places.items()}


def stationary_moments(
    loss: OneLoss, step: Fraction, clients: int, wanted: Sequence[Moment]
) -> list[tuple[arb, float]]:
    """Return stationary moments, each with its change by the last order.

    Raises
    ------
    ZeroDivisionError
        If the equations have no unique solution.

    Examples
    --------
    For ``f' = x``, noise of variance 1, two clients and two local steps of 1/10, the model is
    autoregressive, ``x+ = 0.81 x + 0.1 noise``, whose noise has variance (0.81 + 1)/2:

    >>> quadratic = OneLoss((Fraction(1),), tuple(map(Fraction, (0, 1) * 5)), 2)
    >>> ((mean, _), (square, _)) = stationary_moments(
    ...     quadratic, Fraction(1, 10), 2, [(1, ()), (2, ())]
    ... )
    >>> float(mean), round(float(square) * (1 - 0.81**2), 12)
    (0.0, 0.00905)
    """
    bits, ctx.prec = ctx.prec, _BITS
    try:
        fine, coarse = (_solved(loss, step, clients, order) for order in (ORDER, ORDER - 2))
        return [(fine[one], abs(float(fine[one] - coarse[one]))) for one in wanted]
    finally:
        ctx.prec = bits


# ------------------------------------------------------------ the statement

_PAPER = "Tang and Peng (preprint, 2026)"
_NOISE_MOMENTS = ORDER + 4
_DIVISORS = (1, 10, 100, 316, 1000)
_BEYOND = 10**6, 10**7
"""Multiples of a variable's last value at which its power of decay is read off."""


def _of_scaffold(setting: Setting) -> Setting:
    """Return the setting, after checking that it is SCAFFOLD on a loss with known derivatives.

    Raises
    ------
    ValueError
        If the algorithm or the problem is a different one.
    """
    if not isinstance(setting.algorithm, Scaffold):
        raise ValueError(f"algorithm must be Scaffold, got {setting.algorithm!r}")
    if not isinstance(setting.problem, SkewedProblem):
        raise ValueError(
            "problem must be a SkewedProblem, whose derivatives of all orders are known and whose "
            f"noise is bounded, got {setting.problem!r}"
        )
    return setting


def _is_everybody(setting: Setting) -> int:
    return int(setting.participation.fixed_size == setting.problem.n_clients)


def _is_covered(setting: Setting) -> bool:
    """Return whether the moments are for the setting's own kind of round."""
    of: Any = setting.algorithm
    alike = not np.any(setting.problem.tilts)  # type: ignore[attr-defined]
    return of.option == 2 and of.server_lr == 1 and bool(_is_everybody(setting)) and alike


@dataclass(frozen=True)
class Rest:
    """The part of a stationary moment that a text does not display.

    Attributes
    ----------
    moment : Moment
    displayed : callable
        The displayed terms, given a, tau, sigma^2, gamma, N and H.
    """

    moment: Moment
    displayed: Callable[..., fmpq]

    def __call__(self, setting: Setting) -> tuple[float, float]:
        """Return the rest's size and its error, or NaN if the moments are of a different round."""
        return self.beyond(setting, 1, 1) if _is_covered(setting) else (math.nan, 0.0)

    def beyond(self, setting: Setting, divisor: int, factor: int) -> tuple[float, float]:
        """Return the rest with the step divided and the number of clients multiplied."""
        problem: Any = setting.problem
        method: Any = setting.algorithm
        steps, clients = method.local_steps, problem.n_clients * factor
        step = as_fraction(method.client_lr) / divisor
        loss = OneLoss(problem.slopes(ORDER), problem.noise_moments(_NOISE_MOMENTS), steps)
        [(truth, error)] = stationary_moments(loss, step, clients, [self.moment])
        a, tau, variance = loss.slopes[0], 2 * loss.slopes[1], loss.noise[1]
        numbers = [_rational(one) for one in (a, tau, variance, step)]
        left = truth - arb(self.displayed(*numbers, clients, steps))
        return 0.0 if left.contains(0) else float(abs(left)), error

    def known_decay(self, settings: Sequence[Setting], *, more: bool) -> KnownDecay | None:
        """Return the rest's power of decay far beyond any grid, or None if errors hide it."""
        last = settings[-1]
        if not _is_covered(last):
            return None
        ends = [self.beyond(last, far, far if more else 1) for far in _BEYOND]
        if any(value <= 100 * error for value, error in ends):
            return None
        exponent = math.log(ends[1][0] / ends[0][0]) / math.log(_BEYOND[1] / _BEYOND[0])
        why = f"falls with its power {exponent:+.3f} at a million times its last value"
        return KnownDecay(exponent, why, in_floats=True)


def bias(a: fmpq, tau: fmpq, variance: fmpq, gamma: fmpq, N: int, H: int) -> fmpq:
    """Return the terms of the mean that (7) displays."""
    by_clients = -tau * variance / (4 * a**2) * gamma / N
    return by_clients - tau * variance / (12 * a) * fmpq((H - 1) * (5 * H - 1), H) * gamma**2


def _square(a: fmpq, tau: fmpq, variance: fmpq, gamma: fmpq, N: int, H: int) -> fmpq:
    return variance / (2 * a) * gamma / N


def _controls(a: fmpq, tau: fmpq, variance: fmpq, gamma: fmpq, N: int, H: int) -> fmpq:
    return variance / H * (1 - fmpq(1, N))


def _with_smaller_steps(setting: Setting, divisor: int) -> Setting:
    method: Any = setting.algorithm
    return replace(setting, algorithm=replace(method, client_lr=method.client_lr / divisor))


def _with_more_clients(setting: Setting, factor: int) -> Setting:
    """Return the setting with the step divided and the number of clients multiplied."""
    problem: Any = setting.problem
    more = replace(problem, tilts=np.tile(problem.tilts, (factor, 1)), target_weights=None)
    present = round(float(setting.participation.marginals.sum())) * factor
    who = UniformSubset(more.n_clients, present)
    return replace(_with_smaller_steps(setting, factor), problem=more, participation=who)


gamma = symbol("gamma", "the step size", STEP, "client_lr", positive=True)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
H = symbol("H", "local_steps", PURE, "local_steps", positive=True, integer=True)
n = symbol("n", "by how much the step size is divided", PURE, positive=True, integer=True)
m = symbol(
    "m", "by how much the step size is divided and N multiplied", PURE, positive=True, integer=True
)
mu = symbol("mu", "strong convexity", CURVATURE, "mu", positive=True)
L = symbol("L", "smoothness", CURVATURE, "L", positive=True)
option = symbol("o", "option for updating the controls, 1 or 2", PURE, "option", positive=True)
server_lr = symbol("eta_g", "factor on the server's update", PURE, "server_lr", positive=True)
everybody = symbol("d_0", "1 if all clients take part, else 0", PURE, _is_everybody, real=True)
unlike = symbol(
    "sigma_G", "how far apart the clients' gradients are", GRADIENT, "sigma_G", real=True
)
B_e = symbol(
    "B_e",
    "the largest noise of a gradient",
    GRADIENT,
    lambda setting: setting.problem.largest_noise,
    nonnegative=True,
)
a = symbol(
    "a",
    "f''(x*)",
    CURVATURE,
    lambda setting: float(setting.problem.slopes(1)[0]),
    positive=True,
)
tau = symbol(
    "tau",
    "f'''(x*)",
    CURVATURE / LENGTH,
    lambda setting: 2 * float(setting.problem.slopes(2)[1]),
    real=True,
)
sigma = symbol(
    "sigma", "root of the variance of a gradient's noise", GRADIENT, "sigma", nonnegative=True
)
C_H = symbol(
    "C_H", "a constant that the text hides", number=lambda setting: math.nan, positive=True
)


def _setting(
    *,
    clients: float = 2,
    local_steps: float = 2,
    step: float = 0.05,
    skew: float = 0.5,
    width: float = 1.0,
    shift: float = 0.0,
    sigma: float = 1.0,
    lean: float = 1.0,
    absent: int = 0,
    tilt: float = 0.0,
    option: Literal[1, 2] = 2,
) -> Setting:
    """Return the paper's own loss, (17), with its noise, two clients and two local steps."""
    count = int(clients)
    tilts = np.zeros((count, 1))
    tilts[0], tilts[-1] = tilts[0] + tilt, tilts[-1] - tilt
    problem = SkewedProblem(
        tilts,
        curvature=1.0,
        skew=skew,
        width=width,
        shift=shift,
        sigma=sigma,
        lean=lean,
    )
    method = Scaffold(step, int(local_steps), option=option)
    return Setting(method, problem, UniformSubset(count, count - absent), 1, [0.0])


_REGIMES = {
    "the paper's loss": Regime("f' = x + log cosh(x)/2, N = H = 2, gamma = 1/20", _setting),
    "four local steps": Regime("H = 4", partial(_setting, local_steps=4)),
    "many local steps": Regime("H = 8, gamma = 1/100", partial(_setting, local_steps=8, step=0.01)),
    "eight clients": Regime("N = 8, H = 3", partial(_setting, clients=8, local_steps=3)),
    "skewed noise": Regime("2 with probability 1/5, -1/2 else", partial(_setting, lean=2.0)),
    "a fourth derivative": Regime("f'''' is not zero", partial(_setting, shift=0.5)),
    "a sharp bend": Regime(
        "f'' between 0.1 and 1.9 within 1/2, sigma = 0.2",
        partial(_setting, skew=0.9, width=0.5, sigma=0.2),
    ),
    "one local step": Regime("H = 1", partial(_setting, local_steps=1)),
    "one client": Regime("N = 1", partial(_setting, clients=1)),
    "half of the clients": Regime("2 of 4 take part", partial(_setting, clients=4, absent=2)),
    "clients apart": Regime("gradients that differ by 2", partial(_setting, tilt=1.0)),
    "option I": Regime(
        "each control is one gradient at the server's model", partial(_setting, option=1)
    ),
}
_FAMILY = Family(
    _setting,
    (
        Parameter("clients", 2, 10, 2, "N", whole=True),
        Parameter("local_steps", 2, 4, 2, "H", whole=True),
        Parameter("step", 0.001, 0.05, 0.02, "gamma"),
        Parameter("skew", 0.01, 0.9, 0.5, "largest distance of f'' from 1"),
        Parameter("width", 0.5, 5, 1, "width of the bend"),
        Parameter("shift", -1, 1, 0, "position of the bend", logarithmic=False),
        Parameter("sigma", 0.1, 1, 1, "noise of the gradients"),
        Parameter("lean", 0.5, 2, 1, "how unequal the probabilities of the two noise values are"),
    ),
)
_HYPOTHESES = (
    Hypothesis("strong convexity", sp.Gt(mu, 0, evaluate=False), "Section 3"),
    Hypothesis("smoothness", sp.Lt(L, sp.oo, evaluate=False), "Section 3"),
    Hypothesis("one loss for all", sp.Eq(unlike, 0), "Section 3"),
    Hypothesis("everybody takes part", sp.Eq(everybody, 1), "Section 3"),
    Hypothesis("at least two clients", sp.Ge(N, 2), "Section 3"),
    Hypothesis("at least two local steps", sp.Ge(H, 2), "Section 3"),
    Hypothesis("option II", sp.Eq(option, 2), "Section 3"),
    Hypothesis("a server's factor of one", sp.Eq(server_lr, 1), "Section 3"),
    Hypothesis("bounded noise", sp.Lt(B_e, sp.oo, evaluate=False), "Assumption 3"),
)
_NOTE = (
    "Checked to the letter. The text does not give gamma_0, so the order is read off as gamma "
    "falls, once with N fixed (n) and once with N gamma fixed (m). f is the loss of (17), "
    "possibly shifted and with a larger bend; its derivatives of all orders are bounded. The "
    "noise has two values, as in the paper's experiments, possibly with unequal probabilities. "
    "The truth leaves out moments of higher order than gamma^4, and its error is estimated by the "
    "change from including the last order."
)


def claim_on(
    name: str,
    source: str,
    title: str,
    left: Rest,
    *,
    text: str,
    latex: str = "",
    unit: Unit,
    order: sp.Expr,
) -> RateClaim:
    """Return the claim that a moment's undisplayed rest is of a given order.

    Parameters
    ----------
    name, source, title : str
    left : Rest
    text, latex : str
        Notation for the rest.
    unit : Unit
    order : sympy expression
    """
    theorem = PointClaim(
        id=name,
        title=title,
        source=f"{_PAPER}, {source}",
        quantity=PointQuantity(left, text, unit, latex),
        bound=C_H * order,
        symbols=(a, tau, sigma),
        hypotheses=_HYPOTHESES,
        domain=_of_scaffold,
        family=_FAMILY,
    )
    ways = ((n, _with_smaller_steps, False), (m, _with_more_clients, True))
    return RateClaim(
        id=name,
        title=title,
        source=theorem.source,
        theorem=theorem,
        axes=tuple(
            RateAxis(
                variable,
                order,
                lambda setting: _DIVISORS,
                schedule,
                known_decay=partial(left.known_decay, more=more),
            )
            for variable, schedule, more in ways
        ),
        regimes=_REGIMES,
        note=_NOTE,
    )


_BEYOND_BOTH = gamma**2 / N + gamma**3

_h = sp.Symbol("h", integer=True, nonnegative=True)
_OF_STEPS = -tau / (2 * a * H)
_FRESH = -tau * sigma**2 / (4 * a) * (H - 1) * gamma**2
_OF_CONTROLS = -tau * sigma**2 / (12 * a) * (H - 1) * (2 * H - 1) / H * gamma**2
_BOTH = -tau * sigma**2 / (12 * a) * (H - 1) * (5 * H - 1) / H * gamma**2


def _summed(term: sp.Expr) -> sp.Expr:
    return _OF_STEPS * sp.summation(term * gamma**2, (_h, 0, H - 1))


@deferred
def _proof() -> Derivation:
    spread = -tau / (2 * a) * (sigma**2 / (2 * a) * gamma / N)
    leading = -tau * sigma**2 / (4 * a**2) * gamma / N
    fresh, kept = _summed(_h * sigma**2), _summed(_h**2 * sigma**2 / H)
    return Derivation(
        (
            Step("(16) to (7)", "the spread of the model", Equal(spread, leading)),
            Step("(12) to (13)", "fresh noise, h sigma^2 after h steps", Equal(fresh, _FRESH)),
            Step(
                "(11) and (12) to (14)",
                "controls of second moment sigma^2/H, h^2 of it after h steps",
                Equal(kept, _OF_CONTROLS),
            ),
            Step("(13) and (14) to (9)", "their sum", Equal(_FRESH + _OF_CONTROLS, _BOTH)),
        ),
        (
            "The balance (6): b = -tau/(2a) E x^2 - tau/(2aH) sum_h U_h, up to the remainder.",
            "(11), (12) and (16), up to the remainder.",
        ),
    )


THEOREM_4_1 = replace(
    claim_on(
        "scaffold-bias/4.1",
        "Theorem 4.1",
        "The mean of SCAFFOLD's stationary distribution: which part more clients average out, and "
        "which part stays",
        Rest((1, ()), bias),
        text=(
            "|E_pi x - x* + tau sigma^2/(4 a^2) gamma/N + tau sigma^2/(12 a) (H-1)(5H-1)/H gamma^2|"
        ),
        latex=(
            r"\left|\mathbb E_\pi x-x^\star+\frac{\tau\sigma^2}{4a^2}\frac{\gamma}{N}"
            r"+\frac{\tau\sigma^2}{12a}\frac{(H-1)(5H-1)}{H}\gamma^2\right|"
        ),
        unit=LENGTH,
        order=_BEYOND_BOTH,
    ),
    derivation=_proof(),
)

CONTROLS = replace(
    claim_on(
        "scaffold-bias/11",
        "equation (11)",
        "SCAFFOLD's controls keep fluctuating, however many clients there are",
        Rest((0, (2,)), _controls),
        text="|1/N sum_c E xi_c^2 - sigma^2/H (1 - 1/N)|",
        latex=r"\left|\frac1N\sum_c\mathbb E\xi_c^2-\frac{\sigma^2}{H}(1-\frac1N)\right|",
        unit=GRADIENT**2,
        order=gamma,
    ),
    kind=StatementKind.LEMMA,
)

SQUARE = replace(
    claim_on(
        "scaffold-bias/16",
        "equation (16)",
        "The spread of SCAFFOLD's stationary distribution: more clients average out its whole "
        "gamma^2 term",
        Rest((2, ()), _square),
        text="|E x^2 - sigma^2/(2 a) gamma/N|",
        latex=r"\left|\mathbb E x^2-\frac{\sigma^2}{2a}\frac{\gamma}{N}\right|",
        unit=LENGTH**2,
        order=_BEYOND_BOTH,
    ),
    kind=StatementKind.LEMMA,
)

STATEMENTS: tuple[Statement, ...] = (THEOREM_4_1, CONTROLS, SQUARE)

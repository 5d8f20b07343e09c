"""Dissimilarity, noise and curvature of clients, measured from a few of their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.advice.gradients_file import ClientGradients
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_CONFIDENCE = 0.95
_LARGEST_CONDITION = 1e6


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class MeasuredClients:
    """Properties of clients measured from gradients, in their own units and in those of the advice.

    Attributes
    ----------
    clients, points : int
    sigma : float
        Noise of a gradient on a minibatch: the root mean square distance from its mean.
    sigma_G : float
        Root mean square over clients of ``||grad F_k - grad F||`` at the last point.
    start_slope : float
        ``||grad F||`` at the first point.
    curvature : float or None
        Curvature of F between the first point and the others; None without other points, or models.
    noise, dissimilarity : Estimate
        In the units of `Training`, ``L ||w_0 - w*||`` and ``L ||w_0 - w*||^2``.
    condition : Estimate or None
        The ratio of the clients' largest curvature to their smallest.

    Notes
    -----
    Clients are assumed to be quadratic, each with the same curvature in all directions, and with
    curvatures log-uniform between L/condition and L, as `ClientPopulation` draws them. If c is the
    curvature of F, the distance from w_0 to w* is ``||grad F(w_0)|| / c``, and that from a client's
    optimum to w* is ``sigma_G / rms(c_k)``. With ``u = log condition``, the squared coefficient of
    variation of log-uniform curvatures is ``(u/2) coth(u/2) - 1``, and their mean
    ``L (1 - e^-u)/u``.

    The contribution of minibatch noise is subtracted from all squares. If only some of the log's
    clients were measured, they are treated as a random sample. Intervals are Student's t intervals
    around the estimate, with the jackknife error over clients, leaving out one client at a time.
    """

    clients: int
    points: int
    sigma: float
    sigma_G: float  # noqa: N815
    start_slope: float
    curvature: float | None
    noise: Estimate
    dissimilarity: Estimate
    condition: Estimate | None

    @property
    def smoothness(self) -> float | None:
        """L, the largest curvature of a client; None if curvature was not measured."""
        if self.curvature is None or self.condition is None:
            return None
        return self.curvature / _mean_curvature(self.condition.value)

    def in_training(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return options of `Training`: given values, or measured ones for those not given."""
        measured = {"noise": self.noise.value, "dissimilarity": self.dissimilarity.value}
        if self.condition is not None:
            measured["condition"] = self.condition.value
        return {**measured, **given}


def measure_clients(
    gradients: ClientGradients,
    importance: FloatArray,
    *,
    n_clients: int,
    condition: float | None = None,
) -> MeasuredClients:
    """Return the dissimilarity, noise and curvature of clients, measured from gradients.

    Parameters
    ----------
    gradients : ClientGradients
    importance : array, (n,)
        The weight in F of each client in ``gradients``, in any unit.
    n_clients : int
        Number of clients in the log; the measured ones are a sample of them, or all.
    condition : float, optional
        A given value of L/mu. By default, it is measured if there are models at two points.

    Raises
    ------
    ValueError
        If the initial gradient, the difference between clients, or the curvature cannot be
        distinguished from noise; or if models do not differ.
    """
    shares = validation.real_array("importance", importance, shape="(n,)")
    count = len(gradients.clients)
    each = _Statistics.of(gradients)
    outside = (n_clients - count) / max(n_clients - 1, 1)
    whole = _Squares.of(each, shares, outside, condition)
    _check_start(whole, gradients)
    _check_rest(whole, gradients)
    others = [
        _Squares.of(each.without(client), np.delete(shares, client), outside, condition)
        for client in range(count)
    ]
    for one in others:
        _check_start(one, gradients)

    def estimate(name: str) -> Estimate:
        return _interval(getattr(whole, name), np.array([getattr(one, name) for one in others]))

    noise, unlike, spread = (estimate(name) for name in ("noise", "unlike", "spread"))
    return MeasuredClients(
        clients=count,
        points=len(gradients.points),
        sigma=math.sqrt(whole.sigma),
        sigma_G=math.sqrt(whole.sigma_G),
        start_slope=math.sqrt(whole.start),
        curvature=whole.curvature,
        noise=_of_squares(noise, math.sqrt),
        dissimilarity=_of_squares(unlike, lambda square: square / 2),
        condition=None if whole.curvature is None else _of_squares(spread, _condition),
    )


@dataclass(frozen=True, eq=False)
class _Statistics(ReadOnlyArrays):
    """Statistics of each client: mean gradients at the first and last point, and minibatch errors.

    Attributes
    ----------
    first, last : array, (n, dim)
    first_error, last_error : array, (n,)
        Expected squared error of these means due to minibatches.
    sigma : array, (n,)
        Variance of one minibatch's gradient.
    curvature, curvature_error : array, (n,), or None
        Curvature between the first point and the others, and its squared error due to minibatches.
    """

    first: FloatArray
    last: FloatArray
    first_error: FloatArray
    last_error: FloatArray
    sigma: FloatArray
    curvature: FloatArray | None
    curvature_error: FloatArray | None

    @classmethod
    def of(cls, gradients: ClientGradients) -> _Statistics:
        squares = np.array([[_scatter(g) for g in at] for at in gradients.gradients])
        sizes = np.array([[len(g) for g in at] for at in gradients.gradients])
        errors = squares / sizes
        curved: tuple[FloatArray | None, FloatArray | None] = (None, None)
        if gradients.models is not None and len(gradients.points) > 1:
            ways = gradients.models - gradients.models[0]
            length = float((ways**2).sum())
            if not length:
                raise ValueError(
                    "models at different points must differ, got the same model at all of them"
                )
            # sum_j <g_j - g_0, d_j>, the slope of a regression through the first point.
            ways[0] = -ways.sum(axis=0)
            along = [
                [g @ way for g, way in zip(at, ways, strict=True)] for at in gradients.gradients
            ]
            curved = (
                np.array([sum(p.mean() for p in at) for at in along]) / length,
                np.array([sum(p.var(ddof=1) / p.size for p in at) for at in along]) / length**2,
            )
        return cls(
            np.array([at[0].mean(axis=0) for at in gradients.gradients]),
            np.array([at[-1].mean(axis=0) for at in gradients.gradients]),
            errors[:, 0],
            errors[:, -1],
            squares.mean(axis=1),
            *curved,
        )

    def without(self, client: int) -> _Statistics:
        """Return the statistics without one client."""
        arrays: dict[str, Any] = {
            name: None if value is None else np.delete(value, client, axis=0)
            for name, value in vars(self).items()
        }
        return _Statistics(**arrays)


def _scatter(gradients: FloatArray) -> float:
    return float(((gradients - gradients.mean(axis=0)) ** 2).sum()) / (len(gradients) - 1)


@dataclass(frozen=True)
class _Squares:
    """Squares without the contributions of minibatches and sampling; they may be negative.

    Attributes
    ----------
    sigma, sigma_G, start : float
        The squares of `MeasuredClients`' attributes.
    curvature : float or None
    spread : float
        The squared coefficient of variation of curvatures.
    noise, unlike : float
        sigma and sigma_G in units of the advice: the squares of `Training.noise` and the radius.
    """

    sigma: float
    sigma_G: float  # noqa: N815
    start: float
    curvature: float | None
    spread: float
    noise: float
    unlike: float

    @classmethod
    def of(
        cls, each: _Statistics, shares: FloatArray, outside: float, condition: float | None
    ) -> _Squares:
        a = shares / shares.sum()
        # For n clients drawn from N, the variance of a mean is the clients' variance times this
        # factor.
        drawn = outside * float((a**2).sum())

        def between(values: FloatArray, errors: FloatArray) -> float:
            squares = ((values - a @ values) ** 2).reshape(a.size, -1).sum(axis=1)
            return float(a @ squares - (a * (1 - a)) @ errors) / (1 - drawn)

        sigma = float(a @ each.sigma)
        sigma_g = between(each.last, each.last_error)
        at_start = between(each.first, each.first_error)
        start = float(((a @ each.first) ** 2).sum() - a**2 @ each.first_error)
        start -= drawn * max(at_start, 0.0)
        curvature, spread = None, 0.0
        if each.curvature is not None and each.curvature_error is not None:
            curvature = float(a @ each.curvature)
            # Whether the curvature is above zero is checked together with the other numbers.
            square = curvature**2 or math.inf
            spread = between(each.curvature, each.curvature_error) / square
        if condition is not None:
            spread = _spread(condition)
        relative = _mean_curvature(_condition(spread)) ** 2
        inverse = 1 / start if start > 0 else math.nan
        return cls(
            sigma,
            sigma_g,
            start,
            curvature,
            spread,
            noise=sigma * relative * inverse,
            unlike=sigma_g * inverse / (1 + max(spread, 0.0)),
        )


def _check_start(squares: _Squares, gradients: ClientGradients) -> None:
    if not squares.start > 0:
        raise ValueError(
            f"the mean gradient of all clients at the first point, {gradients.points[0]!r}, must "
            "exceed noise and client differences, got one that cannot be told from them: measure "
            "more minibatches, or more clients"
        )


def _check_rest(squares: _Squares, gradients: ClientGradients) -> None:
    if not squares.sigma_G > 0:
        raise ValueError(
            f"gradients at the last point, {gradients.points[-1]!r}, must differ between clients "
            "by more than minibatches do, got no such difference: measure on more minibatches"
        )
    if squares.curvature is not None and not squares.curvature > 0:
        raise ValueError(
            "the mean gradient must grow along the line between the points, got a curvature of "
            f"{squares.curvature:.3g}: measure on more minibatches, or leave out the models"
        )


def _interval(value: float, others: FloatArray) -> Estimate:
    """Return the estimate with Student's t interval, given values with one client left out."""
    from scipy.stats import t

    count = others.size
    error = math.sqrt((count - 1) / count * float(((others - others.mean()) ** 2).sum()))
    reach = float(t.ppf((1 + _CONFIDENCE) / 2, count - 1)) * error
    return Estimate(value, value - reach, value + reach)


def _of_squares(estimate: Estimate, change: Any) -> Estimate:
    """Apply an increasing function to an estimate of a square, set to at least 0."""
    ends = (estimate.value, estimate.low, estimate.high)
    return Estimate(*(float(change(max(end, 0.0))) for end in ends))


def _spread(condition: float) -> float:
    """Return the squared coefficient of variation of log-uniform curvatures."""
    half = math.log(condition) / 2
    return half / math.tanh(half) - 1 if half else 0.0


def _condition(spread: float) -> float:
    """Return the inverse of `_spread`, which is 1 for no spread, and at most a million."""
    from scipy.optimize import brentq

    if spread <= 0:
        return 1.0
    if spread >= _spread(_LARGEST_CONDITION):
        return _LARGEST_CONDITION
    log = brentq(lambda u: _spread(math.exp(u)) - spread, 0, math.log(_LARGEST_CONDITION))
    return math.exp(log)


def _mean_curvature(condition: float) -> float:
    """Return the mean of log-uniform curvatures up to 1."""
    log = math.log(condition)
    return -math.expm1(-log) / log if log else 1.0

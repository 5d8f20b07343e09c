"""The law of a round that depends on its participants through one weighted sum.

Without memory of clients, a round is ``s' = P s + p + Q u + noise``, where ``u = sum_i phi_i w_i
change_i(B s + y)``. Here ``phi_i = 1{i in S} h(|S|)``, w are weights, and ``change_i(y) = S_i (y -
c_i) + noise_i`` is client i's change of a model. The algorithm's own round is run once, on a symbol
for who takes part (`PresenceSpace`) and with symbols in place of u. This gives P, p, Q, B, w and h.
Computing the law then needs only one pass over clients, because the covariance of phi is known for
groups of like clients (`Inclusions`).

Let ``y_i = w_i (S_i, S_i e_i)``, and subtract group means. The covariance of ``sum_i phi_i y_i``
is ``sum_i within_g (y_i - mean_g)(y_i - mean_g)' + sum_gh totals_gh mean_g mean_h'``. If all
clients share a slope S, it factors out of every term, and ``y_i = w_i (1, e_i)`` is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fltheory.engines.affine.deviations import (
    ClientSum,
    OwnSlopes,
    SharedSlope,
    Works,
    absolute_norm,
)
from fltheory.engines.affine.probe import (
    UNIT_ROUNDOFF,
    Probe,
    RoundOverflowError,
)
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.engines.affine.reading import run_on_symbols
from fltheory.engines.affine.symbolic.clients import LocalMaps
from fltheory.engines.affine.symbolic.forms import AffineArray, NotAffineError, noise_covariance
from fltheory.engines.affine.symbolic.presences import PresenceSpace, PresentClients, together
from fltheory.participation.base import Masks, Participation
from fltheory.participation.inclusions.correlations import (
    Inclusions,
    TooManyGroupsError,
    in_groups,
)
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import ClientIndices, FloatArray

_AT_ONCE = 2048
_CHECKED_SETS = 2
_LARGEST_TENSOR = 64
_ALWAYS_TENSOR = 24
# If the state has memory of each of many clients, its round cannot be such a sum.
_LARGEST_STATE = 4096


def law_of_sums(probe: Probe, participation: Participation) -> RandomAffineMap | None:
    """Return the law of a round if it is a sum over participants, else None.

    Raises
    ------
    NotAffineError
        If the round is such a sum but there are too many kinds of clients.
    RoundOverflowError
        If its images are too large for float64.
    """
    if not in_groups(participation) or not _has_form(participation, probe.problem):
        return None
    try:
        reading = _read(probe, participation)
    except NotAffineError:
        return None  # The other methods say which rounds they refuse.
    image_distance = float(np.linalg.norm(probe.image_origin))
    if reading.effects is None:
        return _without_participants(reading, probe.step)
    try:
        inclusions = participation.inclusions(reading.by_number)
    except TooManyGroupsError as error:
        raise NotAffineError(f"{error}: use engines.monte_carlo") from error
    rng = np.random.default_rng(0)
    masks = next(participation.masks(rng, _CHECKED_SETS))
    try:
        probe.check(masks, *_predicted(reading, reading.effects, masks), rng)
    except NotAffineError:
        return None
    return _law(reading, reading.effects, inclusions, image_distance)


def _has_form(participation: Participation, problem: QuadraticProblem) -> bool:
    """Return whether second moments are in closed form rather than one factor per client."""
    dim = problem.dim
    if problem.shared_hessian or dim <= _ALWAYS_TENSOR:
        return True
    return dim <= _LARGEST_TENSOR and participation.n_clients > dim


# --- the round, run on a symbol for who takes part ---------------------------------------------


@dataclass(frozen=True, eq=False)
class _Effects:
    """Each client's change of a model y, ``slope (y - c) + noise``, with one slope if all share it.

    ``rows`` returns the vectors y_i of the module's docstring.
    """

    slopes: FloatArray
    noises: FloatArray
    optima: FloatArray
    at: FloatArray
    coefficients: FloatArray
    slope_rounding: float
    power_rounding: float

    @property
    def shared(self) -> bool:
        """Whether all clients have the same slope."""
        return len(self.slopes) == 1

    @property
    def width(self) -> int:
        """Number of entries of a row that belong to the slope."""
        return 1 if self.shared else self.slopes[0].size

    def offsets(self, clients: ClientIndices) -> FloatArray:
        """Return e, the optima measured from the origin."""
        return np.asarray(self.optima[clients] - self.at)

    def rows(self, clients: ClientIndices) -> FloatArray:
        """Return ``w_i (1, e_i)``, or ``w_i (S_i, S_i e_i)``, (clients, width + d)."""
        weights, offsets = self.coefficients[clients, None], self.offsets(clients)
        if self.shared:
            return np.concatenate([weights, weights * offsets], axis=1)
        slopes = self.slopes[clients]
        moved = np.einsum("iab,ib->ia", slopes, offsets)
        return weights * np.concatenate([slopes.reshape(len(clients), -1), moved], axis=1)

    def split(self, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split a row, or a sum of rows, into (G, g)."""
        if self.shared:
            return row[0] * self.slopes[0], self.slopes[0] @ row[1:]
        d = self.at.size
        return row[: d * d].reshape(d, d), row[d * d :]

    def mean_noise(self, squares: FloatArray) -> FloatArray:
        """Return ``sum_i squares_i w_i^2 noise_i``."""
        weights = squares * self.coefficients**2
        if len(self.noises) == 1:
            return np.asarray(weights.sum() * self.noises[0])
        return np.asarray(np.tensordot(weights, self.noises, axes=1))


class _OneSum(PresentClients):
    """The Clients interface with symbols in place of the sum over participants, allowed once."""

    effects: _Effects | None = None
    start: FloatArray
    by_number: FloatArray

    def _each(self, local: LocalMaps, x: Any, who: Any, correction: Any) -> Any:
        raise together("it asks for each client's own change")

    def _sum(
        self, local: LocalMaps, x: AffineArray, who: Any, weights: Any, correction: Any
    ) -> AffineArray:
        space, numbers, d = self._space, self._numbers, self._numbers.problem.dim
        n, parts = space.symbols - d, space.parts(weights)
        if self.effects is not None or not space.is_mask(who) or parts is None or len(parts) != 1:
            raise together("it does not depend on its participants through exactly one sum")
        if correction is not None or x.values[..., 1 + n :].any():
            raise together("clients start from another model, or with noise, or get corrections")
        ((place, (*_, present)),) = parts.items()
        weighed = space.forms(present).known("weights of clients")
        # Weights are scaled so that equal weights are exactly 1, without rounding errors.
        scale = float(np.abs(weighed).max()) or 1.0
        self.by_number = scale * space.functions[place].constant
        self.start = x.linear(n)[0]
        self.effects = _Effects(
            slopes=local.slope,
            noises=local.noise,
            optima=numbers.problem.optima,
            at=x.constant[0],
            coefficients=np.broadcast_to(weighed / scale, (1, self.n_clients))[0],
            slope_rounding=numbers.silent_clients.slope_rounding,
            power_rounding=numbers.silent_clients.power_rounding,
        )
        return AffineArray(space, np.eye(d, 1 + n + d, 1 + n)[None])


@dataclass(frozen=True, eq=False)
class _Reading:
    """A round ``s' = slope s + offset + into u + noise`` with the sum u over participants.

    The sum is over the weighted changes that clients make to the model ``start s + at``.

    ``effects`` is None if the round does not use its clients.
    """

    slope: FloatArray
    offset: FloatArray
    into: FloatArray
    noise: FloatArray
    start: FloatArray
    by_number: FloatArray
    effects: _Effects | None


def _read(probe: Probe, participation: Participation) -> _Reading:
    n, d, n_clients = probe.origin.size, probe.problem.dim, participation.n_clients
    size = participation.fixed_size
    if n > _LARGEST_STATE:
        raise together(f"its state has {n} numbers")
    every = np.arange(n_clients + 1)
    numbers = every if size is None else every[size : size + 1]

    def with_room(room: int) -> _OneSum:
        space = PresenceSpace(probe.numbers.arithmetic, n + d, n_clients, numbers, room, sums=False)
        return _OneSum(probe.numbers, space)

    image, clients = run_on_symbols(probe.function, probe.origin, with_room)
    linear, offset = image.linear(n + d)[0], image.constant[0] - probe.image_origin
    noise = noise_covariance(image)[0]
    effects, start, by_number = clients.effects, np.zeros((d, n)), np.zeros(n_clients + 1)
    if effects is not None:
        start, by_number[numbers] = clients.start, clients.by_number
        if not np.isfinite([effects.coefficients.sum(), by_number.sum()]).all():
            raise together("its weights are not numbers")
    finite = (linear, offset, noise, start, *(() if effects is None else (effects.slopes,)))
    if not all(np.isfinite(part).all() for part in finite):
        raise RoundOverflowError("one round of the algorithm exceeds the range of float64")
    return _Reading(linear[:, :n], offset, linear[:, n:], noise, start, by_number, effects)


def _predicted(reading: _Reading, effects: _Effects, masks: Masks) -> tuple[FloatArray, FloatArray]:
    """Return slopes and offsets for participant sets (s, N)."""
    slopes, offsets = [], []
    for members in map(np.flatnonzero, masks):
        rows = (effects.rows(some).sum(axis=0) for some in _blocks(members))
        total = sum(rows, np.zeros(effects.width + effects.at.size))
        slope, offset = effects.split(reading.by_number[members.size] * total)
        slopes.append(reading.slope + reading.into @ slope @ reading.start)
        offsets.append(reading.offset - reading.into @ offset)
    return np.stack(slopes), np.stack(offsets)


def _blocks(clients: ClientIndices) -> Iterator[ClientIndices]:
    for first in range(0, clients.size, _AT_ONCE):
        yield clients[first : first + _AT_ONCE]


# --- one pass over clients ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _SumMoments:
    """Mean and covariance of ``sum_i phi_i y_i``.

    ``sizes`` are the sizes of the terms summed for three covariances: of the first ``width``
    entries, of these with the others, and of the others (`Deviations.works`). ``terms`` is the
    number of terms.
    """

    mean: FloatArray
    covariance: FloatArray
    sizes: Works
    terms: float


def _sum_moments(effects: _Effects, inclusions: Inclusions) -> _SumMoments:
    order = np.argsort(inclusions.group, kind="stable")
    means = _group_means(effects, inclusions, order)
    spread = np.zeros((means.shape[1], means.shape[1]))
    for clients in _blocks(order):
        group = inclusions.group[clients]
        if not inclusions.within[group].any():
            continue
        apart = effects.rows(clients) - means[group]
        apart *= np.sqrt(inclusions.within[group])[:, None]
        spread += apart.T @ apart
    covariance = spread
    # If all clients always take part, nothing varies.
    if inclusions.totals.ndim == 2:
        covariance = spread + means.T @ inclusions.totals @ means
    elif inclusions.totals.any():
        covariance = spread + (means * inclusions.totals[:, None]).T @ means
    blocks = -(-order.size // _AT_ONCE)
    terms = min(order.size, _AT_ONCE) + blocks + inclusions.sizes.size
    return _SumMoments(
        mean=(inclusions.sizes * inclusions.means) @ means,
        covariance=covariance,
        sizes=_sizes(spread, means, inclusions, effects.width),
        terms=terms + inclusions.relative_error / UNIT_ROUNDOFF,
    )


def _group_means(effects: _Effects, inclusions: Inclusions, order: ClientIndices) -> FloatArray:
    """Return the mean row (G, f) of each group; ``order`` lists clients group by group."""
    sums = np.zeros((inclusions.sizes.size, effects.width + effects.at.size))
    for clients in _blocks(order):
        group = inclusions.group[clients]
        firsts = np.flatnonzero(np.diff(group, prepend=-1))
        sums[group[firsts]] += np.add.reduceat(effects.rows(clients), firsts, axis=0)
    return np.asarray(sums / inclusions.sizes[:, None])


def _sizes(spread: FloatArray, means: FloatArray, inclusions: Inclusions, width: int) -> Works:
    """Bound the sums of absolute terms in the covariance.

    The Frobenius norm of ``sum_i |a_i| |b_i|'`` is at most ``sum_i ||a_i|| ||b_i||``, and by
    Cauchy-Schwarz at most the root of the product of the two sums of squares.
    """
    diagonal = spread.diagonal()
    slope, offset = float(diagonal[:width].sum()), float(diagonal[width:].sum())
    of_slope = np.linalg.norm(means[:, :width], axis=1)
    of_offset = np.linalg.norm(means[:, width:], axis=1)

    def totals(left: FloatArray, right: FloatArray) -> float:
        size = inclusions.totals_size
        weighted = size * right if size.ndim == 1 else size @ right
        return float(left @ weighted)

    return (
        slope + totals(of_slope, of_slope),
        float(np.sqrt(slope * offset)) + totals(of_slope, of_offset),
        offset + totals(of_offset, of_offset),
    )


# --- the law -----------------------------------------------------------------------------------


def _without_participants(reading: _Reading, step: float) -> RandomAffineMap:
    """Return the law of a round that does not use its clients."""
    n = reading.slope.shape[1]
    unit = 64 * n * UNIT_ROUNDOFF
    return RandomAffineMap(
        mean_slope=reading.slope,
        mean_offset=reading.offset,
        slopes=reading.slope[None],
        offsets=reading.offset[None],
        noise=reading.noise,
        slope_error=unit * max(1.0, float(np.linalg.norm(reading.slope))),
        offset_error=unit * step,
        noise_error=unit * float(np.trace(reading.noise)),
    )


def _law(
    reading: _Reading, effects: _Effects, inclusions: Inclusions, image_distance: float
) -> RandomAffineMap:
    moments = _sum_moments(effects, inclusions)
    into, start = reading.into, reading.start
    slope, offset = effects.split(moments.mean)
    mean_slope = reading.slope + into @ slope @ start
    mean_offset = reading.offset - into @ offset
    of_clients = into @ effects.mean_noise(inclusions.squares[inclusions.group]) @ into.T
    noise = of_clients + reading.noise
    slope_error, offset_error = _map_errors(
        reading, effects, inclusions, moments.terms, image_distance
    )
    return RandomAffineMap(
        mean_slope=mean_slope,
        mean_offset=mean_offset,
        slopes=mean_slope[None],
        offsets=mean_offset[None],
        noise=noise,
        slope_error=slope_error,
        offset_error=offset_error,
        noise_error=_operations(reading, moments.terms) * UNIT_ROUNDOFF * float(np.trace(noise))
        + 8 * effects.power_rounding * float(np.trace(of_clients)),
        sums=(_deviations(reading, effects, moments),) if moments.covariance.any() else (),
    )


def _deviations(reading: _Reading, effects: _Effects, moments: _SumMoments) -> ClientSum:
    if not effects.shared:
        return OwnSlopes.of(
            reading.into, reading.start, moments.covariance, moments.sizes, moments.terms
        )
    push = reading.into @ effects.slopes[0]
    return SharedSlope(
        slope=push @ reading.start,
        push=push,
        moments=moments.covariance,
        sizes=moments.sizes,
        operations=moments.terms + 2 * reading.start.shape[1] + 2 * reading.start.shape[0],
    )


def _operations(reading: _Reading, terms: float) -> float:
    # This is as in `Probe.rounding`. It counts n + d numbers on the way into and out of the sum,
    # with room for a few dozen operations on each, and the terms of the sum over clients.
    d, n = reading.start.shape
    return 64.0 * (n + d) + terms


def _map_errors(
    reading: _Reading,
    effects: _Effects,
    inclusions: Inclusions,
    terms: float,
    image_distance: float,
) -> tuple[float, float]:
    """Bound the roots of E||dA||^2 and E||db||^2 for the errors dA, db of the round's map.

    ``A = P + Q (sum_i phi_i w_i S_i) B``. An error of at most ``lone`` in each S_i gives an error
    of at most ``sum_i phi_i |w_i| lone ||Q|| ||B||``, whose square is averaged over participants.
    The error of the offsets ``S_i e_i`` is this times the longest e_i. ``lone`` covers the rounding
    of the K-fold powers, of reading Q and B, of products, and of sums over clients. Reading P and p
    costs a few rounding errors of numbers near one and near the image's origin.
    """
    d, n = reading.start.shape
    slope_size = float(np.sqrt((effects.slopes**2).sum(axis=(1, 2)).max()))
    rounding = UNIT_ROUNDOFF * _operations(reading, terms)
    lone = 4 * np.sqrt(d) * effects.slope_rounding + rounding * slope_size
    weight = _mean_square_weight(effects, inclusions)
    reach = max(
        float(np.sqrt((effects.offsets(some) ** 2).sum(axis=1).max()))
        for some in _blocks(np.arange(inclusions.n_clients))
    )
    into, start = absolute_norm(reading.into), absolute_norm(reading.start)
    unit = 64 * n * UNIT_ROUNDOFF
    slope_error = weight * into * start * lone
    slope_error += unit * max(1.0, float(np.linalg.norm(reading.slope)))
    offset_error = 2 * weight * into * lone * reach
    offset_error += unit * (float(np.linalg.norm(reading.offset)) + image_distance)
    return float(slope_error), float(offset_error)


def _mean_square_weight(effects: _Effects, inclusions: Inclusions) -> float:
    """Return the root of ``E (sum_i phi_i |w_i|)^2``, or a slightly larger number."""
    sizes, group = inclusions.sizes, inclusions.group
    weights = np.abs(effects.coefficients)
    means = np.bincount(group, weights, minlength=sizes.size) / sizes
    squares = np.bincount(group, weights**2, minlength=sizes.size)
    totals = inclusions.totals_size
    of_totals = totals * means if totals.ndim == 1 else totals @ means
    variance = float(inclusions.within @ squares + means @ of_totals)
    return float(np.sqrt((sizes * inclusions.means @ means) ** 2 + variance))

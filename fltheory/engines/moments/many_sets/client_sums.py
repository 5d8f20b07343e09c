"""The law of a round that uses its participants through one weighted sum, for any number of them.

Without memory of clients a round is ``s' = P s + p + Q u + noise`` with ``u = sum_i phi_i w_i
change_i(B s + y)``: ``phi_i = 1{i in S} h(|S|)``, weights w, and what client i makes of a model,
``change_i(y) = S_i (y - c_i) + noise_i``. The algorithm's own round is run once, on a mask that
nobody has been drawn for (`SymbolicMask`) and with numbers in place of u, which gives P, p, Q, B, w
and h. What a client does is read off that client alone. The law then needs one pass over clients,
as the covariance of phi is known by groups of like clients (`Inclusions`).

With ``y_i = w_i (S_i, S_i e_i)`` and group means taken off, the covariance of ``sum_i phi_i y_i``
is ``sum_i within_g (y_i - mean_g)(y_i - mean_g)' + sum_gh totals_gh mean_g mean_h'``. Where all
share a slope S it is a factor of every term, and ``y_i = w_i (1, e_i)`` will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fltheory.engines.affine.probe import (
    CHECK_TOLERANCE,
    UNIT_ROUNDOFF,
    RoundOverflowError,
    StateFunction,
)
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.affine.symbolic.symbolic_mask import NotASumError, SymbolicMask
from fltheory.engines.clients.noise import NoiseSource, Silence, UnitImpulses
from fltheory.engines.clients.quadratic_clients import QuadraticClients
from fltheory.engines.moments.deviations import (
    ClientSum,
    OwnSlopes,
    SharedSlope,
    Works,
    absolute_norm,
)
from fltheory.participation.base import Participation
from fltheory.participation.inclusions.correlations import (
    GroupedInclusions,
    Inclusions,
    TooManyGroupsError,
    in_groups,
)
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import ClientIndices, FloatArray

_AT_ONCE = 2048
_PROBES_AT_ONCE = 1024
_CHECKED_STATES = 4
_CHECKED_SETS = 2
_LARGEST_TENSOR = 64
_ALWAYS_TENSOR = 24


def law_of_sums(
    function: StateFunction,
    problem: QuadraticProblem,
    participation: Participation,
    origin: FloatArray,
    image_origin: FloatArray,
) -> RandomAffineMap | None:
    """Return the law of ``function`` if it is a sum over participants, else None.

    Arguments are those of `random_affine_map`.

    Raises
    ------
    NotAffineError
        If it is, but the clients are of too many kinds.
    RoundOverflowError
        If its images are too large for float64.
    """
    if not in_groups(participation) or not _has_form(participation, problem):
        return None
    clients = QuadraticClients(problem, Silence())
    run = _Runner(function, clients, origin)
    try:
        reading = _read(run, problem, image_origin)
    except RoundOverflowError:
        raise
    except Exception:  # Whatever a symbol cannot follow; the round itself is then run instead.
        return None
    if reading.call is None:
        return _without_participants(reading)
    try:
        inclusions = participation.inclusions(reading.by_number)
    except TooManyGroupsError as error:
        raise NotAffineError(f"{error}: use engines.monte_carlo") from error
    effects = _Effects.of(reading, problem)
    if not _agrees(run, reading, effects, participation, image_origin):
        return None
    return _law(reading, effects, inclusions, float(np.linalg.norm(image_origin)))


def _has_form(participation: Participation, problem: QuadraticProblem) -> bool:
    """Say whether second moments are held in closed form, rather than by a factor a client."""
    dim = problem.dim
    if problem.shared_hessian or dim <= _ALWAYS_TENSOR:
        return True
    return dim <= _LARGEST_TENSOR and participation.n_clients > dim


# --- the round, run on a symbol for who takes part ---------------------------------------------


Call = Callable[[QuadraticClients, FloatArray, Any, Any], FloatArray]


class _Recorder:
    """The Clients contract with given numbers in place of the sum over participants."""

    def __init__(self, clients: QuadraticClients, symbols: FloatArray) -> None:
        self._clients = clients
        self._symbols = symbols
        self.call: Call | None = None
        self.start: FloatArray | None = None
        self.weights: SymbolicMask | None = None

    @property
    def n_clients(self) -> int:
        return self._clients.n_clients

    def server_gradient(self, x: FloatArray) -> FloatArray:
        return self._clients.server_gradient(x)

    def summed_local_sgd(
        self,
        x: FloatArray,
        who: Any,
        weights: Any,
        *,
        steps: int,
        lr: float,
        correction: Any = None,
        proximal: float = 0,
    ) -> FloatArray:
        if correction is not None:
            raise NotASumError("clients are told corrections of their own")

        def call(clients: QuadraticClients, y: FloatArray, who: Any, weights: Any) -> FloatArray:
            return clients.summed_local_sgd(y, who, weights, steps=steps, lr=lr, proximal=proximal)

        return self._answer(call, x, who, weights)

    def summed_local_gradients(
        self, x: FloatArray, who: Any, weights: Any, *, steps: int, lr: float
    ) -> FloatArray:
        def call(clients: QuadraticClients, y: FloatArray, who: Any, weights: Any) -> FloatArray:
            return clients.summed_local_gradients(y, who, weights, steps=steps, lr=lr)

        return self._answer(call, x, who, weights)

    def _answer(self, call: Call, x: FloatArray, who: Any, weights: Any) -> FloatArray:
        if self.call is not None:
            raise NotASumError("two sums over participants in a round")
        untouched = isinstance(who, SymbolicMask) and who.is_plain
        if not untouched or not isinstance(weights, SymbolicMask):
            raise NotASumError("a sum over others than those who take part")
        self.call, self.start, self.weights = call, x, weights
        return self._symbols


@dataclass(frozen=True, eq=False)
class _Runner:
    """Runs a function of states around an origin."""

    function: StateFunction
    clients: QuadraticClients
    origin: FloatArray

    def recorded(
        self, moves: FloatArray, symbols: FloatArray, noise: NoiseSource
    ) -> tuple[FloatArray, _Recorder]:
        """Return images (rows, k) of ``origin + moves`` with the sum given, and the record."""
        recorder = _Recorder(self.clients.with_noise(noise), symbols)
        mask: Any = SymbolicMask.of(self.clients.n_clients, len(moves))
        stand_in: Any = recorder
        return self._images(self.function, self.origin + moves, stand_in, mask), recorder

    def real(self, moves: FloatArray, masks: Any) -> FloatArray:
        """Return the images under real participants, without noise."""
        return self._images(self.function, self.origin + moves, self.clients, masks)

    @staticmethod
    def _images(
        function: StateFunction, states: FloatArray, clients: QuadraticClients, masks: Any
    ) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            images = function(states, clients, masks)
        if not np.isfinite(images).all():
            raise RoundOverflowError("one round of the algorithm exceeds the range of float64")
        return images


@dataclass(frozen=True, eq=False)
class _Reading:
    """``s' = slope s + offset + into u + noise``, u the sum from models ``start s + at``.

    ``call`` and the weights are None and empty where a round asks nothing of its participants.
    ``step`` is the size of the moves that it was read by.
    """

    slope: FloatArray
    offset: FloatArray
    into: FloatArray
    noise: FloatArray
    start: FloatArray
    at: FloatArray
    call: Call | None
    coefficients: FloatArray
    by_number: FloatArray
    step: float

    def image(self, moves: FloatArray, sums: FloatArray) -> FloatArray:
        """Return the images (rows, k) of moves from the origin, given the sums (rows, d)."""
        return np.asarray(moves @ self.slope.T + self.offset + sums @ self.into.T)


def _read(run: _Runner, problem: QuadraticProblem, image_origin: FloatArray) -> _Reading:
    """Read the round off moves of the state and of the sum, one at a time; check it on others."""
    n, d = run.origin.size, problem.dim
    step = _step(problem, run.origin)
    rng = np.random.default_rng(0)
    random = rng.standard_normal((_CHECKED_STATES, n + d))
    inputs = step * np.vstack([np.zeros(n + d), np.eye(n + d), random])
    silence = Silence()
    images, record = run.recorded(inputs[:, :n], inputs[:, n:], silence)
    slopes, offset = _affine(inputs, images, step)
    starts, at = np.zeros((d, n + d)), np.zeros(d)
    coefficients, by_number = np.zeros(problem.n_clients), np.zeros(problem.n_clients + 1)
    if record.start is not None and record.weights is not None:
        starts, at = _affine(inputs, record.start, step)
        coefficients, by_number = record.weights.coefficients, record.weights.by_number
    if not np.isfinite([coefficients.sum(), by_number.sum()]).all():
        raise NotASumError("the weights of the sum over participants are no numbers")
    return _Reading(
        slope=slopes[:, :n],
        offset=offset - image_origin,
        into=slopes[:, n:],
        noise=_server_noise(run, d, images[0], silence.numbers_per_replica),
        start=starts[:, :n],
        at=at,
        call=record.call,
        coefficients=coefficients,
        by_number=by_number,
        step=step,
    )


def _step(problem: QuadraticProblem, origin: FloatArray) -> float:
    farthest = max(float(problem.optima.max()), -float(problem.optima.min()))
    reach = max(farthest, float(np.abs(origin).max()), 1.0)
    return float(2.0 ** np.ceil(np.log2(reach)))


def _affine(inputs: FloatArray, images: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Return slope and offset of images of zero, of each direction by ``step``, and of others."""
    width = inputs.shape[1]
    offset = images[0]
    slope = np.asarray((images[1 : width + 1] - offset).T / step)
    expected = inputs @ slope.T + offset
    scale = step + float(np.abs(images).max(initial=0.0))
    if not float(np.abs(images - expected).max(initial=0.0)) <= CHECK_TOLERANCE * scale:
        raise NotASumError("the round is not affine in the model and the sum over participants")
    return slope, offset


def _server_noise(run: _Runner, d: int, silent_image: FloatArray, numbers: int) -> FloatArray:
    """Return the covariance of what is random beside the participants."""
    still = np.zeros((max(numbers, 2), run.origin.size))
    impulses = UnitImpulses(np.arange(len(still)))
    if numbers == 0:
        return np.zeros((silent_image.size, silent_image.size))
    images, _ = run.recorded(still, np.zeros((len(still), d)), impulses)
    columns = images - silent_image
    return np.asarray(columns.T @ columns)


# --- what clients do, each alone ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Effects:
    """What each client makes of a model: ``slope (y - c) + noise``; one slope if it is shared.

    ``rows`` of clients are the vectors y_i of this file's first lines.
    """

    slopes: FloatArray
    noises: FloatArray
    optima: FloatArray
    at: FloatArray
    coefficients: FloatArray
    slope_rounding: float
    power_rounding: float

    @classmethod
    def of(cls, reading: _Reading, problem: QuadraticProblem) -> _Effects:
        """Read the effects off clients alone, with optima zero."""
        call, d = reading.call, problem.dim
        assert call is not None
        different = 1 if problem.shared_hessian else problem.n_clients
        at_once = max(1, _PROBES_AT_ONCE // d)
        parts = [
            _alone(call, problem.clients_at_zero(slice(i, i + at_once)))
            for i in range(0, different, at_once)
        ]
        slopes, noises, slope_roundings, power_roundings = zip(*parts, strict=True)
        return cls(
            slopes=np.concatenate(slopes),
            noises=np.concatenate(noises),
            optima=problem.optima,
            at=reading.at,
            coefficients=reading.coefficients,
            slope_rounding=max(slope_roundings),
            power_rounding=max(power_roundings),
        )

    @property
    def shared(self) -> bool:
        """Whether all clients have the same slope."""
        return len(self.slopes) < len(self.optima) or len(self.slopes) == 1

    @property
    def width(self) -> int:
        """How many of a row's numbers belong to the slope."""
        return 1 if self.shared else self.slopes[0].size

    def offsets(self, clients: ClientIndices) -> FloatArray:
        """Return e, optima from the origin."""
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
        """Return (G, g) for a row, or for a sum of rows."""
        if self.shared:
            return row[0] * self.slopes[0], self.slopes[0] @ row[1:]
        d = self.at.size
        return row[: d * d].reshape(d, d), row[d * d :]

    def mean_noise(self, squares: FloatArray) -> FloatArray:
        """Return ``sum_i squares_i w_i^2 noise_i``."""
        weights = squares * self.coefficients**2
        if self.shared:
            return np.asarray(weights.sum() * self.noises[0])
        return np.asarray(np.tensordot(weights, self.noises, axes=1))


def _alone(call: Call, problem: QuadraticProblem) -> tuple[FloatArray, FloatArray, float, float]:
    """Run clients with optima zero one at a time: slopes, covariances, and their roundings.

    From a unit vector a client with optimum zero moves by a column of its slope.
    """
    count, d = problem.n_clients, problem.dim
    clients = QuadraticClients(problem, Silence())
    who = np.repeat(np.eye(count, dtype=bool), d, axis=0)
    ones = who.astype(np.float64)
    images = call(clients, np.tile(np.eye(d), (count, 1)), who, ones)
    slopes = images.reshape(count, d, d).swapaxes(1, 2)
    noises = np.zeros((count, d, d))
    if problem.sigma > 0:
        # A client alone draws d numbers, whichever way sums are drawn.
        impulses = UnitImpulses(np.tile(np.arange(d), count))
        images = call(clients.with_noise(impulses), np.zeros((count * d, d)), who, ones)
        columns = images.reshape(count, d, d)
        noises = columns.swapaxes(1, 2) @ columns
    return slopes, noises, clients.slope_rounding, clients.power_rounding


def _agrees(
    run: _Runner,
    reading: _Reading,
    effects: _Effects,
    participation: GroupedInclusions,
    image_origin: FloatArray,
) -> bool:
    """Say whether real rounds, with participants drawn, are the sums that were read."""
    rng = np.random.default_rng(0)
    masks = next(participation.masks(rng, _CHECKED_SETS))
    moves = reading.step * rng.standard_normal((_CHECKED_SETS, run.origin.size))
    images = run.real(moves, masks) - image_origin
    sums = np.zeros((_CHECKED_SETS, effects.at.size))
    for row, (mask, move) in enumerate(zip(masks, moves, strict=True)):
        members = np.flatnonzero(mask)
        total = sum(effects.rows(some).sum(axis=0) for some in _blocks(members))
        if members.size:
            slope, offset = effects.split(np.asarray(total))
            sums[row] = slope @ (reading.start @ move) - offset
        sums[row] *= reading.by_number[members.size]
    expected = reading.image(moves, sums)
    scale = reading.step + float(np.abs(images).max(initial=0.0))
    return float(np.abs(images - expected).max(initial=0.0)) <= CHECK_TOLERANCE * scale


def _blocks(clients: ClientIndices) -> Iterator[ClientIndices]:
    for first in range(0, clients.size, _AT_ONCE):
        yield clients[first : first + _AT_ONCE]


# --- one pass over clients ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _SumMoments:
    """Mean and covariance of ``sum_i phi_i y_i``.

    ``sizes`` are those of what was summed for the covariance of the first ``width`` entries,
    of those with the others, and of the others (`Deviations.works`); ``terms`` says of how many.
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
    # Where everybody takes part, nothing varies.
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
    """Return the mean row (G, f) of each group; ``order`` has clients group after group."""
    sums = np.zeros((inclusions.sizes.size, effects.width + effects.at.size))
    for clients in _blocks(order):
        group = inclusions.group[clients]
        firsts = np.flatnonzero(np.diff(group, prepend=-1))
        sums[group[firsts]] += np.add.reduceat(effects.rows(clients), firsts, axis=0)
    return np.asarray(sums / inclusions.sizes[:, None])


def _sizes(spread: FloatArray, means: FloatArray, inclusions: Inclusions, width: int) -> Works:
    """Bound the absolute sums behind the covariance: traces of sums of squares, and totals.

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


def _without_participants(reading: _Reading) -> RandomAffineMap:
    """Return the law of a round that asks nothing of clients."""
    n = reading.slope.shape[1]
    unit = 64 * n * UNIT_ROUNDOFF
    return RandomAffineMap(
        mean_slope=reading.slope,
        mean_offset=reading.offset,
        slopes=reading.slope[None],
        offsets=reading.offset[None],
        noise=reading.noise,
        slope_error=unit * max(1.0, float(np.linalg.norm(reading.slope))),
        offset_error=unit * reading.step,
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

    ``A = P + Q (sum_i phi_i w_i S_i) B``. An error of at most ``lone`` in each S_i gives one of
    at most ``sum_i phi_i |w_i| lone ||Q|| ||B||``, whose square is averaged over participants; the
    offsets' ``S_i e_i`` the same times the longest e_i. ``lone`` holds what the K-fold powers
    lose, and what is lost in reading Q and B, in products, and in sums over clients. Reading P and
    p loses some roundings of numbers near one and near the image's origin.
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
    """Return the root of ``E (sum_i phi_i |w_i|)^2``, or a little more."""
    sizes, group = inclusions.sizes, inclusions.group
    weights = np.abs(effects.coefficients)
    means = np.bincount(group, weights, minlength=sizes.size) / sizes
    squares = np.bincount(group, weights**2, minlength=sizes.size)
    totals = inclusions.totals_size
    of_totals = totals * means if totals.ndim == 1 else totals @ means
    variance = float(inclusions.within @ squares + means @ of_totals)
    return float(np.sqrt((sizes * inclusions.means @ means) ** 2 + variance))

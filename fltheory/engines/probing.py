"""Read a random affine map off a function that runs an algorithm's own code.

A round of an affine algorithm maps the state ``s`` to ``A_S s + b_S + noise``, where S is the
participant set. The maps are found by running the round itself on probe states, with the
same participants and no noise, so there is no second implementation that could disagree.
Where the participant sets are too many to run through, the map's dependence on S is read
off from swaps of one participant: ``T_S = T_base + sum_i (s_i - base_i) D_i``. That the
function is affine, and of this form, is checked on further sets and states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from fltheory.engines.noise import NoiseSource, Silence, UnitImpulses
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.participation.base import Masks, Participation
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

StateFunction = Callable[[FloatArray, QuadraticClients, Masks], FloatArray]

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
_ENUMERATION_LIMIT = 64
MOST_SETS = 4096
_CHECKED_SETS = 8
_MOST_PAIRED_SETS = 2000
_CHECK_TOLERANCE = 1e-9
_REPLICAS_AT_ONCE = 4096
_IMPULSES_AT_ONCE = 512


class NotAffineError(ValueError):
    """The round is not affine in the state, so no exact moment recursion exists."""


class DependentRoundsError(NotAffineError):
    """Who takes part depends on earlier rounds, so the model alone has no moment recursion."""


class RoundOverflowError(ArithmeticError):
    """A single round already exceeds the floating-point range."""


@dataclass(frozen=True, eq=False)
class RandomAffineMap:
    """First two moments of ``s -> A s + b + noise`` with random A, b independent of s.

    Attributes
    ----------
    mean_slope, mean_offset : arrays, (k, n) and (k,)
        ``E A`` and ``E b``.
    slopes, offsets : arrays, (r, k, n) and (r, k)
        Factors with ``sum_j T_j (x) T_j = E[T (x) T]`` for ``T = (A, b)``.
    noise : array, (k, k)
        Covariance of the noise.
    slope_error, offset_error : float
        Root of the summed squared rounding errors of the factors, to first order.
    noise_error : float
        The same for the trace of ``noise``.
    """

    mean_slope: FloatArray
    mean_offset: FloatArray
    slopes: FloatArray
    offsets: FloatArray
    noise: FloatArray
    slope_error: float
    offset_error: float
    noise_error: float = 0.0


@dataclass(frozen=True, eq=False)
class SetMaps:
    """One affine map a participant set, and what may be wrong with each, to first order.

    Attributes
    ----------
    slopes, offsets, noises : arrays, (s, k, n), (s, k) and (s, k, k)
        The noises are covariances.
    slope_error, offset_error, noise_error : float
        Bounds on the Frobenius norms of the first two's errors and on the trace of the third's.
    """

    slopes: FloatArray
    offsets: FloatArray
    noises: FloatArray
    slope_error: float = 0.0
    offset_error: float = 0.0
    noise_error: float = 0.0


def random_affine_map(
    function: StateFunction,
    problem: QuadraticProblem,
    participation: Participation,
    origin: FloatArray,
    image_origin: FloatArray,
) -> RandomAffineMap:
    """Find the law of ``function`` around ``origin`` up to second moments.

    Parameters
    ----------
    function : callable
        Takes states (replicas, n), clients and masks (replicas, N); returns (replicas, k).
    problem, participation
        Where it runs, and who takes part.
    origin, image_origin : arrays, (n,) and (k,)
        States are measured from ``origin``, images from ``image_origin``.

    Raises
    ------
    NotAffineError
        If ``function`` is not affine in the state, or depends on the participants in a way
        that neither enumeration nor one-participant swaps capture.
    DependentRoundsError
        If rounds are not independent.
    RoundOverflowError
        If its images are too large for float64.
    """
    if not participation.independent:
        raise DependentRoundsError(
            "participation must be independent over rounds, or follow a finite chain, for exact "
            f"moments, got {type(participation).__name__}: use engines.monte_carlo"
        )
    probe = _Probe(function, problem, origin, image_origin)
    if participation.fixed_size is not None and participation.n_outcomes > _ENUMERATION_LIMIT:
        return _by_swaps(probe, participation, participation.fixed_size)
    if participation.n_outcomes <= MOST_SETS:
        return _by_enumeration(probe, participation)
    raise NotAffineError(
        f"participation must have at most {MOST_SETS} outcomes or a fixed number of "
        f"participants for exact moments, got {participation.n_outcomes} outcomes of varying "
        "size: use engines.monte_carlo"
    )


def maps_of_sets(
    function: StateFunction,
    problem: QuadraticProblem,
    masks: Masks,
    origin: FloatArray,
    image_origin: FloatArray,
) -> SetMaps:
    """Find the affine map that ``function`` is on each of some participant sets (s, N).

    Arguments and errors are those of `random_affine_map`.
    """
    probe = _Probe(function, problem, origin, image_origin)
    maps = probe.maps(masks)
    probe.check(masks, maps, np.random.default_rng(0))
    return SetMaps(maps.slopes, maps.offsets, maps.noises, **probe.rounding(maps, participants=1.0))


class _Probe:
    """Runs a state function on probe states."""

    def __init__(
        self,
        function: StateFunction,
        problem: QuadraticProblem,
        origin: FloatArray,
        image_origin: FloatArray,
    ) -> None:
        self._function = function
        self._clients = QuadraticClients(problem, Silence())
        self._origin = origin
        self._image_origin = image_origin
        reach = max(float(np.abs(problem.optima).max()), float(np.abs(origin).max()), 1.0)
        self._step = 2.0 ** np.ceil(np.log2(reach))
        self._reach = float(np.linalg.norm(problem.optima - problem.x_star, axis=1).max())

    def maps(self, masks: Masks) -> SetMaps:
        """Return the affine map of each participant set in ``masks`` (s, N)."""
        at_once = max(1, _REPLICAS_AT_ONCE // (self._origin.size + 1))
        parts = [self._maps(masks[i : i + at_once]) for i in range(0, len(masks), at_once)]
        return SetMaps(
            slopes=np.concatenate([part.slopes for part in parts]),
            offsets=np.concatenate([part.offsets for part in parts]),
            noises=np.concatenate([part.noises for part in parts]),
        )

    def _maps(self, masks: Masks) -> SetMaps:
        n = self._origin.size
        moves = np.vstack([np.zeros(n), self._step * np.eye(n)])
        states = np.tile(self._origin + moves, (len(masks), 1))
        silence = Silence()
        images = self._run(states, masks, n + 1, silence)
        images = images.reshape(len(masks), n + 1, -1)
        slopes = (images[:, 1:] - images[:, :1]) / self._step
        return SetMaps(
            slopes=np.swapaxes(slopes, 1, 2),
            offsets=images[:, 0] - self._image_origin,
            noises=self._noises(masks, images[:, 0], silence.numbers_per_replica),
        )

    def _noises(self, masks: Masks, silent_images: FloatArray, numbers: int) -> FloatArray:
        """Return the noise's covariance (s, k, k) for sets that draw up to so many numbers."""
        size = silent_images.shape[1]
        noises = np.zeros((len(masks), size, size))
        if numbers == 0:
            return noises
        at_once = max(1, _IMPULSES_AT_ONCE // numbers)
        for i in range(0, len(masks), at_once):
            some = masks[i : i + at_once]
            impulses = UnitImpulses(np.tile(np.arange(numbers), len(some)))
            states = np.tile(self._origin, (numbers * len(some), 1))
            images = self._run(states, some, numbers, impulses).reshape(len(some), numbers, size)
            columns = images - silent_images[i : i + at_once, None]
            noises[i : i + at_once] = columns.swapaxes(1, 2) @ columns
        return noises

    def _run(
        self, states: FloatArray, masks: Masks, per_mask: int, noise: NoiseSource
    ) -> FloatArray:
        clients = self._clients.with_noise(noise)
        with np.errstate(over="ignore", invalid="ignore"):
            images = self._function(states, clients, np.repeat(masks, per_mask, axis=0))
        if not np.isfinite(images).all():
            raise RoundOverflowError("one round of the algorithm exceeds the range of float64")
        return images

    def rounding(self, maps: SetMaps, participants: float) -> dict[str, float]:
        """Bound what has been lost in reading the maps: powers, sums, and probing itself.

        Rounding at the image's origin is absolute, in proportion to its distance from zero.
        """
        spread = np.sqrt(participants)
        operations = 64.0 * (maps.slopes.shape[2] + participants)
        slope = float(np.sqrt((maps.slopes**2).sum(axis=(1, 2))).max())
        offset = float(np.sqrt((maps.offsets**2).sum(axis=1)).max())
        offset += float(np.linalg.norm(self._image_origin))
        trace = float(np.trace(maps.noises, axis1=1, axis2=2).max())
        growth = UNIT_ROUNDOFF * operations * spread
        of_powers = 4 * spread * max(slope, 1.0) * self._clients.slope_rounding
        return {
            "slope_error": growth * max(slope, 1.0) + of_powers,
            "offset_error": growth * offset + of_powers * self._reach,
            "noise_error": (growth + 8 * self._clients.power_rounding) * trace,
        }

    def check(self, masks: Masks, predicted: SetMaps, rng: np.random.Generator) -> None:
        """Raise NotAffineError unless the predicted maps match fresh runs at random states."""
        moves = self._step * rng.standard_normal((len(masks), self._origin.size))
        images = self._run(self._origin + moves, masks, 1, Silence()) - self._image_origin
        expected = np.einsum("skn,sn->sk", predicted.slopes, moves) + predicted.offsets
        scale = self._step + float(np.abs(images).max(initial=0.0))
        mismatch = float(np.abs(images - expected).max(initial=0.0)) / scale
        if not mismatch <= _CHECK_TOLERANCE:
            raise NotAffineError(
                "the algorithm's round must be affine in its state, and in who takes part, for "
                f"exact moments; it misses by {mismatch:.1e} of its size: use engines.monte_carlo"
            )


def _by_enumeration(probe: _Probe, participation: Participation) -> RandomAffineMap:
    outcomes = list(participation.outcomes())
    probabilities = np.array([probability for probability, _ in outcomes])
    masks = np.array([mask for _, mask in outcomes])
    maps = probe.maps(masks)
    probe.check(masks, maps, np.random.default_rng(0))
    roots = np.sqrt(probabilities)
    return RandomAffineMap(
        mean_slope=np.einsum("s,skn->kn", probabilities, maps.slopes),
        mean_offset=probabilities @ maps.offsets,
        slopes=roots[:, None, None] * maps.slopes,
        offsets=roots[:, None] * maps.offsets,
        noise=np.einsum("s,skl->kl", probabilities, maps.noises),
        **probe.rounding(maps, participants=1.0),
    )


def _by_swaps(probe: _Probe, participation: Participation, size: int) -> RandomAffineMap:
    eligible = np.flatnonzero(participation.marginals > 0)
    base, swapped = _one_swap_sets(eligible, size, participation.n_clients)
    maps = probe.maps(np.vstack([base[None], swapped]))
    effects = _effects_of_clients(maps, eligible, size)
    _check_swaps(probe, participation, base, maps, effects)
    surplus = participation.marginals[eligible] - base[eligible]
    covariance = participation.pair_inclusions - np.outer(
        participation.marginals, participation.marginals
    )
    variances, directions = np.linalg.eigh(covariance[np.ix_(eligible, eligible)])
    loadings = (directions * np.sqrt(np.maximum(variances, 0.0))).T
    mean_slope = maps.slopes[0] + np.einsum("i,ikn->kn", surplus, effects.slopes)
    mean_offset = maps.offsets[0] + surplus @ effects.offsets
    slopes = np.einsum("ji,ikn->jkn", loadings, effects.slopes, optimize=True)
    return RandomAffineMap(
        mean_slope=mean_slope,
        mean_offset=mean_offset,
        slopes=np.concatenate([mean_slope[None], slopes]),
        offsets=np.concatenate([mean_offset[None], loadings @ effects.offsets]),
        noise=maps.noises[0] + np.einsum("i,ikl->kl", surplus, effects.noises),
        **probe.rounding(maps, participants=float(size)),
    )


def _one_swap_sets(eligible: np.ndarray, size: int, n_clients: int) -> tuple[Masks, Masks]:
    """Return the first ``size`` eligible clients, and for each other client a swapped set.

    Client ``eligible[j]`` outside the base replaces the base's first member; a member of
    the base (but the first) is replaced by the first client outside.
    """
    base = np.zeros(n_clients, dtype=bool)
    base[eligible[:size]] = True
    swapped = np.tile(base, (eligible.size - 1, 1))
    for row, j in enumerate(range(1, eligible.size)):
        joins, leaves = (eligible[size], eligible[j]) if j < size else (eligible[j], eligible[0])
        swapped[row, leaves], swapped[row, joins] = False, True
    return base, swapped


def _effects_of_clients(maps: SetMaps, eligible: np.ndarray, size: int) -> SetMaps:
    """Return D_i with ``T_S = T_base + sum_i (s_i - base_i) D_i``, the first client's zero."""

    def effects(values: FloatArray) -> FloatArray:
        gained = np.zeros((eligible.size, *values.shape[1:]))
        gained[1:] = values[1:] - values[0]
        gained[1:size] = gained[size] - gained[1:size]
        return gained

    slopes = effects(maps.slopes)
    rounding = 256 * UNIT_ROUNDOFF * max(1.0, float(np.abs(maps.slopes).max()))
    slopes[np.abs(slopes).max(axis=(1, 2)) <= rounding] = 0.0
    return SetMaps(slopes, effects(maps.offsets), effects(maps.noises))


def _sets_that_join_all_pairs(base: Masks, eligible: np.ndarray) -> Masks:
    """Return sets of the base's size that bring any two eligible clients together.

    Unions of any two blocks of half the size, filled up with further clients; an interaction of two
    clients shows on one of them. Where that takes too many sets, the first ones are kept.
    """
    size = int(base.sum())
    half = size // 2
    if half == 0:
        return np.empty((0, base.size), dtype=bool)
    blocks = [eligible[i : i + half] for i in range(0, eligible.size, half)]
    pairs = list(islice(combinations(blocks, 2), _MOST_PAIRED_SETS))
    sets = np.zeros((len(pairs), base.size), dtype=bool)
    for row, pair in zip(sets, pairs, strict=True):
        members = np.concatenate(pair)
        spare = np.setdiff1d(eligible, members)[: size - members.size]
        row[members] = True
        row[spare] = True
    return sets


def _check_swaps(
    probe: _Probe, participation: Participation, base: Masks, maps: SetMaps, effects: SetMaps
) -> None:
    rng = np.random.default_rng(0)
    eligible = np.flatnonzero(participation.marginals > 0)
    drawn = next(participation.masks(rng, _CHECKED_SETS))
    masks = np.vstack([drawn, _sets_that_join_all_pairs(base, eligible)])
    change = masks[:, eligible].astype(np.float64) - base[eligible]
    predicted = SetMaps(
        slopes=maps.slopes[0] + np.einsum("si,ikn->skn", change, effects.slopes),
        offsets=maps.offsets[0] + change @ effects.offsets,
        noises=maps.noises[0] + np.einsum("si,ikl->skl", change, effects.noises),
    )
    probe.check(masks, predicted, rng)
    noises = probe.maps(drawn).noises
    scale = float(np.abs(noises).max(initial=0.0))
    if (
        not np.abs(noises - predicted.noises[: len(drawn)]).max(initial=0.0)
        <= _CHECK_TOLERANCE * scale
    ):
        raise NotAffineError(
            "the noise of a round must be a sum over its participants for exact moments with "
            "this many participant sets: use engines.monte_carlo"
        )

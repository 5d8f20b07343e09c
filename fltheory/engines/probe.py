"""Runs an algorithm's round on probe states and reads the affine map of each participant set.

There is no second implementation of a round that could disagree: a map is what the round itself
makes of the origin and of basis vectors, its noise what it makes of unit impulses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fltheory.engines.noise import NoiseSource, Silence, UnitImpulses
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.engines.random_affine_map import MapErrors
from fltheory.participation.base import Masks
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

StateFunction = Callable[[FloatArray, QuadraticClients, Masks], FloatArray]

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
CHECK_TOLERANCE = 1e-9
_REPLICAS_AT_ONCE = 4096
_IMPULSES_AT_ONCE = 512


class NotAffineError(ValueError):
    """The round is not affine in the state, so no exact moment recursion exists."""


class DependentRoundsError(NotAffineError):
    """Who takes part depends on earlier rounds, so the model alone has no moment recursion."""


class RoundOverflowError(ArithmeticError):
    """A single round already exceeds the floating-point range."""


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


class Probe:
    """Runs a state function on probe states."""

    def __init__(
        self,
        function: StateFunction,
        problem: QuadraticProblem,
        origin: FloatArray,
        image_origin: FloatArray,
        *,
        clients: QuadraticClients | None = None,
    ) -> None:
        self._function = function
        self._clients = clients or QuadraticClients(problem, Silence())
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

    def noises(self, masks: Masks) -> FloatArray:
        """Return the covariance (s, k, k) of each set's noise."""
        silence = Silence()
        images = self._run(np.tile(self._origin, (len(masks), 1)), masks, 1, silence)
        return self._noises(masks, images, silence.numbers_per_replica)

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

    def rounding(self, maps: SetMaps, participants: float) -> MapErrors:
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

    def negligible(self, maps: SetMaps) -> tuple[float, float]:
        """Return sizes of entries of differences of slopes, and of offsets, that are rounding."""
        slope = max(1.0, float(np.abs(maps.slopes).max()))
        offset = float(np.abs(maps.offsets).max() + np.abs(self._image_origin).max())
        return 256 * UNIT_ROUNDOFF * slope, 256 * UNIT_ROUNDOFF * offset

    def check(self, masks: Masks, predicted: SetMaps, rng: np.random.Generator) -> None:
        """Raise NotAffineError unless the predicted maps match fresh runs at random states."""
        moves = self._step * rng.standard_normal((len(masks), self._origin.size))
        images = self._run(self._origin + moves, masks, 1, Silence()) - self._image_origin
        expected = np.einsum("skn,sn->sk", predicted.slopes, moves) + predicted.offsets
        scale = self._step + float(np.abs(images).max(initial=0.0))
        mismatch = float(np.abs(images - expected).max(initial=0.0)) / scale
        if not mismatch <= CHECK_TOLERANCE:
            raise NotAffineError(
                "the algorithm's round must be affine in its state, and in who takes part, for "
                f"exact moments; it misses by {mismatch:.1e} of its size: use engines.monte_carlo, "
                "or engines.conditional where it is affine given who takes part in every round"
            )

"""Running an algorithm's round on affine forms, which gives the map of each participant set.

There is no second implementation of a round that could disagree, because a map is what the round
itself returns for a model whose entries are symbols (`affine.forms`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fltheory.engines.affine.numbers import FLOAT64
from fltheory.engines.affine.random_affine_map import MapErrors
from fltheory.engines.affine.reading import Reading, reading_of
from fltheory.engines.affine.symbolic.clients import ClientNumbers, FormClients
from fltheory.engines.affine.symbolic.forms import NotAffineError, Space, noise_covariance
from fltheory.participation.base import Masks
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import ClientIndices, FloatArray

StateFunction = Callable[[Any, Any, Masks], Any]

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
CHECK_TOLERANCE = 1e-9
# For the map of a single set, the error bound for one participant covers at most this many clients.
CLIENTS_AS_ONE = 64
_NUMBERS_AT_ONCE = 1 << 21


class DependentRoundsError(NotAffineError):
    """Who takes part depends on earlier rounds, so the model alone has no moment recursion."""


class RoundOverflowError(ArithmeticError):
    """A single round already exceeds the floating-point range."""


@dataclass(frozen=True, eq=False)
class SetMaps:
    """One affine map per participant set, and bounds on their errors, to first order.

    Attributes
    ----------
    slopes, offsets, noises : arrays, (s, k, n), (s, k) and (s, k, k)
        The noises are covariances.
    slope_error, offset_error, noise_error : float
        Bounds on the Frobenius norms of the errors of slopes and offsets, and on the trace of the
        errors of the noises.
    """

    slopes: FloatArray
    offsets: FloatArray
    noises: FloatArray
    slope_error: float = 0.0
    offset_error: float = 0.0
    noise_error: float = 0.0


class Probe:
    """A state function, run on affine forms and on states.

    Parameters
    ----------
    function : callable
        Takes states (replicas, n), clients and masks (replicas, N); returns (replicas, k).
    problem : QuadraticProblem
    origin, image_origin : arrays, (n,) and (k,)
        States are measured from ``origin``, images from ``image_origin``.
    """

    def __init__(
        self,
        function: StateFunction,
        problem: QuadraticProblem,
        origin: FloatArray,
        image_origin: FloatArray,
    ) -> None:
        self.function = function
        self.problem = problem
        self.origin = origin
        self.image_origin = image_origin
        self.numbers = ClientNumbers(problem, FLOAT64)
        farthest = max(float(problem.optima.max()), -float(problem.optima.min()))
        self.step = 2.0 ** np.ceil(np.log2(max(farthest, float(np.abs(origin).max()), 1.0)))

    def maps(self, masks: Masks) -> SetMaps:
        """Return the affine map of each participant set in ``masks`` (s, N)."""
        at_once = max(1, _NUMBERS_AT_ONCE // (self.origin.size + 1) // masks.shape[1])
        parts = [self._maps(masks[i : i + at_once]) for i in range(0, len(masks), at_once)]
        if len(parts) == 1:
            return parts[0]
        return SetMaps(
            slopes=np.concatenate([part.slopes for part in parts]),
            offsets=np.concatenate([part.offsets for part in parts]),
            noises=np.concatenate([part.noises for part in parts]),
        )

    def _maps(self, masks: Masks) -> SetMaps:
        n = self.origin.size
        space = Space(FLOAT64, n)
        forms = space.variables(self.origin, len(masks))
        with np.errstate(over="ignore", invalid="ignore"):
            image = space.forms(self.function(forms, FormClients(self.numbers, space), masks))
        return SetMaps(
            slopes=_in_order(_finite(image.linear(n))),
            offsets=_in_order(_finite(image.constant) - self.image_origin),
            noises=_in_order(_finite(noise_covariance(image))),
        )

    def bounded_maps(self, masks: Masks) -> SetMaps:
        """Return the maps of participant sets (s, N) with bounds on their errors."""
        maps = self.maps(masks)
        return replace(maps, **self.rounding(maps, participants=1.0))

    def reading(self, numbers: ClientIndices) -> Reading:
        """Return the map as a function of who takes part, read from symbols."""
        return reading_of(self.function, self.numbers, (self.origin, self.image_origin), numbers)

    def rounding(self, maps: SetMaps, participants: float) -> MapErrors:
        """Bound the rounding errors made in reading the maps, for the worst map."""
        errors = reading_errors(
            maps.slopes, maps.offsets, self.image_origin, self.numbers, participants
        )
        slope, offset, noise = errors.max(axis=0).tolist()
        trace = float(np.trace(maps.noises, axis1=1, axis2=2).max())
        return {"slope_error": slope, "offset_error": offset, "noise_error": noise * trace}

    def check(
        self, masks: Masks, slopes: FloatArray, offsets: FloatArray, rng: np.random.Generator
    ) -> None:
        """Raise NotAffineError unless the predicted maps match real rounds, one for each set.

        In addition, the guard tests rounds from near, far and opposite states.
        """
        if len(masks) == 0:
            return
        moves = self.step * rng.standard_normal((len(masks), self.origin.size))
        with np.errstate(over="ignore", invalid="ignore"):
            images = self.function(self.origin + moves, self.numbers.silent_clients, masks)
        expected = offsets + (slopes @ moves[:, :, None])[:, :, 0]
        found = _finite(images) - self.image_origin
        size = self.step + np.abs(found).max(axis=1, keepdims=True)
        mismatch = float((np.abs(found - expected) / size).max())
        if not mismatch <= CHECK_TOLERANCE:
            raise NotAffineError(
                "the algorithm's round must be affine in its state and in the participants for "
                f"exact moments, got a relative deviation of {mismatch:.1e} from an affine map: "
                "use engines.monte_carlo, or engines.paths if it is affine once participants are "
                "known"
            )


def reading_errors(
    slopes: FloatArray,
    offsets: FloatArray,
    image_origin: FloatArray,
    numbers: ClientNumbers,
    participants: float = 1.0,
) -> FloatArray:
    """Bound the rounding errors of maps read from forms: of powers, of sums and of the reading.

    Parameters
    ----------
    slopes, offsets : arrays, (s, k, n) and (s, k)
    image_origin : array, (k,)
        The point from which images are measured; its rounding error is proportional to its distance
        from zero.
    numbers : ClientNumbers
        Numbers of the clients on which the round was run.
    participants : float
        Average number of participants. For the map of a single set, the value 1 covers up to 64
        clients.

    Returns
    -------
    array, (s, 3)
        Bounds on the error of the slope and of the offset, in the Frobenius norm, and on the
        relative error of the noise.
    """
    spread = np.sqrt(participants)
    # An entry sums n numbers of the state and one per participant. The rest of a round (products
    # with weights, step sizes and constants) takes a few dozen operations for each of these, and
    # the factor 64 allows for them. Over the sets of a law, the number of participants averages
    # ``participants``, and by Cauchy-Schwarz the norm of the sum grows by its square root.
    growth = UNIT_ROUNDOFF * 64.0 * (slopes.shape[2] + participants) * spread
    size = np.maximum(np.sqrt((slopes**2).sum(axis=(1, 2))), 1.0)
    offset = np.sqrt((offsets**2).sum(axis=1)) + float(np.linalg.norm(image_origin))
    of_powers = 4 * spread * size * numbers.slope_rounding
    # Optima are rounded decimals, no farther from zero than ``reach`` plus x*. The map amplifies
    # their rounding errors, which in a diverging round exceed the errors made later.
    of_optima = 4 * UNIT_ROUNDOFF * spread * size * float(np.linalg.norm(image_origin))
    noise = growth + 8 * numbers.power_rounding
    return np.stack(
        [
            growth * size + of_powers,
            growth * offset + of_powers * numbers.reach + of_optima,
            np.full(len(slopes), noise),
        ],
        axis=1,
    )


def _in_order(values: FloatArray) -> FloatArray:
    """Return the values in C order, because the last bits of sums depend on the memory layout."""
    return np.ascontiguousarray(values)


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise RoundOverflowError("one round of the algorithm exceeds the range of float64")
    return values

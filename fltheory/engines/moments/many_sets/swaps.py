"""Maps of many participant sets of one size, from swaps of one participant.

``T_S = T_base + sum_i (s_i - base_i) D_i``: the first two moments of T need only those of who
takes part.
"""

from __future__ import annotations

import numpy as np

from fltheory.engines.affine.probe import CHECK_TOLERANCE, Probe, SetMaps
from fltheory.engines.affine.random_affine_map import Effects, RandomAffineMap
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.participation.base import Masks, Participation
from fltheory.validation import FloatArray

_CHECKED_SETS = 8


def by_swaps(probe: Probe, participation: Participation, size: int) -> RandomAffineMap:
    """Return the law of the maps of sets of ``size`` clients.

    Raises
    ------
    NotAffineError
        If swaps of one participant do not capture it.
    """
    eligible = np.flatnonzero(participation.marginals > 0)
    base, swapped = _one_swap_sets(eligible, size, participation.n_clients)
    maps = probe.maps(np.vstack([base[None], swapped]))
    effects = _effects_of_clients(maps, eligible, size)
    _check_swaps(probe, participation, base, maps, effects)
    surplus = participation.marginals[eligible] - base[eligible]
    covariance = participation.pair_inclusions - np.outer(
        participation.marginals, participation.marginals
    )
    deviations = Effects(
        effects.slopes,
        effects.offsets,
        covariance[np.ix_(eligible, eligible)],
        probe.negligible(maps),
    )
    return deviations.law(
        maps.slopes[0] + _weighed(surplus, effects.slopes),
        maps.offsets[0] + surplus @ effects.offsets,
        maps.noises[0] + _weighed(surplus, effects.noises),
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

    return SetMaps(effects(maps.slopes), effects(maps.offsets), effects(maps.noises))


def _check_swaps(
    probe: Probe, participation: Participation, base: Masks, maps: SetMaps, effects: SetMaps
) -> None:
    """Compare with drawn sets; that a round adds participants up is known already."""
    rng = np.random.default_rng(0)
    eligible = np.flatnonzero(participation.marginals > 0)
    drawn = next(participation.masks(rng, _CHECKED_SETS))
    change = drawn[:, eligible].astype(np.float64) - base[eligible]
    slopes = maps.slopes[0] + _weighed(change, effects.slopes)
    probe.check(drawn, slopes, maps.offsets[0] + change @ effects.offsets, rng)
    check_noises(probe.noises(drawn), maps.noises[0] + _weighed(change, effects.noises))


def _weighed(weights: FloatArray, arrays: FloatArray) -> FloatArray:
    """Return sums over clients of arrays (clients, ...) with weights (..., clients)."""
    return np.tensordot(weights, arrays, axes=1)


def check_noises(found: FloatArray, predicted: FloatArray) -> None:
    """Raise NotAffineError unless the covariances of fresh sets' noises are as predicted."""
    scale = float(np.abs(found).max(initial=0.0))
    if not np.abs(found - predicted).max(initial=0.0) <= CHECK_TOLERANCE * scale:
        raise NotAffineError(
            "the noise of a round must be a sum over its participants for exact moments with "
            "this many participant sets: use engines.monte_carlo"
        )

"""Maps of participant sets of varying size: sums over those present of what their number sets.

Averages over whoever came are not linear in the bits s_i of who is present, but they are in s_i
and in s_i over their number: ``T_S = T_nobody + sum_i s_i (D_i + G_i / |S|)``. The law of T then
needs the first two moments of these 2 N numbers only. Noise covariances may also hold
``s_i / |S|^2``, as the noise of an average does. All is read off sets of up to three clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fltheory.engines.affine.probe import Probe, SetMaps
from fltheory.engines.affine.random_affine_map import Effects, RandomAffineMap
from fltheory.engines.moments.many_sets.swaps import check_noises
from fltheory.participation.base import Masks, SizedInclusions
from fltheory.validation import ClientIndices, FloatArray

_CHECKED_SETS = 8
_LARGEST_WEIGHT = 12.0


@dataclass(frozen=True, eq=False)
class _Reading:
    """Maps without participants, and (f, ...) what s_i, then s_i/|S|, adds to them.

    For noises a third part stands with ``s_i/|S|^2``.
    """

    nobody: SetMaps
    slopes: FloatArray
    offsets: FloatArray
    noises: FloatArray

    def predicted(self, present: FloatArray) -> SetMaps:
        """Return the maps of sets (s, N), zeros and ones, over the eligible clients."""
        linear, of_noise = _features(present, 2), _features(present, 3)
        return SetMaps(
            self.nobody.slopes[0] + np.einsum("sf,fkn->skn", linear, self.slopes),
            self.nobody.offsets[0] + linear @ self.offsets,
            self.nobody.noises[0] + np.einsum("sf,fkl->skl", of_noise, self.noises),
        )


def by_size(probe: Probe, participation: SizedInclusions) -> RandomAffineMap:
    """Return the law of the maps.

    Raises
    ------
    NotAffineError
        If they are not of this form.
    """
    eligible = np.flatnonzero(participation.marginals > 0)
    reading, maps = _read(probe, eligible, participation.n_clients)
    _check(probe, participation, eligible, reading)
    means, covariance = _moments_of_features(participation, eligible)
    linear = 2 * eligible.size
    deviations = Effects(reading.slopes, reading.offsets, covariance, probe.negligible(maps))
    errors = probe.rounding(maps, participants=float(participation.marginals.sum()))
    return deviations.law(
        reading.nobody.slopes[0] + np.einsum("f,fkn->kn", means[:linear], reading.slopes),
        reading.nobody.offsets[0] + means[:linear] @ reading.offsets,
        reading.nobody.noises[0] + np.einsum("f,fkl->kl", means, reading.noises),
        slope_error=_LARGEST_WEIGHT * errors["slope_error"],
        offset_error=_LARGEST_WEIGHT * errors["offset_error"],
        noise_error=_LARGEST_WEIGHT * errors["noise_error"],
    )


def _features(present: FloatArray, powers: int) -> FloatArray:
    """Return ``s_i / |S|^e`` for e = 0, 1, ..., (s, powers N)."""
    number = np.maximum(present.sum(axis=1, keepdims=True), 1.0)
    return np.concatenate([present / number**e for e in range(powers)], axis=1)


def _moments_of_features(
    participation: SizedInclusions, eligible: ClientIndices
) -> tuple[FloatArray, FloatArray]:
    """Return the means of s, s/|S| and s/|S|^2, and the covariance of the first two."""
    number = np.maximum(np.arange(participation.n_clients + 1.0), 1.0)
    pairs = [
        participation.weighted_inclusions(number**-e)[np.ix_(eligible, eligible)]
        for e in (0.0, 1.0, 2.0)
    ]
    means = np.concatenate([np.diag(pair) for pair in pairs])
    second = np.block([[pairs[0], pairs[1]], [pairs[1], pairs[2]]])
    linear = means[: len(second)]
    return means, second - np.outer(linear, linear)


def _read(probe: Probe, eligible: ClientIndices, n_clients: int) -> tuple[_Reading, SetMaps]:
    """Read the maps off sets of up to three clients; also return those of up to two."""
    count = eligible.size
    singles = [(i,) for i in range(count)]
    pairs = [(0, i) for i in range(1, count)] + [(1, 2)]
    triples = [(0, 1, i) for i in range(2, count)] + [(0, 2, 3), (1, 2, 3)]
    maps = probe.maps(_sets([(), *singles, *pairs], eligible, n_clients))
    noises = probe.noises(_sets(triples, eligible, n_clients)) - maps.noises[0]

    def parts(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        above = values[1:] - values[0]
        return above[:count], _from_pairs(above[count:])

    nobody = SetMaps(maps.slopes[:1], maps.offsets[:1], maps.noises[:1])
    reading = _Reading(
        nobody,
        _by_powers(*parts(maps.slopes)),
        _by_powers(*parts(maps.offsets)),
        _by_powers(*parts(maps.noises), _from_triples(noises)),
    )
    return reading, maps


def _sets(members: Sequence[tuple[int, ...]], eligible: ClientIndices, n_clients: int) -> Masks:
    masks = np.zeros((len(members), n_clients), dtype=bool)
    for mask, places in zip(masks, members, strict=True):
        mask[eligible[list(places)]] = True
    return masks


def _from_pairs(sums: FloatArray) -> FloatArray:
    """Return what each client adds to a set of two, from (0, 1), (0, 2), ..., and (1, 2)."""
    first = 0.5 * (sums[0] + sums[1] - sums[-1])
    return np.concatenate([first[None], sums[:-1] - first])


def _from_triples(sums: FloatArray) -> FloatArray:
    """Return what each client adds to a set of three.

    From (0, 1, 2), (0, 1, 3), ..., (0, 2, 3) and (1, 2, 3).
    """
    first_four = (sums[0] + sums[1] + sums[-2] + sums[-1]) / 3
    first, second = first_four - sums[-1], first_four - sums[-2]
    return np.concatenate([first[None], second[None], sums[:-2] - first - second])


def _by_powers(*adds: FloatArray) -> FloatArray:
    """Solve ``adds[k - 1] = sum_e c_e / k^e`` for c, one power a size; stacked."""
    sizes = np.arange(1.0, len(adds) + 1)
    inverse = np.linalg.inv(sizes[:, None] ** -np.arange(len(adds)))
    return np.concatenate([np.tensordot(row, np.stack(adds), axes=1) for row in inverse])


def _check(
    probe: Probe, participation: SizedInclusions, eligible: ClientIndices, reading: _Reading
) -> None:
    """Compare with drawn sets and with all clients; that rounds add them up is known already."""
    rng = np.random.default_rng(0)
    drawn = next(participation.masks(rng, _CHECKED_SETS))
    everybody = np.zeros(participation.n_clients, dtype=bool)
    everybody[eligible] = True
    masks = np.vstack([drawn, everybody[None]])
    predicted = reading.predicted(masks[:, eligible].astype(np.float64))
    probe.check(masks, predicted.slopes, predicted.offsets, rng)
    check_noises(probe.noises(masks), predicted.noises)

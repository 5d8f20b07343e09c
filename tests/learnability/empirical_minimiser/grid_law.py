"""The law of the empirical minimiser's excess error by quadrature, with noise.

Thresholds are put on a grid of K cells on each side of t*, and the number of samples is Poisson
with mean n. The empirical risk is then a random walk on either side whose step over a cell is a
difference of two independent Poisson numbers, wrong labels taken from right ones. No minimiser is
beyond given ends if and only if the minimum inside is below all values outside. With depth d of
that minimum, and for each side

    A(d) = P[values inside >= -d and values outside > -d],  B(d) = P[all values > -d],

its probability is the sum of ``A_left A_right - B_left B_right`` over d. A and B come from a
backward recursion over cells on the lattice of heights, its steps done by FFT.
"""

from __future__ import annotations

import numpy as np

from fltheory import validation
from fltheory.learnability.populations import Population, disagreement_at, excess_at
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_FAR_ENOUGH = 25.0
_DEVIATIONS = 5.0
_LEVELS = 64
_ROUNDING = 1e-9


class GridLaw(ReadOnlyArrays):
    """Law of the largest excess error on P among all empirical minimisers, on a grid.

    Parameters
    ----------
    target, training : Population
        P and Q; all their sources share one target.
    n : int
        Mean number of samples.
    cells : int
        On each side.

    Raises
    ------
    ValueError
        For sources with different targets, or fewer than 2 cells.
    """

    def __init__(
        self, target: Population, training: Population, n: int, *, cells: int = 160
    ) -> None:
        if len({*target.targets, *training.targets}) > 1:
            raise ValueError("target and training must have the same target in all their sources")
        validation.whole_number("n", n, at_least=1)
        validation.whole_number("cells", cells, at_least=2)
        self._sides = [_Walk(training, side, n, cells) for side in (-1, 1)]
        self._errors = [excess_at(target, walk.ends) for walk in self._sides]
        size = 1 << int(np.ceil(np.log2(max(walk.heights for walk in self._sides))))
        for walk in self._sides:
            walk.prepare(size)

    @property
    def levels(self) -> FloatArray:
        """Excess errors at the grid's ends, in order."""
        every = np.sort(np.concatenate(self._errors))
        apart = np.diff(every, prepend=-1.0) > _ROUNDING * every
        levels: FloatArray = every[apart]
        return levels

    def survival(self, excess: float) -> float:
        """Return ``P[excess error >= e]``, for e among `levels`.

        The end at which e is attained counts as outside: just beyond it the empirical risk is the
        same.
        """
        below = excess * (1 - _ROUNDING)
        inside = [int(np.searchsorted(errors, below)) - 1 for errors in self._errors]
        if min(inside) < 0:
            return 1.0
        (a, b), (c, d) = (
            (walk.staying(end), walk.above) for walk, end in zip(self._sides, inside, strict=True)
        )
        return float(np.clip(1 - (a @ c - b @ d), 0.0, 1.0))

    def mean(self) -> float:
        """Return the expected excess error, through a monotone interpolant of the survival."""
        from scipy.interpolate import PchipInterpolator

        every = max(1, self.levels.size // _LEVELS)
        levels = np.append(self.levels[:-1:every], self.levels[-1])
        values = np.array([self.survival(float(level)) for level in levels])
        return float(PchipInterpolator(levels, values).integrate(0.0, levels[-1]))


class _Walk:
    """The walk on one side, cell by cell."""

    def __init__(self, training: Population, side: int, n: int, cells: int) -> None:
        centre = float(training.best)
        edges = [float(place) for place in training.places if side * (place - training.best) > 0]
        farthest = max((abs(edge - centre) for edge in edges), default=0.0)
        distances = _window(training, side, n, farthest) * np.linspace(0, 1, cells + 1) ** 2
        self.ends = centre + side * distances
        mass = disagreement_at(training, self.ends)
        excess = excess_at(training, self.ends)
        drift = n * np.diff(excess)
        total = n * np.diff(mass)
        self._up, self._down = (total + drift) / 2, np.maximum(total - drift, 0.0) / 2
        spread = np.sqrt(total.sum())
        self.heights = 64 + 2 * _DEVIATIONS * spread + 4 * drift.max() + 4 * np.sqrt(total.max())

    def prepare(self, size: int) -> None:
        """Fix the lattice of heights, and run the recursion with all values above the floor."""
        self._size = size
        angles = 2 * np.pi * np.fft.rfftfreq(2 * size)
        turn = np.exp(1j * angles) - 1
        self._steps = [
            np.exp(up * turn + down * turn.conj())
            for up, down in zip(self._up, self._down, strict=True)
        ]
        values = np.ones(size)
        values[0] = 0.0
        self._outside = [values]
        for step in reversed(self._steps):
            values = self._back(values, step)
            values[0] = 0.0
            self._outside.append(values)
        self._outside.reverse()
        self.above = self._outside[0]

    def staying(self, end: int) -> FloatArray:
        """Return A over all depths, where the grid's values up to an end are inside."""
        if end + 1 < len(self._outside):
            values = self._back(self._outside[end + 1], self._steps[end])
        else:
            values = np.ones(self._size)
        for step in reversed(self._steps[:end]):
            values = self._back(values, step)
        return values

    def _back(self, values: FloatArray, step: np.ndarray) -> FloatArray:
        """Return the expectation of ``values`` a cell later, from each height."""
        padded = np.concatenate((values, np.full(self._size // 2, values[-1])))
        padded = np.concatenate((padded, np.zeros(2 * self._size - padded.size)))
        moved = np.fft.irfft(np.fft.rfft(padded) * step, 2 * self._size)[: self._size]
        return np.clip(moved, 0.0, 1.0)


def _window(training: Population, side: int, n: int, farthest: float) -> float:
    """Return a distance beyond which the walk's minimum lies with negligible probability."""
    centre = float(training.best)
    distances = farthest * np.geomspace(1e-9, 1, 2000)
    ends = centre + side * distances
    height = n * excess_at(training, ends)
    spread = np.sqrt(n * disagreement_at(training, ends))
    margin = np.minimum.reduce([source.margin(ends) for _, source in training.present])
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.log1p(margin) - np.log1p(-margin)
        enough = (height - _DEVIATIONS * spread) * np.minimum(rate, 50.0) > _FAR_ENOUGH
    return float(distances[np.argmax(enough)]) if enough.any() else farthest

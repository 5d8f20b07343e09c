"""Where a theorem applies, holds, is refuted, and how loose it is, over two parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.long_work.progress import Progress
from fltheory.read_only import ReadOnlyArrays
from fltheory.theorems import Family
from fltheory.validation import FloatArray
from fltheory.verify.check import check
from fltheory.verify.region.map_parameters import MapAxis, varied

_ALMOST_NOWHERE = 0.05


@dataclass(frozen=True)
class RegionMap(ReadOnlyArrays):
    """Verdicts over two parameters.

    Attributes
    ----------
    theorem, reading : str
    x, y : MapAxis
    verdicts : tuple of tuples of Verdict
        One row for each value of ``y``, one column for each of ``x``.
    """

    theorem: str
    reading: str
    x: MapAxis
    y: MapAxis
    verdicts: tuple[tuple[Verdict, ...], ...]

    @cached_property
    def looseness(self) -> FloatArray:
        """log10(bound/truth) of every cell, (len(y), len(x)); NaN where one is 0 or infinite."""
        return np.array([[_looseness(verdict) for verdict in row] for row in self.verdicts])

    def share(self, *outcomes: Outcome) -> float:
        """Return the share of cells with one of these verdicts."""
        cells = [verdict.outcome for row in self.verdicts for verdict in row]
        return sum(outcome in outcomes for outcome in cells) / len(cells)

    @property
    def summary(self) -> str:
        """How much of the map the theorem says anything about, in a line."""
        applies = 1 - self.share(Outcome.INAPPLICABLE)
        if not applies:
            return "applies nowhere on this map"
        where = "almost nowhere, " if applies < _ALMOST_NOWHERE else ""
        parts = (Outcome.HOLDS, Outcome.REFUTED, Outcome.UNDECIDED)
        found = {part.name: self.share(part) for part in parts}
        shares = ", ".join(f"{name} on {share:.1%}" for name, share in found.items() if share)
        return f"applies {where}on {applies:.1%} of the cells: {shares}"


@checks_kinds
def map_region(
    theorem: Statement,
    setting: Setting | Family,
    x: MapAxis,
    y: MapAxis,
    *,
    progress: Progress | None = None,
) -> RegionMap:
    """Check a theorem on a setting with two of its parameters varied.

    Parameters
    ----------
    theorem : Theorem
    setting : Setting or Family
        What stays as it is; of a family the other parameters' defaults.
    x, y : MapAxis
        Parameters: the family's, or of a setting see `parameters` and `varied`.
    progress : callable, optional
        Called with (cells done, cells, name of the next cell).

    Raises
    ------
    ValueError
        For a claimed order, a parameter that does not exist or that the setting does not
        have, twice the same one, or a value out of range.

    Examples
    --------
    >>> from fltheory import theorems
    >>> repaired = theorems.get("sa-fl/5", "repaired")
    >>> setting = repaired.regimes["q = 0"].setting
    >>> found = map_region(
    ...     repaired, setting, MapAxis("rounds", (10, 20)), MapAxis("q", (0.0, 1.0))
    ... )
    >>> [[verdict.outcome.name for verdict in row] for row in found.verdicts]
    [['HOLDS', 'HOLDS'], ['HOLDS', 'HOLDS']]
    """
    check_map(theorem, x, y)
    rows: list[tuple[Verdict, ...]] = []
    total = len(x.values) * len(y.values)
    for down, y_value in enumerate(y.values):
        row: list[Verdict] = []
        for across, x_value in enumerate(x.values):
            if progress is not None:
                name = f"{x.name} = {x_value:g}, {y.name} = {y_value:g}"
                progress(down * len(x.values) + across, total, name)
            point = setting_at(setting, {x.name: x_value, y.name: y_value})
            row.append(check(theorem, point))
        rows.append(tuple(row))
    return RegionMap(theorem.id, theorem.reading, x, y, tuple(rows))


def check_map(theorem: Statement, x: MapAxis, y: MapAxis) -> None:
    """Raise ValueError for what is no inequality, and for one parameter on both axes."""
    if theorem.axes:
        raise ValueError(f"theorem must be an inequality to be mapped, got {theorem.id}")
    if x.name == y.name:
        raise ValueError(f"y must be another parameter than x, got {y.name!r} twice")


def setting_at(setting: Setting | Family, values: Mapping[str, float]) -> Setting:
    """Return the setting of a point: a family's, or one with some parameters varied."""
    if isinstance(setting, Family):
        return setting.setting(**values)
    for name, value in values.items():
        setting = varied(setting, name, value)
    return setting


def _looseness(verdict: Verdict) -> float:
    if not (0 < verdict.truth < math.inf and 0 < verdict.bound < math.inf):
        return math.nan
    return math.log10(verdict.bound / verdict.truth)

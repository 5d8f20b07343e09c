"""Maps of where a theorem applies, holds or is refuted as two parameters of a setting vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.algorithms import Safari
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.long_work.progress import Progress
from fltheory.problems import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.theorems import Family
from fltheory.validation import FloatArray
from fltheory.verify.check import check
from fltheory.verify.search.setting_search import SettingNumber, numbers_of, with_numbers


@dataclass(frozen=True)
class MapAxis:
    """A parameter of a setting and the values it takes, in increasing order.

    Examples
    --------
    >>> MapAxis("q", (0.1, 0.5, 0.9))
    MapAxis(name='q', values=(0.1, 0.5, 0.9))
    """

    name: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        validation.text("name", self.name)
        validation.array_of("values", self.values, "n")

    def with_points(self, points: int) -> MapAxis:
        """Return an axis over the same range with this many values, spaced in the same way.

        If the values are integers, new ones are rounded to integers, so there may be fewer values.

        Examples
        --------
        >>> MapAxis("step", (0.01, 1.0, 100.0)).with_points(5).values
        (0.01, 0.1, 1.0, 10.0, 100.0)
        >>> MapAxis("rounds", (1.0, 3.0)).with_points(5).values
        (1.0, 2.0, 3.0)
        """
        points = validation.whole_number("points", points, at_least=2)
        own = np.array(self.values)
        by_factors = bool(own[0] > 0 and own[-1] / own[0] >= _BY_FACTORS)
        scale = np.log(own) if by_factors else own
        places = np.linspace(0, own.size - 1, points)
        found = np.interp(places, np.arange(own.size), scale)
        values = np.exp(found) if by_factors else found
        if (own == np.round(own)).all():
            values = np.round(values)
        else:
            # Return values as they would be printed on an axis, without the rounding errors of
            # logarithms.
            values = np.array([float(f"{value:.12g}") for value in values])
        values[[0, -1]] = own[[0, -1]]
        return MapAxis(self.name, tuple(dict.fromkeys(values.tolist())))


def varied(setting: Setting, name: str, value: float) -> Setting:
    """Return the setting with one parameter changed, along with everything coupled to it.

    Parameters
    ----------
    setting : Setting
    name : str
        One of `parameters`, or the path of any number of the setting, such as
        ``algorithm.server_lr``, or any ending of the path that is unique.
    value : float
        For an array, the factor by which all entries are multiplied; otherwise the new value.

    Raises
    ------
    ValueError
        If the parameter does not exist, the setting does not have it, or the value is out of range.

    Examples
    --------
    >>> from fltheory import theorems
    >>> setting = theorems.get("ca-fed/2").regimes["nu = 0.9"].setting
    >>> float(varied(setting, "problem.sigma", 3.0).problem.sigma)
    3.0
    """
    if name in _PARAMETERS:
        return _PARAMETERS[name][1](setting, value)
    number = _number(setting, name)
    return with_numbers(setting, {number.place: _at(number.value, value)})


def _at(own: Any, value: float) -> Any:
    if isinstance(own, tuple):
        return tuple(value * entry for entry in own)
    if isinstance(own, np.ndarray):
        return value * own
    return round(value) if isinstance(own, int) else float(value)


def _number(setting: Setting, name: str) -> SettingNumber:
    numbers = numbers_of(setting)
    found = [n for n in numbers if n.path == name or n.path.endswith(f".{name}")]
    if len(found) != 1:
        known = ", ".join(dict.fromkeys([*_PARAMETERS, *(number.path for number in numbers)]))
        raise ValueError(f"parameter must be one of {known}, got {name!r}")
    return found[0]


def with_parameters(start: Setting | Family, values: Mapping[str, float]) -> Setting | Family:
    """Return the setting with some parameters changed, or the family with new defaults.

    Raises
    ------
    ValueError
        If a parameter does not exist, or a value is out of range.
    """
    if not isinstance(start, Family):
        return setting_at(start, values)
    for name, value in values.items():
        own = start.parameter(name)
        if not own.low <= value <= own.high:
            raise ValueError(f"{name} must lie in [{own.low:g}, {own.high:g}], got {value:g}")
    changed = (replace(one, default=values.get(one.name, one.default)) for one in start.parameters)
    return replace(start, parameters=tuple(changed))


def parameters() -> Mapping[str, str]:
    """Return the parameters that can be varied, with their meanings."""
    return {name: meaning for name, (meaning, _, _) in _PARAMETERS.items()}


def default_axis(setting: Setting | Family, name: str) -> MapAxis:
    """Return a parameter with values around the setting's own, or over a family's range.

    Values that do not give a valid setting are left out.

    Raises
    ------
    ValueError
        If the parameter does not exist.
    """
    if isinstance(setting, Family):
        return MapAxis(name, tuple(dict.fromkeys(setting.parameter(name).axis)))
    if name in _PARAMETERS:
        return MapAxis(name, tuple(dict.fromkeys(_PARAMETERS[name][2](setting))))
    value = _number(setting, name).value
    if isinstance(value, int):
        values = [float(round(size)) for size in np.geomspace(1, 10 * max(value, 1), 13)]
    else:
        size = value if isinstance(value, float) and value > 0 else 1.0
        values = [size * factor for factor in _factors(setting)]
    return MapAxis(name, tuple(v for v in dict.fromkeys(values) if _makes(setting, name, v)))


def starting_point(statement: Statement, regime: str | None = None) -> Setting | Family:
    """Return the starting point of a map: the statement's family, or a regime's setting.

    Raises
    ------
    ValueError
        If there is neither a family nor a regime, no regime has that name, or the regimes are not
        about runs.
    """
    if regime is None and statement.family:
        return statement.family
    if not statement.regimes:
        raise ValueError(
            f"theorem must have a regime or a family to be mapped, got {statement.id}, which has "
            "neither"
        )
    first = next(iter(statement.regimes))
    usual = _USUAL_REGIME if _USUAL_REGIME in statement.regimes else first
    name = usual if regime is None else regime
    if name not in statement.regimes:
        known = ", ".join(statement.regimes)
        raise ValueError(f"regime must be one of {known}, got {name!r}")
    setting = statement.regimes[name].setting
    if not isinstance(setting, Setting):
        raise ValueError(
            f"theorem must be about runs of an algorithm to be mapped, got {statement.id}"
        )
    return setting


def default_axis_names(start: Setting | Family) -> tuple[str, str]:
    """Return the names of a map's default axes.

    For a family, these are its first two parameters. For a setting, they are the rounds and q. If
    the setting has no q, the second is the clients' step size or, failing that, the starting
    distance.
    """
    if isinstance(start, Family):
        first, *rest = start.defaults
        return first, rest[0] if rest else first
    for name in ("q", "client_lr"):
        try:
            axis = default_axis(start, name)
        except ValueError:
            continue
        if _makes(start, name, axis.values[0]):
            return name, "rounds"
    return "distance", "rounds"


def _makes(setting: Setting, name: str, value: float) -> bool:
    try:
        varied(setting, name, value)
    except ValueError:
        return False
    return True


def _safari(setting: Setting, name: str) -> Safari:
    if not isinstance(setting.algorithm, Safari):
        raise ValueError(f"{name} must be a parameter of the algorithm, got {setting.algorithm!r}")
    return setting.algorithm


def _vary_q(setting: Setting, value: float) -> Setting:
    return replace(setting, algorithm=replace(_safari(setting, "q"), q=value))


def _vary_rounds(setting: Setting, value: float) -> Setting:
    return replace(setting, rounds=int(value))


def _vary_local_steps(setting: Setting, value: float) -> Setting:
    safari = _safari(setting, "local_steps")
    client_lr = safari.client_lr * safari.local_steps / value
    varied = replace(safari, local_steps=int(value), client_lr=client_lr)
    return replace(setting, algorithm=varied)


def _vary_step(setting: Setting, value: float) -> Setting:
    safari = _safari(setting, "step")
    scaled = replace(safari, client_lr=value * safari.client_lr, assist_lr=value * safari.assist_lr)
    return replace(setting, algorithm=scaled)


def _vary_distance(setting: Setting, value: float) -> Setting:
    x_star = setting.problem.x_star
    return replace(setting, x0=x_star + value * (setting.x0 - x_star))


def _vary_heterogeneity(setting: Setting, value: float) -> Setting:
    problem = setting.problem
    if not isinstance(problem, QuadraticProblem):
        raise ValueError(f"heterogeneity must belong to a QuadraticProblem, got {problem!r}")
    spread = replace(problem, optima=problem.x_star + value * (problem.optima - problem.x_star))
    return replace(setting, problem=spread)


def _factors(setting: Setting) -> tuple[float, ...]:
    return tuple(float(factor) for factor in np.geomspace(0.01, 100, 13))


def _rounds(setting: Setting) -> tuple[float, ...]:
    return tuple(float(round(r)) for r in np.geomspace(1, 10 * setting.rounds, 13))


_PARAMETERS: Mapping[
    str,
    tuple[str, Callable[[Setting, float], Setting], Callable[[Setting], tuple[float, ...]]],
] = {
    "q": (
        "probability of a client round",
        _vary_q,
        lambda setting: tuple(float(q) for q in np.linspace(0, 1, 13)),
    ),
    "rounds": ("communication rounds R", _vary_rounds, _rounds),
    "local_steps": (
        "local steps K, with eta_c K fixed",
        _vary_local_steps,
        lambda setting: (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0),
    ),
    "step": ("factor on both step sizes", _vary_step, _factors),
    "distance": ("factor on x0 - x*", _vary_distance, _factors),
    "heterogeneity": (
        "factor on the clients' optima, and so on sigma_G",
        _vary_heterogeneity,
        _factors,
    ),
}

_ALMOST_NOWHERE = 0.05
_USUAL_REGIME = "biased minority excluded"
# Over a wider range, values are spaced by a constant factor.
_BY_FACTORS = 50


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
        """log10(bound/truth) per cell, (len(y), len(x)); NaN where either side is 0 or infinite."""
        return np.array([[_looseness(verdict) for verdict in row] for row in self.verdicts])

    def share(self, *outcomes: Outcome) -> float:
        """Return the share of cells with one of these verdicts."""
        cells = [verdict.outcome for row in self.verdicts for verdict in row]
        return sum(outcome in outcomes for outcome in cells) / len(cells)

    @property
    def summary(self) -> str:
        """A line that says how much of the map the theorem covers, with the counts of verdicts."""
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
        The setting in which all other numbers stay fixed. In a family, the other parameters have
        their default values.
    x, y : MapAxis
        Parameters of the family, or of the setting (see `parameters` and `varied`).
    progress : callable, optional
        Called with (cells done, cells, name of the next cell).

    Raises
    ------
    ValueError
        If the theorem is a claimed order, a parameter does not exist, the setting does not have it,
        both axes have the same parameter, or a value is out of range.

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
    """Raise ValueError if the theorem is not an inequality, or both axes are the same."""
    if theorem.axes:
        raise ValueError(f"theorem must be an inequality to be mapped, got {theorem.id}")
    if x.name == y.name:
        raise ValueError(f"y must differ from x, got {y.name!r} for both")


def setting_at(setting: Setting | Family, values: Mapping[str, float]) -> Setting:
    """Return the setting at a point: from a family, or with some parameters varied."""
    if isinstance(setting, Family):
        return setting.setting(**values)
    for name, value in values.items():
        setting = varied(setting, name, value)
    return setting


def _looseness(verdict: Verdict) -> float:
    if not (0 < verdict.truth < math.inf and 0 < verdict.bound < math.inf):
        return math.nan
    return math.log10(verdict.bound / verdict.truth)

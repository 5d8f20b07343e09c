"""The design of a sweep in TOML: a setting, statements, and values for parts of the setting.

The file is a setting's file (`fltheory.engines.setting_file`) with additional entries::

    statements = ["scaffold/convex", "sa-fl"]   # ids, or beginnings of ids
    readings = ["printed", "derived"]           # all by default
    seed = 0
    replicas = 2000                             # of what is sampled

    [grid]                                      # every combination
    rounds = [10, 100]
    algorithm.client_lr = [0.1, 0.01]
    "participation.size, algorithm.local_steps" = [[1, 10], [5, 2]]   # values that go together

    [random]                                    # with every combination, `count` random draws
    count = 20
    seed = 1
    algorithm.q = {from = 0.0, to = 1.0}         # 0 and 1 without points: whole numbers
    problem.sigma = {from = 0.01, to = 10, scale = "log"}
    x0 = [0, 1]

A whole part can also be an axis, ``[[grid.problem]]``. An axis is ignored for parts that do not
have its argument.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fltheory import validation
from fltheory.claims.statement import Statement
from fltheory.engines.setting_file import SETTING_KEYS, argument_names
from fltheory.files.read_file import toml_of
from fltheory.files.tables import check_names
from fltheory.sweep.cell import Checks, Files, WorkCell, digest
from fltheory.theorems.registry import registered

_DRAWN = "random"
_TABLES = ("grid", _DRAWN)
_LEAST = {"seed": 0, "replicas": 1}
_OPTIONS = tuple(_LEAST)
_KEYS = ("statements", "readings", *_OPTIONS, *_TABLES, *SETTING_KEYS)
_PARTS = SETTING_KEYS[2:]
_RANGE = ("from", "to", "scale")
_SCALES = ("linear", "log")
_MOST = 10_000_000

Names = tuple[str, ...]
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Choices:
    """An axis: paths in the setting, and the values that they take together.

    Attributes
    ----------
    paths : tuple of str
        Dotted paths, such as ``algorithm.client_lr``.
    values : tuple of tuples
        Tuples with one value for every path.
    """

    paths: Names
    values: tuple[Values, ...]

    def at(self, share: float) -> Values:
        """Return the values that correspond to a share in [0, 1)."""
        return self.values[int(share * len(self.values))]


@dataclass(frozen=True)
class DrawnRange:
    """An axis of random draws between two numbers, or between two integers, ends included.

    Attributes
    ----------
    paths : tuple of str
        One.
    low, high : float or int
    logarithmic : bool
        Whether draws are uniform on a logarithmic scale.
    """

    paths: Names
    low: float
    high: float
    logarithmic: bool = False

    def at(self, share: float) -> Values:
        """Return the values at a share of the way from ``low`` to ``high``."""
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        # Each integer gets the interval of length one that begins at it; both ends can be drawn.
        high = self.high + 1 if whole else self.high
        if self.logarithmic:
            value = math.exp((1 - share) * math.log(self.low) + share * math.log(high))
        else:
            value = self.low + share * (high - self.low)
        value = min(max(value, self.low), self.high)
        return (int(value) if whole else value,)


@dataclass(frozen=True)
class Design:
    """The numbered settings of a sweep, and the statements to check on each.

    Attributes
    ----------
    statements : tuple of Statement
    base : dict
        The common part of all settings, with ``seed`` and ``replicas``.
    grid : tuple of Choices
    drawn : tuple of Choices or DrawnRange
    count : int
        Random draws for each combination of the grid.
    seed : int
        Seed of the draws. The first draws stay the same if ``count`` is increased.
    """

    statements: tuple[Statement, ...]
    base: Mapping[str, Any]
    grid: tuple[Choices, ...] = ()
    drawn: tuple[Choices | DrawnRange, ...] = ()
    count: int = 1
    seed: int = 0

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.grid) * self.count

    @property
    def n_cells(self) -> int:
        """Number of cells, counting equal cells as often as they occur."""
        return len(self) * len(self.statements)

    def task(self, number: int, files: Files = ()) -> Checks:
        """Return the cells on the setting with a number below ``len(self)``."""
        document = self.document(number)
        seed, replicas = (document.pop(name) for name in _OPTIONS)
        of_files = digest(files)
        return Checks(
            tuple(
                WorkCell(statement.id, statement.reading, document, seed, replicas, of_files)
                for statement in self.statements
            ),
            files,
        )

    def document(self, number: int) -> dict[str, Any]:
        """Return the setting with a number, including ``seed`` and ``replicas``."""
        chosen: dict[str, Any] = {}
        rest, draw = divmod(number, self.count)
        for axis in reversed(self.grid):
            rest, place = divmod(rest, len(axis.values))
            chosen |= zip(axis.paths, axis.values[place], strict=True)
        for drawn in self.drawn:
            # One generator per axis, so that adding an axis or more draws does not change the
            # others.
            share = random.Random(f"{self.seed} {draw} {', '.join(drawn.paths)}").random()
            chosen |= zip(drawn.paths, drawn.at(share), strict=True)
        document = dict(self.base)
        # Whole parts come before the values inside them.
        for path in sorted(chosen, key=lambda path: path.count(".")):
            _put(document, path.split("."), chosen[path])
        return document


def read_sweep(path: Path | str) -> Design:
    """Read the design of a sweep from a TOML file.

    Raises
    ------
    ValueError
        If there is no such file, it is not TOML, or an entry is unknown or missing. The message
        begins with the file's name.

    Examples
    --------
    >>> read_sweep("nowhere.toml")
    Traceback (most recent call last):
    ValueError: file of a sweep must exist, got 'nowhere.toml'
    """
    document = toml_of("file of a sweep must exist", path)
    try:
        return design_of(document)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def design_of(document: Mapping[str, Any]) -> Design:
    """Return the design that a document describes.

    Raises
    ------
    ValueError
        If it has unknown or missing entries.

    Examples
    --------
    >>> design = design_of({
    ...     "statements": ["sa-fl/5"], "readings": ["printed"], "x0": 1.0,
    ...     "problem": {"kind": "QuadraticProblem", "hessians": [[1.0]], "optima": [[0.0]]},
    ...     "algorithm": {"kind": "FedAvg", "client_lr": 0.1, "local_steps": 2},
    ...     "participation": {"kind": "UniformSubset", "n_clients": 1, "size": 1},
    ...     "grid": {"rounds": [1, 10], "algorithm": {"client_lr": [0.1, 0.2, 0.3]}},
    ... })
    >>> len(design), design.document(4)["algorithm"]["client_lr"]
    (6, 0.2)
    """
    check_names("the file", document, _KEYS, ["statements"])
    try:
        json.dumps(document)
    except TypeError as error:
        raise ValueError(f"values must be numbers, texts, lists and tables: {error}") from error
    base = {"seed": 0, "replicas": 2000}
    base |= {name: document[name] for name in (*_OPTIONS, *SETTING_KEYS) if name in document}
    draws = dict(_table(document, _DRAWN))
    count, seed = (draws.pop(name, default) for name, default in (("count", None), ("seed", 0)))
    if _DRAWN in document and not draws:
        raise ValueError(f"{_DRAWN} must say what is drawn, got only its count and seed")
    if draws and count is None:
        raise ValueError(f"{_DRAWN} must have count, got {', '.join(draws)}")
    validation.whole_number(f"count of {_DRAWN}", 1 if count is None else count, at_least=1)
    validation.whole_number(f"seed of {_DRAWN}", seed, at_least=0)
    design = Design(
        _statements(document),
        base,
        tuple(_choices("grid", name, value) for name, value in _leaves(_table(document, "grid"))),
        tuple(_drawn(name, value) for name, value in _leaves(draws)),
        1 if count is None else count,
        seed,
    )
    for name in _OPTIONS:
        for value in _given(design, name):
            validation.whole_number(name, value, at_least=_LEAST[name])
    _check_places(design)
    if design.n_cells > _MOST:
        raise ValueError(f"the number of cells must be at most {_MOST}, got {design.n_cells}")
    return design


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, Mapping):
        raise ValueError(f"{name} must be a table of axes, got {table!r}")
    return table


def _statements(document: Mapping[str, Any]) -> tuple[Statement, ...]:
    """Return the named statements about runs, in the named readings."""
    beginnings, readings = document["statements"], document.get("readings")
    for name, given in (("statements", beginnings), ("readings", readings or ["any"])):
        if not (isinstance(given, list) and given and all(isinstance(one, str) for one in given)):
            raise ValueError(f"{name} must be a list of texts, got {given!r}")
    named = [one for one in registered(*beginnings) if one.fields_of_run() and not one.axes]
    known = dict.fromkeys(one.reading for one in named)
    if not known:
        raise ValueError(
            f"statements must be inequalities along a run, got {', '.join(beginnings)}"
        )
    check_names("statements", readings or (), tuple(known))
    return tuple(one for one in named if one.reading in (readings or known))


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield axes by their full name: ``algorithm.q`` may be a key or a table in a table."""
    for name, value in table.items():
        if isinstance(value, Mapping) and not value.keys() & {"from", "to"}:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _choices(table: str, name: str, value: Any) -> Choices:
    paths = tuple(path.strip() for path in name.split(","))
    if not isinstance(value, list) or not value:
        raise ValueError(f"{name} of {table} must be a list of values, got {value!r}")
    if len(paths) == 1:
        return Choices(paths, tuple((one,) for one in value))
    for one in value:
        if not isinstance(one, list) or len(one) != len(paths):
            raise ValueError(
                f"{name} of {table} must be lists of {len(paths)} values each, got {one!r}"
            )
    return Choices(paths, tuple(map(tuple, value)))


def _drawn(name: str, value: Any) -> Choices | DrawnRange:
    if not isinstance(value, Mapping):
        return _choices(_DRAWN, name, value)
    place = f"{name} of {_DRAWN}"
    check_names(place, value, _RANGE, _RANGE[:2])
    low, high, scale = value["from"], value["to"], value.get("scale", _SCALES[0])
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise ValueError(f"{place} must go from a number to a number, got {end!r}")
    if scale not in _SCALES:
        raise ValueError(f"scale of {place} must be {' or '.join(_SCALES)}, got {scale!r}")
    if not low <= high:
        raise ValueError(f"{place} must go from the smaller number, got {low} to {high}")
    if scale == "log" and low <= 0:
        raise ValueError(f"{place} must be positive for a logarithmic scale, got {low}")
    return DrawnRange((name,), low, high, scale == "log")


def _check_places(design: Design) -> None:
    """Raise ValueError for an axis that fits no part of the design, or that occurs twice."""
    axes = (*design.grid, *design.drawn)
    seen: set[str] = set()
    for path in (path for axis in axes for path in axis.paths):
        if path in seen:
            raise ValueError(f"an axis must be given once, got {path!r} twice")
        seen.add(path)
        head, _, rest = path.partition(".")
        check_names("a sweep", [head], (*SETTING_KEYS, *_OPTIONS))
        if rest:
            _check_place(path, [head], rest.split("."), _given(design, head))
    missing = [name for name in SETTING_KEYS if name not in design.base and name not in seen]
    if missing:
        raise ValueError(f"the file must have {missing[0]}, or an axis of that name")


def _given(design: Design, path: str) -> list[Any]:
    """Return every value that a key may have: its own in the file, and those of its axis."""
    found = [design.base[path]] if path in design.base else []
    for axis in (*design.grid, *design.drawn):
        if path in axis.paths:
            ends = axis.values if isinstance(axis, Choices) else ((axis.low,), (axis.high,))
            found += [values[axis.paths.index(path)] for values in ends]
    return found


def _check_place(path: str, above: Sequence[str], rest: Sequence[str], parts: list[Any]) -> None:
    """Raise ValueError for a path that exists in none of the given parts."""
    name, *further = rest
    tables = [part for part in parts if isinstance(part, Mapping)]
    if above[0] not in _PARTS or not tables:
        raise ValueError(f"axis must name an argument of a part, got {path!r}")
    known = dict.fromkeys(one for table in tables for one in argument_names(".".join(above), table))
    check_names(".".join(above), [name], tuple(known))
    if further:
        _check_place(path, [*above, name], further, [t[name] for t in tables if name in t])


def _put(document: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set the value at a path, copying the tables along it."""
    table = document
    for depth, name in enumerate(path[:-1], start=1):
        if not isinstance(table.get(name), Mapping):
            return
        table[name] = copy(table[name])
        table = table[name]
        if path[depth] not in argument_names(".".join(path[:depth]), table):
            return
    table[path[-1]] = value

"""Settings as TOML files, which users write or searches find, and which every command reads.

A part is a table with its ``kind``, which is the name of a class of this package, and that class's
arguments by name::

    rounds = 300
    x0 = 0.9

    [problem]
    kind = "QuadraticProblem"
    hessians = [[1.0]]
    optima = [[-1.0], [1.0], [3.0]]

    [algorithm]
    kind = "Safari"
    q = "1/20"
    ...

    [participation]
    kind = "UniformSubset"
    n_clients = 3
    size = 1

A witness may name the statement that it refutes, which does not change the setting::

    [refutes]
    theorem = "my/1"
    reading = "printed"

Fractions are written as strings. Classes of a loaded file ``my_theorem.py`` are called
``my_theorem.NAME``.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from fltheory import algorithms, participation, problems, validation
from fltheory.argument_kinds import checks_kinds
from fltheory.decimals import written_fraction
from fltheory.engines.setting import Setting
from fltheory.files.read_file import toml_of
from fltheory.files.tables import check_names, made, wrong_names
from fltheory.files.user_file import LOADED_FILE
from fltheory.files.whole_file import write_whole
from fltheory.participation import Participation

SETTING_KEYS = ("rounds", "x0", "problem", "algorithm", "participation")
"""The keys of a setting's file: its rounds, its start and its parts."""

_REFUTES = "refutes"
_CLIENTS = "clients"
_PARTS = {"problem": problems, "algorithm": algorithms, "participation": participation}
_FRACTION = re.compile(r"[-+]?\d+(\.\d*)?/\d+|[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Refutes:
    """The statement that a setting kept as a witness refutes.

    Attributes
    ----------
    theorem, reading : str
        A statement's id and reading.

    Raises
    ------
    ValueError
        If one of them is not a string.
    """

    theorem: str
    reading: str = "printed"

    def __post_init__(self) -> None:
        validation.text("theorem", self.theorem)
        validation.text("reading", self.reading)


def read_setting(path: Path | str) -> Setting:
    """Read a setting from a TOML file.

    Raises
    ------
    ValueError
        If there is no such file, it is not TOML, or an entry is unknown, missing or out of range.
        The message begins with the file's name.

    Examples
    --------
    >>> import tempfile
    >>> from fltheory import theorems
    >>> setting = theorems.get("sa-fl/5").regimes["other units"].setting
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_setting(Path(folder) / "units.toml", setting)
    ...     read_setting(Path(folder) / "units.toml").algorithm == setting.algorithm
    True
    """
    return read_witness(path)[0]


def read_witness(path: Path | str) -> tuple[Setting, Refutes | None]:
    """Read a setting as `read_setting` does, with the statement that its file says it refutes."""
    document = toml_of("file of a setting must exist", path)
    try:
        return setting_of(document), refutes_in(document)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def refutes_in(document: Mapping[str, Any]) -> Refutes | None:
    """Return the statement that a setting's document says it refutes, or None if there is none.

    Raises
    ------
    ValueError
        If the table ``[refutes]`` has a different form.
    """
    table = document.get(_REFUTES)
    if table is None:
        return None
    if not isinstance(table, Mapping):
        raise ValueError(f"{_REFUTES} must be a table with a theorem, got {table!r}")
    return made(Refutes, table, _REFUTES)


@checks_kinds
def write_setting(path: Path | str, setting: Setting, refutes: Refutes | None = None) -> None:
    """Write a setting as a TOML file, atomically; every number is read back exactly.

    Parameters
    ----------
    path : Path
    setting : Setting
    refutes : Refutes, optional
        The statement against which the setting is a witness.

    Raises
    ------
    ValueError
        If it is not a setting, or a part cannot be written because it has a function among its
        arguments, is a problem made of samples, or is of a class that no loaded file defines.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fltheory import theorems
    >>> setting = theorems.get("sa-fl/5").regimes["q = 0"].setting
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "setting.toml"
    ...     write_setting(path, setting)
    ...     read_setting(path).rounds == setting.rounds
    True
    """
    document = setting_document(setting)
    if refutes is not None:
        document[_REFUTES] = asdict(refutes)
    write_whole(validation.path("path", path), tomli_w.dumps(document, indent=2))


def setting_document(setting: Setting) -> dict[str, Any]:
    """Return the document that `write_setting` writes for a setting without ``refutes``."""
    return {
        "rounds": setting.rounds,
        "x0": setting.x0.tolist(),
        **{name: _written(name, getattr(setting, name)) for name in _PARTS},
    }


def write_participation(path: Path, process: Participation, clients: Sequence[str] = ()) -> None:
    """Write a participation process as the table ``[participation]`` of a setting's file.

    Parameters
    ----------
    path : Path
    process : Participation
    clients : sequence of str, optional
        Names of the clients, written before the table.

    Raises
    ------
    ValueError
        If the process is not described by numbers.
    """
    names = {_CLIENTS: list(clients)} if clients else {}
    table = _written("participation", process)
    write_whole(path, tomli_w.dumps({**names, "participation": table}))


def read_participation(path: Path) -> tuple[Participation, tuple[str, ...]]:
    """Read a participation process, and the clients' names if present, from a TOML file.

    Raises
    ------
    ValueError
        If there is no such file, or no table ``[participation]`` in it. The message begins with the
        file's name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "process.toml"
    ...     write_participation(file, participation.Bernoulli([0.5, 1.0]), ["ann", "bob"])
    ...     read_participation(file)
    (Bernoulli(2 clients), ('ann', 'bob'))
    """
    document = toml_of("file of a process must exist", path)
    try:
        check_names("the file", document, (*SETTING_KEYS, _REFUTES, _CLIENTS), ["participation"])
        process = _part("participation", document["participation"])
        names = document.get(_CLIENTS, [])
        if not isinstance(names, list) or len(names) not in (0, process.n_clients):
            raise ValueError(f"{_CLIENTS} must be {process.n_clients} names, got {names!r}")
        for name in names:
            validation.text(_CLIENTS, name)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error
    return process, tuple(names)


def _written(place: str, value: Any) -> Any:
    """Return a value in a form that TOML can represent, without entries that are None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    match value:
        case bool() | int() | float() | str():
            return value
        case Fraction():
            return str(value)
        case list() | tuple():
            return [_written(place, item) for item in value]
    kind = type(value)
    name = _name_of(kind)
    if name is None or not _is_rebuilt(kind):
        raise ValueError(f"{place} must consist of numbers to be written, got {value!r}")
    arguments = {
        argument: _written(f"{place}.{argument}", getattr(value, argument))
        for argument in inspect.signature(kind).parameters
        if getattr(value, argument) is not None
    }
    return {"kind": name, **arguments}


def _name_of(kind: type) -> str | None:
    """Return the name of a class of this package or of a loaded file, otherwise None."""
    if kind in (getattr(package, kind.__name__, None) for package in _PARTS.values()):
        return kind.__name__
    if kind.__module__.startswith(LOADED_FILE):
        return f"{kind.__module__.removeprefix(LOADED_FILE)}.{kind.__name__}"
    return None


def _is_rebuilt(kind: type) -> bool:
    """Return whether objects of a class can be rebuilt from their fields."""
    fields = getattr(kind, "__dataclass_fields__", {})
    return bool(fields) and set(inspect.signature(kind).parameters) <= set(fields)


def setting_of(document: Mapping[str, Any]) -> Setting:
    """Return the setting that a document describes.

    Raises
    ------
    ValueError
        If an entry is unknown, missing or out of range.
    """
    complaints = wrong_names("the file", document, (*SETTING_KEYS, _REFUTES), SETTING_KEYS)
    parts = {}
    for name in _PARTS:
        try:
            if name in document:
                parts[name] = _part(name, document[name])
        except ValueError as error:
            complaints.append(str(error))
    if complaints:
        # All errors are reported together, so that the file can be corrected at once.
        raise ValueError("; ".join(complaints))
    x0 = document["x0"]
    if isinstance(x0, int | float) and not isinstance(x0, bool):
        x0 = [x0] * parts["problem"].dim
    return Setting(**parts, rounds=document["rounds"], x0=x0)


def _part(name: str, table: Any) -> Any:
    if not isinstance(table, Mapping):
        raise ValueError(f"{name} must be a table with its kind, got {table!r}")
    return _made(name, table, _PARTS[name])


def argument_names(place: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the entries that the table of a part may have, with ``kind`` first.

    Parameters
    ----------
    place : str
        Position of the table, such as ``algorithm`` or ``algorithm.step_sizes``.
    table : dict

    Raises
    ------
    ValueError
        If ``kind`` is missing or unknown.
    """
    package = _PARTS.get(place, algorithms)
    return ("kind", *_parameters(_kind(place, table, package)))


@cache
def _parameters(kind: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(kind).parameters


def _made(place: str, table: Mapping[str, Any], package: Any) -> Any:
    kind = _kind(place, table, package)
    return made(kind, table, place, read=_read, key="kind")


def _kind(place: str, table: Mapping[str, Any], package: Any) -> Callable[..., Any]:
    """Return the class or function that makes a part."""
    if "kind" not in table:
        raise ValueError(f"{place} must have a kind, got {', '.join(table) or 'nothing'}")
    name = table["kind"]
    if isinstance(name, str) and name.count(".") == 1:
        stem, attribute = name.split(".")
        found = getattr(sys.modules.get(f"{LOADED_FILE}{stem}"), attribute, None)
        if inspect.isclass(found) and _is_rebuilt(found):
            return found
        raise ValueError(
            f"kind of {place} must come from a loaded file, got {name!r}: fltheory --load {stem}.py"
        )
    known = _kinds(package)
    if not isinstance(name, str) or name not in known:
        near = get_close_matches(str(name), known, n=3, cutoff=0.5) or known
        raise ValueError(f"kind of {place} must be one of {', '.join(near)}, got {name!r}")
    return known[name]


@cache
def _kinds(package: Any) -> Mapping[str, Callable[..., Any]]:
    """Return the classes and functions that make parts of a setting, by name."""
    # Balls and step sizes can be parts of an algorithm, too.
    packages = (package,) if package is not algorithms else (algorithms, problems)
    named = {name: getattr(one, name) for one in reversed(packages) for name in one.__all__}
    return {name: one for name, one in named.items() if _makes(one)}


def _makes(candidate: Any) -> bool:
    return _is_rebuilt(candidate) if inspect.isclass(candidate) else inspect.isfunction(candidate)


def _read(place: str, value: Any) -> Any:
    """Convert an argument: strings to fractions, lists to tuples, and tables to objects."""
    match value:
        case str() if _FRACTION.fullmatch(value):
            try:
                return written_fraction(value)
            except ValueError as error:
                raise ValueError(f"{place} must be a number, got {value[:60]!r}: {error}") from None
        case list():
            return tuple(_read(place, item) for item in value)
        case Mapping():
            return _made(place, value, algorithms)
    return value

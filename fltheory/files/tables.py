"""Making objects from the tables of a user's file, checking for unknown and missing entries.

Settings, experiments and sweeps are all read by `made`. A table's keys are the arguments of its
factory, and an error about a key begins with the key's full name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any, TypeVar

Made = TypeVar("Made")
Table = Mapping[str, Any]


def made(
    factory: Callable[..., Made],
    options: Table,
    where: str,
    *,
    told: Table | None = None,
    read: Callable[[str, Any], Any] | None = None,
    key: str | None = None,
) -> Made:
    """Return ``factory(**told, **options)``.

    Parameters
    ----------
    factory : callable
    options : table
        The content of the table.
    where : str
        The table's name, or empty for the whole file.
    told : table, optional
        Arguments that the file must not set.
    read : callable, optional
        Converts an option for the factory, given its full name and its value.
    key : str, optional
        The key that chose the factory. It must be in the table, and is not passed on.

    Raises
    ------
    ValueError
        If the table has an option that ``factory`` does not have, a required option is missing, or
        ``factory`` refuses a value.

    Examples
    --------
    >>> from fractions import Fraction
    >>> made(Fraction, {"numerator": 1, "denominater": 2}, "share")
    Traceback (most recent call last):
    ValueError: share has denominator, got 'denominater'
    """
    parameters = signature(factory).parameters.values()
    free = [one.name for one in parameters if one.name not in (told or {})]
    required = [one.name for one in parameters if one.default is Parameter.empty]
    required = [name for name in required if name in free]
    keys = [] if key is None else [key]
    check_names(where or "the file", options, [*keys, *free], [*keys, *required])
    options = {name: value for name, value in options.items() if name != key}
    if read is not None:
        options = {name: read(f"{where}.{name}", value) for name, value in options.items()}
    try:
        return factory(**(told or {}), **options)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(_placed(where, free, str(error))) from error


def _placed(where: str, names: Sequence[str], complaint: str) -> str:
    """Return an error message prefixed by the table's name, or by the key's full name."""
    if not where:
        return complaint
    first = re.match(r"\w*", complaint)
    return f"{where}{'.' if first and first[0] in names else ': '}{complaint}"


def made_by_kind(factories: Mapping[str, Callable[..., Made]], options: Any, where: str) -> Made:
    """Return the object that the factory named by ``kind`` makes from the other options."""
    options = checked_table(options, where)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in factories:
        known = ", ".join(factories)
        raise ValueError(f"{where}.kind must be one of {known}, got {kind!r}")
    return made(factories[kind], options, where)


def checked_table(value: Any, where: str) -> dict[str, Any]:
    """Return a table as a dictionary; raise ValueError if it is something else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} must be a table, got {value!r}")
    return dict(value)


def checked_flag(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")


def merged(base: Table, changes: Table) -> dict[str, Any]:
    """Return ``base`` updated by ``changes``, table by table.

    A table with a new ``kind`` or ``name`` replaces the old table entirely.
    """
    result = dict(base)
    for key, value in changes.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping) and _alike(before, value):
            result[key] = merged(before, value)
        else:
            result[key] = value
    return result


def _alike(before: Table, changes: Table) -> bool:
    return all(
        word not in changes or changes[word] == before.get(word) for word in ("kind", "name")
    )


def check_names(
    place: str, table: Iterable[str], known: Sequence[str], required: Sequence[str] = ()
) -> None:
    """Raise ValueError for unknown names, suggesting the nearest one, and for missing names.

    Examples
    --------
    >>> check_names("training", ["round"], ["rounds", "client_lr"])
    Traceback (most recent call last):
    ValueError: training has rounds, got 'round'
    """
    complaints = wrong_names(place, tuple(table), known, required)
    if complaints:
        raise ValueError("; ".join(complaints))


def wrong_names(
    place: str, table: Collection[str], known: Sequence[str], required: Sequence[str]
) -> list[str]:
    """Return messages about a table's unknown and missing names."""
    complaints = []
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, n=2, cutoff=0.5) or known
            complaints.append(f"{place} has {', '.join(near)}, got {name!r}")
    missing = [name for name in required if name not in table]
    if missing:
        given = ", ".join(table) or "nothing"
        complaints.append(f"{place} must have {', '.join(missing)}, got {given}")
    return complaints

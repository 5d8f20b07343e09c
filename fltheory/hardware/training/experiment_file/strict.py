"""Objects made from tables of a TOML file, with nothing unknown and nothing missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar

from fltheory.files.tables import check_names

Made = TypeVar("Made")
Table = Mapping[str, Any]


def made(
    factory: Callable[..., Made], options: Table, where: str, *, told: Table | None = None
) -> Made:
    """Return ``factory(**told, **options)``.

    ``where`` is the name of the table, empty for the file itself. What is told is not among the
    options that the file may set.

    Raises
    ------
    ValueError
        For an option that ``factory`` does not have, one that it needs and is not there, or one
        that it refuses; the message begins with the table's name.
    """
    parameters = signature(factory).parameters.values()
    free = [one for one in parameters if one.name not in (told or {})]
    required = [one.name for one in free if one.default is Parameter.empty]
    check_names(where or "the file", options, [one.name for one in free], required)
    try:
        return factory(**(told or {}), **options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}.{error}" if where else str(error)) from error


def made_by_kind(
    factories: Mapping[str, Callable[..., Made]], options: Any, where: str, key: str = "kind"
) -> Made:
    """Return what the factory named by ``options[key]`` makes of the other options."""
    options = checked_table(options, where)
    kind = options.get(key)
    if not isinstance(kind, str) or kind not in factories:
        known = ", ".join(factories)
        raise ValueError(f"{where}.{key} must be one of {known}, got {kind!r}")
    return made(
        factories[kind], {name: value for name, value in options.items() if name != key}, where
    )


def checked_table(value: Any, where: str) -> dict[str, Any]:
    """Return a table as a dictionary; ValueError if it is something else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} must be a table, got {value!r}")
    return dict(value)


def checked_flag(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")


def merged(base: Table, changes: Table) -> dict[str, Any]:
    """Return ``base`` with ``changes``, table by table.

    A table with another ``kind`` or ``name`` than before is taken whole.
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

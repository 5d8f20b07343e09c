"""Find the arrays reachable from an object, and whether they can be written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp


def can_be_written_to(array: np.ndarray) -> bool:
    """Whether the array, or the memory that it is a view of, can be written to."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return not (owner is None or isinstance(owner, bytes))


Found = tuple[str, np.ndarray]


def arrays_in(value: object, place: str, seen: dict[int, object]) -> Iterator[Found]:
    """Yield every array reachable from a value through attributes and containers."""
    if isinstance(value, np.ndarray):
        yield place, value
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            yield from arrays_in(item, f"{place}[{key}]", seen)
    elif isinstance(value, sp.Basic):  # a symbol of a statement: formulas contain no arrays
        return
    elif type(value).__module__.startswith("fltheory.") and id(value) not in seen:
        seen[id(value)] = value
        for name in _attributes(value):
            try:
                attribute = getattr(value, name)
            except (ValueError, ArithmeticError):
                continue
            yield from arrays_in(attribute, f"{place}.{name}", seen)


def _attributes(value: object) -> Iterator[str]:
    names = set(vars(value)) if hasattr(value, "__dict__") else set()
    if is_dataclass(value):
        names |= {item.name for item in fields(value)}
    for kind in type(value).__mro__:
        properties = (property, cached_property)
        names |= {name for name, item in vars(kind).items() if isinstance(item, properties)}
    yield from sorted(name for name in names if not name.startswith("_"))

"""Read-only arrays.

A problem's optimum, a trajectory or a cached marginal is returned as the array that later
computations use, so writing to it would change unrelated results. A class that stores or returns
arrays inherits from `ReadOnlyArrays`, and a function that caches its result passes it through
`read_only`. Single attributes need no extra code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np

T = TypeVar("T")

_SCALARS = frozenset({"bool", "float", "int", "str"})


def read_only(value: T) -> T:
    """Make the arrays in ``value``, and the memory behind views, read-only, and return ``value``.

    This is for arrays made by the package. Nothing is copied, except memory that NumPy does not
    own.

    Parameters
    ----------
    value : array, or tuples, lists and dictionaries of arrays
        Anything else is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> limits = read_only(np.ones((2, 3)).T)
    >>> limits.flags.writeable, limits.base.flags.writeable
    (False, False)
    """
    return _with_arrays(value, _locked)


def read_only_copy(value: T) -> T:
    """Return ``value`` with read-only arrays that no other code can write to.

    This is for arrays from a caller, which stay unchanged: writable arrays and views of writable
    memory are copied, and others are kept.
    """
    return _with_arrays(value, _locked_copy)


def _with_arrays(value: Any, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Apply ``change`` to each array; a container is replaced only if one of its arrays changes."""
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, tuple | list):
        items = [_with_arrays(item, change) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)._make(items) if hasattr(value, "_make") else type(value)(items)
    if isinstance(value, dict):
        entries = {key: _with_arrays(item, change) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


def _locked(array: np.ndarray) -> np.ndarray:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner.flags.writeable = False
        owner = owner.base
    # Other owners of memory (a buffer, a tensor) may still write to it.
    return array if owner is None or isinstance(owner, bytes) else _locked(np.array(array))


def _locked_copy(array: np.ndarray) -> np.ndarray:
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return array if owner is None or isinstance(owner, bytes) else _locked(np.array(array))


class ReadOnlyArrays:
    """Base of classes whose arrays cannot be written to.

    For subclasses, whether or not they are dataclasses, it ensures that:

    - arrays among the attributes of a new object are read-only, including arrays in tuples, lists
      and dictionaries; those that a caller could write to are copied first (`read_only_copy`);
    - arrays that a property or cached property returns are read-only (`read_only`);
    - arrays of an object that was copied or sent from another process are also read-only.

    Arrays inside other objects are not changed.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Run(ReadOnlyArrays):
    ...     losses: np.ndarray
    >>> losses = np.array([2.0, 1.0])
    >>> run = Run(losses)
    >>> losses[0] = 9.0
    >>> run.losses
    array([2., 1.])
    >>> run.losses[0] = 9.0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, attribute in list(vars(cls).items()):
            if name in ("__init__", "__post_init__"):
                setattr(cls, name, _then_locked(attribute))
            elif isinstance(attribute, cached_property):
                attribute.func = _returning_read_only(attribute.func)
            elif isinstance(attribute, property) and attribute.fget is not None:
                setattr(cls, name, attribute.getter(_returning_read_only(attribute.fget)))

    def __post_init__(self) -> None:
        """Lock the arrays of a dataclass that does not define ``__post_init__``."""
        _lock(self, read_only_copy)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copied or pickled object and lock its arrays again."""
        vars(self).update(state)
        _lock(self, read_only)


def _lock(instance: object, change: Callable[[Any], Any]) -> None:
    attributes = vars(instance)
    for name, value in attributes.items():
        locked = change(value)
        if locked is not value:
            attributes[name] = locked


def _then_locked(initialise: Callable[..., None]) -> Callable[..., None]:
    @wraps(initialise)
    def wrapper(self: object, *args: Any, **options: Any) -> None:
        initialise(self, *args, **options)
        _lock(self, read_only_copy)

    return wrapper


def _returning_read_only(get: Callable[[Any], T]) -> Callable[[Any], T]:
    if str(get.__annotations__.get("return")) in _SCALARS:
        return get

    @wraps(get)
    def wrapper(self: Any) -> T:
        return read_only(get(self))

    return cast("Callable[[Any], T]", wrapper)

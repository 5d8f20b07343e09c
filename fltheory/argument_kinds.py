"""Runtime checks that arguments of public functions match their annotations."""

from __future__ import annotations

import os
from collections import abc
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import getattr_static, signature, unwrap
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin

import numpy as np

from fltheory.validation import shown

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

Kind = tuple[Callable[[Any], bool], str]
"""A test whether a value is of a kind, and the name of the kind."""


def checks_kinds(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Return a function that refuses arguments that are not of the annotated kind.

    Objects, strings, callables, and sequences and mappings of these are checked. Numbers and arrays
    are not checked here, because they must meet further conditions, which the function checks
    itself.

    Raises
    ------
    ValueError
        If the function is called with a wrong argument; the message gives the argument, what it
        must be and its value.

    Examples
    --------
    >>> from fractions import Fraction
    >>> @checks_kinds
    ... def summed(parts: Sequence[Fraction], label: str = "") -> str:
    ...     return f"{label}{sum(parts)}"
    >>> from collections.abc import Sequence
    >>> summed([Fraction(1, 2), Fraction(1, 3)], "sum: ")
    'sum: 5/6'
    >>> summed(3)
    Traceback (most recent call last):
    ValueError: parts must be a sequence, each a Fraction, got 3
    """
    names = tuple(signature(function).parameters)
    kinds: Mapping[str, Kind] | None = None

    @wraps(function)
    def checked(*given: Given.args, **named: Given.kwargs) -> Returned:
        nonlocal kinds
        if kinds is None:  # annotations may use names defined later in the module
            kinds = _kinds_of(function)
        for name, value in (*zip(names, given, strict=False), *named.items()):
            if name in kinds and not kinds[name][0](value):
                raise ValueError(f"{name} must be {kinds[name][1]}, got {shown(value)}")
        return function(*given, **named)

    return checked


def _kinds_of(function: Callable[..., Any]) -> Mapping[str, Kind]:
    """Return the kinds of a function's arguments, for those that are checked."""
    kinds: dict[str, Kind] = {}
    known = unwrap(function).__globals__  # not those of a decorator
    for name, text in function.__annotations__.items():
        try:
            hint = eval(text, known) if isinstance(text, str) else text
        except NameError:  # names that only type checkers import
            continue
        if name != "return" and (kind := _kind(hint)) is not None:
            kinds[name] = kind
    return kinds


def _kind(hint: Any) -> Kind | None:
    """Return the kind for a type hint, or None if the hint is not checked."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _one_of([_kind(one) for one in get_args(hint)])
    if origin is abc.Callable:
        return callable, "callable"
    if origin is np.ndarray:
        return None
    if isinstance(origin, type) and issubclass(origin, abc.Mapping):
        return _mapping(_kind(get_args(hint)[1]))
    if isinstance(origin, type) and issubclass(origin, abc.Iterable):
        of = [one for one in get_args(hint) if one is not Ellipsis]
        return _sequence(_kind(of[0]) if len(of) == 1 else None)
    if hint is NoneType:
        return lambda value: value is None, "None"
    return _class(hint) if isinstance(hint, type) and hint is not Any else None


def _one_of(kinds: list[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    separator = ", or " if any("," in words for _, words in known) else " or "
    return lambda value: any(holds(value) for holds, _ in known), separator.join(
        words for _, words in known
    )


def _sequence(item: Kind | None) -> Kind:
    def holds(value: Any) -> bool:
        if isinstance(value, str | bytes | type | Mapping) or not hasattr(value, "__iter__"):
            return False
        if getattr(value, "shape", None) == ():  # an array without dimensions cannot be iterated
            return False
        # Only collections that can be iterated again are iterated.
        again = isinstance(value, list | tuple)
        return item is None or not again or all(item[0](one) for one in value)

    return holds, "a sequence" if item is None else f"a sequence, each {item[1]}"


def _mapping(item: Kind | None) -> Kind:
    def holds(value: Any) -> bool:
        return isinstance(value, Mapping) and (
            item is None or all(item[0](one) for one in value.values())
        )

    return holds, "a mapping" if item is None else f"a mapping whose values are each {item[1]}"


def _class(kind: type) -> Kind | None:
    """Return the kind of a class's instances, or None if the type is checked elsewhere."""
    if issubclass(kind, np.ndarray | Path | os.PathLike) or kind in (int, float, complex, object):
        return None
    words = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    if kind is str:
        return lambda value: isinstance(value, str), "text"
    if kind is bool:
        return lambda value: isinstance(value, bool | np.bool_), "True or False"
    if not getattr(kind, "_is_protocol", False):
        return lambda value: isinstance(value, kind), words
    return lambda value: _could_be(value, kind), words


def _could_be(value: Any, protocol: type) -> bool:
    """Return whether a value has at least one member of a protocol.

    A user's object need not have all members, because the missing ones may never be used. Members
    are looked up without computing them, because some take long to compute.
    """
    if isinstance(value, type | FunctionType):
        return False
    members = {
        name
        for one in protocol.__mro__
        if one not in (object, Protocol)
        for name in (*vars(one), *vars(one).get("__annotations__", ()))
        if not name.startswith("_")
    }
    nothing = object()
    return hasattr(type(value), "__getattr__") or any(
        getattr_static(value, name, nothing) is not nothing for name in members
    )

"""Hashable keys of the full content of objects, to detect whether an object has changed.

If the key of a cache is a mutable object, the cache returns stale results after the object changes.
So keys are made from the content. Large read-only arrays are compared by identity, and so are
objects that Python cannot inspect (a lock, a module). A key keeps such objects alive, so that no
other object can get their address.
"""

from __future__ import annotations

import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial, singledispatch, wraps
from itertools import count
from logging import Logger
from operator import length_hint
from threading import Lock
from types import CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

T = TypeVar("T")

Generator: TypeAlias = np.random.Generator | np.random.RandomState | random.Random

_LARGE = 1 << 16
_ATOMS = (bool, int, str, bytes, complex, type(None), Fraction)
_EXACTLY = frozenset(_ATOMS)
_CONTAINERS = frozenset({dict, list, tuple, set, frozenset, np.ndarray})
# Types of immutable objects that define equality correctly.
_VALUES = ("sympy.", "fltheory.grammar.symbols")


# What a logger does with its records does not come back to whoever uses it.
_OUTLETS = frozenset({"_cache", "filters", "handlers", "manager", "parent"})
_DISPATCHES = cast(FunctionType, singledispatch(len)).__code__


class _Same:
    """A key that is equal only to keys of the same object."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def content(thing: Any, *, generators: bool = True) -> Hashable:
    """Return an object's content as a key; value and hash stay equal while nothing changes.

    Parameters
    ----------
    thing : object
    generators : bool
        Whether the states of random generators are part of the key.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> algorithm = SimpleNamespace(lr=0.5, weights=np.array([0.5, 0.5]))
    >>> before = content(algorithm)
    >>> before == content(SimpleNamespace(lr=0.5, weights=np.array([0.5, 0.5])))
    True
    >>> algorithm.weights[0] = 1.0
    >>> before == content(algorithm)
    False
    """
    return _Walk(generators)(thing)


@dataclass(frozen=True, eq=False)
class Reached:
    """The random generators and classes that an object reaches, each once.

    Attributes
    ----------
    generators : list
        Random generators.
    classes : list of type
        Classes of the objects reached, starting with that of the object itself.
    """

    generators: list[Generator]
    classes: list[type]


def reached_from(thing: Any) -> Reached:
    """Return the random generators and the classes that an object reaches."""
    walk = _Walk(generators=False)
    walk(thing)
    return Reached(list(walk.found.values()), list(walk.classes))


def attributes_of(thing: Any) -> dict[str, Any]:
    """Return an object's own attributes by name, without cached properties."""
    cached, slots = _cached_and_slots(type(thing))  # type: ignore[arg-type]  # it is hashable
    held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    held |= getattr(thing, "__dict__", {})
    return {name: value for name, value in held.items() if name not in cached}


@lru_cache(maxsize=1024)
def _cached_and_slots(cls: type) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a class's cached properties, and of its slots."""
    cached = frozenset(
        name
        for owner in cls.__mro__
        for name, value in vars(owner).items()
        if isinstance(value, cached_property)
    )
    cached |= _OUTLETS if issubclass(cls, Logger) else set()
    slots = tuple(
        name
        for owner in cls.__mro__
        for name in _as_tuple(vars(owner).get("__slots__", ()))
        if name not in ("__dict__", "__weakref__")
    )
    return cached, slots


def class_attributes_of(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of class-level data of a user's class and its bases."""
    for owner in cls.__mro__:
        if is_users(owner.__module__):
            for name, value in vars(owner).items():
                plain = not callable(value) and not hasattr(type(value), "__get__")
                if plain and not name.startswith("__") and not name.startswith("_abc"):
                    yield f"{owner.__name__}.{name}", value


def functions_of(cls: type) -> Iterator[FunctionType]:
    """Yield the functions that a user's class and its bases define."""
    for owner in cls.__mro__:
        if is_users(owner.__module__):
            for value in vars(owner).values():
                inner = value.fget if isinstance(value, property) else value
                inner = getattr(inner, "__func__", inner)
                if isinstance(inner, FunctionType):
                    yield inner


def kept_by(function: FunctionType) -> dict[str, Any]:
    """Return, by name, what a function keeps: its attributes, and the content of its closure.

    Of a `functools.singledispatch` function, only the functions to choose from: its cache of
    earlier choices does not matter.
    """
    name, code = function.__qualname__, function.__code__
    if code is _DISPATCHES:
        return {f"{name}.registry": dict(vars(function)["registry"])}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    return {
        **{f"{name}.{key}": value for key, value in vars(function).items()},
        **{f"{key} in {name}": _value_in(cell) for key, cell in cells},
    }


def globals_read(function: FunctionType) -> dict[str, Any]:
    """Return the globals that a function uses, and the attributes of users' modules it uses."""
    names, held = _names_in(function.__code__), function.__globals__
    read = {name: held[name] for name in names if name in held}
    # Modules that the function itself imports are not among its globals.
    package, known = held.get("__package__"), sys.modules
    imported = [(name, known.get(name) or known.get(f"{package}.{name}")) for name in names]
    for module, value in (*read.items(), *imported):
        if isinstance(value, ModuleType) and _is_own(value.__name__):
            read |= {f"{module}.{n}": vars(value)[n] for n in names if n in vars(value)}
    return read


@lru_cache(maxsize=1024)
def _names_in(code: CodeType) -> tuple[str, ...]:
    """Return the names that a function's code looks up, including those in nested functions."""
    inner = (_names_in(each) for each in code.co_consts if isinstance(each, CodeType))
    return tuple(dict.fromkeys((*code.co_names, *(name for names in inner for name in names))))


def _value_in(cell: Any) -> Any:
    """Return the content of a closure's cell, or None if the cell is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_users(module: str | None) -> bool:
    """Return whether a module does not belong to this package, NumPy or Python."""
    top = (module or "").partition(".")[0]  # objects made by `exec` may have no module
    return (top not in ("fltheory", "numpy", "typing") and top not in sys.stdlib_module_names) or (
        top == "__main__"
    )


def runs_users_code(algorithm: Any) -> bool:
    """Return whether an object contains a user's class or function."""
    if is_users(type(algorithm).__module__):
        return True
    held = [*reached_from(algorithm).classes, *attributes_of(algorithm).values()]
    return any(is_users(one.__module__) for one in held if isinstance(one, type | FunctionType))


@lru_cache(maxsize=1024)
def _is_own(module: str | None) -> bool:
    """Return whether a module is a user's own, not an installed library."""
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return is_users(module) and "-packages" not in file


def _as_tuple(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def state_of(generator: Generator) -> Any:
    """Return the state of a random generator."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    return generator.bit_generator.state


def put_back(generator: Generator, state: Any) -> None:
    """Restore a random generator to a state from `state_of`."""
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def seed_again(generator: Generator, seed: np.random.SeedSequence) -> None:
    """Reseed a random generator."""
    if isinstance(generator, random.Random):
        generator.seed(int(seed.generate_state(1, np.uint64)[0]))
    elif isinstance(generator, np.random.RandomState):
        generator.seed(seed.generate_state(8))
    else:
        generator.bit_generator.state = type(generator.bit_generator)(seed).state


class _Walk:
    """One pass through an object, which records the generators and classes that it reaches."""

    def __init__(self, generators: bool) -> None:
        self.found: dict[int, Generator] = {}
        self.classes: dict[type, None] = {}
        self._generators = generators
        self._inside: dict[int, int] = {}
        self._known: dict[int, int] = {}

    def __call__(self, thing: Any) -> Hashable:
        kind = type(thing)
        if kind in _EXACTLY:
            return (kind, thing)
        # Checking whether an object is a fraction takes longer than all the other checks.
        if kind not in _CONTAINERS:
            if isinstance(thing, float):
                return thing.hex()
            if isinstance(thing, _ATOMS) or kind.__module__.startswith(_VALUES):
                return (kind, thing)
        if id(thing) in self._inside:
            return ("again", self._inside[id(thing)])
        self._inside[id(thing)] = len(self._inside)
        try:
            return self._parts(thing)
        finally:
            del self._inside[id(thing)]

    def _parts(self, thing: Any) -> Hashable:
        if isinstance(thing, Generator):
            self.found[id(thing)] = thing
            state = state_of(thing) if self._generators else None
            # The state of Python's generator is a tuple of 625 integers, which is already hashable.
            return state if isinstance(thing, random.Random) else self(state)
        if isinstance(thing, np.ndarray | np.generic):
            return self._array(np.asarray(thing))
        if isinstance(thing, dict | list | tuple | set | frozenset):
            return self._container(thing)
        if isinstance(thing, FunctionType | MethodType | partial):
            return self._function(thing)
        if type(thing).__module__.startswith("flint"):
            return _number(thing)
        if isinstance(thing, GeneratorType):
            frame = thing.gi_frame
            return (_Same(thing), None if frame is None else (frame.f_lasti, self(frame.f_locals)))
        if isinstance(thing, type):
            return (_Same(thing), self._class(thing) if _is_own(thing.__module__) else None)
        return self._object(thing)

    def _object(self, thing: Any) -> Hashable:
        looked_into = hasattr(thing, "__dict__") or _slotted(thing)
        if isinstance(thing, ModuleType) or not looked_into:
            # The position of an iterator.
            return (
                _Same(thing),
                repr(thing) if isinstance(thing, count) else length_hint(thing, -1),
            )
        self.classes[type(thing)] = None
        own = tuple((name, self(value)) for name, value in attributes_of(thing).items())
        return (_Same(type(thing)), own, self._class(type(thing)))

    def _container(self, thing: Any) -> Hashable:
        if isinstance(thing, dict):
            return (type(thing), tuple((self(key), self(value)) for key, value in thing.items()))
        if isinstance(thing, list | tuple):
            return (type(thing), tuple(map(self, thing)))
        return (type(thing), frozenset(map(self, thing)))

    def _array(self, array: np.ndarray) -> Hashable:
        if array.dtype == object:
            return (array.shape, tuple(map(self, array.ravel().tolist())))
        if array.nbytes > _LARGE and not _can_be_written(array):
            return _Same(array)
        return (array.shape, array.dtype.str, array.tobytes())

    def _function(self, thing: Any) -> Hashable:
        if isinstance(thing, partial):
            return (partial, self(thing.func), self(thing.args), self(thing.keywords))
        if isinstance(thing, MethodType):
            return (MethodType, self(thing.__self__), self(thing.__func__))
        if id(thing) in self._known:
            return ("again", self._known[id(thing)])
        self._known[id(thing)] = len(self._known)
        defaults = (thing.__defaults__, thing.__kwdefaults__)
        read = globals_read(thing) if _is_own(thing.__module__) else {}
        return (_Same(thing.__code__), *map(self, (kept_by(thing), defaults, read)))

    def _class(self, cls: type) -> Hashable:
        """Return a key of a class's data, and of the code and globals of its functions."""
        if id(cls) in self._known:
            return ("again", self._known[id(cls)])
        self._known[id(cls)] = len(self._known)
        held = tuple((name, self(value)) for name, value in class_attributes_of(cls))
        return (held, tuple(map(self, functions_of(cls))))


def _number(value: Any) -> Hashable:
    """Return a key of a FLINT number; a fraction's text is complete, but a ball's is truncated."""
    if hasattr(value, "mid"):
        return (type(value), value.mid().man_exp(), value.rad().man_exp())
    return (type(value), str(value))


def _slotted(thing: Any) -> bool:
    return any("__slots__" in vars(cls) for cls in type(thing).__mro__[:-1])


def _can_be_written(array: np.ndarray) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return not (owner is None or isinstance(owner, bytes))


def _bits_in_use() -> int:
    """Return FLINT's precision in bits, on which results depend, or 0 if it is not loaded."""
    flint = sys.modules.get("flint")
    return 0 if flint is None else int(flint.ctx.prec)


def cached_by_content(
    most: int,
    *,
    as_long_as: Callable[..., Hashable] = lambda *_, **__: None,
    by_precision: bool = True,
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a decorator that caches a function's recent results by the content of arguments.

    Parameters
    ----------
    most : int
        Number of results to keep.
    as_long_as : callable
        Called with the same arguments. A cached result is used only if this still returns the
        same.
    by_precision : bool
        Whether the current precision is part of the key, because balls cached at a lower
        one would be too wide.

    Examples
    --------
    >>> @cached_by_content(8)
    ... def total(numbers):
    ...     return sum(numbers)
    >>> numbers = [1, 2]
    >>> total(numbers)
    3
    >>> numbers.append(4)
    >>> total(numbers)
    7
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        kept: OrderedDict[Hashable, tuple[T, Hashable]] = OrderedDict()
        lock = Lock()

        @wraps(function)
        def cached(*args: Any, **options: Any) -> T:
            key = content((args, options)), _bits_in_use() if by_precision else 0
            with lock:
                found = kept.get(key)
            if found is None or found[1] != as_long_as(*args, **options):
                value = function(*args, **options)
                found = value, as_long_as(*args, **options)
            with lock:
                kept[key] = found
                kept.move_to_end(key)
                while len(kept) > most:
                    kept.popitem(last=False)
            return found[0]

        return cached

    return decorate


def kept(held: dict[Any, T], key: Any, make: Callable[[], T], most: int = 8) -> T:
    """Return the value cached for a key, making it if missing; at most ``most`` values are kept."""
    if key not in held:
        while len(held) >= most:
            held.pop(next(iter(held)))
        held[key] = make()
    return held[key]

"""Symbolic participation masks: one run of a round covers all participant sets.

An entry for client i is a pair: its values with that client absent and present, as numbers or as
forms in the model. A function of one such entry is again such a pair. A sum over clients is a form
that consists of its value without participants and what each client adds to it. All of these may be
multiplied by functions of the number of participants. Such functions are plain numbers if that
number is fixed, and symbols otherwise. Operations that combine several clients (a product or a
comparison of sums, a selection of clients) are refused by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fltheory.engines.affine.numbers import Arithmetic, Entries, ExactNumber
from fltheory.engines.affine.symbolic.clients import FormClients, LocalMaps
from fltheory.engines.affine.symbolic.forms import (
    AffineArray,
    Namespace,
    NotAffineError,
    Space,
    noted,
)
from fltheory.validation import ClientIndices

_FOLDS = ("sum", "mean", "any", "all", "min", "max", "amin", "amax")
_SUMS = ("add", "subtract", "negative", "where")
_NAMED = {"multiply": "a product", "divide": "a quotient"}


class NoRoomError(ArithmeticError):
    """A round needs more noise symbols than its space has room for."""


def together(what: str) -> NotAffineError:
    """Return the error for a round that combines several participants in a way other than a sum."""
    return noted(
        NotAffineError(
            "the algorithm's round must be a sum of the participants' contributions, for exact "
            f"moments with this many participant sets, but {what}: use engines.monte_carlo"
        )
    )


class PresenceSpace(Space):
    """Symbols of the model and of noise, and their products with symbols for participation.

    The values of a form are its coefficients without participants, then what each client adds, and
    then the same for each further function of the number of participants.

    Parameters
    ----------
    arithmetic, symbols
        As in `Space`.
    n_clients : int
    numbers : array, (K,)
        Possible numbers of participants, only one if the number is fixed.
    room : int
        Largest number of noise symbols.
    sums : bool, default True
        Whether to allow sums over clients that differ, which need a form for each client.
    """

    def __init__(
        self,
        arithmetic: Arithmetic,
        symbols: int,
        n_clients: int,
        numbers: ClientIndices,
        room: int,
        *,
        sums: bool = True,
    ) -> None:
        super().__init__(arithmetic, symbols)
        self.n_clients, self._sums = n_clients, sums
        self.width = 1 + symbols + room
        self.own: dict[int, tuple[slice, bool]] = {}
        self.numbers = self.constants(numbers)
        self.functions = [self.full(numbers.shape, 1)]

    @cached_property
    def namespace(self) -> Any:
        """The array functions, extended to symbols for participation."""
        return _Functions(self)

    @property
    def noises(self) -> int:
        """Number of noise symbols that a round has asked for so far."""
        return self.size - self.symbols

    @cached_property
    def mask(self) -> Presences:
        """The symbolic participation mask, (1, N)."""
        away, there = (np.full((1, self.n_clients), here) for here in (False, True))
        return Presences(self, {0: (away, there)}, -1)

    def is_mask(self, who: Any) -> bool:
        """Whether ``who`` equals the participation mask."""
        plain = isinstance(who, Presences) and who.is_plain and who.axis == -1
        return plain and all(map(np.array_equal, who.parts[0], self.mask.parts[0]))

    def fresh_noise(self, covariance: Entries) -> int:
        """Add a block of noise and return its first index."""
        first = super().fresh_noise(covariance)
        if self.size >= self.width:
            raise NoRoomError(f"noise of {self.noises} symbols")
        return first

    def own_noise(self, covariances: Entries, *, away: bool = False) -> AffineArray:
        """Return each client's own noise (1, 1, w), given its covariance (N or 1, w, w).

        The noise occurs when the client is present or, if ``away``, when it is absent.
        """
        first = self.fresh_noise(covariances)
        count = covariances.shape[-1]
        self.own[first] = slice(1 + first, 1 + first + count), away
        return self.symbols_from(first, count)[None]

    def refusal(self, what: str, form: AffineArray) -> NotAffineError:
        """Return the error for an operation that is not affine in model or participation."""
        if self.is_plain(form):
            return super().refusal(what, form)
        return together(f"it takes {what} of several clients' contributions")

    def is_plain(self, form: AffineArray) -> bool:
        """Whether a form does not depend on who takes part."""
        return not _anything(form.values[..., self.width :])

    def blocks(self, form: AffineArray) -> Entries:
        """Return values (*shape, E, 1 + N, width), for no clients and for each, by function."""
        if not self._sums:
            raise together("it treats clients differently within a sum over them")
        outer = self.width * (1 + self.n_clients)
        count = -(-form.values.shape[-1] // outer)
        padded = np.full((*form.shape, count * outer), self.zero)
        padded[..., : form.values.shape[-1]] = form.values
        return padded.reshape(*form.shape, count, 1 + self.n_clients, self.width)

    def place(self, values: AffineArray) -> int:
        """Return the index of a function of the number of participants; a new one is added."""
        for place, known in enumerate(self.functions):
            if np.array_equal(known.constant, values.constant):
                return place
        self.functions.append(values)
        return len(self.functions) - 1

    def turned(self, item: Any, turn: Callable[[AffineArray], Any]) -> Any:
        """Apply ``turn`` to each function of the number of participants that multiplies an item."""
        if isinstance(item, OfNumber):
            return OfNumber(self, turn(item.values), item.ndim)
        if isinstance(item, Presences):
            parts: dict[int, Any] = {}
            for place, sides in item.parts.items():
                at = self.place(turn(self.functions[place]))
                known = parts.get(at)
                parts[at] = sides if known is None else _each(np.add, known, sides)
            return Presences(self, parts, item.axis)
        blocks = self.blocks(self.forms(item))
        count = blocks.shape[-3]
        places = {
            e: self.place(turn(self.functions[e]))
            for e in range(count)
            if _anything(blocks[..., e, :, :])
        }
        made = np.full((*blocks.shape[:-3], len(self.functions), *blocks.shape[-2:]), self.zero)
        for e, at in places.items():
            made[..., at, :, :] += blocks[..., e, :, :]
        return AffineArray(self, made.reshape(*blocks.shape[:-3], -1))

    def forms(self, array: Any) -> AffineArray:
        """Return an array made by a round, converted to forms."""
        return array.forms() if isinstance(array, _Symbol) else super().forms(array)

    def parts(self, item: Any) -> Mapping[int, tuple[Any, ...]] | None:
        """Return an operand's values for one client, by function, or None if it has several."""
        if isinstance(item, Presences):
            return item.parts
        if isinstance(item, OfNumber):
            return {self.place(self.forms(item.values)): (1, 1)}
        if not isinstance(item, AffineArray) or item.values.shape[-1] <= self.width:
            return {0: (item, item)}
        blocks = self.blocks(item)
        if _anything(blocks[..., 1:, :]):
            return None
        each = (AffineArray(self, blocks[..., e, 0, :]) for e in range(blocks.shape[-3]))
        return {e: (form, form) for e, form in enumerate(each)}


def _anything(values: Entries) -> bool:
    return any(map(bool, values.flat)) if values.dtype == object else bool(values.any())


def _each(function: Callable[..., Any], *inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(function(*sides) for sides in zip(*inputs, strict=True))


class _Functions:
    """The array functions of forms, extended to symbols for participation."""

    def __init__(self, space: PresenceSpace) -> None:
        self._space, self._plain = space, Namespace(space)

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._plain, name)
        if not callable(own) or isinstance(own, type):
            return own
        return partial(_answer, self._space, name, own)


def _answer(space: PresenceSpace, name: str, own: Any, *args: Any, **kwargs: Any) -> Any:
    """Call an array function, handling symbols for participation among its arguments."""
    first = args[0] if args else None
    among = first if isinstance(first, list | tuple) else args
    if not any(isinstance(item, _Symbol) for item in among):
        return own(*args, **kwargs)
    if name in ("concat", "concatenate"):
        return own([space.forms(item) for item in among], *args[1:], **kwargs)
    if name == "matmul":
        return _matmul(*args)
    if name == "einsum" and args[0].replace(" ", "") == "ri,ria->ra":
        return (args[1][:, :, None] * args[2]).sum(axis=1)
    if name == "where" or isinstance(getattr(np, name, None), np.ufunc):
        return _elementwise(space, name, partial(own, **kwargs), args)
    if isinstance(first, _Symbol):
        return first.taken(name, own, *args[1:], **kwargs)
    raise together(f"it takes {name} of the participation mask")


def _matmul(left: Any, right: Any) -> Any:
    """Return a matrix product that either sums over clients or leaves their axis in place."""
    if getattr(left, "axis", -1) != -1 or getattr(right, "axis", -2) != -2:
        raise together("it takes a matrix product of the participation mask")
    if right.ndim == 1:
        return (left * right).sum(axis=-1)
    return (left[..., :, :, None] * right[..., None, :, :]).sum(axis=-2)


def _elementwise(space: PresenceSpace, name: str, own: Any, inputs: tuple[Any, ...]) -> Any:
    """Apply an elementwise function; contributions of several clients may only be added."""
    numbers = [isinstance(item, OfNumber) for item in inputs]
    if all(known or _single(item) for known, item in zip(numbers, inputs, strict=True)):
        values = (item.values if isinstance(item, OfNumber) else _flat(item) for item in inputs)
        return OfNumber(space, own(*values), max(getattr(item, "ndim", 0) for item in inputs))
    given = len(inputs) - 2 if name == "where" else 0
    by_number = any(isinstance(item, _Symbol) and not item.is_plain for item in inputs)
    if by_number and name in _SUMS and all(map(_is_truth, inputs[given:])):
        # A sum of booleans would be a count.
        raise together(f"it takes {name} of boolean values")
    if any(numbers[: given or None]) and name in ("where", "multiply", "divide"):
        return _by_number(space, name, inputs, numbers.index(True))
    parts = [space.parts(item) for item in inputs]
    axes = {item.axis for item in inputs if isinstance(item, Presences)}
    if not axes or None in parts:
        if name not in _SUMS or (given and isinstance(inputs[0], _Symbol)):
            raise together(f"it takes {_NAMED.get(name, name)} of several clients' contributions")
        return own(*(item.forms() if isinstance(item, _Symbol) else item for item in inputs))
    if len(axes) > 1:
        raise together("it combines different participants' contributions")
    return Presences(space, _combined(space, name, own, parts, given), *axes)


def _by_number(space: PresenceSpace, name: str, inputs: tuple[Any, ...], at: int) -> Any:
    """Multiply, divide or select (``where``) by a function of the number of participants."""
    values, pick = inputs[at].values, space.namespace.where
    if name == "multiply":
        return space.turned(inputs[1 - at], lambda h: h * values)
    if name == "divide" and at == 1:
        return space.turned(inputs[0], lambda h: h / values)
    if name == "divide":
        if isinstance(inputs[1], _Symbol):
            raise together(
                "it takes a quotient of the number of participants and their contributions"
            )
        return space.turned(1 / space.forms(inputs[1]), lambda h: h * values)
    return space.turned(inputs[1], lambda h: pick(values, h, 0)) + space.turned(
        inputs[2], lambda h: pick(values, 0, h)
    )


def _combined(
    space: PresenceSpace, name: str, own: Any, parts: list[Any], given: int
) -> dict[int, tuple[Any, ...]]:
    """Apply a function to operands' values for one client. The first ``given`` are conditions."""
    plain = [set(part) == {0} for part in parts]
    if all(plain):
        return {0: _each(own, *(part[0] for part in parts))}
    if name == "multiply":
        made: dict[int, tuple[Any, ...]] = {}
        for e, left in parts[0].items():
            for f, right in parts[1].items():
                at, product = (
                    space.place(space.functions[e] * space.functions[f]),
                    _each(own, left, right),
                )
                made[at] = _each(np.add, made[at], product) if at in made else product
        return made
    if name == "divide" and plain[1]:
        return {e: _each(own, left, parts[1][0]) for e, left in parts[0].items()}
    if name in _SUMS and all(plain[:given]):
        shapes = (getattr(sides[0], "shape", ()) for part in parts for sides in part.values())
        none = (np.zeros(np.broadcast_shapes(*shapes), np.int64),) * 2
        conditions = [part[0] for part in parts[:given]]
        places = sorted({e for part in parts[given:] for e in part})
        return {
            e: _each(own, *conditions, *(part.get(e, none) for part in parts[given:]))
            for e in places
        }
    raise together(
        f"it takes {_NAMED.get(name, name)} of a client's contribution and the number of "
        "participants"
    )


def _single(item: Any) -> bool:
    """Return whether an operand is a single number."""
    if isinstance(item, AffineArray):
        return item.size == 1 and item.is_constant
    return isinstance(item, bool | int | float | ExactNumber) or (
        isinstance(item, np.generic | np.ndarray) and item.size == 1
    )


def _is_truth(item: Any) -> bool:
    return isinstance(item, bool) or getattr(getattr(item, "dtype", None), "kind", "") == "b"


def _flat(item: Any) -> Any:
    return item.reshape(1) if isinstance(item, AffineArray | np.ndarray) else item


class _Symbol(NDArrayOperatorsMixin):
    """A stand-in for an array; operations that need actual participants are refused."""

    __array_priority__ = 2000
    space: PresenceSpace
    ndim: int

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return self.space.namespace

    def __bool__(self) -> bool:
        raise together("it branches on who takes part")

    def __iter__(self) -> Any:
        raise together("it loops over participants one by one")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise together("it converts the participation mask to numbers")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            raise together(f"it takes {ufunc.__name__}.{method} of the participation mask")
        return _answer(self.space, ufunc.__name__, ufunc, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _answer(self.space, function.__name__, function, *args, **kwargs)

    def copy(self) -> Any:
        """Return this object, which is immutable."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the array cast to another dtype."""
        return self.mapped(lambda values: self.space.namespace.astype(values, dtype))

    def reshape(self, *shape: Any) -> AffineArray:
        """Return the values as forms, with a different shape."""
        return self.forms().reshape(*shape)

    def taken(self, name: str, own: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a NumPy function."""
        if name in ("zeros_like", "ones_like", "full_like"):
            return own(self.like, *args, **kwargs)
        if name in ("astype", "asarray"):
            return self.mapped(lambda values: own(values, *args, **kwargs))
        raise together(f"it takes {name} of the participation mask")

    @property
    def is_plain(self) -> bool:
        """Whether the values do not depend on the number of participants."""
        return False

    @property
    def like(self) -> Any:
        """An ordinary array of the same shape and dtype."""
        raise NotImplementedError

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Apply a function to each entry."""
        raise NotImplementedError

    def forms(self) -> AffineArray:
        """Return the values as forms in the participation symbols."""
        raise NotImplementedError


class OfNumber(_Symbol):
    """A function of the number of participants, with ``ndim`` axes of length one.

    Parameters
    ----------
    space : PresenceSpace
    values : array or forms, (K,)
        The value for each number of participants.
    ndim : int
    """

    def __new__(cls, space: PresenceSpace, values: Any, ndim: int) -> Any:
        """Return a plain value if the number of participants is fixed."""
        return values.reshape((1,) * ndim) if len(values) == 1 else super().__new__(cls)

    def __init__(self, space: PresenceSpace, values: Any, ndim: int) -> None:
        self.space, self.values, self.ndim = space, values, ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """(1, ..., 1)."""
        return (1,) * self.ndim

    @property
    def dtype(self) -> Any:
        """Dtype of the values."""
        return self.values.dtype

    @property
    def like(self) -> Any:
        """A constant of the same shape and dtype."""
        return self.values[:1].reshape(self.shape)

    def mapped(self, function: Callable[[Any], Any]) -> OfNumber:
        """Apply a function to the values."""
        return OfNumber(self.space, function(self.values), self.ndim)

    def __getitem__(self, index: Any) -> OfNumber:
        return OfNumber(self.space, self.values, self.like[index].ndim)

    def forms(self) -> AffineArray:
        """Return the values as a form."""
        one = self.space.full(self.shape, 1)
        return self.space.turned(one, lambda h: h * self.space.forms(self.values))


def _method(name: str) -> Callable[..., Any]:
    def method(self: _Symbol, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        return getattr(self.space.namespace, name)(self, axis=axis, keepdims=keepdims)

    return method


class Presences(_Symbol):
    """Arrays with an axis of clients, whose entries depend on whether that client takes part.

    Parameters
    ----------
    space : PresenceSpace
    parts : mapping of int to pair of arrays, (1, ..., N, ...)
        For each index of a function of the number of participants, the values multiplied by that
        function, first with the client absent and then with it present.
    axis : int
        The axis of the clients, counted from the last.
    """

    def __init__(
        self, space: PresenceSpace, parts: Mapping[int, tuple[Any, ...]], axis: int
    ) -> None:
        self.space, self.parts, self.axis = space, parts, axis
        if any(
            part[0].ndim < -axis or part[0].shape[axis] != space.n_clients
            for part in parts.values()
        ):
            raise together("it combines different participants' contributions")

    @property
    def is_plain(self) -> bool:
        """Whether the values do not depend on the number of participants."""
        return set(self.parts) == {0}

    @property
    def like(self) -> Any:
        """An array of the same shape and dtype, from the values with clients absent."""
        return next(iter(self.parts.values()))[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """(1, ..., N, ...)."""
        return tuple(self.like.shape)

    @property
    def ndim(self) -> int:  # type: ignore[override]
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """Dtype of the entries."""
        return self.like.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def mapped(self, function: Callable[[Any], Any], axis: int | None = None) -> Presences:
        """Apply a function to each entry."""
        made = {e: _each(function, sides) for e, sides in self.parts.items()}
        return Presences(self.space, made, self.axis if axis is None else axis)

    def __getitem__(self, index: Any) -> Presences:
        parts = list(index) if isinstance(index, tuple) else [index]
        if not any(part is Ellipsis for part in parts):
            parts.append(Ellipsis)
        taken = sum(part is not None and part is not Ellipsis for part in parts)
        at = next(place for place, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (self.ndim - taken)
        own = [place for place, part in enumerate(parts) if part is not None][self.axis]
        if not all(part is None or isinstance(part, slice) for part in parts) or (
            parts[own] != slice(None)
        ):
            raise together("it selects some of the participants")
        return self.mapped(lambda values: values[tuple(parts)], own - len(parts))

    def forms(self) -> AffineArray:
        """Return the entries as forms, each in the participation symbol of its client."""
        every = np.arange(self.space.n_clients)

        def in_own(without: AffineArray, added: AffineArray) -> AffineArray:
            blocks = self.space.blocks(without)
            each, own = np.moveaxis(blocks, self.axis - 3, 0), _clients_first(added, self.axis)
            each[every, ..., 0, 1 + every, : own.shape[-1]] = own
            return AffineArray(self.space, blocks.reshape(*without.shape, -1))

        return self.space.forms(self._gathered(in_own))

    sum, mean, any, all, min, max = map(_method, _FOLDS[:6])

    def taken(self, name: str, own: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a NumPy function, including reductions such as sums and minima."""
        taken = self._folded if name in _FOLDS else super().taken
        return taken(name, own, *args, **kwargs)

    def _folded(
        self, name: str, own: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any
    ) -> Any:
        if axis is None or isinstance(axis, tuple):
            raise together(f"it takes {name} over replicas and participants at once")
        axis = axis - self.ndim if axis >= 0 else axis
        adds = name in ("sum", "mean")
        if not adds and not self.is_plain:
            raise together(
                f"it takes {name} of a client's contribution and the number of participants"
            )
        if axis != self.axis:
            moved = self.axis + (axis > self.axis and not keepdims)
            return self.mapped(lambda values: own(values, axis=axis, keepdims=keepdims), moved)
        total = self._gathered(self._added) if adds else self._extreme(name, own)
        if name == "mean":
            total = total / self.space.n_clients
        return total[(..., None, *[slice(None)] * (-axis - 1))] if keepdims else total

    def _gathered(self, gather: Callable[[AffineArray, AffineArray], Any]) -> Any:
        """Combine the entries of absent clients with what presence adds, summed over functions."""
        total: Any = None
        for e, sides in self.parts.items():
            without, there = map(self.space.forms, sides)
            added = there - without
            term = gather(without, self._with_noise_away(without, added))
            if e:
                term = self.space.turned(term, partial(operator.mul, self.space.functions[e]))
            total = term if total is None else total + term
        return total

    def _with_noise_away(self, without: AffineArray, added: AffineArray) -> AffineArray:
        """Move the noise of absent clients to their own parts, since it differs by client."""
        for columns, away in self.space.own.values():
            if _anything(without.values[..., columns]):
                if not away:
                    raise together("it uses the noise of absent clients for present ones")
                added = added.copy()
                added.values[..., columns] = without.values[..., columns]
        return added

    def _added(self, without: AffineArray, added: AffineArray) -> Any:
        """Return the sum over clients."""
        space, base, numbers = self.space, without.sum(axis=self.axis), self.space.numbers
        each = _clients_first(added, self.axis)
        noisy = any(_anything(each[..., columns]) for columns, _ in space.own.values())
        if noisy or not (each == each[:1]).all():
            blocks = space.blocks(base)
            blocks[..., 0, 1:, : each.shape[-1]] = np.moveaxis(each, 0, -2)
            return AffineArray(space, blocks.reshape(*base.shape, -1))
        # Every participant adds the same.
        one = AffineArray(space, each[0])
        if len(numbers) == 1:
            return base + one * numbers[0]
        if one.size == 1 and one.is_constant and base.is_constant:
            return OfNumber(space, one.reshape(1) * numbers + base.reshape(1), base.ndim)
        return base + space.turned(one, lambda h: h * numbers)

    def _extreme(self, name: str, own: Any) -> Any:
        """Return a minimum or a similar reduction over clients that are all alike."""
        space = self.space
        first = [np.moveaxis(np.asarray(side), self.axis, 0) for side in self.parts[0]]
        if not all((side == side[:1]).all() for side in first) or first[0][0].size != 1:
            raise together(f"it takes {name} over participants that differ")
        without, there = (side[:1] for side in first)
        found = (own(side, axis=0) for side in (without, there, np.concatenate([without, there])))
        none, everybody, some = (np.reshape(value, (1,)) for value in found)
        numbers = space.numbers.constant
        values = np.where(numbers == 0, none, np.where(numbers == space.n_clients, everybody, some))
        return OfNumber(space, values, first[0].ndim - 1)


def _clients_first(array: AffineArray, axis: int) -> Entries:
    return np.moveaxis(array.values, axis - 1, 0)


class PresentClients(FormClients):
    """The Clients interface for a symbolic participation mask.

    Parameters
    ----------
    numbers : ClientNumbers
    space : PresenceSpace
    """

    _space: PresenceSpace

    @property
    def space(self) -> PresenceSpace:
        """The symbols in which the clients' changes are forms."""
        return self._space

    def _offsets(self, x: Any) -> AffineArray:
        if isinstance(x, _Symbol) or not self._space.is_plain(x):
            raise together("clients start from a model that depends on the participants")
        return super()._offsets(x)

    def _pushed(self, push: Entries, correction: Any, shape: tuple[int, ...]) -> Any:
        plain = super()._pushed
        if isinstance(correction, Presences):
            return correction.mapped(lambda side: plain(push, side, shape))
        return plain(push, correction, shape)

    def _noise_of_each(self, local: LocalMaps, who: Any) -> Any:
        space, there = self._space, self._space.own_noise(local.noise)
        if not np.any(who.parts[0][0] if isinstance(who, Presences) else who):
            return there
        away = space.own_noise(local.noise, away=True)
        return space.namespace.where(space.mask[:, :, None], there, away)

    def _sum(
        self, local: LocalMaps, x: AffineArray, who: Any, weights: Any, correction: Any
    ) -> Any:
        # An absent client may have any weight, even an infinite one.
        there = self._space.namespace.where(who, weights, 0)
        changes = self._each(local, x, who, correction)
        return self._space.namespace.sum(there[:, :, None] * changes, axis=1)

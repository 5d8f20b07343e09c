"""Arrays of affine forms: a constant plus a linear part in symbols of the model and of the noise.

An algorithm's own ``round`` runs on them as on any other backend's arrays, and the result is its
affine map. Forms can be added to each other and multiplied by values that do not depend on the
model. If they are compared, multiplied with each other, or passed to any other function, they raise
an error that names the operation. So a round that branches on the model is detected in every state.
Values that stay constant (such as counts, weights and ages) may be compared and divided like
numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
from flint import arb

from fltheory.engines.affine.numbers import (
    Arithmetic,
    Compared,
    Entries,
    ExactNumber,
    InexactRoundError,
    decided,
    entries,
    floor_divided,
    raw_number,
    rest,
)

_COUNTS = tuple(np.dtype(kind) for kind in ("int64", "uint64"))
_LARGEST_COUNT = 2**53


class NotAffineError(ValueError):
    """The round is not affine in the state, so no exact moment recursion exists."""


_REFUSED: ContextVar[list[NotAffineError] | None] = ContextVar("refused", default=None)


@contextmanager
def nothing_refused() -> Iterator[None]:
    """Raise the first refusal of a form inside the block, even if the round caught it.

    Raises
    ------
    NotAffineError
        The first refusal.
    """
    refusals: list[NotAffineError] = []
    token = _REFUSED.set(refusals)
    try:
        yield
    finally:
        _REFUSED.reset(token)
    if refusals:
        raise refusals[0]


def noted(error: NotAffineError) -> NotAffineError:
    """Return a refusal after recording it for `nothing_refused`."""
    refusals = _REFUSED.get()
    if refusals is not None:
        refusals.append(error)
    return error


def refused(what: str) -> NotAffineError:
    """Return the error for a round that applies a non-affine operation to the model."""
    return noted(
        NotAffineError(
            "the algorithm's round must be affine in its state for exact moments, but it takes "
            f"{what} of a value that depends on the model: use engines.monte_carlo, or "
            "engines.paths, which knows the participants and, without noise, the model too"
        )
    )


def _one_entry() -> NotAffineError:
    return noted(
        NotAffineError(
            "the algorithm's round must be affine in its state and treat all replicas in the "
            "same way, but it converts a single entry to a number: write it with functions of "
            "arrays, such as where"
        )
    )


@dataclass(eq=False)
class Space:
    """The symbols in which forms are linear: those of the state, then those of the noise.

    Parameters
    ----------
    arithmetic : Arithmetic
        Arithmetic of the constants and coefficients.
    symbols : int
        Number of symbols that belong to the state.

    Attributes
    ----------
    noise : list of tuple (int, array)
        For each block of noise symbols, its first index and its covariance (replicas or 1, w, w).
    """

    arithmetic: Arithmetic
    symbols: int
    noise: list[tuple[int, Entries]] = field(default_factory=list)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = self.symbols

    def fresh_noise(self, covariance: Entries) -> int:
        """Add a block of noise of covariance (replicas or 1, w, w), and return its first index."""
        first = self.size
        self.noise.append((first, covariance))
        self.size += covariance.shape[-1]
        return first

    @cached_property
    def zero(self) -> Any:
        """The number zero."""
        return self.arithmetic.entry(0)

    @cached_property
    def namespace(self) -> Namespace:
        """The array functions for forms of this space."""
        return Namespace(self)

    def constants(self, values: Any) -> AffineArray:
        """Return constants from numbers; floats stand for their decimals.

        Raises
        ------
        NotAffineError
            If a number is complex, or is an integer too large for floats to represent exactly.
        """
        if np.iscomplexobj(values):
            raise refused("a complex number")
        counts = not self.arithmetic.exact and getattr(values, "dtype", np.bool_) in _COUNTS
        if counts and np.abs(values).max(initial=0) > _LARGEST_COUNT:
            raise refused(f"a count above {_LARGEST_COUNT}, which floats cannot represent exactly,")
        return AffineArray(self, entries(self.arithmetic, values)[..., None])

    def variables(self, origin: Entries, rows: int = 1) -> AffineArray:
        """Return forms (rows, n) that are the space's first n symbols, measured from an origin."""
        values = np.repeat(self.symbols_from(0, origin.size).values, rows, axis=0)
        values[:, :, 0] = origin
        return AffineArray(self, values)

    def symbols_from(self, first: int, count: int) -> AffineArray:
        """Return ``count`` symbols as forms (1, count), starting at ``first``."""
        values = np.full((1, count, 1 + first + count), self.zero)
        places = np.arange(count)
        values[0, places, 1 + first + places] = self.arithmetic.entry(1)
        return AffineArray(self, values)

    def full(self, shape: tuple[int, ...], value: int) -> AffineArray:
        """Return constants that all equal one integer."""
        dtype = object if self.arithmetic.exact else np.float64
        return AffineArray(self, np.full((*shape, 1), self.arithmetic.entry(value), dtype=dtype))

    def forms(self, array: Any) -> AffineArray:
        """Return an array made by a round, converted to forms."""
        lifted = self.lift(array)
        if lifted is None:
            raise TypeError(f"a round must create its arrays with the backend, got {array!r}")
        return lifted

    def lift(self, other: Any) -> AffineArray | None:
        """Return an operand as forms, or None if it cannot be converted.

        Raises
        ------
        InexactRoundError
            If the operand has floats and the arithmetic is exact.
        """
        if isinstance(other, AffineArray):
            return other
        if isinstance(other, np.ndarray):
            if other.dtype.kind == "f" and self.arithmetic.exact:
                raw_number(float(other.flat[0]) if other.size else 0.0)
            return self.constants(other)
        if isinstance(other, list | tuple):
            return self.lift(np.asarray(other))
        if isinstance(other, bool | int | float | np.generic | ExactNumber):
            return AffineArray(self, self._scalar(other).reshape(1))
        return None

    def refusal(self, what: str, form: AffineArray) -> NotAffineError:
        """Return the error for a round that asks for something a form does not have."""
        return refused(what)

    def _scalar(self, other: Any) -> Entries:
        if not self.arithmetic.exact:
            return np.array(float(other))
        made = np.empty((), dtype=object)
        made[()] = self.arithmetic.entry(raw_number(other))
        return made


class AffineArray(Compared):
    """An array of affine forms.

    Parameters
    ----------
    space : Space
    values : array, (*shape, 1 + symbols)
        Constant and coefficients of every form. Trailing symbols may be omitted; their coefficients
        are then zero.
    """

    __slots__ = ("space", "values")
    __array_priority__ = 1000

    def __init__(self, space: Space, values: Entries) -> None:
        self.space = space
        self.values = space.arithmetic.made(values)

    def copy(self) -> AffineArray:
        """Return a copy of the forms."""
        return AffineArray(self.space, self.values.copy())

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> AffineArray:
        return self.copy()

    def __reduce__(self) -> Any:
        raise refused("a pickle")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array, without the axis of symbols."""
        return self.values.shape[:-1]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.values.ndim - 1

    @property
    def size(self) -> int:
        """Number of forms."""
        return prod(self.shape)

    @property
    def dtype(self) -> Arithmetic:
        """The arithmetic, which takes the place of a dtype."""
        return self.space.arithmetic

    @property
    def device(self) -> str:
        """Device of the array."""
        return "cpu"

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        return self.space.namespace

    @property
    def constant(self) -> Entries:
        """Constant terms, in the shape of the array."""
        return self.values[..., 0]

    def linear(self, width: int) -> Entries:
        """Return the coefficients of the first ``width`` symbols, (*shape, width)."""
        return _padded(self, width + 1)[..., 1 : width + 1]

    @property
    def is_constant(self) -> bool:
        """Whether no form depends on any symbol."""
        linear = self.values[..., 1:]
        return not any(map(bool, linear.flat)) if linear.dtype == object else not linear.any()

    def known(self, what: str) -> Entries:
        """Return the constant terms of an array that must not depend on the model.

        Raises
        ------
        NotAffineError
            If the array depends on the model. The message names ``what``.
        """
        if not self.is_constant:
            raise self.space.refusal(what, self)
        return self.constant

    def cast(self, dtype: np.dtype) -> Entries:
        """Return constants as a NumPy array, refusing forms that depend on the model."""
        known = self.known(f"a cast to {dtype}")
        if not self.space.arithmetic.exact:
            return self.space.arithmetic.decided(known.astype(dtype))
        if dtype.kind not in "iub":
            raise InexactRoundError(f"a cast to {dtype} would round an exact number")
        return np.frompyfunc(lambda item: int(ExactNumber(item)), 1, 1)(known).astype(dtype)

    @property
    def T(self) -> AffineArray:
        """The transpose of a matrix."""
        return AffineArray(self.space, self.values.swapaxes(0, 1))

    def reshape(self, *shape: Any) -> AffineArray:
        """Return the array with a different shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return self.space.namespace.reshape(self, wanted)

    def sum(self, axis: Any = None, keepdims: bool = False) -> AffineArray:
        """Return sums along an axis."""
        return self.space.namespace.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> AffineArray:
        """Return means along an axis."""
        return self.space.namespace.mean(self, axis=axis, keepdims=keepdims)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> AffineArray:
        parts = index if isinstance(index, tuple) else (index,)
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)
        return AffineArray(self.space, self.values[(*parts, slice(None))])

    def __iter__(self) -> Any:
        return (self[row] for row in range(len(self)))

    def _with(self, other: Any, combine: Callable[[Entries, Entries], Entries]) -> Any:
        theirs = self.space.lift(other)
        if theirs is None:
            return NotImplemented
        width = max(self.values.shape[-1], theirs.values.shape[-1])
        return AffineArray(self.space, combine(_padded(self, width), _padded(theirs, width)))

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda mine, theirs: theirs - mine)

    def __neg__(self) -> AffineArray:
        return AffineArray(self.space, -self.values)

    def __pos__(self) -> AffineArray:
        return self

    def __mul__(self, other: Any) -> Any:
        theirs = self.space.lift(other)
        if theirs is None:
            return NotImplemented
        if theirs.is_constant:
            return AffineArray(self.space, self.values * theirs.constant[..., None])
        return AffineArray(self.space, theirs.values * self.known("a product")[..., None])

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        theirs = self.space.lift(other)
        if theirs is None:
            return NotImplemented
        return AffineArray(self.space, self.values / theirs.known("a quotient")[..., None])

    def __rtruediv__(self, other: Any) -> Any:
        theirs = self.space.lift(other)
        return NotImplemented if theirs is None else theirs / self

    def _whole(self, other: Any, divide: Any, what: str) -> Any:
        """Apply a floor division or a remainder to constants."""
        theirs = self.space.lift(other)
        if theirs is None:
            return NotImplemented
        if self.space.arithmetic.exact:
            divide = np.frompyfunc(divide, 2, 1)
        divided = divide(self.known(what), theirs.known(what))
        return AffineArray(self.space, np.asarray(divided)[..., None])

    def __floordiv__(self, other: Any) -> Any:
        divide = floor_divided if self.space.arithmetic.exact else np.floor_divide
        return self._whole(other, divide, "a whole quotient")

    def __mod__(self, other: Any) -> Any:
        divide = rest if self.space.arithmetic.exact else np.mod
        return self._whole(other, divide, "a rest")

    def __pow__(self, exponent: Any) -> AffineArray:
        if exponent == 1:
            return self
        return AffineArray(
            self.space, (self.known("a power") ** operator.index(exponent))[..., None]
        )

    def __abs__(self) -> AffineArray:
        return AffineArray(self.space, abs(self.known("an absolute value"))[..., None])

    def __matmul__(self, other: Any) -> AffineArray:
        return self.space.namespace.matmul(self, other)

    def __rmatmul__(self, other: Any) -> AffineArray:
        return self.space.namespace.matmul(other, self)

    def _compared(
        self, other: Any, relation: Callable[..., Any], contrary: Callable[..., Any]
    ) -> Any:
        mine = self.known("a comparison")
        if mine.ndim == 0:
            raise _one_entry()
        if isinstance(other, float) and np.isinf(other):
            return np.full(mine.shape, relation(0.0, other))
        theirs = self.space.lift(other)
        if theirs is None:
            return NotImplemented
        left, right = mine, theirs.known("a comparison")
        if not self.space.arithmetic.exact:
            return self.space.arithmetic.decided(relation(left, right))
        left, right = np.broadcast_arrays(left, right)
        answers = [
            decided(a, b, relation, contrary) for a, b in zip(left.flat, right.flat, strict=True)
        ]
        return np.array(answers, dtype=bool).reshape(left.shape)

    def __bool__(self) -> bool:
        self.known("a truth value")
        raise _one_entry()

    def __float__(self) -> float:
        self.known("a float")
        raise _one_entry()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Entries:
        values = self.known("numbers")
        if not self.space.arithmetic.exact:
            return np.array(values, dtype=dtype)
        made = np.empty(values.shape, dtype=object)
        for index, item in np.ndenumerate(values):
            made[index] = ExactNumber(item)
        return made

    def __getattr__(self, name: str) -> Any:
        # Attributes that NumPy arrays have but forms lack are refused by name.
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        raise refused(f"the method {name}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and ufunc.__name__ in _OPERATORS:
            forms = [self.space.lift(item) for item in inputs]
            if any(form is None for form in forms):
                return NotImplemented
            return _OPERATORS[ufunc.__name__](*forms)
        return self._by_namespace(ufunc.__name__, ufunc, inputs, kwargs, method)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._by_namespace(func.__name__, func, args, kwargs, "__call__")

    def _by_namespace(self, name: str, function: Any, args: Any, kwargs: Any, method: str) -> Any:
        own = _NAMES.get(name, name)
        if hasattr(Namespace, own) and method == "__call__":
            return getattr(self.space.namespace, own)(*args, **kwargs)
        return _on_constants(
            self.space, f"numpy.{name}", getattr(function, method), *args, **kwargs
        )

    def __repr__(self) -> str:
        return f"AffineArray(shape={self.shape}, symbols={self.values.shape[-1] - 1})"


def _on_constants(
    space: Space, what: str, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Call a NumPy function with forms replaced by their constants; refuse non-constant forms."""

    def plain(item: Any) -> Any:
        if isinstance(item, AffineArray):
            known = item.known(what)
            if space.arithmetic.exact:
                raise InexactRoundError(f"{what} is not available for exact numbers")
            return known
        return [plain(part) for part in item] if isinstance(item, list | tuple) else item

    result = function(*map(plain, args), **{key: plain(item) for key, item in kwargs.items()})
    is_number = isinstance(result, np.ndarray | np.generic) and result.dtype.kind == "f"
    return space.constants(result) if is_number else result


_NAMES = {"concatenate": "concat", "absolute": "abs"}

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def _padded(array: AffineArray, width: int) -> Entries:
    """Return an array's values, padded with zeros to ``width``."""
    values = array.values
    missing = width - values.shape[-1]
    if missing <= 0:
        return values
    pad = np.full((*values.shape[:-1], missing), array.space.zero, dtype=values.dtype)
    return np.concatenate([values, pad], axis=-1)


def noise_covariance(image: AffineArray) -> Entries:
    """Return the covariance (replicas, k, k) of the noise in forms (replicas, k)."""
    space = image.space
    coefficients = image.linear(space.size)
    if not space.noise:
        k = image.shape[-1]
        return np.full((image.shape[0], k, k), space.zero)
    columns = [
        coefficients[..., first : first + covariance.shape[-1]] for first, covariance in space.noise
    ]
    spread = [np.matmul(one, cov) for one, (_, cov) in zip(columns, space.noise, strict=True)]
    # There is one product for all blocks, because a product per client would add up that many
    # arrays (replicas, k, k).
    return np.matmul(np.concatenate(spread, -1), np.concatenate(columns, -1).swapaxes(-1, -2))


class Namespace:
    """The array functions that algorithms use, on forms (named as in the array API standard)."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.__name__ = "affine forms"
        self.int64 = np.int64
        self.bool = np.bool_

    def __repr__(self) -> str:
        return "the namespace of affine forms"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        function = getattr(np, name, None)
        if not callable(function) or isinstance(function, type):
            raise refused(f"the function {name}")
        return partial(_on_constants, self._space, f"the function {name}", function)

    def _forms(self, *arrays: Any) -> list[AffineArray]:
        lifted = [self._space.lift(array) for array in arrays]
        return [array for array in lifted if array is not None]

    def _alike(self, *arrays: Any) -> list[Entries]:
        """Return the values of several arrays, padded to the same number of symbols."""
        forms = self._forms(*arrays)
        width = max(form.values.shape[-1] for form in forms)
        return [_padded(form, width) for form in forms]

    def _made(self, values: Entries) -> AffineArray:
        return AffineArray(self._space, values)

    def asarray(self, values: Any, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
        """Return numbers as forms, or as a NumPy array if ``dtype`` is a NumPy dtype.

        Forms that depend on the model cannot be cast, because that would round them.
        """
        own = dtype is None or isinstance(dtype, type(self._space.arithmetic))
        if isinstance(values, AffineArray):
            if own or np.dtype(dtype) == np.float64:
                return values
            return values.cast(np.dtype(dtype))
        return self._space.lift(np.asarray(values)) if own else np.asarray(values, dtype=dtype)

    def astype(self, array: Any, dtype: Any, copy: bool = True) -> Any:
        """Return an array cast to another dtype."""
        return self.asarray(array, dtype=dtype)

    def zeros(self, shape: Any, dtype: Any = None, device: Any = None) -> Any:
        """Return zeros."""
        return self._filled(shape, dtype, 0)

    def ones(self, shape: Any, dtype: Any = None, device: Any = None) -> Any:
        """Return ones."""
        return self._filled(shape, dtype, 1)

    def _filled(self, shape: Any, dtype: Any, value: int) -> Any:
        shape = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        if dtype is None or isinstance(dtype, type(self._space.arithmetic)):
            return self._space.full(shape, value)
        return np.full(shape, value, dtype=dtype)

    def zeros_like(self, array: Any, dtype: Any = None) -> Any:
        """Return zeros of the same shape."""
        return self._filled(array.shape, dtype, 0)

    def ones_like(self, array: Any, dtype: Any = None) -> Any:
        """Return ones of the same shape."""
        return self._filled(array.shape, dtype, 1)

    def full_like(self, array: Any, value: Any) -> AffineArray:
        """Return an array filled with one value."""
        return self.zeros_like(array) + value

    def where(self, condition: Any, first: Any, second: Any) -> AffineArray:
        """Return forms of ``first`` where a condition is true, and of ``second`` elsewhere."""
        left, right = self._alike(first, second)
        return self._made(np.where(np.asarray(condition)[..., None], left, right))

    def _axes(self, array: AffineArray, axis: Any) -> tuple[int, ...]:
        axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        return tuple(place % array.ndim for place in axes)

    def sum(
        self, array: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None
    ) -> AffineArray:
        """Return sums along an axis."""
        (form,) = self._forms(array)
        return self._made(form.values.sum(axis=self._axes(form, axis), keepdims=keepdims))

    def mean(self, array: Any, axis: Any = None, keepdims: bool = False) -> AffineArray:
        """Return means along an axis."""
        (form,) = self._forms(array)
        count = prod(form.shape[place] for place in self._axes(form, axis))
        return self.sum(form, axis=axis, keepdims=keepdims) / count

    def matmul(self, left: Any, right: Any) -> AffineArray:
        """Return a matrix product, one side of which is constant."""
        first, second = self._forms(left, right)
        if first.is_constant:
            rows, columns = first.constant, second.values
            flat = columns.reshape(*columns.shape[:-2], -1) if columns.ndim > 2 else columns
            if columns.ndim == 2:  # a vector (k, symbols)
                return self._made(np.matmul(rows, columns))
            product = np.matmul(rows, flat)
            return self._made(product.reshape(*product.shape[:-1], *columns.shape[-2:]))
        columns = second.known("a matrix product")
        turned = np.moveaxis(first.values, -1, 0)
        return self._made(np.moveaxis(np.matmul(turned, columns), 0, -1))

    def concat(self, arrays: Any, axis: int = 0) -> AffineArray:
        """Join arrays along an existing axis."""
        forms = self._forms(*arrays)
        return self._made(np.concatenate(self._alike(*forms), axis=axis % forms[0].ndim))

    def stack(self, arrays: Any, axis: int = 0) -> AffineArray:
        """Join arrays along a new axis."""
        forms = self._forms(*arrays)
        return self._made(np.stack(self._alike(*forms), axis=axis % (forms[0].ndim + 1)))

    def tile(self, array: Any, repetitions: Any) -> AffineArray:
        """Return an array repeated."""
        (form,) = self._forms(array)
        times = repetitions if isinstance(repetitions, tuple) else (repetitions,)
        return self._made(np.tile(form.values, (*times, 1)))

    def reshape(self, array: Any, shape: tuple[int, ...]) -> AffineArray:
        """Return an array with a different shape."""
        (form,) = self._forms(array)
        return self._made(form.values.reshape(*shape, form.values.shape[-1]))

    def squeeze(self, array: Any, axis: int) -> AffineArray:
        """Return an array without an axis of length one."""
        (form,) = self._forms(array)
        return self._made(form.values.squeeze(axis=axis % form.ndim))

    def expand_dims(self, array: Any, axis: int = 0) -> AffineArray:
        """Return an array with an added axis of length one."""
        (form,) = self._forms(array)
        return self._made(np.expand_dims(form.values, axis % (form.ndim + 1)))

    def take(self, array: Any, indices: Any, axis: int = 0) -> AffineArray:
        """Return some entries along an axis."""
        (form,) = self._forms(array)
        return self._made(np.take(form.values, np.asarray(indices), axis=axis % form.ndim))

    def take_along_axis(self, array: Any, indices: Any, axis: int) -> AffineArray:
        """Return entries selected by their indices along an axis."""
        (form,) = self._forms(array)
        places = np.asarray(indices)[..., None]
        return self._made(np.take_along_axis(form.values, places, axis=axis % form.ndim))

    def _of_constants(self, array: Any, what: str) -> Entries:
        (form,) = self._forms(array)
        return form.known(what)

    def _folded(self, array: Any, axis: Any, keepdims: bool, what: str, choose: Any) -> AffineArray:
        values = self._of_constants(array, what)
        if not self._space.arithmetic.exact:
            picked = getattr(values, "min" if choose is _lesser else "max")(
                axis=axis, keepdims=keepdims
            )
            return self._made(np.asarray(picked)[..., None])
        folded = np.frompyfunc(choose, 2, 1).reduce(values, axis=axis, keepdims=keepdims)
        return self._made(np.asarray(folded, dtype=object)[..., None])

    def min(self, array: Any, axis: Any = None, keepdims: bool = False) -> AffineArray:
        """Return the smallest of constants."""
        return self._folded(array, axis, keepdims, "a minimum", _lesser)

    def max(self, array: Any, axis: Any = None, keepdims: bool = False) -> AffineArray:
        """Return the largest of constants."""
        return self._folded(array, axis, keepdims, "a maximum", _greater)

    def minimum(self, left: Any, right: Any) -> AffineArray:
        """Return the smaller of constants."""
        return self.where(self._less(left, right, "a minimum"), left, right)

    def maximum(self, left: Any, right: Any) -> AffineArray:
        """Return the larger of constants."""
        return self.where(self._less(left, right, "a maximum"), right, left)

    def _less(self, left: Any, right: Any, what: str) -> Any:
        first, second = self._forms(left, right)
        first.known(what)
        second.known(what)
        return first < second

    def clip(self, array: Any, least: Any = None, most: Any = None) -> AffineArray:
        """Return constants clipped to limits."""
        (form,) = self._forms(array)
        form.known("a clip")
        raised = form if least is None else self.maximum(form, least)
        return raised if most is None else self.minimum(raised, most)

    def sqrt(self, array: Any) -> AffineArray:
        """Return the square roots of constants."""
        values = self._of_constants(array, "a square root")
        if not self._space.arithmetic.exact:
            return self._made(np.sqrt(values)[..., None])
        return self._made(np.frompyfunc(self._space.arithmetic.root, 1, 1)(values)[..., None])

    def abs(self, array: Any) -> AffineArray:
        """Return the absolute values of constants."""
        (form,) = self._forms(array)
        return abs(form)

    def argsort(
        self, array: Any, axis: int = -1, stable: bool = True, descending: bool = False
    ) -> Any:
        """Return the indices that sort constants; ties keep their order."""
        values = self._of_constants(array, "an order")
        if descending:
            values = -values
        if not self._space.arithmetic.exact:
            return self._space.arithmetic.decided(np.argsort(values, axis=axis, kind="stable"))
        ranks: Any = np.frompyfunc(ExactNumber, 1, 1)(values)
        return np.argsort(ranks, axis=axis, kind="stable")

    def any(self, array: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Return whether any constant is not zero."""
        return np.any(self._truth(array), axis=axis, keepdims=keepdims)

    def all(self, array: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Return whether all constants are not zero."""
        return np.all(self._truth(array), axis=axis, keepdims=keepdims)

    @staticmethod
    def _truth(array: Any) -> Any:
        return array != 0 if isinstance(array, AffineArray) else np.asarray(array)


def _lesser(left: Any, right: Any) -> Any:
    return left.min(right) if isinstance(left, arb) else min(left, right)


def _greater(left: Any, right: Any) -> Any:
    return left.max(right) if isinstance(left, arb) else max(left, right)

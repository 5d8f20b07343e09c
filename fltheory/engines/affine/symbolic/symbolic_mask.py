"""A mask of participants that no one has been drawn for: an algorithm's weights as a formula.

An algorithm turns the mask of who takes part into weights. Given a symbol in its place, its own
code says which: for averages and weighted sums they are ``coefficient_i 1{i in S} h(|S|)``, with
numbers known beforehand. Whatever else it does with the symbol is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fltheory.validation import FloatArray

_EXPANDS = {np.multiply, np.true_divide}


class NotASumError(ValueError):
    """What is done with the mask is not a sum over participants."""


class _Symbol(NDArrayOperatorsMixin):
    """What NumPy's functions find where they expect an array; all that is not known is refused."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise NotASumError("who takes part was read as numbers")

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import array_api_compat.numpy

        return array_api_compat.numpy

    def __bool__(self) -> bool:
        raise NotASumError("the round branches on who takes part")

    def __len__(self) -> int:
        raise NotASumError("who takes part was counted one by one")

    def __iter__(self) -> Any:
        raise NotASumError("who takes part was gone through one by one")

    def __getitem__(self, place: Any) -> Any:
        raise NotASumError("some of those who take part were picked out")

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        known: dict[Any, Callable[..., Any]] = {
            np.sum: _sum,
            np.where: _where,
            np.ones_like: _ones_like,
            np.astype: _astype,
        }
        if function not in known:
            raise NotASumError(f"{function.__name__} of who takes part is not a sum over them")
        return known[function](*args, **kwargs)


class OfNumber(_Symbol):
    """A function of the number of participants: ``values[k]`` where there are k.

    Arithmetic, comparisons and `where` go value by value; (replicas, 1) in shape.
    """

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.values.dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, SymbolicMask) for value in inputs):
            return NotImplemented
        if method != "__call__" or kwargs:
            raise NotASumError(f"{ufunc.__name__}.{method} of the number of participants")
        with np.errstate(all="ignore"):
            return OfNumber(ufunc(*map(_of_number, inputs)))


class SymbolicMask(_Symbol):
    """``coefficients_i 1{i takes part} by_number[|S|]`` for all replicas alike.

    The mask itself has coefficients and numbers one. It may be multiplied and divided by
    constants of shape (1, N), by scalars, and by functions of the number of participants; its
    sum is known where the coefficients are equal.
    """

    def __init__(
        self,
        coefficients: FloatArray,
        by_number: FloatArray,
        replicas: int,
        dtype: Any = np.bool_,
    ) -> None:
        self.coefficients = coefficients
        self.by_number = by_number
        self.shape = (replicas, coefficients.size)
        self.dtype = np.dtype(dtype)
        self.ndim = 2

    @classmethod
    def of(cls, n_clients: int, replicas: int) -> SymbolicMask:
        """Return the mask of who takes part."""
        return cls(np.ones(n_clients), np.ones(n_clients + 1), replicas)

    @property
    def is_plain(self) -> bool:
        """Whether it still is the mask itself, unweighted."""
        return bool((self.coefficients == 1).all() and (self.by_number == 1).all())

    def astype(self, dtype: Any, **kwargs: Any) -> SymbolicMask:
        """Return the same as numbers."""
        if np.dtype(dtype).kind != "f":
            raise NotASumError(f"who takes part was turned into {dtype}")
        return SymbolicMask(self.coefficients, self.by_number, self.shape[0], np.dtype(dtype))

    def sum(self, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> OfNumber:
        """Return the sum over clients, a function of how many take part."""
        first = self.coefficients[0]
        whole_row = axis in (1, -1) and keepdims and not any(kwargs.values())
        if not whole_row or (self.coefficients != first).any():
            raise NotASumError("a sum over participants that depends on who they are")
        return OfNumber(first * np.arange(self.by_number.size) * self.by_number)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        left, right = inputs if len(inputs) == 2 else (None, None)
        flipped = ufunc is np.multiply and right is self
        allowed = ufunc in _EXPANDS and method == "__call__" and not kwargs
        if not allowed or not (left is self or flipped):
            raise NotASumError(f"{ufunc.__name__} of who takes part is not a sum over them")
        return self._times(ufunc, left if flipped else right)

    def _times(self, ufunc: Any, factor: Any) -> SymbolicMask:
        coefficients, by_number = self.coefficients, self.by_number
        with np.errstate(all="ignore"):
            if isinstance(factor, OfNumber):
                by_number = ufunc(by_number, factor.values)
            else:
                coefficients = ufunc(coefficients, _of_client(factor, coefficients.size))
        return SymbolicMask(coefficients, by_number, self.shape[0], np.dtype(np.float64))


def _of_client(value: Any, n_clients: int) -> Any:
    """Return a constant (), (N,) or (1, N) as one number a client, or one for all."""
    if isinstance(value, _Symbol):
        raise NotASumError("who takes part was multiplied by itself")
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in {(), (1,), (1, 1), (n_clients,), (1, n_clients)}:
        # Numbers that may differ between replicas may depend on the model.
        raise NotASumError(f"weights were multiplied by an array of shape {array.shape}")
    return array.reshape(-1) if array.size > 1 else float(array.reshape(()))


def _of_number(value: Any) -> Any:
    """Return a constant, or the values of a function of the number."""
    if isinstance(value, OfNumber):
        return value.values
    if isinstance(value, _Symbol) or np.size(value) != 1:
        raise NotASumError("the number of participants met an array")
    return np.asarray(value).reshape(())


def _sum(array: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
    if not isinstance(array, SymbolicMask):
        raise NotASumError("a sum over numbers of participants")
    return array.sum(axis=axis, keepdims=keepdims, **kwargs)


def _where(condition: Any, there: Any, otherwise: Any) -> OfNumber:
    return OfNumber(np.where(*map(_of_number, (condition, there, otherwise))))


def _ones_like(array: Any, **kwargs: Any) -> OfNumber:
    if not isinstance(array, OfNumber):
        raise NotASumError("ones in the shape of who takes part")
    return OfNumber(np.ones(array.values.size))


def _astype(array: Any, dtype: Any, **kwargs: Any) -> Any:
    if isinstance(array, OfNumber):
        return OfNumber(array.values.astype(dtype))
    return array.astype(dtype)

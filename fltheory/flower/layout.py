"""Conversion of a model between Flower's named arrays and one vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord

from fltheory.validation import FloatArray


@dataclass(frozen=True)
class ArrayLayout:
    """The names, shapes and dtype of a model's arrays, in order.

    Attributes
    ----------
    shapes : mapping of str to tuple of int
    dtype : numpy.dtype
        Dtype of all arrays.

    Examples
    --------
    >>> arrays = ArrayRecord([np.ones((2, 2)), np.zeros(1)])
    >>> layout = ArrayLayout.of(arrays)
    >>> layout.flat(arrays)
    array([1., 1., 1., 1., 0.])
    >>> [array.shape for array in layout.record(np.arange(5.0)).to_numpy_ndarrays()]
    [(2, 2), (1,)]
    """

    shapes: Mapping[str, tuple[int, ...]]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, arrays: ArrayRecord) -> ArrayLayout:
        """Return the layout of a model.

        Raises
        ------
        ValueError
            If there are no arrays, or if they are not all floats of one dtype, because the
            algorithms here cannot average counts and batch statistics.
        """
        kinds = {str(array.dtype) for array in arrays.values()}
        kind = next(iter(kinds), "int")
        if len(kinds) != 1 or np.dtype(kind).kind != "f":
            raise ValueError(
                f"arrays must be floats of one kind, got {', '.join(sorted(kinds)) or 'none'}"
            )
        return cls({name: tuple(array.shape) for name, array in arrays.items()}, np.dtype(kind))

    def flat(self, arrays: ArrayRecord) -> FloatArray:
        """Return a model of this layout as a vector, (dim,).

        Raises
        ------
        ValueError
            If the arrays have different names or shapes.
        """
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        if shapes != self.shapes:
            raise ValueError(f"arrays must have shapes {self.shapes}, got {shapes}")
        parts = [arrays[name].numpy().reshape(-1) for name in self.shapes]
        return np.concatenate(parts).astype(self.dtype)

    def record(self, flat: FloatArray) -> ArrayRecord:
        """Return a vector, (dim,), as named arrays of this layout."""
        ends = np.cumsum([prod(shape) for shape in self.shapes.values()])
        parts = np.split(np.asarray(flat, dtype=self.dtype), ends[:-1])
        named = zip(self.shapes.items(), parts, strict=True)
        return ArrayRecord({name: Array(part.reshape(shape)) for (name, shape), part in named})

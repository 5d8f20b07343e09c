"""Reused memory and single-threaded products, for fast rounds of many replicas."""

from __future__ import annotations

import math

import numpy as np

from fltheory.validation import FloatArray

# From this many multiplications on, OpenBLAS starts threads of its own for a product. Those get
# in the way of the sampled engine's threads, and made it six times as slow.
_LARGEST_PRODUCT = 1 << 18


class Scratch:
    """Arrays that are used again and again.

    Fresh arrays of the sizes of a round cost more in page faults than the arithmetic on them.
    """

    def __init__(self) -> None:
        self._held: dict[str, FloatArray] = {}

    def array(self, name: str, *shape: int) -> FloatArray:
        """Return an uninitialised array, in the memory of the last one of this name."""
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size)
        return held[:size].reshape(shape)


def product(left: FloatArray, right: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Multiply two matrices, so many rows at a time that OpenBLAS starts no threads."""
    if out is None:
        out = np.empty((left.shape[0], right.shape[1]))
    rows = max(1, _LARGEST_PRODUCT // max(right.size, 1))
    for start in range(0, left.shape[0], rows):
        np.matmul(left[start : start + rows], right, out=out[start : start + rows])
    return out

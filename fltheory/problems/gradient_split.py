"""Gradients as an affine part and a bounded rest: how far any run can get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class GradientSplit(ReadOnlyArrays):
    """``grad F_i(x) = A_i (x - x*) + v_i + h(x)`` with ``||h(x)|| <= rest`` for all x.

    F's own gradient is the same without ``v_i``, and with the target-weighted mean of the ``A_i``.

    Attributes
    ----------
    hessians : array, (N, d, d)
        ``A_i``, symmetric and positive semidefinite.
    pulls : array, (N, d)
        ``v_i``.
    mean_hessian : array, (d, d)
    rest : float
    """

    hessians: FloatArray
    pulls: FloatArray
    mean_hessian: FloatArray
    rest: float


@runtime_checkable
class HasGradientSplit(Protocol):
    """A problem that knows such a split."""

    @property
    def gradient_split(self) -> GradientSplit:
        """Affine parts of the gradients, and a bound on the rest."""
        ...

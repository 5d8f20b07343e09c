"""What the optimisers of aggregation weights return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

Method = Literal["newton", "cvxpy", "closed form"]


@dataclass(frozen=True, eq=False)
class OptimalWeights(ReadOnlyArrays):
    """Aggregation weights that minimise a bound, and the evidence that they do.

    Attributes
    ----------
    q : array, (N,)
        The weights; they are not negative and sum to ``total``.
    p : array, (N,)
        The importance they give the clients, ``pi_k q_k / (pi'q)``.
    optimization_error : float
        ``(1/2 q'Aq + b) / (pi'q)``.
    bias_error : float
        ``bias`` times the divergence of p from the target.
    availability_multiplier, total_multiplier : float
        lambda* and theta* of the Lagrangian (26), for ``pi'y = 1`` and ``sum y = total s``.
    kkt_residual : float
        How far the point is from optimal, free of units; see the function that made it.
    method : str
        How it was found.
    """

    q: FloatArray
    p: FloatArray
    optimization_error: float
    bias_error: float
    availability_multiplier: float
    total_multiplier: float
    kkt_residual: float
    method: Method

    @property
    def error(self) -> float:
        """The minimum: both errors together."""
        return self.optimization_error + self.bias_error

"""Multinomial logistic regression with a ridge penalty, every client on data of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fltheory.problems.regression.multinomial_losses import MultinomialLosses
from fltheory.problems.regression.multinomial_optimum import Optimum, minimise
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MultinomialProblem(MultinomialLosses):
    """``F_i(W, b) = mean_j f_ij(W, b) + ridge/2 ||(W, b)||^2`` over client i's samples.

    A point x is W row after row and then b, which is the order of the parameters of a linear
    layer in torch.

    Parameters
    ----------
    features : sequence of arrays (n_i, d)
        a, a client after another; float32 is kept as it is, and computed with in float64.
    labels : sequence of arrays of int (n_i,)
        y, between 0 and ``n_classes - 1``.
    n_classes : int
        C, at least 2.
    ridge : float
        Coefficient of the penalty, above 0; the intercept b is penalised as well.
    target_weights : array, (N,), optional
        alpha; uniform by default.

    Raises
    ------
    ValueError
        For arrays that do not fit together, a client without data, labels that are no classes or
        a ridge that is not positive.

    Examples
    --------
    >>> found = MultinomialProblem([[[1.0], [-1.0]]], [[1, 0]], n_classes=2, ridge=0.1)
    >>> found.n_clients, found.dim
    (1, 4)
    """

    @cached_property
    def optimum(self) -> Optimum:
        """The minimiser of F, certified."""
        return minimise(self)

    @property
    def x_star(self) -> FloatArray:
        """(dim,) minimiser of F, to within ``optimum.distance``."""
        return self.optimum.x

"""A setting's numbers as fractions, or as balls where a root or an eigenvalue is not a fraction.

Code that reads a setting's constants can be run on the setting's exact twin, whose numbers are of
type `WideningNumber`. These numbers stay fractions as long as possible, so that equalities can be
decided, and they refuse to be mixed with floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from operator import mul
from typing import Any

import numpy as np
import sympy as sp
from flint import acb_mat, arb, arb_mat, ctx, fmpq, fmpq_mat

from fltheory.decimals import normalised
from fltheory.engines.affine.numbers import (
    RATIONAL,
    Balls,
    Entries,
    ExactNumber,
    InexactRoundError,
    Rational,
    raw_number,
    whole_power,
    with_parameters,
)
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.setting import Setting
from fltheory.exact_or_float import is_exact, largest_norm
from fltheory.participation.process import process_of
from fltheory.problems.ball import Ball
from fltheory.problems.quadratic_problem import QuadraticProblem

_MOST_BITS = 20_000
_FRACTIONS_KEPT = 6


class NoExactTwinError(NotAffineError):
    """Some number of a setting cannot be computed in fractions or balls."""


class WideningNumber(ExactNumber):
    """A fraction that becomes a ball if its root is not a fraction or it has too many digits."""

    __slots__ = ()

    def sqrt(self) -> WideningNumber:
        """Return the square root, as a fraction if possible."""
        return WideningNumber(widening_root(self.value))

    def __pow__(self, exponent: Any) -> Any:
        return WideningNumber(widening_power(self.value, int(raw_number(exponent))))

    def widened(self) -> WideningNumber:
        """Return the number as a ball, whose digits do not grow."""
        return WideningNumber(arb(self.value))

    def log(self) -> WideningNumber:
        """Return the natural logarithm."""
        return WideningNumber(fmpq(0) if self.value == 1 else arb(self.value).log())


def widening_root(value: Any) -> Any:
    """Return the square root of a fraction or ball, as a fraction if possible."""
    if isinstance(value, fmpq):
        try:
            return RATIONAL.root(value)
        except InexactRoundError:
            return Balls(ctx.prec).entry(value).sqrt()
    return value.sqrt()


def widening_power(value: Any, exponent: int) -> Any:
    """Return an integer power of a fraction or ball, as a ball if it has too many digits."""
    if isinstance(value, fmpq):
        bits = max(int(value.p).bit_length(), int(value.q).bit_length())
        if bits * abs(exponent) > _MOST_BITS:
            return arb(value) ** exponent
    return whole_power(value, exponent)


@dataclass(frozen=True)
class Widening(Rational):
    """An arithmetic for hyper-parameters: fractions that may become balls."""

    def parameter(self, value: Any) -> WideningNumber:
        """Return a number as a fraction; a float is read as its shortest decimal."""
        return WideningNumber(self.entry(value))


WIDENING = Widening()


def exact_numbers(values: Any) -> Entries:
    """Return an array of fractions; floats are read as their shortest decimals."""
    given = np.asarray(values)
    made = np.empty(given.size, dtype=object)
    made[:] = [WIDENING.parameter(value) for value in given.ravel().tolist()]
    return made.reshape(given.shape)


def widened(numbers: Any, step: int, kept: int = _FRACTIONS_KEPT) -> Any:
    """Return fractions as balls after the first ``kept`` steps, because digits grow.

    Floats are returned unchanged.
    """
    if not is_exact(numbers) or step <= kept:
        return numbers
    return np.vectorize(lambda value: value.widened(), otypes=[object])(numbers)


def product(*factors: Any) -> Any:
    """Return a product of matrices of floats or of exact numbers, from left to right.

    FLINT multiplies exact numbers and rounds each entry once. If any number is a ball, all are
    treated as balls.

    Raises
    ------
    InexactRoundError
        If there are floats among exact numbers.

    Examples
    --------
    >>> product(np.array([[2.0]]), np.array([[0.5]]))
    array([[1.]])
    """
    if not any(map(is_exact, factors)):
        return reduce(np.matmul, factors)
    raw = [(each.shape, list(map(raw_number, each.flat))) for each in factors]
    balls = any(isinstance(item, arb) for _, each in raw for item in each)
    kinds: tuple[Any, Any] = (arb, arb_mat) if balls else (fmpq, fmpq_mat)
    number, matrix = kinds
    made = reduce(mul, (matrix(*shape, list(map(number, each))) for shape, each in raw))
    found = np.empty(made.nrows() * made.ncols(), dtype=object)
    found[:] = list(map(WideningNumber, made.entries()))
    return found.reshape(made.nrows(), made.ncols())


class ExactProblem(QuadraticProblem):
    """A quadratic problem in exact numbers.

    Parameters
    ----------
    problem : QuadraticProblem
        A Hessian shared by all clients is stored once.
    """

    def __init__(self, problem: QuadraticProblem) -> None:
        shares = problem.noise_shares
        self.__dict__.update(
            hessians=exact_numbers(problem.hessians),
            optima=exact_numbers(problem.optima),
            sigma=WIDENING.parameter(problem.sigma),
            server_sigma=WIDENING.parameter(problem.server_sigma),
            noise_shares=None if shares is None else exact_numbers(shares),
            # Weights such as thirds sum to one only as fractions.
            target_weights=exact_numbers(normalised(problem.alpha)),
        )

    @cached_property
    def eigenbasis(self) -> tuple[Entries, Entries]:
        """Eigenvalues (..., d) and eigenvectors (..., d, d) of diagonal Hessians.

        Raises
        ------
        NoExactTwinError
            If a Hessian is not diagonal.
        """
        hessians = self.hessians[None] if self.shared_hessian else self.hessians
        if not all(_is_diagonal(hessian) for hessian in hessians):
            raise NoExactTwinError("hessians must be diagonal to have an exact eigenbasis")
        values = np.diagonal(hessians, axis1=1, axis2=2)
        identity = exact_numbers(np.eye(self.dim))
        vectors = np.broadcast_to(identity, hessians.shape)
        return (values[0], vectors[0]) if self.shared_hessian else (values, vectors)

    @cached_property
    def _curvatures(self) -> Entries:
        """The eigenvalues of all Hessians, as fractions if diagonal."""
        hessians = self.hessians[None] if self.shared_hessian else self.hessians
        every = [WideningNumber(value) for hessian in hessians for value in _eigenvalues(hessian)]
        return np.array(every, dtype=object)

    @cached_property
    def x_star_error(self) -> Any:
        """Zero: ``x_star`` is exact."""
        return 0

    @cached_property
    def sigma_G(self) -> Any:
        """Gradient dissimilarity over all of R^d, which is infinite unless the Hessians agree."""
        if not self.shared_hessian and (self.hessians != self.hessians[0]).any():
            return sp.oo
        return largest_norm(self.gradients_at_optimum)

    def with_target_weights(self, weights: Entries) -> ExactProblem:
        """Return the same clients with another objective."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        other = object.__new__(ExactProblem)
        other.__dict__.update(given, target_weights=weights)
        return other

    def largest_gradients_on(self, ball: Ball) -> Entries:
        """(N,) the largest ``||grad F_i||`` on a ball; Hessians must be diagonal."""
        return self._largest_squares(ball, 2, lambda square: WideningNumber(square).sqrt())

    def largest_losses_on(self, ball: Ball) -> Entries:
        """(N,) the largest ``F_i`` on a ball; Hessians must be diagonal."""
        return self._largest_squares(ball, 1, lambda square: WideningNumber(square) / 2)

    def _largest_squares(
        self, ball: Ball, power: int, as_number: Callable[[Any], WideningNumber]
    ) -> Entries:
        """Return each client's largest ``(w - c_i)' H_i^power (w - c_i)`` on a ball."""
        curvatures = np.broadcast_to(self.eigenbasis[0], self.optima.shape)
        offsets = ball.centre - self.optima
        found = np.empty(self.n_clients, dtype=object)
        for client in range(self.n_clients):
            square = largest_weighted_square(
                [item.value**power for item in curvatures[client]],
                [item.value for item in offsets[client]],
                raw_number(ball.radius),
            )
            found[client] = as_number(square)
        return found


def _is_diagonal(matrix: Entries) -> bool:
    size = len(matrix)
    return all(matrix[i, j].value == 0 for i in range(size) for j in range(size) if i != j)


def _eigenvalues(matrix: Entries) -> list[Any]:
    """Return a symmetric matrix's eigenvalues: its diagonal if it is diagonal, else balls."""
    if _is_diagonal(matrix):
        return [matrix[i, i].value for i in range(len(matrix))]
    balls = acb_mat([[arb(item.value) for item in row] for row in matrix])
    # Each ball contains one eigenvalue, or as many as there are equal balls. All eigenvalues are
    # real.
    return [value.real for value in balls.eig(multiple=True)]


def exact_setting(setting: Setting) -> Setting:
    """Return a setting's twin in exact numbers, at the current precision.

    Raises
    ------
    NoExactTwinError
        If the clients are not quadratic.
    """
    problem = setting.problem
    if type(problem) is not QuadraticProblem:
        raise NoExactTwinError(
            "problem must be a QuadraticProblem to be evaluated in exact arithmetic, got "
            f"{type(problem).__name__}"
        )
    twin = object.__new__(Setting)
    twin.__dict__.update(
        algorithm=with_parameters(setting.algorithm, WIDENING),
        problem=ExactProblem(problem),
        participation=process_of(setting.participation).in_numbers(exact_numbers),
        rounds=setting.rounds,
        x0=exact_numbers(setting.x0),
    )
    return twin


_MOST_STEPS = 200


def largest_weighted_square(weights: Sequence[Any], offsets: Sequence[Any], radius: Any) -> Any:
    """Return ``sup sum_i w_i (y_i + o_i)^2`` over ``||y|| <= r``, as a fraction or a ball.

    With ``w_i >= 0``, this is a trust-region problem with strong duality (`problems.ball`): every
    ``lam >= max_i w_i`` gives the upper bound

    ``phi(lam) = lam r^2 + sum_i lam w_i o_i^2 / (lam - w_i)``,

    and ``y_i = w_i o_i / (lam - w_i)``, scaled to the sphere, is a point of the ball and gives a
    lower bound. The error of both bounds is quadratic in the error of lam, so any approximate lam
    will do.

    Parameters
    ----------
    weights, offsets : sequences of fmpq
        Nonnegative weights w, and offsets o.
    radius : fmpq
        Positive.

    Raises
    ------
    InexactRoundError
        If numbers are balls that are too wide to decide which case applies.

    Examples
    --------
    >>> from flint import fmpq
    >>> largest_weighted_square([fmpq(1), fmpq(9)], [fmpq(0), fmpq(1, 3)], fmpq(2))
    49
    """
    top = max(weights)
    pulled = [(w, o) for w, o in zip(weights, offsets, strict=True) if w != 0 and o != 0]

    def bound(lam: Any) -> Any:
        return lam * radius**2 + _sum(lam * w * o**2 / (lam - w) for w, o in pulled)

    def reach(lam: Any) -> Any:
        return _sum((w * o / (lam - w)) ** 2 for w, o in pulled)

    if all(w < top for w, _ in pulled) and reach(top) <= radius**2:
        return bound(top)
    # No component of y exceeds the radius, so lam is at least this, with equality for one
    # component.
    least = max([top, *(w + w * abs(o) / radius for w, o in pulled)])
    if least > top and reach(least) == radius**2:
        return bound(least)
    lam = _multiplier(arb(least), pulled, radius)
    if not lam >= top:
        raise InexactRoundError("the multiplier of a supremum over a ball must be larger")
    size = reach(lam).sqrt()
    point = [w * o * radius / ((lam - w) * size) for w, o in pulled]
    reached = _sum(w * (y + o) ** 2 for y, (w, o) in zip(point, pulled, strict=True))
    return arb(reached.lower()).union(arb(bound(lam).upper()))


def _multiplier(least: Any, pulled: Sequence[tuple[Any, Any]], radius: Any) -> Any:
    """Return an approximation of the lam with ``||y|| = r``.

    This is Newton's method on ``1/||y||``. Since this function is concave, iterates that start
    below the solution stay below it.
    """
    lam = arb(least.mid())
    for _ in range(_MOST_STEPS):
        square = _sum((w * o / (lam - w)) ** 2 for w, o in pulled)
        slope = _sum((w * o) ** 2 / (lam - w) ** 3 for w, o in pulled)
        step = (square.sqrt() / radius - 1) * square / slope
        following = arb((lam + step).mid())
        if not following > lam:
            return lam
        lam = following
    raise InexactRoundError("the multiplier of a supremum over a ball was not found")


def _sum(values: Iterable[Any]) -> Any:
    return sum(values, fmpq(0))

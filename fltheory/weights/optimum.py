"""CA-Fed's optimal aggregation weights (Section III-C and Appendices D and E)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.weights import convergence, newton
from fltheory.weights.trade_off import TradeOff

Method = Literal["newton", "cvxpy", "closed form"]
Choice = Literal["auto", "newton", "cvxpy"]
Objective = Literal["chi2", "convergence", "total variation"]

_EXACT_RESIDUAL = 1e-9
_CONIC_RESIDUAL = 1e-8
_LARGEST_CONIC = 100_000
_LARGEST_GAP = 1e-4


@dataclass(frozen=True, eq=False)
class OptimalWeights(ReadOnlyArrays):
    """Aggregation weights that minimise a bound, with evidence of optimality.

    Attributes
    ----------
    q : array, (N,)
        The weights, which are nonnegative and sum to ``total``.
    p : array, (N,)
        The resulting importance of the clients, ``pi_k q_k / (pi'q)``.
    optimization_error : float
        ``(1/2 q'Aq + b) / (pi'q)``.
    bias_error : float
        ``bias`` times the divergence of p from the target.
    availability_multiplier, total_multiplier : float
        lambda* and theta* of the Lagrangian (26), for ``pi'y = 1`` and ``sum y = total s``.
    kkt_residual : float
        Unit-free distance from optimality, defined by the function that returned the object.
    method : str
        The method that found the weights.
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
        """The minimum, the sum of both errors."""
        return self.optimization_error + self.bias_error


@checks_kinds
def optimal(
    availability: ArrayLike | TradeOff,
    target_weights: ArrayLike | None = None,
    *,
    a: ArrayLike = 1.0,
    b: float = 0.0,
    bias: float = 0.0,
    total: float = 1.0,
    objective: Objective = "chi2",
    method: Choice = "auto",
) -> OptimalWeights:
    """Minimise ``(1/2 sum_k a_k q_k^2 + b) / (pi'q) + bias * chi2(alpha || p)`` over q.

    Here q >= 0 sums to ``total`` and ``p_k = pi_k q_k / (pi'q)``. Up to terms that do not depend on
    q, this is the bound of Theorems 1 and 2, equations (10) and (12), times ``sum_t eta_t / (2
    kappa^2)``, with ``bias = kappa^2 Gamma sum_t eta_t``.

    Contrary to Appendix E, the problem is not convex in q (the terms of chi2 are not convex for
    three or more clients). But it is convex in p: ``s = 1/(pi'q) = sum_k p_k / (pi_k total)`` is
    linear, and the objective is ``1/2 sum_k (a_k/pi_k^2) p_k^2 / s + b s + bias (sum_k alpha_k^2 /
    p_k - 1)``. So there is one minimum, at ``q = p / (pi s)``.

    There are two other objectives. One is fast *convergence* alone (Appendix D). Its closed form is
    ``q_k = (lambda* pi_k - theta*)+ / a_k``, equation (27), and clients may get no weight at all.
    The paper says that both multipliers are positive, but theta* is positive if and only if ``b >
    1/2 q'Aq``. Otherwise no client is left out and, if ``a`` is proportional to pi as in Theorem 2,
    clients that are *less* available get larger weights, contrary to guideline A. The other
    objective measures the bias in *total variation*, ``bias * d_TV(alpha, p)^2``. This is the bound
    of Theorem 3, equation (13), with ``bias = 4 kappa^2 Gamma' sum_t eta_t`` held fixed as if
    Gamma' did not depend on q. It is convex in p and is solved by cvxpy.

    Parameters
    ----------
    availability : array, (N,), or TradeOff
        pi, the long-run share of rounds in which a client is online, positive. Alternatively the
        whole problem, for example from `for_setting`; then the only other argument allowed is
        ``method``.
    target_weights : array, (N,), optional
        alpha, the importance of the clients, which sums to one. Equal by default.
    a : array, (N,), or float
        Diagonal of Sigma, ``sigma_k^2 pi_k sum_t eta_t^2`` in Theorem 2; positive for the two
        other objectives.
    b : float
        upsilon in Theorem 2.
    bias : float
        Factor on the divergence ``chi2 = sum_k (alpha_k - p_k)^2 / p_k``, or of the squared total
        variation; zero by default.
    total : float
        Q, the sum of the weights.
    objective : {"chi2", "convergence", "total variation"}
    method : {"auto", "newton", "cvxpy"}
        Used for "chi2". "newton" is exact to rounding and takes O(N) memory and time. "cvxpy" is an
        independent conic solver, which is restarted from the point it found until the residual is
        at most 1e-8. If the residual stays above that, which can happen with rare clients and a
        ``bias`` of about 1e-6 or less, an error is raised. "auto" is "newton", or "cvxpy" (up to
        100,000 clients) if "newton" does not reach the optimum, which can happen if only some
        clients have ``a = 0``.

    Returns
    -------
    OptimalWeights
        Its ``kkt_residual`` is the largest ``|min(N p_k, d_k / t_k)|``, where d_k is the
        Lagrangian's derivative in p_k and t_k the sum of the absolute values of its terms. For
        total variation, it is a bound on the objective's relative distance from its minimum,
        computed from a tangent from below, and is at most 1e-4. This bound is of first order in the
        solver's error, whereas the distance itself is of second order and hence far smaller.

    Raises
    ------
    ValueError
        If an argument is out of range. The message names the argument and the client.
    ArithmeticError
        If no point with a small enough KKT residual is found (1e-9, or 1e-8 by cvxpy).

    Examples
    --------
    One of two otherwise identical clients is online half as often; fast convergence gives it less
    weight.

    >>> even = optimal([1.0, 0.5], [0.5, 0.5], a=1.0, b=4.0, bias=1e6)
    >>> even.q.round(3).tolist()
    [0.333, 0.667]
    >>> fast = optimal([1.0, 0.5], [0.5, 0.5], a=1.0, b=4.0, bias=0.0)
    >>> fast.q.round(3).tolist()
    [1.0, 0.0]
    >>> fastest = optimal([0.9, 0.8, 0.1], a=1.0, b=0.9, objective="convergence")
    >>> fastest.q.round(3).tolist()
    [0.567, 0.433, 0.0]
    """
    validation.one_of("objective", objective, get_args(Objective))
    if isinstance(availability, TradeOff):
        return _OBJECTIVES[objective](availability, method)
    price = 0.0 if objective == "convergence" else bias
    problem = TradeOff(availability, target_weights, a=a, b=b, bias=price, total=total)
    return _OBJECTIVES[objective](problem, method)


def solve(problem: TradeOff, method: Choice = "auto") -> OptimalWeights:
    """Minimise the sum of a problem's two errors; see `optimal`."""
    if method not in get_args(Choice):
        raise ValueError(f"method must be one of {', '.join(get_args(Choice))}, got {method!r}")
    if method == "cvxpy":
        from fltheory.weights import conic

        return _judged(problem, conic.importance(problem), "cvxpy", _CONIC_RESIDUAL)
    if problem.bias == 0:
        return _judged(problem, convergence.importance(problem), "closed form", _EXACT_RESIDUAL)
    p = newton.importance(problem)
    residual = problem.kkt_residual(p)
    stuck = not residual <= _EXACT_RESIDUAL
    if stuck and method == "auto" and problem.n_clients <= _LARGEST_CONIC:
        return solve(problem, "cvxpy")
    return _checked(problem, p, problem.bias_error(p), residual, "newton", _EXACT_RESIDUAL)


def _for_convergence(problem: TradeOff) -> OptimalWeights:
    return _judged(problem, convergence.importance(problem), "closed form", _EXACT_RESIDUAL)


def _in_total_variation(problem: TradeOff) -> OptimalWeights:
    """Minimise the convex problem with the bias in total variation."""
    from fltheory.weights import conic

    # The problem without bias gives the optimisation error and the multipliers of the result.
    without = TradeOff(
        problem.availability,
        problem.target_weights,
        a=problem.a,
        b=problem.b,
        bias=0.0,
        total=problem.total,
    )
    p = conic.total_variation_importance(problem)
    gap = problem.total_variation_gap(p)
    bias_error = problem.bias * problem.total_variation(p) ** 2
    return _checked(without, p, bias_error, gap, "cvxpy", _LARGEST_GAP)


_OBJECTIVES: Mapping[str, Callable[[TradeOff, Choice], OptimalWeights]] = {
    "chi2": solve,
    "convergence": lambda problem, _: _for_convergence(problem),
    "total variation": lambda problem, _: _in_total_variation(problem),
}


def _judged(problem: TradeOff, p: FloatArray, method: Method, limit: float) -> OptimalWeights:
    return _checked(problem, p, problem.bias_error(p), problem.kkt_residual(p), method, limit)


def _checked(
    problem: TradeOff,
    p: FloatArray,
    bias_error: float,
    residual: float,
    method: Method,
    limit: float,
) -> OptimalWeights:
    if not residual <= limit:
        raise ArithmeticError(
            f"the weights found by {method} have a KKT residual of {residual:.1e}, which must be "
            f"at most {limit:g}: the terms of the objective may differ too much in size"
        )
    lagrange, theta = problem.multipliers(p)
    return OptimalWeights(
        q=problem.weights(p),
        p=p,
        optimization_error=problem.optimization_error(p),
        bias_error=bias_error,
        availability_multiplier=lagrange,
        total_multiplier=theta,
        kkt_residual=residual,
        method=method,
    )

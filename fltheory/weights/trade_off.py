"""The problem of CA-Fed's aggregation weights: fast convergence against a small bias."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_SUM_TOLERANCE = 1e-9
_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class TradeOff(ReadOnlyArrays):
    """Minimise ``(1/2 sum_k a_k q_k^2 + b) / (pi'q) + bias * chi2(alpha || p)`` over weights q.

    In the variables ``p_k = pi_k q_k / (pi'q)``, which lie in the simplex, ``s = 1/(pi'q)`` is
    linear, ``s = sum(p / pi) / total``, and the first term is
    ``1/2 sum_k (a_k / pi_k^2) p_k^2 / s + b s``. This is Appendix D's change of variables, with
    ``p = pi y``.

    Parameters
    ----------
    availability, target_weights : arrays, (N,)
        pi, in (0, 1], and alpha, which sums to one.
    a : array, (N,), or float
        Diagonal of the paper's Sigma.
    b : float
        The paper's upsilon.
    bias : float
        The factor on the divergence.
    total : float
        Q, the sum of the weights.

    Raises
    ------
    ValueError
        If an array has the wrong shape, a number is NaN or has the wrong sign, ``target_weights``
        do not sum to one, or a client's term is not strictly convex (``a`` and ``bias * alpha``
        both zero).
    """

    availability: FloatArray
    target_weights: FloatArray
    a: FloatArray
    b: float
    bias: float
    total: float

    def __init__(
        self,
        availability: ArrayLike,
        target_weights: ArrayLike | None,
        *,
        a: ArrayLike,
        b: float,
        bias: float,
        total: float = 1.0,
    ) -> None:
        pi = validation.one_each("availability", availability)
        equal = np.full(pi.size, 1.0 / pi.size)
        given = equal if target_weights is None else target_weights
        alpha = _one_per_client("target_weights", given, pi.size)
        fields = {
            "target_weights": alpha,
            "a": _one_per_client("a", a, pi.size, scalar=True),
            "b": _of_moderate_size("b", b),
            "bias": _of_moderate_size("bias", bias),
            "total": validation.positive("total", total),
            "availability": pi,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if abs(alpha.sum() - 1) > _SUM_TOLERANCE:
            raise ValueError(f"target_weights must sum to 1, got a sum of {alpha.sum():.15g}")
        self._check_availability()
        validation.availability("availability", pi)
        self._check_convexity()

    def _check_availability(self) -> None:
        pi = self.availability
        outside = np.flatnonzero((pi <= 0) | (pi > 1))
        if outside.size == 0:
            return
        client = int(outside[0])
        never = pi[client] == 0 and self.bias > 0 and self.target_weights[client] > 0
        why = ", because the bias of a client that never shows up is infinite" if never else ""
        raise ValueError(
            f"availability must be above 0 and at most 1{why}, "
            f"got {pi[client]:.6g} for client {client}"
        )

    def _check_convexity(self) -> None:
        flat = np.flatnonzero((self.a == 0) & (self.bias * self.target_weights == 0))
        if flat.size:
            raise ValueError(
                "a must be positive where bias * target_weights is 0, because otherwise the "
                f"optimum need not be unique, got 0 for client {int(flat[0])}"
            )

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.availability.size)

    @cached_property
    def rarity(self) -> FloatArray:
        """``1 / pi``, (N,)."""
        return np.asarray(1.0 / self.availability)

    @cached_property
    def curvature(self) -> FloatArray:
        """``a / pi^2``, the factor on ``p^2 / (2 s)``, (N,)."""
        return np.asarray(self.a * self.rarity**2)

    def spread(self, p: FloatArray) -> float:
        """Return ``s = 1 / (pi'q)``."""
        return float(self.rarity @ p) / self.total

    def weights(self, p: FloatArray) -> FloatArray:
        """Return the weights q that give the clients the importance p."""
        return np.asarray(p * self.rarity / self.spread(p))

    def optimization_error(self, p: FloatArray) -> float:
        """Return ``(1/2 q'Aq + b) / (pi'q)``, the part of equation (12) that depends on q."""
        s = self.spread(p)
        return 0.5 * float(self.curvature @ p**2) / s + self.b * s

    def bias_error(self, p: FloatArray) -> float:
        """Return ``bias * chi2(alpha || p)``, as in equation (10)."""
        if self.bias == 0:
            return 0.0
        counted = self.target_weights > 0
        gap = self.target_weights[counted] - p[counted]
        return self.bias * (float((gap**2 / p[counted]).sum()) + float(p[~counted].sum()))

    def multipliers(self, p: FloatArray) -> tuple[float, float]:
        """Return the (lambda, theta) of the Lagrangian (26) that fit p best.

        theta makes the Lagrangian stationary in s, and lambda is the mean over p of the values that
        make it stationary in each p_k.
        """
        s = self.spread(p)
        theta = (self.b - 0.5 * float(self.curvature @ p**2) / s**2) / self.total
        gradient = self._linear_slope(p, s) + theta * self.rarity
        return float(p @ gradient) - self._bias_pull(p)[1], theta

    def kkt_residual(self, p: FloatArray) -> float:
        """Return a unit-free distance of p from optimality, zero at the optimum.

        It is the largest ``|min(N p_k, d_k / t_k)|``, where d_k is the derivative of the Lagrangian
        in p_k and t_k the sum of the absolute values of its terms.
        """
        lagrange, theta = self.multipliers(p)
        slope = self._linear_slope(p, self.spread(p))
        pull = self._bias_pull(p)[0]
        price = theta * self.rarity
        size = slope + pull + abs(lagrange) + np.abs(price)
        reduced = (slope - pull + price - lagrange) / np.where(size > 0, size, 1.0)
        natural = np.minimum(self.n_clients * p, reduced)
        return max(float(np.abs(natural).max()), abs(float(p.sum()) - 1))

    def total_variation(self, p: FloatArray) -> float:
        """Return ``d_TV(alpha, p) = 1/2 sum_k |alpha_k - p_k|``, the bias of Theorem 3."""
        return 0.5 * float(np.abs(self.target_weights - p).sum())

    def total_variation_gap(self, p: FloatArray) -> float:
        """Return a bound on ``1 - minimum / value`` at p with the bias in total variation.

        Both terms are replaced by tangents from below: the first by its linearisation, and the
        second by ``2 d d' - d^2`` for its distance d at p. The minimiser of these tangents moves
        mass from alpha to the client with the smallest slope. It moves a client's whole mass or
        none of it, since a move pays if the slopes differ by more than the toll ``2 bias d``. So
        the minimum of the bound is known in closed form.
        """
        s = self.spread(p)
        _, theta = self.multipliers(p)
        slope = self.curvature * p / s + theta * self.rarity
        at_p = self.total_variation(p)
        toll = 2 * self.bias * at_p
        gained = np.maximum(slope - slope.min() - toll, 0.0)
        value = self.optimization_error(p)
        least = value + float(slope @ (self.target_weights - p) - self.target_weights @ gained)
        least -= self.bias * at_p**2
        value += self.bias * at_p**2
        return max(value - least, 0.0) / value if value > 0 else 0.0

    def _linear_slope(self, p: FloatArray, s: float) -> FloatArray:
        return np.asarray(self.curvature * p / s)

    def _bias_pull(self, p: FloatArray) -> tuple[FloatArray, float]:
        """Return ``bias alpha^2 / p^2`` (N,), and its mean over p."""
        counted = (self.target_weights > 0) & (self.bias > 0)
        with np.errstate(divide="ignore"):
            share = np.divide(self.target_weights, p, out=np.zeros(p.shape), where=counted)
        return self.bias * share**2, self.bias * float(self.target_weights @ share)


def _of_moderate_size(name: str, value: float) -> float:
    """Return a nonnegative number that is small enough for its products to be finite floats."""
    must_be = f"a number from 0 to {_LARGEST:g}"
    return validation.real_number(name, value, must_be, lambda number: 0 <= number <= _LARGEST)


def _one_per_client(
    name: str, value: ArrayLike, n_clients: int, *, scalar: bool = False
) -> FloatArray:
    array = validation.array_of(name, value, n_clients, for_all=scalar)
    if array.min() < 0:
        client = int(array.argmin())
        raise ValueError(
            f"{name} must not be negative, got {array[client]:.6g} for client {client}"
        )
    return array


Chain = Literal["joint", "clients"]

# Beyond this, M dominates b, and the most available client gets almost all the weight.
_MOST_JOINT_STATES = 4096


@checks_kinds
def for_setting(
    problem: QuadraticProblem,
    participation: MarkovOnOff | FiniteChain,
    step_sizes: ArrayLike,
    *,
    local_steps: int,
    x0: ArrayLike,
    total: float = 1.0,
    chain: Chain = "joint",
) -> TradeOff:
    """Return the trade-off whose minimiser minimises the bound of CA-Fed's Theorems 1 and 2.

    The total error is at most ``2 kappa^2`` times the right-hand side of (12), plus ``2 kappa^4
    chi2 Gamma``, equation (10). Multiply this by ``sum_t eta_t / (2 kappa^2)`` and drop the terms
    that are constant if the sum of the weights is fixed. The result is the objective of `optimal`
    with ``a_k = sigma_k^2 pi_k sum_t eta_t^2``, ``b = upsilon = (2/E) ||w_0 - w*||^2 + (M Q / 4)
    sum_t (eta_t^2 + 1/t^2)`` and ``bias = kappa^2 Gamma sum_t eta_t``, where sums are over t = 1 ..
    T.

    In Theorem 2, M is the number of states of the joint chain of all clients, which is 2^N for
    independent on-off clients. The term with M then dominates b, so only speed counts. The reason
    is slack in one step of the proof, (24), which bounds the error of each entry of ``P^J`` by
    1/(2Ht) and adds up the errors over all M sets of clients. But the quantity in (24) is a sum
    over clients, ``sum_k q_k (P(k in A_t | A_{t-J}) - pi_k) (F_k - F_k(w_B*))``, and the presence
    of client k depends on few entries. These are one entry of its own two-state chain (whose
    ``C_P`` and rate are at most the joint chain's) or, in any chain, the entries of the states that
    contain k, or of those that do not. With ``chain="clients"`` M is the number of these entries,
    which gives a smaller and equally valid bound. The term phi, which contains lambda(P), depends
    on the weights only through their sum, so mixing does not matter here.

    Parameters
    ----------
    problem : QuadraticProblem
        sigma_k, L, mu, Gamma, alpha and w*.
    participation : MarkovOnOff or FiniteChain
        pi and M, the number of states of the chain.
    step_sizes : array, (T,)
        eta_1 .. eta_T, positive.
    local_steps : int
        E.
    x0 : array, (d,)
        w_0, the initial model.
    total : float
        Q, the sum of the weights.
    chain : {"joint", "clients"}
        The states that M counts: either all of them, as printed, up to 4,096 states, or only those
        of one client.

    Raises
    ------
    ValueError
        If arguments are out of range or do not match, if a joint chain has more than 4,096 states,
        or if clients are identical and noise-free, because then no term of the bound is strictly
        convex in the weights.

    Examples
    --------
    >>> clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    >>> chains = MarkovOnOff([0.5, 1.0], 0.9)
    >>> trade_off = for_setting(clients, chains, [0.1] * 100, local_steps=1, x0=[3.0])
    >>> trade_off.a.round(3).tolist(), round(trade_off.bias, 3)
    ([0.5, 1.0], 5.0)
    """
    steps = validation.real_array("step_sizes", step_sizes, shape="(T,)")
    if steps.ndim != 1 or steps.size == 0 or (steps <= 0).any():
        raise ValueError(f"step_sizes must be positive, of shape (T,) with T >= 1, got {steps}")
    local_steps = validation.whole_number("local_steps", local_steps, at_least=1)
    start = validation.array_of("x0", x0, problem.dim)
    if participation.n_clients != problem.n_clients:
        raise ValueError(
            f"participation must have the problem's {problem.n_clients} clients, "
            f"got {participation.n_clients}"
        )
    total = validation.positive("total", total)
    squares = float(steps @ steps)
    inverse_squares = float((1 / np.arange(1.0, steps.size + 1) ** 2).sum())
    distance = float(((start - problem.x_star) ** 2).sum())
    states = _states(participation, chain)
    return TradeOff(
        participation.marginals,
        problem.alpha,
        a=problem.client_sigmas**2 * participation.marginals * squares,
        b=2 / local_steps * distance + states * total / 4 * (squares + inverse_squares),
        bias=(problem.L / problem.mu) ** 2 * problem.Gamma * float(steps.sum()),
        total=total,
    )


def _states(participation: MarkovOnOff | FiniteChain, chain: Chain) -> int:
    if chain not in get_args(Chain):
        raise ValueError(f"chain must be one of {', '.join(get_args(Chain))}, got {chain!r}")
    if chain == "clients":
        return participation.n_presence_states
    states = participation.n_states
    if states > _MOST_JOINT_STATES:
        # A number of states beyond 2^13,000 is too long to print.
        count = str(states) if states < 10**6 else f"about 2^{states.bit_length() - 1}"
        raise ValueError(
            f"participation must have at most {_MOST_JOINT_STATES} joint states, got {count}: "
            "Theorem 2's M would outweigh all else and give one client almost all weight; "
            'chain="clients" counts the states of one client only, as the proof allows'
        )
    return states

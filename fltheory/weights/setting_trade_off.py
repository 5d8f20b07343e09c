"""The problem of the weights for a given problem, availability and schedule of step sizes."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.weights.trade_off import TradeOff

Chain = Literal["joint", "clients"]

# Beyond it M outweighs all else in b, and the most available client takes almost all weight.
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
    chi2 Gamma``, equation (10). Up to terms that do not depend on the weights given their sum,
    and times ``sum_t eta_t / (2 kappa^2)``, that is the objective of `optimal` with
    ``a_k = sigma_k^2 pi_k sum_t eta_t^2``, ``b = upsilon = (2/E) ||w_0 - w*||^2 + (M Q / 4)
    sum_t (eta_t^2 + 1/t^2)`` and ``bias = kappa^2 Gamma sum_t eta_t``; sums over t = 1 .. T.

    M is the number of states of the joint chain of all clients in Theorem 2: 2^N for independent
    on-off clients, of which b then consists, so that speed is all that counts. That is slack of
    one step of the proof, (24), which bounds the error of each entry of ``P^J`` by 1/(2Ht) and
    adds them up over all M sets of clients. What stands there is a sum over clients,
    ``sum_k q_k (P(k in A_t | A_{t-J}) - pi_k) (F_k - F_k(w_B*))``, and whether client k is there
    is told by few entries: one of its own two-state chain (whose ``C_P`` and rate are at most the
    joint chain's), or, in any chain, those of the states with k, or without. With
    ``chain="clients"`` M is their number, which gives a smaller and equally valid bound; phi, which
    has lambda(P), depends on the weights by their sum alone, so that mixing does not matter here.

    Parameters
    ----------
    problem : QuadraticProblem
        sigma_k, L, mu, Gamma, alpha and w*.
    participation : MarkovOnOff or FiniteChain
        pi, and M, the number of the chain's states.
    step_sizes : array, (T,)
        eta_1 .. eta_T, positive.
    local_steps : int
        E.
    x0 : array, (d,)
        w_0, the initial model.
    total : float
        Q, the sum of the weights.
    chain : {"joint", "clients"}
        What M counts: all states, as printed, up to 4,096, or those that tell of one client.

    Raises
    ------
    ValueError
        For arguments out of range or that do not fit together, for a joint chain of more than
        4,096 states, and for noise-free clients that
        are all alike, where no term of the bound depends on the weights strictly.

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
    start = validation.real_array("x0", x0, shape=f"({problem.dim},)")
    if start.shape != (problem.dim,):
        raise ValueError(f"x0 must have shape ({problem.dim},), got {start.shape}")
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
        # A number of states beyond 2^13,000 is too long to be written out.
        count = str(states) if states < 10**6 else f"about 2^{states.bit_length() - 1}"
        raise ValueError(
            f"participation must have at most {_MOST_JOINT_STATES} joint states, got {count}: "
            "Theorem 2's M would outweigh all else and give one client almost all weight; "
            'chain="clients" counts what tells of one client, which its proof allows'
        )
    return states

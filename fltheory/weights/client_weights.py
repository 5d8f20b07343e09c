"""Optimal aggregation weights for named clients with known availability and data sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.files.csv_text import csv_text
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.weights.optimum import Choice, OptimalWeights, solve
from fltheory.weights.trade_off import TradeOff

# Squares of the given numbers are multiplied by other numbers.
_MOST = 1e100


def _within(least: float, value: float) -> bool:
    return least <= value <= _MOST


@dataclass(frozen=True)
class Training:
    """The numbers that CA-Fed's bound needs besides availability, in relative units.

    The unit of length is ``||w_0 - w*||`` and the unit of curvature is L, so losses are in units of
    ``L ||w_0 - w*||^2``. The step size is constant. It is the largest that Lemma 2 allows if
    weights sum to one, ``eta = 1/(2 L (E + 1))``.

    Parameters
    ----------
    rounds : int
        T.
    local_steps : int
        E.
    noise : float
        sigma of a local gradient, in units of ``L ||w_0 - w*||``; by default the largest possible
        norm of an initial gradient.
    dissimilarity : float
        Gamma, the largest ``F_k(w*) - F_k*``; by default 1/2, as if the initial model minimised
        some client's loss.
    condition : float
        kappa = L/mu, at least 1. The default 1 weights the bias as CA-Fed itself does in equation
        (14).

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> Training(rounds=100).step
    0.25
    """

    rounds: int = 1000
    local_steps: int = 1
    noise: float = 1.0
    dissimilarity: float = 0.5
    condition: float = 1.0

    def __post_init__(self) -> None:
        validation.whole_number("rounds", self.rounds, at_least=1)
        validation.whole_number("local_steps", self.local_steps, at_least=1)
        validation.positive("dissimilarity", self.dissimilarity)
        for name, least in (("noise", 0.0), ("condition", 1.0)):
            value = getattr(self, name)
            must_be = f"at least {least:g} and at most {_MOST:g}"
            validation.real_number(name, value, must_be, partial(_within, least))

    @property
    def step(self) -> float:
        """eta, in units of 1/L."""
        return 1 / (2 * (self.local_steps + 1))

    def trade_off(self, availability: ArrayLike, target_weights: ArrayLike) -> TradeOff:
        """Return the problem that the weights solve, set up by the rules of `for_setting`.

        ``a_k = sigma^2 pi_k T eta^2``, ``b = 2/E + (T eta^2 + sum_t 1/t^2)/4`` and ``bias = kappa^2
        Gamma T eta``. M is 1, as in `for_setting` with ``chain="clients"``, whether or not clients
        have memory, because clients are assumed to be independent of each other.

        Parameters
        ----------
        availability : array, (N,)
            pi, positive.
        target_weights : array, (N,)
            alpha.
        """
        pi = validation.real_array("availability", availability, shape="(N,)")
        squares = self.rounds * self.step**2
        inverse_squares = float((1 / np.arange(1.0, self.rounds + 1) ** 2).sum())
        return TradeOff(
            pi,
            target_weights,
            a=self.noise**2 * squares * pi,
            b=2 / self.local_steps + (squares + inverse_squares) / 4,
            bias=self.condition**2 * self.dissimilarity * self.rounds * self.step,
        )


@dataclass(frozen=True, eq=False)
class ClientWeights(ReadOnlyArrays):
    """The weight of each client, and the problem solved for clients seen at least once.

    Attributes
    ----------
    clients : tuple of str, (N,)
    availability, target_weights, weights, importance : arrays, (N,)
        pi; alpha, which sums to one over all clients; and q and p, which are 0 for clients never
        seen.
    problem : TradeOff
    solution : OptimalWeights
        The problem and its solution for clients seen at least once, over whom targets are
        normalised.
    """

    clients: tuple[str, ...]
    availability: FloatArray
    target_weights: FloatArray
    weights: FloatArray
    importance: FloatArray
    problem: TradeOff
    solution: OptimalWeights

    @property
    def never_there(self) -> tuple[str, ...]:
        """Clients that are never seen, so no weight can include them."""
        return tuple(n for n, pi in zip(self.clients, self.availability, strict=True) if pi == 0)

    @property
    def lost_target(self) -> float:
        """The share of the target that belongs to clients never seen."""
        return float(self.target_weights[self.availability == 0].sum())

    def as_csv(self) -> str:
        """Return CSV, one line per client: name, availability, target, weight and importance."""
        header = ("client", "availability", "target", "weight", "importance")
        columns = (self.availability, self.target_weights, self.weights, self.importance)
        return csv_text([header, *zip(self.clients, *(c.tolist() for c in columns), strict=True)])


@checks_kinds
def for_clients(
    clients: Sequence[str],
    availability: ArrayLike,
    sizes: ArrayLike | None = None,
    *,
    training: Training | None = None,
    method: Choice = "auto",
) -> ClientWeights:
    """Return clients' optimal weights, given their availability and the sizes of their data.

    Parameters
    ----------
    clients : sequence of str, (N,)
    availability : array, (N,)
        pi, in [0, 1].
    sizes : array, (N,), optional
        Positive numbers, to which the targets are proportional. Equal by default.
    training : Training, optional
        The other numbers that the bound needs; `Training` lists the defaults.
    method : {"auto", "newton", "cvxpy"}

    Raises
    ------
    ValueError
        If an argument is out of range, or nobody is ever online.

    Examples
    --------
    >>> found = for_clients(["ann", "bob", "cid"], [1.0, 0.5, 0.0], [30, 10, 10])
    >>> found.target_weights.round(3).tolist(), found.never_there, round(found.lost_target, 3)
    ([0.6, 0.2, 0.2], ('cid',), 0.2)
    >>> found.weights.round(3).tolist(), found.importance.round(3).tolist()
    ([0.593, 0.407, 0.0], [0.745, 0.255, 0.0])
    """
    for name in clients:
        validation.text("clients", name)
    pi = validation.array_of("availability", availability, len(clients))
    size = checked_sizes(sizes, clients)
    if ((pi < 0) | (pi > 1)).any():
        place = int(np.flatnonzero((pi < 0) | (pi > 1))[0])
        raise ValueError(
            f"availability must be in [0, 1], got {pi[place]:g} for {clients[place]!r}"
        )
    there = np.flatnonzero(pi)
    if not there.size:
        raise ValueError("availability must be above 0 for some client, got 0 for all")
    alpha = size / size.max()
    alpha = alpha / alpha.sum()
    of_those = alpha[there] / alpha[there].sum()
    problem = (training or Training()).trade_off(pi[there], of_those)
    solution = solve(problem, method)
    weights, importance = np.zeros_like(pi), np.zeros_like(pi)
    weights[there], importance[there] = solution.q, solution.p
    return ClientWeights(tuple(clients), pi, alpha, weights, importance, problem, solution)


def checked_sizes(sizes: ArrayLike | None, clients: Sequence[str]) -> FloatArray:
    """Return the sizes of the clients' data, all equal if ``sizes`` is None.

    Raises
    ------
    ValueError
        If the number of sizes is wrong, or a client has no data. The message names the client.
    """
    raw = np.ones(len(clients)) if sizes is None else sizes
    found = validation.array_of("sizes", raw, len(clients))
    if (found <= 0).any():
        place = int(np.flatnonzero(found <= 0)[0])
        raise ValueError(f"sizes must be positive, got {found[place]:g} for {clients[place]!r}")
    return found


def of_problem(problem: TradeOff, method: Choice = "auto") -> ClientWeights:
    """Return the optimal weights of a problem's clients, named by their indices."""
    solution = solve(problem, method)
    return ClientWeights(
        tuple(map(str, range(problem.n_clients))),
        problem.availability,
        problem.target_weights,
        solution.q,
        solution.p,
        problem,
        solution,
    )

"""Methods that remember each client's last gradient, as one round of forms that clients share.

Definitions
-----------
FedVARP, SCAFFOLD, MIFA and, as FedVARP with one client per round, SAGA are with K = 1

    x+ = x - step (1/N sum_i y_i + surprise sum_{i in S} (g_i - y_i)),  y_i+ = g_i for i in S

with ``g_i = grad F_i(x)``; ``surprise`` is 1/m, and 1/N for MIFA. The memory ``y_i`` is the
gradient of F_i at a point phi_i: the model when i was last in S, and at first, where ``y_i = 0``,
the minimiser of F_i. Lengths are in units with L = 1; ``x* = 0``, and less ``grad F_i(x*)``, whose
mean is zero, the memory is w_i and the gradient at the model u_i. A form that clients share has

- a *mean* block of ``(x, mean w, mean phi, mean u)``;
- a block of *differences* from those means, of ``(w, phi, u)``, as the clients' mean;
- coefficients of the means of ``F_i(phi_i)`` and of ``F_i(x)``, less the tangent at x*.

The sum of ``v_i`` over S has a variance of ``N (p - p_2)`` times the mean square of differences,
plus ``N (p - p_2) + N^2 (p_2 - p^2)`` times the square of the mean, with the probabilities p that
one and p_2 that two clients are in S.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np

from fltheory.algorithms import FedVarp, Mifa, Scaffold
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.decimals import as_fraction
from fltheory.participation.base import Participation
from fltheory.participation.process import process_of
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.client_class import ClientClass, exact

Start: TypeAlias = Literal["zero", "gradients"]

PAIRS = tuple(permutations(range(3), 2))
"""Ordered pairs of a client's points: the memory's, the model and x*."""


@dataclass(frozen=True)
class MemoryRound:
    """One round of a method with memory and K = 1, in fractions.

    Attributes
    ----------
    n_clients : int
        N.
    participants : int
        m; 0 where each client is present by itself.
    probability : Fraction
        That a client is present.
    surprise : Fraction
        What each participant's surprise is multiplied by.
    step : Fraction
        client_lr times server_lr.
    start : {"zero", "gradients"}
        What the memory holds at first: nothing, or the gradients at x_0.
    """

    n_clients: int
    participants: int
    probability: Fraction
    surprise: Fraction
    step: Fraction
    start: Start

    @classmethod
    def of(cls, algorithm: Algorithm | Schedule, participation: Participation) -> MemoryRound:
        """Read a round off an algorithm and its participation.

        Raises
        ------
        ValueError
            For what is not covered, with the reason, and for steps that are no fractions.
        """
        if not isinstance(algorithm, FedVarp | Scaffold | Mifa):
            raise ValueError(
                "algorithm must be FedVarp, Scaffold or Mifa, got "
                f"{type(algorithm).__name__}: its memory is not each client's last gradient alone"
            )
        if algorithm.local_steps != 1:
            raise ValueError(
                f"local_steps must be 1, got {algorithm.local_steps}: after more, memory is no "
                "gradient at one point"
            )
        n_clients, participants, probability = _sampling(algorithm, participation)
        mifa = isinstance(algorithm, Mifa)
        waits = isinstance(algorithm, Mifa) and algorithm.start == "wait"
        step = exact("client_lr", algorithm.client_lr, above=0)
        return cls(
            n_clients=n_clients,
            participants=participants,
            probability=probability,
            surprise=Fraction(1, n_clients if mifa else participants),
            step=step * exact("server_lr", algorithm.server_lr, above=0),
            start="gradients" if waits else "zero",
        )

    @property
    def together(self) -> Fraction:
        """The probability that two clients are present."""
        if self.participants == 0:
            return self.probability**2
        return self.probability * Fraction(self.participants - 1, max(self.n_clients - 1, 1))


def _sampling(
    algorithm: FedVarp | Scaffold | Mifa, participation: Participation
) -> tuple[int, int, Fraction]:
    """Return N, m or 0, and the probability that a client is present."""
    process = process_of(participation)
    if process.uniform_draw is not None:
        size, excluded = process.uniform_draw
        if excluded:
            raise ValueError(
                f"participation must exclude nobody, got {len(excluded)} excluded "
                "clients: their memory is never renewed"
            )
        return participation.n_clients, size, Fraction(size, participation.n_clients)
    name = type(participation).__name__
    if not participation.independent:
        raise ValueError(
            f"participation must be UniformSubset or Bernoulli, got {name}: its rounds depend on "
            "the past, and one inequality is to hold for each of them"
        )
    if process.client_chains is None:
        raise ValueError(
            f"participation must be UniformSubset or Bernoulli, got {name}: clients must be "
            "interchangeable, drawn uniformly or present by themselves"
        )
    if not isinstance(algorithm, Mifa):
        raise ValueError(
            f"participation must be UniformSubset for {type(algorithm).__name__}, got {name}: "
            "the weights of those present would be random"
        )
    chances = set(participation.marginals.tolist())
    if len(chances) > 1:
        raise ValueError(
            "participation must have one probability for all clients, got "
            f"{min(chances):g} to {max(chances):g}: clients must be interchangeable"
        )
    return participation.n_clients, 0, as_fraction(chances.pop())


def checked_class(clients: ClientClass) -> ClientClass:
    """Return a class for which memory is covered.

    Raises
    ------
    ValueError
        With noise, or without strong convexity.
    """
    if clients.sigma > 0 or clients.server_sigma > 0:
        raise ValueError(
            "client_class must be without noise: memory would keep it, and be no gradient any more"
        )
    if clients.mu == 0:
        raise ValueError(
            "mu must be above 0: without strong convexity no rate is below 1, and memory of zero "
            "need not be a gradient of the client's"
        )
    return clients


@dataclass(frozen=True, eq=False)
class SharedForm(ReadOnlyArrays):
    """A quadratic form that clients share, and coefficients of function values.

    Attributes
    ----------
    means : array, (4, 4)
        In ``(x, mean w, mean phi, mean u)``.
    differences : array, (3, 3)
        In ``(w, phi, u)`` less their means, of which it is the clients' mean.
    values : array, (2,)
        Of the mean of function values at the memory's points, and at the model.
    """

    means: FloatArray
    differences: FloatArray
    values: FloatArray

    def __add__(self, other: SharedForm) -> SharedForm:
        """Return the sum."""
        return SharedForm(
            self.means + other.means,
            self.differences + other.differences,
            self.values + other.values,
        )

    def __mul__(self, factor: float) -> SharedForm:
        """Return a multiple."""
        return SharedForm(factor * self.means, factor * self.differences, factor * self.values)

    def at(self, model: FloatArray, vectors: FloatArray, values: FloatArray) -> float:
        """Return its value for ``x`` (d,), clients' ``(w, phi, u)`` (N, 3, d) and values (N, 2)."""
        mean = vectors.mean(axis=0)
        apart = vectors - mean
        all_means = np.vstack([model, mean])
        spread = np.einsum("iad,ibd->ab", apart, apart) / len(vectors)
        products = float(np.sum(self.means * (all_means @ all_means.T)))
        return products + float(
            np.sum(self.differences * spread) + self.values @ values.mean(axis=0)
        )


def form(
    means: FloatArray | None = None,
    differences: FloatArray | None = None,
    values: tuple[float, float] = (0.0, 0.0),
) -> SharedForm:
    """Return a form with these parts, zero where they are left out."""
    return SharedForm(
        np.zeros((4, 4)) if means is None else means,
        np.zeros((3, 3)) if differences is None else differences,
        np.array(values),
    )


@dataclass(frozen=True, eq=False)
class Coordinate(ReadOnlyArrays):
    """One coefficient of a Lyapunov function: what it multiplies now, after a round, at first.

    Attributes
    ----------
    name : str
        "means", "differences", "memory_value" or "model_value".
    place : (int, int)
        Row and column in the first two.
    now, after, first : SharedForm
        ``after`` is the mean over S, an upper bound for the model's value; ``first`` is without
        a memory, which is zero or has the gradients at the model.
    """

    name: str
    place: tuple[int, int]
    now: SharedForm
    after: SharedForm
    first: SharedForm


class MemoryForms(ReadOnlyArrays):
    """The forms of a round, for a class of clients.

    Parameters
    ----------
    a_round : MemoryRound
    clients : ClientClass
    """

    def __init__(self, a_round: MemoryRound, clients: ClientClass) -> None:
        self.round = a_round
        self.mu = float(clients.mu / clients.L)
        n, p, two = a_round.n_clients, a_round.probability, a_round.together
        self._p = float(p)
        self._spread = float(n * (p - two))
        self._mean_spread = float(n * (p - two) + n**2 * (two - p * p))
        step, surprise = float(a_round.step * clients.L), float(a_round.surprise)
        x, w, phi, u = np.eye(4)
        dw, dphi, du = np.eye(3)
        # What the means become if the sum over S is its mean, and what its deviation adds.
        reach = step * surprise
        self._mean_step = -step * w - float(step * n * a_round.surprise * p) * (u - w)
        self._moved = np.array(
            [x + self._mean_step, w + self._p * (u - w), phi + self._p * (x - phi)]
        )
        self._jumps = np.array([-reach * (u - w), (u - w) / n, (x - phi) / n])
        self._apart = np.array([-reach * (du - dw), (du - dw) / n, -dphi / n])
        self._kept = np.array([w, phi]), np.array([dw, dphi])
        self._renewed = np.array([u, x]), np.array([du, np.zeros(3)])
        self._points = [
            ((phi, w), (dphi, dw)),
            ((x, u), (0 * du, du)),
            ((0 * x,) * 2, (0 * du,) * 2),
        ]

    @property
    def distance(self) -> SharedForm:
        """``||x||^2``."""
        return form(_corner(4))

    @property
    def dissimilarity(self) -> SharedForm:
        """The mean of ``||grad F_i(x*)||^2`` where memory is zero: the w_i have no mean."""
        return form(differences=_corner(3))

    @property
    def first_means(self) -> FloatArray:
        """A basis of the means that there are at first."""
        return np.eye(4)[:, [0, 2, 3]] if self.round.start == "zero" else np.eye(4)[:, [0, 3]]

    @property
    def first_differences(self) -> FloatArray:
        """A basis of the differences that there are at first."""
        return np.eye(3) if self.round.start == "zero" else np.eye(3)[:, [2]]

    def coordinates(self) -> list[Coordinate]:
        """Return the coefficients of V: of means, of differences, and of function values."""
        found = [self._of_means(i, j) for i in range(3) for j in range(i, 3)]
        found += [self._of_differences(i, j) for i in range(2) for j in range(i, 2)]
        return [*found, self._memory_value(), self._model_value()]

    def conditions(self) -> list[SharedForm]:
        """Return what is at most zero, for each of `PAIRS`, as the clients' mean."""
        return [self._condition(a, b) for a, b in PAIRS]

    def _of_means(self, i: int, j: int) -> Coordinate:
        kept = np.eye(4)[:3]
        renewed = np.vstack([np.eye(4)[0], self._renewed[0]])
        return Coordinate(
            "means",
            (i, j),
            form(_mixed(kept, i, j)),
            form(
                _mixed(self._moved, i, j) + self._mean_spread * _mixed(self._jumps, i, j),
                self._spread * _mixed(self._apart, i, j),
            ),
            form(_mixed(kept if self.round.start == "zero" else renewed, i, j)),
        )

    def _of_differences(self, i: int, j: int) -> Coordinate:
        """Of the clients' mean square less the square of the mean."""
        (kept, kept_apart), (renewed, renewed_apart) = self._kept, self._renewed
        now = form(differences=_mixed(kept_apart, i, j))
        after = form(
            (1 - self._p) * _mixed(kept, i, j)
            + self._p * _mixed(renewed, i, j)
            - _mixed(self._moved[1:], i, j)
            - self._mean_spread * _mixed(self._jumps[1:], i, j),
            (1 - self._p) * _mixed(kept_apart, i, j)
            + self._p * _mixed(renewed_apart, i, j)
            - self._spread * _mixed(self._apart[1:], i, j),
        )
        at_model = form(differences=_mixed(renewed_apart, i, j))
        first = now if self.round.start == "zero" else at_model
        return Coordinate("differences", (i, j), now, after, first)

    def _memory_value(self) -> Coordinate:
        first = (1.0, 0.0) if self.round.start == "zero" else (0.0, 1.0)
        return Coordinate(
            "memory_value",
            (0, 0),
            form(values=(1.0, 0.0)),
            form(values=(1 - self._p, self._p)),
            form(values=first),
        )

    def _model_value(self) -> Coordinate:
        """F(x+) <= F(x) + <grad F(x), x+ - x> + ||x+ - x||^2/2, as F is smooth."""
        u, jump, apart = np.eye(4)[3], self._jumps[0], self._apart[0]
        now = form(values=(0.0, 1.0))
        moved = np.vstack([u, self._mean_step])
        squares = np.outer(moved[1], moved[1]) + self._mean_spread * np.outer(jump, jump)
        after = form(
            _mixed(moved, 0, 1) / 2 + squares / 2, self._spread * np.outer(apart, apart) / 2
        )
        return Coordinate("model_value", (0, 0), now, now + after, now)

    def _condition(self, a: int, b: int) -> SharedForm:
        blocks = []
        for block in range(2):
            (x_a, g_a), (x_b, g_b) = self._points[a][block], self._points[b][block]
            apart, steeper = x_a - x_b, g_a - g_b
            squares = np.outer(steeper, steeper) + self.mu * np.outer(apart, apart)
            mixed = np.outer(steeper, apart) + np.outer(apart, steeper)
            moved = np.outer(g_b, apart) + np.outer(apart, g_b)
            blocks.append(moved / 2 + (squares - self.mu * mixed) / (2 * (1 - self.mu)))
        values = [float(b == point) - float(a == point) for point in range(2)]
        return SharedForm(blocks[0], blocks[1], np.array(values))


def _corner(size: int) -> FloatArray:
    unit = np.eye(size)[0]
    return np.outer(unit, unit)


def _mixed(rows: FloatArray, i: int, j: int) -> FloatArray:
    """Return the form ``2 <row_i, row_j>``, and ``<row_i, row_i>`` for i = j."""
    both = np.outer(rows[i], rows[j])
    return both if i == j else both + both.T

"""Clients that come and go independently, each following its own two-state chain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import exact_or_float, validation
from fltheory.decimals import as_fraction, complement
from fltheory.participation.base import Masks, between
from fltheory.participation.chain_structure import CitedFactor, Mixing, cited_factor_of
from fltheory.participation.chains import FiniteChain
from fltheory.participation.inclusions.independent_clients import (
    IndependentClients,
    chances_of_sets,
)
from fltheory.participation.process import Chances, ClientChains, Law, States
from fltheory.validation import ClientIndices, FloatArray

_MOST_FACTORS = 10
_CHAINS_IN_FACTOR = 4
# nu + (1 - nu) pi takes three operations on numbers of at most 2, with rounding errors of 7e-16.
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class MarkovOnOff(IndependentClients):
    """N independent chains: a client that is online stays with probability nu + (1 - nu) pi.

    A client that is offline comes back with probability ``(1 - nu) pi``. So pi is the stationary
    probability of being online, and nu the second eigenvalue of the client's chain, as in CA-Fed's
    simulation (Section V-A). The chain of all clients is the product of the clients' chains
    (Section III-D) and is never built here.

    Parameters
    ----------
    availability : array, (N,)
        pi; in the stationary state, a client with pi = 0 never takes part and one with pi = 1
        always does.
    correlation : array, (N,), or float
        nu, in (-1, 1); with 0, rounds are independent.
    start : array of 0 and 1, (N,), optional
        Who is online in the first round; by default, this is drawn from the stationary
        distribution.

    Raises
    ------
    ValueError
        If pi is outside [0, 1], nu is outside (-1, 1), or nu is so negative that a transition
        probability would be outside [0, 1]. The message names the client.

    Examples
    --------
    >>> chains = MarkovOnOff([0.5, 0.9], [0.8, -0.1])
    >>> chains.mixing.second_eigenvalue, chains.mixing.rate
    (0.8, 0.9)
    """

    mixes = True

    availability: FloatArray
    correlation: FloatArray
    start: Masks | None

    def __init__(
        self,
        availability: ArrayLike,
        correlation: ArrayLike,
        *,
        start: ArrayLike | None = None,
    ) -> None:
        pi = validation.one_each("availability", availability)
        nu = validation.array_of("correlation", correlation, pi.size, for_all=True)
        validation.good_for_each("availability", pi, (pi >= 0) & (pi <= 1), "in [0, 1]")
        if pi.any():
            validation.availability("availability", np.where(pi > 0, pi, 1.0))
        validation.good_for_each("correlation", nu, np.abs(nu) < 1, "in (-1, 1)")
        stays, comes = nu + (1 - nu) * pi, (1 - nu) * pi
        possible = (stays >= -_ROUNDING) & (comes <= 1 + _ROUNDING)
        validation.good_for_each(
            "correlation", nu, possible, "at least -pi/(1 - pi) and -(1 - pi)/pi"
        )
        fields = {"availability": pi, "correlation": nu, "start": _start(start, pi.size)}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"MarkovOnOff({self.n_clients} clients)"

    @property
    def stays(self) -> FloatArray:
        """(N,) probability that a present client is present in the next round, too."""
        return np.asarray(_chains(self.availability, self.correlation)[:, 1, 1])

    @property
    def comes(self) -> FloatArray:
        """(N,) probability that an absent client is present in the next round."""
        return np.asarray(complement(self.correlation) * self.availability)

    @property
    def independent(self) -> bool:
        """Whether rounds are i.i.d.: there is no correlation and no given start."""
        return self.start is None and not self.correlation[self._varies].any()

    @property
    def client_chains(self) -> ClientChains:
        """The chains of single clients."""
        pi, nu = self.availability, self.correlation
        first = pi if self.start is None else self.start + 0 * pi
        (lacks, comes), (leaves, stays) = np.moveaxis(_chains(pi, nu), 0, -1)
        return ClientChains(first, stays, comes, nu, complement(first), leaves, lacks)

    @cached_property
    def mixing(self) -> Mixing:
        """lambda_2, lambda(P), C_P and T_P of equation (5), for the product of all chains.

        Eigenvalues of the product chain are products of the clients' eigenvalues, so lambda_2 is
        the largest |nu| of a client that is neither always nor never online. For one client,
        ``P^t - 1 pi' = nu^t (I - 1 pi')``. Entries of the product are products of numbers in [0,
        1], and two such products differ by at most the sum of the differences of their factors.
        Hence ``C_P = sum_k max(pi_k, 1 - pi_k)`` with ``T_P = 0``.
        """
        nothing = 0 * self.correlation[:1]
        second = exact_or_float.largest(np.abs(np.append(self.correlation[self._varies], nothing)))
        factor = exact_or_float.number(np.maximum(self.availability, 1 - self.availability).sum())
        return Mixing(second, (second + 1) / 2, factor, 0)

    @cached_property
    def cited_factor(self) -> CitedFactor:
        """C_P as CA-Fed cites it from its reference [14], with the clients' product eigenbasis.

        For one client, ``P^t = 1 pi' + nu^t (1 - pi, -pi)'(1, -1)``, so the norms of right and left
        eigenvectors have the product ``sqrt(2 (pi^2 + (1 - pi)^2))``. The norms for the product
        chain are products of these.
        """
        pi = self.availability[self._varies]
        both = [2 * exact_or_float.root(2 * (p**2 + (1 - p) ** 2)) for p in pi]
        nothing = 0 * self.availability[0]
        lengths = exact_or_float.number(math.prod(both, start=nothing + 1))
        return cited_factor_of(2 ** len(both), lengths)

    @property
    def start_distance(self) -> Any:
        """Total variation between the first round's state distribution and its limit."""
        if self.start is None:
            return 0
        here = np.where(self.start, self.availability, 1 - self.availability)
        return exact_or_float.number(1 - here.prod())

    def as_chain(self) -> FiniteChain:
        """Return the product chain of the clients that change state; the others stay fixed.

        Raises
        ------
        ValueError
            If there are more than 10 such clients, or the start is never visited by a stationary
            chain.
        """
        varies = self._varies
        if varies.size > _MOST_FACTORS:
            raise ValueError(
                f"availability must be strictly between 0 and 1 for at most {_MOST_FACTORS} "
                f"clients if the product of their chains is to be built, got {varies.size}"
            )
        if self._moves.size > varies.size:
            raise ValueError("start must agree with the clients that always or never participate")
        states = self.states()
        begins = None if self.start is None else int(states.initial.argmax())
        return FiniteChain(states.backward(np.eye(self.n_states)), states.masks, start=begins)

    @property
    def _moves(self) -> ClientIndices:
        """Clients that vary, and clients that start in a state of stationary probability zero."""
        if self.start is None:
            return self._varies
        return np.union1d(self._varies, np.flatnonzero(self.availability != self.start))

    @property
    def n_states(self) -> int:
        """2 to the number of clients that ever change state."""
        return 2 ** int(self._moves.size)

    @property
    def n_presence_states(self) -> int:
        """One: a client's probability of presence is an entry of its own chain's ``P^t``."""
        return 1

    def _state_masks(self) -> Masks:
        """Return which clients are present in each state, (M, N)."""
        moving = np.isin(np.arange(self.n_clients), self._moves)
        return np.array(list(between(self.availability == 1, moving)))

    def states(self) -> States:
        """Return the states of the clients that change state, with each client's chain."""
        moves, masks = self._moves, self._state_masks()
        pi = self.availability[moves]
        limit = np.where(masks[:, moves], pi, complement(pi)).prod(axis=1)
        each = _chains(pi, self.correlation[moves])
        factors = tuple(
            np.asarray(reduce(np.kron, each[i : i + _CHAINS_IN_FACTOR]))
            for i in range(0, len(each), _CHAINS_IN_FACTOR)
        )
        initial = limit
        if self.start is not None:
            initial = (masks == self.start).all(axis=1).astype(np.float64)
        return States(masks, initial, limit, factors)

    def law(self) -> Law:
        """Return the law, with one state per set of online clients among those that change."""
        moves, masks = self._moves, self._state_masks()
        pi = [as_fraction(p) for p in self.availability[moves]]
        nu = [as_fraction(correlation) for correlation in self.correlation[moves]]
        comes = [(1 - n) * p for n, p in zip(nu, pi, strict=True)]
        stays = [n + c for n, c in zip(nu, comes, strict=True)]

        def following(state: int) -> Chances:
            here = masks[state, moves]
            return chances_of_sets(
                [s if h else c for h, s, c in zip(here, stays, comes, strict=True)]
            )

        first = limit = chances_of_sets(pi)
        if self.start is not None:
            (state,) = np.flatnonzero((masks == self.start).all(axis=1))
            first = [(int(state), Fraction(1))]
        return Law.of_states(masks, first, following, limit)

    def _numbers(self) -> Mapping[str, Any]:
        return {"availability": self.availability, "correlation": self.correlation}

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Yield each round's participants in ``replicas`` independent runs."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        shape = (replicas, self.n_clients)
        stays, comes = self.stays, self.comes
        if self.start is None:
            present = rng.random(shape) < self.availability
        else:
            present = np.tile(self.start, (replicas, 1))
        while True:
            yield present
            present = rng.random(shape) < np.where(present, stays, comes)


def _start(start: ArrayLike | None, n_clients: int) -> Masks | None:
    if start is None:
        return None
    array = validation.array_of("start", start, n_clients, flags=True)
    validation.good_for_each("start", array, (array == 0) | (array == 1), "0 or 1")
    return array.astype(bool)


def _chains(availability: Any, correlation: Any) -> Any:
    """Return the clients' transition matrices, (n, 2, 2), with the absent state first.

    No float is computed as a difference of floats; if the correlation is negative, decimals are
    subtracted instead.
    """
    away, uncorrelated = complement(availability), complement(correlation)
    remains = np.stack([away + correlation * availability, availability + correlation * away])
    if remains.dtype != object:
        for k in np.flatnonzero(correlation < 0):
            p, nu = as_fraction(availability[k]), as_fraction(correlation[k])
            remains[:, k] = float(1 - p + nu * p), float(p + nu * (1 - p))
    moves = uncorrelated * availability, uncorrelated * away
    return np.stack([remains[0], *moves, remains[1]], axis=-1).reshape(-1, 2, 2)

"""Clients that come and go independently, each by a two-state chain of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from fltheory import exact_or_float, validation
from fltheory.decimals import as_fraction
from fltheory.participation.base import Masks
from fltheory.participation.exact_law import ExactLaw, chain_law
from fltheory.participation.inclusions.independent_clients import IndependentClients, sets_present
from fltheory.participation.inclusions.subsets import between
from fltheory.participation.with_memory.chain_structure import CitedFactor, Mixing, cited_factor_of
from fltheory.participation.with_memory.chains import FiniteChain, ProductStates, States
from fltheory.validation import ClientIndices, FloatArray

_MOST_FACTORS = 10
_CHAINS_IN_FACTOR = 4
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class MarkovOnOff(IndependentClients):
    """N independent chains: a client that is there stays with probability nu + (1 - nu) pi.

    One that is not there comes with probability ``(1 - nu) pi``, so that pi is the stationary
    probability of being there and nu the chain's second eigenvalue: CA-Fed's simulation,
    Section V-A. The chain of all clients is the product of theirs (Section III-D) and is never
    built here.

    Parameters
    ----------
    availability : array, (N,)
        pi; a client with pi = 0 or 1 never or always takes part once it is stationary.
    correlation : array, (N,), or float
        nu, in (-1, 1); 0 is independence over rounds.
    start : array of 0 and 1, (N,), optional
        Who is there in the first round; drawn from the stationary law by default.

    Raises
    ------
    ValueError
        For pi outside [0, 1], nu outside (-1, 1), or so negative a nu that a transition
        probability would leave [0, 1]; the error names the client.

    Examples
    --------
    >>> chains = MarkovOnOff([0.5, 0.9], [0.8, -0.1])
    >>> chains.mixing.second_eigenvalue, chains.mixing.rate
    (0.8, 0.9)
    """

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
        pi = validation.real_array("availability", availability, shape="(N,)")
        if pi.ndim != 1 or pi.size == 0:
            raise ValueError(f"availability must have shape (N,) with N >= 1, got {pi.shape}")
        nu = validation.real_array("correlation", correlation, shape=f"({pi.size},)")
        if nu.ndim == 0:
            nu = np.broadcast_to(nu, pi.shape)
        if nu.shape != pi.shape:
            raise ValueError(f"correlation must have shape {pi.shape}, got {nu.shape}")
        _check_each("availability", pi, (pi >= 0) & (pi <= 1), "in [0, 1]")
        if pi.any():
            validation.availability("availability", np.where(pi > 0, pi, 1.0))
        _check_each("correlation", nu, np.abs(nu) < 1, "in (-1, 1)")
        stays, comes = nu + (1 - nu) * pi, (1 - nu) * pi
        possible = (stays >= -_ROUNDING) & (comes <= 1 + _ROUNDING)
        _check_each("correlation", nu, possible, "at least -pi/(1 - pi) and -(1 - pi)/pi")
        fields = {"availability": pi, "correlation": nu, "start": _start(start, pi.size)}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"MarkovOnOff({self.n_clients} clients)"

    @property
    def stays(self) -> FloatArray:
        """(N,) probability that a client that is there is so in the next round."""
        return np.asarray(self.correlation + (1 - self.correlation) * self.availability)

    @property
    def comes(self) -> FloatArray:
        """(N,) probability that a client that is not there is so in the next round."""
        return np.asarray((1 - self.correlation) * self.availability)

    @property
    def independent(self) -> bool:
        """Whether rounds are independent and alike: no client is correlated, none is set."""
        return self.start is None and not self.correlation[self._varies].any()

    @property
    def _varies(self) -> ClientIndices:
        return np.flatnonzero((self.availability > 0) & (self.availability < 1))

    @cached_property
    def mixing(self) -> Mixing:
        """lambda_2, lambda(P), C_P and T_P of equation (5), for the product of all chains.

        Eigenvalues of a product are products of the clients', so lambda_2 is the largest |nu|
        of a client that is neither always nor never there. For one client
        ``P^t - 1 pi' = nu^t (I - 1 pi')``; entries of the product are products of numbers in
        [0, 1], whose difference is at most the sum of the factors' differences:
        ``C_P = sum_k max(pi_k, 1 - pi_k)`` with ``T_P = 0``.
        """
        nothing = 0 * self.correlation[:1]
        second = exact_or_float.largest(np.abs(np.append(self.correlation[self._varies], nothing)))
        factor = exact_or_float.number(np.maximum(self.availability, 1 - self.availability).sum())
        return Mixing(second, (second + 1) / 2, factor, 0)

    @cached_property
    def cited_factor(self) -> CitedFactor:
        """C_P as CA-Fed takes it from its [14], with the product of the clients' eigenbases.

        One client has ``P^t = 1 pi' + nu^t (1 - pi, -pi)'(1, -1)``, so that both of its
        eigenvectors times their left ones are ``sqrt(2 (pi^2 + (1 - pi)^2))`` long, and products
        are as long as the product of their factors.
        """
        pi = self.availability[self._varies]
        both = [2 * exact_or_float.root(2 * (p**2 + (1 - p) ** 2)) for p in pi]
        nothing = 0 * self.availability[0]
        lengths = exact_or_float.number(prod(both, start=nothing + 1))
        return cited_factor_of(2 ** len(both), lengths)

    @property
    def fixed_size(self) -> int | None:
        """The number of participants if no client ever changes, else None."""
        return None if self._varies.size else int(self.availability.sum())

    @property
    def n_outcomes(self) -> int:
        """How many sets have positive stationary probability: 2 to the clients that vary."""
        return 2 ** int(self._varies.size)

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Every set of positive stationary probability."""
        yield from sets_present(self.availability)

    def restricted_to(self, clients: Sequence[int]) -> MarkovOnOff:
        """Return the chains of some clients alone, what is left after exclusions.

        Guideline B of CA-Fed: lambda(P) falls where the most correlated clients are left out.
        """
        kept = [validation.whole_number("clients", client, at_least=0) for client in clients]
        if max(kept, default=self.n_clients) >= self.n_clients:
            raise ValueError(f"clients must name some from 0 to {self.n_clients - 1}, got {kept}")
        start = None if self.start is None else self.start[kept]
        return MarkovOnOff(self.availability[kept], self.correlation[kept], start=start)

    def as_chain(self) -> FiniteChain:
        """Return the product chain, on all sets that differ in clients that vary.

        Raises
        ------
        ValueError
            For more than 10 such clients, or a start that a stationary chain never visits.
        """
        varies = self._varies
        if varies.size > _MOST_FACTORS:
            raise ValueError(
                f"availability must be strictly between 0 and 1 for at most {_MOST_FACTORS} "
                f"clients to build the product of their chains, got {varies.size}"
            )
        transition = np.ones((1, 1))
        for stays, comes in zip(self.stays[varies], self.comes[varies], strict=True):
            transition = np.kron(transition, [[1 - comes, comes], [1 - stays, stays]])
        masks = np.array([mask for _, mask in self.outcomes()])
        if self.start is None:
            return FiniteChain(transition, masks)
        state = np.flatnonzero((masks == self.start).all(axis=1))
        if state.size == 0:
            raise ValueError("start must agree with the clients that are always or never there")
        return FiniteChain(transition, masks, start=int(state[0]))

    @property
    def _moves(self) -> ClientIndices:
        """Clients that vary, and those that begin where a stationary chain never is."""
        if self.start is None:
            return self._varies
        return np.union1d(self._varies, np.flatnonzero(self.availability != self.start))

    @property
    def n_states(self) -> int:
        """2 to the clients that are not in the same state for ever."""
        return 2 ** int(self._moves.size)

    @property
    def n_presence_states(self) -> int:
        """Entries of ``P^t`` that a client's chance of being there sums: one, of its own chain."""
        return 1

    def states(self) -> States:
        """Return the states of the clients that move, with each client's chain."""
        moves = self._moves
        moving = np.zeros(self.n_clients, dtype=bool)
        moving[moves] = True
        masks = np.array(list(between(self.availability == 1, moving)))
        pi = self.availability[moves]
        limit = np.where(masks[:, moves], pi, 1 - pi).prod(axis=1)
        stays, comes = self.stays[moves], self.comes[moves]
        rows = np.stack([1 - comes, comes, 1 - stays, stays], axis=-1)
        if self.start is None:
            initial = limit
        else:
            initial = (masks == self.start).all(axis=1).astype(np.float64)
        each = rows.reshape(-1, 2, 2)
        factors = tuple(
            np.asarray(reduce(np.kron, each[i : i + _CHAINS_IN_FACTOR]))
            for i in range(0, len(each), _CHAINS_IN_FACTOR)
        )
        return ProductStates(factors, masks, initial, limit)

    def exact_law(self) -> ExactLaw:
        """Return who of those that move is there, with each client's chain in fractions."""
        moves = self._moves.tolist()
        moving = np.zeros(self.n_clients, dtype=bool)
        moving[moves] = True
        masks = np.array(list(between(self.availability == 1, moving)))
        pi = [as_fraction(self.availability[i]) for i in moves]
        nu = [as_fraction(self.correlation[i]) for i in moves]
        comes = [(1 - n) * p for n, p in zip(nu, pi, strict=True)]
        stays = [n + c for n, c in zip(nu, comes, strict=True)]

        def following(state: int) -> list[tuple[int, Fraction]]:
            here = masks[state, moves]
            there = [s if h else c for h, s, c in zip(here, stays, comes, strict=True)]
            return list(_chances_of_sets(there))

        if self.start is None:
            initial = list(_chances_of_sets(pi))
        else:
            (state,) = np.flatnonzero((masks == self.start).all(axis=1))
            initial = [(int(state), Fraction(1))]
        return chain_law(initial, masks, following)

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw round after round for ``replicas`` independent runs."""
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


def _chances_of_sets(chances: Sequence[Fraction]) -> Iterator[tuple[int, Fraction]]:
    """Yield every set that is possible, in the order of `between`, with its probability."""
    for number, present in enumerate(product((False, True), repeat=len(chances))):
        chance = prod((p if here else 1 - p) for p, here in zip(chances, present, strict=True))
        if chance > 0:
            yield number, Fraction(chance)


def fedau_chains(availability: ArrayLike, largest_transition: float) -> MarkovOnOff:
    """Return the chains of FedAU's experiments: as correlated as a transition's limit allows.

    A client that is not there comes with probability c, the limit, and one that is there leaves
    with ``c (1/p - 1)``, so that p is stationary; where that would exceed one it leaves for
    sure, and comes with ``p/(1-p)``. The second eigenvalue is ``1 - c/p``, or ``-p/(1-p)``.

    Parameters
    ----------
    availability : array, (N,)
        p, in (0, 1].
    largest_transition : float
        c, in (0, 1]; 0.05 in the experiments.

    Raises
    ------
    ValueError
        For p or c outside (0, 1]; the error names the client.

    Examples
    --------
    >>> chains = fedau_chains([0.5, 0.01], 0.05)
    >>> chains.comes.round(6).tolist(), (1 - chains.stays).round(6).tolist()
    ([0.05, 0.010101], [0.05, 1.0])
    """
    p = validation.real_array("availability", availability, shape="(N,)")
    if p.ndim != 1 or p.size == 0:
        raise ValueError(f"availability must have shape (N,) with N >= 1, got {p.shape}")
    _check_each("availability", p, (p > 0) & (p <= 1), "in (0, 1]")
    c = validation.real_number(
        "largest_transition", largest_transition, "in (0, 1]", lambda number: 0 < number <= 1
    )
    with np.errstate(divide="ignore"):
        correlation = np.where(c * (1 / p - 1) <= 1, 1 - c / p, -p / (1 - p))
    return MarkovOnOff(p, correlation)


def _check_each(name: str, values: FloatArray, good: Masks, must_be: str) -> None:
    bad = np.flatnonzero(~good)
    if bad.size:
        raise ValueError(f"{name} must be {must_be}, got {values[bad[0]]:.6g} for client {bad[0]}")


def _start(start: ArrayLike | None, n_clients: int) -> Masks | None:
    if start is None:
        return None
    array = validation.real_array("start", start, shape=f"({n_clients},)", flags=True)
    if array.shape != (n_clients,):
        raise ValueError(f"start must have shape ({n_clients},), got {array.shape}")
    _check_each("start", array, (array == 0) | (array == 1), "0 or 1")
    return array.astype(bool)

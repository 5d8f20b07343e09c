"""Participation processes defined by their law in fractions, and properties derived from the law.

Participation depends on a state, and the states form a finite Markov chain. Independent and
identically distributed rounds have one state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.participation import chain_structure
from fltheory.participation.base import Masks, Participation, counted
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

Chances = Sequence[tuple[int, Fraction]]

_ALONE: Chances = ((0, Fraction(1)),)
_MOST_IN_FRACTIONS = 64
_MOST_SETS = 4096


@dataclass(frozen=True, eq=False)
class Law:
    """States with participant sets and transitions, in fractions; floats are read as decimals.

    Attributes
    ----------
    who : callable
        Returns a state's possible participant sets, as ``(probability, mask of shape (N,))``.
    first : sequence of (int, Fraction)
        Possible states of the first round, with their probabilities, which sum to one.
    following : callable
        Returns the states that may follow a state, with their probabilities.
    limit : sequence of (int, Fraction), optional
        Each state's long-run share of the rounds, if known without computation.
    """

    who: Callable[[int], Sequence[tuple[Fraction, Masks]]]
    first: Chances = _ALONE
    following: Callable[[int], Chances] = lambda state: _ALONE
    limit: Chances | None = None

    @classmethod
    def of_states(
        cls,
        masks: Masks,
        first: Chances,
        following: Callable[[int], Chances],
        limit: Chances | None = None,
    ) -> Law:
        """Return the law of a chain of M states with participants ``masks`` (M, N)."""
        return cls(lambda state: ((Fraction(1), masks[state]),), first, following, limit)


@dataclass(frozen=True, eq=False)
class States(ReadOnlyArrays):
    """States with their participants, and the Markov chain on them, in floats.

    P is the transition matrix, with one row per current state; values ``v_i`` move to ``sum_i P_ij
    v_i``. The stored floats define the process and are treated as exact.

    Attributes
    ----------
    masks : array of bool, (M, N)
        Who is present in a state.
    initial : array, (M,)
        Distribution of the first round's state.
    limit : array, (M,), or None
        Limit of the state's distribution, or None if there is no limit.
    factors : tuple of arrays
        P is their Kronecker product, which is never built: a state's index has one digit for each
        factor. Without factors, each state is followed by the next one, and the last by the first.
    """

    masks: Masks
    initial: FloatArray
    limit: FloatArray | None
    factors: tuple[FloatArray, ...] = ()

    @property
    def operations(self) -> int:
        """Number of rounding errors in a moved value, from sums and from computed factors."""
        return sum(len(factor) + len(factor).bit_length() for factor in self.factors)

    def forward(self, values: FloatArray) -> FloatArray:
        """Return ``sum_i P_ij values_i`` for every j, from (M, ...)."""
        return self._moved(values, 1, [factor.T for factor in self.factors])

    def backward(self, values: FloatArray) -> FloatArray:
        """Return ``sum_j P_ij values_j`` for every i, from (M, ...)."""
        return self._moved(values, -1, self.factors)

    def _moved(self, values: FloatArray, shift: int, factors: Sequence[FloatArray]) -> FloatArray:
        if not factors:
            return np.roll(values, shift, axis=0)
        moved, before = values, 1
        for factor in factors:
            moved = factor @ moved.reshape(before, len(factor), -1)
            before *= len(factor)
        return moved.reshape(values.shape)


@dataclass(frozen=True, eq=False)
class ClientChains(ReadOnlyArrays):
    """A two-state chain for each client: (N,) probabilities of being present.

    ``first`` is the probability in the first round, ``stays`` the probability after a round in
    which the client is present, and ``comes`` after a round in which it is absent; ``correlation``
    is the second eigenvalue, ``stays - comes``. ``absent``, ``leaves`` and ``lacks`` are one minus
    ``first``, ``stays`` and ``comes``, computed without cancellation.
    """

    first: FloatArray
    stays: FloatArray
    comes: FloatArray
    correlation: FloatArray
    absent: FloatArray
    leaves: FloatArray
    lacks: FloatArray


class UniformDraw(NamedTuple):
    """A number of clients drawn uniformly from those not excluded, anew in every round."""

    size: int
    excluded: tuple[int, ...]


class Process(ReadOnlyArrays):
    """Participation defined by its law; all other properties are derived from it.

    A subclass defines ``n_clients`` and `law` and, if rounds are dependent, also `n_states`; each
    state then has one participant set. It overrides what it can compute faster.

    Examples
    --------
    Two clients take turns:

    >>> class Turns(Process):
    ...     n_clients, n_states = 2, 2
    ...     def law(self):
    ...         swap = lambda state: ((1 - state, Fraction(1)),)
    ...         return Law.of_states(np.eye(2, dtype=bool), ((0, Fraction(1)),), swap)
    >>> turns = Turns()
    >>> turns.independent, turns.fixed_size, turns.marginals.tolist()
    (False, 1, [0.5, 0.5])
    """

    mixes: ClassVar[bool] = False
    """Whether the law of the state has the same limit from every start: CA-Fed's Assumption 1."""

    repeats: ClassVar[bool] = False
    """Whether a client may be drawn more than once in a round; masks are then counts (int64)."""

    if TYPE_CHECKING:
        # Subclasses may define n_clients as a field, which a property of the base class would
        # prevent.
        @property
        def n_clients(self) -> int:
            """N, all clients."""
            ...

    def law(self) -> Law:
        """Return the law in fractions; feasible only with few participant sets or states."""
        raise NotImplementedError

    def exact_limit(self) -> Chances:
        """Return each state's long-run share of the rounds."""
        law, zero = self.law(), Fraction(0)
        if law.limit is not None:
            return law.limit
        states = range(self.n_states or 0)
        rows = [dict(law.following(state)) for state in states]
        dense = [[row.get(state, zero) for state in states] for row in rows]
        return tuple(enumerate(chain_structure.stationary_law(dense)))

    def exact_outcomes(self) -> list[tuple[Fraction, Masks]]:
        """Return every participant set with its long-run share of the rounds."""
        law = self.law()
        shares: defaultdict[bytes, Fraction] = defaultdict(Fraction)
        for state, share in self.exact_limit():
            for chance, mask in law.who(state):
                shares[mask.tobytes()] += share * chance
        kind = np.int64 if self.repeats else np.bool_
        return [
            (share, np.frombuffer(mask, dtype=kind)) for mask, share in shares.items() if share > 0
        ]

    @property
    def n_states(self) -> int | None:
        """M, the number of states, which are numbered from 0, or None if the law is unknown.

        It is 1 if rounds are independent and identically distributed.
        """
        return 1

    @property
    def independent(self) -> bool:
        """Whether the participants of all rounds are independent and identically distributed."""
        return self.n_states == 1

    @cached_property
    def _shares(self) -> tuple[Masks, FloatArray]:
        """Participant sets, (s, N), with their long-run shares of the rounds, (s,)."""
        outcomes = self.exact_outcomes()
        return np.array([mask for _, mask in outcomes]), np.array([float(p) for p, _ in outcomes])

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client takes part, in the long run."""
        masks, shares = self._shares
        return np.asarray(shares @ masks)

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that two clients take part together, in the long run."""
        masks, shares = self._shares
        return np.asarray((masks.T * shares) @ masks.astype(np.float64))

    def weighted_inclusions(self, weight: FloatArray) -> FloatArray:
        """Return ``E[1{i and j take part} weight[|S|]]``, (N, N), for ``weight`` (N + 1,).

        Raises
        ------
        ValueError
            If the number of participants varies and there are too many sets to enumerate.
        """
        if self.fixed_size is not None:
            return np.asarray(weight[self.fixed_size] * self.pair_inclusions)
        if self.n_outcomes > _MOST_SETS:
            raise ValueError(
                f"participation must have at most {_MOST_SETS} outcomes, a fixed number of "
                "participants, or weighted_inclusions of its own, got "
                f"{counted(self.n_outcomes)} outcomes of varying size"
            )
        chances, each = zip(*self.outcomes(), strict=True)
        sets = np.array(each)
        shares = np.array(chances) * weight[sets.sum(axis=1)]
        return np.asarray((sets.T * shares) @ sets.astype(np.float64))

    @property
    def fixed_size(self) -> int | None:
        """The number of participants if it never varies, otherwise None."""
        return same_number(self._shares[0])

    @property
    def n_outcomes(self) -> int:
        """Number of participant sets with positive probability."""
        return len(self._shares[0])

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Yield every participant set with its long-run share of the rounds."""
        for mask, share in zip(*self._shares, strict=True):
            yield float(share), mask

    def states(self) -> States:
        """Return the states and their transitions; memory grows with M^2."""
        law, count = self.law(), self.n_states or 0

        def spread(chances: Chances) -> FloatArray:
            row = np.zeros(count)
            for state, chance in chances:
                row[state] = chance
            return row

        transition = np.array([spread(law.following(state)) for state in range(count)])
        masks = np.array([mask for state in range(count) for _, mask in law.who(state)])
        stationary = chain_structure.stationary_law
        limit = stationary(transition) if law.limit is None else spread(law.limit)
        return States(masks, spread(law.first), limit, (transition,))

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Yield each round's participants in ``replicas`` independent runs."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        if self.independent:
            (sets, first), rows = self._shares, None
        else:
            states = self.states()
            sets, first = states.masks, states.initial
            rows = _thresholds(states.backward(np.eye(len(sets))))
        begin = _thresholds(first[None])[0]
        state = np.searchsorted(begin, rng.random(replicas), side="right")
        while True:
            yield sets[state]
            drawn = rng.random(replicas)
            following = np.empty_like(state)
            for origin in np.unique(state):
                here = state == origin
                limits = begin if rows is None else rows[origin]
                following[here] = np.searchsorted(limits, drawn[here], side="right")
            state = following

    @property
    def period(self) -> int | None:
        """Number of rounds until a deterministic process repeats, or None if it is random."""
        return 1 if self.fixed_size == self.n_clients else None

    def known_path(self, rounds: int) -> Masks | None:
        """Return the participants of each round, (rounds, N), or None if they are random.

        Paths are known for cycles, for traces that begin with a given round, and if everybody
        always takes part.

        Raises
        ------
        ValueError
            If there is less than one round.
        """
        rounds = validation.whole_number("rounds", rounds, at_least=1)
        if self.period is None:
            return None
        if self.fixed_size == self.n_clients:
            # Nothing is drawn, so fractions are not compared with floats.
            return np.ones((rounds, self.n_clients), dtype=bool)
        drawn = self.masks(np.random.default_rng(0), 1)
        return np.concatenate([mask.copy() for mask in islice(drawn, rounds)])

    @cached_property
    def mixing(self) -> chain_structure.Mixing:
        """lambda_2, lambda(P), C_P and T_P of CA-Fed's equation (5)."""
        states, limit = self._states_with_limit()
        return chain_structure.mixing(states.backward(np.eye(len(limit))), limit)

    @cached_property
    def cited_factor(self) -> chain_structure.CitedFactor:
        """C_P as CA-Fed takes it from its reference [14], with an eigenbasis computed in floats."""
        states, limit = self._states_with_limit()
        return chain_structure.cited_factor(states.backward(np.eye(len(limit))), limit)

    @property
    def start_distance(self) -> Any:
        """Total variation between the first round's state distribution and its limit."""
        states, limit = self._states_with_limit()
        return float(np.maximum(limit - states.initial, 0.0).sum())

    def _states_with_limit(self) -> tuple[States, FloatArray]:
        states = self.states() if self.mixes else None
        if states is None or states.limit is None:
            raise ValueError(
                "participation must be a Markov chain that converges to a stationary distribution, "
                f"got {self!r}"
            )
        return states, states.limit

    @property
    def client_chains(self) -> ClientChains | None:
        """The chains of single clients if clients follow independent chains, otherwise None."""
        return None

    @property
    def uniform_draw(self) -> UniformDraw | None:
        """Size and excluded clients if participants are a uniform draw, otherwise None."""
        return None

    def in_numbers(self, made: Callable[[Any], NDArray[Any]]) -> Self:
        """Return the process with its probabilities in another number type.

        ``made`` converts an array of floats (read as decimals) or of fractions. Properties not
        known in fractions stay in floats.
        """
        twin = _without_caches(self)
        vars(twin).update({name: made(values) for name, values in self._numbers().items()})
        return twin

    def _numbers(self) -> Mapping[str, Any]:
        """Return the fields that are probabilities, and other properties known in fractions."""
        if self.n_states is None or max(self.n_states, self.n_outcomes) > _MOST_IN_FRACTIONS:
            return {}
        each = self.exact_outcomes()
        return {"marginals": [sum(p for p, mask in each if mask[i]) for i in range(self.n_clients)]}


def _thresholds(laws: FloatArray) -> FloatArray:
    """Return cumulative distributions that are exactly one from the last possible state on."""
    thresholds = np.cumsum(laws, axis=1)
    last = laws.shape[1] - 1 - (laws[:, ::-1] > 0).argmax(axis=1)
    thresholds[np.arange(laws.shape[1]) >= last[:, None]] = 1.0
    return thresholds


def same_number(masks: Masks) -> int | None:
    """Return the common size of participant sets (s, N), or None if it varies."""
    sizes = masks.sum(axis=1)
    return int(sizes[0]) if (sizes == sizes[0]).all() else None


class _Stranger(Process):
    """A user's process, completed with defaults for the rest of the interface."""

    def __init__(self, process: Participation) -> None:
        self.process = process

    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__(self, "__dict__")
        if name in ("n_states", "in_numbers", *own) or name.startswith("__"):
            return object.__getattribute__(self, name)
        try:
            return getattr(own["process"], name)
        except AttributeError:
            return object.__getattribute__(self, name)

    @property
    def n_states(self) -> int | None:
        """The number of states that the user's process declares, or None if its law is unknown."""
        return getattr(self.process, "n_states", None)

    def in_numbers(self, made: Callable[[Any], NDArray[Any]]) -> Any:
        """Return the user's own object, in floats, because callers may look at its class."""
        return _without_caches(self.process)


def _without_caches(thing: Any) -> Any:
    """Return a copy without values cached in floats, which other number types must not use."""
    twin = copy(thing)
    for name in list(vars(twin)):
        if isinstance(getattr(type(twin), name, None), cached_property):
            del vars(twin)[name]
    return twin


def process_of(participation: Participation) -> Process:
    """Return a process with the whole interface, adding defaults to a user's own process."""
    return participation if isinstance(participation, Process) else _Stranger(participation)

"""A process told once, by its law in fractions, and what follows from the law.

Who takes part depends on a state, and the states are a finite Markov chain. Rounds that are
independent and alike have one state.
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
    """States that say who takes part, each with what may follow; a float is its shortest decimal.

    Attributes
    ----------
    who : callable
        The participant sets that a state may have, ``(probability, mask of shape (N,))``.
    first : sequence of (int, Fraction)
        States that the first round may be in, with their probabilities, which sum to one.
    following : callable
        The states that may follow a state, with their probabilities.
    limit : sequence of (int, Fraction), optional
        Each state's share of the rounds in the long run, where it need not be worked out.
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
        """Return the law of a chain whose states (M,) have the participants ``masks`` (M, N)."""
        return cls(lambda state: ((Fraction(1), masks[state]),), first, following, limit)


@dataclass(frozen=True, eq=False)
class States(ReadOnlyArrays):
    """States that say who is present, and the Markov chain on them, in floats.

    With P the matrix of transitions, a row for the state one comes from, an array of values ``v_i``
    moves to ``sum_i P_ij v_i``. What is stored is taken for exact: it is the process.

    Attributes
    ----------
    masks : array of bool, (M, N)
        Who is present in a state.
    initial : array, (M,)
        Law of the first round's state.
    limit : array, (M,), or None
        Law to which the state's law converges; None where it has no limit.
    factors : tuple of arrays
        P is their Kronecker product, which is never built: a state's number has a digit of each.
        Without any, each state is followed by the next one, and the last by the first.
    """

    masks: Masks
    initial: FloatArray
    limit: FloatArray | None
    factors: tuple[FloatArray, ...] = ()

    @property
    def operations(self) -> int:
        """Rounding errors in a number: of sums, and of the products that factors may be."""
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
    """Chains of two states, one of each client's own: (N,) probabilities to be there.

    ``first`` in the first round, ``stays`` after a round in which it was, ``comes`` after another;
    ``correlation`` is the second eigenvalue, the difference of the last two. ``absent``, ``leaves``
    and ``lacks`` are what the first three leave of one, without its error.
    """

    first: FloatArray
    stays: FloatArray
    comes: FloatArray
    correlation: FloatArray
    absent: FloatArray
    leaves: FloatArray
    lacks: FloatArray


class UniformDraw(NamedTuple):
    """So many clients, drawn uniformly from those not excluded, afresh in every round."""

    size: int
    excluded: tuple[int, ...]


class Process(ReadOnlyArrays):
    """Participation that states its law once; the rest follows from it.

    A subclass gives ``n_clients`` and `law`, and, where a round depends on those before, also
    `n_states`; a state then has one set. What it knows a faster way to it overrides.

    Examples
    --------
    Two clients in turn:

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
    """Whether the law of its state, wherever it begins, has one limit: CA-Fed's Assumption 1."""

    repeats: ClassVar[bool] = False
    """Whether a client may be drawn more than once in a round: masks are then counts, int64."""

    if TYPE_CHECKING:
        # At run time it may be a field, which a property of a base would get in the way of.
        @property
        def n_clients(self) -> int:
            """N, all clients."""
            ...

    def law(self) -> Law:
        """Return the law in fractions; for few participant sets, or states."""
        raise NotImplementedError

    def exact_limit(self) -> Chances:
        """Return each state's share of the rounds in the long run."""
        law, zero = self.law(), Fraction(0)
        if law.limit is not None:
            return law.limit
        states = range(self.n_states or 0)
        rows = [dict(law.following(state)) for state in states]
        dense = [[row.get(state, zero) for state in states] for row in rows]
        return tuple(enumerate(chain_structure.stationary_law(dense)))

    def exact_outcomes(self) -> list[tuple[Fraction, Masks]]:
        """Return every participant set with its share of the rounds in the long run."""
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
        """M, numbered from 0; 1 where rounds are independent and alike, None for no known law."""
        return 1

    @property
    def independent(self) -> bool:
        """Whether the participants of all rounds are independent and have the same law."""
        return self.n_states == 1

    @cached_property
    def _shares(self) -> tuple[Masks, FloatArray]:
        """Participant sets, (s, N), with their shares of the rounds in the long run, (s,)."""
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
            If participants vary in number, in too many sets to go through.
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
        """How many participant sets have positive probability."""
        return len(self._shares[0])

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Every participant set with its share of the rounds in the long run."""
        for mask, share in zip(*self._shares, strict=True):
            yield float(share), mask

    def states(self) -> States:
        """Return the states and how they follow one another; memory grows with M^2."""
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
        """After how many rounds all begins again where nothing is random, None under chance."""
        return 1 if self.fixed_size == self.n_clients else None

    def known_path(self, rounds: int) -> Masks | None:
        """Return who takes part in each round, (rounds, N); None where chance has a part in it.

        Known are cycles, traces that begin with a given round, and everybody always.

        Raises
        ------
        ValueError
            For fewer than one round.
        """
        rounds = validation.whole_number("rounds", rounds, at_least=1)
        if self.period is None:
            return None
        if self.fixed_size == self.n_clients:
            # Nothing is drawn: availabilities that are fractions are compared with no float.
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
        """C_P as CA-Fed takes it from its [14], with an eigenbasis that floats find."""
        states, limit = self._states_with_limit()
        return chain_structure.cited_factor(states.backward(np.eye(len(limit))), limit)

    @property
    def start_distance(self) -> Any:
        """Total variation between the laws of the first round's state and of the limit."""
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
        """The chains of single clients where these come and go independently, else None."""
        return None

    @property
    def uniform_draw(self) -> UniformDraw | None:
        """How many are drawn of whom where participants are a uniform draw, else None."""
        return None

    def in_numbers(self, made: Callable[[Any], NDArray[Any]]) -> Self:
        """Return the process with its probabilities in other numbers than floats.

        ``made`` makes an array of them of floats, for their decimals, and of fractions. What is
        not known in fractions stays in floats.
        """
        twin = _without_caches(self)
        vars(twin).update({name: made(values) for name, values in self._numbers().items()})
        return twin

    def _numbers(self) -> Mapping[str, Any]:
        """Return fields that are probabilities, and what is known in fractions of the others."""
        if self.n_states is None or max(self.n_states, self.n_outcomes) > _MOST_IN_FRACTIONS:
            return {}
        each = self.exact_outcomes()
        return {"marginals": [sum(p for p, mask in each if mask[i]) for i in range(self.n_clients)]}


def _thresholds(laws: FloatArray) -> FloatArray:
    """Return cumulative laws that end in exactly one, at the last state that is possible."""
    thresholds = np.cumsum(laws, axis=1)
    last = laws.shape[1] - 1 - (laws[:, ::-1] > 0).argmax(axis=1)
    thresholds[np.arange(laws.shape[1]) >= last[:, None]] = 1.0
    return thresholds


def same_number(masks: Masks) -> int | None:
    """Return how many are present in each of some sets (s, N), None where that varies."""
    sizes = masks.sum(axis=1)
    return int(sizes[0]) if (sizes == sizes[0]).all() else None


class _Stranger(Process):
    """Someone else's process: what it states, and the contract's defaults for the rest."""

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
        """The number that it states, if any: no law is known otherwise."""
        return getattr(self.process, "n_states", None)

    def in_numbers(self, made: Callable[[Any], NDArray[Any]]) -> Any:
        """Return the stranger's own, in floats: whoever asks may look for its class."""
        return _without_caches(self.process)


def _without_caches(thing: Any) -> Any:
    """Return a copy without what was cached from floats, not to be met in other numbers."""
    twin = copy(thing)
    for name in list(vars(twin)):
        if isinstance(getattr(type(twin), name, None), cached_property):
            del vars(twin)[name]
    return twin


def process_of(participation: Participation) -> Process:
    """Return a process with the whole contract: of a stranger's, with defaults."""
    return participation if isinstance(participation, Process) else _Stranger(participation)

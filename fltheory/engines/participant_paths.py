"""Who takes part in every round: all sequences of participant sets, or some that are drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice, product

import numpy as np

from fltheory import validation
from fltheory.participation.base import Masks, Participation, Stateful
from fltheory.participation.states import States
from fltheory.validation import FloatArray

MOST_PATHS = 50_000
_MOST_STATES = 1 << 18

_Following = Callable[[int], tuple[tuple[int, float], ...]]


def all_paths(participation: Participation, rounds: int) -> tuple[FloatArray, Masks] | None:
    """Return every sequence of participant sets with its probability, None if there are too many.

    Parameters
    ----------
    participation : Participation
        Independent over rounds, or with states.
    rounds : int

    Returns
    -------
    tuple of arrays, (P,) and (P, rounds, N), or None
        None beyond 50,000 paths or 262,144 states, or where neither of the two is known.

    Examples
    --------
    >>> from fltheory.participation import Cyclic
    >>> chances, masks = all_paths(Cyclic([2, 3], [0, 0]), 4)
    >>> chances.tolist(), masks[0].sum(axis=0).tolist()
    ([1.0], [2, 2])
    """
    if participation.independent:
        return _of_independent_rounds(participation, rounds)
    if isinstance(participation, Stateful) and participation.n_states <= _MOST_STATES:
        return _along_states(participation.states(), rounds)
    return None


def drawn_paths(
    participation: Participation, rounds: int, count: int, seed: int
) -> tuple[FloatArray, Masks]:
    """Draw sequences of participant sets: equal weights (count,) and sets (count, rounds, N).

    Raises
    ------
    ValueError
        For fewer than 2, or a negative seed.
    """
    count = validation.whole_number("paths", count, at_least=2)
    rng = np.random.default_rng(validation.whole_number("seed", seed, at_least=0))
    drawn = islice(participation.masks(rng, count), rounds)
    return np.full(count, 1 / count), np.stack([mask.copy() for mask in drawn], axis=1)


def _of_independent_rounds(
    participation: Participation, rounds: int
) -> tuple[FloatArray, Masks] | None:
    if participation.n_outcomes > MOST_PATHS or participation.n_outcomes**rounds > MOST_PATHS:
        return None
    outcomes = list(participation.outcomes())
    every = list(product(outcomes, repeat=rounds))
    weights = np.array([np.prod([chance for chance, _ in path]) for path in every])
    return weights, np.array([[mask for _, mask in path] for path in every])


def _along_states(states: States, rounds: int) -> tuple[FloatArray, Masks] | None:
    following = _transitions(states)
    paths: list[tuple[float, tuple[int, ...]]]
    paths = [(float(chance), (i,)) for i, chance in enumerate(states.initial) if chance > 0]
    for _ in range(rounds - 1):
        if len(paths) > MOST_PATHS:
            return None
        paths = [
            (chance * step, (*path, j)) for chance, path in paths for j, step in following(path[-1])
        ]
    if len(paths) > MOST_PATHS:
        return None
    weights = np.array([chance for chance, _ in paths])
    return weights, states.masks[np.array([path for _, path in paths])]


def _transitions(states: States) -> _Following:
    """Return a function from a state to those that can follow it, with their probabilities."""
    unit = np.zeros(len(states.masks))

    @cache
    def following(state: int) -> tuple[tuple[int, float], ...]:
        unit[state] = 1.0
        reached = states.forward(unit)
        unit[state] = 0.0
        return tuple((int(j), float(reached[j])) for j in np.flatnonzero(reached > 0))

    return following

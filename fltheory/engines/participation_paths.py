"""Sequences of participant sets: all of them with their chances, or some that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

import numpy as np

from fltheory import validation
from fltheory.engines.setting import Setting
from fltheory.participation.base import Masks, Participation, Stateful
from fltheory.participation.states import States
from fltheory.validation import FloatArray

_MOST_PATHS = 50_000


def drawn_paths(setting: Setting, paths: int, seed: int) -> tuple[FloatArray, Masks]:
    """Draw ``paths`` sequences: weights (P,) and who takes part, (P, rounds, N)."""
    count = validation.whole_number("paths", paths, at_least=2)
    rng = np.random.default_rng(validation.whole_number("seed", seed, at_least=0))
    drawn = islice(setting.participation.masks(rng, count), setting.rounds)
    return np.full(count, 1 / count), np.stack([mask.copy() for mask in drawn], axis=1)


def every_path(setting: Setting) -> tuple[FloatArray, Masks]:
    """Return all sequences of positive probability: weights (P,), masks (P, rounds, N).

    Raises
    ------
    ValueError
        If there are more than 50,000, or neither are rounds independent nor are the states known
        that follow one another.
    """
    participation = setting.participation
    if participation.independent:
        return _independent_paths(participation, setting.rounds)
    if isinstance(participation, Stateful):
        return _paths_of_states(participation.states(), participation, setting.rounds)
    raise ValueError(
        "participation must be independent over rounds, or follow states, to enumerate its "
        f"paths, got {participation!r}: give the number of paths to draw"
    )


def _independent_paths(participation: Participation, rounds: int) -> tuple[FloatArray, Masks]:
    if participation.n_outcomes**rounds > _MOST_PATHS:
        raise _too_many(f"{participation.n_outcomes} sets in {rounds} rounds")
    outcomes = list(participation.outcomes())
    every = list(product(outcomes, repeat=rounds))
    weights = np.array([np.prod([chance for chance, _ in path]) for path in every])
    return weights, np.array([[mask for _, mask in path] for path in every])


def _paths_of_states(
    states: States, participation: Participation, rounds: int
) -> tuple[FloatArray, Masks]:
    following: dict[int, list[tuple[int, float]]] = {}

    def successors(state: int) -> list[tuple[int, float]]:
        if state not in following:
            unit = np.zeros(len(states.masks))
            unit[state] = 1.0
            following[state] = list(_possible(states.forward(unit)))
        return following[state]

    paths = [([state], chance) for state, chance in _possible(states.initial)]
    for _ in range(rounds - 1):
        paths = [
            ([*path, state], chance * step)
            for path, chance in paths
            for state, step in successors(path[-1])
        ]
        if len(paths) > _MOST_PATHS:
            raise _too_many(f"more from {participation!r} in {rounds} rounds")
    return np.array([chance for _, chance in paths]), states.masks[[path for path, _ in paths]]


def _possible(law: FloatArray) -> Iterator[tuple[int, float]]:
    for state in np.flatnonzero(law > 0):
        yield int(state), float(law[state])


def _too_many(what: str) -> ValueError:
    return ValueError(
        f"participation must have at most {_MOST_PATHS} paths to enumerate them, got {what}: "
        "give the number to draw"
    )

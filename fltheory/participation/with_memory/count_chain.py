"""Clients that are alike: the chain of how many of them are there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, product

import numpy as np

from fltheory import validation
from fltheory.participation.with_memory.chains import FiniteChain
from fltheory.participation.with_memory.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray

_MOST_STATES = 4096


def count_chain(chains: MarkovOnOff, groups: Sequence[Sequence[int]]) -> FiniteChain:
    """Return the chain of how many clients of each group are there.

    The numbers of independent clients with the same two-state chain are a Markov chain. In a
    state with n of a group, its first n clients are there: whatever treats the clients of a group
    alike (equal losses, equal weights) has models of the same law as with ``chains``, and a
    hundred clients have a few thousand states. For anything else this is another process.

    Parameters
    ----------
    chains : MarkovOnOff
    groups : sequence of sequences of int
        Every client once.

    Raises
    ------
    ValueError
        If the groups do not hold every client once, a group's clients differ in availability or
        correlation, one begins where a stationary chain never is, or there are more than 4,096
        states.

    Examples
    --------
    >>> chain = count_chain(MarkovOnOff([0.5] * 20, 0.9), [range(20)])
    >>> chain.n_states
    21
    """
    members = _partition(chains, groups)
    numbers = [_numbers(chains, group) for group in members]
    n_states = math.prod(len(possible) for possible in numbers)
    if n_states > _MOST_STATES:
        raise ValueError(
            f"groups must make at most {_MOST_STATES} states, got {n_states} from groups of "
            f"{[len(group) for group in members]}"
        )
    states = list(product(*numbers))
    transition: FloatArray = np.ones((1, 1))
    for group, possible in zip(members, numbers, strict=True):
        moves = _transition(chains, group)[np.ix_(possible, possible)]
        transition = np.asarray(np.kron(transition, moves))
    masks = np.zeros((n_states, chains.n_clients), dtype=bool)
    for row, state in zip(masks, states, strict=True):
        for group, number in zip(members, state, strict=True):
            row[group[:number]] = True
    if chains.start is None:
        return FiniteChain(transition, masks)
    first = tuple(int(chains.start[group].sum()) for group in members)
    if first not in states:
        raise ValueError("start must agree with the clients that are always or never there")
    return FiniteChain(transition, masks, start=states.index(first))


def _partition(chains: MarkovOnOff, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return groups that hold every client once, each of clients with the same chain."""
    members = [
        [validation.whole_number("groups", client, at_least=0) for client in group]
        for group in groups
    ]
    if sorted(chain.from_iterable(members)) != list(range(chains.n_clients)) or [] in members:
        raise ValueError(
            f"groups must hold every client from 0 to {chains.n_clients - 1} once, got {members}"
        )
    for group, name in product(members, ("availability", "correlation")):
        values = getattr(chains, name)[group]
        if (values != values[0]).any():
            raise ValueError(
                f"groups must have clients of the same {name}, got {values.tolist()} in {group}"
            )
    return members


def _numbers(chains: MarkovOnOff, group: list[int]) -> list[int]:
    """Return how many of a group can be there in the long run."""
    pi = chains.availability[group[0]]
    if pi in (0, 1):
        return [int(pi) * len(group)]
    return list(range(len(group) + 1))


def _transition(chains: MarkovOnOff, group: list[int]) -> FloatArray:
    """Return (n + 1, n + 1) transitions: those who stay, and those who come."""
    size = len(group)
    stays, comes = float(chains.stays[group[0]]), float(chains.comes[group[0]])
    rows = [
        np.convolve(_binomial(there, stays), _binomial(size - there, comes))
        for there in range(size + 1)
    ]
    return np.array(rows)


def _binomial(trials: int, chance: float) -> FloatArray:
    from scipy.special import binom

    successes = np.arange(trials + 1)
    return np.asarray(
        binom(trials, successes) * chance**successes * (1 - chance) ** (trials - successes)
    )

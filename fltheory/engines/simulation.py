"""The loop that runs an algorithm on any backend, round after round."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import Algorithm, Array, Clients, Schedule, State, in_round
from fltheory.participation.base import Masks, Participation
from fltheory.validation import FloatArray


def simulate(
    algorithm: Algorithm | Schedule,
    clients: Clients,
    participation: Participation,
    x0: Array,
    *,
    participation_rng: np.random.Generator,
    branch_rng: np.random.Generator,
    masks_to_backend: Callable[[Masks], Array] = np.asarray,
    begun: tuple[int, State] | None = None,
) -> Iterator[tuple[State, Masks]]:
    """Yield the state before each round and that round's participants, without end.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
    clients : Clients
        The backend, which holds the generator of gradient noise.
    participation : Participation
    x0 : array, (replicas, dim)
        Initial models, in the backend's arrays.
    participation_rng, branch_rng : numpy.random.Generator
        Generators for the participants and for the algorithm's own random choices.
    masks_to_backend : callable
        Converts boolean NumPy masks to the backend's arrays.
    begun : tuple of int and state, optional
        Number of rounds already run, and the state after them, from which to continue. The draws
        for those rounds are repeated and discarded.
    """
    now = in_round(algorithm, 1)
    names, thresholds = branches_of(now)
    done, state = begun or (0, now.init(x0, clients.n_clients))
    scheduled = isinstance(algorithm, Schedule)
    for index, who in enumerate(participation.masks(participation_rng, x0.shape[0]), start=1):
        if index > done:
            yield state, who
        if scheduled:
            now = in_round(algorithm, index)
            names, thresholds = branches_of(now)
        if index <= done:
            if len(names) > 1:
                branch_rng.random(x0.shape[0])
            continue
        if len(names) == 1:
            state = now.round(state, clients, masks_to_backend(who), names[0])
            continue
        drawn = np.searchsorted(thresholds, branch_rng.random(x0.shape[0]), side="right")
        state = round_by_branch(now, state, clients, masks_to_backend(who), names, drawn)


def branches_of(algorithm: Algorithm) -> tuple[list[str], FloatArray]:
    """Return the branches' names, and the points that divide [0, 1) between them."""
    chances = [probability for _, probability in algorithm.branches]
    return [name for name, _ in algorithm.branches], np.cumsum(chances)[:-1]


def round_by_branch(
    algorithm: Algorithm,
    state: State,
    clients: Clients,
    who: Array,
    names: list[str],
    drawn: np.ndarray,
) -> State:
    """Run a round, with each branch on the replicas that drew it; ``drawn`` indexes ``names``."""
    following: dict[str, Array] = {}
    for index, name in enumerate(names):
        rows = np.flatnonzero(drawn == index)
        if rows.size == 0:
            continue
        if rows.size == drawn.size:
            # If all replicas drew the same branch, as a single replica always does, a large model
            # is not copied.
            return algorithm.round(state, clients, who, name)
        part = {key: array[rows] for key, array in state.items()}
        image = algorithm.round(part, clients, who[rows], name)
        for key, array in image.items():
            if key not in following:
                xp = array_namespace(array)
                following[key] = xp.zeros_like(state[key], dtype=array.dtype)
            following[key][rows] = array
    return following

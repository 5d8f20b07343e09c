"""Every run there can be: without gradient noise, chance is in participants and branches only.

Nothing is asked of a round, so losses may be anything; it is for short runs.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.engines.noise import Silence
from fltheory.engines.observables import standard_samples
from fltheory.engines.participant_paths import all_paths
from fltheory.engines.setting import Setting
from fltheory.engines.simulation import round_by_branch
from fltheory.engines.stepped_clients import SteppedClients
from fltheory.engines.trajectory import FIELDS, Trajectory
from fltheory.participation.base import Participation
from fltheory.problems.base import Problem

MOST_RUNS = 1 << 17


def enumerated(
    algorithm: Algorithm | Schedule,
    problem: Problem,
    participation: Participation,
    rounds: int,
    x0: ArrayLike,
) -> Trajectory:
    """Average over every run there can be, each with its probability.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
    problem : Problem
        Whose gradients, the server's too, are exact.
    participation : Participation
        Independent over rounds, or with states.
    rounds : int
    x0 : array, (d,)

    Returns
    -------
    Trajectory
        Exact up to rounding, which is not bounded: a round may be any function.

    Raises
    ------
    ValueError
        For noisy gradients, or more than 131,072 runs.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> enumerated(FedAvg(0.5, 1), clients, UniformSubset(2, 1), 1, [1.0]).squared_distance
    array([1. , 0.5])
    """
    setting = Setting(algorithm, problem, participation, rounds, x0)
    if problem.sigma != 0 or problem.server_sigma != 0:
        raise ValueError(
            f"problem must have exact gradients, got sigma = {problem.sigma:g} and "
            f"server_sigma = {problem.server_sigma:g}"
        )
    branches = in_round(setting.algorithm, 1).branches
    paths = all_paths(participation, setting.rounds)
    n_coins = len(branches) ** setting.rounds
    if paths is None or len(paths[0]) * n_coins > MOST_RUNS:
        raise ValueError(f"rounds must leave at most {MOST_RUNS} runs, got {setting.rounds}")
    chances, masks = paths
    coins = np.array(list(product(range(len(branches)), repeat=setting.rounds)))
    chance_of = np.array([probability for _, probability in branches])
    weights = np.outer(chances, chance_of[coins].prod(axis=1)).ravel()
    masks, coins = np.repeat(masks, n_coins, axis=0), np.tile(coins, (len(chances), 1))
    clients = SteppedClients(problem, Silence())
    state = in_round(setting.algorithm, 1).init(
        np.tile(setting.x0, (weights.size, 1)), problem.n_clients
    )
    means = [[weights @ sample for sample in standard_samples(problem, state["x"])]]
    for index in range(setting.rounds):
        now = in_round(setting.algorithm, index + 1)
        names = [name for name, _ in now.branches]
        state = round_by_branch(now, state, clients, masks[:, index], names, coins[:, index])
        means.append([weights @ sample for sample in standard_samples(problem, state["x"])])
    return Trajectory.of(dict(zip(FIELDS, np.array(means).T, strict=True)))

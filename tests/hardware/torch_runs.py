"""Run an algorithm on torch clients, on the participants and branches of the NumPy engine."""

from __future__ import annotations

from itertools import islice

import numpy as np
import torch
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.engines.clients.analytic_clients import GaussianNoise
from fltheory.engines.setting import Setting
from fltheory.engines.simulation import simulate
from fltheory.participation import Participation
from fltheory.problems import QuadraticProblem
from fltheory.validation import FloatArray
from tests.hardware.clients.torch_quadratic_clients import TorchQuadraticClients


def run_on_torch(
    algorithm: Algorithm | Schedule,
    problem: QuadraticProblem,
    participation: Participation,
    rounds: int,
    x0: ArrayLike,
    *,
    replicas: int,
    seed: int,
    device: str = "cpu",
) -> FloatArray:
    """Return the models of every replica before round 0, after round 0, and so on.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
    problem : QuadraticProblem
    participation : Participation
    rounds : int
        R, at least 1.
    x0 : array, (d,)
        Initial model of every replica.
    replicas : int
        Independent runs, at least 1.
    seed : int
        Of the participants, the algorithm's own choices and the noise.
    device : str
        A torch device.

    Returns
    -------
    array, (rounds + 1, replicas, d)

    Raises
    ------
    ValueError
        For arguments that do not fit together.
    """
    setting = Setting(algorithm, problem, participation, rounds, x0)
    replicas = validation.whole_number("replicas", replicas, at_least=1)
    seed = validation.seed_number("seed", seed)
    participation_rng, branch_rng, noise_rng = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)
    )
    clients = TorchQuadraticClients(problem, GaussianNoise(noise_rng), device)
    start = torch.tensor(np.tile(setting.x0, (replicas, 1)), dtype=torch.float64, device=device)
    states = simulate(
        algorithm,
        clients,
        participation,
        start,
        participation_rng=participation_rng,
        branch_rng=branch_rng,
        masks_to_backend=lambda masks: torch.tensor(masks, device=device),
    )
    models = [state["x"].cpu().numpy() for state, _ in islice(states, setting.rounds + 1)]
    return np.stack(models)

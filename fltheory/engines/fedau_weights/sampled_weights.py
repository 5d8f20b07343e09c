"""The error of FedAU's weights, sampled by running the algorithm itself."""

from __future__ import annotations

import numpy as np

from fltheory.engines.clients.noise import Silence
from fltheory.engines.clients.stepped_clients import SteppedClients
from fltheory.engines.setting import Setting
from fltheory.engines.simulation import simulate
from fltheory.validation import FloatArray


def sampled_weight_errors(setting: Setting, replicas: int, rng: np.random.Generator) -> FloatArray:
    """Return ``(p_n omega_t^n - 1)^2``, its mean over clients, in rounds t = 0 .. T-1.

    Parameters
    ----------
    setting : Setting
        Of an algorithm whose state holds the weights ``omega``; gradients are taken without noise.
    replicas : int
    rng : numpy Generator

    Returns
    -------
    array, (replicas, rounds)
    """
    p = setting.participation.marginals
    runs = simulate(
        setting.algorithm,
        SteppedClients(setting.problem, Silence()),
        setting.participation,
        np.tile(setting.x0, (replicas, 1)),
        participation_rng=rng,
        branch_rng=rng,
    )
    errors = np.empty((replicas, setting.rounds))
    for t, (state, _) in zip(range(setting.rounds), runs, strict=False):
        errors[:, t] = ((p * state["omega"] - 1) ** 2).mean(axis=1)
    return errors

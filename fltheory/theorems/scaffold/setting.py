"""The settings that SCAFFOLD's theorems speak of, and the weights of their means over rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fltheory.algorithms import Scaffold, WarmStarted
from fltheory.engines import Setting
from fltheory.exact_or_float import powers
from fltheory.validation import FloatArray


def of_scaffold(setting: Setting) -> Setting:
    """Return the setting.

    Raises
    ------
    ValueError
        For another algorithm than SCAFFOLD, warm started or not, or unequal target weights.
    """
    _scaffold(setting)
    alpha = setting.problem.alpha
    if (alpha != alpha[0]).any():
        raise ValueError(
            "target_weights must be equal for the theorems of SCAFFOLD, where f is the clients' "
            f"mean, got {alpha.tolist()}"
        )
    return setting


def with_cold_start(setting: Setting) -> Setting:
    """Return the setting; ValueError where controls do not start at zero, as C_0 is of those."""
    if isinstance(setting.algorithm, WarmStarted):
        raise ValueError(
            "algorithm must be Scaffold, with controls of zero at first, for the theorem on "
            f"convex losses, got {setting.algorithm!r}"
        )
    return of_scaffold(setting)


def _scaffold(setting: Setting) -> Scaffold:
    algorithm = setting.algorithm
    scaffold = algorithm.scaffold if isinstance(algorithm, WarmStarted) else algorithm
    if not isinstance(scaffold, Scaffold):
        raise ValueError(
            f"algorithm must be Scaffold, or WarmStarted, for its theorems, got {algorithm!r}"
        )
    return scaffold


def geometric_weights(setting: Setting) -> FloatArray:
    """Return ``w_r = (1 - mu h/2)^-(r+1)`` for r = 0 .. T-1, over the last one."""
    scaffold = _scaffold(setting)
    step = scaffold.local_steps * scaffold.client_lr * scaffold.server_lr
    before_last = np.arange(setting.rounds - 1, -1, -1)
    return powers(1 - setting.problem.mu * step / 2, before_last)


def rounds_that_count(setting: Setting) -> NDArray[np.int64]:
    """Return 1 for r = 0 .. T-1, and 0 for the round of a warm start."""
    weights = np.ones(setting.rounds, dtype=np.int64)
    weights[: isinstance(setting.algorithm, WarmStarted)] = 0
    return weights

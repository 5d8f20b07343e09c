"""What SCAFFOLD's theorems need of a setting."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.algorithms import Scaffold, WarmStarted
from fltheory.engines import Setting
from fltheory.exact_or_float import norm, number, powers
from fltheory.participation.uniformity import distance_from_uniform, mean_size
from fltheory.theorems.scaffold import symbols as symbols
from fltheory.validation import FloatArray


def scaffold_of(setting: Setting) -> Scaffold:
    """Return the setting's SCAFFOLD, warm started or not.

    Raises
    ------
    ValueError
        For another algorithm, or target weights that are not equal.
    """
    algorithm = setting.algorithm
    scaffold = algorithm.scaffold if isinstance(algorithm, WarmStarted) else algorithm
    if not isinstance(scaffold, Scaffold):
        raise ValueError(
            f"algorithm must be Scaffold, or WarmStarted, for its theorems, got {algorithm!r}"
        )
    alpha = setting.problem.alpha
    if (alpha != alpha[0]).any():
        raise ValueError(
            "target_weights must be equal for the theorems of SCAFFOLD, where f is the clients' "
            f"mean, got {alpha.tolist()}"
        )
    return scaffold


def rounds_of(setting: Setting) -> int:
    """Return T: a warm start takes a round of its own."""
    return setting.rounds - isinstance(setting.algorithm, WarmStarted)


def scaffold_constants(setting: Setting) -> Mapping[sp.Symbol, float]:
    """Return the values of the symbols that SCAFFOLD's theorems share.

    Raises
    ------
    ValueError
        For a setting that the theorems do not speak of.
    """
    scaffold, problem = scaffold_of(setting), setting.problem
    return {
        symbols.beta: problem.L,
        symbols.mu: problem.mu,
        symbols.sigma: problem.sigma,
        symbols.eta_l: scaffold.client_lr,
        symbols.eta_g: scaffold.server_lr,
        symbols.K: scaffold.local_steps,
        symbols.S: mean_size(setting.participation),
        symbols.N: problem.n_clients,
        symbols.T: rounds_of(setting),
        symbols.option: scaffold.option,
        symbols.cold: int(not isinstance(setting.algorithm, WarmStarted)),
        symbols.unlike: distance_from_uniform(setting.participation),
        symbols.memory: int(not setting.participation.independent),
    }


def convex_constants(setting: Setting) -> Mapping[sp.Symbol, float]:
    """Return the symbols' values for the theorem on convex losses.

    Raises
    ------
    ValueError
        For a setting that the theorem does not speak of, and for controls that do not start
        at zero, which C_0 is not worked out for.
    """
    if isinstance(setting.algorithm, WarmStarted):
        raise ValueError(
            "algorithm must be Scaffold, with controls of zero at first, for the theorem on "
            f"convex losses, got {setting.algorithm!r}"
        )
    problem = setting.problem
    clients = np.arange(problem.n_clients)
    at_optimum = problem.client_gradients(np.tile(problem.x_star, (problem.n_clients, 1)), clients)
    return {
        **scaffold_constants(setting),
        symbols.D_0: norm(setting.x0 - problem.x_star),
        symbols.C_0: number((at_optimum**2).sum(axis=1).mean()),
    }


def nonconvex_constants(setting: Setting) -> Mapping[sp.Symbol, float]:
    """Return the symbols' values for the theorem on nonconvex losses.

    Raises
    ------
    ValueError
        For a setting that the theorem does not speak of.
    """
    return {
        **scaffold_constants(setting),
        symbols.F_0: number(setting.problem.excess_loss(setting.x0)),
    }


def geometric_weights(setting: Setting) -> FloatArray:
    """Return ``w_r = (1 - mu h/2)^-(r+1)`` for r = 0 .. T-1, over the last one."""
    scaffold = scaffold_of(setting)
    step = scaffold.local_steps * scaffold.client_lr * scaffold.server_lr
    before_last = np.arange(setting.rounds - 1, -1, -1)
    return powers(1 - setting.problem.mu * step / 2, before_last)


def rounds_that_count(setting: Setting) -> NDArray[np.int64]:
    """Return 1 for r = 0 .. T-1, and 0 for the round of a warm start."""
    weights = np.ones(setting.rounds, dtype=np.int64)
    weights[: setting.rounds - rounds_of(setting)] = 0
    return weights

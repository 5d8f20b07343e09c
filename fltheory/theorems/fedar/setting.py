"""What FedAR's claims need of a setting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.algorithms import FedAR, Scheduled
from fltheory.algorithms.shared.inactivity_weights import latest
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, largest, largest_norm, number
from fltheory.participation.base import Masks
from fltheory.participation.inactivity import inactive_rounds
from fltheory.participation.process import process_of
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

L = sp.Symbol("L", positive=True)
mu = sp.Symbol("mu", real=True)
sigma = sp.Symbol("sigma", nonnegative=True)
K = sp.Symbol("K", positive=True, integer=True)
N = sp.Symbol("N", positive=True, integer=True)
T = sp.Symbol("T", positive=True, integer=True)
tau_mean = sp.Symbol("taubar", nonnegative=True)
tau_max = sp.Symbol("tau_max", nonnegative=True)
growth = sp.Symbol("g", nonnegative=True)
unequal = sp.Symbol("u", nonnegative=True)
spread = sp.Symbol("G", nonnegative=True)
C = sp.Symbol("C", positive=True)

MEANINGS = {
    L: "smoothness of every client",
    mu: "strong convexity of every client",
    sigma: "clients' gradient noise",
    K: "local_steps",
    N: "clients",
    T: "rounds",
    tau_mean: "mean of tau_{i,t} over clients and rounds",
    tau_max: "largest tau_{i,t}",
    growth: "the largest growth of psi from one inactive round to the next",
    unequal: "spread of the clients' long-run weights, mean of psi_{i,t}/N_t, over their mean",
    spread: "max_i ||grad f_i(w*)||, 0 if w* is every client's minimiser",
    C: "a constant that the text at hand does not have",
}

_ROUNDING = 1e-12


def fedar_of(setting: Setting) -> FedAR:
    """Return the setting's FedAR, scheduled or not.

    Raises
    ------
    ValueError
        For another algorithm.
    """
    algorithm = setting.algorithm
    fedar = algorithm.algorithm if isinstance(algorithm, Scheduled) else algorithm
    if not isinstance(fedar, FedAR):
        raise ValueError(f"algorithm must be FedAR, or Scheduled(FedAR(...)), got {algorithm!r}")
    return fedar


@dataclass(frozen=True, eq=False)
class FedARPath(ReadOnlyArrays):
    """Counts and weights along a setting's path of participant sets.

    Raises
    ------
    ValueError
        For another algorithm, or participation that is not known beforehand.
    """

    fedar: FedAR
    masks: Masks
    cycle: Masks

    def __init__(self, setting: Setting) -> None:
        process = process_of(setting.participation)
        masks = process.known_path(setting.rounds)
        if masks is None or process.period is None:
            raise ValueError(
                "participation must be known beforehand for FedAR's claims on orders, got "
                f"{setting.participation!r}"
            )
        for name, value in {
            "fedar": fedar_of(setting),
            "masks": masks,
            "cycle": process.known_path(2 * process.period),
        }.items():
            object.__setattr__(self, name, value)

    @cached_property
    def inactive(self) -> FloatArray:
        """(rounds, N) tau."""
        return inactive_rounds(self.masks)

    @cached_property
    def long_run_weights(self) -> FloatArray:
        """(N,) mean of ``psi_{i,t}/N_t`` over a period in which everybody has appeared.

        With step sizes that go to zero the model follows ``-sum_i weight_i grad f_i``: a stale
        update is one of a model that has hardly moved.
        """
        period = len(self.cycle) // 2
        inactive = self._counted(inactive_rounds(self.cycle)[period:])
        rounds = self._counted(np.arange(period + 1.0, 2 * period + 1)[:, None])
        counts = np.asarray(inactive <= latest(self.fedar.cutoff, rounds), dtype=bool)
        psi = np.asarray(self.fedar.weight(inactive))
        number = self._counted(np.maximum(counts.sum(axis=1, keepdims=True), 1))
        return np.asarray((np.where(counts, psi, 0 * psi) / number).mean(axis=0))

    def _counted(self, whole: NDArray[Any]) -> NDArray[Any]:
        """Return counts as Python's integers where they will meet exact numbers, not floats."""
        exact = is_exact(self.fedar.client_lr)
        return whole.astype(np.int64).astype(object) if exact else whole


def fedar_constants(setting: Setting) -> Mapping[sp.Symbol, Any]:
    """Return the symbols' values for FedAR's claims.

    Raises
    ------
    ValueError
        For a setting that the claims do not speak of.
    """
    path, problem = FedARPath(setting), setting.problem
    weights, inactive = path.long_run_weights, path.inactive
    exact = is_exact(setting.x0)
    difference = number((largest(weights) + largest(-weights)) / weights.mean())
    at_optimum = problem.client_gradients(
        np.tile(problem.x_star, (problem.n_clients, 1)), np.arange(problem.n_clients)
    )
    return {
        L: problem.L,
        mu: problem.mu,
        sigma: problem.sigma,
        K: path.fedar.local_steps,
        N: problem.n_clients,
        T: setting.rounds,
        tau_mean: Fraction(int(inactive.sum()), inactive.size) if exact else float(inactive.mean()),
        tau_max: int(inactive.max()),
        growth: path.fedar.weight.growth,
        unequal: difference if exact or difference > _ROUNDING else 0.0,
        spread: largest_norm(at_optimum),
        C: math.nan,
    }

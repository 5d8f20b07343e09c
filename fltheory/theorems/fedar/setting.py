"""What FedAR's claims need of a setting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fltheory.algorithms import FedAR, Scheduled
from fltheory.algorithms.shared.inactivity_weights import latest
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, largest, largest_norm, number
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import PURE
from fltheory.numbers.of_setting import view_of
from fltheory.participation.base import Masks
from fltheory.participation.inactivity import inactive_rounds
from fltheory.participation.process import process_of
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

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


@cached_by_content(16)
def _path_of(setting: Setting) -> FedARPath:
    return FedARPath(setting)


def _along(number_of: Callable[[FedARPath], Any]) -> Callable[[Setting], Any]:
    return lambda setting: number_of(_path_of(setting))


def known_beforehand(setting: Setting) -> Setting:
    """Return the setting; ValueError unless its algorithm is FedAR, and who comes is known."""
    _path_of(setting)
    return setting


def _mean_inactivity(path: FedARPath) -> Any:
    inactive = path.inactive
    if is_exact(path.fedar.client_lr):
        return Fraction(int(inactive.sum()), inactive.size)
    return float(inactive.mean())


def _spread_of_weights(path: FedARPath) -> Any:
    weights = path.long_run_weights
    difference = number((largest(weights) + largest(-weights)) / weights.mean())
    return difference if is_exact(difference) or difference > _ROUNDING else 0.0


L = symbol("L", "smoothness of every client", number="L", positive=True)
mu = symbol("mu", "strong convexity of every client", number="mu", real=True)
sigma = symbol("sigma", "clients' gradient noise", number="sigma", nonnegative=True)
F_0 = symbol("F_0", "f(w_0) - f*", number="excess_loss", nonnegative=True)
K = symbol("K", "local_steps", number="local_steps", positive=True, integer=True)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
T = symbol("T", "rounds", PURE, "rounds", positive=True, integer=True)
tau_mean = symbol(
    "taubar",
    "mean of tau_{i,t} over clients and rounds",
    number=_along(_mean_inactivity),
    nonnegative=True,
)
tau_max = symbol(
    "tau_max",
    "largest tau_{i,t}",
    number=_along(lambda path: int(path.inactive.max())),
    nonnegative=True,
)
growth = symbol(
    "g",
    "the largest growth of psi from one inactive round to the next",
    number=_along(lambda path: path.fedar.weight.growth),
    nonnegative=True,
)
unequal = symbol(
    "u",
    "spread of the clients' long-run weights, mean of psi_{i,t}/N_t, over their mean",
    number=_along(_spread_of_weights),
    nonnegative=True,
)
spread = symbol(
    "G",
    "max_i ||grad f_i(w*)||, 0 if w* is every client's minimiser",
    number=lambda setting: largest_norm(view_of(setting).gradients_at_optimum),
    nonnegative=True,
)
C = symbol(
    "C",
    "a constant that the text at hand does not have",
    number=lambda setting: math.nan,
    positive=True,
)
psi_taken = symbol(
    "psi",
    "the weights that are taken here, with their cap, tau_max and step sizes",
    nonnegative=True,
)
psi_of_paper = symbol(
    "psi_6",
    "those of (6) and of the theorems, which are not in the text at hand",
    nonnegative=True,
)

nu = symbol("nu", "largest inactivity allowed: the cut-off", PURE, "cutoff", nonnegative=True)
nu_of_paper = symbol(
    "nu_7",
    "the bound of Assumption 7, which is not in the text at hand",
    PURE,
    nonnegative=True,
)
chance = symbol(
    "r",
    "1 if chance has a part in who takes part, else 0",
    PURE,
    lambda setting: int(process_of(setting.participation).period is None),
    nonnegative=True,
    integer=True,
)


def _longest_absence(setting: Setting) -> float:
    """Return the longest absence over all rounds; infinite where there is no longest one."""
    process = process_of(setting.participation)
    path = None if process.period is None else process.known_path(2 * process.period)
    if path is None or not path.any(axis=0).all():
        return math.inf
    return int(inactive_rounds(path).max())


longest = symbol(
    "ell",
    "longest absence that the schedule has, infinite where chance has a part",
    PURE,
    _longest_absence,
    extended_nonnegative=True,
)

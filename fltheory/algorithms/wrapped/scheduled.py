"""Algorithms whose step size of local SGD depends on the round."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, checked_algorithm
from fltheory.algorithms.shared.step_sizes import StepSizes, checked_step_sizes
from fltheory.exact_or_float import is_exact


@dataclass(frozen=True)
class Scheduled:
    """An algorithm with ``client_lr = step_sizes.at(t)`` in round t, the first being 1.

    Parameters
    ----------
    algorithm : Algorithm
        With a hyper-parameter ``client_lr``, whose own value is not used.
    step_sizes : StepSizes

    Raises
    ------
    ValueError
        If ``algorithm`` has no ``client_lr`` to replace, or there are no step sizes.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg, Harmonic
    >>> Scheduled(FedAvg(0.1, 5), Harmonic(1.0, offset=1.0)).at(3).client_lr
    0.25
    """

    algorithm: Algorithm
    step_sizes: StepSizes

    def __post_init__(self) -> None:
        algorithm: Any = self.algorithm
        if not is_dataclass(algorithm) or "client_lr" not in {f.name for f in fields(algorithm)}:
            raise ValueError(
                f"algorithm must have a client_lr to schedule, got {validation.shown(algorithm)}"
            )
        checked_algorithm(algorithm, scheduled=False)
        checked_step_sizes("step_sizes", self.step_sizes)

    def at(self, round_index: int) -> Algorithm:
        """Return the algorithm as it is in a round, the first being 1."""
        client_lr = self.step_sizes.at(round_index)
        if not is_exact(client_lr):
            return cast(Algorithm, replace(cast(Any, self.algorithm), client_lr=client_lr))
        # The checks of a constructor make floats.
        scheduled = copy(self.algorithm)
        object.__setattr__(scheduled, "client_lr", client_lr)
        return scheduled

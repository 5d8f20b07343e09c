"""The package's own algorithms as what the suite checks: a ``run``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, Algorithm
from fltheory.algorithms.table import listed
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.clients.stepped_clients import LossClient
from fltheory.testing.conformance.cases.clients import SteppedOnClients
from fltheory.validation import FloatArray

Run: TypeAlias = Callable[..., Any]

BY_SIZE = ("fedavg", "fedprox", "fednova")
"""Algorithms that weigh clients by the size of their data."""


@checks_kinds
def run_of(name: str) -> Run:
    """Return one of the package's algorithms as a ``run``, the reference of the suite.

    Parameters
    ----------
    name : str
        As in ``fltheory conformance --list``.

    Returns
    -------
    callable
        ``run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options)``.

    Raises
    ------
    ValueError
        For an unknown name.

    Examples
    --------
    >>> import numpy as np
    >>> from fltheory.testing import run_of
    >>> from fltheory.testing.conformance.cases.clients import QuadraticClient
    >>> client = QuadraticClient(np.eye(1), np.zeros(1))
    >>> run = run_of("scaffold")
    >>> run(np.ones(1), [client], np.ones((2, 1), bool), client_lr=0.5, local_steps=1,
    ...     server_lr=1.0).tolist()
    [[1.0], [0.5], [0.25]]
    """
    listed(name)

    def run(
        x0: FloatArray,
        clients: Sequence[LossClient],
        trace: np.ndarray,
        **given: Any,
    ) -> FloatArray:
        """Return the models after every round."""
        sizes = [client.n_samples for client in clients]
        algorithm, on = algorithm_of(name, sizes, **given), SteppedOnClients(clients)
        taking_part = who_counts(name, sizes, trace, **given)
        state = algorithm.init(np.array(x0, dtype=np.float64)[None], len(clients))
        models = [state["x"][0]]
        for who in taking_part:
            state = algorithm.round(state, on, who[None], CLIENTS)
            models.append(state["x"][0])
        return np.array(models)

    return run


def algorithm_of(name: str, sizes: Sequence[int], **given: Any) -> Algorithm:
    """Return the package's algorithm for what ``run`` is given, data sizes among it."""
    if name.lower() not in BY_SIZE:
        return listed(name)(**given)
    weighting = given.pop("weighting", "n_samples")
    validation.one_of("weighting", weighting, ("n_samples", "uniform"))
    weighs = weighting == "n_samples" and any(sizes)
    given["client_weights"] = tuple(map(float, sizes)) if weighs else None
    if name.lower() == "fedavg":
        # FedAvg that weighs by data size is FedProx without its pull.
        return listed("fedprox")(proximal=0.0, **given)
    return listed(name)(**given)


def who_counts(name: str, sizes: Sequence[int], trace: np.ndarray, **given: Any) -> np.ndarray:
    """Return the trace without those who have no weight, where data sizes weigh."""
    taking_part = np.asarray(trace, dtype=bool)
    if name.lower() not in BY_SIZE or given.get("weighting", "n_samples") != "n_samples":
        return taking_part
    # Where nobody has data, nothing is ever learned.
    return taking_part & (np.asarray(sizes) > 0)

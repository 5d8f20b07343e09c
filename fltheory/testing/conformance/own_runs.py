"""The package's own algorithms as what the suite checks: a ``run``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fltheory.algorithms.contract import CLIENTS, Algorithm
from fltheory.algorithms.table import Listed, listed
from fltheory.testing.conformance.clients import Client, SteppedOnClients
from fltheory.validation import FloatArray

Run: TypeAlias = Callable[..., Any]

BY_SIZE = ("fedavg", "fedprox", "fednova")
"""Algorithms that weigh clients by the size of their data."""


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
    >>> from fltheory.testing import QuadraticClient, run_of
    >>> client = QuadraticClient(np.eye(1), np.zeros(1))
    >>> run = run_of("scaffold")
    >>> run(np.ones(1), [client], np.ones((2, 1), bool), client_lr=0.5, local_steps=1,
    ...     server_lr=1.0).tolist()
    [[1.0], [0.5], [0.25]]
    """
    entry = listed(name)

    def run(
        x0: FloatArray,
        clients: Sequence[Client],
        trace: np.ndarray,
        *,
        client_lr: float,
        local_steps: int | tuple[int, ...],
        server_lr: float,
        **options: Any,
    ) -> FloatArray:
        """Return the models after every round."""
        given = {
            "client_lr": client_lr,
            "local_steps": local_steps,
            "server_lr": server_lr,
            **options,
        }
        taking_part = np.asarray(trace, dtype=bool)
        if name.lower() in BY_SIZE:
            sizes = np.array([client.n_samples for client in clients], dtype=np.float64)
            weighting = given.pop("weighting", "n_samples")
            if weighting == "n_samples":
                taking_part = taking_part & (sizes > 0)
                given["client_weights"] = tuple(np.where(sizes.any(), sizes, 1.0).tolist())
        algorithm = _made(entry, given)
        on = SteppedOnClients(clients)
        state = algorithm.init(np.array(x0, dtype=np.float64)[None], len(clients))
        models = [state["x"][0]]
        for who in taking_part:
            state = algorithm.round(state, on, who[None], CLIENTS)
            models.append(state["x"][0])
        return np.array(models)

    return run


def _made(entry: Listed, given: dict[str, Any]) -> Algorithm:
    weights = given.pop("client_weights", None)
    if weights is None:
        return entry(**given)
    positive = np.where(np.array(weights) > 0, weights, 1.0)
    targets = tuple((positive / positive.sum()).tolist())
    return listed("adafed")(target_weights=targets, availability=1.0, **given)

"""Implementations with a fault, for tests: the suite's own pseudo-code with a slip in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.clients import CountedClient
from fltheory.testing.conformance.own_runs import Run
from fltheory.testing.conformance.specifications import specification


def run_with_slip(name: str, slip: str) -> Run:
    """Return an algorithm's pseudo-code with one of its slips, '' for none."""
    paper = specification(name).paper

    def run(
        x0: np.ndarray,
        clients: Sequence[CountedClient],
        trace: np.ndarray,
        *,
        client_lr: float,
        local_steps: int | tuple[int, ...],
        server_lr: float,
        **options: Any,
    ) -> np.ndarray:
        quadratic = tuple(client.client for client in clients)
        case = Case(quadratic, x0, trace, client_lr, local_steps, server_lr, options)
        return paper.models(case, slip)

    return run

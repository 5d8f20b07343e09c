"""Implementations with a fault, for tests: the package's own algorithms with a slip in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fltheory.testing.conformance.case import CountedClient
from fltheory.testing.conformance.own_runs import NOTHING, Play, Run, Slip
from fltheory.testing.conformance.slips.table import slips_of
from fltheory.testing.conformance.specifications import specification


def slip_of(name: str, words: str) -> Slip:
    """Return the first of an algorithm's slips that is told with these words."""
    return next(slip for slip in slips_of(name) if words in slip.says) if words else NOTHING


def run_with_slip(name: str, slip: Slip | str) -> Run:
    """Return an algorithm with one of its slips, or with the one told in these words."""
    one, chosen = specification(name), slip_of(name, slip) if isinstance(slip, str) else slip

    def run(
        x0: np.ndarray, clients: Sequence[CountedClient], trace: np.ndarray, **given: Any
    ) -> np.ndarray:
        with np.errstate(all="ignore"):
            return Play(one, x0[None], clients, trace, given, chosen).models()[:, 0]

    return run

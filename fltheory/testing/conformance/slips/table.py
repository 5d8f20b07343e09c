"""The slips that an algorithm can have, collected from the slips of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.own_runs import NOTHING, Play, Slip
from fltheory.testing.conformance.slips import anywhere, memory
from fltheory.testing.conformance.slips.single import ONE_BY_ONE, SINGLE
from fltheory.testing.conformance.slips.weights import inverse, of_weights
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from fltheory.validation import FloatArray


@cache
def slips_of(name: str) -> tuple[Slip, ...]:
    """Return the slips of an algorithm, starting with those of its own parts."""
    one = SPECIFICATIONS[name]
    own = {**SINGLE, "mifa": memory.mifa, "fedar": memory.fedar}
    own |= dict.fromkeys(("fedvarp", "cluster-fedvarp"), memory.fedvarp)
    found = own[name](one) if name in own else []
    if one.memory and name != "scaffold":
        found += memory.of_memory(one)
    found += of_weights(one)
    if one.chooses:
        found += inverse(one, "rate" if name == "f3ast" else "availability")
    found += [] if one.step_a_round else anywhere.LOCAL
    found += anywhere.SERVER_RATE if one.server_lr else ()
    found += [] if one.server else [memory.BY_PLACE]
    found += anywhere.EVERYWHERE
    if name == "ca-fed":
        # If there are few clients, trying them one by one is many times faster than trying batches
        # of replicas.
        found = [replace(slip, names={**ONE_BY_ONE, **slip.names}) for slip in found]
    return tuple(found)


AS_IT_IS: Mapping[str, Slip] = {"ca-fed": Slip("", names=ONE_BY_ONE)}
"""Algorithms without a slip, in the way in which those with one are played."""
# The order in which clients are tried matters most if the bias has little weight. The prior of
# estimates matters most if it is one-sided.
_LITTLE_BIAS = {"threshold": 0.0, "kappa_bar": 0.3}
_ONE_SIDED = {"threshold": 0.0, "kappa_bar": 0.2, "prior": (9.0, 0.5), "availability": None}
TELLING_OPTIONS: tuple[Mapping[str, Any], ...] = (
    {},
    _LITTLE_BIAS,
    {},
    {**_ONE_SIDED, "correlation": None},
)
"""Options, of algorithms that choose, under which their rare slips show: case by case in turn."""
ROUNDED = next(slip for slip in anywhere.EVERYWHERE if "rounded" in slip.says)


def played(name: str, case: Case, slip: Slip = NOTHING) -> FloatArray:
    """Return the models of the package's algorithm with a slip, (rounds + 1, d)."""
    with np.errstate(all="ignore"):
        return _play(name, case, slip).models()[:, 0]


def apart(name: str, case: Case, slip: Slip, models: FloatArray, allowed: FloatArray) -> bool:
    """Return whether a slip gives different models, running it only as far as needed.

    ``allowed`` is the tolerance of each row, (rounds + 1,).
    """
    with np.errstate(all="ignore"):
        rows = zip(_play(name, case, slip).rows(), models, allowed, strict=True)
        # This is not written with "above", so that NaN counts as a different model.
        return any(not np.abs(row[0] - model).max() <= by for row, model, by in rows)


def _play(name: str, case: Case, slip: Slip) -> Play:
    return Play(SPECIFICATIONS[name], case.x0[None], case.clients, case.trace, case.keywords, slip)

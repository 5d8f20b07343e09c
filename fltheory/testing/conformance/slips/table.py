"""Which slips an algorithm can have: those of its parts."""

from __future__ import annotations

from functools import cache

import numpy as np

from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.own_runs import NOTHING, Play, Slip
from fltheory.testing.conformance.slips import anywhere, memory
from fltheory.testing.conformance.slips.single import SINGLE
from fltheory.testing.conformance.slips.weights import inverse, of_weights
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from fltheory.validation import FloatArray


@cache
def slips_of(name: str) -> tuple[Slip, ...]:
    """Return the slips of an algorithm, those of its own parts first."""
    one = SPECIFICATIONS[name]
    found = list(SINGLE[name](one)) if name in SINGLE else []
    if one.memory and name != "scaffold":
        found += memory.of_what_is_kept(one)
    if name in ("fedvarp", "cluster-fedvarp", "mifa"):
        found += memory.of_mean(one)
    if "fedvarp" in name:
        found += memory.fedvarp(one)
    found += {"mifa": memory.mifa, "fedar": memory.fedar}.get(name, lambda one: [])(one)
    found += of_weights(one)
    if one.chooses:
        found += inverse(one, "rate" if name == "f3ast" else "availability")
    if not one.step_a_round:
        found += [*anywhere.LOCAL]
    found += [*anywhere.SIZES, *(anywhere.SERVER_RATE if one.server_lr else ())]
    return (*found, *anywhere.SERVER, *anywhere.WHO, memory.BY_PLACE)


def played(name: str, case: Case, slip: Slip = NOTHING) -> FloatArray:
    """Return the models of the package's algorithm with a slip, (rounds + 1, d)."""
    play = Play(SPECIFICATIONS[name], case.x0[None], case.clients, case.trace, case.keywords, slip)
    with np.errstate(all="ignore"):
        return play.models()[:, 0]

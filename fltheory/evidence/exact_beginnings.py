"""Exact truth of a run's first rounds, where the whole run has none."""

from __future__ import annotations

from dataclasses import replace

from fltheory.engines import Setting, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.trajectory import Trajectory


def exact_beginning(setting: Setting) -> Trajectory | None:
    """Return the longest beginning of a run whose histories can be followed, None if there is none.

    It is a few rounds, or as many as there are where nothing is random.
    """
    found: Trajectory | None = None
    step = 1
    # Double the rounds for as long as that works, and then add one by one.
    while step:
        rounds = min((found.rounds if found else 0) + step, setting.rounds)
        try:
            found = paths(replace(setting, rounds=rounds))
        except NotAffineError:
            step //= 2
        else:
            step = 2 * step if rounds < setting.rounds else 0
    return found

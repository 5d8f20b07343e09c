"""Exact truth of a run's first rounds, where the whole run has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fltheory.engines import NotAffineError, Setting, Trajectory, conditional, enumerated

_Engine = Callable[[Setting], Trajectory]


def exact_beginning(setting: Setting) -> Trajectory | None:
    """Return the longest beginning of a run that an enumeration reaches, None if there is none.

    Of what depends on chance participants are enumerated, and branches where gradients are exact;
    so it is a few rounds, or as many as there are where nothing is random.
    """
    found: Trajectory | None = None
    for engine in (_by_participants, _by_runs):
        longer = _longest(engine, setting)
        if longer is not None and (found is None or longer.rounds > found.rounds):
            found = longer
    return found


def _longest(engine: _Engine, setting: Setting) -> Trajectory | None:
    """Double the rounds for as long as that works, and then add one by one."""
    found: Trajectory | None = None
    step = 1
    while step:
        rounds = min((found.rounds if found else 0) + step, setting.rounds)
        try:
            found = engine(replace(setting, rounds=rounds))
        except (NotAffineError, ValueError):
            step //= 2
        else:
            step = 2 * step if rounds < setting.rounds else 0
    return found


def _by_participants(of: Setting) -> Trajectory:
    return conditional(of.algorithm, of.problem, of.participation, of.rounds, of.x0)


def _by_runs(of: Setting) -> Trajectory:
    return enumerated(of.algorithm, of.problem, of.participation, of.rounds, of.x0)

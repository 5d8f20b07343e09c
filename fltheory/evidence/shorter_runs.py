"""The first rounds of a run: what a shorter run with the same hyper-parameters would have been."""

from __future__ import annotations

from dataclasses import replace

from fltheory.engines.trajectory import FIELDS, RoundArrays, Trajectory
from fltheory.evidence.truths import Truth
from fltheory.validation import FloatArray


def beginning(truth: Truth, rounds: int) -> Truth:
    """Return the truth of a run's first rounds."""
    limits = truth.ranges
    if limits is not None:
        limits = {name: each.cut(rounds) for name, each in limits.items()}
    return replace(truth, trajectory=shorter(truth.trajectory, rounds), ranges=limits)


def shorter(run: Trajectory, rounds: int) -> Trajectory:
    """Return rounds 0 to ``rounds`` of a trajectory."""
    return Trajectory.of(
        _cut(run, rounds),
        standard_error=None if run.standard_error is None else _cut(run.standard_error, rounds),
        rounding_error=None if run.rounding_error is None else _cut(run.rounding_error, rounds),
        replicas=run.replicas,
        diverged_at=run.diverged_at,
    )


def _cut(arrays: RoundArrays, rounds: int) -> dict[str, FloatArray]:
    return {name: arrays[name][: rounds + 1] for name in (*FIELDS, *arrays.observed)}

"""Trajectories, the results of engines: expected errors of every round, with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")
# This is eight digits below the end of the range, so that products with curvatures and steps still
# fit.
OVERFLOW = 1e300


@dataclass(frozen=True, eq=False)
class RoundArrays(ReadOnlyArrays):
    """One array of length rounds + 1 for each quantity, also accessible as ``arrays["..."]``."""

    squared_distance: FloatArray
    squared_gradient: FloatArray
    excess_loss: FloatArray
    observed: Mapping[str, FloatArray] = field(default_factory=dict)

    def __getitem__(self, name: str) -> FloatArray:
        if name in FIELDS:
            array: FloatArray = getattr(self, name)
            return array
        if name in self.observed:
            return self.observed[name]
        known = ", ".join((*FIELDS, *self.observed))
        raise ValueError(f"name must be one of {known}, got {name!r}")


@dataclass(frozen=True, eq=False)
class Trajectory(RoundArrays):
    """Expected errors of a run, round by round from the initial model.

    Attributes
    ----------
    squared_distance : array, (rounds + 1,)
        ``E||x_r - x*||^2``.
    squared_gradient : array, (rounds + 1,)
        ``E||grad F(x_r)||^2``.
    excess_loss : array, (rounds + 1,)
        ``E F(x_r) - F*``.
    observed : mapping of str to array
        The observables passed to the engine.
    standard_error : RoundArrays or None
        Standard error of each mean, if sampled.
    rounding_error : RoundArrays or None
        Bound on the rounding error of each value, if computed exactly. It is of first order in
        float64, and rigorous if ``enclosed``.
    replicas : int or None
        Sample size, if sampled.
    diverged_at : int or None
        First round whose errors exceed the floating-point range; from that round on, errors are
        infinite.
    enclosed : bool
        Whether ``rounding_error`` is a proved bound on the distance from the true values, for the
        decimals in which the setting was written.
    """

    standard_error: RoundArrays | None = None
    rounding_error: RoundArrays | None = None
    replicas: int | None = None
    diverged_at: int | None = None
    enclosed: bool = False

    @classmethod
    def of(
        cls,
        values: Mapping[str, FloatArray],
        *,
        standard_error: Mapping[str, FloatArray] | None = None,
        rounding_error: Mapping[str, FloatArray] | None = None,
        **known: Any,
    ) -> Trajectory:
        """Return a trajectory from named arrays of the standard quantities and observables."""
        return cls(
            **vars(round_arrays(values)),
            standard_error=None if standard_error is None else round_arrays(standard_error),
            rounding_error=None if rounding_error is None else round_arrays(rounding_error),
            **known,
        )

    @property
    def rounds(self) -> int:
        """R, the number of rounds."""
        return self.squared_distance.size - 1


def round_arrays(values: Mapping[str, FloatArray]) -> RoundArrays:
    """Sort named arrays into the standard fields and the additional observables."""
    return RoundArrays(
        **{name: values[name] for name in FIELDS},
        observed={name: array for name, array in values.items() if name not in FIELDS},
    )


def exact_trajectory(
    values: Mapping[str, FloatArray],
    errors: Mapping[str, FloatArray] | None,
    sizes: FloatArray | None = None,
) -> Trajectory:
    """Return a trajectory of computed numbers with bounds on their rounding errors, if any.

    All values are infinite from the first round in which a number, or one of the ``sizes`` (rounds
    + 1,), exceeds the range of floats.
    """
    every = [*values.values(), *([] if sizes is None else [sizes])]
    broken = ~(np.abs(every).max(axis=0) < OVERFLOW)
    diverged_at = int(np.argmax(broken)) if broken.any() else None
    beyond = np.arange(len(broken)) >= (len(broken) if diverged_at is None else diverged_at)

    def dated(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        # An overflow in a bound (zero times infinity) also becomes infinite.
        return {name: np.where(beyond | np.isnan(a), np.inf, a) for name, a in arrays.items()}

    return Trajectory.of(
        dated(values),
        rounding_error=None if errors is None else dated(errors),
        diverged_at=diverged_at,
    )


def sampled_trajectory(
    names: Sequence[str], mean: FloatArray, error: FloatArray, replicas: int
) -> Trajectory:
    """Return a trajectory of means and standard errors, both (names, rounds + 1).

    All values are infinite from the first round in which one is NaN or infinite.
    """
    broken = ~np.isfinite(mean + error).all(axis=0)
    diverged_at = int(np.argmax(broken)) if broken.any() else None
    beyond = np.maximum.accumulate(broken)
    made = (np.where(beyond, np.inf, each) for each in (mean, error))
    values, errors = (dict(zip(names, each, strict=True)) for each in made)
    return Trajectory.of(values, standard_error=errors, replicas=replicas, diverged_at=diverged_at)

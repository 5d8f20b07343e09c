"""The weights of stale updates in FedAR: what the paper requires of them, and what we chose.

FedAR's equation (6) is missing from our copy of the paper. The text says that a client just seen
has weight 1; that the weight is a mildly increasing function of the inactive rounds; that one
hyper-parameter restricts the growth; that there is a largest value; and that the weight is 0 beyond
``tau_max(t)``. The last property is the cutoff of `FedAR` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import Array
from fltheory.validation import FloatArray

Cutoff = float | Callable[[Array], Array]

# A user may pass any function, so its first 1,000 values are checked. Differences between values of
# up to a few thousand may have a rounding error of `_SLACK`.
_CHECKED = 1000
_SLACK = 1e-12


class InactivityWeight(Protocol):
    """psi before the cutoff, a function of the number of inactive rounds.

    It is 1 for a client just seen, never decreases, grows by at most ``growth`` from one
    round to the next, and is at most ``largest``.
    """

    @property
    def growth(self) -> float:
        """The hyper-parameter that restricts the growth; not negative."""
        ...

    @property
    def largest(self) -> float:
        """The cap; at least 1 and finite."""
        ...

    def __call__(self, inactive: Array) -> Array:
        """Return the weights after ``inactive`` rounds, entry by entry, on any backend."""
        ...


@dataclass(frozen=True)
class CappedLinear:
    """``psi(tau) = min(1 + growth tau, largest)``: our own choice, not FedAR's equation (6).

    Our copy of the paper lacks the formula; this is the simplest one that fits its description.

    Parameters
    ----------
    growth : float
        Increase per round of inactivity; with 0, all clients have equal weights.
    largest : float
        At least 1.

    Raises
    ------
    ValueError
        If ``growth`` is negative, ``largest`` is below 1, or either is not finite.

    Examples
    --------
    >>> CappedLinear(growth=0.5, largest=2.0)(np.array([0.0, 1.0, 4.0])).tolist()
    [1.0, 1.5, 2.0]
    """

    growth: float = 0.05
    largest: float = 2.0

    def __post_init__(self) -> None:
        validation.nonnegative("growth", self.growth)
        validation.real_number(
            "largest", self.largest, "a finite number of at least 1", lambda number: number >= 1
        )

    def __call__(self, inactive: Array) -> Array:
        """Return the weights after ``inactive`` rounds."""
        xp = array_namespace(inactive)
        grown = 1 + self.growth * inactive
        return xp.where(grown < self.largest, grown, xp.full_like(grown, self.largest))


def check_weight(weight: InactivityWeight) -> None:
    """Raise ValueError unless ``weight`` meets the requirements of `InactivityWeight`.

    It is checked after 0, 1, ..., 1000 inactive rounds. The message names the requirement.
    """
    if not callable(weight) or not hasattr(weight, "growth") or not hasattr(weight, "largest"):
        raise ValueError(
            "weight must be a function of the number of inactive rounds with attributes growth "
            f"and largest, got {weight!r}"
        )
    growth = validation.nonnegative("weight.growth", weight.growth)
    largest = validation.real_number(
        "weight.largest", weight.largest, "a finite number of at least 1", lambda cap: cap >= 1
    )
    values = _real("weight", weight(np.arange(_CHECKED + 1.0)))
    if values.shape != (_CHECKED + 1,):
        raise ValueError(
            f"weight must give one number for each count, got shape {values.shape} for "
            f"({_CHECKED + 1},)"
        )
    _clause("be finite", ~np.isfinite(values), values)
    rise = np.diff(values)
    _clause("be 1 for a client just seen", abs(values[:1] - 1) > _SLACK, values)
    _clause("never decrease with the inactive rounds", _from_one(rise < -_SLACK), values)
    _clause(
        f"grow by at most growth={growth:g} per round", _from_one(rise > growth + _SLACK), values
    )
    _clause(f"be at most largest={largest:g}", values > largest + _SLACK, values)


def _real(name: str, values: Array) -> FloatArray:
    """Return a function's values as an array of floats, which may hold NaN and infinity."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must give real numbers, got {values!r}")
    return array.astype(np.float64)


def _from_one(broken: np.ndarray) -> np.ndarray:
    return np.concatenate([[False], broken])


def _clause(must: str, broken: np.ndarray, values: FloatArray) -> None:
    where = np.flatnonzero(broken)
    if where.size:
        raise ValueError(
            f"weight must {must}, got {values[where[0]]:.6g} after {where[0]} inactive rounds"
        )


def check_cutoff(cutoff: Cutoff) -> None:
    """Raise ValueError unless ``tau_max(t)`` is a nonnegative number in rounds 1 to 1000."""
    rounds = np.arange(1, _CHECKED + 1.0)
    values = _real("cutoff", latest(cutoff, rounds))
    if values.shape not in {(), rounds.shape}:
        raise ValueError(
            f"cutoff must give one number for each round, got shape {values.shape} for "
            f"{rounds.shape}"
        )
    values = np.broadcast_to(values, rounds.shape)
    bad = np.flatnonzero(~(values >= 0))
    if bad.size:
        raise ValueError(
            f"cutoff must be a number of at least 0 in every round, got {values[bad[0]]:.6g} "
            f"in round {bad[0] + 1}"
        )


def latest(cutoff: Cutoff, rounds: Array) -> Array | float:
    """Return ``tau_max(t)`` in rounds t, counted from 1."""
    return cutoff(rounds) if callable(cutoff) else cutoff

"""Bound, truth and sample of a statement over one variable: what a figure shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from fltheory.evidence.verdict import Outcome
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class BoundCurve(ReadOnlyArrays):
    """A statement's two sides over one variable.

    Attributes
    ----------
    name : str
        Id and reading.
    variable, quantity : str
        Labels of the axes; mathematics between dollars.
    values : array, (n,)
    bound : array, (n,)
        NaN where the statement says nothing.
    outcomes : tuple of Outcome
        The verdict at each value; none where nothing was judged.
    truth, truth_error : array, (n,), or None
        Computed, with a bound on its rounding error; None where it can only be sampled. A truth
        without a bound on its error is for orientation, NaN at values where there is none: verdicts
        rest on the sample.
    sampled, interval : array, (n,), or None
        Sampled mean and the half-width of its interval; None where nothing was sampled, and NaN
        at values where nothing was.
    replicas : int or None
        Sample size.
    error_probability : float
        That any of the intervals misses.
    parts : mapping of str to array, (n,)
        Named terms of the bound.
    bound_name : str
        What the bound is: an upper bound, a floor, a claimed order.
    note : str
        What else a title should say.
    labels : tuple of str
        Names of the values, where they are cases and not numbers.
    """

    name: str
    variable: str
    quantity: str
    values: FloatArray
    bound: FloatArray
    outcomes: tuple[Outcome, ...] = ()
    truth: FloatArray | None = None
    truth_error: FloatArray | None = None
    sampled: FloatArray | None = None
    interval: FloatArray | None = None
    replicas: int | None = None
    error_probability: float = 0.0
    parts: Mapping[str, FloatArray] = field(default_factory=dict)
    bound_name: str = "bound"
    note: str = ""
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.truth_error is None and self.sampled is None:
            raise ValueError("truth must be given, with its error, where sampled is not")

    @property
    def verdict(self) -> str:
        """The verdicts in a few words: the one there is, or how many values have which."""
        counts = {o.name: self.outcomes.count(o) for o in Outcome if o in self.outcomes}
        if len(counts) <= 1:
            return next(iter(counts), "no claim")
        return ", ".join(f"{name} at {count}" for name, count in counts.items())

    @property
    def is_computed(self) -> bool:
        """Whether the truth is known at every value, with a bound on its error."""
        return self.truth_error is not None

    @property
    def judged(self) -> FloatArray:
        """What is compared with the bound: the truth where it is computed, else the sample."""
        known = self.truth if self.is_computed else self.sampled
        assert known is not None
        return known

    @property
    def judged_error(self) -> FloatArray:
        """Half-widths of the intervals around what is compared."""
        error = self.truth_error if self.is_computed else self.interval
        assert error is not None
        return error

    @property
    def heading(self) -> str:
        """The statement and what was found, with the evidence where that is a sample."""
        found = f"{self.name}: {self.verdict}"
        if self.is_computed or not self.outcomes:
            return found
        return f"{found} (sampled, {confidence(self.error_probability)} intervals)"

    def relative(self) -> BoundCurve:
        """Return bound and truth each over its own least value, the sample over the truth's."""
        least = float(np.nanmin(self.judged))
        if not 0 < least < np.inf:
            raise ValueError(f"truth must be positive to be taken relative to, got {least:g}")
        return replace(
            self,
            quantity="relative to its minimum",
            bound=self.bound / np.nanmin(self.bound),
            truth=_over(self.truth, least),
            truth_error=_over(self.truth_error, least),
            sampled=_over(self.sampled, least),
            interval=_over(self.interval, least),
            parts={},
        )


class LabelledQuantity(Protocol):
    """A quantity that an axis can name."""

    @property
    def text(self) -> str:
        """It in text."""
        ...

    @property
    def latex(self) -> str:
        """It typeset; empty where there is only the text."""
        ...


def quantity_label(quantity: LabelledQuantity) -> str:
    """Return a quantity for an axis: typeset, or by its text where that is all there is."""
    return f"${quantity.latex}$" if quantity.latex else quantity.text


def confidence(error_probability: float) -> str:
    """Return with which probability intervals hold at least, in percent, in nines.

    >>> confidence(1e-3), confidence(1e-9 / 11)
    ('99.9 %', '99.99999999 %')
    """
    nines = math.floor(-math.log10(error_probability) + _ROUNDING)
    return f"{100 * (1 - 10.0**-nines):.{max(0, nines - 2)}f} %"


def _over(values: FloatArray | None, least: float) -> FloatArray | None:
    return None if values is None else values / least

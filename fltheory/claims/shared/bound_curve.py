"""Bound, truth and sample of a statement over one variable: what a figure shows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Protocol

import numpy as np

from fltheory.decimals import how_many
from fltheory.evidence.verdict import Outcome
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_ROUNDING = 1e-9
_MOST_STRETCHES = 2  # of one verdict, in a title
_LEAST_DECIMAL = -4  # the least power of ten that is written as a decimal number


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
        """The verdicts in a few words: the one there is, or which was reached where.

        Where they alternate too often for a title, how many values have which.
        """
        counts = {o: self.outcomes.count(o) for o in Outcome if o in self.outcomes}
        if len(counts) <= 1:
            return next((outcome.name for outcome in counts), "no claim")
        if self.labels:
            return ", ".join(f"{o.name} in {how_many(n, 'case')}" for o, n in counts.items())
        stretches = self._stretches()
        if max(map(len, stretches.values())) > _MOST_STRETCHES:
            several = f"of {len(self.outcomes)} values of {self._symbol}"
            return ", ".join(f"{o.name} at {n}" for o, n in counts.items()) + f" {several}"
        return ", ".join(f"{o.name} {' and '.join(found)}" for o, found in stretches.items())

    def _stretches(self) -> Mapping[Outcome, list[str]]:
        """Return in words where each verdict was reached, the smallest values first."""
        order = np.argsort(self.values, kind="stable")
        found: dict[Outcome, list[str]] = {}
        judged = [(float(self.values[place]), self.outcomes[place]) for place in order]
        least, most = judged[0][0], judged[-1][0]
        for outcome, group in groupby(judged, key=itemgetter(1)):
            values = [value for value, _ in group]
            found.setdefault(outcome, []).append(self._stretch(values, least, most))
        return found

    def _stretch(self, values: Sequence[float], least: float, most: float) -> str:
        first, last = _number(values[0]), _number(values[-1])
        if first == last:
            return f"at {self._symbol} = {first}"
        if values[0] == least:
            return f"for {self._symbol} <= {last}"
        if values[-1] == most:
            return f"for {self._symbol} >= {first}"
        return f"for {first} <= {self._symbol} <= {last}"

    @property
    def _symbol(self) -> str:
        """The letter of the variable, or its name where it has none."""
        letters = re.findall(r"\$[^$]*\$", self.variable)
        return letters[0] if letters else self.variable

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
        return f"{found} (sampled, wrong with probability {at_most(self.error_probability)})"

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


def at_most(error_probability: float) -> str:
    """Return a probability of error as a limit, rounded up to one digit.

    >>> at_most(1e-3), at_most(1e-9 / 11), at_most(0.0021)
    ('at most 0.001', 'at most 1e-10', 'at most 0.003')
    """
    exponent = math.floor(math.log10(error_probability) + _ROUNDING)
    digit = math.ceil(error_probability / 10.0**exponent - _ROUNDING)
    mantissa, _, power = f"{digit * 10.0**exponent:.0e}".partition("e")
    if int(power) < _LEAST_DECIMAL:
        return f"at most {mantissa}e{int(power)}"
    return f"at most {float(mantissa) * 10.0 ** int(power):.{-int(power)}f}"


def _number(value: float) -> str:
    """Return a value for a title: counts in full, all else in three digits."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:.3g}"


def _over(values: FloatArray | None, least: float) -> FloatArray | None:
    return None if values is None else values / least

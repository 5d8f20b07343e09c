"""The run that a theorem speaks of, at the steps that it asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fltheory.engines import Setting
from fltheory.exact_or_float import number
from fltheory.grammar.quantities import BoundedQuantity

JUST_BELOW = 1 - 1e-12
"""A product of step sizes that is meant to meet a limit must not exceed it by rounding."""


@dataclass(frozen=True)
class OwnRun:
    """A theorem's own algorithm and step sizes, on the problem and participation of any setting.

    Attributes
    ----------
    make : callable
        The run, from a setting that says the problem, who takes part, the start, how many averages
        there are (its ``rounds``), and how many local steps lie between two of them. Raises
        ValueError where the theorem names no steps for it.
    quantity : BoundedQuantity, optional
        What of the run the bound is on, once divided; the statement's own by default.
    divisor : callable
        What the bound is divided by to be one on ``quantity``; 1 by default.
    divided_by : str
        The same in words.
    """

    make: Callable[[Setting], Setting]
    quantity: BoundedQuantity | None = None
    divisor: Callable[[Setting], Any] = lambda setting: 1
    divided_by: str = ""


def strong_convexity(setting: Setting) -> Any:
    """Return mu, on which the steps rest; ValueError if it is not positive."""
    mu = number(setting.problem.mu)
    if mu <= 0:
        raise ValueError(f"problem must be strongly convex for its step sizes, got mu = {mu:g}")
    return mu

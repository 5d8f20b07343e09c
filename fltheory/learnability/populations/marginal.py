"""Distributions on the line with piecewise constant density, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from fltheory.validation import FloatArray

Rational: TypeAlias = Fraction | int | str | float


@dataclass(frozen=True)
class Marginal:
    """Mass ``masses[i]``, spread evenly, between ``edges[i]`` and ``edges[i + 1]``.

    Parameters
    ----------
    edges : sequence of numbers, (k + 1,)
        In increasing order.
    masses : sequence of numbers, (k,)
        Not negative, with sum 1. Floats count as the fractions that they are.

    Raises
    ------
    ValueError
        For edges out of order, or masses that are no probabilities.
    """

    edges: tuple[Fraction, ...]
    masses: tuple[Fraction, ...]

    def __init__(self, edges: Sequence[Rational], masses: Sequence[Rational]) -> None:
        places = tuple(rational("edges", edge) for edge in edges)
        weights = tuple(rational("masses", mass) for mass in masses)
        if len(places) < 2 or any(low >= high for low, high in pairwise(places)):
            raise ValueError(f"edges must be two or more in increasing order, got {list(edges)}")
        check_weights("masses", weights, len(places) - 1)
        object.__setattr__(self, "edges", places)
        object.__setattr__(self, "masses", weights)

    @property
    def densities(self) -> tuple[Fraction, ...]:
        """The density between neighbouring edges."""
        widths = (high - low for low, high in pairwise(self.edges))
        return tuple(mass / width for mass, width in zip(self.masses, widths, strict=True))

    def density_between(self, low: Fraction, high: Fraction) -> Fraction:
        """Return the density on an interval that crosses no edge."""
        for (left, right), density in zip(pairwise(self.edges), self.densities, strict=True):
            if left <= low and high <= right:
                return density
        return Fraction(0)

    def below(self, point: Fraction) -> Fraction:
        """Return the mass below a point."""
        total = Fraction(0)
        for (left, right), mass in zip(pairwise(self.edges), self.masses, strict=True):
            if point <= left:
                break
            total += mass * min(Fraction(1), (point - left) / (right - left))
        return total

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draw points, independent of each other."""
        left = np.array(self.edges[:-1], dtype=np.float64)
        widths = np.diff(np.array(self.edges, dtype=np.float64))
        pieces = rng.choice(widths.size, size=size, p=np.array(self.masses, dtype=np.float64))
        points: FloatArray = left[pieces] + widths[pieces] * rng.random(size)
        return points


def uniform(low: Rational, high: Rational) -> Marginal:
    """Return the uniform distribution on an interval."""
    return Marginal((low, high), (1,))


def rational(name: str, value: Rational) -> Fraction:
    """Return a number as a fraction.

    Raises
    ------
    ValueError
        For what is no finite number.
    """
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"{name} must be made of finite numbers, got {value!r}") from error


def check_weights(name: str, weights: Sequence[Fraction], count: int) -> None:
    """Raise ValueError unless these are so many probabilities with sum 1."""
    if len(weights) != count or min(weights) < 0 or sum(weights) != 1:
        shown = [str(weight) for weight in weights]
        raise ValueError(f"{name} must be {count} numbers of at least 0 with sum 1, got {shown}")

"""Families of settings, in which theorems are searched and mapped.

A family makes a setting from a few numbers, and couples quantities that the theorem couples (e.g.
step sizes that must satisfy an equation), so that most of its settings meet the hypotheses.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum

import numpy as np

from fltheory import validation
from fltheory.engines import Setting

_AXIS_POINTS = 13
_DIGITS = 2


class SearchSpace(Enum):
    """Settings with their own search; without one, a search starts from the regimes."""

    SAFARI = "low-dimensional extremal instances of SAFARI"
    SAFARI_ONE_NOISE_LEVEL = (
        "low-dimensional extremal instances of SAFARI, with one sigma for the noise of clients "
        "and server"
    )


@dataclass(frozen=True)
class Parameter:
    """A number that a family's settings depend on.

    Attributes
    ----------
    name : str
        The name, which is also the keyword argument of the family's ``make``.
    low, high, default : float
        The parameter's range and its default value.
    meaning : str
    logarithmic : bool
        Whether it is varied on a logarithmic scale; ``low`` must then be above 0.
    whole : bool
        Whether it is a whole number.

    Raises
    ------
    ValueError
        If the range is empty, the default is outside it, or ``low`` is not positive although the
        scale is logarithmic.

    Examples
    --------
    >>> Parameter("q", 0.01, 1.0, 0.5, "probability of a client round").inside(2.0)
    1.0
    """

    name: str
    low: float
    high: float
    default: float
    meaning: str
    _: KW_ONLY
    logarithmic: bool = True
    whole: bool = False

    def __post_init__(self) -> None:
        validation.text("name of a parameter", self.name)
        validation.instance_of(f"meaning of {self.name}", self.meaning, str, "text")
        for field in ("logarithmic", "whole"):
            validation.instance_of(
                f"{field} of {self.name}", getattr(self, field), bool, "True or False"
            )
        for field in ("low", "high", "default"):
            value = getattr(self, field)
            validation.real_number(
                f"{field} of {self.name}", value, "a finite number", lambda _: True
            )
        if not self.low <= self.default <= self.high:
            raise ValueError(
                f"default of {self.name} must lie in [{self.low:g}, {self.high:g}], "
                f"got {self.default:g}"
            )
        if self.logarithmic and self.low <= 0:
            raise ValueError(
                f"low of {self.name} must be above 0 on a logarithmic scale, got {self.low:g}: see "
                "logarithmic=False"
            )

    def drawn(self, rng: np.random.Generator) -> float:
        """Draw a value; one in five is an end of the range."""
        if rng.random() < 0.2:
            return self.inside(self.low if rng.random() < 0.5 else self.high)
        return self.at(rng.random())

    def at(self, share: float) -> float:
        """Return the value at a share of the way from low to high."""
        if self.logarithmic:
            return self.inside(self.low * (self.high / self.low) ** share)
        return self.inside(self.low + share * (self.high - self.low))

    def nudged(self, value: float, rng: np.random.Generator) -> float:
        """Return a random value close to another one."""
        if self.logarithmic:
            return self.inside(value * 10 ** rng.normal(0, 0.3))
        return self.inside(value + 0.15 * (self.high - self.low) * rng.normal())

    def inside(self, value: float) -> float:
        """Return the nearest value in range with two digits, or the nearest whole number."""
        value = min(max(value, self.low), self.high)
        if self.whole:
            return float(round(value))
        rounded = float(f"{value:.{_DIGITS - 1}e}")
        return rounded if self.low <= rounded <= self.high else value

    def simpler(self, value: float) -> tuple[float, ...]:
        """Return candidates to replace ``value``, the simplest first and ``value`` last."""
        if value == self.default:
            return (value,)
        options = [self.default]
        if value not in (self.low, 0):
            decade = math.copysign(10.0 ** math.floor(math.log10(abs(value))), value)
            options += [self.low]
            options += [] if value == decade else [decade, 10 * decade, float(f"{value:.0e}")]
        kept = [o for o in dict.fromkeys(options) if o != value and self.inside(o) == o]
        return (*kept, value)

    @property
    def axis(self) -> tuple[float, ...]:
        """Values over the whole range, in increasing order."""
        values = (self.at(share) for share in np.linspace(0, 1, _AXIS_POINTS))
        return tuple(sorted(set(values)))


@dataclass(frozen=True, eq=False)
class Family:
    """Settings built from a few numbers.

    Parameters
    ----------
    make : callable
        Takes every parameter by name and returns a setting. It may raise ValueError for
        incompatible values.
    parameters : tuple of Parameter

    Raises
    ------
    ValueError
        If there are no parameters, two have the same name, or ``make`` does not take them.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> def make(step, rounds):
    ...     problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    ...     return Setting(FedAvg(step, 1), problem, UniformSubset(2, 1), int(rounds), [1.0])
    >>> family = Family(
    ...     make,
    ...     (
    ...         Parameter("step", 0.01, 1.0, 0.1, "client step size"),
    ...         Parameter("rounds", 1, 1000, 100, "rounds", whole=True),
    ...     ),
    ... )
    >>> family.setting(step=0.5).algorithm.client_lr
    0.5
    """

    make: Callable[..., Setting]
    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        validation.is_callable("make", self.make)
        validation.tuple_of("parameters", self.parameters, Parameter)
        names = [parameter.name for parameter in self.parameters]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"parameters must have distinct names, got {names}")
        try:
            inspect.signature(self.make).bind(**dict.fromkeys(names))
        except TypeError as error:
            raise ValueError(
                f"make must take every parameter by name ({', '.join(names)}): {error}"
            ) from None

    @property
    def defaults(self) -> Mapping[str, float]:
        """Every parameter's default value."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its name.

        Raises
        ------
        ValueError
            If it is unknown; the message lists the known ones.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        known = ", ".join(self.defaults)
        raise ValueError(f"parameter must be one of {known}, got {name!r}")

    def setting(self, **values: float) -> Setting:
        """Return the setting at these values; other parameters have their defaults.

        Raises
        ------
        ValueError
            If a parameter is unknown, or values do not fit together.
        """
        for name in values:
            self.parameter(name)
        return self.make(**{**self.defaults, **values})

    def drawn(self, rng: np.random.Generator) -> dict[str, float]:
        """Draw values of all parameters."""
        return {parameter.name: parameter.drawn(rng) for parameter in self.parameters}

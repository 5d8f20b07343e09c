"""Regimes, the settings that a statement is checked on, and a theorem's own run on any problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from fltheory import validation
from fltheory.engines import Setting
from fltheory.exact_or_float import number
from fltheory.grammar.quantities import BoundedQuantity

Instance = TypeVar("Instance")


@dataclass(frozen=True, eq=False)
class Regime:
    """A setting or learning problem, built on first use so that listing theorems stays fast.

    Attributes
    ----------
    about : str
        The setting's special feature, in one line.
    make : callable
        Makes the setting.
    effort : int
        Factor on the number of replicas if a verdict in this regime is sampled.

    Raises
    ------
    ValueError
        If the arguments are anything else.

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> alone = Regime("the server alone", lambda: get("sa-fl/5").regimes["q = 0"].setting)
    >>> alone.setting.algorithm.q
    0.0
    """

    about: str
    make: Callable[[], Any]
    effort: int = 1

    def __post_init__(self) -> None:
        validation.instance_of("about of a regime", self.about, str, "text")
        validation.is_callable("make of a regime", self.make, arguments=0)
        validation.whole_number("effort of a regime", self.effort, at_least=1)

    @cached_property
    def setting(self) -> Any:
        """The setting, the same object every time."""
        return self.make()


def coupled(
    instances: Mapping[str, tuple[str, Callable[[], Instance]]],
    couple: Callable[[Instance], Setting],
) -> dict[str, Regime]:
    """Return regimes from instances, given as (about, make), turned into settings by ``couple``.

    Theorems on the same instances differ in how they couple the step sizes to other quantities.
    """

    def regime(about: str, make: Callable[[], Instance]) -> Regime:
        return Regime(about, lambda: couple(make()))

    return {name: regime(about, make) for name, (about, make) in instances.items()}


JUST_BELOW = 1 - 1e-12
"""Keeps a product of step sizes that should equal a limit from exceeding it by rounding."""


@dataclass(frozen=True)
class OwnRun:
    """A theorem's own algorithm and step sizes, on the problem and participation of any setting.

    Attributes
    ----------
    make : callable
        Makes the run from a setting, which gives the problem, participation, initial model, number
        of averages (its ``rounds``), and number of local steps between two averages. Raises
        ValueError if the theorem names no step sizes for it.
    quantity : BoundedQuantity, optional
        The quantity of the run that the divided bound applies to; the statement's own by default.
    divisor : callable
        The number by which to divide the bound to get one on ``quantity``; 1 by default.
    divided_by : str
        The divisor in words.
    """

    make: Callable[[Setting], Setting]
    quantity: BoundedQuantity | None = None
    divisor: Callable[[Setting], Any] = lambda setting: 1
    divided_by: str = ""


def strong_convexity(setting: Setting) -> Any:
    """Return mu, which determines the steps; ValueError if it is not positive."""
    mu = number(setting.problem.mu)
    if mu <= 0:
        raise ValueError(f"problem must be strongly convex for its step sizes, got mu = {mu:g}")
    return mu

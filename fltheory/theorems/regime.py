"""Named settings on which a theorem is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from fltheory.engines import Setting


@dataclass(frozen=True, eq=False)
class Regime:
    """A setting made when it is first asked for, so that listing theorems stays quick.

    Attributes
    ----------
    about : str
        What is special here, in a line.
    make : callable
        Makes the setting.
    """

    about: str
    make: Callable[[], Setting]

    @cached_property
    def setting(self) -> Setting:
        """The setting, the same object every time."""
        return self.make()

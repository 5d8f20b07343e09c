"""Named settings on which a theorem is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fltheory.engines import Setting


@dataclass(frozen=True)
class Regime:
    """A setting made when it is asked for, so that listing theorems stays quick.

    Attributes
    ----------
    about : str
        What is special here, in a line.
    setting : callable
        Makes the setting.
    """

    about: str
    setting: Callable[[], Setting]

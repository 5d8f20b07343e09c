"""A condition of a theorem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from fltheory import validation


@dataclass(frozen=True)
class Hypothesis:
    """A condition ``left <= right``, ``left < right`` or ``left = right`` of a theorem.

    Attributes
    ----------
    name : str
        What it asks for, in a few words.
    condition : sympy relation
    source : str
        Where the paper states it.
    stated : str
        How a paper would say it, where ``condition`` is a number by which it is evaluated; a
        corrected statement has it in the condition's place.
    is_known : bool
        False where the text at hand lacks what it takes to evaluate it: it is then left open, and
        no verdict rests on it. The condition says what it is about.

    Raises
    ------
    ValueError
        If ``name`` is empty, or ``condition`` is no relation, as when SymPy has found it always
        true or false.

    Examples
    --------
    >>> eta, L = sp.symbols("eta L", positive=True)
    >>> Hypothesis("a short step", sp.Le(eta, 1 / L), "Theorem 1").text
    'eta <= 1/L'
    """

    name: str
    condition: sp.core.relational.Relational
    source: str
    is_known: bool = True
    stated: str = ""

    @property
    def relation(self) -> str:
        """How its condition compares its sides, in text."""
        sign = str(self.condition.rel_op)  # type: ignore[attr-defined]
        return "=" if sign == "==" else sign

    def __post_init__(self) -> None:
        validation.text("name of a hypothesis", self.name)
        if not isinstance(self.condition, sp.core.relational.Relational):
            raise ValueError(
                f"condition of hypothesis {self.name!r} must be a SymPy relation, "
                f"got {self.condition!r}; evaluate=False keeps SymPy from deciding it"
            )
        validation.instance_of(f"source of hypothesis {self.name!r}", self.source, str, "a string")

    @cached_property
    def text(self) -> str:
        """The condition in a line; to write it takes longer than many a check of it."""
        if isinstance(self.condition, sp.Eq):  # SymPy writes Eq(a, b)
            return f"{self.condition.lhs} = {self.condition.rhs}"
        return str(self.condition)

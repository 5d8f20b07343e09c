"""Assertions: a left side, a relation and a right side.

Terminal, pages and reports all show a statement through its assertions, so none of them can reverse
an inequality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import ge, gt, le, lt
from typing import Any

import sympy as sp

from fltheory.grammar.hypothesis import Hypothesis


class Relation(StrEnum):
    """The claimed relation of a left side to a right side; the value is its sign in text.

    Examples
    --------
    >>> Relation.AT_LEAST.holds(2, 2), Relation.AT_LEAST.contrary
    (True, '<')
    """

    AT_MOST = "<="
    BELOW = "<"
    AT_LEAST = ">="
    ABOVE = ">"
    OF_ORDER = "= O"
    GOES_WITH = "goes with"

    @property
    def is_from_below(self) -> bool:
        """Whether the right side is a lower bound."""
        return self in (Relation.AT_LEAST, Relation.ABOVE)

    @property
    def contrary(self) -> str:
        """The sign of the relation that refutes an inequality."""
        return _CONTRARIES[self]

    def holds(self, left: Any, right: Any) -> bool:
        """Return whether the relation holds between two numbers.

        Raises
        ------
        KeyError
            If the relation is an order or a direction, which two numbers cannot decide.
        """
        return bool(_COMPARISONS[self](left, right))


_CONTRARIES: Mapping[Relation, str] = {
    Relation.AT_MOST: ">",
    Relation.BELOW: ">=",
    Relation.AT_LEAST: "<",
    Relation.ABOVE: "<=",
}
_COMPARISONS: Mapping[Relation, Callable[[Any, Any], Any]] = {
    Relation.AT_MOST: le,
    Relation.BELOW: lt,
    Relation.AT_LEAST: ge,
    Relation.ABOVE: gt,
}


@dataclass(frozen=True)
class Assertion:
    """A single assertion of a statement under its hypotheses.

    Attributes
    ----------
    left : str
        The left side in text.
    left_latex : str
        The left side in LaTeX; empty if there is only the text.
    relation : Relation
    right : sympy expression
        A bound, or an order.
    variable : sympy symbol or None
        The variable in which an order or direction is claimed.
    hypotheses : tuple of Hypothesis
        Conditions that belong only to this assertion.
    """

    left: str
    left_latex: str
    relation: Relation
    right: sp.Expr
    variable: sp.Symbol | None = None
    hypotheses: tuple[Hypothesis, ...] = ()

    @property
    def text(self) -> str:
        """The assertion in one line."""
        where = "" if self.variable is None else f"in {self.variable}: "
        is_order = self.relation is Relation.OF_ORDER
        right = f"({self.right})" if is_order else f" {self.right}"
        return f"{where}{self.left} {self.relation}{right}"

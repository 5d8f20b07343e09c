"""A condition of a theorem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from fltheory import validation


@dataclass(frozen=True)
class Hypothesis:
    """A condition ``left <= right``, ``left < right`` or ``left = right`` of a theorem.

    Attributes
    ----------
    name : str
        The condition, in a few words.
    condition : sympy relation
    source : str
        The place in the paper that states it.
    stated : str
        How a paper would word it, if ``condition`` is only for evaluation; a corrected statement
        shows this instead.
    any_sign : bool
        Whether the paper allows denominators in the condition to be negative. Otherwise they must
        be positive, and `with_signs` adds this as separate conditions.
    is_sign : bool
        Whether this is such a sign condition.
    is_known : bool
        False if our copy of the paper lacks what is needed to evaluate the condition. It is then
        left open, and no verdict depends on it; ``condition`` only says what it is about.

    Raises
    ------
    ValueError
        If ``name`` is empty, or ``condition`` is not a relation, for example because SymPy found it
        always true or false.

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
    any_sign: bool = False
    is_sign: bool = False

    @property
    def relation(self) -> str:
        """The relation sign of the condition, in text."""
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
        """The condition in one line, cached because formatting often takes longer than checking."""
        if isinstance(self.condition, sp.Eq):  # SymPy writes Eq(a, b)
            return f"{self.condition.lhs} = {self.condition.rhs}"
        return str(self.condition)


def with_signs(hypotheses: Iterable[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Return hypotheses, each preceded by conditions that its denominators are positive.

    A divisor is meant to be positive, whether a paper says so or not. If a condition is met only
    because a denominator is negative, it is met by accident. No condition is added if the signs of
    symbols, or the condition itself (0 <= x <= 1/y), imply it.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z", positive=True)
    >>> small = Hypothesis("small", sp.Le(x, 1 / (1 + z / (1 - y))), "(1)")
    >>> [each.text for each in with_signs([small])]
    ['1 - y > 0', 'x <= 1/(z/(1 - y) + 1)']
    """
    return tuple(
        each for given in hypotheses if not given.is_sign for each in (*_signs(given), given)
    )


def _signs(given: Hypothesis) -> Iterator[Hypothesis]:
    if given.any_sign:
        return
    found = dict.fromkeys(below for side in given.condition.args for below in _denominators(side))
    for below in found:
        if not (below.is_positive or _is_positive_by(given.condition, below)):
            condition = sp.Gt(below, 0, evaluate=False)
            yield replace(
                given,
                name=f"positive denominator in '{given.name}'",
                condition=condition,
                stated="",
                is_sign=True,
            )


def _denominators(formula: sp.Basic) -> Iterator[sp.Expr]:
    """Yield the denominators in a formula, outermost first, each product as a whole."""
    if isinstance(formula, sp.Mul | sp.Pow):
        _, below = sp.fraction(formula)
        if below.free_symbols:
            yield below
    for part in formula.args:
        if not (isinstance(formula, sp.Mul) and isinstance(part, sp.Pow)):
            yield from _denominators(part)
        else:
            yield from (each for inside in part.args for each in _denominators(inside))


def _is_positive_by(condition: sp.core.relational.Relational, below: sp.Expr) -> bool:
    """Return whether a condition ``0 <= x <= n/below`` with n > 0 itself implies below > 0."""
    if not isinstance(condition, sp.Le | sp.Lt | sp.Ge | sp.Gt):
        return False
    above, denominator = sp.fraction(condition.gts)
    return bool(denominator == below and above.is_positive and condition.lts.is_nonnegative)

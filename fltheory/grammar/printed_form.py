"""Formulas as printed in their paper.

SymPy rearranges whatever it is given: ``1/(4 sqrt(30 L K))`` becomes
``sqrt(30)/(120 sqrt(K) sqrt(L))``. That is fine for arithmetic but useless for comparing a
transcription with the paper. So a formula is built twice by the same code: once evaluated, for
computing all numbers, and once unevaluated, for readers. With one source, the two cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import sympy as sp
from sympy.core.relational import Relational
from sympy.printing.latex import LatexPrinter
from sympy.printing.pretty.pretty import PrettyPrinter
from sympy.printing.pretty.stringpict import prettyForm

Formula = TypeVar("Formula", bound=sp.Basic)

# Keyed by the evaluated formula instead of stored beside it, so that code which replaces a bound or
# a condition, as repairs and searches do, cannot leave the old form behind.
_WRITTEN: dict[sp.Basic, Callable[[], sp.Basic]] = {}


def as_printed(formula: Callable[[], Formula]) -> Formula:
    r"""Return a formula, and record the order in which it is written.

    Parameters
    ----------
    formula : callable
        Builds the formula from symbols.

    Examples
    --------
    >>> L, K = sp.symbols("L K", positive=True)
    >>> limit = as_printed(lambda: 1 / (4 * sp.sqrt(30 * L * K)))
    >>> limit
    sqrt(30)/(120*sqrt(K)*sqrt(L))
    >>> print(printed_latex(limit))
    \frac{1}{4 \sqrt{30 L K}}
    """
    evaluated = formula()
    _WRITTEN.setdefault(evaluated, formula)
    return evaluated


def printed_form(formula: sp.Basic) -> sp.Basic | None:
    """Return a formula in the order in which it is written, None if that is unknown.

    The form is for readers and is never evaluated: SymPy prints it with ``order="none"``.
    """
    return _form(formula) if formula in _WRITTEN else None


def printed_latex(formula: sp.Basic) -> str:
    r"""Return the LaTeX of a formula, in the order in which it is written if known.

    Examples
    --------
    >>> eta, mu = sp.symbols("eta mu", positive=True)
    >>> print(printed_latex(1 - eta * mu))
    1 - \eta \mu
    """
    form = printed_form(formula)
    return str(_latex(formula) if form is None else sp.latex(form, order="none"))


def printed_lines(formula: sp.Basic) -> list[str]:
    """Return a formula as multi-line text, in the order in which it is written if known."""
    form = printed_form(formula)
    if form is None:
        text = str(_drawn(formula))
    else:
        text = sp.pretty(form, order="none", use_unicode=True, wrap_line=False)
    return [line.rstrip() for line in text.splitlines()]


def ordered_terms(formula: sp.Basic) -> list[Any]:
    """Return the terms of a sum of unrecorded order: ``1 - eta mu``, not ``-eta mu + 1``."""
    if not isinstance(formula, sp.Add):
        return [formula]
    return sorted(formula.as_ordered_terms(), key=lambda term: term.could_extract_minus_sign())


_MOST_DIGITS = 7
"""Integers that are powers of ten with more digits than this are written as powers."""


class _PositiveFirst:
    def _as_ordered_terms(self, expr: sp.Add, order: Any = None) -> list[Any]:
        return ordered_terms(expr)


class _Latex(_PositiveFirst, LatexPrinter):
    def _print_Rational(self, expr: sp.Rational) -> str:
        digits = str(expr.q)
        if expr.p == 1 and len(digits) > _MOST_DIGITS and digits.strip("0") == "1":
            return f"10^{{-{len(digits) - 1}}}"
        return str(super()._print_Rational(expr))  # type: ignore[no-untyped-call]


class _Pretty(_PositiveFirst, PrettyPrinter):
    pass


_latex: Callable[[sp.Basic], Any] = _Latex().doprint  # type: ignore[no-untyped-call]
_drawn: Callable[[sp.Basic], Any] = _Pretty(  # type: ignore[no-untyped-call]
    {"use_unicode": True, "wrap_line": False}
).doprint


def printed_text(formula: sp.Basic) -> str:
    """Return a formula as text, in the order in which it is written if known.

    Examples
    --------
    >>> L, K = sp.symbols("L K", positive=True)
    >>> print(printed_text(as_printed(lambda: 1 / (4 * sp.sqrt(30 * L * K)))))
    1/(4*sqrt(30*L*K))
    """
    form = printed_form(formula)
    if isinstance(formula, sp.Eq):  # SymPy writes Eq(a, b)
        sides = map(str, formula.args) if form is None else map(form_text, form.args)
        return " = ".join(sides)
    return str(formula) if form is None else form_text(form)


def evaluated(form: Any) -> Any:
    """Return a part of a printed form as an evaluated formula."""
    if isinstance(form, _InBrackets):
        return evaluated(form.args[0])
    return form.func(*map(evaluated, form.args)) if form.args else form


def form_text(form: Any) -> str:
    """Return a printed form, or a part of one, as text."""
    text = str(sp.sstr(form, order="none"))
    # Artefacts of unevaluated products in SymPy: 1/((K*m)), 1/(K**2) and 1 - 1*x.
    text = re.sub(r"/\((\w+\*\*\w+|sqrt\([^()]*\))\)", r"/\1", text)
    return _without_double_brackets(re.sub(r"(?:(?<= )|^|(?<=^-))1\*(?!\*)", "", text))


def _without_double_brackets(text: str) -> str:
    """Return a text with ((a + b)) replaced by (a + b).

    Examples
    --------
    >>> _without_double_brackets("x/((a*(b + 1))) + ((a) + (b))")
    'x/(a*(b + 1)) + ((a) + (b))'
    """
    opened: list[int] = []
    closing: dict[int, int] = {}
    for place, sign in enumerate(text):
        if sign == "(":
            opened.append(place)
        elif sign == ")":
            closing[opened.pop()] = place
    double = {a for a, b in closing.items() if closing.get(a + 1) == b - 1}
    left_out = double | {closing[place] for place in double}
    return "".join(sign for place, sign in enumerate(text) if place not in left_out)


# Unevaluated formulas are built only when first shown, because that empties SymPy's caches.
@lru_cache(maxsize=1024)
def _form(formula: sp.Basic) -> sp.Basic:
    with sp.evaluate(False):
        unevaluated = _WRITTEN[formula]()
    return _without_nesting(unevaluated)


class _InBrackets(sp.Expr):
    """A product in brackets within another product: ``q (5 K)``, not ``q 5 K``."""

    is_commutative = True

    def _latex(self, printer: Any) -> str:
        return rf"\left({printer.doprint(self.args[0])}\right)"

    def _pretty(self, printer: Any) -> Any:
        return prettyForm(*printer._print(self.args[0]).parens())

    def _sympystr(self, printer: Any) -> str:
        return f"({printer.doprint(self.args[0])})"


def _tidy(form: Any) -> Any:
    """Return the written form of a part, if recorded, otherwise the part without nesting."""
    return _form(form) if form in _WRITTEN else _without_nesting(form)


def _without_nesting(form: Any) -> Any:
    """Merge sums of sums and products of products, which Python's operators nest."""
    if not form.args:
        return form
    parts = [_tidy(part) for part in form.args]
    if isinstance(form, sp.Add):
        return sp.Add(*(term for term in _merged(sp.Add, parts) if term != 0), evaluate=False)
    if isinstance(form, sp.Mul):
        return _product(list(_merged(sp.Mul, parts)))
    if isinstance(form, sp.Pow | Relational):
        return form.func(*parts, evaluate=False)
    return form.func(*parts)


def _merged(kind: type[sp.Basic], parts: list[Any]) -> Iterator[Any]:
    for place, part in enumerate(parts):
        if not isinstance(part, kind):
            yield part
        elif kind is sp.Mul and _begins_with_number(part) and parts[:place] not in ([], [-1]):
            yield _InBrackets(part)
        else:
            yield from part.args


def _begins_with_number(product: sp.Basic) -> bool:
    return isinstance(product.args[0], sp.Number)


def _product(factors: list[Any]) -> sp.Basic:
    """Return a product of factors, merging a sign into the next number and dropping ones."""
    if len(factors) > 1 and factors[0] == -1 and isinstance(factors[1], sp.Number):
        factors = [-factors[1], *factors[2:]]
    first, *rest = [factor for factor in factors if factor != 1] or [sp.S.One]
    return sp.Mul(first, *map(_as_divisor, rest), evaluate=False)


def _as_divisor(factor: Any) -> Any:
    """Return a factor such as 1/2, which SymPy always makes of a division by 2, as a division."""
    if isinstance(factor, sp.Rational) and factor.p == 1:
        return sp.Pow(sp.Integer(factor.q), -1, evaluate=False)
    return factor

"""A statement's formulas, as written in a Rocq file and as terms of its library."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fltheory.worst_case.proof.rocq_words import refused

_SUM, _PRODUCT, _MINUS, _POWER, _ATOM = range(5)  # precedence of the outermost operator
_OPERATIONS: Mapping[type, tuple[str, str, int]] = {
    ast.Add: ("+", "Plus", _SUM),
    ast.Sub: ("-", "Less", _SUM),
    ast.Mult: ("*", "Times", _PRODUCT),
    ast.Div: ("/", "Over", _PRODUCT),
}


@dataclass(frozen=True)
class Formula:
    """A formula as text of the file and as a library term, with its binding strength."""

    text: str
    term: str
    level: int = _ATOM

    def over(self, least: int) -> str:
        """Return the text, in parentheses if its operator binds less tightly than ``least``."""
        return self.text if self.level >= least else f"({self.text})"


@dataclass(frozen=True)
class Reader:
    """Reads the formulas of a certificate.

    Attributes
    ----------
    name_of : callable
        Returns the formula of a symbol.
    call_of : callable
        Returns the formula of a function, given its name and argument. It refuses functions that
        the library does not have.
    whole : mapping
        Symbols that are integers and may therefore be exponents.
    """

    name_of: Callable[[str], Formula]
    call_of: Callable[[str, Formula], Formula]
    whole: Mapping[str, int]

    def read(self, tree: ast.expr) -> Formula:
        """Return a formula as text of the file and as a term."""
        match tree:
            case ast.Constant(value=int(number)):
                return Formula(str(number), f"(Whole {number})")
            case ast.Name(id=name):
                return self.name_of(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.read(operand)
                return Formula(f"- {inner.over(_MINUS)}", f"(Opposite {inner.term})", _MINUS)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                base, power = self.read(left), self._exponent(right)
                text = f"{base.over(_POWER + 1)} ^ {power}"
                return Formula(text, f"(Power {base.term} {power})", _POWER)
            case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _OPERATIONS:
                sign, word, level = _OPERATIONS[type(kind)]
                first, second = self.read(left), self.read(right)
                text = f"{first.over(level)} {sign} {second.over(level + 1)}"
                return Formula(text, f"({word} {first.term} {second.term})", level)
            case ast.Call(func=ast.Name(id=function), args=[argument]):
                return self.call_of(function, self.read(argument))
        raise refused(f"the formula {ast.unparse(tree)}")

    def _exponent(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(power)):
                return power
            case ast.Name(id=name) if name in self.whole:
                return self.whole[name]
        raise refused(f"the exponent {ast.unparse(node)}")


def parsed(text: str) -> ast.expr:
    """Return the Python syntax tree of a formula or a condition."""
    return ast.parse(text, mode="eval").body


def heading(document: Mapping[str, Any]) -> str:
    """Return a file's opening comment, which says what is refuted and how to check it."""
    return (
        f"(** A refutation of {document['theorem']} ({document['reading']}), and its proof: "
        "check it with Rocq\n    (Coq 8.16 or later) beside the library in the folder rocq of "
        "fltheory. *)\n"
    )

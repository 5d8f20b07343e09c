"""Wrong versions of a source file, each of which differs from the original in one place.

The place is an operator, a comparison, an integer, a negation, a condition of a comprehension, or a
deleted statement. `checker_mutants.py` and `code_mutants.py` test whether tests notice.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A changed file: the change, its place, its lines, and the whole source.

    ``statement`` is the number of the changed statement in the module, ``text`` is its new source,
    and ``lines`` are those of the innermost statement or lambda that contains the change; there are
    none if it runs on import.
    """

    place: str
    line: int
    what: str
    source: str
    statement: int
    text: str
    lines: range


@dataclass(frozen=True)
class Place:
    """A place where a source can be changed: a node in a statement of the module."""

    statement: int
    node: int


def places(source: str) -> list[Place]:
    """Return all places where a source can be changed, in file order."""
    return [
        Place(statement, node)
        for statement, whole in enumerate(ast.parse(source).body)
        for node, found in enumerate(_walk(whole))
        if _mutation_of(found) is not None
    ]


def mutant(source: str, place: Place) -> Mutant:
    """Change a source in one place."""
    whole = _parsed(source).body[place.statement]
    node = _at(whole, place.node)
    box = ast.Module([copy.deepcopy(whole)], [])
    what = _mutated(box, _at(box.body[0], place.node))
    after = ast.unparse(box)
    start = min(n.lineno for n in [whole, *getattr(whole, "decorator_list", [])])
    lines = source.splitlines()
    text = "\n".join([*lines[: start - 1], after, *lines[whole.end_lineno :]]) + "\n"
    line = getattr(node, "lineno", whole.lineno)
    within = _lines_around(whole, node)
    return Mutant(name_of(whole), line, what, text, place.statement, after, within)


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every version that differs from ``source`` in one place."""
    return (mutant(source, place) for place in places(source))


@lru_cache(maxsize=8)
def _parsed(source: str) -> ast.Module:
    """Parse a source, cached, as only copies of its nodes are changed."""
    return ast.parse(source)


def _lines_around(whole: ast.stmt, node: ast.AST) -> range:
    """Return the lines of the innermost statement or lambda around a node, inside a function."""
    parents = {child: above for above in ast.walk(whole) for child in ast.iter_child_nodes(above)}
    around: list[ast.AST] = [node]
    while around[-1] is not whole:
        around.append(parents[around[-1]])
    for found, outer in zip(around, [*around[1:], whole], strict=True):
        if isinstance(outer, ast.Lambda) and found is outer.body:
            return range(outer.lineno, (outer.end_lineno or outer.lineno) + 1)
        if isinstance(outer, ast.FunctionDef) and found in outer.body:
            inner = next(n for n in around if isinstance(n, ast.stmt))
            return range(inner.lineno, (inner.end_lineno or inner.lineno) + 1)
    return range(0)


def _at(whole: ast.AST, index: int) -> ast.AST:
    return next(node for number, node in enumerate(_walk(whole)) if number == index)


def name_of(whole: ast.stmt) -> str:
    """Return the name of a function or class, or the first name assigned."""
    if isinstance(whole, ast.FunctionDef | ast.ClassDef):
        return whole.name
    return next((n.id for n in ast.walk(whole) if isinstance(n, ast.Name)), "")


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it but annotations, which never run, and zip's ``strict``.

    The latter never matters in the checker, as its rules have compared the lengths before.
    """
    yield node
    if isinstance(node, ast.Call):
        node = ast.Call(node.func, node.args, [k for k in node.keywords if k.arg != "strict"])
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child)


def _mutated(box: ast.Module, node: ast.AST) -> str:
    """Change a node inside a box, and say how."""
    mutate = _mutation_of(node)
    assert mutate is not None
    # A number alone says little, so the expression around it is shown.
    above = next(n for n in ast.walk(box) if any(node is c for c in ast.iter_child_nodes(n)))
    is_shown = isinstance(node, ast.Constant) and isinstance(above, ast.expr)
    shown = above if is_shown else node
    before = _text(shown)
    put = mutate(node)
    if put is not node:
        _replace(box, node, put)
    return f"{before} -> {_text(above if is_shown else put)}"


def _text(node: ast.AST) -> str:
    return "nothing" if isinstance(node, ast.Pass) else ast.unparse(node).partition("\n")[0]


def _mutation_of(node: ast.AST) -> Callable[[Any], ast.AST] | None:
    """Return a function that makes a wrong node of a node, if there is one."""
    match node:
        case ast.BinOp() | ast.BoolOp() if type(node.op) in _SWAPS:
            return _with_other_operator
        case ast.Compare() if any(type(kind) in _SWAPS for kind in node.ops):
            return _with_other_comparison
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            return lambda found: found.operand
        case ast.comprehension(ifs=[_, *_]):
            return _without_condition
        case ast.Constant(value=bool() | int()):
            return _with_other_number
        case ast.Expr(value=ast.Constant()):
            return None
        case ast.Assign() | ast.AugAssign() | ast.Expr() | ast.Raise() | ast.Return() | ast.If():
            return lambda found: ast.copy_location(ast.Pass(), found)
    return None


def _with_other_operator(node: Any) -> ast.AST:
    node.op = _SWAPS[type(node.op)]()
    return node


def _with_other_comparison(node: Any) -> ast.AST:
    node.ops = [_SWAPS[type(kind)]() if type(kind) in _SWAPS else kind for kind in node.ops]
    return node


def _without_condition(node: Any) -> ast.AST:
    node.ifs = []
    return node


def _with_other_number(node: Any) -> ast.AST:
    node.value = not node.value if type(node.value) is bool else node.value + 1
    return node


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(item is old for item in value):
                value[:] = [new if item is old else item for item in value]

"""An independent checker of certificates of refutation: fractions and the standard library only.

This file is a program in itself. It can be copied elsewhere and run as
``python certificate_checker.py FILE``. A certificate holds the statement's formulas as text, the
definition of each of their symbols, a setting, and two numbers between the sides of the broken
inequality. Everything is computed again here, with no code shared with the engines. Every
algorithm's round is written a second time, as a linear map with exact fractions, and moments are
propagated as brackets. The reader has to compare the formulas with those of the paper.

A certificate is untrusted, so every field is validated before it is used. An invalid value (a
negative step, a probability above one) is refused with the name of its field, and a computation
that would take too long is refused before it starts.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, Protocol, TypeAlias

VERSION = 3
MOST_CHARACTERS = 1_000_000  # of a file
LONGEST_INPUT = 100  # characters of a number
LONGEST_FORMULA = 2_000  # characters
MOST_BRACKETS = 100  # in a formula
DEEPEST_FORMULA = 100  # nested operations
MOST_CLIENTS, MOST_DIMENSIONS, MOST_ROUNDS = 16, 8, 10_000
MOST_STATES = 64  # states of an explicit chain
MOST_SETS, MOST_PLACES = 16_384, 256  # independent clients, clients with a chain each
MOST_ENTRIES = 40_000  # entries of a transition matrix times their bits
MOST_TERMS = 16_384  # terms of a sum over all rounds that are added before its remainder is bounded
MOST_LOCAL_BITS = 150_000  # bits of factors raised to the local steps, and of sums of step sizes
COARSEST, FINEST = 64, 4096  # binary places of brackets
MOST_BITS = 400_000  # bits of any fraction in a formula
MOST_WORK = 20_000_000  # products of brackets, which take about half a minute

Span: TypeAlias = tuple[Fraction, Fraction]


class Symbols(Protocol):
    """A mapping from names to values, such as a dictionary."""

    def __contains__(self, name: object, /) -> bool: ...

    def __getitem__(self, name: str, /) -> Span: ...


class CertificateError(ValueError):
    """The certificate is invalid; the message names the first field that fails."""


# ---------------------------------------------------------------- reading an untrusted file


def parsed(text: str) -> dict[str, Any]:
    """Read a certificate's JSON, more strictly than Python's reader.

    Raises
    ------
    CertificateError
        If the text is not a JSON object or is too long, if a key occurs twice, or if a number is
        NaN or has a decimal point.
    """
    if len(text) > MOST_CHARACTERS:
        raise CertificateError(f"file: must have at most {MOST_CHARACTERS} characters")
    try:
        document = json.loads(
            text,
            object_pairs_hook=_without_repetition,
            parse_constant=_no_number,
            parse_float=_no_number,
            parse_int=_short_whole,
        )
    except CertificateError:
        raise
    except (RecursionError, ValueError) as error:
        raise CertificateError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CertificateError("must be an object with fields")
    return document


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise CertificateError(f"{name[:60]}: the field is given twice")
        found[name] = value
    return found


def _no_number(text: str) -> Any:
    raise CertificateError(f"{text[:60]}: numbers must be whole, or text like '3/4'")


def _short_whole(text: str) -> int:
    if len(text) > 20:
        raise CertificateError(f"{text[:20]}...: a whole number must have at most 20 digits")
    return int(text)


def fields_of(place: str, found: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return an object that must have exactly these fields."""
    if not isinstance(found, dict):
        raise CertificateError(f"{place}: must be an object with fields, got {_shown(found)}")
    for name in names:
        if name not in found:
            raise CertificateError(f"{place}.{name}: the field is missing")
    for name in found:
        if name not in names:
            raise CertificateError(f"{place}.{name}: is not a field here")
    return found


def list_of(place: str, found: Any, of: Callable[[str, Any], Any]) -> list[Any]:
    """Return the list of what ``of`` reads from each item."""
    if not isinstance(found, list):
        raise CertificateError(f"{place}: must be a list, got {_shown(found)}")
    return [of(f"{place}[{index}]", item) for index, item in enumerate(found)]


def fraction(place: str, found: Any) -> Fraction:
    """Return the fraction written as text like ``-3/4``, without decimal points or exponents."""
    if not isinstance(found, str) or len(found) > LONGEST_INPUT:
        raise CertificateError(
            f"{place}: must be text of at most {LONGEST_INPUT} characters, got {_shown(found)}"
        )
    if not re.fullmatch(r"-?[0-9]+(/[0-9]*[1-9][0-9]*)?", found):
        raise CertificateError(f"{place}: must be a fraction like '3/4', got {_shown(found)}")
    above, _, below = found.partition("/")
    return Fraction(int(above), int(below or "1"))


def whole(place: str, found: Any) -> int:
    """Return an integer, and refuse True and False."""
    if type(found) is not int:
        raise CertificateError(f"{place}: must be a whole number, got {_shown(found)}")
    return found


def text_of(place: str, found: Any) -> str:
    """Return a short text."""
    if not isinstance(found, str) or len(found) > LONGEST_FORMULA:
        raise CertificateError(f"{place}: must be a short text, got {_shown(found)}")
    return found


def _shown(value: Any) -> str:
    """Return a value as one short line."""
    if isinstance(value, Fraction) and bits_of(value) > 200:
        return f"a fraction of {bits_of(value)} bits"
    shown = str(value) if isinstance(value, Fraction) else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


# ---------------------------------------------------------------- formulas, in fractions


class _UndecidedError(Exception):
    """Brackets around irrational numbers are too wide to decide; narrower ones may help."""


_COMPARISONS: Mapping[type, str] = {ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">"}


def bits_of(value: Fraction) -> int:
    """Return the number of bits of a fraction's numerator and denominator together."""
    return value.numerator.bit_length() + value.denominator.bit_length()


def syntax_of(formula: str) -> ast.expr:
    """Return a formula's syntax tree; refuse a text that is too long, too deep or no formula.

    The parser is Python's own, but it is called only on texts that cannot overload it.
    """
    text = text_of("statement", formula)
    if not re.fullmatch(r"[A-Za-z0-9_+\-*/()<>=, ]+", text) or text.count("(") > MOST_BRACKETS:
        raise CertificateError(f"statement: {_shown(text)} is not a formula in fractions")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CertificateError(f"statement: {_shown(text)} is not a formula") from error
    if _depth(tree) > DEEPEST_FORMULA:
        raise CertificateError(f"statement: {_shown(text)} must be nested less deeply")
    return tree


def _depth(tree: ast.AST) -> int:
    """Return a tree's depth, computed level by level because recursion could overflow."""
    level, depth = [tree], 0
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _span(node: ast.expr, symbols: Symbols, bits: int) -> Span:
    """Return fractions below and above a formula's value, which are equal if it is a fraction."""
    match node:
        case ast.Constant(value=number) if type(number) is int:
            return Fraction(number), Fraction(number)
        case ast.Name(id=name) if name in symbols:
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            low, high = _span(operand, symbols, bits)
            return -high, -low
        case ast.BinOp(left=left, op=kind, right=right):
            first, second = _span(left, symbols, bits), _span(right, symbols, bits)
            return _short(_combined(kind, first, second, bits))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _called(name, [_span(item, symbols, bits) for item in arguments], bits)
    raise CertificateError(f"statement: {_shown(ast.unparse(node))} is not a formula in fractions")


def _combined(kind: ast.operator, first: Span, second: Span, bits: int) -> Span:
    match kind:
        case ast.Add():
            return first[0] + second[0], first[1] + second[1]
        case ast.Sub():
            return first[0] - second[1], first[1] - second[0]
        case ast.Mult():
            return _product(first, second)
        case ast.Div():
            return _product(first, _inverse(second))
        case ast.Pow():
            return _power(first, second, bits)
    raise CertificateError(f"statement: {type(kind).__name__} is not allowed in formulas")


def _called(name: str, spans: list[Span], bits: int) -> Span:
    if name == "sqrt" and len(spans) == 1:
        return _root(spans[0], 2, bits)
    if name == "log" and len(spans) == 1:
        return _log(spans[0], bits)
    if name in ("Min", "Max") and spans:
        pick = min if name == "Min" else max
        return pick(low for low, _ in spans), pick(high for _, high in spans)
    raise CertificateError(f"statement: {name[:60]} is not a known function")


def _short(span: Span) -> Span:
    if max(bits_of(end) for end in span) > MOST_BITS:
        raise CertificateError(f"statement: a value in a formula has more than {MOST_BITS} bits")
    return span


def _product(first: Span, second: Span) -> Span:
    corners = [a * b for a in first for b in second]
    return min(corners), max(corners)


def _inverse(span: Span) -> Span:
    low, high = span
    if low < 0 < high or (low != high and 0 in span):
        raise _UndecidedError
    return 1 / high, 1 / low


def _power(base: Span, exponent: Span, bits: int) -> Span:
    """Return a power whose exponent is a fraction, computed as a root of an integer power."""
    power, upper = exponent
    if power != upper or power.denominator > 12:
        raise CertificateError("statement: an exponent must be a fraction of small denominator")
    if max(bits_of(end) for end in base) * abs(power.numerator) > MOST_BITS:
        raise CertificateError(f"statement: a power in a formula has more than {MOST_BITS} bits")
    ends = sorted(end ** abs(power.numerator) for end in base)
    if base[0] < 0 < base[1] and power.numerator % 2 == 0:
        ends[0] = Fraction(0)
    raised = ends[0], ends[1]
    if power.denominator > 1:
        raised = _root(base, power.denominator, bits)
        return _power(raised, (Fraction(power.numerator),) * 2, bits)
    return _inverse(raised) if power < 0 else raised


def _root(span: Span, degree: int, bits: int) -> Span:
    """Return fractions that enclose a root, rounded outwards to multiples of 2^-bits."""
    low, high = span
    if high < 0:
        raise CertificateError("statement: a formula takes a root of a negative number")
    if low < 0:
        raise _UndecidedError
    exact = [_whole_root(part, degree) for part in (low.numerator, low.denominator)]
    if low == high and [root**degree for root in exact] == [low.numerator, low.denominator]:
        return (Fraction(*exact),) * 2
    below, above = (
        _whole_root(math.floor(end * 2 ** (degree * bits)), degree) for end in (low, high)
    )
    return Fraction(below, 2**bits), Fraction(above + 1, 2**bits)


def _whole_root(number: int, degree: int) -> int:
    """Return the integer part of a root of ``number``, by Newton's method."""
    if number < 2:
        return number
    root = 1 << -(-number.bit_length() // degree)  # not below the root, so the iterates decrease
    while (lower := ((degree - 1) * root + number // root ** (degree - 1)) // degree) < root:
        root = lower
    return root


def _log(span: Span, bits: int) -> Span:
    """Return fractions that enclose a natural logarithm."""
    if span[1] <= 0:
        raise CertificateError(
            "statement: a formula takes the logarithm of a number that is not positive"
        )
    if span[0] <= 0:
        raise _UndecidedError
    return _log_of(span[0], bits)[0], _log_of(span[1], bits)[1]


def _log_of(value: Fraction, bits: int) -> Span:
    """Bracket ``ln v = k ln 2 + 2 artanh((u - 1)/(u + 1))`` with u = v/2^k in [1, 2)."""
    k = value.numerator.bit_length() - value.denominator.bit_length()
    k -= value < Fraction(2) ** k
    scaled = value / Fraction(2) ** k
    of_two, of_rest = _third(bits), _artanh((scaled - 1) / (scaled + 1), bits)
    ends = sorted(2 * k * end for end in of_two)
    return ends[0] + 2 * of_rest[0], ends[1] + 2 * of_rest[1]


@cache
def _third(bits: int) -> Span:
    return _artanh(Fraction(1, 3), bits)


def _artanh(z: Fraction, bits: int) -> Span:
    """Bracket ``z + z^3/3 + z^5/5 + ...``, z in [0, 1/3]; the remainder is below the last power."""
    power = square = _fixed(z, bits)
    square = _rounded([_times(square, square)], bits)
    low = high = 0
    for n in range(1, bits + 2, 2):
        low, high = low + power[0] // n, high - (-power[1] // n)
        power = _rounded([_times(power, square)], bits)
    return Fraction(low, 2**bits), Fraction(high + power[1], 2**bits)


def _settled(condition: str, decide: Callable[[int], bool]) -> bool:
    """Shrink brackets around irrational numbers until the comparison is decided."""
    bits = COARSEST
    while bits <= FINEST:
        try:
            return decide(bits)
        except ZeroDivisionError:
            return False
        except _UndecidedError:
            bits *= 4
    raise CertificateError(f"statement: {_shown(condition)} is too close to an equality to decide")


def _decided(condition: str, symbols: Symbols, bits: int) -> bool:
    left, relation, right = _sides(condition)
    first = _span(left, symbols, bits)
    if isinstance(right, ast.Name) and right.id == "oo" and relation == "<":
        return True
    second = _span(right, symbols, bits)
    if relation in (">=", ">"):
        first, second = second, first
    if relation == "==":
        surely, possibly = first[0] == second[1] == first[1] == second[0], _overlap(first, second)
    elif relation in ("<", ">"):
        surely, possibly = first[1] < second[0], first[0] < second[1]
    else:
        surely, possibly = first[1] <= second[0], first[0] <= second[1]
    if surely != possibly:
        raise _UndecidedError
    return surely


def _overlap(first: Span, second: Span) -> bool:
    return first[0] <= second[1] and second[0] <= first[1]


def _sides(condition: str) -> tuple[ast.expr, str, ast.expr]:
    match syntax_of(condition):
        case ast.Compare(left=left, ops=[kind], comparators=[right]) if type(kind) in _COMPARISONS:
            return left, _COMPARISONS[type(kind)], right
        case ast.Call(func=ast.Name(id="Eq"), args=[left, right], keywords=[]):
            return left, "==", right
    raise CertificateError(f"statement: {_shown(condition)} is not a condition")


def _names(condition: str) -> set[str]:
    return {node.id for node in ast.walk(syntax_of(condition)) if isinstance(node, ast.Name)}


# ---------------------------------------------------------------- the setting in a file

Form: TypeAlias = dict[int, Fraction]  # factors of 1 (index 0), of the state and of the noises
Vector: TypeAlias = list[Form]
Matrix: TypeAlias = list[list[Fraction]]
Present: TypeAlias = tuple[int, ...]


def _number(place: str, found: Any, least: int | None = None, *, above: bool = False) -> Fraction:
    value = fraction(place, found)
    if least is not None and (value < least or (above and value == least)):
        wanted = f"{'above' if above else 'at least'} {least}"
        raise CertificateError(f"{place}: must be {wanted}, got {_shown(found)}")
    return value


def _positive(place: str, found: Any) -> Fraction:
    return _number(place, found, 0, above=True)


def _not_negative(place: str, found: Any) -> Fraction:
    return _number(place, found, 0)


def _below_one(place: str, found: Any) -> Fraction:
    value = _not_negative(place, found)
    _must(place, value < 1, "below 1", found)
    return value


def _chance(place: str, found: Any) -> Fraction:
    value = _not_negative(place, found)
    _must(place, value <= 1, "from 0 to 1", found)
    return value


def _count(place: str, found: Any) -> int:
    value = whole(place, found)
    _must(place, value >= 1, "at least 1", found)
    return value


def _must(place: str, is_legal: bool, wanted: str, found: Any) -> None:
    if not is_legal:
        raise CertificateError(f"{place}: must be {wanted}, got {_shown(found)}")


def _numbers(place: str, found: Any) -> list[Fraction]:
    return list_of(place, found, fraction)


def _each(of: Callable[[str, Any], Any], size: int) -> Callable[[str, Any], Any]:
    """Return a reader of lists of ``size`` items."""

    def read(place: str, found: Any) -> Any:
        items = list_of(place, found, of)
        _must(place, len(items) == size, f"a list of {size}", found)
        return items

    return read


def _named_fields(place: str, found: Any, kinds: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return an object with a ``name`` that determines its other fields."""
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        raise CertificateError(f"{place}.name: must be a text, got {_shown(found)}")
    if found["name"] not in kinds:
        name = _shown(found["name"])
        raise CertificateError(f"{place}.name: must be one of {', '.join(kinds)}, got {name}")
    return fields_of(place, found, ("name", *kinds[found["name"]]))


@dataclass(frozen=True)
class _Clients:
    """Quadratic clients, ``F_i(x) = 1/2 (x - c_i)' H_i (x - c_i)``."""

    hessians: list[Matrix]
    optima: list[list[Fraction]]
    sigma: Fraction
    server_sigma: Fraction
    alpha: list[Fraction]
    shares: list[Fraction]

    def level(self, i: int) -> Fraction:
        """Return client i's noise level."""
        return self.sigma * self.shares[i]

    def minimiser(self, weights: Sequence[Fraction]) -> list[Fraction]:
        """Return the minimiser of a weighted sum of the losses."""
        pull = [Fraction(0)] * len(self.optima[0])
        for weight, hessian, point in zip(weights, self.hessians, self.optima, strict=True):
            pull = [a + weight * b for a, b in zip(pull, _applied(hessian, point), strict=True)]
        return _solved(self.hessian(weights), pull)

    def hessian(self, weights: Sequence[Fraction]) -> Matrix:
        """Return the Hessian of a weighted sum of the losses."""
        axes = range(len(self.optima[0]))
        rows = [list(zip(weights, self.hessians, strict=True))] * len(axes)
        return [[_total(w * h[i][j] for w, h in rows[i]) for j in axes] for i in axes]


def _clients(place: str, found: Any) -> _Clients:
    names = ["hessians", "optima", "sigma", "server_sigma", "target_weights"]
    if isinstance(found, dict) and "noise_shares" in found:
        names.append("noise_shares")
    raw = fields_of(place, found, names)
    optima = list_of(f"{place}.optima", raw["optima"], _numbers)
    _must(
        f"{place}.optima",
        1 <= len(optima) <= MOST_CLIENTS,
        f"1 to {MOST_CLIENTS} points",
        len(optima),
    )
    d, n = len(optima[0]), len(optima)
    is_point = d <= MOST_DIMENSIONS and all(len(point) == d for point in optima)
    _must(f"{place}.optima", d >= 1 and is_point, "points of one dimension, up to 8", raw["optima"])
    square = _each(_each(fraction, d), d)
    hessians = _each(square, n)(f"{place}.hessians", raw["hessians"])
    for i, hessian in enumerate(hessians):
        of, shown = f"{place}.hessians[{i}]", raw["hessians"][i]
        symmetric = all(hessian[a][b] == hessian[b][a] for a in range(d) for b in range(a))
        _must(of, symmetric and _is_definite(hessian), "symmetric, positive definite", shown)
    weights = _importances(f"{place}.target_weights", raw["target_weights"])
    _must(f"{place}.target_weights", len(weights) == n, f"one for each of {n} clients", weights)
    levels = [_not_negative(f"{place}.{name}", raw[name]) for name in ("sigma", "server_sigma")]
    shares = _each(_not_negative, n)(f"{place}.noise_shares", raw.get("noise_shares", ["1"] * n))
    _must(f"{place}.noise_shares", max(shares) == 1, "1 as the largest", max(shares))
    return _Clients(hessians, optima, levels[0], levels[1], weights, shares)


def _total(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


def _applied(matrix: Matrix, vector: Sequence[Fraction]) -> list[Fraction]:
    return [_total(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _times_matrix(first: Matrix, second: Matrix) -> Matrix:
    columns = list(zip(*second, strict=True))
    return [[_total(a * b for a, b in zip(row, c, strict=True)) for c in columns] for row in first]


def _unit(size: int) -> Matrix:
    return [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]


def _weighed(*terms: tuple[Fraction, Matrix]) -> Matrix:
    """Return a linear combination of matrices."""
    size = range(len(terms[0][1]))
    return [[_total(factor * matrix[i][j] for factor, matrix in terms) for j in size] for i in size]


def _pivots(matrix: Matrix) -> Iterator[Fraction]:
    """Yield the pivots of a symmetric matrix, up to the first that is not positive."""
    rest = [list(row) for row in matrix]
    for k, row in enumerate(rest):
        yield row[k]
        for other in rest[k + 1 :]:
            share = other[k] / row[k]
            other[k:] = [b - share * a for a, b in zip(row[k:], other[k:], strict=True)]


def _is_definite(matrix: Matrix) -> bool:
    return all(pivot > 0 for pivot in _pivots(matrix))


def _solved(matrix: Matrix, vector: Sequence[Fraction]) -> list[Fraction]:
    """Solve a linear system in which all pivots are nonzero."""
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for k, row in enumerate(rows):
        row[:] = [value / row[k] for value in row]
        for i, other in enumerate(rows):
            if i != k:
                other[:] = [b - other[k] * a for a, b in zip(row, other, strict=True)]
    return [row[-1] for row in rows]


# ---------------------------------------------------------------- who takes part


@dataclass(frozen=True)
class _Law:
    """The participation process: its states, the sets possible in each state, and the transitions.

    ``mixing`` is (rate, factor) with ``|P^t - pi| <= factor rate^t`` and rate (1 + lambda_2)/2 if
    each client has its own chain. For other chains of two states it has only the rate; otherwise it
    is None. ``lengths`` is the product of ``8 (pi^2 + (1 - pi)^2)`` over two-state chains with
    stationary distribution pi and 1 - pi; see `_cited_factor`.
    """

    initial: Mapping[Any, Fraction]
    stationary: Mapping[Any, Fraction]
    sets: Callable[[Any], list[tuple[Fraction, Present]]]
    following: Callable[[Any], list[tuple[Any, Fraction]]]
    states: int
    mixing: tuple[Fraction, Fraction | None] | None = None
    lengths: Fraction = Fraction(1)

    @property
    def is_independent(self) -> bool:
        """Whether rounds are independent and identically distributed."""
        law = dict(self.stationary)
        return self.initial == law and all(dict(self.following(place)) == law for place in law)

    def outcomes(self) -> dict[Present, Fraction]:
        """Return the sets with their stationary probabilities."""
        found: dict[Present, Fraction] = {}
        for place, share in self.stationary.items():
            for chance, present in self.sets(place):
                found[present] = found.get(present, Fraction(0)) + share * chance
        return found


_ONE = Fraction(1)
PARTICIPATIONS: Mapping[str, Sequence[str]] = {
    "UniformSubset": ("size", "excluded"),
    "Bernoulli": ("availability",),
    "MarkovOnOff": ("availability", "correlation", "start"),
    "FiniteChain": ("transition", "sets", "start"),
    "Cyclic": ("periods", "offsets", "active"),
    "WaitingSubset": ("availability", "size"),
}


def _law(place: str, found: Any, n: int) -> _Law:
    raw = _named_fields(place, found, PARTICIPATIONS)
    return _LAWS[raw["name"]](place, raw, n)


def _alike(sets: Iterable[tuple[Present, Fraction]], states: int = 1) -> _Law:
    """Return the process of independent, identically distributed rounds."""
    listed = [(chance, present) for present, chance in sets]
    alone = [(0, _ONE)]
    return _Law(dict(alone), dict(alone), lambda at: listed, lambda at: alone, states)


def _uniform(place: str, raw: dict[str, Any], n: int) -> _Law:
    excluded = list_of(f"{place}.excluded", raw["excluded"], whole)
    named = len(set(excluded)) == len(excluded) and set(excluded) <= set(range(n))
    _must(f"{place}.excluded", named, f"clients from 0 to {n - 1}, none twice", excluded)
    pool, size = [i for i in range(n) if i not in excluded], whole(f"{place}.size", raw["size"])
    _must(f"{place}.size", 1 <= size <= len(pool), f"from 1 to {len(pool)}, the eligible", size)
    share = Fraction(1, math.comb(len(pool), size))
    return _alike((present, share) for present in combinations(pool, size))


def _sets_of(chances: Sequence[Fraction]) -> Iterator[tuple[Present, Fraction]]:
    """Yield every possible set of independent clients, with its probability."""
    for there in product((False, True), repeat=len(chances)):
        chance = math.prod((p if here else 1 - p) for p, here in zip(chances, there, strict=True))
        if chance > 0:
            yield tuple(i for i, here in enumerate(there) if here), Fraction(chance)


def _independent(place: str, raw: dict[str, Any], n: int) -> _Law:
    chances = _availabilities(f"{place}.availability", raw["availability"])
    _must(f"{place}.availability", len(chances) == n, f"a list of {n}", raw["availability"])
    varies = sum(p < 1 for p in chances)
    _must(f"{place}.availability", 2**varies <= MOST_SETS, f"of up to {MOST_SETS} sets", varies)
    return _alike(_sets_of(chances))


def _on_and_off(place: str, raw: dict[str, Any], n: int) -> _Law:
    pi = _each(_chance, n)(f"{place}.availability", raw["availability"])
    nu = _each(fraction, n)(f"{place}.correlation", raw["correlation"])
    comes = [(1 - b) * a for a, b in zip(pi, nu, strict=True)]
    stays = [b + c for b, c in zip(nu, comes, strict=True)]
    legal = all(-1 < b < 1 and s >= 0 and c <= 1 for b, s, c in zip(nu, stays, comes, strict=True))
    wanted = "in (-1, 1), at least -pi/(1 - pi) and -(1 - pi)/pi"
    _must(f"{place}.correlation", legal, wanted, raw["correlation"])
    varies = [i for i in range(n) if 0 < pi[i] < 1]
    few = 2 ** len(varies) <= MOST_PLACES
    _must(f"{place}.availability", few, f"of up to {MOST_PLACES} sets", len(varies))
    second = max((abs(nu[i]) for i in varies), default=Fraction(0))
    mixing = (1 + second) / 2, _total(max(a, 1 - a) for a in pi)
    lengths = Fraction(math.prod(_squared_lengths(pi[i]) for i in varies))
    law = dict(_sets_of(pi))
    initial = law
    if raw["start"] is not None:
        there = _each(whole, n)(f"{place}.start", raw["start"])
        _must(f"{place}.start", set(there) <= {0, 1}, "0 or 1 for each client", there)
        initial = {tuple(i for i in range(n) if there[i]): _ONE}
    elif second == 0:
        return replace(_alike(law.items(), len(law)), mixing=mixing, lengths=lengths)

    def following(present: Present) -> list[tuple[Present, Fraction]]:
        return list(_sets_of([stays[i] if i in present else comes[i] for i in range(n)]))

    return _Law(initial, law, lambda at: [(_ONE, at)], following, len(law), mixing, lengths)


def _squared_lengths(pi: Fraction) -> Fraction:
    return 8 * (pi**2 + (1 - pi) ** 2)


def _chain(place: str, raw: dict[str, Any], n: int) -> _Law:
    size = len(raw["transition"]) if isinstance(raw["transition"], list) else 0
    _must(f"{place}.transition", 1 <= size <= MOST_STATES, f"1 to {MOST_STATES} rows", size)
    rows = _each(_each(_chance, size), size)(f"{place}.transition", raw["transition"])
    for i, row in enumerate(rows):
        _must(f"{place}.transition[{i}]", sum(row) == 1, "of sum 1", raw["transition"][i])
    entries = size**2 * max(bits_of(chance) for row in rows for chance in row)
    _must(f"{place}.transition", entries <= MOST_ENTRIES, "of fewer or shorter numbers", size)
    _must(f"{place}.transition", _mixes(rows), "irreducible and aperiodic", raw["transition"])
    sets = _each(lambda at, item: tuple(list_of(at, item, whole)), size)(
        f"{place}.sets", raw["sets"]
    )
    legal = all(set(s) <= set(range(n)) and list(s) == sorted(set(s)) for s in sets)
    _must(f"{place}.sets", legal, f"clients from 0 to {n - 1} in increasing order", raw["sets"])
    # Solve pi (I - P) = 0, with the last of its equations replaced by sum pi = 1.
    equations = [[int(i == j) - rows[j][i] for j in range(size)] for i in range(size - 1)]
    law = dict(enumerate(_solved([*equations, [_ONE] * size], [*[Fraction(0)] * (size - 1), _ONE])))
    initial = law
    if raw["start"] is not None:
        start = whole(f"{place}.start", raw["start"])
        _must(f"{place}.start", 0 <= start < size, f"a state below {size}", start)
        initial = {start: _ONE}
    moves = [[(j, chance) for j, chance in enumerate(row) if chance > 0] for row in rows]
    mixing, lengths = None, _ONE
    if size == 2:
        # The trace gives the second eigenvalue only if there are two states, as when all clients
        # come together.
        mixing = (1 + abs(rows[0][0] + rows[1][1] - 1)) / 2, None
        lengths = _squared_lengths(law[0])
    return _Law(
        initial, law, lambda at: [(_ONE, sets[at])], lambda at: moves[at], size, mixing, lengths
    )


def _mixes(rows: Matrix) -> bool:
    """Return whether a power of a transition matrix has no zero; (n - 1)^2 + 1 is enough."""
    reach = [{j for j, chance in enumerate(row) if chance > 0} for row in rows]
    length = 1
    while length <= (len(rows) - 1) ** 2:
        reach = [set().union(*(reach[j] for j in ahead)) for ahead in reach]
        length *= 2
    return all(len(ahead) == len(rows) for ahead in reach)


def _cycles(place: str, raw: dict[str, Any], n: int) -> _Law:
    periods, offsets, active = (
        _each(whole, n)(f"{place}.{name}", raw[name]) for name in ("periods", "offsets", "active")
    )
    _must(f"{place}.periods", min(periods) >= 1, "at least 1", periods)
    _must(f"{place}.offsets", min(offsets) >= 0, "at least 0", offsets)
    fits = all(1 <= a <= p for a, p in zip(active, periods, strict=True))
    _must(f"{place}.active", fits, "from 1 to the period", active)
    length = math.lcm(*periods)
    _must(f"{place}.periods", length <= MOST_STATES, f"of a multiple up to {MOST_STATES}", periods)

    def present(t: int) -> Present:
        return tuple(i for i in range(n) if (t + offsets[i]) % periods[i] < active[i])

    every = {t: Fraction(1, length) for t in range(length)}
    follow = [[((t + 1) % length, _ONE)] for t in range(length)]
    return _Law({0: _ONE}, every, lambda t: [(_ONE, present(t))], lambda t: follow[t], length)


def _waiting(place: str, raw: dict[str, Any], n: int) -> _Law:
    """Read the process that waits for a subset; a state is the set of clients still missing."""
    p = _availabilities(f"{place}.availability", raw["availability"])
    _must(f"{place}.availability", len(p) == n, f"a list of {n}", raw["availability"])
    size = whole(f"{place}.size", raw["size"])
    _must(f"{place}.size", 1 <= size <= n, f"from 1 to {n}", size)
    places = math.comb(n, size) * 2**size
    _must(f"{place}.size", places <= MOST_PLACES, f"of up to {MOST_PLACES} states", places)
    length = places * size * max(map(bits_of, p))
    _must(f"{place}.availability", length <= MOST_ENTRIES, "of fewer or shorter numbers", n)
    draws = list(combinations(range(n), size))
    share = Fraction(1, len(draws))

    def after(drawn: Present, missing: Present) -> list[tuple[Any, Fraction]]:
        """Return the possible sets of clients still missing after a round."""
        away = _sets_of([1 - p[i] for i in missing])
        return [((drawn, tuple(missing[i] for i in kept)), chance) for kept, chance in away]

    fresh = [(to, share * chance) for drawn in draws for to, chance in after(drawn, drawn)]
    if all(chance == 1 for chance in p):
        return _alike(((drawn, share) for drawn in draws), len(draws))

    def following(at: tuple[Present, Present]) -> list[tuple[Any, Fraction]]:
        return after(*at) if at[1] else fresh

    # The rounds spent in each state between two draws. The set of missing clients can only shrink.
    spent: dict[Any, Fraction] = dict(fresh)
    for at in sorted(spent, key=lambda at: -len(at[1])):
        if at[1]:
            ahead = dict(following(at))
            spent[at] /= 1 - ahead.pop(at)
            for to, chance in ahead.items():
                spent[to] += spent[at] * chance
    wait = _total(spent.values())
    law = {at: rounds / wait for at, rounds in spent.items()}
    who = {at: () if at[1] else at[0] for at in law}
    return _Law(dict(fresh), law, lambda at: [(_ONE, who[at])], following, len(law))


_LAWS: Mapping[str, Callable[[str, dict[str, Any], int], _Law]] = {
    "UniformSubset": _uniform,
    "Bernoulli": _independent,
    "MarkovOnOff": _on_and_off,
    "FiniteChain": _chain,
    "Cyclic": _cycles,
    "WaitingSubset": _waiting,
}


# ---------------------------------------------------------------- a round of every algorithm


def _plus(*terms: tuple[Fraction | int, Vector]) -> Vector:
    """Return a linear combination of vectors of forms."""
    total: Vector = [{} for _ in terms[0][1]]
    for factor, vector in terms:
        for into, form in zip(total, vector, strict=True):
            for key, value in form.items():
                # Long runs spend their time here. A factor of 1 is nearly always this same object.
                if value is _ONE:
                    term = factor if isinstance(factor, Fraction) else Fraction(factor)
                else:
                    term = value if factor == 1 else factor * value
                into[key] = into[key] + term if key in into else term
    return total


def _image(matrix: Matrix, vector: Vector) -> Vector:
    """Return a matrix times a vector of forms."""
    return [_plus(*((a, [form]) for a, form in zip(row, vector, strict=True)))[0] for row in matrix]


@dataclass(frozen=True)
class _Local:
    """K steps ``y <- y - lr (H (y - c) + mu (y - x) + z + noise)``, from y = x.

    ``y_K - x = nu - G (H (x - c) + z)``, ``G = lr sum_k A^k``, ``A = I - lr (H + mu I)``, k < K,
    and ``Var nu = B`` for noise of variance one per coordinate, ``B = lr^2 sum_k A^2k``;
    ``Cov(nu, sum of noises) = -G``. Without noise, B is zero.
    """

    sums: Matrix
    spread: Matrix


def _local(hessian: Matrix, lr: Fraction, steps: int, is_noisy: bool) -> _Local:
    """Return G and B for a Hessian to which mu I has been added."""
    one = _unit(len(hessian))
    shrinks = _weighed((_ONE, one), (-lr, hessian))
    power, sums, spread = one, _weighed((Fraction(0), one)), _weighed((Fraction(0), one))
    for _ in range(steps):
        sums = _weighed((_ONE, sums), (lr, power))
        if is_noisy:
            spread = _weighed((_ONE, spread), (lr * lr, _times_matrix(power, power)))
        power = _times_matrix(shrinks, power)
    return _Local(sums, spread)


class _Block:
    """Coordinates, relative to x*, that no Hessian couples to others, and clients' data in them."""

    def __init__(
        self, clients: _Clients, axes: Sequence[int], x0: Sequence[Fraction], effort: _Effort
    ) -> None:
        star = clients.minimiser(clients.alpha)
        self.clients, self.axes = clients, axes
        self.hessians = [self.cut(hessian) for hessian in clients.hessians]
        self.optima = [[point[a] - star[a] for a in axes] for point in clients.optima]
        self.x0 = [x0[a] - star[a] for a in axes]
        self.mean_hessian = self.cut(clients.hessian(clients.alpha))
        self.effort = effort
        self._known: dict[tuple[int, Fraction, int, Fraction], _Local] = {}

    def cut(self, matrix: Matrix) -> Matrix:
        """Return a matrix's rows and columns of these coordinates."""
        return [[matrix[a][b] for b in self.axes] for a in self.axes]

    def local(self, i: int, lr: Fraction, steps: int, proximal: Fraction) -> _Local:
        """Return client i's local steps, computed once."""
        key = i, lr, steps, proximal
        if key not in self._known:
            if len(self._known) > 2 * len(self.hessians):
                self._known.clear()
            self.effort.spend(20 * steps * len(self.axes) ** 3)
            held = _weighed((_ONE, self.hessians[i]), (proximal, _unit(len(self.axes))))
            self._known[key] = _local(held, lr, steps, self.clients.sigma > 0)
        return self._known[key]


class _Round:
    """One round for an algorithm; its numbers are linear forms in the previous state and noises."""

    def __init__(
        self, block: _Block, state: Mapping[str, list[Vector]], known: Any,
        present: Present, lr: Fraction, steps: int,
    ) -> None:  # fmt: skip
        self.block, self.known, self.present = block, known, present
        self.lr, self.steps, self.n = lr, steps, len(block.hessians)
        self.proximal = Fraction(0)
        self.state = {name: list(vectors) for name, vectors in state.items()}
        self.covariance: dict[tuple[int, int], Fraction] = {}
        self._next = 1 + sum(len(vectors) for vectors in state.values()) * len(block.axes)

    @property
    def x(self) -> Vector:
        """The model."""
        return self.state["x"][0]

    def move(self, *terms: tuple[Fraction, Vector]) -> None:
        """Add a linear combination of vectors to the model."""
        self.state["x"][0] = _plus((1, self.x), *terms)

    def _noise(self, size: int, covariance: Callable[[int, int], Fraction]) -> Vector:
        """Return new noises with a given covariance, or zero forms if it is zero."""
        pairs = list(product(range(size), repeat=2))
        if not any(covariance(a, b) for a, b in pairs):
            return [{} for _ in range(size)]
        first, self._next = self._next, self._next + size
        self.covariance |= {(first + a, first + b): covariance(a, b) for a, b in pairs}
        return [{first + a: _ONE} for a in range(size)]

    def _local(self, i: int) -> tuple[Vector, Vector]:
        """Return ``y_K - x`` of client i, and the sum of its noises."""
        run, d = self._run(i), len(self.block.axes)
        level = self.block.clients.level(i) ** 2 / len(self.block.clients.optima[0])
        parts = [[run.spread, run.sums], [run.sums, _weighed((Fraction(self.steps), _unit(d)))]]

        def covariance(a: int, b: int) -> Fraction:
            sign = 1 if a // d == b // d else -1
            return sign * level * parts[a // d][b // d][a % d][b % d]

        noise = self._noise(2 * d, covariance) if level > 0 else [{} for _ in range(2 * d)]
        pull = _plus((-1, _image(run.sums, self._slope(i, self.x))), (1, noise[:d]))
        return pull, noise[d:]

    def _run(self, i: int) -> _Local:
        return self.block.local(i, self.lr, self.steps, self.proximal)

    def _slope(self, i: int, at: Vector) -> Vector:
        """Return client i's exact gradient."""
        offset = _plus((1, at), (-1, [{0: c} for c in self.block.optima[i]]))
        return _image(self.block.hessians[i], offset)

    def local(self, i: int) -> tuple[Vector, Vector]:
        """Return ``y_K - x`` of client i, and the sum of exact gradients at its local models."""
        pull, noise = self._local(i)
        return pull, _plus((-1 / self.lr, pull), (-1, noise))

    def change(self, i: int, added: Vector | None = None) -> Vector:
        """Return ``y_K - x`` of client i; ``added`` is added to its gradients."""
        pull = self._local(i)[0]
        if added is None:
            return pull
        return _plus((1, pull), (-1, _image(self._run(i).sums, added)))

    def gradient(self, i: int | None, at: Vector, count: int = 1) -> Vector:
        """Return the mean of new gradients, of client i or of the server's F, at a model."""
        clients, block = self.block.clients, self.block
        level = clients.server_sigma if i is None else clients.level(i)
        variance = level**2 / (len(clients.optima[0]) * count)
        noise = self._noise(len(block.axes), lambda a, b: variance * (a == b))
        exact = _image(block.mean_hessian, at) if i is None else self._slope(i, at)
        return _plus((1, exact), (1, noise))

    def mean(self, name: str) -> Vector:
        """Return the mean of a memory's vectors."""
        vectors = self.state[name]
        return _plus(*((Fraction(1, len(vectors)), vector) for vector in vectors))


Parameters: TypeAlias = dict[str, Any]


def _fedavg(a: Parameters, r: _Round) -> None:
    """McMahan et al.'s FedAvg: the mean of the participants' changes."""
    _weigh(a, r, {i: Fraction(1, len(r.present)) for i in r.present})


def _weigh(a: Parameters, r: _Round, weights: Mapping[int, Fraction]) -> None:
    r.move(*((a["server_lr"] * weights[i], r.change(i)) for i in r.present))


def _weighted(a: Parameters, r: _Round) -> None:
    """Equations (2) and (3) of CA-Fed, which give each participant its own weight."""
    _weigh(a, r, dict(enumerate(a["aggregation_weights"])))


def _by_availability(a: Parameters, r: _Round) -> None:
    """MIFA's baseline, with weights 1/(N p_i)."""
    _weigh(a, r, {i: 1 / (r.n * p) for i, p in enumerate(a["availability"])})


def _unbiased(a: Parameters, r: _Round) -> None:
    """CA-Fed's baseline, with weights alpha_k/pi_k."""
    _weigh(a, r, _ratios(a))


def _adafed(a: Parameters, r: _Round) -> None:
    """AdaFed in CA-Fed's paper: weights alpha_k/pi_k, divided by their sum over those present."""
    total = _total(_ratios(a)[i] for i in r.present)
    _weigh(a, r, {i: _ratios(a)[i] / total for i in r.present})


def _ratios(a: Parameters) -> dict[int, Fraction]:
    pairs = zip(a["target_weights"], a["availability"], strict=True)
    return dict(enumerate(alpha / pi for alpha, pi in pairs))


def _fedau(a: Parameters, r: _Round) -> None:
    """FedAU's Algorithms 1 and 2; omega, ended intervals and the open interval's age are known."""
    _weigh(a, r, {i: omega / r.n for i, (omega, _, _) in enumerate(r.known)})
    r.known = tuple(_interval(row, i in r.present, a["cutoff"]) for i, row in enumerate(r.known))


_Interval: TypeAlias = tuple[Fraction, int, int]  # mean length, number ended, age of the open one


def _interval(row: _Interval, is_there: bool, cutoff: Fraction | int | None) -> _Interval:
    omega, ended, age = row
    if not is_there and age + 1 != cutoff:
        return omega, ended, age + 1
    return (ended * omega + age + 1) / (ended + 1), ended + 1, 0


def _renew(r: _Round, name: str, factor: Fraction) -> None:
    """Overwrite participants' entries of a table with their changes times a factor."""
    for i in r.present:
        r.state[name][i] = _plus((factor, r.change(i)))


def _mifa(a: Parameters, r: _Round) -> None:
    """MIFA: the mean of all clients' latest updates, optionally only once all clients have one."""
    _renew(r, "updates", -1 / r.lr)
    r.known = tuple(1 if i in r.present else seen for i, seen in enumerate(r.known))
    if a["start"] == "zero" or min(r.known) == 1:
        r.move((-a["server_lr"] * r.lr, r.mean("updates")))


def _fedar(a: Parameters, r: _Round) -> None:
    """FedAR's Algorithm 1 with (7); ages are known, and are -1 before the first appearance."""
    _renew(r, "updates", -1 / r.lr)
    ages = [0 if i in r.present else age + (age >= 0) for i, age in enumerate(r.known)]
    r.known = tuple(ages)
    counts = [i for i, age in enumerate(ages) if age >= 0 and not _is_over(age, a["cutoff"])]
    weight = a["weight"]
    psi = {i: min(1 + weight["growth"] * ages[i], weight["largest"]) for i in counts}
    share = a["server_lr"] * r.lr / max(len(counts), 1)
    r.move(*((-share * psi[i], r.state["updates"][i]) for i in counts))


def _is_over(age: int, cutoff: int | None) -> bool:
    return cutoff is not None and age > cutoff


def _fedvarp(a: Parameters, r: _Round) -> None:
    """FedVARP, and ClusterFedVARP, where several clients share a memory."""
    if not r.present:
        return
    labels = a.get("clusters", range(r.n))
    reach = r.lr * r.steps
    fresh = {i: _plus((-1 / reach, r.change(i))) for i in r.present}
    memory = r.state["y"]
    share = Fraction(1, len(r.present))
    terms = [(share, fresh[i]) for i in r.present]
    terms += [(-share, memory[labels[i]]) for i in r.present]
    terms += [(Fraction(1, r.n), memory[labels[i]]) for i in range(r.n)]
    r.move((-a["server_lr"] * reach, _plus(*terms)))
    for label in {labels[i] for i in r.present}:
        own = [fresh[i] for i in r.present if labels[i] == label]
        memory[label] = _plus(*((Fraction(1, len(own)), vector) for vector in own))


def _scaffold(a: Parameters, r: _Round) -> None:
    """SCAFFOLD's Algorithm 1, with either option."""
    server, controls, before = r.mean("c"), list(r.state["c"]), r.x
    moves = []
    for i in r.present:
        change = r.change(i, _plus((1, server), (-1, controls[i])))
        moves.append((a["server_lr"] / len(r.present), change))
        if a["option"] == 2:
            kept = _plus((1, controls[i]), (-1, server), (-1 / (r.steps * r.lr), change))
        r.state["c"][i] = r.gradient(i, before) if a["option"] == 1 else kept
    r.move(*moves)


def _safari(a: Parameters, r: _Round) -> None:
    """SA-FL's Algorithm 1: either a client round or a step on the server's own data."""
    if r.known == "server":
        r.move((-a["assist_lr"], r.gradient(None, r.x)))
    else:
        _weigh({"server_lr": _ONE}, r, {i: Fraction(1, len(r.present)) for i in r.present})


def _fedprox(a: Parameters, r: _Round) -> None:
    """FedProx: local steps with a penalty mu/2 ||y - x||^2 that keeps them near the model."""
    r.proximal = a["proximal"]
    _weigh(a, r, _average_of_present(a, r))


def _average_of_present(a: Parameters, r: _Round) -> dict[int, Fraction]:
    """Return clients' weights divided by the sum of those present, or zero if that sum is zero."""
    given = a["client_weights"] or [_ONE] * r.n
    total = _total(given[i] for i in r.present)
    return {i: given[i] / total if total else total for i in r.present}


def _fednova(a: Parameters, r: _Round) -> None:
    """FedNova: changes divided by numbers of steps, times their mean over the clients present."""
    counts = [r.steps] * r.n if isinstance(r.steps, int) else list(r.steps)
    shares = _average_of_present(a, r)
    mean = a["server_lr"] * _total(share * counts[i] for i, share in shares.items())
    moves = []
    for i, share in shares.items():
        r.steps = counts[i]
        moves.append((mean * share / counts[i], r.change(i)))
    r.move(*moves)


def _f3ast(a: Parameters, r: _Round) -> None:
    """F3AST: the most urgent of the clients present, weighted by one over their selection rates."""
    alpha, beta = a["target_weights"], a["smoothing"]
    if a["availability"] is None:
        chosen = _most_urgent(a, r, r.known)
        rates = [(1 - beta) * rate + beta * (i in chosen) for i, rate in enumerate(r.known)]
        r.block.effort.spend(sum((bits_of(rate) // 1000) ** 2 for rate in rates))
        r.known = tuple(rates)
    else:
        pairs = enumerate(a["availability"])
        rates = [(1 - beta) * pi + beta * (i in r.present) for i, pi in pairs]
        chosen = _most_urgent(a, r, rates)
    r.move(*((a["server_lr"] * alpha[i] / rates[i], r.change(i)) for i in chosen))


def _most_urgent(a: Parameters, r: _Round, rates: Sequence[Fraction]) -> list[int]:
    """Return the clients present with the largest ``alpha/r``; ties go to the first."""
    return sorted(r.present, key=lambda i: -a["target_weights"][i] / rates[i])[: a["size"]]


def _single_steps(a: Parameters, r: _Round) -> None:
    """Local SGD with one step per round; clients' models are stored minus their mean."""
    models = [_plus((1, r.x), (1, apart)) for apart in r.state["apart"]]
    for i in r.present:
        models[i] = _plus((1, models[i]), (-r.lr, r.gradient(i, models[i])))
    pairs = zip(a["aggregation_weights"], models, strict=True)
    r.state["x"][0] = _plus(*pairs)
    r.known = (r.known + 1) % r.steps
    held = 1 if r.known else 0
    r.state["apart"] = [_plus((held, model), (-held, r.x)) for model in models]


_LOCAL = {"client_lr": _positive, "local_steps": _count}
_SERVED = {**_LOCAL, "server_lr": _positive}


@dataclass(frozen=True)
class _Kind:
    """An algorithm: its parameters, its round, memory sizes and initial known state."""

    parameters: Mapping[str, Callable[[str, Any], Any]]
    round: Callable[[Parameters, _Round], None]
    memory: Callable[[Parameters, int], Mapping[str, int]] = lambda a, n: {}
    known: Callable[[Parameters, int], Any] = lambda a, n: ()


def _weight_of_age(place: str, found: Any) -> dict[str, Any]:
    raw = _named_fields(place, found, {"CappedLinear": ("growth", "largest")})
    largest = _number(f"{place}.largest", raw["largest"], 1)
    return {"growth": _not_negative(f"{place}.growth", raw["growth"]), "largest": largest}


def _or_none(of: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda place, found: None if found is None else of(place, found)


def _age(place: str, found: Any) -> int:
    _must(place, whole(place, found) >= 0, "at least 0", found)
    return int(found)


def _start(place: str, found: Any) -> str:
    _must(place, found in ("wait", "zero"), "'wait' or 'zero'", found)
    return str(found)


def _option(place: str, found: Any) -> int:
    _must(place, whole(place, found) in (1, 2), "1 or 2", found)
    return int(found)


def _shares(place: str, found: Any) -> list[Fraction]:
    weights = list_of(place, found, _not_negative)
    _must(place, any(weights), "not all zero", found)
    return weights


def _labels(place: str, found: Any) -> list[int]:
    labels = list_of(place, found, whole)
    gapless = sorted(set(labels)) == list(range(len(set(labels))))
    _must(place, gapless, "whole numbers from 0 without a gap", found)
    return labels


def _availabilities(place: str, found: Any) -> list[Fraction]:
    values = list_of(place, found, _positive)
    _must(place, all(value <= 1 for value in values), "in (0, 1]", found)
    return values


def _importances(place: str, found: Any) -> list[Fraction]:
    weights = list_of(place, found, _positive)
    _must(place, sum(weights) == 1, "of sum 1", found)
    return weights


def _counts(place: str, found: Any) -> int | list[int]:
    return list_of(place, found, _count) if isinstance(found, list) else _count(place, found)


_INVERSE = {"target_weights": _importances, "availability": _availabilities}
_AVERAGED = {"client_weights": _or_none(_shares)}


def _one_each(name: str) -> Callable[[Parameters, int], Mapping[str, int]]:
    return lambda a, n: {name: n}


_ALGORITHMS: Mapping[str, _Kind] = {
    "FedAvg": _Kind(_SERVED, _fedavg),
    "WeightedFedAvg": _Kind({**_SERVED, "aggregation_weights": _shares}, _weighted),
    "FedAvgIS": _Kind({**_SERVED, "availability": _availabilities}, _by_availability),
    "Unbiased": _Kind({**_SERVED, **_INVERSE}, _unbiased),
    "AdaFed": _Kind({**_SERVED, **_INVERSE}, _adafed),
    "FedAU": _Kind(
        {**_SERVED, "cutoff": _or_none(_count)}, _fedau,
        known=lambda a, n: ((_ONE, 0, 0),) * n,
    ),
    "FedAR": _Kind(
        {**_SERVED, "cutoff": _or_none(_age), "weight": _weight_of_age}, _fedar,
        _one_each("updates"), lambda a, n: (-1,) * n,
    ),
    "Mifa": _Kind(
        {**_SERVED, "start": _start}, _mifa, _one_each("updates"), lambda a, n: (0,) * n
    ),
    "FedVarp": _Kind(_SERVED, _fedvarp, _one_each("y")),
    "ClusterFedVarp": _Kind(
        {**_SERVED, "clusters": _labels}, _fedvarp, lambda a, n: {"y": max(a["clusters"]) + 1}
    ),
    "Scaffold": _Kind({**_SERVED, "option": _option}, _scaffold, _one_each("c")),
    "Safari": _Kind({**_LOCAL, "q": _chance, "assist_lr": _positive}, _safari),
    "FedProx": _Kind({**_SERVED, **_AVERAGED, "proximal": _not_negative}, _fedprox),
    "FedNova": _Kind({**_SERVED, **_AVERAGED, "local_steps": _counts}, _fednova),
    "F3ast": _Kind(
        {**_SERVED, "target_weights": _importances, "size": _count, "smoothing": _below_one,
         "availability": _or_none(_availabilities)}, _f3ast,
        known=lambda a, n: tuple(a["target_weights"]),
    ),
    "LocalSgd": _Kind(
        {"step_sizes": lambda place, found: _step_sizes(place, found), "local_steps": _count,
         "aggregation_weights": _importances}, _single_steps, _one_each("apart"), lambda a, n: 0,
    ),
}  # fmt: skip
_WRAPPERS: Mapping[str, Sequence[str]] = {
    "AveragedIterate": ("algorithm", "weights"),
    "Projected": ("algorithm", "onto"),
    "Scheduled": ("algorithm", "step_sizes"),
    "ServerMomentum": ("algorithm", "momentum"),
    "WarmStarted": ("scaffold",),
}
_STEP_SIZES = {"Constant": ("value",), "Harmonic": ("scale", "offset")}


@dataclass(frozen=True)
class _Sizes:
    """Step sizes ``scale/(t + offset)``, or the constant ``scale`` if there is no offset."""

    scale: Fraction
    offset: Fraction | None

    def at(self, t: int) -> Fraction:
        """Return eta_t; the first round is t = 1."""
        return self.scale if self.offset is None else self.scale / (t + self.offset)


def _step_sizes(place: str, found: Any) -> _Sizes:
    raw = _named_fields(place, found, _STEP_SIZES)
    if raw["name"] == "Constant":
        return _Sizes(_positive(f"{place}.value", raw["value"]), None)
    offset = _not_negative(f"{place}.offset", raw["offset"])
    return _Sizes(_positive(f"{place}.scale", raw["scale"]), offset)


@dataclass(frozen=True)
class _Method:
    """An algorithm and its wrappers. Each wrapper occurs at most once, in this order."""

    name: str
    parameters: Parameters
    averaged: _Sizes | None = None
    ball: tuple[list[Fraction], Fraction] | None = None
    steps: _Sizes | None = None
    momentum: Fraction | None = None
    is_warm: bool = False

    @property
    def kind(self) -> _Kind:
        """The algorithm itself."""
        return _ALGORITHMS[self.name]

    def lr(self, t: int) -> Fraction:
        """Return the step size of local SGD in round t; the first round is 1."""
        return self.steps.at(t) if self.steps else Fraction(self.parameters["client_lr"])


def _ball_around(place: str, found: Any, d: int) -> tuple[list[Fraction], Fraction]:
    raw = fields_of(place, found, ("centre", "radius"))
    centre = _each(fraction, d)(f"{place}.centre", raw["centre"])
    return centre, _positive(f"{place}.radius", raw["radius"])


# Wrappers of an algorithm: the attribute of the method, the field of the file and its reader.
_AROUND: Mapping[str, tuple[str, str, Callable[[str, Any, int], Any]]] = {
    "AveragedIterate": ("averaged", "weights", lambda place, found, d: _step_sizes(place, found)),
    "Projected": ("ball", "onto", _ball_around),
    "Scheduled": ("steps", "step_sizes", lambda place, found, d: _step_sizes(place, found)),
    "ServerMomentum": ("momentum", "momentum", lambda place, found, d: _below_one(place, found)),
    "WarmStarted": ("is_warm", "scaffold", lambda place, found, d: True),
}


def _method(place: str, found: Any, n: int, d: int) -> _Method:
    around: dict[str, Any] = {}
    order = list(_WRAPPERS)
    while isinstance(found, dict) and found.get("name") in order:
        raw = _named_fields(place, found, _WRAPPERS)
        # Step sizes, momentum and a warm start belong to the algorithm itself.
        is_outer = raw["name"] in ("AveragedIterate", "Projected")
        order = order[order.index(raw["name"]) + 1 :] if is_outer else []
        field, name, read_field = _AROUND[raw["name"]]
        around[field] = read_field(f"{place}.{name}", raw[name], d)
        inner = "scaffold" if raw["name"] == "WarmStarted" else "algorithm"
        place, found = f"{place}.{inner}", raw[inner]
    kinds = {name: tuple(kind.parameters) for name, kind in _ALGORITHMS.items()}
    raw = _named_fields(place, found, kinds)
    if around.get("is_warm") and raw["name"] != "Scaffold":
        raise CertificateError(f"{place}.name: must be Scaffold, got {raw['name']}")
    readers = _ALGORITHMS[raw["name"]].parameters
    read = {name: of(f"{place}.{name}", raw[name]) for name, of in readers.items()}
    for name, value in read.items():
        if isinstance(value, list):
            _must(f"{place}.{name}", len(value) == n, f"one for each of {n} clients", raw)
    if raw["name"] == "F3ast":
        _must(f"{place}.size", read["size"] <= n, f"at most the {n} clients", read["size"])
    if raw["name"] == "LocalSgd":
        _must(place, not around, "LocalSgd alone, whose rounds are single steps", raw)
        around["steps"] = read["step_sizes"]
    return _Method(raw["name"], read, **around)


@dataclass(frozen=True)
class _Setting:
    """All data of a run."""

    clients: _Clients
    law: _Law
    method: _Method
    x0: list[Fraction]
    rounds: int


def _setting(found: Any) -> _Setting:
    """Read a setting, and refuse the first invalid field."""
    raw = fields_of("setting", found, ("algorithm", "problem", "participation", "rounds", "x0"))
    clients = _clients("setting.problem", raw["problem"])
    n, d = len(clients.optima), len(clients.optima[0])
    method = _method("setting.algorithm", raw["algorithm"], n, d)
    law = _law("setting.participation", raw["participation"], n)
    x0 = _each(fraction, d)("setting.x0", raw["x0"])
    rounds = _count("setting.rounds", raw["rounds"])
    _must("setting.rounds", rounds <= MOST_ROUNDS, f"at most {MOST_ROUNDS}", rounds)
    w = _Setting(clients, law, method, x0, rounds)
    held = method.parameters.get("proximal", 0)
    entries = (e + held for h in clients.hessians for row in h for e in row)
    longest = max(bits_of(1 - method.lr(1) * e) for e in entries)
    given = method.parameters["local_steps"]
    steps = max(given) if isinstance(given, list) else given
    wanted = "fewer, because fractions grow too long"
    is_short = steps * (longest + 20) * d * n <= MOST_LOCAL_BITS
    _must("setting.algorithm.local_steps", is_short, wanted, steps)
    for sizes in filter(None, (method.steps, method.averaged)):
        length = bits_of(sizes.scale) + bits_of(sizes.offset or Fraction(0)) + 14
        _must("setting.rounds", rounds * length <= MOST_LOCAL_BITS, wanted, rounds)
    return w


# ---------------------------------------------------------------- moments, in brackets

_Fixed: TypeAlias = tuple[int, int]  # a bracket, in units of 2^-bits
_Entries: TypeAlias = dict[tuple[int, int], _Fixed]
_Square: TypeAlias = dict[tuple[int, int], Fraction]  # factors of E[z_k z_m], k <= m


def _fixed(value: Fraction, bits: int) -> _Fixed:
    above, below = value.numerator << bits, value.denominator
    return above // below, -(-above // below)


def _fixed_product(first: Fraction, second: Fraction, bits: int) -> _Fixed:
    """Return a bracket of a product, without reducing to lowest terms."""
    above = first.numerator * second.numerator << bits
    below = first.denominator * second.denominator
    return above // below, -(-above // below)


def _times(first: _Fixed, second: _Fixed) -> _Fixed:
    """Multiply brackets; their units are also multiplied."""
    a, b, c, d = (x * y for x in first for y in second)
    return min(a, b, c, d), max(a, b, c, d)


def _rounded(total: Iterable[_Fixed], bits: int) -> _Fixed:
    """Add brackets in units of 4^-bits, and round outwards to units of 2^-bits."""
    low = high = 0
    for a, b in total:
        low, high = low + a, high + b
    return low >> bits, -(-high >> bits)


def _product_of(first: Form, second: Form, covariance: _Square, size: int) -> _Square:
    """Return E[first second] as factors of the state's second moments; (0, 0) stands for 1."""
    found: _Square = {}
    for (k, a), (m, b) in product(first.items(), second.items()):
        if k < size and m < size:
            key = (k, m) if k < m else (m, k)
            value = a if b is _ONE else b if a is _ONE else a * b
        elif k >= size and m >= size:
            key, value = (0, 0), a * b * covariance.get((k, m), Fraction(0))
        else:
            continue  # noise has mean zero and is independent of the state
        found[key] = found[key] + value if key in found else value
    return found


# The probability, the next state's forms, the noises' covariance, and the known state afterwards.
_Outcome: TypeAlias = tuple[Fraction, Any, Any, Any]


class _Run:
    """The second moments of one block's state, per state of the chain and known state.

    Given the participants, a round maps the state z = (1, x - x*, memory) to a matrix times z plus
    noise, so E[z z'] evolves linearly. There is a separate row for each known state of the
    algorithm, such as its ages.
    """

    def __init__(self, w: _Setting, block: _Block) -> None:
        self._w, self.block, self._effort = w, block, block.effort
        self._method, self._n = w.method, len(w.clients.optima)
        sizes: dict[str, int] = {"x": 1}
        if w.method.averaged:
            sizes["iterate"] = 1
        if w.method.momentum is not None:
            sizes["velocity"] = 1
        sizes |= w.method.kind.memory(w.method.parameters, self._n)
        self._sizes, d = sizes, len(block.axes)
        self.size = 1 + d * sum(sizes.values())
        entries = iter(range(1, self.size))
        self._start = {
            name: [[{next(entries): _ONE} for _ in range(d)] for _ in range(count)]
            for name, count in sizes.items()
        }
        self._maps: dict[Any, Any] = {}
        self._images: tuple[int, dict[Any, list[_Outcome]]] = (0, {})
        self._averages: tuple[int, Vector] = (0, [])

    def initial(self) -> list[Fraction]:
        d, copies = len(self.block.axes), 2 if self._method.averaged else 1
        return [_ONE, *self.block.x0 * copies, *[Fraction(0)] * (self.size - 1 - d * copies)]

    def images(self, place: Any, known: Any, t: int) -> list[_Outcome]:
        """Return round t's outcomes, computed once for all equal rounds."""
        key, alike = (place, known), self._key(t)
        if self._images[0] != alike:
            self._images = alike, {}
        if key not in self._images[1]:
            self._images[1][key] = self._outcomes(place, known, t)
        return self._images[1][key]

    def _outcomes(self, place: Any, known: Any, t: int) -> list[_Outcome]:
        found = []
        for chance, present in self._w.law.sets(place):
            for share, branch in self._branches():
                if chance * share > 0:
                    self._effort.spend(self.size * len(self.block.axes) * (1 + len(present)))
                    r = self._one(t, present, branch or known)
                    forms = [form for name in self._sizes for v in r.state[name] for form in v]
                    after = known if branch else r.known
                    found.append((chance * share, forms, r.covariance, after))
        return found

    def _branches(self) -> list[tuple[Fraction, str]]:
        if self._method.name != "Safari":
            return [(_ONE, "")]
        q = self._method.parameters["q"]
        return [(q, "clients"), (1 - q, "server")]

    def _one(self, t: int, present: Present, known: Any) -> _Round:
        """Run round t, including the algorithm's wrappers."""
        method = self._method
        before = {name: list(vectors) for name, vectors in self._start.items()}
        inner = dict(before)
        if method.averaged:
            inner["x"] = before["iterate"]
        r = _Round(
            self.block, inner, known, present, method.lr(t), method.parameters["local_steps"]
        )
        if method.is_warm and t == 1:
            r.state["c"] = [r.gradient(i, r.x, r.steps) for i in range(self._n)]
        else:
            method.kind.round(method.parameters, r)
        if method.momentum is not None:
            moved = _plus((1, r.x), (-1, inner["x"][0]), (method.momentum, before["velocity"][0]))
            r.state["velocity"][0], r.state["x"][0] = moved, _plus((1, inner["x"][0]), (1, moved))
        if method.averaged:
            r.state["iterate"], r.state["x"] = [r.x], [self._average(method.averaged, t)]
        return r

    def _average(self, sizes: _Sizes, t: int) -> Vector:
        """Return the average after round t, which does not depend on participants; it is cached."""
        if self._averages[0] != t:
            share = sizes.at(t) / self._effort.sum_of(sizes, t)
            average, iterate = self._start["x"][0], self._start["iterate"][0]
            self._averages = t, _plus((1 - share, average), (share, iterate))
        return self._averages[1]

    def _key(self, t: int) -> int:
        """Return a number that is the same for equal rounds."""
        method = self._method
        if method.averaged or (method.steps and method.steps.offset is not None):
            return t
        return int(method.is_warm and t == 1)

    def _continued(self, place: Any, known: Any, t: int, bits: int) -> Any:
        """Return how a row continues: factors of its moments, for each known state afterwards."""
        key = place, known, self._key(t), bits
        if key not in self._maps:
            if self._key(t) > 1:
                self._maps.clear()
            sums: dict[Any, dict[tuple[int, int], dict[tuple[int, int], list[_Fixed]]]] = {}
            # Forms that do not depend on who takes part are shared by all outcomes.
            known_squares: dict[tuple[int, int], _Square] = {}
            one: Form = {0: _ONE}
            for chance, forms, covariance, after in self.images(place, known, t):
                into, forms = sums.setdefault(after, {}), [one, *forms]
                self._effort.spend(sum(map(len, forms)) ** 2)
                for i, j in _pairs(self.size):
                    of = id(forms[i]), id(forms[j])
                    square = None if covariance else known_squares.get(of)
                    if square is None:
                        square = _product_of(forms[i], forms[j], covariance, self.size)
                        known_squares[of] = square
                    for pair, value in square.items():
                        term = _fixed_product(chance, value, bits)
                        into.setdefault((i, j), {}).setdefault(pair, []).append(term)
            self._maps[key] = [
                (after, {pair: {k: _added(terms) for k, terms in factors.items()}
                         for pair, factors in into.items()})
                for after, into in sums.items()
            ]  # fmt: skip
        return self._maps[key]

    def rows(self, bits: int) -> Iterator[dict[Any, _Entries]]:
        """Yield the moments before rounds 1, 2, ..., and after the last."""
        z = self.initial()
        start = {(i, j): _fixed(z[i] * z[j], bits) for i, j in _pairs(self.size)}
        known = self._method.kind.known(self._method.parameters, self._n)
        rows = {
            (place, known): {
                pair: _rounded([_times(value, _fixed(chance, bits))], bits)
                for pair, value in start.items()
            }
            for place, chance in self._w.law.initial.items()
        }
        yield rows
        for t in range(1, self._w.rounds + 1):
            rows = self._after(rows, t, bits)
            yield rows

    def _after(self, rows: dict[Any, _Entries], t: int, bits: int) -> dict[Any, _Entries]:
        sums: dict[Any, dict[tuple[int, int], list[_Fixed]]] = {}
        for (place, known), moments in rows.items():
            for after, factors in self._continued(place, known, t, bits):
                image = {
                    pair: _rounded((_times(f, moments[k]) for k, f in terms.items()), bits)
                    for pair, terms in factors.items()
                }
                self._effort.spend(sum(map(len, factors.values())) * (1 + bits // 256))
                for ahead, chance in self._w.law.following(place):
                    into, share = sums.setdefault((ahead, after), {}), _fixed(chance, bits)
                    for pair, value in image.items():
                        into.setdefault(pair, []).append(_times(value, share))
                    self._effort.spend(len(image))
        return {
            row: {pair: _rounded(into.get(pair, ()), bits) for pair in _pairs(self.size)}
            for row, into in sums.items()
        }

    def value(self, of: str, place: Any) -> _Square:
        """Return a quantity as factors of second moments, given the state of the chain."""
        forms = [{1 + a: _ONE} for a in range(len(self.block.axes))]
        return _QUANTITIES[of](self, forms, place)

    def form(self, forms: Vector, hessian: Matrix) -> _Square:
        """Return x' H x."""
        return _joined(
            (_ONE, _product_of(forms[a], image, {}, self.size))
            for a, image in enumerate(_image(hessian, forms))
        )

    def gradients(self, forms: Vector, place: Any) -> _Square:
        """Return E||1/m sum of participants' exact gradients at their local models||^2."""
        method, terms = self._method, []
        # In all other cases, local models start elsewhere, or their steps change or are corrected.
        is_falling = method.steps is not None and method.steps.offset is not None
        if method.averaged or is_falling or method.name in _NOT_PLAIN:
            raise CertificateError(
                "statement: participant_gradient_sum needs plain local SGD, started at the server "
                "model, with one step size"
            )
        for chance, present in self._w.law.sets(place):
            r = _Round(self.block, self._start, (), present, method.lr(1),
                       method.parameters["local_steps"])  # fmt: skip
            _must_be_there(present)
            share = Fraction(1, len(present))
            mean = _plus(*((share, r.local(i)[1]) for i in present))
            terms += [(chance, _product_of(g, g, r.covariance, self.size)) for g in mean]
        return _joined(terms)

    def losses(self, forms: Vector, place: Any) -> _Square:
        """Return E[1/m sum over participants of F_i(x) - F_i(x*)]."""
        terms = []
        for chance, present in self._w.law.sets(place):
            _must_be_there(present)
            for i in present:
                hessian, share = self.block.hessians[i], chance / len(present)
                terms.append((share / 2, self.form(forms, hessian)))
                pull = _applied(hessian, self.block.optima[i])
                terms.append((-share, {(0, 1 + a): value for a, value in enumerate(pull)}))
        return _joined(terms)

    def biased(self, forms: Vector) -> _Square:
        """Return F_B(x) - F_B*, for weights proportional to availability times weight."""
        clients, axes, weights = self._w.clients, self.block.axes, _importance(self._w)
        star, point = clients.minimiser(clients.alpha), clients.minimiser(weights)
        hessian = self.block.cut(clients.hessian(weights))
        apart = [{0: star[a] - point[a], **form} for a, form in zip(axes, forms, strict=True)]
        return _joined([(Fraction(1, 2), self.form(apart, hessian))])


_NOT_PLAIN = ("Scaffold", "FedProx", "FedNova", "F3ast", "LocalSgd")


def _must_be_there(present: Present) -> None:
    if not present:
        raise CertificateError("setting.participation: must have participants in every round")


def _joined(terms: Iterable[tuple[Fraction, _Square]]) -> _Square:
    found: _Square = {}
    for factor, square in terms:
        for key, value in square.items():
            found[key] = found.get(key, Fraction(0)) + factor * value
    return found


def _added(terms: Iterable[_Fixed]) -> _Fixed:
    lows, highs = zip(*terms, strict=True)
    return sum(lows), sum(highs)


def _pairs(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i, size)]


_HALF = Fraction(1, 2)
_QUANTITIES: Mapping[str, Callable[[_Run, Vector, Any], _Square]] = {
    "squared_distance": lambda run, x, place: run.form(x, _unit(len(x))),
    "squared_gradient": lambda run, x, place: run.form(
        x, _times_matrix(*[run.block.mean_hessian] * 2)
    ),
    "excess_loss": lambda run, x, place: _joined([(_HALF, run.form(x, run.block.mean_hessian))]),
    "biased_excess_loss": lambda run, x, place: run.biased(x),
    "participant_gradient_sum": lambda run, x, place: run.gradients(x, place),
    "participant_excess_loss": lambda run, x, place: run.losses(x, place),
}


class _Effort:
    """A count of a certificate's work, used in place of a time limit, and a cache of sums."""

    def __init__(self) -> None:
        self._spent = 0
        self._sums: dict[_Sizes, list[Fraction]] = {}

    def spend(self, units: int) -> None:
        """Count units of work; a unit is a product of brackets or of short fractions."""
        self._spent += units
        if self._spent > MOST_WORK:
            raise CertificateError(f"setting: the run takes more than {MOST_WORK} units of work")

    def sum_of(self, sizes: _Sizes, t: int) -> Fraction:
        """Return eta_1 + ... + eta_t."""
        sums = self._sums.setdefault(sizes, [Fraction(0)])
        while len(sums) <= t:
            sums.append(sums[-1] + sizes.at(len(sums)))
        return sums[t]


class _Known:
    """The numbers of a setting, each computed once per width of brackets."""

    def __init__(self, w: _Setting) -> None:
        self.w, self.effort = w, _Effort()
        self.star = w.clients.minimiser(w.clients.alpha)
        axes = range(len(w.x0))
        flat = all(not h[a][b] for h in w.clients.hessians for a in axes for b in range(a))
        groups = [[a] for a in axes] if flat else [list(axes)]
        self.runs = [_Run(w, _Block(w.clients, group, w.x0, self.effort)) for group in groups]
        self._numbers: dict[tuple[str, int], Span] = {}
        self._series: dict[tuple[str, int], list[Span]] = {}
        self._delayed: dict[tuple[str, int], tuple[Span, Span]] = {}

    def number(self, name: str, bits: int) -> Span:
        """Return a number of the setting."""
        if (name, bits) not in self._numbers:
            found = _NUMBERS[name](self, bits)
            self._numbers[name, bits] = found if isinstance(found, tuple) else (found, found)
        return self._numbers[name, bits]

    def series(self, of: str, bits: int) -> list[Span]:
        """Return a quantity before every round and after the last, all computed at once."""
        if (of, bits) not in self._series:
            # These advance together, because a projection and the moments use the same maps in
            # every round.
            rounds = zip(_kept_inside(self), *(_expected(run, of, bits) for run in self.runs),
                         strict=True)  # fmt: skip
            self._series[of, bits] = [
                (_total(low for low, _ in spans), _total(high for _, high in spans))
                for _, *spans in rounds
            ]
        return self._series[of, bits]

    def delayed(self, factor: str, bits: int) -> tuple[Span, Span]:
        """Return both sums of `_delayed` for a C_P; they share thousands of logarithms."""
        if (factor, bits) not in self._delayed:
            self._delayed[factor, bits] = _delayed(self, bits, self.number(factor, bits))
        return self._delayed[factor, bits]

    def parameter(self, name: str) -> Fraction:
        """Return a parameter of the algorithm, which must be a number."""
        found = self.w.method.parameters.get(name)
        if not isinstance(found, int | Fraction):
            raise CertificateError(f"statement.symbols: {self.w.method.name} has no {name}")
        return Fraction(found)


def _expected(run: _Run, of: str, bits: int) -> Iterator[Span]:
    """Yield the expectation of a quantity in rounds 0 .. R."""
    values: dict[Any, list[tuple[tuple[int, int], _Fixed]]] = {}
    unit = Fraction(1, 2**bits)
    for rows in run.rows(bits):
        terms = []
        for (place, _), moments in rows.items():
            if place not in values:
                square = run.value(of, place)
                values[place] = [(pair, _fixed(value, bits)) for pair, value in square.items()]
            terms += [_times(factor, moments[pair]) for pair, factor in values[place]]
        low, high = _rounded(terms, bits)
        yield low * unit, high * unit


def _kept_inside(known: _Known) -> Iterator[None]:
    """Refuse a projection onto a ball if, in some round, it might move the model.

    With exact gradients, every round maps a box that contains the state to another box.
    """
    w, ball = known.w, known.w.method.ball
    if ball is None:
        yield from [None] * (w.rounds + 1)
        return
    counted = w.method.kind.known(w.method.parameters, len(w.clients.optima)) != ()
    if counted or w.clients.sigma > 0 or w.clients.server_sigma > 0:
        raise CertificateError(
            "setting.algorithm.onto: a projection needs exact gradients, and weights that do not "
            "depend on the past"
        )
    boxes = [_boxes(run, w) for run in known.runs]
    yield
    for _ in range(w.rounds):
        farthest = Fraction(0)
        for run, box in zip(known.runs, boxes, strict=True):
            d = len(run.block.axes)
            at = next(box)[d : 2 * d] if w.method.averaged else next(box)[:d]
            for axis, ends in zip(run.block.axes, at, strict=True):
                centre = ball[0][axis] - known.star[axis]
                farthest += max((end - centre) ** 2 for end in ends)
        if farthest > ball[1] ** 2:
            raise CertificateError("setting.algorithm.onto: the projection may move the model")
        yield


def _boxes(run: _Run, w: _Setting) -> Iterator[list[Span]]:
    """Yield a box around the state after every round, whoever took part."""
    box: list[Span] = [(_ONE, _ONE), *((value, value) for value in run.initial()[1:])]
    places, unit = {*w.law.initial, *w.law.stationary}, Fraction(1, 2**FINEST)
    for t in range(1, w.rounds + 1):
        ends: list[list[_Fixed]] = [[] for _ in box[1:]]
        known: dict[int, _Fixed] = {}  # the same object if participants do not matter
        for place in places:
            for _, forms, _, _ in run.images(place, (), t):
                run.block.effort.spend(run.size)
                for found, form in zip(ends, forms, strict=True):
                    if id(form) not in known:
                        known[id(form)] = _extent(form, box)
                    found.append(known[id(form)])
        lows_and_highs = [zip(*found, strict=True) for found in ends]
        box = [
            (_ONE, _ONE),
            *((min(lows) * unit, max(highs) * unit) for lows, highs in lows_and_highs),
        ]
        yield box[1:]


def _extent(form: Form, box: Sequence[Span]) -> _Fixed:
    """Return the ends of a form's range over a box, in units of 2^-FINEST.

    Fractions with many digits are added without being reduced to lowest terms.
    """
    ends = []
    for which in (0, 1):
        above, below = 0, 1
        for k, factor in form.items():
            # A negative factor swaps the ends.
            end = box[k][which if factor > 0 else 1 - which]
            over, under = factor.numerator * end.numerator, factor.denominator * end.denominator
            shared = math.gcd(below, under)
            above = above * (under // shared) + over * (below // shared)
            below *= under // shared
        ends.append((above << FINEST, below))
    return ends[0][0] // ends[0][1], -(-ends[1][0] // ends[1][1])


# ---------------------------------------------------------------- numbers of a setting


def _square(vector: Iterable[Fraction]) -> Fraction:
    return _total(value * value for value in vector)


def _apart(first: Sequence[Fraction], second: Sequence[Fraction]) -> list[Fraction]:
    return [a - b for a, b in zip(first, second, strict=True)]


def _norm(vector: Sequence[Fraction], bits: int) -> Span:
    square = _square(vector)
    return _root((square, square), 2, bits)


def _loss(hessian: Matrix, offset: Sequence[Fraction]) -> Fraction:
    return _total(a * b for a, b in zip(offset, _applied(hessian, offset), strict=True)) / 2


def _largest(spans: Iterable[Span]) -> Span:
    lows, highs = zip(*spans, strict=True)
    return max(lows), max(highs)


def _curvature(hessian: Matrix, bits: int, sign: int) -> Span:
    """Return the largest (sign 1) or the smallest (-1) eigenvalue, by bisection."""
    size = range(len(hessian))
    if all(hessian[a][b] == 0 for a in size for b in range(a)):
        exact = (max if sign > 0 else min)(hessian[a][a] for a in size)
        return exact, exact
    low, high = Fraction(0), _total(hessian[a][a] for a in size)
    while high - low > Fraction(1, 2 ** min(bits, 4 * COARSEST)):
        middle = (low + high) / 2
        beyond = _is_definite(
            _weighed((Fraction(-sign), hessian), (sign * middle, _unit(len(hessian))))
        )
        low, high = (low, middle) if beyond == (sign > 0) else (middle, high)
    return low, high


def _smoothness(known: _Known, bits: int) -> Span:
    return _largest(_curvature(h, bits, 1) for h in known.w.clients.hessians)


def _convexity(known: _Known, bits: int) -> Span:
    lowest = [_curvature(h, bits, -1) for h in known.w.clients.hessians]
    return min(low for low, _ in lowest), min(high for _, high in lowest)


def _dissimilarity(known: _Known, bits: int) -> Span:
    clients = known.w.clients
    if any(h != clients.hessians[0] for h in clients.hessians):
        raise CertificateError("statement.symbols: sigma_G is infinite because Hessians differ")
    hessian = clients.hessians[0]
    return _largest(
        _norm(_applied(hessian, _apart(known.star, point)), bits) for point in clients.optima
    )


def _losses_at(known: _Known, point: Sequence[Fraction]) -> list[Fraction]:
    clients = known.w.clients
    pairs = zip(clients.hessians, clients.optima, strict=True)
    return [_loss(hessian, _apart(point, optimum)) for hessian, optimum in pairs]


def _client_lr(known: _Known, bits: int) -> Fraction:
    sizes = known.w.method.steps
    if sizes and sizes.offset is not None:
        raise CertificateError("statement.symbols: client_lr depends on the round")
    return known.w.method.lr(1)


def _mean_size(known: _Known, bits: int) -> Fraction:
    return _total(chance * len(s) for s, chance in known.w.law.outcomes().items())


def _distance_from_uniform(known: _Known, bits: int) -> Fraction:
    law, n = known.w.law.outcomes(), len(known.w.clients.optima)
    size = _mean_size(known, bits)  # no set has this many clients unless the number is an integer
    share = Fraction(1, math.comb(n, int(size)))
    return 1 - _total(min(chance, share) for s, chance in law.items() if len(s) == size)


def _availability(w: _Setting) -> list[Fraction]:
    law = w.law.outcomes()
    return [_total(p for s, p in law.items() if i in s) for i in range(len(w.clients.optima))]


def _dependence(known: _Known, bits: int) -> Fraction:
    """Return the largest effect of the past on a client's participation probability."""
    law, usual = known.w.law, _availability(known.w)
    found = Fraction(0)
    for place in {*law.initial, *law.stationary}:
        for i, p in enumerate(usual):
            ahead = (
                chance * share
                for after, chance in law.following(place)
                for share, present in law.sets(after)
                if i in present
            )
            found = max(found, abs(_total(ahead) - p))
    return found


def _weights(w: _Setting) -> list[Fraction]:
    if "aggregation_weights" not in w.method.parameters:
        raise CertificateError("statement.symbols: the algorithm has no aggregation_weights")
    return list(w.method.parameters["aggregation_weights"])


def _importance(w: _Setting) -> list[Fraction]:
    """Return p of CA-Fed's (4): availability times weight, divided by the sum of these products."""
    shares = [pi * q for pi, q in zip(_availability(w), _weights(w), strict=True)]
    return [share / sum(shares) for share in shares]


def _minimiser_of_biased(known: _Known) -> list[Fraction]:
    return known.w.clients.minimiser(_importance(known.w))


def _control_gap(known: _Known, bits: int) -> Fraction:
    if known.w.method.name != "Scaffold" or known.w.method.is_warm:
        raise CertificateError(
            "statement.symbols: control_gap is known only for controls that start at zero"
        )
    clients = known.w.clients
    pairs = zip(clients.hessians, clients.optima, strict=True)
    squares = (_square(_applied(h, _apart(known.star, c))) for h, c in pairs)
    return _total(squares) / len(clients.optima)


def _mixing(known: _Known) -> tuple[Fraction, Fraction]:
    rate, factor = known.w.law.mixing or (_ONE, None)
    if factor is None:
        raise CertificateError("statement.symbols: mixing is known only for one chain per client")
    return rate, factor


def _rate(known: _Known) -> Fraction:
    if known.w.law.mixing is None:
        raise CertificateError(
            "statement.symbols: mixing is known only for one chain per client, or for two states"
        )
    return known.w.law.mixing[0]


def _start_distance(known: _Known, bits: int) -> Fraction:
    law = known.w.law
    places = {*law.initial, *law.stationary}
    zero = Fraction(0)
    return _total(abs(law.initial.get(p, zero) - law.stationary.get(p, zero)) for p in places) / 2


def _ball(known: _Known) -> tuple[list[Fraction], Fraction]:
    if known.w.method.ball is None:
        raise CertificateError("statement.symbols: the algorithm has no ball W")
    return known.w.method.ball


def _reach(points: Callable[[_Known], list[list[Fraction]]]) -> Callable[[_Known, int], Span]:
    """Return a function that gives the largest distance of some points from the centre of W."""

    def farthest(known: _Known, bits: int) -> Span:
        return _largest(_norm(_apart(p, _ball(known)[0]), bits) for p in points(known))

    return farthest


def _around_ball(known: _Known, bits: int) -> list[tuple[Fraction, Span]]:
    """Return clients' isotropic curvatures, and brackets of their largest distances over W."""
    found = []
    centre, radius = _ball(known)
    for hessian, point in zip(known.w.clients.hessians, known.w.clients.optima, strict=True):
        if hessian != _weighed((hessian[0][0], _unit(len(hessian)))):
            raise CertificateError(
                "statement.symbols: suprema over W need Hessians that are multiples of I"
            )
        low, high = _norm(_apart(centre, point), bits)
        found.append((hessian[0][0], (low + radius, high + radius)))
    return found


def _largest_gradient(known: _Known, bits: int) -> Span:
    return _largest((h * low, h * high) for h, (low, high) in _around_ball(known, bits))


def _largest_change(known: _Known, bits: int) -> Span:
    """Return sup over W and clients of |F_k(w) - F_k(w_B*)|."""
    there = _losses_at(known, _minimiser_of_biased(known))
    spans: list[Span] = []
    for (h, (low, high)), loss in zip(_around_ball(known, bits), there, strict=True):
        spans += [(h * low**2 / 2 - loss, h * high**2 / 2 - loss), (loss, loss)]
    return _largest(spans)


def _schedule(known: _Known) -> _Sizes:
    if known.w.method.steps is None:
        raise CertificateError("statement.symbols: step sizes are not scheduled")
    return known.w.method.steps


def _falling(known: _Known) -> tuple[Fraction, Fraction]:
    sizes = _schedule(known)
    if not sizes.offset:
        raise CertificateError("statement.symbols: a sum over all rounds is infinite")
    return sizes.scale, sizes.offset


def _squares(scale: Fraction, offset: Fraction, bits: int) -> Span:
    """Return the sum over t >= 1 of (scale/(t + offset))^2.

    The sum of a convex function is less than its integral started half a step earlier, and more
    than the value from the trapezoidal rule.
    """
    n = min(64 * bits, MOST_TERMS)
    terms = [_fixed((scale / (t + offset)) ** 2, 2 * COARSEST) for t in range(1, n + 1)]
    low, high = (Fraction(sum(ends), 4**COARSEST) for ends in zip(*terms, strict=True))
    after = n + 1 + offset
    rest = scale**2 * (1 / after + 1 / (2 * after**2)), scale**2 / (after - _HALF)
    return low + rest[0], high + rest[1]


def _cited_factor(known: _Known, bits: int) -> Span:
    """Return C_P of CA-Fed's reference [14], sqrt(max(M - 1, 1)) ||U||_F ||U^-1||_F.

    For a client that comes and goes, each pair of a right and a left eigenvector, (1, 1), (pi, 1 -
    pi) and (1 - pi, -pi), (1, -1), has lengths with product sqrt(2 (pi^2 + (1 - pi)^2)). The
    columns of U are products of these vectors, scaled so that right and left vectors have equal
    length. Both norms are then the square root of the sum of these products of lengths.
    """
    _rate(known)
    most = max(known.w.law.states - 1, 1) * known.w.law.lengths
    return _root((most, most), 2, bits)


def _delayed(known: _Known, bits: int, factor: Span) -> tuple[Span, Span]:
    """Return the sums over t >= 1 of eta_{t - J_t}^2 and of ln(t) eta_{t - J_t}^2.

    ``J_t = min(m_t, t)``, where m_t is the least integer with ``2 C_P H t lambda^m <= 1``. Beyond n
    terms, ``m_n <= m_t <= m_n + 1 + (t - n)/(n (1 - lambda))``, so t - J_t + offset is at least a
    (t - n) + b. The remainders of the sums are bounded by integrals.
    """
    (scale, offset), rate = _falling(known), _rate(known)
    n = min(64 * bits, MOST_TERMS)
    slope, slowly = 1 - 1 / (n * (1 - rate)), "statement.symbols: the chain mixes too slowly"
    if slope < _HALF or offset > n:
        raise CertificateError(slowly)
    reach = _product(factor, known.number("largest_loss_change", bits))
    logs = [_log_of(Fraction(t), COARSEST) for t in range(1, n + 1)]
    ends: list[tuple[Fraction, Fraction]] = []
    for end, above in zip(reach, (0, 1), strict=True):
        m, over, total, of_logs = 0, _ONE, 0, Fraction(0)
        for t in range(1, n + 1):
            while 2 * end * t > over:
                # If the product is rounded up, m and the terms are too small; if it is rounded
                # down, they are too large.
                m, over = m + 1, _outwards((over / rate,) * 2, 2 * COARSEST)[1 - above]
                if m >= n:
                    raise CertificateError(slowly)
            term = _fixed((scale / (t - min(m, t) + offset)) ** 2, 2 * COARSEST)[above]
            total, of_logs = total + term, of_logs + term * logs[t - 1][above]
        first = n - m - 1 + offset
        rest, more = scale**2 / (n + 1 - m + offset), Fraction(0)
        if above:
            rest = scale**2 / (slope * first)
            more = scale**2 / (slope * min(slope, first / n) * n)
        parts = Fraction(total, 4**COARSEST), of_logs / 4**COARSEST
        ends.append((parts[0] + rest, parts[1] + rest * logs[-1][above] + more))
    return (ends[0][0], ends[1][0]), (ends[0][1], ends[1][1])


def _weight_convexity(known: _Known, bits: int) -> Span:
    """Return the number of CA-Fed's Appendix E; above 2, chi^2 is not convex in the weights."""
    w = known.w
    q, p = _weights(w), _importance(w)
    ratios = [a * a / b for a, b in zip(w.clients.alpha, p, strict=True)]
    nu = [ratio / sum(ratios) for ratio in ratios]
    d, e = _apart(p, nu), _apart(nu, [value / sum(q) for value in q])
    squares = [
        _total(a * b / c for a, b, c in zip(x, y, nu, strict=True))
        for x, y in ((d, d), (e, e), (d, e))
    ]
    low, high = _root((squares[0] * squares[1],) * 2, 2, bits)
    return squares[2] + low, squares[2] + high


def _both_shares(known: _Known) -> list[tuple[Fraction, Fraction]]:
    """Return every client's alpha and p."""
    return list(zip(known.w.clients.alpha, _importance(known.w), strict=True))


def _summand_curvature(known: _Known, bits: int) -> Fraction:
    """Return the number of CA-Fed's Appendix E; above 1, a summand of chi^2 is not convex.

    Along q + v with sum v = 0, the second derivative of ``(p - alpha)^2/p`` has the sign of
    ``b z^2 - (b + p) z y + p y^2`` with b = alpha^2/p, z = v_k/q_k and y = pi'v/pi'q. If the other
    clients are not equally available, z and y are arbitrary, and (b + p) z y is at most
    (b + p)/(2 sqrt(b p)) times the sum of the squares, with b p = alpha^2. If they are equally
    available, v_k determines y.
    """
    w, found = known.w, [Fraction(0)]
    pi, q = _availability(w), _weights(w)
    mean = _total(a * b for a, b in zip(pi, q, strict=True))
    for k, (alpha, p) in enumerate(_both_shares(known)):
        others = {pi[j] for j in range(len(q)) if j != k}
        both = alpha**2 / p + p
        if len(others) > 1:
            found.append(both / (2 * alpha))
        for other in others if len(others) == 1 else ():
            slope = (pi[k] - other) * q[k] / mean
            found.append(both * slope / (alpha**2 / p + p * slope**2))
    return max(found)


def _tightest(known: _Known, bits: int) -> tuple[Fraction, Fraction]:
    """Return F - F* and F_B - F_B* at the point where ``F - 2 (L/mu)^2 F_B`` is largest."""
    (least, L), (mu, most) = known.number("L", bits), known.number("mu", bits)
    if (least, mu) != (L, most):
        raise CertificateError("statement.symbols: the tightest point needs L and mu as fractions")
    clients, shares = known.w.clients, _importance(known.w)
    mean, bent, star = clients.hessian(clients.alpha), clients.hessian(shares), known.star
    apart, steep = _minimiser_of_biased(known), 2 * (L / mu) ** 2
    # Setting the gradient to zero gives (steep H_B - H)(w - w_B) = H (w_B - x*).
    pull = _applied(mean, _apart(apart, star))
    moved = _solved(_weighed((steep, bent), (-_ONE, mean)), pull)
    return _loss(mean, [a + b for a, b in zip(_apart(apart, star), moved, strict=True)]), _loss(
        bent, moved
    )


def _price(known: _Known, bits: int) -> tuple[Span, Span]:
    """Bracket u = theta/lambda of CA-Fed's (27), and A = sigma^2 sum eta_t^2.

    Let m = sigma^2/sigma_k^2. The minimiser of ``(1/2 A sum pi q^2/m + b)/(pi'q)`` subject to sum q
    = Q is ``q = lambda m (1 - u/pi)+/A``. With S = sum m (1 - u/pi)+ and V = sum m pi (1 -
    u/pi)+^2, the constraint gives lambda = A Q/S. As lambda is also the smallest ratio,
    ``Q^2 (u/S + V/(2 S^2)) = b/A``. The left-hand side increases with u.
    """
    squares, sigma = known.number("step_square_sum", bits), known.number("sigma", bits)
    scale = _product(_product(sigma, sigma), squares)
    total, pi, quiet = _total(_weights(known.w)), _availability(known.w), _quietness(known.w)
    start = 2 * _square(_apart(known.w.x0, known.star)) / known.parameter("local_steps")
    rest, share = known.number("inverse_square_sum", bits), known.w.law.states * total / 4
    low, high = (start + share * (a + b) for a, b in zip(squares, rest, strict=True))
    wanted = _product((low, high), _inverse(scale))

    def side(u: Fraction) -> Fraction:
        left = [m * max(1 - u / p, Fraction(0)) for m, p in zip(quiet, pi, strict=True)]
        spread = _total(p * each**2 / m for p, each, m in zip(pi, left, quiet, strict=True))
        return total**2 * (u / sum(left) + spread / (2 * sum(left) ** 2))

    ends = []
    for end, which in zip(wanted, (0, 1), strict=True):
        # At u = -1 the left-hand side is at most 0, because V is at most 2 S.
        between = [-_ONE, max(pi)]
        while between[1] - between[0] > Fraction(1, 2 ** min(bits, 4 * COARSEST)):
            middle = (between[0] + between[1]) / 2
            between[side(middle) > end] = middle
        ends.append(between[which])
    return (ends[0], ends[1]), scale


def _quietness(w: _Setting) -> list[Fraction]:
    if not all(w.clients.shares):
        raise CertificateError(
            "statement.symbols: (12) has no unique minimiser if a client has no noise"
        )
    return [1 / share**2 for share in w.clients.shares]


def _weight_inversion(known: _Known, bits: int) -> Span:
    """Return the largest q_i/q_j over clients with pi_i < pi_j, which decreases with u."""
    (low, high), _ = _price(known, bits)
    each = list(zip(_availability(known.w), _quietness(known.w), strict=True))
    pairs = [(a, b) for a in each for b in each if a[0] < b[0]]

    def ratio(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], u: Fraction) -> Fraction:
        rarer, other = a[1] * (1 - u / a[0]), b[1] * (1 - u / b[0])
        return rarer / other if u < a[0] else Fraction(0)

    zero = Fraction(0), Fraction(0)
    return _largest([zero, *((ratio(a, b, high), ratio(a, b, low)) for a, b in pairs)])


def _weight_multiplier(known: _Known, bits: int) -> Span:
    """Return theta = A Q u/S, which increases with u."""
    (low, high), scale = _price(known, bits)
    total, each = _total(_weights(known.w)), (_availability(known.w), _quietness(known.w))
    ends = [
        u / _total(m * max(1 - u / p, Fraction(0)) for p, m in zip(*each, strict=True))
        for u in (low, high)
    ]
    return _product(scale, (total * ends[0], total * ends[1]))


def _run_sums(known: _Known, bits: int) -> tuple[Span, Span, Span]:
    """Return sums over t = 1 .. R of eta_t^2, eta_t C_P lambda^m_t and J_t eta_{t-J_t}^2.

    m_t is the least integer with ``2 C_P H t lambda^m <= 1``. The second sum is over t with m_t <
    t, and J_t is at most t - 1. A larger H makes the last sum larger and the second sum smaller.
    """
    sizes, (rate, factor) = _schedule(known), _mixing(known)
    change, unit = known.number("largest_loss_change", bits), 2 * bits
    ends = []
    for end, above in zip(change, (0, 1), strict=True):
        # lambda^m is small/large, not reduced to lowest terms.
        m, small, large = 0, 1, 1
        squares = unmixed = delayed = 0
        for t in range(1, known.w.rounds + 1):
            reach = 2 * factor * end * t
            while reach.numerator * small > reach.denominator * large:
                m, small, large = m + 1, small * rate.numerator, large * rate.denominator
                known.effort.spend(large.bit_length() // 10)
            known.effort.spend(10 + large.bit_length() // 10)
            back, eta = min(m, t - 1), sizes.at(t)
            squares += _fixed(eta**2, unit)[above]
            delayed += back * _fixed(sizes.at(t - back) ** 2, unit)[above]
            if back == m:
                over = (eta * factor).numerator * small << unit
                under = (eta * factor).denominator * large
                unmixed += -(-over // under) if above == 0 else over // under
        ends.append([Fraction(found, 2**unit) for found in (squares, unmixed, delayed)])
    (a, b, c), (d, e, f) = ends
    return (a, d), (e, b), (c, f)


def _chance_of_absence(known: _Known, bits: int) -> Fraction:
    """Return the probability that some client is absent for longer than the cut-off at a time."""
    law, cutoff, n = known.w.law, known.parameter("cutoff"), len(known.w.clients.optima)
    _check_length(known, known.w.rounds * sum(map(bits_of, law.outcomes().values())))
    rows = {(place, (0,) * n): chance for place, chance in law.initial.items()}
    for _ in range(known.w.rounds):
        after: dict[Any, Fraction] = {}
        for (place, ages), weight in rows.items():
            known.effort.spend(100 * len(law.sets(place)))
            for chance, present in law.sets(place):
                older = tuple(0 if i in present else age + 1 for i, age in enumerate(ages))
                if max(older) <= cutoff:
                    for ahead, share in law.following(place):
                        row = ahead, older
                        after[row] = after.get(row, Fraction(0)) + weight * chance * share
        rows = after
    return 1 - _total(rows.values())


def _check_length(known: _Known, bits: int) -> None:
    if bits > MOST_LOCAL_BITS:
        raise CertificateError("statement.quantity: fractions grow too long")


def _weight_errors(known: _Known) -> Iterator[tuple[Fraction, list[Fraction]]]:
    """Yield every client's p and ``E(p omega_t - 1)^2`` of FedAU's weights, t = 0 .. R - 1."""
    w, cutoff = known.w, known.parameter("cutoff")
    if w.method.name != "FedAU" or not w.law.is_independent:
        raise CertificateError(
            "statement.symbols: weight errors are known only for FedAU, with independent rounds"
        )
    found: dict[Fraction, list[Fraction]] = {}
    for p in _availability(w):
        if p not in found:
            _check_length(known, (w.rounds + int(cutoff)) * bits_of(p))
            found[p] = _errors_at(p, cutoff, w.rounds, known.effort)
        yield p, found[p]


def _errors_at(p: Fraction, cutoff: Fraction, rounds: int, effort: _Effort) -> list[Fraction]:
    """Return one client's errors, from the distribution of ended intervals and of the last end.

    The mean length of ended intervals is the round in which the last one ended, divided by their
    number. Probabilities are integers in units of b^-t, where p = a/b.
    """
    errors, there, away = [], p.numerator, p.denominator - p.numerator
    rows: dict[tuple[int, int], int] = {(0, 0): 1}
    for t in range(rounds):
        error = _total(
            mass * (p * Fraction(last or 1, ended or 1) - 1) ** 2
            for (last, ended), mass in rows.items()
        )
        errors.append(error / p.denominator**t)
        after: dict[tuple[int, int], int] = {}
        for (last, ended), mass in rows.items():
            absent = (t + 1, ended + 1) if t + 1 - last == cutoff else (last, ended)
            for row, chance in (((t + 1, ended + 1), there), (absent, away)):
                after[row] = after.get(row, 0) + mass * chance
        rows = after
        effort.spend(100 * len(rows))
    return errors


def _mean_weight_error(known: _Known, bits: int) -> Fraction:
    means = [_total(errors) / len(errors) for _, errors in _weight_errors(known)]
    return _total(means) / len(means)


def _counted(p: Fraction, cutoff: int) -> Callable[[int], Fraction]:
    """Return the line of Theorem 3's proof with max(floor(t/K), 1) intervals."""
    law = {k: p * (1 - p) ** (k - 1) for k in range(1, cutoff)}
    law[cutoff] = (1 - p) ** (cutoff - 1)
    mean = _total(k * mass for k, mass in law.items())
    variance = _total((k - mean) ** 2 * mass for k, mass in law.items())
    return lambda t: p**2 * variance / max(t // cutoff, 1) + (1 - p) ** (2 * cutoff)


def _last_line(p: Fraction, cutoff: int) -> Callable[[int], Fraction]:
    """Return the last line of Theorem 3's proof."""
    return lambda t: 2 * cutoff * (1 - p) / t + (1 - p) ** (2 * cutoff)


def _worst_error(
    line: Callable[[Fraction, int], Callable[[int], Fraction]], *, from_cutoff: bool = False
) -> Callable[[_Known, int], Fraction]:
    """Return the largest ratio of FedAU's weight errors to a line of a proof, t >= 1 or t >= K."""

    def worst(known: _Known, bits: int) -> Fraction:
        largest, cutoff = Fraction(0), known.parameter("cutoff")
        for p, errors in _weight_errors(known):
            limit = line(p, int(cutoff))
            for t in range(int(cutoff) if from_cutoff else 1, len(errors)):
                if p < 1:
                    largest = max(largest, errors[t] / limit(t))
        return largest

    return worst


def _lasting_absence(known: _Known, bits: int) -> Fraction:
    """Return the mean over clients of (1 - p)^2K."""
    twice, chances = 2 * int(known.parameter("cutoff")), _availability(known.w)
    _check_length(known, twice * sum(map(bits_of, chances)))
    return _total((1 - p) ** twice for p in chances) / len(chances)


def _mean_absence(power: int) -> Callable[[_Known, int], Fraction]:
    def mean(known: _Known, bits: int) -> Fraction:
        chances = _availability(known.w)
        return _total((1 - p) ** power for p in chances) / len(chances)

    return mean


_NUMBERS: Mapping[str, Callable[[_Known, int], Fraction | Span]] = {
    "L": _smoothness,
    "mu": _convexity,
    "sigma": lambda k, b: k.w.clients.sigma,
    "least_sigma": lambda k, b: min(map(k.w.clients.level, range(len(k.w.clients.shares)))),
    "server_sigma": lambda k, b: k.w.clients.server_sigma,
    "sigma_G": _dissimilarity,
    "Gamma": lambda k, b: max(_losses_at(k, k.star)),
    "n_clients": lambda k, b: Fraction(len(k.w.clients.optima)),
    "rounds": lambda k, b: Fraction(k.w.rounds),
    "local_steps": lambda k, b: k.parameter("local_steps"),
    "client_lr": _client_lr,
    "server_lr": lambda k, b: k.parameter("server_lr"),
    "assist_lr": lambda k, b: k.parameter("assist_lr"),
    "q": lambda k, b: k.parameter("q"),
    "option": lambda k, b: k.parameter("option"),
    "cutoff": lambda k, b: k.parameter("cutoff"),
    "is_warm": lambda k, b: Fraction(int(k.w.method.is_warm)),
    "participants": _mean_size,
    "least_availability": lambda k, b: min(_availability(k.w)),
    "largest_availability": lambda k, b: max(_availability(k.w)),
    "distance_from_uniform": _distance_from_uniform,
    "has_memory": lambda k, b: Fraction(int(not k.w.law.is_independent)),
    "dependence": _dependence,
    "squared_distance": lambda k, b: _square(_apart(k.w.x0, k.star)),
    "excess_loss": lambda k, b: _loss(
        k.w.clients.hessian(k.w.clients.alpha), _apart(k.w.x0, k.star)
    ),
    "control_gap": _control_gap,
    "total_weight": lambda k, b: _total(_weights(k.w)),
    "least_weight": lambda k, b: min(_weights(k.w)),
    "mean_weight": lambda k, b: _total(
        pi * q for pi, q in zip(_availability(k.w), _weights(k.w), strict=True)
    ),
    "mean_squared_weight": lambda k, b: _total(
        pi * (q * share) ** 2
        for pi, q, share in zip(
            _availability(k.w), _weights(k.w), k.w.clients.shares, strict=True
        )
    ),
    "biased_squared_distance": lambda k, b: _square(_apart(k.w.x0, _minimiser_of_biased(k))),
    "biased_Gamma": lambda k, b: max(_losses_at(k, _minimiser_of_biased(k))),
    "chain_states": lambda k, b: Fraction(k.w.law.states),
    "chain_rate": lambda k, b: _rate(k),
    "chain_factor": lambda k, b: _mixing(k)[1],
    "cited_chain_factor": _cited_factor,
    "chain_onset": lambda k, b: 0 * _rate(k),
    "start_distance": _start_distance,
    "radius": lambda k, b: _ball(k)[1],
    "reach_of_optima": _reach(lambda k: k.w.clients.optima),
    "reach_of_minimisers": _reach(
        lambda k: [*k.w.clients.optima, k.star, _minimiser_of_biased(k)]
    ),
    "reach_of_start": _reach(lambda k: [k.w.x0]),
    "largest_gradient": _largest_gradient,
    "largest_loss_change": _largest_change,
    "first_step": lambda k, b: k.w.method.lr(1),
    "step_decay": lambda k, b: Fraction(int(_schedule(k).offset is not None)),
    "step_sum": lambda k, b: k.effort.sum_of(_schedule(k), k.w.rounds),
    "step_square_sum": lambda k, b: _squares(*_falling(k), b),
    "inverse_square_sum": lambda k, b: _squares(_ONE, Fraction(0), b),
    "delayed_square_sum": lambda k, b: k.delayed("chain_factor", b)[0],
    "delayed_log_sum": lambda k, b: k.delayed("chain_factor", b)[1],
    "cited_delayed_square_sum": lambda k, b: k.delayed("cited_chain_factor", b)[0],
    "cited_delayed_log_sum": lambda k, b: k.delayed("cited_chain_factor", b)[1],
    "weight_convexity": _weight_convexity,
    "chance_of_absence": _chance_of_absence,
    "summand_curvature": _summand_curvature,
    "share_curvature": lambda k, b: max(1 - 2 * (a / p) ** 2 for a, p in _both_shares(k)),
    "chi_square": lambda k, b: _total((a - p) ** 2 / p for a, p in _both_shares(k)),
    "total_variation": lambda k, b: _total(abs(a - p) for a, p in _both_shares(k)) / 2,
    "tightest_excess": lambda k, b: _tightest(k, b)[0],
    "tightest_biased_excess": lambda k, b: _tightest(k, b)[1],
    "weight_inversion": _weight_inversion,
    "weight_multiplier": _weight_multiplier,
    "run_square_sum": lambda k, b: _run_sums(k, b)[0],
    "run_unmixed_sum": lambda k, b: _run_sums(k, b)[1],
    "run_delay_sum": lambda k, b: _run_sums(k, b)[2],
    "weight_error_ratio": _worst_error(_counted),
    "late_weight_error_ratio": _worst_error(_counted, from_cutoff=True),
    "weight_error_share": _worst_error(_last_line),
    "mean_weight_error": _mean_weight_error,
    "mean_absence": _mean_absence(1),
    "mean_squared_absence": _mean_absence(2),
    "mean_lasting_absence": _lasting_absence,
    "harmonic_sum": lambda k, b: _total(Fraction(1, t) for t in range(1, k.w.rounds)),
}  # fmt: skip


# ---------------------------------------------------------------- the statement and both sides

_DOCUMENT = ("version", "theorem", "reading", "statement", "setting", "truth", "bound")
_STATEMENT = ("symbols", "definitions", "round_symbols", "conditions", "quantity", "bound")
_RULE = ("of", "reduction", "rounds")
_REDUCTIONS: Mapping[str, Callable[[list[Span]], list[Span]]] = {
    "every": lambda spans: spans,
    "last": lambda spans: spans[-1:],
    "mean": lambda spans: [(
        _total(low for low, _ in spans) / len(spans), _total(high for _, high in spans) / len(spans)
    )],
    "max": lambda spans: [(max(low for low, _ in spans), max(high for _, high in spans))],
    "min": lambda spans: [(min(low for low, _ in spans), min(high for _, high in spans))],
}  # fmt: skip


class _Numbers:
    """A setting's numbers by name, computed on demand."""

    def __init__(self, known: _Known, bits: int) -> None:
        self._known, self._bits = known, bits

    def __getitem__(self, name: str) -> Span:
        return self._known.number(name, self._bits)

    def __contains__(self, name: object) -> bool:
        return name in _NUMBERS


class _Statement:
    """A statement's formulas, with symbols evaluated on a setting in brackets of any width."""

    def __init__(self, found: Any, known: _Known) -> None:
        raw = fields_of("statement", found, _STATEMENT)
        self._known = known
        self._symbols, self._definitions, self.conditions = (
            _texts(f"statement.{name}", raw[name])
            for name in ("symbols", "definitions", "conditions")
        )
        rules = raw["round_symbols"]
        if not isinstance(rules, dict):
            raise CertificateError("statement.round_symbols: must be an object with fields")
        self._rules = {name: _rule(f"statement.round_symbols.{name}", rules[name], known.w.rounds)
                       for name in rules}  # fmt: skip
        every = {rule[2] for rule in self._rules.values() if rule[1] == "every"}
        if len(every) > 1:
            raise CertificateError("statement.round_symbols: must be about the same rounds")
        for place, names in (("definitions", self._definitions), ("round_symbols", self._rules)):
            for name in names:
                taken = name in self._symbols or (
                    names is self._rules and name in self._definitions
                )
                if taken:
                    raise CertificateError(f"statement.{place}.{name}: is a symbol's name")
        self.bound = syntax_of(text_of("statement.bound", raw["bound"]))
        self.quantity = raw["quantity"]
        self._named: dict[int, dict[str, Span]] = {}

    def named(self, bits: int) -> dict[str, Span]:
        """Return the symbols that are single numbers, not those that vary along the run."""
        if bits not in self._named:
            numbers, named = _Numbers(self._known, bits), {}
            for name, text in self._symbols.items():
                named[name] = _span(syntax_of(text), numbers, bits)
            for name, text in self._definitions.items():
                named[name] = _span(syntax_of(text), named, bits)
            self._named[bits] = named
        return self._named[bits]

    def check(self, name: str, text: str) -> None:
        """Refuse a condition that some round does not meet."""
        used = {n: rule for n, rule in self._rules.items() if n in _names(text)}
        lengths = [len(rule[2]) for rule in used.values() if rule[1] == "every"]
        for at in range(max(lengths, default=1)):

            def decided(bits: int, at: int = at) -> bool:
                known = dict(self.named(bits))
                for symbol, (of, reduction, rounds) in used.items():
                    series = self._known.series(of, bits)
                    found = _REDUCTIONS[reduction]([series[r] for r in rounds])
                    known[symbol] = found[at if reduction == "every" else 0]
                return _decided(text, known, bits)

            if not _settled(text, decided):
                raise CertificateError(f"conditions.{name}: not met in round {at}: {text}")

    def truth(self, bits: int) -> Span:
        """Return a bracket of the left-hand side, from the run or from the setting itself."""
        place = "statement.quantity"
        if isinstance(self.quantity, str):
            tree = syntax_of(text_of(place, self.quantity))
            return _span(tree, _Numbers(self._known, bits), bits)
        raw = fields_of(place, self.quantity, (*_RULE, "weights"))
        weights = text_of(f"{place}.weights", raw["weights"])
        rule = {name: raw[name] for name in _RULE}
        of, reduction, rounds = _rule(place, rule, self._known.w.rounds)
        _must(
            f"{place}.reduction", reduction != "every", "one number, not one per round", reduction
        )
        series = self._known.series(of, bits)
        spans = [series[r] for r in rounds]
        if weights == "1":
            return _REDUCTIONS[reduction](spans)[0]
        _must(f"{place}.weights", reduction == "mean", "1, except in a mean", weights)
        return self._weighted(weights, spans, rounds, bits)

    def _weighted(self, text: str, spans: list[Span], rounds: range, bits: int) -> Span:
        tree, named = syntax_of(text), self.named(bits)
        total: Span = Fraction(0), Fraction(0)
        sums = total
        for r, span in zip(rounds, spans, strict=True):
            least, most = _outwards(_span(tree, {**named, "r": (Fraction(r),) * 2}, bits), bits)
            if most < 0:
                raise CertificateError(
                    f"statement.quantity.weights: must not be negative, round {r}"
                )
            if least < 0:
                raise _UndecidedError
            product_ = _product((least, most), span)
            sums = sums[0] + product_[0], sums[1] + product_[1]
            total = total[0] + least, total[1] + most
        if total[1] == 0:
            raise CertificateError("statement.quantity.weights: must not all be 0")
        return _product(sums, _inverse(total))


def _rule(place: str, found: Any, last: int) -> tuple[str, str, range]:
    """Return the quantity, its reduction and a nonempty range of rounds."""
    raw = fields_of(place, found, _RULE)
    of, reduction = (text_of(f"{place}.{key}", raw[key]) for key in ("of", "reduction"))
    _must(f"{place}.of", of in _QUANTITIES, f"one of {', '.join(_QUANTITIES)}", of)
    one_of = f"one of {', '.join(_REDUCTIONS)}"
    _must(f"{place}.reduction", reduction in _REDUCTIONS, one_of, reduction)
    ends = list_of(f"{place}.rounds", raw["rounds"], whole)
    is_range = len(ends) == 2 and ends[0] >= 0 >= ends[1]
    _must(f"{place}.rounds", is_range, "a first round and an end up to 0", ends)
    rounds = range(ends[0], last + 1 + ends[1])
    _must(f"{place}.rounds", len(rounds) > 0, f"rounds of a run of {last}", ends)
    return of, reduction, rounds


def check_certificate(document: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """Compute everything again, and return two numbers with ``truth >= first > second >= bound``.

    Raises
    ------
    CertificateError
        If a field is missing, invalid or wrong, or a hypothesis fails. The message names the first
        fault.
    """
    try:
        return _checked(document)
    except CertificateError:
        raise
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as e:
        raise CertificateError(f"certificate: damaged or incomplete: {_shown(str(e))}") from e


def _checked(document: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    document = fields_of("certificate", document, _DOCUMENT)
    version = whole("version", document["version"])
    _must("version", version == VERSION, str(VERSION), version)
    for name in ("theorem", "reading"):
        text_of(name, document[name])
    truth, bound = (fraction(name, document[name]) for name in ("truth", "bound"))
    _must("truth", truth > bound, f"above the bound, {_shown(bound)}", truth)
    known = _Known(_setting(document["setting"]))
    statement = _Statement(document["statement"], known)
    for name, condition in statement.conditions.items():
        statement.check(name, condition)

    def is_above(bits: int) -> bool:
        return _below(_span(statement.bound, statement.named(bits), bits), (bound, bound))

    if not _settled("the bound", is_above):
        raise CertificateError(f"bound: must be at least the statement's, got {_shown(bound)}")
    if not _settled("the truth", lambda bits: _below((truth, truth), statement.truth(bits))):
        raise CertificateError(f"truth: must be at most the quantity, got {_shown(truth)}")
    return truth, bound


def _below(first: Span, second: Span) -> bool:
    """Return whether one number is at most another, if the brackets can decide."""
    if first[1] > second[0] and first[0] <= second[1]:
        raise _UndecidedError
    return first[1] <= second[0]


def _outwards(span: Span, bits: int) -> Span:
    low, high = _fixed(span[0], bits)[0], _fixed(span[1], bits)[1]
    return Fraction(low, 2**bits), Fraction(high, 2**bits)


def _texts(place: str, found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        raise CertificateError(f"{place}: must be an object with fields, got {_shown(found)}")
    return {name: text_of(f"{place}.{name}", text) for name, text in found.items()}


def main(paths: Iterable[str]) -> int:
    """Check files and print what each certifies, so that readers can compare it with the paper."""
    failures = 0
    for path in paths:
        try:
            document = parsed(Path(path).read_text(encoding="utf-8"))
            truth, bound = check_certificate(document)
        except (CertificateError, OSError, UnicodeDecodeError) as error:
            failures += 1
            print(f"{path}: refused: {error}")
            continue
        print(f"{path}: {document['theorem']} ({document['reading']}), as the file states it:")
        print(f"  {document['statement']['quantity']} <= {document['statement']['bound']}")
        print(f"  is false, and every condition holds: {_shown(truth)} > {_shown(bound)}")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Check a certificate of refutation by itself: nothing but fractions and the standard library.

The certificate holds the statement's formulas as text, SAFARI's setting, and both sides of the
broken inequality. All of it is computed again here. Clients share a diagonal Hessian, so every
coordinate is by itself; uniform subsets enter through mean and variance of a sample's mean.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

Series = list[dict[str, Fraction]]


class CertificateError(ValueError):
    """The certificate is wrong; the message names the first field that fails."""


_OPERATIONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}


def value_of(formula: str | ast.expr, symbols: Mapping[str, Fraction]) -> Fraction:
    """Evaluate a formula of sums, products and whole powers in fractions."""
    match node := ast.parse(formula, mode="eval").body if isinstance(formula, str) else formula:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.Name(id=name) if name in symbols:
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand, symbols)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent = value_of(right, symbols)
            if exponent.denominator == 1:
                return value_of(left, symbols) ** exponent.numerator
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _OPERATIONS:
            sides = (value_of(side, symbols) for side in (left, right))
            return Fraction(_OPERATIONS[type(kind)](*sides))
    raise CertificateError(f"statement: {ast.unparse(node)} is not a formula in fractions")


def is_met(condition: str, symbols: Mapping[str, Fraction]) -> bool:
    """Decide a condition's text; a division by zero leaves it undefined, hence not met."""
    node = ast.parse(condition, mode="eval").body
    try:
        match node:
            case ast.Compare(ops=[ast.Lt()], comparators=[ast.Name(id="oo")]):
                return True
            case ast.Compare(left=left, ops=[kind], comparators=[right]):
                sides = (value_of(side, symbols) for side in (left, right))
                return bool(_OPERATIONS[type(kind)](*sides))
            case ast.Call(func=ast.Name(id="Eq"), args=[left, right]):
                return value_of(left, symbols) == value_of(right, symbols)
    except ZeroDivisionError:
        return False
    raise CertificateError(f"statement: {condition} is not a condition")


def _coordinate(w: Mapping[str, Any], axis: int) -> Iterator[dict[str, Fraction]]:
    """Yield one coordinate's share in every expected quantity, in rounds 0 .. R."""
    h, d, m = Fraction(w["curvatures"][axis]), len(w["curvatures"]), w["participants"]
    eta_c, eta_s, q = (Fraction(w[name]) for name in ("client_lr", "assist_lr", "q"))
    optima = [Fraction(point[axis]) for point in w["optima"]]
    x_star = Fraction(sum(optima)) / len(optima)
    pool = [c - x_star for i, c in enumerate(optima) if i not in w["excluded"]]
    mean = Fraction(sum(pool)) / len(pool)
    scatter = sum((c - mean) ** 2 for c in pool) / len(pool)
    square = mean**2 + scatter * Fraction(len(pool) - m, max(len(pool) - 1, 1) * m)
    powers = [(1 - eta_c * h) ** k for k in range(w["local_steps"] + 1)]
    decay, keep = powers.pop(), 1 - eta_s * h
    noise = Fraction(w["sigma"]) ** 2 / (d * m)
    drawn = eta_c**2 * noise * sum(power**2 for power in powers)
    served = (eta_s * Fraction(w["server_sigma"])) ** 2 / d
    pull, seen = (1 - decay) / eta_c, noise * sum((1 - power) ** 2 for power in powers)
    first = Fraction(w["x0"][axis]) - x_star
    second = first**2
    for _ in range(w["rounds"] + 1):
        gap = second - 2 * first * mean
        yield {
            "squared_distance": second,
            "squared_gradient": h * h * second,
            "participant_gradient_sum": pull**2 * (gap + square) + seen,
            "participant_excess_loss": h * gap / 2,
        }
        crossed = 2 * decay * (1 - decay) * mean * first
        client = decay**2 * second + crossed + (1 - decay) ** 2 * square + drawn
        second = q * client + (1 - q) * (keep**2 * second + served)
        first = q * (decay * first + (1 - decay) * mean) + (1 - q) * keep * first


def _reduced(rule: Mapping[str, Any], series: Series) -> list[Fraction]:
    first, beyond = rule["rounds"]
    numbers = [row[rule["of"]] for row in series[first : len(series) + beyond]]
    reductions: Mapping[str, Callable[[], list[Fraction]]] = {
        "every": lambda: numbers,
        "last": lambda: numbers[-1:],
        "mean": lambda: [sum(numbers, Fraction(0)) / len(numbers)],
        "max": lambda: [max(numbers)],
        "min": lambda: [min(numbers)],
    }
    return reductions[rule["reduction"]]()


def check_certificate(document: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """Compute everything again and return (truth, bound).

    Raises
    ------
    CertificateError
        Naming the first field that is missing, that differs, or a hypothesis that fails.
    """
    try:
        return _checked(document)
    except CertificateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError, ValueError) as e:
        raise CertificateError(f"certificate: damaged or incomplete: {e!r}") from e


def _checked(document: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    statement, w = document["statement"], document["witness"]
    axes = [_coordinate(w, axis) for axis in range(len(w["curvatures"]))]
    series = [
        {name: sum((part[name] for part in parts), Fraction(0)) for name in parts[0]}
        for parts in zip(*axes, strict=True)
    ]
    symbols = {name: Fraction(value) for name, value in document["constants"].items()}
    for name, value in _constants(statement, w, series).items():
        if symbols.get(name) != value:
            raise CertificateError(f"constants.{name}: must be {value}, got {symbols.get(name)}")
    for name, text in statement["definitions"].items():
        symbols[name] = value_of(text, symbols)
    _check_conditions(statement, symbols, series)
    truth = _reduced(statement["quantity"], series)[0]
    bound = value_of(statement["bound"], symbols)
    for name, value in {"truth": truth, "bound": bound}.items():
        if Fraction(document[name]) != value:
            raise CertificateError(f"{name}: must be {value}, got {document[name]}")
    if truth <= bound:
        raise CertificateError(f"truth: the bound is not broken, {truth} <= {bound}")
    return truth, bound


def _check_conditions(
    statement: Mapping[str, Any], symbols: dict[str, Fraction], series: Series
) -> None:
    ruled = {name: _reduced(rule, series) for name, rule in statement["round_symbols"].items()}
    for at in range(max((len(numbers) for numbers in ruled.values()), default=1)):
        here = symbols | {n: v[at if len(v) > 1 else 0] for n, v in ruled.items()}
        for name, condition in statement["conditions"].items():
            if not is_met(condition, here):
                raise CertificateError(f"conditions.{name}: not met in round {at}: {condition}")


def _root(square: Fraction) -> Fraction:
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root * root != square:
        raise CertificateError(f"witness: a norm is not a fraction, its square is {square}")
    return root


def _constants(
    statement: Mapping[str, Any], w: Mapping[str, Any], series: Series
) -> dict[str, Fraction]:
    h = [Fraction(value) for value in w["curvatures"]]
    optima = [[Fraction(c) for c in point] for point in w["optima"]]
    centre = [sum(column) / len(optima) for column in zip(*optima, strict=True)]
    offsets = [[c - x for c, x in zip(point, centre, strict=True)] for point in optima]
    pulls = [sum((a * o) ** 2 for a, o in zip(h, offset, strict=True)) for offset in offsets]
    away = [a * (Fraction(x) - c) ** 2 / 2 for a, x, c in zip(h, w["x0"], centre, strict=True)]
    noises = {"sigma": Fraction(w["sigma"]), "sigma_s": Fraction(w["server_sigma"])}
    noises = {"sigma": max(noises.values())} if statement["one_noise_level"] else noises
    return {
        "L": max(h),
        "mu": min(h),
        **noises,
        "q": Fraction(w["q"]),
        "eta_c": Fraction(w["client_lr"]),
        "eta_s": Fraction(w["assist_lr"]),
        "K": Fraction(w["local_steps"]),
        "m": Fraction(w["participants"]),
        "R": Fraction(w["rounds"]),
        "Delta_0": sum(away, Fraction(0)),
        "sigma_G": _root(max(pulls)),
        "D_0": _root(series[0]["squared_distance"]),
    }

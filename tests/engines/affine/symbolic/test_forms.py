"""Affine forms: the same arithmetic on numbers, at random points; everything else refused."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.affine.numbers import (
    FLOAT64,
    RATIONAL,
    InexactRoundError,
    as_fraction,
    entries,
)
from fltheory.engines.affine.symbolic.forms import AffineArray, NotAffineError, Space

SYMBOLS = 3


def random_forms(space: Space, rng: np.random.Generator, shape: tuple[int, ...]) -> AffineArray:
    return AffineArray(space, rng.integers(-4, 5, (*shape, 1 + SYMBOLS)).astype(float))


def at(forms: AffineArray, point: np.ndarray) -> np.ndarray:
    """Evaluate forms with values for the symbols."""
    return forms.constant + forms.linear(SYMBOLS) @ point


ARITHMETIC = {
    "a sum": lambda xp, a, b, k: a + b,
    "a difference": lambda xp, a, b, k: a - b,
    "minus": lambda xp, a, b, k: -a,
    "a multiple": lambda xp, a, b, k: k * a,
    "a multiple on the right": lambda xp, a, b, k: a * k,
    "a share": lambda xp, a, b, k: a / (1 + k * k),
    "a number minus": lambda xp, a, b, k: 3.0 - a,
    "sums": lambda xp, a, b, k: xp.sum(a, axis=1),
    "all": lambda xp, a, b, k: xp.sum(a),
    "means": lambda xp, a, b, k: xp.mean(a, axis=0, keepdims=True),
    "where": lambda xp, a, b, k: xp.where(k > 0, a, b),
    "one after another": lambda xp, a, b, k: xp.concat([a, b], axis=1),
    "side by side": lambda xp, a, b, k: xp.stack([a, b], axis=1),
    "a shape": lambda xp, a, b, k: xp.reshape(a, (3, 2)),
    "an axis more": lambda xp, a, b, k: xp.expand_dims(a, axis=1) + b,
    "rows": lambda xp, a, b, k: a[0] - b[:, 1:2],
    "transposed": lambda xp, a, b, k: a.T,
    "a product with a matrix": lambda xp, a, b, k: a @ k.T,
    "a matrix's product": lambda xp, a, b, k: k.T @ a,
    "taken": lambda xp, a, b, k: xp.take(a, np.array([2, 0]), axis=1),
    "the first power": lambda xp, a, b, k: a**1,
}


@given(st.integers(0, 10_000))
@pytest.mark.parametrize("name", ARITHMETIC)
def test_forms_are_what_numbers_are_at_every_point(name: str, seed: int) -> None:
    """Whole numbers, so that both sides are exact."""
    rng = np.random.default_rng(seed)
    space = Space(FLOAT64, SYMBOLS)
    a, b = random_forms(space, rng, (2, 3)), random_forms(space, rng, (2, 3))
    k, point = rng.integers(-3, 4, (2, 3)).astype(float), rng.integers(-5, 6, SYMBOLS)
    found = ARITHMETIC[name](space.namespace, a, b, k)
    expected = ARITHMETIC[name](np, at(a, point), at(b, point), k)
    assert found.shape == expected.shape
    np.testing.assert_allclose(at(found, point), expected, rtol=1e-14, atol=1e-13)


@given(st.integers(0, 10_000))
def test_fractions_of_forms(seed: int) -> None:
    """(a / 7 - k b) summed, entry by entry against Fraction."""
    rng = np.random.default_rng(seed)
    space = Space(RATIONAL, SYMBOLS)
    numbers = rng.integers(-9, 10, (2, 2, 3, 1 + SYMBOLS))
    a, b = (AffineArray(space, entries(RATIONAL, part)) for part in numbers)
    found = (a / 7 - RATIONAL.parameter(0.1) * b).sum(axis=1)
    for row in range(2):
        for entry in range(1 + SYMBOLS):
            expected = sum(
                Fraction(int(x), 7) - Fraction(int(y), 10)
                for x, y in zip(numbers[0, row, :, entry], numbers[1, row, :, entry], strict=True)
            )
            assert as_fraction(found.values[row, entry]) == expected


REFUSED = {
    "a comparison": lambda x: x > 0,
    "a product": lambda x: x * x,
    "a quotient": lambda x: 1 / x,
    "a power": lambda x: x**2,
    "an absolute value": abs,
    "a truth value": bool,
    "a float": float,
    "numbers": np.asarray,
    "a matrix product": lambda x: x @ x,
    "a minimum": lambda x: x.space.namespace.min(x),
    "a maximum": lambda x: np.maximum(x, 0),
    "a clip": lambda x: np.clip(x, 0, 1),
    "a square root": lambda x: x.space.namespace.sqrt(x),
    "an order": lambda x: x.space.namespace.argsort(x),
    "numpy.exp": np.exp,
    "numpy.sign": np.sign,
    "numpy.median": np.median,
    "numpy.norm": np.linalg.norm,
    "numpy.power": lambda x: np.power(x, 2),
    "the function exp": lambda x: x.space.namespace.exp(x),
    "the method item": lambda x: x.item(),
    "the method argmax": lambda x: x.argmax(),
}


@pytest.mark.parametrize("numbers", [FLOAT64, RATIONAL], ids=["float64", "rational"])
@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_names_what_was_asked_for(what: str, numbers) -> None:
    space = Space(numbers, 2)
    forms = AffineArray(space, entries(numbers, np.array([[[1, 1, 0], [2, 0, 3]]] * 2)))
    with pytest.raises(
        NotAffineError, match=f"takes {what} of a value that depends on the model"
    ) as error:
        REFUSED[what](forms)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "ask", [lambda x: x[0, 0] > 0, lambda x: bool(x[0, 0]), lambda x: float(x[0, 0])]
)
def test_one_entry_is_one_replicas(ask) -> None:
    """A constant too: what one replica answers would be done with all."""
    with pytest.raises(NotAffineError, match="converts a single entry to a number"):
        ask(Space(FLOAT64, 2).constants([[1.0], [2.0]]))


CONSTANTS = {
    "a comparison": lambda xp, a: a > 1,
    "equal": lambda xp, a: a == 2,
    "a square": lambda xp, a: a**2,
    "absolute": lambda xp, a: abs(a),
    "a product": lambda xp, a: a * a,
    "a quotient": lambda xp, a: 1 / (a * a + 1),
    "a minimum": lambda xp, a: xp.min(a, axis=1, keepdims=True),
    "a maximum": lambda xp, a: xp.max(a, axis=0),
    "the lesser": lambda xp, a: xp.minimum(a, 1),
    "between": lambda xp, a: xp.clip(a, -1, 1),
    "an order": lambda xp, a: xp.argsort(a, axis=1, stable=True),
    "any": lambda xp, a: xp.any(a > 2, axis=1),
    "all": lambda xp, a: xp.all(a > -3),
    "less than infinity": lambda xp, a: a < np.inf,
}


@given(st.integers(0, 10_000))
@pytest.mark.parametrize("numbers", [FLOAT64, RATIONAL], ids=["float64", "rational"])
@pytest.mark.parametrize("name", CONSTANTS)
def test_what_stays_constant_is_numbers(name: str, numbers, seed: int) -> None:
    given = np.random.default_rng(seed).integers(-3, 4, (3, 4))
    space = Space(numbers, 2)
    found = CONSTANTS[name](space.namespace, space.constants(given))
    expected = CONSTANTS[name](np, given)
    if isinstance(found, AffineArray):
        found = np.vectorize(lambda item: float(as_fraction(item)))(found.constant)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize(
    "combine", [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt]
)
@pytest.mark.parametrize("value", [0.5, np.array([0.5]), np.float64(0.5)])
def test_a_float_among_fractions_is_named(combine, value) -> None:
    forms = Space(RATIONAL, 1).constants([1, 2])
    with pytest.raises(InexactRoundError, match=r"uses the float 0\.5"):
        combine(forms, value)


def test_casts_of_fractions_are_to_whole_numbers() -> None:
    halves = Space(RATIONAL, 1).constants([Fraction(1, 2), Fraction(5, 2)])
    assert halves.cast(np.dtype(int)).tolist() == [0, 2]
    with pytest.raises(InexactRoundError, match="a cast to float64 would round an exact number"):
        halves.cast(np.dtype(float))


@pytest.mark.parametrize(
    "combine", [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt]
)
def test_what_is_not_an_array_is_no_operand(combine) -> None:
    forms = Space(FLOAT64, 1).constants([1.0])
    with pytest.raises(TypeError, match="a round must create its arrays with the backend, got 'x'"):
        forms.space.forms("x")
    with pytest.raises(TypeError):
        combine(forms, "x")


@pytest.mark.parametrize("made", [np.exp, lambda x: x.space.namespace.exp(x)])
def test_any_function_of_numpys_takes_constants(made) -> None:
    found = made(Space(FLOAT64, 2).constants([[0.0, 1.0]]))
    np.testing.assert_allclose(found.constant, [[1.0, np.e]], rtol=1e-15)
    with pytest.raises(InexactRoundError, match="exp is not available for exact numbers"):
        made(Space(RATIONAL, 2).constants([[0, 1]]))

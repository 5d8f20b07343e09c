"""Numbers of exact rounds: laws of arithmetic in fractions, floats refused, balls that decide."""

from __future__ import annotations

import math
import operator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from threading import Thread

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.affine.numbers import (
    FLOAT64,
    RATIONAL,
    Balls,
    ExactNumber,
    InexactRoundError,
    as_float,
    as_fraction,
    decided,
    entries,
    identity_of,
    with_parameters,
)
from tests.comparison import ALGORITHMS

FRACTIONS = st.fractions(-50, 50, max_denominator=200)
BALLS = Balls(128)
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.truediv]
RELATIONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def exactly(number: ExactNumber) -> Fraction:
    return as_fraction(number.value)


def test_a_float_stands_for_its_decimal() -> None:
    assert as_fraction(0.1) == Fraction(1, 10)
    assert as_fraction(np.float64(1e-3)) == Fraction(1, 1000)
    assert as_fraction(7) == 7
    assert as_fraction(Fraction(2, 3)) == Fraction(2, 3)
    assert as_fraction(fmpq(2, 3)) == Fraction(2, 3)


@pytest.mark.parametrize("value", [math.inf, math.nan, "x", None])
def test_what_is_no_finite_number(value) -> None:
    with pytest.raises(ValueError, match="value must be a finite number, got"):
        as_fraction(value)


@given(FRACTIONS, FRACTIONS, st.sampled_from(OPERATIONS))
def test_fractions_and_balls_agree_with_fractions(a: Fraction, b: Fraction, combine) -> None:
    if combine is operator.truediv and b == 0:
        return
    expected = combine(a, b)
    mine, theirs = RATIONAL.parameter(a), RATIONAL.parameter(b)
    assert exactly(combine(mine, theirs)) == expected
    assert exactly(combine(mine, b)) == expected
    assert exactly(combine(a, theirs)) == expected
    with BALLS.in_use():
        ball = combine(BALLS.parameter(a), BALLS.parameter(b)).value
        middle, radius = (
            int(man) * Fraction(2) ** int(exp)
            for man, exp in (ball.mid().man_exp(), ball.rad().man_exp())
        )
        assert abs(middle - expected) <= radius
        assert float(ball.rad()) <= 1e-30 * (1 + abs(float(expected)))


@given(FRACTIONS, FRACTIONS, st.sampled_from(RELATIONS))
def test_comparisons_are_those_of_fractions(a: Fraction, b: Fraction, relation) -> None:
    assert relation(RATIONAL.parameter(a), RATIONAL.parameter(b)) is relation(a, b)
    assert relation(RATIONAL.parameter(a), b) is relation(a, b)
    assert relation(RATIONAL.parameter(a), math.inf) is relation(0.0, math.inf)


@given(FRACTIONS, st.integers(0, 6))
def test_powers_signs_and_truth(a: Fraction, n: int) -> None:
    number = RATIONAL.parameter(a)
    assert exactly(number**n) == a**n
    assert exactly(-number) == -a
    assert exactly(abs(number)) == abs(a)
    assert bool(number) is bool(a)
    assert float(number) == float(a)


@pytest.mark.parametrize("value", [0.1, np.float64(0.1), 1 / 3])
@pytest.mark.parametrize("combine", [*OPERATIONS, *RELATIONS])
def test_a_float_that_is_mixed_in_is_named(combine, value) -> None:
    for numbers in (RATIONAL, BALLS):
        with pytest.raises(InexactRoundError, match=repr(float(value))):
            combine(numbers.parameter(Fraction(1, 3)), value)
        with pytest.raises(InexactRoundError, match=repr(float(value))):
            combine(value, numbers.parameter(Fraction(1, 3)))


def test_a_quotient_of_two_whole_numbers_is_a_float() -> None:
    with pytest.raises(InexactRoundError, match=r"the float 0\.5 .*not two whole numbers"):
        RATIONAL.parameter(0.25) * (1 / 2)


def test_balls_that_overlap_do_not_decide() -> None:
    wide = arb(1, 0.25)
    for relation, contrary in ((operator.lt, operator.ge), (operator.eq, operator.ne)):
        with pytest.raises(InexactRoundError, match="cannot be decided at this precision"):
            decided(wide, arb(1), relation, contrary)
    assert decided(wide, arb(2), operator.lt, operator.ge)
    assert not decided(wide, arb(2), operator.eq, operator.ne)


def test_roots() -> None:
    assert RATIONAL.root(fmpq(9, 4)) == fmpq(3, 2)
    with pytest.raises(InexactRoundError, match="the square root of 1/2 is not a fraction"):
        RATIONAL.root(fmpq(1, 2))
    with pytest.raises(InexactRoundError, match="the square root of -1 is not a fraction"):
        RATIONAL.root(fmpq(-1))
    assert FLOAT64.root(2.0) == math.sqrt(2)


@given(FRACTIONS)
def test_as_float_is_the_nearest(value: Fraction) -> None:
    assert as_float(fmpq(value.numerator, value.denominator)) == float(value)
    assert as_float(RATIONAL.parameter(value)) == float(value)


@given(st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=6))
def test_entries_keep_shapes_and_decimals(values: list[float]) -> None:
    given = np.array(values).reshape(2, 3)
    made = entries(RATIONAL, given)
    assert made.shape == (2, 3)
    assert [as_fraction(item) for item in made.flat] == [Fraction(repr(v)) for v in values]
    np.testing.assert_array_equal(entries(FLOAT64, made), given)


def numbers_in(thing) -> list:
    """Return every float, fraction and exact number in an algorithm's fields."""
    if isinstance(thing, float | Fraction | ExactNumber):
        return [thing]
    if isinstance(thing, np.ndarray):
        return [number for item in thing.flat for number in numbers_in(item)]
    if isinstance(thing, tuple | list):
        return [number for item in thing for number in numbers_in(item)]
    if is_dataclass(thing):
        parts = [getattr(thing, f.name) for f in fields(thing)]
        return [number for part in parts for number in numbers_in(part)]
    return []


@pytest.mark.parametrize("numbers", [RATIONAL, BALLS], ids=["rational", "balls"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_parameters_of_every_algorithm(name: str, numbers) -> None:
    """Every finite float becomes the decimal that it stands for; the original stays as it is."""
    algorithm = ALGORITHMS[name]
    before = numbers_in(algorithm)
    with BALLS.in_use():
        made = with_parameters(algorithm, numbers)
    assert type(made) is type(algorithm)
    after = numbers_in(made)
    assert len(after) == len(before) > 0
    for old, new in zip(before, after, strict=True):
        if math.isfinite(old):
            assert isinstance(new, ExactNumber)
            assert float(new) == pytest.approx(old, rel=2e-16)
            assert numbers is BALLS or exactly(new) == Fraction(repr(float(old)))
        else:
            assert new == old
    kept = numbers_in(algorithm)
    assert all(isinstance(old, float) for old in kept)
    assert kept == before


def test_balls_that_print_alike_are_told_apart() -> None:
    """Two balls whose difference, or whose radii, are beyond the digits that are printed."""
    with Balls(128).in_use():
        near = [arb(1), arb(1) + arb(2) ** -126, arb(1, 2.0**-200), arb(1, 2.0**-199)]
    assert len({identity_of(ball) for ball in near}) == 4
    assert identity_of(ExactNumber(near[1])) == identity_of(near[1])
    assert identity_of(fmpq(1, 3)) == fmpq(1, 3)


def test_powers_of_balls_that_hold_zero() -> None:
    """FLINT's own are NaN."""
    ball = ExactNumber(arb(0, 0.5))
    for exponent, most in ((2, 0.25), (3, 0.125)):
        power = (ball**exponent).value
        assert power.contains(0)
        assert float(power.rad()) == pytest.approx(most)
    assert (ExactNumber(arb(2)) ** -2).value == arb(0.25)


def test_equal_numbers_have_equal_hashes() -> None:
    numbers = [ExactNumber(fmpq(3)), ExactNumber(arb(3)), 3, Fraction(3)]
    assert len(set(numbers)) == 1
    assert hash(ExactNumber(fmpq(1, 4))) == hash(ExactNumber(arb(0.25))) == hash(Fraction(1, 4))


def test_the_larger_of_balls_that_overlap() -> None:
    larger = ExactNumber(arb(1, 0.5)).maximum(ExactNumber(fmpq(5, 4))).value
    assert larger.contains(fmpq(5, 4))
    assert larger.contains(fmpq(3, 2))
    assert not larger.contains(1)


def test_threads_do_not_change_each_others_precision() -> None:
    """FLINT has one precision for the process: who comes second waits for who came first."""
    seen: list[int] = []

    def other() -> None:
        with Balls(512).in_use():
            seen.append(ctx.prec)

    before, thread = ctx.prec, Thread(target=other)
    with Balls(128).in_use():
        thread.start()
        thread.join(timeout=0.05)
        assert (ctx.prec, seen) == (128, [])
    thread.join()
    assert (ctx.prec, seen) == (before, [512])

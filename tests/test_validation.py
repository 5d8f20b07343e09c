"""Checks of arguments name the argument, what it was and what it must be."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fltheory import validation
from fltheory.algorithms import FedAvg
from fltheory.problems import QuadraticProblem


def test_of_a_long_list_no_more_is_written_out_than_is_shown() -> None:
    counted = []

    class Counted:
        def __repr__(self) -> str:
            counted.append(self)
            return "x"

    assert validation.shown([Counted()] * 10**6) == f"[{'x, ' * 66}x..."
    assert len(counted) < 10**5


def test_real_array_is_a_read_only_copy() -> None:
    source = np.array([[1, 2], [3, 4]])
    array = validation.real_array("a", source, shape="(2, 2)")
    source[0, 0] = 99
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 5.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, np.nan], r"weights must be finite, got nan among its entries"),
        ([-np.inf, 1.0], r"weights must be finite, got -inf among its entries"),
        (["x"], r"weights must be a real array of shape \(n,\), got \['x'\]"),
        ([[1.0], [1.0, 2.0]], r"weights must be a real array of shape \(n,\)"),
        (object(), r"weights must be a real array of shape \(n,\)"),
    ],
)
def test_real_array_refuses(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validation.real_array("weights", value, shape="(n,)")


@pytest.mark.parametrize(
    ("check", "accepted", "refused", "must_be"),
    [
        (
            validation.positive,
            [1e-300, 1, np.float32(2.0)],
            [0, 0.0, -1.0, np.inf, np.nan],
            "a finite number above 0",
        ),
        (
            validation.nonnegative,
            [0, 0.0, 3.5],
            [-1e-300, np.inf, np.nan],
            "a finite number of at least 0",
        ),
        (
            validation.probability,
            [0, 1, 0.5],
            [-1e-9, 1 + 1e-9, np.nan],
            r"a probability in \[0, 1\]",
        ),
    ],
)
def test_numbers(
    check: Callable[[str, float], float],
    accepted: list[float],
    refused: list[float],
    must_be: str,
) -> None:
    for value in accepted:
        answer = check("rate", value)
        assert type(answer) is float
        assert answer == value
    for value in refused:
        with pytest.raises(ValueError, match=rf"^rate must be {must_be}, got .*{value}"):
            check("rate", value)


@pytest.mark.parametrize(("value", "at_least"), [(0, 0), (1, 1), (np.int64(7), 3)])
def test_whole_numbers(value: int, at_least: int) -> None:
    answer = validation.whole_number("rounds", value, at_least=at_least)
    assert type(answer) is int
    assert answer == value


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, "3", None, True, np.nan])
def test_what_is_not_a_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^rounds must be a whole number of at least 1, got"):
        validation.whole_number("rounds", value, at_least=1)


@pytest.mark.parametrize("value", [3, "1", 1.0, True, None, [1]])
def test_choices_are_of_the_same_type_too(value: Any) -> None:
    with pytest.raises(ValueError, match=r"option must be one of 1, 2, got "):
        validation.one_of("option", value, (1, 2))
    validation.one_of("option", 2, (1, 2))


@pytest.mark.parametrize(
    ("check", "accepted", "refused", "message"),
    [
        (validation.text, "a", " ", "it must be a non-empty string, got ' '"),
        (validation.text, "a", None, "it must be a non-empty string, got None"),
        (
            validation.text,
            "\U0001f600",
            "\ud83d",
            r"it must be valid Unicode text, got '\\ud83d'",
        ),
        (validation.is_callable, len, 3, "it must be callable, got 3"),
        (
            lambda name, value: validation.is_callable(name, value, arguments=1),
            len,
            lambda: 3,
            "it must take 1 argument, got <function .*: too many positional arguments",
        ),
        (
            lambda name, value: validation.instance_of(name, value, (int, str), "an id"),
            "a",
            0.5,
            "it must be an id, got 0.5",
        ),
        (
            lambda name, value: validation.tuple_of(name, value, int),
            (1, 2),
            [1],
            r"it must be a tuple of int, got \[1\]",
        ),
        (
            lambda name, value: validation.tuple_of(name, value, int),
            (),
            (1, "2"),
            "it must be a tuple of int, got '2'",
        ),
        (
            lambda name, value: validation.mapping_of(name, value, str, int),
            {},
            {"a": 1, "b": "c"},
            "it must be a mapping of str to int, got 'b': 'c' in it",
        ),
        (
            lambda name, value: validation.mapping_of(name, value, str, int),
            {"a": 1},
            [("a", 1)],
            "it must be a mapping of str to int, got",
        ),
    ],
)
def test_checks_of_other_things(
    check: Callable[[str, Any], None], accepted: object, refused: object, message: str
) -> None:
    check("it", accepted)
    with pytest.raises(ValueError, match=message):
        check("it", refused)


def test_fractions_keep_their_digits_or_are_refused() -> None:
    """A tenth is what 0.1 stands for; a third is no float, nor are 0.1's own binary digits.

    Hyper-parameters stay what they are, and so keep all digits.
    """
    problem = QuadraticProblem([[Fraction(1, 10)]], [[0.0]], sigma=Fraction(1, 4))
    assert problem.hessians[0, 0] == 0.1
    for lost in (Fraction(1, 3), Fraction(0.1)):
        with pytest.raises(ValueError, match=r"hessians must be written in decimals, got Fraction"):
            QuadraticProblem([[lost]], [[0.0]])
        with pytest.raises(ValueError, match=r"sigma must be written in decimals, got Fraction"):
            QuadraticProblem([[1.0]], [[0.0]], sigma=lost)
        assert FedAvg(lost, 1).client_lr == lost

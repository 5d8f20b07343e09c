"""Tables of a file to objects: nothing unknown, nothing missing, one line an error."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fltheory import validation
from fltheory.files.tables import (
    checked_flag,
    checked_table,
    made,
    made_by_kind,
    merged,
)


@dataclass
class Point:
    x: float
    y: float = 2.0

    def __post_init__(self) -> None:
        validation.positive("x", self.x)


def test_made_from_options() -> None:
    assert made(Point, {"x": 1.0}, "point") == Point(1.0)
    assert made_by_kind({"point": Point}, {"kind": "point", "x": 3.0}, "shape") == Point(3.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": 1.0, "z": 0}, "point has x, y, got 'z'"),
        ({"y": 1.0}, "point must have x, got y"),
        ({"x": -1}, "point.x must be a finite number above 0, got -1"),
        ({"x": "one"}, "point.x must be a finite number above 0, got 'one'"),
    ],
)
def test_errors_begin_with_the_option(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message) as error:
        made(Point, options, "point")
    assert "\n" not in str(error.value)


def test_what_is_about_no_option_has_the_table_in_front() -> None:
    with pytest.raises(ValueError, match=r"^two must be one of a kind$"):
        made(_refused, {}, "")
    with pytest.raises(ValueError, match=r"^pair: two must be one of a kind$"):
        made(_refused, {}, "pair")


def _refused() -> None:
    raise ValueError("two must be one of a kind")


def test_what_an_option_is_read_as() -> None:
    read = made(Point, {"x": "1"}, "point", read=lambda where, text: float(text) * len(where))
    assert read == Point(7.0)


@pytest.mark.parametrize("kind", [None, "circle", 3, ["point"]])
def test_unknown_kinds(kind: object) -> None:
    with pytest.raises(ValueError, match=r"^shape.kind must be one of point, got"):
        made_by_kind({"point": Point}, {"kind": kind}, "shape")


def test_tables_and_flags() -> None:
    with pytest.raises(ValueError, match="data must be a table, got 'mnist'"):
        checked_table("mnist", "data")
    with pytest.raises(ValueError, match="equal must be true or false, got 1"):
        checked_flag("equal", 1)


def test_merging() -> None:
    base = {"a": {"kind": "k", "b": 1, "c": 2}, "d": 3}
    assert merged(base, {"a": {"b": 5}}) == {"a": {"kind": "k", "b": 5, "c": 2}, "d": 3}
    assert merged(base, {"a": {"kind": "other"}}) == {"a": {"kind": "other"}, "d": 3}
    assert merged(base, {"a": {"kind": "k", "b": 0}})["a"]["c"] == 2
    assert merged(base, {"d": {"e": 1}})["d"] == {"e": 1}
    assert base == {"a": {"kind": "k", "b": 1, "c": 2}, "d": 3}

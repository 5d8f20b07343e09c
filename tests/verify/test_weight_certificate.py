"""Certificates about FedAU's weights: right ones pass, every changed field is noticed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from fltheory.engines import rational_weight_error
from fltheory.report import weight_certified_text
from fltheory.verify.weight_certificate import (
    both_sides,
    check_weight_certificate,
    read_weight_certificate,
    weight_certificate,
)

RIGHT = weight_certificate(Fraction(1, 3), 4, 2)


def test_both_sides_by_other_means() -> None:
    """The truth by the recursion over intervals, the bound from the paper's variance."""
    p, cutoff = Fraction(1, 3), 4
    errors = rational_weight_error(p, cutoff, 9)
    q = 1 - p
    variance = q / p**2 - (2 * cutoff - 1) * q**cutoff / p - q ** (2 * cutoff) / p**2
    for t in range(1, 9):
        bound = p**2 * variance / max(t // cutoff, 1) + q ** (2 * cutoff)
        assert both_sides(p, cutoff, t) == (errors[t], bound)


def test_a_right_certificate_passes() -> None:
    truth, bound = check_weight_certificate(RIGHT)
    assert truth > bound
    text = weight_certified_text(RIGHT)
    assert "fedau/3-step (printed): REFUTED, checked in fractions" in text
    assert "p = 1/3, cutoff = 4, t = 2" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version must be 1, got 2"),
        ({"theorem": "fedau/3"}, "theorem must be 'fedau/3-step'"),
        ({"reading": "derived"}, "reading must be 'printed'"),
        ({"p": "2/3"}, "truth must be"),
        ({"p": "3/2"}, r"p must be in \(0, 1\], got 3/2"),
        ({"p": "1/0"}, "p must be a fraction, got '1/0'"),
        ({"p": None}, "p must be a fraction, got None"),
        ({"cutoff": 5}, "bound must be"),
        ({"cutoff": 0}, "cutoff must be a whole number of at least 1"),
        ({"cutoff": True}, "cutoff must be a whole number, got True"),
        ({"t": 1.0}, "t must be a whole number, got 1.0"),
        ({"t": 17}, "t must be a whole number from 1 to 16, got 17"),
        ({"truth": "1"}, "truth must be .*, got 1"),
        ({"bound": "0"}, "bound must be .*, got 0"),
    ],
)
def test_every_field_counts(changes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_weight_certificate({**RIGHT, **changes})


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ValueError, match="certificate must have a field t"):
        check_weight_certificate({name: RIGHT[name] for name in RIGHT if name != "t"})


def test_what_is_no_refutation_is_refused() -> None:
    p = Fraction(4, 5)
    with pytest.raises(ValueError, match="must break the bound"):
        weight_certificate(p, 4, 2)
    truth, bound = both_sides(p, 4, 2)
    kept = {**RIGHT, "p": "4/5", "truth": str(truth), "bound": str(bound)}
    with pytest.raises(ValueError, match="truth must exceed the bound"):
        check_weight_certificate(kept)


def test_other_files_are_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    assert read_weight_certificate(path) is None
    for text in ("no json", "[1]", json.dumps({"theorem": "sa-fl/4"})):
        path.write_text(text)
        assert read_weight_certificate(path) is None
    path.write_text(json.dumps(RIGHT))
    assert read_weight_certificate(path) == RIGHT

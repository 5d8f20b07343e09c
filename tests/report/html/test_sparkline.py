"""The small pictures."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

from fltheory.claims.curves import BoundCurve
from fltheory.report.html.sparkline import description, sparkline

NONE = (0.0, 0.0, 0.0)


def curve_of(variable, values, truth, bound, error) -> BoundCurve:
    return BoundCurve(
        "",
        variable,
        "",
        np.array(values, dtype=float),
        np.array(bound),
        truth=np.array(truth),
        truth_error=np.array(error),
    )


def drawn(curve: BoundCurve) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(sparkline(curve))
    return {child.attrib["class"]: child for child in root}


def points(element: ElementTree.Element) -> list[tuple[float, ...]]:
    return [tuple(map(float, pair.split(","))) for pair in element.attrib["points"].split()]


def test_equal_ratios_are_equally_far_apart() -> None:
    shapes = drawn(curve_of("rounds", (1, 10, 100), (1.0, 0.1, 0.01), (10.0, 10.0, 10.0), NONE))
    truth, bound = points(shapes["truth"]), points(shapes["bound"])
    assert [x for x, _ in truth] == [3.0, 60.0, 117.0]
    steps = [truth[0][1] - bound[0][1], truth[1][1] - truth[0][1], truth[2][1] - truth[1][1]]
    assert steps == pytest.approx([26 / 3] * 3, abs=0.11)
    assert {"band", "broken"}.isdisjoint(shapes)


def test_equal_steps_are_equally_far_apart_where_the_variable_may_be_zero() -> None:
    """FedAR's growth takes the values 0, 1/2, 1: a logarithm would end the report."""
    shapes = drawn(curve_of("growth", (0, 1, 2), (1.0, 2.0, 4.0), (1.0, 1.0, 1.0), NONE))
    assert [x for x, _ in points(shapes["truth"])] == [3.0, 60.0, 117.0]


def test_a_cross_marks_the_first_broken_bound_only() -> None:
    curve = curve_of("R", (1, 2, 4), (1.0, 3.0, 5.0), (2.0, 2.0, 2.0), NONE)
    x, y = points(drawn(curve)["truth"])[1]
    assert drawn(curve)["broken"].attrib["d"].startswith(f"M{x - 3:.1f} {y - 3:.1f}")
    assert description(curve).endswith("; truth above bound at R 2")
    unsure = curve_of("R", (1, 2, 4), (1.0, 3.0, 5.0), (2.0, 2.0, 2.0), (4.0, 4.0, 4.0))
    assert "broken" not in drawn(unsure)
    assert "above" not in description(unsure)


def test_sampled_truth_has_its_interval() -> None:
    curve = curve_of("rounds", (1, 10), (1.0, 1.0), (4.0, 4.0), (0.5, 0.0))
    assert len(points(drawn(curve)["band"])) == 4


def test_what_has_no_logarithm_lies_on_the_edges() -> None:
    truth = (0.0, math.nan, 1.0)
    shapes = drawn(curve_of("rounds", (1, 2, 4), truth, (-1.0, math.inf, 8.0), NONE))
    assert points(shapes["truth"])[0] == (3.0, 29.0)
    assert len(points(shapes["truth"])) == 2
    assert [y for _, y in points(shapes["bound"])] == [29.0, 3.0, 3.0]


@pytest.mark.parametrize("at", [(), (5,)])
def test_one_point_is_no_picture(at: tuple[int, ...]) -> None:
    same = tuple(1.0 for _ in at)
    assert sparkline(curve_of("rounds", at, same, same, same)) == ""


def test_a_constant_is_drawn_in_the_middle() -> None:
    shapes = drawn(curve_of("rounds", (1, 2), (1.0, 1.0), (1.0, 1.0), (0.0, 0.0)))
    assert points(shapes["truth"]) == [(3.0, 16.0), (117.0, 16.0)]


def test_its_text_is_escaped() -> None:
    same = (1.0, 1.0)
    assert "<script>" not in sparkline(curve_of('"><script>', (1, 2), same, same, same))

"""Several curves on one axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fltheory.claims.curves import BoundCurve
from fltheory.report import figure
from fltheory.verify import Outcome

X = np.array([1.0, 10.0, 100.0])
ONE = BoundCurve(
    "t/1 (printed)",
    "$R$",
    "$y$",
    X,
    10 / X,
    (Outcome.HOLDS,) * 3,
    truth=1 / X,
    truth_error=0 * X,
    sampled=1.1 / X,
    interval=0.2 / X,
    replicas=7,
    error_probability=1e-3,
)
SILENT = replace(ONE, bound=np.full(3, np.nan), outcomes=(), truth=2 / X)
SAMPLED = replace(
    ONE,
    truth=None,
    truth_error=None,
    outcomes=(Outcome.REFUTED,) * 3,
    error_probability=1e-9,
    replicas=50,
    bound_name="claimed order",
)


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_each_curve_has_its_truth_sample_and_bound_in_its_colour() -> None:
    (axes,) = figure({"a": ONE, "b": SILENT}).axes
    truth, sampled, _, _, bound, *others = axes.lines
    assert sampled.get_color() == truth.get_color() == bound.get_color()
    np.testing.assert_array_equal(truth.get_ydata(), 1 / X)
    np.testing.assert_array_equal(bound.get_ydata(), 10 / X)
    assert bound.get_linestyle() == "--"
    assert (bound.get_marker(), bound.get_markerfacecolor()) == (sampled.get_marker(), "white")
    assert {line.get_color() for line in others} != {truth.get_color()}
    assert not any((line.get_ydata() == 10 / X).all() for line in others)
    ends = np.array([s[:, 1] for s in axes.containers[0].lines[2][0].get_segments()])
    np.testing.assert_allclose(ends, np.array([0.9 / X, 1.3 / X]).T)


def test_the_title_names_every_verdict() -> None:
    drawn = figure({"a": ONE, "b": SILENT, "c": SAMPLED}, title="more")
    assert drawn.axes[0].get_title().replace("\n", " ") == (
        "t/1 (printed): a HOLDS; c REFUTED; no claim on b "
        "(sampled where no line is drawn, wrong with probability at most 1e-9) more"
    )
    other = replace(ONE, name="t/2 (derived)")
    title = figure({"a": ONE, "b": other}).axes[0].get_title()
    assert title == "a: t/1 (printed) HOLDS; b: t/2 (derived) HOLDS"
    assert figure({"b": SILENT}).axes[0].get_title() == "no claim"


def test_the_legend_says_what_the_marks_are() -> None:
    shown = texts(figure({"a": ONE, "c": SAMPLED}, levels={"floor": 0.5}))
    assert shown[:3] == ["a", "c", "floor"]
    assert "line: exact truth" in shown
    assert any("7 to 50 runs" in text and "at most 0.001" in text for text in shown)
    assert {"dashes: bound", "dashes: claimed order"} < set(shown)


def test_panels_share_a_legend() -> None:
    drawn = figure({"first": {"a": ONE}, "second": {"a": SAMPLED}, "third": {"a": ONE}})
    titles = [axes.get_title().replace("\n", " ") for axes in drawn.axes]
    assert titles[0] == "first t/1 (printed): HOLDS"
    assert titles[1].endswith("REFUTED (sampled, wrong with probability at most 1e-9)")
    assert len(drawn.axes) == 3
    assert texts(drawn).count("a") == 1


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shown must be one curve or more, got \{\}"):
        figure({})

"""Figures of a statement's two sides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context, rcParams
from matplotlib.mathtext import MathTextParser

from fltheory import theorems
from fltheory.claims.curves import BoundCurve
from fltheory.claims.statement import Statement
from fltheory.report import figure, write_figure
from fltheory.report.figures.figure_axes import label
from fltheory.verify import Outcome

X = np.array([1.0, 10.0, 100.0])
CURVE = BoundCurve(
    "t/1 (printed)",
    "$R$",
    r"$\mathbb E\|x_R-x_*\|^2$",
    X,
    10 / X,
    (Outcome.INAPPLICABLE, Outcome.HOLDS, Outcome.REFUTED),
    truth=1 / np.sqrt(X),
    truth_error=1e-15 * X,
    sampled=1.1 / np.sqrt(X),
    interval=0.2 / np.sqrt(X),
    replicas=7,
    error_probability=1e-3,
    parts={"first term": 5 / X},
)
STUDENT = (
    "sampled mean, 7 runs; any of the Student's intervals is wrong with probability\nat most 0.001"
)


def named(figure) -> dict[str, object]:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def test_bound_truth_sample_and_parts_stand_on_one_axis() -> None:
    (axes,) = figure(CURVE).axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_array_equal(lines["bound"], CURVE.bound)
    np.testing.assert_array_equal(lines["exact truth"], CURVE.truth)
    np.testing.assert_array_equal(lines["first term"], CURVE.parts["first term"])
    (bars,) = axes.containers
    np.testing.assert_array_equal(bars.lines[0].get_ydata(), CURVE.sampled)
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * CURVE.interval)
    assert bars.get_label() == STUDENT


def test_a_mark_without_a_bar_is_no_certainty() -> None:
    sampled = replace(CURVE, truth=None, truth_error=None)
    agree = replace(sampled, interval=np.array([0.0, 0.1, 0.1]))
    open_end = replace(sampled, interval=np.array([0.1, 0.1, np.nan]))
    before = STUDENT.replace("Student's ", "")
    assert before in named(figure(sampled))
    ends = (
        "; width zero: all runs agree, which is no certainty",
        "; no bar: rare events were not seen",
    )
    for curve, end in zip((agree, open_end), ends, strict=True):
        assert before + end in named(figure(curve))


def test_the_legend_is_below_the_axes() -> None:
    drawn = figure(CURVE)
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    assert legend.get_window_extent().y1 < drawn.axes[0].get_window_extent().y0
    shown = {text.get_text() for text in legend.get_texts()}
    assert {"bound", "exact truth", "first term", "refuted", "a hypothesis fails"} < shown


def test_the_title_names_the_verdict_and_the_axes_the_symbols() -> None:
    (axes,) = figure(replace(CURVE, note="slope"), title="more").axes
    assert axes.get_title() == (
        "t/1 (printed): INAPPLICABLE at $R$ = 1, HOLDS at $R$ = 10, REFUTED at $R$ = 100\n"
        "slope\nmore"
    )
    assert axes.get_xlabel() == "$R$"
    assert axes.get_ylabel() == r"$\mathbb{E}\|x_R-x_*\|^2$"


def test_a_verdict_from_a_sample_says_so_and_so_does_a_truth_of_some_rounds() -> None:
    part = replace(
        CURVE, truth=np.array([1.0, 0.3, np.nan]), truth_error=None, error_probability=1e-9
    )
    drawn = figure(replace(part, outcomes=(Outcome.HOLDS,) * 3))
    title = "t/1 (printed): HOLDS (sampled, wrong with probability at most 1e-9)"
    assert drawn.axes[0].get_title() == title
    assert "exact truth, computed up to 10" in named(drawn)


def test_a_sample_of_the_first_rounds_says_how_far_it_goes() -> None:
    drawn = figure(replace(CURVE, sampled=np.array([1.0, 0.4, np.nan])))
    assert STUDENT.replace("mean", "mean up to 10") in named(drawn)


def test_stretches_that_do_not_hold_are_marked() -> None:
    (axes,) = figure(CURVE).axes
    spans = {patch.get_label(): patch.get_extents().width for patch in axes.patches}
    assert set(spans) == {"a hypothesis fails", "refuted"}


def test_choices_and_limits_are_marked() -> None:
    drawn = figure(CURVE, points={"best": (10.0, 0.3)}, levels={"in the end": 1e-4})
    handles = named(drawn)
    assert handles["best"].get_xydata().tolist() == [[10.0, 0.3]]
    assert list(handles["in the end"].get_ydata()) == [1e-4, 1e-4]
    assert drawn.axes[0].get_ylim()[0] < 1e-4


def test_cases_are_dashes_over_their_names() -> None:
    cases = replace(CURVE, values=np.arange(3.0), labels=("a", "b", "c"), variable="")
    (axes,) = figure(cases).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    drawn = {group.get_label(): group.get_segments() for group in axes.collections[:2]}
    heights = [segment[0][1] for segment in drawn["exact truth"]]
    np.testing.assert_allclose(heights, CURVE.truth)
    assert [float(s[1][0] - s[0][0]) for s in drawn["exact truth"]] == pytest.approx([0.6] * 3)


def test_what_has_no_bound_has_no_line_for_it() -> None:
    drawn = figure(replace(CURVE, bound=np.full(3, np.nan), outcomes=()))
    assert "bound" not in named(drawn)
    assert drawn.axes[0].get_title() == "t/1 (printed): no claim"


def test_a_small_part_of_a_bound_does_not_stretch_the_scale() -> None:
    drawn = figure(replace(CURVE, parts={"tiny": 1e-30 * X}))
    assert drawn.axes[0].get_ylim()[0] > 1e-3


def test_decades_without_a_line_are_left_out() -> None:
    far = replace(CURVE, bound=1e9 * CURVE.bound, parts={})
    (axes,) = figure(far).axes
    assert [text.get_text() for text in axes.texts] == ["7 empty decades left out"]
    low, truth, bound, high = (
        axes.transData.transform((1.0, y))[1]
        for y in (axes.get_ylim()[0], 1.0, 1e8, axes.get_ylim()[1])
    )
    assert low < truth < bound < high
    assert bound - truth < 0.4 * (high - low)
    ticks = axes.get_yticks()
    assert 10.0 in ticks
    assert 1e8 in ticks
    assert not ((ticks > 15.0) & (ticks < 0.9e8)).any()


def test_decades_that_a_line_crosses_stay() -> None:
    crossed = replace(CURVE, bound=np.array([1e10, 1e10, 1.0]), parts={})
    (axes,) = figure(crossed).axes
    assert (axes.get_yscale(), axes.texts[:]) == ("log", [])
    near = replace(CURVE, bound=100 * CURVE.bound, parts={})
    assert figure(near).axes[0].get_yscale() == "log"


@pytest.mark.parametrize("name", ["curve.svg", "curve.png"])
def test_the_same_curve_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    """Whatever the user's own style is, and whether there is the LaTeX that it needs."""
    first, second = tmp_path / "a" / name, tmp_path / "b" / name
    write_figure(figure(CURVE), first)
    own = {"text.usetex": True, "axes.facecolor": "red", "savefig.bbox": "tight"}
    with rc_context(own):
        write_figure(figure(CURVE), second)
        assert rcParams["axes.facecolor"] == "red"
    assert first.read_bytes() == second.read_bytes()
    assert 1000 < first.stat().st_size < 150_000


def quantity_latex(statement: Statement) -> str:
    """Return how its left side is typeset; an order has that of its theorem."""
    quantity = getattr(getattr(statement, "theorem", statement), "quantity", None)
    return getattr(quantity, "latex", "")


@pytest.mark.parametrize(
    "statement",
    [s for s in theorems.registered() if quantity_latex(s)],
    ids=lambda statement: f"{statement.id} {statement.reading}",
)
def test_every_registered_quantity_is_a_label(statement: Statement) -> None:
    MathTextParser("path").parse(label(f"${quantity_latex(statement)}$"))

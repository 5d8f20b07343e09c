"""Figures of a theorem's two sides, and of runs side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fltheory.engines import RoundArrays, Trajectory
from fltheory.report import bound_figure, lines_figure, trajectory_figure, write_bound
from fltheory.report.bound_figure import _PART_STYLES, _RUN_STYLES, _label
from fltheory.verify import BoundCurve, Outcome

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


def lightness(colour: str) -> float:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_bound_truth_sample_and_parts_stand_on_one_axis() -> None:
    (axes,) = bound_figure(CURVE).axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_array_equal(lines["bound"], CURVE.bound)
    np.testing.assert_array_equal(lines["exact truth"], CURVE.truth)
    np.testing.assert_array_equal(lines["first term"], CURVE.parts["first term"])
    (bars,) = axes.containers
    np.testing.assert_array_equal(bars.lines[0].get_ydata(), CURVE.sampled)
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * CURVE.interval)
    assert bars.get_label() == "sampled mean, 7 runs; all intervals hold with 99.9 %"


def test_the_title_names_the_verdict_and_the_axes_the_symbols() -> None:
    (axes,) = bound_figure(CURVE, title="more").axes
    assert axes.get_title() == ("t/1 (printed): HOLDS at 1, REFUTED at 1, INAPPLICABLE at 1\nmore")
    assert axes.get_xlabel() == "$R$"
    assert axes.get_ylabel() == r"$\mathbb{E}\|x_R-x_*\|^2$"


def test_stretches_that_do_not_hold_are_marked() -> None:
    (axes,) = bound_figure(CURVE).axes
    spans = {patch.get_label(): patch.get_extents().width for patch in axes.patches}
    assert set(spans) == {"a hypothesis fails", "refuted"}


def test_lines_differ_without_colour() -> None:
    for styles in (_PART_STYLES, _RUN_STYLES):
        assert len({str(style[0]) for style in styles}) == len(styles)
    markers = [marker for _, marker, _ in _RUN_STYLES]
    assert len(set(markers)) == len(markers)
    assert lightness("#D55E00") - lightness("#0072B2") > 0.02


@pytest.mark.parametrize("name", ["curve.svg", "curve.png"])
def test_the_same_curve_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    first, second = tmp_path / "a" / name, tmp_path / "b" / name
    write_bound(CURVE, first)
    write_bound(CURVE, second)
    assert first.read_bytes() == second.read_bytes()
    assert 1000 < first.stat().st_size < 150_000


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"$\frac1R\sum_{r=1}^{R}$", r"$\frac{1}{R}\sum_{r=1}^{R}$"),
        (r"$\bar w_{T,0}$", r"$\bar{w}_{T,0}$"),
        ("F(w) - F*", "F(w) - F*"),
    ],
)
def test_labels_are_read_by_matplotlib(latex: str, shown: str) -> None:
    assert _label(latex) == shown


def run(values: list[float], error: float | None = None) -> Trajectory:
    array = np.array(values)
    spread = None
    if error is not None:
        errors = np.full(array.size, error)
        spread = RoundArrays(errors, errors, errors)
    return Trajectory(array, array, array, standard_error=spread)


def test_runs_are_drawn_with_their_samples_and_limits() -> None:
    figure = trajectory_figure(
        {"a": run([4.0, 2.0, 1.0])},
        {"a": run([4.0, 2.1, 0.9], error=0.1), "b": run([3.0, 2.0, 1.0])},
        limits={"a": 0.5},
        title="both",
    )
    (axes,) = figure.axes
    assert axes.get_title() == "both"
    assert axes.lines[0].get_ydata().tolist() == [4.0, 2.0, 1.0]
    lowest = [segment[0, 1] for segment in axes.containers[0].lines[2][0].get_segments()]
    np.testing.assert_allclose(lowest, [3.7, 1.8, 0.6])
    assert axes.texts[0].xy == (1.0, 0.5)
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"a", "b"}


def test_lines_and_points_are_named() -> None:
    figure = lines_figure(
        X, {"up": X, "down": 1 / X}, variable="$x$", quantity="$y$", points={"here": (2.0, 3.0)}
    )
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["up", "down", "here"]
    assert axes.lines[-1].get_xydata().tolist() == [[2.0, 3.0]]

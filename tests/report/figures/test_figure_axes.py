"""Axes, labels and styles of figures."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.report.figures.figure_axes import (
    CURVE_STYLES,
    MARKS,
    PART_STYLES,
    blank,
    label,
    set_scales,
    set_title,
)


def lightness(colour: str) -> float:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_curves_and_parts_differ_without_colour() -> None:
    assert len({marker for marker, _ in CURVE_STYLES}) == len(CURVE_STYLES)
    assert len({str(style) for style, _ in PART_STYLES}) == len(PART_STYLES)
    assert not {marker for marker, _ in CURVE_STYLES} & set(MARKS)
    steps = np.diff([lightness(colour) for _, colour in CURVE_STYLES])
    assert (np.abs(steps) > 0.04).all(), steps


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"$\frac1R\sum_{r=1}^{R}$", r"$\frac{1}{R}\sum_{r=1}^{R}$"),
        (r"$\bar w_{T,0}$", r"$\bar{w}_{T,0}$"),
        (r"$\frac1{W_T}\sum_r$", r"$\frac{1}{W_T}\sum_r$"),
        ("F(w) - F*", "F(w) - F*"),
    ],
)
def test_labels_are_read_by_matplotlib(latex: str, shown: str) -> None:
    assert label(latex) == shown


def test_titles_are_broken_between_words_but_not_within_mathematics() -> None:
    _, axes = blank()
    set_title(axes, "one two $a = b$ three", "", "four", width=10)
    assert axes.get_title() == "one two\n$a = b$\nthree\nfour"


def test_scales_are_logarithmic_where_they_can_be() -> None:
    x = np.array([1.0, 2.0, 8.0])
    _, axes = blank()
    set_scales(axes, x, np.array([np.nan, 1.0, np.inf, 100.0]), log_x=True)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_ylim() == pytest.approx((1 / 1.6, 160.0))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "8"]
    _, axes = blank()
    set_scales(axes, x - 1, np.array([-1.0, 0.0, 4.0]), log_x=True)
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "symlog")

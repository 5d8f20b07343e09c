"""Optimal weights as table and figure."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fltheory.claims.curves import BoundCurve
from fltheory.report import write_figure
from fltheory.report.terminal.weights_report import (
    weights_figure,
    weights_summary,
    weights_table,
)
from fltheory.verify import Outcome
from fltheory.weights.client_weights import of_problem
from fltheory.weights.optimum import solve
from fltheory.weights.trade_off import TradeOff


def alike(n_clients: int) -> TradeOff:
    return TradeOff(
        np.full(n_clients, 0.5), np.full(n_clients, 1 / n_clients), a=1.0, b=0.0, bias=1.0
    )


def shown(n_clients: int) -> list[str]:
    problem = alike(n_clients)
    stream = io.StringIO()
    Console(file=stream, width=120).print(weights_table(of_problem(problem)))
    return [line for line in stream.getvalue().splitlines() if "│" in line]


def test_the_table_shows_all_of_few_clients() -> None:
    lines = shown(4)
    assert len(lines) == 4
    assert [part.strip() for part in lines[3].strip("│").split("│")] == [
        "3",
        "0.25",
        "0.5",
        "0.25",
        "0.25",
    ]
    assert len(shown(40)) == 40


def test_the_table_shows_both_ends_of_many_clients() -> None:
    lines = shown(1000)
    assert len(lines) == 41
    assert [line.strip("│ ").split()[0] for line in lines[19:22]] == ["19", "...", "980"]


def test_the_summary_tells_the_errors() -> None:
    """Four alike clients: (1/2 * 4 / 16) / (1/2) = 1/4, and no bias."""
    text = weights_summary(solve(alike(4)))
    assert text.startswith("Multiply each online client's update by its weight q; ")
    assert "clients without weight: 0 of 4." in text
    assert "optimisation error 0.25 + bias error " in text
    assert text.endswith(", newton)")


def test_the_figure_shows_every_client() -> None:
    problem = alike(4)
    upper, middle, lower = weights_figure(problem, solve(problem)).axes
    heights = [bar.get_height() for bar in middle.patches]
    assert heights == pytest.approx(problem.availability.tolist())
    assert [bar.get_height() for bar in upper.patches] == pytest.approx([0.25] * 8)
    assert [bar.get_height() for bar in lower.patches] == pytest.approx([0.25] * 4)
    assert lower.get_xlabel() == "client $k$"


def test_the_figure_of_many_clients_has_dots_in_order_of_availability(tmp_path: Path) -> None:
    pi = np.tile([0.2, 0.8], 5000)
    problem = TradeOff(pi, np.full(10_000, 1e-4), a=1.0, b=0.0, bias=1e9)
    upper, middle, lower = weights_figure(problem, solve(problem)).axes
    assert len(upper.lines) == 2
    assert (np.diff(middle.lines[0].get_ydata()) <= 0).all()
    weights = lower.lines[0].get_ydata()
    np.testing.assert_allclose(weights[:5000], 4e-5, rtol=1e-6)
    np.testing.assert_allclose(weights[5000:], 1.6e-4, rtol=1e-6)
    path = tmp_path / "many.svg"
    write_figure(lambda: weights_figure(problem, solve(problem)), path)
    assert path.stat().st_size < 500_000


def test_beside_the_weights_stands_what_is_said_of_their_error() -> None:
    curve = BoundCurve(
        "t/1 (printed)",
        "",
        "$y$",
        np.arange(2.0),
        np.array([8.0, 9.0]),
        (Outcome.HOLDS,) * 2,
        truth=np.array([2.0, 3.0]),
        truth_error=np.zeros(2),
        sampled=np.array([2.1, 2.9]),
        interval=np.array([0.2, 0.3]),
        replicas=10,
        error_probability=1e-3,
        labels=("equal", "optimal"),
    )
    figure = weights_figure(alike(4), solve(alike(4)), curve)
    errors = figure.axes[-1]
    assert errors.get_title() == "t/1 (printed): HOLDS"
    assert [text.get_text() for text in errors.get_xticklabels()] == ["equal", "optimal"]
    dashes = {c.get_label(): c.get_segments() for c in errors.collections if c.get_label()}
    assert [segment[0][1] for segment in dashes["exact truth"]] == [2.0, 3.0]
    assert [segment[0][1] for segment in dashes["bound"]] == [8.0, 9.0]
    (bars,) = errors.containers
    ends = [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()]
    assert ends == [pytest.approx([1.9, 2.3]), pytest.approx([2.6, 3.2])]


@pytest.mark.parametrize("name", ["weights.svg", "weights.png"])
def test_the_same_weights_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    problem = alike(3)
    first, second = tmp_path / "a" / name, tmp_path / "b" / name
    write_figure(lambda: weights_figure(problem, solve(problem)), first)
    write_figure(lambda: weights_figure(problem, solve(problem)), second)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 1000


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"out must end in .png or .svg, got"):
        write_figure(lambda: weights_figure(alike(2), solve(alike(2))), tmp_path / "weights.pdf")

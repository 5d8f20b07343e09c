"""The page of biases is what the algorithms give, and says what its numbers rest on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from docs.scripts.bias import (
    BiasEntry,
    BiasEvidence,
    Effort,
    LimitBias,
    bias_figure,
    bias_page,
    bias_table,
    bias_text,
)
from fltheory.report.figures.figure_axes import write_figure

PAGE = Path(__file__).parents[2] / "docs" / "bias.md"
BY_PATHS = ("F3AST", "CA-Fed", "FedAU", "FedAR", "FedAWE")


@pytest.fixture(scope="module")
def cells() -> list[BiasEntry]:
    """The table with few paths, which are what takes long, and one after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda pid: {0})
        return list(bias_table(Effort(2, rounds=40)))


@pytest.mark.soundness
def test_the_page_is_current() -> None:
    """What `python docs/scripts/bias.py --check` says."""
    assert PAGE.read_text(encoding="utf-8") == bias_page(list(bias_table()), Effort(), "bias.svg")


def test_what_the_page_says_without_paths_is_current(cells: list[BiasEntry]) -> None:
    made = bias_page(cells, Effort(), "bias.svg")
    kept, shown = (
        [
            line
            for line in page.splitlines()
            if not line.startswith(tuple(f"| {name} |" for name in BY_PATHS))
        ]
        for page in (PAGE.read_text(encoding="utf-8"), made)
    )
    assert kept == shown


def test_cells_are_exact_wherever_a_round_is_affine(cells: list[BiasEntry]) -> None:
    by_paths = {cell.algorithm for cell in cells if cell.bias.grade is BiasEvidence.PATHS}
    assert by_paths == set(BY_PATHS)
    assert all(cell.bias.error < 1e-8 for cell in cells if cell.bias.grade is BiasEvidence.EXACT)
    assert len({(cell.algorithm, cell.process, cell.weights) for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    ("bias", "shown"),
    [
        (LimitBias(0.01234, 1e-12, BiasEvidence.EXACT), "0.0123"),
        (LimitBias(1e-13, 1e-12, BiasEvidence.EXACT), "0"),
        (LimitBias(0.01234, 0.0, BiasEvidence.PATHS), "~0.0123"),
        (LimitBias(0.01234, 0.00567, BiasEvidence.PATHS), "0.012 +- 0.006"),
    ],
)
def test_a_number_says_what_it_rests_on(bias: LimitBias, shown: str) -> None:
    assert bias_text(bias) == shown


def test_remarks_name_algorithms_by_their_numbers(cells: list[BiasEntry]) -> None:
    page = bias_page(cells, Effort())
    assert "under any process: MIFA, FedVARP, SCAFFOLD I, SCAFFOLD II." in page
    assert "some bias if rounds depend on each other: FedAvg-IS, Unbiased." in page
    moved = [
        BiasEntry(c.algorithm, c.process, c.weights, LimitBias(0.5, 1e-12, BiasEvidence.EXACT))
        if (c.algorithm, c.process) == ("FedVARP", "Markov")
        else c
        for c in cells
    ]
    assert "under any process: MIFA, SCAFFOLD I, SCAFFOLD II." in bias_page(moved, Effort())


def test_the_figure_is_written_the_same_again(cells: list[BiasEntry], tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        write_figure(lambda: bias_figure(cells), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()

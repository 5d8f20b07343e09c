"""The notebooks run, and show what they would show now."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import sys
import warnings
from collections.abc import Iterable
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

import matplotlib.pyplot as plt
import nbformat

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Of the eight these take least: one in a kernel, which takes seconds to start, and two without.
IN_A_KERNEL, *IN_THIS_PROCESS = (
    FOLDER / f"{name}.ipynb" for name in ("07-every-loss", "06-pac-learnability", "01-first-tour")
)
LARGEST_IMAGE = 150_000
BASE64_OVERHEAD = 4 / 3


def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(notebook: Any) -> list[list[str]]:
    """Return each code cell's output as text, with figures shown only by their type.

    A kernel may deliver a cell's output in one piece or in several: pieces are joined.
    """
    return [_joined(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def _joined(outputs: Iterable[Any]) -> list[str]:
    pieces = groupby(outputs, key=lambda output: output.get("name"))
    return [
        text
        for stream, those in pieces
        for text in (
            ["".join(output.text for output in those)]
            if stream
            else [str(output.data.get("text/plain")) for output in those]
        )
    ]


def images(notebook: Any) -> list[str]:
    return [
        output.data["image/png"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]


def test_there_is_one_to_start_with_and_one_a_paper() -> None:
    names = " ".join(path.stem for path in NOTEBOOKS)
    for word in ("first-tour", "safari", "ca-fed", "fedau", "fedar", "pac", "every-loss", "bursts"):
        assert word in names


def put_out_here(code: str, namespace: dict[str, Any]) -> str:
    """Return a cell's output as text when run in this process."""
    tree = ast.parse(code.replace("%matplotlib inline", ""))
    last = tree.body[-1] if tree.body else None
    shown = tree.body.pop() if isinstance(last, ast.Expr) and not code.endswith(";") else None
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(tree, "<cell>", "exec"), namespace)
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), "<cell>", "eval"), namespace)
            print(repr(value) if value is not None else "", end="")
        for number in plt.get_fignums():
            print(repr(plt.figure(number)), end="")
            plt.close(number)
    return stream.getvalue()


@pytest.mark.parametrize("path", IN_THIS_PROCESS, ids=attrgetter("stem"))
def test_the_code_puts_out_what_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert put_out_here(cell.source, namespace) == "".join(_joined(cell.outputs))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path == IN_A_KERNEL else pytest.mark.soundness)
        for path in NOTEBOOKS
    ],
    ids=attrgetter("stem"),
)
def test_a_fresh_run_puts_out_what_is_kept(path: Path) -> None:
    kept = nbformat.read(path, as_version=4)
    with warnings.catch_warnings():
        # Warnings of the notebook machinery, not of the notebooks, as the kernel has its own
        # filters.
        warnings.simplefilter("ignore")
        fresh = runner().executed(path)
    assert texts(fresh) == texts(kept)
    assert len(images(fresh)) == len(images(kept)) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=attrgetter("stem"))
def test_outputs_are_kept_small_and_say_nothing_of_the_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert all(len(image) < BASE64_OVERHEAD * LARGEST_IMAGE for image in images(notebook))
    shown = "\n".join("\n".join(cell) for cell in texts(notebook))
    assert not re.search(r"/(work|home|tmp|root|usr)/|0x[0-9a-f]{6,}", shown)
    assert not any("execution" in cell.metadata for cell in notebook.cells)


def test_a_stale_output_would_be_noticed() -> None:
    output = nbformat.v4.new_output("stream", text="5\n")
    stale = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("2 + 2", outputs=[output])])
    output = nbformat.v4.new_output("stream", text="4\n")
    fresh = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("2 + 2", outputs=[output])])
    assert texts(stale) != texts(fresh)


def test_what_is_printed_in_pieces_is_the_same_as_in_one() -> None:
    stream = partial(nbformat.v4.new_output, "stream")
    value = nbformat.v4.new_output("execute_result", data={"text/plain": "3"})
    whole = nbformat.v4.new_code_cell("", outputs=[stream(text="1\n2\n"), value])
    pieces = nbformat.v4.new_code_cell("", outputs=[stream(text="1\n"), stream(text="2\n"), value])
    one, other = (nbformat.v4.new_notebook(cells=[cell]) for cell in (whole, pieces))
    assert texts(one) == texts(other) == [["1\n2\n", "3"]]

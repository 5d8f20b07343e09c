"""Draw the packages and their imports: python docs/examples/house.py FOLDER_OF_THE_PACKAGE OUT.svg.

A box is a package or a module at the root, with a width that grows with its number of files; a line
is an import of one by another. Floors are computed from the imports: every box is above those that
it imports.
"""

from __future__ import annotations

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

# Modules that every floor uses: checks of arguments, exact numbers, progress.
GROUND = {
    "decimals",
    "exact_or_float",
    "files",
    "long_work",
    "read_only",
    "argument_kinds",
    "content",
    "validation",
}


def imports_between(root: Path) -> dict[str, set[str]]:
    """Return the units that the files of each unit of the package import."""
    found: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        unit = path.relative_to(root).parts[0].removesuffix(".py")
        if unit.startswith("__") or unit in GROUND:
            continue
        names = found.setdefault(unit, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(root.name + "."):
                names.add((node.module or "").split(".")[1])
            elif isinstance(node, ast.ImportFrom) and node.module == root.name:
                names.update(name.name for name in node.names)
    return {unit: (names & set(found)) - {unit} for unit, names in found.items()}


def floors_of(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return each unit's floor: the number of units on the longest chain of imports below it."""
    floors: dict[str, int] = {}
    for unit in TopologicalSorter(graph).static_order():
        floors[unit] = 1 + max((floors[below] for below in graph[unit]), default=-1)
    return floors


def draw(root: Path, out: Path) -> None:
    """Draw the units, floor by floor."""
    graph = imports_between(root)
    floors = floors_of(graph)
    rows: dict[int, list[str]] = {}
    for unit in sorted(graph):
        rows.setdefault(floors[unit], []).append(unit)
    sizes = {unit: len(list((root / unit).rglob("*.py"))) or 1 for unit in graph}
    figure = Figure(figsize=(9, 0.55 * len(rows) + 0.6))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    places = {
        unit: ((place + 1) / (len(units) + 1), floor)
        for floor, units in rows.items()
        for place, unit in enumerate(units)
    }
    for unit, below in graph.items():
        for other in sorted(below):
            (x, y), (x_below, y_below) = places[unit], places[other]
            axes.plot([x, x_below], [y, y_below], color="0.82", linewidth=0.7, zorder=1)
    for unit, (x, y) in places.items():
        axes.text(
            x,
            y,
            f"{unit} ({sizes[unit]})" if sizes[unit] > 1 else unit,
            ha="center",
            va="center",
            fontsize=8,
            zorder=2,
            bbox={"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "0.35"},
        )
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    with mpl.rc_context({"svg.hashsalt": "house", "svg.fonttype": "none"}):
        figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))

"""The package's floors: an import never goes up, and only the hardware floor needs torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fltheory

ROOT = Path(fltheory.__file__).parent
FLOORS = {
    "validation": 0,
    "parallel": 0,
    "progress": 0,
    "problems": 1,
    "participation": 1,
    "algorithms": 2,
    "weights": 2,
    "engines": 3,
    "learnability": 2,
    "hardware": 3,
    "fedau": 4,
    "experiments": 4,
    "strategies": 4,
    "theorems": 4,
    "verify": 5,
    "report": 6,
    "commands": 7,
    "cli": 8,
    "__main__": 8,
}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imports_in(source: str, package: list[str]) -> Iterator[str]:
    """Yield the dotted names that a module of ``package`` imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = [*base, *([node.module] if node.module else [])]
            yield from (".".join([*module, name.name]) for name in node.names)


def imports_of(path: Path) -> list[str]:
    package = ["fltheory", *path.relative_to(ROOT).parent.parts]
    return list(imports_in(path.read_text(encoding="utf-8"), package))


def unit_of(path: Path) -> str:
    """Return the subpackage, or the module at the package's root."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def units_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in imports_of(path)]
    return {names[1] for names in parts if names[0] == "fltheory" and len(names) > 1}


def test_import_finder_sees_every_form() -> None:
    source = (
        "import torch.nn as nn\n"
        "from fltheory.engines import exact\n"
        "def f():\n    from . import ball\n    from ..problems import base\n"
    )
    assert list(imports_in(source, ["fltheory", "engines"])) == [
        "torch.nn",
        "fltheory.engines.exact",
        "fltheory.engines.ball",
        "fltheory.problems.base",
    ]


def test_every_unit_has_a_floor() -> None:
    assert {unit_of(path) for path in FILES} <= set(FLOORS)
    assert {"problems", "participation", "algorithms", "engines"} <= {unit_of(p) for p in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_do_not_go_up(path: Path) -> None:
    floor = FLOORS[unit_of(path)]
    above = {unit for unit in units_imported(path) if FLOORS.get(unit, 0) > floor}
    assert not above


def test_units_do_not_import_in_circles() -> None:
    graph: dict[str, set[str]] = {}
    for path in FILES:
        unit = unit_of(path)
        graph.setdefault(unit, set()).update(units_imported(path) - {unit})
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_hardware_floor_imports_torch(path: Path) -> None:
    if unit_of(path) != "hardware":
        assert not [name for name in imports_of(path) if name.split(".")[0] == "torch"]

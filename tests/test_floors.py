"""The package's floors: an import never goes up; torch and Flower are needed by a unit each."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import fltheory
import fltheory.theorems
from fltheory.claims.statement import Statement

ROOT = Path(fltheory.__file__).parent
FLOORS = {
    "read_only": 0,
    "files": 0,
    "long_work": 0,
    "argument_kinds": 0,
    "content": 0,
    "validation": 0,
    "decimals": 0,
    "exact_or_float": 0,
    "problems": 1,
    "participation": 1,
    "algorithms": 2,
    "weights": 2,
    "learnability": 2,
    "logs": 2,
    "engines": 3,
    "hardware": 3,
    "fedau": 4,
    "strategies": 4,
    "flower": 4,
    "numbers": 4,
    "grammar": 4,
    "derivations": 4,
    "advice": 5,
    "evidence": 5,
    "claims": 6,
    "theorems": 7,
    "worst_case": 8,
    "verify": 8,
    "report": 9,
    "sweep": 9,
    "testing": 10,
    "commands": 11,
    "cli": 12,
    "__main__": 12,
}
OPTIONAL = {"torch": "hardware", "flwr": "flower", "distributed": "sweep"}
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


@cache
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


def test_imports_do_not_go_up() -> None:
    """Nor does any unit but one import an optional library."""
    for path in FILES:
        unit = unit_of(path)
        assert not {above for above in units_imported(path) if FLOORS.get(above, 0) > FLOORS[unit]}
        used = {name.split(".")[0] for name in imports_of(path)} & OPTIONAL.keys()
        assert {OPTIONAL[library] for library in used} <= {unit}, path


def test_units_do_not_import_in_circles() -> None:
    graph: dict[str, set[str]] = {}
    for path in FILES:
        unit = unit_of(path)
        graph.setdefault(unit, set()).update(units_imported(path) - {unit})
    TopologicalSorter(graph).prepare()


def test_files_do_not_import_each_other_in_circles() -> None:
    names = {
        ".".join(["fltheory", *path.relative_to(ROOT).with_suffix("").parts]): path
        for path in FILES
        if path.name != "__init__.py"
    }
    graph = {
        name: {found for imported in imports_of(path) if (found := _file(imported, names))} - {name}
        for name, path in names.items()
    }
    TopologicalSorter(graph).prepare()


def _file(imported: str, names: Container[str]) -> str | None:
    """Return the package's file that an imported name is, or is defined in, if any."""
    candidates = (imported, imported.rpartition(".")[0])
    return next((name for name in candidates if name in names), None)


def kinds_of_claims() -> set[str]:
    """Return the names of all classes of statements but the base of all."""
    found: set[str] = set()
    below = [Statement]
    while below:
        kinds = below.pop().__subclasses__()
        found |= {kind.__name__ for kind in kinds if kind.__module__.startswith("fltheory.")}
        below += kinds
    return found


def kinds_asked_in(source: str, kinds: Container[str]) -> set[str]:
    """Return the kinds of claims that ``isinstance`` or ``match`` tests for."""
    asked: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            asked |= {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.MatchClass):
            asked |= {part.id for part in ast.walk(node.cls) if isinstance(part, ast.Name)}
    return {name for name in asked if name in kinds}


def test_nobody_outside_the_claims_asks_which_kind_one_is() -> None:
    kinds = kinds_of_claims()
    assert {"Theorem", "RateClaim", "DecayClaim", "Inequality"} <= kinds
    assert kinds_asked_in("isinstance(one, Theorem | RateClaim)", kinds) == {"Theorem", "RateClaim"}
    outside = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in FILES
        if unit_of(path) != "claims"
    }
    named = {path: text for path, text in outside.items() if any(name in text for name in kinds)}
    assert not {path: found for path in named if (found := kinds_asked_in(named[path], kinds))}

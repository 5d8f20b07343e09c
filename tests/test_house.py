"""The drawing in docs/architecture.md is of the packages that there are, and their imports."""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import fltheory
from tests.test_floors import FLOORS

DOCS = Path(__file__).parents[1] / "docs"
PACKAGE = Path(fltheory.__file__).parent
AGAIN = "python docs/examples/house.py fltheory docs/house.svg"


def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", DOCS / "examples" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_ground_is_floor_0() -> None:
    assert {name for name, floor in FLOORS.items() if floor == 0} == drawing().GROUND


def test_the_drawing_is_of_today() -> None:
    """Packages and imports between them; how many files each has may be of yesterday."""
    shown = (DOCS / "house.svg").read_text(encoding="utf-8")
    names = re.findall(r">([a-z_]+)(?: \([0-9]+\))?</text>", shown)
    graph = drawing().imports_between(PACKAGE)
    assert sorted(names) == sorted(graph), AGAIN
    lines = len(re.findall(r'<g id="line2d_', shown))
    assert lines == sum(len(below) for below in graph.values()), AGAIN


def test_the_files_that_the_page_names_are_there() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page)
    assert len(named) > 20
    homes = (PACKAGE, PACKAGE.parent)
    assert [name for name in named if not any((home / name).is_file() for home in homes)] == []


def test_a_class_name_is_one_thing() -> None:
    """Names that begin with an underscore are their module's alone."""
    declared = re.compile(r"^ *class ([A-Za-z]\w*)[(:]", re.MULTILINE)
    places: dict[str, list[str]] = defaultdict(list)
    for path in (*PACKAGE.rglob("*.py"), *(DOCS / "scripts").glob("*.py")):
        for name in declared.findall(path.read_text(encoding="utf-8")):
            places[name].append(path.name)
    assert len(places) > 400
    assert {name: found for name, found in places.items() if len(found) > 1} == {}

"""Record which functions of the package every test calls, and how long the test takes.

`code_mutants.py` runs the tests that reach the code that a mutant changes, and finds them in the
file that this script writes: one line per test, with numbers for the places that it reaches. A
place is a function, a method, or a name of the module whose value contains a lambda. Calls of a
file's shared fixtures count for every later test of the file. If the file exists, the run continues
after its last line.

    python benchmarks/reached.py FILE [TESTS ...]
"""

from __future__ import annotations

import ast
import cProfile
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType

import pytest
from mutation import name_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "fltheory"
# Tests of whole commands, trainings and pages reach everything, and are nearest to nothing here.
FOLDERS = (
    "verification", "tests/engines", "tests/algorithms", "tests/weights", "tests/theorems",
    "tests/derivations", "tests/claims", "tests/evidence", "tests/grammar", "tests/verify",
    "tests/learnability", "tests/worst_case", "tests/report", "tests/advice",
    "tests/test_declarations.py", "tests/test_every_array.py", "tests/test_fedau_cutoff.py",
    "tests/test_soundness.py",
)  # fmt: skip


@dataclass(frozen=True)
class Reached:
    """The places that a test reaches, as ``file: place``, and its profiled processor time."""

    name: str
    seconds: float
    places: frozenset[str]

    @property
    def file(self) -> str:
        """The test's file."""
        return self.name.partition("::")[0]


def read(path: Path) -> list[Reached]:
    """Return the records of a run, in the order in which the tests ran."""
    names: list[str] = []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        noted = json.loads(line)
        names += noted["new"]
        places = frozenset(names[number] for number in noted["places"])
        found.append(Reached(noted["test"], noted["seconds"], places))
    return found


class Notes:
    """A pytest plugin that writes the places that every test reaches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        before = read(path) if path.exists() else []
        self._known = {found.name for found in before}
        self._numbers: dict[str, int] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if before else []:
            for name in json.loads(line)["new"]:
                self._numbers[name] = len(self._numbers)
        self._of_setups: dict[Path, set[CodeType]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out tests that have been recorded."""
        items[:] = [item for item in items if item.nodeid not in self._known]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Record the calls of fixtures, for all tests of the file."""
        yield from _noted(self._of_setups[item.path])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[bool]:
        """Write a line about a test that has run."""
        start = time.process_time()
        done = yield
        seconds = time.process_time() - start
        codes = self._of_setups[item.path] | self._called
        places = sorted({place for code in codes if (place := _place_of(code)) is not None})
        new = [place for place in places if place not in self._numbers]
        for place in new:
            self._numbers[place] = len(self._numbers)
        line = {
            "test": item.nodeid,
            "seconds": round(seconds, 3),
            "new": new,
            "places": [self._numbers[place] for place in places],
        }
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Record the calls of the test itself."""
        self._called: set[CodeType] = set()
        yield from _noted(self._called)


def _noted(found: set[CodeType]) -> Iterator[None]:
    """Collect the code of every function called in this context."""
    profile = cProfile.Profile(subcalls=False, builtins=False)
    profile.enable()
    try:
        return (yield)
    finally:
        profile.disable()
        found.update(one.code for one in profile.getstats() if isinstance(one.code, CodeType))


@cache
def _place_of(code: CodeType) -> str | None:
    """Return a function's file and name, or None if it is not in the package."""
    path = Path(code.co_filename)
    if path.suffix != ".py" or not path.is_relative_to(ROOT / PACKAGE):  # templates of pages, too
        return None
    name = code.co_qualname.partition(".<")[0]
    if name.startswith("<"):
        name = _name_at(path, code.co_firstlineno)
    return f"{path.relative_to(ROOT / PACKAGE)}: {name}"


@cache
def _body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def _name_at(path: Path, line: int) -> str:
    """Return the name of the module-level statement that contains a line."""
    found = [node for node in _body(path) if node.lineno <= line <= (node.end_lineno or line)]
    return name_of(found[0]) if found else ""


def main() -> int:
    path = Path(sys.argv[1])
    tests = sys.argv[2:] or [str(ROOT / folder) for folder in FOLDERS]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}"]
    return int(pytest.main([*options, *tests], plugins=[Notes(path)]))


if __name__ == "__main__":
    raise SystemExit(main())

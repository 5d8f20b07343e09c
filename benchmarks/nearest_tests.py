"""Choose the tests nearest to a change: those that reach code that behaves differently after it.

`code_mutants.py` runs them. `reached.py` has recorded which functions each test calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from mutation import Mutant, name_of
from reached import Reached

_FILES = 8  # nearest test files
# These go through every module or statement, and only look at the objects made on import.
_OF_EVERY_MODULE = ("tests/test_declarations.py",)
_OF_EVERY_STATEMENT = (
    *("tests/claims/test_statement.py", "tests/grammar/test_printed_form.py"),
    *("tests/grammar/test_units.py", "tests/theorems/test_rounds_of_quantities.py"),
    *("tests/theorems/test_symbols.py", "tests/theorems/test_conditions.py"),
    "tests/theorems/test_what_proofs_need.py",
)

Closeness: TypeAlias = tuple[bool, int, bool]


def nearest_tests(
    module: Path, changed: Mutant, folder: Path, reached: Sequence[Reached], seconds: float
) -> list[str]:
    """Return the tests to run on a mutant, in order, as many as the time allows.

    Half of the time is for tests in the nearest files that reach the change, the rest for other
    tests that reach it. Any time left goes to the other tests in the nearest files. In each of the
    three groups, the cheapest are taken first; tests of the same file run together.

    Parameters
    ----------
    module : Path
        The changed file, from the root of the repository.
    changed : Mutant
        The change.
    folder : Path
        A copy of the repository with the original ``module``.
    reached : sequence of Reached
        The functions that each test reaches, and its time.
    seconds : float
        Processor time for all tests.
    """
    body = ast.parse((folder / module).read_text(encoding="utf-8")).body
    told = _telling_places(f"{module.relative_to('fltheory')}: ", body, changed)
    everywhere: tuple[str, ...] = ()
    if not _is_told_inside(body, changed):
        of_statements = _OF_EVERY_STATEMENT if "theorems" in module.parts else ()
        everywhere = (*_OF_EVERY_MODULE, *of_statements)
    near = _closeness(module, body, changed, folder, reached)
    files = [*everywhere, *sorted(near, key=near.__getitem__, reverse=True)[:_FILES]]
    cheapest = sorted(reached, key=lambda test: test.seconds)
    come_by = [test for test in cheapest if told & test.places or test.file in everywhere]
    rest = [test for test in cheapest if test.file in files]
    chosen: dict[str, float] = {}
    _take(chosen, (test for test in come_by if test.file in files), seconds / 2)
    _take(chosen, come_by, seconds)
    _take(chosen, rest, seconds)
    in_turn = {file: turn for turn, file in enumerate(dict.fromkeys(map(_file_of, chosen)))}
    return sorted(chosen, key=lambda test: in_turn[_file_of(test)])


def _take(chosen: dict[str, float], tests: Iterable[Reached], seconds: float) -> None:
    """Add tests, with their times, until they take ``seconds`` in total."""
    used = sum(chosen.values())
    for test in tests:
        if test.name not in chosen:
            used += test.seconds
            if used > seconds:
                return
            chosen[test.name] = test.seconds


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _telling_places(home: str, body: Sequence[ast.stmt], changed: Mutant) -> set[str]:
    """Return the places, named as in `reached.py`, that behave differently after a change.

    A change inside a function or method shows in that function. A change in code that runs on
    import shows in its lambdas, and in whatever in the module names it, directly or through other
    names.
    """
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    if _is_told_inside(body, changed):
        for name in _methods(classes.get(changed.place), changed.line):
            return {home + name}
        return {home + changed.place}
    told, new = set[str](), {changed.place}
    while new:
        told |= new
        new = {name_of(node) for node in body if new & _named_in(node)} - told
    told |= {method for name in told for method in _methods(classes.get(name))}
    return {home + name for name in told}


def _is_told_inside(body: Sequence[ast.stmt], changed: Mutant) -> bool:
    """Return whether a change is inside a function or method.

    Lambdas in assigned values do not count, as they may be called on import.
    """
    whole = body[changed.statement]
    return bool(changed.lines) and isinstance(whole, ast.FunctionDef | ast.ClassDef)


def _methods(node: ast.ClassDef | None, line: int | None = None) -> list[str]:
    """Return a class's methods, or only the one containing a line."""
    if node is None:
        return []
    return [
        f"{node.name}.{part.name}"
        for part in node.body
        if isinstance(part, ast.FunctionDef)
        and (line is None or part.lineno <= line <= (part.end_lineno or line))
    ]


def _named_in(node: ast.stmt) -> set[str]:
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}


@cache
def _words_and_imports(path: Path) -> tuple[set[str], set[str]]:
    """Return a test file's words, and the dotted names of its imports."""
    text = path.read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    dotted = {f"{node.module}.{name.name}" for node in imports for name in node.names}
    return set(re.findall(r"\w+", text)), dotted | {str(node.module) for node in imports}


def _closeness(
    module: Path,
    body: Sequence[ast.stmt],
    changed: Mutant,
    folder: Path,
    reached: Sequence[Reached],
) -> Mapping[str, Closeness]:
    """Return how close every test file is to a module: whether it mirrors, imports or names it.

    Proofs are computed while tests are collected, which does not show in the tests' own calls, so a
    file that imports the module is nearer.
    """
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names = {name for name in defined if not name.startswith("_")} | {changed.place}
    home = Path("tests", *module.parts[1:-1])
    own = home / f"test_{module.name}"
    # A paper's modules are mirrored one folder up, by files with the paper's name before theirs.
    mirrors = (own, home.parent / f"test_{home.name}_{module.name}")
    stem = re.match(r"sa_fl|ca_fed|[a-z]+", module.stem)
    # A paper's modules have the same names in every paper's folder.
    subjects = [module.parent.name, *([stem[0]] if stem is not None else [])]

    dotted = ".".join(module.with_suffix("").parts)

    def near(path: Path) -> Closeness:
        words, imported = _words_and_imports(folder / path)
        same = any(subject in path.stem for subject in subjects)
        score = 3 * same + 3 * (dotted in imported) + len(names & words)
        return path in mirrors, score, path.parent == own.parent

    return {file: near(Path(file)) for file in sorted({test.file for test in reached})}

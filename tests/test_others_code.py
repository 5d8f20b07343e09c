"""The page on other people's code is what was measured, and its rounds are the papers'."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fltheory.testing import run_of
from fltheory.testing.conformance.case import QuadraticClient

ROOT = Path(__file__).parent.parent
HOME = ROOT / "benchmarks" / "others_code"
PAGE = (ROOT / "docs" / "others-code.md").read_text(encoding="utf-8")
RESULTS = json.loads((HOME / "results.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def modules() -> dict[str, ModuleType]:
    """Return the scripts as modules, as their folder is not a package."""
    from importlib import import_module

    sys.path.insert(0, str(HOME))
    try:
        return {name: import_module(name) for name in ("formulas", "measure", "page")}
    finally:
        sys.path.remove(str(HOME))


def test_tables_are_of_the_results(modules: dict[str, ModuleType]) -> None:
    assert modules["page"].rendered(PAGE, RESULTS) == PAGE
    changed = json.loads(json.dumps(RESULTS))
    changed["rounds"][0]["actual"][-1] += 1
    assert modules["page"].rendered(PAGE, changed) != PAGE


def test_everything_listed_was_measured(modules: dict[str, ModuleType]) -> None:
    listed = [
        (library, implementation, algorithm)
        for library, entries in modules["measure"].TABLE.items()
        for implementation, algorithm, *_ in entries
    ]
    measured = [(e["library"], e["implementation"], e["algorithm"]) for e in RESULTS["entries"]]
    assert sorted(measured) == sorted(listed)
    assert len(RESULTS["libraries"]) >= 3
    assert len(measured) >= 6


def test_each_failure_is_read_and_explained(modules: dict[str, ModuleType]) -> None:
    failing = {(e["library"], e["implementation"]) for e in RESULTS["entries"] if not e["conforms"]}
    assert failing == set(modules["page"].DIFFERS)
    titles = re.findall(r"^### (.*)$", PAGE, flags=re.MULTILINE)
    anchors = {
        re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.partition(" {")[0].lower()).strip())
        for title in titles
    } | set(re.findall(r"\{ #(\S+) \}", PAGE))
    assert {anchor for _, anchor in modules["page"].DIFFERS.values()} <= anchors


def test_what_conforms_is_near_the_formula() -> None:
    for entry in RESULTS["entries"]:
        near = max(entry["from_formula"].values()) <= 10 * entry["tolerance"]
        # The step of fluke's global_step is fixed at 1 in the case that is compared.
        if entry["implementation"] != "SCAFFOLD, global_step":
            assert near == entry["conforms"], entry["implementation"]


def test_rounds_are_the_formulas(modules: dict[str, ModuleType]) -> None:
    measure = modules["measure"]
    kept = iter(RESULTS["rounds"])
    homes = [r for library in measure.TABLE for r in measure.ROUNDS if r[0] == library]
    for library, implementation, algorithm, *case in homes:
        one = next(kept)
        assert (one["library"], one["implementation"]) == (library, implementation)
        given, told = measure.small_case(*case)
        expected = measure.formula_of(algorithm)(*given, **told).ravel()
        np.testing.assert_array_equal(one["paper"], expected)
        assert np.abs(np.array(one["actual"]) - expected).max() > 0.1
        # The page works out the last model of both, in plain numbers.
        for value in (one["paper"][-1], one["actual"][-1]):
            assert f"{value:g}" in PAGE.partition("<!-- end of rounds -->")[2]
    assert next(kept, None) is None


@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox", "fednova", "scaffold", "mifa"])
def test_formulas_are_those_of_the_package(modules: dict[str, ModuleType], algorithm: str) -> None:
    clients = [
        QuadraticClient(np.diag([0.5, 1.0]), np.array([1.0, 0.0]), n_samples=3),
        QuadraticClient(np.diag([1.5, 1.0]), np.array([-1.0, 2.0]), n_samples=1),
        QuadraticClient(np.diag([1.0, 2.0]), np.array([0.0, -1.0]), n_samples=4),
    ]
    trace = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]], dtype=bool)
    told = {"client_lr": 0.1, "local_steps": 2, "server_lr": 0.5}
    options = {
        "fedavg": [{"weighting": "n_samples"}, {"weighting": "uniform"}],
        "fedprox": [{"weighting": "n_samples", "proximal": 0.5}],
        "fednova": [{"local_steps": (1, 3, 2)}],
        "scaffold": [{"option": 1}, {"option": 2}],
        "mifa": [{"start": "wait"}, {"start": "zero"}],
    }
    x0 = np.array([2.0, -1.0])
    for more in options[algorithm]:
        formula = modules["measure"].formula_of(algorithm)(x0, clients, trace, **(told | more))
        ours = run_of(algorithm)(x0, clients, trace, **(told | more))
        np.testing.assert_allclose(formula, ours, rtol=0, atol=1e-13)


def test_shims_compile() -> None:
    shims = sorted((HOME / "shims").glob("*.py"))
    assert {shim.stem for shim in shims} >= set(RESULTS["libraries"])
    for shim in shims:
        compile(shim.read_text(encoding="utf-8"), str(shim), "exec")


def test_environments_are_pinned() -> None:
    for library, about in RESULTS["libraries"].items():
        lines = (HOME / "requirements" / f"{library}.txt").read_text(encoding="utf-8").splitlines()
        assert lines
        assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+", line) for line in lines)
        assert any(line.endswith(f"=={about['version']}") for line in lines)

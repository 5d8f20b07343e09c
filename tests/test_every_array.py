"""No array that the package hands out can be written to: every public class is found and tried."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fltheory
from fltheory import algorithms, engines, participation, problems, theorems
from fltheory.engines import Setting
from fltheory.engines.trajectory import Trajectory
from fltheory.weights.trade_off import TradeOff
from tests.array_examples import examples
from tests.arrays import arrays_in, can_be_written_to

ROOT = Path(fltheory.__file__).parent
NOT_HANDED_OUT = {
    "CorrelatedSolution",
    "DifferenceForm",
    "Hessian",
    "OnOffProgram",
    "ProgramOptimum",
    "RichProgram",
    "RichSolution",
    "SettingView",
    "SolvedPhases",
}  # steps of solvers, gone when they return
KEEPS_TENSORS = {"images"}
IN_NEED_OF_TORCH = "hardware/"


@cache
def _modules() -> Mapping[str, ast.Module]:
    paths = sorted(ROOT.rglob("*.py"))
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths
    }


@cache
def _array_types() -> re.Pattern[str]:
    """Return a pattern for names of array types: NumPy's and what the package makes of them."""
    named = []
    for node in (node for tree in _modules().values() for node in tree.body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Subscript | ast.BinOp
        ):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                named.append((target.id, ast.unparse(node.value)))
    names = {"NDArray", "ndarray"}
    while True:
        pattern = re.compile(rf"\b({'|'.join(sorted(names))})\b")
        found = names | {name for name, made_of in named if pattern.search(made_of)}
        if found == names:
            return pattern
        names = found


def _is_of_arrays(annotation: ast.expr | None) -> bool:
    text = "" if annotation is None else ast.unparse(annotation)
    return "Callable" not in text and _array_types().search(text) is not None


# What is passed from step to step of a run is its own there, but for these.
OF_A_RUN = ("engines/", "flower/", "testing/conformance/", "worst_case/checker/")
HANDED_OUT_BY_RUNS = {
    *("QuadraticForm", "RoundArrays", "Setting", "StationaryLimit", "Trajectory", "WeightError"),
    *("BiasedExcessLoss", "ParticipantExcessLoss", "ParticipantGradientSum", "QuadraticClient"),
}


def _hands_out_arrays(definition: ast.ClassDef) -> bool:
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and _is_of_arrays(node.annotation):
            return True
        if isinstance(node, ast.FunctionDef) and _is_of_arrays(node.returns):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(name.endswith("property") for name in decorators):
                return True
    return False


def _is_public(module: str, definition: ast.ClassDef) -> bool:
    if module.startswith(OF_A_RUN):
        return definition.name in HANDED_OUT_BY_RUNS
    return not definition.name.startswith("_") and definition.name not in NOT_HANDED_OUT


def classes_with_arrays() -> Iterator[tuple[str, ast.ClassDef]]:
    for module, tree in _modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and _hands_out_arrays(node):
                bases = {ast.unparse(base) for base in node.bases}
                if "Protocol" not in bases and _is_public(module, node):
                    yield module, node


def _all_bases() -> Mapping[str, set[str]]:
    nodes = [node for tree in _modules().values() for node in ast.walk(tree)]
    return {
        node.name: {ast.unparse(base) for base in node.bases}
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }


def test_the_finder_of_classes_sees_every_form() -> None:
    assert {"FloatArray", "Masks", "ClientIndices", "Labels", "Partition"} <= set(
        _array_types().pattern.strip(r"\b()").split("|")
    )
    source = "class A:\n{}\n"
    for body, expected in [
        ("    x: FloatArray", True),
        ("    x: Masks | None = None", True),
        ("    x: Mapping[str, FloatArray]", True),
        ("    @cached_property\n    def x(self) -> tuple[FloatArray, float]: ...", True),
        ("    @property\n    def x(self) -> FloatArray: ...", True),
        ("    def x(self) -> FloatArray: ...", False),
        ("    x: Callable[[], FloatArray]", False),
        ("    x: float", False),
    ]:
        (node,) = ast.parse(source.format(body)).body
        assert isinstance(node, ast.ClassDef)
        assert _hands_out_arrays(node) is expected, body


def test_every_public_class_with_arrays_keeps_them_read_only() -> None:
    bases = _all_bases()

    def is_safe(name: str) -> bool:
        return name == "ReadOnlyArrays" or any(map(is_safe, bases.get(name, ())))

    found = list(classes_with_arrays())
    assert len(found) > 40
    assert [f"{module}: {node.name}" for module, node in found if not is_safe(node.name)] == []


def test_no_function_keeps_arrays_that_can_be_written_to() -> None:
    """Whoever caches an array passes it through `read_only`."""
    loose = []
    for module, tree in _modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and _is_of_arrays(node.returns):
                names = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
                returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
                kept = re.search(r"\b(lru_)?cache\b", names) and node.name not in KEEPS_TENSORS
                if kept and not all(
                    value is not None and ast.unparse(value).startswith("read_only(")
                    for value in returned
                ):
                    loose.append(f"{module}: {node.name}")
    assert loose == []


def test_no_array_of_any_public_object_can_be_written_to() -> None:
    seen: dict[int, object] = {}
    found = [item for one in examples() for item in arrays_in(one, type(one).__name__, seen)]
    assert len(found) > 150
    assert [place for place, array in found if can_be_written_to(array)] == []
    reached = {base.__name__ for one in seen.values() for base in type(one).__mro__}
    outside = {
        f"{module}: {node.name}"
        for module, node in classes_with_arrays()
        if not module.startswith(IN_NEED_OF_TORCH) and node.name not in reached
    }
    assert not outside, "examples() must have an object of each"


def test_no_array_of_any_registered_setting_can_be_written_to() -> None:
    seen: dict[int, object] = {}
    for statement in theorems.registered():
        for name, regime in getattr(statement, "regimes", {}).items():
            setting = regime.setting
            if isinstance(setting, Setting):
                parts = {"x0": setting.x0, "problem": vars(setting.problem)}
                for place, array in arrays_in(parts, f"{statement.id} {name}", seen):
                    assert not can_be_written_to(array), place


HALF, MASKS = [0.5, 0.5], [[True, False], [False, True]]
FEATURES, LABELS = [[[0.0], [1.0]], [[2.0], [3.0]]], [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (problems.QuadraticProblem, (np.eye(2), np.eye(2))),
        (lambda w: problems.QuadraticProblem(np.eye(2), np.eye(2), target_weights=w), (HALF,)),
        (lambda *data: problems.LogisticProblem(*data, ridge=1.0), (FEATURES, LABELS)),
        (lambda x: problems.LogisticProblem(x, LABELS, ridge=1.0), (FEATURES,)),
        (
            lambda *data: problems.MultinomialProblem(*data, n_classes=2, ridge=1.0),
            (FEATURES, LABELS),
        ),
        (lambda x: problems.nonconvex(3, 2, L=2.0, sigma_G=1.0, x_star=x), (HALF,)),
        (lambda c: problems.Ball(c, 1.0), (HALF,)),
        (participation.Bernoulli, (HALF,)),
        (lambda p: participation.AtMost(p, 1), (HALF,)),
        (participation.Cyclic, ([2, 2], [0, 1], [1, 1])),
        (participation.MarkovOnOff, (HALF, HALF)),
        (lambda s: participation.MarkovOnOff(HALF, HALF, start=s), ([1.0, 0.0],)),
        (participation.FiniteChain, ([[0.5, 0.5], [0.25, 0.75]], MASKS)),
        (participation.Trace, (MASKS,)),
        (lambda *w: algorithms.Unbiased(*w, 0.1, 1), (HALF, HALF)),
        (lambda w: algorithms.F3ast(w, 1, 0.1, 1), (HALF,)),
        (
            lambda w, p: algorithms.CAFed(w, 0.1, 1, availability=p, correlation=p),
            (HALF, HALF),
        ),
        (lambda p, w, a: TradeOff(p, w, a=a, b=1.0, bias=1.0), (HALF, HALF, HALF)),
        (Trajectory, (HALF, HALF, HALF, {"more": np.ones(2)})),
        (
            lambda x0: engines.Setting(
                algorithms.FedAvg(0.1, 1),
                problems.QuadraticProblem(np.eye(2), np.eye(2)),
                participation.UniformSubset(2, 1),
                1,
                x0,
            ),
            (HALF,),
        ),
    ],
)
def test_arrays_of_a_caller_are_copied_and_left_as_they_are(make: Any, arguments: Any) -> None:
    given = [value if isinstance(value, dict) else np.array(value) for value in arguments]
    made = make(*given)
    before = {place: array.copy() for place, array in arrays_in(made, "", {})}
    assert before
    for array in (item for _, item in arrays_in(given, "", {})):
        array.flat[:] = ~array if array.dtype == bool else array + 7
    after = dict(arrays_in(made, "", {}))
    for place, array in before.items():
        np.testing.assert_array_equal(after[place], array, err_msg=place)

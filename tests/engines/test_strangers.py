"""Every engine on rounds that somebody else wrote: a right number, or a clear refusal."""

# ruff: noqa: NPY002

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from strangers import ENGINES, KINDS, Kind, PlainTruth, plain_truth, setting_of

import fltheory
from fltheory.engines import Setting, exact, paths
from fltheory.evidence.truths import Sampling, truth
from fltheory.evidence.verdict import Grade, Outcome
from fltheory.theorems import BoundedQuantity, RoundRange, Theorem
from fltheory.verify import check

REPLICAS = 400
PACKAGE = Path(fltheory.__file__).parent
CASES = [
    pytest.param(kind, where, id=f"{kind.name}-{where}")
    for kind in KINDS.values()
    for where in kind.on
]


@pytest.fixture(autouse=True)
def outside_restored() -> Iterator[None]:
    """Strangers change what belongs to all."""
    generator, errors = np.random.get_state(), np.geterr()
    np.random.seed(1)
    yield
    np.random.set_state(generator)
    np.seterr(**errors)


@cache
def known(kind: Kind, where: str) -> PlainTruth:
    return plain_truth(kind.make, where, kind.right)


def computed(engine: Callable[[Setting], Any], setting: Setting) -> tuple[Any, Any, bool]:
    """Return an engine's numbers, how far they may be off, and whether they were sampled."""
    run = engine(setting)
    error = run.rounding_error
    values = run.squared_distance
    return values, np.zeros_like(values) if error is None else error.squared_distance, False


def found(setting: Setting) -> tuple[Any, Any, bool]:
    """Return the same of `truth`."""
    run = truth(setting, (), Sampling(replicas=REPLICAS))
    values = run.trajectory.squared_distance
    if run.trajectory.rounding_error is None and run.grade is not Grade.STATISTICAL:
        return values, np.zeros_like(values), False
    lower, upper = run.interval("squared_distance")
    return (lower + upper) / 2, (upper - lower) / 2, run.grade is Grade.STATISTICAL


ANSWERS: dict[str, Callable[[Setting], tuple[Any, Any, bool]]] = {
    "exact": partial(computed, exact),
    "enclosed": partial(computed, partial(exact, arithmetic="enclosed")),
    "paths": partial(computed, paths),
    "truth": found,
}


def refused(error: Exception, kind: Kind, engine: str) -> str:
    """Judge an error: '' if it is the package's own, and right for this kind."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    if not isinstance(error, ValueError) or not Path(last).is_relative_to(PACKAGE):
        return f"a traceback: {type(error).__name__}: {error}"
    if engine in kind.answers:
        return f"a plain round is refused: {error}"
    if kind.right == "random" and engine in ("truth", "check"):
        return f"a random round is refused: {error}"
    return ""


def answered(values: Any, error: Any, sampled: bool, kind: Kind, where: str) -> str:
    """Judge numbers: '' if they are right, and of a kind that may be given."""
    if kind.right == "impure":
        return f"an impure round has an answer: {values[-1]}"
    if kind.right == "random" and not sampled:
        return f"a random round is computed: {values[-1]} +- {error[-1]}"
    if kind.right == "plain" and sampled:
        return "a plain round is sampled"
    plain = known(kind, where)
    allowed = error + plain.within + 1e-12 * (1 + plain.squared_distance)
    wrong = np.flatnonzero(~(np.abs(values - plain.squared_distance) <= allowed))
    if wrong.size:
        r = wrong[-1]
        return f"after round {r}: {values[r]} +- {error[r]}, not {plain.squared_distance[r]}"
    return ""


def fault(kind: Kind, where: str, engine: str) -> str:
    """Return what an engine does wrong, or ''."""
    if engine == "check":
        return fault_of_check(kind, where)
    try:
        values, error, sampled = ANSWERS[engine](setting_of(kind.make, where))
    except Exception as raised:
        return refused(raised, kind, engine)
    return answered(values, error, sampled, kind, where)


def claim(bound: float) -> Theorem:
    return Theorem(
        id="stranger/bound",
        reading="printed",
        title="a bound on the squared distance",
        source="this test",
        quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "text", "latex"),
        bound=sp.Rational(repr(float(bound))),
        hypotheses=(),
        meanings={},
        constants=lambda setting: {},
    )


def fault_of_check(kind: Kind, where: str) -> str:
    """Claim a little more and a little less than is true."""
    plain = known(kind, where) if kind.right != "impure" else None
    last, within = (1.0, 0.0) if plain is None else (plain.squared_distance[-1], plain.within[-1])
    for bound, wrong, right in (
        (last + within + 1e-6 * last + 1e-11, Outcome.REFUTED, Outcome.HOLDS),
        (last - within - 1e-6 * last - 1e-11, Outcome.HOLDS, Outcome.REFUTED),
    ):
        if bound <= 0:
            continue
        try:
            verdict = check(claim(bound), setting_of(kind.make, where), replicas=REPLICAS)
        except Exception as raised:
            return refused(raised, kind, "check")
        if kind.right == "impure":
            return f"an impure round has a verdict: {verdict.outcome.name}"
        if verdict.outcome is wrong or (kind.right == "plain" and verdict.outcome is not right):
            return f"truth {last}, claim <= {bound}: {verdict.outcome.name}, {verdict.evidence}"
        if "enclosed" in kind.answers and verdict.evidence.grade is not Grade.EXACT:
            return f"a plain round is graded {verdict.evidence}"
        if kind.right == "random" and verdict.evidence.grade is not Grade.STATISTICAL:
            return f"a random round is graded {verdict.evidence.grade.name}"
    return ""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("kind", "where"), CASES)
def test_right_or_refused(kind: Kind, where: str, engine: str) -> None:
    assert fault(kind, where, engine) == ""

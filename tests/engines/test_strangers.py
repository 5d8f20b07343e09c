"""Every engine on rounds that somebody else wrote: a right number, or a clear refusal."""

# ruff: noqa: NPY002

from __future__ import annotations

import math
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sympy as sp
from strangers import ENGINES, KINDS, ChangeableStep, Kind, PlainTruth, plain_truth, setting_of

import fltheory
from fltheory.algorithms import FedAvg, Harmonic, Scheduled
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact, paths
from fltheory.engines.affine.numbers import InexactRoundError
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.evidence.truths import Sampling, truth
from fltheory.evidence.verdict import Grade, Outcome
from fltheory.grammar.symbols import symbol
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import BoundedQuantity, Hypothesis, RoundRange, Theorem
from fltheory.verify import check
from tests.drawn import a_tenth

REPLICAS = 100
PACKAGE = Path(fltheory.__file__).parent
CASES = a_tenth((name, engine) for name in KINDS for engine in ENGINES)


def of(right: str) -> list[Kind]:
    return [kind for kind in KINDS.values() if kind.right == right]


@pytest.fixture(autouse=True)
def outside_restored() -> Iterator[None]:
    """Strangers change what belongs to all."""
    generator, pythons, errors = np.random.get_state(), random.getstate(), np.geterr()
    np.random.seed(1)
    random.seed(1)
    yield
    os.environ.pop("ROUND", None)
    random.setstate(pythons)
    np.random.set_state(generator)
    np.seterr(**errors)


@cache
def known(kind: Kind, where: str) -> PlainTruth:
    return plain_truth(kind.make, where, kind.right)


Answer = tuple[Any, Any, bool]
"""The least and the most that ``E||x_r - x*||^2`` may be by an engine, and whether by a sample."""


def computed(engine: Callable[[Setting], Any], setting: Setting) -> Answer:
    run = engine(setting)
    # Runs that are followed one by one state no error.
    error = 0.0 if run.rounding_error is None else run.rounding_error.squared_distance
    return run.squared_distance - error, run.squared_distance + error, False


def found(setting: Setting) -> Answer:
    run = truth(setting, (), Sampling(replicas=REPLICAS))
    return *run.interval("squared_distance"), run.grade is Grade.STATISTICAL


ANSWERS: dict[str, Callable[[Setting], Answer]] = {
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


def answered(least: Any, most: Any, sampled: bool, kind: Kind, where: str) -> str:
    """Judge numbers: '' if they are right, and of a kind that may be given."""
    if kind.right == "impure":
        return f"an impure round has an answer: {least[-1]} to {most[-1]}"
    if kind.right in ("random", "chance") and not sampled:
        return f"a random round is computed: {least[-1]} to {most[-1]}"
    if kind.right == "plain" and sampled:
        return "a plain round is sampled"
    plain = known(kind, where)
    value, within = plain.squared_distance, plain.within + 1e-12 * (1 + plain.squared_distance)
    wrong = np.flatnonzero(~((least <= value + within) & (value - within <= most)))
    if wrong.size:
        r = wrong[-1]
        return f"after round {r}: {least[r]} to {most[r]}, not {value[r]} +- {within[r]}"
    return ""


def fault(kind: Kind, where: str, engine: str) -> str:
    """Return what an engine does wrong, or ''."""
    if engine == "check":
        return fault_of_check(kind, where)
    try:
        least, most, sampled = ANSWERS[engine](setting_of(kind.make, where))
    except Exception as raised:
        return refused(raised, kind, engine)
    return answered(least, most, sampled, kind, where)


def claim(bound: float) -> Theorem:
    return Theorem(
        id="stranger/bound",
        reading="printed",
        title="a bound on the squared distance",
        source="this test",
        quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "text", "latex"),
        bound=sp.Rational(repr(float(bound))),
        hypotheses=(),
    )


def fault_of_check(kind: Kind, where: str) -> str:
    """Claim a little more and a little less than is true."""
    plain = known(kind, where) if kind.right != "impure" else None
    last, within = (1.0, 0.0) if plain is None else (plain.squared_distance[-1], plain.within[-1])
    for bound, wrong, right in (
        (last + within + 1e-9 * last + 1e-12, Outcome.REFUTED, Outcome.HOLDS),
        (last - within - 1e-9 * last - 1e-12, Outcome.HOLDS, Outcome.REFUTED),
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
        if kind.right in ("random", "chance") and verdict.evidence.grade is not Grade.STATISTICAL:
            return f"a random round is graded {verdict.evidence.grade.name}"
    return ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_right_or_refused(case: tuple[str, str]) -> None:
    kind, engine = KINDS[case[0]], case[1]
    faults = {where: fault(kind, where, engine) for where in kind.on}
    assert {where: words for where, words in faults.items() if words} == {}


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_verdicts_are_right_or_refused(kind: Kind) -> None:
    """On one setting of each kind; a verdict asks all engines but `paths` alone."""
    assert fault(kind, kind.on[0], "check") == ""


@pytest.mark.parametrize("kind", of("impure"), ids=lambda kind: kind.name)
def test_a_refusal_says_what_changed(kind: Kind) -> None:
    with pytest.raises(ValueError, match=kind.names) as refusal:
        found(setting_of(kind.make, kind.on[0]))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", of("impure"), ids=lambda kind: kind.name)
def test_who_asks_again_is_refused_again(kind: Kind) -> None:
    """Fails if the rounds of the first time leave an algorithm that has settled."""
    setting = setting_of(kind.make, kind.on[0])
    for _ in range(2):
        with pytest.raises(ValueError, match=kind.names):
            found(setting)


@pytest.mark.parametrize("kind", of("random"), ids=lambda kind: kind.name)
def test_random_rounds_are_seeded(kind: Kind) -> None:
    """Two runs agree, whatever was drawn in between."""
    once, again = (found(setting_of(kind.make, kind.on[0])) for _ in range(2))
    np.testing.assert_array_equal(once[0], again[0])
    np.testing.assert_array_equal(once[1], again[1])


# ---------------------------------------------------------------- groups of three


@dataclass(frozen=True)
class SecureGroup(Algorithm):
    """The sum of a group can be read only if all of it is there."""

    group: tuple[int, ...]

    def round(self, state, clients, who, branch):
        x = state["x"]
        complete = who[:, list(self.group)].all(axis=1, keepdims=True)
        inside = np.isin(np.arange(clients.n_clients), self.group)
        weights = who * np.where(inside, complete, True) / 4
        return {"x": x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.25)}


@pytest.mark.parametrize("engine", ["exact", "enclosed", "paths", "truth"])
@pytest.mark.parametrize(
    ("size", "group"),
    [((10, 4), (5, 6, 9)), ((12, 5), (2, 8, 11)), ((16, 4), (1, 9, 15)), ((17, 6), (0, 4, 11))],
)
def test_groups_of_three(size: tuple[int, int], group: tuple[int, ...], engine: str) -> None:
    """One real round for each set of participants, all of them."""
    n, drawn = size
    problem = QuadraticProblem([[1.0]], [[i % 5 - 1.0] for i in range(n)])
    sets = np.array([np.isin(np.arange(n), some) for some in combinations(range(n), drawn)])
    start = {"x": np.full((len(sets), 1), 2.0)}
    after = SecureGroup(group).round(start, QuadraticClients(problem, Silence()), sets, "clients")
    plain = float(((after["x"] - problem.x_star) ** 2).mean())
    try:
        setting = Setting(SecureGroup(group), problem, UniformSubset(n, drawn), 1, [2.0])
        least, most, _ = ANSWERS[engine](setting)
    except (NotAffineError, InexactRoundError):
        return
    assert least[-1] - 1e-12 <= plain <= most[-1] + 1e-12


# ---------------------------------------------------------------- statements


def alone(algorithm: Any, rounds: int = 1) -> Setting:
    problem = QuadraticProblem([[1.0]], [[0.0]])
    return Setting(algorithm, problem, UniformSubset(1, 1), rounds, [1.0])


def test_a_changed_step_changes_the_truth() -> None:
    """Fails if what is remembered goes by the object, which has changed since."""
    setting = alone(ChangeableStep(0.5))
    first = check(claim(0.5), setting)
    setting.algorithm.lr = 0.1
    second = check(claim(0.5), setting)
    assert (first.truth, first.outcome) == (pytest.approx(0.25), Outcome.HOLDS)
    assert (second.truth, second.outcome) == (pytest.approx(0.81), Outcome.REFUTED)


RATE = 0.5


def rate_in_use() -> float:
    return RATE


class ReadsGlobal(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + clients.summed_local_sgd(x, who, who / 1, steps=1, lr=RATE)}


class ReadsGlobalInside(Algorithm):
    """A comprehension has names of its own."""

    def round(self, state, clients, who, branch):
        x = state["x"]
        change = [clients.summed_local_sgd(x, who, who / 1, steps=1, lr=RATE) for _ in "a"]
        return {"x": x + change[0]}


class AsksHelper(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + clients.summed_local_sgd(x, who, who / 1, steps=1, lr=rate_in_use())}


class AsksItself(Algorithm):
    def round(self, state, clients, who, branch):
        x = state["x"]
        return {"x": x + clients.summed_local_sgd(x, who, who / 1, steps=1, lr=self.rate())}

    def rate(self) -> float:
        return 0.5


CONTEXT = ContextVar("CONTEXT", default=0.5)


class ReadsContext(AsksItself):
    def rate(self) -> float:
        return CONTEXT.get()


class ReadsEnvironment(AsksItself):
    def rate(self) -> float:
        return float(os.environ.get("RATE", "0.5"))


class ReadsEnvironmentOnce:
    """Of a single round; there is no second one."""

    def at(self, index: int) -> FedAvg:
        return [FedAvg(float(os.environ.get("RATE", "0.5")), 1)][index - 1]


class ReadsFile(AsksItself):
    def rate(self) -> float:
        return float(Path(os.environ["RATES"]).read_text(encoding="utf-8"))


class Imports(AsksItself):
    def rate(self) -> float:
        from strangers_rates import RATE  # type: ignore[import-not-found]

        return float(RATE)


def set_context(monkeypatch: pytest.MonkeyPatch) -> None:
    CONTEXT.set(0.1)


def set_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATE", "0.1")


def set_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(os.environ["RATES"]).write_text("0.1", encoding="utf-8")


def set_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["strangers_rates"], "RATE", 0.1)


def set_global(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "RATE", 0.1)


def set_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsksItself, "rate", lambda self: 0.1)


@pytest.mark.parametrize(
    ("made", "change"),
    [
        (ReadsGlobal, set_global),
        (ReadsGlobalInside, set_global),
        (AsksHelper, set_global),
        (AsksItself, set_method),
        (ReadsContext, set_context),
        (ReadsEnvironment, set_environment),
        (ReadsEnvironmentOnce, set_environment),
        (ReadsFile, set_file),
        (Imports, set_module),
    ],
)
def test_what_a_round_reads_changes_the_truth(
    made: Callable[[], Any],
    change: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Fails if what is remembered goes by a class, whatever its functions read outside it."""
    rates = ModuleType("strangers_rates")
    monkeypatch.setattr(rates, "RATE", 0.5, raising=False)
    monkeypatch.setitem(sys.modules, "strangers_rates", rates)
    monkeypatch.setenv("RATES", str(tmp_path / "rates"))
    (tmp_path / "rates").write_text("0.5", encoding="utf-8")
    first = check(claim(0.5), alone(made()))
    change(monkeypatch)
    second = check(claim(0.5), alone(made()))
    assert (first.truth, first.outcome) == (pytest.approx(0.25), Outcome.HOLDS)
    assert (second.truth, second.outcome) == (pytest.approx(0.81), Outcome.REFUTED)


@pytest.mark.parametrize("name", ["StartsHalfway", "StartsElsewhere"])
def test_errors_are_from_the_optimum_wherever_a_run_starts(name: str) -> None:
    """Fails if moments are centred at what ``init`` makes of x*."""
    kind = KINDS[name]
    assert [fault(kind, where, "exact") for where in kind.on] == [""] * len(kind.on)


FUNCTIONS_OF_CONSTANTS: dict[str, Callable[[float], Any]] = {
    "hypot": lambda step: np.hypot(step, 1.0),
    "arctan2": lambda step: np.arctan2(step, 1.0),
    "cbrt": lambda step: np.cbrt(step),
    "norm": lambda step: np.linalg.norm([step, 1.0]),
    "math.hypot": lambda step: math.hypot(step, 1.0),
    "logaddexp": lambda step: np.logaddexp(step, 1.0),
    "copysign": lambda step: np.copysign(step, 1.0),
    "fmod": lambda step: np.fmod(1.0, step),
    "polyval": lambda step: np.polyval([1.0, step], step),
    "format": lambda step: float(f"{step:.3f}"),
    "round": lambda step: round(step, 1),
    "whole": lambda step: int(step * 100),
}


@pytest.mark.parametrize("name", FUNCTIONS_OF_CONSTANTS)
def test_a_constant_may_be_any_function_of_the_setting(name: str) -> None:
    function = FUNCTIONS_OF_CONSTANTS[name]
    c = symbol("c", number=lambda setting: function(setting.algorithm.client_lr))
    theorem = replace(claim(0.0), bound=100 + c)
    verdict = check(theorem, alone(FedAvg(0.375, 1)))
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.bound == pytest.approx(100 + function(0.375), rel=1e-12)


@pytest.mark.parametrize("bound", [sp.I, 1 + sp.I, sp.zoo], ids=str)
def test_a_bound_that_is_no_real_number_is_refused(bound: sp.Expr) -> None:
    with pytest.raises(ValueError, match="bound"):
        check(replace(claim(0.0), bound=bound), alone(FedAvg(0.5, 1)))


@pytest.mark.parametrize("bound", [sp.oo, sp.Integer(10) ** 400], ids=["oo", "10^400"])
def test_a_bound_beyond_floats_holds(bound: sp.Expr) -> None:
    assert check(replace(claim(0.0), bound=bound), alone(FedAvg(0.5, 1))).outcome is Outcome.HOLDS


def test_a_constant_beyond_floats_holds() -> None:
    huge = replace(claim(0.0), bound=symbol("c", number=lambda setting: 10**400))
    assert check(huge, alone(FedAvg(0.5, 1))).outcome is Outcome.HOLDS


@pytest.mark.parametrize(("mu", "L"), [(0.3, 1.11), (0.1, 0.37), (1.0, 3.7)])
def test_an_equation_that_rounding_misses_is_met(mu: float, L: float) -> None:
    """gamma = 8 kappa, as the user computes it, is off by a few units in the last place."""
    problem = QuadraticProblem([[[mu]], [[L]]], [[0.0], [1.0]])
    steps = Harmonic(2 / problem.mu, offset=8 * problem.L / problem.mu)
    gamma = symbol("gamma", number=lambda run: run.algorithm.step_sizes.offset, positive=True)
    smooth, convex = (symbol(one, number=one, positive=True) for one in ("L", "mu"))
    theorem = replace(
        claim(100.0),
        hypotheses=(Hypothesis("offset", sp.Eq(gamma, 8 * smooth / convex), "here"),),
    )
    run = Setting(Scheduled(FedAvg(0.1, 1), steps), problem, UniformSubset(2, 2), 5, [1.0])
    assert check(theorem, run).outcome is Outcome.HOLDS
    missed = replace(run, algorithm=Scheduled(FedAvg(0.1, 1), Harmonic(2.0, offset=8.0)))
    assert check(theorem, missed).outcome is Outcome.INAPPLICABLE

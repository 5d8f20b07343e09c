"""Right implementations follow this package's and conform; every fault shows and is caught."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import Algorithm, CappedLinear, FedAR, FedNova, FedProx
from fltheory.algorithms.contract import CLIENTS
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines.clients.noise import Silence
from fltheory.engines.clients.stepped_clients import SteppedClients
from fltheory.problems import QuadraticProblem
from fltheory.testing import check_algorithm
from tests.testing.gallery import GALLERY
from tests.testing.gallery.page import table

N, DIM, ROUNDS = 5, 2, 14
RIGHT, WRONG = range(8), range(32)
NOT_NAMED = {
    ("ca-fed", "a round late"),
    ("f3ast", "with replacement"),
    ("fedar", "age is kept"),
    ("fedar", "present only"),
    ("fedau", "capped on return"),
    ("fedavg", "momentum across clients"),
    ("fedavg-is", "another's probability"),
    ("fednova", "divided by the largest"),
    ("fednova", "p of everybody"),
    ("fedprox", "norm not squared"),
    ("fedprox", "own last model"),
    ("fedvarp", "memory at the first update"),
    ("mifa", "forgets the absent"),
    ("mifa", "mean of entries"),
    ("mifa", "models instead of updates"),
    ("scaffold", "corrected once"),
    ("scaffold", "renewed before use"),
    ("scaffold", "summed"),
}
"""Faults that are caught, but whose message names another cause or none as yet."""
FAULTS = [(name, fault) for name, it in GALLERY.items() for fault in it.faults]


@dataclass(frozen=True)
class Quadratic:
    """A client with loss ``(x - c)' H (x - c) / 2``."""

    hessian: np.ndarray
    optimum: np.ndarray
    n_samples: int

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.hessian @ (x - self.optimum)

    def loss(self, x: np.ndarray) -> float:
        return float((x - self.optimum) @ self.gradient(x)) / 2


@dataclass(frozen=True)
class Case:
    """A problem, a trace and hyper-parameters, drawn for an algorithm."""

    problem: QuadraticProblem
    sizes: tuple[int, ...]
    x0: np.ndarray
    trace: np.ndarray
    steps: dict[str, Any]
    options: dict[str, Any]

    @classmethod
    def drawn(cls, name: str, seed: int) -> Case:
        rng = np.random.default_rng(seed)
        trace = rng.random((ROUNDS, N)) < rng.uniform(0.3, 0.7)
        trace[rng.random(ROUNDS) < 0.15] = False
        x0 = rng.normal(size=DIM)
        trace.flags.writeable = x0.flags.writeable = False
        steps = int(rng.integers(2, 5))
        return cls(
            random_problem(seed, N, DIM, sigma=0.0),
            tuple(rng.permutation([0, 1, 3, 4, 9]).tolist()),
            x0,
            trace,
            {
                "client_lr": float(rng.uniform(0.05, 0.2)),
                "local_steps": tuple(rng.integers(1, 5, N).tolist())
                if name == "fednova"
                else steps,
                "server_lr": float(rng.uniform(0.4, 1.3)),
            },
            dict(GALLERY[name].options(rng, N)),
        )

    def models(self, name: str, fault: str = "") -> np.ndarray:
        clients = [
            Quadratic(h, c, n)
            for h, c, n in zip(self.problem.hessians, self.problem.optima, self.sizes, strict=True)
        ]
        run = GALLERY[name].run
        with np.errstate(all="ignore"):
            return run(self.x0, clients, self.trace, **self.steps, **self.options, fault=fault)


def ours(name: str, case: Case) -> np.ndarray:
    """Return the models of this package's algorithm."""
    options = {**case.steps, **case.options}
    weights = None if options.pop("weighting", "") == "uniform" else case.sizes
    makers: dict[str, Callable[..., Algorithm]] = {
        "fedavg": lambda **o: FedProx(**o, proximal=0.0, client_weights=weights),
        "fedprox": lambda **o: FedProx(**o, client_weights=weights),
        "fednova": lambda **o: FedNova(**o, client_weights=case.sizes),
        "fedar": lambda growth, largest, **o: FedAR(**o, weight=CappedLinear(growth, largest)),
    }
    algorithm = makers.get(name, ALGORITHMS[name])(**options)
    clients = SteppedClients(case.problem, Silence())
    state = algorithm.init(case.x0[None].copy(), N)
    models = [state["x"][0]]
    for who in case.trace:
        state = algorithm.round(state, clients, who[None], CLIENTS)
        models.append(state["x"][0])
    return np.array(models)


@pytest.mark.parametrize("name", GALLERY)
@pytest.mark.parametrize("seed", RIGHT)
def test_right_ones_follow_this_packages(name: str, seed: int) -> None:
    case = Case.drawn(name, seed)
    expected = ours(name, case)
    np.testing.assert_allclose(case.models(name), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_every_fault_shows_on_some_trace(name: str, fault: str) -> None:
    """A part in a hundred of the way from the start, at least."""
    for seed in WRONG:
        case = Case.drawn(name, seed)
        right, wrong = case.models(name), case.models(name, fault)
        assert wrong.shape == right.shape
        if not np.abs(wrong - right).max() <= 0.01 * np.abs(right - case.x0).max():
            return
    pytest.fail("no trace tells it from the right one")


@pytest.mark.parametrize("name", GALLERY)
def test_right_ones_conform(name: str) -> None:
    check_algorithm(GALLERY[name].run, name)


def test_what_the_paper_leaves_open_is_no_fault() -> None:
    """Of equally urgent clients F3AST may choose the one of higher index."""
    check_algorithm(partial(GALLERY["f3ast"].run, last_of_equals=True), "f3ast")


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_every_fault_is_caught_by_a_law_that_points_at_it(name: str, fault: str) -> None:
    """By a cause that it names; where it names none, by what the law and the arithmetic say."""
    it = GALLERY[name]
    report = check_algorithm(partial(it.run, fault=fault), name, raises=False, stop_at_first=True)
    assert not report.conforms
    finding = report.findings[-1]
    assert not finding.outcome.good
    said = finding.causes or (f"{finding.law}: {finding.says}\n{finding.message}",)
    points = any(re.search(it.faults[fault].points, each, re.IGNORECASE) for each in said)
    assert points != ((name, fault) in NOT_NAMED), said


def test_there_are_at_least_fifty_faults_and_each_says_what_it_is() -> None:
    assert len(FAULTS) >= 50
    said = [fault.says for it in GALLERY.values() for fault in it.faults.values()]
    assert all(len(each) > 20 for each in said)
    assert all(fault.points for it in GALLERY.values() for fault in it.faults.values())


def test_the_page_lists_the_gallery() -> None:
    page = Path(__file__).parents[2] / "docs" / "gallery-of-faults.md"
    assert page.read_text(encoding="utf-8").endswith(table())

"""The table of algorithms: one class and one line, and everything that reads it knows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from docs.scripts import bias
from fltheory import algorithms as library
from fltheory import validation
from fltheory.algorithms import CAFed, CappedLinear, FedAR
from fltheory.algorithms.contract import EVERY_ROUND_CLIENTS
from fltheory.algorithms.shared.averaging import participant_average
from fltheory.algorithms.table import ALGORITHMS, PARTS, Listed, class_named, listed
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.verify.certificates.certificate import setting_from_text, setting_text

CIRCUMSTANCES = {
    "client_lr": 0.25,
    "assist_lr": 0.125,
    "local_steps": 3,
    "target_weights": (0.5, 0.25, 0.25),
    "aggregation_weights": (0.5, 0.25, 0.25),
    "availability": (0.5, 0.75, 1.0),
    "correlation": 0.5,
}


@dataclass(frozen=True)
class Lazy:
    """Clients' rounds in which everybody rests ``idle`` of ten parts."""

    client_lr: float
    local_steps: int
    idle: int = 5

    def __post_init__(self):
        validation.whole_number("idle", self.idle, at_least=0)

    @property
    def branches(self):
        return EVERY_ROUND_CLIENTS

    def init(self, x0, n_clients):
        return {"x": x0}

    def round(self, state, clients, who, branch):
        x = state["x"]
        update = clients.summed_local_sgd(
            x, who, participant_average(who, x), steps=self.local_steps, lr=self.client_lr
        )
        return {"x": x + update * (10 - self.idle) / 10}


@pytest.fixture
def lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, "lazy", Listed(Lazy, "Lazy", "nobody's"))


@pytest.mark.usefixtures("lazy")
def test_training_knows_a_new_line() -> None:
    pytest.importorskip("torch", reason="torch is an optional extra")
    from fltheory.hardware.training.settings import run_settings
    from tests.hardware.training.small_experiment import run_table

    table = run_table()
    table["algorithm"] = {"name": "lazy", "idle": 3}
    method = run_settings(table).method
    assert method.algorithm({**CIRCUMSTANCES, "rounds": 4}) == Lazy(0.25, 3, 3)


@pytest.mark.usefixtures("lazy")
def test_biases_know_a_new_line() -> None:
    rows = bias.algorithms(bias.WEIGHTS["equal"], np.full(5, 0.5))
    assert rows["Lazy"] == Lazy(bias.LR, bias.STEPS)


@pytest.mark.usefixtures("lazy")
def test_certificates_know_a_new_line() -> None:
    clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    setting = Setting(Lazy(0.25, 3, 4), clients, UniformSubset(2, 1), 2, [0.5])
    text = setting_text(setting)
    assert text["algorithm"] == {"name": "Lazy", "client_lr": "1/4", "local_steps": 3, "idle": 4}
    assert setting_from_text(text).algorithm == setting.algorithm


def test_without_its_line_nobody_knows_it() -> None:
    with pytest.raises(ValueError, match=r"name must be one of fedavg, .*, safari, got 'lazy'"):
        listed("lazy")
    with pytest.raises(ValueError, match=r"must be one of FedAvg, .*, WarmStarted, got 'Lazy'"):
        class_named("Lazy")


def test_names_are_those_that_papers_write_in_capital_letters_or_not() -> None:
    for name in ("FedAvg", "SCAFFOLD", "FedVARP", "MIFA", "FedAU", "FedAR", "FedAvg-IS", "F3AST"):
        assert listed(name) is ALGORITHMS[name.lower()]
    for name in ("AdaFed", "CA-Fed", "SAFARI", "Unbiased"):
        assert listed(name).title == name
    assert listed("average all").algorithm is library.WeightedFedAvg


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_line_makes_an_algorithm_from_its_circumstances_and_example(name: str) -> None:
    entry = ALGORITHMS[name]
    algorithm = entry.tried(3, CIRCUMSTANCES)
    assert isinstance(algorithm, entry.algorithm)
    assert (algorithm.client_lr, algorithm.local_steps) == (0.25, 3)
    assert set(algorithm.init(np.zeros((1, 2)), 3)) >= {"x"}
    assert class_named(entry.algorithm.__name__) is entry.algorithm
    assert set(entry.example(3)) <= set(entry.options)
    assert entry.title
    assert entry.paper


def test_what_is_public_is_in_the_table() -> None:
    """Also what algorithms are wrapped in; contracts stay in `contract.py`."""
    classes = {entry.algorithm for entry in ALGORITHMS.values()} | set(PARTS)
    public = {getattr(library, name) for name in library.__all__}
    assert public == classes


def test_parts_are_made_of_options_of_their_own_or_given() -> None:
    fedar = ALGORITHMS["fedar"]
    given = {"client_lr": 0.1, "local_steps": 2}
    assert fedar(**given, growth=0.5, cutoff=3).weight == CappedLinear(0.5)
    weight = CappedLinear(0.1, 4.0)
    assert fedar(**given, weight=weight) == FedAR(0.1, 2, weight=weight)
    assert "weight" not in fedar.options


def test_options_go_before_circumstances() -> None:
    learning = ALGORITHMS["ca-fed"].among(CIRCUMSTANCES, availability=None, correlation=None)
    assert isinstance(learning, CAFed)
    assert learning.availability is None
    assert ALGORITHMS["ca-fed"].told == (
        "target_weights",
        "client_lr",
        "local_steps",
        "availability",
        "correlation",
    )

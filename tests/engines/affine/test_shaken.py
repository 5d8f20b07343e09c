"""Rounds in which digits cancel, by engines in floats and in fractions."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory.algorithms import FedAU, FedAvg, Mifa, Scaffold, ServerMomentum
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact, paths
from fltheory.engines.affine.numbers import Shaken
from fltheory.engines.affine.shaken import NO_MORE, chance_error
from fltheory.engines.guard import guarded
from fltheory.engines.trajectory import FIELDS
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.problems import QuadraticProblem
from tests.engines.cancelling import CHANCES, FACTORS, STEPS, UPDATES, Cancelling, Kicking, Kicks

# The mean of the optima is zero: a run that starts there is all made of what rounds make.
CLIENTS = QuadraticProblem([[1.2]], [[0.25], [-0.75], [0.5]], sigma=3e3, server_sigma=2e3)
NEAR_ONE = {"beta": 0.99999999643, "gamma": 0.99996, "gain": 1.3, "lr": 0.17}
ROUNDS = {
    **{f"factor {name}": Cancelling(**NEAR_ONE, factor_name=name) for name in FACTORS},
    **{
        f"update {name}": Cancelling(**NEAR_ONE, update=name, step=step)
        for name, step in zip(UPDATES, ("scaled", "plain", "scaled", "scaled"), strict=True)
    },
    **{f"step {name}": Cancelling(**NEAR_ONE, step=name) for name in STEPS},
    "remembers": Cancelling(**NEAR_ONE, step="plain", remembers=True),
    "slope": Cancelling(0.9999123, 0.5, 23456.7, 0.17, "g (1 - b)"),
    "counts": Cancelling(**NEAR_ONE, counts=True),
}


def check_bounds(engine, setting, share):
    """Check that a run's bounds hold, and are at most a share of what they bound."""
    truth, run = exact(setting, arithmetic="rational"), engine(setting)
    for field in FIELDS:
        for value, stated, expected in zip(
            run[field], run.rounding_error[field], truth[field], strict=True
        ):
            assert abs(Fraction(value) - expected) <= Fraction(stated)
        assert (run.rounding_error[field][1:] <= share * run[field][1:]).all()


@pytest.mark.parametrize("engine", [exact, paths])
@pytest.mark.parametrize("name", ROUNDS)
def test_bounds_hold_where_digits_cancel(name, engine):
    clients, start = (CLIENTS, 0.0) if name != "slope" else (replace(CLIENTS, sigma=0.0), 100.0)
    setting = Setting(ROUNDS[name], clients, Bernoulli([0.3, 0.6, 0.5]), 4, [start])
    # Exact moments have counts among what is random, which makes other bounds wide.
    check_bounds(engine, setting, share=np.inf if (name, engine) == ("counts", exact) else 0.02)


@pytest.mark.parametrize(
    "make",
    [
        lambda lr: FedAvg(lr, 3, server_lr=0.9),
        lambda lr: Scaffold(lr, 2),
        lambda lr: Mifa(lr, 1),
        lambda lr: FedAU(lr, 1, cutoff=3),
        lambda lr: ServerMomentum(FedAvg(lr, 1), 0.9),
        lambda lr: Cancelling(0.9, 0.5, 1.3, lr, "g (1 - b) / (1 - c)"),
    ],
)
@pytest.mark.parametrize(
    "clients", [CLIENTS, QuadraticProblem([[2e-8]], [[3e8], [4e8]], sigma=1e5)]
)
def test_an_ordinary_round_loses_no_more_than_any(make, clients):
    n, algorithm = clients.n_clients, make(0.3 / clients.L)
    setting = Setting(algorithm, clients, UniformSubset(n, n - 1), 20, clients.x_star + 1)
    assert guarded(setting).losses == NO_MORE


@pytest.mark.parametrize("engine", [exact, paths])
@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("kind", [Kicking, Kicks])
@pytest.mark.parametrize("name", CHANCES)
def test_bounds_hold_where_digits_of_chances_cancel(name, kind, counts, engine):
    # The first rate leaves one minus it with last bits that another number may have been given.
    for rate in (3.13e-9, 1.83e-7, 2.9e-12):
        own = kind(gain=3e6, lr=0.44, counts=counts, beta=1 - rate, rate=rate, chances_name=name)
        setting = Setting(own, replace(CLIENTS, sigma=0.0), Bernoulli([0.3, 0.6, 0.5]), 4, [2.0])
        check_bounds(engine, setting, share=0.01)


@dataclass(frozen=True)
class Chances(Algorithm):
    """Branches with chances as they are given."""

    chances: tuple[float, ...]

    @property
    def branches(self):
        return tuple((str(index), chance) for index, chance in enumerate(self.chances))

    def round(self, state, clients, who, branch):
        return state


def test_chances_of_one_branch_or_of_few_digits_lose_no_more():
    for chances in ((1.0,), (0.3, 0.7), (1e-9, 1.0), (0.0, 1.0)):
        assert chance_error(Chances(chances), 1) == 0


@dataclass(frozen=True)
class Nested(FedAvg):
    """A round in which numbers that Python makes are rounded before digits cancel."""

    rate: float = 3.1e-11

    def round(self, state, clients, who, branch):
        after = super().round(state, clients, who, branch)
        share = 1 - (1 - self.rate) ** 3
        return {"x": state["x"] + share * (after["x"] - state["x"])}


@dataclass(frozen=True)
class NestedSchedule:
    """A schedule in which they are."""

    rate: float = 3.1e-11

    def at(self, index):
        return FedAvg(0.17, 2, server_lr=1 - (1 - self.rate) ** index)


@dataclass(frozen=True)
class Warming:
    """A schedule in whose own code digits cancel."""

    beta: float

    def at(self, index):
        return FedAvg(0.17, 2, server_lr=1 - self.beta**index)


@pytest.mark.parametrize("engine", [exact, paths])
@pytest.mark.parametrize("own", [Warming(0.9999999123), Nested(0.17, 2), NestedSchedule()])
def test_bounds_hold_where_digits_of_numbers_cancel(own, engine):
    setting = Setting(own, CLIENTS, Bernoulli([0.3, 0.6, 0.5]), 3, [0.0])
    check_bounds(engine, setting, share=0.02)


def test_what_is_shaken():
    given = np.array([0.1, 0.1, -0.1, 0.2, 0.3, 0.1 + 1e-16, 3.0, 0.0])
    made = Shaken(seed=5).made(given)
    off = made / np.where(given == 0, 1, given) - (given != 0)
    assert 0 < np.abs(off[:6]).max() <= Shaken.largest
    assert off[0] == off[1] == off[2] == off[3] == pytest.approx(off[0])
    assert np.unique(off[[0, 4, 5]]).size == 3
    assert (made[6:] == given[6:]).all()
    assert not np.array_equal(Shaken(seed=6).made(given)[:6], made[:6])

"""Maps of several rounds from one run: those of single rounds, and only where they may be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fltheory.algorithms import FedAR, FedAU, Harmonic, Mifa, Scheduled
from fltheory.engines import Setting, exact, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.guard import RoundRefusedError, guarded
from fltheory.engines.history import history_rounds
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from tests.engines.history.test_histories import fedar_with_a_jumping_cutoff

PROBLEM = QuadraticProblem([[1.0]], [[0.0], [1.0]])
NOISY = QuadraticProblem(
    [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 3.0]]], [[1.0, -2.0], [0.5, 1.0]], sigma=0.5
)


def test_many_rounds_take_few_runs_on_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 rounds: one run finds the updates random, then there are 2, 4, ..., and the rest."""
    runs: list[int] = []
    honest = history_rounds.AffineRounds._forms_image

    def counted(self, batch, branch, chosen):
        runs.append(len(chosen))
        return honest(self, batch, branch, chosen)

    monkeypatch.setattr(history_rounds.AffineRounds, "_forms_image", counted)
    paths(Setting(FedAR(0.1, 1), PROBLEM, Cyclic([2, 1], [0, 0]), 1000, [3.0]))
    assert runs == [1, 2, 4, 8, 16, 32, 64, 128, 256, 490]


def test_rounds_of_their_own_step_sizes_plan_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two rounds are of one algorithm: a real round beside each would be run in vain."""
    run = []
    honest = history_rounds._real_round
    monkeypatch.setattr(history_rounds, "_real_round", lambda *of: run.append(1) or honest(*of))
    harmonic = Scheduled(FedAR(0.1, 1), Harmonic(1.0, offset=10.0))
    paths(Setting(harmonic, PROBLEM, Cyclic([2, 1], [0, 0]), 50, [3.0]))
    assert not run
    paths(Setting(FedAR(0.1, 1), PROBLEM, Cyclic([2, 1], [0, 0]), 50, [3.0]))
    assert len(run) >= 40


@pytest.mark.parametrize(
    ("algorithm", "participation", "rounds"),
    [
        (FedAR(0.1, 2), Cyclic([3, 2], [0, 1]), 60),
        (FedAU(0.1, 2, cutoff=3), Bernoulli([0.5, 1.0]), 7),
        (Mifa(0.1, 2, start="zero"), MarkovOnOff([0.4, 0.5], 0.5), 30),
    ],
    ids=["FedAR", "FedAU", "MIFA"],
)
def test_rounds_together_are_rounds_one_by_one(
    algorithm, participation, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = Setting(algorithm, NOISY, participation, rounds, [3.0, -1.0])
    together = paths(setting)
    monkeypatch.setattr(history_rounds, "_MOST_ROUNDS_AHEAD", 1)
    alone = paths(setting)
    for field in ("squared_distance", "squared_gradient", "excess_loss"):
        np.testing.assert_allclose(together[field], alone[field], rtol=1e-13)
        np.testing.assert_allclose(
            together.rounding_error[field], alone.rounding_error[field], rtol=1e-6
        )


def of_the_first_replica(rounds):
    """Return a cut-off that jumps after round 4, by the count of the first replica alone."""
    return 0.0 if float(np.asarray(rounds).flat[0]) <= 4 else 5.0


def test_rounds_that_do_not_treat_replicas_alike_are_run_alone() -> None:
    """The jumping cut-off of FedAR, said by one replica for all: rounds 4 to 7 are one run.

    Fails if what forms made of several rounds is not compared with real rounds, each alone.
    """
    algorithm = FedAR(0.3, 1, cutoff=of_the_first_replica)
    found = paths(Setting(algorithm, PROBLEM, Cyclic([2, 2], [0, 1]), 7, [3.0]))
    expected = fedar_with_a_jumping_cutoff(7)
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-12)


class OneAtATime(Mifa):
    """A round of MIFA that is not told what several do."""

    def round(self, state, clients, who, branch):
        if (np.asarray(who).sum(axis=1) > 1).any():
            raise NotAffineError("one at a time")
        return super().round(state, clients, who, branch)


def test_units_need_no_set_that_does_not_come() -> None:
    """Every other one of four clients would be two."""
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0], [2.0], [3.0]], sigma=0.5)
    found, expected = (
        paths(Setting(kind(0.1, 1, start="zero"), problem, UniformSubset(4, 1), 9, [3.0]))
        for kind in (OneAtATime, Mifa)
    )
    np.testing.assert_allclose(found.squared_distance, expected.squared_distance, rtol=1e-13)
    assert found.rounding_error is not None
    assert (found.rounding_error.squared_distance < 1e-10).all()


class SlowsDown:
    """FedAvg with a tenth of the step while a client has been absent for three rounds.

    ``of_all`` looks at all replicas for that; ``of_norm`` makes the round no affine map.
    """

    branches = (("clients", 1.0),)

    def __init__(self, of_all: bool, of_norm: bool):
        self.of_all, self.of_norm = of_all, of_norm

    def init(self, x0, n_clients):
        return {"x": x0, "absent": np.zeros((len(x0), n_clients))}

    def round(self, state, clients, who, branch):
        absent = np.where(who, 0.0, state["absent"] + 1)
        slow = (absent >= 3).any(axis=1)
        if self.of_all and (absent >= 3).any():
            slow = np.ones_like(slow)
        share = np.where(slow, 0.1, 1.0)
        if self.of_norm:
            share = share / (1 + abs(state["x"][:, 0]))
        weights = np.where(who, 1.0, 0.0) / 2
        update = clients.summed_local_sgd(state["x"], who, weights, steps=1, lr=0.5)
        return {"x": state["x"] + share[:, None] * update, "absent": absent}


RARELY_AWAY = Bernoulli([0.9, 0.95])


@pytest.mark.parametrize("of_norm", [False, True])
def test_a_look_at_other_replicas_is_refused_where_guards_do_not_come(of_norm: bool) -> None:
    """Somebody is away for three rounds once in 500 runs, and paths follow those, too."""
    setting = Setting(SlowsDown(True, of_norm), PROBLEM, RARELY_AWAY, 5, [3.0])
    guarded(setting)
    with pytest.raises(RoundRefusedError, match="a round gives a replica another 'x' in a batch"):
        paths(setting)


class SlowsDownInWholeNumbers(SlowsDown):
    """The same rule in numbers that fractions take."""

    def __init__(self, of_all: bool):
        self.of_all, self.lr = of_all, 0.025

    def init(self, x0, n_clients):
        return {"x": x0, "absent": np.zeros((len(x0), n_clients), dtype=np.int64)}

    def round(self, state, clients, who, branch):
        absent = np.where(who, 0, state["absent"] + 1)
        slow = (absent >= 3).any(axis=1)
        if self.of_all and (absent >= 3).any():
            slow = np.ones_like(slow)
        weights = np.where(who, 1, 0)
        update = clients.summed_local_sgd(state["x"], who, weights, steps=1, lr=self.lr)
        return {"x": state["x"] + np.where(slow, 1, 10)[:, None] * update, "absent": absent}


@pytest.mark.parametrize("arithmetic", ["enclosed", "rational"])
def test_fractions_and_balls_refuse_a_look_at_other_replicas_too(arithmetic: str) -> None:
    """Both gave 0.0107 for 0.0092, one replica by itself, and called it exact."""
    own, all_of_them = (
        Setting(SlowsDownInWholeNumbers(of_all), PROBLEM, RARELY_AWAY, 5, [3.0])
        for of_all in (False, True)
    )
    found = exact(own, arithmetic=arithmetic)
    expected = paths(own).squared_distance[-1]
    assert float(found.squared_distance[-1]) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(RoundRefusedError, match="another image in a batch than alone"):
        exact(all_of_them, arithmetic=arithmetic)


@pytest.mark.parametrize("of_norm", [False, True])
def test_a_look_at_one_replica_is_none_at_others(of_norm: bool) -> None:
    """The same rule, each replica by itself: every set of participants in every round, by hand."""
    found = paths(Setting(SlowsDown(False, of_norm), PROBLEM, RARELY_AWAY, 5, [3.0]))
    expected = 0.0
    for run in product(product([False, True], repeat=2), repeat=5):
        x, absent, chance = 3.0, [0, 0], 1.0
        for who in run:
            absent = [0 if here else count + 1 for here, count in zip(who, absent, strict=True)]
            share = (0.1 if max(absent) >= 3 else 1.0) / (1 + abs(x) if of_norm else 1)
            x += share * sum(0.5 * (c - x) / 2 for here, c in zip(who, (0, 1), strict=True) if here)
            for here, p in zip(who, (0.9, 0.95), strict=True):
                chance *= p if here else 1 - p
        expected += chance * (x - 0.5) ** 2
    assert found.squared_distance[-1] == pytest.approx(expected, rel=1e-12)

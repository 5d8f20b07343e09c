"""CA-Fed's regimes are what their names and descriptions say, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fltheory.algorithms import (
    AveragedIterate,
    Constant,
    Harmonic,
    Projected,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.participation import MarkovOnOff
from fltheory.theorems.ca_fed import regimes
from fltheory.weights import optimal

PI = (0.9, 0.7, 0.5, 0.3)
CROSS = [[10, 0], [-10, 0], [0, 10], [0, -10]]
NU = {
    **{"independent": 0.0, "nu = 0.5": 0.5, "nu = 0.9": 0.9, "nu = 0.99": 0.99},
    **{"equal weights": 0.9, "optimal weights": 0.9, "noise-free": 0.0, "noisy gradients": 0.0},
    **{"different Hessians": 0.0, "two clients": 0.9, "rare majority": 0.0},
    **{"started at the optimum": 0.0, "one slow client": 0.99, "other units": 0.99},
    **{"small server step": 0.0, "nobody at first": 0.9, "constant steps": 0.9, "tight W": 0.9},
}
AVAILABILITY = {
    **{"two clients": (0.9, 0.3), "rare majority": (1.0, 0.01, 0.01)},
    **{"started at the optimum": (0.9, 0.1), "one slow client": (0.5,), "other units": (0.5,)},
    **{"small server step": (1.0,), "clusters": (0.8, 0.8, 0.4, 0.4)},
}
EXACT = {"nu = 0.5", "nu = 0.9", "nu = 0.99", "equal weights", "noise-free", "nobody at first"}
EXACT |= {"different Hessians", "started at the optimum", "one slow client", "other units"}
EXACT |= {"small server step"}
SMALL = {"started at the optimum", "one slow client", "other units", "small server step"}
WEIGHTS = {
    **dict.fromkeys(("equal weights", "noise-free", "different Hessians"), (0.25,) * 4),
    **dict.fromkeys(("two clients", "started at the optimum"), (0.5, 0.5)),
    **dict.fromkeys(("one slow client", "other units", "small server step"), (1.0,)),
    "rare majority": (0.3, 0.3, 0.4),
}
OPTIMA = {
    **{"two clients": CROSS[:2], "rare majority": CROSS[:3]},
    "started at the optimum": [[1000], [-1000]],
    **{one: [[0]] for one in ("one slow client", "other units", "small server step")},
}
START = {"noisy gradients": (0, 0), "tight W": (5, 0), "started at the optimum": (0,)}
START |= {"one slow client": (1,), "other units": (0.1,), "small server step": (1,)}
RADIUS = {"different Hessians": 30, "started at the optimum": 1250, "one slow client": 1.25}
RADIUS |= {"other units": 0.125, "small server step": 1.01, "tight W": 10.5}
ROUNDS = {"started at the optimum": 100, "one slow client": 10, "other units": 10}
ROUNDS |= {"small server step": 2400}
# eta_t = first/(t + offset); losses a hundredth and lengths a tenth leave steps as they are.
STEPS = {"started at the optimum": (0.02, 99), "one slow client": (2.5, 9)}
STEPS |= {"other units": (2.5, 9), "small server step": (9.6, 600)}


def test_every_regime_is_listed() -> None:
    assert set(regimes.THEOREM_2) == {*NU, "clusters"}
    assert set(regimes.SUMMANDS) == {"two clients, one rare", "equal weights", "rare majority"}
    assert set(regimes.DECOMPOSITION) == {
        *("independent", "equal weights", "optimal weights", "different Hessians"),
        *("two clients", "rare majority", "started at the optimum", "nearly attained"),
    }
    assert set(regimes.APPENDIX_D) == {
        *("independent", "clusters", "two clients", "noisy gradients", "unequal noise"),
        "noise-free",
    }
    assert set(regimes.APPENDIX_E) == {
        *("independent", "equal weights", "optimal weights", "two clients", "rare majority")
    }


@pytest.mark.parametrize("name", regimes.THEOREM_2)
def test_regimes(name: str) -> None:
    setting = regimes.THEOREM_2[name].setting
    problem, averaged = setting.problem, setting.algorithm
    assert isinstance(averaged, AveragedIterate)
    projected = averaged.algorithm
    assert isinstance(projected, Projected)
    assert projected.onto.centre.tolist() == [0.0] * problem.dim
    assert projected.onto.radius == pytest.approx(RADIUS.get(name, 25))
    scheduled = projected.algorithm
    assert isinstance(scheduled, Scheduled)
    fedavg, steps = scheduled.algorithm, scheduled.step_sizes
    assert isinstance(fedavg, WeightedFedAvg)
    assert averaged.weights == steps
    first, offset = STEPS.get(name, (2, 24))
    if name == "constant steps":
        assert steps == Constant(0.02)
    else:
        assert isinstance(steps, Harmonic)
        assert [steps.at(t) for t in (1, 7)] == pytest.approx(
            [first / (1 + offset), first / (7 + offset)]
        )
    assert fedavg.local_steps == (1 if name in SMALL else 2)
    assert fedavg.server_lr == (1e-5 if name == "small server step" else 1.0)
    assert setting.rounds == ROUNDS.get(name, 300)
    assert setting.x0.tolist() == pytest.approx(START.get(name, (20, 0)))
    sigma = 40.0 if name == "noisy gradients" else 0.0 if name in EXACT else 2.0
    assert problem.sigma == sigma
    assert problem.optima.tolist() == OPTIMA.get(name, CROSS)
    n = problem.n_clients
    alpha = (0.001, 0.998, 0.001) if name == "rare majority" else (1 / n,) * n
    np.testing.assert_allclose(problem.alpha, alpha, rtol=1e-12)
    if name == "different Hessians":
        diagonals = [(1.0, 0.5), (0.5, 1.0), (0.9, 0.6), (0.5, 0.5)]
        assert problem.hessians.tolist() == [np.diag(each).tolist() for each in diagonals]
    else:
        expected = [1.0] if name in SMALL else [1.0, 0.5]
        assert np.diag(problem.mean_hessian).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", regimes.THEOREM_2)
def test_who_takes_part_and_with_what_weight(name: str) -> None:
    setting = regimes.THEOREM_2[name].setting
    who = setting.participation
    pi = AVAILABILITY.get(name, PI)
    np.testing.assert_allclose(who.marginals, pi)
    if name != "clusters":
        assert isinstance(who, MarkovOnOff)
        assert who.correlation.tolist() == [NU[name]] * len(pi)
        start = None if who.start is None else who.start.tolist()
        assert start == ([0.0] * 4 if name == "nobody at first" else None)
    if name != "optimal weights":
        q = WEIGHTS.get(name, tuple(0.25 / one for one in pi))
        weights = setting.algorithm.algorithm.algorithm.algorithm.aggregation_weights
        assert weights == pytest.approx(q)


def test_pairs_come_and_go_together() -> None:
    masks = regimes.THEOREM_2["clusters"].setting.participation.as_chain().state_masks
    assert sorted(masks.tolist()) == sorted(
        [[a, a, b, b] for a in (False, True) for b in (False, True)]
    )
    changes = regimes.THEOREM_2["clusters"].setting.participation.as_chain()
    second = np.sort(np.abs(np.linalg.eigvals(changes.transition)))[-2]
    assert second == pytest.approx(0.9)


def test_optimal_weights_minimise_the_printed_bound() -> None:
    """At the unbiased weights' Q, with optima 10 from the centre, L = 1 and mu = 1/2."""
    setting = regimes.THEOREM_2["optimal weights"].setting
    etas = [2 / (t + 24) for t in range(1, 301)]
    squares, total = sum(eta**2 for eta in etas), sum(0.25 / one for one in PI)
    # 2/E ||w_0 - w*||^2 = 400, and M Q/4 (sum eta^2 + pi^2/6) with M = 16.
    upsilon = 400 + 4 * total * (squares + math.pi**2 / 6)
    # kappa = 2 and Gamma = 50: 2 kappa^4 chi^2 Gamma over 2 kappa^2/(sum eta) of the rest.
    found = optimal(
        PI, [0.25] * 4, a=4 * np.array(PI) * squares, b=upsilon, bias=200 * sum(etas), total=total
    )
    weights = setting.algorithm.algorithm.algorithm.algorithm.aggregation_weights
    assert weights == pytest.approx(tuple(found.q), rel=1e-6)


def test_one_client_that_counts_is_rare() -> None:
    setting = regimes.SUMMANDS["two clients, one rare"].setting
    assert setting.participation.availability.tolist() == [1.0, 0.1]
    assert setting.participation.correlation.tolist() == [0.0, 0.0]
    assert setting.problem.alpha.tolist() == pytest.approx([0.01, 0.99])
    weights = setting.algorithm.algorithm.algorithm.algorithm.aggregation_weights
    assert weights == (0.5, 0.5)

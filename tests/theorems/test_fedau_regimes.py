"""FedAU's regimes are what their names and descriptions say, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fltheory.algorithms import FedAU
from fltheory.engines import Setting
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.problems import LogCoshProblem, QuadraticProblem
from fltheory.theorems.fedau import regimes

OF_SETTINGS = {
    "theorem-1": regimes.THEOREM_1,
    "option-2": regimes.OPTION_2,
    "option-1": regimes.OPTION_1,
    "option-1-order": regimes.OPTION_1_ORDER,
    "option-2-order": regimes.OPTION_2_ORDER,
    "corollary-4": regimes.COROLLARY_4,
}
CELLS = [(group, name) for group, found in OF_SETTINGS.items() for name in found]
OFTEN, PAIR, THREE, NEARLY = (0.9, 0.75), (0.8, 0.3), (0.9, 0.6, 0.3), (0.97, 0.92, 0.89)
# Weights of algorithms whose weights are constant; None for FedAU's own.
ONE_OVER_P = {"option-1-order", "option-2-order"}
KNOWN = {("theorem-1", "known statistics"), ("option-1", "known statistics")} | {
    ("option-1", "Markov"),
    ("option-1", "cyclic"),
}
OWN_WEIGHTS = {("option-1", "FedAU")} | {
    ("option-2", name) for name in regimes.OPTION_2 if name != "equal weights"
}
ROUNDS = {
    ("option-2", "FedAU"): 100,
    ("option-1", "FedAU"): 100,
    ("option-2", "six rounds"): 6,
    ("option-2", "no cut-off"): 50,
    ("option-2", "noisy gradients"): 100,
    ("option-2", "Markov"): 100,
    ("option-1", "weight error alone"): 3000,
}
NOISE_FREE = {
    *(("option-2", name) for name in ("FedAU", "equal weights", "Markov", "cyclic")),
    ("option-1", "FedAU"),
    ("option-1", "weight error alone"),
    ("theorem-1", "exact gradients"),
}
STEPS = {("theorem-1", "large steps"): 2.0, ("option-1", "weight error alone"): 0.1}


def dimension(group: str, name: str) -> int:
    """Whether clients are in the plane, three of them, or on a line, two of them."""
    small = group in ("option-2-order", "corollary-4")
    return 1 if small or name in ("six rounds", "no cut-off", "bounded gradients") else 2


@pytest.mark.parametrize(("group", "name"), CELLS)
def test_regimes_of_the_optimiser(group: str, name: str) -> None:
    setting = OF_SETTINGS[group][name].setting
    in_plane = dimension(group, name) == 2
    long = group.endswith("order") or group == "corollary-4"
    assert setting.rounds == ROUNDS.get((group, name), 2000 if long else 200)
    check_who(setting, group, name, in_plane=in_plane)
    check_problem(setting, group, name, in_plane=in_plane)
    check_weights(setting, group, name)
    check_steps(setting, STEPS.get((group, name), 0.28 if group in ONE_OVER_P else 0.9))


def check_who(setting: Setting, group: str, name: str, *, in_plane: bool) -> None:
    who = setting.participation
    p = THREE if in_plane else OFTEN if group == "corollary-4" else PAIR
    p = NEARLY if name in ("nearly always there", "weight error alone") else p
    np.testing.assert_allclose(who.marginals, p, rtol=1e-12)
    if name == "Markov":
        assert isinstance(who, MarkovOnOff)
        np.testing.assert_allclose(who.correlation, (0.5, 0.7, 0.9) if in_plane else 0.8)
    elif name == "cyclic":
        assert isinstance(who, Cyclic)
        period = 20 if group == "corollary-4" else 10
        assert set(who.periods) == {period}
        first = (3, 8, 6) if in_plane else (19, 8) if period == 20 else (9, 4)
        assert tuple(who.offsets) == first
    else:
        assert isinstance(who, Bernoulli)


def check_problem(setting: Setting, group: str, name: str, *, in_plane: bool) -> None:
    problem, x0 = setting.problem, tuple(setting.x0)
    if name == "bounded gradients":
        assert isinstance(problem, LogCoshProblem)
        # The mean gradient is 2 tanh(x/2), the clients' 1/2 more and less.
        assert problem.largest_gradient == pytest.approx(2.0)
        assert problem.sigma_G == pytest.approx(0.5)
        assert (problem.L, problem.sigma, x0) == (1.0, 0.5, (1.5,))
        assert tuple(problem.x_star) == pytest.approx((0.0,))
        return
    assert isinstance(problem, QuadraticProblem)
    if not in_plane:
        assert problem.hessians.ravel().tolist() == [1.0] * problem.hessians.size
        assert (problem.optima.ravel().tolist(), x0) == ([-1.0, 1.0], (3.0,))
        assert problem.sigma == 0
        return
    assert problem.optima.tolist() == [[3, 0], [0, 3], [-3, -3]]
    unequal = [(1.0, 0.5), (0.5, 1.0), (0.9, 0.6)]
    expected = unequal if name == "different Hessians" else [(1.0, 0.5)]
    for hessian, diagonal in zip(problem.hessians.reshape(-1, 2, 2), expected, strict=False):
        assert hessian.tolist() == np.diag(diagonal).tolist()
    noise = 0.0 if (group, name) in NOISE_FREE else 2.0 if name == "noisy gradients" else 0.5
    assert problem.sigma == noise
    assert x0 == ((0.0, 0.0) if name == "weight error alone" else (6.0, -4.0))


def check_weights(setting: Setting, group: str, name: str) -> None:
    algorithm, p = setting.algorithm, setting.participation.marginals
    assert algorithm.local_steps == 2
    if (group, name) in OWN_WEIGHTS or group == "corollary-4":
        assert isinstance(algorithm, FedAU)
        assert algorithm.cutoff == {"six rounds": 3, "no cut-off": math.inf}.get(name, 5)
        return
    known = (group, name) in KNOWN or group in ONE_OVER_P
    expected = 1 / p if known else np.ones_like(p)
    np.testing.assert_allclose(np.array(algorithm.aggregation_weights) * p.size, expected)


def check_steps(setting: Setting, share: float) -> None:
    """gamma is a share of 1/(4 sqrt(15) L I), gamma eta of the smallest limit of any reading."""
    algorithm, problem = setting.algorithm, setting.problem
    smooth = problem.L * 2
    assert algorithm.client_lr == pytest.approx(share / (4 * math.sqrt(15) * smooth))
    n, p = problem.n_clients, setting.participation.marginals
    if isinstance(algorithm, FedAU):
        # The largest weights: as many as rounds in an interval, at most those before the last.
        longest = min(algorithm.cutoff, setting.rounds - 1)
        total, squares = math.inf, longest**2 * float(p.sum()) / n
        if isinstance(setting.participation, Cyclic):
            return
    else:
        weights = np.array(algorithm.aggregation_weights) * n
        total, squares = float(weights @ p), float(weights**2 @ p) / n
    limits = [1 / (4 * smooth), n / (54 * smooth * squares)]
    if total < math.inf:
        limits += [n / (4 * smooth * total), total / (27 * smooth * squares)]
    assert algorithm.client_lr * algorithm.server_lr == pytest.approx(share * min(limits))


RARE = (0.02, 0.1, 0.5)
BY_INTERVALS = {
    ("THEOREM_3", "K = 5"): (THREE, None, 5, 1000),
    ("THEOREM_3", "K = 50"): (RARE, None, 50, 1000),
    ("THEOREM_3", "before an interval ends"): ((0.5,), None, 3, 2),
    ("THEOREM_3", "often there"): ((0.9,), None, 5, 1000),
    ("THEOREM_3", "Markov"): (RARE, 0.9, 50, 1000),
    ("THEOREM_3", "slow Markov"): ((0.3,), 0.99, 10, 1000),
    ("THEOREM_3", "cyclic"): ((0.3,), (100, 60), 10, 1000),
    ("THEOREM_3_ORDER", "K = 5"): ((0.9, 0.6), None, 5, 2000),
    ("THEOREM_3_ORDER", "K = 50"): ((0.1,), None, 50, 2000),
    ("THEOREM_3_ORDER", "Markov"): ((0.3,), 0.9, 10, 2000),
    ("THEOREM_3_ORDER", "cyclic"): ((0.3,), (100, 60), 10, 2000),
}


def test_every_regime_of_theorem_3_is_listed() -> None:
    found = {
        (group, name)
        for group in ("THEOREM_3", "THEOREM_3_ORDER")
        for name in getattr(regimes, group)
    }
    assert found == set(BY_INTERVALS)


@pytest.mark.parametrize(("group", "name"), BY_INTERVALS)
def test_regimes_of_weights_alone(group: str, name: str) -> None:
    setting = getattr(regimes, group)[name].setting
    p, correlation, cutoff, rounds = BY_INTERVALS[group, name]
    who, problem = setting.participation, setting.problem
    np.testing.assert_allclose(who.marginals, p, rtol=1e-12)
    if correlation is None:
        assert isinstance(who, Bernoulli)
    elif isinstance(correlation, tuple):
        assert isinstance(who, Cyclic)
        assert (who.periods[0], who.offsets[0]) == correlation
    else:
        assert isinstance(who, MarkovOnOff)
        np.testing.assert_allclose(who.correlation, correlation)
    assert isinstance(setting.algorithm, FedAU)
    assert (setting.algorithm.cutoff, setting.rounds) == (cutoff, rounds)
    assert problem.optima.ravel().tolist() == list(range(len(p)))
    assert setting.x0.tolist() == [0.0]


def test_which_are_left_out_and_which_take_more_runs() -> None:
    assert set(regimes.THEOREM_1) - set(regimes.THEOREM_1_ORDER) == {"large steps"}
    assert {name: one.effort for name, one in regimes.COROLLARY_4.items()} == {
        "bounded gradients": 4, "quadratic": 1, "Markov": 1, "cyclic": 1,
    }  # fmt: skip
    assert {name: one.effort for name, one in regimes.COROLLARY_4_DERIVED.items()} == {
        "bounded gradients": 4, "quadratic": 4, "Markov": 1, "cyclic": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("weight", "p", "n", "largest"),
    [
        # Of 1/4, n/(54Q), n/(4P) and P/(27Q), over L I = 2, with P = n omega p and Q = omega^2 p.
        (0.1, 0.6, 3, 1 / 4),
        (1.0, 0.6, 3, 3 / (54 * 0.6)),
        (1.25, 1.0, 20, 20 / (4 * 25)),
        (0.2, 0.9, 1, 1 / (27 * 0.2)),
    ],
)
def test_every_limit_can_be_the_smallest(weight: float, p: float, n: int, largest: float) -> None:
    problem = QuadraticProblem([[1.0]], np.arange(float(n))[:, None])
    instance = regimes._Instance(problem, Bernoulli([p] * n), (weight,) * n, x0=(0.0,))
    limits = (1 / 4, n / (54 * weight**2 * p), 1 / (4 * weight * p), n / (27 * weight))
    algorithm = instance.setting.algorithm
    assert algorithm.client_lr * algorithm.server_lr == pytest.approx(0.9 * min(limits) / 2)
    assert min(limits) == pytest.approx(largest)

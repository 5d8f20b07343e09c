"""Rounds that are one sum over participants: against all sets, closed forms, and what is refused.

The law goes through `law_of_sums`; its counterpart runs the round on every participant set.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.algorithms import (
    AdaFed,
    AveragedIterate,
    ClusterFedVarp,
    FedAvg,
    FedAvgIS,
    Harmonic,
    LocalSgd,
    Mifa,
    Safari,
    Scaffold,
    Scheduled,
    ServerMomentum,
    Unbiased,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import CLIENTS, EVERY_ROUND_CLIENTS, Algorithm, in_round
from fltheory.engines import Setting, exact, stationary
from fltheory.engines.affine import probing
from fltheory.engines.affine.probe import Probe
from fltheory.engines.affine.probing import random_affine_map
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.moments.client_sums import _mean_square_weight, law_of_sums
from fltheory.engines.moments.moment_map import MomentMap
from fltheory.engines.observables import ParticipantExcessLoss, ParticipantGradientSum
from fltheory.participation import AtMost, Bernoulli, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import QuadraticProblem

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


@st.composite
def participations(draw: st.DrawFn, n_clients: int) -> Participation:
    """Draw a process over clients several of whom are alike, or none."""
    kind = draw(st.sampled_from(["uniform", "excluded", "Bernoulli", "at most", "stationary"]))
    if kind in ("uniform", "excluded"):
        most = n_clients - 1 if kind == "excluded" else 0
        excluded = draw(st.sets(st.integers(0, n_clients - 1), max_size=most))
        size = draw(st.integers(1, n_clients - len(excluded)))
        return UniformSubset(n_clients, size, excluded=excluded)
    chance = st.one_of(st.sampled_from([0.3, 0.8, 1.0]), st.floats(0.05, 1.0))
    p = draw(st.lists(chance, min_size=n_clients, max_size=n_clients))
    if kind == "at most":
        return AtMost(p, draw(st.integers(1, n_clients)))
    return Bernoulli(p) if kind == "Bernoulli" else MarkovOnOff(p, 0.0)


@st.composite
def algorithms(draw: st.DrawFn, n_clients: int) -> Algorithm | Any:
    lr, steps = draw(st.floats(0.05, 0.4)), draw(st.integers(1, 3))
    server_lr = draw(st.sampled_from([1.0, 0.7, 1.3]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    weights, alpha = rng.uniform(0, 0.5, n_clients), rng.dirichlet(np.ones(n_clients) * 5)
    fedavg = FedAvg(lr, steps, server_lr=server_lr)
    return draw(
        st.sampled_from(
            [
                fedavg,
                Safari(0.6, lr, 0.2, steps),
                WeightedFedAvg(tuple(weights + 0.01), lr, steps, server_lr=server_lr),
                FedAvgIS(tuple(rng.uniform(0.3, 1, n_clients)), lr, steps),
                Unbiased(alpha, rng.uniform(0.3, 1, n_clients), lr, steps),
                AdaFed(np.full(n_clients, 1 / n_clients), np.full(n_clients, 0.4), lr, steps),
                ServerMomentum(fedavg, 0.5),
                AveragedIterate(fedavg),
                Scheduled(fedavg, Harmonic(0.5, 1.0)),
            ]
        )
    )


@st.composite
def problems(draw: st.DrawFn, n_clients: int) -> QuadraticProblem:
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    dim, shared = draw(st.integers(1, 3)), draw(st.booleans())
    roots = rng.standard_normal((1 if shared else n_clients, dim, dim))
    hessians = 0.2 * np.eye(dim) + 0.3 * roots @ roots.swapaxes(1, 2)
    return QuadraticProblem(
        hessians[0] if shared else hessians,
        rng.standard_normal((n_clients, dim)) + draw(st.sampled_from([0.0, 30.0])),
        sigma=draw(st.sampled_from([0.0, 0.8])),
        server_sigma=draw(st.sampled_from([0.0, 0.5])),
        target_weights=rng.dirichlet(np.ones(n_clients) * 5) if draw(st.booleans()) else None,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, QuadraticProblem, Participation]:
    n_clients = draw(st.integers(1, 6))
    return (
        draw(algorithms(n_clients)),
        draw(problems(n_clients)),
        draw(participations(n_clients)),
    )


def close(found: Any, expected: Any, scale: float = 1.0) -> None:
    """Agree to 1e-10 of the largest entry."""
    expected = np.asarray(expected)
    size = max(scale, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * size)


def both_laws(
    algorithm: Any, problem: QuadraticProblem, participation: Participation
) -> list[tuple[RandomAffineMap, RandomAffineMap]]:
    """Return, for each branch, the law in closed form and that by all sets."""
    first = in_round(algorithm, 1)
    layout = StateLayout.of(first, problem)
    laws = []
    for branch, _ in first.branches:
        arguments = (layout.function(first, branch), problem, participation)
        origins = layout.origin, layout.origin
        summed = law_of_sums(Probe(*arguments[:2], *origins), participation)
        assert summed is not None
        laws.append((summed, random_affine_map(*arguments, *origins)))
    return laws


@given(cases())
def test_laws_are_those_of_all_sets(
    case: tuple[Any, QuadraticProblem, Participation],
) -> None:
    """Fails where group means are not taken off, or totals, or squares of phi are forgotten."""
    for summed, listed in both_laws(*case):
        n = summed.mean_slope.shape[1]
        rng = np.random.default_rng(0)
        root, first = rng.standard_normal((n, n)), rng.standard_normal(n)
        close(summed.mean_slope, listed.mean_slope)
        close(summed.mean_offset, listed.mean_offset)
        close(summed.noise, listed.noise)
        close(summed.spread(root @ root.T), listed.spread(root @ root.T))
        close(summed.dual(root + root.T), listed.dual(root + root.T))
        close(summed.cross(first), listed.cross(first))
        close(summed.spread_tensor, listed.spread_tensor)
        for name in ("inflow", "gram", "pulled_offset", "offset_square"):
            close(getattr(summed, name), getattr(listed, name))


def runs_both_ways(
    setting: Setting, observe: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    runs = []
    for limit in (10**9, 0):
        monkeypatch.setattr(probing, "_ENUMERATION_LIMIT", limit)
        runs.append(exact(setting, observe=observe))
    return runs


@given(cases())
def test_trajectories_are_those_of_all_sets(
    case: tuple[Any, QuadraticProblem, Participation],
) -> None:
    """Fails where a mixture of branches, or an observable, leaves the sums' moments out."""
    algorithm, problem, participation = case
    observe = [ParticipantGradientSum(2, 0.2)]
    if participation.fixed_size is not None:
        observe.append(ParticipantExcessLoss())
    setting = Setting(algorithm, problem, participation, 6, np.full(problem.dim, 1.5))
    with pytest.MonkeyPatch.context() as patch:
        listed, summed = runs_both_ways(setting, observe, patch)
        # The closed form must have been used: nothing is left to the other ways.
        for name in ("_by_symbols", "_by_enumeration"):
            patch.setattr(probing, name, None)
        exact(setting, observe=observe)
    for name in (*FIELDS, *(item.name for item in observe)):
        close(summed[name], listed[name], scale=0.0)
        difference = np.abs(summed[name] - listed[name])
        assert (difference <= summed.rounding_error[name] + listed.rounding_error[name]).all()


@pytest.mark.parametrize("shared", [True, False])
def test_limits_are_those_of_all_sets(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(6, 6, 2, shared=shared, sigma=0.7)
    for who in (UniformSubset(6, 3), Bernoulli(np.linspace(0.2, 0.9, 6))):
        setting = Setting(Safari(0.6, 0.2, 0.2, 2), problem, who, 1, [1.0, 2.0])
        limits = []
        for limit in (10**9, 0):
            monkeypatch.setattr(probing, "_ENUMERATION_LIMIT", limit)
            limits.append(stationary(setting))
        assert limits[1].squared_distance == pytest.approx(limits[0].squared_distance, rel=1e-10)
        np.testing.assert_allclose(limits[1].mean, limits[0].mean, atol=1e-11)


# --- many clients ------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_clients", "size"), [(1000, 10), (50_000, 500), (3000, 3000)])
def test_many_clients_with_one_isotropic_hessian(n_clients: int, size: int) -> None:
    """``s' = rho s + (1 - rho) mean_S(c - x*) + noise``, coordinate by coordinate.

    The mean of m of N drawn without replacement has variance ``var(c) (N - m) / (m (N - 1))``
    (Cochran, Sampling Techniques, theorem 2.2, with the population variance of divisor N).
    Fails where the number of pairs is taken for that of draws with replacement.
    """
    rng = np.random.default_rng(1)
    h, lr, steps, sigma, dim, rounds = 0.7, 0.3, 3, 0.6, 3, 25
    problem = QuadraticProblem(h * np.eye(dim), rng.normal(size=(n_clients, dim)), sigma=sigma)
    x0 = np.full(dim, 2.0)
    run = exact(Setting(FedAvg(lr, steps), problem, UniformSubset(n_clients, size), rounds, x0))
    decay = 1 - lr * h
    rho = decay**steps
    sampling = problem.optima.var(axis=0).sum() * (n_clients - size) / (size * (n_clients - 1))
    noise = (lr * sigma) ** 2 / size * sum(decay ** (2 * k) for k in range(steps))
    distance = float(((x0 - problem.optima.mean(axis=0)) ** 2).sum())
    for r in range(rounds + 1):
        assert run.squared_distance[r] == pytest.approx(distance, rel=1e-10)
        distance = rho**2 * distance + (1 - rho) ** 2 * sampling + noise


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("weights", ["average", "fixed"])
def test_clients_in_copies_are_as_few(shared: bool, weights: str) -> None:
    """Everybody with weights of copies added up: 400 copies of five clients are those five.

    A Bernoulli client of weight w in k copies is not one client, but its mean is the same.
    """
    few = random_problem(3, 5, 3, shared=shared)
    copies, n_clients = 400, 2000
    hessians = few.hessians if shared else np.repeat(few.hessians, copies, axis=0)
    many = QuadraticProblem(hessians, np.repeat(few.optima, copies, axis=0), sigma=0.0)
    few = QuadraticProblem(few.hessians, few.optima, sigma=0.0)
    q = np.array([0.3, 0.1, 0.25, 0.2, 0.15])
    pair = {
        "average": (FedAvg(0.2, 2), FedAvg(0.2, 2)),
        "fixed": (
            WeightedFedAvg(tuple(q), 0.2, 2),
            WeightedFedAvg(tuple(np.repeat(q / copies, copies)), 0.2, 2),
        ),
    }[weights]
    expected = exact(Setting(pair[0], few, UniformSubset(5, 5), 10, np.ones(3)))
    for who in (UniformSubset(n_clients, n_clients), Bernoulli(np.ones(n_clients))):
        run = exact(Setting(pair[1], many, who, 10, np.ones(3)))
        for name in FIELDS:
            np.testing.assert_allclose(run[name], expected[name], rtol=1e-10)


def test_many_coins_for_weighted_clients() -> None:
    """Scalar clients with c = 0 and ``x' = (1 - lr h sum_i q_i b_i) x``: mean and variance by hand.

    Availabilities all differ, so that there are as many groups as clients.
    """
    n_clients, lr = 20_000, 0.5
    p = np.linspace(0.1, 0.9, n_clients)
    q = np.linspace(1.0, 3.0, n_clients) / n_clients
    h = np.linspace(0.5, 1.5, n_clients)
    problem = QuadraticProblem(h[:, None, None], np.zeros((n_clients, 1)))
    run = exact(Setting(WeightedFedAvg(tuple(q), lr, 1), problem, Bernoulli(p), 1, [1.0]))
    each = lr * h * q
    expected = (1 - each @ p) ** 2 + (each**2) @ (p * (1 - p))
    assert run.squared_distance[1] == pytest.approx(expected, rel=1e-12)


def test_a_mean_over_many_who_come_alike() -> None:
    """Hessian 1, lr 1, optima +-1: E x^2 = E 1{somebody} (N - |S|) / (|S| (N - 1)).

    The chances of |S| are multiplied up from (1 - p)^N, in fractions of that.
    """
    n_clients, p = 3000, 0.01
    optima = np.tile([[1.0], [-1.0]], (n_clients // 2, 1))
    problem = QuadraticProblem([[1.0]], optima)
    run = exact(Setting(FedAvg(1.0, 1), problem, Bernoulli([p] * n_clients), 1, [0.0]))
    chance, expected = (1 - p) ** n_clients, 0.0
    for k in range(1, 400):
        chance *= (n_clients - k + 1) / k * p / (1 - p)
        expected += chance * (n_clients - k) / (k * (n_clients - 1))
    assert run.squared_distance[1] == pytest.approx(expected, rel=1e-10)


# --- what is refused, and what is left to other ways -------------------------------------------


@dataclass(frozen=True)
class Odd(FedAvg):
    """FedAvg whose round does something else, by name."""

    what: str = ""

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        x, steps, lr = state["x"], self.local_steps, self.client_lr
        weights = who.astype(float) / 4
        changes = {
            "squared": lambda: weights * weights,
            "shifted": lambda: weights + 0.1,
            "others": lambda: ~who,
            "compared": lambda: who & (np.arange(who.shape[1]) > 1),
            "of the model": lambda: weights * x[:, :1],
            "some": lambda: weights[:, :2],
            "cumulated": lambda: np.cumsum(weights, axis=1),
            "branch": lambda: weights if who[:, :2].any() else 0 * weights,
            "no numbers": lambda: weights / 0.0,
            "unequal sum": lambda: weights / (weights * np.arange(1, 7)).sum(axis=1, keepdims=True),
        }
        chosen = changes[self.what]() if self.what in changes else weights
        if self.what == "noise first":
            x = x - clients.server_gradient(x)
        update = clients.summed_local_sgd(x, who, chosen, steps=steps, lr=lr)
        if self.what == "twice":
            update = update + clients.summed_local_sgd(x, who, chosen, steps=steps, lr=lr)
        if self.what == "clipped":
            return {"x": np.clip(x + update, -1.0, 1.0)}
        if self.what == "losses":
            update = update + clients.loss(x, who).sum(axis=1, keepdims=True)
        return {"x": x + update}


ODD = (
    *("of the model", "some", "cumulated", "branch", "no numbers", "unequal sum"),
    *("twice", "clipped", "losses", "noise first"),
)


@pytest.mark.parametrize("what", ODD)
def test_other_rounds_are_left_to_other_ways(what: str) -> None:
    problem = random_problem(0, 6, 2)
    layout = StateLayout.of(FedAvg(0.1, 1), problem)
    function = layout.function(Odd(0.1, 1, what=what), CLIENTS)
    origins = layout.origin, layout.origin
    assert law_of_sums(Probe(function, problem, *origins), UniformSubset(6, 3)) is None
    plain = layout.function(Odd(0.1, 1), CLIENTS)
    assert law_of_sums(Probe(plain, problem, *origins), UniformSubset(6, 3)) is not None


@pytest.mark.parametrize("what", ["squared", "shifted", "others", "compared", ""])
@pytest.mark.parametrize("who", [UniformSubset(6, 3), Bernoulli([0.3, 0.8, 0.5, 0.5, 0.2, 1.0])])
def test_whatever_a_participant_weighs_is_read(what: str, who: Participation) -> None:
    """Weights of those who are absent do not count."""
    ((summed, listed),) = both_laws(Odd(0.1, 1, what=what), random_problem(0, 6, 2), who)
    for name in ("mean_slope", "mean_offset", "noise", "gram", "inflow"):
        close(getattr(summed, name), getattr(listed, name))


@pytest.mark.parametrize("n_clients", [3, 40])
def test_noise_before_the_sum_goes_through_it(n_clients: int) -> None:
    """A server step of 1/2 with noise of variance one, then half a step of all clients to 0.

    From 0 the model is half of half of that noise. Fails where the noise that clients begin with
    is left out: then the variance is 1/4.
    """

    class Assisted(FedAvg):
        def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
            y = state["x"] - 0.5 * clients.server_gradient(state["x"])
            weights = who.astype(float) / who.shape[1]
            return {"x": y + clients.summed_local_sgd(y, who, weights, steps=1, lr=0.5)}

    problem = QuadraticProblem([[1.0]], np.zeros((n_clients, 1)), server_sigma=1.0)
    everybody = UniformSubset(n_clients, n_clients)
    run = exact(Setting(Assisted(0.5, 1), problem, everybody, 1, [0.0]))
    assert run.squared_distance[1] == pytest.approx(1 / 16, rel=1e-13)


@dataclass(frozen=True)
class TwoFaced(FedAvg):
    """Weighs real participants otherwise than a symbol for them."""

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        x = state["x"]
        scale = 1.0 if isinstance(who, np.ndarray) else 2.0
        update = clients.summed_local_sgd(x, who, who * scale / 4, steps=1, lr=0.1)
        return {"x": x + update}


def test_real_rounds_must_agree_with_what_was_read() -> None:
    """Fails where drawn participants are not run as well."""
    problem = random_problem(0, 6, 2)
    layout = StateLayout.of(FedAvg(0.1, 1), problem)
    function = layout.function(TwoFaced(0.1, 1), CLIENTS)
    origins = layout.origin, layout.origin
    assert law_of_sums(Probe(function, problem, *origins), UniformSubset(6, 3)) is None


def test_agreement_is_asked_relative_to_the_numbers() -> None:
    """Optima a million apart: rounds in floats miss their forms by some 1e-10, of 1e6."""
    near = random_problem(0, 6, 2)
    far = QuadraticProblem(near.hessians, 1e6 * near.optima)
    long = FedAvg(0.1, 50)
    layout = StateLayout.of(long, far)
    origins = layout.origin, layout.origin
    probe = Probe(layout.function(long, CLIENTS), far, *origins)
    assert law_of_sums(probe, UniformSubset(6, 3))


@pytest.mark.parametrize(
    "algorithm",
    [
        Mifa(0.1, 1, start="zero"),
        Scaffold(0.1, 1),
        ClusterFedVarp((0,) * 3 + (1,) * 3, 0.1, 1),
        LocalSgd(Harmonic(0.5), 2, (1 / 6,) * 6),
        AdaFed(np.full(6, 1 / 6), np.linspace(0.2, 0.8, 6), 0.1, 1),
    ],
    ids=["MIFA", "SCAFFOLD", "clusters", "single steps", "AdaFed"],
)
def test_memory_is_left_to_other_ways(algorithm: Any) -> None:
    problem = random_problem(0, 6, 2)
    first = in_round(algorithm, 1)
    layout = StateLayout.of(first, problem)
    function = layout.function(first, EVERY_ROUND_CLIENTS[0][0])
    origins = layout.origin, layout.origin
    assert law_of_sums(Probe(function, problem, *origins), UniformSubset(6, 3)) is None


def test_too_many_clients_for_other_ways_are_refused() -> None:
    problem = QuadraticProblem(np.eye(2), np.zeros((20_000, 2)))
    shares = AdaFed(np.full(20_000, 1 / 20_000), np.linspace(0.2, 0.8, 20_000), 0.1, 1)
    setting = Setting(shares, problem, UniformSubset(20_000, 100), 1, [0.0, 0.0])
    message = r"at most 10000 clients .* weighted sum .* got 20000: use engines\.monte_carlo"
    with pytest.raises(NotAffineError, match=message):
        exact(setting)


def test_too_many_kinds_of_clients_are_refused() -> None:
    problem = QuadraticProblem(np.eye(2), np.zeros((3000, 2)))
    process = Bernoulli(np.linspace(0.1, 0.9, 3000))
    message = r"at most 1024 distinct values .* got 3000: use engines\.monte_carlo"
    with pytest.raises(NotAffineError, match=message):
        exact(Setting(FedAvg(0.1, 1), problem, process, 1, [0.0, 0.0]))


# --- rounding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_constants_of_the_rounding_are_those_by_sets(shared: bool) -> None:
    """Each within a factor of 12 of what factors set by set give."""
    problem = random_problem(2, 6, 2, shared=shared)
    ((summed, listed),) = both_laws(FedAvg(0.2, 2), problem, UniformSubset(6, 3))
    ours, theirs = MomentMap(summed).rounding, MomentMap(listed).rounding
    for name in ("second_gain", "offset_size", "first_gain", "first_size"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-10)
    for name in ("slope_work", "cross_work", "inflow_work", "slope_error", "offset_error", "unit"):
        assert getattr(ours, name) <= 12 * getattr(theirs, name)
        assert getattr(ours, name) > 0


@pytest.mark.parametrize("shared", [True, False])
def test_noise_of_many_local_steps_may_have_lost_what_their_powers_lose(shared: bool) -> None:
    """Most of what rounding takes at 1,000 steps, by sets as well; sums take a tenth at most."""
    problem = random_problem(2, 6, 2, shared=shared)
    ((summed, listed),) = both_laws(FedAvg(1e-3, 1000), problem, UniformSubset(6, 3))
    assert summed.noise_error / listed.noise_error == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize(
    "who", [UniformSubset(5, 2), UniformSubset(5, 3, excluded=(4,)), Bernoulli([0.4] * 5)]
)
def test_the_mean_square_of_what_all_participants_count(who: Participation) -> None:
    """Added up over all sets of participants; more by what weights that are alike would add.

    That is ``(P(i) - P(i, j)) n mean^2`` for n clients who come alike.
    """
    weights = np.array([0.5, -1.0, 2.0, 0.1, -0.3])
    expected = 0.0
    if isinstance(who, UniformSubset):
        alike, m = np.abs(weights[: 5 - len(who.excluded)]), who.size
        apart = m / alike.size - m * (m - 1) / (alike.size * (alike.size - 1))
    else:
        alike, apart = np.abs(weights), 0.4 - 0.4**2
    more = apart * alike.size * float(alike.mean()) ** 2
    for present in itertools.product([0.0, 1.0], repeat=5):
        size = int(sum(present))
        if isinstance(who, UniformSubset):
            eligible = 5 - len(who.excluded)
            is_set = size == who.size and not any(present[i] for i in who.excluded)
            chance = is_set / math.comb(eligible, who.size)
        else:
            chance = 0.4**size * 0.6 ** (5 - size)
        expected += chance * float(np.abs(weights) @ present) ** 2
    effects: Any = SimpleNamespace(coefficients=weights)
    found = _mean_square_weight(effects, who.inclusions(np.ones(6)))
    assert found == pytest.approx(math.sqrt(expected + more), rel=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_how_many_terms_an_entry_sums(shared: bool) -> None:
    """Six clients in one block and one group, what their inclusions are wrong by, and products.

    With a model of 2 in a state of 4: for one slope 2 x 2 and 2 x 4 more, and for slopes of their
    own 2^2, 2 x 2 and 2 x 2.
    """
    problem = random_problem(2, 6, 2, shared=shared)
    averaged = ServerMomentum(FedAvg(0.2, 2), 0.5)
    who = UniformSubset(6, 3)
    ((summed, _),) = both_laws(averaged, problem, who)
    (part,) = summed.sums
    assert summed.mean_slope.shape == (4, 4)
    of_products = 4 + 8 if shared else 4 + 4 + 4
    of_inclusions = who.inclusions(np.ones(7)).relative_error * 2**53
    assert part.operations == pytest.approx(6 + 1 + 1 + of_inclusions + of_products)

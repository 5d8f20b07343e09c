"""The exact engine along chains: every path, independent rounds, symmetries, sampling."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import (
    Affine,
    RawQuadratics,
    participant_excess_loss,
    participant_gradient_sum,
    random_problem,
)
from scipy.special import stdtrit

from fltheory.algorithms import (
    AveragedIterate,
    FedAvg,
    Harmonic,
    Safari,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import in_round
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.affine.probe import DependentRoundsError
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.moments import moment_recursion
from fltheory.engines.observables import (
    ParticipantExcessLoss,
    ParticipantGradientSum,
    QuadraticForm,
)
from fltheory.engines.trajectory import FIELDS
from fltheory.participation import FiniteChain, MarkovOnOff, Trace
from fltheory.problems import QuadraticProblem, nonconvex
from tests.drawn import in_turn

STEPS, LR = 2, 0.25
NAMES = (*FIELDS, "participant_gradient_sum", "participant_excess_loss")
OBSERVE = [ParticipantGradientSum(STEPS, LR), ParticipantExcessLoss()]


@dataclass(frozen=True)
class Halving:
    """Step sizes 1/4, 1/8, ..., free of rounding."""

    def at(self, round_index: int) -> float:
        return 0.5 ** (round_index + 1)


class EveryPath:
    """An algorithm along every path of a chain's states, in rational numbers.

    The model's mean and covariance given the path; the average of the models, where there is
    one, stands before the model that the rounds go on from.
    """

    def __init__(self, algorithm: Any, problem: QuadraticProblem, rounds: int) -> None:
        self.raw = RawQuadratics(problem, Fraction)
        self.averaged = isinstance(algorithm, AveragedIterate)
        self.schedule = algorithm.algorithm if self.averaged else algorithm
        self.rounds = rounds
        self.gradients = [self.raw.local_gradients(i, STEPS, LR) for i in range(problem.n_clients)]
        self.expected = {name: [Fraction(0)] * (rounds + 1) for name in NAMES}

    def affine_maps(self, members: np.ndarray, round_: int) -> list[Affine]:
        raw, now = self.raw, in_round(self.schedule, round_)
        weights = {i: Fraction(1, len(members)) for i in members}
        if isinstance(now, WeightedFedAvg):
            weights = {i: Fraction(now.aggregation_weights[i]) for i in members}
        weights = {i: w * Fraction(getattr(now, "server_lr", 1)) for i, w in weights.items()}
        local = {i: raw.local_sgd(i, now.local_steps, now.client_lr) for i in members}
        zero = 0 * raw.identity
        maps = [
            Affine(
                Fraction(getattr(now, "q", 1)),
                raw.identity
                + sum((w * (local[i].slope - raw.identity) for i, w in weights.items()), zero),
                sum((w * local[i].offset for i, w in weights.items()), zero[0]),
                sum((w**2 * local[i].noise for i, w in weights.items()), zero),
            )
        ]
        if isinstance(now, Safari):
            maps.append(raw.server_step(now.assist_lr, 1 - Fraction(now.q)))
        return [self.with_average(law, round_) for law in maps] if self.averaged else maps

    def with_average(self, law: Affine, round_: int) -> Affine:
        steps = [Fraction(in_round(self.schedule, t).client_lr) for t in range(1, round_ + 1)]
        share, one, zero = steps[-1] / sum(steps), self.raw.identity, 0 * self.raw.identity
        return Affine(
            law.probability,
            np.block([[(1 - share) * one, share * one], [zero, law.slope]]),
            np.concatenate([zero[0], law.offset]),
            np.block([[zero, zero], [zero, law.noise]]),
        )

    def run(self, chain: FiniteChain, x0: list[float]) -> dict[str, np.ndarray]:
        start = np.array([Fraction(value) for value in x0] * (2 if self.averaged else 1))
        cold = 0 * np.outer(start, start)
        transition = [[Fraction(p) for p in row] for row in chain.transition.tolist()]
        masks = [np.flatnonzero(mask) for mask in chain.state_masks]

        def visit(mean: Any, cov: Any, state: int, round_: int, chance: Fraction) -> None:
            self.record(mean, cov, masks[state], round_, chance)
            if round_ == self.rounds:
                return
            for law in self.affine_maps(masks[state], round_ + 1):
                image = law.slope @ mean + law.offset
                spread = law.slope @ cov @ law.slope.T + law.noise
                for target, p in enumerate(transition[state]):
                    if p:
                        visit(image, spread, target, round_ + 1, chance * law.probability * p)

        for state, p in enumerate(chain.initial.tolist()):
            if p:
                visit(start, cold, state, 0, Fraction(p))
        return {name: np.array(values, dtype=float) for name, values in self.expected.items()}

    def record(self, mean: Any, cov: Any, members: Any, round_: int, chance: Fraction) -> None:
        dim = self.raw.dim
        first, second = mean[:dim], (np.outer(mean, mean) + cov)[:dim, :dim].ravel()
        found = self.raw.errors(second, first)
        if len(members):
            sets = [tuple(members)]
            found["participant_gradient_sum"] = participant_gradient_sum(
                self.gradients, sets, second, first
            )
            found["participant_excess_loss"] = participant_excess_loss(
                self.raw, sets, second, first
            )
        for name, value in found.items():
            self.expected[name][round_] += chance * value


THREE_STATES = [[0.5, 0.25, 0.25], [0.0, 0.75, 0.25], [0.125, 0.0, 0.875]]
CHAINS = {
    "three clients, one empty state": FiniteChain(
        THREE_STATES, [[1, 0, 1], [0, 0, 0], [1, 1, 1]], start=0
    ),
    "hidden states with the same set": FiniteChain(
        THREE_STATES, [[1, 1, 0], [1, 1, 0], [0, 0, 1]], start=2
    ),
    "from the stationary law": FiniteChain([[0.75, 0.25], [0.25, 0.75]], [[1, 0, 1], [0, 1, 1]]),
}
ALGORITHMS = {
    "average": FedAvg(LR, STEPS, server_lr=1.5),
    "raw weights": WeightedFedAvg((0.5, 1.25, 0.75), LR, STEPS, server_lr=0.5),
    "branches": Safari(0.75, LR, 0.5, STEPS),
    "schedule": Scheduled(WeightedFedAvg((0.5, 1.25, 0.75), LR, STEPS), Halving()),
    "average of models": AveragedIterate(Scheduled(FedAvg(LR, STEPS), Halving())),
}


@pytest.mark.parametrize(("algorithm", "chain"), in_turn(ALGORITHMS, CHAINS))
def test_agrees_with_every_path(algorithm: str, chain: str) -> None:
    """N = 3, R = 4 (R = 3 with branches), K = 2, noise; 1e-12 of each number."""
    rounds = 3 if algorithm == "branches" else 4
    problem = random_problem(5, 3, 2)
    arguments = (ALGORITHMS[algorithm], problem)
    run = exact(Setting(*arguments, CHAINS[chain], rounds, [2.0, -1.5]), observe=OBSERVE)
    expected = EveryPath(*arguments, rounds).run(CHAINS[chain], [2.0, -1.5])
    assert run.rounding_error is not None
    for name in NAMES:
        np.testing.assert_allclose(run[name], expected[name], rtol=1e-12, atol=1e-14)
        gap = np.abs(run[name] - expected[name])
        assert (gap <= run.rounding_error[name] + 2e-16 * np.abs(expected[name])).all()
        assert (run.rounding_error[name] <= 1e-9 * np.abs(expected[name]).max()).all()


def test_two_clients_of_their_own_chains_agree_with_every_path() -> None:
    """The product of two on-off chains, kept in factors, started where it never returns."""
    problem = random_problem(6, 2, 1)
    chains = MarkovOnOff([0.5, 0.25], [0.5, -0.25], start=[1, 0])
    algorithm = WeightedFedAvg((0.5, 1.5), LR, STEPS)
    run = exact(Setting(algorithm, problem, chains, 4, [2.0]), observe=OBSERVE)
    expected = EveryPath(algorithm, problem, 4).run(chains.as_chain(), [2.0])
    for name in NAMES:
        np.testing.assert_allclose(run[name], expected[name], rtol=1e-12, atol=1e-14)


def test_a_client_that_has_left_for_good() -> None:
    """pi = 0 and nu = 1/2, begun present: there at round r + 1 with probability 2^-r."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    algorithm = WeightedFedAvg((1.0,), 0.5, 1)
    run = exact(Setting(algorithm, problem, MarkovOnOff([0.0], 0.5, start=[1]), 3, [1.0]))
    stays = [0.5, 0.25, 0.25]
    ends = [0.5, 0.25, 0.125]
    expected = [1.0, 0.25]
    expected.append(stays[0] * ends[0] ** 2 + stays[0] * ends[1] ** 2)
    expected.append(0.5 * ends[0] ** 2 + 0.25 * ends[1] ** 2 + 0.25 * ends[2] ** 2)
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-14)


def test_a_record_played_in_a_loop() -> None:
    """One client, there in rounds 1 and 3 of 3: halves its distance whenever it is there."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    arguments = (FedAvg(0.5, 1), problem)
    halvings = {0: [0, 1, 1, 2, 3, 3], 1: [0, 0, 1, 2, 2, 3], 2: [0, 1, 2, 2, 3, 4]}
    for start, counts in halvings.items():
        run = exact(Setting(*arguments, Trace([[1], [0], [1]], start=start), 5, [1.0]))
        np.testing.assert_allclose(run.squared_distance, 0.25 ** np.array(counts), rtol=1e-14)
    anywhere = exact(Setting(*arguments, Trace([[1], [0], [1]]), 5, [1.0]))
    expected = np.mean([0.25 ** np.array(counts) for counts in halvings.values()], axis=0)
    np.testing.assert_allclose(anywhere.squared_distance, expected, rtol=1e-14)


# --- one computation, several ways -----------------------------------------------------------


def assert_same(left: Any, right: Any, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_independent_rounds_agree_with_the_model_alone(algorithm: str) -> None:
    """States that remember something of the state before which the sets do not show."""
    problem = random_problem(7, 3, 2)
    independent = MarkovOnOff([0.5, 0.25, 0.75], 0.0)
    law, masks = zip(*independent.outcomes(), strict=True)
    marks = [[0.75, 0.25], [0.5, 0.5]]
    transition = np.repeat(np.kron(marks, [law]), len(law), axis=0)
    marked = FiniteChain(transition, np.vstack([masks, masks]))
    assert independent.independent
    assert not marked.independent
    arguments = (ALGORITHMS[algorithm], problem)
    left = exact(Setting(*arguments, marked, 12, [1.0, 2.0]))
    assert_same(left, exact(Setting(*arguments, independent, 12, [1.0, 2.0])), FIELDS)


def chain_of(seed: int, n_states: int, n_clients: int, **start: int) -> FiniteChain:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(n_states, 0.5), size=n_states) + 0.01
    return FiniteChain(
        transition / transition.sum(axis=1, keepdims=True),
        rng.random((n_states, n_clients)) < 0.5,
        **start,
    )


@given(st.permutations(range(6)), st.integers(0, 50))
@settings(max_examples=15)
def test_names_of_states_do_not_matter(order: list[int], seed: int) -> None:
    problem, chain = random_problem(seed, 3, 2), chain_of(seed, 6, 3, start=4)
    renamed = FiniteChain(
        chain.transition[np.ix_(order, order)], chain.state_masks[order], start=order.index(4)
    )
    runs = [
        exact(Setting(Safari(0.7, LR, 0.2, STEPS), problem, c, 6, [1.0, 2.0]), observe=OBSERVE)
        for c in (chain, renamed)
    ]
    assert_same(*runs)


@given(st.permutations(range(4)), st.integers(0, 50))
@settings(max_examples=15)
def test_names_of_clients_do_not_matter(order: list[int], seed: int) -> None:
    problem, chain = random_problem(seed, 4, 2), chain_of(seed, 5, 4)
    weights = (0.1, 0.2, 0.3, 0.4)
    renamed = QuadraticProblem(problem.hessians[order], problem.optima[order], sigma=problem.sigma)
    renamed_chain = FiniteChain(chain.transition, chain.state_masks[:, order])
    left = exact(
        Setting(WeightedFedAvg(weights, LR, STEPS), problem, chain, 6, [1.0, 2.0]), observe=OBSERVE
    )
    right = exact(
        Setting(
            WeightedFedAvg(tuple(weights[i] for i in order), LR, STEPS),
            renamed,
            renamed_chain,
            6,
            [1.0, 2.0],
        ),
        observe=OBSERVE,
    )
    assert_same(left, right)


@pytest.mark.parametrize("start", [None, [1, 0, 1, 1]])
def test_factors_agree_with_the_matrix(start: list[int] | None) -> None:
    problem = random_problem(8, 4, 2)
    chains = MarkovOnOff([0.2, 0.5, 0.9, 1.0], [0.9, -0.3, 0.1, 0.5], start=start)
    arguments = (WeightedFedAvg((0.4, 0.3, 0.2, 0.1), LR, STEPS), problem)
    assert_same(
        exact(Setting(*arguments, chains, 25, [1.0, 2.0]), observe=OBSERVE),
        exact(Setting(*arguments, chains.as_chain(), 25, [1.0, 2.0]), observe=OBSERVE),
    )


def test_the_stationary_start_is_the_mixture_of_all_starts() -> None:
    problem, chain = random_problem(9, 3, 2), chain_of(3, 4, 3)
    arguments = (FedAvg(LR, STEPS), problem)
    whole = exact(Setting(*arguments, chain, 10, [1.0, 2.0]), observe=OBSERVE)
    each = [
        exact(
            Setting(
                *arguments,
                FiniteChain(chain.transition, chain.state_masks, start=state),
                10,
                [1.0, 2.0],
            ),
            observe=OBSERVE,
        )
        for state in range(4)
    ]
    for name in NAMES:
        mixed = sum(p * run[name] for p, run in zip(chain.stationary, each, strict=True))
        np.testing.assert_allclose(whole[name], mixed, rtol=1e-11)


@pytest.mark.parametrize(
    ("algorithm", "participation"),
    [
        (
            WeightedFedAvg((0.4, 0.3, 0.2, 0.6), LR, STEPS),
            MarkovOnOff([0.2, 0.5, 0.9, 0.6], [0.95, -0.3, 0.1, 0.8]),
        ),
        (
            AveragedIterate(Scheduled(Safari(0.7, LR, 0.2, STEPS), Harmonic(1.0, 2.0))),
            chain_of(1, 6, 4, start=2),
        ),
        (FedAvg(LR, STEPS), Trace(np.random.default_rng(2).random((7, 4)) < 0.6)),
    ],
    ids=["raw weights, on-off", "average of models, chain", "record"],
)
def test_monte_carlo_agrees(algorithm: Any, participation: Any) -> None:
    """4,000 runs; all t-intervals together miss with a probability below 1e-9."""
    arguments = (algorithm, random_problem(4, 4, 2), participation, 12, [1.0, -2.0])
    truth, replicas = exact(Setting(*arguments), observe=OBSERVE), 4000
    sampled = monte_carlo(Setting(*arguments), replicas=replicas, seed=0, observe=OBSERVE)
    assert sampled.standard_error is not None
    quantile = -stdtrit(replicas - 1, 1e-9 / (2 * 13 * len(NAMES)))
    for name in NAMES:
        slack = quantile * sampled.standard_error[name] + 1e-12 * np.abs(truth[name])
        assert (np.abs(sampled[name] - truth[name]) <= slack).all()


def test_maps_of_rounds_that_differ_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map of many states is large: only one that serves several rounds stays till the end."""
    kept: list[tuple[bool, int]] = []
    honest = moment_recursion.propagate

    def noted(rounds, *arguments):
        kept.extend((step is not None, count) for _, step, count in rounds)
        return honest(rounds, *arguments)

    monkeypatch.setattr(moment_recursion, "propagate", noted)
    chain = CHAINS["from the stationary law"]
    for algorithm, expected in (
        (Scheduled(FedAvg(LR, STEPS), Harmonic(1.0)), [(False, 1)] * 5),
        (FedAvg(LR, STEPS), [(True, 5)]),
    ):
        exact(Setting(algorithm, random_problem(5, 3, 2), chain, 5, [2.0, -1.5]))
        assert kept == expected
        kept.clear()


# --- divergence and refusals -----------------------------------------------------------------


def test_divergence_is_dated() -> None:
    """One client, there at first and always: ``s' = -2 s``, whose square is 4^r."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    run = exact(Setting(FedAvg(3.0, 1), problem, MarkovOnOff([1.0], 0.5, start=[0]), 600, [1.0]))
    assert run.diverged_at is not None
    assert np.isfinite(run.squared_distance[: run.diverged_at]).all()
    assert np.isposinf(run.squared_distance[run.diverged_at :]).all()
    assert run.rounding_error is not None
    assert np.isposinf(run.rounding_error.excess_loss[run.diverged_at :]).all()


def test_a_round_beyond_floats_diverges_at_once() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    run = exact(Setting(FedAvg(1e3, 120), problem, MarkovOnOff([0.5, 0.5], 0.5), 3, [1.0]))
    assert run.diverged_at == 1
    assert run.squared_distance[0] == 1.0


def test_too_many_states_are_refused() -> None:
    problem = QuadraticProblem([[1.0]], np.zeros((13, 1)))
    message = (
        r"at most 4096 states, .*MarkovOnOff\(13 clients\) with 8192: use .*engines\.monte_carlo"
    )
    with pytest.raises(DependentRoundsError, match=message):
        exact(Setting(FedAvg(0.5, 1), problem, MarkovOnOff([0.5] * 13, 0.5), 1, [1.0]))


def test_nonconvex_problems_are_refused() -> None:
    problem = nonconvex(2, 2, L=1.0, sigma_G=1.0)
    with pytest.raises(NotAffineError, match=r"use engines\.monte_carlo"):
        exact(Setting(FedAvg(0.1, 1), problem, MarkovOnOff([0.5, 0.5], 0.5), 5, [0.0, 0.0]))


def test_error_of_a_form_by_hand() -> None:
    """3 s^2 + 2 x 5 s - 7 in a state of weight 1/4, with E s^2 1{state} = 16: a distance of 2.

    Of moments 3 x .3 + 2 x 5 x .2; of weights 7 x .5; of reading out a hundredth (the roundings of
    floats are far below) of 3 x 16 + 2 x 5 x 2 + 7/4; of an origin that is off by a tenth
    .1 (3 (2 x 2 + .1/4) + 2 x 5/4).
    """
    form = QuadraticForm(np.array([[3.0]]), np.array([5.0]), -7.0, relative_error=0.01)
    sizes = [np.array([[value]]) for value in (16.0, 0.3, 0.2)]
    weight, wrong = np.array([[0.25]]), np.array([[0.5]])

    def found(second: float, first: float) -> float:
        totals = np.array([second]), np.array([first])
        by_state = QuadraticForm.by_state([form])
        return by_state.error(*sizes, 0.1, weights=weight, weight_error=wrong, totals=totals)[0]

    assert found(np.inf, np.inf) == pytest.approx(2.9 + 3.5 + 0.6975 + 1.4575, rel=1e-13)
    # The sums over states have another bound, 3 x .1 + 2 x 5 x .1, which counts where it is less.
    assert found(0.1, 0.1) == pytest.approx(1.3 + 3.5 + 0.6975 + 1.4575, rel=1e-13)

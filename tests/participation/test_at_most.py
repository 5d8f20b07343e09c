"""At most S of those available, and subsets that are waited for: FedAvg(S) both ways."""

from __future__ import annotations

from itertools import combinations, islice, product

import numpy as np
import pytest

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, exact, stationary
from fltheory.engines.affine.probe import DependentRoundsError
from fltheory.participation import AtMost, UniformSubset, WaitingSubset
from fltheory.problems import QuadraticProblem

P = [0.25, 1.0, 0.5, 0.75]


def law_by_hand(p: list[float], size: int) -> dict[tuple[int, ...], float]:
    """Enumerate who is available, then who of them is drawn."""
    law: dict[tuple[int, ...], float] = {}
    for there in product([False, True], repeat=len(p)):
        chance = np.prod([q if here else 1 - q for q, here in zip(p, there, strict=True)])
        available = [client for client, here in enumerate(there) if here]
        drawn = list(combinations(available, min(size, len(available))))
        for members in drawn:
            law[members] = law.get(members, 0.0) + chance / len(drawn)
    return {members: chance for members, chance in law.items() if chance > 0}


@pytest.mark.parametrize("p", [P, [1.0, 1.0, 0.5, 1.0], [1.0] * 4, [0.3] * 4])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_law_is_the_enumerated_one(p: list[float], size: int) -> None:
    process, expected = AtMost(p, size), law_by_hand(p, size)
    found = {tuple(np.flatnonzero(mask).tolist()): chance for chance, mask in process.outcomes()}
    assert found == pytest.approx(expected, rel=1e-13)
    assert process.n_outcomes == len(expected)
    sizes = {len(members) for members in expected}
    assert process.fixed_size == (sizes.pop() if len(sizes) == 1 else None)
    marginals, pairs = np.zeros(4), np.zeros((4, 4))
    for members, chance in expected.items():
        mask = np.isin(np.arange(4), members)
        marginals += chance * mask
        pairs += chance * np.outer(mask, mask)
    np.testing.assert_allclose(process.marginals, marginals, rtol=1e-13)
    np.testing.assert_allclose(process.pair_inclusions, pairs, rtol=1e-13)


def test_draws_have_the_law() -> None:
    """200,000 draws; seven standard deviations for each of 7 sets: false alarm below 1e-10."""
    process = AtMost(P, 2)
    drawn = np.concatenate(list(islice(process.masks(np.random.default_rng(1), 1000), 200)))
    assert process.n_outcomes == 7
    for chance, mask in process.outcomes():
        share = (drawn == mask).all(axis=1).mean()
        assert abs(share - chance) <= 7 * np.sqrt(chance * (1 - chance) / len(drawn))


def test_moments_with_at_most_one_by_hand() -> None:
    """Optima -1 and 1, p = (1/2, 1), half steps: x <- (x - 1)/2 or (x + 1)/2.

    With chances 1/4 and 3/4, from 0: E x = E x^2 = 1/4 after a round; after the second
    E x^2 = (1/4 + 2 (1/4) (3/4 - 1/4) + 1)/4 = 3/8.
    """
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    run = exact(Setting(FedAvg(0.5, 1), problem, AtMost([0.5, 1.0], 1), 2, [0.0]))
    assert run.squared_distance == pytest.approx([0, 0.25, 0.375], rel=1e-13)


def test_mean_waits_in_closed_form() -> None:
    """1/p for one; for two 1/p + 1/q - 1/(p + q - pq); for three of equal p likewise."""
    assert WaitingSubset([0.5, 0.25], 1).mean_wait == pytest.approx(3, rel=1e-13)
    assert WaitingSubset([0.5, 0.25], 2).mean_wait == pytest.approx(6 - 1 / 0.625, rel=1e-13)
    p = 0.004
    longest = 3 / p - 3 / (1 - (1 - p) ** 2) + 1 / (1 - (1 - p) ** 3)
    assert WaitingSubset([p] * 5, 3).mean_wait == pytest.approx(longest, rel=1e-12)
    assert WaitingSubset([1.0] * 5, 3).mean_wait == 1


def test_mean_wait_is_the_average_over_subsets() -> None:
    expected = np.mean(
        [WaitingSubset([P[i], P[j]], 2).mean_wait for i, j in combinations(range(4), 2)]
    )
    assert WaitingSubset(P, 2).mean_wait == pytest.approx(expected, rel=1e-13)


def test_long_run_law_of_waiting() -> None:
    process = WaitingSubset(P, 2)
    outcomes = list(process.outcomes())
    assert len(outcomes) == process.n_outcomes == 7
    assert sum(chance for chance, _ in outcomes) == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(
        sum(chance * mask for chance, mask in outcomes), process.marginals, rtol=1e-13
    )
    np.testing.assert_allclose(
        sum(chance * np.outer(mask, mask) for chance, mask in outcomes),
        process.pair_inclusions,
        rtol=1e-13,
    )
    assert len(set(process.marginals)) == 1


def test_waits_are_drawn_as_they_should() -> None:
    """First waits of 100,000 runs: P(T <= t) is the mean over pairs of products.

    Seven standard deviations at each of 5 times, and for each of 6 pairs: below 1e-10.
    """
    process, runs = WaitingSubset(P, 2), 100_000
    rounds = np.stack(list(islice(process.masks(np.random.default_rng(2), runs), 6)))
    sizes = rounds.sum(axis=2)
    assert set(np.unique(sizes)) == {0, 2}
    waited = np.where((sizes > 0).any(axis=0), (sizes > 0).argmax(axis=0) + 1, 7)
    for t in range(1, 6):
        seen = 1 - (1 - np.array(P)) ** t
        chance = np.mean([seen[i] * seen[j] for i, j in combinations(range(4), 2)])
        share = (waited <= t).mean()
        assert abs(share - chance) <= 7 * np.sqrt(chance * (1 - chance) / runs)
    complete = waited <= 6
    first = rounds[waited[complete] - 1, complete]
    for i, j in combinations(range(4), 2):
        seen = 1 - (1 - np.array(P)) ** 6
        chance = seen[i] * seen[j] / 6
        share = (first[:, i] & first[:, j]).sum() / runs
        assert abs(share - chance) <= 7 * np.sqrt(chance * (1 - chance) / runs)


def test_nothing_to_wait_for_is_a_uniform_subset() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0], [3.0]])
    run = exact(Setting(FedAvg(0.5, 1), problem, WaitingSubset([1.0] * 3, 2), 3, [0.0]))
    expected = exact(Setting(FedAvg(0.5, 1), problem, UniformSubset(3, 2), 3, [0.0]))
    np.testing.assert_allclose(run.squared_distance, expected.squared_distance, rtol=1e-14)


def test_waiting_is_exact_along_its_states() -> None:
    """One client is seen with probability 1/2, the other at once; a step halves x.

    1: half have waited enough. 2: half of those go on, and half of the others come to it:
    x = 1/4, 1/2, 1/2 and 1 with probability 1/4 each.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    run = exact(Setting(FedAvg(0.5, 1), problem, WaitingSubset([0.5, 1.0], 2), 2, [1.0]))
    expected = [1.0, 5 / 8, (1 / 16 + 1 / 4 + 1 / 4 + 1) / 4]
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-14)


@pytest.mark.parametrize("p", [P, [0.3, 1.0, 0.6, 1.0]])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_states_give_the_law_of_the_waits(p: list[float], size: int) -> None:
    """P(T <= t), T the first wait, is the mean over subsets of products; and the long run's law."""
    process = WaitingSubset(p, size)
    states = process.states()
    assert len(states.masks) == process.n_states
    assert states.initial.sum() == pytest.approx(1, rel=1e-13)
    np.testing.assert_allclose(states.limit @ states.masks, process.marginals, rtol=1e-11)
    complete, waiting = states.masks.any(axis=1), states.initial
    for t in range(1, 6):
        seen = 1 - (1 - np.array(p)) ** t
        expected = np.mean([seen[list(c)].prod() for c in combinations(range(4), size)])
        assert 1 - waiting[~complete].sum() == pytest.approx(expected, rel=1e-12)
        waiting = states.forward(np.where(complete, 0.0, waiting))


def test_a_model_does_not_know_how_long_it_waits() -> None:
    """The limit is that of uniform subsets, exactly."""
    problem = QuadraticProblem([[[1.0]], [[0.5]], [[2.0]]], [[-1.0], [1.0], [3.0]], sigma=0.5)
    found, expected = (
        stationary(Setting(FedAvg(0.3, 2), problem, process, 1, problem.x_star))
        for process in (WaitingSubset([0.3, 0.6, 0.9], 2), UniformSubset(3, 2))
    )
    assert found.squared_distance == pytest.approx(expected.squared_distance, rel=1e-10)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-11)


def test_too_many_waits_are_refused() -> None:
    process = WaitingSubset([0.5] * 12, 6)
    assert process.n_states == 924 * 64
    problem = QuadraticProblem([[1.0]], np.zeros((12, 1)))
    with pytest.raises(DependentRoundsError, match=r"WaitingSubset.*engines\.monte_carlo"):
        exact(Setting(FedAvg(0.5, 1), problem, process, 2, [1.0]))


@pytest.mark.parametrize("make", [AtMost, WaitingSubset])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.0], 1), r"availability must be in \(0, 1\], got 0 for client 1"),
        (([0.5], 0), "size must be a whole number of at least 1, got 0"),
        (([0.5, 0.5], 3), "size must be at most the number of clients, 2, got 3"),
    ],
)
def test_bad_input_is_named(make, arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(*arguments)

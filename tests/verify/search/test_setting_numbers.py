"""Numbers of settings: all of them found, each changed in every place, none invented."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory import theorems
from fltheory.algorithms import FedAvg, Harmonic, Safari
from fltheory.engines import Setting
from fltheory.participation import FiniteChain, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.verify.search.setting_search import (
    changed,
    in_other_units,
    numbers_of,
    simpler,
    with_numbers,
    with_other_clients,
)

PLAIN = Setting(
    FedAvg(0.1, 5),
    QuadraticProblem([[2.0]], [[-1.0], [1.0]], sigma=0.5),
    UniformSubset(2, 1),
    7,
    [3.0],
)
AVERAGED = theorems.get("ca-fed/2").regimes["nu = 0.9"].setting
CHAIN = theorems.get("ca-fed/2").regimes["clusters"].setting


def place_of(setting: Setting, path: str) -> tuple[int, str]:
    return next(number.place for number in numbers_of(setting) if number.path == path)


def test_every_number_is_found_once() -> None:
    assert {number.path for number in numbers_of(PLAIN)} == {
        "algorithm.client_lr",
        "algorithm.local_steps",
        "algorithm.server_lr",
        "problem.hessians",
        "problem.optima",
        "problem.sigma",
        "problem.server_sigma",
        "participation.n_clients",
        "participation.size",
        "rounds",
        "x0",
    }


def test_a_part_that_stands_twice_is_changed_in_both_places() -> None:
    """The average's weights are the step sizes, as CA-Fed's Theorem 2 has it."""
    place = place_of(AVERAGED, "algorithm.algorithm.algorithm.step_sizes.scale")
    after = with_numbers(AVERAGED, {place: 5.0}).algorithm
    assert after.weights == after.algorithm.algorithm.step_sizes == Harmonic(5.0, offset=24.0)


def test_other_numbers_stay() -> None:
    after = with_numbers(PLAIN, {place_of(PLAIN, "rounds"): 3, place_of(PLAIN, "x0"): [8.0]})
    assert (after.rounds, after.x0.tolist()) == (3, [8.0])
    assert after.problem is PLAIN.problem
    assert after.algorithm is PLAIN.algorithm


def test_a_part_may_refuse() -> None:
    with pytest.raises(ValueError, match="sigma must be"):
        with_numbers(PLAIN, {place_of(PLAIN, "problem.sigma"): -1.0})


@pytest.mark.parametrize("start", [PLAIN, AVERAGED, CHAIN], ids=["plain", "averaged", "chain"])
@given(seed=st.integers(0, 2**32 - 1))
def test_a_change_is_a_setting_or_refused_and_touches_at_most_three_numbers(start, seed) -> None:
    try:
        after = changed(start, np.random.default_rng(seed))
    except ValueError:
        return
    pairs = zip(numbers_of(start), numbers_of(after), strict=True)
    moved = [b.path for a, b in pairs if not np.array_equal(a.value, b.value)]
    assert len(moved) <= 3
    assert isinstance(after, Setting)


@given(seed=st.integers(0, 2**32 - 1))
def test_rows_of_probabilities_remain_so(seed: int) -> None:
    place = place_of(CHAIN, "participation.transition")
    for draw in range(20):
        try:
            after = changed(CHAIN, np.random.default_rng([seed, draw]))
        except ValueError:
            continue
        assert isinstance(after.participation, FiniteChain)
        np.testing.assert_allclose(after.participation.transition.sum(axis=1), 1.0, atol=1e-12)
    assert place in {number.place for number in numbers_of(CHAIN)}


def test_changes_reach_every_number() -> None:
    rng = np.random.default_rng(0)
    reached = set()
    for _ in range(400):
        try:
            after = changed(AVERAGED, rng)
        except ValueError:
            continue
        pairs = zip(numbers_of(AVERAGED), numbers_of(after), strict=True)
        reached |= {b.path for a, b in pairs if not np.array_equal(a.value, b.value)}
    assert reached == {number.path for number in numbers_of(AVERAGED)}


def test_several_numbers_may_change_by_powers_of_one_factor() -> None:
    """Units of length and loss change so; no single number's change can follow them."""
    rng = np.random.default_rng(1)
    base = Setting(
        Safari(0.5, 0.125, 0.25, 2), PLAIN.problem, PLAIN.participation, PLAIN.rounds, PLAIN.x0
    )
    for _ in range(2000):
        try:
            after = changed(base, rng).algorithm
        except ValueError:
            continue
        up, down = after.client_lr / 0.125, 0.25 / after.assist_lr
        if up != 1 and abs(up * down - 1) < 0.02:
            return
    pytest.fail("client_lr and assist_lr never changed by inverse factors")


@pytest.mark.parametrize(
    ("value", "simplest"),
    [(250, 1), (0.437, 0.0), ((0.31, 0.5), (0.0, 0.0))],
)
def test_simpler_values_begin_with_the_simplest_and_end_with_the_value(value, simplest) -> None:
    options = simpler(value)
    assert options[0] == simplest
    assert options[-1] == value


def test_simpler_probabilities_sum_to_one() -> None:
    first = simpler(np.array([[0.9, 0.1], [0.25, 0.75]]))[0]
    np.testing.assert_array_equal(first, [[0.5, 0.5], [0.5, 0.5]])


def test_availabilities_are_numbers_too() -> None:
    setting = Setting(PLAIN.algorithm, PLAIN.problem, MarkovOnOff([0.5, 0.9], 0.0), 3, [1.0])
    names = {number.path for number in numbers_of(setting)}
    assert {"participation.availability", "participation.correlation"} <= names


def test_other_units_leave_what_has_none_as_it_is() -> None:
    """L eta, the squared distance over that of an optimum, and sigma over L times a length."""
    setting = theorems.get("sa-fl/5").regimes["biased minority excluded"].setting
    for seed in range(5):
        other = in_other_units(setting, np.random.default_rng(seed))
        assert other.problem.L != setting.problem.L

        def pure(one: Setting) -> list[float]:
            problem, algorithm = one.problem, one.algorithm
            length = float(np.linalg.norm(problem.optima[0]))
            return [
                problem.L * algorithm.client_lr,
                problem.L * algorithm.assist_lr,
                float(np.linalg.norm(one.x0 - problem.x_star)) / length,
                problem.sigma / (problem.L * length),
                problem.server_sigma / problem.sigma,
                problem.sigma_G / (problem.L * length),
            ]

        assert pure(other) == pytest.approx(pure(setting), rel=1e-12)
        assert (other.rounds, other.algorithm.q) == (setting.rounds, setting.algorithm.q)


def test_one_client_more_or_less_never_takes_part() -> None:
    setting = theorems.get("sa-fl/5").regimes["biased minority excluded"].setting
    seen = set()
    for seed in range(20):
        other = with_other_clients(setting, np.random.default_rng(seed))
        difference = set(other.participation.excluded) ^ {0, 1}
        assert len(difference) == 1
        seen |= difference
        assert other.algorithm is setting.algorithm
    assert len(seen) > 5
    with pytest.raises(ValueError, match="must name the clients that it excludes"):
        with_other_clients(CHAIN, np.random.default_rng(0))


LEARNING = theorems.get("pac/2").regimes["clients miss the middle"].setting


def test_numbers_of_a_learning_problem_are_found_in_its_sources_and_its_split() -> None:
    paths = {number.path: number.value for number in numbers_of(LEARNING)}
    assert paths["target.sources[0].target"] == Fraction(1, 2)
    edges = (0, Fraction(1, 4), Fraction(3, 4), 1)
    assert paths["clients.population.sources[0].marginal.edges"] == edges
    assert paths["split.share"] == Fraction(1, 10)
    # P is where the server's samples come from, too: one number in two places.
    assert not any(path.startswith("server.") for path in paths)


def test_fractions_remain_fractions_and_probabilities_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    made = 0
    for _ in range(60):
        try:
            other = changed(LEARNING, rng)
        except ValueError:
            continue
        made += 1
        for number in numbers_of(other):
            entries = number.value if isinstance(number.value, tuple) else (number.value,)
            if number.name != "delta":
                assert all(isinstance(entry, Fraction) for entry in entries)
            if number.name == "masses":
                assert sum(entries) == 1
    assert made > 15
    assert LEARNING.target is LEARNING.server


@pytest.mark.parametrize(
    ("value", "simplest"),
    [(Fraction(43, 83), 1), (Fraction(501, 1000), 1), (Fraction(1, 10**6), 0)],
)
def test_simpler_fractions_end_with_the_fraction_itself(value: Fraction, simplest: int) -> None:
    options = simpler(value)
    assert (options[0], options[-1]) == (simplest, value)
    assert all(isinstance(option, Fraction) for option in options)

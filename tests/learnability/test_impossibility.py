"""Theorem 1's construction, against an enumeration of samples and of learners."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.learnability import impossibility

SYSTEMS = [(2, 1, 1), (3, 1, 1), (3, 1, 2), (2, 2, 1), (2, 3, 1), (4, 1, 3), (3, 2, 2)]
systems = st.integers(2, 12).flatmap(
    lambda M: st.tuples(st.just(M), st.integers(1, 6), st.integers(1, M - 1))
)


def selected(sample: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return as many samples at x_1 (0) as possible, then samples at x_2 (1)."""
    return tuple(sorted(sample)[:size])


def law_of_selection(M: int, n: int, m: int) -> dict[tuple[int, ...], Fraction]:
    """Enumerate all samples of Mn points."""
    rare = Fraction(M - m, 2 * M)
    law: dict[tuple[int, ...], Fraction] = {}
    for sample in itertools.product((0, 1), repeat=M * n):
        chance = math.prod((rare if point else 1 - rare for point in sample), start=Fraction(1))
        chosen = selected(sample, m * n)
        law[chosen] = law.get(chosen, Fraction(0)) + chance
    return law


def failures_of_every_learner(M: int, n: int, m: int) -> list[tuple[Fraction, Fraction]]:
    """Return P[error > epsilon] under f_1 and f_2 of every deterministic learner with values there.

    A learner maps what it sees, points and labels, to f_1 (0) or f_2 (1).
    """
    rare = Fraction(M - m, 2 * M)
    law = law_of_selection(M, n, m)
    views = {(points, target if 1 in points else None) for points in law for target in (0, 1)}
    ordered = sorted(views, key=str)
    found = []
    for answers in itertools.product((0, 1), repeat=len(ordered)):
        learner = dict(zip(ordered, answers, strict=True))
        pair = []
        for target in (0, 1):
            failing = (
                chance
                for points, chance in law.items()
                if learner[points, target if 1 in points else None] != target
                and rare > Fraction(M - m, 8 * M)
            )
            pair.append(sum(failing, Fraction(0)))
        found.append((pair[0], pair[1]))
    return found


def least_of_the_larger(points: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Minimise max(a, b) over the convex hull: at a point, or where a segment has a = b."""
    values = [max(point) for point in points]
    for (a, b), (c, d) in itertools.combinations(set(points), 2):
        if (a - b) * (c - d) < 0:
            share = (d - c) / ((a - b) + (d - c))
            values.append(share * a + (1 - share) * c)
    return min(values)


@pytest.mark.parametrize(("M", "n", "m"), SYSTEMS)
def test_hidden_probability_by_enumeration(M: int, n: int, m: int) -> None:
    found = impossibility(M, n, m)
    law = law_of_selection(M, n, m)
    hidden = sum((chance for points, chance in law.items() if 1 not in points), Fraction(0))
    assert found.hidden_probability == hidden
    rare = found.rare_probability
    strictly = (
        math.comb(M * n, s) * rare**s * (1 - rare) ** (M * n - s) for s in range((M - m) * n)
    )
    assert found.paper_event == sum(strictly, Fraction(0))


@pytest.mark.parametrize(("M", "n", "m"), SYSTEMS[:-1])
def test_minimax_over_every_learner_by_enumeration(M: int, n: int, m: int) -> None:
    """Deterministic learners are enumerated; randomised ones are the convex hull of theirs."""
    found = impossibility(M, n, m)
    failures = failures_of_every_learner(M, n, m)
    assert min(max(pair) for pair in failures) == found.minimax_deterministic
    assert least_of_the_larger(failures) == found.minimax_probability


@given(systems)
def test_figures_are_of_the_construction(system: tuple[int, int, int]) -> None:
    M, n, m = system
    found = impossibility(M, n, m)
    assert found.epsilon == (1 - Fraction(m, M)) / 8
    assert found.rare_probability == 4 * found.epsilon
    assert found.paper_event is not None
    assert found.paper_event < found.hidden_probability < 1
    assert found.minimax_expected_error == 2 * found.epsilon * found.hidden_probability


@given(systems)
def test_constants_of_the_proof_and_the_sharp_ones(system: tuple[int, int, int]) -> None:
    found = impossibility(*system)
    assert found.paper_event is not None
    assert 1 - found.paper_event <= Fraction(7, 16) < Fraction(17, 20)
    assert found.paper_event >= Fraction(9, 16) > Fraction(3, 20)
    assert found.minimax_probability > Fraction(9, 20) > Fraction(1, 20)


def test_least_constants_over_systems_up_to_sixty_samples() -> None:
    """The least paper_event is attained at (2, 1, 1); the least minimax falls to 3/4 exp(-1/2)."""
    found = {
        (M, n, m): impossibility(M, n, m)
        for M in range(2, 61)
        for n in range(1, 60 // M + 1)
        for m in range(1, M)
    }
    events = {system: figures.paper_event for system, figures in found.items()}
    assert min(events, key=lambda system: events[system]) == (2, 1, 1)
    least = min(found, key=lambda system: found[system].minimax_probability)
    assert least == (60, 1, 59)
    limit = 0.75 * math.exp(-0.5)
    values = [float(impossibility(M, 1, M - 1).minimax_probability) for M in (10, 100, 1000)]
    assert values == sorted(values, reverse=True)
    assert limit < values[-1] < limit + 1e-3


def poisson_below_or_at(k: int) -> float:
    """P[Poisson(k/2) <= k]."""
    mean = k / 2
    return math.exp(-mean) * sum(mean**j / math.factorial(j) for j in range(k + 1))


@given(systems)
def test_hiding_is_likelier_than_for_a_poisson_number(system: tuple[int, int, int]) -> None:
    """Anderson and Samuels (1967); the limit is Poisson's."""
    M, n, m = system
    found = impossibility(M, n, m)
    assert float(found.hidden_probability) > poisson_below_or_at((M - m) * n) - 1e-12


def test_least_poisson_probability() -> None:
    """Computed up to k = 12; from 13 on Chernoff's (e/4)^(k/2) is below 0.09."""
    values = [poisson_below_or_at(k) for k in range(1, 13)]
    assert min(values) == values[0] == pytest.approx(1.5 * math.exp(-0.5), rel=1e-14)
    assert (math.e / 4) ** 6.5 < 0.09 < 1 - values[0] < 0.1


def test_a_servers_samples_reveal_the_point() -> None:
    """With one sample of P: hidden, with probability 15/16, a coin's half, times 3/4."""
    found = impossibility(2, 1, 1)
    assert found.minimax_expected_error == Fraction(15, 128)
    assert found.minimax_failure_with_server(0) == float(found.minimax_probability) == 15 / 32
    assert found.minimax_failure_with_server(1) == pytest.approx(15 / 32 * 3 / 4, rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 1, 1), "M must be a whole number of at least 2, got 1"),
        ((3, 0, 1), "n must be a whole number of at least 1, got 0"),
        ((3, 2, 0), "m must be a whole number of at least 1, got 0"),
        ((3, 2, 3), "m must be below M = 3, so that omega = m/M is inside .0, 1., got 3"),
        ((3, 2, 4), "m must be below M = 3, so that omega = m/M is inside .0, 1., got 4"),
        ((3, 1.5, 1), "n must be a whole number of at least 1, got 1.5"),
    ],
)
def test_bad_systems_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        impossibility(*arguments)

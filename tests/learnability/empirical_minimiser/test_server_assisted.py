"""Direct simulation of SA-FL, against exhaustive search and exact laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from fltheory.learnability import Source
from fltheory.learnability.empirical_minimiser import (
    NoiselessLaw,
    best_together,
    draw,
    sample_server_assisted,
    worst_minimiser,
)
from fltheory.learnability.populations import Population, as_population, uniform

QUANTILE = -float(ndtri(0.5e-10))


def of(target="1/2", **options) -> Population:
    return as_population(Source(uniform(0, 1), target, **options))


P = of()


@given(
    st.lists(
        st.tuples(st.floats(0, 1, width=32), st.sampled_from([-1, 1])),
        min_size=1,
        max_size=8,
        unique_by=lambda pair: pair[0],
    )
)
def test_worst_minimiser_by_exhaustive_search(samples: list[tuple[float, int]]) -> None:
    """Try a threshold in every gap, just inside both of its ends."""
    points = np.array([[x for x, _ in samples]])
    labels = np.array([[y for _, y in samples]])
    ends = [-1.0, *sorted(points[0].tolist()), 2.0]
    risks = []
    for low, high in itertools.pairwise(ends):
        middle = (low + high) / 2
        wrong = int(((points >= middle) != (labels > 0)).sum())
        worst = max(abs(np.clip(end, 0, 1) - 0.5) for end in (low, high))
        risks.append((wrong, -worst))
    found = worst_minimiser(P, points, labels)
    assert found.excess[0] == pytest.approx(-min(risks)[1], abs=1e-12)
    inside = ((points >= found.inside[0]) != (labels > 0)).sum()
    assert inside == min(risks)[0]
    ordered = sorted(points[0].tolist())
    gap = int(np.searchsorted(ordered, found.inside[0]))
    assert risks[gap][1] == pytest.approx(-found.excess[0], abs=1e-12)


def test_without_noise_means_are_exact_and_the_condition_is_met(rng: np.random.Generator) -> None:
    found = sample_server_assisted(P, P, 20, 60, 4000, rng)
    assert found.no_worse_on_server.all()
    for values, n in ((found.together, 80), (found.server_only, 20)):
        exact = NoiselessLaw(P, [(P, n)]).mean()
        assert abs(values.mean() - exact) < QUANTILE * values.std() / math.sqrt(4000)


def test_clients_in_majority_take_it_to_their_target(rng: np.random.Generator) -> None:
    """Four times as many samples with a target 1/10 away: the error is 1/10 and little more."""
    found = sample_server_assisted(P, of("3/5"), 500, 2000, 200, rng)
    assert best_together(P, of("3/5"), 500, 2000) == 0.6
    assert found.together.min() > 0.09
    assert abs(found.together.mean() - 0.1) < 0.01
    assert found.server_only.mean() < 0.01


def test_first_condition_can_fail(rng: np.random.Generator) -> None:
    noisy = of(beta=Fraction(1, 2), scale=2)
    met = sample_server_assisted(noisy, noisy, 50, 200, 400, rng).no_worse_on_server
    assert 0.5 < met.mean() < 0.99


def test_another_distribution_for_the_server(rng: np.random.Generator) -> None:
    """P' with its target 1/20 off: learning from it alone ends there, judged on P."""
    shifted = of("11/20")
    found = sample_server_assisted(shifted, shifted, 2000, 10, 100, rng, target=P)
    assert abs(found.server_only.mean() - 0.05) < 0.005


def test_labels_are_right_as_often_as_the_margin_says(rng: np.random.Generator) -> None:
    """40,000 draws; a share is off by 0.025 with probability below 1e-15 (Hoeffding)."""
    points, labels = draw(of(beta=Fraction(1, 2), scale=2), (2, 20_000), rng)
    right = (labels > 0) == (points >= 0.5)
    assert abs(right.mean() - 0.75) < 0.025
    near = np.abs(points - 0.5) < 0.25
    assert right[near].mean() < right[~near].mean()


def test_bad_input(rng: np.random.Generator) -> None:
    two = Population([P.sources[0], of("3/5").sources[0]])
    with pytest.raises(ValueError, match="target must have the same target in all its sources"):
        sample_server_assisted(two, P, 5, 5, 5, rng)
    with pytest.raises(ValueError, match="n_server must be a whole number of at least 1, got 0"):
        sample_server_assisted(P, P, 0, 5, 5, rng)

"""Chances of sets, of pairs, and of pairs together with the number, against sums over sets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fltheory.participation import AtMost, Bernoulli, MarkovOnOff, UniformSubset
from fltheory.participation.inclusions.independent_clients import (
    pairs_present,
    sets_present,
)
from fltheory.participation.process import Law, Process

chances = st.lists(st.floats(0.05, 1.0), min_size=1, max_size=5)


def by_sets(participation: Process, weight: np.ndarray) -> np.ndarray:
    n = participation.n_clients
    total = np.zeros((n, n))
    for chance, mask in participation.outcomes():
        total += chance * weight[mask.sum()] * np.outer(mask, mask)
    return total


@given(p=chances, seed=st.integers(0, 99), data=st.data())
def test_weighted_inclusions_are_sums_over_sets(p: list[float], seed: int, data) -> None:
    weight = np.random.default_rng(seed).standard_normal(len(p) + 1)
    size = data.draw(st.integers(1, len(p)))
    never_and_always = MarkovOnOff([0.0, 1.0, *p], 0.0)
    longer = np.random.default_rng(seed).standard_normal(len(p) + 3)
    for participation, given_weight in (
        (Bernoulli(p), weight),
        (AtMost(p, size), weight),
        (never_and_always, longer),
    ):
        found = participation.weighted_inclusions(given_weight)
        np.testing.assert_allclose(found, by_sets(participation, given_weight), atol=1e-12)


@given(p=st.lists(st.sampled_from([0.0, 0.125, 0.5, 1.0]), min_size=1, max_size=5))
def test_chances_of_sets_add_up_to_those_of_clients_and_pairs(p: list[float]) -> None:
    """Exactly: all chances are multiples of powers of two."""
    found = list(sets_present(np.array(p)))
    assert all(chance > 0 for chance, _ in found)
    assert sum(chance for chance, _ in found) == 1.0
    together = sum(chance * np.outer(mask, mask) for chance, mask in found)
    np.testing.assert_array_equal(together, pairs_present(np.array(p)))


def test_chances_by_number_of_a_process_that_states_its_law_alone() -> None:
    """One set of two and one of three: from the law, and for a fixed number from pairs."""

    class TwoOrThree(Process):
        n_clients = 3

        def law(self) -> Law:
            two, three = np.array([True, True, False]), np.ones(3, dtype=bool)
            return Law(lambda state: ((Fraction(1, 4), two), (Fraction(3, 4), three)))

    weight = np.array([5.0, 7.0, -2.0, 3.0])
    for process in (TwoOrThree(), UniformSubset(3, 2)):
        found = process.weighted_inclusions(weight)
        np.testing.assert_allclose(found, by_sets(process, weight), atol=1e-14)

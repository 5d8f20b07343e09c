"""Learners through Theorem 1's construction."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.examples.challenge import binomial_numerators, challenge
from fltheory.learnability import impossibility


class Nearest:
    """Predicts the label of the nearest training point."""

    def fit(self, X, y):
        self.X, self.y = X, y
        return self

    def predict(self, X):
        return self.y[np.abs(X - self.X[:, 0]).argmin(axis=1)]


class Constant:
    """Predicts one label, whatever it sees."""

    def __init__(self, label: int) -> None:
        self.label = label

    def fit(self, X, y):
        return self

    def predict(self, X):
        return [self.label] * len(X)


class NeedsTwoClasses(Nearest):
    """As scikit-learn's linear models do, refuses a sample with one label."""

    def fit(self, X, y):
        if len(set(y)) < 2:
            raise ValueError("needs samples of at least 2 classes")
        return super().fit(X, y)


class Coin(Constant):
    """Predicts a label drawn at every fit."""

    def __init__(self) -> None:
        self.rng = None

    def __deepcopy__(self, memo):
        return self

    def fit(self, X, y):
        self.rng = self.rng or np.random.default_rng(0)
        self.label = int(self.rng.choice([-1, 1]))
        return self


systems = st.integers(2, 8).flatmap(
    lambda M: st.tuples(st.just(M), st.integers(1, 4), st.integers(1, M - 1))
)


def test_law_of_a_nearest_neighbour() -> None:
    """M = n = 2, m = 1: hidden with probability 243/256; it then says +1, right under f_1.

    With probability 1/256 it sees x_2 only, and under f_2 says -1 at x_1 too.
    """
    found = challenge(Nearest(), 2, 2, 1)
    assert found.laws[0] == {Fraction(0): Fraction(1)}
    assert found.laws[1] == {
        Fraction(1, 4): Fraction(243, 256),
        Fraction(3, 4): Fraction(1, 256),
        Fraction(0): Fraction(12, 256),
    }
    assert found.failure_probabilities == (0, Fraction(244, 256))
    assert found.fails
    assert not found.one_class_refused


def test_law_of_a_constant() -> None:
    """-1 is wrong at x_1 under both targets, at x_2 under f_1."""
    found = challenge(Constant(-1), 3, 1, 2)
    rare = found.construction.rare_probability
    assert found.laws[0] == {Fraction(1): Fraction(1)}
    assert found.laws[1] == {1 - rare: Fraction(1)}


@given(systems, st.sampled_from([Nearest(), Constant(1), Constant(-1), NeedsTwoClasses(), Coin()]))
def test_no_learner_beats_the_minimax(system: tuple[int, int, int], learner: object) -> None:
    found = challenge(learner, *system, repeats=3)
    for law in found.laws:
        assert sum(law.values()) == 1
    assert sum(found.failure_probabilities) >= impossibility(*system).hidden_probability
    assert found.worst_failure_probability >= impossibility(*system).minimax_probability
    assert found.fails


def test_what_one_class_learners_are_taken_to_predict() -> None:
    refused = challenge(NeedsTwoClasses(), 2, 2, 1)
    assert refused.one_class_refused
    assert refused.laws == challenge(Nearest(), 2, 2, 1).laws


def test_repeats_average_over_fits() -> None:
    found = challenge(Coin(), 2, 1, 1, repeats=8)
    shares = {chance * 8 % 1 for law in found.laws for chance in law.values()}
    assert len(found.laws[0]) > 1
    assert shares <= {Fraction(k, 16) for k in range(16)}


def test_left_out_samples_are_the_remainder() -> None:
    """With one sample only the hidden one counts."""
    found = challenge(Nearest(), 4, 3, 2, samples=1)
    hidden = impossibility(4, 3, 2).hidden_probability
    assert found.remainder == 1 - hidden
    assert found.failure_probabilities == (0, hidden)
    assert challenge(Nearest(), 4, 3, 2, samples=7).remainder == 0


def test_by_clients_the_point_is_hidden_for_certain() -> None:
    found = challenge(Nearest(), 10, 4, 3, by_clients=True)
    assert found.laws[1] == {Fraction(7, 10): Fraction(1)}
    assert found.remainder == 0


class NoPredict:
    def fit(self, X, y):
        return self


class Wrong(Constant):
    def fit(self, X, y):
        raise ValueError("broken")


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (NoPredict(), "learner must have methods fit and predict, got .*, without predict"),
        (object(), "without fit and predict"),
        (Constant(0), r"learner must predict one label, \+1 or -1, .* got \[0, 0\]"),
    ],
)
def test_what_is_no_learner(learner: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        challenge(learner, 3, 2, 1)


def test_other_errors_of_a_learner_are_not_hidden() -> None:
    with pytest.raises(ValueError, match="broken"):
        challenge(Wrong(1), 3, 2, 1)


@pytest.mark.parametrize(("name", "value"), [("samples", 0), ("repeats", 0)])
def test_bad_counts(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        challenge(Nearest(), 3, 2, 1, **{name: value})


def test_numerators_are_terms_over_one_denominator() -> None:
    p = Fraction(2, 7)
    found = binomial_numerators(9, p, 3, 4)
    expected = [math.comb(9, j) * p**j * (1 - p) ** (9 - j) for j in range(3, 7)]
    assert [Fraction(value, 7**9) for value in found] == expected

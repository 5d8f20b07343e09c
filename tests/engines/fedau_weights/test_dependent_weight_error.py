"""Weight errors under chains and cycles against all histories of Algorithm 2."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import FedAU
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.engines.fedau_weights.dependent_weight_error import (
    recorded_weights,
    weight_error_under,
)
from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from tests.engines.fedau_weights.test_weight_error import weights_of_algorithm_2

CUTOFFS = [1, 2, 3, 5, math.inf]


def over_all_histories(
    p: Fraction, nu: Fraction, cutoff: float, t: int, start: int | None = None
) -> Fraction:
    stays, comes = nu + (1 - nu) * p, (1 - nu) * p
    total = Fraction(0)
    for presence in product((0, 1), repeat=t):
        chance = Fraction(1)
        for i, here in enumerate(presence):
            if i:
                comes_now = stays if presence[i - 1] else comes
            else:
                comes_now = p if start is None else Fraction(start)
            chance *= comes_now if here else 1 - comes_now
        total += chance * (p * weights_of_algorithm_2(presence, cutoff) - 1) ** 2
    return total


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("nu", [Fraction(-1, 4), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("start", [None, 0, 1])
def test_chains_agree_with_all_histories(nu: Fraction, cutoff: float, start: int | None) -> None:
    p = Fraction(3, 10)
    expected = [float(over_all_histories(p, nu, cutoff, t, start)) for t in range(9)]
    chains = MarkovOnOff([float(p)], float(nu), start=None if start is None else [start])
    found = weight_error_under(chains, cutoff, 9)
    assert (np.abs(found.values[0] - expected) <= found.error[0]).all()
    assert found.error.max() < 1e-12


@pytest.mark.parametrize("cutoff", [1, 3, math.inf])
@pytest.mark.parametrize("start", [None, 0, 1])
@pytest.mark.parametrize(
    ("p", "nu"),
    [
        ("0.9999999999824876", "0.999999999"),
        ("0.999999999998916", "0"),
        ("0.99999731", "-0.00000123"),
        ("0.5", "-0.9999987"),
        ("1e-13", "0.99999999731"),
        ("1e-90", "0"),
    ],
)
def test_bounds_hold_beside_zero_and_one(p: str, nu: str, cutoff: float, start: int | None) -> None:
    """Errors are small there, and so are the chances of change: both are what is left of one."""
    expected = [over_all_histories(Fraction(p), Fraction(nu), cutoff, t, start) for t in range(6)]
    chains = MarkovOnOff([float(p)], float(nu), start=None if start is None else [start])
    found = weight_error_under(chains, cutoff, 6)
    for value, stated, truth in zip(found.values[0], found.error[0], expected, strict=True):
        assert abs(Fraction(value) - truth) <= Fraction(stated)


@pytest.mark.parametrize("cutoff", [1, 3, 50, math.inf])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.9, 1.0])
def test_an_uncorrelated_chain_is_bernoulli(p: float, cutoff: float) -> None:
    """By two recursions that share no code."""
    chain = weight_error_under(MarkovOnOff([p], 0.0), cutoff, 400)
    independent = weight_error(p, cutoff, 400)
    allowed = chain.error[0] + independent.error
    assert (np.abs(chain.values[0] - independent.values) <= allowed).all()


@given(
    st.floats(0.05, 0.95),
    st.floats(0.0, 0.95),
    st.integers(1, 6),
)
def test_a_cutoff_beyond_the_horizon_is_none(p: float, nu: float, beyond: int) -> None:
    chains = MarkovOnOff([p], nu)
    found = weight_error_under(chains, 20 + beyond, 20)
    np.testing.assert_array_equal(found.values, weight_error_under(chains, math.inf, 20).values)


def test_long_runs_have_small_stated_errors() -> None:
    found = weight_error_under(MarkovOnOff([0.1], 0.9), 50, 2000)
    assert found.error.max() < 1e-9
    assert found.values[0, -1] < found.values[0, 500]


def test_in_the_long_run_without_cutoff_the_weight_is_one_over_p() -> None:
    """A chain's mean return time is 1/p (Kac); the error falls like 1/t."""
    found = weight_error_under(MarkovOnOff([0.3], 0.6), math.inf, 4000).values[0]
    assert found[3999] == pytest.approx(found[1999] / 2, rel=0.02)


def test_cycles_by_hand() -> None:
    """There in rounds 1, 2 of 4 (from 0), so p = 1/2; intervals 2, 1, 3, 1, 3, 1 ..."""
    cycles = Cyclic([4], [3], active=2)
    means = [1, 1, 2, 3 / 2, 3 / 2, 3 / 2, 2, 7 / 4]
    expected = [(mean / 2 - 1) ** 2 for mean in means]
    np.testing.assert_allclose(weight_error_under(cycles, math.inf, 8).values[0], expected)
    # cut at 2: intervals 2, 1, 2, 1 and so on
    means = [1, 1, 2, 3 / 2, 3 / 2, 5 / 3, 3 / 2]
    expected = [(mean / 2 - 1) ** 2 for mean in means]
    np.testing.assert_allclose(weight_error_under(cycles, 2, 7).values[0], expected)


@pytest.mark.parametrize(
    ("cutoff", "presence", "expected"),
    [
        # intervals 1, 2, 3
        (math.inf, [1, 0, 1, 0, 0, 1], [1, 1, 1, 3 / 2, 3 / 2, 3 / 2, 2]),
        # nobody for four rounds, then 5 and 1
        (math.inf, [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1, 5, 3]),
        # cut after 2: 2, 2, 1
        (2, [0, 0, 0, 0, 1], [1, 1, 2, 2, 2, 5 / 3]),
        # presence at the cut itself ends one interval
        (2, [0, 1, 0, 1], [1, 1, 2, 2, 2]),
        # cut at once
        (1, [0, 1, 0], [1, 1, 1, 1]),
        # never there: K, from t = K on
        (3, [0] * 7, [1, 1, 1, 3, 3, 3, 3, 3]),
        # always there
        (3, [1] * 4, [1, 1, 1, 1, 1]),
    ],
)
def test_weights_of_a_record_by_hand(cutoff, presence, expected) -> None:
    found = recorded_weights(np.array([[here, 1] for here in presence], bool), cutoff, np.ones(2))
    np.testing.assert_allclose(found[0], expected, rtol=1e-15)
    np.testing.assert_array_equal(found[1], 1)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30))
def test_the_algorithm_carries_these_weights(history: list[tuple[int, int]]) -> None:
    algorithm = FedAU(0.1, 1, cutoff=4)
    clients = QuadraticClients(QuadraticProblem([[1.0]], [[0.0], [1.0]]), Silence())
    state = algorithm.init(np.zeros((1, 1)), 2)
    weights = recorded_weights(np.array(history, bool), 4, np.ones(2))
    for t, who in enumerate(history):
        np.testing.assert_allclose(state["omega"][0], weights[:, t], rtol=1e-12)
        state = algorithm.round(state, clients, np.array([who], dtype=bool), CLIENTS)


def test_bernoulli_is_passed_on() -> None:
    found = weight_error_under(Bernoulli([0.2, 0.7]), 4, 30)
    np.testing.assert_array_equal(found.values, weight_error([0.2, 0.7], 4, 30).values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((UniformSubset(3, 1), 5, 10), "participation must be Bernoulli, MarkovOnOff or Cyclic"),
        ((Cyclic([2], [0]), 0, 10), "cutoff must be a whole number of at least 1"),
        ((Cyclic([2], [0]), 5, 0), "rounds must be a whole number of at least 1"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weight_error_under(*arguments)

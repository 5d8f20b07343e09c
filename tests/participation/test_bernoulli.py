"""Independent participation with a probability per client."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, exact
from fltheory.participation import Bernoulli
from fltheory.participation.bernoulli import correlated_availability
from fltheory.problems import QuadraticProblem


def test_outcomes_sum_to_marginals_and_pairs() -> None:
    process = Bernoulli([0.25, 1.0, 0.5])
    outcomes = list(process.outcomes())
    assert len(outcomes) == process.n_outcomes == 4
    assert sum(chance for chance, _ in outcomes) == pytest.approx(1, rel=1e-15)
    marginals = sum(chance * mask for chance, mask in outcomes)
    np.testing.assert_allclose(marginals, process.marginals, rtol=1e-15)
    pairs = sum(chance * np.outer(mask, mask) for chance, mask in outcomes)
    np.testing.assert_allclose(pairs, process.pair_inclusions, rtol=1e-15)


def test_draws_have_the_marginals() -> None:
    """200,000 draws per client; six standard deviations: false alarm below 1e-8."""
    process = Bernoulli([0.1, 0.5, 0.9])
    drawn = np.concatenate(list(islice(process.masks(np.random.default_rng(1), 1000), 200)))
    allowed = 6 * np.sqrt(process.marginals * (1 - process.marginals) / len(drawn))
    assert (abs(drawn.mean(axis=0) - process.marginals) <= allowed).all()
    together = (drawn[:, 0] & drawn[:, 1]).mean()
    assert abs(together - 0.05) <= 6 * np.sqrt(0.05 * 0.95 / len(drawn))


def test_always_there_is_a_fixed_size() -> None:
    assert Bernoulli([1, 1]).fixed_size == 2
    assert Bernoulli([1, 0.5]).fixed_size is None
    assert Bernoulli([0.5]).independent


def test_the_exact_engine_runs_on_it() -> None:
    """One client there half the time: x <- x/2 with probability 1/2, so E x^2 = (5/8)^r."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    run = exact(Setting(FedAvg(0.5, 1), problem, Bernoulli([0.5]), 4, [1.0]))
    np.testing.assert_allclose(run.squared_distance, (5 / 8) ** np.arange(5), rtol=1e-14)


@pytest.mark.parametrize(
    ("availability", "message"),
    [
        ([0.5, 0.0], r"availability must be in \(0, 1\], got 0 for client 1"),
        ([1.5], r"availability must be in \(0, 1\], got 1.5 for client 0"),
        ([[0.5]], r"availability must have shape \(N,\)"),
        ([], r"availability must have shape \(N,\)"),
        ([np.nan], "availability must be finite"),
    ],
)
def test_bad_availability(availability, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bernoulli(availability)


def test_correlated_availability_follows_the_data() -> None:
    """With all the preference on one class, p goes with that class's share."""
    shares = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    rng = np.random.default_rng(0)
    drawn = correlated_availability(shares, rng, mean=0.1, least=1e-9)
    preference = np.random.default_rng(0).dirichlet([0.1, 0.1])
    assert drawn.mean() == pytest.approx(0.1, rel=1e-12)
    assert drawn / drawn[1] == pytest.approx(shares @ preference / 0.5, rel=1e-12)
    raised = correlated_availability(shares, np.random.default_rng(0), mean=0.1, least=0.09)
    assert raised.min() == 0.09


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"class_shares": [[0.5, 0.6]]}, "class_shares must be nonnegative and sum to one"),
        ({"class_shares": [0.5, 0.5]}, r"class_shares must have shape \(N, classes\)"),
        ({"mean": 0.0}, r"mean must be in \(0, 1\]"),
        ({"least": 2.0}, r"least must be in \(0, 1\]"),
        ({"concentration": 0.0}, "concentration must be a finite number above 0"),
    ],
)
def test_bad_draws(arguments, message: str) -> None:
    good = {"class_shares": [[0.5, 0.5]], "mean": 0.1, "least": 0.02}
    with pytest.raises(ValueError, match=message):
        correlated_availability(rng=np.random.default_rng(0), **{**good, **arguments})

"""Counts of clients that are alike, against the product of their chains."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import FedAvg, WeightedFedAvg
from fltheory.engines import Setting, exact, stationary
from fltheory.engines.trajectory import FIELDS
from fltheory.participation import MarkovOnOff
from fltheory.participation.markov_on_off import count_chain
from fltheory.problems import QuadraticProblem

GROUPS = [[0, 2, 4], [1, 3], [5]]
PI = [0.3, 0.6, 0.3, 0.6, 0.3, 1.0]
NU = [0.8, -0.4, 0.8, -0.4, 0.8, 0.5]


def alike() -> QuadraticProblem:
    """Equal losses within each group."""
    rng = np.random.default_rng(0)
    roots, optima = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 2))
    hessians = 0.3 * np.eye(2) + 0.2 * np.einsum("iab,icb->iac", roots, roots)
    group = [0, 1, 0, 1, 0, 2]
    return QuadraticProblem(hessians[group], optima[group], sigma=0.5)


@pytest.mark.parametrize("start", [None, [1, 0, 0, 0, 1, 1]])
@pytest.mark.parametrize(
    "algorithm", [FedAvg(0.3, 2), WeightedFedAvg((0.2, 0.5, 0.2, 0.5, 0.2, 0.3), 0.3, 2)], ids=str
)
def test_models_have_the_same_law(
    algorithm: FedAvg | WeightedFedAvg, start: list[int] | None
) -> None:
    chains = MarkovOnOff(PI, NU, start=start)
    counts = count_chain(chains, GROUPS)
    assert counts.n_states == 4 * 3
    settings = [
        Setting(algorithm, alike(), process, 15, [1.0, 2.0]) for process in (counts, chains)
    ]
    left, right = map(exact, settings)
    ends = [stationary(setting) for setting in settings]
    for name in FIELDS:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-11)
        limits = [getattr(end, name) for end in ends]
        np.testing.assert_allclose(*limits, rtol=1e-10)


def test_the_stationary_numbers_are_binomial() -> None:
    chain = count_chain(MarkovOnOff([0.25] * 4, 0.5), [range(4)])
    assert chain.state_masks.sum(axis=1).tolist() == [0, 1, 2, 3, 4]
    expected = np.array([81, 108, 54, 12, 1]) / 256
    np.testing.assert_allclose(chain.stationary, expected, rtol=1e-13)
    assert chain.mixing.second_eigenvalue == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("groups", "start", "message"),
    [
        (
            [[0, 1], [2]],
            None,
            r"groups must hold every client from 0 to 5 once, got \[\[0, 1\], \[",
        ),
        ([[0, 0], [1, 2], [3, 4], [5]], None, r"groups must hold every client from 0 to 5 once"),
        ([[0, 1, 2, 3, 4, 5], []], None, r"groups must hold every client from 0 to 5 once"),
        ([[0, 1, 2, 3, 4], [5]], None, r"clients of the same availability, got \[0\.3, 0\.6, "),
        (GROUPS, [0, 0, 0, 0, 0, 0], r"start must agree with the clients that are always"),
    ],
)
def test_bad_groups_are_named(groups, start, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_chain(MarkovOnOff(PI, NU, start=start), groups)


def test_too_many_states_are_named() -> None:
    chains = MarkovOnOff([0.5] * 13, [0.1 * (k % 9) for k in range(13)])
    with pytest.raises(ValueError, match=r"at most 4096 states, got 8192 from groups of \[1, 1"):
        count_chain(chains, [[k] for k in range(13)])

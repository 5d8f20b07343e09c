"""Inclusions by groups: against sums over all sets, and closed forms for many clients."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.participation import AtMost, Bernoulli, MarkovOnOff, UniformSubset
from fltheory.participation.inclusions.correlations import GroupedInclusions, TooManyGroupsError
from fltheory.participation.inclusions.like_clients import LikeClients, _binomial


@st.composite
def processes(draw: st.DrawFn) -> GroupedInclusions:
    """Draw a process over up to 7 clients, several of which are alike."""
    n_clients = draw(st.integers(1, 7))
    if draw(st.booleans()):
        excluded = draw(st.sets(st.integers(0, n_clients - 1), max_size=n_clients - 1))
        size = draw(st.integers(1, n_clients - len(excluded)))
        return UniformSubset(n_clients, size, excluded=excluded)
    chances = st.lists(
        st.sampled_from([0.2, 0.7, 0.95, 1.0]), min_size=n_clients, max_size=n_clients
    )
    p = draw(chances)
    kind = draw(st.sampled_from(["Bernoulli", "at most", "stationary"]))
    if kind == "at most":
        return AtMost(p, draw(st.integers(1, n_clients)))
    return Bernoulli(p) if kind == "Bernoulli" else MarkovOnOff([0.0, *p], 0.0)


@given(processes(), st.sampled_from(["ones", "average", "any"]), st.integers(0, 99))
def test_moments_are_sums_over_sets(process: GroupedInclusions, kind: str, seed: int) -> None:
    """Fails where a group of one keeps a variance within, or a pair counts its own client."""
    number = np.arange(process.n_clients + 1.0)
    weight = {
        "ones": np.ones_like(number),
        "average": 1 / np.maximum(number, 1),
        "any": np.random.default_rng(seed).uniform(0.1, 2.0, number.size),
    }[kind]
    found = process.inclusions(weight)
    chances, masks = map(np.array, zip(*process.outcomes(), strict=True))
    phi = masks * weight[masks.sum(axis=1)][:, None]
    np.testing.assert_allclose(found.means[found.group], chances @ phi, atol=1e-13)
    np.testing.assert_allclose(found.squares[found.group], chances @ phi**2, atol=1e-13)
    deviations = phi - chances @ phi
    covariance = np.einsum("s,si,sj->ij", chances, deviations, deviations)
    np.testing.assert_allclose(found.covariance(), covariance, atol=1e-13)
    for group in range(found.sizes.size):
        first, *others = np.flatnonzero(found.group == group)
        expected = chances @ (phi[:, first] * (phi[:, first] - phi[:, others[0]])) if others else 0
        assert found.within[group] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n_clients", [1000, 100_000])
def test_averages_over_many_who_come_alike(n_clients: int) -> None:
    """Weights 1/|S| sum to one unless nobody comes: E phi_i = (1 - (1 - p)^N) / N."""
    p = 5 / n_clients
    weight = 1 / np.maximum(np.arange(n_clients + 1.0), 1)
    found = Bernoulli(np.full(n_clients, p)).inclusions(weight)
    empty = (1 - p) ** n_clients
    np.testing.assert_allclose(found.means * n_clients, 1 - empty, rtol=1e-12)
    np.testing.assert_allclose(found.totals, empty * (1 - empty), rtol=1e-11)


def test_groups_of_many_add_up_to_everything() -> None:
    """Two groups of 40,000: the weights' sum is one, so that its covariance with all is zero."""
    p = np.repeat([0.1, 0.6], 40_000)
    weight = 1 / np.maximum(np.arange(p.size + 1.0), 1)
    found = Bernoulli(p).inclusions(weight)
    assert (found.sizes * found.means).sum() == pytest.approx(1.0, rel=1e-12)
    slack = found.relative_error * found.totals_size
    assert (np.abs(found.totals.sum(axis=0)) <= slack.sum(axis=0)).all()
    assert found.totals[0, 0] > 100 * slack[0, 0]


@pytest.mark.parametrize(("trials", "p"), [(50, 0.3), (400, 0.01), (1000, 0.999)])
def test_binomial_chances(trials: int, p: float) -> None:
    law = _binomial(trials, p)
    for number, chance in enumerate(law.chances, start=law.first):
        exact = comb(trials, number) * (p**number) * ((1 - p) ** (trials - number))
        if exact > 1e-50:
            assert chance == pytest.approx(exact, rel=1e-11)
    assert law.chances.sum() == pytest.approx(1.0, rel=1e-14)


def test_numbers_of_others() -> None:
    """Three coins: of a client's two others 0, 1, 2 are there with chances 1/4, 1/2, 1/4."""
    like = LikeClients.of(np.full(3, 0.5))
    assert like.without_one(np.array([1.0, 10.0, 100.0])) == pytest.approx([30.25])
    assert like.without_two(np.array([1.0, 10.0])) == pytest.approx(np.array([[5.5]]))


def test_pairs_of_too_many_clients_are_refused() -> None:
    many = UniformSubset(100_000, 10)
    message = r"n_clients must be at most 16384 .* got 100000: use inclusions"
    with pytest.raises(ValueError, match=message):
        many.inclusions(np.ones(100_001)).covariance()
    for process in (many, Bernoulli(np.full(100_000, 0.5)), MarkovOnOff(np.full(100_000, 0.5), 0)):
        with pytest.raises(ValueError, match=message):
            _ = process.pair_inclusions


def test_too_many_kinds_of_clients_are_refused() -> None:
    process = Bernoulli(np.linspace(0.1, 0.9, 2000))
    weight = 1 / np.maximum(np.arange(2001.0), 1)
    with pytest.raises(TooManyGroupsError, match=r"at most 1024 distinct values .* got 2000"):
        process.inclusions(weight)
    assert process.inclusions(np.ones(2001)).sizes.size == 2000

"""CA-Fed: rounds by hand, exclusion against plain Python, limits, invariances and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fltheory.algorithms import CAFed, Unbiased
from fltheory.algorithms import ca_fed as estimate
from fltheory.algorithms.ca_fed import kept_after_exclusion
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import GaussianNoise, QuadraticClients
from fltheory.engines.simulation import simulate
from fltheory.participation import MarkovOnOff
from fltheory.problems import quadratic

ALPHA = [0.5, 0.25, 0.25]
PI = [1.0, 0.5, 0.125]
LAMBDA = [0.0, 0.9, 0.5]
WEIGHTS = [0.5, 0.5, 2.0]


class Scripted:
    """Clients that report prescribed losses and move along an axis of their own, by one."""

    n_clients = 3

    def __init__(self, losses: Any) -> None:
        self.losses = np.asarray(losses, dtype=float)

    def loss(self, x: Any, who: Any) -> Any:
        return np.where(who, self.losses, 0.0)

    def summed_local_sgd(self, x: Any, who: Any, weights: Any, **steps: Any) -> Any:
        return np.where(who, weights, 0.0)


def after(algorithm: CAFed, *rounds: tuple[list[int], list[float]]) -> Any:
    """Return the last state and each round's weights, from rounds of (present, losses)."""
    n_clients = len(rounds[0][0])
    state, weights = algorithm.init(np.zeros((1, n_clients)), n_clients), []
    for present, losses in rounds:
        following = algorithm.round(
            state, Scripted(losses), np.array([present], dtype=bool), CLIENTS
        )
        weights.append((following["x"] - state["x"])[0].tolist())
        state = following
    return state, weights


def oracle(**changed: Any) -> CAFed:
    known = {"availability": PI, "correlation": LAMBDA, "loss_smoothing": 0.5}
    return CAFed(ALPHA, 0.1, 1, **(known | changed))


FIRST = ([1, 1, 1], [3.0, 2.0, 1.0])
SECOND = ([1, 1, 0], [1.0, 4.0, 9.0])


def test_rounds_by_hand() -> None:
    """Round 1: gaps are zero, nobody goes. Round 2: F_hat = (2, 3, 1), gaps (0, 1, 0), Gamma = 1.

    epsilon = 1/4; without client 1 it is (1/4)^2 = 1/16, so 1 goes; then 2 would leave
    (1/2)^2, and 0 (3/4)^2, and both stay. Client 2 is absent, so 0 alone moves the model.
    """
    state, weights = after(oracle(), FIRST, SECOND)
    assert weights == [WEIGHTS, [0.5, 0.0, 0.0]]
    np.testing.assert_array_equal(state["loss"], [[2.0, 3.0, 1.0]])
    np.testing.assert_array_equal(state["minimum"], [[2.0, 2.0, 1.0]])
    np.testing.assert_array_equal(state["kept"], [[1.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("changed", "goes"),
    [
        ({"threshold": 3 / 16}, True),
        ({"threshold": 3 / 16 + 1e-9}, False),
        ({"kappa_bar": 2.0}, True),
        ({"kappa_bar": 2.0 + 1e-9}, False),
        ({"loss_smoothing": 0.0}, False),
        ({"loss_smoothing": 1.0}, True),
    ],
)
def test_limits_of_the_parameters_in_round_two(changed: dict[str, float], goes: bool) -> None:
    """The gain of excluding client 1 is 3/16 at kappa_bar = 1 and 1/4 - 4/16 = 0 at 2."""
    _, weights = after(oracle(**changed), FIRST, SECOND)
    assert weights[1] == [0.5, 0.0 if goes else 0.5, 0.0]


def test_an_empty_round_changes_availability_estimates_alone() -> None:
    algorithm = CAFed(ALPHA, 0.1, 1)
    before, _ = after(algorithm, FIRST)
    state, weights = after(algorithm, FIRST, ([0, 0, 0], [7.0, 7.0, 7.0]))
    assert weights[1] == [0.0, 0.0, 0.0]
    for name in ("loss", "minimum", "reported"):
        np.testing.assert_array_equal(state[name], before[name])
    np.testing.assert_array_equal(state["absent"], [[1.0, 1.0, 1.0]])


def test_a_client_is_unknown_until_it_first_reports() -> None:
    """Client 2 reports 5 in round 3: its estimate is 5 at once, whatever beta, and no gap."""
    late = ([0, 0, 1], [0.0, 0.0, 5.0])
    first = ([1, 1, 0], [3.0, 2.0, 9.0])
    state, weights = after(oracle(), first, SECOND, late)
    np.testing.assert_array_equal(state["loss"], [[2.0, 3.0, 5.0]])
    np.testing.assert_array_equal(state["minimum"], [[2.0, 2.0, 5.0]])
    assert weights[2] == [0.0, 0.0, 2.0]


def test_known_minima_give_gaps_from_the_first_round() -> None:
    """F = (3, 2, 1), F* = (3, 2, 0): gaps (0, 0, 1), so 2 goes as client 1 did above."""
    algorithm = oracle(known_minima=[3.0, 2.0, 0.0])
    _, weights = after(algorithm, FIRST)
    assert weights == [[0.5, 0.5, 0.0]]


def test_estimates_of_availability_by_hand() -> None:
    """Client 0 shows 1 1 0 1, client 1 always, client 2 never; prior (2, 1).

    pi_hat = (3 + 2)/7, 6/7, 2/7. Client 0 stays once of 2, waits 0 of 1: 3/5 + 1/4 - 1; client
    1 stays 3 of 3: 5/6 + 1/3 - 1; client 2 waits 3 of 3: 2/3 + 4/6 - 1.
    """
    shows = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=bool)
    counts = estimate.first_counts(np.zeros((1, 2)), 3)
    np.testing.assert_allclose(estimate.estimated_availability(counts, (2, 1)), [[2 / 3] * 3])
    np.testing.assert_allclose(estimate.estimated_correlation(counts, (2, 1)), 0, atol=1e-15)
    for who in shows:
        counts = estimate.counted(counts, who[None])
    pi = estimate.estimated_availability(counts, (2, 1))
    np.testing.assert_allclose(pi, [[5 / 7, 6 / 7, 2 / 7]], rtol=1e-15)
    correlation = estimate.estimated_correlation(counts, (2, 1))
    np.testing.assert_allclose(correlation, [[-3 / 20, 1 / 6, 1 / 3]], rtol=1e-14)


def test_estimates_become_weights_in_the_same_round() -> None:
    """Prior (1, 1): after one round pi_hat is 2/3 if present, so alpha/pi_hat = 3/2 alpha."""
    _, weights = after(CAFed(ALPHA, 0.1, 1), ([1, 0, 1], [1.0, 1.0, 1.0]))
    np.testing.assert_allclose(weights[0], [0.75, 0.0, 0.375], rtol=1e-15)


def test_estimates_tend_to_the_chain_that_made_the_masks() -> None:
    chains = MarkovOnOff([0.7, 0.2], [0.6, -0.2])
    counts = estimate.first_counts(np.zeros((50, 1)), 2)
    for _, who in zip(range(1000), chains.masks(np.random.default_rng(5), 50), strict=False):
        counts = estimate.counted(counts, who)
    pi = estimate.estimated_availability(counts, (1, 1)).mean(axis=0)
    correlation = estimate.estimated_correlation(counts, (1, 1)).mean(axis=0)
    np.testing.assert_allclose(pi, [0.7, 0.2], atol=0.015)
    np.testing.assert_allclose(correlation, [0.6, -0.2], atol=0.02)


def test_who_reports_often_has_the_larger_estimated_gap() -> None:
    """All losses have one law, so only the number of reports behind the minimum differs."""
    rng, algorithm = np.random.default_rng(6), oracle(threshold=1e6, loss_smoothing=0.2)
    state = algorithm.init(np.zeros((2000, 3)), 3)
    for _ in range(150):
        who = rng.random((2000, 3)) < [0.9, 0.5, 0.1]
        losses = 1 + 0.1 * rng.standard_normal((2000, 3))
        state = algorithm.round(state, Scripted(losses), who, CLIENTS)
    gaps = state["loss"] - state["minimum"]
    difference = gaps[:, 0] - gaps[:, 2]
    assert difference.mean() > 5 * difference.std() / np.sqrt(2000)


def plain_get(
    q: list[float],
    alpha: list[float],
    gap: list[float],
    pi: list[float],
    rho: list[float],
    tau: float,
    kappa_bar: float,
) -> list[float]:
    """Lines 16 to 27 of Algorithm 1 with pi and q themselves, one client after another."""

    def epsilon(q: list[float]) -> float:
        total = sum(p * w for p, w in zip(pi, q, strict=True))
        importance = [p * w / total for p, w in zip(pi, q, strict=True)]
        variation = sum(abs(a - i) for a, i in zip(alpha, importance, strict=True)) / 2
        biased = sum(g * i for g, i in zip(gap, importance, strict=True))
        return biased + kappa_bar**2 * variation**2 * max(gap)

    for k in sorted(range(len(q)), key=lambda k: (-rho[k], k)):
        without = [0.0 if h == k else w for h, w in enumerate(q)]
        if q[k] > 0 and any(without) and epsilon(q) - epsilon(without) >= tau:
            q = without
    return q


@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.01, 0.1, 1.0]),
    st.sampled_from([0.0, 0.3, 1.0, 3.0]),
)
@example(0, 33, 0.0, 0.0)  # of clients without gaps, all but the last tried go, as ties do
def test_exclusion_is_that_of_plain_python(seed: int, n: int, tau: float, kappa_bar: float) -> None:
    rng = np.random.default_rng(seed)
    alpha, gaps = rng.dirichlet(np.ones(n)), rng.exponential(size=(4, n))
    gaps[:, rng.random(n) < 0.3] = 0.0
    gaps[:, 0] += 0.1
    pi, lam = rng.uniform(0.05, 1, n), np.round(rng.uniform(-1, 1, n), 1)
    kept = np.ones((4, n), dtype=bool)
    for rho in (lam, -pi):
        kept = kept_after_exclusion(
            kept, alpha[None], gaps, np.tile(rho, (4, 1)), threshold=tau, kappa_bar=kappa_bar
        )
    for row, gap in zip(kept, gaps.tolist(), strict=True):
        q = (alpha / pi).tolist()
        for rho in (lam, -pi):
            q = plain_get(q, alpha.tolist(), gap, pi.tolist(), rho.tolist(), tau, kappa_bar)
        assert row.tolist() == [weight > 0 for weight in q]


def test_somebody_is_always_left() -> None:
    """Without weight on the bias the client with the least gap stays, alone."""
    kept = kept_after_exclusion(
        np.ones((1, 4), dtype=bool),
        np.full((1, 4), 0.25),
        np.array([[3.0, 1.0, 2.0, 4.0]]),
        np.array([[1.0, 2.0, 3.0, 4.0]]),
        threshold=0.0,
        kappa_bar=0.0,
    )
    np.testing.assert_array_equal(kept, [[False, True, False, False]])


def test_a_vanishing_share_is_no_division_by_zero() -> None:
    """Without client 0 a share of 1e-18 is left, and the bias is 1: client 0 stays."""
    kept = kept_after_exclusion(
        np.ones((1, 2), dtype=bool),
        np.array([[1.0, 1e-18]]),
        np.array([[0.5, 0.25]]),
        np.array([[2.0, 1.0]]),
        threshold=1e-9,
        kappa_bar=10.0,
    )
    np.testing.assert_array_equal(kept, [[True, True]])


def run(algorithm: Any, participation: MarkovOnOff, rounds: int = 60) -> np.ndarray:
    problem = quadratic(5, 2, 1.0, 0.2, 2.0, sigma=0.5, seed=4)
    clients = QuadraticClients(problem, GaussianNoise(np.random.default_rng(1)))
    states = simulate(
        algorithm,
        clients,
        participation,
        np.ones((6, 2)),
        participation_rng=np.random.default_rng(2),
        branch_rng=np.random.default_rng(3),
    )
    return np.stack([state["x"] for _, (state, _) in zip(range(rounds), states, strict=False)])


@pytest.mark.parametrize(
    "limit", [{"threshold": 1e6}, {"kappa_bar": 1e6}, {"loss_smoothing": 0.0}], ids=str
)
def test_limits_are_unbiased(limit: dict[str, float]) -> None:
    """Section VI-A: for kappa_bar to infinity CA-Fed is Unbiased; so it is for tau, or beta = 0."""
    pi, nu = [0.9, 0.8, 0.5, 0.3, 0.2], [0.9, 0.0, 0.8, 0.5, -0.1]
    alpha, who = np.full(5, 0.2), MarkovOnOff(pi, nu)
    known = {"availability": pi, "correlation": nu}
    expected = run(Unbiased(alpha, pi, 0.1, 3, server_lr=0.5), who)
    ours = run(CAFed(alpha, 0.1, 3, server_lr=0.5, **known, **limit), who)
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-13)
    other = run(CAFed(alpha, 0.1, 3, server_lr=0.5, **known), who)
    assert np.abs(other - expected).max() > 1e-3


@given(st.integers(0, 10**6), st.permutations(range(3)))
def test_the_order_of_clients_does_not_matter_without_ties(seed: int, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    rounds = [(rng.random(3) < 0.7, rng.normal(size=3)) for _ in range(6)]
    alpha, pi, lam = rng.dirichlet(np.ones(3)), rng.uniform(0.1, 1, 3), rng.uniform(-1, 1, 3)

    def weights(order: list[int]) -> np.ndarray:
        algorithm = CAFed(alpha[order], 0.1, 1, availability=pi[order], correlation=lam[order])
        shuffled = [(present[order], losses[order]) for present, losses in rounds]
        return np.array(after(algorithm, *shuffled)[1])

    np.testing.assert_allclose(weights(list(order)), weights([0, 1, 2])[:, list(order)], atol=1e-14)


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.05, 0.2]),
    st.sampled_from([0.25, 2.0, 8.0]),
    st.sampled_from([-16.0, 4.0]),
)
def test_units_and_zero_of_the_losses_do_not_matter(
    seed: int, tau: float, unit: float, zero: float
) -> None:
    """Losses times c with tau times c exclude the same clients, and so do shifted losses."""
    rng = np.random.default_rng(seed)
    # On a grid of powers of two every number below is exact.
    rounds = [(rng.random(3) < 0.7, rng.integers(-64, 64, 3) / 64) for _ in range(5)]
    plain = after(oracle(threshold=tau), *rounds)[1]
    scaled = [(present, unit * losses + zero) for present, losses in rounds]
    assert after(oracle(threshold=unit * tau), *scaled)[1] == plain


def test_replicas_do_not_mix() -> None:
    rng = np.random.default_rng(8)
    rounds = [(rng.random((5, 3)) < 0.6, rng.exponential(size=(5, 3))) for _ in range(6)]
    algorithm = CAFed(ALPHA, 0.1, 1)
    state = algorithm.init(np.zeros((5, 3)), 3)
    for who, losses in rounds:
        state = algorithm.round(state, Scripted(losses), who, CLIENTS)
    for replica in range(5):
        alone, _ = after(algorithm, *((w[replica], losses[replica]) for w, losses in rounds))
        np.testing.assert_array_equal(state["x"][replica], alone["x"][0])


def test_contract() -> None:
    algorithm = CAFed(ALPHA, 0.1, 2)
    assert algorithm.branches == ((CLIENTS, 1.0),)
    assert {value.shape[0] for value in algorithm.init(np.ones((4, 2)), 3).values()} == {4}
    with pytest.raises(
        ValueError, match="target_weights must have one entry for each of 5 clients, got 3"
    ):
        algorithm.init(np.ones((4, 2)), 5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_weights": [0.5, 0.4]}, r"target_weights must sum to 1, got a sum of 0\.9"),
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"local_steps": 1.5}, r"local_steps must be a whole number of at least 1, got 1\.5"),
        ({"server_lr": -1}, r"server_lr must be a finite number above 0, got -1"),
        ({"loss_smoothing": 1.1}, r"loss_smoothing must be a probability in \[0, 1\], got 1\.1"),
        ({"threshold": -0.1}, r"threshold must be a finite number of at least 0, got -0\.1"),
        ({"kappa_bar": np.nan}, r"kappa_bar must be a finite number of at least 0, got nan"),
        ({"availability": [0.5, 0.5]}, r"be left out, got availability alone"),
        ({"correlation": 0.5}, r"be left out, got correlation alone"),
        (
            {"availability": [0.5, 1.5], "correlation": 0.0},
            r"availability must be in \(0, 1\], got 1\.5 for client 1",
        ),
        (
            {"availability": 0.5, "correlation": [0.1, 0.2, 0.3]},
            r"correlation must have shape \(2,\), got \(3,\)",
        ),
        ({"known_minima": [[0.0, 1.0]]}, r"known_minima must have shape \(2,\), got \(1, 2\)"),
        ({"prior": (1.0, 0.0)}, r"prior must be a finite number above 0, got 0\.0"),
        ({"prior": 1.0}, r"prior must be a pair \(n, m\), got 1\.0"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    good = {"target_weights": [0.5, 0.5], "client_lr": 0.1, "local_steps": 2}
    with pytest.raises(ValueError, match=message):
        CAFed(**(good | changed))

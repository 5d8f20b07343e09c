"""Designed problems hit their constants; impossible ones are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fltheory.problems import QuadraticProblem, nonconvex, quadratic

TOLERANCE = 1e-12


def measured(problem: QuadraticProblem) -> dict[str, float]:
    """Recompute the constants from Hessians and optima alone, in long double."""
    spectrum = np.diag(problem.hessians).astype(np.longdouble)
    assert (problem.hessians == np.diag(np.diag(problem.hessians))).all()
    optima = problem.optima.astype(np.longdouble)
    alpha = problem.alpha.astype(np.longdouble)
    centre = alpha @ optima / alpha.sum()
    gaps = centre - optima
    gradients = gaps * spectrum
    return {
        "L": float(spectrum.max()),
        "mu": float(spectrum.min()),
        "sigma_G": float(np.sqrt((gradients**2).sum(axis=1)).max()),
        "Gamma": float(0.5 * (gaps * gradients).sum(axis=1).max()),
    }


@st.composite
def designs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw every feasible combination: condition numbers to 1e6, any share of Gamma."""
    n_clients = draw(st.integers(2, 11))
    dim = draw(st.integers(1, 10))
    L = draw(st.floats(1e-2, 1e3))
    condition = 1.0 if dim == 1 else 10 ** draw(st.floats(0.0, 6.0))
    mu = L / condition
    sigma_G = draw(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)))
    lowest, highest = sigma_G**2 / (2 * L), sigma_G**2 / (2 * mu)
    Gamma = draw(st.one_of(st.none(), st.floats(0.0, 1.0)))
    if Gamma is not None:
        Gamma = min(max(lowest + Gamma * (highest - lowest), lowest), highest)
    weights = None
    if draw(st.booleans()):
        raw = np.array(draw(st.lists(st.floats(0.05, 1.0), min_size=n_clients, max_size=n_clients)))
        weights = raw / raw.sum()
        assume(abs(weights.sum() - 1) <= 1e-13)
    return {
        "n_clients": n_clients,
        "dim": dim,
        "L": L,
        "mu": mu,
        "sigma_G": sigma_G,
        "Gamma": Gamma,
        "target_weights": weights,
        "seed": draw(st.integers(0, 1000)),
    }


@given(designs())
def test_quadratic_hits_its_constants(design: dict[str, Any]) -> None:
    problem = quadratic(**design)
    L, mu, sigma_G = design["L"], design["mu"], design["sigma_G"]
    middle = (sigma_G**2 / (2 * L) + sigma_G**2 / (2 * mu)) / 2
    expected = {
        "L": L,
        "mu": mu,
        "sigma_G": sigma_G,
        "Gamma": middle if design["Gamma"] is None else design["Gamma"],
    }
    for name, number in measured(problem).items():
        np.testing.assert_allclose(number, expected[name], rtol=TOLERANCE, err_msg=name)
        np.testing.assert_allclose(getattr(problem, name), number, rtol=TOLERANCE, err_msg=name)
    assert (problem.n_clients, problem.dim) == (design["n_clients"], design["dim"])


@given(designs())
def test_gradients_cancel_at_the_optimum(design: dict[str, Any]) -> None:
    problem = quadratic(**design)
    total = problem.alpha @ problem.gradients_at_optimum
    assert np.abs(total).max() <= 1e-13 * max(design["sigma_G"], 1e-300)


@given(designs(), st.floats(-3.0, 3.0))
def test_optimum_can_be_placed(design: dict[str, Any], place: float) -> None:
    point = np.full(design["dim"], place)
    problem = quadratic(**design, x_star=point)
    reach = np.abs(problem.optima).max()
    np.testing.assert_allclose(problem.x_star, point, atol=1e-14 * max(reach, 1.0))


def test_only_one_client_attains_the_extremes() -> None:
    """The lightest; the others are strictly inside both limits, and not all alike."""
    problem = quadratic(5, 3, 4.0, 0.5, 2.0, 1.0, target_weights=[0.3, 0.1, 0.2, 0.2, 0.2], seed=4)
    norms = np.linalg.norm(problem.gradients_at_optimum, axis=1)
    gammas = 0.5 * ((problem.x_star - problem.optima) * problem.gradients_at_optimum).sum(axis=1)
    others = [0, 2, 3, 4]
    np.testing.assert_allclose((norms[1], gammas[1]), (2.0, 1.0), rtol=1e-13)
    assert norms[others].max() < 2.0 * (1 - 1e-3)
    assert gammas[others].max() < 1.0 * (1 - 1e-3)
    assert len(np.unique(norms[others].round(9))) == 4


def test_curvatures_are_geometric() -> None:
    problem = quadratic(2, 4, 8.0, 1.0, 1.0)
    np.testing.assert_allclose(np.diag(problem.hessians), [8.0, 4.0, 2.0, 1.0], rtol=1e-14)


def test_seed_moves_the_others_only() -> None:
    left, right, again = (quadratic(6, 3, 4.0, 1.0, 2.0, seed=seed) for seed in (0, 1, 0))
    np.testing.assert_array_equal(left.optima, again.optima)
    np.testing.assert_array_equal(left.optima[0], right.optima[0])
    assert (left.optima[1:] != right.optima[1:]).any()


def test_noise_is_passed_on() -> None:
    problem = quadratic(3, 2, 2.0, 1.0, 1.0, sigma=0.25, server_sigma=0.5)
    assert (problem.sigma, problem.server_sigma) == (0.25, 0.5)


GOOD = {"n_clients": 4, "dim": 3, "L": 4.0, "mu": 1.0, "sigma_G": 2.0, "Gamma": 1.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_clients": 0}, r"n_clients must be a whole number of at least 1, got 0"),
        ({"dim": 1.5}, r"dim must be a whole number of at least 1, got 1\.5"),
        ({"L": -1.0}, r"L must be a finite number above 0, got -1\.0"),
        ({"mu": 0.0}, r"mu must be a finite number above 0, got 0\.0"),
        ({"mu": np.nan}, r"mu must be a finite number above 0, got nan"),
        ({"sigma_G": -2.0}, r"sigma_G must be a finite number of at least 0, got -2\.0"),
        ({"sigma_G": 1e160}, r"sigma_G must be at most 1\.34e\+154, .* got 1e\+160"),
        ({"sigma_G": 1e150, "mu": 1e-10}, r"sigma_G must be at most 1\.34e\+149, .* got 1e\+150"),
        ({"Gamma": np.nan}, r"Gamma must be a finite number of at least 0, got nan"),
        ({"mu": 5.0}, r"mu must be at most L, got mu=5 with L=4"),
        (
            {"dim": 1},
            r"mu must equal L when dim=1 \(there is only one curvature\), got mu=1 with L=4",
        ),
        ({"Gamma": 0.49}, r"Gamma must lie between .* here \[0\.5, 2\], got 0\.49"),
        ({"Gamma": 2.01}, r"Gamma must lie between .* here \[0\.5, 2\], got 2\.01"),
        ({"sigma_G": 0.0}, r"Gamma must lie between .* here \[0, 0\], got 1"),
        ({"n_clients": 1}, r"sigma_G must be 0 with a single client, got 2"),
        ({"sigma": -1.0}, r"sigma must be a finite number of at least 0, got -1\.0"),
        ({"server_sigma": np.inf}, r"server_sigma must be a finite number of at least 0, got inf"),
        ({"x_star": [0.0]}, r"x_star must have shape \(3,\), got \(1,\)"),
        ({"x_star": [0.0, 0.0, np.nan]}, r"x_star must be finite, got nan"),
        ({"target_weights": [0.5, 0.5]}, r"target_weights must have shape \(4,\), got \(2,\)"),
        ({"target_weights": [0.7, 0.1, 0.1, 0.2]}, r"target_weights must sum to 1, got .* 1\.1"),
    ],
)
def test_impossible_quadratic_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quadratic(**(GOOD | changed))


@pytest.mark.parametrize("Gamma", [0.5, 2.0])
def test_ends_of_the_interval_of_Gamma_are_possible(Gamma: float) -> None:
    np.testing.assert_allclose(quadratic(**(GOOD | {"Gamma": Gamma})).Gamma, Gamma, rtol=1e-13)


def test_single_client_without_dissimilarity() -> None:
    problem = quadratic(1, 2, 4.0, 1.0, 0.0, x_star=[1.0, 2.0])
    np.testing.assert_array_equal(problem.x_star, [1.0, 2.0])
    assert problem.sigma_G == problem.Gamma == problem.F_star == 0.0


@given(
    n_clients=st.integers(2, 9),
    dim=st.integers(1, 8),
    L=st.floats(1e-2, 1e3),
    sigma_G=st.floats(0.0, 1e3, allow_subnormal=False),  # of subnormal ones no 12 digits are known
    bowl=st.floats(0.01, 0.99),
    frequency=st.floats(0.1, 10.0),
    place=st.floats(-5.0, 5.0),
)
def test_nonconvex_hits_its_constants(
    n_clients: int,
    dim: int,
    L: float,
    sigma_G: float,
    bowl: float,
    frequency: float,
    place: float,
) -> None:
    point = np.full(dim, place)
    problem = nonconvex(n_clients, dim, L, sigma_G, bowl=bowl, frequency=frequency, x_star=point)
    np.testing.assert_allclose(problem.L, L, rtol=TOLERANCE)
    np.testing.assert_allclose(problem.mu, (2 * bowl - 1) * L, atol=TOLERANCE * L)
    np.testing.assert_allclose(problem.curvature, bowl * L, rtol=TOLERANCE)
    lengths = np.sqrt((problem.tilts.astype(np.longdouble) ** 2).sum(axis=1)).astype(float)
    np.testing.assert_allclose(lengths.max(), sigma_G, rtol=TOLERANCE)
    np.testing.assert_allclose(lengths[0], sigma_G, rtol=TOLERANCE)
    np.testing.assert_allclose(problem.tilts.sum(axis=0), 0.0, atol=1e-12 * max(1.0, sigma_G))
    np.testing.assert_array_equal(problem.x_star, point)


NONCONVEX = {"n_clients": 3, "dim": 2, "L": 1.0, "sigma_G": 1.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_clients": 1}, r"sigma_G must be 0 with a single client, got 1"),
        ({"dim": 0}, r"dim must be a whole number of at least 1, got 0"),
        ({"L": 0.0}, r"L must be a finite number above 0, got 0\.0"),
        ({"sigma_G": np.nan}, r"sigma_G must be a finite number of at least 0, got nan"),
        ({"bowl": 0.0}, r"bowl must be a number between 0 and 1, got 0\.0"),
        ({"bowl": 1.0}, r"bowl must be a number between 0 and 1, got 1\.0"),
        ({"frequency": -2.0}, r"frequency must be a finite number above 0, got -2\.0"),
        ({"x_star": [1.0]}, r"x_star must have shape \(2,\), got \(1,\)"),
    ],
)
def test_impossible_nonconvex_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nonconvex(**(NONCONVEX | changed))

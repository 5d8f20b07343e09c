"""A setting's exact twin: its constants against independent computations."""

from __future__ import annotations

from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
import sympy as sp
from flint import arb, fmpq

from fltheory.algorithms import FedAvg
from fltheory.decimals import as_fraction
from fltheory.engines import Setting
from fltheory.engines.affine.numbers import Balls, InexactRoundError
from fltheory.engines.enclosure.exact_setting import (
    ExactProblem,
    NoExactTwinError,
    WideningNumber,
    exact_numbers,
    exact_setting,
    product,
)
from fltheory.participation import Bernoulli, Cyclic, FiniteChain, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex


def _rotated(values: list[float], seed: int) -> np.ndarray:
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    hessian = basis @ np.diag(values) @ basis.T
    return (hessian + hessian.T) / 2


def _decimal_matrix(matrix: np.ndarray) -> mpmath.matrix:
    entries = [[mpmath.mpf(repr(float(item))) for item in row] for row in matrix]
    return mpmath.matrix(entries)


def _near(value: WideningNumber, number: mpmath.mpf) -> bool:
    distance = abs(arb(value.value) - arb(mpmath.nstr(number, 58)))
    return float(distance.upper()) < 1e-50


@pytest.mark.parametrize("least", [1.0, 1e-4, 1e-8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_curvatures_of_rotated_hessians_hold_those_of_60_digits(least: float, seed: int) -> None:
    problem = QuadraticProblem(_rotated([least, 0.3, 1.0], seed), np.zeros((2, 3)))
    with mpmath.workdps(60):
        exact = mpmath.eigsy(_decimal_matrix(problem.hessians), eigvals_only=True)
        with Balls(256).in_use():
            twin = ExactProblem(problem)
            assert _near(twin.L, exact[2])
            assert _near(twin.mu, exact[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_constants_of_diagonal_clients_are_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    diagonals, optima = rng.uniform(0.1, 3, (3, 2)).round(3), rng.normal(size=(3, 2)).round(4)
    alpha = np.array([0.2, 0.3, 0.5])
    problem = QuadraticProblem(
        np.stack([np.diag(each) for each in diagonals]), optima, target_weights=alpha
    )
    h = [[as_fraction(item) for item in row] for row in diagonals]
    c = [[as_fraction(item) for item in row] for row in optima]
    a = [Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)]
    star = [
        sum(a[i] * h[i][k] * c[i][k] for i in range(3)) / sum(a[i] * h[i][k] for i in range(3))
        for k in range(2)
    ]
    losses = [sum(h[i][k] * (star[k] - c[i][k]) ** 2 for k in range(2)) / 2 for i in range(3)]

    twin = ExactProblem(problem)

    assert [_fraction(item) for item in twin.x_star] == star
    assert _fraction(twin.Gamma) == max(losses)
    assert _fraction(twin.L) == max(map(max, h))
    assert _fraction(twin.mu) == min(map(min, h))
    assert twin.sigma_G is sp.oo


def test_dissimilarity_is_a_fraction_where_its_square_is_one_of_squares() -> None:
    problem = QuadraticProblem([[1.0, 0.0], [0.0, 1.0]], [[0.3, 0.4], [-0.3, -0.4]])
    assert _fraction(ExactProblem(problem).sigma_G) == Fraction(1, 2)


def test_thirds_as_weights_sum_to_one() -> None:
    problem = QuadraticProblem([[1.0]], np.ones((3, 1)), target_weights=[1 / 3] * 3)
    assert [_fraction(item) for item in ExactProblem(problem).x_star] == [1]


@pytest.mark.parametrize(
    ("participation", "marginals"),
    [
        (Bernoulli([0.1, 1.0]), [Fraction(1, 10), 1]),
        (UniformSubset(2, 1), [Fraction(1, 2), Fraction(1, 2)]),
        (Cyclic([3, 3], [0, 1], [1, 2]), [Fraction(1, 3), Fraction(2, 3)]),
        (
            FiniteChain([[0.7, 0.3], [0.1, 0.9]], [[True, False], [True, True]]),
            [1, Fraction(3, 4)],
        ),
    ],
    ids=["Bernoulli", "UniformSubset", "Cyclic", "FiniteChain"],
)
def test_marginals_are_fractions(participation: Bernoulli, marginals: list[Fraction]) -> None:
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    twin = exact_setting(Setting(FedAvg(0.1, 1), problem, participation, 1, [0.0]))
    assert [_fraction(item) for item in twin.participation.marginals] == marginals


def test_an_exact_number_is_not_mixed_with_floats() -> None:
    twin = ExactProblem(QuadraticProblem([[1.0]], [[0.1], [0.2]]))
    with pytest.raises(InexactRoundError, match=r"0\.5"):
        _ = 0.5 * twin.L


def test_other_clients_have_no_twin() -> None:
    problem = nonconvex(2, 1, L=1.0, sigma_G=0.3, sigma=0.5, server_sigma=0.5)
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 1, [0.0])
    with pytest.raises(NoExactTwinError, match="problem must be a QuadraticProblem"):
        exact_setting(setting)


def _fraction(number: WideningNumber) -> Fraction:
    assert isinstance(number.value, fmpq)
    return Fraction(int(number.value.p), int(number.value.q))


def test_what_was_cached_from_floats_is_not_met_in_the_twin() -> None:
    chains = MarkovOnOff([0.3, 0.8], [0.6, 0.2])
    assert chains.mixing.factor == pytest.approx(1.5)
    twin = chains.in_numbers(exact_numbers).mixing
    assert (twin.rate.value, twin.factor.value) == (fmpq(4, 5), fmpq(3, 2))
    chain = FiniteChain([[0.9, 0.1], [0.3, 0.7]], [[1], [0]])
    assert chain.marginals[0] == pytest.approx(0.75)
    assert chain.in_numbers(exact_numbers).marginals[0].value == fmpq(3, 4)


def test_products_of_matrices_are_those_of_fractions_and_hold_them_in_balls() -> None:
    rng = np.random.default_rng(0)
    left, middle, right = rng.integers(-9, 10, (3, 4, 4)) / 10
    exact = [np.vectorize(as_fraction)(each) for each in (left, middle, right)]
    truth = exact[0].dot(exact[1]).dot(exact[2])
    given = [exact_numbers(each) for each in (left, middle, right)]
    assert (product(*given) == truth).all()
    given[1][0, 0] = given[1][0, 0].widened()
    for made, one in zip(product(*given).flat, truth.flat, strict=True):
        assert made.value.contains(fmpq(one.numerator, one.denominator))
        assert 0 < made.value.rad() < 1e-10
    np.testing.assert_array_equal(product(left, middle, right), left @ middle @ right)
    with pytest.raises(InexactRoundError):
        product(given[0], middle)

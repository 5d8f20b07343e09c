"""Tilted bowls are quadratics with other minimisers: ``|y|^2/2 + t'y = |y + t|^2/2 - |t|^2/2``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import pytest

from fltheory.problems import QuadraticProblem
from fltheory.problems.tilted import TiltedProblem
from fltheory.validation import FloatArray

TILTS = np.array([[1.0, -2.0], [0.5, 1.0], [-1.0, 0.5]])
WEIGHTS = np.array([0.4, 0.4, 0.2])
CENTRE = np.array([1.0, -1.0])


@dataclass(frozen=True, eq=False)
class Bowl(TiltedProblem):
    """F(x) = steepness/2 ||x - x*||^2."""

    tilts: FloatArray
    _: KW_ONLY
    steepness: float
    x_star: FloatArray
    sigma: float = 0.0
    server_sigma: float = 0.0
    target_weights: FloatArray | None = None

    def __init__(self, tilts, x_star, target_weights=None, *, steepness=1.0) -> None:
        self._set(tilts, x_star, 0.5, 0.25, target_weights, steepness=steepness)

    @property
    def L(self) -> float:
        return self.steepness

    mu = L

    def loss(self, x: FloatArray) -> FloatArray:
        return self.steepness / 2 * np.square(x - self.x_star).sum(axis=-1)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.steepness * (x - self.x_star)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_tilted_bowl_is_a_quadratic_with_other_minimisers(weights: FloatArray | None) -> None:
    alpha = np.full(3, 1 / 3) if weights is None else weights
    tilts = TILTS - alpha @ TILTS
    bowl = Bowl(tilts, CENTRE, weights)
    same = QuadraticProblem(np.eye(2), CENTRE - tilts, target_weights=weights)
    assert (bowl.n_clients, bowl.dim, bowl.F_star) == (3, 2, 0.0)
    assert (bowl.sigma, bowl.server_sigma) == (0.5, 0.25)
    np.testing.assert_allclose(bowl.alpha, alpha)
    np.testing.assert_allclose(bowl.x_star, same.x_star, atol=1e-15)
    assert bowl.sigma_G == pytest.approx(same.sigma_G, rel=1e-14)
    x = np.random.default_rng(0).standard_normal((5, 2))
    clients = np.array([0, 1, 2, 1, 0])
    np.testing.assert_allclose(bowl.excess_loss(x), same.excess_loss(x), rtol=1e-13)
    np.testing.assert_allclose(
        bowl.client_gradients(x, clients), same.client_gradients(x, clients), atol=1e-14
    )
    np.testing.assert_allclose(
        bowl.client_losses(x) + np.square(tilts).sum(axis=1) / 2, same.client_losses(x), atol=1e-13
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [0.0]), r"tilts must have shape \(n_clients, dim\), got \(1,\)"),
        (([[1.0], [-1.0]], [0.0, 0.0]), r"x_star must have shape \(1,\), got \(2,\)"),
        (([[1.0], [-0.5]], [0.0]), r"tilts must cancel .* a weighted sum of up to 0\.25"),
        (([[1.0], [-1.0]], [0.0], [0.5, 0.4]), "target_weights must sum to 1"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bowl(*arguments)


def test_what_shapes_the_loss_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"steepness must be a finite number above 0, got 0\.0"):
        Bowl([[1.0], [-1.0]], [0.0], steepness=0.0)

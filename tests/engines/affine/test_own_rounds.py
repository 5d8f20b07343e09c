"""Algorithms that a user writes with a clip or a dead zone, in every way that NumPy offers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from array_api_compat import array_namespace

from fltheory.algorithms.contract import EVERY_ROUND_CLIENTS
from fltheory.engines import Setting, exact, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.problems import QuadraticProblem

CLIPS = {
    "np.minimum": lambda d: np.minimum(np.maximum(d, -2.0), 2.0),
    "np.clip": lambda d: np.clip(d, -2.0, 2.0),
    "np.where": lambda d: np.where(d > 2.0, 2.0, np.where(d < -2.0, -2.0, d)),
    "np.abs": lambda d: d * (2.0 / np.maximum(np.abs(d), 2.0)),
    "np.sign": lambda d: np.sign(d) * np.minimum(np.abs(d), 2.0),
    "np.linalg.norm": lambda d: d * np.minimum(1.0, 2.0 / np.linalg.norm(d, axis=1, keepdims=True)),
    "xp.clip": lambda d: array_namespace(d).clip(d, -2.0, 2.0),
    "xp.minimum": lambda d: array_namespace(d).maximum(
        array_namespace(d).minimum(d, 0 * d + 2.0), 0 * d - 2.0
    ),
    "xp.where": lambda d: array_namespace(d).where(d < -2.0, 0 * d - 2.0, d),
    "xp.sign": lambda d: array_namespace(d).sign(d) * 2.0,
    "abs": lambda d: d * (2.0 / np.maximum(abs(d), 2.0)),
    "if": lambda d: d if d[0, 0] > -2.0 else 0 * d - 2.0,
    "float": lambda d: 0 * d + max(min(float(d[0, 0]), 2.0), -2.0),
    ".item": lambda d: 0 * d + max(min(d[0, 0].item(), 2.0), -2.0),
    ".clip": lambda d: d.clip(-2.0, 2.0),
    ".tolist": lambda d: 0 * d + max(min(d.tolist()[0][0], 2.0), -2.0),
    "a mask": lambda d: d * (d > -2.0) - 2.0 * (d <= -2.0),
    "a power": lambda d: d * 2.0 / (d**2) ** 0.5,
    "np.tanh": lambda d: 2.0 * np.tanh(d / 2.0),
}


@dataclass(frozen=True)
class Own:
    """FedAvg, one step of 0.1, whose update goes through a function."""

    function: object
    branches = EVERY_ROUND_CLIENTS

    def init(self, x0, n_clients):
        return {"x": x0}

    def round(self, state, clients, who, branch):
        weights = who / clients.n_clients
        update = clients.summed_local_sgd(state["x"], who, weights, steps=1, lr=0.1)
        return {"x": state["x"] + self.function(update)}


def setting(function, sigma: float, x0: float, everybody: bool = True, rounds: int = 20) -> Setting:
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]], sigma=sigma)
    who = UniformSubset(2, 2) if everybody else Bernoulli([0.5, 0.7])
    return Setting(Own(function), problem, who, rounds, [x0])


@pytest.mark.parametrize("everybody", [True, False])
@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("way", CLIPS)
def test_a_clip_is_refused_however_it_is_written(way: str, sigma: float, everybody: bool) -> None:
    """Fails if any way to ask where the model is gets an answer from the forms."""
    run = setting(CLIPS[way], sigma, 30.0, everybody, 3)
    engines = [exact] if sigma == 0 else [exact, paths]
    for engine in engines:
        with pytest.raises(ValueError, match=r"^(the algorithm's|a) round must be ") as error:
            engine(run)
        named = (
            "gives a replica another 'x' in a batch than alone",
            "of a value that depends on the model: use engines.monte_carlo",
            "converts a single entry to a number",
        )
        assert any(words in str(error.value) for words in named)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["np.minimum", "np.clip"])
def test_a_clip_is_named(name: str) -> None:
    named = {"np.minimum": "a maximum", "np.clip": "a clip"}[name]
    with pytest.raises(NotAffineError, match=f"takes {named} of a value that depends on the model"):
        exact(setting(CLIPS[name], 0.5, 30.0))


@pytest.mark.parametrize("way", ["np.minimum", "np.clip", "np.where", "if", "float", ".item"])
def test_without_noise_a_clipped_run_is_followed(way: str) -> None:
    """From 30 by steps of 2 until 20 and then by a tenth: against a plain loop.

    Fails if the slope at one state is taken for all.
    """
    x, expected = 30.0, [900.0]
    for _ in range(20):
        x += max(-2.0, min(2.0, -0.1 * x))
        expected.append(x * x)
    found = paths(setting(CLIPS[way], 0.0, 30.0))
    np.testing.assert_allclose(found.squared_distance, expected, rtol=1e-12)
    assert found.rounding_error is None


DEAD_ZONES = {
    "np.where": lambda d: np.where(np.abs(d) < 0.01, 0.0, d),
    "if": lambda d: 0 * d if abs(float(d[0, 0])) < 0.01 else d,
    "a mask": lambda d: d * (abs(d) >= 0.01),
}


@pytest.mark.parametrize("way", DEAD_ZONES)
def test_a_dead_zone_is_found(way: str) -> None:
    """Updates below 0.01 are skipped, so x stays below 0.1: a plain loop, not 0.9^t.

    Fails if a round is probed at states where nothing is skipped alone.
    """
    function, x, expected = DEAD_ZONES[way], 1.0, [1.0]
    for _ in range(40):
        x -= 0.1 * x if 0.1 * x >= 0.01 else 0.0
        expected.append(x * x)
    quiet = setting(function, 0.0, 1.0, rounds=40)
    np.testing.assert_allclose(paths(quiet).squared_distance, expected, rtol=1e-12)
    assert expected[-1] > 10 * 0.9**80
    for sigma, engine in ((0.0, exact), (0.5, exact), (0.5, paths)):
        with pytest.raises(NotAffineError, match="of a value that depends on the model"):
            engine(setting(function, sigma, 1.0, rounds=40))

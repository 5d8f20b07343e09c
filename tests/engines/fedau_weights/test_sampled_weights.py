"""FedAU's weights, run, against their exact error."""

from __future__ import annotations

import numpy as np

from fltheory.algorithms import FedAU
from fltheory.engines import Setting
from fltheory.engines.fedau_weights.dependent_weight_error import sampled_weight_errors
from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.participation import Bernoulli
from fltheory.problems import QuadraticProblem

P = (0.2, 0.6)
CLIENTS = QuadraticProblem([[1.0]], [[-1.0], [1.0]])


def test_means_are_the_exact_errors() -> None:
    """Of 20 rounds, 6.6 standard errors each: a false alarm has probability below 1e-9."""
    setting = Setting(FedAU(0.1, 1, cutoff=3), CLIENTS, Bernoulli(P), 20, [0.0])
    drawn = sampled_weight_errors(setting, 4000, np.random.default_rng(0))
    known = weight_error(P, 3, 20).values.mean(axis=0)
    error = drawn.std(axis=0, ddof=1) / np.sqrt(4000)
    assert drawn.shape == (4000, 20)
    assert (np.abs(drawn.mean(axis=0) - known) <= 6.6 * error + 1e-12).all()


def test_weights_are_one_before_the_first_round() -> None:
    setting = Setting(FedAU(0.1, 1, cutoff=3), CLIENTS, Bernoulli(P), 1, [0.0])
    drawn = sampled_weight_errors(setting, 5, np.random.default_rng(0))
    np.testing.assert_allclose(drawn[:, 0], (0.8**2 + 0.4**2) / 2)

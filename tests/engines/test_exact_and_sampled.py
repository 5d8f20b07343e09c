"""Exact and sampled trajectories of every algorithm under every participation process."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np
import pytest

import fltheory.algorithms
from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import GaussianNoise, QuadraticClients
from fltheory.engines.simulation import simulate
from fltheory.engines.trajectory import Trajectory
from tests.comparison import ALGORITHMS, PROBLEM, PROCESSES, X0
from tests.drawn import a_tenth, in_turn

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")
ROUNDS, REPLICAS, SIGMAS = 4, 4000, 9.0

NOTHING_EXACT: Mapping[str, str] = {
    "CA-Fed": "excludes clients by their losses, which depend on the model",
    "projected": "puts noisy models back onto a ball",
}
RANDOM = [name for name in ALGORITHMS if name not in NOTHING_EXACT]


def truth_of(name: str, who: str) -> Trajectory:
    """Return exact moments; where rounds depend on the path, over all paths."""
    setting = (ALGORITHMS[name], PROBLEM, PROCESSES[who], ROUNDS, X0)
    try:
        return exact(Setting(*setting))
    except NotAffineError:
        return paths(Setting(*setting))


@pytest.mark.parametrize(("name", "who"), in_turn(RANDOM, PROCESSES))
def test_sampled_runs_agree(name: str, who: str) -> None:
    """No mean of 4000 noisy runs is 9 standard errors from its expectation.

    Two-sided normal tail beyond 9: 2.3e-19. The skewness of a sample is at most 8
    (`test_samples_are_not_too_skew`), so that Cramer's correction exp(8 * 9^3 / (6 sqrt(4000)))
    inflates the upper tail by at most 5e6. With 180 runs, 4 rounds and 3 quantities (2160
    comparisons) the false-alarm probability is below 3e-9 in all, and below 2e-11 a test. It
    detects differences of 15% of a standard deviation.
    """
    truth = truth_of(name, who)
    run = monte_carlo(
        Setting(ALGORITHMS[name], PROBLEM, PROCESSES[who], ROUNDS, X0), replicas=REPLICAS, seed=3
    )
    assert run.standard_error is not None
    for field in FIELDS:
        slack = SIGMAS * run.standard_error[field] + 1e-12 * (1 + truth[field])
        assert (np.abs(run[field] - truth[field]) <= slack).all(), field


@pytest.mark.parametrize("name", a_tenth(RANDOM, of=3))
def test_samples_are_not_too_skew(name: str) -> None:
    """What the false-alarm probability above rests on, in 5000 other runs a process."""
    for process in PROCESSES.values():
        states = simulate(
            ALGORITHMS[name],
            QuadraticClients(PROBLEM, GaussianNoise(np.random.default_rng(1))),
            process,
            np.tile(X0, (5000, 1)),
            participation_rng=np.random.default_rng(2),
            branch_rng=np.random.default_rng(3),
        )
        for state, _ in islice(states, 1, ROUNDS + 1):
            for sample in (
                ((state["x"] - PROBLEM.x_star) ** 2).sum(axis=1),
                (PROBLEM.gradient(state["x"]) ** 2).sum(axis=1),
                PROBLEM.excess_loss(state["x"]),
            ):
                deviation = sample - sample.mean()
                spread = sample.std()
                assert spread < 1e-12 or np.mean(deviation**3) / spread**3 <= 8


@pytest.mark.parametrize("name", NOTHING_EXACT)
def test_what_has_no_exact_moments_says_so(name: str) -> None:
    setting = Setting(ALGORITHMS[name], PROBLEM, PROCESSES["Bernoulli"], ROUNDS, X0)
    for engine in (exact, paths):
        with pytest.raises(NotAffineError, match=r"engines\.monte_carlo"):
            engine(setting)


def test_the_table_has_every_algorithm() -> None:
    public = (getattr(fltheory.algorithms, name) for name in fltheory.algorithms.__all__)
    runnable = {kind for kind in public if hasattr(kind, "round") or hasattr(kind, "at")}
    runnable -= {
        fltheory.algorithms.Constant,
        fltheory.algorithms.Harmonic,
    }
    assert runnable == {type(algorithm) for algorithm in ALGORITHMS.values()}


def test_the_table_has_every_process() -> None:
    import fltheory.participation as package

    public = (getattr(package, name) for name in package.__all__)
    processes = {kind for kind in public if hasattr(kind, "masks")}
    # Draws with replacement are counts, which these algorithms refuse.
    processes -= {package.Participation, package.WithReplacement}
    assert processes == {type(process) for process in PROCESSES.values()}

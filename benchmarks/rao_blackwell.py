"""The variance saved for FedAU by averaging exact moments over sampled participation."""

from __future__ import annotations

import numpy as np
from measure import in_fresh_processes, report

from fltheory.algorithms import FedAU
from fltheory.engines import Setting, monte_carlo, paths
from fltheory.participation import Bernoulli
from fltheory.problems import QuadraticProblem

DRAWS = 2000
NOISES = (0.0, 0.5, 2.0, 8.0)


def setting(sigma: float):
    """Return four clients in the plane, present in 2 to 8 of ten rounds, for 100 rounds."""
    optima = np.random.default_rng(0).normal(size=(4, 2))
    problem = QuadraticProblem(np.diag([1.0, 0.5]), optima, sigma=sigma)
    algorithm = FedAU(0.05, 5, cutoff=10)
    return algorithm, problem, Bernoulli([0.2, 0.4, 0.6, 0.8]), 100, [3.0, -3.0]


def plain(sigma: float):
    """Sample models."""
    return monte_carlo(Setting(*setting(sigma)), replicas=DRAWS, seed=0)


def given_participation(sigma: float):
    """Sample participation only, with exact moments of the model."""
    return paths(Setting(*setting(sigma)), paths=DRAWS, seed=1)


def variance_saved(sigma: float) -> float:
    """Return the ratio of plain to conditional variance of a draw of the last ||grad f||^2."""
    errors = (run(sigma).standard_error for run in (plain, given_participation))
    sampled, averaged = (float(error.squared_gradient[-1]) for error in errors)
    return (sampled / averaged) ** 2


CASES = {f"plain {s:g}": lambda s=s: plain(s) for s in NOISES} | {
    f"given {s:g}": lambda s=s: given_participation(s) for s in NOISES
}

if __name__ == "__main__":
    results = in_fresh_processes(__file__, CASES)
    rows = []
    for sigma in NOISES:
        saved = variance_saved(sigma)
        times = (
            results[f"given {sigma:g}"]["seconds"],
            results[f"plain {sigma:g}"]["seconds"],
        )
        rows.append((f"variance of a draw, sigma = {sigma:g}", f"{saved:.1f} times less", "less"))
        at_equal_time = saved * times[1] / times[0]
        rows.append(("... at equal time", f"{at_equal_time:.1f} times less", "none stated"))
    report(f"FedAU, {DRAWS} draws of participation against {DRAWS} runs", rows)

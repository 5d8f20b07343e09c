"""The cost of enclosures relative to float64, and float64's own time with a Hessian per client.

Times are processor time of one thread, which other work on the machine affects less: the smallest
and the median of several runs. Each problem is used once before, so filling its caches is not
counted.

    OMP_NUM_THREADS=1 python benchmarks/enclosed_engine.py
"""

from __future__ import annotations

import time

import numpy as np
from cases import clients
from measure import report

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, exact
from fltheory.engines.moments.moment_recursion import ArithmeticName
from fltheory.engines.trajectory import Trajectory
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

RUNS = 40


def everybody(n_clients: int) -> Setting:
    """Return FedAvg with all clients, each with its own Hessian, d = 20, K = 10, R = 500."""
    problem = clients(n_clients, 20, shared=False)
    return Setting(FedAvg(0.1, 10), problem, UniformSubset(n_clients, n_clients), 500, np.ones(20))


def long_horizon() -> Setting:
    """Return FedAvg on two of three clients of dimension 5, R = 400,000."""
    rng = np.random.default_rng(0)
    hessians = [np.diag(rng.uniform(0.1, 1.0, 5)) for _ in range(3)]
    problem = QuadraticProblem(hessians, rng.standard_normal((3, 5)), sigma=1.0)
    return Setting(FedAvg(0.01, 5), problem, UniformSubset(3, 2), 400_000, np.ones(5))


def seconds(
    setting: Setting, arithmetic: ArithmeticName, runs: int
) -> tuple[list[float], Trajectory]:
    """Return the processor time of some runs, in ascending order, and the last trajectory."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        run = exact(setting, arithmetic=arithmetic)
        taken.append(time.process_time() - start)
    return sorted(taken), run


def radius(run: Trajectory) -> float:
    """Return the largest relative radius of the squared distances."""
    assert run.rounding_error is not None
    return float((run.rounding_error.squared_distance / run.squared_distance).max())


if __name__ == "__main__":
    rows = []
    own = everybody(50)
    exact(own)
    taken, _ = seconds(own, "float64", RUNS)
    figure = f"{1e3 * taken[0]:.1f} ms, middle {1e3 * taken[RUNS // 2]:.1f} ms"
    rows.append(("float64, a Hessian per client, N = 50, everybody", figure, "15 ms"))
    turned = everybody(4)
    exact(turned)
    plain, _ = seconds(turned, "float64", RUNS)
    balls, run = seconds(turned, "enclosed", 1)
    figure = f"{balls[0]:.2f} s, {balls[0] / plain[RUNS // 2]:.0f} times, radius {radius(run):.0e}"
    rows.append(("enclosed, rotated Hessians, N = 4", figure, "at most 150 times, radius 1e-10"))
    balls, run = seconds(long_horizon(), "enclosed", 1)
    figure = f"{balls[0]:.2f} s, radius {radius(run):.0e}"
    rows.append(("enclosed, d = 5, R = 400,000", figure, "under 5 s, radius 1e-10"))
    report("Processor time of the exact engine", rows)

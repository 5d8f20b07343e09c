"""Monte Carlo on quadratics, drawing each round's outcome, compared with a JAX scan of local steps.

JAX is not a dependency of fltheory: install it to run this (``pip install jax``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from cases import clients
from measure import in_turn, report

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, monte_carlo
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

CLIENTS, DIM, LOCAL_STEPS, LR, CORES = 50, 20, 10, 0.05, 2
# Participants -> replicas and rounds. For JAX, they are those with which it was fastest.
OURS = {50: (4096, 50), 10: (4096, 30)}
JAX = {50: (1024, 2), 10: (512, 15)}
TARGETS = {50: 20, 10: 10}
REPEATS = 9


def ours(problem: QuadraticProblem, participants: int) -> Callable[[], None]:
    """Return a run of the sampled engine."""
    replicas, rounds = OURS[participants]
    setting = Setting(
        FedAvg(LR, LOCAL_STEPS),
        problem,
        UniformSubset(CLIENTS, participants),
        rounds=rounds,
        x0=np.ones(DIM),
    )

    def run() -> None:
        monte_carlo(setting, replicas=replicas, seed=0)

    return run


def scan(problem: QuadraticProblem, participants: int) -> Callable[[], None]:
    """Return a compiled run of FedAvg in JAX that makes every local step, in float32.

    If all clients take part, the first axis is clients and the second replicas, with one matrix
    product per client. Subsets differ between replicas, so for them the participants' Hessians are
    gathered once per round.
    """
    import jax
    from jax import lax, random
    from jax import numpy as jnp

    replicas, rounds = JAX[participants]
    everybody = participants == CLIENTS
    hessians = jnp.asarray(problem.hessians, jnp.float32)
    optima = jnp.asarray(problem.optima - problem.x_star, jnp.float32)
    level = problem.sigma / DIM**0.5

    def drawn(key: Any) -> Any:
        return lax.top_k(random.uniform(key, (replicas, CLIENTS)), participants)[1]

    def round_(x: Any, key: Any) -> Any:
        who_key, noise_key = random.split(key)
        if everybody:
            start = jnp.broadcast_to(x, (CLIENTS, replicas, DIM))
            h, c, product = hessians, optima[:, None], "ira,iab->irb"
        else:
            who = drawn(who_key)
            start = jnp.broadcast_to(x[:, None], (replicas, participants, DIM))
            h, c, product = hessians[who], optima[who], "ria,riab->rib"

        def step(y: Any, key: Any) -> Any:
            noise = level * random.normal(key, y.shape, jnp.float32)
            return y - LR * (jnp.einsum(product, y - c, h) + noise), None

        y, _ = lax.scan(step, start, random.split(noise_key, LOCAL_STEPS))
        x = y.mean(axis=0 if everybody else 1)
        return x, (x**2).sum(axis=1).mean()

    @jax.jit
    def run(key: Any) -> Any:
        x0 = jnp.asarray(np.tile(1.0 - problem.x_star, (replicas, 1)), jnp.float32)
        return lax.scan(round_, x0, random.split(key, rounds))[1]

    return lambda: run(random.key(0, impl="threefry2x32")).block_until_ready()


def millions(size: tuple[int, int], participants: int, seconds: float) -> float:
    """Return millions of local steps per second."""
    replicas, rounds = size
    return replicas * rounds * participants * LOCAL_STEPS / seconds / 1e6


def rows(problem: QuadraticProblem, participants: int) -> list[tuple[str, str, str]]:
    """Time both in turn, so that a slowdown of the machine affects both."""
    seconds = in_turn(
        {"ours": ours(problem, participants), "jax": scan(problem, participants)}, REPEATS
    )
    mine = millions(OURS[participants], participants, median(seconds["ours"]))
    theirs = millions(JAX[participants], participants, median(seconds["jax"]))
    label = "everybody" if participants == CLIENTS else f"{participants} of {CLIENTS}"
    return [
        (f"{label}, fltheory", f"{mine:.0f} million/s", ""),
        (f"{label}, JAX", f"{theirs:.1f} million/s", ""),
        (f"{label}, ratio", f"{mine / theirs:.1f}", f"{TARGETS[participants]}"),
    ]


if __name__ == "__main__":
    if find_spec("jax") is None:
        sys.exit("this compares with JAX, which is not installed: pip install jax")
    # Set before JAX counts its threads.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    problem = clients(CLIENTS, DIM, shared=False)
    table = [row for participants in OURS for row in rows(problem, participants)]
    report("Monte Carlo, local steps per second", table)

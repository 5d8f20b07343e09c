"""Hypothesis strategies for problems, participation and algorithms.

They let a researcher property-test a theorem of their own: draw settings, check, and let
Hypothesis shrink what refutes it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from fltheory.algorithms import FedAvg, Safari
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, quadratic

SMALLEST_STEP = 1e-4


def _scales(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


@st.composite
def quadratic_problems(
    draw: st.DrawFn,
    *,
    max_clients: int = 5,
    max_dim: int = 3,
    max_condition: float = 100.0,
) -> QuadraticProblem:
    """Draw quadratic clients with a shared Hessian and prescribed constants.

    Parameters
    ----------
    max_clients, max_dim : int
    max_condition : float
        Largest L/mu.
    """
    n_clients, dim = draw(st.integers(1, max_clients)), draw(st.integers(1, max_dim))
    L = draw(_scales(0.01, 100.0))
    mu = L if dim == 1 else L / draw(_scales(1.0, max_condition))
    sigma_G = draw(_scales(0.0, 10.0)) if n_clients > 1 else 0.0
    return quadratic(
        n_clients,
        dim,
        L,
        mu,
        sigma_G,
        sigma=draw(_scales(0.0, 2.0)),
        server_sigma=draw(_scales(0.0, 2.0)),
        seed=draw(st.integers(0, 1000)),
    )


@st.composite
def uniform_subsets(draw: st.DrawFn, n_clients: int) -> UniformSubset:
    """Draw uniform subsets of ``n_clients`` clients, some of whom may be excluded."""
    excluded = draw(st.sets(st.integers(0, n_clients - 1), max_size=n_clients - 1))
    size = draw(st.integers(1, n_clients - len(excluded)))
    return UniformSubset(n_clients, size, excluded=tuple(excluded))


def fedavgs(*, max_step: float, max_local_steps: int = 10) -> st.SearchStrategy[FedAvg]:
    """Draw FedAvg with a client step of at most ``max_step``."""
    return st.builds(
        FedAvg, _scales(SMALLEST_STEP * max_step, max_step), st.integers(1, max_local_steps)
    )


def safaris(*, max_step: float, max_local_steps: int = 10) -> st.SearchStrategy[Safari]:
    """Draw SAFARI with steps of at most ``max_step``, not coupled to each other."""
    steps = _scales(SMALLEST_STEP * max_step, max_step)
    return st.builds(Safari, _scales(0.0, 1.0), steps, steps, st.integers(1, max_local_steps))


@st.composite
def settings(
    draw: st.DrawFn,
    *,
    algorithm: str = "safari",
    max_step_times_smoothness: float = 1.0,
    max_rounds: int = 50,
) -> Setting:
    """Draw a whole setting, its step sizes in proportion to 1/L.

    Parameters
    ----------
    algorithm : str
        ``"safari"`` or ``"fedavg"``.
    max_step_times_smoothness : float
        Largest step size times L.
    max_rounds : int

    Raises
    ------
    ValueError
        For another algorithm.

    Examples
    --------
    >>> from hypothesis import given
    >>> from fltheory.engines import exact
    >>> @given(settings(algorithm="fedavg", max_rounds=3))
    ... def errors_are_never_negative(s):
    ...     run = exact(s.algorithm, s.problem, s.participation, s.rounds, s.x0)
    ...     assert (run.squared_distance >= -run.rounding_error.squared_distance).all()
    """
    algorithms: dict[str, Callable[..., st.SearchStrategy[Algorithm]]] = {
        "safari": safaris,
        "fedavg": fedavgs,
    }
    if algorithm not in algorithms:
        raise ValueError(f"algorithm must be one of safari, fedavg, got {algorithm!r}")
    problem = draw(quadratic_problems())
    chosen = draw(algorithms[algorithm](max_step=max_step_times_smoothness / problem.L))
    x0 = draw(st.lists(_scales(-10.0, 10.0), min_size=problem.dim, max_size=problem.dim))
    return Setting(
        chosen,
        problem,
        draw(uniform_subsets(problem.n_clients)),
        draw(st.integers(1, max_rounds)),
        np.array(x0),
    )

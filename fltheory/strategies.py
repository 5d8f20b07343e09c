"""Hypothesis strategies for problems, participation and algorithms.

Use them for property tests of your own theorem: Hypothesis draws settings on which to check it, and
shrinks a setting that refutes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from fltheory.algorithms import FedAU, FedAvg, Safari
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting
from fltheory.participation import (
    Bernoulli,
    Cyclic,
    MarkovOnOff,
    Participation,
    UniformSubset,
)
from fltheory.problems import QuadraticProblem, quadratic

__all__ = ["quadratic_problems", "settings"]

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

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(quadratic_problems(max_condition=10.0))
    ... def test_curvature_is_within_its_limits(problem):
    ...     assert problem.mu <= problem.L <= 10.1 * problem.mu
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


def bernoullis(n_clients: int, *, least: float = 0.01) -> st.SearchStrategy[Bernoulli]:
    """Draw independent clients with probabilities from ``least`` to 1, some of them 1."""
    each = st.one_of(st.just(1.0), _scales(least, 1.0))
    return st.builds(Bernoulli, st.lists(each, min_size=n_clients, max_size=n_clients))


@st.composite
def cycles(draw: st.DrawFn, n_clients: int, *, longest_period: int = 8) -> Cyclic:
    """Draw clients that are present for some rounds of each period."""
    periods = draw(st.lists(st.integers(1, longest_period), min_size=n_clients, max_size=n_clients))
    return Cyclic(
        periods,
        [draw(st.integers(0, period - 1)) for period in periods],
        active=[draw(st.integers(1, period)) for period in periods],
    )


@st.composite
def on_off_chains(
    draw: st.DrawFn, n_clients: int, *, least: float = 0.01, most_correlated: float = 0.95
) -> MarkovOnOff:
    """Draw independent stationary two-state chains, with correlations from 0 to a limit."""
    return MarkovOnOff(
        [draw(_scales(least, 1.0)) for _ in range(n_clients)],
        [draw(_scales(0.0, most_correlated)) for _ in range(n_clients)],
    )


def fedavgs(*, max_step: float, max_local_steps: int = 10) -> st.SearchStrategy[FedAvg]:
    """Draw FedAvg with a client step of at most ``max_step``."""
    return st.builds(
        FedAvg, _scales(SMALLEST_STEP * max_step, max_step), st.integers(1, max_local_steps)
    )


def _participation(algorithm: str, n_clients: int) -> st.SearchStrategy[Participation]:
    if algorithm == "fedau":
        return st.one_of(bernoullis(n_clients), cycles(n_clients), on_off_chains(n_clients))
    return uniform_subsets(n_clients)


def safaris(*, max_step: float, max_local_steps: int = 10) -> st.SearchStrategy[Safari]:
    """Draw SAFARI with independent client and server steps of at most ``max_step``."""
    steps = _scales(SMALLEST_STEP * max_step, max_step)
    return st.builds(Safari, _scales(0.0, 1.0), steps, steps, st.integers(1, max_local_steps))


def fedaus(
    *, max_step: float, max_local_steps: int = 10, longest_cutoff: int = 10
) -> st.SearchStrategy[FedAU]:
    """Draw FedAU with a client step of at most ``max_step``, with or without a cutoff."""
    return st.builds(
        FedAU,
        _scales(SMALLEST_STEP * max_step, max_step),
        st.integers(1, max_local_steps),
        cutoff=st.one_of(st.just(math.inf), st.integers(1, longest_cutoff)),
        server_lr=_scales(0.1, 2.0),
    )


@st.composite
def settings(
    draw: st.DrawFn,
    *,
    algorithm: str = "safari",
    max_step_times_smoothness: float = 1.0,
    max_rounds: int = 50,
) -> Setting:
    """Draw a whole setting, with step sizes in proportion to 1/L.

    Parameters
    ----------
    algorithm : str
        ``"safari"`` or ``"fedavg"``, on uniform subsets, or ``"fedau"``, on independent, cyclic
        or correlated clients.
    max_step_times_smoothness : float
        Largest step size times L.
    max_rounds : int

    Raises
    ------
    ValueError
        If the algorithm is unknown.

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
        "fedau": fedaus,
    }
    if algorithm not in algorithms:
        raise ValueError(f"algorithm must be one of {', '.join(algorithms)}, got {algorithm!r}")
    problem = draw(quadratic_problems())
    chosen = draw(algorithms[algorithm](max_step=max_step_times_smoothness / problem.L))
    x0 = draw(st.lists(_scales(-10.0, 10.0), min_size=problem.dim, max_size=problem.dim))
    return Setting(
        chosen,
        problem,
        draw(_participation(algorithm, problem.n_clients)),
        draw(st.integers(1, max_rounds)),
        np.array(x0),
    )

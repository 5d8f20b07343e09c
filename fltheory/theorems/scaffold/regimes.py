"""The named settings on which SCAFFOLD's theorems are checked.

Six clients in the plane are varied in one respect at a time, with h at its printed limit unless
a regime is about just that. In the last regimes sampling is not uniform: the theorems do not
apply, and the table shows what the truth is beside their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fltheory.algorithms import Scaffold, WarmStarted
from fltheory.engines import Setting
from fltheory.grammar.own_run import JUST_BELOW, OwnRun, strong_convexity
from fltheory.grammar.regime import coupled
from fltheory.numbers.of_setting import value_in
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import Problem, QuadraticProblem, nonconvex, quadratic


@dataclass(frozen=True, eq=False)
class _Instance:
    """Everything about a setting; h is ``step`` times its limit."""

    problem: Problem
    participation: Participation
    distance: float = 3.0
    rounds: int = 1500
    local_steps: int = 4
    server_lr: float = 1.0
    option: Literal[1, 2] = 2
    step: float = 1.0
    warm: bool = True


def _quadratic(
    n_clients: int = 6,
    *,
    mu: float = 0.25,
    sigma_G: float = 2.0,
    sigma: float = 1.0,
) -> QuadraticProblem:
    return quadratic(n_clients, 2, L=1.0, mu=mu, sigma_G=sigma_G, sigma=sigma)


def _base() -> _Instance:
    return _Instance(_quadratic(), UniformSubset(6, 2))


def _with(**changes: float | bool | Participation | Problem) -> Callable[[], _Instance]:
    return lambda: replace(_base(), **changes)  # type: ignore[arg-type]


def _noise_free(participation: Participation) -> Callable[[], _Instance]:
    n_clients = participation.n_clients
    return lambda: _Instance(_quadratic(n_clients, sigma=0.0), participation)


def _different_hessians() -> _Instance:
    problem = _quadratic()
    scales = np.linspace(0.3, 1.0, problem.n_clients)[:, None, None]
    return replace(
        _base(), problem=QuadraticProblem(scales * problem.hessians, problem.optima, sigma=1.0)
    )


def _cold_start() -> _Instance:
    """Four clients of weight 1/4, so that x* = 0 is no rounded number, and the bound is zero."""
    optima = [[2.0, 0.0], [-2.0, 0.0], [1.0, 4.0], [-1.0, -4.0]]
    problem = QuadraticProblem(np.diag([1.0, 0.25]), optima)
    return _Instance(problem, UniformSubset(4, 2), distance=0.0, warm=False)


def _one_gradient_as_control() -> _Instance:
    """Noise, and nothing else: 300 local steps, started at x*, equal clients, large server step."""
    return _Instance(
        quadratic(5, 1, L=1.0, mu=1.0, sigma_G=0.0, sigma=10.0),
        UniformSubset(5, 1),
        distance=0.0,
        local_steps=300,
        server_lr=10.0,
        option=1,
    )


def _in_rotation(n_clients: int) -> Cyclic:
    """Each client has one round, one after the other."""
    return Cyclic([n_clients] * n_clients, list(range(n_clients)))


_ALIKE: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "uniform sampling": ("two of six clients per round", _base),
    "everybody": ("all six clients in every round", _with(participation=UniformSubset(6, 6))),
    "one participant": ("one of six clients per round", _with(participation=UniformSubset(6, 1))),
    "noise-free": ("exact gradients, different clients", _noise_free(UniformSubset(6, 2))),
    "i.i.d.": ("equal clients", _with(problem=_quadratic(sigma_G=0.0))),
    "K = 1": ("one local step", _with(local_steps=1)),
    "large server step": ("eta_g = 10", _with(server_lr=10.0)),
    "option I": ("controls are one gradient at the server's model", _with(option=1)),
    "one gradient as control": ("option I, 300 local steps, noise only", _one_gradient_as_control),
    "different Hessians": ("clients of unequal curvature", _different_hessians),
    "small steps": ("h at a tenth of its limit", _with(step=0.1)),
    "too large a step": (
        "one local step, h 165 times its limit, above 2/beta",
        _with(step=165.0, local_steps=1),
    ),
    "small server step": (
        "eta_g = 1/1000 and eta_l above 2/beta, exact gradients",
        lambda: replace(_noise_free(UniformSubset(6, 2))(), server_lr=0.001),
    ),
    "excluded client": (
        "one of six clients never takes part",
        _noise_free(UniformSubset(6, 2, excluded=(0,))),
    ),
    "Bernoulli": (
        "all clients alike, each there with probability 1/3",
        _with(participation=Bernoulli([1 / 3] * 6)),
    ),
    "rare client": (
        "Bernoulli: one client once in 2000 rounds, the others always",
        _noise_free(Bernoulli([0.0005, 1.0, 1.0, 1.0, 1.0, 1.0])),
    ),
    "long stretches": (
        "Markov: all alike, there half of the time, for 1000 rounds on end",
        _noise_free(MarkovOnOff([0.5] * 4, 0.998)),
    ),
    "in rotation": ("cyclic: one client after the other", _noise_free(_in_rotation(6))),
}

_OF_CONVEX: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "started at the optimum": (
        "x^0 = x*, exact gradients: only the controls are not yet there",
        lambda: replace(_noise_free(UniformSubset(6, 2))(), distance=0.0),
    ),
    "few of many": (
        "one of 11 clients, mu = 0.9 L: mu h above S/(15N)",
        lambda: _Instance(_quadratic(11, mu=0.9), UniformSubset(11, 1)),
    ),
}

_OF_NONCONVEX: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "nonconvex": (
        "rippled losses, sampled",
        lambda: _Instance(
            nonconvex(6, 2, L=1.0, sigma_G=1.0, sigma=0.5), UniformSubset(6, 2), rounds=60
        ),
    ),
    "cold start": (
        "controls of zero, x^0 = x*, exact gradients",
        _cold_start,
    ),
}


def _algorithm(instance: _Instance, limit: float) -> Scaffold:
    effective = JUST_BELOW * instance.step * limit / instance.problem.L
    client_lr = effective / (instance.local_steps * instance.server_lr)
    return Scaffold(
        client_lr, instance.local_steps, option=instance.option, server_lr=instance.server_lr
    )


def _setting(instance: _Instance, limit: float, *, warm: bool) -> Setting:
    scaffold = _algorithm(instance, limit)
    dim = instance.problem.dim
    return Setting(
        WarmStarted(scaffold) if warm else scaffold,
        instance.problem,
        instance.participation,
        instance.rounds + warm,
        instance.problem.x_star + np.full(dim, instance.distance / math.sqrt(dim)),
    )


def _convex_setting(instance: _Instance) -> Setting:
    return _setting(instance, 1 / 81, warm=False)


def _nonconvex_setting(instance: _Instance) -> Setting:
    share = float(instance.participation.marginals.sum()) / instance.problem.n_clients
    return _setting(instance, share ** (2 / 3) / 24, warm=instance.warm)


CONVEX = coupled({**_ALIKE, **_OF_CONVEX}, _convex_setting)
NONCONVEX = coupled({**_ALIKE, **_OF_NONCONVEX}, _nonconvex_setting)


def _share(setting: Setting) -> float:
    return float(value_in("participants", setting)) / setting.problem.n_clients


def _own(limit: Callable[[Setting], float], *, warm: bool = False) -> OwnRun:
    """Return SCAFFOLD with beta h at its limit; a warm start is the first of the rounds."""

    def make(setting: Setting) -> Setting:
        if warm and setting.rounds < 2:
            raise ValueError("rounds must be at least 2: the first only sets the controls")
        problem, who = setting.problem, setting.participation
        steps = value_in("local_steps", setting)
        scaffold = _algorithm(_Instance(problem, who, local_steps=steps), limit(setting))
        method = WarmStarted(scaffold) if warm else scaffold
        return Setting(method, problem, who, setting.rounds, setting.x0)

    return OwnRun(make)


OWN_STRONGLY_CONVEX = _own(
    lambda s: min(1 / 81, _share(s) * float(s.problem.L) / (15 * float(strong_convexity(s))))
)
OWN_CONVEX = _own(lambda s: 1 / 81)
OWN_NONCONVEX = _own(lambda s: _share(s) ** (2 / 3) / 24, warm=True)

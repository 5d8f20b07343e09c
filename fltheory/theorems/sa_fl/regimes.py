"""The named settings on which SA-FL's theorems are checked.

A base instance has N = 10 clients, of which m = 5 take part. It is varied in one respect at a time.
Step sizes follow each theorem's own coupling. They are a fraction of the smaller of the printed and
the derived limits, so that all readings are checked on the same settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fltheory.algorithms import Safari
from fltheory.engines import Setting
from fltheory.grammar.regime import JUST_BELOW, OwnRun, coupled
from fltheory.numbers.of_setting import value_in
from fltheory.participation import Participation, UniformSubset
from fltheory.problems import Problem, QuadraticProblem, nonconvex, quadratic
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_DIM = 5


@dataclass(frozen=True, eq=False)
class _Instance(ReadOnlyArrays):
    """All parameters of a setting except its step sizes."""

    problem: Problem
    participation: Participation
    x0: FloatArray
    q: float = 0.5
    local_steps: int = 5
    rounds: int = 300
    step: float = 0.5  # as a fraction of the smaller limit, printed or derived


def _quadratic(
    *, L: float = 1.0, sigma_G: float = 1.0, sigma: float = 0.5, server_sigma: float = 0.5
) -> QuadraticProblem:
    return quadratic(
        10, _DIM, L=L, mu=L / 4, sigma_G=sigma_G, sigma=sigma, server_sigma=server_sigma
    )


def _from(distance: float) -> FloatArray:
    return np.full(_DIM, distance / math.sqrt(_DIM))


def _unbiased() -> _Instance:
    return _Instance(_quadratic(), UniformSubset(10, 5), _from(2.0))


def _biased(sigma_G: float = 1.0) -> _Instance:
    participation = UniformSubset(10, 5, excluded=(0, 1))
    return replace(_unbiased(), problem=_quadratic(sigma_G=sigma_G), participation=participation)


def _iid() -> _Instance:
    return replace(_unbiased(), problem=_quadratic(sigma_G=0.0))


def _noise_free() -> _Instance:
    return replace(_biased(), problem=_quadratic(sigma=0.0, server_sigma=0.0))


def _one_participant() -> _Instance:
    return replace(_biased(), participation=UniformSubset(10, 1, excluded=(0, 1)))


def _different_hessians() -> _Instance:
    problem = _quadratic()
    scales = np.linspace(0.5, 1.0, problem.n_clients)[:, None, None]
    own = QuadraticProblem(
        scales * problem.hessians, problem.optima, sigma=problem.sigma, server_sigma=0.5
    )
    return replace(_unbiased(), problem=own)


def _other_units() -> _Instance:
    """Rescale lengths: curvatures times 100, gradients times 10, distances over 10."""
    problem = _quadratic(L=100.0, sigma_G=10.0, sigma=5.0, server_sigma=5.0)
    return replace(_biased(), problem=problem, x0=_from(0.2), **_LONG)


def _nonconvex() -> _Instance:
    problem = nonconvex(10, _DIM, L=1.0, sigma_G=0.3, sigma=0.5, server_sigma=0.5)
    participation = UniformSubset(10, 5, excluded=(0, 1))
    return replace(_unbiased(), problem=problem, participation=participation, rounds=100)


_LONG: Mapping[str, Any] = {"rounds": 400_000, "step": 0.0125, "q": 0.75}

_INSTANCES: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "i.i.d.": ("all clients have the same loss", _iid),
    "unbiased sampling": ("different clients, all present equally often", _unbiased),
    "biased minority excluded": ("two of ten clients never take part", _biased),
    "sigma_G large": ("excluded clients, dissimilarity ten times larger", lambda: _biased(10.0)),
    "long horizon": (
        "excluded clients, 400,000 rounds of small steps, q = 0.75",
        lambda: replace(_biased(), **_LONG),
    ),
    "other units": (
        "the long horizon with x in units a tenth as large, so that L and mu are a hundred times "
        "as large",
        _other_units,
    ),
    "noise-free": ("excluded clients, exact gradients", _noise_free),
    "q = 0": ("only the server: plain SGD", lambda: replace(_biased(), q=0.0)),
    "q = 1": ("only the clients: FedAvg, some of them excluded", lambda: replace(_biased(), q=1.0)),
    "q = 1, i.i.d.": ("FedAvg on equal clients", lambda: replace(_iid(), q=1.0)),
    "q small": ("excluded clients, one client round in 20", lambda: replace(_biased(), q=0.05)),
    "K = 1": ("excluded clients, one local step", lambda: replace(_biased(), local_steps=1)),
    "m = 1": ("excluded clients, one participant per round", _one_participant),
    "near the optimum": (
        "excluded clients, started close to x*",
        lambda: replace(_biased(), x0=_from(0.5)),
    ),
    "different Hessians": ("clients of unequal curvature: sigma_G infinite", _different_hessians),
}


def _theorem_4_setting(instance: _Instance) -> Setting:
    """Take a fraction of the smaller limit on eta_c, and eta_s = K eta_c / 2."""
    smoothness, steps = instance.problem.L, instance.local_steps
    printed = 1 / (4 * math.sqrt(30 * smoothness * steps))
    derived = 1 / (2 * math.sqrt(30) * smoothness * steps)
    client_lr = instance.step * min(printed, derived)
    return _setting(instance, client_lr, client_lr * steps / 2)


def _theorem_5_setting(instance: _Instance) -> Setting:
    """Take a fraction of the smaller limit on eta_s, and eta_c K = 4 eta_s L / (L + mu)."""
    smoothness, convexity = instance.problem.L, instance.problem.mu
    total = smoothness + convexity
    limit = min(2 / total, total / (32 * smoothness**2))
    # A decimal with so few digits that the coupling holds exactly in decimals, too.
    assist_lr = float(f"{instance.step * limit:.12g}")
    client_lr = 4 * assist_lr * smoothness / (total * instance.local_steps)
    return _setting(instance, client_lr, assist_lr)


def _setting(instance: _Instance, client_lr: float, assist_lr: float) -> Setting:
    algorithm = Safari(instance.q, client_lr, assist_lr, instance.local_steps)
    return Setting(
        algorithm, instance.problem, instance.participation, instance.rounds, instance.x0
    )


THEOREM_4 = coupled(
    {**_INSTANCES, "nonconvex": ("rippled losses, two of ten clients excluded", _nonconvex)},
    _theorem_4_setting,
)
THEOREM_5 = coupled(_INSTANCES, _theorem_5_setting)


def _own(couple: Callable[[_Instance], Setting], share: float = 1.0) -> OwnRun:
    """Return SAFARI at a share of the largest steps, with the setting's q, or 1/2."""

    def make(setting: Setting) -> Setting:
        steps = value_in("local_steps", setting)
        q = getattr(setting.algorithm, "q", 0.5)
        return couple(
            _Instance(
                setting.problem,
                setting.participation,
                setting.x0,
                q,
                steps,
                setting.rounds,
                step=share * JUST_BELOW,
            )
        )

    return OwnRun(make)


OWN_4, OWN_5 = _own(_theorem_4_setting), _own(_theorem_5_setting)
OWN_5_REPAIRED = _own(_theorem_5_setting, share=0.5)


def _rate_instance(
    *, sigma_G: float, smoothness: float, distance: float, excluded: tuple[int, ...] = ()
) -> _Instance:
    problem = quadratic(
        4, 2, L=smoothness, mu=smoothness, sigma_G=sigma_G, sigma=1.0, server_sigma=1.0
    )
    return _Instance(
        problem,
        UniformSubset(4, 2, excluded=excluded),
        np.full(2, distance / math.sqrt(2)),
        local_steps=2,
        rounds=100_000,
    )


def _corollary_1_setting(instance: _Instance) -> Setting:
    assist_lr = 1 / math.sqrt(instance.rounds)
    return _setting(instance, 2 * assist_lr / instance.local_steps, assist_lr)


def _corollary_2_setting(constant: float) -> Callable[[_Instance], Setting]:
    """Choose etabar = constant * log(R)/R."""

    def couple(instance: _Instance) -> Setting:
        smoothness, convexity = instance.problem.L, instance.problem.mu
        contraction = constant * math.log(instance.rounds) / instance.rounds
        assist_lr = contraction * (smoothness + convexity) / (2 * smoothness * convexity)
        client_lr = 2 * contraction / (convexity * instance.local_steps)
        return _setting(instance, client_lr, assist_lr)

    return couple


_FLAT = 0.1

COROLLARY_1 = coupled(
    {
        "i.i.d.": (
            "equal clients",
            lambda: _rate_instance(sigma_G=0.0, smoothness=_FLAT, distance=10.0),
        ),
        "unbiased sampling": (
            "different clients, all present equally often",
            lambda: _rate_instance(sigma_G=1.0, smoothness=_FLAT, distance=10.0),
        ),
        "biased minority excluded": (
            "one of four clients never takes part",
            lambda: _rate_instance(sigma_G=1.0, smoothness=_FLAT, distance=10.0, excluded=(0,)),
        ),
    },
    _corollary_1_setting,
)

COROLLARY_2 = {
    **coupled(
        {
            "i.i.d.": (
                "equal clients, etabar = 1.05 log(R)/R",
                lambda: _rate_instance(sigma_G=0.0, smoothness=1.0, distance=10.0),
            ),
            "unbiased sampling": (
                "different clients, etabar = 1.05 log(R)/R",
                lambda: _rate_instance(sigma_G=1.0, smoothness=1.0, distance=10.0),
            ),
            "biased minority excluded": (
                "one of four clients excluded, etabar = 1.05 log(R)/R",
                lambda: _rate_instance(sigma_G=1.0, smoothness=1.0, distance=10.0, excluded=(0,)),
            ),
            "unbiased sampling, L = 20": (
                "different clients, L = mu = 20, etabar = 1.05 log(R)/R",
                lambda: _rate_instance(sigma_G=20.0, smoothness=20.0, distance=2.0),
            ),
            "minority excluded, L = 20": (
                "one of four clients excluded, L = mu = 20, etabar = 1.05 log(R)/R",
                lambda: _rate_instance(sigma_G=20.0, smoothness=20.0, distance=2.0, excluded=(0,)),
            ),
        },
        _corollary_2_setting(1.05),
    ),
    **coupled(
        {
            "i.i.d., small constant": (
                "equal clients, etabar = 0.1 log(R)/R",
                lambda: _rate_instance(sigma_G=0.0, smoothness=1.0, distance=10.0),
            ),
        },
        _corollary_2_setting(0.1),
    ),
}


def _one_step(
    clients: int,
    participants: int,
    *,
    sigma_G: float = 0.0,
    smoothness: float = 0.01,
    distance: float = 10.0,
    noise: float = 1.0,
    server_noise: float = 1.0,
    rounds: int = 100_000,
) -> _Instance:
    """Return clients with the same Hessian and one local step; the first ones never take part."""
    problem = quadratic(
        clients,
        2,
        L=smoothness,
        mu=smoothness,
        sigma_G=sigma_G,
        sigma=noise,
        server_sigma=server_noise,
    )
    excluded = tuple(range(clients - participants))
    return _Instance(
        problem,
        UniformSubset(clients, participants, excluded=excluded),
        np.full(2, distance / math.sqrt(2)),
        local_steps=1,
        rounds=rounds,
    )


def _all_take_part(clients: int) -> Mapping[str, tuple[str, Callable[[], _Instance]]]:
    return {
        "i.i.d.": ("equal clients, all of whom take part", lambda: _one_step(clients, clients)),
        "i.i.d., quiet server": (
            "equal clients, a server without noise",
            lambda: _one_step(clients, clients, server_noise=0.0),
        ),
        "unbiased": (
            "different clients, all of whom take part",
            lambda: _one_step(2, 2, sigma_G=0.1, rounds=10_000),
        ),
    }


SPEEDUP = coupled(
    {
        **_all_take_part(1),
        "at the level of the noise": (
            "different clients that all take part; the initial error equals the error that noise "
            "alone causes",
            lambda: _one_step(2, 2, sigma_G=0.0115, distance=1.825, noise=0.1, rounds=10_000),
        ),
        "minority excluded": (
            "one of four clients never takes part",
            lambda: _one_step(4, 3, sigma_G=0.1, rounds=10_000),
        ),
    },
    _corollary_1_setting,
)
APPENDIX_A1 = coupled(
    {
        **_all_take_part(2),
        "minority excluded": (
            "one of four clients never takes part, started 1 away",
            lambda: _one_step(4, 3, sigma_G=1.0, smoothness=_FLAT, distance=1.0, rounds=600_000),
        ),
        "minority excluded, started far away": (
            "one of four clients never takes part, started 20 away",
            lambda: _one_step(4, 3, sigma_G=1.0, smoothness=_FLAT, distance=20.0, rounds=600_000),
        ),
    },
    _corollary_1_setting,
)


def _share(q: float, participants: int, steps: int) -> Callable[[], _Instance]:
    return lambda: replace(
        _unbiased(), participation=UniformSubset(10, participants), local_steps=steps, q=q
    )


SHARES = coupled(
    {
        "q at its limit": ("q = 1 - 1/(mK), mK = 4", _share(0.75, 2, 2)),
        "q at its limit, mK = 50": ("q = 1 - 1/(mK)", _share(0.98, 10, 5)),
        "clients alone": ("q = 1", _share(1.0, 2, 2)),
        "hardly any server": ("q = 99/100, mK = 10", _share(0.99, 5, 2)),
        "half": ("q = 1/2, mK = 2", _share(0.5, 2, 1)),
        "too many of the server's": ("q = 1/2, mK = 4", _share(0.5, 2, 2)),
        "one step a round": ("m = K = 1", _share(0.5, 1, 1)),
    },
    _theorem_4_setting,
)


def _short(instance: Callable[[], _Instance], **changes: Any) -> Callable[[], _Instance]:
    """Return an instance with fewer local steps and rounds, for computing with exact fractions."""
    return lambda: replace(instance(), local_steps=2, rounds=100, **changes)


REMARK_5 = coupled(
    {
        "q = 1, i.i.d.": ("FedAvg on equal clients", _short(_iid, q=1.0)),
        "q = 1": ("FedAvg, two of ten clients excluded", _short(_biased, q=1.0)),
        "q = 1, different Hessians": (
            "FedAvg on clients of unequal curvature",
            _short(_different_hessians, q=1.0),
        ),
        "q = 0": ("the server alone, sigma_G = 1", _short(_biased, q=0.0)),
        "q = 0, sigma_G large": (
            "the server alone, sigma_G = 10",
            _short(lambda: _biased(10.0), q=0.0),
        ),
        "q = 0, different Hessians": (
            "the server alone, sigma_G infinite",
            _short(_different_hessians, q=0.0),
        ),
        "q = 0, at the optimum": (
            "the server alone, started at x*",
            _short(_biased, q=0.0, x0=np.zeros(_DIM)),
        ),
        "q = 1/2": ("both", _short(_biased)),
    },
    _theorem_4_setting,
)
REMARK_6 = coupled(
    {
        "all take part": ("different clients, all present equally often", _short(_unbiased, q=1.0)),
        "two excluded": ("two of ten clients never take part", _short(_biased, q=1.0)),
        "eight excluded": (
            "only two of ten clients take part",
            _short(_unbiased, q=1.0, participation=UniformSubset(10, 2, excluded=range(2, 10))),
        ),
        "two excluded, sigma_G large": (
            "two of ten excluded, dissimilarity ten times larger",
            _short(lambda: _biased(10.0), q=1.0),
        ),
        "i.i.d., two excluded": (
            "equal clients, two of ten excluded",
            _short(_biased, q=1.0, problem=_quadratic(sigma_G=0.0)),
        ),
        "q = 1/2": ("SAFARI", _short(_biased)),
    },
    _theorem_4_setting,
)
REMARK_6_NONCONVEX = coupled(
    {
        "half excluded": (
            "two of four clients never take part",
            lambda: _rate_instance(sigma_G=1.0, smoothness=_FLAT, distance=10.0, excluded=(0, 1)),
        ),
        "half excluded, sigma_G large": (
            "two of four clients never take part, dissimilarity three times larger",
            lambda: _rate_instance(sigma_G=3.0, smoothness=_FLAT, distance=10.0, excluded=(0, 1)),
        ),
    },
    _corollary_1_setting,
)

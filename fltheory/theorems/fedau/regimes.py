"""The named settings on which FedAU's statements are checked.

Three clients in the plane are present in nine, six and three rounds out of ten. They are varied in
one respect at a time, such as the weights or the correlation between rounds. Steps are a fraction
of the smaller of the printed and the derived limits, so that all readings are checked on the same
settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from fltheory.algorithms import FedAU, WeightedFedAvg
from fltheory.engines import Setting
from fltheory.grammar.regime import JUST_BELOW, OwnRun, Regime, coupled
from fltheory.numbers.of_setting import value_in
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff
from fltheory.problems import LogCoshProblem, Problem, QuadraticProblem
from fltheory.theorems.fedau.setting import FedAUSetting

_Participation = Bernoulli | MarkovOnOff | Cyclic

_P = (0.9, 0.6, 0.3)
_OPTIMA = ((3.0, 0.0), (0.0, 3.0), (-3.0, -3.0))
_CURVATURES = (1.0, 0.5)
_BERNOULLI = Bernoulli(_P)
_MARKOV = MarkovOnOff(_P, (0.5, 0.7, 0.9))
_CYCLIC = Cyclic((10, 10, 10), (3, 8, 6), active=(9, 6, 3))


def _quadratic(sigma: float = 0.5, optima: object = _OPTIMA) -> QuadraticProblem:
    return QuadraticProblem(np.diag(_CURVATURES), np.asarray(optima, dtype=float), sigma=sigma)


def _log_cosh() -> LogCoshProblem:
    """Return two clients whose mean loss has a gradient below 2."""
    return LogCoshProblem([[0.5], [-0.5]], curvature=1.0, width=2.0, x_star=[0.0], sigma=0.5)


@dataclass(frozen=True, eq=False)
class _Instance:
    """Everything about a setting.

    ``weights`` are constant, or None for FedAU's own with the cut-off; ``step`` is a fraction of
    the largest gamma, and of the largest gamma eta, that all readings allow.
    """

    problem: Problem
    participation: _Participation
    weights: tuple[float, ...] | None = None
    cutoff: float = 5
    step: float = 0.9
    local_steps: int = 2
    rounds: int = 200
    x0: tuple[float, ...] = (6.0, -4.0)

    @property
    def setting(self) -> Setting:
        return self._setting(*self._steps)

    def _setting(self, client_lr: float, server_lr: float) -> Setting:
        n = self.problem.n_clients
        if self.weights is None:
            algorithm: FedAU | WeightedFedAvg = FedAU(
                client_lr, self.local_steps, cutoff=self.cutoff, server_lr=server_lr
            )
        else:
            shares = tuple(weight / n for weight in self.weights)
            algorithm = WeightedFedAvg(shares, client_lr, self.local_steps, server_lr=server_lr)
        return Setting(algorithm, self.problem, self.participation, self.rounds, self.x0)

    @property
    def _steps(self) -> tuple[float, float]:
        """The steps gamma and eta, with ``gamma eta`` at this fraction of its smallest limit."""
        of = FedAUSetting(self._setting(1.0, 1.0))
        smooth, n = self.problem.L * self.local_steps, self.problem.n_clients
        client_lr = self.step / (4 * math.sqrt(15) * smooth)
        limits = [1 / (4 * smooth), n / (54 * smooth * of.largest_square)]
        if self.weights is not None:
            limits += [n / (4 * smooth * of.total_weight)]
            limits += [of.total_weight / (27 * smooth * of.largest_square)]
        return client_lr, self.step * min(limits) / client_lr


def _own(setting: Setting) -> Setting:
    """Return Algorithm 1 with the weights for known statistics, omega_n = 1/p_n."""
    who = setting.participation
    everybody = who.fixed_size == who.n_clients
    there: Any = Bernoulli([1.0] * who.n_clients) if everybody else who
    p = there.marginals
    if p.min() <= 0:
        raise ValueError(
            "participation must have positive probability for every client, got one that never "
            "participates"
        )
    return _Instance(
        setting.problem,
        there,
        tuple((1 / p).tolist()),
        step=JUST_BELOW,
        local_steps=value_in("local_steps", setting),
        rounds=setting.rounds,
        x0=tuple(setting.x0.tolist()),
    ).setting


OWN_RUN = OwnRun(_own)

_EQUAL = (1.0, 1.0, 1.0)
_KNOWN = tuple(1 / p for p in _P)
_KNOWN_PAIR = (1.25, 1 / 0.3)
_PAIR = (0.8, 0.3)
_PAIR_MARKOV = MarkovOnOff(_PAIR, 0.8)
_PAIR_CYCLIC = Cyclic((10, 10), (9, 4), active=(8, 3))


def _constant(
    participation: _Participation = _BERNOULLI, weights: tuple[float, ...] = _EQUAL
) -> _Instance:
    return _Instance(_quadratic(), participation, weights)


def _own_hessians() -> _Instance:
    hessians = [np.diag(each) for each in ((1.0, 0.5), (0.5, 1.0), (0.9, 0.6))]
    return replace(_constant(), problem=QuadraticProblem(hessians, _OPTIMA, sigma=0.5))


def _exact_gradients(participation: _Participation = _BERNOULLI) -> _Instance:
    return _Instance(_quadratic(0.0), participation)


def _two(participation: _Participation, **changes: object) -> _Instance:
    """Return two clients on a line with exact gradients, with few enough paths to enumerate."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    return replace(_Instance(problem, participation, x0=(3.0,)), **changes)  # type: ignore[arg-type]


def _bowl(participation: _Participation, **changes: object) -> _Instance:
    return replace(_Instance(_log_cosh(), participation, x0=(1.5,)), **changes)  # type: ignore[arg-type]


def _regimes(
    instances: Mapping[str, tuple[str, Callable[[], _Instance]]],
) -> Mapping[str, Regime]:
    return coupled(instances, attrgetter("setting"))


THEOREM_1 = _regimes(
    {
        "equal weights": ("Bernoulli, omega = 1: frequent clients count more", _constant),
        "known statistics": (
            "Bernoulli, omega = 1/p: h is f",
            lambda: _constant(weights=_KNOWN),
        ),
        "exact gradients": (
            "Bernoulli, omega = 1, no noise",
            lambda: replace(_constant(), problem=_quadratic(0.0)),
        ),
        "different Hessians": ("Bernoulli, clients of unequal curvature", _own_hessians),
        "Markov": ("omega = 1, presence in stretches", lambda: _constant(_MARKOV)),
        "cyclic": ("omega = 1, presence in cycles of ten rounds", lambda: _constant(_CYCLIC)),
        "large steps": (
            "Bernoulli, omega = 1, twice the largest steps",
            lambda: replace(_constant(), step=2.0),
        ),
    }
)
THEOREM_1_ORDER = {
    name: regime for name, regime in THEOREM_1.items() if name not in ("large steps",)
}

DESCENT = _regimes(
    {
        "equal weights": ("omega = 1", lambda: replace(_constant(), rounds=1)),
        "known statistics": (
            "omega = 1/p: only participation is random",
            lambda: replace(_constant(weights=_KNOWN), rounds=1),
        ),
        "far too large weights": (
            "omega = 4/p, a server's step as large as the lemma allows",
            lambda: replace(_constant(weights=tuple(4 / p for p in _P)), rounds=1),
        ),
        "started at the minimum": (
            "omega = 1, at f's minimum, so that only noise and weight error act",
            lambda: replace(_constant(), x0=(0.0, 0.0), rounds=1),
        ),
        "FedAU": (
            "the first round of Algorithm 2, exact gradients",
            lambda: replace(_exact_gradients(), rounds=1),
        ),
        "bounded gradients": (
            "losses that grow linearly far away, with noise",
            lambda: _bowl(Bernoulli(_PAIR), rounds=1),
        ),
        "different Hessians": (
            "clients of unequal curvature: no bound on their divergence",
            lambda: replace(_own_hessians(), rounds=1),
        ),
        "Markov": (
            "omega = 1, presence in stretches",
            lambda: replace(_constant(_MARKOV), rounds=1),
        ),
        "cyclic": ("omega = 1, presence in cycles", lambda: replace(_constant(_CYCLIC), rounds=1)),
    }
)

OPTION_2 = _regimes(
    {
        "FedAU": (
            "Bernoulli, weights of Algorithm 2, K = 5, exact gradients",
            lambda: replace(_exact_gradients(), rounds=100),
        ),
        "six rounds": (
            "Bernoulli, two clients, K = 3: every path of participation",
            lambda: _two(Bernoulli(_PAIR), rounds=6, cutoff=3),
        ),
        "no cut-off": (
            "Bernoulli, two clients, 50 rounds: weights up to 49",
            lambda: _two(Bernoulli(_PAIR), rounds=50, cutoff=math.inf),
        ),
        "bounded gradients": (
            "Bernoulli, K = 5, losses that grow linearly far away, with noise",
            lambda: _bowl(Bernoulli(_PAIR)),
        ),
        "equal weights": (
            "Bernoulli, omega = 1, exact gradients",
            lambda: replace(_constant(), problem=_quadratic(0.0)),
        ),
        "noisy gradients": (
            "Bernoulli, K = 5, quadratics with noise: no bound on gradients",
            lambda: _Instance(_quadratic(2.0), _BERNOULLI, rounds=100),
        ),
        "Markov": (
            "K = 5, presence in stretches, exact gradients",
            lambda: replace(_exact_gradients(_MARKOV), rounds=100),
        ),
        "cyclic": (
            "K = 5, presence in cycles of ten rounds, exact gradients",
            lambda: _exact_gradients(_CYCLIC),
        ),
    }
)
OPTION_1 = {
    "FedAU": OPTION_2["FedAU"],
    **_regimes(
        {
            "known statistics": ("Bernoulli, omega = 1/p", lambda: _constant(weights=_KNOWN)),
            "nearly always there": (
                "Bernoulli, omega = 1, p from 0.89 to 0.97",
                lambda: _constant(Bernoulli((0.97, 0.92, 0.89))),
            ),
            "weight error alone": (
                "as before but without noise, started at f's minimum, 3,000 rounds",
                lambda: replace(
                    _constant(Bernoulli((0.97, 0.92, 0.89))),
                    problem=_quadratic(0.0),
                    x0=(0.0, 0.0),
                    rounds=3000,
                    step=0.1,
                ),
            ),
            "equal weights": ("Bernoulli, omega = 1, p from 0.3 to 0.9", _constant),
            "Markov": (
                "omega = 1/p, presence in stretches",
                lambda: _constant(_MARKOV, _KNOWN),
            ),
            "cyclic": (
                "omega = 1/p, presence in cycles of ten rounds",
                lambda: _constant(_CYCLIC, _KNOWN),
            ),
        }
    ),
}
OPTION_1_ORDER = _regimes(
    {
        "known statistics": (
            "Bernoulli, omega = 1/p",
            lambda: replace(_constant(weights=_KNOWN), rounds=2000, step=0.28),
        ),
        "Markov": (
            "omega = 1/p, presence in stretches",
            lambda: replace(_constant(_MARKOV, _KNOWN), rounds=2000, step=0.28),
        ),
        "cyclic": (
            "omega = 1/p, presence in cycles of ten rounds",
            lambda: replace(_constant(_CYCLIC, _KNOWN), rounds=2000, step=0.28),
        ),
    }
)

OPTION_2_ORDER = _regimes(
    {
        "bounded gradients": (
            "Bernoulli, omega = 1/p, losses that grow linearly far away, with noise",
            lambda: _bowl(Bernoulli(_PAIR), weights=_KNOWN_PAIR, rounds=2000, step=0.28),
        ),
        "quadratic": (
            "Bernoulli, omega = 1/p, exact gradients that are not bounded everywhere",
            lambda: _two(Bernoulli(_PAIR), weights=_KNOWN_PAIR, rounds=2000, step=0.28),
        ),
        "Markov": (
            "omega = 1/p, presence in stretches, exact gradients",
            lambda: _two(_PAIR_MARKOV, weights=_KNOWN_PAIR, rounds=2000, step=0.28),
        ),
        "cyclic": (
            "omega = 1/p, presence in cycles, exact gradients",
            lambda: _two(_PAIR_CYCLIC, weights=_KNOWN_PAIR, rounds=2000, step=0.28),
        ),
    }
)

_OFTEN = (0.9, 0.75)
_COROLLARY_4 = _regimes(
    {
        "bounded gradients": (
            "Bernoulli, losses that grow linearly far away, with noise",
            lambda: _bowl(Bernoulli(_OFTEN), rounds=2000),
        ),
        "quadratic": (
            "Bernoulli, two clients with exact gradients",
            lambda: _two(Bernoulli(_OFTEN), rounds=2000),
        ),
        "Markov": (
            "two clients with exact gradients, presence in stretches",
            lambda: _two(MarkovOnOff(_OFTEN, 0.8), rounds=2000),
        ),
        "cyclic": (
            "two clients with exact gradients, presence in cycles",
            lambda: _two(Cyclic((20, 20), (19, 8), active=(18, 15)), rounds=2000),
        ),
    }
)
# With 2,000 replicas the truth's slope is known to 0.38 and 0.23, which is not enough to decide
# whether it is the claimed one; 4,000 are not enough either, 8,000 are. The printed reading is not
# about quadratic clients, so it needs no more replicas.
_SETTLED_BY = 4
COROLLARY_4 = {
    **_COROLLARY_4,
    "bounded gradients": replace(_COROLLARY_4["bounded gradients"], effort=_SETTLED_BY),
}
COROLLARY_4_DERIVED = {
    **COROLLARY_4,
    "quadratic": replace(COROLLARY_4["quadratic"], effort=_SETTLED_BY),
}


def _weights(participation: _Participation, cutoff: float, rounds: int) -> _Instance:
    n = participation.n_clients
    problem = QuadraticProblem([[1.0]], np.arange(n, dtype=float)[:, None])
    return _Instance(problem, participation, cutoff=cutoff, rounds=rounds, x0=(0.0,))


_RARE = (0.02, 0.1, 0.5)
THEOREM_3 = _regimes(
    {
        "K = 5": ("Bernoulli, p from 0.3 to 0.9", lambda: _weights(_BERNOULLI, 5, 1000)),
        "K = 50": ("Bernoulli, p from 0.02 to 0.5", lambda: _weights(Bernoulli(_RARE), 50, 1000)),
        "before an interval ends": (
            "Bernoulli, p = 1/2, K = 3, two rounds",
            lambda: _weights(Bernoulli((0.5,)), 3, 2),
        ),
        "often there": (
            "Bernoulli, p = 0.9, K = 5",
            lambda: _weights(Bernoulli((0.9,)), 5, 1000),
        ),
        "Markov": (
            "p from 0.02 to 0.5, second eigenvalue 0.9, K = 50",
            lambda: _weights(MarkovOnOff(_RARE, 0.9), 50, 1000),
        ),
        "slow Markov": (
            "p = 0.3, second eigenvalue 0.99, K = 10",
            lambda: _weights(MarkovOnOff((0.3,), 0.99), 10, 1000),
        ),
        "cyclic": (
            "cycles of 100 rounds, 30 present and 70 absent, K = 10",
            lambda: _weights(Cyclic((100,), (60,), active=30), 10, 1000),
        ),
    }
)
THEOREM_3_ORDER = _regimes(
    {
        "K = 5": ("Bernoulli, p from 0.6 to 0.9", lambda: _weights(Bernoulli((0.9, 0.6)), 5, 2000)),
        "K = 50": ("Bernoulli, p = 0.1", lambda: _weights(Bernoulli((0.1,)), 50, 2000)),
        "Markov": (
            "p = 0.3, second eigenvalue 0.9, K = 10",
            lambda: _weights(MarkovOnOff((0.3,), 0.9), 10, 2000),
        ),
        "cyclic": (
            "cycles of 100 rounds, 30 present and 70 absent, K = 10",
            lambda: _weights(Cyclic((100,), (60,), active=30), 10, 2000),
        ),
    }
)

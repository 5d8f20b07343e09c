"""The named settings on which FedAR's claims are checked: clients on a line, known cycles.

Along a known path of participant sets FedAR's truth is exact. Cycles bound every client's
inactivity, so that Assumption 7 holds on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fltheory.algorithms import FedAR, Harmonic, Scheduled
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.engines import Setting
from fltheory.grammar.regime import Regime, coupled
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Participation
from fltheory.problems import QuadraticProblem

_OPTIMA = (3.0, -1.0, 2.0, -4.0)
_LOCAL_STEPS = 2
_OFFSET = 4.0


@dataclass(frozen=True, eq=False)
class Instance:
    """Everything about a setting but its step sizes; L = mu = 1, and w* is the optima's mean."""

    participation: Participation
    optima: Sequence[float] = _OPTIMA
    growth: float = 0.05
    largest: float = 2.0
    cutoff: float = math.inf
    sigma: float = 1.0
    distance: float = 5.0

    @property
    def fedar(self) -> FedAR:
        """FedAR with our own psi; its step size is a placeholder."""
        return FedAR(
            0.1, _LOCAL_STEPS, weight=CappedLinear(self.growth, self.largest), cutoff=self.cutoff
        )

    @property
    def problem(self) -> QuadraticProblem:
        """The clients."""
        return QuadraticProblem([[1.0]], np.array(self.optima)[:, None], sigma=self.sigma)

    def convex(self, rounds: int = 150) -> Setting:
        """Return the setting of Theorem 1, ``eta_t = 3/(mu K (t + 4))``: our own choice."""
        algorithm = Scheduled(self.fedar, Harmonic(3.0 / _LOCAL_STEPS, offset=_OFFSET))
        x0 = self.problem.x_star + self.distance
        return Setting(algorithm, self.problem, self.participation, rounds, x0)

    def smooth(self, rounds: int = 300) -> Setting:
        """Return the setting of Theorem 2, ``eta = 1/(2 L K sqrt(T))``: our own choice.

        Noise and distance are small, so that a bias shows within 3,000 rounds.
        """
        algorithm = replace(self.fedar, client_lr=0.5 / _LOCAL_STEPS / math.sqrt(rounds))
        problem = replace(self, sigma=0.3 * self.sigma).problem
        x0 = problem.x_star + 0.1 * self.distance
        return Setting(algorithm, problem, self.participation, rounds, x0)


def staggered(period: int, n_clients: int = 4, active: int = 1) -> Cyclic:
    """Return equal cycles that begin one after the other."""
    offsets = [period * i // n_clients for i in range(n_clients)]
    return Cyclic([period] * n_clients, offsets, active)


UNEQUAL = Cyclic([1, 2, 4, 8], [0, 1, 2, 3])

_INSTANCES: Mapping[str, tuple[str, Callable[[], Instance]]] = {
    "in rotation": ("one client after the other", lambda: Instance(staggered(4))),
    "unequal cycles, psi = 1": (
        "there every 1, 2, 4 and 8 rounds, stale updates not weighed up",
        lambda: Instance(UNEQUAL, growth=0.0),
    ),
    "unequal cycles": (
        "there every 1, 2, 4 and 8 rounds, psi grows by 0.05 per round",
        lambda: Instance(UNEQUAL),
    ),
    "unequal cycles, equal clients": (
        "the same with one loss for all",
        lambda: Instance(UNEQUAL, optima=(0.0,) * 4),
    ),
    "cut off": (
        "psi = 1, tau_max = 3: one client counts half of the time",
        lambda: Instance(UNEQUAL, growth=0.0, cutoff=3.0),
    ),
    "psi grows faster": (
        "unequal cycles, psi grows by 0.2 per round up to 2",
        lambda: Instance(UNEQUAL, growth=0.2),
    ),
    "psi hardly grows": (
        "unequal cycles, exact gradients, psi grows by 0.001 per round",
        lambda: Instance(UNEQUAL, growth=0.001, sigma=0.0),
    ),
}


def _regimes(names: Sequence[str], couple: Callable[[Instance], Setting]) -> Mapping[str, Regime]:
    return coupled({name: _INSTANCES[name] for name in names}, couple)


THEOREM_1 = _regimes(
    ("in rotation", "unequal cycles, psi = 1", "unequal cycles", "cut off", "psi hardly grows"),
    Instance.convex,
)
THEOREM_2 = _regimes(
    (
        "in rotation",
        "unequal cycles, psi = 1",
        "unequal cycles, equal clients",
        "psi grows faster",
        "cut off",
    ),
    Instance.smooth,
)
IN_ROTATION = _regimes(("in rotation",), Instance.convex)
OF_PSI = _regimes(("unequal cycles", "in rotation"), Instance.convex)


def _exact_gradients() -> Instance:
    return Instance(staggered(4), sigma=0.0)


OF_CLIENTS = {
    "noisy gradients": IN_ROTATION["in rotation"],
    "exact gradients": Regime("no noise, clients differ", lambda: _exact_gradients().convex()),
}


def _absences(participation: Participation, limit: float, rounds: int) -> Setting:
    optima = np.linspace(-1.0, 1.0, participation.n_clients)
    instance = Instance(participation, optima=tuple(optima.tolist()), cutoff=limit)
    return Setting(instance.fedar, instance.problem, participation, rounds, [0.0])


ASSUMPTION_7 = {
    "p = 0.1, 100 rounds in a row allowed": Regime(
        "100 independent clients, 1000 rounds",
        lambda: _absences(Bernoulli([0.1] * 100), 100, 1000),
    ),
    "p = 0.1, 50 rounds in a row allowed": Regime(
        "100 independent clients, 1000 rounds",
        lambda: _absences(Bernoulli([0.1] * 100), 50, 1000),
    ),
    "p = 0.5, 10 rounds in a row allowed": Regime(
        "100 independent clients, 1000 rounds",
        lambda: _absences(Bernoulli([0.5] * 100), 10, 1000),
    ),
    "Markov": Regime(
        "10 clients, there half of the time, for 10 rounds on end; 50 allowed, 1000 rounds",
        lambda: _absences(MarkovOnOff([0.5] * 10, 0.8), 50, 1000),
    ),
    "everybody": Regime("p = 1, none allowed", lambda: _absences(Bernoulli([1.0] * 10), 0, 1000)),
    "in rotation": Regime(
        "one of four after the other, three allowed", lambda: _absences(staggered(4), 3, 1000)
    ),
}

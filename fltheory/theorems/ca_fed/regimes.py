"""The named settings on which CA-Fed's statements are checked.

Four clients in the plane, with optima ten apart, are varied in one respect at a time. Steps stay
below Lemma 2's limit, and W is large enough to contain all local models, unless a regime tests
exactly these conditions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from fltheory.algorithms import (
    AveragedIterate,
    Constant,
    Harmonic,
    Projected,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.algorithms.shared.step_sizes import StepSizes
from fltheory.engines import Setting
from fltheory.grammar.regime import Regime, coupled
from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import Ball, QuadraticProblem
from fltheory.weights import optimal

_PI = (0.9, 0.7, 0.5, 0.3)
_OPTIMA = ((10.0, 0.0), (-10.0, 0.0), (0.0, 10.0), (0.0, -10.0))
_UNBIASED = tuple(0.25 / pi for pi in _PI)
_EQUAL = (0.25,) * 4
_STEPS = Harmonic(2.0, offset=24.0)


@dataclass(frozen=True, eq=False)
class _Instance:
    """The parameters of a setting; W is centred at the origin.

    Hessians are diagonal; ``curvatures`` are shared by all clients, or given for each.
    """

    participation: MarkovOnOff | FiniteChain
    q: Sequence[float] = _UNBIASED
    optima: Sequence[Sequence[float]] = _OPTIMA
    curvatures: Sequence[float] | Sequence[Sequence[float]] = (1.0, 0.5)
    sigma: float = 2.0
    noise_shares: Sequence[float] | None = None
    alpha: Sequence[float] | None = None
    x0: Sequence[float] = (20.0, 0.0)
    radius: float = 25.0
    rounds: int = 300
    local_steps: int = 2
    server_lr: float = 1.0
    steps: StepSizes = _STEPS

    @property
    def setting(self) -> Setting:
        """The run whose model is the average of the iterates, as in the theorems."""
        run = self.iterates
        return replace(run, algorithm=AveragedIterate(run.algorithm, weights=self.steps))

    @property
    def iterates(self) -> Setting:
        """The run whose models are the iterates, as in the lemmas."""
        curvatures = np.asarray(self.curvatures)
        problem = QuadraticProblem(
            curvatures[..., None] * np.eye(curvatures.shape[-1]),
            self.optima,
            sigma=self.sigma,
            target_weights=self.alpha,
            noise_shares=self.noise_shares,
        )
        fedavg = WeightedFedAvg(
            tuple(self.q), self.steps.at(1), self.local_steps, server_lr=self.server_lr
        )
        algorithm = Projected(
            Scheduled(fedavg, self.steps), Ball(np.zeros(problem.dim), self.radius)
        )
        return Setting(algorithm, problem, self.participation, self.rounds, self.x0)


def four_clients(
    availability: Sequence[float],
    correlation: float,
    *,
    steps: Constant | Harmonic = _STEPS,
    local_steps: int = 2,
    rounds: int = 300,
    sigma: float = 0.0,
    q: Sequence[float] | None = None,
) -> Setting:
    """Return the four clients under on-off chains; weights are 1/(4 pi) by default."""
    weights = tuple(0.25 / pi for pi in availability) if q is None else q
    return _Instance(
        MarkovOnOff(availability, correlation),
        weights,
        sigma=sigma,
        rounds=rounds,
        local_steps=local_steps,
        steps=steps,
    ).setting


def _correlated(nu: float) -> _Instance:
    return _Instance(MarkovOnOff(_PI, nu))


def _exact_gradients(nu: float) -> _Instance:
    return replace(_correlated(nu), sigma=0.0)


def _optimal_weights() -> Sequence[float]:
    """Minimise the printed bound of Theorems 1 and 2, with the same Q as unbiased weights."""
    base = _correlated(0.9)
    problem, total, steps = base.setting.problem, sum(base.q), base.steps
    squares = sum(steps.at(t) ** 2 for t in range(1, base.rounds + 1))
    upsilon = 2 / base.local_steps * float(np.sum((np.array(base.x0) - problem.x_star) ** 2))
    upsilon += 16 * total / 4 * (squares + math.pi**2 / 6)
    found = optimal(
        _PI,
        problem.alpha,
        a=problem.sigma**2 * np.array(_PI) * squares,
        b=upsilon,
        bias=4 * 50.0 * sum(steps.at(t) for t in range(1, base.rounds + 1)),
        total=total,
    )
    return tuple(found.q.tolist())


def _clustered(
    availability: Sequence[float], correlation: Sequence[float], sizes: Sequence[int]
) -> FiniteChain:
    """Return clusters of clients that come and go together, each with its own chain."""
    clusters = MarkovOnOff(availability, correlation).as_chain()
    return FiniteChain(clusters.transition, np.repeat(clusters.state_masks, sizes, axis=1))


def _clusters() -> _Instance:
    """Pair clients 0 and 1, and clients 2 and 3; each pair comes and goes together."""
    q = (0.25 / 0.8,) * 2 + (0.25 / 0.4,) * 2
    return _Instance(_clustered((0.8, 0.4), (0.9, 0.9), (2, 2)), q)


def _four_in_clusters(correlation: Sequence[float], sizes: Sequence[int]) -> _Instance:
    availability = (0.5, 0.4, 0.6, 0.3)[: len(sizes)]
    return replace(_noise_free(), participation=_clustered(availability, correlation, sizes))


def _five_clients() -> _Instance:
    """Return five clients whose initial losses are in the ratio 15 : 9 : 15 : 17 : 1."""
    return replace(
        _exact_gradients(0.0),
        participation=MarkovOnOff((0.4, 0.2, 0.5, 0.6, 0.3), (0.5, 0.3, 0.1, 0.9, 0.7)),
        q=(0.1, 1.4, 0.1, 0.4, 1.2),
        optima=((1.0,), (-1.0,), (1.0,), (-1.0,), (1.0,)),
        curvatures=((0.75,), (0.45,), (0.75,), (0.85,), (0.05,)),
        alpha=(1 / 24, 7 / 24, 1 / 24, 6 / 24, 9 / 24),
        x0=(0.0,),
    )


def _noise_free() -> _Instance:
    return replace(_exact_gradients(0.0), q=_EQUAL)


def _different_hessians() -> _Instance:
    return replace(
        _noise_free(), curvatures=((1.0, 0.5), (0.5, 1.0), (0.9, 0.6), (0.5, 0.5)), radius=30.0
    )


def _noisy() -> _Instance:
    """Start at w*, so that only noise and the size of the chain are left in upsilon."""
    return replace(_correlated(0.0), sigma=40.0, x0=(0.0, 0.0))


def _two_clients() -> _Instance:
    return replace(
        _correlated(0.9),
        participation=MarkovOnOff((0.9, 0.3), 0.9),
        q=(0.5, 0.5),
        optima=_OPTIMA[:2],
    )


def _rare_client_counts() -> _Instance:
    return replace(_two_clients(), participation=MarkovOnOff((1.0, 0.1), 0.0), alpha=(0.01, 0.99))


def _rare_majority() -> _Instance:
    return replace(
        _correlated(0.0),
        participation=MarkovOnOff((1.0, 0.01, 0.01), 0.0),
        q=(0.3, 0.3, 0.4),
        optima=_OPTIMA[:3],
        alpha=(0.001, 0.998, 0.001),
    )


def _started_at_minimiser() -> _Instance:
    """Return two clients with optima 1,000 away from w* = 0, the start; w_B* is 800 away."""
    return _Instance(
        MarkovOnOff((0.9, 0.1), 0.0),
        (0.5, 0.5),
        optima=((1000.0,), (-1000.0,)),
        curvatures=(1.0,),
        sigma=0.0,
        x0=(0.0,),
        radius=1250.0,
        rounds=100,
        local_steps=1,
        steps=Harmonic(0.02, offset=99.0),
    )


def _nearly_attained() -> _Instance:
    """Return two clients of equal curvature; (10) is tight at w = 2 w_B* as p tends to alpha."""
    return replace(
        _started_at_minimiser(),
        participation=MarkovOnOff((0.49, 0.51), 0.0),
        optima=((1.0,), (-1.0,)),
        radius=1.25,
    )


def _one_client(loss: float, length: float) -> _Instance:
    """Return a client with a slow chain, with losses and lengths in other units."""
    step = length**2 / loss
    return _Instance(
        MarkovOnOff((0.5,), 0.99),
        (1.0,),
        optima=((0.0,),),
        curvatures=(1 / step,),
        sigma=0.0,
        x0=(length,),
        radius=1.25 * length,
        rounds=10,
        local_steps=1,
        steps=Harmonic(2.5 * step, offset=9.0),
    )


def _small_server_step() -> _Instance:
    return replace(
        _one_client(1.0, 1.0),
        participation=MarkovOnOff((1.0,), 0.0),
        rounds=2400,
        radius=1.01,
        steps=Harmonic(9.6, offset=600.0),
        server_lr=1e-5,
    )


@dataclass(frozen=True)
class _WarmUp:
    """Steps that increase up to the peak in round ``rise`` and then decrease as 1/t."""

    peak: float
    rise: int

    def at(self, round_index: int) -> float:
        return self.peak * min(round_index, self.rise) / max(round_index, self.rise)


def _warm_up() -> _Instance:
    return replace(_two_clients(), sigma=0.0, rounds=100, steps=_WarmUp(0.1, 100))


def _unequal_noise() -> _Instance:
    """Start at w*; the rare client's gradients have less noise."""
    return replace(
        _two_clients(),
        participation=MarkovOnOff((0.9, 0.3), 0.0),
        sigma=10.0,
        noise_shares=(1.0, 0.05),
        x0=(0.0, 0.0),
    )


def _noise_outweighs() -> _Instance:
    """Return clients with optima a tenth apart, in a W that is not much larger."""
    return replace(
        _correlated(0.0),
        optima=tuple((0.01 * x, 0.01 * y) for x, y in _OPTIMA),
        sigma=10.0,
        x0=(0.1, 0.0),
        radius=0.2,
    )


def _rare_client_first() -> _Instance:
    """Start slightly beyond w* = w_B*, as seen from the client that is present."""
    return replace(
        _two_clients(),
        participation=MarkovOnOff((0.002, 0.002), 0.0, start=(1.0, 0.0)),
        sigma=0.0,
        local_steps=1,
        x0=(-0.3125, 0.0),
        steps=Harmonic(0.5, offset=1.0),
    )


def _rare_client_stays() -> _Instance:
    return replace(
        _one_client(1.0, 1.0),
        participation=MarkovOnOff((0.001,), 0.9, start=(1.0,)),
        rounds=100,
        radius=1.0,
        steps=Harmonic(0.9, offset=9.0),
    )


def _nobody_at_first() -> _Instance:
    return replace(_exact_gradients(0.9), participation=MarkovOnOff(_PI, 0.9, start=(0.0,) * 4))


_MAKERS: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "independent": (
        "no client's presence is correlated over time, unbiased weights",
        lambda: _correlated(0.0),
    ),
    "nu = 0.5": ("no noise, presence correlated over time", lambda: _exact_gradients(0.5)),
    "nu = 0.9": ("no noise, presence highly correlated over time", lambda: _exact_gradients(0.9)),
    "nu = 0.99": (
        "no noise, clients are present for long stretches",
        lambda: _exact_gradients(0.99),
    ),
    "equal weights": (
        "nu = 0.9, no noise, rare clients with less weight than they should have",
        lambda: replace(_exact_gradients(0.9), q=_EQUAL),
    ),
    "optimal weights": (
        "nu = 0.9, weights that minimise the printed bounds",
        lambda: replace(_correlated(0.9), q=_optimal_weights()),
    ),
    "clusters": ("two pairs; the clients of each pair come and go together", _clusters),
    "noise-free": ("exact gradients, equal weights, no correlation over time", _noise_free),
    "different Hessians": ("no noise, clients of unequal curvature", _different_hessians),
    "two clients": ("nu = 0.9, equal weights, two clients", _two_clients),
    "rare majority": (
        "three clients; the one with nearly all of the importance is present in one of 100 rounds",
        _rare_majority,
    ),
    "noisy gradients": ("noise of 40, started at w*", _noisy),
    "started at the optimum": ("equal weights, w_B* far from w*", _started_at_minimiser),
    "nearly attained": ("importance .49 and .51 in place of 1/2 each, kappa = 1", _nearly_attained),
    "one slow client": ("present for 100 rounds, absent for 100", lambda: _one_client(1.0, 1.0)),
    "other units": (
        "the regime 'one slow client' with losses a hundredth and lengths a tenth as large",
        lambda: _one_client(0.01, 0.1),
    ),
    "small server step": ("server_lr = 1e-5, so that the model hardly moves", _small_server_step),
    "unequal noise": ("noise of 10, but 0.5 for the rare clients", _unequal_noise),
    "noise outweighs gradients": ("noise of 10, gradients of at most 0.3", _noise_outweighs),
    "a rare client first": (
        "each client is present in one of 500 rounds; one client is present in the first",
        _rare_client_first,
    ),
    "a rare client stays": (
        "a client is present in the first round, and in one of 1,000 rounds on average",
        _rare_client_stays,
    ),
    "warm-up": ("two clients, nu = 0.9, steps that rise for 100 rounds", _warm_up),
    "five clients": ("losses at the start in proportion 15 : 9 : 15 : 17 : 1", _five_clients),
    "slow pair": (
        "one slow pair, one fast pair",
        lambda: _four_in_clusters((0.9, 0.5), (2, 2)),
    ),
    "slow three": (
        "three slow clients, one fast client",
        lambda: _four_in_clusters((0.8, 0.2), (3, 1)),
    ),
    "alternating pair": (
        "one pair that comes and goes in alternate rounds, one pair that changes slowly",
        lambda: _four_in_clusters((-0.6, 0.5), (2, 2)),
    ),
    "each its own": (
        "four clusters of one client",
        lambda: _four_in_clusters((0.9, 0.7, 0.5, 0.3), (1, 1, 1, 1)),
    ),
    "three clusters": (
        "a slow pair between two clients",
        lambda: _four_in_clusters((0.3, 0.95, 0.6), (1, 2, 1)),
    ),
    "nobody at first": ("nu = 0.9, all clients absent in the first round", _nobody_at_first),
    "constant steps": (
        "nu = 0.9, step sizes that do not decrease",
        lambda: replace(_correlated(0.9), steps=Constant(0.02)),
    ),
    "tight W": (
        "nu = 0.9, W just large enough for the optima, so that the projection has an effect",
        lambda: replace(_correlated(0.9), x0=(5.0, 0.0), radius=10.5),
    ),
}


_ALL = coupled(_MAKERS, attrgetter("setting"))


_ITERATES = coupled(_MAKERS, attrgetter("iterates"))


def _some(*names: str) -> Mapping[str, Regime]:
    return {name: _ALL[name] for name in names}


def _of_iterates(*names: str) -> Mapping[str, Regime]:
    return {name: _ITERATES[name] for name in names}


_OF_LEMMAS = (
    "unequal noise",
    "noise outweighs gradients",
    "a rare client first",
    "a rare client stays",
    "warm-up",
)
_OF_CHOICE = ("nearly attained", "five clients")
_OF_CLUSTERS = ("slow pair", "slow three", "alternating pair", "each its own", "three clusters")
THEOREM_2: Mapping[str, Regime] = _some(
    *(name for name in _ALL if name not in (*_OF_CHOICE, *_OF_LEMMAS, *_OF_CLUSTERS))
)
DECOMPOSITION = _some(
    "independent",
    "equal weights",
    "optimal weights",
    "different Hessians",
    "two clients",
    "rare majority",
    "started at the optimum",
    "nearly attained",
)
CONVERGENCE = _some(
    "independent", "clusters", "two clients", "rare majority", "noisy gradients", "unequal noise"
)
APPENDIX_D = _some(
    "independent", "clusters", "two clients", "noisy gradients", "unequal noise", "noise-free"
)
EXCLUSION = _some(
    "independent",
    "nu = 0.9",
    "different Hessians",
    "two clients",
    "rare majority",
    "five clients",
)
CLUSTERS = _some(*_OF_CLUSTERS)
LEMMA_1 = _of_iterates(
    "independent", "different Hessians", "noisy gradients", "unequal noise", "tight W"
)
LOCAL_GRADIENTS = _of_iterates(
    "noise-free",
    "different Hessians",
    "one slow client",
    "noisy gradients",
    "unequal noise",
    "noise outweighs gradients",
)
LEMMA_2 = _of_iterates(
    "nu = 0.5",
    "nu = 0.9",
    "equal weights",
    "noise-free",
    "different Hessians",
    "one slow client",
    "nobody at first",
    "a rare client first",
)
LEMMA_3 = _of_iterates(
    "nu = 0.5",
    "noise-free",
    "different Hessians",
    "one slow client",
    "nobody at first",
    "a rare client stays",
)
FALLING_STEPS = _of_iterates(
    "nu = 0.5", "noise-free", "one slow client", "a rare client first", "warm-up"
)
APPENDIX_E = _some(
    "independent", "equal weights", "optimal weights", "two clients", "rare majority"
)
SUMMANDS: Mapping[str, Regime] = {
    "two clients, one rare": Regime(
        "pi = (1, 1/10), alpha = (1/100, 99/100), equal weights",
        lambda: _rare_client_counts().setting,
    ),
    **_some("equal weights", "rare majority"),
}

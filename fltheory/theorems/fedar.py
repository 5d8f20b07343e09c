"""FedAR: the claims of its Theorems 1 and 2, as far as our copy of the text gives them.

Jiang, Zhou, Zhang and Chakraborty, "FedAR: Addressing Client Unavailability in Federated Learning
with Local Update Approximation and Rectification" (2024).

What the text does not give
---------------------------
The formulas are lost: psi (6), both bounds with their constants, step sizes and tau_max(t). What
remains are the assumptions in words, the orders O(1/T) and O(1/sqrt(T)), and the statements of
Remarks 1 and 2 about each dependence. So only orders and directions are checked here, not bounds.
psi is our own `CappedLinear`, and the step sizes are our own: 3/(mu K (t + 4)) and 1/(2 L K
sqrt(T)). We cannot evaluate the hypothesis that our psi, its cap, tau_max and the step sizes are
those of (6) and of the theorems. So no printed statement is confirmed or refuted here: verdicts are
UNDECIDED, and they only show the behaviour of our psi. For claims about our psi, see the derived
readings.

The truth is computed exactly along known cycles. All problems are quadratic and hence strongly
convex. Theorem 2 is about nonconvex losses, but it assumes Assumptions 1 to 7, which include strong
convexity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.algorithms import FedAR, Harmonic, Scheduled
from fltheory.algorithms.shared.inactivity_weights import CappedLinear, latest
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.direction import DirectionClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis, with_rounds
from fltheory.claims.statement import Statement
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, largest, largest_norm, number
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.regime import Regime, coupled
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import LOSS, PURE
from fltheory.numbers.of_setting import view_of
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Participation
from fltheory.participation.base import Masks
from fltheory.participation.inactivity import chance_of_longer_absence, inactive_rounds
from fltheory.participation.process import process_of
from fltheory.problems import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

# ------------------------------------------------------------ numbers of a setting used in claims

_ROUNDING = 1e-12


def fedar_of(setting: Setting) -> FedAR:
    """Return the setting's FedAR, with or without a schedule.

    Raises
    ------
    ValueError
        If the algorithm is not FedAR.
    """
    algorithm = setting.algorithm
    fedar = algorithm.algorithm if isinstance(algorithm, Scheduled) else algorithm
    if not isinstance(fedar, FedAR):
        raise ValueError(f"algorithm must be FedAR, or Scheduled(FedAR(...)), got {algorithm!r}")
    return fedar


@dataclass(frozen=True, eq=False)
class FedARPath(ReadOnlyArrays):
    """Counts and weights along a setting's path of participant sets.

    Raises
    ------
    ValueError
        If the algorithm is not FedAR, or participation is not known beforehand.
    """

    fedar: FedAR
    masks: Masks
    cycle: Masks

    def __init__(self, setting: Setting) -> None:
        process = process_of(setting.participation)
        masks = process.known_path(setting.rounds)
        if masks is None or process.period is None:
            raise ValueError(
                "participation must be fixed in advance and periodic for FedAR's claims on orders, "
                f"got {setting.participation!r}"
            )
        for name, value in {
            "fedar": fedar_of(setting),
            "masks": masks,
            "cycle": process.known_path(2 * process.period),
        }.items():
            object.__setattr__(self, name, value)

    @cached_property
    def inactive(self) -> FloatArray:
        """The numbers of inactive rounds tau, (rounds, N)."""
        return inactive_rounds(self.masks)

    @cached_property
    def long_run_weights(self) -> FloatArray:
        """Mean of ``psi_{i,t}/N_t`` over a period in which everybody has appeared, (N,).

        With step sizes that go to zero, the model follows ``-sum_i weight_i grad f_i``, because the
        model has hardly changed since a stale update.
        """
        period = len(self.cycle) // 2
        inactive = self._counted(inactive_rounds(self.cycle)[period:])
        rounds = self._counted(np.arange(period + 1.0, 2 * period + 1)[:, None])
        counts = np.asarray(inactive <= latest(self.fedar.cutoff, rounds), dtype=bool)
        psi = np.asarray(self.fedar.weight(inactive))
        number = self._counted(np.maximum(counts.sum(axis=1, keepdims=True), 1))
        return np.asarray((np.where(counts, psi, 0 * psi) / number).mean(axis=0))

    def _counted(self, whole: NDArray[Any]) -> NDArray[Any]:
        """Return counts, as Python integers if they will be combined with exact numbers."""
        exact = is_exact(self.fedar.client_lr)
        return whole.astype(np.int64).astype(object) if exact else whole


@cached_by_content(16)
def _path_of(setting: Setting) -> FedARPath:
    return FedARPath(setting)


def _along(number_of: Callable[[FedARPath], Any]) -> Callable[[Setting], Any]:
    return lambda setting: number_of(_path_of(setting))


def known_beforehand(setting: Setting) -> Setting:
    """Return the setting; raise ValueError unless it is FedAR with known participation."""
    _path_of(setting)
    return setting


def _mean_inactivity(path: FedARPath) -> Any:
    inactive = path.inactive
    if is_exact(path.fedar.client_lr):
        return Fraction(int(inactive.sum()), inactive.size)
    return float(inactive.mean())


def _spread_of_weights(path: FedARPath) -> Any:
    weights = path.long_run_weights
    difference = number((largest(weights) + largest(-weights)) / weights.mean())
    return difference if is_exact(difference) or difference > _ROUNDING else 0.0


L = symbol("L", "smoothness of every client", number="L", positive=True)
mu = symbol("mu", "strong convexity of every client", number="mu", real=True)
sigma = symbol("sigma", "clients' gradient noise", number="sigma", nonnegative=True)
F_0 = symbol("F_0", "f(w_0) - f*", number="excess_loss", nonnegative=True)
K = symbol("K", "local_steps", number="local_steps", positive=True, integer=True)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
T = symbol("T", "rounds", PURE, "rounds", positive=True, integer=True)
tau_mean = symbol(
    "taubar",
    "mean of tau_{i,t} over clients and rounds",
    number=_along(_mean_inactivity),
    nonnegative=True,
)
tau_max = symbol(
    "tau_max",
    "largest tau_{i,t}",
    number=_along(lambda path: int(path.inactive.max())),
    nonnegative=True,
)
growth = symbol(
    "g",
    "the largest growth of psi from one inactive round to the next",
    number=_along(lambda path: path.fedar.weight.growth),
    nonnegative=True,
)
unequal = symbol(
    "u",
    "spread of the clients' long-run weights, which are the means of psi_{i,t}/N_t, divided by "
    "their mean",
    number=_along(_spread_of_weights),
    nonnegative=True,
)
spread = symbol(
    "G",
    "max_i ||grad f_i(w*)||, which is 0 if w* is every client's minimiser",
    number=lambda setting: largest_norm(view_of(setting).gradients_at_optimum),
    nonnegative=True,
)
C = symbol(
    "C",
    "a constant that our copy of the text lacks",
    number=lambda setting: math.nan,
    positive=True,
)
psi_taken = symbol(
    "psi",
    "the weights used here, with their cap, tau_max and step sizes",
    nonnegative=True,
)
psi_of_paper = symbol(
    "psi_6",
    "those of (6) and of the theorems, which our copy of the text lacks",
    nonnegative=True,
)

nu = symbol("nu", "largest inactivity allowed, the cut-off", PURE, "cutoff", nonnegative=True)
nu_of_paper = symbol(
    "nu_7",
    "the bound of Assumption 7, which our copy of the text lacks",
    PURE,
    nonnegative=True,
)
chance = symbol(
    "r",
    "1 if participation is random, else 0",
    PURE,
    lambda setting: int(process_of(setting.participation).period is None),
    nonnegative=True,
    integer=True,
)


def _longest_absence(setting: Setting) -> float:
    """Return the longest absence over all rounds, or infinity if absences are unbounded."""
    process = process_of(setting.participation)
    path = None if process.period is None else process.known_path(2 * process.period)
    if path is None or not path.any(axis=0).all():
        return math.inf
    return int(inactive_rounds(path).max())


longest = symbol(
    "ell",
    "longest absence in the schedule; infinite if participation is random",
    PURE,
    _longest_absence,
    extended_nonnegative=True,
)


# ------------------------------------------------------------ settings on which they are checked
# Along a known path of participant sets FedAR's truth is exact. Cycles bound every client's
# inactivity, so that Assumption 7 holds on all of them.

_OPTIMA = (3.0, -1.0, 2.0, -4.0)
_LOCAL_STEPS = 2
_OFFSET = 4.0


@dataclass(frozen=True, eq=False)
class Instance:
    """A setting's parameters without its step sizes; L = mu = 1, and w* is the optima's mean."""

    participation: Participation
    optima: Sequence[float] = _OPTIMA
    growth: float = 0.05
    largest: float = 2.0
    cutoff: float = math.inf
    sigma: float = 1.0
    distance: float = 5.0

    @property
    def fedar(self) -> FedAR:
        """FedAR with our own psi and a placeholder step size."""
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
    """Return equal cycles that start one after the other."""
    offsets = [period * i // n_clients for i in range(n_clients)]
    return Cyclic([period] * n_clients, offsets, active)


UNEQUAL = Cyclic([1, 2, 4, 8], [0, 1, 2, 3])

_INSTANCES: Mapping[str, tuple[str, Callable[[], Instance]]] = {
    "in rotation": ("one client after the other", lambda: Instance(staggered(4))),
    "unequal cycles, psi = 1": (
        "present every 1, 2, 4 and 8 rounds, stale updates get no extra weight",
        lambda: Instance(UNEQUAL, growth=0.0),
    ),
    "unequal cycles": (
        "present every 1, 2, 4 and 8 rounds, psi grows by 0.05 per round",
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


THEOREM_1_REGIMES = _regimes(
    ("in rotation", "unequal cycles, psi = 1", "unequal cycles", "cut off", "psi hardly grows"),
    Instance.convex,
)
THEOREM_2_REGIMES = _regimes(
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


ASSUMPTION_7_REGIMES = {
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
        "10 clients, each present half of the time, for 10 rounds in a row; 50 allowed, 1000 "
        "rounds",
        lambda: _absences(MarkovOnOff([0.5] * 10, 0.8), 50, 1000),
    ),
    "everybody": Regime("p = 1, none allowed", lambda: _absences(Bernoulli([1.0] * 10), 0, 1000)),
    "in rotation": Regime(
        "four clients one after the other, three rounds of absence allowed",
        lambda: _absences(staggered(4), 3, 1000),
    ),
}


# ------------------------------------------------------------ the claims

_PAPER = "FedAR (arXiv 2407.19103)"
_LONG = (1, 10, 100, 300, 1000)
_LONGER = (3, 30, 300, 1000, 3000)
_HALF = sp.Rational(1, 2)

_SMOOTH = Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 1")
_CONVEX = Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Assumption 2")
_NOISE = Hypothesis("bounded variance", sp.Lt(sigma, sp.oo, evaluate=False), "Assumption 3")
_INACTIVITY = Hypothesis(
    "bounded inactivity", sp.Lt(tau_max, sp.oo, evaluate=False), "Assumption 7"
)
_EQUAL = Hypothesis(
    "equal long-run weights, or one minimiser for all",
    as_printed(lambda: sp.Eq(unequal * spread, 0, evaluate=False)),
    "the fixed point of (7)",
)

_LOST = Hypothesis(
    "psi, its cap, tau_max and the step sizes are those of the paper (our copy of the text lacks "
    "the formulas)",
    sp.Eq(psi_taken, psi_of_paper, evaluate=False),
    "(6), Theorems 1 and 2",
    is_known=False,
)

_BOUND_1 = Theorem(
    id="fedar/1",
    title="FedAR on strongly convex losses",
    source=f"{_PAPER}, Theorem 1 and Remark 1",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "E[f(w_T) - f*]",
        r"\mathbb E[f(w_T)-f^*]",
        LOSS,
    ),
    bound=C / T,
    hypotheses=(_SMOOTH, _CONVEX, _NOISE, _LOST),
    domain=known_beforehand,
)
_BOUND_2 = replace(
    _BOUND_1,
    id="fedar/2",
    title="FedAR on smooth losses",
    source=f"{_PAPER}, Theorem 2 and Remark 2",
    quantity=BoundedQuantity(
        "squared_gradient",
        "mean",
        RoundRange(0, -1),
        "1/T sum_{t<T} E||grad f(w_t)||^2",
        r"\frac1T\sum_{t<T}\mathbb E\|\nabla f(w_t)\|^2",
    ),
    bound=C / sp.sqrt(T),
    hypotheses=(_SMOOTH, _CONVEX, _NOISE, _INACTIVITY, _LOST),
)


def _with_rounds_and_step(setting: Setting, rounds: int) -> Setting:
    """Change T, with the step proportional to 1/sqrt(T)."""
    fedar = fedar_of(setting)
    lr = fedar.client_lr * math.sqrt(setting.rounds / rounds)
    return replace(setting, algorithm=replace(fedar, client_lr=lr), rounds=rounds)


THEOREM_1 = RateClaim(
    id="fedar/1",
    title="FedAR on strongly convex losses: O(1/T)",
    source=f"{_PAPER}, Theorem 1 and Remark 1",
    theorem=_BOUND_1,
    axes=(RateAxis(T, 1 / T, lambda setting: _LONG, with_rounds),),
    regimes=THEOREM_1_REGIMES,
    note=(
        "Our copy of the text gives the order and Assumptions 1 to 3, but not the bound, its "
        "constants, psi or the step sizes. The psi and the step sizes used here are our own "
        "choice. The text does not say which quantity has this order. We take the excess loss of "
        "the last model, which has the order of the squared distance."
    ),
)

THEOREM_1_DERIVED = replace(
    THEOREM_1,
    reading="derived",
    theorem=replace(_BOUND_1, reading="derived", hypotheses=(_SMOOTH, _CONVEX, _NOISE, _EQUAL)),
    note=(
        "Our copy of the text has no proof; this reading is what its update (7) supports. As the "
        "step sizes vanish, the model follows -sum_i weight_i grad f_i, where weight_i is the "
        "mean of psi_{i,t}/N_t. This is zero at w* only if all weights are equal, as with psi = 1 "
        "and no cut-off, or with clients of equal inactivity."
    ),
)

THEOREM_2 = RateClaim(
    id="fedar/2",
    title="FedAR on smooth losses: O(1/sqrt(T))",
    source=f"{_PAPER}, Theorem 2 and Remark 2",
    theorem=_BOUND_2,
    axes=(RateAxis(T, T**-_HALF, lambda setting: _LONGER, _with_rounds_and_step),),
    regimes=THEOREM_2_REGIMES,
    note=(
        "Read to the letter, the theorem requires Assumptions 1 to 7. Assumption 2 is strong "
        "convexity, so no nonconvex loss meets them. Our copy of the text gives the order, but "
        "not the bound, its constants, psi or the step size. We take the mean squared gradient, "
        "as usual for nonconvex losses."
    ),
)

THEOREM_2_DERIVED = replace(
    THEOREM_2,
    reading="derived",
    theorem=replace(_BOUND_2, reading="derived", hypotheses=(_SMOOTH, _NOISE, _INACTIVITY, _EQUAL)),
    note=(
        "This reading drops Assumption 2 and has equal long-run weights, as in the derived "
        "reading of Theorem 1. Our copy of the text has no proof."
    ),
)


def _with_period(setting: Setting, period: int) -> Setting:
    fedar_of(setting)  # refuses other algorithms, which the remarks are not about
    return Instance(staggered(period)).convex(setting.rounds)


def _with_gap(setting: Setting, gap: int) -> Setting:
    """Return a setting with absences of ``gap`` rounds and the mean of tau kept at 1/2."""
    fedar_of(setting)
    period = gap * (gap + 1)
    return Instance(staggered(period, active=period - gap)).convex(setting.rounds)


def _with_clients(setting: Setting, count: int) -> Setting:
    fedar_of(setting)
    optima = tuple(-3.0 if i % 2 else 3.0 for i in range(count))
    cycles = staggered(4, n_clients=count)
    return Instance(cycles, optima=optima, sigma=setting.problem.sigma).convex(setting.rounds)


def _with_growth(setting: Setting, thousandths: int) -> Setting:
    fedar = replace(fedar_of(setting), weight=CappedLinear(thousandths / 1000, 2.0))
    algorithm = replace(setting.algorithm, algorithm=fedar)  # type: ignore[type-var]
    return replace(setting, algorithm=algorithm)


def _with_distance(setting: Setting, times: int) -> Setting:
    fedar_of(setting)
    x_star = setting.problem.x_star
    return replace(setting, x0=x_star + times * (setting.x0 - x_star))


def _with_noise(setting: Setting, times: int) -> Setting:
    fedar_of(setting)
    problem = replace(setting.problem, sigma=times / 10)  # type: ignore[type-var]
    return replace(setting, problem=problem)


def _grid(*values: int) -> Callable[[Setting], tuple[int, ...]]:
    return lambda setting: values


_remark = partial(DirectionClaim, theorem=_BOUND_1, kind=StatementKind.REMARK)

AVERAGE_INACTIVITY = _remark(
    id="fedar/average-inactivity",
    title="The error grows with the average inactivity",
    source=f"{_PAPER}, Remark 1 and Remark 2",
    axes=(RateAxis(sp.Symbol("P"), tau_mean, _grid(1, 2, 4, 8), _with_period),),
    regimes=IN_ROTATION,
    note=(
        "The remarks say this only in words: the higher, the worse. They read it off the bound, "
        "which our copy of the text lacks. Here it is tested on the error after 150 rounds. Each "
        "of four clients is available once in P rounds, one after the other."
    ),
)

MAXIMUM_INACTIVITY = _remark(
    id="fedar/maximum-inactivity",
    title="The error grows with the maximum inactivity",
    source=f"{_PAPER}, Remark 1",
    axes=(RateAxis(tau_max, tau_max, _grid(1, 2, 4, 8), _with_gap),),
    regimes=IN_ROTATION,
    note=(
        "The remark says this only in words: long absences of most clients do harm. Here the "
        "average inactivity is kept fixed, with absences of tau_max rounds in cycles of tau_max "
        "(tau_max + 1) rounds."
    ),
)

NUMBER_OF_CLIENTS = _remark(
    id="fedar/number-of-clients",
    title="The error grows with the number of clients",
    source=f"{_PAPER}, Remark 2",
    axes=(RateAxis(N, N, _grid(2, 4, 8, 16), _with_clients),),
    regimes=OF_CLIENTS,
    note=(
        "The remark says this only in words: with more clients, more rounds are needed. The paper "
        "reads this off the bound, which our copy of the text lacks. Here, the error itself falls "
        "as the number of clients grows. The clients differ only in which of two optima they "
        "have, and each is available every fourth round. The error is taken after 150 rounds."
    ),
)

WEIGHT = _remark(
    id="fedar/weight",
    title="The error grows with psi",
    source=f"{_PAPER}, Remark 1",
    axes=(RateAxis(growth, growth, _grid(0, 10, 50, 200), _with_growth),),
    regimes=OF_PSI,
    note=(
        "The remark says this only in words: if psi is too large, inactive clients dominate. "
        "Otherwise, the remark calls the effect of psi negligible, which is not true for our psi "
        "(see fedar/1). The growth of psi is given in thousandths per round."
    ),
)


INITIAL_ERROR = _remark(
    id="fedar/initial-error",
    title="The mean squared gradient grows with the initial error",
    source=f"{_PAPER}, Remark 2",
    theorem=_BOUND_2,
    axes=(RateAxis(F_0, F_0, _grid(1, 2, 4, 8), _with_distance),),
    regimes=THEOREM_2_REGIMES,
    note=(
        "The remark names what 'mainly influences' the dominant term of a bound that our copy of "
        "the text lacks. Here it is tested on the mean squared gradient, with initial models 1, "
        "2, 4 and 8 times as far from w*. Two more sentences cannot be checked. One says that the "
        "effect of psi is 'not significant' in comparison, but gives no number. The other says "
        "that a critical tau_max 'must exist', but is about (6), which our copy lacks."
    ),
)

VARIANCE = replace(
    INITIAL_ERROR,
    id="fedar/variance",
    title="The mean squared gradient grows with the variance bound",
    axes=(RateAxis(sigma, sigma, _grid(1, 2, 4, 8), _with_noise),),
    note=(
        "The remark names the variance bound together with the initial error. The clients' "
        "gradient noise is 0.1, 0.2, 0.4 and 0.8; all else stays the same."
    ),
)


def _chance_of_failure(setting: Setting) -> tuple[float, float]:
    limits = np.asarray(latest(fedar_of(setting).cutoff, np.arange(1.0, setting.rounds + 1)))
    value = chance_of_longer_absence(setting.participation, limits, setting.rounds)
    if is_exact(setting.x0):
        return value, 0.0
    return float(value), 4 * setting.rounds**2 * float(np.finfo(np.float64).eps) * value


def _of_fedar(setting: Setting) -> Setting:
    fedar_of(setting)
    return setting


ASSUMPTION_7 = PointClaim(
    id="fedar/assumption-7",
    title="Bounded inactivity holds, with probability one",
    source=f"{_PAPER}, Assumption 7, and Section 6.1 for availability",
    quantity=PointQuantity(
        _chance_of_failure,
        "P(tau_{i,t} > nu for some client i and round t <= T)",
        PURE,
        certified="chance_of_absence",
    ),
    bound=sp.Integer(0),
    hypotheses=(
        Hypothesis("a finite bound", sp.Lt(nu, sp.oo, evaluate=False), "Assumption 7"),
        Hypothesis(
            "the bound on inactivity is that of the paper (our copy of the text lacks the formula)",
            sp.Le(nu, nu_of_paper, evaluate=False),
            "Assumption 7",
            is_known=False,
        ),
    ),
    domain=_of_fedar,
    symbols=(N, T, chance),
    regimes=ASSUMPTION_7_REGIMES,
    kind=StatementKind.ASSUMPTION,
    note=(
        "The paper assumes this and does not claim it, and our copy of the text lacks the "
        "formula. So there is nothing to confirm or refute. See the reading 'bounded absence'."
    ),
)

ASSUMPTION_7_BOUNDED = replace(
    ASSUMPTION_7,
    reading="bounded absence",
    hypotheses=ASSUMPTION_7.hypotheses[:1],
    note=(
        "Our copy of the text lacks the formula, so this is our own wording: no absence exceeds "
        "nu. We check whether the paper's own availability satisfies it. The paper bounds "
        "inactivity in its theory and draws availability independently in its experiments. The "
        "paper does not say that the two agree, and they do not: for p < 1, the probability that "
        "a given bound is exceeded tends to 1 as T grows."
    ),
)

ASSUMPTION_7_DERIVED = replace(
    ASSUMPTION_7_BOUNDED,
    reading="derived",
    hypotheses=(
        *ASSUMPTION_7_BOUNDED.hypotheses,
        Hypothesis("a schedule, not chance", sp.Eq(chance, 0, evaluate=False), "Assumption 7"),
        Hypothesis(
            "a bound that the schedule keeps", sp.Le(longest, nu, evaluate=False), "Assumption 7"
        ),
    ),
    note=(
        "Every run stays within a bound if absences are bounded by construction: with cycles, "
        "with traces, or with all clients in every round. With independent clients, only a bound "
        "that grows with t can hold for ever, and only with a probability below one."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    THEOREM_1,
    THEOREM_1_DERIVED,
    THEOREM_2,
    THEOREM_2_DERIVED,
    AVERAGE_INACTIVITY,
    MAXIMUM_INACTIVITY,
    NUMBER_OF_CLIENTS,
    WEIGHT,
    INITIAL_ERROR,
    VARIANCE,
    ASSUMPTION_7,
    replace(
        ASSUMPTION_7_BOUNDED,
        refutations=(
            Refutation(
                "Section 6.1 draws availability independently in every round, so absences can be "
                "arbitrarily long, but Theorem 2 assumes a bound on them.",
                Weight.MISSING_HYPOTHESIS,
                "scheduled availability in place of random availability",
                "derived",
                (
                    "p = 0.1, 100 rounds in a row allowed",
                    "p = 0.1, 50 rounds in a row allowed",
                    "p = 0.5, 10 rounds in a row allowed",
                    "Markov",
                ),
                ("fedar-assumption-7.json",),
                answer="This is an assumption of the theory only; the experiments go beyond it.",
            ),
        ),
    ),
    ASSUMPTION_7_DERIVED,
)

"""Where every algorithm ends up when participation is uneven: the bias of its limit.

Gradients are exact: their noise moves no mean of an affine round, and what is left to chance is
who takes part. Limits of affine algorithms are then exact (`engines.stationary`); the others are
followed along drawn paths, given which the model is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.algorithms import FedAvg
from fltheory.algorithms.contract import Algorithm
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines import Setting, stationary
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.noise import Silence
from fltheory.engines.clients.quadratic_clients import QuadraticClients
from fltheory.engines.simulation import simulate
from fltheory.long_work.progress import Progress
from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    MarkovOnOff,
    Participation,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.problems import QuadraticProblem
from fltheory.validation import FloatArray

AVAILABILITY = (0.9, 0.7, 0.5, 0.3, 0.1)
CORRELATION = 0.8
PERIOD = 10
WEIGHTS: Mapping[str, tuple[float, ...]] = {
    "equal": (0.2,) * 5,
    "unequal": (0.1, 0.3, 0.15, 0.4, 0.05),
}
"""Target weights alpha."""

LR, STEPS, AT_MOST = 0.05, 4, 2


class Grade(Enum):
    """What a bias rests on."""

    EXACT = "exact"
    PATHS = "paths"


@dataclass(frozen=True)
class Bias:
    """``||lim E x_r - x*||``.

    Attributes
    ----------
    size : float
    error : float
        A bound on the rounding error where exact; the standard error of the mean's distance to
        the limit where paths were drawn, 0 if there is only one.
    grade : Grade
    """

    size: float
    error: float
    grade: Grade


@dataclass(frozen=True)
class Effort:
    """How paths are drawn where no exact limit is at hand.

    Parameters
    ----------
    paths : int
        Sequences of participants.
    rounds : int
        The model is averaged over the second half of them, an even number of periods.

    Raises
    ------
    ValueError
        For fewer than 2 paths or ``rounds`` that are not a multiple of 40.
    """

    paths: int = 400
    _: KW_ONLY
    rounds: int = 400

    def __post_init__(self) -> None:
        validation.whole_number("paths", self.paths, at_least=2)
        rounds = validation.whole_number("rounds", self.rounds, at_least=1)
        if rounds % (4 * PERIOD):
            raise ValueError(f"rounds must be a multiple of {4 * PERIOD}, got {rounds}")


def problem(weights: Sequence[float]) -> QuadraticProblem:
    """Return five clients in the plane with Hessians of their own, drawn once."""
    rng = np.random.default_rng(6)
    turns = np.linalg.qr(rng.standard_normal((5, 2, 2)))[0]
    curvatures = rng.uniform(0.5, 2.0, (5, 2))
    hessians = np.einsum("iab,ib,icb->iac", turns, curvatures, turns)
    return QuadraticProblem(hessians, rng.standard_normal((5, 2)), target_weights=weights)


def processes() -> dict[str, Participation]:
    """Return the participation processes by name; all but the first two are uneven.

    The cycle begins anywhere, so that means are over its rounds.
    """
    p = np.array(AVAILABILITY)
    active = np.rint(PERIOD * p).astype(int)
    cycle = Cyclic([PERIOD] * p.size, 2 * np.arange(p.size), active)
    masks = np.array(list(islice((m[0] for m in cycle.masks(np.random.default_rng(0), 1)), PERIOD)))
    return {
        "everybody": Bernoulli(np.ones(p.size)),
        "uniform": UniformSubset(p.size, AT_MOST),
        "Bernoulli": Bernoulli(p),
        "Markov": MarkovOnOff(p, CORRELATION),
        "cyclic": Trace(masks),
    }


_VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "weighted-fedavg": {"FedAvg over all N": {}},
    "f3ast": {"F3AST": {"size": AT_MOST, "availability": None}},
    "fedau": {"FedAU": {"cutoff": 50}},
    "mifa": {"MIFA": {"start": "zero"}},
    "cluster-fedvarp": {"ClusterFedVARP": {"clusters": (0, 0, 1, 1, 1)}},
    "scaffold": {"SCAFFOLD I": {"option": 1}, "SCAFFOLD II": {"option": 2}},
}
"""Rows of algorithms that have others than one with the options of the table's example."""


def algorithms(alpha: Sequence[float], p: FloatArray) -> dict[str, Algorithm]:
    """Return every algorithm of the table by its row, for weights and availabilities (N,)."""
    n = p.size
    circumstances = {
        "client_lr": LR,
        "assist_lr": LR * STEPS,
        "local_steps": STEPS,
        "target_weights": alpha,
        "aggregation_weights": (1 / n,) * n,
        "availability": tuple(p.tolist()),
        "correlation": CORRELATION,
    }
    return {
        row: listed.among(circumstances, **options)
        for name, listed in ALGORITHMS.items()
        for row, options in _VARIANTS.get(name, {listed.title: listed.example(n)}).items()
    }


@dataclass(frozen=True)
class Cell:
    """An algorithm under a process, with target weights; each by name."""

    algorithm: str
    process: str
    weights: str
    bias: Bias


def limit_bias(
    algorithm: Algorithm, quadratic: QuadraticProblem, participation: Participation, effort: Effort
) -> Bias:
    """Return the bias of an algorithm's limit, exact where its rounds are affine and forget."""
    try:
        limit = stationary(Setting(algorithm, quadratic, participation, 1, quadratic.x_star))
    except NotAffineError:
        return _bias_over_paths(algorithm, quadratic, participation, effort)
    if not limit.converges:
        # FedAR's count of rounds has no limit, though its model has.
        return _bias_over_paths(algorithm, quadratic, participation, effort)
    return Bias(limit.bias, limit.rounding_error["bias"], Grade.EXACT)


def _bias_over_paths(
    algorithm: Algorithm, quadratic: QuadraticProblem, participation: Participation, effort: Effort
) -> Bias:
    """Average late models over paths: given who takes part, and without noise, they are numbers."""
    certain = participation.fixed_size == participation.n_clients
    paths = 1 if certain else effort.paths
    means = late_means(algorithm, quadratic, participation, paths, effort.rounds)
    offset = means.mean(axis=0) - quadratic.x_star
    spread = float(means.var(axis=0, ddof=1).sum()) if paths > 1 else 0.0
    return Bias(float(np.linalg.norm(offset)), float(np.sqrt(spread / paths)), Grade.PATHS)


def late_means(
    algorithm: Algorithm,
    quadratic: QuadraticProblem,
    participation: Participation,
    paths: int,
    rounds: int,
) -> FloatArray:
    """Return each path's mean model over the second half of the rounds, (paths, d).

    The model of a path is exact: gradients have no noise.
    """
    states = simulate(
        algorithm,
        QuadraticClients(quadratic, Silence()),
        participation,
        np.tile(quadratic.x_star, (paths, 1)),
        participation_rng=np.random.default_rng(1),
        branch_rng=np.random.default_rng(2),
    )
    late = islice((state["x"] for state, _ in states), rounds // 2, rounds)
    return np.asarray(sum(late) / (rounds - rounds // 2))


def bias_table(effort: Effort | None = None, *, progress: Progress | None = None) -> Iterator[Cell]:
    """Yield the bias of every algorithm, process and weights; weights vary fastest.

    Parameters
    ----------
    effort : Effort, optional
        Where paths are drawn.
    progress : callable, optional
        Called with (cells done, cells, name of the last).
    """
    tasks = list(_tasks())
    for done, (names, task) in enumerate(tasks, start=1):
        cell = Cell(*names, limit_bias(*task, effort or Effort()))
        if progress is not None:
            progress(done, len(tasks), f"{cell.algorithm}, {cell.process}")
        yield cell


def _tasks() -> Iterator[
    tuple[tuple[str, str, str], tuple[Algorithm, QuadraticProblem, Participation]]
]:
    p = np.array(AVAILABILITY)
    of_size: dict[str, dict[str, Participation]] = {
        "FedAvg, at most 2 of those there": {
            "everybody": AtMost(np.ones(p.size), AT_MOST),
            "Bernoulli": AtMost(p, AT_MOST),
        },
        "FedAvg, 2 that are waited for": {
            "everybody": UniformSubset(p.size, AT_MOST),
            "Bernoulli": WaitingSubset(p, AT_MOST),
        },
    }
    names = algorithms(WEIGHTS["equal"], p)
    for name in names:
        for process, participation in processes().items():
            for weights, alpha in WEIGHTS.items():
                algorithm = algorithms(alpha, participation.marginals)[name]
                yield (name, process, weights), (algorithm, problem(alpha), participation)
    for name, by_process in of_size.items():
        for process, participation in by_process.items():
            for weights, alpha in WEIGHTS.items():
                yield (
                    (name, process, weights),
                    (FedAvg(LR, STEPS), problem(alpha), participation),
                )

"""Settings: an algorithm on a problem, with a participation process, for R rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms import AveragedIterate, Projected, WeightedFedAvg
from fltheory.algorithms.contract import Algorithm, Schedule, checked_algorithm, in_round
from fltheory.engines.affine.numbers import FLOAT64, as_float, entries, with_parameters
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.exact_or_float import is_exact, largest_norm, norm
from fltheory.participation.base import Participation
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray, shown


@dataclass(frozen=True, eq=False)
class Setting(ReadOnlyArrays):
    """An algorithm on a problem with participation, on which theorems are checked.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
    problem : Problem
    participation : Participation
    rounds : int
        R, the number of communication rounds.
    x0 : array, (d,)
        Initial model.

    Raises
    ------
    ValueError
        If the parts do not match: the numbers of clients differ, ``x0`` has the wrong shape or
        contains NaN, or there is less than one round.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.engines import exact
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> setting = Setting(FedAvg(0.5, 1), clients, UniformSubset(2, 2), rounds=2, x0=[4.0])
    >>> exact(setting).squared_distance.tolist()
    [16.0, 4.0, 1.0]
    """

    algorithm: Algorithm | Schedule
    problem: Problem
    participation: Participation
    rounds: int
    x0: FloatArray

    def __init__(
        self,
        algorithm: Algorithm | Schedule,
        problem: Problem,
        participation: Participation,
        rounds: int,
        x0: ArrayLike,
    ) -> None:
        checked_algorithm(algorithm)
        _check_part("problem", problem, "dim")
        _check_part("participation", participation, "n_clients")
        point = validation.array_of("x0", x0, problem.dim)
        check_clients(problem, participation)
        check_repeats(algorithm, participation)
        fields = {
            "algorithm": algorithm,
            "problem": problem,
            "participation": participation,
            "rounds": validation.whole_number("rounds", rounds, at_least=1),
            "x0": point,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)


def check_repeats(algorithm: Algorithm | Schedule, participation: Participation) -> None:
    """Raise ValueError if clients may be drawn twice and the algorithm does not count repeats."""
    repeats = getattr(participation, "repeats", False)
    if repeats and not getattr(algorithm, "counts_draws", False):
        raise ValueError(
            "algorithm must weight a client by how often it was drawn (counts_draws) for "
            f"{type(participation).__name__}, got {shown(algorithm)}"
        )


def _check_part(name: str, value: Any, needed: str) -> None:
    """Raise ValueError for a class, or for a value without the attribute that the part needs."""
    if isinstance(value, type) or not hasattr(value, needed):
        kind = {"problem": "a problem", "participation": "who takes part"}[name]
        raise ValueError(f"{name} must be {kind}, got {shown(value)}")


def check_clients(problem: Problem, participation: Participation) -> None:
    """Raise ValueError unless problem and participation have the same number of clients."""
    if participation.n_clients != problem.n_clients:
        raise ValueError(
            f"participation must be over the problem's {problem.n_clients} clients, "
            f"got one over {participation.n_clients}"
        )


def in_float64(setting: Setting) -> Setting:
    """Return the setting with floats where its numbers are fractions or balls.

    Engines in float64 start with this, because in NumPy a fraction times an array is an array of
    objects.
    """
    algorithm = with_parameters(setting.algorithm, FLOAT64)
    problem = setting.problem
    if isinstance(problem, QuadraticProblem) and is_exact(problem.optima):
        weights, shares = problem.target_weights, problem.noise_shares
        floats = QuadraticProblem(
            entries(FLOAT64, problem.hessians),
            entries(FLOAT64, problem.optima),
            sigma=as_float(problem.sigma),
            server_sigma=as_float(problem.server_sigma),
            target_weights=None if weights is None else entries(FLOAT64, weights),
            noise_shares=None if shares is None else entries(FLOAT64, shares),
        )
        who = with_parameters(setting.participation, FLOAT64)
        return Setting(algorithm, floats, who, setting.rounds, entries(FLOAT64, setting.x0))
    return setting if algorithm is setting.algorithm else replace(setting, algorithm=algorithm)


def without_idle_projection(
    setting: Setting,
    problem: QuadraticProblem,
    judged_on: Callable[[Setting], Setting] = lambda setting: setting,
) -> Setting:
    """Return the setting without a projection that never moves a model, so that rounds are affine.

    On quadratic clients with exact gradients and steps ``eta <= 1/L``, E local steps move x by
    ``-M_k (x - c_k)`` with the eigenvalues of M_k between ``theta = 1 - (1 - eta mu)^E`` and ``1 -
    (1 - eta L)^E <= kappa theta``. With ``s = server_lr sum_{k in A} q_k`` and ``s (1 - (1 - eta
    L)^E) <= 1``, a round takes a distance R from any centre to at most ``(1 - s theta) R + s kappa
    theta max_k ||c_k - centre||``, so the model stays within radius ``kappa max_k ||c_k -
    centre||``.

    Parameters
    ----------
    setting : Setting
    problem : QuadraticProblem
        The setting's problem.
    judged_on : callable, optional
        Returns the setting whose numbers decide this, for instance the exact twin.

    Raises
    ------
    NotAffineError
        If a projection may move a model.
    """
    averaged = setting.algorithm
    projected = averaged.algorithm if isinstance(averaged, AveragedIterate) else averaged
    if not isinstance(projected, Projected):
        return setting
    if not _stays_in(judged_on(setting)):
        raise NotAffineError(
            "for exact moments the projection must provably never move a model (exact "
            "gradients, weighted averaging, small steps and a large ball): use "
            "engines.monte_carlo"
        )
    plain = projected.algorithm
    if isinstance(averaged, AveragedIterate):
        # The default weights depend on the averaged algorithm.
        plain = replace(averaged, algorithm=plain, weights=averaged.used_weights)
    return Setting(plain, problem, setting.participation, setting.rounds, setting.x0)


def _stays_in(setting: Setting) -> bool:
    averaged: Any = setting.algorithm
    wrapped = isinstance(averaged, AveragedIterate)
    projected: Any = averaged.algorithm if wrapped else averaged
    problem: Any = setting.problem
    centre, radius = projected.onto.centre, projected.onto.radius
    return bool(
        problem.sigma == 0
        and norm(setting.x0 - centre) <= radius
        and problem.L / problem.mu * largest_norm(problem.optima - centre) <= radius
        and all(
            _contracts(in_round(projected.algorithm, t), problem.L)
            for t in range(1, setting.rounds + 1)
        )
    )


def _contracts(algorithm: Algorithm, smoothness: float) -> bool:
    if not isinstance(algorithm, WeightedFedAvg):
        return False
    step = algorithm.client_lr * smoothness
    if step > 1:
        return False
    total = algorithm.server_lr * sum(algorithm.aggregation_weights)
    return bool(total * (1 - (1 - step) ** algorithm.local_steps) <= 1)

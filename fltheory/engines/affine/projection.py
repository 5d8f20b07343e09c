"""Where a projection provably never moves a model, so that rounds stay affine.

On quadratic clients with exact gradients and steps ``eta <= 1/L``, E local steps move x by
``-M_k (x - c_k)`` with the eigenvalues of M_k between ``theta = 1 - (1 - eta mu)^E`` and
``1 - (1 - eta L)^E <= kappa theta``. With ``s = server_lr sum_{k in A} q_k`` and ``s (1 - (1 -
eta L)^E) <= 1``, a round takes a distance R from any centre to at most ``(1 - s theta) R + s
kappa theta max_k ||c_k - centre||``: a radius of ``kappa max_k ||c_k - centre||`` is not left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fltheory.algorithms import AveragedIterate, Projected, WeightedFedAvg
from fltheory.algorithms.contract import Algorithm, in_round
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.setting import Setting
from fltheory.exact_or_float import largest_norm, norm
from fltheory.problems.quadratic_problem import QuadraticProblem


def without_idle_projection(
    setting: Setting,
    problem: QuadraticProblem,
    judged_on: Callable[[Setting], Setting] = lambda setting: setting,
) -> Setting:
    """Return the setting with no projection where none ever moves a model.

    Parameters
    ----------
    setting : Setting
    problem : QuadraticProblem
        The setting's own.
    judged_on : callable, optional
        Gives the setting whose numbers decide it, in exact numbers perhaps.

    Raises
    ------
    NotAffineError
        Where a projection may move one.
    """
    averaged = setting.algorithm
    projected = averaged.algorithm if isinstance(averaged, AveragedIterate) else averaged
    if not isinstance(projected, Projected):
        return setting
    if not _stays_in(judged_on(setting)):
        raise NotAffineError(
            "the projection must provably never move a model for exact moments (exact gradients, "
            "weighted averaging, small steps and a large ball): use engines.monte_carlo"
        )
    plain = projected.algorithm
    if isinstance(averaged, AveragedIterate):
        # What the weights are by default depends on what is averaged.
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

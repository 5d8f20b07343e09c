"""Where a projection provably never moves a model, so that rounds stay affine.

On quadratic clients with exact gradients and steps ``eta <= 1/L``, E local steps move x by
``-M_k (x - c_k)`` with the eigenvalues of M_k between ``theta = 1 - (1 - eta mu)^E`` and
``1 - (1 - eta L)^E <= kappa theta``. With ``s = server_lr sum_{k in A} q_k`` and ``s (1 - (1 -
eta L)^E) <= 1``, a round takes a distance R from any centre to at most ``(1 - s theta) R + s
kappa theta max_k ||c_k - centre||``: a radius of ``kappa max_k ||c_k - centre||`` is not left.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fltheory.algorithms import AveragedIterate, Projected, WeightedFedAvg
from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.engines.probing import NotAffineError
from fltheory.problems.ball import Ball
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray


def without_idle_projection(
    algorithm: Algorithm | Schedule, problem: QuadraticProblem, rounds: int, x0: FloatArray
) -> Algorithm | Schedule:
    """Return the algorithm with no projection where none ever moves a model.

    Raises
    ------
    NotAffineError
        Where a projection may move one.
    """
    if isinstance(algorithm, AveragedIterate):
        plain = without_idle_projection(algorithm.algorithm, problem, rounds, x0)
        return replace(algorithm, algorithm=plain)
    if not isinstance(algorithm, Projected):
        return algorithm
    inner = algorithm.algorithm
    if not _stays_in(algorithm.onto, inner, problem, rounds, x0):
        raise NotAffineError(
            "the projection must provably never move a model for exact moments (exact gradients, "
            "weighted averaging, small steps and a large ball): use engines.monte_carlo"
        )
    return inner


def _stays_in(
    ball: Ball,
    algorithm: Algorithm | Schedule,
    problem: QuadraticProblem,
    rounds: int,
    x0: FloatArray,
) -> bool:
    in_rounds = range(1, rounds + 1) if isinstance(algorithm, Schedule) else (1,)
    return (
        problem.sigma == 0
        and float(np.linalg.norm(x0 - ball.centre)) <= ball.radius
        and problem.L / problem.mu * farthest_optimum(ball, problem) <= ball.radius
        and all(_contracts(in_round(algorithm, t), problem.L) for t in in_rounds)
    )


def farthest_optimum(ball: Ball, problem: QuadraticProblem) -> float:
    """Return ``max_k ||c_k - centre||``."""
    return float(np.linalg.norm(problem.optima - ball.centre, axis=1).max())


def _contracts(algorithm: Algorithm, smoothness: float) -> bool:
    if not isinstance(algorithm, WeightedFedAvg):
        return False
    step = algorithm.client_lr * smoothness
    if step > 1:
        return False
    total = algorithm.server_lr * sum(algorithm.aggregation_weights)
    return bool(total * (1 - (1 - step) ** algorithm.local_steps) <= 1)

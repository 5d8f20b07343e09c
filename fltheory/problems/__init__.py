"""Analytic client losses with exact gradients, optima and constants."""

from fltheory.problems.ball import Ball
from fltheory.problems.base import Problem
from fltheory.problems.design import nonconvex, quadratic
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.problems.regression.logistic_problem import LogisticProblem
from fltheory.problems.regression.multinomial_problem import MultinomialProblem
from fltheory.problems.skewed import SkewedProblem
from fltheory.problems.tilted import LogCoshProblem, RippledProblem

__all__ = [
    "Ball",
    "LogCoshProblem",
    "LogisticProblem",
    "MultinomialProblem",
    "Problem",
    "QuadraticProblem",
    "RippledProblem",
    "SkewedProblem",
    "nonconvex",
    "quadratic",
]

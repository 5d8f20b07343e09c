"""Advice from a log of who was online: the algorithm to use, and its distance from the optimum."""

from fltheory.advice.advice import Advice, advise
from fltheory.advice.algorithm_advice import AlgorithmAdvice, Bias
from fltheory.advice.gradients_file import read_gradients
from fltheory.advice.measured_clients import measure_clients

__all__ = [
    "Advice",
    "AlgorithmAdvice",
    "Bias",
    "advise",
    "measure_clients",
    "read_gradients",
]

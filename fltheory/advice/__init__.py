"""From a log of who was online: which algorithm to use, and how far it ends from the optimum."""

from fltheory.advice.advice import Advice, AlgorithmAdvice, Bias, advise

__all__ = ["Advice", "AlgorithmAdvice", "Bias", "advise"]

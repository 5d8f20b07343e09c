"""From a log of who was online to an answer: which algorithm, and how far it ends from the optimum."""

from fltheory.advice.advice import Advice, AlgorithmAdvice, Bias, advise

__all__ = ["Advice", "AlgorithmAdvice", "Bias", "advise"]

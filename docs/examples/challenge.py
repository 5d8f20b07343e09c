"""Run a learner through Theorem 1's construction: the exact law of its error.

A training sample is c samples at x_1 and mn - c at x_2, so there are only mn + 1 of them a target.
The learner is fitted on each, and its errors are weighted with the exact probabilities, which are
whole numbers over one denominator.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.learnability.binomial import over_power
from fltheory.learnability.impossibility import Impossibility, impossibility, split_clients

POINTS = ((0.0,), (1.0,))
TARGETS: tuple[tuple[int, int], tuple[int, int]] = ((1, 1), (1, -1))
"""Labels of x_1 and x_2 under f_1 and f_2."""
PAPERS_PROBABILITY = Fraction(1, 20)


@dataclass(frozen=True)
class Challenge:
    """What became of a learner.

    Attributes
    ----------
    construction : Impossibility
    laws : tuple of mappings, one a target
        Probability of each value of the error; they add up to ``1 - remainder``.
    remainder : Fraction
        Probability of the training samples that were left out.
    one_class_refused : bool
        Whether the learner raised ValueError on a sample with a single label; what it is then
        taken to predict is that label, everywhere.
    """

    construction: Impossibility
    laws: tuple[Mapping[Fraction, Fraction], Mapping[Fraction, Fraction]]
    remainder: Fraction
    one_class_refused: bool

    @property
    def failure_probabilities(self) -> tuple[Fraction, Fraction]:
        """``P[error > epsilon]`` under either target; left-out samples count as no failure."""
        first, second = (self._exceeding(law) for law in self.laws)
        return first, second

    @property
    def worst_failure_probability(self) -> Fraction:
        """The larger of the two."""
        return max(self.failure_probabilities)

    @property
    def fails(self) -> bool:
        """Whether the learner fails as Theorem 1 says it must: with probability above 1/20."""
        return self.worst_failure_probability > PAPERS_PROBABILITY

    def _exceeding(self, law: Mapping[Fraction, Fraction]) -> Fraction:
        above = (chance for error, chance in law.items() if error > self.construction.epsilon)
        return sum(above, Fraction(0))


def challenge(
    learner: Any,
    M: int,
    n: int,
    m: int,
    *,
    by_clients: bool = False,
    samples: int = 200,
    repeats: int = 1,
) -> Challenge:
    """Return the law of a learner's error on the two-point construction, for both targets.

    Parameters
    ----------
    learner : object
        With ``fit(X, y)`` and ``predict(X)``, as scikit-learn's; X is (mn, 1), y of +1 and -1. It
        is copied before every fit.
    M, n, m : int
        Clients, samples of each, clients who take part.
    by_clients : bool
        Choose clients, who hold one point each and of whom those with x_2 are shut out, in place of
        samples; see `split_clients`.
    samples : int
        Fit at most so many different training samples; the likeliest are taken, the hidden one
        always.
    repeats : int
        Fits of each; more than one for a learner that tosses coins, whose law is then that of a
        fit drawn among them.

    Raises
    ------
    ValueError
        For what is no learner, predictions other than the labels, or numbers that make no system.

    Notes
    -----
    The law is exact for a learner that is deterministic and does not care for the order of samples.

    Examples
    --------
    A learner that answers +1 whatever it is shown, against ten clients of whom five take part:

    >>> class Always:
    ...     def fit(self, X, y): ...
    ...     def predict(self, X): return [1] * len(X)
    >>> found = challenge(Always(), M=10, n=2, m=5, samples=20)
    >>> len(found.laws)
    2
    """
    check_learner(learner)
    validation.whole_number("samples", samples, at_least=1)
    validation.whole_number("repeats", repeats, at_least=1)
    if by_clients:
        construction, weights = split_clients(M, n, m), _Weights({m * n: 1}, 1, 1)
    else:
        construction = impossibility(M, n, m)
        weights = _likeliest(construction, samples)
    trainer = _Trainer(learner, m * n, repeats)
    first, second = (_law(construction, weights, trainer, target) for target in TARGETS)
    return Challenge(construction, (first, second), weights.remainder, trainer.refused)


def check_learner(learner: Any) -> None:
    """Raise ValueError unless the learner has methods ``fit`` and ``predict``."""
    missing = [name for name in ("fit", "predict") if not callable(getattr(learner, name, None))]
    if missing:
        raise ValueError(
            f"learner must have methods fit and predict, got {learner!r}, "
            f"without {' and '.join(missing)}"
        )


@dataclass(frozen=True)
class _Weights:
    """Chances of training samples, by samples at x_1, as whole numbers over ``base**exponent``."""

    by_common: Mapping[int, int]
    base: int
    exponent: int

    def fraction(self, weight: int) -> Fraction:
        """Return a weight as a probability."""
        return over_power(weight, self.base, self.exponent, self.base**self.exponent)

    @property
    def remainder(self) -> Fraction:
        """What the weights lack to one."""
        return self.fraction(self.base**self.exponent - sum(self.by_common.values()))


def _likeliest(construction: Impossibility, samples: int) -> _Weights:
    """Return the chances of the hidden sample and of those nearest to it."""
    draws = construction.M * construction.n
    selected = construction.m * construction.n
    rare, hidden = construction.rare_probability, construction.hidden_probability
    scale = rare.denominator**draws // hidden.denominator
    fewest = max(0, selected - samples + 1)
    seen = binomial_numerators(draws, rare, draws - selected + 1, selected - fewest)
    weights = {selected: hidden.numerator * scale}
    weights |= {selected - 1 - place: weight for place, weight in enumerate(seen)}
    return _Weights(weights, rare.denominator, draws)


def binomial_numerators(n: int, p: Fraction, k: int, count: int) -> list[int]:
    """Return ``P[X = k] b^n``, ``P[X = k + 1] b^n``, ..., so many of them, with p = a/b."""
    a, c = p.numerator, p.denominator - p.numerator
    term = math.comb(n, k) * a**k * c ** (n - k)
    found = []
    for j in range(k, k + count):
        found.append(term)
        term = term * ((n - j) * a) // ((j + 1) * c)
    return found


class _Trainer:
    """Fits copies of a learner, and remembers whether one refused a single label."""

    def __init__(self, learner: Any, size: int, repeats: int) -> None:
        self.learner, self.size, self.repeats = learner, size, repeats
        self.refused = False
        self._hidden: list[tuple[int, int]] | None = None

    def predictions(self, common: int, target: tuple[int, int]) -> Sequence[tuple[int, int]]:
        """Return the predicted labels of x_1 and x_2, fit by fit.

        A hidden sample is the same under both targets, and so are its fits.
        """
        if common < self.size:
            return [self._fitted(common, target) for _ in range(self.repeats)]
        if self._hidden is None:
            self._hidden = [self._fitted(common, target) for _ in range(self.repeats)]
        return self._hidden

    def _fitted(self, common: int, target: tuple[int, int]) -> tuple[int, int]:
        rare = self.size - common
        points = np.repeat(np.array(POINTS), [common, rare], axis=0)
        labels = np.repeat(np.array(target), [common, rare])
        learner = copy.deepcopy(self.learner)
        try:
            learner.fit(points, labels)
        except ValueError:
            if len(set(labels.tolist())) > 1:
                raise
            self.refused = True
            return int(labels[0]), int(labels[0])
        return _labels(learner.predict(np.array(POINTS)))


def _labels(predicted: Any) -> tuple[int, int]:
    values = np.asarray(predicted)
    if values.shape != (2,) or not np.isin(values, (-1, 1)).all():
        raise ValueError(
            f"learner must predict one label, +1 or -1, for each of two points, got {predicted!r}"
        )
    return int(values[0]), int(values[1])


def _law(
    construction: Impossibility,
    weights: _Weights,
    trainer: _Trainer,
    target: tuple[int, int],
) -> dict[Fraction, Fraction]:
    masses = (1 - construction.rare_probability, construction.rare_probability)
    law: dict[Fraction, int] = {}
    for common, weight in weights.by_common.items():
        for predicted in trainer.predictions(common, target):
            wrong = (mass for mass, p, f in zip(masses, predicted, target, strict=True) if p != f)
            error = sum(wrong, Fraction(0))
            law[error] = law.get(error, 0) + weight
    return {error: weights.fraction(total) / trainer.repeats for error, total in law.items()}

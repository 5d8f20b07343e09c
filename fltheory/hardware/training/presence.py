"""The kinds of participation that an experiment may ask for, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np

from fltheory import validation
from fltheory.participation import AtMost, Bernoulli, MarkovOnOff, Participation, UniformSubset
from fltheory.participation.bernoulli import correlated_availability
from fltheory.participation.cyclic import fedau_cycles
from fltheory.validation import FloatArray


class Presence(Protocol):
    """A way to draw who takes part."""

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process for clients with these shares of the classes, (N, classes)."""
        ...


@dataclass(frozen=True)
class Uniform:
    """``size`` clients a round; the first ``excluded`` never: SA-FL's m and s.

    Clients are dealt their images at random, so the first are as good as any.
    """

    size: int
    excluded: int = 0

    def __post_init__(self) -> None:
        # Of a negative number there is no range, and nobody would be excluded.
        validation.whole_number("excluded", self.excluded, at_least=0)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        excluded = range(min(self.excluded, len(class_shares)))
        return UniformSubset(len(class_shares), self.size, excluded=tuple(excluded))


@dataclass(frozen=True)
class UniformAvailability:
    """Independent clients, each available with a probability uniform in [least, 1]: FedAR's.

    With ``most``, so many of those available are drawn: its FedAvg (S = 50).
    """

    least: float
    _: KW_ONLY
    most: int | None = None

    def __post_init__(self) -> None:
        validation.probability("least", self.least)
        if self.most is not None:
            validation.whole_number("most", self.most, at_least=1)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        if self.most is not None and self.most > len(class_shares):
            raise ValueError(
                f"most must be at most the {len(class_shares)} clients, got {self.most}"
            )
        p = rng.uniform(self.least, 1.0, len(class_shares))
        return Bernoulli(p) if self.most is None else AtMost(p, self.most)


@dataclass(frozen=True)
class ByClassShares:
    """Availability that goes with the data: FedAU's, in one of its three patterns.

    ``pattern`` is ``"bernoulli"``, ``"markov"`` or ``"cyclic"``. A Markov client that is away
    comes with probability ``transition`` (0.05 in the authors' code), where its availability
    allows that; a cycle has ``period`` rounds (100).
    """

    pattern: str
    mean: float
    least: float
    concentration: float
    _: KW_ONLY
    transition: float = 0.05
    period: int = 100

    def __post_init__(self) -> None:
        validation.one_of("pattern", self.pattern, ("bernoulli", "markov", "cyclic"))
        validation.probability("transition", self.transition)
        validation.whole_number("period", self.period, at_least=1)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        p = correlated_availability(
            class_shares, rng, mean=self.mean, least=self.least, concentration=self.concentration
        )
        if self.pattern == "bernoulli":
            return Bernoulli(p)
        if self.pattern == "cyclic":
            return fedau_cycles(p, self.period, rng)
        # Its second eigenvalue is 1 - P(comes) - P(goes), P(goes) = P(comes) (1 - p) / p <= 1.
        comes = np.minimum(self.transition, np.divide(p, 1 - p, where=p < 1, out=np.ones_like(p)))
        return MarkovOnOff(p, np.where(p < 1, 1 - comes / p, 0.0))


@dataclass(frozen=True)
class FourClasses:
    """CA-Fed's clients (Section V-A): more or less available, correlated or weakly so.

    In each half of the clients a random half is available with probability 1/2 + g, the rest
    with 1/2 - g; of each such class a random half has lambda = nu, the rest normal lambda with
    standard deviation epsilon. The number of clients must be a multiple of 8.
    """

    g: float
    nu: float
    epsilon: float

    def __post_init__(self) -> None:
        validation.real_number("g", self.g, "in [0, 1/2)", lambda g: 0 <= g < 0.5)
        validation.real_number("nu", self.nu, "in (-1, 1)", lambda nu: -1 < nu < 1)
        validation.nonnegative("epsilon", self.epsilon)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        n_clients = len(class_shares)
        if n_clients % 8:
            raise ValueError(f"n_clients must be a multiple of 8 for four classes, got {n_clients}")
        kinds = np.array([[True, True], [True, False], [False, True], [False, False]])
        half = np.repeat(kinds, n_clients // 8, axis=0)
        more, correlated = np.concatenate([rng.permutation(half), rng.permutation(half)]).T
        weak = self.epsilon * rng.standard_normal(n_clients)
        pi = np.where(more, 0.5 + self.g, 0.5 - self.g)
        return MarkovOnOff(pi, np.where(correlated, self.nu, weak))


PRESENCES: Mapping[str, Callable[..., Presence]] = {
    "uniform": Uniform,
    "uniform availability": UniformAvailability,
    "by class shares": ByClassShares,
    "four classes": FourClasses,
}

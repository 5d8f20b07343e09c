"""Settings for checking statements about PAC learnability."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from fltheory import validation
from fltheory.learnability.complexity import cited_complexity
from fltheory.learnability.impossibility import checked_system
from fltheory.learnability.populations import (
    Population,
    Rational,
    Source,
    as_population,
    mixture,
    rational,
    uniform,
)


@dataclass(frozen=True)
class FederatedSystem:
    """A system of M clients with n samples each, of whom m take part, and a pair of concepts.

    Attributes
    ----------
    M, n, m : int
    agree_somewhere : bool
        Whether the two concepts agree at x_1; they differ at x_2. If two concepts differ
        everywhere, any sample distinguishes them.

    Raises
    ------
    ValueError
        Unless omega = m/M is inside (0, 1) and n is at least 1.

    Examples
    --------
    >>> FederatedSystem(M=10, n=100, m=5)
    FederatedSystem(M=10, n=100, m=5, agree_somewhere=True)
    """

    M: int
    n: int
    m: int
    agree_somewhere: bool = True

    def __post_init__(self) -> None:
        checked_system(self.M, self.n, self.m)


@dataclass(frozen=True)
class UniformPair:
    """The paper's example: P is uniform on [a, b], Q on [c, d], and the target lies in both.

    Raises
    ------
    ValueError
        Unless ``a <= c < d <= b`` and the target is in [c, d].
    """

    a: Fraction
    b: Fraction
    c: Fraction
    d: Fraction
    target: Fraction

    def __init__(
        self, a: Rational, b: Rational, c: Rational, d: Rational, target: Rational
    ) -> None:
        values = {"a": a, "b": b, "c": c, "d": d, "target": target}
        for name, value in values.items():
            object.__setattr__(self, name, rational(name, value))
        if not (self.a <= self.c < self.d <= self.b and self.c <= self.target <= self.d):
            raise ValueError(
                "a, b, c, d, target must have a <= c <= target <= d <= b and c < d, got "
                f"{a}, {b}, {c}, {d}, {target}"
            )

    @cached_property
    def populations(self) -> tuple[Population, Population]:
        """P and Q."""
        return (
            as_population(Source(uniform(self.a, self.b), self.target)),
            as_population(Source(uniform(self.c, self.d), self.target)),
        )


@dataclass(frozen=True, eq=False)
class ServerAssistedSystem:
    """SA-FL on thresholds, at several sample sizes.

    Attributes
    ----------
    target : Population
        P, on which errors are measured.
    server : Population
        The distribution of the server's samples: P, or P' in Remark 2.
    clients : callable
        Takes a size and returns D, the distribution of the clients' samples.
    sizes : tuple of int
        Values of n = n_T + n_S, or of n_T, in increasing order.
    split : callable
        Takes a size and returns n_T and n_S.
    delta : float
        Probability of failure in A(n_T, delta).

    Raises
    ------
    ValueError
        If there are fewer than two sizes, or they are out of order.
    """

    target: Population
    server: Population
    clients: Callable[[int], Population]
    sizes: tuple[int, ...]
    split: Callable[[int], tuple[int, int]]
    delta: float = 0.05

    def __post_init__(self) -> None:
        if len(self.sizes) < 2 or list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"sizes must be two or more in increasing order, got {self.sizes}")

    def training(self, size: int) -> Population:
        """Return Q at a size: clients and server in proportion to their samples."""
        n_server, n_clients = self.split(size)
        share = Fraction(n_server, n_server + n_clients)
        return mixture(self.clients(size), self.server, share)

    @property
    def is_noiseless(self) -> bool:
        """Whether all labels are correct and all targets are P's."""
        sources = [
            source
            for size in self.sizes
            for part in (self.target, self.server, self.clients(size))
            for _, source in part.present
        ]
        clean = all(source.beta == 1 and source.scale == 1 for source in sources)
        return clean and len({source.target for source in sources}) == 1

    def complexity(self, size: int) -> float:
        """Return ``A(n_T, delta)`` of the class of thresholds, whose VC dimension is 1."""
        return cited_complexity(self.split(size)[0], self.delta)


@dataclass(frozen=True)
class TailCase:
    """A sample of m points of a noiseless threshold on [0, 1] with target 1/2, and a delta.

    Raises
    ------
    ValueError
        If m is below 1, or delta is outside (0, 1).
    """

    m: int
    delta: Fraction

    def __init__(self, m: int, delta: Rational) -> None:
        object.__setattr__(self, "m", m)
        object.__setattr__(self, "delta", rational("delta", delta))
        cited_complexity(m, float(self.delta))


@dataclass(frozen=True)
class PowerOfSize:
    """A number that depends on a size n as ``factor / n**exponent``.

    Raises
    ------
    ValueError
        If the exponent is outside [-30, 30], because powers of the size may then not be finite
        floats.
    """

    factor: float
    exponent: float

    def __post_init__(self) -> None:
        validation.real_number("exponent", self.exponent, "in [-30, 30]", lambda e: abs(e) <= 30)

    def __call__(self, size: int) -> float:
        """Return the number at a size."""
        return self.factor / size**self.exponent


@dataclass(frozen=True, eq=False)
class DisagreementCase:
    """Two fixed hypotheses without noise, compared on different numbers of server samples.

    Attributes
    ----------
    mass : callable
        Takes a number of samples and returns ``P(h_Q* != h_P*)``, which is also ``eps_P(h_Q*)``.
    sizes : tuple of int
        Numbers n_T of samples.
    delta : float

    Raises
    ------
    ValueError
        If a mass is outside [0, 1], or delta is outside (0, 1).
    """

    mass: Callable[[int], float]
    sizes: tuple[int, ...]
    delta: float = 0.05

    def __post_init__(self) -> None:
        masses = [self.mass(size) for size in self.sizes]
        if not all(0 <= mass <= 1 for mass in masses):
            raise ValueError(f"mass must be a probability at every size, got {masses}")
        cited_complexity(1, self.delta)


@dataclass(frozen=True)
class TailFamily:
    """Samples as in `TailCase` of several sizes m, with a delta that decreases with m.

    Attributes
    ----------
    sizes : tuple of int
        Numbers m of samples.
    delta : Fraction
        delta at m = 0.
    rate : float
        The delta at m is ``delta exp(-rate m)``.

    Raises
    ------
    ValueError
        If delta is outside (0, 1], or the rate is outside [0, log 2). The rate is limited because
        all samples are on one side with probability 2^-m, and no failure is less likely.
    """

    sizes: tuple[int, ...]
    delta: Fraction
    rate: float

    def __init__(self, sizes: tuple[int, ...], delta: Rational, rate: float) -> None:
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "delta", rational("delta", delta))
        object.__setattr__(self, "rate", rate)
        if not 0 < self.delta <= 1:
            raise ValueError(f"delta must be inside (0, 1], got {self.delta}")
        validation.real_number("rate", rate, "in [0, log 2)", lambda r: 0 <= r < math.log(2))

    def log_delta(self, m: int) -> float:
        """Return the logarithm of delta at a size, because delta itself may underflow."""
        return math.log(self.delta) - self.rate * m


LearningSetting: TypeAlias = (
    FederatedSystem | UniformPair | ServerAssistedSystem | TailCase | TailFamily | DisagreementCase
)


def exact_effort(problem: LearningSetting) -> int:
    """Return the number of samples that the exact computation counts one by one."""
    return problem.M * problem.n if isinstance(problem, FederatedSystem) else 0


# Dataclasses instead of closures, so that a search can find and change their numbers.
@dataclass(frozen=True)
class Fixed:
    """A clients' distribution that is the same at every size."""

    population: Population

    def __call__(self, size: int) -> Population:
        """Return the clients' distribution."""
        return self.population


@dataclass(frozen=True)
class ShareOfServer:
    """A split with a fixed share of samples for the server, rounded to at least one sample."""

    share: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share must be inside (0, 1), got {self.share}")

    def __call__(self, size: int) -> tuple[int, int]:
        """Return n_T and n_S."""
        n_server = max(1, round(size * self.share))
        return n_server, size - n_server


@dataclass(frozen=True)
class ServerOf:
    """A split with a fixed number of samples for the server."""

    count: int

    def __post_init__(self) -> None:
        validation.whole_number("count", self.count, at_least=0)

    def __call__(self, size: int) -> tuple[int, int]:
        """Return n_T and n_S."""
        return self.count, size - self.count


@dataclass(frozen=True)
class ClientsPerServer:
    """A split in which the size is n_T, and n_S is ``ratio`` times as large."""

    ratio: int

    def __post_init__(self) -> None:
        validation.whole_number("ratio", self.ratio, at_least=0)

    def __call__(self, size: int) -> tuple[int, int]:
        """Return n_T and n_S."""
        return size, self.ratio * size

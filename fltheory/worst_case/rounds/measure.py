"""Measures of a round's progress: the squared distance to x*, the gap of F, or its descent.

Definitions
-----------
*Distance*: ``E||x+ - x*||^2 <= rate ||x - x*||^2 + residual``, for convex clients. *Gap*:
``E||x+ - x*||^2 <= rate ||x - x*||^2 - gap (F(x) - F*) + residual``, at a given rate. Its sum over
rounds bounds the mean, or a weighted mean, of ``E F(x_r) - F*``. *Descent*:
``E F(x+) <= F(x) - decrease ||grad F(x)||^2 + residual``, for clients that need not be convex. F is
L-smooth, so ``F(x - p) <= F(x) - <grad F(x), p> + L/2 ||p||^2``, and with L = 1 the right-hand side
is ``F(x) - 1/2 (||grad F(x)||^2 - ||grad F(x) - p||^2)``: so half the squared distance from grad
F(x) takes the place of the squared distance from x*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from fltheory.worst_case.checker import one_round as checker
from fltheory.worst_case.rounds.client_class import ClientClass, SmoothClass
from fltheory.worst_case.rounds.one_round import Played

AnyClass: TypeAlias = ClientClass | SmoothClass


class Measure(ABC):
    """How a bound's coefficients become those of a slack with L = 1 that is divided by e.

    Attributes
    ----------
    claim : str
        The inequality, as certificates write it.
    speed : str
        Name of the coefficient that measures the progress of a round.
    best : str
        Whether the "least" or the "largest" speed is the best.
    start : str
        The initial value in the bound for all rounds, which is "distance", ``||x_0 - x*||``, or
        "excess", ``F(x_0) - F*``.
    sees_optimum : bool
        Whether the gradients at x* enter.
    part : Fraction
        Factor on the squared length of a step.
    falls : int
        1 if a round decreases a square, 0 if it decreases the gap of F.
    keeps : float
        Factor of ``||x||^2`` that remains in addition, which is the given rate.
    """

    claim: ClassVar[str]
    speed: ClassVar[str]
    best: ClassVar[str] = "largest"
    start: ClassVar[str] = "distance"
    sees_optimum: ClassVar[bool] = True
    part: ClassVar[Fraction] = Fraction(1)
    falls: ClassVar[int] = 1
    keeps: float = 1.0

    def decrease(self, speed: Fraction, a_round: Played, clients: AnyClass) -> Fraction:
        """Return the slack's decrease for a speed."""
        return speed / a_round.client_lr

    def speed_of(self, decrease: float, a_round: Played, clients: AnyClass) -> float:
        """Return the speed for a slack's decrease."""
        return float(a_round.client_lr) * decrease

    def coefficients(self, speed: Fraction) -> dict[str, Fraction]:
        """Return the claim's coefficients by name, except those of the residual."""
        return {self.speed: speed}

    def raised(self, speed: Fraction, share: Fraction) -> Fraction:
        """Return a speed that is slightly worse, by a factor above one."""
        return speed * (1 / share if speed > 0 else share)

    def unit(self, clients: AnyClass) -> Fraction:
        """Return the factor on a coefficient of the residual, before division by e."""
        return clients.L**2

    def floor(self, speed: float, residual: float) -> float:
        """Return the limit of the bound after infinitely many rounds."""
        return residual / speed if speed > 0 else float("inf")

    @abstractmethod
    def after(self, speed: float, residual: float, rounds: int, start: float) -> float:
        """Return the bound after ``rounds`` rounds, from a `start`."""

    @abstractmethod
    def check(self, clients: AnyClass) -> None:
        """Check that the measure can be bounded for this class of clients.

        Raises
        ------
        ValueError
            If it cannot; the message says why.
        """

    @abstractmethod
    def clients(
        self, L: Any, mu: Any, heterogeneity: Any, sigma: Any, server_sigma: Any
    ) -> AnyClass:
        """Return a class of clients or, if mu is None, the widest that this measure covers.

        Raises
        ------
        ValueError
            If a constant is not a fraction or is out of range.
        """

    def last_noise(self, a_round: Played, clients: AnyClass) -> Fraction:
        """Return the contribution of the last local step's noise, as a coefficient of sigma^2."""
        if clients.sigma == 0:
            return Fraction(0)
        reach = a_round.server_lr * a_round.client_lr
        return a_round.q * reach**2 * a_round.noise_weight * self._per_square(clients)

    def server_noise(self, a_round: Played, clients: AnyClass) -> Fraction:
        """Return the contribution of the server's noise, as a coefficient of server_sigma^2."""
        return (1 - a_round.q) * a_round.assist_lr**2 * self._per_square(clients)

    def _per_square(self, clients: AnyClass) -> Fraction:
        """Return how much a squared step adds to the measured quantity."""
        return self.part * clients.L**2 / self.unit(clients)


class _OfConvex(Measure):
    """Measures that start from the distance to x*."""

    claim = checker.CLAIM

    def clients(
        self, L: Any, mu: Any, heterogeneity: Any, sigma: Any, server_sigma: Any
    ) -> AnyClass:
        # If clients are convex but not strongly convex, no rate is below one.
        strong = "1/10" if mu is None else mu
        return ClientClass(L, strong, heterogeneity, sigma, server_sigma)

    def check(self, clients: AnyClass) -> None:
        if clients.mu < 0:
            raise ValueError(
                "client_class must have convex clients for a bound on the distance to x*, got "
                f"{clients!r}: nonconvex clients need not come any closer"
            )


class _Distance(_OfConvex):
    speed, best = "rate", "least"

    def decrease(self, speed: Fraction, a_round: Played, clients: AnyClass) -> Fraction:
        return (1 - speed) / (clients.L * a_round.client_lr)

    def speed_of(self, decrease: float, a_round: Played, clients: AnyClass) -> float:
        return 1 - float(clients.L * a_round.client_lr) * decrease

    def coefficients(self, speed: Fraction) -> dict[str, Fraction]:
        return {"rate": speed, "gap": Fraction(0)}

    def raised(self, speed: Fraction, share: Fraction) -> Fraction:
        away = speed - 1
        return 1 + away * (share if away > 0 else 1 / share)

    def floor(self, speed: float, residual: float) -> float:
        return residual / (1 - speed) if speed < 1 else float("inf")

    def after(self, speed: float, residual: float, rounds: int, start: float) -> float:
        if speed == 1:
            return start**2 + rounds * residual
        power = speed**rounds
        return power * start**2 + residual * (1 - power) / (1 - speed)


@dataclass(frozen=True)
class Gap(_OfConvex):
    """The gap of F at a given rate.

    Attributes
    ----------
    rate : Fraction
        A rate of at most 1, which is 1 for a plain mean over rounds.
    """

    rate: Fraction = Fraction(1)
    speed, falls = "gap", 0

    @property
    def keeps(self) -> float:  # type: ignore[override]
        """The rate."""
        return float(self.rate)

    def coefficients(self, speed: Fraction) -> dict[str, Fraction]:
        """Return the given rate, and the gap."""
        return {"rate": self.rate, "gap": speed}

    def after(self, speed: float, residual: float, rounds: int, start: float) -> float:
        """Bound the mean of ``E F(x_r) - F*``, r = 0 .. R - 1, with weights ``rate^-r``."""
        if speed <= 0:
            return float("inf")
        power = float(self.rate) ** rounds
        weights = rounds if self.rate == 1 else (1 - power) / (1 - float(self.rate))
        return (power * start**2 / weights + residual) / speed


class _Descent(Measure):
    claim, speed, start = checker.DESCENT_CLAIM, "decrease", "excess"
    sees_optimum, part = False, Fraction(1, 2)

    def unit(self, clients: AnyClass) -> Fraction:
        return clients.L

    def after(self, speed: float, residual: float, rounds: int, start: float) -> float:
        """Bound ``1/R sum_{r<R} E||grad F(x_r)||^2``."""
        return start / (speed * rounds) + residual / speed if speed > 0 else float("inf")

    def clients(
        self, L: Any, mu: Any, heterogeneity: Any, sigma: Any, server_sigma: Any
    ) -> AnyClass:
        if mu is None and heterogeneity == "everywhere":
            return SmoothClass(L, sigma, server_sigma)
        return ClientClass(L, 0 if mu is None else mu, heterogeneity, sigma, server_sigma)

    def check(self, clients: AnyClass) -> None:
        if clients.heterogeneity != "everywhere":
            raise ValueError(
                "client_class must have heterogeneity 'everywhere' for a bound on the descent of "
                f"F, got {clients.heterogeneity!r}: the gradients at x* say nothing about those at "
                "the model"
            )


DISTANCE: Measure = _Distance()
DESCENT: Measure = _Descent()


@dataclass(frozen=True)
class Given:
    """A theorem's assumption about a run, which is that the mean of a sum of terms is at most zero.

    Attributes
    ----------
    name : str
        Name of the hypothesis.
    gradient, moved, values, heterogeneity : Fraction
        Coefficients of ``||grad F(x)||^2``, of the squared mean of the participants' sums of
        gradients, of the eligible clients' mean of ``F_i(x) - F_i(x*)``, and of dissimilarity^2.
    """

    name: str
    gradient: Fraction
    moved: Fraction
    values: Fraction
    heterogeneity: Fraction

    @property
    def coefficients(self) -> dict[str, Fraction]:
        """The coefficients by name."""
        return {name: getattr(self, name) for name in checker.GIVEN}


@dataclass(frozen=True)
class Claim:
    """Coefficients of a bound on one round, in fractions.

    Attributes
    ----------
    speed : Fraction
        The rate, the gap or the decrease, depending on the measure.
    heterogeneity, noise, server_noise : Fraction
    measure : Measure
    given : Given or None
        The assumption about a run, if the bound needs one.
    """

    speed: Fraction
    heterogeneity: Fraction
    noise: Fraction
    server_noise: Fraction
    measure: Measure = DISTANCE
    given: Given | None = None

    @property
    def residual(self) -> dict[str, Fraction]:
        """The residual's coefficients, by name."""
        return {name: getattr(self, name) for name in checker.RESIDUAL}

    def times(self, factor: Fraction, speed: Fraction) -> Claim:
        """Return a claim at a different speed, with its residual multiplied by a factor."""
        residual = {name: factor * value for name, value in self.residual.items()}
        return replace(self, speed=speed, **residual)  # type: ignore[arg-type]

"""Measures of a round's progress: the squared distance to x*, or the loss F.

Definitions
-----------
*Distance*: ``E||x+ - x*||^2 <= rate ||x - x*||^2 + residual``, for clients that are convex.
*Descent*: ``E F(x+) <= F(x) - decrease ||grad F(x)||^2 + residual``, for clients that need not be.
F is L-smooth, so ``F(x - p) <= F(x) - <grad F(x), p> + L/2 ||p||^2``, and with L = 1 the
right-hand side is ``F(x) - 1/2 (||grad F(x)||^2 - ||grad F(x) - p||^2)``: what a round does to the
distance from x it does to half the distance from grad F(x).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from fltheory.worst_case.proof import proof_checker
from fltheory.worst_case.rounds.client_class import ClientClass, SmoothClass


class Steps(Protocol):
    """The steps of a round, as `OneRound` has them."""

    @property
    def participants(self) -> int:
        """How many take part."""

    @property
    def local_steps(self) -> int:
        """K."""

    @property
    def client_lr(self) -> Fraction:
        """Step of local SGD."""

    @property
    def server_lr(self) -> Fraction:
        """Factor on the averaged update."""

    @property
    def assist_lr(self) -> Fraction:
        """The server's own step."""

    @property
    def q(self) -> Fraction:
        """Probability of a clients' round."""

    @property
    def tells_clients_apart(self) -> bool:
        """Whether it matters to a round how clients differ."""


class Measure(ABC):
    """How coefficients of a bound become those of a slack, which is in units with L = 1 and over e.

    Attributes
    ----------
    claim : str
        The inequality, as certificates state it.
    speed : str
        Name of the coefficient of what a round makes smaller.
    sees_optimum : bool
        Whether the gradients at x* enter.
    part : Fraction
        What the squared length of a step counts.
    """

    claim: ClassVar[str]
    speed: ClassVar[str]
    sees_optimum: ClassVar[bool]
    part: ClassVar[Fraction]

    @abstractmethod
    def decrease(self, speed: Fraction, a_round: Steps, clients: AnyClass) -> Fraction:
        """Return the slack's decrease for a speed."""

    @abstractmethod
    def speed_of(self, decrease: float, a_round: Steps, clients: AnyClass) -> float:
        """Return the speed for a slack's decrease."""

    @abstractmethod
    def unit(self, clients: AnyClass) -> Fraction:
        """Return what a coefficient of the residual is multiplied by, before it is over e."""

    @abstractmethod
    def check(self, clients: AnyClass) -> None:
        """Check that clients are of a class that this measure bounds.

        Raises
        ------
        ValueError
            If they are not, with the reason.
        """

    @abstractmethod
    def clients(
        self, L: Any, mu: Any, heterogeneity: Any, sigma: Any, server_sigma: Any
    ) -> AnyClass:
        """Return a class of clients, the widest that this measure bounds where mu is None.

        Raises
        ------
        ValueError
            For constants that are no fractions or out of range.
        """

    def last_noise(self, a_round: Steps, clients: AnyClass) -> Fraction:
        """Return what the last local step's noise adds, as a coefficient of sigma^2."""
        reach = a_round.server_lr * a_round.client_lr
        return a_round.q * reach**2 / a_round.participants * self._per_square(clients)

    def server_noise(self, a_round: Steps, clients: AnyClass) -> Fraction:
        """Return what the server's noise adds, as a coefficient of server_sigma^2."""
        return (1 - a_round.q) * a_round.assist_lr**2 * self._per_square(clients)

    def _per_square(self, clients: AnyClass) -> Fraction:
        """Return what a squared step adds to what is measured."""
        return self.part * clients.L**2 / self.unit(clients)


class _Distance(Measure):
    claim, speed = proof_checker.CLAIM, "rate"
    sees_optimum, part = True, Fraction(1)

    def decrease(self, speed: Fraction, a_round: Steps, clients: AnyClass) -> Fraction:
        return (1 - speed) / (clients.L * a_round.client_lr)

    def speed_of(self, decrease: float, a_round: Steps, clients: AnyClass) -> float:
        return 1 - float(clients.L * a_round.client_lr) * decrease

    def unit(self, clients: AnyClass) -> Fraction:
        return clients.L**2

    def clients(
        self, L: Any, mu: Any, heterogeneity: Any, sigma: Any, server_sigma: Any
    ) -> AnyClass:
        # No rate is below one for clients that are convex only.
        strong = "1/10" if mu is None else mu
        return ClientClass(L, strong, heterogeneity, sigma, server_sigma)

    def check(self, clients: AnyClass) -> None:
        if clients.mu < 0:
            raise ValueError(
                "client_class must be of convex clients for a bound on the distance to x*, "
                f"got {clients!r}: nonconvex ones need not come any nearer"
            )


class _Descent(Measure):
    claim, speed = proof_checker.DESCENT_CLAIM, "decrease"
    sees_optimum, part = False, Fraction(1, 2)

    def decrease(self, speed: Fraction, a_round: Steps, clients: AnyClass) -> Fraction:
        return speed / a_round.client_lr

    def speed_of(self, decrease: float, a_round: Steps, clients: AnyClass) -> float:
        return float(a_round.client_lr) * decrease

    def unit(self, clients: AnyClass) -> Fraction:
        return clients.L

    def clients(
        self, L: Any, mu: Any, heterogeneity: Any, sigma: Any, server_sigma: Any
    ) -> AnyClass:
        if mu is None and heterogeneity == "everywhere":
            return SmoothClass(L, sigma, server_sigma)
        return ClientClass(L, 0 if mu is None else mu, heterogeneity, sigma, server_sigma)

    def check(self, clients: AnyClass) -> None:
        if clients.heterogeneity != "everywhere":
            raise ValueError(
                "client_class must be of heterogeneity 'everywhere' for a bound on the descent of "
                f"F, got {clients.heterogeneity!r}: the gradients at x* say nothing about those at "
                "the model"
            )


AnyClass = ClientClass | SmoothClass
DISTANCE: Measure = _Distance()
DESCENT: Measure = _Descent()


@dataclass(frozen=True)
class Claim:
    """Coefficients of a bound on one round, in fractions.

    Attributes
    ----------
    rate, heterogeneity, noise, server_noise : Fraction
        As in `Bound`.
    """

    rate: Fraction
    heterogeneity: Fraction
    noise: Fraction
    server_noise: Fraction

    @property
    def measure(self) -> Measure:
        """What is bounded."""
        return DISTANCE

    @property
    def speed(self) -> Fraction:
        """The rate."""
        return self.rate


@dataclass(frozen=True)
class DescentClaim:
    """Coefficients of a bound on F after one round, in fractions.

    Attributes
    ----------
    decrease, heterogeneity, noise, server_noise : Fraction
        As in `DescentBound`.
    """

    decrease: Fraction
    heterogeneity: Fraction
    noise: Fraction
    server_noise: Fraction

    @property
    def measure(self) -> Measure:
        """What is bounded."""
        return DESCENT

    @property
    def speed(self) -> Fraction:
        """The decrease."""
        return self.decrease


AnyClaim = Claim | DescentClaim

"""The best bounds on the descent of F in a round, for every client of a class, convex or not.

``E F(x+) <= F(x) - decrease ||grad F(x)||^2 + residual``, and so, summed over R rounds,
``1/R sum_{r<R} E||grad F(x_r)||^2 <= (F(x_0) - F*) / (decrease R) + residual / decrease``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.worst_case.rounds.bound import Coefficients, Solver
from fltheory.worst_case.rounds.certificate import Certificate, certified, raised_residual
from fltheory.worst_case.rounds.measure import DESCENT, AnyClass, DescentClaim
from fltheory.worst_case.rounds.one_round import OneRound


@dataclass(frozen=True)
class DescentBound:
    """A bound on F after one round, for all clients of a class, as the solver found it.

    `certificate` makes a proof of it.

    Attributes
    ----------
    round : OneRound
    client_class : SmoothClass or ClientClass
    decrease, heterogeneity, noise, server_noise : float
        ``E F(x+) <= F(x) - decrease ||grad F(x)||^2 + heterogeneity dissimilarity^2 + noise sigma^2
        + server_noise server_sigma^2``.
    given_decrease : Fraction or None
        The decrease that was asked for.
    """

    round: OneRound
    client_class: AnyClass
    decrease: float
    heterogeneity: float
    noise: float
    server_noise: float
    given_decrease: Fraction | None = None

    @property
    def speed(self) -> float:
        """The decrease."""
        return self.decrease

    @property
    def residual(self) -> float:
        """What is added in every round."""
        coefficients = Coefficients(
            self.decrease, self.heterogeneity, self.noise, self.server_noise
        )
        return coefficients.residual(self.client_class)

    @property
    def floor(self) -> float:
        """The mean squared gradient that is left; infinite unless the decrease is above 0."""
        if self.decrease > 0:
            return self.residual / self.decrease
        return float("inf")

    def after(self, rounds: int, excess: float) -> float:
        """Bound ``1/R sum_{r<R} E||grad F(x_r)||^2``.

        Parameters
        ----------
        rounds : int
            R, at least 1.
        excess : float
            ``F(x_0) - F*``.
        """
        rounds = validation.whole_number("rounds", rounds, at_least=1)
        start = validation.nonnegative("excess", excess)
        if self.decrease <= 0:
            return float("inf")
        return start / (self.decrease * rounds) + self.floor


def best_descent_of(
    a_round: OneRound, clients: AnyClass, decrease: Fraction | None = None
) -> DescentBound:
    """Return the best bound on F after a round that the descent lemma proves for all clients.

    At a decrease, or of the least floor. Clients enter by interpolation between their curvatures,
    and F by its smoothness. It may be above the supremum over the class: what it does not prove
    is not refuted.
    """
    found = Solver.of(a_round, clients, DESCENT).best(decrease)
    return DescentBound(
        a_round,
        clients,
        found.speed,
        found.heterogeneity,
        found.noise,
        found.server_noise,
        decrease,
    )


def largest_decrease_of(a_round: OneRound, clients: AnyClass) -> float:
    """Return the supremum of all decreases that can be proved, at whatever residual."""
    return Solver.of(a_round, clients, DESCENT).best_speed()


def descent_certificate(bound: DescentBound, margin: float = 1e-6) -> Certificate:
    """Return a proof in fractions of a bound on F after a round, a little above the best.

    Parameters and errors are those of `certificate`; where no decrease was given it may be below
    the bound's by that share.
    """
    return certified(bound, margin, raised_descent)


def raised_descent(bound: DescentBound, share: Fraction) -> DescentClaim:
    """Return a bound's coefficients times a number above one, in fractions."""
    decrease = bound.given_decrease
    if decrease is None:
        found = as_fraction(bound.decrease)
        decrease = found * (1 / share if found > 0 else share)
    return DescentClaim(decrease, *raised_residual(bound, share, DESCENT))

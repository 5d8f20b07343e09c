"""The best bounds on a round that can be proved for every client of a class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from fltheory import validation
from fltheory.worst_case.rounds.measure import DISTANCE, AnyClass, Claim, Given, Measure
from fltheory.worst_case.rounds.one_round import Played
from fltheory.worst_case.rounds.slack import slack_of

if TYPE_CHECKING:
    from fltheory.worst_case.rounds.program import Program, Solution

# A residual below this share of the scale of the steps counts as zero.
_NOTHING = 1e-8
_SLOWER = (0.5, 0.1)


@dataclass(frozen=True)
class Bound:
    """A bound on one round, for all clients of a class, as the solver found it.

    The bound is ``E||x+ - x*||^2 <= rate ||x - x*||^2 + residual``, which gives a bound for every R
    by iteration, or a bound on another `Measure`. `certificate` turns it into a proof.

    Attributes
    ----------
    round : OneRound or AveragingRound
    client_class : ClientClass or SmoothClass
    speed : float
        The rate, or the decrease or gap if the measure is different.
    heterogeneity, noise, server_noise : float
        The residual is
        ``heterogeneity dissimilarity^2 + noise sigma^2 + server_noise server_sigma^2``.
    measure : Measure
        The quantity that is bounded.
    given_speed : Fraction or None
        The speed that was requested.
    """

    round: Played
    client_class: AnyClass
    speed: float
    heterogeneity: float
    noise: float = 0.0
    server_noise: float = 0.0
    measure: Measure = DISTANCE
    given_speed: Fraction | None = None

    @property
    def rate(self) -> float:
        """The rate of a bound on the distance.

        Raises
        ------
        AttributeError
            If the measure is different.
        """
        return self._named("rate")

    @property
    def decrease(self) -> float:
        """The decrease of a bound on the descent of F.

        Raises
        ------
        AttributeError
            If the measure is different.
        """
        return self._named("decrease")

    def _named(self, name: str) -> float:
        if self.measure.speed != name:
            raise AttributeError(f"this bound has a {self.measure.speed}, and no {name}")
        return self.speed

    @property
    def residual(self) -> float:
        """The term added in every round."""
        clients = self.client_class
        return (
            self.heterogeneity * float(clients.dissimilarity**2)
            + self.noise * float(clients.sigma**2)
            + self.server_noise * float(clients.server_sigma**2)
        )

    @property
    def floor(self) -> float:
        """The limit of the bound after many rounds; infinite if it need not stay bounded."""
        return self.measure.floor(self.speed, self.residual)

    def after(self, rounds: int, start: float) -> float:
        """Bound ``E||x_R - x*||^2``, or ``1/R sum_{r<R} E||grad F(x_r)||^2`` for the descent of F.

        Parameters
        ----------
        rounds : int
            R.
        start : float
            ``||x_0 - x*||``, or ``F(x_0) - F*`` for the descent.
        """
        least = 0 if self.measure is DISTANCE else 1
        rounds = validation.whole_number("rounds", rounds, at_least=least)
        start = validation.nonnegative(self.measure.start, start)
        return self.measure.after(self.speed, self.residual, rounds, start)


def bound_of(a_round: Played, clients: AnyClass, claim: Claim) -> Bound:
    """Return a claim on a round as a bound."""
    residual = {name: float(value) for name, value in claim.residual.items()}
    return Bound(
        a_round,
        clients,
        float(claim.speed),
        measure=claim.measure,
        given_speed=claim.speed,
        **residual,
    )


def best_speed_of(a_round: Played, clients: AnyClass, measure: Measure = DISTANCE) -> float:
    """Return the smallest rate, or the largest decrease, at any residual."""
    return Solver(a_round, clients, measure).best_speed()


def best_bound_of(
    a_round: Played,
    clients: AnyClass,
    speed: Fraction | None = None,
    measure: Measure = DISTANCE,
    *,
    first: float = 0.0,
) -> Bound:
    """Return the best bound on a round at a given speed, or the one with the smallest floor.

    If ``first`` is given, the bound on the mean over the rounds is minimised instead of the floor.
    It is the initial value of the measured quantity divided by the number of rounds, and is only
    for a gap or a descent of F.

    Raises
    ------
    ValueError
        If the measure does not cover this class.
    ArithmeticError
        If no bound is found.
    """
    return Solver(a_round, clients, measure, first).best(speed)


class Solver:
    """A round's programs, with their results in the user's units.

    Parameters
    ----------
    a_round : OneRound or AveragingRound
    clients : ClientClass or SmoothClass
    measure : Measure
        The quantity that is bounded.
    first : float
        The number added to the residual before it is divided by the speed.
    given : Given, optional
        The assumption about a run.
    """

    def __init__(
        self,
        a_round: Played,
        clients: AnyClass,
        measure: Measure = DISTANCE,
        first: float = 0.0,
        given: Given | None = None,
    ) -> None:
        self._round, self._clients, self._measure = a_round, clients, measure
        self._first = first
        self._slack = slack_of(a_round, clients, measure, given)
        self._given = given
        self._e = float(clients.L * a_round.client_lr)
        # Costs of the budgets, in units of the larger cost.
        self._dissimilarity = float((clients.dissimilarity / clients.L) ** 2)
        self._noise = float((clients.sigma / clients.L) ** 2)
        self._unit = max(self._dissimilarity, self._noise)

    def best_speed(self) -> float:
        """Return the best speed at any residual."""
        return self._measure.speed_of(self._largest_decrease(), self._round, self._clients)

    def best(self, speed: Fraction | None) -> Bound:
        """Return the bound with the smallest residual at a speed, or with the smallest floor.

        Raises
        ------
        ArithmeticError
            If no bound is found.
        """
        solution = self.least_floor() if speed is None else self.least_residual(speed)
        if solution is not None:
            return self._bound(solution, speed)
        name = self._measure.speed
        at = "" if speed is None else f" at a {name} of {float(speed):.6g}"
        raise ArithmeticError(
            f"no bound was found{at}; the {self._measure.best} {name} is {self.best_speed():.6g}"
        )

    def _largest_decrease(self) -> float:
        # SciPy takes a while to import, and reading a certificate does not need it.
        from fltheory.worst_case.rounds.program import Program

        bases = self._slack.without_heterogeneity()
        solution = Program(self._slack, bases, identical=True).least_rate()
        if solution is None:
            raise ArithmeticError(f"the solver found no {self._measure.speed} at all")
        return solution.decrease

    def least_residual(self, speed: Fraction) -> Solution | None:
        """Return the solution with the smallest residual at a speed, or None if there is none."""
        return self._at(float(self._measure.decrease(speed, self._round, self._clients)))

    def _at(self, decrease: float) -> Solution | None:
        return self._refined(
            decrease,
            lambda program: program.least_residual(
                decrease, self._dissimilarity / self._unit, self._noise / self._unit
            ),
        )

    def _refined(
        self, decrease: float, solve: Callable[[Program], Solution | None]
    ) -> Solution | None:
        """Solve, then solve again in coordinates scaled by the first solution.

        If the solver does worse in the scaled coordinates, the first solution is kept.
        """
        from fltheory.worst_case.rounds.program import Program

        first = solve(Program(self._slack, self._slack.bases(decrease, 1.0, 1.0)))
        if first is None:
            return None
        second = self._near(first, solve)
        return first if second is None or first.value < second.value else second

    def _near(
        self, known: Solution, solve: Callable[[Program], Solution | None]
    ) -> Solution | None:
        """Solve in coordinates scaled by a known solution."""
        from fltheory.worst_case.rounds.program import Program

        sums = (known.multipliers.budgets.sum(), known.multipliers.noises.sum())
        bases = self._slack.bases(known.decrease, *(max(float(total), 0.0) for total in sums))
        return solve(Program(self._slack, bases))

    def least_floor(self) -> Solution | None:
        """Return the solution with the smallest residual over decrease, or None if none exists."""
        decrease = self._largest_decrease()
        if decrease <= 0:
            # If no rate is below one, take slightly less than the largest decrease, so that the
            # residual is finite.
            return self._at(decrease - 1e-6 * (1 - decrease))
        fixed = self._fixed_noise / self._unit
        prices = (self._dissimilarity / self._unit, self._noise / self._unit, fixed)

        def solve(program: Program) -> Solution | None:
            return program.least_floor(*prices, decrease)

        found = self._refined(decrease, solve)
        for slower in _SLOWER:
            # If the solver fails, the solution at a slower rate gives it a scale.
            near = None if found is not None else self._at(slower * decrease)
            if near is not None:
                found = self._near(near, solve)
        steps = self._round.local_steps * self._round.server_lr * self._round.total_weight
        least = _NOTHING * float(steps) ** 2 * self._e
        if found is None or fixed > 0 or found.multipliers.budgets.sum() > least:
            return found
        # If every rate has a floor of zero, the smallest rate is the best.
        fastest = self._refined(decrease, lambda program: program.fastest(least, least)) or found
        # A speed above the best speed at any residual is due to the solver's error.
        return replace(fastest, decrease=min(fastest.decrease, decrease))

    @property
    def _fixed_noise(self) -> float:
        """The terms over e without multipliers, i.e. last steps' noise, server noise and start."""
        server = float(self._server_noise * self._clients.server_sigma**2)
        return self._slack.last_noise * self._noise + (server + self._first) * float(self._per_e)

    @property
    def _server_noise(self) -> Fraction:
        return self._measure.server_noise(self._round, self._clients)

    @property
    def _per_e(self) -> Fraction:
        """The factor of a coefficient of the residual, per squared gradient over L."""
        clients = self._clients
        unit = self._measure.unit(clients)
        return unit / clients.L**2 / (clients.L * self._round.client_lr)

    def _bound(self, solution: Solution, speed: Fraction | None) -> Bound:
        scale = self._e / float(self._measure.unit(self._clients))
        multipliers = solution.multipliers
        noise = (float(multipliers.noises.sum()) + self._slack.last_noise) * scale
        sums = float(multipliers.budgets.sum())
        if self._given is not None:
            sums -= float(self._given.heterogeneity) * float(multipliers.pairs[-1])
        heterogeneity = max(sums, 0.0) * scale
        found = self._measure.speed_of(solution.decrease, self._round, self._clients)
        return Bound(
            self._round,
            self._clients,
            found if speed is None else float(speed),
            # A round that treats all clients alike has no heterogeneity term, so a small term is a
            # rounding error.
            heterogeneity if self._round.tells_clients_apart else 0.0,
            noise if self._clients.sigma > 0 else 0.0,
            float(self._server_noise),
            self._measure,
            speed,
        )

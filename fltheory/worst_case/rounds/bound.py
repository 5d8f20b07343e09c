"""The best bounds on a round that can be proved for every client of a class.

``E||x+ - x*||^2 <= rate ||x - x*||^2 + residual``, and so for all R by iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from fltheory import validation
from fltheory.worst_case.rounds.client_class import ClientClass
from fltheory.worst_case.rounds.measure import DISTANCE, AnyClass, Measure, Steps
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.slack import Slack, slack_of

if TYPE_CHECKING:
    from fltheory.worst_case.rounds.program import Program, Solution

# A residual of less than this share of the steps' own scale is none.
_NOTHING = 1e-8
_SLOWER = (0.5, 0.1)


@dataclass(frozen=True)
class Coefficients:
    """What the solver found: how fast, and what is left, in the user's units.

    Attributes
    ----------
    speed : float
        The rate, or the decrease.
    heterogeneity, noise, server_noise : float
    """

    speed: float
    heterogeneity: float
    noise: float
    server_noise: float

    def residual(self, clients: AnyClass) -> float:
        """Return what is added in every round."""
        return (
            self.heterogeneity * float(clients.dissimilarity**2)
            + self.noise * float(clients.sigma**2)
            + self.server_noise * float(clients.server_sigma**2)
        )


@dataclass(frozen=True)
class Bound:
    """A bound on one round, for all clients of a class, as the solver found it.

    `certificate` makes a proof of it.

    Attributes
    ----------
    round : OneRound
    client_class : ClientClass
    rate, heterogeneity, noise, server_noise : float
        ``E||x+ - x*||^2 <= rate ||x - x*||^2 + heterogeneity dissimilarity^2 + noise sigma^2 +
        server_noise server_sigma^2``.
    given_rate : Fraction or None
        The rate that was asked for.
    """

    round: OneRound
    client_class: ClientClass
    rate: float
    heterogeneity: float
    noise: float
    server_noise: float
    given_rate: Fraction | None = None

    @property
    def residual(self) -> float:
        """What is added in every round."""
        coefficients = Coefficients(self.rate, self.heterogeneity, self.noise, self.server_noise)
        return coefficients.residual(self.client_class)

    @property
    def speed(self) -> float:
        """The rate."""
        return self.rate

    @property
    def floor(self) -> float:
        """What is left after infinitely many rounds; infinite unless the rate is below 1."""
        if self.rate < 1:
            return self.residual / (1 - self.rate)
        return float("inf")

    def after(self, rounds: int, distance: float) -> float:
        """Bound ``E||x_R - x*||^2`` by this round's bound, R times in a row.

        Parameters
        ----------
        rounds : int
            R.
        distance : float
            ``||x_0 - x*||``.
        """
        rounds = validation.whole_number("rounds", rounds, at_least=0)
        start = validation.nonnegative("distance", distance) ** 2
        if self.rate == 1:
            return start + rounds * self.residual
        power = self.rate**rounds
        return power * start + self.residual * (1 - power) / (1 - self.rate)


def least_rate_of(a_round: OneRound, clients: ClientClass) -> float:
    """Return the infimum of all rates that can be proved, at whatever residual."""
    return Solver.of(a_round, clients).best_speed()


def best_bound_of(a_round: OneRound, clients: ClientClass, rate: Fraction | None = None) -> Bound:
    """Return the best bound on a round at a rate, or of the least floor."""
    found = Solver.of(a_round, clients).best(rate)
    return Bound(
        a_round, clients, found.speed, found.heterogeneity, found.noise, found.server_noise, rate
    )


def least_residual_solution(
    a_round: OneRound, clients: ClientClass, rate: Fraction
) -> Solution | None:
    """Return the program's solution at a rate, None if there is none."""
    return Solver.of(a_round, clients).least_residual(rate)


class Solver:
    """A round's programs, and their results in the units that the user has.

    Parameters
    ----------
    a_round : Steps
    clients : ClientClass or SmoothClass
    measure : Measure
        Of what the bound is.
    slack : Slack
    """

    @classmethod
    def of(cls, a_round: OneRound, clients: AnyClass, measure: Measure = DISTANCE) -> Solver:
        """Return the solver of a round of FedAvg or SAFARI."""
        return cls(a_round, clients, measure, slack_of(a_round, clients, measure))

    def __init__(
        self,
        a_round: Steps,
        clients: AnyClass,
        measure: Measure,
        slack: Slack,
    ) -> None:
        self._round, self._clients, self._measure = a_round, clients, measure
        self._slack = slack
        self._e = float(clients.L * a_round.client_lr)
        # Prices of the budgets, in units of the larger one.
        self._dissimilarity = float((clients.dissimilarity / clients.L) ** 2)
        self._noise = float((clients.sigma / clients.L) ** 2)
        self._unit = max(self._dissimilarity, self._noise)

    def best_speed(self) -> float:
        """Return the best speed at whatever residual."""
        return self._speed_of(self._largest_decrease())

    def best(self, speed: Fraction | None) -> Coefficients:
        """Return the least residual at a speed, or of the least floor.

        Raises
        ------
        ArithmeticError
            If no bound is found.
        """
        solution = self.least_floor() if speed is None else self.least_residual(speed)
        if solution is not None:
            return self._coefficients(solution, speed)
        name = self._measure.speed
        at = "" if speed is None else f" at a {name} of {float(speed):.6g}"
        kind = "least" if self._measure is DISTANCE else "largest"
        raise ArithmeticError(
            f"no bound was found{at}; the {kind} {name} is {self.best_speed():.6g}"
        )

    def _speed_of(self, decrease: float) -> float:
        return self._measure.speed_of(decrease, self._round, self._clients)

    def _largest_decrease(self) -> float:
        # SciPy takes a while to import, and whoever only reads a certificate does without.
        from fltheory.worst_case.rounds.program import Program

        bases = self._slack.without_heterogeneity()
        solution = Program(self._slack, bases, identical=True).least_rate()
        if solution is None:
            raise ArithmeticError(f"the solver found no {self._measure.speed} at all")
        return solution.decrease

    def least_residual(self, speed: Fraction) -> Solution | None:
        """Return the solution of least residual at a speed, None if there is none."""
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
        """Solve, and once more in coordinates that are of the size of the first solution.

        Where the solver gets less far in those, the first has the smaller value.
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
        """Solve in coordinates that are of the size of a solution that is known."""
        from fltheory.worst_case.rounds.program import Program

        sums = (known.multipliers.budgets.sum(), known.multipliers.noises.sum())
        bases = self._slack.bases(known.decrease, *(max(float(total), 0.0) for total in sums))
        return solve(Program(self._slack, bases))

    def least_floor(self) -> Solution | None:
        """Return the solution of least residual over decrease, None if there is none."""
        decrease = self._largest_decrease()
        if decrease <= 0:
            # No rate below one: the least, less a little so that the residual is finite.
            return self._at(decrease - 1e-6 * (1 - decrease))
        fixed = self._fixed_noise / self._unit
        prices = (self._dissimilarity / self._unit, self._noise / self._unit, fixed)

        def solve(program: Program) -> Solution | None:
            return program.least_floor(*prices, decrease)

        found = self._refined(decrease, solve)
        for slower in _SLOWER:
            # Now and then the solver gets nowhere: a slower rate's solution shows it where.
            near = None if found is not None else self._at(slower * decrease)
            if near is not None:
                found = self._near(near, solve)
        least = _NOTHING * float(self._round.local_steps * self._round.server_lr) ** 2 * self._e
        if found is None or fixed > 0 or found.multipliers.budgets.sum() > least:
            return found
        # Every rate has a floor of zero: the least is the best.
        fastest = self._refined(decrease, lambda program: program.fastest(least, least)) or found
        # What is faster than at any residual is the solver's error.
        return replace(fastest, decrease=min(fastest.decrease, decrease))

    @property
    def _fixed_noise(self) -> float:
        """Residual over e that no multiplier changes: last steps' and the server's noise."""
        server = float(self._server_noise * self._clients.server_sigma**2 * self._per_e)
        return self._slack.last_noise * self._noise + server

    @property
    def _server_noise(self) -> Fraction:
        return self._measure.server_noise(self._round, self._clients)

    @property
    def _per_e(self) -> Fraction:
        """What a coefficient of the residual is multiplied by, per square of gradients over L."""
        clients = self._clients
        unit = self._measure.unit(clients)
        return unit / clients.L**2 / (clients.L * self._round.client_lr)

    def _coefficients(self, solution: Solution, speed: Fraction | None) -> Coefficients:
        scale = self._e / float(self._measure.unit(self._clients))
        multipliers = solution.multipliers
        noise = (float(multipliers.noises.sum()) + self._slack.last_noise) * scale
        heterogeneity = max(float(multipliers.budgets.sum()), 0.0) * scale
        return Coefficients(
            self._speed_of(solution.decrease) if speed is None else float(speed),
            # A round that cannot tell clients apart has none: what the solver leaves is rounding.
            heterogeneity if self._round.tells_clients_apart else 0.0,
            noise if self._clients.sigma > 0 else 0.0,
            float(self._server_noise),
        )

"""Step sizes, q, K and weights with the best provable bound for given costs of rounds.

The search is local. The returned bound is proved for every client of the class, and is the best of
those tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.validation import FloatArray
from fltheory.worst_case.proof.proof_file import of_least_margin
from fltheory.worst_case.rounds.bound import best_bound_of, best_speed_of
from fltheory.worst_case.rounds.certificate import Certificate, certificate
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.one_round import AveragingRound, OneRound

_MOST_ROUNDS = 100_000
# Margins of the certificate, of which the tighter is tried first.
_MARGINS = (1e-6, 1e-4)
# The smallest rate itself has no finite residual, because multipliers grow without bound close to
# it.
_NEAREST = 0.999
_EVALUATIONS = 60


@dataclass(frozen=True)
class Costs:
    """The costs of a round, in any unit. Numbers are exact, as in `ClientClass`.

    Parameters
    ----------
    communication : number
        The cost of a round with clients, apart from computations.
    local_step : number
        The cost of one local step of one client.
    server_sample : number
        The cost of a server step, which takes one gradient.

    Raises
    ------
    ValueError
        If a cost is negative or is not a fraction.

    Examples
    --------
    >>> Costs(communication=10, local_step="1/2", server_sample=3)
    Costs(communication=Fraction(10, 1), local_step=Fraction(1, 2), server_sample=Fraction(3, 1))
    """

    communication: Fraction
    local_step: Fraction
    server_sample: Fraction

    def __init__(self, *, communication: Any, local_step: Any = 0, server_sample: Any = 0) -> None:
        costs = {
            "communication": communication,
            "local_step": local_step,
            "server_sample": server_sample,
        }
        for name, value in costs.items():
            object.__setattr__(self, name, exact(name, value))

    def of(self, a_round: OneRound) -> Fraction:
        """Return the mean cost of a round that is a client round with probability q."""
        clients = self.communication + self.local_step * (
            a_round.participants * a_round.local_steps
        )
        return a_round.q * clients + (1 - a_round.q) * self.server_sample


@dataclass(frozen=True)
class SettingTried:
    """The best step sizes found for one q and K.

    Attributes
    ----------
    round : OneRound
        The round, with its step sizes.
    cost : Fraction
        The mean cost of a round.
    rounds : int or None
        Number of rounds within the budget, or None if there is no budget.
    distance : Fraction or None
        ``||x_0 - x*||``.
    client_class : ClientClass
    certificate : Certificate or None
        The certificate of the bound on a round, or None if no proof was found.
    """

    round: OneRound
    cost: Fraction
    rounds: int | None
    distance: Fraction | None
    client_class: ClientClass
    certificate: Certificate | None

    @property
    def rate(self) -> Fraction | None:
        """The proved rate of a round."""
        return None if self.certificate is None else self.certificate.proof.bound["rate"][0]

    @property
    def rate_per_cost(self) -> float:
        """The rate per unit of cost, ``rate^(1/cost)``, or 1 if nothing is proved."""
        return 1.0 if self.rate is None else float(self.rate) ** (1 / float(self.cost))

    @property
    def error(self) -> float:
        """The proved bound on ``E||x_R - x*||^2``, rounded up; infinite if nothing is proved."""
        if self.certificate is None or self.rounds is None or self.distance is None:
            return math.inf
        bound, clients = self.certificate.proof.bound, self.client_class
        levels = {
            "heterogeneity": clients.dissimilarity,
            "noise": clients.sigma,
            "server_noise": clients.server_sigma,
        }
        residual = sum((bound[name][0] * s**2 for name, s in levels.items()), Fraction(0))
        rate = bound["rate"][0]
        power = rate**self.rounds
        value = power * self.distance**2 + residual * (1 - power) / (1 - rate)
        return math.nextafter(float(value), math.inf)

    @property
    def value(self) -> float:
        """The objective to minimise: the error within the budget, or the rate per unit of cost."""
        return self.rate_per_cost if self.rounds is None else self.error


@dataclass(frozen=True)
class BestSettings:
    """The settings with the best proved bound, and all others that were tried.

    Attributes
    ----------
    tried : tuple of SettingTried
        The best step sizes for each q and K. The best bound comes first, and settings without a
        proof come last.
    """

    tried: tuple[SettingTried, ...]

    @property
    def best(self) -> SettingTried:
        """The settings with the best bound, which is proved."""
        return self.tried[0]


@checks_kinds
def best_settings(
    client_class: ClientClass,
    *,
    communication: Any,
    local_step: Any = 0,
    server_sample: Any = 0,
    eligible: int,
    excluded: int = 0,
    participants: int,
    budget: Any = None,
    distance: Any = None,
    local_steps: Sequence[int] = (1, 2, 5, 10),
    q: Sequence[Any] = (0, "1/4", "1/2", "3/4", 1),
) -> BestSettings:
    """Find the step sizes, q and K of SAFARI with the best proved bound.

    With a budget, the best bound is the smallest one on ``E||x_R - x*||^2`` after the R rounds that
    the budget pays for on average. Without a budget, it is the one with the fastest rate per unit
    of cost, whatever its residual. For each q and K, the step sizes and the rate are found by a
    simplex search (Nelder and Mead), and the bound is then proved in fractions. If q = 1, the
    algorithm is FedAvg; if q = 0, only the server takes steps.

    Parameters
    ----------
    client_class : ClientClass
    communication : number
        The cost of a round with clients, apart from their computations; costs may be in any unit.
    local_step : number
        The cost of one local step of one client.
    server_sample : number
        The cost of a server step, which takes one gradient.
    eligible, excluded, participants : int
        Numbers of clients that can and cannot be drawn, and m.
    budget : number, optional
        The total cost of all rounds, in the same unit.
    distance : number, optional
        ``||x_0 - x*||``, required with a budget.
    local_steps : sequence of int
        The values of K to try.
    q : sequence of number
        Probabilities of a client round to try.

    Raises
    ------
    ValueError
        If an argument is out of range.
    ArithmeticError
        If nothing is proved for any q and K.

    Examples
    --------
    If everybody takes part in one step and only the rate counts, the best step is ``2/(L + mu)``.

    >>> found = best_settings(
    ...     ClientClass(1, "1/10"), communication=1, eligible=4, participants=4,
    ...     local_steps=[1], q=[1],
    ... )
    >>> round(float(found.best.round.client_lr), 1), round(float(found.best.rate), 2)
    (1.8, 0.67)
    """
    costs = Costs(communication=communication, local_step=local_step, server_sample=server_sample)
    all_paid, start = _given(budget, distance)
    found: list[SettingTried] = []
    for a_round in _rounds(eligible, excluded, participants, local_steps, q):
        cost = costs.of(a_round)
        rounds = None if all_paid is None else _rounds_paid(all_paid, cost, a_round)
        if cost == 0:
            raise ValueError(
                f"costs must be above 0 in every round tried, got 0 at q = {a_round.q}"
            )
        if rounds == 0:
            continue
        played = _Search(a_round, client_class, cost, rounds, start).best_steps()
        if played is not None:
            found.append(played)
    proved = sorted(found, key=lambda item: item.value)
    if not proved or proved[0].certificate is None:
        raise ArithmeticError("nothing was proved: none of the q and K tried has a rate below 1")
    return BestSettings(tuple(proved))


def _given(budget: Any, distance: Any) -> tuple[Fraction | None, Fraction | None]:
    if (budget is None) != (distance is None):
        raise ValueError("budget and distance must both be given or both be left out")
    if budget is None:
        return None, None
    return exact("budget", budget, above=0), exact("distance", distance)


def _rounds(
    eligible: int, excluded: int, participants: int, local_steps: Sequence[int], q: Sequence[Any]
) -> Iterator[OneRound]:
    """Yield the rounds for which steps are searched; at q = 0, K does not matter."""
    eligible = validation.whole_number("eligible", eligible, at_least=1)
    excluded = validation.whole_number("excluded", excluded, at_least=0)
    participants = validation.whole_number("participants", participants, at_least=1)
    if participants > eligible:
        raise ValueError(
            f"participants must be at most the {eligible} eligible, got {participants}"
        )
    steps = [validation.whole_number("local_steps", count, at_least=1) for count in local_steps]
    chances = [exact("q", chance) for chance in q]
    if not steps or not chances:
        raise ValueError("local_steps and q must not be empty")
    for chance in chances:
        if chance > 1:
            raise ValueError(f"q must be at most 1, got {chance}")
        for count in steps if chance > 0 else [1]:
            yield OneRound(
                n_clients=eligible + excluded,
                excluded_share=Fraction(excluded, eligible + excluded),
                participants=participants,
                local_steps=count,
                client_lr=Fraction(1),
                server_lr=Fraction(1),
                assist_lr=Fraction(1),
                q=chance,
            )


def _rounds_paid(budget: Fraction, cost: Fraction, a_round: OneRound) -> int:
    if budget > _MOST_ROUNDS * cost:
        raise ValueError(
            f"budget must pay for at most {_MOST_ROUNDS} rounds, got {budget} at a cost of "
            f"{cost} with q = {a_round.q} and K = {a_round.local_steps}"
        )
    return int(budget / cost)


@dataclass(frozen=True)
class _Search:
    """The search for step sizes and a rate at one q and K."""

    round: OneRound
    clients: ClientClass
    cost: Fraction
    rounds: int | None
    distance: Fraction | None

    def best_steps(self) -> SettingTried | None:
        # A point has the logarithms of client_lr and assist_lr, and 1 - rate as a share of its
        # largest value.
        from scipy.optimize import minimize

        start = -math.log(4 * float(self.clients.L) * self.round.local_steps)
        first = np.array([start, start + math.log(self.round.local_steps), 0.5])
        free = self._free
        options: Any = {
            "maxfev": _EVALUATIONS * len(free) // 2,
            "initial_simplex": _simplex(first[free]),
            "xatol": 1e-3,
            "fatol": 1e-4,
        }

        def at(values: FloatArray) -> float:
            point = first.copy()
            point[free] = values
            return self._value(self._with(point), float(point[2]))

        end = first.copy()
        end[free] = minimize(at, first[free], method="Nelder-Mead", options=options).x
        played = self._with(end)
        share = self._best_share(played)
        rate = self._rate(played, share)
        return None if rate is None else self._proved(played, rate)

    @property
    def _free(self) -> list[int]:
        """Indices of a point's coordinates that are searched; at q = 0 or 1, only one step is."""
        steps = [0] if self.round.q in (0, 1) else [0, 1]
        return steps if self.rounds is None else [*steps, 2]

    def _with(self, point: FloatArray) -> OneRound:
        """Return the round with a point's step sizes, rounded to three digits."""
        step, assist = (_three_digits(math.exp(min(value, 50.0))) for value in point[:2])
        # At q = 0, the server's step is searched; at q = 1, the server takes no steps.
        if self.round.q == 0:
            assist = step
        elif self.round.q == 1:
            assist = Fraction(0)
        return replace(self.round, client_lr=step, assist_lr=assist)

    def _rate(self, played: OneRound, share: float) -> Fraction | None:
        """Return 1 minus a share of the largest decrease, or None if no rate is below 1."""
        try:
            away = 1 - best_speed_of(played, self.clients)
        except ArithmeticError:
            return None
        return 1 - Fraction(f"{share * away:.6g}") if away > 1e-12 else None

    def _value(self, played: OneRound, share: float) -> float:
        """Return the logarithm of the objective, or 100 if there is no bound."""
        if self.rounds is None or self.distance is None:
            rate = self._rate(played, 1.0)
            return 100.0 if rate is None else math.log(max(float(rate), 1e-300)) / float(self.cost)
        rate = self._rate(played, share) if 0 < share <= _NEAREST else None
        if rate is None:
            return 100.0
        try:
            bound = best_bound_of(played, self.clients, rate)
        except ArithmeticError:
            return 100.0
        return math.log(max(bound.after(self.rounds, float(self.distance)), 1e-300))

    def _best_share(self, played: OneRound) -> float:
        from scipy.optimize import minimize_scalar

        if self.rounds is None:
            return _NEAREST

        def value(share: float) -> float:
            return self._value(played, share)

        ends = (1e-3, _NEAREST)
        options: Any = {"maxiter": 16}
        return float(minimize_scalar(value, bounds=ends, method="bounded", options=options).x)

    def _proved(self, played: OneRound, rate: Fraction) -> SettingTried:
        made = of_least_margin(
            lambda margin: certificate(best_bound_of(played, self.clients, rate), margin), _MARGINS
        )
        return SettingTried(played, self.cost, self.rounds, self.distance, self.clients, made)


def _simplex(first: FloatArray) -> FloatArray:
    """Return the initial simplex, with steps longer by a factor of sqrt(e) and a larger share."""
    moves = np.diag([0.5] * len(first))
    if len(first) > 1:
        moves[-1, -1] = 0.3
    return np.vstack([first, first + moves])


def _three_digits(value: float) -> Fraction:
    return Fraction(f"{value:.3g}")


def least_floor_weights(
    a_round: AveragingRound,
    client_class: ClientClass,
    bound_of: Callable[[AveragingRound], float] | None = None,
) -> AveragingRound:
    """Return the round with the weights, one per group, for which the smallest floor was found.

    Only weights with the same sum over all clients as in the round are compared. There is no proof
    that no other weights have a smaller floor: the search is local, starting from the round's own
    weights and from weights proportional to target weight over availability.

    Parameters
    ----------
    a_round : AveragingRound
    client_class : ClientClass
    bound_of : callable, optional
        Returns the bound to minimise instead of one round's floor, given a round with weights, and
        raises ArithmeticError if there is none.

    Raises
    ------
    ValueError
        In the cases of `best_bound`, or if the round averages over the clients present.
    ArithmeticError
        If no bound is found.
    """
    from scipy.optimize import minimize

    if a_round.averaging != "weights":
        raise ValueError(
            "a_round must average with weights, so that others with the same sum can be tried, "
            "got a mean"
        )
    counts = np.array([own.n_clients for own in a_round.groups], dtype=np.float64)
    total = float(a_round.total_weight)
    value = bound_of or (lambda played: best_bound_of(played, client_class).floor)

    def at(logs: FloatArray) -> AveragingRound:
        shares = np.exp(logs - logs.max())
        shares *= total / float(counts @ shares)
        return a_round.weighted([Fraction(share).limit_denominator(10**9) for share in shares])

    def log_floor(logs: FloatArray) -> float:
        # Far from the start, where the rate is nearly one, no bound is found.
        try:
            floor = value(at(logs))
        except ArithmeticError:
            return float("inf")
        return float(np.log(max(floor, 1e-300)))

    def moved_floor(moved: FloatArray, start: FloatArray) -> float:
        return log_floor(start + np.append(moved, 0.0))

    unbiased = [float(own.target_weight / own.availability) for own in a_round.groups]
    least = 1e-3 * total / float(counts.sum())
    given = [max(float(own.weight), least) for own in a_round.groups]
    starts = [np.log(np.array(weights)) for weights in (unbiased, given)]
    if np.allclose(starts[0] - starts[0][-1], starts[1] - starts[1][-1]):
        starts.pop()
    tried = list(starts)
    for start in starts if len(counts) > 1 else []:
        end = minimize(
            moved_floor,
            np.zeros(len(counts) - 1),
            args=(start,),
            method="Nelder-Mead",
            options={"xatol": 1e-4, "fatol": 1e-6, "maxfev": 80 * len(counts)},
        )
        tried.append(start + np.append(end.x, 0.0))
    return at(min(tried, key=log_floor))

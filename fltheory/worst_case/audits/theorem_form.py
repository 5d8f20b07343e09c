"""The forms of theorems that can be audited: what one round must do so that a bound holds for all.

A form reads the one-round inequality off a theorem's bound, knows which other inequalities imply
the bound for all R, and which problems may break them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import sympy as sp

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.theorems import BoundedQuantity, Hypothesis, Statement, Theorem
from fltheory.theorems.sa_fl.symbols import (
    D_0,
    Delta_0,
    K,
    L,
    R,
    eta_c,
    eta_s,
    m,
    mu,
    q,
    sigma,
    sigma_G,
    sigma_s,
)
from fltheory.worst_case.audits.quadratic_descent import (
    quadratic_descent_witness,
    quadratic_gradient_witness,
)
from fltheory.worst_case.audits.quadratic_witness import (
    QuadraticWitness,
    RoundsClaim,
    quadratic_witness,
)
from fltheory.worst_case.audits.witness import WorstClients, worst_clients_at
from fltheory.worst_case.rounds.bound import Bound, best_bound_of, least_rate_of
from fltheory.worst_case.rounds.client_class import exact
from fltheory.worst_case.rounds.descent import DescentBound, best_descent_of, largest_decrease_of
from fltheory.worst_case.rounds.measure import (
    DESCENT,
    DISTANCE,
    AnyClass,
    Claim,
    DescentClaim,
    Measure,
)
from fltheory.worst_case.rounds.one_round import OneRound

_MOST_ROUNDS = 512
_SPEEDS_TRIED = 6
_LEVELS = {"heterogeneity": sigma_G, "noise": sigma, "server_noise": sigma_s}

Witness = WorstClients | QuadraticWitness
Values = dict[sp.Basic | complex, Any]


@dataclass(frozen=True)
class SafariRound:
    """SAFARI's round as an audit plays it, in fractions.

    Parameters
    ----------
    eligible, excluded, participants, local_steps : int
        Clients who can be drawn and who cannot, m and K.
    q, client_lr, assist_lr : number
        Where the clients' step is left out it is the largest of 1/(8LK), 1/(9LK), .. that meets
        the theorem's hypotheses on it; the server's then follows the theorem's coupling.

    Raises
    ------
    ValueError
        For numbers that are no fractions or out of range.
    """

    _: KW_ONLY
    eligible: int
    participants: int
    local_steps: int
    q: Any
    client_lr: Any = None
    excluded: int = 0
    assist_lr: Any = None

    def __post_init__(self) -> None:
        eligible = validation.whole_number("eligible", self.eligible, at_least=1)
        validation.whole_number("excluded", self.excluded, at_least=0)
        validation.whole_number("local_steps", self.local_steps, at_least=1)
        drawn = validation.whole_number("participants", self.participants, at_least=1)
        if drawn > eligible:
            raise ValueError(f"participants must be at most the {eligible} eligible, got {drawn}")
        chance = exact("q", self.q)
        if chance > 1:
            raise ValueError(f"q must be at most 1, got {self.q!r}")
        object.__setattr__(self, "q", chance)
        for name in ("client_lr", "assist_lr"):
            step = getattr(self, name)
            if step is not None:
                object.__setattr__(self, name, exact(name, step, above=0))

    def coupled(self, theorem: Theorem, clients: AnyClass) -> OneRound:
        """Return the round, with the steps that a theorem asks for where none are set.

        Raises
        ------
        ValueError
            If the theorem does not tie the server's to the clients'.
        """
        n_clients = self.eligible + self.excluded
        a_round = OneRound(
            n_clients=n_clients,
            excluded_share=Fraction(self.excluded, n_clients),
            participants=self.participants,
            local_steps=self.local_steps,
            client_lr=self.client_lr or Fraction(1),
            server_lr=Fraction(1),
            assist_lr=self.assist_lr or Fraction(1),
            q=self.q,
        )
        if self.client_lr is None:
            a_round = replace(a_round, client_lr=_largest_step(theorem, clients, a_round))
        if self.assist_lr is not None:
            return a_round
        return replace(a_round, assist_lr=_coupled_step(theorem, clients, a_round))


def _largest_step(theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Fraction:
    """Return the largest of 1/(8LK), 1/(9LK), .. that meets the hypotheses on this step alone."""
    settled = {eta_c, K, L, mu}
    asked = [
        hypothesis
        for hypothesis in theorem.hypotheses
        if eta_c in hypothesis.condition.free_symbols <= settled
    ]
    steps = (1 / (k * clients.L * a_round.local_steps) for k in range(8, 10**6))
    return next(
        step
        for step in steps
        if all(holds(h, values_of(clients, replace(a_round, client_lr=step))) for h in asked)
    )


def _coupled_step(theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Fraction:
    values = {s: v for s, v in values_of(clients, a_round).items() if s is not eta_s}
    for hypothesis in theorem.hypotheses:
        if isinstance(hypothesis.condition, sp.Eq) and eta_s in hypothesis.condition.free_symbols:
            steps = sp.solve(hypothesis.condition.subs(values), eta_s)
            if len(steps) == 1:
                return as_fraction(steps[0])
    raise ValueError(f"assist_lr must be given, {theorem.id} does not tie it to client_lr")


def values_of(clients: AnyClass, a_round: OneRound) -> Values:
    """Return the values of the symbols that a round and a class settle."""
    numbers = {
        L: clients.L,
        mu: clients.mu,
        eta_c: a_round.client_lr,
        eta_s: a_round.assist_lr,
        q: a_round.q,
        K: Fraction(a_round.local_steps),
        m: Fraction(a_round.participants),
        sigma_G: clients.dissimilarity,
        sigma: clients.sigma,
        sigma_s: clients.server_sigma,
    }
    return {s: sp.Rational(v.numerator, v.denominator) for s, v in numbers.items()}


def holds(hypothesis: Hypothesis, values: Mapping[sp.Basic | complex, Any]) -> bool | None:
    """Return whether a hypothesis holds, None where a trajectory decides."""
    decided = hypothesis.condition.subs(values)
    return bool(decided) if decided in (sp.true, sp.false) else None


class TheoremForm(ABC):
    """A form of bounds for all R.

    Attributes
    ----------
    measure : Measure
    one_round, all_rounds : str
        The inequalities, in plain text.
    """

    measure: ClassVar[Measure]
    one_round: ClassVar[str]
    all_rounds: ClassVar[str]

    @abstractmethod
    def start_in(self, quantity: BoundedQuantity, bound: sp.Expr) -> sp.Expr | None:
        """Return what the bound's distance or loss at the start is multiplied by.

        None for a bound of another form.
        """

    def start(self, theorem: Theorem) -> sp.Expr:
        """Return the same of a theorem of this form."""
        found: Any = self.start_in(theorem.quantity, _bound_of(theorem))
        return found

    def check(self, theorem: Theorem, clients: AnyClass) -> None:
        """Check that a theorem's bound can be asked of a class of clients.

        Raises
        ------
        ValueError
            If it cannot, with the reason.
        """
        self.measure.check(clients)
        if clients.mu == 0 and mu in _bound_of(theorem).free_symbols:
            raise ValueError(
                f"mu must be above 0 for {theorem.id}, whose bound is for strongly convex clients, "
                "got 0"
            )

    @abstractmethod
    def parts(
        self, theorem: Theorem, clients: AnyClass, a_round: OneRound, steps: Values | None = None
    ) -> dict[str, sp.Expr]:
        """Return a bound's speed and its floor's coefficients, of other step sizes if given."""

    @abstractmethod
    def claim(self, theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Any:
        """Return the one-round inequality whose iteration gives the theorem's bound."""

    @abstractmethod
    def enough(self, theorem: Theorem, claim: Any, best_speed: float) -> Iterator[Any]:
        """Yield claims on one round each of which implies the theorem's bound for all R."""

    @abstractmethod
    def best(self, a_round: OneRound, clients: AnyClass, speed: Fraction | None) -> Any:
        """Return the best bound at a speed, or of the least floor."""

    @abstractmethod
    def best_speed(self, a_round: OneRound, clients: AnyClass) -> float:
        """Return the best speed that can be proved."""

    @abstractmethod
    def bound(self, a_round: OneRound, clients: AnyClass, claim: Any) -> Any:
        """Return a claim as a bound."""

    @abstractmethod
    def slower(self, speed: float, best_speed: float) -> float:
        """Return how many times as many rounds a speed takes as the best."""

    @abstractmethod
    def witness(self, a_round: OneRound, clients: AnyClass, claim: Any) -> Witness | None:
        """Return clients that break a claim on one round, None if none are found."""

    @abstractmethod
    def rounds_witness(
        self, theorem: Theorem, a_round: OneRound, clients: AnyClass, claim: Any
    ) -> Witness | None:
        """Return clients that break the bound for some R, None if none are found."""

    def without_condition(self, a_round: OneRound, claim: Any) -> Any | None:
        """Return the claim that the proof gives without its condition on q, None if unknown."""
        return None

    def _floor(
        self, theorem: Theorem, floor: sp.Expr, clients: AnyClass, a_round: OneRound, steps: Any
    ) -> tuple[dict[str, sp.Expr], Values]:
        """Return a floor's coefficients of the squared levels, and what symbols stand for."""
        expanded = sp.expand(floor)
        parts = {name: expanded.coeff(symbol, 2) for name, symbol in _LEVELS.items()}
        rest = expanded - sum(parts[name] * symbol**2 for name, symbol in _LEVELS.items())
        if sp.expand(rest) != 0 or any(R in part.free_symbols for part in parts.values()):
            raise ValueError(
                f"theorem must have a floor in sigma_G^2, sigma^2 and sigma_s^2, got {expanded}"
            )
        values = {s: v for s, v in values_of(clients, a_round).items() if s not in _LEVELS.values()}
        return parts, values | (steps or {})


def form_of(theorem: Statement) -> TheoremForm:
    """Return a theorem's form.

    Raises
    ------
    ValueError
        For a theorem of neither form.
    """
    claimed = theorem.bound_on_run
    for form in FORMS:
        if claimed is not None and form.start_in(*claimed) is not None:
            return form
    raise ValueError(
        "theorem must bound E||x_R - x*||^2 by rate^R D_0^2 + floor, or the mean of "
        f"E||grad F(x_r)||^2 by Delta_0 / (decrease R) + floor, got {theorem.id}: no one-round "
        "inequality can be read off it"
    )


def _bound_of(theorem: Theorem) -> Any:
    assert theorem.bound_on_run is not None
    return theorem.bound_on_run[1]


def _distance_between(above: float, below: float) -> Fraction:
    """Return how far one number is above another; zero if it is not, or one of them is NaN."""
    return Fraction(above - below) if above > below else Fraction(0)


class _DistanceForm(TheoremForm):
    measure = DISTANCE
    one_round = "E||x+||^2 <= rate ||x||^2 + (1 - rate) floor"
    all_rounds = "E||x_R||^2 <= rate^R D_0^2 + floor"

    def start_in(self, quantity: BoundedQuantity, bound: sp.Expr) -> sp.Expr | None:
        if (quantity.field, quantity.reduction) != ("squared_distance", "last"):
            return None
        start = bound.coeff(D_0, 2)
        return start if isinstance(start, sp.Pow) and start.exp == R else None

    def parts(
        self, theorem: Theorem, clients: AnyClass, a_round: OneRound, steps: Values | None = None
    ) -> dict[str, sp.Expr]:
        start: Any = self.start(theorem)
        floor = _bound_of(theorem) - start * D_0**2
        parts, values = self._floor(theorem, floor, clients, a_round, steps)
        return {"rate": start.base.subs(values)} | {
            name: part.subs(values) for name, part in parts.items()
        }

    def claim(self, theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Claim:
        parts = self.parts(theorem, clients, a_round)
        rate = as_fraction(parts.pop("rate"))
        return Claim(rate, **{name: (1 - rate) * as_fraction(p) for name, p in parts.items()})

    def enough(self, theorem: Theorem, claim: Claim, best_speed: float) -> Iterator[Claim]:
        """Yield it, then faster rates with the same floor."""
        yield claim
        away = _distance_between(float(claim.rate), best_speed) / (_SPEEDS_TRIED + 1)
        for share in range(1, _SPEEDS_TRIED + 1):
            rate = claim.rate - (share * away).limit_denominator(10**12)
            factor = (1 - rate) / (1 - claim.rate)
            residual = (claim.heterogeneity, claim.noise, claim.server_noise)
            yield Claim(rate, *(factor * value for value in residual))

    def best(self, a_round: OneRound, clients: Any, speed: Fraction | None) -> Bound:
        return best_bound_of(a_round, clients, speed)

    def best_speed(self, a_round: OneRound, clients: Any) -> float:
        return least_rate_of(a_round, clients)

    def bound(self, a_round: OneRound, clients: Any, claim: Claim) -> Bound:
        numbers = {name: float(value) for name, value in vars(claim).items()}
        return Bound(a_round, clients, **numbers, given_rate=claim.rate)

    def slower(self, speed: float, best_speed: float) -> float:
        if not 0 < speed < 1 or not 0 < best_speed < 1:
            return math.nan
        return math.log(best_speed) / math.log(speed)

    def witness(self, a_round: OneRound, clients: Any, claim: Claim) -> Witness | None:
        one = RoundsClaim(1, claim.rate, claim.heterogeneity)
        found = quadratic_witness(a_round, clients, iter([one]))
        if found is not None or not clients.is_exact:
            return found
        try:
            worst = worst_clients_at(a_round, clients, claim.rate)
        except (ArithmeticError, ValueError):
            return None
        return worst if worst.excess(claim.rate, claim.heterogeneity) > 0 else None

    def rounds_witness(
        self, theorem: Theorem, a_round: OneRound, clients: Any, claim: Claim
    ) -> Witness | None:
        return quadratic_witness(a_round, clients, self._claims_of_rounds(claim))

    def _claims_of_rounds(self, claim: Claim) -> Iterator[RoundsClaim]:
        floor = claim.heterogeneity / (1 - claim.rate)
        rounds = 1
        while rounds <= _MOST_ROUNDS:
            yield RoundsClaim(rounds, claim.rate**rounds, floor)
            rounds *= 2


class _DescentForm(TheoremForm):
    measure = DESCENT
    one_round = "E F(x+) <= F(x) - decrease ||grad F(x)||^2 + decrease floor"
    all_rounds = "mean of E||grad F(x_r)||^2 <= Delta_0/(decrease R) + floor"

    def start_in(self, quantity: BoundedQuantity, bound: sp.Expr) -> sp.Expr | None:
        if (quantity.field, quantity.reduction) != ("squared_gradient", "mean"):
            return None
        # The mean of R rounds, from the start or from the first round's end on.
        rounds = (quantity.rounds.first, quantity.rounds.beyond_last)
        if quantity.weights is not None or rounds not in ((0, -1), (1, 0)):
            return None
        per_round = sp.simplify(sp.expand(bound).coeff(Delta_0, 1) * R)
        if per_round == 0 or R in per_round.free_symbols or sigma_s not in bound.free_symbols:
            return None
        return per_round

    def parts(
        self, theorem: Theorem, clients: AnyClass, a_round: OneRound, steps: Values | None = None
    ) -> dict[str, sp.Expr]:
        start: Any = self.start(theorem)
        floor = _bound_of(theorem) - start * Delta_0 / R
        parts, values = self._floor(theorem, floor, clients, a_round, steps)
        return {"decrease": (1 / start).subs(values)} | {
            name: part.subs(values) for name, part in parts.items()
        }

    def claim(self, theorem: Theorem, clients: AnyClass, a_round: OneRound) -> DescentClaim:
        parts = self.parts(theorem, clients, a_round)
        decrease = as_fraction(parts.pop("decrease"))
        return DescentClaim(
            decrease, **{name: decrease * as_fraction(part) for name, part in parts.items()}
        )

    def enough(
        self, theorem: Theorem, claim: DescentClaim, best_speed: float
    ) -> Iterator[DescentClaim]:
        """Yield larger decreases with the same floor, beginning with its own.

        Rounds 0 .. R sum to ``(Delta_0 + (R + 1) residual)/decrease`` at most. Where the mean is
        over 1 .. R the first of them is left out, and (R + 1)/R is 2 at most: half the floor will
        do for every R.
        """
        half = 1 + theorem.quantity.rounds.first
        away = _distance_between(best_speed, float(claim.decrease)) / (_SPEEDS_TRIED + 1)
        for share in range(_SPEEDS_TRIED + 1):
            decrease = claim.decrease + (share * away).limit_denominator(10**12)
            factor = decrease / claim.decrease / half
            residual = (claim.heterogeneity, claim.noise, claim.server_noise)
            yield DescentClaim(decrease, *(factor * value for value in residual))

    def best(self, a_round: OneRound, clients: AnyClass, speed: Fraction | None) -> DescentBound:
        return best_descent_of(a_round, clients, speed)

    def best_speed(self, a_round: OneRound, clients: AnyClass) -> float:
        return largest_decrease_of(a_round, clients)

    def bound(self, a_round: OneRound, clients: AnyClass, claim: DescentClaim) -> DescentBound:
        numbers = {name: float(value) for name, value in vars(claim).items()}
        return DescentBound(a_round, clients, **numbers, given_decrease=claim.decrease)

    def slower(self, speed: float, best_speed: float) -> float:
        return best_speed / speed if speed > 0 else math.nan

    def witness(self, a_round: OneRound, clients: AnyClass, claim: DescentClaim) -> Witness | None:
        return quadratic_descent_witness(a_round, clients, claim)

    def rounds_witness(
        self, theorem: Theorem, a_round: OneRound, clients: AnyClass, claim: DescentClaim
    ) -> Witness | None:
        first = theorem.quantity.rounds.first
        return quadratic_gradient_witness(a_round, clients, claim, first)

    def without_condition(self, a_round: OneRound, claim: DescentClaim) -> DescentClaim:
        """Return what (52) gives before (54): ``4 q sigma_G^2`` more of a floor."""
        more = 4 * a_round.q * claim.decrease
        return replace(claim, heterogeneity=claim.heterogeneity + more)


DISTANCE_FORM, DESCENT_FORM = _DistanceForm(), _DescentForm()
FORMS: tuple[TheoremForm, ...] = (DISTANCE_FORM, DESCENT_FORM)
AnyBound = Bound | DescentBound

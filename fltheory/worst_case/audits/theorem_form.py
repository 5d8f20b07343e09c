"""The forms of theorems that can be audited, each with a one-round inequality that implies it.

A form derives the one-round inequality from a theorem's bound. It also knows which other
inequalities imply the bound for all R, and which problems may break these inequalities.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import sympy as sp
from sympy.parsing.sympy_parser import parse_expr

from fltheory.claims.statement import Basis, Statement
from fltheory.decimals import as_fraction
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.theorems import BoundedQuantity, Theorem
from fltheory.worst_case.audits.quadratic_witness import (
    QuadraticWitness,
    RoundsClaim,
    quadratic_descent_witness,
    quadratic_gradient_witness,
    quadratic_witness,
)
from fltheory.worst_case.audits.witness import WorstClients, worst_clients_at
from fltheory.worst_case.rounds.measure import DESCENT, DISTANCE, AnyClass, Claim, Given, Measure
from fltheory.worst_case.rounds.one_round import OneRound

# ------------------------------------------------------------ a statement in numbers

Values = dict[sp.Basic | complex, Any]

_WHOLE = ("local_steps", "participants", "n_clients", "rounds")
_POSITIVE = ("L", "client_lr", "server_lr")
_OTHERS = (
    "mu",
    "assist_lr",
    "q",
    "sigma",
    "server_sigma",
    "sigma_G",
    "squared_distance",
    "excess_loss",
    "least_availability",
    "largest_availability",
)
NUMBERS: Mapping[str, sp.Symbol] = (
    {name: sp.Symbol(name, positive=True, integer=True) for name in _WHOLE}
    | {name: sp.Symbol(name, positive=True) for name in _POSITIVE}
    | {name: sp.Symbol(name, nonnegative=True) for name in _OTHERS}
)
"""Numbers of a setting that a class and a round have, or that a bound starts from, by name.

They are symbols themselves, so that a form of theorem is found whatever letters its author chose.
"""


def formulas_of(statement: Basis) -> dict[sp.Symbol, sp.Expr]:
    """Return a formula for each symbol of a statement, in terms of `NUMBERS` where possible."""
    return {symbol: _formula(text) for symbol, text in statement.quantities.items()}


@lru_cache(maxsize=256)
def _formula(text: str) -> sp.Expr:
    return parse_expr(text, local_dict=dict(NUMBERS))


def names_in(theorem: Theorem, expression: sp.Basic) -> set[str]:
    """Return the names of the numbers of a setting that a statement's formula depends on.

    A symbol that the statement does not define is returned under its own name, in brackets.
    """
    formulas = formulas_of(theorem)
    names: set[str] = set()
    for symbol in _without_definitions(theorem, expression).free_symbols:
        own = formulas.get(symbol)
        names |= {f"[{symbol}]"} if own is None else {str(s) for s in own.free_symbols}
    return names


def bound_in_numbers(theorem: Statement) -> Any:
    """Return the bound on a run in terms of `NUMBERS`, after substituting all definitions.

    Raises
    ------
    ValueError
        If the statement does not define one of its symbols.
    """
    assert theorem.bound_on_run is not None
    bound: Any = theorem.bound_on_run[1]
    formulas: dict[Any, Any] = formulas_of(theorem.basis)
    for symbol in sorted(bound.free_symbols, key=str):
        if symbol not in formulas:
            raise ValueError(
                f"the value of {symbol} must be a formula in numbers of a setting for {theorem.id} "
                "to be proved, e.g. 'sqrt(squared_distance)'"
            )
    # As everywhere in proofs, a float stands for its shortest decimal.
    decimals = {number: sp.Rational(str(float(number))) for number in bound.atoms(sp.Float)}
    return bound.xreplace({**formulas, **decimals})


def numbers_of(clients: AnyClass, a_round: OneRound) -> dict[str, Fraction]:
    """Return the numbers that a class and a round determine, by name."""
    numbers = {
        "L": clients.L,
        "mu": clients.mu,
        "client_lr": a_round.client_lr,
        "server_lr": a_round.server_lr,
        "assist_lr": a_round.assist_lr,
        "q": a_round.q,
        "local_steps": Fraction(a_round.local_steps),
        "participants": Fraction(a_round.participants),
        "sigma_G": clients.dissimilarity,
        "sigma": clients.sigma,
        "server_sigma": clients.server_sigma,
    }
    if a_round.n_clients is not None:
        numbers["n_clients"] = Fraction(a_round.n_clients)
        chance = Fraction(a_round.participants, int(a_round.n_eligible or 1))
        numbers["largest_availability"] = chance
        numbers["least_availability"] = chance if a_round.excluded_share == 0 else Fraction(0)
    return numbers


def values_in_numbers(clients: AnyClass, a_round: OneRound) -> Values:
    """Return the values of those of `NUMBERS` that a class and a round determine."""
    return {
        NUMBERS[name]: sp.Rational(value.numerator, value.denominator)
        for name, value in numbers_of(clients, a_round).items()
    }


def holds(
    theorem: Theorem, hypothesis: Hypothesis, clients: AnyClass, a_round: OneRound
) -> bool | None:
    """Return whether a hypothesis holds, or None if that depends on the trajectory."""
    if not hypothesis.is_known:
        return None
    decided = with_values(theorem, hypothesis.condition, values_in_numbers(clients, a_round))
    return bool(decided) if decided in (sp.true, sp.false) else None


def given_in(
    theorem: Theorem, clients: AnyClass, a_round: OneRound, reductions: AbstractSet[str]
) -> Given | None:
    """Return a theorem's assumption about a run, if it is linear in quantities of the program.

    The assumption must be reduced over rounds in one of the given ways, so that the inequality for
    a single round may use it.
    """
    values = values_in_numbers(clients, a_round)
    level = NUMBERS["sigma_G"]
    del values[level]
    fields: dict[Any, str] = {item.symbol: item.field for item in theorem.round_symbols}
    for hypothesis in theorem.hypotheses:
        used = hypothesis.condition.free_symbols & fields.keys()
        own = [item for item in theorem.round_symbols if item.symbol in used]
        before_each = {(item.rounds.first, item.rounds.beyond_last) for item in own} <= {(0, -1)}
        ways = {item.reduction for item in own} <= reductions
        if not (own and before_each and ways and isinstance(hypothesis.condition, sp.Le)):
            continue
        left, right = hypothesis.condition.args
        apart: Any = left
        apart = apart - right
        rest: Any = sp.expand(with_values(theorem, apart, values, unknown={level}))
        found = dict.fromkeys(_SEEN.values(), sp.Integer(0))
        for symbol in used:
            found[_SEEN[fields[symbol]]] = rest.coeff(symbol, 1)
            rest = rest - symbol * rest.coeff(symbol, 1)
        found["heterogeneity"] = sp.expand(rest).coeff(level, 2)
        if sp.expand(rest - found["heterogeneity"] * level**2) == 0 and all(
            value.is_Rational for value in found.values()
        ):
            exact = {name: as_fraction(value) for name, value in found.items()}
            # Every positive multiple is equivalent; in this one, the largest coefficient is one.
            largest = max(map(abs, exact.values())) or Fraction(1)
            return Given(hypothesis.name, **{n: v / largest for n, v in exact.items()})
    return None


_SEEN = {
    "squared_gradient": "gradient",
    "participant_gradient_sum": "moved",
    "participant_excess_loss": "values",
}


def with_values(
    theorem: Theorem,
    expression: Any,
    values: Mapping[Any, Any],
    unknown: AbstractSet[Any] = frozenset(),
) -> Any:
    """Return a statement's formula with values substituted for the symbols that have one.

    Values may be formulas in ``unknown`` symbols, which do not occur in any statement.
    """
    own: dict[Any, Any] = {}
    for symbol, formula in formulas_of(theorem).items():
        value = formula.subs(values)
        # If a value is still a formula, a symbol of the statement in it could be mistaken for the
        # number in `NUMBERS` that has the same name.
        if value.free_symbols <= unknown:
            own[symbol] = value
    return _without_definitions(theorem, expression).subs(own)


def _without_definitions(theorem: Theorem, expression: Any) -> Any:
    definitions: dict[Any, Any] = dict(theorem.definitions)
    # A definition may use earlier definitions.
    for symbol in reversed(definitions):
        expression = expression.subs(symbol, definitions[symbol])
    return expression


# ------------------------------------------------------------ its form

_MOST_ROUNDS = 512
_SPEEDS_TRIED = 6
_LEVELS = {
    "heterogeneity": NUMBERS["sigma_G"],
    "noise": NUMBERS["sigma"],
    "server_noise": NUMBERS["server_sigma"],
}
# A single level for the noise of clients and of the server.
_EITHER = sp.Dummy("sigma", positive=True)
_BOTH = sp.Max(_LEVELS["noise"], _LEVELS["server_noise"])
_ROUNDS = NUMBERS["rounds"]
_DISTANCE, _EXCESS = NUMBERS["squared_distance"], NUMBERS["excess_loss"]

Witness = WorstClients | QuadraticWitness


class TheoremForm(ABC):
    """A form of bounds for all R.

    Attributes
    ----------
    measure : Measure
    reductions : frozenset of str
        The reductions over rounds for which each round's inequality may use an assumption about the
        run.
    one_round, all_rounds : str
        The inequalities, in plain text.
    """

    measure: ClassVar[Measure]
    reductions: ClassVar[frozenset[str]]
    one_round: ClassVar[str]
    all_rounds: ClassVar[str]

    @abstractmethod
    def bounds(self, quantity: BoundedQuantity) -> bool:
        """Whether bounds of this form bound this quantity."""

    @abstractmethod
    def start_in(self, quantity: BoundedQuantity, bound: sp.Expr) -> sp.Expr | None:
        """Return the coefficient of the distance or loss at the start in a bound.

        The bound is given in terms of `NUMBERS`. The result is None if the bound has another form.
        """

    def start(self, theorem: Theorem) -> sp.Expr:
        """Return the coefficient from `start_in` for a theorem of this form."""
        found: Any = self.start_in(theorem.quantity, bound_in_numbers(theorem))
        return found

    def floor_is_noise(self, theorem: Statement) -> bool:
        """Whether the clients' noise is the only term of a theorem's bound apart from the start."""
        levels = bound_in_numbers(theorem).free_symbols & set(_LEVELS.values())
        return bool(levels == {_LEVELS["noise"]})

    def check(self, theorem: Statement, clients: AnyClass) -> None:
        """Check that the theorem's bound can be stated for a class of clients.

        Raises
        ------
        ValueError
            If it cannot; the message gives the reason.
        """
        self.measure.check(clients)
        if clients.mu == 0 and NUMBERS["mu"] in bound_in_numbers(theorem).free_symbols:
            raise ValueError(
                f"mu must be above 0 for {theorem.id}, whose bound is for strongly convex clients, "
                "got 0"
            )
        if bound_in_numbers(theorem).has(_BOTH) and clients.sigma != clients.server_sigma:
            raise ValueError(
                f"server_sigma must equal sigma for {theorem.id}, which uses one noise level for "
                f"both, got {clients.server_sigma} and {clients.sigma}"
            )

    @abstractmethod
    def parts(
        self, theorem: Theorem, clients: AnyClass, a_round: OneRound, steps: Values | None = None
    ) -> dict[str, sp.Expr]:
        """Return a bound's speed and its floor's coefficients, at different step sizes if given."""

    @abstractmethod
    def claim(self, theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Any:
        """Return the one-round inequality that gives the theorem's bound when it is iterated."""

    @abstractmethod
    def enough(self, theorem: Theorem, claim: Any, best_speed: float) -> Iterator[Any]:
        """Yield claims on one round; each of them implies the theorem's bound for all R."""

    @abstractmethod
    def slower(self, speed: float, best_speed: float) -> float:
        """Return the ratio of the rounds needed at a speed to those needed at the best speed."""

    @abstractmethod
    def witness(self, a_round: OneRound, clients: AnyClass, claim: Any) -> Witness | None:
        """Return clients that break a claim on one round, or None if none are found."""

    @abstractmethod
    def rounds_witness(
        self, theorem: Theorem, a_round: OneRound, clients: AnyClass, claim: Any
    ) -> Witness | None:
        """Return clients that break the bound for some R, or None if none are found."""

    def without_condition(self, theorem: Theorem, a_round: OneRound, claim: Any) -> Any | None:
        """Return the claim that the proof gives without its condition on q, or None if unknown."""
        return None

    def _floor(
        self, floor: sp.Expr, clients: AnyClass, a_round: OneRound, steps: Any
    ) -> tuple[dict[str, sp.Expr], Values]:
        """Return the coefficients of the squared levels in a floor, and the values of `NUMBERS`."""
        parts, rest = _of_levels(floor)
        if rest != 0 or any(_ROUNDS in part.free_symbols for part in parts.values()):
            raise ValueError(
                "theorem must have a floor in sigma_G^2, sigma^2 and sigma_s^2, got "
                f"{sp.expand(floor)}"
            )
        values = values_in_numbers(clients, a_round)
        settled = {s: v for s, v in values.items() if s not in _LEVELS.values()}
        return parts, settled | (steps or {})


def _of_levels(floor: sp.Expr) -> tuple[dict[str, sp.Expr], sp.Expr]:
    """Return the coefficients of the squared levels in a floor, and the remaining terms."""
    expanded = sp.expand(floor.subs(_BOTH, _EITHER))
    levels = _LEVELS | ({"either": _EITHER} if expanded.has(_EITHER) else {})
    parts = {name: expanded.coeff(level, 2) for name, level in levels.items()}
    rest = expanded - sum(parts[name] * level**2 for name, level in levels.items())
    return parts, sp.expand(rest)


def _claim_of(
    speed: Fraction,
    away: Fraction,
    floor: dict[str, Fraction],
    measure: Measure,
    clients: AnyClass,
    a_round: OneRound,
) -> Claim:
    """Return a claim with a residual of ``away`` times a floor.

    Where one level stands for the noise of clients and server, the server's part is the known
    amount that its noise adds, and the clients' part is the rest. A proof for both parts bounds the
    sum.
    """
    residual = {name: away * part for name, part in floor.items()}
    either = residual.pop("either", None)
    claim = Claim(speed, **residual, measure=measure)  # type: ignore[arg-type]
    if either is None:
        return claim
    server = measure.server_noise(a_round, clients)
    return replace(claim, noise=claim.noise + either - server, server_noise=server)


def form_of(theorem: Statement) -> TheoremForm:
    """Return a theorem's form.

    Raises
    ------
    ValueError
        If the theorem has neither form.
    """
    claimed = theorem.bound_on_run
    for form in FORMS:
        if claimed is None or not form.bounds(claimed[0]):
            continue
        if form.start_in(claimed[0], bound_in_numbers(theorem)) is not None:
            return form
    raise ValueError(
        "theorem must bound E||x_R - x*||^2 by rate^R D_0^2 + floor, or the mean of "
        f"E||grad F(x_r)||^2 by Delta_0 / (decrease R) + floor, got {theorem.id}: no one-round "
        "inequality can be read off it (docs/every-loss.md says what is covered)"
    )


def _rate_of(start: sp.Expr) -> sp.Expr | None:
    """Return the rate of a factor ``rate^R``, however it is written, or None for another form."""
    rate: Any = sp.Integer(1)
    for factor in sp.Mul.make_args(start):
        base, exponent = factor.as_base_exp()
        power = sp.simplify(exponent / _ROUNDS)
        if _ROUNDS in base.free_symbols | power.free_symbols:
            return None
        rate *= base**power
    return rate


def _fractions(theorem: Theorem, parts: dict[str, sp.Expr]) -> dict[str, Fraction]:
    """Return a bound's coefficients as fractions.

    Raises
    ------
    ValueError
        If one of them is not a fraction for this round and class.
    """
    found = {}
    for name, part in parts.items():
        value = part if part.is_Rational else sp.simplify(part)
        if not value.is_Rational:
            raise ValueError(
                f"{name} of {theorem.id} must be a fraction for the round's numbers to be "
                f"proved, got {value}"
            )
        found[name] = as_fraction(value)
    return found


def _distance_between(above: float, below: float) -> Fraction:
    """Return how far one number is above another, or zero if it is not or if either is NaN."""
    return Fraction(above - below) if above > below else Fraction(0)


class _DistanceForm(TheoremForm):
    measure = DISTANCE
    reductions = frozenset(["every"])
    one_round = "E||x+||^2 <= rate ||x||^2 + (1 - rate) floor"
    all_rounds = "E||x_R||^2 <= rate^R D_0^2 + floor"

    def bounds(self, quantity: BoundedQuantity) -> bool:
        return (quantity.field, quantity.reduction, quantity.rounds.beyond_last) == (
            "squared_distance",
            "last",
            0,
        )

    def start_in(self, quantity: BoundedQuantity, bound: sp.Expr) -> sp.Expr | None:
        start = bound.coeff(_DISTANCE)  # without such a factor, it is zero and has no rate
        return None if _rate_of(start) is None else start

    def parts(
        self, theorem: Theorem, clients: AnyClass, a_round: OneRound, steps: Values | None = None
    ) -> dict[str, sp.Expr]:
        start: Any = self.start(theorem)
        floor = bound_in_numbers(theorem) - start * _DISTANCE
        parts, values = self._floor(floor, clients, a_round, steps)
        rate: Any = _rate_of(start)
        return {"rate": rate.subs(values)} | {
            name: part.subs(values) for name, part in parts.items()
        }

    def claim(self, theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Claim:
        parts = _fractions(theorem, self.parts(theorem, clients, a_round))
        rate = parts.pop("rate")
        return _claim_of(rate, 1 - rate, parts, DISTANCE, clients, a_round)

    def enough(self, theorem: Theorem, claim: Claim, best_speed: float) -> Iterator[Claim]:
        """Yield the claim itself, then faster rates with the same floor."""
        yield claim
        away = _distance_between(float(claim.speed), best_speed) / (_SPEEDS_TRIED + 1)
        for share in range(1, _SPEEDS_TRIED + 1):
            rate = claim.speed - (share * away).limit_denominator(10**12)
            factor = (1 - rate) / (1 - claim.speed)
            yield claim.times(factor, rate)

    def slower(self, speed: float, best_speed: float) -> float:
        if not 0 < speed < 1 or not 0 < best_speed < 1:
            return math.nan
        return math.log(best_speed) / math.log(speed)

    def witness(self, a_round: OneRound, clients: Any, claim: Claim) -> Witness | None:
        one = RoundsClaim(1, claim.speed, claim.heterogeneity)
        found = quadratic_witness(a_round, clients, iter([one]))
        if found is not None or not clients.is_exact:
            return found
        try:
            worst = worst_clients_at(a_round, clients, claim.speed)
        except (ArithmeticError, ValueError):
            return None
        return worst if worst.excess(claim.speed, claim.heterogeneity) > 0 else None

    def rounds_witness(
        self, theorem: Theorem, a_round: OneRound, clients: Any, claim: Claim
    ) -> Witness | None:
        return quadratic_witness(a_round, clients, self._claims_of_rounds(claim))

    def _claims_of_rounds(self, claim: Claim) -> Iterator[RoundsClaim]:
        floor = claim.heterogeneity / (1 - claim.speed)
        rounds = 1
        while rounds <= _MOST_ROUNDS:
            yield RoundsClaim(rounds, claim.speed**rounds, floor)
            rounds *= 2


class _DescentForm(TheoremForm):
    measure = DESCENT
    # The inequalities of all rounds are summed, so an assumption need only hold on average.
    reductions = frozenset(["every", "mean"])
    one_round = "E F(x+) <= F(x) - decrease ||grad F(x)||^2 + decrease floor"
    all_rounds = "mean of E||grad F(x_r)||^2 <= Delta_0/(decrease R) + floor"

    def bounds(self, quantity: BoundedQuantity) -> bool:
        if (quantity.field, quantity.reduction) != ("squared_gradient", "mean"):
            return False
        # The mean over R models, beginning with the initial model or with that after the first
        # round.
        rounds = (quantity.rounds.first, quantity.rounds.beyond_last)
        return quantity.weights is None and rounds in ((0, -1), (1, 0))

    def start_in(self, quantity: BoundedQuantity, bound: sp.Expr) -> sp.Expr | None:
        per_round = sp.simplify(sp.expand(bound).coeff(_EXCESS) * _ROUNDS)
        if per_round == 0 or _ROUNDS in per_round.free_symbols:
            return None
        return per_round if _of_levels(bound - per_round * _EXCESS / _ROUNDS)[1] == 0 else None

    def parts(
        self, theorem: Theorem, clients: AnyClass, a_round: OneRound, steps: Values | None = None
    ) -> dict[str, sp.Expr]:
        start: Any = self.start(theorem)
        floor = bound_in_numbers(theorem) - start * _EXCESS / _ROUNDS
        parts, values = self._floor(floor, clients, a_round, steps)
        return {"decrease": (1 / start).subs(values)} | {
            name: part.subs(values) for name, part in parts.items()
        }

    def claim(self, theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Claim:
        parts = _fractions(theorem, self.parts(theorem, clients, a_round))
        decrease = parts.pop("decrease")
        return _claim_of(decrease, decrease, parts, DESCENT, clients, a_round)

    def enough(self, theorem: Theorem, claim: Claim, best_speed: float) -> Iterator[Claim]:
        """Yield larger decreases with the same floor, beginning with that of the claim.

        The sum over rounds 0 .. R is at most ``(Delta_0 + (R + 1) residual)/decrease``. Where the
        mean is over 1 .. R, round 0 is left out. As (R + 1)/R is at most 2, the claim with half the
        floor implies the bound for every R.
        """
        half = 1 + theorem.quantity.rounds.first
        away = _distance_between(best_speed, float(claim.speed)) / (_SPEEDS_TRIED + 1)
        for share in range(_SPEEDS_TRIED + 1):
            decrease = claim.speed + (share * away).limit_denominator(10**12)
            factor = decrease / claim.speed / half
            yield claim.times(factor, decrease)

    def slower(self, speed: float, best_speed: float) -> float:
        return best_speed / speed if speed > 0 else math.nan

    def witness(self, a_round: OneRound, clients: AnyClass, claim: Claim) -> Witness | None:
        return quadratic_descent_witness(a_round, clients, claim)

    def rounds_witness(
        self, theorem: Theorem, a_round: OneRound, clients: AnyClass, claim: Claim
    ) -> Witness | None:
        first = theorem.quantity.rounds.first
        return quadratic_gradient_witness(a_round, clients, claim, first)

    def without_condition(self, theorem: Theorem, a_round: OneRound, claim: Claim) -> Claim | None:
        """Return the claim of (52) before (54), which has a floor larger by ``4 q sigma_G^2``."""
        if "q" not in theorem.quantities.values():
            return None
        more = 4 * a_round.q * claim.speed
        return replace(claim, heterogeneity=claim.heterogeneity + more)


DISTANCE_FORM, DESCENT_FORM = _DistanceForm(), _DescentForm()
FORMS: tuple[TheoremForm, ...] = (DISTANCE_FORM, DESCENT_FORM)

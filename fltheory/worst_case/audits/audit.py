"""Printed theorems compared with the best bounds provable for all clients of their class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Statement
from fltheory.decimals import as_fraction
from fltheory.long_work.progress import Progress
from fltheory.theorems import Theorem
from fltheory.worst_case.audits.played_round import SafariRound
from fltheory.worst_case.audits.theorem_form import (
    DISTANCE_FORM,
    FORMS,
    NUMBERS,
    TheoremForm,
    Witness,
    form_of,
    given_in,
    holds,
)
from fltheory.worst_case.checker.one_round import BERNSTEIN, NODES, RESIDUAL, Box
from fltheory.worst_case.proof.proof_file import ClassOutcome
from fltheory.worst_case.rounds.bound import Bound, Solver, best_bound_of, best_speed_of, bound_of
from fltheory.worst_case.rounds.certificate import (
    Certificate,
    certificate_text,
    of_bits,
    proved,
    rounded_box,
)
from fltheory.worst_case.rounds.client_class import ClientClass, check_ratio, exact
from fltheory.worst_case.rounds.measure import DISTANCE, AnyClass, Claim, Given
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.slack import Form, Slack, slack_of


@dataclass(frozen=True)
class AuditFinding:
    """The outcome for one inequality.

    Attributes
    ----------
    outcome : ClassOutcome
    certificate : Certificate or None
        The proof.
    witness : WorstClients, QuadraticWitness or None
        Clients that break it.
    """

    outcome: ClassOutcome
    certificate: Certificate | None = None
    witness: Witness | None = None

    @property
    def given(self) -> bool:
        """Whether the proof covers only runs that meet the theorem's hypothesis about runs."""
        return self.certificate is not None and bool(self.certificate.proof.given)


@dataclass(frozen=True)
class Audit:
    """A theorem's bound compared with the best that can be proved.

    Attributes
    ----------
    theorem : Theorem
    form : TheoremForm
        The form of its bound, which is on the distance to x* or on the gradients of F.
    round : OneRound
    client_class : ClientClass or SmoothClass
    claim : Claim
        The one-round inequality that gives the theorem's bound when it is iterated.
    one_round, all_rounds : AuditFinding
        Findings on that inequality, and on the bound for all R and every start.
    hypotheses : mapping of str to bool or None
        Whether each hypothesis of the theorem holds here, by name. None means that this depends on
        the trajectory.
    supposed : Given or None
        The theorem's assumption about a run, if proofs can use it.
    same_speed : Bound or None
        The bound with the smallest residual at the theorem's rate or decrease, or None if none is
        found.
    given_residual : float or None
        The smallest residual at that speed for runs that meet the assumption.
    least_floor : Bound or None
    best_speed : float
        The smallest rate, or the largest decrease; NaN if the solver finds none.
    unconditional : AuditFinding or None
        The finding on the one-round inequality that the paper's proof gives without its condition
        on q, if that inequality is known; ``unconditional_claim`` is the inequality.
    unconditional_claim : Claim or None
    """

    theorem: Theorem
    form: TheoremForm
    round: OneRound
    client_class: AnyClass
    claim: Claim
    one_round: AuditFinding
    all_rounds: AuditFinding
    hypotheses: Mapping[str, bool | None]
    supposed: Given | None
    same_speed: Bound | None
    given_residual: float | None
    least_floor: Bound | None
    best_speed: float
    unconditional: AuditFinding | None = None
    unconditional_claim: Claim | None = None

    @property
    def paper(self) -> Bound:
        """The theorem's one-round inequality as a bound."""
        return self._bound(self.claim)

    def _bound(self, claim: Claim) -> Bound:
        return bound_of(self.round, self.client_class, claim)

    @property
    def residual_ratio(self) -> float:
        """How many times larger the paper's residual is than the smallest at the same speed."""
        best = self.same_speed
        return _ratio(self.paper.residual, None if best is None else best.residual)

    @property
    def unconditional_ratio(self) -> float:
        """The ratio of residuals without the paper's condition on q; NaN if unknown."""
        best, claim = self.same_speed, self.unconditional_claim
        if claim is None:
            return math.nan
        return _ratio(self._bound(claim).residual, None if best is None else best.residual)

    @property
    def floor_ratio(self) -> float:
        """How many times larger the paper's floor is than the smallest one."""
        best = self.least_floor
        return _ratio(self.paper.floor, None if best is None else best.floor)

    @property
    def rate_ratio(self) -> float:
        """Rounds needed at the paper's rate over rounds at the best: ``log(best)/log(rate)``.

        For gradients, it is the largest decrease divided by the theorem's decrease.
        """
        return self.form.slower(float(self.claim.speed), self.best_speed)

    @property
    def failed(self) -> tuple[str, ...]:
        """The hypotheses that fail here on any trajectory."""
        return tuple(name for name, fate in self.hypotheses.items() if fate is False)


def _ratio(above: float, below: float | None) -> float:
    if below is None:
        return math.nan
    if below == 0:
        return math.inf if above > 0 else math.nan
    return above / below


def audit(
    theorem: Theorem,
    client_class: AnyClass,
    played: SafariRound,
    *,
    progress: Progress | None = None,
) -> Audit:
    """Compare a theorem's bound on SAFARI with the best one that is provable for a whole class.

    Parameters
    ----------
    theorem : Theorem
        A theorem with a bound ``rate^R D_0^2 + floor``, such as SA-FL's Theorem 5 in any reading,
        or ``Delta_0/(decrease R) + floor`` for the mean squared gradient, such as SA-FL's Theorem
        4. The theorem's ``quantities`` say which number of a round or a class each symbol stands
        for.
    client_class : ClientClass or SmoothClass
        For a theorem about sigma_G, a class with heterogeneity "everywhere". `SmoothClass` is only
        for bounds on gradients.
    played : SafariRound
    progress : callable, optional
        Called with (stages done, stages, name of the next).

    Raises
    ------
    ValueError
        If the theorem is of a different kind, or if the class or the round does not fit it.

    Notes
    -----
    The solver takes most of the time, which grows with a high power of the number of local
    steps: 7 s for 15 steps, 2.5 minutes for 40. More than 60 steps, which is the most that the
    checker accepts, are refused at once.

    Examples
    --------
    >>> from fltheory import theorems
    >>> from fltheory.worst_case import ClientClass
    >>> clients = ClientClass(1, "1/10", "everywhere")
    >>> alone = SafariRound(eligible=4, participants=4, local_steps=1)
    >>> found = audit(theorems.get("sa-fl/5", "derived"), clients, alone)
    >>> found.one_round.outcome.name
    'PROVED'
    """
    form = _form_of(theorem, client_class, played)
    check_ratio(client_class)
    a_round = played.coupled(theorem, client_class)
    claim = form.claim(theorem, client_class, a_round)
    stage = _Stages(progress)
    stage("one round of the theorem's bound")
    one_round = judge(a_round, client_class, claim)
    stage(f"the best {form.measure.speed}")
    best_speed = _best_speed(form, a_round, client_class)
    without = form.without_condition(theorem, a_round, claim)
    stage(f"the least residual at the theorem's {form.measure.speed}")
    residual = _found(form, a_round, client_class, claim.speed)
    stage("the least floor")
    floor = _found(form, a_round, client_class, None)
    stage("all rounds")
    hypotheses = {h.name: holds(theorem, h, client_class, a_round) for h in theorem.hypotheses}
    supposed = None
    # Where another hypothesis fails, the theorem says nothing, even about runs that meet this
    # hypothesis.
    if False not in hypotheses.values():
        supposed = given_in(theorem, client_class, a_round, form.reductions)
    all_rounds = _all_rounds(theorem, a_round, client_class, claim, one_round, best_speed, supposed)
    stage("one round without the condition on q")
    unconditional = None if without is None else judge(a_round, client_class, without)
    return Audit(
        theorem,
        form,
        a_round,
        client_class,
        claim,
        one_round,
        all_rounds,
        hypotheses,
        supposed,
        residual,
        _given_residual(form, a_round, client_class, claim, supposed),
        # Near zero the solver's least floor is noise, and lies above the floor of the least
        # residual.
        min((one for one in (floor, residual) if one), key=lambda one: one.floor, default=None),
        best_speed,
        unconditional,
        without,
    )


class _Stages:
    """The stages of an audit, one after another."""

    _COUNT = 6

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = 0

    def __call__(self, name: str) -> None:
        if self._progress is not None:
            self._progress(self._done, self._COUNT, name)
        self._done += 1


def _best_speed(form: TheoremForm, a_round: OneRound, clients: AnyClass) -> float:
    """Return the best speed, or NaN if the solver finds none, as it does for far too long steps."""
    try:
        return best_speed_of(a_round, clients, form.measure)
    except ArithmeticError:
        return math.nan


def _found(
    form: TheoremForm, a_round: OneRound, clients: AnyClass, speed: Fraction | None
) -> Bound | None:
    try:
        return best_bound_of(a_round, clients, speed, form.measure)
    except ArithmeticError:
        return None


def worst_exclusion(theorem: Theorem, client_class: AnyClass, played: SafariRound) -> SafariRound:
    """Return the round with the largest least residual over all numbers of excluded clients.

    A theorem on arbitrary participants cannot know how many are excluded, so its bound is compared
    with the best bound that holds for every share.

    Parameters
    ----------
    theorem, client_class, played
        As in `audit`. The eligible and the excluded clients of ``played`` together are N.
    """
    form = _form_of(theorem, client_class, played)
    n_clients = played.eligible + played.excluded
    drawn = played.coupled(theorem, client_class).participants
    found: list[tuple[float, SafariRound]] = []
    for excluded in range(n_clients - drawn + 1):
        own = replace(played, eligible=n_clients - excluded, excluded=excluded, participants=drawn)
        a_round = own.coupled(theorem, client_class)
        claim = form.claim(theorem, client_class, a_round)
        supposed = given_in(theorem, client_class, a_round, form.reductions)
        least = _given_residual(form, a_round, client_class, claim, supposed)
        if supposed is None:
            best = _found(form, a_round, client_class, claim.speed)
            least = None if best is None else best.residual
        found.append((math.inf if least is None else least, own))
    return max(found, key=lambda one: one[0])[1]


def _given_residual(
    form: TheoremForm,
    a_round: OneRound,
    clients: AnyClass,
    claim: Claim,
    supposed: Given | None,
) -> float | None:
    """Return the least residual at a claim's speed, for runs that meet an assumption."""
    if supposed is None:
        return None
    solver = Solver(a_round, clients, form.measure, given=supposed)
    try:
        return solver.best(claim.speed).residual
    except ArithmeticError:
        return None


def judge(a_round: OneRound, clients: AnyClass, claim: Claim) -> AuditFinding:
    """Prove or refute a one-round inequality."""
    certificate = proved(a_round, clients, claim)
    if certificate is not None:
        return AuditFinding(ClassOutcome.PROVED, certificate)
    form = next(form for form in FORMS if form.measure is claim.measure)
    witness = form.witness(a_round, clients, claim)
    if witness is not None:
        return AuditFinding(ClassOutcome.REFUTED, witness=witness)
    return AuditFinding(ClassOutcome.UNDECIDED)


def _all_rounds(
    theorem: Theorem,
    a_round: OneRound,
    clients: AnyClass,
    claim: Claim,
    one_round: AuditFinding,
    best_speed: float,
    supposed: Given | None,
) -> AuditFinding:
    """Prove the bound for all R by an inequality on one round that implies it, or refute it.

    This first tries to prove the bound for any run, then for runs that meet the theorem's
    assumption about runs.
    """
    form = form_of(theorem)
    for given in (None, supposed) if supposed is not None else (None,):
        for enough in form.enough(theorem, claim, best_speed):
            if enough == claim and given is None:
                if one_round.certificate is not None:
                    return one_round
                continue
            certificate = proved(a_round, clients, replace(enough, given=given))
            if certificate is not None:
                return AuditFinding(ClassOutcome.PROVED, certificate)
    witness = form.rounds_witness(theorem, a_round, clients, claim)
    if witness is not None:
        return AuditFinding(ClassOutcome.REFUTED, witness=witness)
    return AuditFinding(ClassOutcome.UNDECIDED)


Parameter: TypeAlias = Literal["q", "client_lr"]


@dataclass(frozen=True)
class Threshold:
    """Where the verdict on a theorem's one-round inequality changes.

    Attributes
    ----------
    parameter : str
    proved : Fraction or None
        The largest value for which it was proved, or None if it was not proved even at the first
        value.
    refuted : Fraction or None
        The smallest value at which clients were found that break it, or None if none were found at
        the last value.
    proof, refutation : AuditFinding or None
        The findings at those values.
    """

    parameter: Parameter
    proved: Fraction | None
    refuted: Fraction | None
    proof: AuditFinding | None
    refutation: AuditFinding | None


@checks_kinds
def _form_of(theorem: Statement, client_class: AnyClass, played: SafariRound) -> TheoremForm:
    """Return a theorem's form, after checking that its bound can be stated for the class."""
    form = form_of(theorem)
    form.check(theorem, client_class)
    return form


def threshold(
    theorem: Theorem,
    client_class: AnyClass,
    played: SafariRound,
    parameter: Parameter,
    *,
    first: Any,
    last: Any,
    precision: Any = "1/1024",
) -> Threshold:
    """Find the largest value for which a one-round inequality is proved, and where it is refuted.

    The search halves an interval, assuming that whatever holds at a value also holds at all smaller
    ones. The verdicts at the two returned values do not depend on that assumption.

    Parameters
    ----------
    theorem, client_class, played
        As in `audit`.
    parameter : {"q", "client_lr"}
        The parameter that varies; its value in ``played`` is ignored. The server's step follows the
        coupling, unless it is set in ``played``.
    first, last : number
        The interval in which the threshold is sought.
    precision : number
        Halving ends when the two values are at most this far apart.

    Raises
    ------
    ValueError
        If `audit` refuses the arguments, or if ``first`` is not below ``last``.

    Examples
    --------
    >>> from fltheory import theorems
    >>> from fltheory.worst_case import ClientClass
    >>> clients = ClientClass(1, "1/10", "everywhere")
    >>> alone = SafariRound(eligible=4, participants=4, local_steps=1)
    >>> derived = theorems.get("sa-fl/5", "derived")
    >>> found = threshold(derived, clients, alone, "q", first=0, last="1/8", precision="1/8")
    >>> found.proved
    Fraction(1, 8)
    """
    validation.one_of("parameter", parameter, get_args(Parameter))
    form = _form_of(theorem, client_class, played)
    low, high = exact("first", first), exact("last", last, above=0)
    width = exact("precision", precision, above=0)
    if low >= high:
        raise ValueError(f"first must be below last = {high}, got {first!r}")
    known: dict[Fraction, AuditFinding] = {}

    def found(value: Fraction) -> AuditFinding:
        if value not in known:
            changed: Any = {parameter: value}
            a_round = replace(played, **changed).coupled(theorem, client_class)
            claim = form.claim(theorem, client_class, a_round)
            known[value] = judge(a_round, client_class, claim)
        return known[value]

    _halve(low, high, width, lambda value: found(value).outcome is ClassOutcome.PROVED)
    _halve(low, high, width, lambda value: found(value).outcome is not ClassOutcome.REFUTED)
    proofs = [value for value, item in known.items() if item.outcome is ClassOutcome.PROVED]
    broken = [value for value, item in known.items() if item.outcome is ClassOutcome.REFUTED]
    proved, refuted = max(proofs, default=None), min(broken, default=None)
    return Threshold(
        parameter,
        proved,
        refuted,
        None if proved is None else known[proved],
        None if refuted is None else known[refuted],
    )


def _halve(
    low: Fraction, high: Fraction, width: Fraction, holds: Callable[[Fraction], bool]
) -> None:
    """Find by halving where ``holds`` turns False, if it is True at low and False at high."""
    if not holds(low) or holds(high):
        return
    while high - low > width:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)


# ------------------------------------------------------------ every step size of an interval If
# multipliers are proportional to the step size and the claim has degree four at most, the slack is
# a cubic matrix polynomial in the step size. If the Bernstein coefficients of this polynomial are
# positive semidefinite, so is the polynomial on the whole interval. If no proof is found for an
# interval, its halves are tried.

_MOST_BOXES = 64
Polynomials = dict[str, list[Fraction]]


def interval_certificate(
    theorem: Theorem, client_class: ClientClass, played: SafariRound, *, first: Any, last: Any
) -> Certificate | None:
    """Prove a theorem's one-round inequality for all step sizes of the clients in an interval.

    Parameters
    ----------
    theorem, client_class, played
        As in `audit`; the theorem must bound the distance.
    first, last : number
        The smallest and largest ``client_lr``, which replace the value in ``played``. The server's
        step follows the coupling.

    Returns
    -------
    Certificate or None
        The proof, or None if 64 boxes are not enough for one.

    Raises
    ------
    ValueError
        If `audit` refuses the arguments, or if ``first`` is not below ``last``.
    """
    low, high = (exact(name, value, above=0) for name, value in (("first", first), ("last", last)))
    if low >= high:
        raise ValueError(f"first must be below last = {high}, got {first!r}")
    if form_of(theorem) is not DISTANCE_FORM:
        raise ValueError(f"theorem must bound the distance to x*, got {theorem.id}")
    a_round = replace(played, client_lr=low).coupled(theorem, client_class)
    bound = _polynomials(theorem, client_class, a_round)
    done: list[Box] = []
    waiting = [(low, high)]
    while waiting:
        if len(done) + len(waiting) > _MOST_BOXES:
            return None
        start, end = waiting.pop()
        box = _box(a_round, client_class, bound, start, end)
        if box is None:
            middle = Fraction((float(start) * float(end)) ** 0.5).limit_denominator(10**6)
            if not start < middle < end:
                return None
            waiting += [(middle, end), (start, middle)]
        else:
            done.append(box)
    return Certificate.accepted(certificate_text(a_round, client_class, DISTANCE, bound, done))


def _polynomials(theorem: Theorem, clients: ClientClass, a_round: OneRound) -> Polynomials:
    """Return the one-round inequality's coefficients as polynomials in client_lr."""
    step = sp.Symbol("step", positive=True)
    ratio = a_round.assist_lr / a_round.client_lr
    steps: dict[sp.Basic | complex, Any] = {
        NUMBERS["client_lr"]: step,
        NUMBERS["assist_lr"]: sp.Rational(ratio.numerator, ratio.denominator) * step,
    }
    parts = DISTANCE_FORM.parts(theorem, clients, a_round, steps)
    rate = parts.pop("rate")
    of_round = {"rate": rate} | {name: (1 - rate) * part for name, part in parts.items()}
    return {"gap": [Fraction(0)]} | {
        name: [
            as_fraction(c) for c in reversed(sp.Poly(sp.expand(of_round[name]), step).all_coeffs())
        ]
        for name in ("rate", *RESIDUAL)
    }


def _value(polynomial: list[Fraction], at: Fraction) -> Fraction:
    return sum((c * at**power for power, c in enumerate(polynomial)), Fraction(0))


def _box(
    a_round: OneRound, clients: ClientClass, bound: Polynomials, low: Fraction, high: Fraction
) -> Box | None:
    """Return multipliers that are valid for all step sizes of a box, or None if none are found."""
    nodes = [low + (high - low) * node for node in NODES]
    rounds = [
        replace(a_round, client_lr=at, assist_lr=a_round.assist_lr / a_round.client_lr * at)
        for at in nodes
    ]
    claims = [_over_e(played, clients, bound) for played in rounds]
    slacks = [slack_of(played, clients) for played in rounds]
    if any(value < 0 for claim in claims for value in claim[1:]):
        return None
    together = _bernstein(slacks, claims)
    from fltheory.worst_case.rounds.program import Program

    middle = claims[len(claims) // 2]
    bases = [basis for _ in NODES for basis in slacks[1].bases(*middle)]
    solution = Program(together, bases).widest_slack(1.0, 1.0, 1.0)
    if solution is None or solution.value > 0:
        return None
    for bits in (32, 44):
        box = rounded_box(a_round, slacks[0], solution.multipliers, of_bits(bits), (low, high))
        text = certificate_text(a_round, clients, DISTANCE, bound, [box])
        if Certificate.accepted(text) is not None:
            return box
    return None


def _over_e(
    played: OneRound, clients: ClientClass, bound: Polynomials
) -> tuple[float, float, float]:
    """Return ``(1 - rate)/e``, and the heterogeneity and noise terms over e, for a round."""
    e = clients.L * played.client_lr
    rate, heterogeneity, noise = (
        _value(bound[name], played.client_lr) for name in ("rate", "heterogeneity", "noise")
    )
    last = played.q * (played.server_lr * played.client_lr) ** 2 / played.participants
    scale = clients.L**2 / e
    left = (noise - last) * scale if clients.sigma > 0 else Fraction(0)
    return float((1 - rate) / e), float(heterogeneity * scale), float(left)


def _bernstein(slacks: list[Slack], claims: list[tuple[float, float, float]]) -> Slack:
    """Return the slack's Bernstein coefficients, as blocks, given its values at the nodes."""
    matrix = np.array(BERNSTEIN, dtype=np.float64)

    def joined(forms: list[Form], factors: list[float]) -> Form:
        return [
            sum(
                (
                    weight * factor * form[block]
                    for weight, factor, form in zip(row, factors, forms, strict=True)
                ),
                np.zeros((size, size)),
            )
            for row in matrix
            for block, size in enumerate(slacks[0].sizes)
        ]

    def each(name: str, factors: list[float]) -> list[Form]:
        forms = zip(*(getattr(slack, name) for slack in slacks), strict=True)
        return [joined(list(own), factors) for own in forms]

    ones = [1.0] * len(slacks)
    decreases, budgets, noises = (list(column) for column in zip(*claims, strict=True))
    return replace(
        slacks[0],
        sizes=slacks[0].sizes * len(slacks),
        decrease=joined([slack.decrease for slack in slacks], decreases),
        change=joined([slack.change for slack in slacks], ones),
        conditions=each("conditions", ones),
        budgets=each("budgets", budgets),
        noises=each("noises", noises),
        orthogonal=each("orthogonal", ones),
    )

"""Compare statements on one setting, or compare each at the step sizes that it prescribes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.rate_axis import with_rounds
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling, truth
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.long_work.progress import Progress
from fltheory.numbers.of_setting import value_in
from fltheory.read_only import ReadOnlyArrays
from fltheory.theorems.registry import registered
from fltheory.validation import FloatArray
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY
from fltheory.worst_case.best_bounds import AnyBound, best_bound
from fltheory.worst_case.rounds.bound import best_bound_of, best_speed_of
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.one_round import OneRound

# ------------------------------------------------------------ all statements on one setting

_ORDER = (Outcome.HOLDS, Outcome.REFUTED, Outcome.UNDECIDED, Outcome.INAPPLICABLE)
_SHARES = np.linspace(0.0, 1.0, 9)[1:-1]


@dataclass(frozen=True)
class Answer:
    """One statement's answer about a setting.

    Attributes
    ----------
    statement : Statement
    verdict : Verdict or None
        None if the statement is not about such a setting.
    reason : str
        Why the statement is not about the setting.
    """

    statement: Statement
    verdict: Verdict | None
    reason: str = ""

    @property
    def looseness(self) -> float:
        """Bound over truth, which is at least 1 if the bound holds; NaN if there is no verdict."""
        ratio = math.nan if self.verdict is None else self.verdict.ratio
        return math.inf if ratio == 0 else 1 / ratio


@dataclass(frozen=True)
class SideBySide:
    """Every statement on one setting.

    Attributes
    ----------
    answers : tuple of Answer
        Answers about the setting. Statements that hold come first, starting with the tightest
        bound; refuted, undecided and inapplicable statements follow.
    silent : tuple of Answer
        Statements that are not about the setting.
    provable : float or None
        The smallest bound found on ``E||x_R - x*||^2`` that can be proved, round by round, for
        every client loss with the setting's L, mu, noise and heterogeneity at x*.
    why_not_provable : str
        Why there is no such bound; empty if there is one.
    """

    answers: tuple[Answer, ...]
    silent: tuple[Answer, ...]
    provable: float | None
    why_not_provable: str = ""


@checks_kinds
def compare(
    setting: Setting,
    statements: Sequence[Statement] | None = None,
    *,
    replicas: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> SideBySide:
    """Compare all statements about a setting, to see whose theory is the tightest.

    Claimed orders and directions say nothing about a single setting and are left out.

    Parameters
    ----------
    setting : Setting
    statements : sequence of Statement, optional
        By default, all registered statements about a run, in every reading.
    replicas, seed : int
        For sampling, if it is needed.
    progress : callable, optional
        Called with (statements done, statements, name of the next).

    Raises
    ------
    ValueError
        If none of the statements could apply to a single setting.

    Examples
    --------
    >>> from fltheory import theorems
    >>> setting = theorems.get("sa-fl/5").regimes["q = 0"].setting
    >>> found = compare(setting, theorems.registered("sa-fl/5", "scaffold"))
    >>> [answer.statement.name for answer in found.answers]
    ['sa-fl/5 (derived)', 'sa-fl/5 (repaired)', 'sa-fl/5 (printed)']
    """
    if statements is None:
        statements = [one for one in registered() if one.fields_of_run()]
    chosen = [one for one in statements if not one.axes]
    if not chosen:
        raise ValueError("statements must include an inequality, got orders only")
    sampling = Sampling(replicas, seed, FAMILY_ERROR_PROBABILITY / len(chosen))
    answers = []
    for statement in _each(chosen, progress):
        answers.append(_answer(statement, setting, sampling))
    proved = provable(setting)
    speaking = [answer for answer in answers if answer.verdict is not None]
    return SideBySide(
        tuple(sorted(speaking, key=_place)),
        tuple(answer for answer in answers if answer.verdict is None),
        proved.after(setting.rounds) if proved.bounds else None,
        proved.why_not,
    )


def _each(statements: Sequence[Statement], progress: Progress | None) -> Iterator[Statement]:
    """Yield statements, reporting each before its turn."""
    for done, statement in enumerate(statements):
        if progress is not None:
            progress(done, len(statements), statement.name)
        yield statement


def _answer(statement: Statement, setting: Setting, sampling: Sampling) -> Answer:
    try:
        return Answer(statement, statement.verdict(setting, sampling))
    except ValueError as error:
        return Answer(statement, None, str(error))


def by_reason(silent: Sequence[Answer]) -> Mapping[str, list[str]]:
    """Return the names of statements that are not about a setting, grouped by reason."""
    found: dict[str, list[str]] = {}
    for answer in silent:
        # What follows is a value from the setting, which the reader already has.
        reason = answer.reason.split(", got ")[0]
        found.setdefault(reason, []).append(answer.statement.name)
    return found


def _place(answer: Answer) -> tuple[int, float, str]:
    assert answer.verdict is not None
    looseness = math.inf if math.isnan(answer.looseness) else answer.looseness
    return _ORDER.index(answer.verdict.outcome), looseness, answer.statement.name


@dataclass(frozen=True)
class Provable:
    """Proved bounds on ``E||x_R - x*||^2`` for every client loss with a setting's constants.

    Attributes
    ----------
    bounds : tuple of bounds
        Bounds on a round, each with the smallest residual at its rate; empty if none is proved.
    distance : float
        ``||x_0 - x*||``.
    why_not : str
        Why there are no bounds.
    """

    bounds: tuple[AnyBound, ...]
    distance: float
    why_not: str = ""

    def after(self, rounds: int) -> float:
        """Return the smallest bound after ``rounds`` rounds, or infinity if none is proved."""
        return min((one.after(rounds, self.distance) for one in self.bounds), default=math.inf)


def provable(setting: Setting) -> Provable:
    """Find proved bounds on a setting's rounds for every client loss with its constants.

    Single rounds are bounded at rates between the smallest one and the rate with the smallest
    floor.
    """
    problem = setting.problem
    distance = float(np.linalg.norm(setting.x0 - problem.x_star))
    if not np.array_equal(problem.alpha, np.full(problem.n_clients, problem.alpha[0])):
        why_not = "target weights must be equal for a proof that covers every client alike"
        return Provable((), distance, why_not)
    try:
        clients = ClientClass(
            problem.L,
            problem.mu,
            dissimilarity=_dissimilarity(setting),
            sigma=problem.sigma,
            server_sigma=problem.server_sigma,
        )
        return Provable(tuple(_bounds(setting, clients)), distance)
    except (ValueError, AttributeError, ArithmeticError) as error:
        return Provable((), distance, str(error))


def _bounds(setting: Setting, clients: ClientClass) -> Iterator[AnyBound]:
    algorithm, participation = setting.algorithm, setting.participation
    try:
        a_round = OneRound.of(algorithm, participation)
    except ValueError:
        yield best_bound(algorithm, participation, clients)
        return
    floor, least = best_bound_of(a_round, clients), best_speed_of(a_round, clients)
    yield floor
    for share in _SHARES:
        rate = exact("rate", least + share * (floor.rate - least))
        yield best_bound_of(a_round, clients, rate)


def _dissimilarity(setting: Setting) -> float:
    """Return the root mean square of the clients' gradients at x*, or 1 if they vanish."""
    return float(value_in("sqrt(control_gap)", setting)) or 1.0


# ------------------------------------------------------------ each at its own steps
# Theorems are about different quantities of different runs, such as the last model's distance or a
# mean over rounds of squared gradients. With L and mu, each bound is converted to a common measure,
# ``E F - F*`` or ``E||x - x*||^2``, for the models that its theorem is about, and compared with the
# true value of that measure:
#
# - ``F(x) - F* <= L/2 ||x - x*||^2`` and ``F(x) - F* <= ||grad F(x)||^2/(2 mu)``;
# - ``||x - x*||^2 <= 2/mu (F(x) - F*)`` and ``||x - x*||^2 <= ||grad F(x)||^2/mu^2``.

OneMeasure: TypeAlias = Literal["loss", "distance"]
MEASURES: tuple[OneMeasure, ...] = get_args(OneMeasure)
FIELDS: Mapping[OneMeasure, str] = {"loss": "excess_loss", "distance": "squared_distance"}
MEASURED: Mapping[OneMeasure, str] = {"loss": "E F - F*", "distance": "E||x - x*||^2"}
_FACTORS: Mapping[tuple[str, OneMeasure], tuple[str, Callable[[float, float], float]]] = {
    ("excess_loss", "loss"): ("", lambda L, mu: 1.0),
    ("squared_distance", "loss"): ("times L/2", lambda L, mu: L / 2),
    ("squared_gradient", "loss"): ("over 2 mu", lambda L, mu: 1 / (2 * mu)),
    ("excess_loss", "distance"): ("times 2/mu", lambda L, mu: 2 / mu),
    ("squared_distance", "distance"): ("", lambda L, mu: 1.0),
    ("squared_gradient", "distance"): ("over mu^2", lambda L, mu: 1 / mu**2),
}
_ORDER_ONLY = "an order, with constants left open"
_NO_STEPS = "prescribes no step sizes for R rounds"


@dataclass(frozen=True, eq=False)
class OwnBound(ReadOnlyArrays):
    """A theorem's bound and truth, at the theorem's own steps, over the rounds.

    Attributes
    ----------
    statements : tuple of Statement
        Readings of one theorem with the same run and the same sides.
    run : Setting
        The longest run.
    verdict : Verdict
        The verdict on the longest run, in the statement's own quantity.
    rounds : array, (n,)
        The numbers of averages at which both sides are evaluated.
    truth, bound : array, (n,)
        Truth and bound in the common measure, for the models that the theorem is about.
    provable : array, (n,)
        The bound proved for every client loss; infinite where there is none.
    why_not_provable : str
    brought_by : str
        How the bound was converted to the measure; empty if no conversion was needed.
    """

    statements: tuple[Statement, ...]
    run: Setting
    verdict: Verdict
    rounds: FloatArray
    truth: FloatArray
    bound: FloatArray
    provable: FloatArray
    why_not_provable: str
    brought_by: str

    @property
    def name(self) -> str:
        """The theorem's id and readings."""
        return f"{self.statements[0].id} ({', '.join(one.reading for one in self.statements)})"

    @property
    def looseness(self) -> FloatArray:
        """The ratios of bound to truth."""
        return _over(self.bound, self.truth)

    @property
    def provable_looseness(self) -> FloatArray:
        """The ratios of the provable bound to the truth."""
        return _over(self.provable, self.truth)


@dataclass(frozen=True, eq=False)
class GivenRun(ReadOnlyArrays):
    """Proved bounds on the last model of the setting's own algorithm, at its own steps.

    Attributes
    ----------
    rounds, truth, provable : array, (n,)
    why_not_provable : str
    """

    rounds: FloatArray
    truth: FloatArray
    provable: FloatArray
    why_not_provable: str

    @property
    def provable_looseness(self) -> FloatArray:
        """The ratios of the provable bound to the truth."""
        return _over(self.provable, self.truth)


@dataclass(frozen=True, eq=False)
class OwnSteps:
    """Theorems on one problem and participation, each at its own steps.

    Attributes
    ----------
    measure : {"loss", "distance"}
    bounds : tuple of OwnBound
        Bounds of the theorems that apply. Those that hold come first, starting with the tightest
        after the last round.
    silent : tuple of Answer
        Theorems that do not apply, with reasons.
    given : GivenRun
        The setting's own run.
    """

    measure: OneMeasure
    bounds: tuple[OwnBound, ...]
    silent: tuple[Answer, ...]
    given: GivenRun


@checks_kinds
def at_own_steps(
    setting: Setting,
    statements: Sequence[Statement] | None = None,
    *,
    measure: OneMeasure = "loss",
    points: int = 6,
    replicas: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> OwnSteps:
    """Compare theorems on a problem and participation, each at the steps it prescribes.

    Parameters
    ----------
    setting : Setting
        Its ``rounds`` count averages. Of its algorithm, only the number of local steps between
        averages and SAFARI's q are used.
    statements : sequence of Statement, optional
        By default, every registered statement about a run.
    measure : {"loss", "distance"}
        The measure to which bounds are converted: ``E F - F*`` or ``E||x - x*||^2``.
    points : int
        How many numbers of rounds to evaluate, up to the setting's.
    replicas, seed : int
        For sampling, if it is needed.
    progress : callable, optional
        Called with (statements done, statements, name of the next).

    Raises
    ------
    ValueError
        If the problem is not strongly convex, because bounds then cannot be converted to one
        measure.

    Examples
    --------
    >>> from fltheory import theorems
    >>> setting = theorems.get("fedavg-li/1").regimes["one local step"].setting
    >>> found = at_own_steps(setting, theorems.registered("fedavg-li/1"), points=1)
    >>> [one.name for one in found.bounds]
    ['fedavg-li/1 (from w_1)', 'fedavg-li/1 (printed)']
    """
    validation.one_of("measure", measure, MEASURES)
    points = validation.whole_number("points", points, at_least=1)
    if setting.problem.mu <= 0:
        raise ValueError(
            "problem must be strongly convex so that bounds can be converted to one measure, got "
            f"{setting.problem}"
        )
    if statements is None:
        statements = [one for one in registered() if one.own_run or one.fields_of_run()]
    sampling = Sampling(replicas, seed, FAMILY_ERROR_PROBABILITY / len(statements))
    rounds = np.unique(np.rint(np.geomspace(1, setting.rounds, points + 1)[1:])).astype(int)
    contest = _Contest(setting, measure, rounds.tolist(), sampling)
    found: dict[object, OwnBound] = {}
    silent = []
    for statement in _each(statements, progress):
        try:
            one = contest.entry(statement)
        except ValueError as error:
            silent.append(Answer(statement, None, str(error)))
            continue
        same = statement.id, one.truth.tobytes(), one.bound.tobytes(), one.verdict.outcome
        before = found.get(same)
        together = one if before is None else before
        readings = () if before is None else before.statements
        found[same] = replace(together, statements=(*readings, statement))
    bounds = tuple(sorted(found.values(), key=_rank))
    return OwnSteps(measure, bounds, tuple(silent), contest.given())


def _over(bound: FloatArray, truth: FloatArray) -> FloatArray:
    """Return bound over truth, which is infinite where the truth is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(truth > 0, bound / truth, math.inf)


def _rank(one: OwnBound) -> tuple[bool, float, str]:
    return one.verdict.outcome is not Outcome.HOLDS, float(one.looseness[-1]), one.name


class _DoesNotApplyError(ValueError):
    """A hypothesis fails for any number of rounds."""


@dataclass(frozen=True)
class _Contest:
    """The common task for all theorems: the setting, rounds and measure."""

    setting: Setting
    measure: OneMeasure
    rounds: Sequence[int]
    sampling: Sampling

    def entry(self, statement: Statement) -> OwnBound:
        """Run a theorem at its own steps, or raise ValueError with the reason if it has none."""
        if statement.axes:
            raise ValueError(_ORDER_ONLY)
        own, claim = statement.own_run, cast(Any, statement)
        if own is None:
            raise ValueError(_NO_STEPS)
        quantity = own.quantity or claim.quantity
        how, factor = _FACTORS[quantity.field, self.measure]
        in_measure = replace(quantity, field=FIELDS[self.measure])
        runs: list[tuple[int, Setting]] = []
        before: dict[str, str] = {}
        sides = []
        for count in self.rounds:
            try:
                run = own.make(with_rounds(self.setting, count))
                compared = claim.compared(run, self.sampling)
                failed = {one.name: one.failure for one in compared.hypotheses if not one.holds}
                lasting = {*failed.items()} & {*before.items()}
                if failed and (lasting or count == self.rounds[-1]):
                    # If a hypothesis fails by the same margin after more rounds, it does not depend
                    # on their number.
                    reasons = dict(lasting) or failed
                    raise _DoesNotApplyError("; ".join(reasons[name] for name in sorted(reasons)))
                before = failed
                value = self._value(in_measure, run)
            except _DoesNotApplyError:
                raise
            except ValueError:
                # The theorem may not apply to few rounds; if it applies to none, the last error
                # says why.
                if count == self.rounds[-1]:
                    raise
                continue
            runs.append((count, run))
            sides.append((value, compared.bound / float(own.divisor(run))))
        truths, bounds = np.array(sides).T
        proved = provable(run)
        return OwnBound(
            (statement,),
            run,
            statement.verdict(run, self.sampling),
            np.array([float(count) for count, _ in runs]),
            truths,
            bounds * factor(*self._curvatures),
            self._in_measure([_reduced(proved, in_measure, one) for _, one in runs]),
            proved.why_not,
            " ".join(part for part in (own.divided_by, how) if part),
        )

    def given(self) -> GivenRun:
        """Bound the setting's own run, at its own steps."""
        last = BoundedQuantity(FIELDS[self.measure], "last", RoundRange(0, 0), "", "")
        runs = [with_rounds(self.setting, count) for count in self.rounds]
        proved = provable(self.setting)
        return GivenRun(
            np.array(self.rounds, dtype=float),
            np.array([self._value(last, one) for one in runs]),
            self._in_measure([proved.after(count) for count in self.rounds]),
            proved.why_not,
        )

    def _value(self, quantity: BoundedQuantity, run: Setting) -> float:
        """Return a quantity of a run, or 0 if the quantity is not above its rounding error."""
        known = truth(run, (), self.sampling)
        value = quantity.of(known.trajectory, run)
        return value if value > quantity.error(known.error(quantity.field), run) else 0.0

    @property
    def _curvatures(self) -> tuple[float, float]:
        return float(self.setting.problem.L), float(self.setting.problem.mu)

    def _in_measure(self, distances: Sequence[float]) -> FloatArray:
        """Return bounds on squared distances as bounds on the measure."""
        factor = _FACTORS["squared_distance", self.measure][1]
        return np.array(distances) * factor(*self._curvatures)


def _reduced(proved: Provable, quantity: BoundedQuantity, run: Setting) -> float:
    """Return the bound proved for a quantity from the bounds of each round."""
    if not proved.bounds:
        return math.inf
    each = np.array([proved.after(count) for count in range(run.rounds + 1)])
    return quantity.error(each, run)

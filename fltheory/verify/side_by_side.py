"""Compare all statements on one setting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.long_work.progress import Progress
from fltheory.theorems.registry import registered
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY
from fltheory.worst_case.best_bounds import AnyBound, best_bound
from fltheory.worst_case.rounds.bound import best_bound_of, best_speed_of
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.one_round import OneRound

_ORDER = (Outcome.HOLDS, Outcome.REFUTED, Outcome.UNDECIDED, Outcome.INAPPLICABLE)
_SHARES = np.linspace(0.0, 1.0, 9)[1:-1]


@dataclass(frozen=True)
class Answer:
    """What one statement says of a setting.

    Attributes
    ----------
    statement : Statement
    verdict : Verdict or None
        None where it does not speak of the setting.
    reason : str
        Why it does not.
    """

    statement: Statement
    verdict: Verdict | None
    reason: str = ""

    @property
    def looseness(self) -> float:
        """Bound over truth, at least 1 where it holds; NaN without a verdict."""
        ratio = math.nan if self.verdict is None else self.verdict.ratio
        return math.inf if ratio == 0 else 1 / ratio


@dataclass(frozen=True)
class SideBySide:
    """Every statement on one setting.

    Attributes
    ----------
    answers : tuple of Answer
        Those that speak of the setting: first what holds, the tightest bound first, then what is
        refuted, undecided and inapplicable.
    silent : tuple of Answer
        Those that do not.
    provable : float or None
        The least bound found on ``E||x_R - x*||^2`` that is provable for every client loss with
        the setting's L, mu, noise and heterogeneity at x*, one round after another.
    why_not_provable : str
        Why there is none, where there is none.
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

    Orders and directions say nothing of a single setting, and are left out.

    Parameters
    ----------
    setting : Setting
    statements : sequence of Statement, optional
        Every registered one about a run by default, in every reading.
    replicas, seed : int
        For sampling, where it is needed.
    progress : callable, optional
        Called with (statements done, statements, name of the next).

    Raises
    ------
    ValueError
        If no statement is left that could speak of a setting.

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
        raise ValueError("statements must have an inequality among them, got orders only")
    sampling = Sampling(replicas, seed, FAMILY_ERROR_PROBABILITY / len(chosen))
    answers = []
    for done, statement in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen), statement.name)
        answers.append(_answer(statement, setting, sampling))
    proved = provable(setting)
    speaking = [answer for answer in answers if answer.verdict is not None]
    return SideBySide(
        tuple(sorted(speaking, key=_place)),
        tuple(answer for answer in answers if answer.verdict is None),
        proved.after(setting.rounds) if proved.bounds else None,
        proved.why_not,
    )


def _answer(statement: Statement, setting: Setting, sampling: Sampling) -> Answer:
    try:
        return Answer(statement, statement.verdict(setting, sampling))
    except ValueError as error:
        return Answer(statement, None, str(error))


def _place(answer: Answer) -> tuple[int, float, str]:
    assert answer.verdict is not None
    looseness = math.inf if math.isnan(answer.looseness) else answer.looseness
    return _ORDER.index(answer.verdict.outcome), looseness, answer.statement.name


@dataclass(frozen=True)
class Provable:
    """What is proved of ``E||x_R - x*||^2`` for every client loss like a setting's.

    Attributes
    ----------
    bounds : tuple of bounds
        On a round, each with the least residual at its own rate; none where none is proved.
    distance : float
        ``||x_0 - x*||``.
    why_not : str
        Why there are none.
    """

    bounds: tuple[AnyBound, ...]
    distance: float
    why_not: str = ""

    def after(self, rounds: int) -> float:
        """Return the least bound after so many rounds; infinite if none is proved."""
        return min((one.after(rounds, self.distance) for one in self.bounds), default=math.inf)


def provable(setting: Setting) -> Provable:
    """Find what is proved of a setting's rounds for every client loss with its constants.

    One after another they are bounded at rates between the least one and that of the least floor.
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
    """Return the root mean square of the clients' gradients at x*; any number if they vanish."""
    problem = setting.problem
    points = np.tile(problem.x_star, (problem.n_clients, 1))
    gradients = problem.client_gradients(points, np.arange(problem.n_clients))
    return float(np.sqrt((gradients**2).sum(axis=1).mean())) or 1.0

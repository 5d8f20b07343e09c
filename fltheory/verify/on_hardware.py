"""Check a theorem on runs with real data, using measured and bracketed constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import sympy as sp

from fltheory.claims.comparison import Comparison
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.measured_run import Bracket, MeasuredProblem
from fltheory.evidence.evaluation import evaluate
from fltheory.evidence.truths import Sampling, Truth
from fltheory.evidence.verdict import Grade, HypothesisCheck, Outcome
from fltheory.long_work.progress import Progress
from fltheory.theorems import Theorem
from fltheory.theorems.sa_fl.symbols import L

if TYPE_CHECKING:
    from fltheory.hardware.theory_runs import Premise, TheoryRun
    from fltheory.hardware.training.experiment import Experiment

_LARGEST_L = 1e9


@dataclass(frozen=True)
class HardwareVerdict:
    """The verdict on one reading of a theorem on a measured run.

    Attributes
    ----------
    theorem, reading : str
    outcome : Outcome
        ``INAPPLICABLE`` if a premise or hypothesis fails. Otherwise, a verdict is given only if it
        is the same with the constants at both ends of their brackets.
    truth, error : float
        Mean over runs of the bounded quantity, and the half-width of its interval.
    bound : Bracket
        The bound with the constants at the lower and at the upper ends of their brackets.
    smoothness : float
        The L used in the theorem: either that of the data, or a larger one with which the step
        sizes satisfy the theorem's coupling.
    hypotheses : tuple of HypothesisCheck
    premises : tuple of Premise
    """

    theorem: str
    reading: str
    outcome: Outcome
    truth: float
    error: float
    bound: Bracket
    smoothness: float
    hypotheses: tuple[HypothesisCheck, ...]
    premises: tuple[Premise, ...]

    @property
    def failures(self) -> tuple[str, ...]:
        """One line for each hypothesis or premise that fails."""
        failed = [check.failure for check in self.hypotheses if check.holds is False]
        return (
            *failed,
            *(f"{item.name}: {item.detail}" for item in self.premises if not item.holds),
        )

    @property
    def met(self) -> tuple[str, ...]:
        """The names of the hypotheses and premises that hold."""
        held = [check.name for check in self.hypotheses if check.holds]
        return (*held, *(item.name for item in self.premises if item.holds))

    @property
    def undecided(self) -> tuple[str, ...]:
        """The names of hypotheses that cannot be decided with so few runs."""
        return tuple(check.name for check in self.hypotheses if check.holds is None)


def check_on_hardware(
    statement: Statement, run: TheoryRun, *, error_probability: float = 1e-3
) -> HardwareVerdict:
    """Check a theorem on measured runs.

    All expressions are the theorem's own. Any number that is at least the data's L is a valid
    smoothness constant. If an equation between step sizes determines such a number, that value is
    used.

    Parameters
    ----------
    statement : Theorem
        A theorem about quantities that the runs measure, which means SA-FL's Theorem 5.
    run : TheoryRun
    error_probability : float
        The probability that any interval used misses the truth. As these are Student's t intervals,
        it is asymptotic.

    Raises
    ------
    ValueError
        If the statement is about a quantity that is not measured, or does not cover such runs at
        all.
    """
    theorem = _measurable(statement)
    sampling = Sampling(run.measured.trajectory.replicas or 0, 0, error_probability)
    truth = Truth(run.measured.trajectory, Grade.STATISTICAL, sampling)
    smoothness = _coupled_smoothness(theorem, run)
    low, high = (
        theorem.compared_with(truth, _setting(run, smoothness, end)) for end in ("low", "high")
    )
    return HardwareVerdict(
        theorem.id,
        theorem.reading,
        _outcome(low, high, run.premises),
        low.truth,
        low.evidence.error,
        Bracket(low.bound, high.bound),
        smoothness,
        high.hypotheses,
        run.premises,
    )


@dataclass(frozen=True, eq=False)
class MeasuredCell:
    """A cell of an experiment, with the verdicts on all statements."""

    label: str
    run: TheoryRun
    verdicts: tuple[HardwareVerdict, ...]


def check_experiment(
    statements: Sequence[Statement],
    experiment: Experiment,
    *,
    replicas: int,
    seed: int = 0,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[MeasuredCell]:
    """Run every cell of an experiment ``replicas`` times, and check statements on each.

    The experiment's first seed draws the problems.

    Parameters
    ----------
    statements : sequence of Statement
    experiment : Experiment
    replicas, seed : int
    folder : path, optional
        The folder with the data set's files.
    progress : callable, optional
        Called with (rounds done, rounds in all, cell).

    Raises
    ------
    ValueError
        If `theory_run` or `check_on_hardware` refuses its arguments.
    """
    from fltheory.hardware.theory_runs import theory_run

    for statement in statements:
        _measurable(statement)
    cells = [
        (f"{row}, {column}", cell.settings)
        for row, found in experiment.rows
        for column, cell in zip(experiment.columns, found, strict=True)
    ]
    known = None
    total, behind = sum(settings.training.rounds for _, settings in cells), 0
    for label, settings in cells:

        def round_done(done: int, behind: int = behind, label: str = label) -> None:
            if progress is not None:
                progress(behind + done, total, label)

        run = theory_run(
            settings,
            experiment.seeds[0],
            replicas=replicas,
            seed=seed,
            folder=folder,
            known=known,
            round_done=round_done,
        )
        known = run.problem
        verdicts = tuple(check_on_hardware(statement, run) for statement in statements)
        behind += settings.training.rounds
        yield MeasuredCell(label, run, verdicts)


def _measurable(statement: Statement) -> Theorem:
    known = {"squared_distance", "squared_gradient", "excess_loss", "participant_excess_loss"}
    fields = statement.fields_of_run()
    if not fields or not fields <= known:
        raise ValueError(
            "theorems must be ones whose quantities are measured on runs, e.g. sa-fl/5, got "
            f"{statement.id}"
        )
    return cast("Theorem", statement)


def _setting(run: TheoryRun, smoothness: float, end: str) -> Setting:
    measured = run.measured
    problem = MeasuredProblem(
        run.problem,
        smoothness,
        getattr(measured.sigma, end),
        getattr(measured.server_sigma, end),
        getattr(measured.dissimilarity, end),
    )
    return Setting(run.algorithm, problem, run.participation, run.rounds, run.x0)


def _coupled_smoothness(theorem: Theorem, run: TheoryRun) -> float:
    """Return an L, at least the data's, that solves the theorem's equations, or the data's L."""
    least = run.problem.L
    values = dict(theorem.constants(_setting(run, least, "high")))
    for hypothesis in theorem.hypotheses:
        condition = hypothesis.condition
        if not isinstance(condition, sp.Eq) or L not in condition.free_symbols:
            continue
        for solution in sp.solve(condition, L):
            larger = float(evaluate(solution, values))
            if least <= larger <= _LARGEST_L:
                return larger
    return least


def _outcome(low: Comparison, high: Comparison, premises: tuple[Premise, ...]) -> Outcome:
    if not all(premise.holds for premise in premises):
        return Outcome.INAPPLICABLE
    if low.outcome is Outcome.INAPPLICABLE or low.outcome is Outcome.HOLDS:
        return low.outcome
    if high.outcome is Outcome.REFUTED:
        return high.outcome
    return Outcome.UNDECIDED

"""Check statements in all their regimes: the cells of the table of verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from time import process_time
from typing import TypeAlias

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.curves import BoundCurve
from fltheory.claims.statement import Statement
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.long_work.parallel import as_they_come
from fltheory.long_work.progress import Progress
from fltheory.theorems.registry import get

FAMILY_ERROR_PROBABILITY = 1e-7

CellKey: TypeAlias = tuple[str, str, str]
"""(theorem, reading, regime)."""


@dataclass(frozen=True)
class Record:
    """The parts of a verdict, or of another result, that baselines and stores keep.

    Attributes
    ----------
    outcome : str
        One word; for a verdict, the name of its `Outcome`.
    ratio : float
        The ratio of a `Verdict`, e.g. truth over bound. This and the other numbers are NaN where
        undefined.
    evidence : str
        The name of the evidence's grade in lower case; an empty name is not compared.
    truth, bound, error : float
        Both sides, and half the width of the interval around the truth.
    why : str
        Which hypotheses fail, or why there is no verdict.
    detail : str
    result : str
        For work other than verdicts, JSON with whatever else the command needs; empty if the fields
        above are enough.
    """

    outcome: str
    ratio: float = math.nan
    evidence: str = ""
    truth: float = math.nan
    bound: float = math.nan
    error: float = math.nan
    why: str = ""
    detail: str = ""
    result: str = ""


def record_of(verdict: Verdict, result: str = "") -> Record:
    """Return the record of a verdict."""
    return Record(
        verdict.outcome.name,
        float(verdict.ratio),
        verdict.evidence.grade.name.lower(),
        float(verdict.truth),
        float(verdict.bound),
        float(verdict.evidence.error),
        "; ".join(check.failure for check in verdict.failed),
        verdict.detail,
        result,
    )


@dataclass(frozen=True)
class Cell:
    """The verdict on one statement, in one reading, in one regime.

    Attributes
    ----------
    regime : str
    verdict : Verdict
    curve : BoundCurve or None
        Truth and bound over the rounds, if the statement is about a run.
    kind : StatementKind
        The statement's rank in its paper: theorem, lemma, remark, ...
    faults : tuple of Refutation
        Reasons for a refutation: the statement's known faults that this regime shows.
    seconds : float
        Processor time used; work shared by several cells counts for the first of them.
    """

    regime: str
    verdict: Verdict
    curve: BoundCurve | None = None
    kind: StatementKind = StatementKind.THEOREM
    faults: tuple[Refutation, ...] = ()
    seconds: float = field(default=0.0, compare=False, repr=False)

    @property
    def key(self) -> CellKey:
        """The key (theorem, reading, regime)."""
        return self.verdict.theorem, self.verdict.reading, self.regime

    @property
    def weight(self) -> Weight | None:
        """The weight of the heaviest fault that the cell shows; None if it shows none."""
        return Weight.heaviest(fault.weight for fault in self.faults)

    @property
    def record(self) -> Record:
        """The record that files keep."""
        return record_of(self.verdict)

    @property
    def name(self) -> str:
        """The key as one line of text."""
        return " / ".join(self.key)


@checks_kinds
def check_regimes(
    statements: Sequence[Statement],
    *,
    replicas: int = 2000,
    seed: int = 0,
    family_error_probability: float = FAMILY_ERROR_PROBABILITY,
    processes: int | None = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
    curves: bool = False,
) -> list[Cell]:
    """Check every statement in every one of its regimes.

    Parameters
    ----------
    statements : sequence of Statement
    replicas, seed : int
        Sample size and random seed, if sampling is needed.
    family_error_probability : float
        The probability that at least one sampled interval in the whole table is wrong. Each cell
        gets an equal share.
    processes : int, optional
        How many processes share the work. None means as many as there are processors. If there is
        more than one, the statements must be registered.
    executor : concurrent.futures.Executor, optional
        Runs the checks in place of local processes, e.g. Dask's ``Client.get_executor()``;
        statements must be registered.
    progress : callable, optional
        Called with (cells done, cells, name). The name is that of the next cell, or of the last one
        done if several processes share the work.
    curves : bool
        Whether to add curves to the cells, for a report. Shorter runs have constants of their own.

    Raises
    ------
    ValueError
        If the value of a symbol is not a number.

    Examples
    --------
    >>> from fltheory import theorems
    >>> cells = check_regimes([theorems.get("pac/1")])
    >>> cells[0].regime, cells[0].verdict.outcome.name
    ('two clients with one sample', 'HOLDS')
    """
    validation.probability("family_error_probability", family_error_probability)
    statements = tuple(statements)
    validation.tuple_of("statements", statements, Statement)
    pairs = [(statement, name) for statement in statements for name in statement.regimes]
    sampling = Sampling(replicas, seed, family_error_probability / max(1, len(pairs)))
    cells: dict[CellKey, Cell] = {}
    if processes == 1 and executor is None:
        for statement, name in shared_settings_together(pairs):
            if progress is not None:
                progress(len(cells), len(pairs), _label(statement.id, statement.reading, name))
            found = check_regime(statement, name, sampling, curves)
            cells[found.key] = found
    else:
        groups = _groups_of_one_setting(pairs)
        if progress is not None and groups:
            progress(0, len(pairs), _label(*groups[0][0]))
        work = partial(_all_checked, sampling=sampling, curves=curves)
        for several in as_they_come(work, groups, processes, executor=executor):
            cells |= {cell.key: cell for cell in several}
            if progress is not None:
                progress(len(cells), len(pairs), _label(*several[-1].key))
    if progress is not None:
        progress(len(cells), len(pairs), "done")
    return [cells[statement.id, statement.reading, name] for statement, name in pairs]


def _label(identifier: str, reading: str, name: str) -> str:
    return f"{identifier} {reading}: {name}"


def check_regime(statement: Statement, name: str, sampling: Sampling, curves: bool = False) -> Cell:
    """Check a statement in one of its regimes, with the sampling effort of the regime."""
    regime = statement.regimes[name]
    drawn = replace(sampling, replicas=sampling.replicas * regime.effort)
    begun = process_time()
    if curves:
        verdict, curve = statement.verdict_and_curve(regime.setting, drawn)
    else:
        verdict, curve = statement.verdict(regime.setting, drawn), None
    cell = cell_of(statement, name, verdict, curve)
    return replace(cell, seconds=process_time() - begun)


def cell_of(
    statement: Statement, regime: str, verdict: Verdict, curve: BoundCurve | None = None
) -> Cell:
    """Return a verdict's cell, with the statement's faults that the regime shows."""
    shown = verdict.outcome is Outcome.REFUTED
    faults = tuple(fault for fault in statement.refutations if shown and regime in fault.regimes)
    return Cell(regime, verdict, curve, statement.kind, faults)


def _groups_of_one_setting(pairs: Sequence[tuple[Statement, str]]) -> list[tuple[CellKey, ...]]:
    """Return groups of keys that share a truth; statements themselves cannot be pickled."""
    together = shared_settings_together(pairs)
    by_setting = groupby(together, key=lambda pair: id(pair[0].regimes[pair[1]]))
    return [
        tuple((statement.id, statement.reading, name) for statement, name in group)
        for _, group in by_setting
    ]


def _all_checked(keys: Sequence[CellKey], sampling: Sampling, curves: bool) -> list[Cell]:
    return [
        check_regime(get(identifier, reading), name, sampling, curves)
        for identifier, reading, name in keys
    ]


def shared_settings_together(
    pairs: Sequence[tuple[Statement, str]],
) -> list[tuple[Statement, str]]:
    """Order pairs so that those on the same setting are adjacent and share its truth."""
    first_seen: dict[int, int] = {}
    for position, (statement, name) in enumerate(pairs):
        first_seen.setdefault(id(statement.regimes[name]), position)
    return sorted(pairs, key=lambda pair: first_seen[id(pair[0].regimes[pair[1]])])

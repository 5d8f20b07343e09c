"""Work of commands other than a sweep, such as maps, with results as rows of a store."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeVar

from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.setting_file import setting_document
from fltheory.evidence.verdict import Evidence, Grade, Outcome, Verdict
from fltheory.long_work.progress import Progress
from fltheory.sweep.cell import IMPOSSIBLE, Checks, Row, Task, WorkCell, digest, own_files
from fltheory.sweep.running import RunningTasks
from fltheory.sweep.store import Store, StoreError
from fltheory.theorems import Family
from fltheory.theorems.registry import get
from fltheory.verify.region_map import MapAxis, RegionMap, check_map, setting_at

Made = TypeVar("Made")


@dataclass
class KeptWork:
    """A store, options for computing missing cells, and the cells that were requested.

    Attributes
    ----------
    store : Store
    processes : int, optional
        Number of processes; by default the number of available processors. With 1, cells run in
        this process.
    executor : concurrent.futures.Executor, optional
        An executor that runs the cells instead.
    in_flight : int, optional
        Number of tasks that may run or wait at a time, as in `fltheory.sweep.sweep`.
    keys : set of str
        Keys of the cells that `rows` has returned.
    """

    store: Store
    processes: int | None = None
    executor: Executor | None = None
    in_flight: int | None = None
    keys: set[str] = field(default_factory=set)

    def rows(self, tasks: Sequence[Task], progress: Progress | None = None) -> list[Row]:
        """Return the rows of all cells, in order, after computing the missing ones.

        Raises
        ------
        ValueError
            If a cell could not be computed; the others are stored.
        StoreError
            If the store can no longer be written.
        """
        n_cells = sum(len(task.cells) for task in tasks)
        running = RunningTasks(tasks.__getitem__, n_cells, self.store, progress)
        found = running.through(len(tasks), self.processes, self.executor, self.in_flight)
        if found.failures:
            raise ValueError(f"{len(found.keys)} cells are in {self.store.path}; {found.complaint}")
        self.keys |= found.keys
        return [self.store[cell.key] for task in tasks for cell in task.cells]


def made_of(row: Row, make: Callable[[Row], Made]) -> Made:
    """Return the object that ``make`` makes from a row.

    Raises
    ------
    StoreError
        If the row is not a result of such work, because something else has written it.
    """
    try:
        return make(row)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"row {row.key} of the store must be as fltheory wrote it, but its {row.kind} of "
            f"{row.statement} cannot be read: {type(error).__name__}: {error}"
        ) from error


def map_into(
    kept: KeptWork,
    theorem: Statement,
    start: Setting | Family,
    x: MapAxis,
    y: MapAxis,
    *,
    progress: Progress | None = None,
) -> RegionMap:
    """Return the map of `fltheory.verify.map_region`, storing its points as rows.

    A point is a check like any cell of a sweep, and is identified by its setting, so points that a
    sweep or another map has checked are not checked again.

    Parameters
    ----------
    kept : KeptWork
    theorem : Statement
        A registered one.
    start, x, y
        As in `map_region`.
    progress : callable, optional
        Called with (points done, number of points, the last one).

    Returns
    -------
    RegionMap
        The map; its verdicts have no hypotheses, because a store has only their failures.

    Raises
    ------
    ValueError
        In the cases of `map_region`; also if the statement is not registered, if a setting does not
        consist of numbers, so that it cannot be identified, or if a point could not be checked.
    """
    check_map(theorem, x, y)
    if get(theorem.id, theorem.reading) is not theorem:
        raise ValueError(f"theorem must be registered to be kept, got {theorem.name}")
    files = own_files()
    tasks = []
    for y_value, x_value in product(y.values, x.values):
        document = _document(setting_at(start, {x.name: x_value, y.name: y_value}))
        cell = WorkCell(theorem.id, theorem.reading, document, files=digest(files))
        tasks.append(Checks((cell,), files))
    rows = kept.rows(tasks, progress)
    impossible = next((row for row in rows if row.outcome == IMPOSSIBLE), None)
    if impossible is not None:
        raise ValueError(impossible.why)
    verdicts = [made_of(row, lambda row: _verdict(row, theorem)) for row in rows]
    width = len(x.values)
    lines = (verdicts[begin : begin + width] for begin in range(0, len(verdicts), width))
    return RegionMap(theorem.id, theorem.reading, x, y, tuple(map(tuple, lines)))


def _document(setting: Setting) -> dict[str, Any]:
    try:
        return setting_document(setting)
    except ValueError as error:
        raise ValueError(f"store must be left out here: {error}") from error


def _verdict(row: Row, theorem: Statement) -> Verdict:
    truth, bound, error = (
        math.nan if number is None else number for number in (row.truth, row.bound, row.error)
    )
    return Verdict(
        row.statement,
        row.reading,
        Outcome[row.outcome],
        Evidence(Grade[row.evidence], error),
        truth,
        bound,
        (),
        row.detail,
        theorem.assertions[0].relation,
    )

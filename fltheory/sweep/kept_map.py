"""A map whose points are cells of a store: done once, in as many processes as there are."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.setting_file import setting_document
from fltheory.evidence.verdict import Evidence, Grade, Outcome, Verdict
from fltheory.long_work.progress import Progress
from fltheory.sweep.cell import Row, WorkCell, digest, own_files
from fltheory.sweep.checks import IMPOSSIBLE, Checks
from fltheory.sweep.kept import KeptWork, made_of
from fltheory.theorems import Family
from fltheory.theorems.registry import get
from fltheory.verify.region.map_parameters import MapAxis
from fltheory.verify.region.mapping import RegionMap, check_map, setting_at


def map_into(
    kept: KeptWork,
    theorem: Statement,
    start: Setting | Family,
    x: MapAxis,
    y: MapAxis,
    *,
    progress: Progress | None = None,
) -> RegionMap:
    """Return what `fltheory.verify.map_region` returns, its points rows of a store.

    A point is a check like any cell of a sweep, and known by its setting; so what a sweep or
    another map has checked is not checked again.

    Parameters
    ----------
    kept : KeptWork
    theorem : Statement
        A registered one.
    start, x, y
        As of `map_region`.
    progress : callable, optional
        Called with (points done, points, the one last done).

    Returns
    -------
    RegionMap
        Its verdicts are without hypotheses, of which a store has the failures alone.

    Raises
    ------
    ValueError
        As `map_region`; for a statement that is not registered; if a setting is not made of
        numbers, and so cannot be known again; or if a point could not be checked.
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

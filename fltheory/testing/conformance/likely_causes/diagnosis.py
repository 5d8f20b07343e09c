"""Likely causes of a failure: which usual slip gives the very models that came."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from fltheory.testing.conformance.bench import Bench, Failure
from fltheory.testing.conformance.cases import case_maker
from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.case_maker import CaseMaker
from fltheory.testing.conformance.guarded_run import Misconduct
from fltheory.testing.conformance.likely_causes.rounds import GENERAL
from fltheory.validation import FloatArray

_LONGEST = 1.5
_MOST = 3


def causes_of(bench: Bench, failure: Failure, maker: Callable[[str], CaseMaker]) -> tuple[str, ...]:
    """Return sentences on what is likely wrong, the likeliest first; none if nothing fits.

    A slip is a cause if it gives the models of the failing case and of several others that tell
    slips apart. One that does so only for the failing case is named with a caveat.
    """
    deadline = time.perf_counter() + _LONGEST
    paper = bench.specification.paper
    case, actual = failure.case, bench.actual(failure.case)
    fitting = [slip for slip in paper.sentences if _same(bench, case, slip, actual)]
    surest = fitting
    for further, models in _evidence(bench, maker("evidence")):
        if not surest or time.perf_counter() > deadline:
            break
        surest = [slip for slip in surest if _same(bench, further, slip, models)]
    if surest:
        return tuple(paper.sentences[slip] for slip in surest[:_MOST])
    own = [slip for slip in fitting if slip not in GENERAL] or fitting
    return tuple(
        f"{paper.sentences[slip]} (it would explain this trace, though not all others)"
        for slip in own[:_MOST]
    )


def _evidence(bench: Bench, make: CaseMaker) -> Iterator[tuple[Case, FloatArray]]:
    """Yield cases, with the models that came, that tell slips apart."""
    kinds = (case_maker.full, case_maker.uneven, case_maker.late, case_maker.with_empty)
    for kind in kinds:
        case = make.case(kind, n=3, dim=2, rounds=7)
        try:
            yield case, bench.actual(case)
        except Misconduct:
            continue


def _same(bench: Bench, case: Case, slip: str, actual: FloatArray) -> bool:
    models = bench.specification.paper.models(case, slip)
    return not (bench.compared(case, actual, models).first_wrong is not None)


def told_apart(models: FloatArray, others: FloatArray) -> bool:
    """Whether two runs differ visibly."""
    return bool(np.abs(models - others).max() > 1e-6)

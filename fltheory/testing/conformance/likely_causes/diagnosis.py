"""Likely causes of a failure: which usual slip gives the very models that came."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fltheory.testing.conformance.bench import Bench, Failure
from fltheory.testing.conformance.cases import case_maker
from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.case_maker import CaseMaker
from fltheory.testing.conformance.guarded_run import Misconduct
from fltheory.validation import FloatArray

_MOST = 3
ALIKE = "or, which gives the same models: "
_KINDS = (
    case_maker.uneven,
    case_maker.full,
    case_maker.late,
    case_maker.with_empty,
    case_maker.long_absence,
    case_maker.bursty,
    case_maker.uneven,
    case_maker.with_empty,
)


def causes_of(bench: Bench, failure: Failure, maker: Callable[[str], CaseMaker]) -> tuple[str, ...]:
    """Return sentences on what is likely wrong, the likeliest first; none if nothing fits.

    A slip is a cause only if it gives the models of the failing case and of all the others that
    are to tell slips apart. One that explains the failing case alone is not named: of those that
    were, on faults of known causes, most were wrong. Some slips are the same by algebra.
    """
    paper = bench.specification.paper
    case, actual = failure.case, bench.actual(failure.case)
    fitting = [slip for slip in paper.sentences if _same(bench, case, slip, actual)]
    for further, models in _evidence(bench, maker("evidence")) if fitting else ():
        fitting = [slip for slip in fitting if _same(bench, further, slip, models)]
        if not fitting:
            break
    first, *alike = dict.fromkeys(paper.sentences[slip] for slip in fitting) or ("",)
    return (first, *(f"{ALIKE}{one}" for one in alike[: _MOST - 1])) if first else ()


def _evidence(bench: Bench, make: CaseMaker) -> Iterator[tuple[Case, FloatArray]]:
    """Yield cases that tell slips apart, with the models that came, where any came."""
    one = bench.specification
    for draw, kind in enumerate(_KINDS):
        # Choices among clients show with many of them; weights of no data with one that has none.
        n = 6 if one.chooses else 3 + draw % 2
        sizes = (3, 0, 5, 2) if one.by_size and draw % 3 == 2 else None
        rounds = 20 if one.chooses else 14
        case = make.case(kind, n=n, dim=1 + draw % 2, rounds=rounds, sizes=sizes)
        try:
            yield case, bench.actual(case)
        except Misconduct:
            continue


def _same(bench: Bench, case: Case, slip: str, actual: FloatArray) -> bool:
    models = bench.specification.paper.models(case, slip)
    return bench.compared(case, actual, models).first_wrong is None

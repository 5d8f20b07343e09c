"""Likely causes of a failure: which usual slip gives the very models that came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from fltheory.testing.conformance.bench import Bench, Failure
from fltheory.testing.conformance.cases import case_maker
from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.case_maker import CaseMaker
from fltheory.testing.conformance.guarded_run import Misconduct
from fltheory.testing.conformance.own_runs import Slip
from fltheory.testing.conformance.slips.table import TELLING_OPTIONS, apart, played, slips_of
from fltheory.testing.conformance.ties import steady
from fltheory.validation import FloatArray

ALIKE = "just as well, as it gives the same models: "
ELSEWHERE = ", but not in empty rounds or where a client has no data"
_MOST = 3
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
_MOST_DRAWN = 160
# Slips that differed from what is right on so many cases, and never from each other, are one.
_TWINS = 10


def causes_of(bench: Bench, failure: Failure, maker: Callable[[str], CaseMaker]) -> tuple[str, ...]:
    """Return sentences on what is likely wrong, the likeliest first; none if nothing fits.

    A slip is a cause only if it gives the models of the failing case and of all the others that
    are to tell slips apart, and shows on one of those. One that explains the failing case alone
    is not named: of those that were, on faults of known causes, most were wrong. Some slips are
    the same by algebra.

    Codes with the same fault may differ in what they do where nobody is present or has data.
    Where no slip fits everywhere, those that fit on all other cases are named with that said.
    """
    case, actual = failure.case, bench.actual(failure.case)
    slips = slips_of(bench.specification.name)
    fitting = tuple(slip for slip in slips if _same(bench, case, slip, actual))
    left, besides = _narrowed(bench, fitting, maker, plain=False), ""
    if not left:
        begun = fitting if _is_plain(case) else slips
        left, besides = _narrowed(bench, begun, maker, plain=True), ELSEWHERE
    first, *alike = dict.fromkeys(slip.says + besides for slip in left) or ("",)
    return (first, *(f"{ALIKE}{one}" for one in alike[: _MOST - 1])) if first else ()


def _narrowed(
    bench: Bench, slips: tuple[Slip, ...], maker: Callable[[str], CaseMaker], *, plain: bool
) -> tuple[Slip, ...]:
    """Return the slips that give the models that came on all further cases, once for all laws."""
    key = (tuple(map(id, slips)), plain)
    if key not in bench.narrowed:
        bench.narrowed[key] = _left(bench, slips, maker("evidence"), plain=plain)
    return bench.narrowed[key]


def _left(bench: Bench, slips: Sequence[Slip], make: CaseMaker, *, plain: bool) -> tuple[Slip, ...]:
    """Return the slips that fit a few cases of each kind, and all on which those left part."""
    left, wanted = list(slips), 3 if plain else 1
    shown, seen = Counter[int](), Counter[int]()
    for draw in range(_MOST_DRAWN):
        among_all = draw < len(_KINDS)
        settled = min((shown[id(slip)] for slip in left), default=wanted) >= wanted and (
            len({slip.says for slip in left}) == 1
            or min((seen[id(slip)] for slip in left), default=_TWINS) >= _TWINS
        )
        if not left or (settled and not among_all):
            break
        case = _evidence(make, draw, plain=plain)
        # Most slips part from what came in the first rounds, and are played no longer.
        fitting = _fitting(bench, case, left) if among_all and case else left
        if case is None or fitting is None:
            continue
        shows = [slip for slip in fitting if not _same(bench, case, slip, bench.ours(case))]
        seen.update(map(id, shows))
        telling = any(shown[id(slip)] < wanted for slip in shows) or _part(bench, case, fitting)
        if telling and not among_all:
            fitting = _fitting(bench, case, left)
        if fitting is not None and (among_all or telling):
            left = fitting
            shown.update(map(id, shows))
    return tuple(slip for slip in left if shown[id(slip)] >= wanted)


def _part(bench: Bench, case: Case, slips: Sequence[Slip]) -> bool:
    """Return whether some of the slips give different models."""
    models = [played(bench.specification.name, case, slip) for slip in slips]
    return any(_apart(bench, case, one, other) for one, other in pairwise(models))


def _fitting(bench: Bench, case: Case, slips: list[Slip]) -> list[Slip] | None:
    """Return the slips that give the models that came; None where nothing can be told."""
    # Where a choice is a tie, codes without a fault differ, too.
    if not steady(bench.specification, case, bench.rtol):
        return None
    try:
        actual = bench.actual(case)
    except Misconduct:
        return None
    return [slip for slip in slips if _same(bench, case, slip, actual)]


def _evidence(make: CaseMaker, draw: int, *, plain: bool) -> Case | None:
    """Return a case that may tell slips apart; if plain, somebody with data is in each round."""
    one, kind = make.specification, _KINDS[draw % len(_KINDS)]
    # Choices among clients show with many of them; weights of no data with one that has none.
    n = 6 if one.chooses else 3 + draw % 3
    sizes = (3, 0, 5, 0) if one.by_size and draw % 3 == 2 and not plain else None
    rounds = 20 if one.chooses else 14
    options = TELLING_OPTIONS[draw % 4] if one.chooses else {}
    case = make.drawn(kind, n=n, dim=1 + draw % 2, rounds=rounds, sizes=sizes, options=options)
    if not plain:
        return case
    case = one.prepared(case.with_trace(case.trace[case.trace.any(axis=1)]))
    return case if case.rounds and _is_plain(case) else None


def _is_plain(case: Case) -> bool:
    return bool(case.trace.any(axis=1).all()) and all(c.n_samples > 0 for c in case.clients)


def _apart(bench: Bench, case: Case, actual: FloatArray, models: FloatArray) -> bool:
    return bench.compared(case, actual, models).first_wrong is not None


def _same(bench: Bench, case: Case, slip: Slip, actual: FloatArray) -> bool:
    allowed = bench.allowed(case, actual)
    return not apart(bench.specification.name, case, slip, actual, allowed)

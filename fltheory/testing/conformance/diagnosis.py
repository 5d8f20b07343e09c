"""The likely fault, i.e. a common slip that gives exactly the returned models, or else hints.

A hint is never guessed from a failing law. It is a sentence that says how ``run``
behaves on specially made cases and what usually causes that behaviour.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fltheory.testing.conformance import case_maker
from fltheory.testing.conformance.bench import Bench, Failure
from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.case_maker import CaseMaker, steady
from fltheory.testing.conformance.closed_forms import everybody
from fltheory.testing.conformance.guarded_run import Misconduct
from fltheory.testing.conformance.laws import UNCAPPED
from fltheory.testing.conformance.own_runs import Slip
from fltheory.testing.conformance.slips.table import TELLING_OPTIONS, apart, played, slips_of
from fltheory.validation import FloatArray

ALIKE = "equally possible, because it gives the same models: "
ELSEWHERE = ", but not in empty rounds or if a client has no data"
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
# Slips that differed from the correct algorithm on this many cases, but never from each other,
# count as one.
_TWINS = 10


def causes_of(bench: Bench, failure: Failure, maker: Callable[[str], CaseMaker]) -> tuple[str, ...]:
    """Return sentences on likely causes, the most likely first; empty if nothing fits.

    A slip is a cause only if it gives the models of the failing case and of all other cases that
    distinguish slips, and if it makes a difference on one of the latter. A slip that explains only
    the failing case is not named, because most such causes were wrong in tests on known faults.
    Some slips are algebraically equivalent.

    Implementations with the same fault may differ in rounds in which nobody is present or has data.
    If no slip fits everywhere, slips that fit in all cases without such rounds are named, with this
    qualification.
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
    """Return the slips that give the actual models on all further cases; cached for all laws."""
    key = (tuple(map(id, slips)), plain)
    if key not in bench.narrowed:
        bench.narrowed[key] = _left(bench, slips, maker("evidence"), plain=plain)
    return bench.narrowed[key]


def _left(bench: Bench, slips: Sequence[Slip], make: CaseMaker, *, plain: bool) -> tuple[Slip, ...]:
    """Return slips that fit some cases of each kind, and all cases on which they differ."""
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
        # Most slips differ from the actual models in the first rounds and are not run any further.
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
    """Return the slips that give the actual models, or None if this case cannot decide."""
    # If a choice is a tie, correct implementations also differ.
    if not steady(bench.specification, case, bench.rtol):
        return None
    try:
        actual = bench.actual(case)
    except Misconduct:
        return None
    return [slip for slip in slips if _same(bench, case, slip, actual)]


def _evidence(make: CaseMaker, draw: int, *, plain: bool) -> Case | None:
    """Return a case that may distinguish slips; if ``plain``, every round has data."""
    one, kind = make.specification, _KINDS[draw % len(_KINDS)]
    # Choices among clients need many clients, and weights of empty clients need a client without
    # data.
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


_TRIED = 4
_WANTED = 6
_ROUNDS = 6
_MANY = 40
_SLOPES = (1e-3, 1.0, 1e3, 1e4)
_LONG = 250
_AWAY = 100


def hints_of(bench: Bench, make: CaseMaker) -> tuple[str, ...]:
    """Return sentences on the behaviour of an implementation that does not conform."""
    if _rounds(bench, make):
        return ("models agree to single precision only: see rtol=",)
    seen: defaultdict[Callable[..., Iterator[str]], list[str]] = defaultdict(list)
    for look in (_recorded, _ignored, _without_gradients, _gradient_size, _steps, _right_where):
        # Ratios of moves are meaningless if an option is ignored, the model moves without
        # gradients, or moves are not proportional to gradients.
        told = seen[_recorded] or (look is _steps and seen[_gradient_size])
        moves = look in (_gradient_size, _steps)
        if told or (moves and (seen[_ignored] or seen[_without_gradients])):
            continue
        try:
            seen[look] = list(look(bench, make))
        except (Misconduct, ValueError, ArithmeticError, IndexError):
            # If a call fails there, it shows nothing.
            continue
    return tuple(hint for hints in seen.values() for hint in hints)


def _right(bench: Bench, case: Case) -> bool:
    return bench.against_ours(case).first_wrong is None


def _rounds(bench: Bench, make: CaseMaker) -> bool:
    """Return whether all differences are as small as float32 rounding."""
    cases = [_plain(make, n=3, dim=2, rounds=_ROUNDS) for _ in range(_TRIED)]
    try:
        compared = [bench.against_ours(case) for case in cases]
    except Misconduct:
        return False
    wrong = any(one.first_wrong is not None for one in compared)
    return wrong and all(one.nearly for one in compared)


def _plain(make: CaseMaker, **wanted: Any) -> Case:
    """Return a case; for SAFARI, one without server rounds."""
    case = make.case(**wanted)
    if not make.specification.server:
        return case
    return case.with_trace(case.trace & (np.arange(case.n_clients) < case.n_clients - 1))


def _recorded(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield how the returned rows differ from the models after each round, if that is known."""
    case = _plain(make, kind=case_maker.full, n=2, dim=2, rounds=_ROUNDS)
    models, ours = bench.actual(case), bench.ours(case)
    if bench.compared(case, ours[1:], models[:-1]).first_wrong is None:
        yield "each row that run returns is one round late: the first row must be x0"
    elif (models != models[-1]).any():
        return
    elif (models == case.x0).all():
        yield "the model never moves: all rows that run returns are x0"
    else:
        yield (
            "all rows that run returns are the last model: models are recorded by reference, so "
            "that later rounds change them; record a copy, x.copy()"
        )


def _ignored(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield options that the implementation ignores although the paper's algorithm does not."""
    one = make.specification
    names = [*one.options, "client_lr", "local_steps", *(["server_lr"] if one.server_lr else [])]
    same = {name: 0 for name in names if name not in make.hyper}
    for _ in range(4 * _WANTED):
        case = make.case(n=4, dim=1, rounds=12)
        for name in [name for name, times in same.items() if times < _WANTED]:
            other = _otherwise(make, case, name)
            if bench.compared(case, bench.ours(case), bench.ours(other)).first_wrong is not None:
                same[name] += 1
                if not np.array_equal(bench.actual(case), bench.actual(other)):
                    del same[name]
    for name, times in same.items():
        if times == _WANTED:
            yield f"your run ignores `{name}`: two values of it give the same models"


def _otherwise(make: CaseMaker, case: Case, name: str) -> Case:
    """Return the case with a different value of an option or a step size."""
    if name in ("client_lr", "server_lr"):
        return replace(case, **{name: 0.5 * getattr(case, name)})
    if name == "local_steps":
        # Use a single step, because two large numbers may be capped at the same value.
        single: Any = (1,) * case.n_clients if isinstance(case.local_steps, tuple) else 1
        return replace(case, local_steps=single)
    other = make.options(case.n_clients, {}).get(name)
    if other is None or name not in case.options:
        return case
    return replace(case, options={**case.options, name: other})


def _constant(case: Case, slope: float) -> Case:
    """Return the case with one constant gradient for all clients."""
    still = np.zeros((case.dim, case.dim))
    return case.with_clients(
        lambda k, client: {"hessian": still, "slope": np.full(case.dim, slope)}
    )


def _without_gradients(bench: Bench, make: CaseMaker) -> Iterator[str]:
    case = _constant(_plain(make, kind=case_maker.full, n=2, dim=2, rounds=_ROUNDS), 0.0)
    models = bench.actual(case)
    if bench.compared(case, np.tile(models[0], (len(models), 1)), models).first_wrong is None:
        return
    ratios = models[1:] / np.where(models[:-1] == 0, 1.0, models[:-1])
    slack = 10 * bench.rtol
    if np.ptp(ratios) <= slack and 0 < ratios[0, 0] < 1 - slack:
        yield (
            f"if all gradients are 0, a round multiplies the model by {ratios[0, 0]:.6g}: weight "
            "decay, or something else that pulls to 0"
        )
    else:
        yield "the model moves even if all gradients are 0: something other than gradients moves it"


def _alone(make: CaseMaker, slope: float, steps: int) -> Case | None:
    """Return a case with a single, always present client with a constant gradient."""
    # All these cases have the same options, so that nothing else differs between them.
    make = replace(make, rng=np.random.default_rng(0))
    n = make.number_of_clients(1)
    options = everybody(make, n)
    if n > 1 or options is None:
        return None
    shared = None if make.specification.sized_steps else steps
    case = _plain(
        make, kind=case_maker.full, n=1, dim=1, rounds=_ROUNDS, steps=shared, options=options
    )
    if make.specification.sized_steps:
        case = replace(case, local_steps=(steps,))
    return _constant(case, slope)


def _ratios(bench: Bench, make: CaseMaker, slope: float = 1.0, steps: int = 1) -> FloatArray | None:
    """Return the implementation's moves divided by the paper's moves, round by round."""
    case = _alone(make, slope, steps)
    if case is None:
        return None
    ours = np.diff(bench.ours(case)[:, 0])
    return None if (ours == 0).any() else np.asarray(np.diff(bench.actual(case)[:, 0]) / ours)


def _steps(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield observations on a client's steps with a constant gradient."""
    single, several = _ratios(bench, make, steps=1), _ratios(bench, make, steps=4)
    if single is None or several is None:
        return
    slack = max(100 * bench.rtol, 1e-6)
    alone = "with one client and a constant gradient, "
    for ratios in (single, several):
        if np.ptp(ratios) > slack:
            told = ", ".join(f"{ratio:.4g}" for ratio in ratios + 0.0)
            yield (
                f"{alone}rounds move the model by {told} times the right "
                f"amount{_over_rounds(ratios, slack)}"
            )
            return
    one, four = float(single[0]), float(several[0])
    if abs(one - four) > slack:
        yield (
            f"{alone}one local step moves the model by {one:.4g} times the right amount, four by "
            f"{four:.4g} times: {_over_steps(one, four, slack)}"
        )
    elif abs(one) <= slack:
        yield "with one client the model never moves"
    elif abs(one - 1) > slack:
        yield (
            f"{alone}rounds move the model by {one:.4g} times the right amount, whatever the "
            "number of local steps"
        )


def _over_steps(one: float, four: float, slack: float) -> str:
    """Return the usual cause of such moves by one and by four local steps."""
    if abs(four - 4 * one) <= slack * abs(four):
        return "the change is multiplied by the number of local steps, or not divided by it"
    if four > one:
        return "momentum in the local steps, or gradients that add up (zero_grad)"
    return "local steps that are left out, or that get smaller"


def _over_rounds(ratios: FloatArray, slack: float) -> str:
    """Return the usual cause of such a change in the moves over the rounds, if there is one."""
    grows = (np.diff(ratios[:3]) > slack).all()
    if (np.diff(ratios) < -slack).all() and (ratios > 0).all():
        return ": the step falls from round to round"
    if grows and ratios[0] >= 1 - slack:
        return ": something is kept from round to round, such as momentum, or gradients (zero_grad)"
    if grows and 0 <= ratios[0] < 1:
        return ": a warm-up, or an average over rounds"
    return ""


def _gradient_size(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield how moves depend on the gradient's size, if they are not proportional to it."""
    found = [_ratios(bench, make, slope) for slope in _SLOPES]
    small, usual, large, larger = (one[0] if one is not None else np.nan for one in found)
    # If a model does not move, or has overflowed, nothing can be concluded.
    if not usual * large * larger or not np.isfinite(small + usual + large + larger):
        return

    def alike(one: float, other: float) -> bool:
        return bool(abs(one - other) <= 1e-3 * abs(one))

    if alike(10 * larger, large):
        if alike(small, 1e3 * usual):
            yield (
                "a step has the same length whatever the gradient: gradients are normalised, or "
                "only their signs count"
            )
        else:
            yield (
                "a round moves the model no farther than some distance, however large gradients "
                "are: gradients, changes or models are clipped"
            )
    elif not (alike(small, usual) and alike(usual, large)):
        yield "moves are not proportional to gradients, as the paper's are"


def _somebody(rng: np.random.Generator, rounds: int, n: int) -> np.ndarray:
    trace = case_maker.uneven(rng, rounds, n)
    trace[np.arange(rounds), rng.integers(0, n, rounds)] = True
    return trace


_CONDITIONS: Mapping[str, dict[str, Any]] = {
    "everybody is always present": {"kind": case_maker.full},
    "somebody is present in every round": {"kind": _somebody},
    "each client makes one local step": {"steps": 1},
    "server_lr is 1": {"server_lr": 1.0},
    "all clients have the same amount of data": {"sizes": (5,) * 5},
    "models have one coordinate": {"dim": 1},
    "there is one client": {"n": 1},
    "there are two clients": {"n": 2},
    "there is one round": {"rounds": 1, "kind": _somebody},
}


def _right_where(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield the circumstances in which models are right."""

    def wrong(**wanted: Any) -> Iterator[bool]:
        base = {"kind": case_maker.with_empty, "n": 5, "dim": 3, "rounds": 8, **wanted}
        return (not _right(bench, make.case(**base)) for _ in range(5 * _TRIED))

    for look in (_too_many, _too_long, _too_far):
        if found := list(look(bench, make)):
            # Code that stops after some number of rounds is also wrong after long absences.
            yield from found
            break
    # If a fault shows in a quarter of the cases, this many cases miss it in one condition out of
    # 300.
    if 4 * sum(wrong()) < 5 * _TRIED:
        return
    right = [
        says
        for says, wanted in _CONDITIONS.items()
        if not (wanted.keys() & make.hyper.keys() or ("n" in wanted and make.n_fixed))
        and (make.specification.server_lr or "server_lr" not in wanted)
        and not any(wrong(**wanted))
    ]
    if right:
        yield f"models are right where {', or where '.join(right)}, and wrong elsewhere"


def _border(right: Callable[[int], bool], few: int, many: int) -> tuple[int, int] | None:
    """Return two adjacent numbers; models are right with the first and wrong with the second."""
    if not right(few) or right(many):
        return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if right(middle) else (few, middle)
    # A fault that appears at random has no threshold.
    sharp = all(right(few) for _ in range(_WANTED)) and not any(right(many) for _ in range(_WANTED))
    return (few, many) if sharp else None


def _too_many(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield the largest number of clients for which models are right."""

    def right(n: int) -> bool:
        options = {"size": n}
        return _right(bench, make.case(case_maker.full, n=n, dim=1, rounds=5, options=options))

    if make.n_fixed is None and (found := _border(right, 2, _MANY)):
        yield (
            f"models are right with {found[0]} clients present and wrong with {found[1]}: "
            "there is a cap"
        )


def _too_far(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield the length of absence after which models are wrong."""

    def right(away: int) -> bool:
        def comes_twice(rng: np.random.Generator, rounds: int, n: int) -> np.ndarray:
            trace = np.ones((rounds, n), dtype=bool)
            trace[:, -1] = np.arange(rounds) % (away + 1) == away
            return trace

        wanted: dict[str, Any] = {"n": 2, "dim": 1, "rounds": 2 * away + 3, "server_lr": 0.5}
        options = {**UNCAPPED, "start": "wait"}
        return _right(bench, make.case(comes_twice, options=options, **wanted))

    if found := _border(right, 1, _AWAY):
        yield (
            f"models are right if a client is away for {found[0]} rounds, and wrong if it is "
            f"away for {found[1]}: an age, a weight or the waiting time is capped"
        )


def _too_long(bench: Bench, make: CaseMaker) -> Iterator[str]:
    """Yield the number of rounds after which models are wrong."""
    wanted: dict[str, Any] = {"n": 2, "dim": 1, "rounds": _LONG, "server_lr": 1.0}
    # Gradients are constant, because a stop would go unnoticed in models that have converged.
    cases = [_constant(make.case(case_maker.full, **wanted), 1.0) for _ in range(_TRIED)]
    rows = {bench.against_ours(case).first_wrong for case in cases}
    if len(rows) == 1 and (row := rows.pop() or 0) > _ROUNDS:
        yield f"with everybody present, models are right up to round {row - 1} and wrong after it"

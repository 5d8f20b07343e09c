"""The table of laws, with what an implementation must do and the cases on which it is tested.

Rounds computed by hand, in ``by_hand.toml``, do not depend on any code. Options at the ends of
their ranges are tested because some implementations clip them or treat them as missing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance import case_maker, closed_forms, symmetries
from fltheory.testing.conformance.bench import (
    Bench,
    LawTrial,
    ModelComparison,
    Trials,
    of_sizes,
    on,
)
from fltheory.testing.conformance.case import Case, QuadraticClient
from fltheory.testing.conformance.case_maker import CaseMaker, Kind, steady
from fltheory.testing.conformance.guarded_run import Misconduct
from fltheory.testing.conformance.own_runs import NOTHING
from fltheory.testing.conformance.slips.table import (
    AS_IT_IS,
    ROUNDED,
    TELLING_OPTIONS,
    apart,
    played,
    slips_of,
)
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Worked:
    """An example with its arithmetic.

    Attributes
    ----------
    case : Case
    expected : array, (rounds + 1, 1)
    words : tuple of str
        The arithmetic of each round.
    """

    case: Case
    expected: FloatArray
    words: tuple[str, ...]


@cache
def _examples() -> Mapping[str, list[dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_name("by_hand.toml").read_text(encoding="utf-8"))


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def worked(one: Specification) -> Iterator[Worked]:
    """Yield an algorithm's examples."""
    for told in _examples().get(one.name, ()):
        optima = told.get("optima", (0.0, 8.0))
        sizes = told.get("sizes", (1, 3))
        present, models, words = zip(*told["rounds"], strict=True)
        case = Case(
            tuple(
                QuadraticClient(np.eye(1), np.array([c]), n)
                for c, n in zip(optima, sizes, strict=True)
            ),
            np.array([told["x0"]]),
            np.array([np.isin(np.arange(len(optima)), who) for who in present]),
            client_lr=0.5,
            local_steps=_tuples(told.get("local_steps", 2)),
            server_lr=told.get("server_lr", 1.0) if one.server_lr else None,
            options={name: _tuples(value) for name, value in told.get("options", {}).items()},
        )
        numbers = [float(Fraction(model)) for model in (told["x0"], *models)]
        yield Worked(case, np.array(numbers)[:, None], words)


Ends: TypeAlias = Callable[[int], dict[str, Any]]


def _spread(least: float, largest: float, n: int) -> tuple[float, ...]:
    return tuple(np.linspace(least, largest, n).tolist())


def _rare(n: int) -> dict[str, Any]:
    """Return availabilities down to one round in three hundred, and correlations of both signs."""
    rates = np.geomspace(1.0, 0.003, n) if n > 1 else np.array([0.003])
    return {"availability": tuple(rates.tolist()), "correlation": _spread(-0.9, 0.97, n)}


def _negative(n: int) -> dict[str, Any]:
    return {
        "availability": _spread(0.4, 0.6, n),
        "correlation": _spread(-0.9, -0.1, n),
        "threshold": 0.0,
        "kappa_bar": 0.2,
    }


def _one_matters(n: int) -> dict[str, Any]:
    weights = np.geomspace(1.0, 1e-3, n)
    return {"target_weights": tuple((weights / weights.sum()).tolist())}


# Zeros reveal `value or default`, and large numbers reveal caps that the paper does not have.
ENDS: tuple[Ends, ...] = (
    _rare,
    # The order in which clients are tried matters in four out of ten cases.
    *(_negative,) * 4,
    _one_matters,
    lambda n: {"proximal": 0.0},
    lambda n: {"cutoff": 1},
    lambda n: {"growth": 0.0, "largest": 5.0},
    lambda n: {"growth": 20.0, "largest": 50.0},
    lambda n: {"largest": 1.0},
    lambda n: {"size": 1},
    lambda n: {"size": n},
    lambda n: {"smoothing": 0.003},
    lambda n: {"smoothing": 0.95},
    # The first report is kept, so that clients are excluded only by known minima.
    lambda n: {
        "loss_smoothing": 0.0,
        "known_minima": _spread(-3.0, 0.0, n),
        "threshold": 0.0,
    },
    lambda n: {"loss_smoothing": 1.0},
    lambda n: {"threshold": 1.0},
    lambda n: {"threshold": 4.0},
    lambda n: {"kappa_bar": 0.0},
    lambda n: {"kappa_bar": 8.0},
    lambda n: {"prior": (0.02, 9.0)},
    lambda n: {"prior": (9.0, 0.02)},
    lambda n: {"known_minima": _spread(-3.0, 0.0, n)},
)
"""Options by name, for a number of clients; those that an algorithm has are used."""


def ends_of(options: Collection[str], n: int = 2) -> list[dict[str, Any]]:
    """Return extreme values of these options for n clients."""
    found = ({k: v for k, v in ends(n).items() if k in options} for ends in ENDS)
    return [one for one in found if one]


def at_the_ends(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases in which one option after another is at an end of its range."""
    chooses, left_open = make.specification.chooses, set(make.specification.options)
    n = make.number_of_clients(8 if chooses else 4)
    for wanted in ends_of(left_open - set(make.hyper), n):
        # There are few rounds, because weights in the hundreds make models grow as much in each
        # round.
        rounds = 10 if chooses else 6
        case = make.case(case_maker.uneven, n=n, dim=1, rounds=rounds, options=wanted)
        # If kappa_bar and threshold are 0, rounding decides whether clients at their minima are
        # excluded.
        if steady(make.specification, case, make.rtol):
            yield LawTrial(case, _ours)


IGNORES_TRACE = "ignores the trace"
LONGEST = 2000
"""Rounds that a client is away for at most, where a cut-off that is fixed asks for it."""


@dataclass(frozen=True, eq=False)
class ConformanceLaw:
    """A requirement on an implementation.

    Attributes
    ----------
    name : str
    says : str
        The law in a sentence.
    trials : callable
        Yields the cases to try, the smallest first; none if the law does not apply.
    applies : callable
        Returns whether the law is about an algorithm.
    """

    name: str
    says: str
    trials: Trials
    applies: Callable[[Specification], bool] = lambda one: True


def _models(bench: Bench, case: Case) -> ModelComparison:
    models = bench.actual(case)
    return ModelComparison(models, models, 0.0)


def _first_row(bench: Bench, case: Case) -> ModelComparison:
    models = bench.actual(case)
    return bench.compared(case, case.x0[None], models[:1])


def _again(bench: Bench, case: Case) -> ModelComparison:
    first = bench.actual(case)
    # A different run in between reveals state that is kept between calls.
    bench.guarded.fresh(replace(case, x0=case.x0 + 1))
    again = bench.guarded.fresh(case)
    return bench.compared(case, first, again)


def _moves_with_trace(bench: Bench, case: Case) -> ModelComparison:
    traces = (np.ones_like(case.trace), ~case.trace, case.trace[::-1], case.trace[:, ::-1])
    models = bench.actual(case)
    same = all(np.array_equal(models, bench.actual(case.with_trace(trace))) for trace in traces)
    # A model that never moves has a different fault.
    if same and (models != models[0]).any():
        raise Misconduct(
            IGNORES_TRACE,
            "run ignores the trace: its models are the same whoever takes part",
            case,
        )
    return _models(bench, case)


def _heeds_trace(make: CaseMaker) -> Iterator[LawTrial]:
    case = make.case(case_maker.full, n=2, dim=1, rounds=4)
    trace = np.ones_like(case.trace)
    trace[0, 0] = trace[2] = False
    yield LawTrial(case.with_trace(trace), _moves_with_trace, shrinks=False)


def _by_hand(make: CaseMaker) -> Iterator[LawTrial]:
    for example in worked(make.specification):
        case = example.case
        if not make.allows(**case.keywords):
            continue

        def compare(
            bench: Bench, at: Case, models: np.ndarray = example.expected
        ) -> ModelComparison:
            return bench.compared(at, models[: at.rounds + 1], bench.actual(at))

        words = tuple(f"round {t}: {text}" for t, text in enumerate(example.words, start=1))
        for rounds in dict.fromkeys((1, case.rounds)):
            yield LawTrial(case.first_rounds(rounds), compare, shrinks=False, words=words)


def _ours(bench: Bench, case: Case) -> ModelComparison:
    return bench.against_ours(case)


def _on(kind: Kind, *sizes: tuple[int, int, int]) -> Trials:
    """Return trials against the package's algorithm with sizes (N, d, rounds)."""
    return on(_ours, *of_sizes(kind, *(sizes or ((2, 1, 4), (3, 2, 8), (5, 3, 16)))))


def _long_absences(make: CaseMaker) -> Iterator[LawTrial]:
    yield from _on(case_maker.long_absence, (2, 1, 6), (3, 2, 12), (4, 2, 24))(make)
    lasts = make.specification.lasts(make.hyper)
    if 20 < lasts <= LONGEST:
        # The absence exceeds a fixed cut-off, however long that is.
        yield LawTrial(make.case(case_maker.long_absence, n=2, dim=1, rounds=int(lasts) + 8), _ours)


def _long_run(make: CaseMaker) -> Iterator[LawTrial]:
    # If clients are chosen, one of so many rounds is nearly a tie.
    rounds = 60 if make.specification.chooses else 400
    for kind in (case_maker.uneven, case_maker.bursty):
        yield LawTrial(make.case(kind, n=3, rounds=rounds, steps=2, server_lr=1.0), _ours)


_FULL, _UNEVEN = case_maker.full, case_maker.uneven
# Ten clients per round is a default of many libraries.
_MANY = ((_FULL, 14), (_UNEVEN, 45), (_FULL, 40))

_local_steps = on(
    _ours,
    *({"kind": _FULL, "n": 2, "dim": 1, "rounds": 2, "steps": steps} for steps in (1, 2, 3, 7)),
    {"n": 3, "dim": 2, "rounds": 6, "steps": 5},
)
_client_lr = on(_ours, *({"rounds": 4, "client_lr": lr} for lr in (0.01, 0.25, 2.0)))
_server_lr = on(_ours, *({"rounds": 5, "server_lr": rate} for rate in (1.0, 0.5, 1.5)))
_equal_sizes = on(_ours, *({"n": n, "rounds": 5, "sizes": (5,) * n} for n in (2, 4)))
_unequal_sizes = on(
    _ours,
    *(
        {"kind": kind, "n": len(sizes), "rounds": 6, "sizes": sizes}
        for kind in (_FULL, _UNEVEN)
        for sizes in ((1, 9), (7, 1, 30))
    ),
)
# This case is larger than all others in dimension, steps, step sizes and data.
_large = on(
    _ours,
    *(
        {
            **{"kind": kind, "n": n, "dim": 6, "rounds": rounds, "steps": steps, "client_lr": lr},
            **{"server_lr": rate, "sizes": tuple(40 * k + 3 for k in range(n))},
            "options": {"cutoff": cutoff},
        }
        for kind, n, rounds, steps, lr, rate, cutoff in (
            (_UNEVEN, 9, 12, 11, 1.0, 1.8, 7),
            (case_maker.long_absence, 12, 40, 8, 0.02, 0.2, 25),
        )
    ),
)
_many_clients = on(
    _ours,
    *(
        {"kind": kind, "n": n, "dim": 1, "rounds": rounds, "options": {"size": size}}
        for kind, n in _MANY
        for rounds, size in ((3, (n + 1) // 2), (2, n))
    ),
)
# Nothing is cut off or capped, and a rate decreases slowly enough to be small when a client
# returns.
UNCAPPED: Mapping[str, Any] = {
    "cutoff": 1000,
    "growth": 0.3,
    "largest": 1000.0,
    "smoothing": 0.02,
    "size": 1,
}


# A client returns, or first appears, after a hundred rounds or more.
_far = on(
    _ours,
    *(
        {**of, "server_lr": 0.5, "options": UNCAPPED}
        for kind in (case_maker.long_absence, case_maker.late)
        for of in of_sizes(kind, (2, 1, 120), (3, 1, 200))
    ),
)


def _telling(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases until each of the algorithm's common slips would show in one of them."""
    name, shown = make.specification.name, set[int]()
    # Slips that only lose digits are left to the other laws.
    slips = [slip for slip in slips_of(name) if slip.says != ROUNDED.says]
    chooses = make.specification.chooses
    for draw in range(_MOST_TELLING):
        unseen = [slip for slip in slips if id(slip) not in shown]
        if not unseen:
            return
        kind = _KINDS[draw % len(_KINDS)]
        # Choices among clients need many clients, and weights of empty clients need a client
        # without data.
        n, rounds = (6, 16) if chooses else (3 + draw % 3, 8 + 2 * (draw % 4))
        n, rounds = (14, 3) if draw == 4 else (n, rounds)
        options = TELLING_OPTIONS[draw % 4] if chooses else {}
        sizes = (3, 0, 5, 1, 2, 7) if make.specification.by_size and draw % 2 else None
        case = make.drawn(kind, n=n, dim=1, rounds=rounds, sizes=sizes, options=options)
        models = played(name, case, AS_IT_IS.get(name, NOTHING))
        size = 1e-6 * (case.scale + float(np.abs(models).max()))
        allowed = np.full(len(models), size)
        telling = {id(slip) for slip in unseen if apart(name, case, slip, models, allowed)}
        # If a choice is a tie, correct implementations differ, too.
        if telling and steady(make.specification, case, make.rtol):
            shown |= telling
            yield LawTrial(case, _ours)


def _without_data(make: CaseMaker) -> Iterator[LawTrial]:
    for sizes in ((3, 0), (0, 4, 2), (0, 5, 0)):
        yield LawTrial(make.case(case_maker.uneven, n=len(sizes), rounds=8, sizes=sizes), _ours)
    alone = make.case(case_maker.full, n=2, dim=1, rounds=3, sizes=(3, 0))
    if alone.n_clients == 2:
        yield LawTrial(alone.with_trace(np.array([[1, 1], [0, 1], [1, 0]], dtype=bool)), _ours)


_MOST_TELLING = 160
_KINDS = (
    case_maker.uneven,
    case_maker.bursty,
    case_maker.with_empty,
    case_maker.long_absence,
    case_maker.full,
)

_LAWS = (
    ConformanceLaw(
        "returns-models",
        "run returns the models after every round, (rounds + 1, d), without raising or changing "
        "its inputs",
        on(
            _models,
            *of_sizes(_FULL, (1, 1, 1), (2, 1, 2), (3, 2, 4)),
            *of_sizes(_UNEVEN, (3, 2, 6)),
        ),
    ),
    ConformanceLaw(
        "starts-at-x0",
        "the first row is x0",
        on(_first_row, *of_sizes(_FULL, (1, 1, 1)), *of_sizes(_UNEVEN, (3, 2, 5))),
    ),
    ConformanceLaw(
        "deterministic",
        "the same arguments give the same models, whatever was run in between: nothing is random, "
        "nothing is kept from call to call",
        on(_again, *of_sizes(_FULL, (2, 1, 2)), *of_sizes(_UNEVEN, (3, 2, 6))),
    ),
    ConformanceLaw("heeds-the-trace", "who is present makes a difference", _heeds_trace),
    ConformanceLaw("by-hand", "a few rounds worked out by hand", _by_hand),
    ConformanceLaw(
        "full-participation",
        "with everybody present the models are the paper's",
        _on(_FULL, (1, 1, 2), (2, 1, 3), (3, 2, 6), (5, 4, 10)),
    ),
    ConformanceLaw(
        "uniform-subsets", "with the same number of clients in every round", _on(case_maker.uniform)
    ),
    ConformanceLaw(
        "uneven-participation",
        "with independent clients, some present more often than others",
        _on(case_maker.uneven),
    ),
    ConformanceLaw(
        "bursty-participation", "with clients that come and go in bursts", _on(case_maker.bursty)
    ),
    ConformanceLaw(
        "empty-rounds", "with rounds in which nobody is present", _on(case_maker.with_empty)
    ),
    ConformanceLaw(
        "late-appearance", "with a client that first appears late", _on(case_maker.late)
    ),
    ConformanceLaw(
        "long-absence", "with a client that is away for a long time and returns", _long_absences
    ),
    ConformanceLaw("one-never-comes", "with a client that never appears", _on(case_maker.never)),
    ConformanceLaw("local-steps", "for several numbers of local steps", _local_steps),
    ConformanceLaw("client-lr", "for several local step sizes", _client_lr),
    ConformanceLaw(
        "server-lr",
        "server_lr scales the server's step",
        _server_lr,
        applies=lambda one: one.server_lr,
    ),
    ConformanceLaw("equal-sizes", "with the same amount of data everywhere", _equal_sizes),
    ConformanceLaw(
        "unequal-sizes",
        "data sizes count as the paper says, and not at all if it takes plain means",
        _unequal_sizes,
    ),
    ConformanceLaw(
        "no-data",
        "a client without data weighs as the paper says",
        _without_data,
        applies=lambda one: one.by_size,
    ),
    ConformanceLaw("usual-slips", "on cases where each of the usual mistakes would show", _telling),
    ConformanceLaw(
        "larger", "with more dimensions and local steps, more data, larger step sizes", _large
    ),
    ConformanceLaw(
        "many-clients", "with 14 to 45 clients, most or all of them present", _many_clients
    ),
    ConformanceLaw(
        "long-away", "with a client that returns, or first appears, after a hundred rounds", _far
    ),
    ConformanceLaw(
        "options-at-their-ends",
        "with rare clients, and each option in turn at an end of its range: reveals limits in "
        "your code, and a 0 treated as a missing value",
        at_the_ends,
        applies=lambda one: bool(ends_of(one.options)),
    ),
    ConformanceLaw(
        "one-client",
        "with a single client that is always present, gradient descent, by formula",
        closed_forms.one_client,
        applies=lambda one: not one.server,
    ),
    ConformanceLaw(
        "alike-curvatures",
        "with everybody present and one Hessian, gradient descent on the weighted mean, by formula",
        closed_forms.alike_curvatures,
        applies=lambda one: not one.server,
    ),
    ConformanceLaw(
        "weights",
        "on constant gradients, one coordinate per client, each round shows every client's weight",
        closed_forms.shown_weights,
    ),
    ConformanceLaw(
        "memory-adds-up",
        "once all have appeared, the memory stands in for the absent clients: the mean of the "
        "c_i is c",
        closed_forms.adds_up,
        applies=lambda one: one.remembers_all,
    ),
    ConformanceLaw(
        "absent-do-not-matter",
        "the losses of clients who never appear have no effect",
        symmetries.others_away,
    ),
    ConformanceLaw(
        "future-does-not-matter", "rounds do not depend on later ones", symmetries.sooner_ended
    ),
    ConformanceLaw(
        "translation", "moving the origin moves all models with it", symmetries.translated
    ),
    ConformanceLaw("rotation", "rotating the axes rotates all models", symmetries.rotated),
    ConformanceLaw(
        "scaling", "other units for the model and the loss make no difference", symmetries.scaled
    ),
    ConformanceLaw(
        "permutation", "the order of the clients makes no difference", symmetries.renamed
    ),
    ConformanceLaw(
        "limit-full",
        "with everybody present for many rounds, the fixed point, by formula",
        closed_forms.fixed_point,
        applies=lambda one: not one.server,
    ),
    ConformanceLaw("long-run", "with uneven clients that come and go for 400 rounds", _long_run),
)

LAWS: dict[str, ConformanceLaw] = {law.name: law for law in _LAWS}
"""All laws by name: those come first that cost little or tell most faults apart."""

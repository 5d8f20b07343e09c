"""Attack the replacements of refuted statements: corrected, derived and repaired readings.

    python benchmarks/attack_corrections.py --settings 10000 [ID ...]

Each reading is attacked with one seed after another until the given number of settings have met all
of its hypotheses. If small runs can test it (`small_runs.py`, which shares nothing with the
package), its hypotheses and bound are evaluated on thousands of them at once: piecewise quadratic
clients, every path of a run, constant and decreasing steps, one participant, one client, extreme
weights. Claims about learning and the cited lemmas are searched by `falsify`, around their regimes.
The exit status is 1 if a reading is broken. For readings that no setting can refute, the reason is
printed.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import sympy as sp

from fltheory import theorems
from fltheory.claims.statement import Basis, Statement
from fltheory.verify import falsify

small = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("small_runs.py"))))
PRINTED = ("printed", "any C_P", "any constant", "bounded absence", "same data", "uniform in Q")
ROUND = 500
BATCH = 500
ROUNDING = 1e-9

Maker = Callable[[np.random.Generator, int], Any]


@dataclass(frozen=True)
class Attack:
    """The result of attacking a reading."""

    name: str
    tried: int
    applicable: int
    largest_ratio: float
    broken_by: str
    why_not: str = ""

    @property
    def line(self) -> str:
        """The result in one line."""
        if self.why_not:
            return f"{self.name}: cannot be attacked, {self.why_not}"
        met = f"{self.applicable:,} of {self.tried:,} settings met every hypothesis"
        end = f"BROKEN by {self.broken_by}" if self.broken_by else "none broke it"
        return f"{self.name}: {met}, largest ratio {self.largest_ratio:.4g}, {end}"


def readings_under_attack(*beginnings: str) -> Iterator[Statement]:
    """Yield every reading that claims to be true."""
    for statement in theorems.registered(*beginnings):
        if statement.reading not in PRINTED and not statement.refutations:
            yield statement


def _safari(theorem: int, **fixed: Any) -> list[Maker]:
    """Return makers of small and long runs of SAFARI; without noise, these may be deterministic."""
    kinds = ("nonconvex", "convex") if theorem == 4 else ("convex", "quadratic")
    shapes = [
        # eligible, excluded, drawn, steps, rounds, noisy
        (1, 0, 1, 1, 4, True),
        (2, 1, 1, 1, 3, True),
        (2, 0, 1, 2, 5, False),
        (3, 1, 2, 3, 4, False),
        (1, 2, 1, 2, 7, False),
    ]
    names = ("eligible", "excluded", "drawn", "steps", "rounds", "noisy")
    makers: list[Maker] = []
    for kind in kinds:
        for shape in shapes:
            of_shape = dict(zip(names, shape, strict=True))
            makers.append(partial(small.safari, kind=kind, theorem=theorem, **of_shape, **fixed))
        for only in (0.0, 1.0):
            long = {"eligible": 2, "excluded": 1, "drawn": 2, "steps": 2, "rounds": 200}
            makers.append(
                partial(
                    small.safari,
                    kind=kind,
                    theorem=theorem,
                    noisy=False,
                    only=only,
                    **long,
                    **fixed,
                )
            )
    return makers + [partial(small.long_safari, theorem=theorem, **fixed)] * 8


def _rates(rounds: np.ndarray[Any, Any], times: float) -> Any:
    return times * np.log(rounds) / rounds


def _corollary_1(speedup: bool, **fixed: Any) -> list[Maker]:
    def schedule(drawn_steps: Any, rounds: Any) -> Any:
        return np.sqrt((drawn_steps if speedup else 1) / rounds)

    return _safari(4, schedule=schedule, **fixed)


def _corollary_2() -> list[Maker]:
    return [
        partial(small.long_safari, theorem=5, schedule=lambda _, R, times=times: _rates(R, times))
        for times in (1.0, 2.0, 10.0)
    ]


SCAFFOLD_SHAPES = [
    {"clients": 2, "drawn": 1, "steps": 1, "rounds": 4, "noisy": True},
    {"clients": 2, "drawn": 1, "steps": 2, "rounds": 8, "noisy": False},
    {"clients": 3, "drawn": 2, "steps": 2, "rounds": 5, "noisy": False},
    {"clients": 1, "drawn": 1, "steps": 2, "rounds": 3, "noisy": True},
    {"clients": 2, "drawn": 2, "steps": 3, "rounds": 100, "noisy": False},
]
FEDAU_SHAPES = [
    {"clients": 1, "steps": 1, "rounds": 5, "noisy": True},
    {"clients": 2, "steps": 2, "rounds": 4, "noisy": False},
    {"clients": 1, "steps": 3, "rounds": 9, "noisy": False},
    {"clients": 2, "steps": 1, "rounds": 3, "noisy": True},
]
MARKOV_SHAPES = [
    {"clients": 1, "steps": 2, "rounds": 8, "noisy": False},
    {"clients": 2, "steps": 3, "rounds": 4, "noisy": False},
    {"clients": 1, "steps": 1, "rounds": 5, "noisy": True},
    {"clients": 2, "steps": 1, "rounds": 3, "noisy": True},
]


def _each(make: Maker, shapes: Iterable[Mapping[str, Any]], *kinds: str) -> list[Maker]:
    return [partial(make, kind=kind, **shape) for kind in kinds for shape in shapes]


def _corollary_4_cutoff(rounds: int, p: Any) -> Any:
    with np.errstate(divide="ignore"):
        wanted = np.log(rounds) / (-2 * np.log(1 - p.min(axis=1)))
    return np.maximum(np.round(np.nan_to_num(wanted)), 1)


def _corollary_4() -> list[Maker]:
    return [
        partial(
            small.fedau,
            kind="bounded",
            near=False,
            cutoff=partial(_corollary_4_cutoff, shape["rounds"]),
            **shape,
        )
        for shape in FEDAU_SHAPES
    ]


def _of_means(batch: Any) -> Any:
    """Replace the geometrically weighted mean over rounds by the plain one."""
    return small.Batch(batch.values["means"], batch.values, batch.floor)


def _late(batch: Any) -> Any:
    return small.Batch(batch.values["late"], batch.values)


def _lemma(number: int) -> Callable[[Any], Any]:
    return lambda batch: small.Batch(batch.values[f"lemma_{number}"], batch.values)


def _doubled(batch: Any) -> Any:
    """Double the truth, as the reading's own quantity is at most 2 where the function is convex."""
    return small.Batch(2 * batch.truth, batch.values)


def _then(change: Callable[[Any], Any], makers: Iterable[Maker]) -> list[Maker]:
    return [lambda rng, n, make=make: change(make(rng, n)) for make in makers]


CONVEX = _each(small.scaffold, SCAFFOLD_SHAPES, "convex", "quadratic")
MARKOV = _each(small.markov, MARKOV_SHAPES, "convex", "quadratic")
DECOMPOSITIONS = [
    partial(small.decomposition, kind=kind, clients=clients)
    for kind in ("convex", "quadratic")
    for clients in (1, 2, 3, 8)
]
SMALL_RUNS: Mapping[tuple[str, str], list[Maker]] = {
    ("sa-fl-submission/4", "derived"): _safari(4, equal_noise=True),
    ("sa-fl-submission/4", "repaired"): _safari(4, equal_noise=True),
    ("sa-fl/4", "derived"): _safari(4),
    ("sa-fl/4", "repaired"): _safari(4),
    ("sa-fl/5", "derived"): _safari(5),
    ("sa-fl/5", "repaired"): _safari(5),
    ("sa-fl/corollary-1", "derived"): _corollary_1(speedup=True),
    ("sa-fl/corollary-1", "repaired"): _corollary_1(speedup=False),
    ("sa-fl-submission/corollary-1", "derived"): _corollary_1(speedup=True, equal_noise=True),
    ("sa-fl/corollary-1-speedup", "derived"): _corollary_1(speedup=True),
    ("sa-fl/a1", "derived"): _corollary_1(speedup=True),
    ("sa-fl/corollary-2", "derived"): _corollary_2(),
    ("sa-fl/corollary-2", "repaired"): _corollary_2(),
    ("ca-fed/1", "sharper"): DECOMPOSITIONS,
    ("ca-fed/3", "sharper"): DECOMPOSITIONS,
    ("ca-fed/2", "derived"): MARKOV,
    ("ca-fed/lemma-2", "derived"): _then(_lemma(2), MARKOV),
    ("ca-fed/lemma-3", "derived"): _then(_lemma(3), MARKOV),
    ("ca-fed/local-gradients", "derived"): [
        partial(small.local_gradients, kind=kind, steps=steps)
        for kind in ("convex", "quadratic")
        for steps in (1, 2, 10)
    ],
    ("ca-fed/falling-steps", "derived"): [small.falling_steps],
    ("ca-fed/vi-a", "derived"): [small.greedy_choice],
    ("ca-fed/appendix-d", "derived"): [small.fastest_weights],
    ("ca-fed/appendix-d", "any noise"): [partial(small.fastest_weights, any_noise=True)],
    ("ca-fed/appendix-e", "derived"): [partial(small.midpoints, of="shares")],
    ("ca-fed/appendix-e", "two clients"): _then(_doubled, [partial(small.midpoints, of="weights")]),
    ("ca-fed/appendix-e-summands", "derived"): [partial(small.midpoints, of="summand")],
    ("fedau/1", "derived"): [small.fedau_limit],
    ("fedau/2-option-1", "derived"): [
        partial(small.fedau, kind=kind, near=True, **shape)
        for kind in ("nonconvex", "convex")
        for shape in FEDAU_SHAPES
    ],
    ("fedau/2-option-2", "derived"): [
        partial(small.fedau, kind="bounded", near=False, **shape) for shape in FEDAU_SHAPES
    ],
    ("fedau/corollary-4", "derived"): _corollary_4(),
    ("fedau/3", "derived"): [small.fedau_weights],
    ("fedau/3-step", "derived"): _then(_late, [small.fedau_weights]),
    ("fedar/assumption-7", "derived"): [small.absences],
    ("scaffold/strongly-convex", "derived"): CONVEX,
    ("scaffold/convex", "derived"): _then(_of_means, CONVEX),
    ("scaffold/nonconvex", "derived"): _each(small.scaffold, SCAFFOLD_SHAPES, "nonconvex"),
}


def _evaluated(formula: sp.Basic, values: Mapping[str, Any]) -> Any:
    """Evaluate a formula on arrays; values per round are (settings, rounds), others columns."""
    symbols = sorted(formula.free_symbols, key=str)
    columns = []
    for symbol in symbols:
        value = np.asarray(values[str(symbol)], dtype=float)
        columns.append(value[:, None] if value.ndim == 1 else value)
    with np.errstate(all="ignore"):
        return np.asarray(sp.lambdify(symbols, formula, "numpy")(*columns), dtype=float)


def _met(basis: Basis, conditions: Iterable[Any], batch: Any) -> Any:
    """Return whether all conditions hold in all rounds, (n,)."""
    definitions: Any = dict(basis.definitions)
    met = np.ones(batch.truth.size, dtype=bool)
    for item in conditions:
        left, right = (
            _evaluated(side.subs(definitions), batch.values) for side in item.condition.args
        )
        if isinstance(item.condition, sp.Eq):
            holds = np.isclose(left, right, rtol=ROUNDING, atol=0)
        elif isinstance(item.condition, sp.Lt):
            holds = left < right
        elif isinstance(item.condition, sp.Gt):
            holds = left > right
        else:
            up = isinstance(item.condition, sp.Ge)
            gap = left - right if up else right - left
            holds = gap >= -ROUNDING * (1e-300 + np.minimum(np.abs(left), np.abs(right)))
        met &= np.broadcast_to(holds, (met.size, holds.shape[-1] if holds.ndim else 1)).all(axis=1)
    return met


def in_small_runs(statement: Statement, makers: list[Maker], wanted: int, seed: int) -> Attack:
    """Attack with batches of small runs in turn until ``wanted`` have met every hypothesis."""
    basis = statement.basis
    conditions = list(basis.hypotheses)
    if statement.axes:
        # Steps are set to the corollary's own, as its equation, squared, must hold to 10^-9.
        conditions += [
            item for item in statement.axes[0].hypotheses if "step size of" not in item.name
        ]
    tried = applicable = turn = 0
    largest, broken_by = float("-inf"), ""
    definitions: Any = dict(basis.definitions)
    while (applicable < wanted or turn < len(makers)) and not broken_by and tried < 30 * wanted:
        rng = np.random.default_rng([seed, turn])
        batch = makers[turn % len(makers)](rng, min(BATCH, wanted))
        met = _met(basis, conditions, batch)
        bound = np.broadcast_to(
            _evaluated(basis.bound.subs(definitions).subs(definitions), batch.values).reshape(-1),
            met.shape,
        )
        with np.errstate(all="ignore"):
            ratio = np.where(batch.truth > batch.floor, batch.truth / bound, 0)
        ratio = np.where(met & ~np.isnan(ratio), ratio, float("-inf"))
        tried, applicable = tried + met.size, applicable + int(met.sum())
        worst = int(ratio.argmax())
        largest = max(largest, float(ratio[worst]))
        if largest > 1 + ROUNDING:
            numbers = (
                f"{name} = {np.asarray(value)[worst] if np.ndim(value) else value}"
                for name, value in batch.values.items()
            )
            broken_by = f"batch {turn}, setting {worst}: {'; '.join(numbers)}"
        turn += 1
    return Attack(statement.name, tried, applicable, largest, broken_by)


def attacked(statement: Statement, wanted: int, most: int, seed: int = 0) -> Attack:
    """Attack a reading until ``wanted`` settings have met its hypotheses, or ``most`` are tried."""
    if statement.why_not_searched:
        return Attack(statement.name, 0, 0, 0.0, "", statement.why_not_searched)
    makers = SMALL_RUNS.get((statement.id, statement.reading))
    if makers is not None:
        return in_small_runs(statement, makers, wanted, seed)
    tried = applicable = 0
    largest, broken_by = float("-inf"), ""
    while applicable < wanted and tried < most and not broken_by:
        found = falsify(statement, min(ROUND, most - tried), seed)
        tried, seed = tried + found.settings_tried, seed + 1
        applicable += found.settings_applicable
        largest = max(largest, found.best_ratio)
        broken_by = "; ".join(found.witness.lines) if found.witness else ""
    return Attack(statement.name, tried, applicable, largest, broken_by)


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the attacks, and print a line for each reading."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--settings", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(None if arguments is None else list(arguments))
    broken = 0
    for statement in readings_under_attack(*options.ids):
        attack = attacked(statement, options.settings, 10 * options.settings, options.seed)
        broken += bool(attack.broken_by)
        print(attack.line, flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Three hundred wrong implementations for which no slip of the suite was written.

    python benchmarks/conformance_variants.py [--count 300] [--processes 2] [--single] [--faults]
        [NAME ...]

Half of them are the plain NumPy implementations of `tests/testing/gallery/` with an edit of their
source: an operator, a constant, a comparison, a function, a term left out. The others are the
habits of training code in `conformance_habits.py`, around right implementations of all algorithms.
Both are independent of the suite, whose slips change parts of the package's algorithms. A variant
that gives the right models on 48 random cases, to a thousandth, is not a fault and is left out. The
script prints how many of the others are caught, how many of those get a cause or a hint, and all
messages, to be read: a cause is right if it describes the variant. ``--single`` runs everything in
single precision with ``rtol=1e-4``; ``--faults`` uses the faults of the gallery instead.
"""

from __future__ import annotations

import argparse
import ast
import copy
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.conformance_habits import habits, wrong
from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance import case_maker
from fltheory.testing.conformance.case_maker import CaseMaker
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from tests.testing.gallery import GALLERY

CASES = 48


class Edit(ast.NodeTransformer):
    """Makes one edit of a function's source, chosen by number, and counts the possible ones."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.seen, self.says = wanted, 0, ""

    def _try(self, node: ast.AST, changes: list[tuple[str, Callable[[Any], None]]]) -> ast.AST:
        for says, change in changes:
            if self.seen == self.wanted:
                before = ast.unparse(node)
                change(node)
                self.says = f"{says}: {before} -> {ast.unparse(node)}, line {node.lineno}"  # type: ignore[attr-defined]
            self.seen += 1
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Change an arithmetic operator, or drop one of its operands."""
        self.generic_visit(node)
        others = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
        other = others.get(type(node.op))
        if other is None:
            return node

        def left(it: ast.BinOp) -> None:
            it.right = ast.Constant(0 if isinstance(it.op, ast.Add | ast.Sub) else 1)

        return self._try(
            node,
            [
                ("operator", lambda it: setattr(it, "op", other())),
                ("left out", left),
                ("halved", lambda it: setattr(it, "right", _half(it.right))),
            ],
        )

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Make a strict comparison non-strict, or vice versa."""
        self.generic_visit(node)
        others = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
        other = others.get(type(node.ops[0]))
        return node if other is None else self._try(
            node, [("border", lambda it: setattr(it, "ops", [other()]))]
        )  # fmt: skip

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Change a maximum to a minimum, or a mean to a sum or a median."""
        self.generic_visit(node)
        names = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum",
                 "mean": "sum", "sum": "mean", "zeros": "ones", "ones": "zeros"}  # fmt: skip
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name not in names:
            return node
        return self._try(node, [("function", lambda it: setattr(it.func, "attr", names[name]))])

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Change a number by one."""
        if type(node.value) not in (int, float):
            return node
        return self._try(node, [("number", lambda it: setattr(it, "value", it.value + 1))])


def _half(node: ast.expr) -> ast.expr:
    return ast.BinOp(ast.Constant(0.5), ast.Mult(), node)


def variants(name: str, rng: np.random.Generator) -> list[tuple[str, int | str]]:
    """Return pairs of an algorithm and the number of an edit of its implementation, or a habit."""
    one, counter = SPECIFICATIONS[name], Edit(-1)
    told = [*one.options, "client_lr", "local_steps", *(["server_lr"] if one.server_lr else [])]
    around = rng.permutation(list(habits(told))).tolist()
    if name in GALLERY:
        counter.visit(_tree(name))
    pairs = zip_longest(rng.permutation(counter.seen).tolist(), around)
    return [(name, what) for pair in pairs for what in pair if what is not None]


def _tree(name: str) -> ast.Module:
    run = GALLERY[name].run
    tree = ast.parse(inspect.getsource(run))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    return tree


def made(name: str, what: int | str) -> tuple[Callable[..., Any], str]:
    """Return a variant and its description, given an edit's number, a habit or a fault."""
    if isinstance(what, str):
        if name in GALLERY and what in GALLERY[name].faults:
            return partial(GALLERY[name].run, fault=what), GALLERY[name].faults[what].says
        return wrong(what, GALLERY[name].run if name in GALLERY else run_of(name)), what
    tree, edit = copy.deepcopy(_tree(name)), Edit(what)
    tree = ast.fix_missing_locations(edit.visit(tree))
    known = dict(sys.modules[GALLERY[name].run.__module__].__dict__)
    exec(compile(tree, f"<{name} {what}>", "exec"), known)
    return known[tree.body[0].name], edit.says  # type: ignore[attr-defined]


def differs(name: str, run: Callable[..., Any]) -> bool:
    """Return whether a variant gives different models on a random case."""
    make = CaseMaker(SPECIFICATIONS[name], {}, np.random.default_rng(987))
    kinds = (case_maker.bursty, case_maker.with_empty, case_maker.uneven, case_maker.full)
    for draw in range(CASES):
        n, rounds = {46: (30, 14), 47: (3, 150)}.get(draw, (2 + draw % 5, 14))
        case = make.case(kinds[draw % 4], n=n, dim=1 + draw % 3, rounds=rounds)
        given = case.x0, case.clients, case.trace
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(run(*given, **case.keywords), dtype=np.float64)
        except Exception:
            return True
        right = run_of(name)(*given, **case.keywords)
        size = float(np.abs(right).max()) + case.scale
        if found.shape != right.shape or not np.abs(found - right).max() <= 1e-3 * size:
            return True
    return False


def judged(
    single: bool, which: tuple[str, int | str]
) -> tuple[str, str, bool, tuple[str, ...]] | None:
    """Return the edit, whether it is caught, and the messages; None if it is not a fault."""
    name, what = which
    run, says = made(name, what)
    if not differs(name, run):
        return None
    rtol, checked = 1e-9, run
    if single:
        rtol, checked = 1e-4, partial(_single, run)
    report = check_algorithm(checked, name, rtol=rtol, raises=False, stop_at_first=True)
    said = tuple(cause for one in report.failures for cause in one.causes) or report.hints
    if not said and report.failures and "run " in report.failures[0].message:
        said = (report.failures[0].message.splitlines()[0],)
    return f"{name}: {says}", report.failures[0].law if report.failures else "", bool(
        report.failures
    ), said  # fmt: skip


def _single(run: Callable[..., Any], x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(run(x0, clients, trace, **given)).astype(np.float32)


def main() -> int:
    """Check a random sample of variants; the exit status is 1 if too many pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SPECIFICATIONS))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--faults", action="store_true", help="those of the gallery instead")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    if arguments.faults:
        every: list[tuple[str, int | str]] = [
            (name, fault)
            for name in arguments.names
            if name in GALLERY
            for fault in GALLERY[name].faults
        ]
    else:
        each = [variants(name, rng) for name in arguments.names]
        every = [one for one in chain(*zip_longest(*each)) if one is not None]
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(arguments.processes) as pool:
        jobs = every[: 3 * arguments.count]
        for found in pool.map(partial(judged, arguments.single), jobs, chunksize=1):
            if found is None:
                counts["no fault"] += 1
                continue
            edit, law, caught, said = found
            counts["differ"] += 1
            counts["caught"] += caught
            counts["with a cause or hint"] += caught and bool(said)
            print(f"{edit}\n  {law or 'NOT CAUGHT'}: {'; '.join(said) or 'nothing'}", flush=True)
            if counts["differ"] == arguments.count:
                break
        pool.shutdown(cancel_futures=True)
    print(dict(counts))
    return int(counts["caught"] < 0.97 * counts["differ"])


if __name__ == "__main__":
    sys.exit(main())

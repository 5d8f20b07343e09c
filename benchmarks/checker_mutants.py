"""Count the wrong checkers of certificates that the checker's tests would let pass.

Every mutant of ``certificate_checker.py`` differs from it in one place: an operator, a comparison,
an integer, a negation, a condition of a comprehension, or a deleted statement. Every case of the
nearest tests runs once on the right checker, and the lines that it reaches are recorded. A mutant
is then loaded in a child process in place of the checker that the tests use, and the cases that
reach the change run, cheapest first, until one fails. A case that takes far longer than before also
counts as a failure. Survivors must be listed below, each with the reason why no certificate could
distinguish it from the checker. A run that saves its results (`--kept FILE`) continues after the
last; such a file is valid for one version of the checker and its tests, and is discarded when
either changes.

    python benchmarks/checker_mutants.py [--only PART] [--lines 1-99] [--sample COUNT] [--seed SEED]
        [--list] [--kept FILE]
"""

from __future__ import annotations
import __future__

import argparse
import ast
import gc
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Literal, TypeAlias

import pytest
from _pytest.runner import runtestprotocol
from mutation import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
CHECKER = ROOT / "fltheory" / "verify" / "certificates" / "certificate_checker.py"
TESTS = (
    "test_certificate_checker.py", "test_certificate_limits.py", "test_certificate_numbers.py",
)  # fmt: skip
MEMORY = 4 * 2**30  # bytes

Fate: TypeAlias = Literal["killed", "timed out", "survives"]

# A survivor -> why it accepts exactly the certificates that the checker accepts.
_PROGRAM = "killed by test_the_file_is_a_program, which runs the file itself: nothing of it is here"
_FINER = "brackets become narrower, or are taken further: they hold the same"
_ALIKE = "the same in every round: step sizes that fall have been refused, or are not there"
EQUIVALENT: dict[str, str] = {
    "_extent: factor > 0 -> factor >= 0": "of a factor of zero either end is zero",
    "_extent: (0, 1) -> (0, 2) (2)": "zero halves are zero",
    "_Round: level > 0 -> level >= 0": "noises of size zero are worked out",
    "_Run: self._averages[0] -> self._averages[1]": "the average of a round is made again",
    "_Run: self._images[0] -> self._images[1]": "outcomes of a round are made again",
    "_Block: self.clients.sigma > 0 -> self.clients.sigma >= 0": (
        "noises of size zero are worked out, and nobody asks for them"
    ),
    "_below: second[0] -> second[1] (2)": "what the two would tell apart has been refused before",
    "MOST_ENTRIES: 40000 -> 40001": "40001 is no square times a number of bits but 40001 itself",
    "MOST_TERMS: 16384 -> 16385": _FINER,
    "COARSEST: (64, 4096) -> (64, 4097)": "widths are 4^k times 64; a box is rounded less",
    "_power: power < 0 -> power <= 0": "a power of zero is 1, and so is its inverse",
    "_power: power < 0 -> power < 1": "a power of zero is 1, and so is its inverse",
    "_whole_root: 1 << -(-number.bit_length() // degree) -> "
    "2 << -(-number.bit_length() // degree)": "Newton's steps go down to the root from there, too",
    "_log_of: k -= value < Fraction(2) ** k -> nothing": (
        "u is then between 1/2 and 2: the series is as short, and its terms, negative, are each "
        "rounded down by more than the rest"
    ),
    "_log_of: value < Fraction(2) ** k -> value <= Fraction(2) ** k": (
        "a power of 2 is written as 2 times the one before: u is 2 instead of 1"
    ),
    "_log_of: Fraction(2) ** k -> Fraction(2) * k": "as if k were not lowered, or as it is",
    "_artanh: bits + 2 -> bits - 2": "terms are below a unit after a third of them",
    "_artanh: bits + 2 -> bits + 3": "terms are below a unit after a third of them",
    "_alike: (0, _ONE) -> (1, _ONE)": "the name of the only state",
    "_on_and_off: if second == 0: -> nothing": "a chain without memory, written as a chain",
    "_on_and_off: second == 0 -> second == 1": "a chain without memory, written as a chain",
    "_on_and_off: return replace(_alike(law.items(), len(law)), mixing=mixing) -> nothing": (
        "a chain without memory, written as a chain"
    ),
    "_chain:  for j, chance in enumerate(row) if chance > 0 ->  for j, chance in enumerate(row)": (
        "moves of chance zero add zeros"
    ),
    "_chain: chance > 0 -> chance >= 0": "moves of chance zero add zeros",
    "_mixes: len(rows) - 1 -> len(rows) + 1": "higher powers have no zero either",
    "_mixes: (len(rows) - 1) ** 2 -> (len(rows) - 1) ** 3": "higher powers have no zero either",
    "_Block: len(self._known) > 2 * len(self.hessians) -> "
    "len(self._known) >= 2 * len(self.hessians)": "how many local steps are kept for other rounds",
    "_Block: 2 * len(self.hessians) -> 2 / len(self.hessians)": (
        "how many local steps are kept for other rounds"
    ),
    "_Block: 2 * len(self.hessians) -> 3 * len(self.hessians)": (
        "how many local steps are kept for other rounds"
    ),
    "_Round: 1 + sum((len(vectors) for vectors in state.values())) * len(block.axes) -> "
    "2 + sum((len(vectors) for vectors in state.values())) * len(block.axes)": (
        "the numbers of noises are beyond the state's in either case"
    ),
    "_fedvarp: r.lr * r.steps -> r.lr / r.steps": (
        "the unit in which changes are remembered, the same in all rounds but for their step size"
    ),
    "_ALGORITHMS: -1 -> -2": "an age below zero says that a client has never been there",
    "_ALGORITHMS: max(a['clusters']) + 1 -> max(a['clusters']) + 2": (
        "the memory of a cluster without clients, which nothing reads"
    ),
    "_product_of: k < m -> k <= m": "the same pair where both are one",
    "_product_of: k >= size and m >= size -> k >= size or m >= size": (
        "a covariance of noise and state is not there, hence zero"
    ),
    "_Run: (0, {}) -> (1, {})": "the outcomes of a round that are known so far: none",
    "_Run: known_squares[of] = square -> nothing": "worked out again; no work is counted there",
    "_Run: 1 -> 2 (2)": "a second velocity, which nothing reads",
    "_Run: t == 1 -> t != 1 (2)": "the first round gets 0 and the others 1, instead of 1 and 0",
    "_Run: self._key(t) > 1 -> self._key(t) >= 1": "no map is older than that of a warm start",
    "_Run: self._key(t) > 1 -> self._key(t) > 2": "the first round's map is forgotten a bit later",
    "_Run: method.lr(1) -> method.lr(2)": _ALIKE,
    "_boxes: w.rounds + 1 -> w.rounds + 2": "nobody asks for the box after the last round",
    "_curvature: sign > 0 -> sign >= 0": "the sign is 1 or -1",
    "_curvature: sign > 0 -> sign >= 0 (2)": "the sign is 1 or -1",
    "_curvature: high - low > Fraction(1, 2 ** min(bits, 4 * COARSEST)) -> "
    "high - low >= Fraction(1, 2 ** min(bits, 4 * COARSEST))": _FINER,
    "_curvature: 2 ** min(bits, 4 * COARSEST) -> 3 ** min(bits, 4 * COARSEST)": _FINER,
    "_curvature: 4 * COARSEST -> 5 * COARSEST": _FINER,
    "_smoothness: _curvature(h, bits, 1) -> _curvature(h, bits, 2)": (
        "twice a matrix is definite where it is"
    ),
    "_convexity: -1 -> -2": "twice a matrix is definite where it is",
    "_client_lr: known.w.method.lr(1) -> known.w.method.lr(2)": _ALIKE,
    "_squares: 64 * bits -> 65 * bits": _FINER,
    "_single_steps: r.known + 1 -> r.known - 1": "counts down to the round of the average, not up",
    "_weight_inversion: u < a -> u <= a": "the ratio is zero at the end as well",
    "_price: side(middle) > end -> side(middle) >= end": (
        "where both are equal the middle is what is looked for, and stays one end of the bracket"
    ),
    "_price: Fraction(1, 2 ** min(bits, 4 * COARSEST)) -> "
    "Fraction(2, 2 ** min(bits, 4 * COARSEST))": _FINER,
    "_price: between[1] - between[0] > Fraction(1, 2 ** min(bits, 4 * COARSEST)) -> "
    "between[1] - between[0] >= Fraction(1, 2 ** min(bits, 4 * COARSEST))": _FINER,
    "_price: 2 ** min(bits, 4 * COARSEST) -> 3 ** min(bits, 4 * COARSEST)": _FINER,
    "_price: 4 * COARSEST -> 5 * COARSEST": _FINER,
    "_run_sums: 2 * bits -> 3 * bits": _FINER,
    "_delayed: (over / rate,) * 2 -> (over / rate,) * 3": "of three equal ends two are read",
    "_delayed: 2 * COARSEST -> 3 * COARSEST": _FINER,
    "_NUMBERS: 0 * _mixing(k)[0] -> 0 / _mixing(k)[0]": "zero, of a chain that mixes",
    "_NUMBERS: _mixing(k)[0] -> _mixing(k)[1] (2)": "zero, of a chain that mixes",
    "__name__: if __name__ == '__main__': -> nothing": _PROGRAM,
    "__name__: raise SystemExit(main(sys.argv[1:])) -> nothing": _PROGRAM,
    "__name__: 1: -> 2:": _PROGRAM,
    "main: 1 -> 2": "any number of refusals is the same exit status",
    "_Statement: 1 -> 2": "a condition without symbols along the run is looked at twice",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A test case, with its time in seconds, traced, and the checker's lines that it reaches."""

    item: pytest.Item
    seconds: float
    lines: frozenset[int]


class Mutation:
    """A plugin of pytest that runs cases on mutants instead of running them once.

    Attributes
    ----------
    fates : dict
        The fate of each mutant, by its title.
    """

    def __init__(self, chosen: dict[str, Mutant], kept: Path | None) -> None:
        self._chosen = chosen
        self._kept = kept
        self.fates: dict[str, Fate] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every case once, then all mutants."""
        module = sys.modules["checker_alone"]
        cases = sorted(map(_measured, session.items), key=lambda case: case.seconds)
        print(f"{len(cases)} cases: {sum(case.seconds for case in cases):.0f} s traced", flush=True)
        parts = [_compiled(node) for node in ast.parse(CHECKER.read_text("utf-8")).body]
        before = fates_in(self._kept)
        gc.freeze()  # garbage collection in a child copies memory
        for count, (title, mutant) in enumerate(self._chosen.items()):
            if count % 100 == 0:
                print(f"{count} of {len(self._chosen)} run", file=sys.stderr, flush=True)
            if title in before:
                fate = before[title]
            else:
                # A line that no case reaches runs on import, or never.
                reaching = [case for case in cases if case.lines & {*mutant.lines}] or cases
                fate = _fate_of(mutant, module, parts, reaching)
                if self._kept is not None:
                    with self._kept.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps({"title": title, "fate": fate}) + "\n")
            self.fates[title] = fate
            if fate != "killed":
                print(f"{mutant.line}: {fate}: {title}", flush=True)
        return True


def fates_in(path: Path | None) -> dict[str, Fate]:
    """Return the fates that an earlier run saved, by the mutant's title."""
    if path is None or not path.exists():
        return {}
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {one["title"]: one["fate"] for one in found}


def _measured(item: pytest.Item) -> Case:
    start = time.process_time()
    with _lines_reached() as lines:
        passes = _passes(item)
    if not passes:
        raise SystemExit(f"the checker itself fails {item.nodeid}")
    return Case(item, time.process_time() - start, frozenset(lines))


def _passes(item: pytest.Item) -> bool:
    return all(report.outcome == "passed" for report in runtestprotocol(item, log=False))


@contextmanager
def _lines_reached() -> Iterator[set[int]]:
    """Record which lines of the checker run; a line that has run is not traced again."""
    found: set[int] = set()
    left: dict[CodeType, set[int]] = {}

    def note(frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        rest = left[frame.f_code]
        if event == "line":
            rest.discard(frame.f_lineno)
            found.add(frame.f_lineno)
        return note if rest else None

    def begin(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename != str(CHECKER):
            return None
        if code not in left:
            left[code] = {line for *_, line in code.co_lines() if line is not None}
            left[code].discard(code.co_firstlineno)
            found.add(code.co_firstlineno)
        return note if left[code] else None

    sys.settrace(begin)
    try:
        yield found
    finally:
        sys.settrace(None)


def _compiled(node: ast.stmt) -> CodeType:
    flags = __future__.annotations.compiler_flag
    return compile(ast.Module([node], []), str(CHECKER), "exec", flags, dont_inherit=True)


def _fate_of(
    mutant: Mutant, module: ModuleType, parts: Sequence[CodeType], cases: Sequence[Case]
) -> Fate:
    """Run cases on a mutant in a child process with limits on time and memory."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        status = 1
        try:
            _limit(10)
            _become(mutant, module, parts)
            status = 0
            for case in cases:
                _limit(2 + 5 * case.seconds)
                if not _passes(case.item):
                    status = 1
                    break
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGPROF:
        return "timed out"
    return "killed" if code else "survives"


def _limit(seconds: float) -> None:
    """Set a timer whose signal ends this process after this much processor time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _become(mutant: Mutant, module: ModuleType, parts: Sequence[CodeType]) -> None:
    """Replace all names in the module that the tests use by those of a mutant."""
    for name in [name for name in vars(module) if not name.startswith("__")]:
        delattr(module, name)
    changed = _compiled(ast.parse(mutant.text).body[0])
    for part in [*parts[: mutant.statement], changed, *parts[mutant.statement + 1 :]]:
        exec(part, vars(module))


def titled(found: Sequence[Mutant]) -> dict[str, Mutant]:
    """Give mutants titles without line numbers, which change; repeated titles get a number."""
    seen: Counter[str] = Counter()
    titles: dict[str, Mutant] = {}
    for mutant in found:
        title = f"{mutant.place}: {mutant.what}"
        seen[title] += 1
        titles[title if seen[title] == 1 else f"{title} ({seen[title]})"] = mutant
    return titles


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose title holds this")
    parser.add_argument("--lines", default="0-100000", help="first and last line to mutate")
    parser.add_argument("--sample", type=int, help="so many of them, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of that drawing")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--kept", type=Path, help="file of fates: read first, then added to")
    given = parser.parse_args()
    first, last = (int(end) for end in given.lines.split("-"))
    every = titled(list(mutants(CHECKER.read_text(encoding="utf-8"))))
    chosen = {t: m for t, m in every.items() if first <= m.line <= last and given.only in t}
    if given.sample is not None:
        drawn = random.Random(given.seed).sample(sorted(chosen), min(given.sample, len(chosen)))
        chosen = {title: chosen[title] for title in drawn}
    if given.list:
        print("\n".join(f"{m.line}: {title}" for title, m in chosen.items()))
        return 0
    mutation = Mutation(chosen, given.kept)
    # Other plugins and rewritten assertions are not needed, and both take time.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path.insert(0, str(ROOT))
    options = ["-q", "--assert=plain", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    tests = [str(ROOT / "tests" / "verify" / "certificates" / name) for name in TESTS]
    pytest.main([*options, *tests], plugins=[mutation])
    fates = Counter(mutation.fates.values())
    alive = [title for title, fate in mutation.fates.items() if fate == "survives"]
    unexplained = [title for title in alive if title not in EQUIVALENT]
    print(
        f"{fates['killed']} of {len(chosen)} mutants killed by a case, {fates['timed out']} by "
        f"time; {len(alive) - len(unexplained)} equivalent, {len(unexplained)} survive (target 0)"
    )
    return 1 if unexplained or len(mutation.fates) < len(chosen) else 0


if __name__ == "__main__":
    raise SystemExit(main())

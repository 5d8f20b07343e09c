"""Count the wrong versions of the package that the tests nearest to the change would let pass.

Mutants are drawn at random from the engines, algorithms, weights and statements, one changed place
each. The tests nearest to a module are those of the file that mirrors it, then of the files that
name most of what it defines: for 15 seconds of processor time a file, in a random order, and for a
minute in all. A mutant that fails one of them is killed, and so is one that gets stuck: it is
counted and listed. All limits are on processor time, so that other work on the machine changes no
fate; one on the clock, far wider, ends a test that waits for ever. Survivors are listed below, with
what was found out about each. A run that keeps its lines (`--kept FILE`) goes on after the last.

    python benchmarks/code_mutants.py [--count 100] [--seed 0] [--only PART] [--list]
        [--within PACKAGE ...] [--kept FILE]
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from mutation import Mutant, mutant, places

ROOT = Path(__file__).resolve().parents[1]
MUTATED = ("engines", "algorithms", "weights", "theorems")
NOT_COPIED = shutil.ignore_patterns(".*", "out", "site", "__pycache__")
FILES = 8  # nearest test files
SECONDS_A_FILE = 15  # of processor time, and of the last test that begins in it
SECONDS = 60  # of processor time for all of them
SECONDS_STUCK = 90  # of processor time: a test that does not end
SECONDS_WAITING = 1800  # on the clock: a test that sleeps or waits, and uses no processor time

Fate: TypeAlias = Literal["killed", "timed out", "survives"]

# What a survivor changes -> why no test could tell it, or what the tests lack.
SURVIVORS = {
    "engines/observables.py: ParticipantGradientSum: 1 - lr * curvatures -> 1 + lr * curvatures": (
        "a wider envelope is one, too: test_envelope_of_a_gradient_sum_by_hand has its numbers now"
    ),
    "engines/history/history_rounds.py: _RealRound: True -> False": (
        "equivalent: frozen guards, nothing writes"
    ),
    "engines/fedau_weights/dependent_weight_error.py: _of_client: 3 * rounds ** 2 -> "
    "4 * rounds ** 2": "a count in a bound on rounding: what is larger is a bound, too",
    "engines/moments/many_sets/summed_maps.py: SummedMaps: dim ** 2 -> dim * 2": (
        "equivalent: how much is done at once"
    ),
    "theorems/pac/regimes.py: REMARK_2: Fraction(11, 20) -> Fraction(12, 20)": (
        "killed by test_the_servers_target_is_where_the_regime_says, which is new"
    ),
    "algorithms/fedar.py: FedAR: chains.availability > 0 -> chains.availability > 1": (
        "killed by test_pulls_at_the_limit_by_hand, which is new"
    ),
    "engines/clients/quadratic_clients.py: QuadraticClients: end > start -> end >= start": (
        "equivalent: rows of a client who is not there are none"
    ),
    "engines/affine/symbolic/forms.py: AffineArray: if theirs is None: -> nothing": (
        "killed by test_what_is_not_an_array_is_no_operand, which asks of every operation now"
    ),
    "theorems/fedau/proof.py: _WITHOUT_ERROR: _v / 16 -> _v * 16": (
        "killed by test_which_steps_do_not_follow, whose turn did not come in time"
    ),
    "engines/affine/symbolic/clients.py: ClientNumbers: self._known.pop(next(iter(self._known))) "
    "-> nothing": "killed by test_maps_of_few_step_sizes_are_kept, which is new",
    "engines/clients/quadratic_clients.py: QuadraticClients: self._problem.sigma > 0 -> "
    "self._problem.sigma > 1": "killed by test_little_noise_is_noise, which is new",
    "theorems/sa_fl/proof_5.py: _gradients_paid_by_losses: 15 * kappa * (1 + kappa) -> "
    "15 * kappa / (1 + kappa)": (
        "killed by test_which_steps_do_not_follow, whose turn did not come in time"
    ),
    "engines/history/jump_limits.py: _dwell: UNIT_ROUNDOFF * operations * np.sqrt(size) * gain -> "
    "UNIT_ROUNDOFF * operations * np.sqrt(size) / gain": (
        "killed by test_what_rounds_too_much_is_not_answered, which is new"
    ),
    "theorems/pac/statements.py: _excess_if_no_worse: n_server, n_clients = system.split(n) -> "
    "nothing": "killed by verification/test_pac.py, which is not among the nearest",
}


@dataclass(frozen=True)
class Change:
    """A mutant and the file that it stands in."""

    file: Path
    mutant: Mutant

    @property
    def title(self) -> str:
        """Return where it is and what it changes, without the line, which moves."""
        return f"{self.file.relative_to('fltheory')}: {self.mutant.place}: {self.mutant.what}"


def drawn(count: int, seed: int, places_in: Sequence[str] = MUTATED) -> Iterator[Change]:
    """Yield mutants, each place of these packages and modules as likely as any other."""
    homes = [ROOT / "fltheory" / name for name in places_in]
    files = [
        path
        for home in homes
        for path in ([home] if home.is_file() else sorted(home.rglob("*.py")))
    ]
    sources = {path: path.read_text(encoding="utf-8") for path in files}
    everywhere = [(path, place) for path in files for place in places(sources[path])]
    for path, place in random.Random(seed).sample(everywhere, min(count, len(everywhere))):
        yield Change(path.relative_to(ROOT), mutant(sources[path], place))


def nearest_tests(module: Path, folder: Path) -> list[Path]:
    """Return the test files nearest to a module, in the order in which they run."""
    found = sorted([*folder.glob("tests/**/test_*.py"), *folder.glob("verification/test_*.py")])
    texts = {path.relative_to(folder): path.read_text(encoding="utf-8") for path in found}
    body = ast.parse((folder / module).read_text(encoding="utf-8")).body
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names = {name for name in defined if not name.startswith("_")}
    own = Path("tests", *module.parts[1:-1], f"test_{module.name}")
    subject = re.match(r"(sa_fl|ca_fed|[a-z]+)", module.stem)

    def rank(path: Path) -> tuple[bool, int, bool]:
        words = set(re.findall(r"\w+", texts[path]))
        same = subject is not None and subject[0] in path.stem
        return path == own, 3 * same + len(names & words), path.parent == own.parent

    return sorted(texts, key=rank, reverse=True)[:FILES]


class Budget:
    """A plugin of pytest: runs no further test once a file's time, or all of the time, is used."""

    def __init__(self) -> None:
        self._used: dict[Path, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Shuffle the tests of every file, so that the time goes to any of them."""
        order = {path: place for place, path in enumerate(dict.fromkeys(i.path for i in items))}
        shuffled = random.Random(0).sample(items, len(items))
        items[:] = sorted(shuffled, key=lambda item: order[item.path])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test for which no time is left.

        One that were passed over before its setup would leave the last one's file open, which
        pytest takes for an error in the next file: a kill that no test made.
        """
        if self._used.get(item.path, 0.0) >= SECONDS_A_FILE or time.process_time() >= SECONDS:
            pytest.skip("no time left")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Count the time that a test takes."""
        start = time.process_time()
        try:
            return (yield)
        finally:
            spent = time.process_time() - start
            self._used[item.path] = self._used.get(item.path, 0.0) + spent


def fate_of(change: Change, folder: Path) -> Fate:
    """Run the nearest tests on a mutant, and put the right file back."""
    path = folder / change.file
    right = path.read_text(encoding="utf-8")
    tests = [str(test) for test in nearest_tests(change.file, folder)]
    path.write_text(change.mutant.source, encoding="utf-8")
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_STUCK, SECONDS_STUCK))
        signal.alarm(SECONDS_WAITING)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        sys.dont_write_bytecode = True
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={folder}"]
        status = 1
        try:
            status = int(pytest.main([*options, *tests], plugins=[Budget()]))
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    path.write_text(right, encoding="utf-8")
    if code in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        return "timed out"
    return "killed" if code else "survives"


def kept(path: Path | None) -> dict[str, Fate]:
    """Return the fates that an earlier run has written, by the mutant's number and title."""
    if path is None or not path.exists():
        return {}
    lines = [line.split(": ", 2) for line in path.read_text(encoding="utf-8").splitlines()]
    fates: dict[str, Fate] = {"killed": "killed", "timed out": "timed out", "survives": "survives"}
    return {f"{line[0]}: {line[2]}": fates[line[1]] for line in lines if len(line) == 3}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--within", nargs="+", default=MUTATED, help="packages and modules of fltheory to change"
    )
    parser.add_argument("--only", default="", help="mutants whose title holds this")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--kept", type=Path, help="file of fates: read first, then added to")
    given = parser.parse_args()
    found = drawn(given.count, given.seed, given.within)
    chosen = [one for one in found if given.only in one.title]
    if given.list:
        print("\n".join(one.title for one in chosen))
        return 0
    fates: dict[Fate, list[Change]] = {"killed": [], "timed out": [], "survives": []}
    before = kept(given.kept)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(ROOT, folder, dirs_exist_ok=True, ignore=NOT_COPIED)
        for count, change in enumerate(chosen, start=1):
            number = f"{count} of {len(chosen)}"
            fate = before.get(f"{number}: {change.title}")
            if fate is None:
                fate = fate_of(change, folder)
                if given.kept is not None:
                    with given.kept.open("a", encoding="utf-8") as lines:
                        lines.write(f"{number}: {fate}: {change.title}\n")
            fates[fate].append(change)
            why = SURVIVORS.get(change.title, "") if fate == "survives" else ""
            print(f"{number}: {fate}: {change.title} {why}".rstrip(), flush=True)
    killed = len(fates["killed"]) + len(fates["timed out"])
    share = f"{100 * killed / len(chosen):.0f}%, target 95%"
    late = len(fates["timed out"])
    print(f"{killed} of {len(chosen)} mutants killed ({share}), {late} of them by time")
    return 0 if killed >= 0.95 * len(chosen) else 1


if __name__ == "__main__":
    raise SystemExit(main())

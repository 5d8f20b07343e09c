"""Count the wrong versions of the package that the tests nearest to the change would let pass.

Mutants are drawn at random from the engines, algorithms, weights and statements, with one change
each. The tests nearest to a change are those that reach the changed code (`nearest_tests.py`), as
many as fit into 90 seconds of processor time. A mutant that fails one of them is killed, and so is
one that gets stuck: it is counted and listed. All limits are on processor time, so that other work
on the machine does not change the results; a far larger limit on wall time ends a test that waits
for ever. At the end, the tests that killed a mutant run on the unchanged sources, where they must
pass. Survivors are listed below, with what was found out about each. A run that saves its lines
(`--kept FILE`) continues after the last. Which code the tests reach is recorded first:

    python benchmarks/reached.py out/reached.jsonl
    python benchmarks/code_mutants.py [--count 100] [--seed 0] [--only PART] [--list]
        [--within PACKAGE ...] [--kept FILE] [--survivors FILE] [--share K/N] [--reached FILE ...]

Several processes can share the work: each runs its part of the tests, or of the mutants (`--share
1/2` and `--share 2/2`), and writes its own file. Concatenated files of fates are one file of fates.

To see whether removed tests are missed, run the mutants that survive without them, saved in FILE,
again with `--survivors FILE` in a checkout that has these tests.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from mutation import Mutant, mutant, places
from nearest_tests import nearest_tests
from reached import FOLDERS, Reached, read

ROOT = Path(__file__).resolve().parents[1]
MUTATED = ("engines", "algorithms", "weights", "theorems")
NOT_COPIED = shutil.ignore_patterns(".*", "out", "site", "__pycache__")
SECONDS = 90  # seconds of processor time for all tests, and for the last one that begins in them
SECONDS_STUCK = 120  # seconds of processor time: a test that does not end
SECONDS_WAITING = 1800  # on the clock: a test that sleeps or waits, and uses no processor time
BYTES = 6 << 30  # bytes of memory for a mutant: one that grows without end fails the test

WELL_ENDED = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)

Fate: TypeAlias = Literal["killed", "timed out", "survives"]

# What a survivor changes -> the test that now kills it, as has been tried, or why no test can. The
# seeds are 31, 2028, 3001, 2029, 2030 and 2031, and earlier ones as far as their code still exists.
_ALLOWANCE = "equivalent: an allowance for rounding; what is larger is a bound, too"
_BETWEEN = "equivalent but where a computed residual is that limit to the last bit"
_CHOICE = "equivalent: from which size on the same is computed another way"
_CHECKS = "equivalent: how many sets a reading is checked on"
_SHORTCUT = "equivalent: a shortcut, without which the same comes out later"
_GONE = "equivalent, and gone"
SURVIVORS = {
    # 31, of 300 in engines, claims, evidence, worst_case, weights and the checker
    "engines/guard.py: _Forms: object.__setattr__(silent, 'sigma', 0.0) -> nothing": (
        "equivalent: noise has symbols of its own, which are not compared"
    ),
    "engines/guard.py: _RealRounds: -1.0 -> 1.0": ("killed by test_guard.py"),
    "worst_case/memory.py: _least_proved: away * (1 + float(margin)) -> away / "
    "(1 + float(margin))": ("killed by test_lyapunov.py"),
    "worst_case/audits/audit.py: _over_e: noise - last -> noise + last": (
        "killed by test_step_interval.py"
    ),
    "engines/moments/client_sums.py: _law: _operations(reading, moments.terms) "
    "* UNIT_ROUNDOFF * float(np.trace(noise)) + 8 * effects.power_rounding * "
    "float(np.trace(of_clients)) -> _operations(reading, moments.terms) * UNIT_ROUNDOFF "
    "* float(np.trace(noise)) - 8 * effects.power_rounding * float(np.trace(of_clients))": (
        "killed by test_client_sums.py"
    ),
    "engines/affine/symbolic/presences.py: Presences: 1 + n_clients -> 2 + n_clients": (
        "equivalent: one more zero, of no client"
    ),
    "worst_case/rounds/bound.py: Solver: self._round.local_steps * self._round.server_lr "
    "-> self._round.local_steps / self._round.server_lr": (
        "equivalent: which sums of multipliers count as none, where the server's step is not 1"
    ),
    "engines/setting_file.py: argument_names: package = _PARTS.get(place, algorithms) -> nothing": (
        "killed by the tests of sweeps, which reached.py does not run"
    ),
    "evidence/truths.py: _compare_beginnings: errors[0] -> errors[1]": ("killed by test_truths.py"),
    "evidence/truths.py: over_drawn_paths: True -> False": ("killed by test_rare_events.py"),
    "evidence/enclosed_values.py: Evaluation: if isinstance(value, float) and "
    "math.isnan(value): -> nothing": ("killed by test_enclosed_values.py"),
    "claims/statement.py: Statement: return None -> nothing": (
        "equivalent: None is what a function without a return returns"
    ),
    "engines/fedau_weights/dependent_weight_error.py: _recorded: 0 * ones -> 0 / ones": (
        "equivalent: nothing over one is nothing"
    ),
    "engines/fedau_weights/weight_error.py: _MOST_ENTRIES: 2 ** 21 -> 2 * 21": (
        "equivalent: how many cut-offs are worked out at once"
    ),
    "engines/history/histories.py: _gathered: _crowd(targets) == 1 -> _crowd(targets) == 2": (
        _SHORTCUT
    ),
    "claims/direction.py: _direction: higher[0] > lower[1] -> higher[0] >= lower[1]": (
        "killed by test_direction_claims.py"
    ),
    "worst_case/audits/theorem_form.py: _DescentForm: 10 ** 12 -> 10 * 12": (
        "killed by test_audit.py"
    ),
    "verify/certificates/certificate_checker.py: _Run: self._averages[0] -> self._averages[1]": (
        "equivalent: what was kept is worked out again"
    ),
    "engines/affine/symbolic/forms.py: AffineArray: if dtype.kind not in 'iub': -> nothing": (
        "killed by test_forms.py"
    ),
    "worst_case/rounds/program.py: Program: 1 / unit -> 2 / unit": (
        "equivalent: the unit of a solver's prices; what its duals make is scaled"
    ),
    "engines/affine/state_layout.py: StateLayout: return units -> nothing": (_SHORTCUT),
    "engines/affine/probe.py: _NUMBERS_AT_ONCE: 1 << 21 -> 1 << 22": (
        "equivalent: how many numbers are worked out at once"
    ),
    "claims/order.py: RateClaim: return Trial.unmet(checks) -> nothing": (
        "killed by test_direction_claims.py"
    ),
    "engines/affine/symbolic/presences.py: Presences: 2000 -> 2001": (
        "equivalent: any priority above that of forms"
    ),
    "weights/conic.py: _importance: if found[-1][0] <= _GOOD_ENOUGH: -> nothing": (
        "killed by test_conic.py, and before by 10,000 clients in test_optimum.py"
    ),
    "engines/guard.py: _generators: generator is not known -> generator is known": (
        "killed by test_strangers.py, whose turn did not come"
    ),
    "worst_case/audits/audit.py: _box: slacks[1] -> slacks[2]": (
        "equivalent: coordinates in which a solver works"
    ),
    "worst_case/audits/theorem_form.py: _DistanceForm: start == 0 -> start == 1": (
        _GONE + ": no power of 0 is a rate"
    ),
    "engines/moments/moment_recursion.py: _trajectory: 2 * initial_size * initial_error "
    "+ initial_error ** 2 -> 2 * initial_size * initial_error - initial_error ** 2": (
        _ALLOWANCE + "; here below its last digit"
    ),
    "evidence/enclosed_values.py: _logarithm: return value -> nothing": (
        "killed by test_enclosed_values.py"
    ),
    "claims/statement.py: Inequality: setting = of_runs(self, setting) -> nothing": (
        "killed by test_learning.py"
    ),
    "engines/affine/symbolic/forms.py: Namespace: first < second -> first <= second": (
        "equivalent: of equal numbers either is the lesser"
    ),
    "claims/decay.py: _verdict: max(2, sampling.replicas // len(sizes)) -> max(3, "
    "sampling.replicas // len(sizes))": ("killed by test_learning.py"),
    "worst_case/memory.py: proved_rate: return None -> nothing": ("killed by test_lyapunov.py"),
    "claims/decay.py: DecayQuantity: True -> False": ("killed by test_declarations.py"),
    "worst_case/rounds/best_settings.py: _simplex: return np.vstack([first, first + "
    "moves]) -> nothing": ("equivalent: where a search begins, whose end is proved"),
    "worst_case/audits/audit.py: Audit: if claim is None: -> nothing": (
        "killed by test_own_theorem.py"
    ),
    # 2031, of which 60 were run
    "engines/observables.py: ParticipantGradientSum: return None -> nothing": (
        "killed by test_observables.py"
    ),
    "engines/clients/analytic_clients.py: GaussianNoise: self._held.size < numbers -> "
    "self._held.size <= numbers": "killed by test_noise.py",
    "theorems/sa_fl/statements.py: _QUIET_SERVER: sigma ** 2 / (m * K) -> sigma ** 2 * (m * K)": (
        "killed by test_conditions.py, which was not among the nearest"
    ),
    "engines/affine/deviations.py: CorrelatedRows: return not self.slopes.any() -> nothing": (
        _SHORTCUT
    ),
    "engines/sampled/reach.py: reach: ball.centre - problem.x_star -> "
    "ball.centre + problem.x_star": "killed by test_reach.py",
    "engines/sampled/reach.py: reach: if not isinstance(problem, HasGradientSplit): -> nothing": (
        "killed by test_reach.py"
    ),
    # 2030, of which six were run
    "theorems/sa_fl/regimes.py: _nonconvex: 100 -> 101": (
        "killed by test_sa_fl_regimes.py, which was not among the nearest"
    ),
    # 2029, the draw that counts
    "engines/moments/moment_map.py: _accumulated: gain * held + added[0] -> "
    "gain * held - added[0]": "killed by test_error_growth.py",
    "theorems/fedau/regimes.py: _Instance: 4 * smooth -> 4 / smooth": (
        "killed by test_fedau_regimes.py; no registered regime has that limit as the smallest"
    ),
    "engines/history/history_rounds.py: AffineRounds: return ([coming], []) -> nothing": _SHORTCUT,
    "theorems/sa_fl/proof_rates.py: corollary_2_printed: sp.Rational(1, 2) -> sp.Rational(2, 2)": (
        "killed by test_worked_out_again.py, and by a test whose turn did not come"
    ),
    "engines/moments/moment_map.py: MomentMap: norms[0] -> norms[1]": (
        "killed by test_moment_map.py"
    ),
    "engines/affine/deviations.py: SharedSlope: push ** 2 -> push * 2": (
        "killed by test_deviations.py"
    ),
    "engines/affine/probing.py: _CHECKED_SETS: 8 -> 9": _CHECKS,
    "engines/moments/client_sums.py: _deviations: 2 * reading.start.shape[0] -> "
    "2 / reading.start.shape[0]": "killed by test_client_sums.py",
    "weights/client_weights.py: Training: 1 -> 2": "killed by test_deployment.py",
    "engines/enclosure/enclosed.py: ExactRun: n + 1 -> n + 2": "killed by test_enclosed.py",
    # 3001
    "engines/simulation.py: round_by_branch: return algorithm.round(state, clients, who, name) -> "
    "nothing": _GONE,
    "theorems/ca_fed/weights.py: _summand_curvature_ratio: if s.q.min() <= 0 or s.pi.min() <= 0: "
    "-> nothing": "killed by test_ca_fed_weights.py, in the one place where that is asked now",
    "engines/fedau_weights/dependent_weight_error.py: _of_client: rounds ** 2 -> rounds ** 3": (
        _ALLOWANCE
    ),
    "theorems/ca_fed/statements.py: _ROUNDINGS: 64 * float(np.finfo(np.float64).eps) -> "
    "65 * float(np.finfo(np.float64).eps)": _ALLOWANCE,
    "theorems/sa_fl/proof_5.py: printed: 4 * eta_s -> 4 / eta_s": "killed by test_certificates.py",
    "theorems/correction.py: Correction: number = str(self.changes.index(change) + 1) -> "
    "nothing": "killed by test_corrected_statement.py, whose calls had not been noted",
    "theorems/ca_fed/statements.py: _ROUNDINGS: 64 * float(np.finfo(np.float64).eps) -> "
    "64 / float(np.finfo(np.float64).eps)": "killed by test_ca_fed_statements.py",
    "engines/moments/moment_map.py: _LONGEST: 2000 -> 2001": _CHOICE,
    # 2028
    "engines/affine/symbolic/forms.py: noise_covariance: -1 -> -2": (
        "equivalent: covariances are square"
    ),
    "weights/conic.py: _importance: if p is None: -> nothing": "killed by test_conic.py",
    "engines/moments/client_sums.py: _mean_square_weight: weights ** 2 -> "
    "weights * 2": "killed by test_client_sums.py",
    "theorems/ca_fed/statements.py: THEOREM_2: RoundRange(0, 0) -> RoundRange(1, 0)": (
        "killed by test_rounds_of_quantities.py, which was not among the nearest"
    ),
    "theorems/fedar.py: _with_clients: 3.0 * (-1.0) ** i -> 3.0 / (-1.0) ** i": _GONE,
    "theorems/sa_fl/pac.py: growth_of_offset: system.split(value)[0] -> "
    "system.split(value)[1]": "killed by test_sa_fl_pac.py",
    "engines/clients/summed_maps.py: SummedMaps: np.isfinite(slopes).all() and "
    "np.isfinite(pulls).all() -> np.isfinite(slopes).all() or np.isfinite(pulls).all()": (
        "killed by test_summed_maps.py, which is new"
    ),
    "engines/moments/limits.py: stationary: step.size <= _LARGEST_DIRECT_STATE -> step.size < "
    "_LARGEST_DIRECT_STATE": _CHOICE,
    # 2026, 2027 and before
    "engines/fedau_weights/dependent_weight_error.py: _of_client: 3 * rounds ** 2 -> "
    "4 * rounds ** 2": _ALLOWANCE,
    "engines/clients/summed_maps.py: SummedMaps: dim ** 2 -> dim * 2": (
        "killed by test_summed_maps.py, which is new"
    ),
    "engines/clients/analytic_clients.py: QuadraticClients: end > start -> end >= start": (
        "equivalent: rows of a client who is not there are none"
    ),
    "numbers/projected_averaging.py: _MOST_STEPS: 50 -> 51": (
        "equivalent: one more step of an iteration that has ended long before"
    ),
    "engines/enclosure/enclosed.py: ExactRun: (0, self._algorithm, self._fractional) -> "
    "(1, self._algorithm, self._fractional)": (
        "equivalent: the name under which rounds that are all alike are kept"
    ),
    "weights/optimum.py: solve: residual <= _EXACT_RESIDUAL -> residual < "
    "_EXACT_RESIDUAL": _BETWEEN,
    "engines/sampled/monte_carlo_runs.py: Progress: Progress = Callable[[int, int], None] -> "
    "nothing": "equivalent when run: annotations alone name it, and mypy refuses that",
    "engines/moments/moment_recursion.py: _stacked_advance: "
    "return _certain_advance(mean, law.still_inflow) -> nothing": _SHORTCUT,
    "numbers/step_sums.py: delayed_sums: 2 -> 3": (
        "equivalent: how many terms are added one by one before the rest is enclosed"
    ),
    "engines/enclosure/enclosed.py: ExactRun: self._rounds.clear() -> nothing": (
        "equivalent: how many rounds are kept"
    ),
    "engines/affine/symbolic/clients.py: FormClients: -1 -> -2": (
        "equivalent: a place below zero is none"
    ),
    "engines/history/histories.py: _SMALL_TABLE: 1 << 14 -> 1 << 15": _CHOICE,
    "weights/conic.py: _importance: found[-1][0] <= _GOOD_ENOUGH -> "
    "found[-1][0] < _GOOD_ENOUGH": _BETWEEN,
}


@dataclass(frozen=True)
class Change:
    """A mutant and its file."""

    file: Path
    mutant: Mutant

    @property
    def title(self) -> str:
        """Return the place and the change, without the line number, which moves."""
        return f"{self.file.relative_to('fltheory')}: {self.mutant.place}: {self.mutant.what}"


def drawn(count: int, seed: int, places_in: Sequence[str] = MUTATED) -> Iterator[Change]:
    """Yield mutants, with all places in these packages and modules equally likely."""
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


def survivors(path: Path) -> Iterator[Change]:
    """Yield the mutants in these sources that survived in an earlier, saved run."""
    survived = [title for title, (fate, _) in kept(path).items() if fate == "survives"]
    titles = {title.partition(": ")[2] for title in survived}
    files = sorted({title.partition(": ")[0] for title in titles})
    return (change for change in drawn(10**9, 0, files) if change.title in titles)


class Chosen:
    """A pytest plugin that runs only these tests, in order, until the time is used up."""

    def __init__(self, tests: Sequence[str], seconds: float, told: int) -> None:
        self._turns = {test: turn for turn, test in enumerate(tests)}
        self._seconds = seconds
        self._told = told

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep only the chosen tests, in order."""
        chosen = [item for item in items if item.nodeid in self._turns]
        items[:] = sorted(chosen, key=lambda item: self._turns[item.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test for which no time is left.

        If it were skipped before its setup, the previous test's file would be left open, which
        pytest reports as an error in the next file: a kill without a failing test.
        """
        if time.process_time() >= self._seconds:
            pytest.skip("no time left")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report which test failed."""
        self._say(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report which file could not be collected."""
        self._say(report)

    def _say(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            os.write(self._told, f"{report.nodeid}\n".encode())


def warmed(folder: Path) -> None:
    """Compile the right sources and tests in advance, and import the libraries that they need.

    Each mutant runs in a process of its own, which would otherwise compile and import them again.
    """
    compileall.compile_dir(folder / "fltheory", quiet=1)
    for name in ("numpy", "scipy.linalg", "scipy.optimize", "scipy.stats", "sympy", "flint"):
        importlib.import_module(name)
    options = ["-q", "--collect-only", "-p", "no:cacheprovider", "-p", "no:xdist"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *FOLDERS],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def first_failing(folder: Path, tests: Sequence[str], seconds: float) -> str | None:
    """Run tests in a child; return the first that fails, "" if they get stuck, None if all pass."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    told = os.memfd_create("failures")
    child = os.fork()
    if child == 0:
        stuck = 10 * SECONDS_STUCK if seconds > SECONDS else SECONDS_STUCK
        resource.setrlimit(resource.RLIMIT_CPU, (stuck, stuck))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        signal.alarm(SECONDS_WAITING)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        sys.dont_write_bytecode = True
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={folder}"]
        try:
            status = int(pytest.main([*options, *files], plugins=[Chosen(tests, seconds, told)]))
            if status not in WELL_ENDED:
                os.write(told, f"pytest itself ends with {status}\n".encode())
        except BaseException as error:
            os.write(told, f"pytest itself fails: {error!r}\n".encode())
        finally:
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.lseek(told, 0, os.SEEK_SET)
    with os.fdopen(told) as lines:
        found = lines.read().splitlines()
    if code in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        return ""
    if code:
        found.append(f"the process ends with {code}")
    return found[0] if found else None


def batches(tests: Sequence[str]) -> Iterator[list[str]]:
    """Yield the tests of the first file, of the next few, and of the others.

    Most mutants are killed by the first file, which takes less time than collecting all files.
    """
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    for part in filter(None, (files[:1], files[1:8], files[8:])):
        yield [test for test in tests if test.partition("::")[0] in part]


def fate_of(change: Change, folder: Path, reached: Sequence[Reached]) -> tuple[Fate, str]:
    """Run the nearest tests on a mutant, put the right file back, and return what killed it."""
    path = folder / change.file
    right = path.read_text(encoding="utf-8")
    tests = nearest_tests(change.file, change.mutant, folder, reached, SECONDS)
    before = path.stat()
    path.write_text(change.mutant.source, encoding="utf-8")
    runs = (first_failing(folder, batch, SECONDS) for batch in batches(tests))
    killer = next((found for found in runs if found is not None), None)
    path.write_text(right, encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if killer is None:
        return "survives", ""
    return ("killed", killer) if killer else ("timed out", "")


def kept(path: Path | None) -> dict[str, tuple[Fate, str]]:
    """Return the fates that an earlier run saved, by the mutant's number and title."""
    if path is None or not path.exists():
        return {}
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {f"{one['number']}: {one['title']}": (one["fate"], one["killer"]) for one in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--within", nargs="+", default=MUTATED, help="packages and modules of fltheory to change"
    )
    parser.add_argument("--only", default="", help="mutants whose title holds this")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--survivors", type=Path, help="file of fates: its survivors, no draw")
    parser.add_argument("--kept", type=Path, help="file of fates: read first, then added to")
    parser.add_argument("--share", default="1/1", help="K/N: every N-th of them, from the K-th on")
    parser.add_argument(
        "--reached",
        type=Path,
        nargs="+",
        default=[ROOT / "out" / "reached.jsonl"],
        help="what reached.py noted, in one run or in several",
    )
    given = parser.parse_args()
    if given.survivors is None:
        found = drawn(given.count, given.seed, given.within)
    else:
        found = survivors(given.survivors)
    listed = [one for one in found if given.only in one.title]
    first, every = map(int, given.share.split("/"))
    chosen = list(enumerate(listed, start=1))[first - 1 :: every]
    if given.list:
        print("\n".join(change.title for _, change in chosen))
        return 0
    fates: Counter[Fate] = Counter()
    before = kept(given.kept)
    reached = [test for path in given.reached for test in read(path)]
    killers = set()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(ROOT, folder, dirs_exist_ok=True, ignore=NOT_COPIED)
        warmed(folder)
        for count, change in chosen:
            number = f"{count} of {len(listed)}"
            if f"{number}: {change.title}" in before:
                fate, killer = before[f"{number}: {change.title}"]
            else:
                fate, killer = fate_of(change, folder, reached)
                line = {"number": number, "fate": fate, "title": change.title, "killer": killer}
                if given.kept is not None:
                    with given.kept.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(line) + "\n")
            fates[fate] += 1
            killers.add(killer)
            why = SURVIVORS.get(change.title, "") if fate == "survives" else killer
            print(f"{number}: {fate}: {change.title} {why}".rstrip(), flush=True)
        known = sorted(killers & {test.name for test in reached})
        wrong = first_failing(folder, known, math.inf)
    killed = fates["killed"] + fates["timed out"]
    share = f"{100 * killed / len(chosen):.0f}%, target 95%"
    print(
        f"{killed} of {len(chosen)} mutants killed ({share}), {fates['timed out']} of them by time"
    )
    if wrong is not None:
        print(f"but {wrong or 'one of the tests'} fails on the right sources, too")
    return 0 if killed >= 0.95 * len(chosen) and wrong is None else 1


if __name__ == "__main__":
    raise SystemExit(main())

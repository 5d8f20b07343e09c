"""Theorems as tests of a foreign repository: collected, checked, recorded, searched, reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fltheory.report.terminal.verdict_table
import fltheory.verify.baseline
from fltheory import theorems

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")

# One quadratic client and a step of 1/2: the distance after R rounds is 2^-R of the first, and its
# square is 4^-R, so that the bound is the truth times `slack`, whatever the start and R.
THEOREM = """
import sympy as sp
from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import BoundedQuantity, Hypothesis, Regime, RoundRange, Theorem, symbol

D = symbol("D", "||x_0||", number="sqrt(squared_distance)", positive=True)
R = symbol("R", "rounds", number="rounds", positive=True)
eta = symbol("eta", "step", number="client_lr", positive=True)

def descent(setting):
    algorithm, problem = setting.algorithm, setting.problem
    if (problem.L, problem.sigma, algorithm.local_steps, algorithm.server_lr) != (1, 0, 1, 1):
        raise ValueError("the theorem is about gradient descent where L = 1")
    return setting

def setting(rounds, start, step=0.5):
    problem = QuadraticProblem([[1.0]], [[0.0]])
    return Setting(FedAvg(step, 1), problem, UniformSubset(1, 1), rounds, [start])

STATEMENTS = (
    Theorem(
        id="my/1",
        reading="printed",
        title="gradient descent halves the distance",
        source="a notebook",
        quantity=BoundedQuantity(
            "squared_distance", "last", RoundRange(0, 0), "||x_R||^2", "x_R^2"
        ),
        bound={slack} * D**2 / 4**R,
        hypotheses=(Hypothesis("half a step", sp.Eq(eta, sp.Rational(1, 2)), "(1)"),),
        domain=descent,
        regimes={{
            "three rounds": Regime("R = 3", lambda: setting(3, 2.0)),
            "one round": Regime("R = 1", lambda: setting(1, 5.0)),
            "long steps": Regime("eta = 3/4", lambda: setting(2, 1.0, 0.75)),
        }},
    ),
)
"""


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> None:
    """Load what runs load: pytester forgets modules, and some of NumPy's load only once."""
    fltheory.verify.falsify(theorems.get("sa-fl/5"), 1)


@pytest.fixture
def theorem(pytester: pytest.Pytester) -> Path:
    return write(pytester.path, "2")


def write(folder: Path, slack: str) -> Path:
    path = folder / "my_theorem.py"
    path.write_text(THEOREM.format(slack=slack))
    return path


def items_of(result: pytest.RunResult) -> list[str]:
    return [line.split("::")[1] for line in result.outlines if line.startswith("my_theorem.py::")]


def test_each_statement_in_each_regime_is_a_test(pytester, theorem) -> None:
    result = pytester.runpytest("-v", "--fltheory", "my_theorem.py")
    result.assert_outcomes(passed=2, skipped=1)
    shown = items_of(result)
    assert shown[0].startswith("my/1[printed-three rounds] PASSED, HOLDS 0.5")
    # Of what does not apply nothing has been tested.
    assert shown[2].startswith("my/1[printed-long steps] SKIPPED")
    result.stdout.fnmatch_lines(
        [
            "my/1 (printed): long steps *INAPPLICABLE*half a step: margin -0.25",
            "3 verdicts: 2 HOLDS, 1 INAPPLICABLE",
        ]
    )


def test_a_refuted_statement_fails_with_both_sides(pytester) -> None:
    write(pytester.path, "sp.Rational(1, 2)")
    result = pytester.runpytest("--fltheory", "my_theorem.py")
    result.assert_outcomes(failed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "my/1 / printed / three rounds: REFUTED",
            # 2^2/4^3 and half of it.
            "*REFUTED (*): truth 0.0625, claimed <= 0.03125",
            "*met: half a step: 0.5 = 0.5    [[]eta = 1/2[]]",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_what_is_recorded_is_compared_afterwards(pytester, theorem) -> None:
    assert pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-record").ret == 0
    record = pytester.path / "fltheory-verdicts.csv"
    kept = record.read_text()
    assert "my/1,printed,long steps,INAPPLICABLE," in kept
    again = pytester.runpytest("--fltheory", "my_theorem.py")
    again.assert_outcomes(passed=3)
    write(pytester.path, "sp.Rational(1, 2)")
    changed = pytester.runpytest("--fltheory", "my_theorem.py")
    changed.assert_outcomes(failed=3)
    changed.stdout.fnmatch_lines(["*the verdict changed from HOLDS to REFUTED*"])
    assert record.read_text() == kept
    # A refutation that is recorded is no news.
    pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-record")
    pytester.runpytest("--fltheory", "my_theorem.py").assert_outcomes(passed=3)


def test_a_regime_that_is_not_recorded_fails(pytester, theorem) -> None:
    (pytester.path / "mine.csv").write_text("theorem,reading,regime,outcome,ratio\n")
    result = pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-baseline", "mine.csv")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["my/1 / printed / one round: not recorded"])


def test_a_record_keeps_what_did_not_run(pytester, theorem) -> None:
    pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-record")
    record = pytester.path / "fltheory-verdicts.csv"
    kept = record.read_text()
    pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-record", "-k", "one")
    assert record.read_text() == kept


def test_a_search_is_a_further_test(pytester) -> None:
    write(pytester.path, "2")
    result = pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-falsify", "20", "-v")
    result.assert_outcomes(passed=3, skipped=1)
    write(pytester.path, "sp.Rational(1, 2)")
    result = pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-falsify", "20")
    result.assert_outcomes(failed=3, skipped=1)
    result.stdout.fnmatch_lines(["my/1 (printed): REFUTED; * settings tried*"])
    pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-record")
    result = pytester.runpytest("--fltheory", "my_theorem.py", "--fltheory-falsify", "20", "-rs")
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(["*my/1 (printed) is recorded as refuted, in *"])


def test_the_table_of_pyproject_names_files_and_record(pytester, theorem) -> None:
    pytester.makepyprojecttoml(
        '[tool.fltheory]\ntheorems = ["my_theorem.py"]\nbaseline = "kept/v.csv"\n'
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
    )
    other = pytester.mkdir("tests") / "test_other.py"
    other.write_text("def test_other(): pass\n")
    pytester.runpytest("--fltheory-record").assert_outcomes(passed=4)
    assert (pytester.path / "kept" / "v.csv").is_file()
    pytester.runpytest("my_theorem.py").assert_outcomes(passed=3)
    # Who names a test wants no other.
    pytester.runpytest("tests").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("theorem = []", "has theorems, got theorem"),
        ('theorems = "my_theorem.py"', "theorems of *must be a list of files, got 'my_theorem.py'"),
        ("baseline = 3", "baseline of *must be a file, got 3"),
        ("[tool]\nfltheory = 3", "*must be a table, got 3"),
        ('theorems = ["missing.py"]', "file of theorems must exist, got *missing.py*"),
    ],
)
def test_a_bad_table_is_one_line(pytester, table: str, message: str) -> None:
    heading = "" if table.startswith("[") else "[tool.fltheory]\n"
    pytester.makepyprojecttoml(f"{heading}{table}\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{message}*"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fltheory", "missing.py"), "file of theorems must exist, got *missing.py*"),
        (("--fltheory-falsify", "-1"), "--fltheory-falsify must be at least 0, got -1"),
        (
            ("--fltheory-record", "--fltheory-verdicts", "v.json"),
            "--fltheory-record must not be given with --fltheory-verdicts",
        ),
    ],
)
def test_bad_options_are_one_line(pytester, options: tuple[str, ...], message: str) -> None:
    result = pytester.runpytest(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{message}*"])


def test_a_file_without_statements_is_an_error_of_collection(pytester) -> None:
    (pytester.path / "my_theorem.py").write_text("THEOREM = 1\n")
    result = pytester.runpytest("--fltheory", "my_theorem.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["STATEMENTS of *my_theorem.py must be*"])


def test_fixtures_and_marker_of_hand_written_tests(pytester, theorem) -> None:
    pytester.makeconftest(
        "from pathlib import Path\n"
        "from fltheory import theorems\n"
        "theorems.load(Path(__file__).parent / 'my_theorem.py')\n"
    )
    pytester.makepyfile(
        test_mine="""
        import pytest
        from fltheory import theorems
        from fltheory.testing import each_cell

        @pytest.mark.fltheory_expects("HOLDS")
        def test_expected(fltheory_check):
            assert fltheory_check("my/1", "one round").ratio == pytest.approx(0.5)

        @pytest.mark.fltheory_expects("REFUTED")
        def test_not_expected(fltheory_check):
            fltheory_check("my/1", "one round")

        @pytest.mark.fltheory_expects("HOLDS")
        def test_of_nothing(fltheory_check):
            pass

        @pytest.mark.fltheory_expects("TRUE")
        def test_of_no_verdict(fltheory_check):
            pass

        def test_a_setting_of_my_own(fltheory_check):
            theorem = theorems.get("my/1")
            setting = theorem.regimes["three rounds"].setting
            assert fltheory_check(theorem, setting).outcome.name == "HOLDS"

        @each_cell("my")
        def test_cells(statement, regime, as_recorded):
            as_recorded(statement, regime)
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=3, failed=4, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*fltheory_expects must be given one of HOLDS, REFUTED*got 'TRUE'*",
            "my/1 / printed / one round: HOLDS, expected REFUTED",
            "*my/1 / printed / one round: not recorded*",
        ]
    )
    pytester.runpytest("--fltheory-record", "-k", "cells").assert_outcomes(passed=3, deselected=5)
    pytester.runpytest("-k", "cells").assert_outcomes(passed=3, deselected=5)


def test_a_worker_checks_and_the_run_records(pytester, theorem) -> None:
    """Installed, the plugin is found without an option, in worker processes, too."""
    options = ("-n", "1", "--fltheory", "my_theorem.py", "--fltheory-record")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["3 verdicts:*", "recorded in *fltheory-verdicts.csv"])
    assert len((pytester.path / "fltheory-verdicts.csv").read_text().splitlines()) == 4


def test_a_run_that_does_not_use_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, fltheory.testing.pytest_plugin\n"
        "for name in ('numpy', 'sympy', 'scipy', 'fltheory.theorems', 'fltheory.verify'):\n"
        "    assert name not in sys.modules, name\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""``pytest --fltheory my_theorem.py``: each statement in each of its regimes is a test.

If the package is installed, every run of pytest imports this file, so slow imports are made only
where they are used. The theorem files and the record are given by options, or once in
``pyproject.toml``::

    [tool.fltheory]
    theorems = ["my_theorem.py"]
    baseline = "verdicts.csv"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from fltheory.testing import cells

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement
    from fltheory.engines import Setting
    from fltheory.learnability.system import LearningSetting
    from fltheory.verify import Verdict
    from fltheory.verify.baseline import Baseline
    from fltheory.verify.runs import Cell, CellKey, Record

_BASELINE = "fltheory-verdicts.csv"
_KEYS = ("theorems", "baseline")
_MOST_LINES = 40
_EXPECTS = "fltheory_expects"

Checker: TypeAlias = "Callable[[Statement | str, Setting | LearningSetting | str], Verdict]"
Recorder: TypeAlias = "Callable[[Statement, str], Verdict]"


@dataclass(frozen=True)
class Plan:
    """The options of a run.

    Attributes
    ----------
    files : tuple of Path
        Python files whose ``STATEMENTS`` become tests.
    baseline : Path
        The record of verdicts and ratios.
    recording : bool
        Whether the record is rewritten.
    budget : int
        Number of settings that the search for a refutation may try for each statement. With 0,
        there is no search.
    verdicts : Path or None
        A file just written by ``fltheory verify --json``. Its verdicts are used, and nothing is
        checked again.
    """

    files: tuple[Path, ...]
    baseline: Path
    recording: bool
    budget: int
    verdicts: Path | None


_PLAN = pytest.StashKey[Plan]()
_RECORDED = pytest.StashKey["Baseline | None"]()
_KNOWN = pytest.StashKey["Mapping[CellKey, Cell]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which are all named after the package."""
    group = parser.getgroup("fltheory", "theorems of federated learning")
    group.addoption(
        "--fltheory",
        action="append",
        default=[],
        metavar="FILE",
        dest="fltheory_files",
        help="test the STATEMENTS of a Python file, each in each of its regimes; may be repeated",
    )
    group.addoption(
        "--fltheory-record",
        action="store_true",
        dest="fltheory_record",
        help="record the verdicts and ratios of this run instead of comparing with the record",
    )
    group.addoption(
        "--fltheory-baseline",
        metavar="FILE",
        dest="fltheory_baseline",
        help=(
            "file of recorded verdicts; default: `baseline` in [tool.fltheory], or "
            f"{_BASELINE} if that is not set"
        ),
    )
    group.addoption(
        "--fltheory-falsify",
        type=int,
        default=0,
        metavar="BUDGET",
        dest="fltheory_falsify",
        help="also search this many settings for a refutation of each statement",
    )
    group.addoption(
        "--fltheory-verdicts",
        metavar="FILE",
        dest="fltheory_verdicts",
        help="compare what fltheory verify --json FILE has just written, instead of checking again",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, and add the files to the collected ones."""
    config.addinivalue_line(
        "markers",
        f"{_EXPECTS}(verdict): what every verdict of fltheory_check must be in this test: "
        "HOLDS, REFUTED, INAPPLICABLE or UNDECIDED",
    )
    table = _table(config.rootpath / "pyproject.toml")
    option = config.option
    named = [config.invocation_params.dir / file for file in option.fltheory_files]
    in_table = [config.rootpath / file for file in table.get("theorems", [])]
    config.stash[_PLAN] = plan = Plan(
        files=tuple(dict.fromkeys(path.resolve() for path in [*named, *in_table])),
        baseline=(
            config.invocation_params.dir / option.fltheory_baseline
            if option.fltheory_baseline
            else config.rootpath / table.get("baseline", _BASELINE)
        ),
        recording=option.fltheory_record,
        budget=option.fltheory_falsify,
        verdicts=Path(option.fltheory_verdicts) if option.fltheory_verdicts else None,
    )
    _refuse(plan)
    # The files in the table are tested if no test is named; a worker has the files of the run.
    if not hasattr(config, "workerinput"):
        everything = config.args_source is not pytest.Config.ArgsSource.ARGS
        _add_to_arguments(config, [*named, *(in_table if everything else [])])
        config.pluginmanager.register(_Report(config), "fltheory-report")


def _table(pyproject: Path) -> Mapping[str, Any]:
    """Return ``[tool.fltheory]``."""
    if not pyproject.is_file():
        return {}
    with pyproject.open("rb") as file:
        table = tomllib.load(file).get("tool", {}).get("fltheory", {})
    if not isinstance(table, dict):
        raise pytest.UsageError(f"{pyproject}: [tool.fltheory] must be a table, got {table!r}")
    for key in table:
        if key not in _KEYS:
            near = " or ".join(get_close_matches(key, _KEYS, n=1) or _KEYS)
            raise pytest.UsageError(f"{pyproject}: [tool.fltheory] has {near}, got {key}")
    files, baseline = table.get("theorems", []), table.get("baseline", "")
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise pytest.UsageError(
            f"{pyproject}: theorems of [tool.fltheory] must be a list of files, got {files!r}"
        )
    if not isinstance(baseline, str):
        raise pytest.UsageError(
            f"{pyproject}: baseline of [tool.fltheory] must be a file, got {baseline!r}"
        )
    return table


def _refuse(plan: Plan) -> None:
    for path in plan.files:
        if not path.is_file():
            raise pytest.UsageError(f"fltheory's file of theorems must exist, got {str(path)!r}")
    if plan.budget < 0:
        raise pytest.UsageError(f"--fltheory-falsify must be at least 0, got {plan.budget}")
    if plan.recording and plan.verdicts is not None:
        raise pytest.UsageError("--fltheory-record must not be given with --fltheory-verdicts")


def _add_to_arguments(config: pytest.Config, files: Sequence[Path]) -> None:
    """Add files that no argument covers to the arguments."""
    places = [(config.invocation_params.dir / one.split("::")[0]).resolve() for one in config.args]
    for file in dict.fromkeys(path.resolve() for path in files):
        if not any(file.is_relative_to(place) for place in places):
            config.args.append(str(file))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a file of theorems; its ordinary tests are also collected."""
    if file_path.resolve() not in parent.config.stash[_PLAN].files:
        return None
    return TheoremFile.from_parent(parent, path=file_path)


class TheoremFile(pytest.File):
    """A Python file with ``STATEMENTS``."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each statement in each regime, and one for each search."""
        from fltheory import theorems

        try:
            statements = theorems.load(self.path)
        except ValueError as error:
            raise self.CollectError(str(error)) from error
        for statement in statements:
            label = f"{statement.id}[{statement.reading}-"
            for regime in statement.regimes:
                yield RegimeItem.of(self, f"{label}{regime}]", statement, regime)
            if self.config.stash[_PLAN].budget:
                yield SearchItem.of(self, f"{label}falsify]", statement)


class _StatementItem(pytest.Item):
    """A test of a statement; its failures are reported without a traceback."""

    statement: Statement
    regime: str

    @classmethod
    def of(
        cls, parent: pytest.Collector, name: str, statement: Statement, regime: str = ""
    ) -> _StatementItem:
        """Return the test of a statement, in a regime if one is named."""
        item = cls.from_parent(parent, name=name)
        item.statement, item.regime = statement, regime
        return item

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, DepartureError | ValueError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class DepartureError(Exception):
    """A verdict that differs from its record or from what is required."""


class RegimeItem(_StatementItem):
    """A statement in one of its regimes: the verdict is as recorded or, if none is, not refuted."""

    def runtest(self) -> None:
        """Check the statement and compare the verdict with the record."""
        recorded = _recorded(self.config)
        cell = _cell(self.config, self.statement, self.regime)
        self.user_properties += cells.properties(cell)
        if self.config.stash[_PLAN].recording:
            return
        message = cells.failure(cell, recorded)
        if message is not None:
            raise DepartureError(f"{message}\n{cells.explanation(cell)}")
        if recorded is None and cell.verdict.failed:
            # A verdict that decides nothing is not a pass.
            reasons = "; ".join(check.failure for check in cell.verdict.failed)
            pytest.skip(f"{cell.name}: INAPPLICABLE, {reasons}")


class SearchItem(_StatementItem):
    """The search for a refutation of a statement."""

    def runtest(self) -> None:
        """Search, unless the record already says that the statement is refuted."""
        from fltheory.verify import falsify

        one = self.statement
        for (theorem, reading, regime), row in (_recorded(self.config) or {}).items():
            if (theorem, reading, row.outcome) == (one.id, one.reading, "REFUTED"):
                pytest.skip(f"{one.name} is recorded as refuted, in {regime}")
        if one.why_not_searched:
            pytest.skip(f"{one.name} is not searched: {one.why_not_searched}")
        found = falsify(one, self.config.stash[_PLAN].budget)
        text = str(found)
        if found.witness is not None:
            raise DepartureError(text)
        self.add_report_section("call", "search", text)


def _cell(config: pytest.Config, statement: Statement, regime: str) -> Cell:
    """Return a checked cell, or the cell from ``--fltheory-verdicts``."""
    path = config.stash[_PLAN].verdicts
    if path is None:
        return cells.checked(statement, regime)
    if _KNOWN not in config.stash:
        from fltheory.report.verdict_file import MadeBy, read_verdicts

        config.stash[_KNOWN] = {cell.key: cell for cell in read_verdicts(path, MadeBy())}
    key = statement.id, statement.reading, regime
    known = config.stash[_KNOWN]
    if key not in known:
        raise ValueError(f"verdicts must have {' / '.join(key)}, which is not in {str(path)!r}")
    return known[key]


def _recorded(config: pytest.Config) -> Baseline | None:
    """Return the record, or None if there is none."""
    if _RECORDED not in config.stash:
        from fltheory.verify.baseline import read_baseline

        path = config.stash[_PLAN].baseline
        config.stash[_RECORDED] = read_baseline(path) if path.exists() else None
    return config.stash[_RECORDED]


@pytest.fixture(scope="session")
def recorded_verdicts(pytestconfig: pytest.Config) -> Baseline:
    """Return the record, by (theorem, reading, regime); skip while it is being rewritten."""
    if pytestconfig.stash[_PLAN].recording:
        pytest.skip("the record is being renewed")
    return _recorded(pytestconfig) or {}


@pytest.fixture
def as_recorded(request: pytest.FixtureRequest) -> Recorder:
    """Return a function of a statement and a regime's name that fails if the record is different.

    The function returns the verdict. With ``--fltheory-record``, the verdict is recorded instead.
    """
    config = request.config

    def compare(statement: Statement, regime: str) -> Verdict:
        cell = _cell(config, statement, regime)
        request.node.user_properties += cells.properties(cell)
        if not config.stash[_PLAN].recording:
            message = cells.failure(cell, _recorded(config) or {})
            assert message is None, f"{message}\n{cells.explanation(cell)}"
        return cell.verdict

    return compare


@pytest.fixture
def fltheory_check(request: pytest.FixtureRequest) -> Iterator[Checker]:
    """Yield a function that returns the verdict on a statement (or id) and setting (or regime).

    If the test is marked with ``fltheory_expects``, every verdict must equal that of the marker.
    """
    from fltheory import theorems
    from fltheory.verify import check
    from fltheory.verify.runs import cell_of

    marker = request.node.get_closest_marker(_EXPECTS)
    expected = cells.expected_outcome(*marker.args) if marker else None
    given = []

    def checked(statement: Statement | str, setting: Setting | LearningSetting | str) -> Verdict:
        one = theorems.get(statement) if isinstance(statement, str) else statement
        if isinstance(setting, str):
            cell = cells.checked(one, setting)
        else:
            cell = cell_of(one, "a setting of the test", check(one, setting))
        given.append(cell)
        request.node.user_properties += cells.properties(cell)
        found = cell.verdict.outcome.name
        if expected is not None and found != expected:
            pytest.fail(
                f"{cell.name}: {found}, expected {expected}\n{cells.explanation(cell)}",
                pytrace=False,
            )
        return cell.verdict

    yield checked
    if expected is not None and not given:
        pytest.fail(f"{_EXPECTS} marks a test that never calls fltheory_check", pytrace=False)


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    """Show the verdict instead of PASSED in listings of tests."""
    if report.when != "call" or not report.passed or hasattr(report, "wasxfail"):
        return None
    rows = list(cells.reported(report.user_properties))
    if len(rows) != 1:
        return None
    return "passed", ".", f"PASSED, {rows[0]['verdict']} {float(rows[0]['truth/bound']):.3g}"


class _Report:
    """The summary and record of the whole run, once all its processes are done."""

    def __init__(self, config: pytest.Config) -> None:
        self._plan = config.stash[_PLAN]
        self._rows: list[Mapping[str, str]] = []
        self._records: dict[CellKey, Record] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        rows = list(cells.reported(report.user_properties))
        self._rows += rows
        if rows and self._plan.recording:
            self._records |= cells.records(report.user_properties)

    def pytest_sessionfinish(self) -> None:
        if self._records:
            from fltheory.verify.baseline import read_baseline, write_baseline

            path = self._plan.baseline
            kept = read_baseline(path) if path.exists() else {}
            write_baseline(path, {**kept, **self._records})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._rows:
            return
        write = terminalreporter.write_line
        terminalreporter.section("fltheory")
        if len(self._rows) <= _MOST_LINES or terminalreporter.verbosity > 0:
            for line in cells.lines(self._rows):
                write(line)
        outcomes = [row["verdict"] for row in self._rows]
        counts = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes))
        write(f"{len(outcomes)} verdicts: {counts}")
        if self._records:
            write(f"recorded in {self._plan.baseline}")

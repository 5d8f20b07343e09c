"""Bound-regression tests: verdicts and ratios against the recorded ones.

``pytest verification/ --update-baseline`` renews the record of the cells that ran;
``--verdicts=FILE`` takes the cells from what ``fltheory verify --json FILE`` has just written.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from recorded_cells import PaperCells, Recorder

from fltheory.theorems import Statement
from fltheory.verify import Verdict
from fltheory.verify.baseline import Baseline, departure, read_baseline, write_baseline
from fltheory.verify.runs import Cell, CellKey

BASELINE = Path(__file__).parent / "baseline.csv"
_CELLS = pytest.StashKey[list[Cell]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-baseline",
        action="store_true",
        help="record the verdicts and ratios of this run instead of comparing with the record",
    )
    parser.addoption(
        "--verdicts",
        help="compare what fltheory verify wrote to this file, instead of checking cells again",
    )


def pytest_configure(config: pytest.Config) -> None:
    processes = getattr(config.option, "numprocesses", None)
    if processes and _updating(config):
        raise pytest.UsageError(
            f"--update-baseline must be in one process, got --numprocesses {processes}"
        )
    config.stash[_CELLS] = []


@pytest.fixture(scope="session")
def baseline() -> Baseline:
    return read_baseline(BASELINE) if BASELINE.exists() else {}


@pytest.fixture
def record(pytestconfig: pytest.Config, baseline: Baseline) -> Baseline:
    """Return what is recorded; skip the test while the record is being renewed."""
    if _updating(pytestconfig):
        pytest.skip("the record is being renewed")
    return baseline


@pytest.fixture(scope="session")
def known(pytestconfig: pytest.Config) -> Mapping[CellKey, Cell] | None:
    """Return the cells of ``--verdicts``, None without."""
    path = pytestconfig.getoption("--verdicts")
    if path is None:
        return None
    from fltheory.report.files.made_by import MadeBy
    from fltheory.report.files.verdict_file import read_verdicts

    return {cell.key: cell for cell in read_verdicts(Path(path), MadeBy())}


@pytest.fixture
def as_recorded(
    pytestconfig: pytest.Config, baseline: Baseline, known: Mapping[CellKey, Cell] | None
) -> Recorder:
    """Return a function that fails if a cell departs from its record, and returns its verdict.

    With ``--update-baseline`` the cell is recorded instead. Cells of ``--verdicts`` that are not
    in the file fail, too.
    """

    def compare(paper: PaperCells, statement: Statement, regime: str) -> Verdict:
        if known is None:
            cell = paper.checked(statement, regime)
        else:
            cell = known[statement.id, statement.reading, regime]
        pytestconfig.stash[_CELLS].append(cell)
        if not _updating(pytestconfig):
            message = departure(cell, baseline)
            assert message is None, message
        return cell.verdict

    return compare


def _updating(config: pytest.Config) -> bool:
    return bool(config.getoption("--update-baseline"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    cells = session.config.stash[_CELLS]
    if _updating(session.config) and cells:
        kept = read_baseline(BASELINE) if BASELINE.exists() else {}
        write_baseline(BASELINE, cells, kept)

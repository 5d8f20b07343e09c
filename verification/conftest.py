"""Bound-regression tests: verdicts and ratios against the recorded ones.

``pytest verification/ --update-baseline`` renews the record of the cells that ran.
"""

from pathlib import Path

import pytest
from recorded_cells import Recorder

from fltheory.verify import Cell, Verdict, departure, read_baseline, write_baseline
from fltheory.verify.baseline import Baseline

BASELINE = Path(__file__).parent / "baseline.csv"
_CELLS = pytest.StashKey[list[Cell]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-baseline",
        action="store_true",
        help="record the verdicts and ratios of this run instead of comparing with the record",
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


@pytest.fixture
def as_recorded(pytestconfig: pytest.Config, baseline: Baseline) -> Recorder:
    """Return a function that fails if a cell departs from its record, and returns its verdict.

    With ``--update-baseline`` the cell is recorded instead.
    """

    def compare(cell: Cell) -> Verdict:
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

"""Bound-regression tests: verdicts and ratios against the recorded ones.

``pytest verification/ --update-baseline`` renews the record of the cells that ran.
"""

from pathlib import Path

import pytest

from fltheory.verify import Cell, read_baseline, write_baseline
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
    config.stash[_CELLS] = []


@pytest.fixture(scope="session")
def baseline() -> Baseline:
    return read_baseline(BASELINE) if BASELINE.exists() else {}


@pytest.fixture
def checked_cells(request: pytest.FixtureRequest) -> list[Cell]:
    """Cells checked so far, which ``--update-baseline`` records."""
    return request.config.stash[_CELLS]


@pytest.fixture(scope="session")
def updating(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--update-baseline"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    cells = session.config.stash[_CELLS]
    if session.config.getoption("--update-baseline") and cells:
        kept = read_baseline(BASELINE) if BASELINE.exists() else {}
        write_baseline(BASELINE, cells, kept)

"""The wheel that ``make wheel`` builds is enough: in an empty folder, without the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import fltheory

DIST = Path(__file__).parents[1] / "out" / "dist"
WHEELS = sorted(DIST.glob("*.whl"))

pytestmark = pytest.mark.skipif(not WHEELS, reason="no wheel is built: make wheel")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        wheel.extractall(folder)
    return folder


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs a module from the wheel in an empty folder."""

    def module(*arguments: str) -> str:
        answer = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    return module


def test_one_wheel_has_what_is_needed(installed: Path) -> None:
    assert len(WHEELS) == 1
    assert not (installed / "tests").exists()
    package = installed / "fltheory"
    for needed in ("py.typed", "recorded_verdicts.csv", "commands/templates/theorem.txt"):
        assert (package / needed).is_file()
    (metadata,) = installed.glob("*.dist-info/METADATA")
    assert f"\nVersion: {fltheory.__version__}\n" in metadata.read_text()


def test_a_theorem_of_ones_own_from_nothing(run: Callable[..., str], tmp_path: Path) -> None:
    run("fltheory", "new", "theorem", "mine.py")
    assert "3 HOLDS, 1 INAPPLICABLE" in run("fltheory", "--load", "mine.py", "verify", "my")
    assert "fltheory" in run("pytest", "--fltheory", "mine.py", "--fltheory-record", "-q")
    assert (tmp_path / "fltheory-verdicts.csv").is_file()


def test_kept_certificates_are_reported_and_pages_stay_out_of_other_folders(
    run: Callable[..., str], tmp_path: Path
) -> None:
    run("fltheory", "verify", "sa-fl/4", "--html", "report.html")
    assert "1 of 1 printed theorems" in (tmp_path / "report.html").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"report.html"}
    assert "as recorded" in run("fltheory", "explain", "sa-fl/5")

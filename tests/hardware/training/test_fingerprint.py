"""Fingerprints: any code that a run goes through counts, and the libraries; words do not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
import fltheory  # noqa: E402
from fltheory.algorithms.table import ALGORITHMS  # noqa: E402
from fltheory.hardware.training.checkpoint import (  # noqa: E402
    computing_files,
    fingerprint,
    fingerprint_of,
)
from fltheory.hardware.training.run import train  # noqa: E402
from fltheory.hardware.training.settings import run_settings  # noqa: E402
from tests.hardware.training.small_experiment import FOUR_CLASSES, SERVER, run_table  # noqa: E402

ROOT = Path(fltheory.__file__).parent
VERSIONS = {"torch": "2", "numpy": "2"}


def of_file(root: Path, name: str) -> str:
    """Return the fingerprint of a single file, which must be among those that count."""
    assert root / name in computing_files(root)
    return fingerprint_of(root, [root / name], VERSIONS)


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies a file of the package to where it may be changed."""

    def copy(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(ROOT / name, path))

    return copy


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("algorithms/fedavg.py", "server_lr", "server_rate"),
        ("engines/simulation.py", "begun", "start"),
        ("hardware/gradients.py", "def ", "def a_"),
        ("hardware/datasets/images.py", "_BRIGHTEST = 255", "_BRIGHTEST = 256"),
        ("hardware/models.py", "_GROUPS = 32", "_GROUPS = 16"),
        ("hardware/partitions.py", "_MIXING = 20", "_MIXING = 21"),
        ("hardware/training/run.py", "100 * right", "101 * right"),
        ("participation/uniform_subset.py", "def ", "def a_"),
    ],
)
def test_code_counts_and_words_do_not(
    copied: Callable[[str], Path], tmp_path: Path, name: str, old: str, new: str
) -> None:
    path = copied(name)
    assert of_file(tmp_path, name) == of_file(ROOT, name)
    source = path.read_text(encoding="utf-8")
    words = source.replace('"""', '"""Other words. ', 1) + "# A comment.\n"
    path.write_text(words, encoding="utf-8")
    assert of_file(tmp_path, name) == of_file(ROOT, name)
    assert old in source
    path.write_text(source.replace(old, new), encoding="utf-8")
    assert of_file(tmp_path, name) != of_file(ROOT, name)


def test_names_and_new_files_count(tmp_path: Path) -> None:
    found = set()
    for names in (["hardware/a.py"], ["hardware/b.py"], ["hardware/a.py", "hardware/b.py"]):
        for name in names:
            path = tmp_path / "-".join(names).replace("/", "-") / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        root = path.parents[1]
        files = [file for file in computing_files(root) if file.exists()]
        assert len(files) == len(names)
        found.add(fingerprint_of(root, files, VERSIONS))
    assert len(found) == 3


def test_versions_count() -> None:
    others = [{**VERSIONS, "torch": "0.1"}, {**VERSIONS, "numpy": "1"}, VERSIONS]
    assert len({fingerprint_of(ROOT, [], versions) for versions in others}) == 3


def test_this_package_with_these_versions() -> None:
    versions = {"torch": str(torch.__version__), "numpy": np.__version__}
    assert fingerprint() == fingerprint_of(ROOT, computing_files(), versions)
    assert fingerprint() != fingerprint_of(ROOT, computing_files(), {**versions, "numpy": "1"})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_function_that_a_run_goes_through_counts(name: str) -> None:
    """Whatever of the package is called in a run lies in the files that are looked at."""
    table = run_table(
        participation={"kind": "four classes", **FOUR_CLASSES},
        server=SERVER,
        training={"rounds": 3},
    )
    table["algorithm"] = {"name": name, **ALGORITHMS[name].example(8)}
    gone_through: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            gone_through.add(frame.f_code.co_filename)

    settings = run_settings(table)
    sys.setprofile(note)
    try:
        train(settings, 0)
    finally:
        sys.setprofile(None)
    files = {Path(file) for file in gone_through if file.startswith(str(ROOT))}
    assert ROOT / "hardware" / "clients" / "torch_clients.py" in files
    assert files <= set(computing_files())

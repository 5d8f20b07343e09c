"""Fixtures and helpers for tests of several commands."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.theorems import registered, registry
from fltheory.verify import MapAxis, certificate, region_map
from fltheory.verify.certificates.certificate import write_certificate
from tests.fewer_regimes import with_regimes
from tests.verify.witnesses import ONE_ROUND


@pytest.fixture
def certificate_file(tmp_path: Path) -> Path:
    """Return a certificate that refutes the printed Theorem 5 of SA-FL in one round."""
    path = tmp_path / "witnesses" / "one.json"
    write_certificate(path, certificate(theorems.get("sa-fl/5"), ONE_ROUND))
    return path


Words = tuple[object, ...]
"""Of a command line; the last is the file that is its result."""


def said_and_written(
    command: Callable[..., tuple[int, str, str]], words: Words, *options: object
) -> tuple[str, bytes]:
    """Run a command; return its output, without lines on written files, and the written file."""
    result = Path(str(words[-1]))
    result.unlink(missing_ok=True)
    status, out, err = command(*words, *options)
    assert (status, err) == (0, "")
    said = [line for line in out.splitlines() if "written to" not in line]
    return "\n".join(said), result.read_bytes()


FEW = ("sa-fl/4", "sa-fl/5")


@pytest.fixture
def mapping(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Words:
    few = {"q": MapAxis("q", (0.05, 0.3, 0.9)), "rounds": MapAxis("rounds", (1.0, 300.0))}
    monkeypatch.setattr(region_map, "default_axis", lambda setting, name: few[name])
    return "map", "sa-fl/5", "--reading", "derived", "--figure", tmp_path / "result.svg"


@pytest.fixture
def power(tmp_path: Path) -> Words:
    effort = ("--every", 70, "--budget", 50)
    return "power.py", "sa-fl/5", *effort, "--out", tmp_path / "result.json"


@pytest.fixture
def quick_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search only a hundred points, not 5,000, for one at which a step of a proof fails."""
    monkeypatch.setattr("fltheory.derivations.derivation_check._POINTS", 100)


@pytest.fixture
def findings(
    monkeypatch: pytest.MonkeyPatch,
    certificate_file: Path,
    own_theorems_forgotten: None,
    quick_proofs: None,
    tmp_path: Path,
) -> Words:
    for statement in (one for one in registered() if one.id in FEW):
        few = dict(list(statement.regimes.items())[:2])
        registry._BY_NAME[statement.id, statement.reading] = with_regimes(statement, few)
    monkeypatch.setattr(import_module("docs.scripts.findings"), "ids", lambda: FEW)
    options = ("--budget", 20, "--out", tmp_path / "result.md")
    return "findings.py", certificate_file.parent, *options

"""Importing the package is quick and loads nothing heavy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from tests.drawn import a_tenth

HEAVY = ("torch", "cvxpy", "sympy", "scipy.stats", "matplotlib", "pandas", "flwr")
PROBE = f"""
import json, sys
before = set(sys.modules)
import fltheory
print(json.dumps([len(set(sys.modules) - before), [m for m in {HEAVY!r} if m in sys.modules]]))
"""


def test_import_is_light() -> None:
    """By modules, not by the clock, which shows what else the machine does."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    )
    count, heavy = json.loads(answer.stdout)
    assert heavy == []
    assert count < 60


READY = """
import sys
import fltheory.theorems
first = sorted(name for name in sys.modules if name in ("scipy", "matplotlib", "pandas", "cvxpy"))
import fltheory.verify
print(first, [name for name in ("scipy.stats", "scipy.optimize", "cvxpy") if name in sys.modules])
"""


def test_statements_are_listed_and_verdicts_begin_without_what_few_need() -> None:
    """A second of importing SciPy for those who only list theorems, or check a small one."""
    answer = subprocess.run(
        [sys.executable, "-c", READY], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "[] []\n"


def test_what_most_people_need_is_here() -> None:
    import fltheory as fl
    from fltheory import engines, problems, theorems, verify, weights

    assert fl.theorem is theorems.get
    assert (fl.check, fl.falsify) == (verify.check, verify.falsify)
    assert (fl.map_region, fl.truth) == (verify.map_region, verify.truth)
    assert (fl.Setting, fl.exact, fl.paths) == (engines.Setting, engines.exact, engines.paths)
    assert (fl.stationary, fl.monte_carlo) == (engines.stationary, engines.monte_carlo)
    assert (fl.quadratic, fl.optimal_weights) == (problems.quadratic, weights.optimal)
    assert {name for name in fl.__all__ if getattr(fl, name, None) is None} == set()
    with pytest.raises(AttributeError, match="has no attribute 'chekc'"):
        fl.chekc  # noqa: B018


WITHOUT_TORCH = """
import sys, pytest

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
options = ["--collect-only", "-q", "-p", "no:cacheprovider", "--assert=plain"]
sys.exit(pytest.main([*options, *sys.argv[1:]]))
"""
ROOT = Path(__file__).parents[1]
OF_TORCH = re.compile(r"torch|sklearn|hardware")


def near_torch() -> list[Path]:
    """Return a fifth of the test files that name torch or modules that need it."""
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("verification/test_*.py")]
    near = [file for file in files if OF_TORCH.search(file.read_text(encoding="utf-8"))]
    return [
        case.values[0] for case in a_tenth(near, name=attrgetter("name"), of=5) if not case.marks
    ]


@pytest.mark.parametrize(
    "files",
    [near_torch(), pytest.param([], marks=pytest.mark.soundness)],
    ids=["some near it", "all"],
)
def test_every_test_is_found_without_the_torch_extra(files: list[Path]) -> None:
    """Tests that need torch say so by skipping, instead of failing where they are imported."""
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert found.returncode == 0, found.stdout[-2000:]

"""Importing the package is quick and loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("torch", "cvxpy", "sympy", "scipy.stats", "matplotlib", "pandas")
PROBE = f"""
import json, sys, time
start = time.perf_counter()
import fltheory
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {HEAVY!r} if name in sys.modules]]))
"""


def measure() -> tuple[float, list[str]]:
    """Import in a fresh interpreter; return the seconds there and the heavy modules loaded."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    )
    seconds, loaded = json.loads(answer.stdout)
    return seconds, loaded


def test_import_is_light() -> None:
    runs = [measure() for _ in range(3)]
    assert [loaded for _, loaded in runs] == [[], [], []]
    assert min(seconds for seconds, _ in runs) < 0.3

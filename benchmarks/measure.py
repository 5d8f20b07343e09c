"""Measure a function in a fresh process: its median time, and the process's peak memory."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

REPEATS = 3
CASE = "--case"


def measured(case: Callable[[], None]) -> dict[str, float]:
    """Return median seconds after a warm-up, and the peak memory of this process in MB."""
    case()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        case()
        seconds.append(time.perf_counter() - start)
    return {"seconds": statistics.median(seconds), "megabytes": peak()}


def measured_cold(prepare: Callable[[], Callable[[], object]]) -> dict[str, float]:
    """Return processor time and memory of one run with empty caches.

    Processor time is used because long runs are rarely alone on the machine.
    """
    case = prepare()
    start = time.process_time()
    case()
    seconds = time.process_time() - start
    return {"seconds": seconds, "megabytes": peak()}


def peak() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_turn(cases: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of cases run in turn, repeatedly, after a warm-up.

    A temporary slowdown of the machine then affects all of them, and ratios within a round remain
    valid.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        case()
    for _ in range(rounds):
        for name, case in cases.items():
            start = time.perf_counter()
            case()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def in_fresh_processes(
    script: str,
    cases: Mapping[str, Any],
    measure: Callable[[Any], dict[str, float]] = measured,
) -> dict[str, dict[str, float]]:
    """Measure every case in a process of its own; to be called from a script's main block."""
    if CASE in sys.argv:
        print(json.dumps(measure(cases[sys.argv[-1]])))
        sys.exit(0)
    results = {}
    for name in cases:
        command = [sys.executable, str(Path(script)), CASE, name]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        results[name] = json.loads(run.stdout)
    return results


def machine() -> str:
    """Describe the machine in a line."""
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def report(title: str, rows: list[tuple[str, str, str]]) -> None:
    """Print rows of (subject, measured, target) as a table."""
    print(f"{title} ({machine()})")
    for what, figure, target in rows:
        print(f"  {what:44s} {figure:>24s}   target {target}")

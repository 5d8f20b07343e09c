"""The side of a peer: runs a case whenever it is asked to, and says how long that took.

A peer is a process of its own, in its own environment. The variable PEERS_INSTANCES names the file
of instances; standard input is the name of a case a line, and each is answered by a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

Case = Callable[[], Mapping[str, Any]]
"""Runs once. Returns what it found, and ``seconds`` where they are not those of the whole call."""


def instances() -> dict[str, Any]:
    """Return the arrays and numbers that all peers work on."""
    with np.load(os.environ["PEERS_INSTANCES"]) as stored:
        return {name: stored[name] if stored[name].ndim else stored[name].item() for name in stored}


def serve(cases: Mapping[str, Case], *packages: str) -> None:
    """Answer until standard input ends; the first answer says the versions of packages."""
    # Whatever libraries print goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({name: version(name) for name in packages}), file=answers, flush=True)
    for line in sys.stdin:
        start, used = time.perf_counter(), time.process_time()
        found = cases[line.strip()]()
        took = {
            "seconds": time.perf_counter() - start,
            "processor": time.process_time() - used,
        }
        # Arrays are compared by who asked, and turning them into text is not timed.
        said = {name: np.asarray(value).tolist() for name, value in found.items()}
        print(json.dumps({**took, **said}), file=answers, flush=True)

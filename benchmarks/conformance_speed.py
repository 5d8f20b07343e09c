"""How fast `check_algorithm` finds each fault of the gallery: processor time outside ``run``.

    python benchmarks/conformance_speed.py [NAME ...]

It stops at the first failure, as a user does who fixes one fault at a time; the time includes the
search for the smallest trace and for causes. The target is 2 s for each fault.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fltheory.testing import check_algorithm
from tests.testing.gallery import GALLERY

TARGET = 2.0


class Timed:
    """A run that records how long it took."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run, self.seconds = run, 0.0

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Run the algorithm, and add up the processor time."""
        begun = time.process_time()
        try:
            return self.run(*given, **named)
        finally:
            self.seconds += time.process_time() - begun


def first_failure(name: str, fault: str) -> tuple[float, str]:
    """Return the seconds to the first failure, and its law."""
    timed = Timed(partial(GALLERY[name].run, fault=fault))
    begun = time.process_time()
    report = check_algorithm(timed, name, raises=False, stop_at_first=True)
    taken = time.process_time() - begun - timed.seconds
    return taken, report.failures[0].law if report.failures else "none"


def main() -> int:
    """Time all faults; the exit status is 1 if one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(GALLERY))
    late = 0
    for name in parser.parse_args().names:
        first_failure(name, next(iter(GALLERY[name].faults)))  # imports are not the suite's time
        found = [(*first_failure(name, fault), fault) for fault in GALLERY[name].faults]
        over = [one for one in found if one[0] > TARGET]
        late += len(over)
        print(f"{name}: {len(found)} faults, at most {max(found)[0]:.2f} s", flush=True)
        for seconds, law, fault in sorted(over, reverse=True):
            print(f"  {seconds:.2f} s, by {law}: {fault}", flush=True)
    print(f"{late} faults take more than {TARGET:g} s")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())

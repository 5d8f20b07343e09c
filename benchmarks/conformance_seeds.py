"""Right implementations of the gallery under many seeds of `check_algorithm`: none may fail.

    python benchmarks/conformance_seeds.py --seeds 200 [--processes 2] [--laws LAW ...]
        [NAME ...]

Cases are drawn anew for each seed. It prints how long each algorithm takes, and any failure.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fltheory.testing import check_algorithm
from tests.testing.gallery import GALLERY


def failure(laws: list[str] | None, name: str, seed: int) -> tuple[str, float, str]:
    """Return the algorithm, the seconds taken, and what failed, if anything."""
    begun = time.perf_counter()
    report = check_algorithm(GALLERY[name].run, name, seed=seed, laws=laws, raises=False)
    bad = [f"{f.law}: {f.message}" for f in report.findings if not f.outcome.good]
    said = f"{name}, seed {seed}: " + "\n".join(bad) if bad else ""
    return name, time.perf_counter() - begun, said


def main() -> int:
    """Check all of them; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(GALLERY))
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--laws", nargs="+", help="these alone; all by default")
    arguments = parser.parse_args()
    pairs = product(arguments.names, range(arguments.first, arguments.first + arguments.seeds))
    seconds: dict[str, float] = {}
    failures = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for name, taken, said in pool.map(
            partial(failure, arguments.laws), *zip(*pairs, strict=True), chunksize=5
        ):
            seconds[name] = seconds.get(name, 0.0) + taken
            if said:
                failures.append(said)
                print(said, flush=True)
    for name, total in seconds.items():
        print(f"{name}: {arguments.seeds} seeds, {total / arguments.seeds:.2f} s each")
    print(f"{len(failures)} failures in {len(seconds) * arguments.seeds} runs")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())

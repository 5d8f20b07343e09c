"""How the engines scale: processor time and memory as one size grows and the others stay fixed.

Each size runs in a process of its own, on one thread. The exponent is fitted to the larger half of
the sizes, after subtracting the time of the smallest, as a fixed cost of any run. ``--page
docs/performance.md`` writes the table between the page's marks.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from cases import clients
from measure import CASE, machine, peak

from fltheory.algorithms import FedAvg, FedVarp, Harmonic, Safari, Scheduled
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact, monte_carlo, paths, stationary
from fltheory.files.whole_file import write_whole
from fltheory.long_work.progress import shown_progress
from fltheory.participation import Bernoulli, MarkovOnOff, Participation, UniformSubset

MARKS = "<!-- growth -->\n", "<!-- end of growth -->\n"
SHORT = 0.2


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run: clients, dimension, local steps, rounds, replicas."""

    N: int = 20
    d: int = 5
    K: int = 5
    R: int = 100
    replicas: int = 1000


@dataclass(frozen=True)
class Kind:
    """An engine and the settings on which it is timed."""

    engine: Callable[[Setting, Sizes], object]
    algorithm: Callable[[int], Algorithm | Scheduled]
    who: Callable[[int], Participation]
    shared: bool = False

    def prepared(self, sizes: Sizes) -> Callable[[], object]:
        """Return a function that runs a setting of some sizes, which is made in advance."""
        problem = clients(sizes.N, sizes.d, shared=self.shared)
        algorithm, who = self.algorithm(sizes.K), self.who(sizes.N)
        setting = Setting(algorithm, problem, who, sizes.R, np.ones(sizes.d))
        return lambda: self.engine(setting, sizes)


def subsets(n_clients: int) -> UniformSubset:
    return UniformSubset(n_clients, max(1, n_clients // 10))


def pairs(n_clients: int) -> UniformSubset:
    return UniformSubset(n_clients, 2)


def coins(n_clients: int) -> Bernoulli:
    return Bernoulli([0.5] * n_clients)


def on_off(n_clients: int) -> MarkovOnOff:
    return MarkovOnOff([0.3] * n_clients, [0.2] * n_clients)


def fedavg(local_steps: int) -> FedAvg:
    return FedAvg(0.02, local_steps)


def fedavg_with_falling_steps(local_steps: int) -> Scheduled:
    return Scheduled(FedAvg(0.02, local_steps), Harmonic(0.5, offset=20.0))


def fedvarp(local_steps: int) -> FedVarp:
    return FedVarp(0.02, local_steps)


def safari(local_steps: int) -> Safari:
    return Safari(0.6, 0.02, 0.1, local_steps)


def in_float64(setting: Setting, _: Sizes) -> object:
    return exact(setting)


def enclosed(setting: Setting, _: Sizes) -> object:
    return exact(setting, arithmetic="enclosed")


def in_the_limit(setting: Setting, _: Sizes) -> object:
    return stationary(setting)


def along_paths(setting: Setting, _: Sizes) -> object:
    return paths(setting, draws=20)


def drawn(setting: Setting, sizes: Sizes) -> object:
    return monte_carlo(setting, replicas=sizes.replicas, seed=0)


KINDS = {
    "`exact`, FedAvg on subsets": Kind(in_float64, fedavg, subsets),
    "the same, one Hessian for all": Kind(in_float64, fedavg, subsets, shared=True),
    "the same, steps that fall": Kind(in_float64, fedavg_with_falling_steps, subsets),
    "`exact`, FedVARP, coins": Kind(in_float64, fedvarp, coins),
    "`exact`, FedAvg, on-off clients": Kind(in_float64, fedavg, on_off),
    "`exact`, enclosed, SAFARI on pairs": Kind(enclosed, safari, pairs),
    "`stationary`, FedAvg on subsets": Kind(in_the_limit, fedavg, subsets),
    "`stationary`, on-off clients": Kind(in_the_limit, fedavg, on_off),
    "`paths`, FedAvg, 20 draws": Kind(along_paths, fedavg, on_off),
    "`monte_carlo`, FedAvg on subsets": Kind(drawn, fedavg, subsets),
}
FEW = (10, 100, 1_000, 10_000)
MANY = (100, 1_000, 10_000, 100_000)
GROWTHS = [
    ("`exact`, FedAvg on subsets", "N", FEW, Sizes(), "N"),
    ("`exact`, FedAvg on subsets", "d", (2, 8, 32, 64), Sizes(), "d^3"),
    ("`exact`, FedAvg on subsets", "K", (1, 10, 100, 1_000), Sizes(), "1"),
    ("`exact`, FedAvg on subsets", "R", MANY, Sizes(), "R"),
    ("the same, one Hessian for all", "N", MANY, Sizes(), "N"),
    ("the same, one Hessian for all", "d", (2, 16, 128, 512), Sizes(), "d^3"),
    ("the same, steps that fall", "R", (10, 100, 1_000), Sizes(), "R"),
    ("`exact`, FedVARP, coins", "N", (3, 6, 12, 24), Sizes(d=2), "N^3"),
    ("`exact`, FedAvg, on-off clients", "N", (1, 4, 8, 12), Sizes(), "2^N"),
    ("`exact`, enclosed, SAFARI on pairs", "N", (10, 20, 40, 80), Sizes(d=3, R=50), "N^3"),
    ("`exact`, enclosed, SAFARI on pairs", "d", (2, 4, 8, 16), Sizes(N=10, R=50), "d^3"),
    ("`exact`, enclosed, SAFARI on pairs", "R", FEW, Sizes(N=10, d=2), "R"),
    ("`stationary`, FedAvg on subsets", "d", (2, 8, 32, 64), Sizes(), "d^3"),
    ("`stationary`, on-off clients", "N", (1, 4, 10, 12), Sizes(), "2^N"),
    ("`paths`, FedAvg, 20 draws", "N", FEW, Sizes(), "N"),
    ("`paths`, FedAvg, 20 draws", "R", FEW, Sizes(), "R"),
    ("`monte_carlo`, FedAvg on subsets", "replicas", MANY, Sizes(R=20), "replicas"),
    ("`monte_carlo`, FedAvg on subsets", "N", FEW, Sizes(R=20, replicas=100), "N"),
    ("`monte_carlo`, FedAvg on subsets", "d", (2, 8, 32, 128), Sizes(R=20, replicas=100), "d^2"),
    ("`monte_carlo`, FedAvg on subsets", "K", (1, 10, 100, 1_000), Sizes(R=20), "1"),
    ("`monte_carlo`, FedAvg on subsets", "R", FEW, Sizes(replicas=100), "R"),
]


def processor_seconds() -> float:
    """Return the processor time of this process and its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measured(kind: Kind, least: Sizes, sizes: Sizes) -> tuple[float, float]:
    """Return a run's seconds, the better of two if it is short, and its MB above the imports."""
    kind.prepared(least)()  # engines import modules when they first run
    run = kind.prepared(sizes)
    below = peak()
    seconds = []
    while len(seconds) < 2 and sum(seconds) < SHORT:
        start = processor_seconds()
        run()
        seconds.append(processor_seconds() - start)
    return min(seconds), peak() - below


def exponent(values: tuple[int, ...], seconds: list[float], mathematics: str) -> str:
    """Return the exponent over the larger half, or the growth per unit if it is exponential."""
    above = np.maximum(np.array(seconds) - seconds[0], 0.0)
    (small, large), (before, after) = values[-2:], above[-2:]
    if after < seconds[0] or before <= 0:
        return "about 0"
    if mathematics.startswith("2^"):
        return f"{(after / before) ** (1 / (large - small)):.2f}^N"
    return f"{np.log(after / before) / np.log(large / small):.2f}"


def in_a_process(index: int, place: int) -> tuple[float, float]:
    command = [sys.executable, __file__, CASE, str(index), str(place)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    seconds, megabytes = json.loads(run.stdout)
    return seconds, megabytes


def rows() -> Iterator[str]:
    yield "| engine and case | grows | sizes | seconds | exponent, expected | MB at the end |"
    yield "|---|---|---|---|---|---|"
    with shown_progress("measuring") as advance:
        total = sum(len(values) for _, _, values, _, _ in GROWTHS)
        done = 0
        for index, (name, size, values, _, mathematics) in enumerate(GROWTHS):
            found = []
            for place in range(len(values)):
                found.append(in_a_process(index, place))
                done += 1
                advance(done, total, f"{name}, {size}")
            seconds = [one for one, _ in found]
            fitted = exponent(values, seconds, mathematics)
            figures = ", ".join(f"{one:.2g}" for one in seconds)
            span = ", ".join(f"{value:,}" for value in values)
            yield (
                f"| {name} | {size} | {span} | {figures} | {fitted}; {mathematics} "
                f"| {found[-1][1]:,.0f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="a page with the marks of the table")
    parser.add_argument(CASE, dest="case", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case is not None:
        index, place = given.case
        name, size, values, sizes, _ = GROWTHS[index]
        least, grown = (replace(sizes, **{size: value}) for value in (values[0], values[place]))
        print(json.dumps(measured(KINDS[name], least, grown)))
        return
    table = "\n".join([*rows(), "", f"Measured with {machine()}.", ""])
    print(table)
    if given.page is not None:
        text = given.page.read_text()
        head, rest = text.split(MARKS[0])
        write_whole(
            given.page, head + MARKS[0] + "\n" + table + "\n" + MARKS[1] + rest.split(MARKS[1])[1]
        )


if __name__ == "__main__":
    main()

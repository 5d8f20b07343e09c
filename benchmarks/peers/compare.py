"""Run the peers in turn, each in an environment of its own, and write their table into the docs.

    python benchmarks/peers/compare.py --jax PYTHON --flower PYTHON --pep PYTHON

README.md says what the environments need. What a peer found is checked before its time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fltheory.hardware.datasets import load
from fltheory.hardware.partitions import classes_per_client
from fltheory.problems import QuadraticProblem

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"

N, DIM, PARTICIPANTS, K, ROUNDS = 10, 20, 5, 5, 100
SIZES = (1, 2, 4, 8, 16, 32)
# Seconds from which a bound is asked for once, and not for more clients.
LONG = 3.0
SAMPLING, SAME_MODEL, SAME_BOUND = 5.0, 1e-9, 1e-5


def instances() -> dict[str, Any]:
    """Return what all peers work on."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(N, DIM, DIM)) / DIM**0.5
    hessians = 0.1 * np.eye(DIM) + 0.2 * roots @ roots.swapaxes(1, 2)
    optima = rng.normal(size=(N, DIM))
    train = load("digits").train
    owner = np.empty(len(train.labels), dtype=int)
    for client, mine in enumerate(classes_per_client(train.labels, N, 2, rng)):
        owner[mine] = client
    trace = np.zeros((ROUNDS, N), dtype=bool)
    for row in trace:
        row[rng.choice(N, PARTICIPANTS, replace=False)] = True
    return {
        **{"hessians": hessians, "optima": optima, "sigma": 1.0, "x0": np.ones(DIM)},
        **{"x_star": QuadraticProblem(hessians, optima).x_star, "trace": trace},
        **{"participants": PARTICIPANTS, "rounds": ROUNDS, "local_steps": K, "lr": 0.05},
        **{"q": 0.8, "assist_lr": 0.25, "digits_lr": 0.5, "classes": 10, "owner": owner},
        **{"images": train.images.reshape(len(owner), -1).astype(float), "labels": train.labels},
        **{"sizes": np.bincount(owner), "bound_sizes": SIZES, "bound_mu": 0.1, "bound_lr": 0.5},
        **{"bound_steps": 2, "bound_rate": 0.95},
    }


@dataclass(eq=False)
class Peer:
    """A process that runs cases when asked to."""

    name: str
    python: str
    script: str
    wide: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    process: Any = None

    def start(self, stored: Path) -> None:
        """Start the process, which says the versions of what it runs."""
        cores = sorted(os.sched_getaffinity(0))
        path = os.pathsep.join([str(ROOT), str(FOLDER)])
        self.process = subprocess.Popen(
            [self.python, str(FOLDER / self.script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                **{"PEERS_INSTANCES": str(stored), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            },
            # All but Flower, which starts processes of its own, have one core, and the same one.
            preexec_fn=None if self.wide else lambda: os.sched_setaffinity(0, cores[:1]),
        )
        self.versions = self._line()

    def ask(self, case: str) -> dict[str, Any]:
        """Run a case once and keep the answer."""
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        answer = self._line()
        self.answers.setdefault(case, []).append(answer)
        return answer

    def _line(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended: see what it wrote above")
        return json.loads(line)

    def end(self) -> None:
        """Let the process end."""
        if self.process is None:
            return
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def running(stored: Path, peers: Iterable[Peer]) -> Iterator[None]:
    """Have processes of some peers in the block."""
    peers = list(peers)
    try:
        for peer in peers:
            peer.start(stored)
        yield
    finally:
        for peer in peers:
            peer.end()


def in_turn(asked: Iterable[tuple[Peer, str]], repeats: int) -> None:
    """Ask all, again and again; the first answers, with what is compiled, are left out."""
    asked = list(asked)
    for peer, case in asked:
        peer.ask(case)
        peer.answers[case].clear()
    for _ in range(repeats):
        for peer, case in asked:
            peer.ask(case)


def bounds_in_turn(peers: Iterable[Peer], kind: str, sizes: Iterable[int], repeats: int) -> None:
    """Ask for bounds of more and more clients, each peer until one takes it long."""
    going = list(peers)
    for peer in going:
        peer.ask(f"{kind} {SIZES[0]}")
        peer.answers[f"{kind} {SIZES[0]}"].pop()
    for size in sizes:
        case = f"{kind} {size}"
        slow = [peer for peer in going if peer.ask(case)["seconds"] > LONG]
        going = [peer for peer in going if peer not in slow]
        for _ in range(repeats - 1):
            for peer in going:
                peer.ask(case)


def apart(answer: dict[str, Any], expected: Any) -> float:
    """Return by how many standard errors a mean is off, in the round where most."""
    return float(np.max(np.abs(np.array(answer["mean"]) - expected) / np.array(answer["error"])))


def checked(case: str, answers: list[dict[str, Any]], truth: dict[str, Any]) -> str:
    """Say how far answers are from the truth; end where that is too far."""
    first = answers[0]
    if "difference" in first:
        off, most = max(one["difference"] for one in answers), SAME_MODEL
    elif "model" in first:
        off, most = float(np.abs(np.array(first["model"]) - truth["digits"]).max()), SAME_MODEL
    elif "error" in first:
        off, most = max(apart(one, truth[case.split()[0]]) for one in answers), SAMPLING
        if off <= most:
            return f"means within {off:.1f} s.e."
    else:
        return "the reference for the others"
    if not off <= most:
        raise SystemExit(f"{case} computes something else: off by {off:.3g}, allowed {most:g}")
    return f"models to {off:.0e}"


def span(values: list[float], unit: float) -> str:
    """Return the median and, in brackets, the range."""
    scaled = [value / unit for value in values]
    return f"{figure(median(scaled))} ({figure(min(scaled))} to {figure(max(scaled))})"


def figure(value: float) -> str:
    """Return three digits or more."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def faster(rows: list[tuple[str, Peer, str]]) -> str:
    """Name the peers that take less processor time than the package does for the same."""
    spent = {
        (peer.name, case): median(one["processor"] / one["replicas"] for one in peer.answers[case])
        for _, peer, case in rows
        if not peer.wide and "replicas" in peer.answers[case][0]
    }
    found = []
    for (name, case), used in spent.items():
        times = spent["here", case] / used
        if times > 1:
            found.append(f"{name} on {case}, by a factor of {times:.2g}")
    return "; ".join(found) or "none"


def runs_table(rows: list[tuple[str, Peer, str]]) -> list[str]:
    numpy_ = next(peer for _, peer, _ in rows if peer.script == "plain_numpy.py")
    here = next(peer for _, peer, _ in rows if peer.script == "here.py")
    truth = {case: here.answers[f"{case} exact"][0]["mean"] for case in ("fedavg", "safari")}
    truth["digits"] = numpy_.answers["digits"][0]["model"]
    lines = [
        "| problem | by | microseconds per round and replica | processor time | replicas at once "
        "| plain NumPy takes | agrees |",
        "|---|---|---|---|---|---|---|",
    ]
    for label, peer, case in rows:
        answers = peer.answers[case]
        each = [one.get("replicas", 1) * one.get("rounds", ROUNDS) for one in answers]
        took = [one["seconds"] / size for one, size in zip(answers, each, strict=True)]
        used = [one["processor"] / size for one, size in zip(answers, each, strict=True)]
        of_numpy = [
            one["seconds"] / one["replicas"] / ROUNDS for one in numpy_.answers[case.split()[0]]
        ]
        ratio = median([b / a for a, b in zip(took, of_numpy, strict=False)])
        replicas = answers[0].get("replicas", "expected values")
        processor = "not measured" if peer.wide else figure(median(used) * 1e6)
        lines.append(
            f"| {label} | {peer.name} | {span(took, 1e-6)} | {processor} | {replicas} "
            f"| {ratio:.3g} times as long | {checked(case, answers, truth)} |"
        )
    return lines


def bounds_table(here: Peer, pep: Peer, lyapunov: Peer) -> list[str]:
    peers = (here, pep, lyapunov)
    lines = [
        "| round | N | value | " + " | ".join(f"{peer.name}, ms" for peer in peers) + " |",
        "|---|---|---|---|---|---|",
    ]
    labels = {"one step": "one step of all: rate", "several": "K = 2, half of them: residual"}
    for kind, label in labels.items():
        for n_clients in (*SIZES, 10**6):
            case = f"{kind} {n_clients}"
            known = here.answers[case][0]["value"]
            cells = [bound_cell(peer, case, known) for peer in peers]
            lines.append(f"| {label} | {n_clients:,} | {known:.6f} | {' | '.join(cells)} |")
    return lines


def bound_cell(peer: Peer, case: str, known: float) -> str:
    """Return the time and size of a bound; end where it is another one."""
    answers = peer.answers.get(case)
    if not answers:
        return ""
    first = answers[0]
    if first["value"] != first["value"]:
        return (
            f"its solver gave up after {figure(first['seconds'] * 1e3)}; block of {first['rows']}"
        )
    if not abs(first["value"] - known) <= SAME_BOUND * max(1, abs(known)):
        raise SystemExit(f"{peer.name}, {case}: {first['value']!r}, and here {known!r}")
    used = median(one["processor"] for one in answers) * 1e3
    seconds = [one["seconds"] for one in answers]
    took = span(seconds, 1e-3) if len(seconds) > 1 else f"{figure(seconds[0] * 1e3)} (once)"
    return f"{took}; processor {figure(used)}; block of {first['rows']}"


def fastest(peer: Peer, case: str, count: int, unit: float) -> float:
    """Return the least processor time of a case for one of what it has so many of."""
    return min(one["processor"] for one in peer.answers[case]) / count / unit


def section(rows: list[tuple[str, Peer, str]], bounds: tuple[Peer, Peer, Peer], load: str) -> str:
    numpy_ = next(peer for _, peer, _ in rows if peer.script == "plain_numpy.py")
    normal = fastest(numpy_, "normals", 10**6, 1e-9)
    products = fastest(numpy_, "congruences", ROUNDS, 1e-6)
    versions: dict[str, str] = {}
    for peer in dict.fromkeys([*(peer for _, peer, _ in rows), *bounds]):
        versions.update(peer.versions)
    known = {
        "date": f"{date.today():%d %B %Y}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": load,
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {number}" for name, number in sorted(versions.items())),
        "repeats": len(numpy_.answers["fedavg"]),
        "long": LONG,
        "runs": "\n".join(runs_table(rows)),
        "faster": faster(rows),
        "normal": normal,
        "steps": PARTICIPANTS * K * DIM,
        "stepped": PARTICIPANTS * K * DIM * normal / 1e3,
        "law": PARTICIPANTS * DIM,
        "drawn": PARTICIPANTS * DIM * normal / 1e3,
        "products": products,
        "bounds": "\n".join(bounds_table(*bounds)),
    }
    return (FOLDER / "section.md").read_text().format_map({**globals(), **known})


def processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def written(text: str) -> None:
    """Put the section between its marks, at the end of the page where there are none."""
    page = PAGE.read_text()
    block = f"{BEGIN}\n{text}\n{END}"
    before, mark, rest = page.partition(BEGIN)
    if mark:
        page = before + block + rest.partition(END)[2]
    else:
        page = page.rstrip("\n") + "\n\n" + block + "\n"
    PAGE.write_text(page)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("jax", "flower", "pep"):
        options.add_argument(f"--{name}", required=True, metavar="PYTHON")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--print", action="store_true", help="write nothing")
    given = options.parse_args()

    here = Peer("here", sys.executable, "here.py")
    numpy_ = Peer("plain NumPy", sys.executable, "plain_numpy.py")
    jax = Peer("a JAX scan", given.jax, "jax_scan.py")
    flower = Peer("Flower's simulation", given.flower, "flower_simulation.py", wide=True)
    rows = [
        row
        for case, label in (("fedavg", "FedAvg"), ("safari", "SAFARI"))
        for row in (
            (f"{label}, a round's law drawn", here, case),
            (f"{label}, every step made", here, f"{case} stepped"),
            (f"{label}, all expected values", here, f"{case} exact"),
            (label, jax, case),
            (label, numpy_, case),
            (label, flower, case),
        )
    ]
    rows += [("digits", peer, "digits") for peer in (here, jax, numpy_, flower)]
    bounds = (
        Peer("`best_bound`", sys.executable, "bounds_here.py"),
        Peer("PEPit", given.pep, "pepit_bounds.py"),
        Peer("AutoLyap", given.pep, "autolyap_bounds.py"),
    )
    limits = [(numpy_, "normals"), (numpy_, "congruences")]
    asked = [(peer, case) for _, peer, case in rows] + limits
    loads = []
    with tempfile.TemporaryDirectory() as made:
        stored = Path(made) / "instances.npz"
        np.savez(stored, **instances())
        with running(stored, [here, jax, numpy_, flower]):
            in_turn(asked, given.repeats)
            loads.append(os.getloadavg()[0])
        with running(stored, bounds):
            bounds_in_turn(bounds, "one step", SIZES, given.repeats)
            bounds_in_turn(bounds[:2], "several", SIZES, given.repeats)
            for kind in ("one step", "several"):
                bounds_in_turn(bounds[:1], kind, [10**6], given.repeats)
            loads.append(os.getloadavg()[0])
    text = section(rows, bounds, " and ".join(f"{load:.0f}" for load in loads))
    print(text)
    if not given.print:
        written(text)


if __name__ == "__main__":
    main()

"""How often a stated rounding bound is below the true error: ``make soundness``.

Random settings, most of them at scales between 1e-8 and 1e8, are run by every engine, and again in
fractions, where numbers stand for their shortest decimals. For every number of every run, the error
must not exceed the stated bound.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fltheory import algorithms
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.engines import Setting, exact, paths, stationary
from fltheory.engines.affine.numbers import RATIONAL
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.enclosure.enclosed import ExactRun
from fltheory.engines.trajectory import FIELDS, Trajectory
from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Participation,
    UniformSubset,
)
from fltheory.problems import QuadraticProblem
from tests.engines import cancelling

Draw = np.random.Generator
GENTLE = 1e-6
_COUNT, _SEED = 3_000, 20_26

Maker = Callable[[Draw, int, float], Algorithm | Schedule]


def _digits(value: float) -> float:
    """Return a number rounded to a few digits, as a person would write it."""
    return float(f"{value:.3g}")


def _weights(draw: Draw, n: int) -> tuple[float, ...]:
    return tuple(_digits(value) for value in draw.uniform(0.1, 1.0, n))


def _alpha(n: int) -> list[float]:
    return [1 / n] * n


MAKERS: dict[str, Maker] = {
    "FedAvg": lambda d, n, lr: algorithms.FedAvg(lr, int(d.integers(1, 4)), server_lr=0.7),
    "Safari": lambda d, n, lr: algorithms.Safari(0.3, lr, lr, int(d.integers(1, 4))),
    "WeightedFedAvg": lambda d, n, lr: algorithms.WeightedFedAvg(_weights(d, n), lr, 2),
    "Unbiased": lambda d, n, lr: algorithms.Unbiased(_alpha(n), _weights(d, n), lr, 2),
    "AdaFed": lambda d, n, lr: algorithms.AdaFed(_alpha(n), _weights(d, n), lr, 1),
    "FedAvgIS": lambda d, n, lr: algorithms.FedAvgIS(_weights(d, n), lr, 1),
    "FedVarp": lambda d, n, lr: algorithms.FedVarp(lr, 2),
    "Scaffold": lambda d, n, lr: algorithms.Scaffold(lr, 2),
    "Scaffold I": lambda d, n, lr: algorithms.Scaffold(lr, 1, option=1),
    "MIFA": lambda d, n, lr: algorithms.Mifa(lr, 1, start="zero"),
    "waiting MIFA": lambda d, n, lr: algorithms.Mifa(lr, 1),
    "FedAU": lambda d, n, lr: algorithms.FedAU(lr, 1, cutoff=3),
    "FedAR": lambda d, n, lr: algorithms.FedAR(lr, 1, cutoff=2.0),
    "F3ast": lambda d, n, lr: algorithms.F3ast(_alpha(n), max(1, n - 1), lr, 1),
    "momentum": lambda d, n, lr: algorithms.ServerMomentum(algorithms.FedAvg(lr, 1), 0.5),
    "scheduled": lambda d, n, lr: algorithms.Scheduled(
        algorithms.FedAvg(lr, 2), algorithms.Harmonic(lr, offset=1.0)
    ),
    "averaged": lambda d, n, lr: algorithms.AveragedIterate(algorithms.FedAvg(lr, 2)),
    "FedAWE": lambda d, n, lr: algorithms.FedAWE(lr, 2, server_lr=0.7),
    "ProxSkip": lambda d, n, lr: algorithms.ProxSkip(lr, _digits(d.uniform(0.01, 1))),
    "cancelling": lambda d, n, lr: cancelling.drawn(d, lr),
}
_FEW_ROUNDS = ("waiting MIFA", "FedAU", "FedAR", "F3ast", "FedAWE")


def _participation(draw: Draw, n: int) -> Participation:
    p = [_digits(value) for value in draw.uniform(0.1, 0.9, n)]
    kinds: list[Callable[[], Participation]] = [
        lambda: UniformSubset(n, int(draw.integers(1, n + 1))),
        lambda: Bernoulli(p),
        lambda: Cyclic(draw.integers(1, 4, n), draw.integers(0, 3, n)),
        lambda: MarkovOnOff(p, 0.25),
        lambda: AtMost(p, max(1, n - 1)),
        lambda: FiniteChain([[0.3, 0.7], [0.6, 0.4]], draw.integers(0, 2, (2, n))),
    ]
    return kinds[int(draw.integers(len(kinds)))]()


def _problem(draw: Draw, n: int, dim: int, scale: Callable[[], float]) -> QuadraticProblem:
    curvature = scale()
    shared = draw.random() < 0.3
    shape = (dim, dim) if shared else (n, dim, dim)
    matrices = draw.standard_normal(shape)
    spread = curvature * draw.uniform(0.1, 1.0)
    hessians = np.matmul(matrices, matrices.swapaxes(-1, -2)) * spread + curvature * np.eye(dim)
    centre, apart = scale() * draw.standard_normal(dim), scale()
    optima = centre + apart * draw.standard_normal((n, dim))
    written = np.vectorize(_digits)
    hessians = written(hessians)
    return QuadraticProblem(
        0.5 * (hessians + hessians.swapaxes(-1, -2)),
        written(optima),
        sigma=_digits(scale()) if draw.random() < 0.6 else 0.0,
        server_sigma=_digits(scale()) if draw.random() < 0.5 else 0.0,
    )


def setting(draw: Draw, name: str, *, gentle: bool) -> Setting:
    """Return a random setting of an algorithm, at scales near one or far from it."""
    n, dim = int(draw.integers(1, 4)), int(draw.integers(1, 3))

    def scale() -> float:
        return 1.0 if gentle else float(10.0 ** draw.uniform(-8, 8))

    while True:
        try:
            problem = _problem(draw, n, dim, scale)
            break
        except ValueError:
            continue
    lr = _digits(float(draw.uniform(0.05, 1.2)) / problem.L)
    start = problem.x_star + scale() * draw.standard_normal(dim)
    few = name in _FEW_ROUNDS
    rounds = int(draw.integers(1, 4 if few else 9))
    return Setting(
        MAKERS[name](draw, n, lr),
        problem,
        _participation(draw, n),
        rounds,
        [_digits(value) for value in start],
    )


@dataclass
class Count:
    """Counts of comparisons and of wrong bounds."""

    settings: Counter[str]
    comparisons: int = 0
    below: int = 0
    loose: int = 0
    gentle: int = 0
    worst: float = 0.0


def compare(count: Count, run: Trajectory, truth: Trajectory, label: str, *, gentle: bool) -> None:
    """Compare every number of a run with the truth in fractions."""
    assert run.rounding_error is not None
    for field in FIELDS:
        for value, stated, expected in zip(
            run[field], run.rounding_error[field], truth[field], strict=True
        ):
            if not np.isfinite(value):
                continue
            count.comparisons += 1
            error = abs(Fraction(float(value)) - expected)
            if np.isfinite(stated) and error > Fraction(float(stated)):
                count.below += 1
                print(f"below: {label} {field}: off by {float(error):.3g}, stated {stated:.3g}")
            if stated > 0:
                count.worst = max(count.worst, float(error) / float(stated))
            # A value that has fallen to a thousandth of an earlier one is no longer gentle, as
            # errors of earlier rounds stay, in proportion to the values then.
            if gentle and 1000 * expected > max(truth[field]):
                count.gentle += 1
                count.loose += bool(stated > GENTLE * float(expected))


def soundness(
    settings: int, seed: int, *, seconds: float = np.inf, names: Sequence[str] = tuple(MAKERS)
) -> Count:
    """Run random settings through every engine, and count stated bounds below the true error."""
    draw = np.random.default_rng(seed)
    count, began = Count(Counter()), time.perf_counter()
    for index in range(settings):
        if time.perf_counter() - began > seconds:
            break
        name, gentle = names[index % len(names)], index // len(names) % 4 == 0
        given = setting(draw, name, gentle=gentle)
        # No bound is sharp if digits are lost.
        gentle = gentle and name != "cancelling"
        try:
            truth = exact(given, arithmetic="rational")
        except NotAffineError:
            continue
        count.settings[name] += 1
        compare_limits(count, given)
        for engine in (exact, paths, _enclosed):
            try:
                run = engine(given)
            except NotAffineError:
                continue
            if run.rounding_error is not None:
                compare(count, run, truth, f"{engine.__name__} of {name}", gentle=gentle)
    return count


def compare_limits(count: Count, given: Setting) -> None:
    """Compare stationary limits with the solution of their equations in fractions."""
    try:
        limit = stationary(given)
        truth = ExactRun(given, RATIONAL).limits()
    except (NotAffineError, ValueError, ArithmeticError):
        return
    if truth is None or not limit.converges:
        return
    for field, expected in zip(FIELDS, truth, strict=True):
        count.comparisons += 1
        exact_value = Fraction(int(expected.p), int(expected.q))
        error = abs(Fraction(getattr(limit, field)) - exact_value)
        stated = limit.rounding_error[field]
        if np.isfinite(stated) and error > Fraction(stated):
            count.below += 1
            print(f"below: limit {field}: off by {float(error):.3g}, stated {stated:.3g}")


def _enclosed(given: Setting) -> Trajectory:
    return exact(given, arithmetic="enclosed")


def main() -> None:
    """Print the figures; the exit status is 1 if a bound is below the true error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=_COUNT)
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so long")
    parser.add_argument("--algorithms", nargs="+", choices=MAKERS, default=list(MAKERS))
    given = parser.parse_args()
    count = soundness(given.settings, given.seed, seconds=given.seconds, names=given.algorithms)
    total = sum(count.settings.values())
    most, of_most = count.settings.most_common(1)[0]
    print(f"{total} settings, at most {of_most / total:.1%} of one algorithm ({most})")
    print(f"{count.below} of {count.comparisons} stated bounds below the true error")
    print(f"largest true error over its stated bound: {count.worst:.3g}")
    print(f"gentle numbers: {count.loose} of {count.gentle} bounds above {GENTLE:g} of the value")
    raise SystemExit(int(count.below > 0))


if __name__ == "__main__":
    main()

"""How right `fltheory advise` is about hidden logs, whose processes it does not know.

    PYTHONPATH=. python benchmarks/advice_hidden_logs.py [SEEDS [FIRST]]

Ten kinds of clients leave a log of 400 to 800 rounds. The advice sees only that. The truth is simulated
in plain NumPy (tests/advice/plain_rounds.py), without an engine of the package: each algorithm, at
its advised step, with what it is told from the log, through fresh rounds of the true process (for
drifting ones through its last quarter as it was, in fresh rounds). Optima are those that are worst
for its true mean weights, and the error is that of the last quarter of as many rounds as the log
has. A line for each log: the advised error, its interval and the true one, and the true error of
the algorithm advised beside that of the best. With `--page` the figures go to the page on advice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fltheory.advice import Advice, advise
from fltheory.logs import AvailabilityLog
from tests.advice import plain_rounds

Array = NDArray[np.float64]
Masks = NDArray[np.bool_]
Draw = Callable[[np.random.Generator, int], Masks]
_REPLICAS, _NOISES = 12, 400
STATIONARY = (
    "day and night",
    "bursts in groups",
    "rotating",
    "never seen",
    "capped",
    "biased by size",
    "independent",
    "on-off",
    "long absences",
)
KINDS = ("drifting", *STATIONARY)


def _chains(pi: Array, nu: Array | float, rng: np.random.Generator, rounds: int) -> Masks:
    there = rng.random(pi.size) < pi
    rows = []
    for _ in range(rounds):
        rows.append(there)
        there = rng.random(pi.size) < (1 - nu) * pi + nu * there
    return np.array(rows)


def hidden(kind: str, seed: int) -> tuple[Draw, int, Array | None]:
    """Return a process, how many rounds its log has, and sizes where they matter."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    count, rounds = int(rng.integers(20, 81)), int(rng.integers(400, 801))
    if kind == "day and night":
        count = 200
    pi, sizes = rng.beta(1.5, 2.5, count).clip(0.03, 0.97), None
    hour, zone = np.arange(rounds)[:, None], np.arange(count) % 3 * 8
    groups, per = np.arange(count) % 5, int(rng.integers(4, 13))
    nu = rng.uniform(0.3, 0.9, count)

    def coins(r: np.random.Generator, chances: Array) -> Masks:
        return r.random((rounds, count)) < chances

    if kind == "drifting":
        rate = rng.uniform(0, 6, count)
        chances = 0.6 * np.exp(-rate * hour / rounds)
        return lambda r, _: coins(r, chances), rounds, None
    if kind == "day and night":
        night = (hour + zone) % 24 < 10
        return lambda r, _: coins(r, pi * np.where(night, 0.9, 0.1)), rounds, None
    if kind == "bursts in groups":
        return (
            lambda r, n: _chains(np.full(5, 0.4), 0.8, r, n)[:, groups] & coins(r, pi + 0.02),
            rounds,
            None,
        )
    if kind == "rotating":
        turn = (hour // per) % 5 == groups
        return lambda r, _: turn & coins(r, np.sqrt(pi)), rounds, None
    if kind == "never seen":
        pi[rng.permutation(count)[: count // 10]] = 0
        return lambda r, _: coins(r, pi), rounds, None
    if kind == "capped":

        def capped(r: np.random.Generator, n: int) -> Masks:
            there = _chains(pi, 0.5, r, n)
            order = np.where(there, r.random(there.shape), 2).argsort(axis=1).argsort(axis=1)
            return there & (order < 5)

        return capped, rounds, None
    if kind == "biased by size":
        sizes = np.exp(rng.normal(0, 1, count))
        pi = (0.5 * sizes / sizes.mean()).clip(0.05, 0.9)
        return lambda r, _: coins(r, pi), rounds, sizes
    if kind == "independent":
        return lambda r, _: coins(r, pi), rounds, None
    if kind == "on-off":
        return lambda r, n: _chains(pi, nu, r, n), rounds, None
    return lambda r, n: _chains(pi, 0.97, r, n), rounds, None


class _Truth:
    """Fresh rounds of the process among those the log has seen, each client's weight in view."""

    def __init__(self, advice: Advice, draw: Draw, seed: int) -> None:
        self.advice, population = advice, advice.population
        self.rounds, self.ever = population.log.n_rounds, population.ever
        rng = np.random.default_rng([seed, 99])
        self.drawn = np.stack([draw(rng, self.rounds) for _ in range(_REPLICAS)], axis=1)

    def error(self, name: str) -> float:
        population, found = self.advice.population, self.advice.named(name)
        alpha = population.importance[self.ever]
        alpha, pi = alpha / alpha.sum(), population.log.marginals[self.ever]
        emphasis = alpha * alpha.size
        run, alike = {
            "fedavg": (plain_rounds._weighted(lambda t: plain_rounds._normalised(t * alpha)), 0),
            "fedau": (plain_rounds.fedau(found.options.get("cutoff", 0), emphasis), 0),
            "fedar": (plain_rounds.fedar, 1),
            "mifa": (plain_rounds.mifa, 1),
            "fedvarp": (plain_rounds.fedvarp, 1),
            "scaffold": (plain_rounds.scaffold, 1),
            "fedavg-is": (plain_rounds.inverse(alpha, pi), 0),
            "unbiased": (plain_rounds.inverse(alpha, pi), 0),
            "adafed": (plain_rounds.adafed(alpha, pi), 0),
            "f3ast": (plain_rounds.f3ast(alpha, (pi.size + 1) // 2), 0),
        }[name]
        step = found.step * emphasis[:, None] if alike else found.step
        if name == "scaffold" and np.ptp(alpha):
            run = _scaffold
        late = 3 * self.rounds // 4
        targets, there = population.importance, self.drawn[:, :, self.ever]
        models = run(iter(there), np.eye(targets.size)[self.ever], step)
        weights = np.array(list(islice(models, late, self.rounds)))
        sums = weights.sum(axis=-1, keepdims=True)
        halves = np.array_split(np.arange(_REPLICAS), 2)
        squares = 0.0
        for chosen, measured in (halves, halves[::-1]):
            # Optima are the worst for one half of the runs and are tried on the other.
            ratio = (weights / sums)[:, chosen].mean(axis=(0, 1)) / targets
            order = ratio.argsort(kind="stable")
            middle = order[np.searchsorted(np.cumsum(targets[order]), 0.5)]
            optima = np.sign(ratio - ratio[middle])
            optima[middle] = -(targets @ optima) / targets[middle]
            away = population.radius * (weights - sums * targets)[:, measured] @ optima
            squares += float((away**2).mean()) / 2
        rng, noise = np.random.default_rng(5), np.zeros((self.ever.size, _NOISES))

        def noisy() -> Iterator[Masks]:
            for mask in there[:, :1]:
                noise[:] = rng.standard_normal(noise.shape)
                yield mask

        noises = np.array(list(islice(run(noisy(), noise, step), late, self.rounds)))
        sigma = population.training.noise
        return float(np.sqrt(squares + ((1 - sums) ** 2).mean() + sigma**2 * (noises**2).mean()))


def _scaffold(masks: Iterator[Masks], optima: Array, s: Array) -> Iterator[Array]:
    """Run SCAFFOLD on losses multiplied by targets: gradients are, and steps alike."""
    least = float(s.min())
    emphasis, x = s / s.mean(), None
    step = float(s.mean())
    for mask in masks:
        there, who = mask.astype(float), mask[:, :, None]
        if x is None:
            x, c = (
                np.zeros((len(there), optima.shape[1])),
                np.zeros((*there.shape, optima.shape[1])),
            )
        gradient = emphasis * (x[:, None] - optima)
        change = -step * (gradient - c + c.mean(axis=1, keepdims=True))
        share = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
        x = x + (share[:, :, None] * change).sum(axis=1)
        c = np.where(who, gradient, c)
        assert least > 0
        yield x


NAMES = ("fedavg", "fedau", "mifa", "unbiased", "f3ast")


def judged(kind: str, seed: int) -> dict[str, float]:
    """Return what was advised on a hidden log, and what is true of it."""
    draw, rounds, sizes = hidden(kind, seed)
    masks = draw(np.random.default_rng([seed, 7]), rounds)
    began = time.process_time()
    advice = advise(AvailabilityLog.from_masks(masks), sizes)
    seconds = time.process_time() - began
    truth = _Truth(advice, draw, seed)
    best = advice.best if advice.best.name != "ca-fed" else advice.fallback
    errors = {name: truth.error(name) for name in dict.fromkeys((*NAMES, best.name))}
    low, high = best.interval
    inside = [
        one.interval[0] <= errors[one.name] <= one.interval[1]
        for one in advice.algorithms
        if one.name in errors
    ]
    print(
        f"{kind} {seed}: {masks.shape[1]} clients, {rounds} rounds; {best.called}: "
        f"{best.error:.3f} ({low:.3f} to {high:.3f}), true {errors[best.name]:.3f}; best "
        f"{min(errors, key=errors.__getitem__)} {min(errors.values()):.3f}; "
        f"{sum(inside)}/{len(inside)}; drifts {advice.population.drifts}; {seconds:.0f} s",
        flush=True,
    )
    if "-v" in sys.argv:
        for one in advice.algorithms:
            if one.name in errors:
                print(
                    f"    {one.name:10} {one.error:.3f} ({one.interval[0]:.3f} {one.interval[1]:.3f}) true {errors[one.name]:.3f}  bias {one.log.at_worst:.3f} sway {one.sway_at_worst:.3f} noise {one.noise:.3f} left {one.left:.3f}"
                )
    return {
        "within": low <= errors[best.name] <= high,
        "width": (high - low) / best.error,
        "regret": errors[best.name] / min(errors.values()),
        "all within": sum(inside) / len(inside),
        "drifts": advice.population.drifts,
    }


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    kinds = [k for k in KINDS if not words[2:] or k in words[2:]]
    res = {
        (k, s): judged(k, s)
        for s in range(int(words[1]) if len(words) > 1 else 0, int(words[0]))
        for k in kinds
    }
    vals = list(res.values())
    print(
        "within",
        np.mean([v["within"] for v in vals]),
        "width",
        np.median([v["width"] for v in vals]),
        "all",
        np.mean([v["all within"] for v in vals]),
        "regret<=1.2",
        np.mean([v["regret"] <= 1.2 for (k, _), v in res.items() if k != "drifting"]),
    )

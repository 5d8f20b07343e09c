"""How accurate `fltheory advise` is on logs of processes that it does not know.

    PYTHONPATH=. python benchmarks/advice_hidden_logs.py [SEEDS [FIRST [KIND ...]]]

Ten kinds of clients each leave a log of 400 to 800 rounds, and the advice is based on that alone.
The truth is simulated in plain NumPy (tests/advice/plain_rounds.py), without the package's engines:
each algorithm runs at its advised step, with its inputs taken from the log, through fresh rounds of
the true process. Its error is measured over the last quarter of as many rounds as the log has, for
the optima that are worst for its true mean weights: chosen on one half of twelve runs and measured
on the other. MIFA stands for FedVARP and SCAFFOLD, which are within a few per cent of it, and
Unbiased for FedAvg-IS, which it equals. A line for each log gives clients and rounds, the advised
algorithm, its error and interval, the true error, and the ratio of that to the best algorithm's.
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
Rng = np.random.Generator
Draw = Callable[[Rng], Masks]
_REPLICAS, _NOISES = 12, 400
NAMES = ("fedavg", "fedau", "mifa", "unbiased", "f3ast")
ALIKE = ("fedar", "mifa", "fedvarp", "scaffold")


def _chains(pi: Array, nu: Array | float, rng: Rng, rounds: int) -> Masks:
    rows = [rng.random(pi.size) < pi]
    for _ in range(rounds - 1):
        rows.append(rng.random(pi.size) < (1 - nu) * pi + nu * rows[-1])
    return np.array(rows)


def _drifting(rng: Rng, pi: Array, rounds: int) -> Draw:
    chances = 0.6 * np.exp(-rng.uniform(0, 6, pi.size) * np.arange(rounds)[:, None] / rounds)
    return lambda r: r.random(chances.shape) < chances


def _day_and_night(rng: Rng, pi: Array, rounds: int) -> Draw:
    night = (np.arange(rounds)[:, None] + np.arange(pi.size) % 3 * 8) % 24 < 10
    return lambda r: r.random(night.shape) < pi * np.where(night, 0.9, 0.1)


def _bursts(rng: Rng, pi: Array, rounds: int) -> Draw:
    group = np.arange(pi.size) % 5
    return lambda r: (
        _chains(np.full(5, 0.4), 0.8, r, rounds)[:, group] & (r.random((rounds, pi.size)) < pi)
    )


def _rotating(rng: Rng, pi: Array, rounds: int) -> Draw:
    turn = np.arange(rounds)[:, None] // int(rng.integers(4, 13)) % 5 == np.arange(pi.size) % 5
    return lambda r: turn & (r.random(turn.shape) < np.sqrt(pi))


def _never_seen(rng: Rng, pi: Array, rounds: int) -> Draw:
    there = np.where(rng.permutation(pi.size) < pi.size // 10, 0, pi)
    return lambda r: r.random((rounds, pi.size)) < there


def _capped(rng: Rng, pi: Array, rounds: int) -> Draw:
    def draw(r: Rng) -> Masks:
        there = _chains(pi, 0.5, r, rounds)
        order = np.where(there, r.random(there.shape), 2).argsort(axis=1).argsort(axis=1)
        return there & (order < 5)

    return draw


def _on_off(rng: Rng, pi: Array, rounds: int) -> Draw:
    nu = rng.uniform(0.3, 0.9, pi.size)
    return lambda r: _chains(pi, nu, r, rounds)


PROCESSES: dict[str, Callable[[Rng, Array, int], Draw]] = {
    "drifting": _drifting,
    "day and night": _day_and_night,
    "bursts in groups": _bursts,
    "rotating": _rotating,
    "never seen": _never_seen,
    "capped": _capped,
    "biased by size": lambda rng, pi, rounds: lambda r: r.random((rounds, pi.size)) < pi,
    "independent": lambda rng, pi, rounds: lambda r: r.random((rounds, pi.size)) < pi,
    "on-off": _on_off,
    "long absences": lambda rng, pi, rounds: lambda r: _chains(pi, 0.97, r, rounds),
}


def hidden(kind: str, seed: int) -> tuple[Draw, Array | None]:
    """Return a process, and its clients' sizes if availability depends on them."""
    rng = np.random.default_rng([list(PROCESSES).index(kind), seed])
    count = 200 if kind == "day and night" else int(rng.integers(20, 81))
    pi, rounds, sizes = (
        rng.beta(1.5, 2.5, count).clip(0.03, 0.97),
        int(rng.integers(400, 801)),
        None,
    )
    if kind == "biased by size":
        sizes = np.exp(rng.normal(0, 1, count))
        pi = (0.5 * sizes / sizes.mean()).clip(0.05, 0.9)
    return PROCESSES[kind](rng, pi, rounds), sizes


class Truth:
    """Fresh rounds of a process, in which algorithms' errors are measured."""

    def __init__(self, advice: Advice, draw: Draw, seed: int) -> None:
        self.advice, ever = advice, advice.population.ever
        rng = np.random.default_rng([seed, 99])
        self.drawn = np.stack([draw(rng)[:, ever] for _ in range(_REPLICAS)], axis=1)

    def error(self, name: str) -> float:
        """Return the root-mean-square error late in the rounds, at the worst optima."""
        population, found = self.advice.population, self.advice.named(name)
        alpha, pi = population.importance[population.ever], population.log.marginals
        alpha, pi = alpha / alpha.sum(), pi[population.ever]
        emphasis = alpha * alpha.size
        run = {
            "fedavg": plain_rounds.weighted_fedavg(alpha),
            "fedau": plain_rounds.fedau(found.options.get("cutoff", 0), emphasis),
            "fedar": plain_rounds.fedar,
            "mifa": plain_rounds.mifa,
            "fedvarp": plain_rounds.fedvarp,
            "scaffold": plain_rounds.scaffold,
            "fedavg-is": plain_rounds.inverse(alpha, pi),
            "unbiased": plain_rounds.inverse(alpha, pi),
            "adafed": plain_rounds.adafed(alpha, pi),
            "f3ast": plain_rounds.f3ast(alpha, (pi.size + 1) // 2),
        }[name]
        step = found.step * emphasis[:, None] if name in ALIKE else found.step
        rounds = len(self.drawn)
        optima = np.eye(population.log.n_clients)[population.ever]
        models = run(iter(self.drawn), optima, step)
        weights = np.array(list(islice(models, 3 * rounds // 4, rounds)))
        moved = weights.sum(axis=-1, keepdims=True)
        squares = float(((1 - moved) ** 2).mean()) + self._sway(weights, moved)
        noise, rng = np.zeros((pi.size, _NOISES)), np.random.default_rng(5)

        def noisy() -> Iterator[Masks]:
            for there in self.drawn:
                noise[:] = rng.standard_normal(noise.shape)
                yield there

        noises = np.array(list(islice(run(noisy(), noise, step), 3 * rounds // 4, rounds)))
        return float(np.sqrt(squares + population.training.noise**2 * (noises**2).mean()))

    def _sway(self, weights: Array, moved: Array) -> float:
        population = self.advice.population
        targets, squares = population.importance, 0.0
        halves = np.array_split(np.arange(_REPLICAS), 2)
        for chosen, measured in (halves, halves[::-1]):
            ratio = (weights / moved)[:, chosen].mean(axis=(0, 1)) / targets
            order = ratio.argsort(kind="stable")
            middle = order[np.searchsorted(np.cumsum(targets[order]), 0.5)]
            optima = np.sign(ratio - ratio[middle])
            optima[middle] = -(targets @ optima) / targets[middle]
            away = population.radius * (weights - moved * targets)[:, measured] @ optima
            squares += float((away**2).mean()) / 2
        return squares


def judged(kind: str, seed: int) -> tuple[bool, float, float]:
    """Print a line on a log; return whether the interval is right, its width, and the excess."""
    draw, sizes = hidden(kind, seed)
    masks = draw(np.random.default_rng([seed, 7]))
    began = time.process_time()
    advice = advise(AvailabilityLog.from_masks(masks), sizes)
    seconds = time.process_time() - began
    truth = Truth(advice, draw, seed)
    best = advice.best if advice.best.name != "ca-fed" else advice.fallback
    errors = {name: truth.error(name) for name in dict.fromkeys((*NAMES, best.name))}
    (low, high), true, least = best.interval, errors[best.name], min(errors.values())
    cells = (
        kind,
        f"{masks.shape[1]}, {masks.shape[0]}",
        best.title,
        f"{best.error:.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{true:.3f}",
        f"{true / least:.2f}",
    )
    print(f"| {' | '.join(cells)} | ({seconds:.0f} s)", flush=True)
    for one in advice.algorithms:
        if "-v" in sys.argv and one.name in errors:
            low_, high_ = one.interval
            print(
                f"  {one.name}: {one.error:.3f}, {low_:.3f} to {high_:.3f}, {errors[one.name]:.3f}"
            )
    return low <= true <= high, (high - low) / best.error, true / least


def main(seeds: int = 1, first: int = 0, *kinds: str) -> None:
    """Judge logs of each kind; print a line for each, and how many intervals hold the truth."""
    told = [
        (kind, *judged(kind, seed))
        for seed in range(first, first + seeds)
        for kind in kinds or PROCESSES
    ]
    excess = [one[-1] for one in told if one[0] != "drifting"]
    said = (
        f"{sum(one[1] for one in told)} of {len(told)} true errors are within their interval, "
        f"whose median width is {np.median([one[2] for one in told]):.2f} of the estimate; "
        f"{sum(times <= 1.2 for times in excess)} of {len(excess)} advised algorithms, without the "
        "drifting logs, have at most 1.2 times the error of the best."
    )
    print(said)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    main(*map(int, words[:2]), *words[2:])

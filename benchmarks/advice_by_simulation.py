"""What `fltheory advise` says of a log, beside long simulations in plain NumPy.

    PYTHONPATH=. python benchmarks/advice_by_simulation.py LOG [ROUNDS [ALGORITHM ...]]

Rounds are those of `tests/advice/plain_rounds.py`, along the fitted chains and along the log over
and over; gradients' noise is drawn, too. `error` is measured, not put together from its parts: the
root mean square distance from the optimum for optima at their worst.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import cycle, islice

import numpy as np

from fltheory.advice import Advice, AlgorithmAdvice, advise
from fltheory.logs import read_log
from tests.advice import plain_rounds

_NOISES = 8
_REPLICAS = {"process": 2, "log": 1}

Array = np.ndarray


class _Setting:
    """All clients' orthogonal optima, and coordinates of nothing but noise, drawn anew."""

    def __init__(self, advice: Advice, seed: int) -> None:
        self.population = advice.population
        self.count = self.population.log.n_clients
        self.rng = np.random.default_rng(seed)
        every = np.hstack([np.eye(self.count), np.zeros((self.count, _NOISES))])
        self.optima = every[self.population.ever]
        targets = self.population.distances.targets
        self.server = np.concatenate([targets, np.zeros(_NOISES)])

    def masks(self, where: str) -> Iterator[Array]:
        chains, log = self.population.chains, self.population.log
        replicas = _REPLICAS[where]
        if where == "process":
            drawn = plain_rounds.chains(chains.availability, chains.correlation, replicas, seed=5)
        else:
            record = log.present()[:, self.population.ever]
            drawn = cycle(np.repeat(record[:, None], replicas, axis=1))
        for mask in drawn:
            self.optima[:, -_NOISES:] = self.rng.standard_normal((len(self.optima), _NOISES))
            self.server[-_NOISES:] = self.rng.standard_normal(_NOISES)
            yield mask

    def losses(self, x: Array) -> Array:
        weights, noise = x[:, : self.count], x[:, -_NOISES:]
        square = self.population.radius**2 * (
            (weights**2).sum(axis=1, keepdims=True) - 2 * weights[:, self.population.ever] + 1
        )
        sigma = self.population.training.noise
        return (square + sigma**2 * (noise**2).mean(axis=1, keepdims=True)) / 2


def _rounds(found: AlgorithmAdvice, setting: _Setting) -> Callable[..., Iterator[Array]]:
    pi = setting.population.chains.availability
    alpha = setting.population.importance[setting.population.ever]
    alpha = alpha / alpha.sum()
    everybody = np.full(pi.size, 1 / pi.size)
    table = {
        "fedavg": plain_rounds.fedavg,
        "fedar": plain_rounds.fedar,
        "mifa": plain_rounds.mifa,
        "fedvarp": plain_rounds.fedvarp,
        "scaffold": plain_rounds.scaffold,
        "fedavg-is": plain_rounds.inverse(everybody, pi),
        "unbiased": plain_rounds.inverse(alpha, pi),
        "adafed": plain_rounds.adafed(alpha, pi),
        "f3ast": plain_rounds.f3ast(alpha, (pi.size + 1) // 2),
        "safari": plain_rounds.safari(setting.server),
        "ca-fed": plain_rounds.ca_fed(alpha, setting.losses),
    }
    if found.name == "fedau":
        return plain_rounds.fedau(int(found.options["cutoff"]))
    return table[found.name]


def _simulated(advice: Advice, found: AlgorithmAdvice, where: str, rounds: int) -> dict[str, float]:
    setting = _Setting(advice, seed=9)
    population, distances = setting.population, setting.population.distances
    settled = rounds // 4
    run = _rounds(found, setting)(setting.masks(where), setting.optima, found.step)
    total = np.zeros((_REPLICAS[where], setting.count))
    squares = noise = 0.0
    late = []
    for x in islice(run, settled, rounds):
        weights = x[:, : setting.count]
        total += weights
        squares += float((weights**2).sum(axis=1).mean()) / (rounds - settled)
        noise += float((x[:, -_NOISES:] ** 2).mean()) / (rounds - settled)
        late.append(weights[0].astype(np.float32))
    means = total / (rounds - settled)
    full = means.mean(axis=0)
    worst = distances.parts(full)
    # Optima along one line, each as far off as it may be: the farthest for the mean model.
    ratio = full / distances.targets
    median = np.sort(ratio)[ratio.size // 2]
    optima = distances.radius * np.sign(ratio - median)
    away = (np.stack(late) - distances.targets) @ optima
    sigma2 = population.training.noise**2
    sway = distances.radius**2 * max(squares - float((means**2).sum(axis=1).mean()), 0)
    scatter = float(((means - means.mean(axis=0)) ** 2).sum()) / max(len(means) - 1, 1) / len(means)
    unrelated = distances.unrelated(full) ** 2 - distances.radius**2 * scatter
    return {
        "unrelated": float(np.sqrt(max(unrelated, 0))),
        "+-": distances.radius * scatter**0.5,
        "at worst": float(worst.sum()),
        "of rare": float(worst[advice.rare].sum()),
        "of never": float(worst[population.never].sum()),
        "sway": sway**0.5,
        "noise": (sigma2 * noise) ** 0.5,
        "error": float(np.sqrt((away**2).mean() + sigma2 * noise)),
        "usual error": float(np.sqrt(max(unrelated, 0) + sway + sigma2 * noise)),
    }


def _advised(advice: Advice, found: AlgorithmAdvice, where: str) -> dict[str, float]:
    bias = getattr(found, where)
    said = {"unrelated": bias.unrelated, "+-": bias.error, "at worst": bias.at_worst}
    if found.name == "fedavg" and where == "process":
        parts = advice.fedavg_parts
        said["of rare"] = float(parts[advice.rare].sum())
        said["of never"] = float(parts[advice.population.never].sum())
    said |= {"sway": found.sway, "noise": found.noise}
    return said | {"error": found.error, "usual error": found.usual_error}


def main(log: str, rounds: int = 20_000, *names: str) -> None:
    """Print what is advised beside what is simulated."""
    advice = advise(read_log(log))
    for found in advice.algorithms:
        if found.name in (names or [algorithm.name for algorithm in advice.algorithms]):
            for where in ("process", "log"):
                for kind, values in (
                    ("advised", _advised(advice, found, where)),
                    ("simulated", _simulated(advice, found, where, rounds)),
                ):
                    told = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
                    print(f"{found.called}, {where}, {kind}: {told}", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0], *map(int, given[1:2]), *given[2:])

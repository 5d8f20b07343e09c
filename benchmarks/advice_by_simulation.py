"""What `fltheory advise` says of a log, beside long simulations in plain NumPy.

    PYTHONPATH=. python benchmarks/advice_by_simulation.py LOG [ROUNDS [ALGORITHM ...]]

Rounds are those of `tests/advice/plain_rounds.py`, along the fitted chains and along the log over
and over; gradients' noise is drawn, too. `error` is measured, not put together from its parts: the
root mean square distance from the optimum for optima at their worst.

The largest bias of simulated weights errs upwards, as optima are chosen that suit what is left of
chance in each weight. `held out` errs downwards: optima chosen by one half of the rounds, measured
on the other. The truth is between, but for what both scatter.

CA-Fed has no long run, as its least losses so far go on falling: it is followed from where the
advice begins, for as many rounds, in sixteen runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import cycle, islice

import numpy as np

from fltheory.advice import Advice, AlgorithmAdvice, advise
from fltheory.advice.population import Distances
from fltheory.advice.rounds import settling_rounds
from fltheory.logs import read_log
from tests.advice import plain_rounds

_NOISES = 8
_REPLICAS = {"process": 2, "log": 1}
_CA_FED_REPLICAS = {"process": 16, "log": 1}

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

    def masks(self, where: str, replicas: int) -> Iterator[Array]:
        chains, log = self.population.chains, self.population.log
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
        # The start's direction, of which no optimum has anything.
        square += (1 - weights.sum(axis=1, keepdims=True)) ** 2
        sigma = self.population.training.noise
        return (square + sigma**2 * (noise**2).mean(axis=1, keepdims=True)) / 2


def _rounds(
    found: AlgorithmAdvice, setting: _Setting, where: str
) -> Callable[..., Iterator[Array]]:
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
        "ca-fed": plain_rounds.ca_fed(
            alpha, setting.losses, start=setting.server if where == "process" else 0.0
        ),
    }
    if found.name == "fedau":
        return plain_rounds.fedau(int(found.options["cutoff"]))
    return table[found.name]


def _farthest(distances: Distances, weights: Array) -> Array:
    """Return optima on a line, each as far off as it may be, that these weights miss by most."""
    ratio, targets = weights / distances.targets, distances.targets
    order = np.argsort(ratio, kind="stable")
    half = int(np.searchsorted(np.cumsum(targets[order]), targets.sum() / 2))
    middle = order[half]
    optima = np.full(ratio.size, -1.0)
    optima[order[half:]] = 1.0
    # Their mean is the optimum: the one in the middle makes up for the others.
    optima[middle] = -(targets @ optima - targets[middle] * optima[middle]) / targets[middle]
    return distances.radius * optima


def _ca_fed_rounds(advice: Advice, found: AlgorithmAdvice, where: str) -> tuple[int, int]:
    """Return the rounds before those that count for the advice, and all of them."""
    if where == "process":
        half = settling_rounds(found.step)
        return half, 2 * half
    return advice.population.log.n_rounds, 2 * advice.population.log.n_rounds


def _simulated(advice: Advice, found: AlgorithmAdvice, where: str, rounds: int) -> dict[str, float]:
    setting = _Setting(advice, seed=9)
    population, distances = setting.population, setting.population.distances
    settled, replicas = rounds // 4, _REPLICAS[where]
    if found.name == "ca-fed":
        settled, rounds = _ca_fed_rounds(advice, found, where)
        replicas = _CA_FED_REPLICAS[where]
    run = _rounds(found, setting, where)(setting.masks(where, replicas), setting.optima, found.step)
    halves = np.zeros((2, replicas, setting.count))
    squares = noise = 0.0
    late = []
    for index, x in enumerate(islice(run, settled, rounds)):
        weights = x[:, : setting.count]
        halves[2 * index // (rounds - settled)] += weights
        squares += float((weights**2).sum(axis=1).mean()) / (rounds - settled)
        noise += float((x[:, -_NOISES:] ** 2).mean()) / (rounds - settled)
        if index % (1 + rounds // 20_000) == 0:
            late.append(weights[0].astype(np.float32))
    means = halves.sum(axis=0) / (rounds - settled)
    full = means.mean(axis=0)
    worst = distances.parts(full)
    one, other = halves.mean(axis=1) / ((rounds - settled) / 2)
    held_out = [
        float(_farthest(distances, chosen) @ (measured - distances.targets))
        for chosen, measured in ((one, other), (other, one))
    ]
    away = (np.stack(late) - distances.targets) @ _farthest(distances, full)
    sigma2 = population.training.noise**2
    sway = distances.radius**2 * max(squares - float((means**2).sum(axis=1).mean()), 0)
    scatter = float(((means - means.mean(axis=0)) ** 2).sum()) / max(len(means) - 1, 1) / len(means)
    unrelated = distances.unrelated(full) ** 2 - distances.radius**2 * scatter
    return {
        "unrelated": float(np.sqrt(max(unrelated, 0))),
        "+-": distances.radius * scatter**0.5,
        "at worst": float(worst.sum()),
        "held out": sum(held_out) / 2,
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


def _row(found: AlgorithmAdvice, told: dict[tuple[str, str], dict[str, float]]) -> str:
    """Return a line of the page's table: what is simulated, and what is advised."""

    def between(where: str) -> str:
        values = told[where, "simulated"]
        return f"{values['held out']:.4f} to {values['at worst']:.4f}"

    simulated, advised = told["process", "simulated"], told["process", "advised"]
    error = max(told[where, "simulated"]["error"] for where in ("process", "log"))
    cells = (
        found.title,
        f"{simulated['unrelated']:.4f} ± {simulated['+-']:.4f}",
        f"{advised['unrelated']:.4f}" + (f" ± {advised['+-']:.4f}" if advised["+-"] else ""),
        between("process"),
        f"{advised['at worst']:.4f}",
        between("log"),
        f"{told['log', 'advised']['at worst']:.4f}",
        f"{error:.3f}",
        f"{found.error:.3f}",
    )
    return f"| {' | '.join(cells)} |"


def main(log: str, rounds: int = 20_000, *names: str) -> None:
    """Print what is advised beside what is simulated, then as lines of a table."""
    advice = advise(read_log(log))
    rows = []
    for found in advice.algorithms:
        if found.name in (names or [algorithm.name for algorithm in advice.algorithms]):
            told = {}
            for where in ("process", "log"):
                told[where, "advised"] = _advised(advice, found, where)
                told[where, "simulated"] = _simulated(advice, found, where, rounds)
                for kind in ("advised", "simulated"):
                    values = told[where, kind].items()
                    words = ", ".join(f"{name} {value:.4f}" for name, value in values)
                    print(f"{found.called}, {where}, {kind}: {words}", flush=True)
            rows.append(_row(found, told))
    print("\n".join(rows))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0], *map(int, given[1:2]), *given[2:])

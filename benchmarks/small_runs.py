"""Thousands of small runs of one-dimensional piecewise quadratic clients, over all paths.

It is written from the papers' algorithms and definitions with NumPy alone, using nothing of the
package. Clients have three curvatures, separated by two shared kinks, and a tilt each, so that
their mean is of the same kind, minima are at one of three points, and, if all have the same
curvatures, ``sigma_G`` is exactly the largest distance of a tilt from the mean tilt. Noise is
+-sigma with probability 1/2 each. Arrays are (settings, paths).

Each function returns a `Batch`: a statement's left sides, and the values of its symbols by name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Batch:
    """Many settings: left sides (n,), and symbols (n,), or (n, rounds) if they depend on the round.

    A left side below ``floor`` counts as rounding. Losses and start are those of a run.
    """

    truth: Array
    values: Mapping[str, Any]
    floor: Any = 1e-280
    losses: Losses | None = None
    start: Array | None = None


@dataclass(frozen=True)
class Losses:
    """``F_i' = a_0 (x-l)_- + a_1 ((x-l)_+ up to u-l) + a_2 (x-u)_+ + tilt_i``."""

    curvatures: Array  # (n, clients, 3)
    kinks: Array  # (n, 2)
    tilts: Array  # (n, clients)

    def _parts(self, x: Array) -> tuple[Array, Array, Array, Array]:
        low, high = self.kinks[:, :1], self.kinks[:, 1:]
        below, above = np.minimum(x - low, 0), np.maximum(x - high, 0)
        return below, np.clip(x - low, 0, high - low), above, high - low

    def slope(self, client: int, x: Array) -> Array:
        """Return a client's gradient at (n, paths)."""
        below, inside, above, _ = self._parts(x)
        a = self.curvatures[:, client, :, None]
        return a[:, 0] * below + a[:, 1] * inside + a[:, 2] * above + self.tilts[:, client, None]

    def value(self, client: int, x: Array) -> Array:
        """Return a client's loss at (n, paths)."""
        below, inside, above, width = self._parts(x)
        a = self.curvatures[:, client, :, None]
        bent = (a[:, 0] * below**2 + a[:, 1] * inside**2 + a[:, 2] * above**2) / 2
        return bent + a[:, 1] * width * above + self.tilts[:, client, None] * x

    def mean(self, weights: Array) -> Losses:
        """Return the weighted mean as a single client; weights are (n, clients)."""
        curvatures = (weights[..., None] * self.curvatures).sum(axis=1, keepdims=True)
        tilts = (weights * self.tilts).sum(axis=1, keepdims=True)
        return Losses(curvatures, self.kinks, tilts)

    @property
    def rounding(self) -> Array:
        """Return lengths, (n,), far below all positions and far above their rounding."""
        optima = [np.abs(self.minimum(i)[0]) for i in range(self.tilts.shape[1])]
        return 1e-12 * np.maximum(np.abs(self.kinks).max(axis=1), np.max(optima, axis=0))

    def minimum(self, client: int = 0) -> tuple[Array, Array]:
        """Return the minimiser of a client's loss, (n,), and the minimum."""
        a, tilt = self.curvatures[:, client], self.tilts[:, client]
        low, high = self.kinks.T
        with np.errstate(all="ignore"):
            first = np.minimum(low - tilt / a[:, 0], low)
            second = np.clip(low - tilt / a[:, 1], low, high)
            third = np.maximum(high - (tilt + a[:, 1] * (high - low)) / a[:, 2], high)
        points = np.stack([first, second, third], axis=1)
        points = np.where(np.isfinite(points), points, low[:, None])
        values = self.value(client, points)
        best = values.argmin(axis=1)
        rows = np.arange(best.size)
        return points[rows, best], values[rows, best]


def local_runs(
    losses: Losses,
    client: int,
    x: Array,
    steps: int,
    lr: Array,
    noise: Array | None,
    shift: Any = 0,
) -> list[tuple[Array, Array]]:
    """Return the ends of local SGD and the sums of true gradients, for equally likely paths."""
    runs = [(x, np.zeros_like(x))]
    for _ in range(steps):
        longer = []
        for y, total in runs:
            slope = losses.slope(client, y)
            for sign in (0,) if noise is None else (1, -1):
                away = slope + shift + (0 if noise is None else sign * noise)
                longer.append((y - lr * away, total + slope))
        runs = longer
    return runs


def _log(rng: Rng, low: float, high: float, *shape: int) -> Array:
    return np.asarray(10 ** rng.uniform(low, high, shape))


def _drawn_losses(rng: Rng, n: int, clients: int, kind: str, *, shared: bool = True) -> Losses:
    """Draw losses: "quadratic", "convex" (mu > 0), "nonconvex" or "bounded" (bounded gradients)."""
    each = 1 if shared else clients
    size = _log(rng, -2, 2, n, 1, 1)
    shape = _log(rng, -2, 0, n, each, 3)
    if kind == "quadratic":
        shape = np.repeat(shape[..., :1], 3, axis=2)
    elif kind == "nonconvex":
        shape[..., 1] *= rng.choice([-1, -1, 1], (n, each))
    elif kind == "bounded":
        shape[..., [0, 2]] = 0
    length = _log(rng, -1, 1, n, 1)
    middle = rng.normal(size=(n, 1)) * length * (kind != "bounded")
    kinks = np.concatenate([middle - length, middle + length * rng.uniform(0.1, 2, (n, 1))], axis=1)
    tilts = rng.normal(size=(n, clients)) * _log(rng, -3, 1, n, 1)
    tilts[::3] = np.resize([1.0, -1.0], clients) * _log(rng, -3, 1, tilts[::3].shape[0], 1)
    tilts = tilts * size[:, :, 0] * length
    curvatures = np.repeat(shape * size, clients // each, axis=1)
    if kind == "bounded":
        # Zero lies between the slopes at both ends, so the mean has a minimum between the kinks.
        rise = curvatures[:, 0, 1] * (kinks[:, 1] - kinks[:, 0])
        tilts = tilts - tilts.mean(axis=1, keepdims=True)
        tilts = tilts - (rise * rng.uniform(0.05, 0.95, n))[:, None]
    return Losses(curvatures, kinks, tilts)


def _constants(losses: Losses) -> tuple[Array, Array, Array]:
    """Return L, mu and sigma_G of clients with the same curvatures."""
    bent = losses.curvatures
    apart = losses.tilts - losses.tilts.mean(axis=1, keepdims=True)
    return np.abs(bent).max(axis=(1, 2)), bent.min(axis=(1, 2)), np.abs(apart).max(axis=1)


def _start(rng: Rng, optimum: Array, losses: Losses) -> Array:
    away = rng.normal(size=optimum.size) * _log(rng, -3, 1, optimum.size)
    away[::4] = 0
    return optimum + away * (losses.kinks[:, 1] - losses.kinks[:, 0])


def safari(
    rng: Rng,
    n: int,
    *,
    kind: str,
    eligible: int,
    excluded: int,
    drawn: int,
    steps: int,
    rounds: int,
    noisy: bool,
    theorem: int,
    schedule: Callable[[Array, Array], Array] | None = None,
    only: float | None = None,
    equal_noise: bool = False,
) -> Batch:
    """Run SAFARI; ``schedule`` gives eta_s (Theorem 4) or etabar (5) from m K and R."""
    clients = eligible + excluded
    losses = _drawn_losses(rng, n, clients, kind)
    q = np.where(rng.random(n) < 0.5, _log(rng, -4, 0, n), rng.random(n))
    q[::7], q[1::7] = 0, 1
    if only is not None:
        q[:] = only
    size, mu, apart = _constants(losses)
    share = np.where(rng.random(n) < 0.5, 1.0, _log(rng, -3, 0, n))
    if theorem == 4:
        client_lr = share / (2 * math.sqrt(30) * steps * size)
        if schedule is not None:
            wanted = schedule(np.full(n, float(drawn * steps)), np.full(n, float(rounds)))
            losses = _rescaled(losses, steps * client_lr / 2 / wanted)
            size, mu, apart = _constants(losses)
            client_lr = 2 * wanted / steps
        assist_lr = steps * client_lr / 2
    else:
        client_lr = share / (8 * steps * size)
        if schedule is not None:
            client_lr = 2 * schedule(mu / size, np.full(n, float(rounds))) / (steps * mu)
        assist_lr = steps * client_lr * (size + mu) / (4 * size)
    unit = size * (losses.kinks[:, 1] - losses.kinks[:, 0])
    sigma, server_sigma = (unit * _log(rng, -3, 1, n) * noisy for _ in range(2))
    if equal_noise:
        server_sigma = sigma
    mean = losses.mean(np.full((n, clients), 1 / clients))
    optimum, least = mean.minimum()
    x = _start(rng, optimum, losses)[:, None]
    start = x[:, 0]
    chance = np.ones((n, 1))
    column = [each[:, None] for each in (client_lr, assist_lr, sigma, server_sigma, q)]
    lr, server_lr, noise, server_noise, coin = column
    series: dict[str, list[Array]] = {"g": [], "sum": [], "loss": []}
    subsets = list(itertools.combinations(range(eligible), drawn))
    for _ in range(rounds):
        slope = mean.slope(0, x)
        series["g"].append((chance * slope**2).sum(axis=1))
        gaps = [losses.value(i, x) - losses.value(i, optimum[:, None]) for i in range(eligible)]
        series["loss"].append((chance * sum(gaps)).sum(axis=1) / eligible)
        by_clients = list(_client_rounds(losses, subsets, x, steps, lr, noise if noisy else None))
        sums = [part * (chance * gradient**2).sum(axis=1) for _, gradient, part in by_clients]
        series["sum"].append(np.sum(sums, axis=0))
        ends = [end for end, _, _ in by_clients]
        chances = [chance * coin * part for _, _, part in by_clients]
        signs = (1, -1) if noisy else (0,)
        ends += [x - server_lr * (slope + sign * server_noise) for sign in signs]
        chances += [chance * (1 - coin) / len(signs)] * len(signs)
        if only is not None:
            ends, chances = (each[-1:] if only == 0 else each[:1] for each in (ends, chances))
        x, chance = np.concatenate(ends, axis=1), np.concatenate(chances, axis=1)
    gradients = np.stack(series["g"], axis=1)
    distance = (chance * (x - optimum[:, None]) ** 2).sum(axis=1)
    return Batch(
        gradients.mean(axis=1) if theorem == 4 else distance,
        {
            **{"L": size, "mu": mu, "sigma": sigma, "sigma_s": server_sigma, "sigma_G": apart},
            **{"eta_c": client_lr, "eta_s": assist_lr, "q": q, "K": steps, "m": drawn, "R": rounds},
            "Delta_0": mean.value(0, start[:, None])[:, 0] - least,
            "D_0": np.abs(start - optimum),
            "G_1": gradients.mean(axis=1),
            "G_2": np.stack(series["sum"], axis=1).mean(axis=1),
            "G_3": gradients,
            "G_4": np.stack(series["loss"], axis=1),
        },
        (size * mean.rounding) ** 2 if theorem == 4 else mean.rounding**2,
        losses,
        start,
    )


def _client_rounds(
    losses: Losses,
    subsets: Sequence[Sequence[int]],
    x: Array,
    steps: int,
    lr: Array,
    noise: Array | None,
) -> Iterator[tuple[Array, Array, float]]:
    """Yield the mean of local models, that of their sums of gradients, and the probability."""
    for subset in subsets:
        runs = [local_runs(losses, i, x, steps, lr, noise) for i in subset]
        together = list(itertools.product(*runs))
        for combination in together:
            ends, gradients = (sum(each) / len(subset) for each in zip(*combination, strict=True))
            yield ends, gradients, 1 / (len(subsets) * len(together))


def _rescaled(losses: Losses, factor: Array) -> Losses:
    return Losses(
        losses.curvatures * factor[:, None, None], losses.kinks, losses.tilts * factor[:, None]
    )


def long_safari(
    rng: Rng,
    n: int,
    *,
    theorem: int,
    schedule: Callable[[Array, Array], Array] | None = None,
    equal_noise: bool = False,
) -> Batch:
    """Run SAFARI for up to 3,000 rounds on quadratics of one curvature, computing two moments."""
    rounds = int(rng.choice([30, 100, 300, 1000, 3000]))
    steps, drawn = int(rng.choice([1, 2, 5, 20])), int(rng.choice([1, 1, 2, 4]))
    eligible = drawn + int(rng.choice([0, 1, 4]))
    clients = eligible + int(rng.choice([0, 0, 1, 3, 9]))
    size = _log(rng, -3, 3, n)
    tilts = rng.normal(size=(n, clients)) * _log(rng, -4, 1, n, 1) * size[:, None]
    tilts -= tilts.mean(axis=1, keepdims=True)
    apart = np.abs(tilts).max(axis=1)
    optima = -tilts / size[:, None]
    middle = optima[:, :eligible].mean(axis=1)
    spread = optima[:, :eligible].var(axis=1) / drawn
    spread *= (eligible - drawn) / max(eligible - 1, 1)
    q = np.where(rng.random(n) < 0.7, _log(rng, -4, 0, n), rng.random(n))
    share = np.where(rng.random(n) < 0.5, 1.0, _log(rng, -3, 0, n))
    if theorem == 4:
        client_lr = share / (2 * math.sqrt(30) * steps * size)
        if schedule is not None:
            wanted = schedule(np.full(n, float(drawn * steps)), np.full(n, float(rounds)))
            factor = steps * client_lr / 2 / wanted
            size, apart, client_lr = size * factor, apart * factor, client_lr / factor
        assist_lr = steps * client_lr / 2
    else:
        client_lr = share / (8 * steps * size)
        if schedule is not None:
            client_lr = 2 * schedule(np.ones(n), np.full(n, float(rounds))) / (steps * size)
        assist_lr = steps * client_lr / 2
    sigma, server_sigma = (size * _log(rng, -3, 1, n) for _ in range(2))
    if equal_noise:
        server_sigma = sigma
    start = _log(rng, -3, 2, n) * rng.choice([-1, 1], n)
    decay, power, noise, pull = 1 - client_lr * size, np.ones(n), np.zeros(n), np.zeros(n)
    for _ in range(steps):
        noise += power**2
        pull += (1 - power) ** 2
        power = power * decay
    added = client_lr**2 * sigma**2 * noise / drawn
    server = 1 - assist_lr * size
    first, second = start.copy(), start**2
    gradients, sums, losses = np.zeros(n), np.zeros(n), np.empty((n, rounds))
    squares = np.empty((n, rounds))
    for r in range(rounds):
        squares[:, r] = size**2 * second
        gradients += squares[:, r]
        apart_now = second - 2 * middle * first + middle**2
        sums += ((1 - power) / client_lr) ** 2 * (apart_now + spread) + pull * sigma**2 / drawn
        losses[:, r] = size / 2 * (second - 2 * middle * first)
        by_clients = power**2 * second + 2 * power * (1 - power) * middle * first
        by_clients += (1 - power) ** 2 * (middle**2 + spread) + added
        by_server = server**2 * second + (assist_lr * server_sigma) ** 2
        second = q * by_clients + (1 - q) * by_server
        first = q * (power * first + (1 - power) * middle) + (1 - q) * server * first
    return Batch(
        gradients / rounds if theorem == 4 else second,
        {
            **{"L": size, "mu": size, "sigma": sigma, "sigma_s": server_sigma, "sigma_G": apart},
            **{"eta_c": client_lr, "eta_s": assist_lr, "q": q, "K": steps, "m": drawn, "R": rounds},
            **{"Delta_0": size * start**2 / 2, "D_0": np.abs(start), "G_1": gradients / rounds},
            **{"G_2": sums / rounds, "G_3": squares, "G_4": losses},
        },
    )


def scaffold(
    rng: Rng, n: int, *, kind: str, clients: int, drawn: int, steps: int, rounds: int, noisy: bool
) -> Batch:
    """Run SCAFFOLD with controls that average K gradients; "nonconvex" starts warm."""
    losses = _drawn_losses(rng, n, clients, kind, shared=False)
    size, mu, _ = _constants(losses)
    share = np.where(rng.random(n) < 0.5, 1.0, _log(rng, -3, 0, n))
    server_lr = np.where(rng.random(n) < 0.5, 1.0, _log(rng, 0, 2, n))
    if kind == "nonconvex":
        step = share * (drawn / clients) ** (2 / 3) / (24 * size)
    else:
        with np.errstate(divide="ignore"):
            step = share * np.minimum(1 / (81 * size), drawn / (15 * clients * mu))
    lr = step / (steps * server_lr)
    unit = size * (losses.kinks[:, 1] - losses.kinks[:, 0])
    sigma = unit * _log(rng, -3, 1, n) * noisy
    mean = losses.mean(np.full((n, clients), 1 / clients))
    optimum, least = mean.minimum()
    start = _start(rng, optimum, losses)
    at_optimum = np.stack([losses.slope(i, optimum[:, None])[:, 0] for i in range(clients)], axis=1)
    noise = sigma[:, None] if noisy else None
    x, chance = start[:, None], np.ones((n, 1))
    controls = [np.zeros((n, 1)) for _ in range(clients)]
    if kind == "nonconvex":
        controls, chance = _warm_controls(losses, start, steps, sigma if noisy else None)
        x = np.repeat(x, chance.shape[1], axis=1)
    losses_of, squares = [], []
    subsets = list(itertools.combinations(range(clients), drawn))
    step_lr = lr[:, None]
    for _ in range(rounds):
        losses_of.append((chance * (mean.value(0, x) - least[:, None])).sum(axis=1))
        squares.append((chance * mean.slope(0, x) ** 2).sum(axis=1))
        centre = sum(controls) / clients
        ends, chances = [], []
        renewed: list[list[Array]] = [[] for _ in range(clients)]
        for subset in subsets:
            shifts = [centre - controls[i] for i in subset]
            runs = [
                local_runs(losses, i, x, steps, step_lr, noise, shift)
                for i, shift in zip(subset, shifts, strict=True)
            ]
            together = list(itertools.product(*runs))
            for combination in together:
                moved = [end - x for end, _ in combination]
                ends.append(x + server_lr[:, None] * sum(moved) / drawn)
                chances.append(chance / (len(subsets) * len(together)))
                made = {
                    i: -move / (steps * step_lr) - shift
                    for i, move, shift in zip(subset, moved, shifts, strict=True)
                }
                for i in range(clients):
                    renewed[i].append(made.get(i, controls[i]))
        x, chance = np.concatenate(ends, axis=1), np.concatenate(chances, axis=1)
        controls = [np.concatenate(each, axis=1) for each in renewed]
    values = {
        **{"beta": size, "mu": mu, "sigma": sigma, "eta_l": lr, "eta_g": server_lr, "K": steps},
        **{"S": drawn, "N": clients, "T": rounds, "o": 2, "k": int(kind != "nonconvex")},
        **{"d_U": 0, "m": 0, "D_0": np.abs(start - optimum), "C_0": (at_optimum**2).mean(axis=1)},
        "F_0": mean.value(0, start[:, None])[:, 0] - least,
    }
    if kind == "nonconvex":
        return Batch(np.mean(squares, axis=0), values, (size * mean.rounding) ** 2)
    above = np.stack(losses_of)
    weights = (1 - mu * step / 2) ** -np.arange(1.0, rounds + 1)[:, None]
    values["means"] = above.mean(axis=0)
    floor = size * mean.rounding * np.abs(losses.kinks).max(axis=1)
    return Batch((weights * above).sum(axis=0) / weights.sum(axis=0), values, floor, losses, start)


def _warm_controls(
    losses: Losses, start: Array, steps: int, sigma: Array | None
) -> tuple[list[Array], Array]:
    """Return clients' means of K fresh gradients at x^0 on each path, and the probabilities."""
    clients = losses.tilts.shape[1]
    signs = [sum(each) / steps for each in itertools.product((1, -1), repeat=steps)]
    noise = 0 * start if sigma is None else sigma
    signs = [0.0] if sigma is None else signs
    paths = list(itertools.product(signs, repeat=clients))
    controls = [
        losses.slope(i, start[:, None]) + noise[:, None] * np.array([path[i] for path in paths])
        for i in range(clients)
    ]
    return controls, np.full((start.size, len(paths)), 1 / len(paths))


def fedau(
    rng: Rng,
    n: int,
    *,
    kind: str,
    clients: int,
    steps: int,
    rounds: int,
    noisy: bool,
    near: bool,
    cutoff: Callable[[Array], Array] | None = None,
) -> Batch:
    """Run FedAU; with ``near``, clients are present so often that weights are nearly optimal."""
    losses = _drawn_losses(rng, n, clients, kind)
    size, _, apart = _constants(losses)
    p = rng.uniform(0.9, 1, (n, clients)) if near else rng.uniform(0.05, 1, (n, clients))
    p[::5] = 1
    K = np.ones(n) if near else rng.choice([1, 2, 3, 50], n).astype(float)
    if cutoff is not None:
        K = cutoff(p)
    share = np.where(rng.random(n) < 0.5, 1.0, _log(rng, -3, 0, n))
    gamma = share / (4 * math.sqrt(15) * size * steps)
    # If all are absent until the cut-off or the last round but one, no weight is ever larger.
    most = np.where(p < 1, np.minimum(K, max(rounds - 1, 1))[:, None], 1.0)
    Q = (p * most**2).mean(axis=1)
    limit = np.minimum(1 / (4 * size * steps), clients / ((54 if near else 27) * steps * size * Q))
    eta = np.where(rng.random(n) < 0.5, 1.0, _log(rng, -2, 0, n)) * limit / gamma
    unit = size * (losses.kinks[:, 1] - losses.kinks[:, 0])
    sigma = unit * _log(rng, -3, 1, n) * noisy
    mean = losses.mean(np.full((n, clients), 1 / clients))
    optimum, least = mean.minimum()
    start = _start(rng, optimum, losses)
    x, chance = start[:, None], np.ones((n, 1))
    omega, lasted, ended, intervals = (
        [np.full((n, 1), value) for _ in range(clients)] for value in (1.0, 0.0, 0.0, 0.0)
    )
    squares, errors, worst = [], [], np.zeros(n)
    for _ in range(rounds):
        squares.append((chance * mean.slope(0, x) ** 2).sum(axis=1))
        each = [(p[:, i, None] * omega[i] - 1) ** 2 for i in range(clients)]
        errors.append((chance * sum(each)).sum(axis=1) / clients)
        worst = np.maximum(worst, (sum(each) / clients).max(axis=1))
        ends, chances = [], []
        counts: list[list[list[Array]]] = [[[] for _ in range(clients)] for _ in range(4)]
        for mask in itertools.product((0, 1), repeat=clients):
            here = [i for i in range(clients) if mask[i]]
            of_mask = np.prod(np.where(mask, p, 1 - p), axis=1)[:, None]
            noise = sigma[:, None] if noisy else None
            runs = [local_runs(losses, i, x, steps, gamma[:, None], noise) for i in here]
            together = list(itertools.product(*runs))
            for combination in together:
                moved = sum(
                    (omega[i] * (end - x) for i, (end, _) in zip(here, combination, strict=True)),
                    np.zeros_like(x),
                )
                ends.append(x + eta[:, None] / clients * moved)
                chances.append(chance * of_mask / len(together))
                for i in range(clients):
                    waited = lasted[i] + 1
                    over = np.logical_or(mask[i] == 1, waited == K[:, None])
                    number, total = intervals[i] + 1, ended[i] + waited
                    counts[0][i].append(np.where(over, total / number, omega[i]))
                    counts[1][i].append(np.where(over, 0, waited))
                    counts[2][i].append(np.where(over, total, ended[i]))
                    counts[3][i].append(np.where(over, number, intervals[i]))
        x, chance = np.concatenate(ends, axis=1), np.concatenate(chances, axis=1)
        omega, lasted, ended, intervals = (
            [np.concatenate(parts, axis=1) for parts in kept] for kept in counts
        )
    steepest = np.full(n, np.inf)
    if kind == "bounded":
        steepest = np.abs(mean.slope(0, losses.kinks)).max(axis=1)
    W = np.mean(errors, axis=0)
    return Batch(
        np.mean(squares, axis=0),
        {
            **{"L": size, "N": clients, "I": steps, "T": rounds, "gamma": gamma, "eta": eta},
            **{"sigma": sigma, "delta": apart, "G": steepest, "Q": Q, "W": W, "e_max": worst},
            **{"tau": 0, "F_0": mean.value(0, start[:, None])[:, 0] - least, "p": p, "cutoff": K},
        },
        (size * mean.rounding) ** 2,
        losses,
        start,
    )


def fedau_limit(rng: Rng, n: int) -> Batch:
    """Compute FedAU's limit for constant weights on quadratics of one curvature, over all masks."""
    clients, steps = int(rng.integers(1, 5)), int(rng.choice([1, 2, 5]))
    size = _log(rng, -2, 2, n)
    optima = rng.normal(size=(n, clients)) * _log(rng, -3, 2, n, 1)
    p, omega = rng.uniform(0.02, 1, (n, clients)), _log(rng, -2, 2, n, clients)
    P, Q = (omega * p).sum(axis=1), (p * omega**2).mean(axis=1)
    target = (omega * p * optima).sum(axis=1) / P
    apart = (size[:, None] * np.abs(optima - target[:, None])).max(axis=1)
    gamma = _log(rng, -2, 0, n) / (4 * math.sqrt(15) * size * steps)
    limit = np.minimum(clients / (4 * size * steps * P), P / (27 * size * steps * Q))
    eta = np.where(rng.random(n) < 0.5, 1.0, _log(rng, -2, 0, n)) * limit / gamma
    sigma = size * _log(rng, -3, 2, n)
    decay = 1 - gamma * size
    move, noise = 1 - decay**steps, gamma**2 * sum(decay ** (2 * k) for k in range(steps))
    means = np.zeros((4, n))  # E A, E A^2, E A b, E b^2, with x - target -> A x + b
    pulled = np.zeros(n)
    for mask in itertools.product((0, 1), repeat=clients):
        chance = np.prod(np.where(mask, p, 1 - p), axis=1)
        weights = np.array(mask) * omega * (eta / clients)[:, None]
        A = 1 - move * weights.sum(axis=1)
        b = move * (weights * (optima - target[:, None])).sum(axis=1)
        varied = b**2 + sigma**2 * noise * (weights**2).sum(axis=1)
        means += chance * np.stack([A, A**2, A * b, varied])
        pulled += chance * b
    first = pulled / (1 - means[0])
    second = (2 * means[2] * first + means[3]) / (1 - means[1])
    values = {"L": size, "N": clients, "I": steps, "gamma": gamma, "eta": eta, "sigma": sigma}
    return Batch(size**2 * second, {**values, "delta_h": apart, "P": P, "Q": Q, "tau": 0})


def fedau_weights(rng: Rng, n: int) -> Batch:
    """Compute weights of one or two clients for every sequence of presences in up to 11 rounds."""
    rounds, K = int(rng.integers(2, 12)), int(rng.choice([1, 2, 3, 5, 50]))
    clients = int(rng.choice([1, 2]))
    p = np.where(
        rng.random((n, clients)) < 0.5, rng.random((n, clients)), _log(rng, -3, 0, n, clients)
    )
    weights, present = np.ones((1 << (rounds - 1), rounds)), np.zeros(1 << (rounds - 1))
    for path in range(1 << (rounds - 1)):
        lasted = ended = intervals = 0
        for t in range(1, rounds):
            here = path >> (t - 1) & 1
            lasted += 1
            present[path] += here
            weights[path, t] = weights[path, t - 1]
            if here or lasted == K:
                ended, intervals, lasted = ended + lasted, intervals + 1, 0
                weights[path, t] = ended / intervals
    errors, shares = [], []
    for i in range(clients):
        each, absent = p[:, i, None], 1 - p[:, i, None]
        chance = each**present * absent ** (rounds - 1 - present)
        error = np.stack(
            [(chance * (each * weights[:, t] - 1) ** 2).sum(axis=1) for t in range(rounds)], axis=1
        )
        errors.append(error)
        lengths = np.arange(1, K + 1)
        law = np.where(lengths < K, each * absent ** (lengths - 1), absent ** (K - 1))
        mean = (law * lengths).sum(axis=1)
        variance = (law * (lengths - mean[:, None]) ** 2).sum(axis=1)
        late = [
            error[:, t] / (p[:, i] ** 2 * variance / max(t // K, 1) + absent[:, 0] ** (2 * K))
            for t in range(K, rounds)
        ]
        shares.append(np.max(late, axis=0) if late else np.zeros(n))
    values = {
        **{"N": clients, "T": rounds, "K": K, "tau": 0, "b_K": ((1 - p) ** (2 * K)).mean(axis=1)},
        **{"v_1": (1 - p).mean(axis=1), "v_2": ((1 - p) ** 2).mean(axis=1)},
        **{"H_T": sum(1 / t for t in range(1, rounds)), "late": np.max(shares, axis=0)},
    }
    return Batch(np.mean([error.mean(axis=1) for error in errors], axis=0), values)


def _cafed_clients(rng: Rng, n: int, clients: int, kind: str) -> tuple[Losses, Array, Array, Array]:
    """Return losses, availability, weights and the biased importance; weights may be extreme."""
    losses = _drawn_losses(rng, n, clients, kind, shared=False)
    pi = np.where(rng.random((n, clients)) < 0.5, rng.uniform(0.05, 1, (n, clients)), 0.5)
    q = np.where(rng.random((n, 1)) < 0.5, 1.0, _log(rng, -3, 0, n, clients)) * _log(
        rng, -1, 1, n, 1
    )
    return losses, pi, q, pi * q / (pi * q).sum(axis=1, keepdims=True)


def decomposition(rng: Rng, n: int, *, kind: str, clients: int) -> Batch:
    """Evaluate F - F* at the one of 400 points of W where the sharper bounds are closest to it."""
    losses, _, _, p = _cafed_clients(rng, n, clients, kind)
    alpha = rng.dirichlet(np.full(clients, 0.5), n)
    near = rng.random((n, 1)) < 0.5
    alpha = np.where(near, p * (1 + 0.01 * rng.normal(size=p.shape)), alpha)
    alpha /= alpha.sum(axis=1, keepdims=True)
    size, mu, _ = _constants(losses)
    target, biased = losses.mean(alpha), losses.mean(p)
    (optimum, least), (minimiser, least_biased) = target.minimum(), biased.minimum()
    own = [losses.minimum(i) for i in range(clients)]
    reach = np.max([np.abs(each) for each, _ in own], axis=0) * 1.001 + 1e-300
    gaps = [
        np.max([losses.value(i, at[:, None])[:, 0] - own[i][1] for i in range(clients)], axis=0)
        for at in (optimum, minimiser)
    ]
    points = np.linspace(-1, 1, 400) * reach[:, None] * _log(rng, 0, 2, n, 1)
    points[:, 0], points[:, 1] = 2 * minimiser - optimum, minimiser
    excess = target.value(0, points) - least[:, None]
    away = np.maximum(biased.value(0, points) - least_biased[:, None], 0)
    kappa = size / mu
    chi2 = ((alpha - p) ** 2 / p).sum(axis=1)
    d_TV = np.abs(alpha - p).sum(axis=1) / 2
    worst = (excess - 2 * kappa[:, None] * away).argmax(axis=1)
    rows = np.arange(n)
    values = {"L": size, "mu": mu, "chi2": chi2, "d_TV": d_TV, "Gamma": gaps[0], "Gamma_B": gaps[1]}
    inside = {"e_B": away[rows, worst], "r_min": reach, "rho": 2 * reach}
    return Batch(excess[rows, worst], {**values, **inside})


def markov(
    rng: Rng, n: int, *, kind: str, clients: int, steps: int, rounds: int, noisy: bool
) -> Batch:
    """Run CA-Fed's weighted averaging along every path of independent on-off chains.

    ``lemma_2`` and ``lemma_3`` are the left sides of the two lemmas.
    """
    losses, pi, q, p = _cafed_clients(rng, n, clients, kind)
    nu = np.where(rng.random((n, clients)) < 0.5, 0, rng.uniform(0, 0.99, (n, clients)))
    size, mu, _ = _constants(losses)
    biased = losses.mean(p)
    minimiser, least = biased.minimum()
    own = [losses.minimum(i) for i in range(clients)]
    reach = np.max([np.abs(each) for each, _ in own], axis=0)
    radius = size / mu * reach * (1 + _log(rng, -3, 1, n)) + 1e-12
    start = rng.uniform(-1, 1, n) * radius
    start[::4] = minimiser[::4]
    total = q.sum(axis=1)
    first = np.where(rng.random(n) < 0.5, 1.0, _log(rng, -3, 0, n))
    first /= 2 * size * (steps * total + 1)
    offset = _log(rng, -1, 3, n)
    falling = rng.random(n) < 0.5
    eta = [
        np.where(falling, first * (1 + offset) / (t + offset), first) for t in range(1, rounds + 1)
    ]
    sigma = size * reach * _log(rng, -3, 1, n) * noisy
    ends = np.stack([-radius, radius], axis=1)
    D = np.max([np.abs(losses.slope(i, ends)).max(axis=1) for i in range(clients)], axis=0)
    at_minimiser = [losses.value(i, minimiser[:, None])[:, 0] for i in range(clients)]
    target, _ = losses.mean(rng.dirichlet(np.ones(clients), n)).minimum()
    at_target = [losses.value(i, target[:, None])[:, 0] for i in range(clients)]
    H = np.max(
        [
            np.maximum(
                losses.value(i, ends).max(axis=1) - at_minimiser[i], at_minimiser[i] - own[i][1]
            )
            for i in range(clients)
        ],
        axis=0,
    )
    rate, C_P = (nu.max(axis=1) + 1) / 2, np.maximum(pi, 1 - pi).sum(axis=1)
    lemma_2, lemma_3, B_1 = np.zeros(n), np.zeros(n), np.zeros(n)
    masks = list(itertools.product((0, 1), repeat=clients))
    x, past = start[:, None], start[:, None] * eta[0][:, None]
    chance = np.stack([np.prod(np.where(mask, pi, 1 - pi), axis=1) for mask in masks])
    states = [(index, chance[index][:, None], x, past, x) for index in range(len(masks))]
    for t in range(1, rounds + 1):
        grown: dict[int, list[tuple[Array, ...]]] = {i: [] for i in range(len(masks))}
        wanted = np.maximum(np.ceil(np.log(2 * C_P * H * t) / np.log(1 / rate)), 0)
        delay = np.minimum(wanted, t - 1).astype(int)
        proved = eta[t - 1] * (1 - size * eta[t - 1] * (steps * total + 1))
        proved = proved * (1 - size * eta[t - 1])
        B_1 += proved
        for index, weight, at, summed, *seen in states:
            here = [i for i in range(clients) if masks[index][i]]
            before = np.take_along_axis(
                np.stack(seen), (t - 1 - delay)[None, :, None] + np.zeros((1, *at.shape), int), 0
            )[0]
            now, then, at_best = (
                _weighed_losses(losses, here, q, weight, where)
                for where in (at, before, minimiser[:, None] + 0 * at)
            )
            lemma_2 += proved * (now - at_best)
            lemma_3 += eta[t - 1] * (then - now)
            if t == rounds:
                continue
            noise = sigma[:, None] if noisy else None
            runs = [local_runs(losses, i, at, steps, eta[t - 1][:, None], noise) for i in here]
            together = list(itertools.product(*runs))
            for combination in together:
                moved = sum(
                    (
                        q[:, i, None] * (end - at)
                        for i, (end, _) in zip(here, combination, strict=True)
                    ),
                    np.zeros_like(at),
                )
                after = np.clip(at + moved, -radius[:, None], radius[:, None])
                for following, mask in enumerate(masks):
                    stays = np.where(np.equal(mask, masks[index]), nu, 0)
                    step = np.prod(stays + (1 - nu) * np.where(mask, pi, 1 - pi), axis=1)
                    part = weight * step[:, None] / len(together)
                    then = summed + eta[t][:, None] * after
                    grown[following].append((part, after, then, *seen, after))
        if t < rounds:
            states = [
                (index, *(np.concatenate([one[j] for one in rows], axis=1) for j in range(t + 4)))
                for index, rows in grown.items()
            ]
    S_1 = np.sum(eta, axis=0)
    truth = sum(
        (weight * (biased.value(0, summed / S_1[:, None]) - least[:, None])).sum(axis=1)
        for _, weight, _, summed, *_ in states
    )
    V_T, J_T = np.zeros(n), np.zeros(n)
    for t in range(1, rounds + 1):
        wanted = np.maximum(np.ceil(np.log(2 * C_P * H * t) / np.log(1 / rate)), 0)
        delay = np.minimum(wanted, t - 1).astype(int)
        earlier = np.stack(eta)[t - 1 - delay, np.arange(n)]
        J_T += delay * earlier**2
        V_T += np.where(wanted <= t - 1, eta[t - 1] * C_P * rate**delay, 0)
    values = {
        **{"L": size, "mu": mu, "E": steps, "T": rounds, "T_P": 0, "M": len(masks), "Q": total},
        **{
            "S_1": S_1,
            "S_2T": np.sum(np.square(eta), axis=0),
            "V_T": V_T,
            "J_T": J_T,
            "D": D,
            "H": H,
        },
        **{"G": np.hypot(D, sigma), "sigma": sigma, "pi_q": (pi * q).sum(axis=1), "eta_1": eta[0]},
        **{"N_q": sigma**2 * (pi * q**2).sum(axis=1), "D_B": np.abs(start - minimiser), "eta_s": 1},
        "Gamma": np.max([at_target[i] - own[i][1] for i in range(clients)], axis=0),
        **{"lemma_2": lemma_2 / B_1, "lemma_3": lemma_3, "B_1": B_1, "r_eta": 0},
        **{"tv_1": 0, "r_min": reach, "rho": radius, "r_0": np.abs(start), "r_opt": reach},
        **{"pi": pi, "q": q, "nu": nu, "eta": np.stack(eta, axis=1)},
        "r": np.where(falling, 1.0, 0.0),
    }
    return Batch(truth, values, losses=losses, start=start)


def _weighed_losses(losses: Losses, here: list[int], q: Array, weight: Array, x: Array) -> Array:
    """Return ``E[sum_{k in A} q_k F_k(x)]`` over the paths in one state, (n,)."""
    each = [q[:, i] * (weight * losses.value(i, x)).sum(axis=1) for i in here]
    return np.sum(each, axis=0) if each else np.zeros(len(x))


def local_gradients(rng: Rng, n: int, *, kind: str, steps: int) -> Batch:
    """Evaluate CA-Fed's (7) after each of several exact gradient steps, from 101 points of W."""
    clients = int(rng.integers(1, 4))
    losses = _drawn_losses(rng, n, clients, kind, shared=False)
    size, mu, _ = _constants(losses)
    reach = np.max([np.abs(losses.minimum(i)[0]) for i in range(clients)], axis=0)
    radius = reach * (1 + _log(rng, -3, 1, n)) + 1e-12
    sigma = size * reach * _log(rng, -3, 1, n) * (steps == 1)
    eta = np.where(rng.random(n) < 0.5, 1.0, rng.uniform(0, 1, n)) / size
    truth, D = np.zeros(n), np.zeros(n)
    for i in range(clients):
        x = radius[:, None] * np.linspace(-1, 1, 101)
        D = np.maximum(D, np.abs(losses.slope(i, x)).max(axis=1))
        for _ in range(steps):
            slope = losses.slope(i, x)
            truth = np.maximum(truth, (slope**2).max(axis=1) + sigma**2)
            x = x - eta[:, None] * slope
    values = {"L": size, "mu": mu, "E": steps, "D": D, "sigma": sigma, "eta_1": eta}
    return Batch(truth, {**values, "r_min": reach, "rho": radius})


def falling_steps(rng: Rng, n: int) -> Batch:
    """Evaluate step (e) of CA-Fed's Lemma 3 with random delays and random decreasing steps."""
    rounds = int(rng.integers(1, 30))
    eta = -np.sort(-_log(rng, -3, 0, n, rounds), axis=1)
    eta[::3] = eta[::3, :1]
    late, early = np.zeros(n), np.zeros(n)
    for t in range(rounds):
        delay = rng.integers(0, t + 1, n)
        early += delay * eta[np.arange(n), t - delay] ** 2
        for d in range(t):
            late += np.where(d >= t - delay, eta[:, t] ** 2 + eta[:, d] ** 2, 0) / 2
    values = {"J_T": early, "r_eta": np.diff(eta, axis=1).max(axis=1, initial=0)}
    return Batch(late, {**values, "r_min": 0, "rho": 1, "r_0": 0})


def greedy_choice(rng: Rng, n: int) -> Batch:
    """Compute N over the number of clients that CA-Fed keeps, for large kappabar."""
    clients = int(rng.integers(2, 7))
    shares = np.zeros(n)
    for place in range(n):
        alpha, gaps = rng.dirichlet(np.ones(clients)), rng.exponential(1, clients) ** 2
        whole, alone = alpha @ gaps, [np.arange(clients) != k for k in range(clients)]
        means = np.array([alpha[kept] @ gaps[kept] / alpha[kept].sum() for kept in alone])
        limit = max(0.0, float(((whole - means) / (alpha**2 * gaps.max())).max()))
        weight = limit * (1 + 10 ** rng.uniform(-6, 2)) + 1e-9
        kept = np.ones(clients, dtype=bool)

        def cost(kept: Array, *, of: Any = (alpha, gaps, weight)) -> Any:
            alpha, gaps, weight = of
            share = alpha[kept].sum()
            return alpha[kept] @ gaps[kept] / share + weight * (1 - share) ** 2 * gaps.max()

        for k in (*rng.permutation(clients), *rng.permutation(clients)):
            other = kept & (np.arange(clients) != k)
            if kept[k] and other.any() and cost(kept) >= cost(other):
                kept = other
        shares[place] = clients / kept.sum()
    return Batch(shares, {})


def fastest_weights(rng: Rng, n: int, *, any_noise: bool = False) -> Batch:
    """Find the weights that minimise (12) by Dinkelbach's iteration.

    The noise is equal or, with ``any_noise``, arbitrary, with each weight times the square of its
    client's noise.
    """
    clients = int(rng.integers(2, 6))
    pi, total = rng.uniform(0.02, 1, (n, clients)), _log(rng, -1, 1, n)
    noise = _log(rng, -1.5, 1.5, n, clients if any_noise else 1) + 0 * pi
    A = pi * noise**2
    upsilon = _log(rng, -3, 3, n)
    value = np.full(n, np.inf)
    q = np.repeat(total[:, None] / clients, clients, axis=1)
    for _ in range(60):
        value = ((A * q**2).sum(axis=1) / 2 + upsilon) / (pi * q).sum(axis=1)
        lowest = (value[:, None] * pi - A * total[:, None]).min(axis=1)
        highest = (value[:, None] * pi).max(axis=1)
        for _ in range(80):
            middle = (lowest + highest) / 2
            q = np.maximum((value[:, None] * pi - middle[:, None]) / A, 0)
            large = q.sum(axis=1) > total
            lowest, highest = np.where(large, middle, lowest), np.where(large, highest, middle)
    theta = (upsilon - (A * q**2).sum(axis=1) / 2) / total
    pairs = itertools.permutations(range(clients), 2)
    with np.errstate(all="ignore"):
        ratios = [
            np.where(
                (pi[:, i] < pi[:, j]) & (q[:, i] > 1e-9 * total),
                q[:, i] * noise[:, i] ** 2 / (q[:, j] * noise[:, j] ** 2),
                0,
            )
            for i, j in pairs
        ]
    values = {"sigma": noise.max(axis=1), "sigma_min": noise.min(axis=1)}
    return Batch(np.max(ratios, axis=0), {**values, "theta": theta})


def midpoints(rng: Rng, n: int, *, of: str) -> Batch:
    """Compare chi^2, or one summand, at a midpoint with the mean of its values at the ends.

    The points are shares p or, with ``of="weights"``, the aggregation weights of two clients.
    """
    clients = 2 if of == "weights" else int(rng.integers(2, 7))
    alpha = rng.dirichlet(np.full(clients, 0.5), n)
    one, other = (rng.dirichlet(np.full(clients, 0.5), n) + 1e-6 for _ in range(2))
    pi = rng.uniform(0.02, 1, (n, clients)) if of == "weights" else 1.0

    def bias(q: Array) -> Array:
        shares = pi * q
        shares = shares / shares.sum(axis=1, keepdims=True)
        summands = (shares - alpha) ** 2 / shares
        return summands[:, 0] if of == "summand" else summands.sum(axis=1)

    one, other = (each / each.sum(axis=1, keepdims=True) for each in (one, other))
    with np.errstate(all="ignore"):
        ratio = bias((one + other) / 2) / ((bias(one) + bias(other)) / 2)
    return Batch(np.nan_to_num(ratio), {"q_min": np.minimum(one, other).min(axis=1), "N": clients})


def absences(rng: Rng, n: int) -> Batch:
    """Go through periodic schedules, and check whether an absence exceeds a limit.

    The longest absence is found from the positions of a client's presences in the period; absences
    up to round T are counted round by round.
    """
    clients, period, rounds = (int(rng.integers(1, high)) for high in (5, 9, 40))
    masks = rng.random((n, period, clients)) < rng.random((n, 1, 1))
    masks[::3] |= np.arange(period)[:, None] % clients == np.arange(clients)
    longest = np.zeros(n)
    for one in range(n):
        for client in range(clients):
            there = np.flatnonzero(masks[one, :, client])
            gaps = np.diff([*there, there[0] + period]) - 1 if there.size else [np.inf]
            longest[one] = max(longest[one], *gaps)
    limit = np.where(np.isfinite(longest), longest, period) + rng.integers(-1, 3, n)
    limit = np.maximum(limit, 0)
    away, exceeded = np.zeros((n, clients)), np.zeros(n, dtype=bool)
    for t in range(rounds):
        away = np.where(masks[:, t % period], 0, away + 1)
        exceeded |= (away > limit[:, None]).any(axis=1)
    return Batch(
        exceeded.astype(float), {"nu": limit, "r": 0, "ell": longest, "N": clients, "T": rounds}
    )

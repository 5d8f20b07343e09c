"""Search theorems of Li et al. and Khaled et al. with code that shares nothing with the package.

    python benchmarks/atlas_plain_runs.py [--settings 1000]

Clients are one-dimensional quadratics, and only NumPy is used: means and covariances of the
clients' models for Li (decreasing steps, noise, all clients or K drawn), the models themselves for
Khaled. Half of the settings are random, the rest are changes of the best so far. Prints the largest
truth/bound of each; the exit status is 1 if one is above 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Settings = dict[str, Array]
ROUNDING = 1e-12
N = 3
MOST_STEPS = 20
GENERATIONS = 20


def drawn(rng: np.random.Generator, count: int) -> Settings:
    """Draw settings in which some client has curvature L = 1 and some client the smallest, mu."""

    def spread(low: float, high: float, *shape: int) -> Array:
        return np.exp(rng.uniform(np.log(low), np.log(high), (count, *shape)))

    return {
        "mu": spread(1e-2, 1),
        "between": rng.random((count, N)),
        "optima": spread(1e-2, 100)[:, None]
        * rng.choice([0.0, 1.0], count)[:, None]
        * rng.standard_normal((count, N)),
        "start": spread(1e-2, 100) * rng.choice([-1.0, 0.0, 1.0], count),
        "noise": spread(1e-2, 10) * rng.choice([0.0, 1.0], count),
        "weights": rng.dirichlet(np.ones(N), count),
        "local": rng.integers(1, 6, count).astype(float),
        "averages": rng.integers(1, 5, count).astype(float),
        "drawn": rng.integers(1, N + 1, count).astype(float),
        "step": spread(1e-2, 1),
    }


def changed(rng: np.random.Generator, best: Settings, count: int) -> Settings:
    """Return changes of the best settings, with a share of their numbers drawn anew."""
    fresh = drawn(rng, count)
    parents = rng.integers(len(best["mu"]), size=count)
    found = {}
    for name, values in best.items():
        anew = rng.random(count) < 0.25
        shape = (-1,) + (1,) * (values.ndim - 1)
        found[name] = np.where(anew.reshape(shape), fresh[name], values[parents])
    return found


def problem(s: Settings) -> tuple[Array, Array, Array, Array]:
    """Return curvatures with extremes mu and 1, weights, x* and Gamma."""
    h = s["mu"][:, None] + (1 - s["mu"])[:, None] * s["between"]
    h[:, 0], h[:, 1] = 1.0, s["mu"]
    p = s["weights"]
    x_star = (p * h * s["optima"]).sum(1) / (p * h).sum(1)
    gap = (p * h * (x_star[:, None] - s["optima"]) ** 2).sum(1) / 2
    return h, p, x_star, gap


def li(scheme: str, w_1: int = 0) -> Callable[[Settings], Array]:
    """Return truth/bound of Theorem 1 ("all"), 2 ("by p") or 3 ("evenly"), from w_0 or w_1."""

    def ratio(s: Settings) -> Array:
        if scheme == "evenly":
            s = {**s, "weights": np.full_like(s["weights"], 1 / N)}
        h, p, x_star, gap = problem(s)
        E, K = s["local"], s["drawn"]
        T = np.maximum(E * s["averages"] - w_1, 1)
        kappa = 1 / s["mu"]
        gamma = np.maximum(8 * kappa, E)
        mean = np.repeat((s["start"] + x_star)[:, None], N, axis=1)
        cov = np.zeros((len(E), N, N))
        largest, first = np.zeros(len(E)), s["start"] ** 2
        final = np.zeros(len(E))
        eye = np.eye(N)
        for t in range(MOST_STEPS):
            going = t < T
            squares = h**2 * ((mean - s["optima"]) ** 2 + np.einsum("skk->sk", cov))
            squares = squares.max(1) + s["noise"] ** 2
            largest = np.where(going & (t >= 1 - w_1), np.maximum(largest, squares), largest)
            lr = 2 / (s["mu"] * (gamma + t + w_1))
            keep = 1 - lr[:, None] * h
            mean = mean - lr[:, None] * h * (mean - s["optima"])
            cov = keep[:, :, None] * keep[:, None, :] * cov
            cov = cov + (lr * s["noise"])[:, None, None] ** 2 * eye
            averages = ((t + 1) % E == 0)[:, None]
            second = cov + mean[:, :, None] * mean[:, None, :]
            one = np.einsum("sk,skk->s", p, second)
            both = np.einsum("sk,sl,skl->s", p, p, second)
            mixed = {
                "all": both,
                "by p": one / K + (1 - 1 / K) * both,
                "evenly": one / K + (K - 1) / (K * (N - 1)) * (N * both - one),
            }[scheme]
            centre = (p * mean).sum(1)
            mean = np.where(averages, centre[:, None], mean)
            cov = np.where(averages[:, :, None], (mixed - centre**2)[:, None, None], cov)
            away = np.einsum("sk,sl,skl->s", p, p, cov) + ((p * mean).sum(1) - x_star) ** 2
            first = away if t == 0 and not w_1 else first
            final = np.where(t + 1 == T, (p * h).sum(1) * away / 2, final)
        B = (p**2).sum(1) * s["noise"] ** 2 + 6 * gap + 8 * (E - 1) ** 2 * largest
        drawing = {"all": 0.0, "by p": 4 / K, "evenly": (N - K) / (N - 1) * 4 / K}[scheme]
        total = B + drawing * E**2 * largest
        bound = kappa / (gamma + T + w_1 - 1) * (2 * total / s["mu"] + s["mu"] * gamma / 2 * first)
        return np.where(
            bound > 0, final / np.where(bound > 0, bound, 1), np.where(final > 0, np.inf, 0)
        )

    return ratio


def khaled(late: int, *, corollary: bool = False) -> Callable[[Settings], Array]:
    """Return truth/bound of Theorem 1 or Corollary 1, with averaging ``late`` steps late."""

    def ratio(s: Settings) -> Array:
        s = {**s, "weights": np.full_like(s["weights"], 1 / N)}
        h, _, x_star, _ = problem(s)
        longer = 10 if corollary else 1  # T is at least N H^2 there
        H, T = s["local"], s["local"] * s["averages"] * longer
        lr = np.sqrt(N / T) / 4 if corollary else s["step"] / (4 * H)
        models = np.repeat((s["start"] + x_star)[:, None], N, axis=1)
        total = np.zeros(len(H))
        for t in range(MOST_STEPS * longer):
            total = total + np.where(t < T, models.mean(1), 0)
            models = models - lr[:, None] * h * (models - s["optima"])
            done = t + 1
            averages = (done >= H + late) & ((done - late) % H == 0)
            models = np.where(averages[:, None], models.mean(1)[:, None], models)
        truth = h.mean(1) * (total / T - x_star) ** 2 / 2
        sigma = (h**2 * (x_star[:, None] - s["optima"]) ** 2).mean(1)
        bound = 2 * s["start"] ** 2 / (lr * T) + 24 * lr**2 * sigma * H**2
        if corollary:
            bound = 8 * s["start"] ** 2 / np.sqrt(N * T) + 3 * N * sigma * H**2 / (2 * T)
            bound = np.where(np.sqrt(T / N) >= H, bound, np.inf)
        return np.where(
            bound > 0, truth / np.where(bound > 0, bound, 1), np.where(truth > 0, np.inf, 0)
        )

    return ratio


def khaled_epochs(late: int) -> Callable[[Settings], Array]:
    """Return the largest truth/bound over the epochs of Lemma 2, averages one step late or in time.

    Clients come in N groups: the weights are shares of many that count alike.
    """

    def ratio(s: Settings) -> Array:
        h, p, x_star, _ = problem(s)
        H, T = s["local"], s["local"] * s["averages"]
        lr = s["step"] / (4 * H)
        models = np.repeat((s["start"] + x_star)[:, None], N, axis=1)
        sigma = (p * h**2 * (x_star[:, None] - s["optima"]) ** 2).sum(1)
        spread, loss, largest = np.zeros((3, len(H)))
        for t in range(MOST_STEPS):
            mean = (p * models).sum(1)
            spread = spread + (p * (models - mean[:, None]) ** 2).sum(1)
            loss = loss + (p * h).sum(1) * (mean - x_star) ** 2 / 2
            models = models - lr[:, None] * h * (models - s["optima"])
            done = t + 1
            averages = (done >= H + late) & ((done - late) % H == 0)
            models = np.where(averages[:, None], (p * models).sum(1)[:, None], models)
            bound = 5 * lr**2 * H**2 * loss + 8 * lr**2 * H**3 * sigma
            ends = (done % H == 0) & (done <= T) & (bound > 0)
            here = np.where(ends, spread / np.where(bound > 0, bound, 1), 0)
            largest = np.maximum(largest, here)
            spread, loss = (np.where(done % H == 0, 0, one) for one in (spread, loss))
        return largest

    return ratio


SEARCHED: dict[tuple[str, str], Callable[[Settings], Array]] = {
    ("fedavg-li/1", "printed"): li("all"),
    ("fedavg-li/2", "printed"): li("by p"),
    ("fedavg-li/3", "printed"): li("evenly"),
    ("fedavg-li/1", "from w_1"): li("all", 1),
    ("fedavg-li/2", "from w_1"): li("by p", 1),
    ("fedavg-li/3", "from w_1"): li("evenly", 1),
    ("local-gd/lemma-2", "printed"): khaled_epochs(1),
    ("local-gd/lemma-2", "derived"): khaled_epochs(0),
    ("local-gd/1", "printed"): khaled(1),
    ("local-gd/1", "derived"): khaled(0),
    ("local-gd/corollary-1", "printed"): khaled(1, corollary=True),
    ("local-gd/corollary-1", "derived"): khaled(0, corollary=True),
}


def largest_ratio(ratio: Callable[[Settings], Array], settings: int, seed: int = 0) -> float:
    """Return the largest truth/bound among a number of settings."""
    rng = np.random.default_rng(seed)
    known = drawn(rng, settings // 2)
    ratios = ratio(known)
    for _ in range(GENERATIONS):
        order = np.argsort(-ratios)[:16]
        best = {name: values[order] for name, values in known.items()}
        more = changed(rng, best, settings // 2 // GENERATIONS)
        known = {name: np.concatenate([best[name], more[name]]) for name in best}
        ratios = np.concatenate([ratios[order], ratio(more)])
    return float(ratios.max())


def main(settings: int) -> int:
    broken = 0
    for (theorem, reading), ratio in SEARCHED.items():
        found = largest_ratio(ratio, settings)
        print(f"{theorem} ({reading}): {settings} settings, largest truth/bound {found:.4g}")
        broken += found > 1 + ROUNDING
    return int(broken > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=1000)
    sys.exit(main(parser.parse_args().settings))

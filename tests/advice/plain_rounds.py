"""Algorithms written out again in plain NumPy, for quadratic clients of curvature one.

Each function yields models (R, d) round by round. A client goes the share ``s`` of its way to its
optimum; ``masks`` yields who is there, (R, N).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Masks = Iterator[NDArray[np.bool_]]


def _weighted(weigh: Callable[[Array], Array]) -> Callable[..., Iterator[Array]]:
    def run(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
        x = None
        for mask in masks:
            there = mask.astype(float)
            x = np.zeros((len(there), optima.shape[1])) if x is None else x
            w = weigh(there)
            x = x + s * (w @ optima - w.sum(axis=1, keepdims=True) * x)
            yield x

    return run


def _normalised(w: Array) -> Array:
    total = w.sum(axis=1, keepdims=True)
    return w / np.where(total > 0, total, 1)


fedavg = _weighted(_normalised)


def weighted_fedavg(sizes: Array) -> Callable[..., Iterator[Array]]:
    return _weighted(lambda there: _normalised(there * sizes))


def inverse(target: Array, pi: Array) -> Callable[..., Iterator[Array]]:
    return _weighted(lambda there: there * target / pi)


def adafed(target: Array, pi: Array) -> Callable[..., Iterator[Array]]:
    return _weighted(lambda there: _normalised(there * target / pi))


def fedau(cutoff: int, emphasis: Array | float = 1.0) -> Callable[..., Iterator[Array]]:
    def run(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
        counts = None

        def weigh(there: Array) -> Array:
            nonlocal counts
            rounds, ended, age = (np.zeros_like(there),) * 3 if counts is None else counts
            omega = np.where(ended > 0, rounds / np.maximum(ended, 1), 1.0)
            age = age + 1
            over = (there > 0) | (age == cutoff)
            counts = rounds + over * age, ended + over, np.where(over, 0, age)
            return there * omega * emphasis / there.shape[1]

        yield from _weighted(weigh)(masks, optima, s)

    return run


def f3ast(target: Array, size: int) -> Callable[..., Iterator[Array]]:
    def run(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
        rate = None

        def weigh(there: Array) -> Array:
            nonlocal rate
            rate = np.tile(target, (len(there), 1)) if rate is None else rate
            chosen = np.zeros_like(there)
            for row, here in enumerate(there):
                order = sorted(np.flatnonzero(here), key=lambda k: -target[k] / rate[row, k])
                chosen[row, order[:size]] = 1
            rate = 0.99 * rate + 0.01 * chosen
            return chosen * target / rate

        yield from _weighted(weigh)(masks, optima, s)

    return run


def _blank(there: Array, optima: Array) -> tuple[Array, Array]:
    return np.zeros((len(there), optima.shape[1])), np.zeros((*there.shape, optima.shape[1]))


def _memory(masks: Masks, optima: Array) -> Iterator[tuple[Array, Array]]:
    for mask in masks:
        yield mask.astype(float), mask[:, :, None]


def mifa(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
    x = last = None
    for there, who in _memory(masks, optima):
        if x is None:
            x, last = (
                np.zeros((len(there), optima.shape[1])),
                np.zeros((*there.shape, optima.shape[1])),
            )
        last = np.where(who, s * (optima - x[:, None]), last)
        x = x + last.mean(axis=1)
        yield x


def fedar(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
    x = None
    for there, who in _memory(masks, optima):
        if x is None:
            x, last = (
                np.zeros((len(there), optima.shape[1])),
                np.zeros((*there.shape, optima.shape[1])),
            )
            age, seen = np.zeros_like(there), np.zeros_like(there)
        last = np.where(who, s * (optima - x[:, None]), last)
        age = np.where(there > 0, 0, age + 1)
        seen = np.maximum(seen, there)
        psi = seen * np.minimum(1 + 0.05 * age, 2)
        x = x + (psi[:, :, None] * last).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)[:, None]
        yield x


def fedvarp(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
    x = None
    for there, who in _memory(masks, optima):
        if x is None:
            x, y = (
                np.zeros((len(there), optima.shape[1])),
                np.zeros((*there.shape, optima.shape[1])),
            )
        fresh = np.where(who, s * (optima - x[:, None]), y)
        some = there.any(axis=1)[:, None]
        step = (_normalised(there)[:, :, None] * (fresh - y)).sum(axis=1) + some * y.mean(axis=1)
        x, y = x + step, fresh
        yield x


def scaffold(masks: Masks, optima: Array, s: Array | float) -> Iterator[Array]:
    # One local step: the model of a client goes along its gradient, less its control. Where clients
    # have an s each, (N, 1), their losses have a factor each and the step is one.
    x, step = None, float(np.mean(s))
    for there, who in _memory(masks, optima):
        if x is None:
            x, c = (
                np.zeros((len(there), optima.shape[1])),
                np.zeros((*there.shape, optima.shape[1])),
            )
        gradient = s / step * (x[:, None] - optima)
        change = -step * (gradient - c + c.mean(axis=1, keepdims=True))
        x = x + (_normalised(there)[:, :, None] * change).sum(axis=1)
        c = np.where(who, gradient, c)
        yield x


def safari(x_star: Array) -> Callable[..., Iterator[Array]]:
    def run(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
        rng = np.random.default_rng(11)
        x = None
        for mask in masks:
            x = np.zeros((len(mask), optima.shape[1])) if x is None else x
            w = _normalised(mask.astype(float))
            by_clients = s * (w @ optima - w.sum(axis=1, keepdims=True) * x)
            by_server = s * (x_star - x)
            x = x + np.where(rng.random((len(x), 1)) < 0.5, by_clients, by_server)
            yield x

    return run


def _excluding(kept: list[bool], alpha: list[float], gap: list[float], order: list[int]) -> None:
    share = sum(a for a, k in zip(alpha, kept, strict=True) if k)
    loss = sum(a * g for a, g, k in zip(alpha, gap, kept, strict=True) if k)
    largest, count = max(gap), sum(kept)
    for k in order:
        if not kept[k] or count == 1 or largest == 0:
            continue
        now = loss / share + largest * (1 - share) ** 2
        others, lost = share - alpha[k], loss - alpha[k] * gap[k]
        if lost / others + largest * (1 - others) ** 2 <= now:
            kept[k], share, loss, count = False, others, lost, count - 1


def ca_fed(
    target: Array, losses: Callable[[Array], Array], start: Array | float = 0.0
) -> Callable[..., Iterator[Array]]:
    """CA-Fed with all it estimates; ``losses`` of models (R, d) are (R, N)."""

    def run(masks: Masks, optima: Array, s: float) -> Iterator[Array]:
        x = None
        alpha = target.tolist()
        for past, mask in enumerate(masks):
            if x is None:
                x = np.zeros((len(mask), optima.shape[1])) + start
                loss, least = np.full(mask.shape, np.nan), np.full(mask.shape, np.inf)
                there = stayed = waited = was = np.zeros(mask.shape)
            now = mask.astype(float)
            there = there + now
            if past:
                stayed, waited = stayed + was * now, waited + (1 - was) * (1 - now)
            # Each of the two rows of a transition matrix, and pi, begins with one of either.
            before = there - now
            after_absence = past - before
            rho = (stayed + 1) / (before + 2) + (waited + 1) / (after_absence + 2) - 1
            pi, was = (there + 1) / (past + 3), now
            told = losses(x)
            smoothed = np.where(np.isnan(loss), told, 0.8 * loss + 0.2 * told)
            loss = np.where(mask, smoothed, loss)
            least = np.fmin(least, loss)
            gap = np.where(np.isnan(loss), 0, loss - least)
            kept = np.ones(mask.shape, dtype=bool)
            for row in range(len(x)):
                left = [True] * len(alpha)
                for by in (-rho[row], pi[row]):
                    order = np.argsort(by, kind="stable").tolist()
                    _excluding(left, alpha, gap[row].tolist(), order)
                kept[row] = left
            w = now * kept * target / pi
            x = x + s * (w @ optima - w.sum(axis=1, keepdims=True) * x)
            yield x

    return run


def chains(pi: Array, nu: Array, replicas: int, seed: int) -> Masks:
    """Yield who is there by a two-state chain each, from its stationary law."""
    rng = np.random.default_rng(seed)
    there = rng.random((replicas, pi.size)) < pi
    while True:
        yield there
        there = rng.random(there.shape) < (1 - nu) * pi + nu * there


def mean_model(
    run: Callable[..., Iterator[Array]],
    masks: Masks,
    optima: Array,
    s: float,
    rounds: int,
    settling: int,
) -> tuple[Array, float]:
    """Return the mean model after a time to settle, and the standard error of its distance."""
    total = None
    for index, x in enumerate(run(masks, optima, s)):
        if index >= settling:
            total = x.copy() if total is None else total + x
        if index + 1 == rounds:
            break
    means = total / (rounds - settling)
    error = np.sqrt(means.var(axis=0, ddof=1).sum() / len(means))
    return means.mean(axis=0), float(error)

"""Typical changes that real training code makes to any algorithm.

Each habit takes a right ``run`` and returns a wrong one. They were written without looking at the
laws, from features that training code often has: weight decay, clipping, half precision, caps,
early stopping.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

Gradient = Callable[[Any, int, np.ndarray, list[np.ndarray]], np.ndarray]
Run = Callable[..., Any]


class Trained:
    """A client whose gradients pass through an optimiser."""

    def __init__(self, client: Any, place: int, change: Gradient) -> None:
        self.client, self.place, self.change = client, place, change
        self.n_samples, self.loss, self.past = client.n_samples, client.loss, list[np.ndarray]()

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the direction in which the optimiser steps."""
        self.past.append(np.asarray(self.client.gradient(x)))
        return np.asarray(self.change(self, self.place, np.asarray(x), self.past))


def _norm(g: np.ndarray) -> float:
    return max(float(np.linalg.norm(g)), 1e-300)


def _sparse(g: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(np.abs(g) == np.abs(g).max(), g, 0.0))


def _momentum(past: list[np.ndarray], share: float) -> np.ndarray:
    return np.asarray(sum(share**j * g for j, g in enumerate(past[::-1])))


# --- take a client, its number, the model, and all its gradients so far, the latest last
_GRADIENTS: Mapping[str, Gradient] = {
    "weight decay 0.01": lambda c, k, x, past: past[-1] + 0.01 * x,
    "weight decay 0.1": lambda c, k, x, past: past[-1] + 0.1 * x,
    "gradients clipped to norm 1": lambda c, k, x, past: past[-1] * min(1, 1 / _norm(past[-1])),
    "gradients clipped to norm 10": lambda c, k, x, past: past[-1] * min(1, 10 / _norm(past[-1])),
    "entries clipped to 1": lambda c, k, x, past: np.clip(past[-1], -1, 1),
    "signs of gradients": lambda c, k, x, past: np.sign(past[-1]),
    "gradients of length 1": lambda c, k, x, past: past[-1] / _norm(past[-1]),
    "momentum 0.9 kept by the client": lambda c, k, x, past: _momentum(past, 0.9),
    "momentum 0.3 kept by the client": lambda c, k, x, past: _momentum(past, 0.3),
    "gradients are never zeroed": lambda c, k, x, past: _momentum(past, 1.0),
    "the gradient of the step before": lambda c, k, x, past: past[-2] if len(past) > 1 else past[0],
    "the last coordinate is frozen": lambda c, k, x, past: (
        past[-1] * (np.arange(x.size) < max(x.size - 1, 1))
    ),
    "gradients are sums over the data": lambda c, k, x, past: past[-1] * c.n_samples,
    "gradients are doubled, of a loss without its half": lambda c, k, x, past: 2 * past[-1],
    "RMSprop": lambda c, k, x, past: past[-1] / (np.sqrt(np.mean(np.square(past), axis=0)) + 1e-8),
    "the step falls by 1% a call": lambda c, k, x, past: past[-1] * 0.99 ** (len(past) - 1),
    "warm-up over the first five calls": lambda c, k, x, past: past[-1] * min(1, len(past) / 5),
    "client 0 never learns": lambda c, k, x, past: past[-1] * (k > 0),
    "gradients in half precision": lambda c, k, x, past: past[-1].astype(np.float16).astype(float),
    "only the largest entry is sent": lambda c, k, x, past: _sparse(past[-1]),
    "every third batch is lost": lambda c, k, x, past: past[-1] * (len(past) % 3 > 0),
    "early stop where a gradient is below 0.1": lambda c, k, x, past: (
        past[-1] * (_norm(past[-1]) > 0.1)
    ),
    "noise of privacy": lambda c, k, x, past: past[-1] + 0.01 * np.sin(1e3 * past[-1]),
}


def _cooled(trace: np.ndarray) -> np.ndarray:
    before = np.vstack([np.zeros_like(trace[:1]), trace[:-1]])
    return np.asarray(trace & ~before)


def _recent(trace: np.ndarray, most: int) -> np.ndarray:
    found, age = trace.copy(), np.zeros(trace.shape[1])
    for row, here in zip(found, trace, strict=True):
        row &= age < most
        age = np.where(here, 0, age + 1)
    return found


def _filled(trace: np.ndarray) -> np.ndarray:
    found = trace.copy()
    for t in range(1, len(found)):
        found[t] = found[t] if found[t].any() else found[t - 1]
    return found


def _rounds(trace: np.ndarray, first: float, end: float) -> np.ndarray:
    t = np.arange(len(trace))[:, None]
    return np.asarray((first <= t) & (t < end))


_TRACES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "five clients a round at most": lambda trace: trace & (np.cumsum(trace, axis=1) <= 5),
    "twenty clients a round at most": lambda trace: trace & (np.cumsum(trace, axis=1) <= 20),
    "two clients a round at least": lambda trace: trace & (trace.sum(axis=1) > 1)[:, None],
    "client 0 is always taken": lambda trace: trace | (np.arange(trace.shape[1]) == 0),
    "the last client is never taken": lambda trace: (
        trace & (np.arange(trace.shape[1]) < trace.shape[1] - 1)
    ),
    "nobody trains in two rounds running": _cooled,
    "who was away for six rounds is not taken": lambda trace: _recent(trace, 6),
    "who was away for thirty rounds is not taken": lambda trace: _recent(trace, 30),
    "an empty round asks those of the last one again": _filled,
    "everybody trains in the first round": lambda trace: trace | _rounds(trace, 0, 1),
    "the order of clients is reversed": lambda trace: trace[:, ::-1],
    "the first round is lost": lambda trace: trace & _rounds(trace, 1, np.inf),
    "rounds after the hundredth do nothing": lambda trace: trace & _rounds(trace, 0, 100),
}  # fmt: skip


def _averaged(models: np.ndarray, share: float) -> np.ndarray:
    found = [models[0]]
    for x in models[1:]:
        found.append(share * found[-1] + (1 - share) * x)
    return np.array(found)


_RECORDS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "all records are the last model": lambda models: np.tile(models[-1], (len(models), 1)),
    "an average of models is recorded": lambda models: _averaged(models, 0.5),
    "the mean of all models so far is recorded": lambda models: (
        np.cumsum(models, axis=0) / np.arange(1, len(models) + 1)[:, None]
    ),
    "models are recorded a round late": lambda models: np.vstack([models[:1], models[:-1]]),
    "models are recorded a round early": lambda models: np.vstack([models[1:], models[-1:]]),
    "models are rounded to four digits": lambda models: np.round(models, 4),
    "models are kept within 10": lambda models: np.clip(models, -10, 10),
    "the last coordinate is not sent": lambda models: np.hstack(
        [models[:, : max(models.shape[1] - 1, 1)], np.tile(models[0, 1:][-1:], (len(models), 1))]
    ),
    "the best model so far is recorded, the shortest": lambda models: np.array(
        [min(models[: t + 1], key=_norm) for t in range(len(models))]
    ),
    "coordinates are sorted": lambda models: np.sort(models, axis=1),
}


Change = Callable[[Any], Any]


def _at_most(most: float) -> Change:
    return lambda value: (
        tuple(min(one, most) for one in value) if isinstance(value, tuple) else min(value, most)
    )


def _is(value: Any) -> Change:
    return lambda _: value


_OPTIONS: Mapping[str, tuple[str, Change]] = {
    "local steps up to 5": ("local_steps", _at_most(5)),
    "local steps up to 3": ("local_steps", _at_most(3)),
    "client_lr up to 0.1": ("client_lr", _at_most(0.1)),
    "client_lr is 0.1": ("client_lr", _is(0.1)),
    "server_lr up to 1": ("server_lr", _at_most(1.0)),
    "server_lr is 1": ("server_lr", _is(1.0)),
    "size up to 3": ("size", _at_most(3)),
    "cutoff up to 10": ("cutoff", _at_most(10)),
    "largest up to 2": ("largest", _at_most(2.0)),
    "growth is 0.1": ("growth", _is(0.1)),
    "smoothing is 0.1": ("smoothing", _is(0.1)),
    "option 2 alone": ("option", _is(2)),
    "start at zero alone": ("start", _is("zero")),
    "weighting by size alone": ("weighting", _is("n_samples")),
    "proximal is 0.1": ("proximal", _is(0.1)),
    "proximal in steps of 0.25": ("proximal", lambda mu: round(4 * mu) / 4),
    "target weights are alike": ("target_weights", lambda alpha: (1 / len(alpha),) * len(alpha)),
    "weights are made to sum to one": (
        "aggregation_weights",
        lambda q: tuple(one / sum(q) for one in q),
    ),
    "clusters by number": ("clusters", lambda groups: tuple(sorted(groups))),
    "assist_lr is halved": ("assist_lr", lambda lr: lr / 2),
    "availability of 0.2 at least": (
        "availability",
        lambda p: p and tuple(max(one, 0.2) for one in p),
    ),
    "kappa_bar is 1": ("kappa_bar", _is(1.0)),
    "the threshold is doubled": ("threshold", lambda tau: 2 * tau),
}


def _trained(run: Run, change: Gradient) -> Run:
    return lambda x0, clients, trace, **given: run(
        x0, [Trained(client, k, change) for k, client in enumerate(clients)], trace, **given
    )


def _traced(run: Run, change: Callable[[np.ndarray], np.ndarray]) -> Run:
    return lambda x0, clients, trace, **given: run(x0, clients, change(trace), **given)


def _recorded(run: Run, change: Callable[[np.ndarray], np.ndarray]) -> Run:
    return lambda *given, **named: change(np.asarray(run(*given, **named)))


def _told(run: Run, name: str, change: Change) -> Run:
    return lambda *given, **named: run(
        *given, **{key: change(v) if key == name else v for key, v in named.items()}
    )


def wrong(says: str, run: Run) -> Run:
    """Return a right run with one of the habits."""
    for table, make in ((_GRADIENTS, _trained), (_TRACES, _traced), (_RECORDS, _recorded)):
        if says in table:
            return make(run, table[says])  # type: ignore[operator, index]
    name, change = _OPTIONS[says]
    return _told(run, name, change)


def habits(options: Collection[str]) -> Iterator[str]:
    """Yield the habits that an algorithm with these options can have."""
    yield from (*_GRADIENTS, *_TRACES, *_RECORDS)
    yield from (says for says, (name, _) in _OPTIONS.items() if name in options)

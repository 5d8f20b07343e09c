"""What is said of runs that no usual slip explains: the examples that users brought."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of
from tests.drawn import a_tenth


@dataclass
class Trained:
    """A client whose gradients go through an optimiser, with all of them so far."""

    client: Any
    step: Callable[[np.ndarray, list[np.ndarray]], np.ndarray]
    past: list[np.ndarray] = field(default_factory=list)

    @property
    def n_samples(self) -> int:
        return int(self.client.n_samples)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        self.past.append(np.asarray(self.client.gradient(x)))
        return np.asarray(self.step(x, self.past))


def _trained(step: Callable[[np.ndarray, list[np.ndarray]], np.ndarray]) -> Any:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        return run_of("fedavg")(x0, [Trained(one, step) for one in clients], trace, **given)

    return run


def _swallows(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    return run_of("fedavg")(x0, clients, trace, **{**given, "server_lr": 0.7})


def _by_reference(*given: Any, **named: Any) -> Any:
    models = run_of("fedavg")(*given, **named)
    return np.tile(models[-1], (len(models), 1))


def _a_round_later(*given: Any, **named: Any) -> Any:
    models = run_of("fedavg")(*given, **named)
    return np.vstack([models[1:], models[-1:]])


def _until_the_hundredth(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    early = trace & (np.arange(len(trace)) < 100)[:, None]
    return run_of("fedavg")(x0, clients, early, **given)


def _twelve_at_most(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    first = trace & (np.cumsum(trace, axis=1) <= 12)
    return run_of("fedavg")(x0, clients, first, **given)


_RUNS = {
    "weight decay": _trained(lambda x, past: past[-1] + 0.1 * x),
    "such as momentum": _trained(lambda x, past: past[-1] + 0.3 * sum(past[:-1], 0 * x)),
    "a warm-up": _trained(lambda x, past: past[-1] * min(1, len(past) / 6)),
    "falls from round to round": _trained(lambda x, past: past[-1] / len(past)),
    "are clipped": _trained(lambda x, past: np.clip(past[-1], -1, 1)),
    "gradients are normalised": _trained(lambda x, past: np.sign(past[-1])),
    "not proportional": _trained(lambda x, past: np.round(past[-1], 1)),
    "models have one coordinate": _trained(
        lambda x, past: past[-1] * (np.arange(x.size) < max(x.size - 1, 1))
    ),
    "ignores `server_lr`": _swallows,
    "recorded by reference": _by_reference,
    "is one round late": _a_round_later,
    "right up to round 100": _until_the_hundredth,
    "right with 12 clients present and wrong with 13": _twelve_at_most,
}
_LAWS = {_until_the_hundredth: "long-run", _twelve_at_most: "many-clients"}


@pytest.mark.parametrize("words", a_tenth(_RUNS, of=3))
def test_what_is_seen_of_a_run_is_said(words: str) -> None:
    """Nothing else is said besides but in which circumstances models are right."""
    run = _RUNS[words]
    laws = [_LAWS.get(run, "full-participation")]
    hints = check_algorithm(run, "fedavg", laws=laws, raises=False).hints
    assert any(words in hint for hint in hints)
    assert all(words in hint or hint.startswith("models are right where") for hint in hints)

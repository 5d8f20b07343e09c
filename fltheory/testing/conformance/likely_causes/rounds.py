"""Rounds, local steps and weights that all algorithms share, and slips that any can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fltheory.testing.conformance.cases.case import Case
from fltheory.validation import FloatArray

Slips: TypeAlias = Mapping[str, str]
"""Sentences by the names that pseudo-code asks for."""

GENERAL: Slips = {
    "one step more": "local steps run one too many (K + 1): an off-by-one in K",
    "one step less": "local steps run one too few (K - 1): an off-by-one in K",
    "one step only": "a single local step is made, whatever local_steps is",
    "gradient of the round": "all local steps use the gradient at the round's model, not at the "
    "local one",
    "model of the round before": "local steps start from a stale model, the one before the "
    "latest, and the change is taken from there",
    "change against a newer model": "local steps start from a stale model, the one before the "
    "latest, while the change is taken from the latest",
    "first model": "local steps start from x0 in every round instead of the server's model",
    "own last model": "local steps start from the client's own last model, not the server's",
    "from another's end": "local steps start where the client before ended: the model is not "
    "reset between clients",
    "momentum 0.9": "momentum (0.9) is in the local steps",
    "momentum 0.5": "momentum (0.5) is in the local steps",
    "momentum kept 0.9": "momentum (0.9) is in the local steps and kept from client to client",
    "momentum kept 0.5": "momentum (0.5) is in the local steps and kept from client to client",
    "client_lr over t": "the local step size falls with the round: client_lr / t",
    "client_lr over root t": "the local step size falls with the round: client_lr / sqrt(t)",
    "client_lr halved": "the local step size is halved",
    "client_lr squared": "client_lr counts twice in the local steps",
    "server_lr left out": "server_lr is not used",
    "server_lr twice": "server_lr counts twice",
    "server_lr on clients": "server_lr multiplies the local step size, too",
    "server_lr on the model": "server_lr scales the new model, not the change of the model",
    "server_lr on the model, if moved": "server_lr scales the new model, not the change of the "
    "model",
    "server_lr mixes backwards": "server_lr weighs the old model, 1 - server_lr the change",
    "change times client_lr": "the change is multiplied by client_lr once more",
    "change per step": "the change is divided by the number of local steps",
    "sign": "the server goes against the change: its sign is wrong",
    "everybody": "everybody takes part: the trace is ignored",
    "nobody but the absent": "the trace is read the wrong way round: the absent take part",
    "round before": "participants are those of the round before: the trace is off by one",
    "round before, around": "participants are those of the round before: the trace is off by one",
    "next round": "participants are those of the next round: the trace is off by one",
    "first only": "only the first of those present counts",
    "last only": "only the last of those present counts: models overwrite each other",
    "empty is zero": "in a round without participants the model becomes 0, the empty sum",
    "empty means everybody": "in a round without participants everybody takes part",
    "alone skipped": "a round with a single client of several is skipped: a minimum of two",
    "few skipped": "rounds with less than half of the clients are skipped",
    "recorded before": "models are recorded before their round, not after: off by one",
    "model rounded": "models are rounded to single precision on the way: float32 (see rtol=)",
    "server momentum 0.9": "the server adds momentum (0.9) to its steps",
    "server momentum 0.5": "the server adds momentum (0.5) to its steps",
    "server average 0.9": "the server averages its steps over rounds: momentum (0.9) from 0",
    "server average 0.5": "the server averages its steps over rounds: momentum (0.5) from 0",
    "whole data once more": "changes are multiplied by the clients' shares of the data, too",
}


@dataclass
class Rounds:
    """A run in progress, with at most one slip in it.

    Attributes
    ----------
    case : Case
    slip : str
        The name of a slip; none by default.
    nudges : array, (2, N), optional
        What is added to the two numbers by which clients are put in order, in which they may tie.
    """

    case: Case
    slip: str = ""
    nudges: FloatArray | None = None

    def __post_init__(self) -> None:
        case = self.case
        self.x = np.array(case.x0, dtype=np.float64)
        self.before = self.x
        self.models = [self.x]
        self.n, self.dim = case.n_clients, case.dim
        self.sizes = np.array([client.n_samples for client in case.clients], dtype=np.float64)
        self.options = case.options or {}
        self.eta = case.server_lr * case.client_lr if self.has("server_lr on clients") else (
            case.client_lr
        )  # fmt: skip
        if self.has("client_lr squared"):
            self.eta = case.client_lr**2
        if self.has("client_lr halved"):
            self.eta = case.client_lr / 2
        self._memory = float(self.slip[-3:]) if "momentum" in self.slip or self.slip.startswith(
            "server average"
        ) else 0.0  # fmt: skip
        self._steps = self._slipped_steps()
        self._own: dict[int, FloatArray] = {}
        self._end: FloatArray | None = None
        self._asked = False
        self._velocity = np.zeros(self.dim)
        self._server_velocity = np.zeros(self.dim)

    def has(self, slip: str) -> bool:
        """Whether this is the slip in it."""
        return self.slip == slip

    def zeros(self, *shape: int) -> FloatArray:
        """Return zeros."""
        return np.zeros(shape)

    def _slipped_steps(self) -> tuple[int, ...]:
        wanted = self.case.steps
        instead = {"one step only": 1, "same steps": wanted[0], "most steps": max(wanted)}
        instead["most steps everywhere"] = max(wanted)
        if self.slip in instead:
            wanted = (instead[self.slip],) * self.n
        return tuple(one + self.has("one step more") - self.has("one step less") for one in wanted)

    def present(self) -> Iterator[list[int]]:
        """Yield who is present, round after round; the model is recorded after each."""
        for t, who in enumerate(self.heard, start=1):
            falls = {"client_lr over t": 1.0, "client_lr over root t": 0.5}.get(self.slip)
            if falls is not None:
                self.eta = self.case.client_lr / t**falls
            begun, self._end, self._asked = self.x, None, False
            yield who
            if self.has("model rounded"):
                self.x = self.x.astype(np.float32).astype(np.float64)
            self.before = begun
            self.models.append(begun if self.has("recorded before") else self.x)

    @cached_property
    def heard(self) -> list[list[int]]:
        """Who counts as present, round by round."""
        rows = self._trace().tolist()
        return [self._counted([k for k, here in enumerate(row) if here]) for row in rows]

    def _counted(self, who: list[int]) -> list[int]:
        if self.has("alone skipped") and len(who) == 1 < self.n:
            return []
        if self.has("few skipped") and 2 * len(who) < self.n:
            return []
        return {"first only": who[:1], "last only": who[-1:]}.get(self.slip, who)

    def _trace(self) -> np.ndarray:
        trace = self.case.trace
        match self.slip:
            case "everybody":
                return np.ones_like(trace)
            case "empty means everybody":
                return trace | ~trace.any(axis=1, keepdims=True)
            case "nobody but the absent":
                return ~trace
            case "round before, around":
                return np.roll(trace, 1, axis=0)
            case "round before":
                return np.concatenate([trace[:1], trace[:-1]])
            case "next round":
                return np.concatenate([trace[1:], trace[-1:]])
        return trace

    def change(
        self,
        k: int,
        correction: FloatArray | float = 0.0,
        pull: Pull | None = None,
    ) -> FloatArray:
        """Return what client k's local steps change in the model."""
        start, self._asked = self._start(k), True
        y = before = start.copy()
        velocity = self._velocity if self.slip.startswith("momentum kept") else np.zeros(self.dim)
        with_momentum, steps = self.slip.startswith("momentum"), self._steps[k]
        stands_still, once = self.has("gradient of the round"), self.has("corrected once")
        client = self.case.clients[k]
        for step in range(steps):
            gradient = client.gradient(start if stands_still else y)
            if step == 0 or not once:
                gradient = gradient + correction
            if pull is not None:
                gradient = gradient + pull(y, before, step == steps - 1)
            if with_momentum:
                gradient = velocity = self._memory * velocity + gradient
            before, y = y, y - self.eta * gradient
        if not self.slip:
            # Nothing else asks what a client ended with, and most runs are without a slip.
            return y - start
        self._velocity, self._end, self._own[k] = velocity, y, y
        return self._told(k, start, y)

    def _told(self, k: int, start: FloatArray, y: FloatArray) -> FloatArray:
        """Return what a client says that it changed, where something may have slipped."""
        from_here = self.has("change against a newer model") or self.has("from another's end")
        change = y - (self.x if from_here else start)
        if self.has("own last model") or self.has("first model"):
            change = y - self.x
        if self.has("change times client_lr"):
            change = self.eta * change
        if self.has("whole data once more"):
            change = change * self.sizes[k] / max(self.sizes.sum(), 1.0)
        return change / self.case.steps[k] if self.has("change per step") else change

    def _start(self, k: int) -> FloatArray:
        if not self.slip:
            return self.x
        if self.has("first model"):
            return np.array(self.case.x0)
        if self.has("own last model"):
            return self._own.get(k, self.x)
        if self.has("from another's end"):
            return self.x if self._end is None else self._end
        stale = self.has("model of the round before") or self.has("change against a newer model")
        return self.before if stale else self.x

    def move(self, update: FloatArray) -> None:
        """Add ``server_lr`` times the update to the server's model."""
        rate = self.case.server_lr
        if self.has("server_lr left out") or self.has("server_lr on clients"):
            rate = 1.0
        if self.has("server_lr twice"):
            rate = rate**2
        if self.has("sign"):
            rate = -rate
        if self.has("empty is zero") and not self._asked:
            self.x = np.zeros(self.dim)
        elif self.has("server_lr on the model") or (
            self.has("server_lr on the model, if moved") and self._asked
        ):
            self.x = rate * (self.x + update)
        elif self.has("server_lr mixes backwards"):
            self.x = rate * self.x + (1 - rate) * (self.x + update)
        elif self.slip.startswith("server momentum") or self.slip.startswith("server average"):
            share = 1 - self._memory if self.slip.startswith("server average") else 1.0
            self._server_velocity = self._memory * self._server_velocity + share * rate * update
            self.x = self.x + self._server_velocity
        else:
            self.x = self.x + rate * update


Pull: TypeAlias = Callable[[FloatArray, FloatArray, bool], FloatArray]
"""A term of a local gradient: of y, the y before it, and whether this is the last step."""

PseudoCode: TypeAlias = Callable[[Rounds], None]


@dataclass(frozen=True)
class Paper:
    """An algorithm's pseudo-code, and the slips of its own.

    Attributes
    ----------
    run : callable
        Plays a run's rounds to the end.
    slips : mapping of str to str
        Sentences by name, beside the general ones.
    """

    run: PseudoCode
    slips: Slips

    def models(self, case: Case, slip: str = "", nudges: FloatArray | None = None) -> FloatArray:
        """Return the models after every round, as `run` does."""
        rounds = Rounds(case, slip, nudges)
        with np.errstate(all="ignore"):
            self.run(rounds)
        return np.array(rounds.models)

    @property
    def sentences(self) -> Slips:
        """All slips, its own first."""
        return {**self.slips, **GENERAL}


def weighted(
    changes: Mapping[int, FloatArray], weights: Mapping[int, float], dim: int
) -> FloatArray:
    """Return the sum of changes, each with its weight."""
    total = np.zeros(dim)
    for k, change in changes.items():
        total = total + weights[k] * change
    return total


def option_of(rounds: Rounds, name: str, default: Any) -> Any:
    """Return an option, or its default."""
    value = rounds.options.get(name)
    return default if value is None else value


def per_client(value: Any, n: int) -> FloatArray:
    """Return one number for each client."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (n,)))


def shares(values: ArrayLike) -> FloatArray:
    """Return numbers divided by their sum; zeros where that is zero."""
    array = np.asarray(values, dtype=np.float64)
    total = array.sum()
    return array / total if total > 0 else np.zeros_like(array)

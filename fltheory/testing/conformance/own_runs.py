"""The package's own algorithms in the form that the suite checks, unchanged or with one slip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias

import array_api_compat.numpy
import numpy as np

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, SERVER, Algorithm, Clients, Schedule, in_round
from fltheory.algorithms.table import listed
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.clients.analytic_clients import LossClient
from fltheory.testing.conformance.specifications import Specification, specification
from fltheory.validation import FloatArray

Run: TypeAlias = Callable[..., Any]
Change: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Slip:
    """One part of an algorithm done wrongly. Parts that are None are unchanged.

    The first argument of every change is the `Play`, which contains the run so far.

    Attributes
    ----------
    says : str
        The fault in words, for the author of the implementation.
    options : callable
        Returns changed hyper-parameters, given the actual ones.
    trace : callable
        Returns who counts as present, (rounds, N), given the trace.
    sizes : callable
        Returns changed data sizes of the clients.
    algorithm : mapping of str to callable
        Replacements of the algorithm's attributes, including methods, given the play and the
        original. Attributes that the algorithm does not have are ignored.
    names : mapping of str to callable
        Replacements of functions that the algorithm's methods call, in the same form.
    first : callable
        Returns changes of the state before the first round.
    before, after : callable
        Return changes of the state passed to a round, and of the state kept after it, given the old
        state and the new one.
    local : callable
        Returns the change that a client's local steps make, given its number, the model and
        `Steps`.
    loss : callable
        Returns the loss that a client reports, given its number and the model.
    weights : callable
        Returns the weights of present clients, (N,), given the paper's weights.
    mean : callable
        Returns the mean of all clients' stored vectors, given these vectors (N, d) and the correct
        mean (d,).
    move : callable
        Returns the new model, given the old model and the round's change.
    record : callable
        Returns the recorded model of a round, given the models before and after.
    """

    says: str
    options: Change | None = None
    trace: Change | None = None
    sizes: Change | None = None
    algorithm: Mapping[str, Change] = field(default_factory=dict)
    names: Mapping[str, Change] = field(default_factory=dict)
    first: Change | None = None
    before: Change | None = None
    after: Change | None = None
    local: Change | None = None
    loss: Change | None = None
    weights: Change | None = None
    mean: Change | None = None
    move: Change | None = None
    record: Change | None = None


NOTHING = Slip("")


def slips(part: str, changes: Mapping[str, Change], says: str = "{}", **besides: Any) -> list[Slip]:
    """Return a slip for each change of one part, keyed by its description.

    Parameters
    ----------
    part : str
        A part of `Slip`, or ``"names.f"`` for a function that the algorithm calls,
        ``"algorithm.f"`` for an attribute, or ``"method.f"`` for a method. The change of a method
        gets all arguments at once.
    changes : mapping of str to callable
    says : str
        A format for the slip's text, into which the key is inserted.
    **besides
        Other parts that all these slips also change.
    """
    kind, _, name = part.partition(".")

    def changed(change: Change) -> dict[str, Any]:
        if kind == "method":
            change = partial(_method, change)
        field_of = "algorithm" if kind == "method" else kind
        return {field_of: {name: change} if name else change}

    return [
        Slip(says.format(text), **{**besides, **changed(change)})
        for text, change in changes.items()
    ]


def _method(change: Change, play: Play, plain: Change) -> Change:
    return lambda *given: change(play, plain, *given)


@dataclass(frozen=True)
class Steps:
    """A client's local steps as in the paper. Calling the object returns the last local model.

    Attributes
    ----------
    client : LossClient
    number : int
    lr : float
    push : array, (d,), or 0
        A vector added to every gradient.
    proximal : float
    """

    client: LossClient
    number: int
    lr: float
    push: FloatArray | float = 0.0
    proximal: float = 0.0

    def __call__(
        self,
        start: FloatArray,
        *,
        number: int | None = None,
        lr: float | None = None,
        added: Callable[[int, FloatArray], FloatArray] | None = None,
        gradient: Callable[[int, FloatArray], FloatArray] | None = None,
    ) -> FloatArray:
        """Return the result of steps from ``start``, with a different number, size or gradients."""
        y = np.array(start)
        for step in range(self.number if number is None else number):
            plain = self.client.gradient(y) if gradient is None else gradient(step, y)
            push = self.push + self.proximal * (y - start) if added is None else added(step, y)
            y = y - (self.lr if lr is None else lr) * (plain + push)
        return y


class Play(Clients):
    """A run of an algorithm on exact clients with at most one slip; it is also their backend.

    Parameters
    ----------
    one : Specification
    x0 : array, (replicas, d)
    clients : sequence of LossClient
    trace : array of bool, (rounds, N)
    given : mapping
        Step sizes and options.
    slip : Slip
    """

    def __init__(
        self,
        one: Specification,
        x0: FloatArray,
        clients: Sequence[LossClient],
        trace: np.ndarray,
        given: Mapping[str, Any],
        slip: Slip = NOTHING,
    ) -> None:
        self.one, self.slip, self.given = one, slip, {**one.defaults, **given}
        self.clients, self.server = list(clients), None
        self.trace = np.asarray(trace, dtype=bool)
        self.branches = [CLIENTS] * len(self.trace)
        if one.server:
            self.clients, self.server = self.clients[:-1], self.clients[-1]
            self.branches = [SERVER if server else CLIENTS for server in self.trace[:, -1]]
            self.trace = self.trace[:, :-1]
        self.x0 = np.array(x0, dtype=np.float64)
        self.n, self.dim = len(self.clients), self.x0.shape[1]
        self.sizes = np.array([client.n_samples for client in self.clients], dtype=np.float64)
        self.kept: dict[Any, Any] = {}
        self.here = np.zeros(self.n, dtype=bool)
        self.times = np.zeros(self.n, dtype=int)
        self.t = 0
        self.x = self.x_before = self.x0[0]
        self.state: Mapping[str, Any] = {}
        self.changes: dict[int, FloatArray] = {}
        self.corrected = False

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self.n

    @property
    def who(self) -> list[int]:
        """The clients present in the round."""
        return np.flatnonzero(self.here).tolist()

    @property
    def seen(self) -> np.ndarray:
        """Whether each client has appeared so far, (N,)."""
        return np.asarray(self.times > 0)

    @property
    def seen_before(self) -> np.ndarray:
        """Whether each client had appeared before the round, (N,)."""
        return np.asarray(self.times > self.here)

    @property
    def rate(self) -> float:
        """The server's step size, or 1 if there is none."""
        return float(self.given.get("server_lr", 1.0))

    def before(self, name: Any, now: Any, first: Any = None) -> Any:
        """Return the value from the previous round, or ``first``, and store the current value."""
        then = self.kept.get(name, now if first is None else first)
        self.kept[name] = now
        return then

    def models(self) -> FloatArray:
        """Return the models after every round, (rounds + 1, replicas, d), starting with x0."""
        return np.array(list(self.rows()))

    def rows(self) -> Iterator[FloatArray]:
        """Yield the models after every round, (replicas, d), starting with x0."""
        slip, given = self.slip, self.given
        if slip.options is not None:
            given = {**given, **slip.options(self, given)}
        sizes = self.sizes if slip.sizes is None else slip.sizes(self, self.sizes)
        algorithm = self._with_parts(algorithm_of(self.one, sizes.tolist(), **given))
        trace = self.trace if slip.trace is None else slip.trace(self, self.trace)
        if self.one.by_size and given.get("weighting", "n_samples") == "n_samples":
            # If none of the clients present has data, nothing is learned.
            trace = trace & (trace @ (sizes > 0))[:, None]
        state = dict(in_round(algorithm, 1).init(self.x0, self.n))
        if slip.first is not None:
            state |= slip.first(self, state)
        yield state["x"]
        for t, (here, branch) in enumerate(zip(trace, self.branches, strict=True), start=1):
            self.t = t
            old, state = state["x"], self._after_round(algorithm, state, here, branch)
            yield state["x"] if slip.record is None else slip.record(self, old, state["x"])

    def _after_round(
        self, algorithm: Algorithm | Schedule, state: dict[str, Any], here: np.ndarray, branch: str
    ) -> dict[str, Any]:
        slip, x = self.slip, state["x"]
        self.here, self.times = here, self.times + here
        self.changes, self.corrected = {}, False
        if slip.before is not None:
            state = {**state, **slip.before(self, state)}
        self.x, self.state = x[0], state
        who = np.tile(here, (len(x), 1))
        new = dict(in_round(algorithm, self.t).round(state, self, who, branch))
        if slip.move is not None:
            new["x"] = slip.move(self, x[0], new["x"][0] - x[0])[None]
        if slip.after is not None:
            new |= slip.after(self, state, new)
        self.x_before = x[0]
        return new

    def _with_parts(self, algorithm: Algorithm | Schedule) -> Any:
        """Return the algorithm with the slip's changes."""
        slip, names = self.slip, dict(self.slip.names)
        if slip.mean is not None:
            names["array_namespace"] = lambda play, plain, array: _Namespace(play)
        if slip.weights is not None and self.one.memory:
            # In other algorithms, weights are passed to a sum of changes and are changed there.
            names["participant_average"] = lambda play, plain, *given: play._weighed(plain(*given))
        if not names and not slip.algorithm:
            return algorithm
        kind = type(algorithm)
        methods = {
            name: _rebound(method, self, names)
            for base in reversed(kind.__mro__)
            for name, method in vars(base).items()
            if isinstance(method, FunctionType) and not name.startswith("__")
        }
        changed: Any = object.__new__(type(kind.__name__, (kind,), methods))
        changed.__dict__.update(vars(algorithm))
        for name, change in slip.algorithm.items():
            if hasattr(changed, name):
                object.__setattr__(changed, name, change(self, getattr(changed, name)))
        return changed

    def _weighed(self, weights: FloatArray) -> FloatArray:
        assert self.slip.weights is not None
        # FedNova's clients train in groups with equal numbers of steps, with the weights of one
        # round.
        if ("weights", self.t) not in self.kept:
            changed = self.slip.weights(self, np.where(self.here, weights[0], 0.0))
            self.kept["weights", self.t] = np.where(self.here, changed, 0.0)[None]
        found: FloatArray = self.kept["weights", self.t]
        return found

    def local_sgd(
        self,
        x: FloatArray,
        who: np.ndarray,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (replicas, N, d), which is zero for absent clients."""
        changes = np.zeros((*who.shape, x.shape[1]))
        # The additional gradient of SCAFFOLD is not a local step.
        local = None if self.corrected and correction is None else self.slip.local
        self.corrected = self.corrected or correction is not None
        for r, k in zip(*np.nonzero(who), strict=True):
            push = 0.0 if correction is None else correction[r, k]
            todo = Steps(self.clients[k], steps, lr, push, proximal)
            if local is None:
                changes[r, k] = todo(x[r]) - x[r]
            else:
                changes[r, k] = local(self, int(k), x[r], todo)
            if local is not None or not self.corrected or correction is not None:
                self.changes[int(k)] = changes[r, k]
        return changes

    def summed_local_sgd(
        self, x: FloatArray, who: np.ndarray, weights: FloatArray, **steps: Any
    ) -> FloatArray:
        """Return ``sum_i weights_i (y_K^i - x)``, (replicas, d)."""
        if self.slip.weights is not None:
            weights = self._weighed(weights)
        found: FloatArray = super().summed_local_sgd(x, who, weights, **steps)
        return found

    def loss(self, x: FloatArray, who: np.ndarray) -> FloatArray:
        """Return each client's loss, (replicas, N), which is zero for absent clients."""
        losses = np.zeros(who.shape)
        for r, k in zip(*np.nonzero(who), strict=True):
            report = self.slip.loss
            client = self.clients[k]
            losses[r, k] = client.loss(x[r]) if report is None else report(self, int(k), x[r])
        return losses

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Return the server's own gradient, (replicas, d)."""
        if self.server is None:
            raise ValueError("clients must be asked for nothing of the server's own data")
        return np.array([self.server.gradient(one) for one in x])


class _Namespace:
    """The functions of NumPy, except for the mean over clients."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def __getattr__(self, name: str) -> Any:
        return getattr(array_api_compat.numpy, name)

    def mean(self, array: FloatArray, axis: int, keepdims: bool = False) -> FloatArray:
        """Return the slip's mean over clients, (1, d) or (1, 1, d)."""
        change = self._play.slip.mean
        assert change is not None
        found = np.asarray(change(self._play, array[0], array[0].mean(axis=0)))
        return found[None, None] if keepdims else found[None]


def _rebound(method: FunctionType, play: Play, names: Mapping[str, Change]) -> FunctionType:
    """Return a method whose global names refer to changed functions."""
    known = method.__globals__
    instead = {name: partial(names[name], play, known[name]) for name in names if name in known}
    code, defaults, closure = method.__code__, method.__defaults__, method.__closure__
    bound = FunctionType(code, {**known, **instead}, method.__name__, defaults, closure)
    bound.__kwdefaults__ = method.__kwdefaults__
    return bound


def algorithm_of(one: Specification, sizes: Sequence[float], **given: Any) -> Algorithm | Schedule:
    """Return the package's algorithm for the arguments of ``run``, including data sizes."""
    if one.server:
        # The trace determines which branch a round takes.
        given["q"] = 0.5
    if not one.by_size:
        return one.listed(**given)
    weighting = given.pop("weighting", "n_samples")
    validation.one_of("weighting", weighting, ("n_samples", "uniform"))
    weighs = weighting == "n_samples" and any(sizes)
    given["client_weights"] = tuple(map(float, sizes)) if weighs else None
    if one.name == "fedavg":
        # FedAvg weighted by data size is FedProx without its proximal term.
        return listed("fedprox")(proximal=0.0, **given)
    return one.listed(**given)


@checks_kinds
def run_of(name: str) -> Run:
    """Return one of the package's algorithms as a ``run``, which is the suite's reference.

    Parameters
    ----------
    name : str
        A name from ``fltheory conformance --list``.

    Returns
    -------
    callable
        ``run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options)``.

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from fltheory.testing import run_of
    >>> from fltheory.testing.conformance.case import QuadraticClient
    >>> client = QuadraticClient(np.eye(1), np.zeros(1))
    >>> run = run_of("scaffold")
    >>> run(np.ones(1), [client], np.ones((2, 1), bool), client_lr=0.5, local_steps=1,
    ...     server_lr=1.0).tolist()
    [[1.0], [0.5], [0.25]]
    """
    one = specification(name)

    def run(
        x0: FloatArray, clients: Sequence[LossClient], trace: np.ndarray, **given: Any
    ) -> FloatArray:
        """Return the models after every round."""
        return Play(one, np.asarray(x0)[None], clients, trace, given).models()[:, 0]

    return run

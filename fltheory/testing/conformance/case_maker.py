"""Cases drawn from a seed: different clients, traces of every kind, hyper-parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fltheory import validation
from fltheory.testing.conformance.case import Case, QuadraticClient, Trace
from fltheory.testing.conformance.own_runs import Change, Play, Slip
from fltheory.testing.conformance.specifications import STEP_SIZES, Specification
from fltheory.validation import FloatArray

Kind: TypeAlias = Callable[[np.random.Generator, int, int], Trace]

_MOST_DRAWS = 100
_SERVER_ROUNDS = 0.3


def full(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace in which everybody takes part in every round."""
    return np.ones((rounds, n), dtype=bool)


def uniform(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace with the same number of clients in each round, drawn uniformly."""
    size = max(1, n // 2)
    return np.array([rng.permutation(n) < size for _ in range(rounds)])


def uneven(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace of independent clients, some of which are rarely present."""
    return np.asarray(rng.random((rounds, n)) < np.linspace(0.85, 0.3, n))


def bursty(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace of clients that come and go in bursts, following independent chains."""
    here, trace = rng.random(n) < 0.5, []
    for _ in range(rounds):
        trace.append(here)
        here = here ^ (rng.random(n) < 0.3)
    return np.array(trace)


def with_empty(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace with empty rounds, including the first and the last."""
    trace = uneven(rng, rounds, n)
    trace[0] = trace[-1] = trace[rounds // 2] = False
    return trace


def late(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace in which one client appears only after two thirds of the rounds."""
    trace = uneven(rng, rounds, n)
    first = 2 * rounds // 3
    trace[:first, n - 1], trace[first, n - 1] = False, True
    return trace


def long_absence(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace in which the first client is absent for most of the run and returns."""
    trace = uneven(rng, rounds, n)
    trace[0, 0], trace[1 : rounds - 2, 0], trace[rounds - 2 :, 0] = True, False, True
    return trace


def never(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace in which the last client is never present."""
    trace = uneven(rng, rounds, n)
    trace[:, n - 1] = n == 1
    return trace


@dataclass(frozen=True, eq=False)
class CaseMaker:
    """Draws cases for an algorithm, with the values that the user fixed.

    Attributes
    ----------
    specification : Specification
    hyper : mapping
        Options and step sizes that are fixed, not varied.
    rng : numpy.random.Generator
    rtol : float
        Relative tolerance on models.
    """

    specification: Specification
    hyper: Mapping[str, Any]
    rng: np.random.Generator
    rtol: float = 1e-9

    @property
    def n_fixed(self) -> int | None:
        """The number of clients that fixed options require, or None if they require none."""
        return self.specification.n_clients(self.hyper)

    def number_of_clients(self, n: int) -> int:
        """Return the number of clients that the fixed options require, or else n."""
        return self.n_fixed or max(n, self.specification.fewest(self.hyper))

    def case(
        self, kind: Kind = uneven, *, told: Callable[[Case], Case] | None = None, **wanted: Any
    ) -> Case:
        """Return a case from `drawn`, optionally transformed, in which no choice is nearly a tie.

        Ties are checked in the transformed case.
        """
        for _ in range(_MOST_DRAWS):
            drawn = self.drawn(kind, **wanted)
            case = drawn if told is None else told(drawn)
            if steady(self.specification, case, self.rtol):
                break
        return case

    def drawn(
        self,
        kind: Kind = uneven,
        *,
        n: int = 3,
        dim: int = 2,
        rounds: int = 8,
        steps: int | None = None,
        client_lr: float | None = None,
        server_lr: float | None = None,
        sizes: Sequence[int] | None = None,
        hessians: FloatArray | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Case:
        """Return a case; arguments that are left out are drawn.

        ``hessians`` are in units of 1 / client_lr.
        """
        rng, n = self.rng, self.number_of_clients(n)
        wanted = client_lr or rng.uniform(0.05, 0.5)
        stable = min(wanted, self.specification.largest_lr(self.hyper))
        lr = validation.positive("client_lr", self.hyper.get("client_lr", stable))
        rate = self.hyper.get("server_lr", server_lr or rng.uniform(0.5, 1.3))
        rate = validation.positive("server_lr", rate) if self.specification.server_lr else None
        trace = kind(rng, rounds, n)
        if self.specification.server:
            # Server rounds are random, independently of the clients.
            trace = np.column_stack([trace, rng.random(rounds) < _SERVER_ROUNDS])
            n += 1
        curvatures = [self._curvature(dim) for _ in range(n)] if hessians is None else hessians
        counts = rng.integers(1, 9, n).tolist() if sizes is None else list(sizes)[:n]
        counts += [1] * (n - len(counts))
        clients = tuple(
            QuadraticClient(np.asarray(curvature) / lr, 3 * rng.standard_normal(dim), int(count))
            for curvature, count in zip(curvatures, counts, strict=False)
        )
        return self.specification.prepared(
            Case(
                clients=clients,
                x0=3 * rng.standard_normal(dim),
                trace=trace,
                client_lr=lr,
                local_steps=self._steps(n, steps),
                server_lr=rate,
                options=self.options(n, options or {}),
                kinds=self.specification.options,
            )
        )

    def options(self, n: int, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return options for n clients: the fixed ones, the wanted ones, and others at random."""
        kinds = self.specification.options
        drawn = self.specification.draw(self.rng, n, self.hyper)
        chosen = {**drawn, **{k: v for k, v in wanted.items() if k in kinds}}
        given = {k: v for k, v in self.hyper.items() if k not in STEP_SIZES}
        found = {k: v for k, v in {**chosen, **given}.items() if v is not None}
        both = {"availability", "correlation"}
        if both <= set(kinds) and not both <= set(found):
            # CA-Fed either knows both or estimates both.
            found = {k: v for k, v in found.items() if k not in both}
        return {name: kinds[name].for_clients(value, n) for name, value in found.items()}

    def allows(self, **wanted: Any) -> bool:
        """Return whether the fixed values are compatible with these values."""
        return all(self.hyper.get(name, value) == value for name, value in wanted.items())

    def _steps(self, n: int, steps: int | None) -> int | tuple[int, ...]:
        given = self.hyper.get("local_steps")
        if given is not None:
            fixed: int | tuple[int, ...] = self.specification.steps.for_clients(given, n)
            return fixed
        if self.specification.sized_steps:
            return (steps,) * n if steps else tuple(int(s) for s in self.rng.integers(1, 6, n))
        return steps or int(self.rng.integers(2, 5))

    def _curvature(self, dim: int) -> FloatArray:
        turn = np.linalg.qr(self.rng.standard_normal((dim, dim)))[0]
        return np.asarray((turn * self.rng.uniform(0.1, 0.6, dim)) @ turn.T)


_LEAST = 1e-8
# A relative change of the numbers may change models by up to this many times as much.
_AMPLIFIED = 1e3
_ORDERS = 2


def steady(one: Specification, case: Case, rtol: float = 1e-9) -> bool:
    """Return whether slightly different numbers lead to slightly different models.

    If not, a choice in the case is nearly a tie, so it is decided by rounding or by an order that
    the paper leaves open. In single precision, for which ``rtol`` is about 1e-4, the differences
    are larger.
    """
    if not one.chooses:
        return True
    # In one step, the rounding of an implementation may be rtol/100 at most.
    small = max(_LEAST, rtol / 100)
    nudges = _nudges(case.n_clients, small)
    x0 = case.x0 * (1 + np.concatenate([[0.0], np.sign(nudges[:, 0, 0])]) * small)[:, None]
    nudged = Play(one, x0, case.clients, case.trace, case.keywords, _nudged(nudges))
    with np.errstate(all="ignore"):
        models = nudged.models()
    size = float(np.abs(models[:, 0]).max()) + case.scale
    far = np.abs(models[:, 1:] - models[:, :1]).max()
    return bool(far <= max(_AMPLIFIED * _LEAST, rtol / 2, 30 * small) * size)


def _nudges(n: int, small: float) -> FloatArray:
    """Return the perturbations of the clients' two numbers, (replicas, 2, N).

    Tied clients are perturbed into one order, the opposite order, and some others.
    """
    rng, ascending = np.random.default_rng(n), np.arange(n)
    orders = [(ascending, ascending), (ascending, -ascending)]
    orders += [(rng.permutation(n), rng.permutation(n)) for _ in range(_ORDERS)]
    return np.array([s * small * (1 + np.array(o) / n) for o in orders for s in (1, -1)])


def _nudged(nudges: FloatArray) -> Slip:
    """Return an algorithm that has the given numbers in its first replica, perturbed in others."""
    first, second = np.concatenate([np.zeros((1, *nudges.shape[1:])), nudges]).swapaxes(0, 1)
    sign = np.sign(first[:, :1]) * np.abs(first).min(axis=1, keepdims=True)

    def estimates(play: Play, plain: Change) -> Callable[..., Any]:
        def found(state: Any, who: Any) -> Any:
            counts, pi, correlation = plain(state, who)
            return counts, pi + first, correlation + second

        return found

    return Slip(
        "",
        names={
            "on_backend": lambda play, plain, known, like: (
                known if known.ndim == 2 else plain(known, like)
            ),
            "check_one_each": lambda *_: None,
        },
        algorithm={
            "target_weights": lambda play, alpha: alpha * (1 + first),
            "availability": lambda play, pi: pi if pi is None else pi * (1 + first),
            # If all compared numbers are exactly 0, only this check reveals a tie.
            "threshold": lambda play, threshold: threshold + sign,
            "prior": lambda play, prior: (prior[0] * (1 + sign), prior[1]),
            "_availability": estimates,
        },
    )

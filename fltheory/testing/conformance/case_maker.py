"""Cases drawn from a seed: clients that differ, traces of every kind, hyper-parameters."""

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
    """Return a trace with everybody in every round."""
    return np.ones((rounds, n), dtype=bool)


def uniform(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return as many clients in every round, any of them alike."""
    size = max(1, n // 2)
    return np.array([rng.permutation(n) < size for _ in range(rounds)])


def uneven(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return independent clients, some of them rarely there."""
    return np.asarray(rng.random((rounds, n)) < np.linspace(0.85, 0.3, n))


def bursty(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return clients that come and go by chains of their own, and stay for long."""
    here, trace = rng.random(n) < 0.5, []
    for _ in range(rounds):
        trace.append(here)
        here = here ^ (rng.random(n) < 0.3)
    return np.array(trace)


def with_empty(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return rounds in some of which nobody is present, the first and the last among them."""
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
    """Return a trace in which the first client goes away for most of the run, and returns."""
    trace = uneven(rng, rounds, n)
    trace[0, 0], trace[1 : rounds - 2, 0], trace[rounds - 2 :, 0] = True, False, True
    return trace


def never(rng: np.random.Generator, rounds: int, n: int) -> Trace:
    """Return a trace in which the last client never comes."""
    trace = uneven(rng, rounds, n)
    trace[:, n - 1] = n == 1
    return trace


@dataclass(frozen=True, eq=False)
class CaseMaker:
    """Draws cases for an algorithm with what the user fixed.

    Attributes
    ----------
    specification : Specification
    hyper : mapping
        Options and step sizes that are given, and not varied.
    rng : numpy.random.Generator
    rtol : float
        How far models may differ by rounding.
    """

    specification: Specification
    hyper: Mapping[str, Any]
    rng: np.random.Generator
    rtol: float = 1e-9

    @property
    def n_fixed(self) -> int | None:
        """How many clients there must be, where options that are given say so."""
        return self.specification.n_clients(self.hyper)

    def number_of_clients(self, n: int) -> int:
        """Return n, or how many there must be for what the user fixed."""
        return self.n_fixed or max(n, self.specification.fewest(self.hyper))

    def case(
        self, kind: Kind = uneven, *, told: Callable[[Case], Case] | None = None, **wanted: Any
    ) -> Case:
        """Return a case as `drawn` does, told in another way, in which nothing turns a choice.

        Whether one is a tie, or nearly so, is seen in the case as it is told.
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
        """Return a case; what is left out is drawn.

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
            # The server's own rounds come by chance, whoever else is there.
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
        """Return options for n clients: those given, those wanted, and others as drawn."""
        kinds = self.specification.options
        drawn = self.specification.draw(self.rng, n, self.hyper)
        chosen = {**drawn, **{k: v for k, v in wanted.items() if k in kinds}}
        given = {k: v for k, v in self.hyper.items() if k not in STEP_SIZES}
        found = {k: v for k, v in {**chosen, **given}.items() if v is not None}
        both = {"availability", "correlation"}
        if both <= set(kinds) and not both <= set(found):
            # CA-Fed knows both or estimates both.
            found = {k: v for k, v in found.items() if k not in both}
        return {name: kinds[name].for_clients(value, n) for name, value in found.items()}

    def allows(self, **wanted: Any) -> bool:
        """Whether what the user fixed leaves these values open, or has them."""
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
# A change of the numbers by a part may change models by this many times that part.
_AMPLIFIED = 1e3
_ORDERS = 2


def steady(one: Specification, case: Case, rtol: float = 1e-9) -> bool:
    """Return whether numbers that differ a little lead to models that do.

    If not, a choice is a tie or nearly one there, which rounding turns, or an order that the
    paper leaves open. In single precision, for which ``rtol`` is 1e-4 or so, numbers differ more.
    """
    if not one.chooses:
        return True
    # Rounding to rtol/100 is what an implementation may do at most in a step.
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
    """Return by what clients' two numbers differ, (replicas, 2, N).

    Clients that tie come in one order, in the opposite one, and in some others.
    """
    rng, ascending = np.random.default_rng(n), np.arange(n)
    orders = [(ascending, ascending), (ascending, -ascending)]
    orders += [(rng.permutation(n), rng.permutation(n)) for _ in range(_ORDERS)]
    return np.array([s * small * (1 + np.array(o) / n) for o in orders for s in (1, -1)])


def _nudged(nudges: FloatArray) -> Slip:
    """Return an algorithm of which the first replica has the numbers given, and others nearly."""
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
            # Where all that is compared is exactly 0, nothing else tells a tie.
            "threshold": lambda play, threshold: threshold + sign,
            "prior": lambda play, prior: (prior[0] * (1 + sign), prior[1]),
            "_availability": estimates,
        },
    )

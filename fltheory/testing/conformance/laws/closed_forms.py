"""Laws whose expected models are formulas, without any implementation of an algorithm.

K steps on ``1/2 (x - c)' H (x - c)`` change the model by ``-P (x - c)`` with
``P = I - (I - lr H)^K``; with a proximal strength mu, H + mu takes the place of H in the power,
and ``P = H (H + mu)^-1 (I - (I - lr (H + mu))^K)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fltheory.testing.conformance.bench import Bench, Comparison, Trial
from fltheory.testing.conformance.cases import case_maker
from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.case_maker import CaseMaker
from fltheory.testing.conformance.cases.clients import QuadraticClient
from fltheory.validation import FloatArray


def pull(case: Case, k: int) -> FloatArray:
    """Return P of a client, (d, d)."""
    hessian, identity = case.clients[k].hessian, np.eye(case.dim)
    held = hessian + float((case.options or {}).get("proximal", 0.0)) * identity
    power = np.linalg.matrix_power(identity - case.client_lr * held, case.steps[k])
    return np.asarray(hessian @ np.linalg.solve(held, identity - power))


def weights(case: Case, name: str) -> FloatArray:
    """Return how clients count where everybody is always present, (N,)."""
    options, n = case.options or {}, case.n_clients
    sizes = np.array([client.n_samples for client in case.clients], dtype=np.float64)
    if name == "fednova":
        p, tau = sizes / sizes.sum(), np.array(case.steps)
        return np.asarray((p @ tau) * p / tau)
    if name in ("fedavg", "fedprox") and options.get("weighting") == "n_samples":
        return sizes / sizes.sum()
    if "target_weights" in options:
        return np.array(options["target_weights"])
    return np.full(n, 1 / n)


def everybody(make: CaseMaker, n: int) -> dict[str, Any] | None:
    """Return options for a world in which everybody is always there, None if others are fixed."""
    ones = (1.0,) * n
    wanted: dict[str, Any] = {"availability": ones, "size": n, "kappa_bar": 1e6}
    if make.specification.name == "ca-fed":
        wanted |= {"correlation": (0.0,) * n}
    known = {name: value for name, value in wanted.items() if name in make.specification.options}
    return known if make.allows(**known) else None


def _descent(bench: Bench, case: Case) -> Comparison:
    """Expect ``x <- x - server_lr sum_k w_k P (x - c_k)``, P shared."""
    shares, models = weights(case, bench.specification.name), [case.x0]
    centres = np.array([client.optimum for client in case.clients])
    for _ in range(case.rounds):
        x = models[-1]
        change = sum(w * pull(case, k) @ (x - centres[k]) for k, w in enumerate(shares))
        models.append(x - case.server_lr * np.asarray(change))
    return bench.compared(case, np.array(models), bench.actual(case))


def one_client(make: CaseMaker) -> Iterator[Trial]:
    """Yield cases with a single client, always present: every algorithm is gradient descent."""
    if make.number_of_clients(1) != 1 or (options := everybody(make, 1)) is None:
        return
    for dim, rounds in ((1, 2), (3, 5)):
        case = make.case(case_maker.full, n=1, dim=dim, rounds=rounds, options=options)
        yield Trial(case, _descent, shrinks=False)


def alike_curvatures(make: CaseMaker) -> Iterator[Trial]:
    """Yield cases with everybody present and one Hessian: controls and memories cancel."""
    for n, dim, rounds in ((2, 1, 3), (4, 2, 6)):
        n = make.number_of_clients(n)
        options = everybody(make, n)
        if options is None:
            return
        turn = np.linalg.qr(make.rng.standard_normal((dim, dim)))[0]
        shared = (turn * make.rng.uniform(0.1, 0.6, dim)) @ turn.T
        case = make.case(
            case_maker.full,
            n=n,
            dim=dim,
            rounds=rounds,
            steps=3,
            hessians=np.array([shared] * n),
            options=options,
        )
        yield Trial(case, _descent, shrinks=False)


def _flat(case: Case) -> Case:
    """Return the case with gradients that are the same everywhere, a coordinate for each client."""
    n = case.n_clients
    clients = tuple(
        QuadraticClient(
            np.zeros((n, n)), np.zeros(n), client.n_samples, np.eye(n)[k] / case.client_lr
        )
        for k, client in enumerate(case.clients)
    )
    return replace(case, clients=clients, x0=np.zeros(n))


def _by_pseudo_code(bench: Bench, case: Case) -> Comparison:
    expected = bench.specification.paper.models(case)
    return bench.compared(case, expected, bench.actual(case))


def shown_weights(make: CaseMaker) -> Iterator[Trial]:
    """Yield cases in which the coordinates of a round's change are the clients' weights."""
    for kind, n, rounds in ((case_maker.full, 2, 2), (case_maker.uneven, 3, 8)):
        case = make.case(kind, n=n, dim=1, rounds=rounds, told=_flat)
        yield Trial(case, _by_pseudo_code, shrinks=False)


_REMEMBERING = ("scaffold", "fedvarp", "mifa")


def remembers(name: str) -> bool:
    """Whether an algorithm's memory stands for all clients once they have appeared."""
    return name in _REMEMBERING


def _as_if_all(bench: Bench, case: Case) -> Comparison:
    """Expect that once all have appeared each round moves as if all were there.

    Gradients g_k are constant. SCAFFOLD: the mean of the c_i is c, so that y - x is -K lr c,
    whoever is there. FedVARP: the surprise is 0, the memory's mean is left. MIFA: the table's
    mean, in an empty round, too.
    """
    models, n = bench.actual(case), case.n_clients
    slopes = np.array([client.slope for client in case.clients])
    step = case.server_lr * case.client_lr * case.steps[0] * slopes.mean(axis=0)
    still = np.zeros_like(step)
    always = bench.specification.name == "mifa"
    moves = [step if always or row.any() else still for row in case.trace[n:]]
    expected = np.concatenate([models[n : n + 1], models[n] - np.cumsum(moves, axis=0)])
    found = bench.compared(case, expected, models[n:])
    label = f"{n} rounds and {{row}} more"
    return Comparison(found.expected, found.actual, found.tolerance, label)


def adds_up(make: CaseMaker) -> Iterator[Trial]:
    """Yield cases in which all appear one by one, and then come and go."""
    for n, rounds in ((2, 5), (4, 12)):
        case = make.case(case_maker.with_empty, n=n, dim=1, rounds=rounds, told=_flat)
        trace = case.trace.copy()
        trace[: case.n_clients] = np.eye(case.n_clients, dtype=bool)
        yield Trial(case.with_trace(trace), _as_if_all, shrinks=False)

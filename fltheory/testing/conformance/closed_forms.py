"""Laws whose expected models come from formulas, not from an implementation.

K steps on ``1/2 (x - c)' H (x - c)`` change the model by ``-P (x - c)`` with
``P = I - (I - lr H)^K``; With a proximal strength mu, H in the power is replaced by H + mu, so that
``P = H (H + mu)^-1 (I - (I - lr (H + mu))^K)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fltheory.testing.conformance import case_maker
from fltheory.testing.conformance.bench import Bench, LawTrial, ModelComparison
from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.case_maker import CaseMaker
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray


def pull(case: Case, k: int, steps: int) -> FloatArray:
    """Return the matrix P of a client's local steps, (d, d)."""
    hessian, identity = case.clients[k].hessian, np.eye(case.dim)
    held = hessian + float(case.options.get("proximal", 0.0)) * identity
    power = np.linalg.matrix_power(identity - case.client_lr * held, steps)
    return np.asarray(hessian @ np.linalg.solve(held, identity - power))


def weights(one: Specification, case: Case) -> FloatArray:
    """Return the clients' weights, (N,), if everybody is always present."""
    options, n = case.options, case.n_clients
    sizes = np.array([client.n_samples for client in case.clients], dtype=np.float64)
    if one.by_size and options.get("weighting", "n_samples") == "n_samples":
        p, tau = sizes / sizes.sum(), np.array(case.steps)
        return np.asarray((p @ tau) * p / tau)
    for name in ("target_weights", "aggregation_weights"):
        if name in options:
            return np.array(options[name])
    return np.full(n, 1 / n)


def everybody(make: CaseMaker, n: int) -> dict[str, Any] | None:
    """Return options for full participation, or None if the fixed options differ."""
    ones = (1.0,) * n
    wanted: dict[str, Any] = {"availability": ones, "size": n, "kappa_bar": 1e6}
    if make.specification.name == "ca-fed":
        wanted |= {"correlation": (0.0,) * n}
    known = {name: value for name, value in wanted.items() if name in make.specification.options}
    return known if make.allows(**known) else None


def _descent(bench: Bench, case: Case) -> ModelComparison:
    """Expect ``x <- x - server_lr sum_k w_k P (x - c_k)``, with a shared P."""
    one, models = bench.specification, [case.x0]
    shares = weights(one, case)
    pulls = [pull(case, k, 1 if one.step_a_round else steps) for k, steps in enumerate(case.steps)]
    centres = np.array([client.optimum for client in case.clients])
    for _ in range(case.rounds):
        x = models[-1]
        change = sum(w * pulls[k] @ (x - centres[k]) for k, w in enumerate(shares))
        models.append(x - case.rate * np.asarray(change))
    return bench.compared(case, np.array(models), bench.actual(case))


def one_client(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases with a single client, always present; every algorithm is gradient descent."""
    if make.number_of_clients(1) != 1 or (options := everybody(make, 1)) is None:
        return
    for dim, rounds in ((1, 2), (3, 5)):
        case = make.case(case_maker.full, n=1, dim=dim, rounds=rounds, options=options)
        yield LawTrial(case, _descent, shrinks=False)


def alike_curvatures(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases with everybody present and one Hessian, where controls and memories cancel."""
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
        yield LawTrial(case, _descent, shrinks=False)


def _flat(case: Case) -> Case:
    """Return the case with constant gradients, one coordinate per client."""
    n = case.n_clients
    flat = {"hessian": np.zeros((n, n)), "optimum": np.zeros(n)}
    return case.with_clients(
        lambda k, client: {**flat, "slope": np.eye(n)[k] / case.client_lr}, x0=np.zeros(n)
    )


def _by_formula(bench: Bench, case: Case) -> ModelComparison:
    """Expect each round to move coordinate k by -K times the weight of client k.

    With a proximal term, K is replaced by ``sum_j (1 - lr mu)^j``. Algorithms with weights that
    depend on more than presence and given numbers have no formula here. For these algorithms, the
    package's own models are expected.
    """
    one, options = bench.specification, case.options
    if not one.divisor or one.memory or one.chooses or one.server or "cutoff" in options:
        return bench.against_ours(case)
    raw = weights(one, case)
    if "availability" in options:
        raw = raw / np.array(options["availability"])
    shrunk = 1 - case.client_lr * options.get("proximal", 0.0)
    steps = np.array([sum(shrunk**j for j in range(number)) for number in case.steps])
    shares, rows = raw * case.trace, case.trace * 1.0
    if one.sized_steps:
        # p over those present, and the tau_eff of this; raw is p tau_eff / tau of all clients.
        p = raw * case.steps * rows
        p = p / np.where(p.sum(axis=1) > 0, p.sum(axis=1), 1.0)[:, None]
        shares = (p @ np.array(case.steps))[:, None] * p / case.steps
    elif one.divisor == "present":
        total = shares.sum(axis=1, keepdims=True)
        shares = shares / np.where(total > 0, total, 1.0)
    moves = np.cumsum(case.rate * shares * steps, axis=0)
    expected = np.concatenate([case.x0[None], case.x0 - moves])
    return bench.compared(case, expected, bench.actual(case))


def shown_weights(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases in which the coordinates of a round's change are the clients' weights."""
    for kind, n, rounds in ((case_maker.full, 2, 2), (case_maker.uneven, 3, 8)):
        case = make.case(kind, n=n, dim=1, rounds=rounds, told=_flat)
        yield LawTrial(case, _by_formula, shrinks=False)


def _as_if_all(bench: Bench, case: Case) -> ModelComparison:
    """Expect each round to move as if all were present, once all clients have appeared.

    Gradients g_k are constant. For SCAFFOLD, the mean of the c_i is c, so y - x is -K lr c, whoever
    is present. For FedVARP, the surprise is 0, which leaves the memory's mean. For MIFA, the move
    is the table's mean, even in an empty round.
    """
    models, n = bench.actual(case), case.n_clients
    slopes = np.array([client.slope for client in case.clients])
    step = case.rate * case.client_lr * case.steps[0] * slopes.mean(axis=0)
    still = np.zeros_like(step)
    always = bench.specification.name == "mifa"
    moves = [step if always or row.any() else still for row in case.trace[n:]]
    expected = np.concatenate([models[n : n + 1], models[n] - np.cumsum(moves, axis=0)])
    found = bench.compared(case, expected, models[n:])
    label = f"{n} rounds and {{row}} more"
    return ModelComparison(found.expected, found.actual, found.tolerance, label)


def adds_up(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases in which all clients appear one by one, and then come and go."""
    for n, rounds in ((2, 5), (4, 12)):
        case = make.case(case_maker.with_empty, n=n, dim=1, rounds=rounds, told=_flat)
        trace = case.trace.copy()
        trace[: case.n_clients] = np.eye(case.n_clients, dtype=bool)
        yield LawTrial(case.with_trace(trace), _as_if_all, shrinks=False)


_ROUNDS = 150


def _fixed_point(bench: Bench, case: Case) -> ModelComparison:
    """Expect the root of ``sum_k w_k P_k (x - c_k)``; for SCAFFOLD, the mean loss's minimiser."""
    one = bench.specification
    matrices = [w * pull(case, k, case.steps[k]) for k, w in enumerate(weights(one, case))]
    if one.name == "scaffold":
        matrices = [client.hessian / case.n_clients for client in case.clients]
    right = sum(m @ c.optimum for m, c in zip(matrices, case.clients, strict=True))
    expected = np.linalg.solve(np.sum(matrices, axis=0), np.asarray(right))
    # If a round is a single step, models are averaged after the last of several steps.
    rounds = case.rounds - (case.rounds % case.steps[0] if one.step_a_round else 0)
    left_over = float(np.abs(bench.ours(case)[rounds] - expected).max())
    tolerance = max(1e-8, bench.rtol) * case.scale + 10 * left_over
    last = bench.actual(case)[rounds : rounds + 1]
    return ModelComparison(expected[None], last, tolerance, f"after {rounds} rounds")


def fixed_point(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield long cases with everybody present, with equal and unequal data sizes."""
    for sizes in ((4, 4, 4), (1, 2, 9)):
        n = make.number_of_clients(3)
        options = everybody(make, n)
        if options is None:
            return
        wanted: dict[str, Any] = {
            "n": n,
            "rounds": _ROUNDS,
            "server_lr": 1.0,
            "sizes": sizes,
            "options": options,
        }
        yield LawTrial(make.case(case_maker.full, **wanted), _fixed_point, shrinks=False)

"""Where runs end up: long-run averages beside the exact limit of the mean model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from fltheory.engines import Setting, stationary
from fltheory.engines.clients.noise import Silence
from fltheory.engines.clients.quadratic_clients import QuadraticClients
from fltheory.engines.simulation import simulate
from fltheory.participation import Bernoulli, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.testing.conformance.bench import Bench, Comparison, Trial
from fltheory.testing.conformance.cases import case_maker
from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.case_maker import CaseMaker
from fltheory.testing.conformance.laws.closed_forms import everybody, pull, weights
from fltheory.testing.conformance.own_runs import algorithm_of
from fltheory.testing.conformance.specifications import Options
from fltheory.validation import FloatArray

ROUNDS, BURN_IN, REPLICAS = 400, 150, 200
ERRORS = 8.0
"""Standard errors that are allowed, beside what ours is off on the very same trace.

So a right implementation, whose models are ours but for rounding, never fails by bad luck: CA-Fed's
averages have heavy tails, and were 8.2 standard errors away on one of 45 traces. Normal ones are
with a probability of 2.0e-13, in one of two coordinates, by Student's t of 200 runs.
"""
_FULL_ROUNDS = 150
_FORGOTTEN = 20


def _full_limit(bench: Bench, case: Case) -> Comparison:
    """Expect the root of ``sum_k w_k P_k (x - c_k)``, of SCAFFOLD the minimum of the mean loss."""
    name = bench.specification.name
    if name == "scaffold":
        matrices = [client.hessian / case.n_clients for client in case.clients]
    else:
        matrices = [w * pull(case, k) for k, w in enumerate(weights(case, name))]
    right = sum(m @ c.optimum for m, c in zip(matrices, case.clients, strict=True))
    expected = np.linalg.solve(np.sum(matrices, axis=0), np.asarray(right))
    left_over = float(np.abs(bench.ours(case)[-1] - expected).max())
    tolerance = max(1e-8, bench.rtol) * case.scale + 10 * left_over
    last = bench.actual(case)[-1:]
    return Comparison(expected[None], last, tolerance, f"after {case.rounds} rounds")


def full(make: CaseMaker) -> Iterator[Trial]:
    """Yield cases with everybody present for long, of equal and of unequal sizes."""
    for sizes in ((4, 4, 4), (1, 2, 9)):
        n = make.number_of_clients(3)
        options = everybody(make, n)
        if options is None:
            return
        case = make.case(
            case_maker.full,
            n=n,
            rounds=_FULL_ROUNDS,
            server_lr=1.0,
            sizes=sizes,
            options=options,
        )
        yield Trial(case, _full_limit, shrinks=False)


class _Drawn:
    """A case's long-run average beside the exact limit, given who shows up."""

    def __init__(self, participation: Participation, seed: int) -> None:
        self.participation, self.seed = participation, seed

    def __call__(self, bench: Bench, case: Case) -> Comparison:
        """Compare averages over the rounds after the burn-in."""
        actual = bench.actual(case)[BURN_IN:].mean(axis=0)
        ours = bench.ours(case)[BURN_IN:].mean(axis=0)
        rounding = bench.rtol * (case.scale + float(np.abs(bench.ours(case)).max()))
        if (np.abs(actual - ours) <= rounding).all():
            # What is ours but for rounding is within what is allowed below, whatever the limit.
            return Comparison(ours[None], actual[None], rounding)
        averages = self._averages(bench, case)
        spread = averages.std(axis=0, ddof=1)
        options = bench.specification.at_the_limit
        known = options is not None
        mean = averages.mean(axis=0)
        expected = mean
        if known:
            expected = stationary(self._setting(bench, case, options)).mean
        error = spread * (1.0 if known else np.sqrt(1 + 1 / REPLICAS))
        # What the burn-in leaves of x0 is in both. Where nothing else moves a run, this is all
        # there is: its law has a heavy tail, and how much is left on this trace only ours can say.
        left_over = np.maximum(np.abs(mean - expected), np.abs(ours - expected))
        tolerance = ERRORS * error + left_over + rounding
        what = "the exact limit" if known else f"{REPLICAS} runs of ours"
        label = (
            f"average over rounds {BURN_IN + 1} to {ROUNDS}, beside {what}, with "
            f"{ERRORS:g} standard errors of {float(error.max()):.2g} allowed, and how far ours is "
            "off on this trace: nobody fails by bad luck"
        )
        return Comparison(expected[None], actual[None], tolerance, label)

    def _setting(self, bench: Bench, case: Case, options: Options | None = None) -> Setting:
        sizes = [client.n_samples for client in case.clients]
        problem = QuadraticProblem(
            np.array([client.hessian for client in case.clients]),
            np.array([client.optimum for client in case.clients]),
        )
        algorithm = algorithm_of(
            bench.specification.name, sizes, **{**case.keywords, **(options or {})}
        )
        return Setting(algorithm, problem, self.participation, ROUNDS, case.x0)

    def _averages(self, bench: Bench, case: Case) -> FloatArray:
        """Return the average of each of many runs of ours, (replicas, d)."""
        setting = self._setting(bench, case)
        clients = QuadraticClients(setting.problem, Silence())  # type: ignore[arg-type]
        runs = simulate(
            setting.algorithm,
            clients,
            self.participation,
            np.tile(case.x0, (REPLICAS, 1)),
            participation_rng=np.random.default_rng(self.seed),
            branch_rng=np.random.default_rng(0),
        )
        models = [state["x"] for state, _ in islice(runs, BURN_IN, ROUNDS + 1)]
        return np.asarray(np.mean(models, axis=0))


def _along(
    make: CaseMaker, participation: Participation, sizes: tuple[int, ...]
) -> Iterator[Trial]:
    n = participation.n_clients
    case = make.case(
        case_maker.full,
        n=n,
        rounds=1,
        steps=2,
        server_lr=1.0,
        sizes=sizes,
        hessians=np.array([np.diag(make.rng.uniform(0.3, 0.6, 2)) for _ in range(n)]),
        options={
            "start": "zero",
            "availability": tuple(participation.marginals.tolist()),
            "correlation": (0.0,) * n,
        },
    )
    masks = participation.masks(make.rng, 1)
    trace = np.array([mask[0] for mask in islice(masks, ROUNDS)])
    seed = int(make.rng.integers(1 << 31))
    case = make.specification.prepared(case.with_trace(trace))
    # Early ties are forgotten; where choices are ties for ever, the limit depends on who wins.
    if not np.array_equal(case.trace[_FORGOTTEN:], trace[_FORGOTTEN:]):
        return
    yield Trial(case, _Drawn(participation, seed), shrinks=False)


def _sizes(n: int) -> tuple[int, ...]:
    return tuple(range(1, 2 * n, 2))


def uniform(make: CaseMaker) -> Iterator[Trial]:
    """Yield a long run with uniform subsets."""
    n = make.number_of_clients(3)
    yield from _along(make, UniformSubset(n, max(1, n // 2)), _sizes(n))


def uneven(make: CaseMaker) -> Iterator[Trial]:
    """Yield a long run with independent uneven clients."""
    n = make.number_of_clients(3)
    yield from _along(make, Bernoulli(np.linspace(0.9, 0.4, n)), (2,) * n)


def markov(make: CaseMaker) -> Iterator[Trial]:
    """Yield a long run with uneven clients that stay and stay away."""
    n = make.number_of_clients(3)
    yield from _along(make, MarkovOnOff(np.linspace(0.8, 0.4, n), 0.5), _sizes(n))

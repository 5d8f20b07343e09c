"""The sampled engine: means over independent replicas, with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.random import PCG64, SFC64

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.clients.analytic_clients import (
    AnalyticClients,
    GaussianNoise,
    SteppedClients,
    analytic_clients,
)
from fltheory.engines.guard import SampledTogether, guarded, no_fresh_seed, seeded
from fltheory.engines.observables import Observable, standard_samples
from fltheory.engines.setting import Setting, in_float64
from fltheory.engines.simulation import simulate
from fltheory.engines.trajectory import FIELDS, Trajectory, sampled_trajectory
from fltheory.long_work.parallel import sampling_threads
from fltheory.problems.base import Problem
from fltheory.validation import FloatArray

_LARGEST_CHUNK = 512
_NUMBERS_IN_CHUNK = 1 << 22

Progress = Callable[[int, int], None]


@checks_kinds
def monte_carlo(
    setting: Setting,
    replicas: int,
    seed: int,
    *,
    observe: Sequence[Observable] = (),
    step_by_step: bool = False,
    progress: Progress | None = None,
) -> Trajectory:
    """Estimate the expected errors of every round from independent runs.

    On quadratic clients, the sum of a round's K local steps is drawn in closed form; on other
    clients, each step is drawn. The same seed gives the same numbers, bit for bit, with any number
    of processors. Memory does not grow with ``replicas``.

    Parameters
    ----------
    setting : Setting
    replicas : int
        Number of independent runs, at least 2.
    seed : int
        Seed of the generators.
    observe : sequence of Observable
        Further quantities to follow.
    step_by_step : bool
        Whether to run local SGD step by step on quadratic clients as well.
    progress : callable, optional
        Called with (replicas done, replicas).

    Returns
    -------
    Trajectory
        It has ``standard_error``.

    A round that draws from its own generator is run replica by replica; that generator is
    seeded as well, and restored afterwards.

    Raises
    ------
    ValueError
        If arguments do not match one another, or a round is not a pure function for a different
        reason.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.engines import Setting
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> setting = Setting(FedAvg(0.5, 1), clients, UniformSubset(2, 2), rounds=2, x0=[4.0])
    >>> monte_carlo(setting, replicas=10, seed=0).squared_distance.tolist()
    [16.0, 4.0, 1.0]
    """
    replicas = validation.whole_number("replicas", replicas, at_least=2)
    seed = validation.seed_number("seed", seed)
    setting = in_float64(setting)
    draws_itself = bool(guarded(setting).draws_from)
    # A round that draws random numbers itself may draw the same numbers for all replicas, so each
    # replica is run alone.
    sizes = [1] * replicas if draws_itself else _chunk_sizes(replicas, setting.problem)
    sequence = np.random.SeedSequence(seed)
    seeds = sequence.spawn(len(sizes))

    def run(chunk: tuple[int, np.random.SeedSequence]) -> _Summary:
        with no_fresh_seed(setting.algorithm):
            return _run_chunk(setting, chunk[0], chunk[1], observe, step_by_step)

    total: _Summary | None = None
    with seeded(setting.algorithm, *sequence.spawn(1)) if draws_itself else nullcontext():
        workers = 1 if draws_itself else sampling_threads()
        for summary in _in_order(run, list(zip(sizes, seeds, strict=True)), workers):
            total = summary if total is None else total.combined(summary)
            if progress is not None:
                progress(total.count, replicas)
    assert total is not None
    return _trajectory(total, [*FIELDS, *(item.name for item in observe)])


def _chunk_sizes(replicas: int, problem: Problem) -> list[int]:
    size = _NUMBERS_IN_CHUNK // (problem.n_clients * problem.dim)
    size = max(1, min(_LARGEST_CHUNK, size))
    full, rest = divmod(replicas, size)
    return [size] * full + ([rest] if rest else [])


@dataclass(frozen=True, eq=False)
class _Summary:
    """Count, mean and sum of squared deviations of each quantity at each round."""

    count: int
    mean: FloatArray
    squares: FloatArray

    def combined(self, other: _Summary) -> _Summary:
        """Merge two samples (Chan, Golub and LeVeque, 1983)."""
        count = self.count + other.count
        with np.errstate(over="ignore", invalid="ignore"):
            shift = other.mean - self.mean
            return _Summary(
                count,
                self.mean + shift * (other.count / count),
                self.squares + other.squares + shift**2 * (self.count * other.count / count),
            )


def _in_order(
    run: Callable[[tuple[int, np.random.SeedSequence]], _Summary],
    chunks: list[tuple[int, np.random.SeedSequence]],
    workers: int,
) -> Iterator[_Summary]:
    """Yield each chunk's summary in order, a few chunks at a time."""
    if min(len(chunks), workers) <= 1:
        yield from map(run, chunks)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting = iter(chunks)
        running = [pool.submit(run, chunk) for chunk in islice(waiting, 2 * workers)]
        try:
            while running:
                yield running.pop(0).result()
                running += [pool.submit(run, chunk) for chunk in islice(waiting, 1)]
        finally:
            for future in running:
                future.cancel()


def _run_chunk(
    setting: Setting,
    replicas: int,
    seed: np.random.SeedSequence,
    observe: Sequence[Observable],
    step_by_step: bool,
) -> _Summary:
    # Gaussian draws take most of a run's time, and SFC64 makes them a fifth faster than the
    # default.
    participation_rng, branch_rng, noise_rng, observer_rng = (
        np.random.Generator(kind(child))
        for kind, child in zip((PCG64, PCG64, SFC64, SFC64), seed.spawn(4), strict=True)
    )
    problem = setting.problem
    clients = _clients(problem, noise_rng, step_by_step)
    observers = _clients(problem, observer_rng, step_by_step)
    states = simulate(
        setting.algorithm,
        clients,
        setting.participation,
        np.tile(setting.x0, (replicas, 1)),
        participation_rng=participation_rng,
        branch_rng=branch_rng,
    )
    together = SampledTogether(setting)
    mean = np.empty((len(FIELDS) + len(observe), setting.rounds + 1))
    squares = np.empty_like(mean)
    with np.errstate(over="ignore", invalid="ignore"):
        for r, (state, who) in enumerate(islice(states, setting.rounds + 1)):
            if r < setting.rounds:
                together.check(r + 1, state, who)
            x = state["x"]
            samples = standard_samples(problem, x)
            samples += [item.sample(problem, observers, x, who) for item in observe]
            for row, sample in enumerate(samples):
                mean[row, r] = sample.mean()
                deviation = sample - mean[row, r]
                squares[row, r] = deviation @ deviation
    return _Summary(replicas, mean, squares)


def _clients(problem: Problem, rng: np.random.Generator, step_by_step: bool) -> AnalyticClients:
    noise = GaussianNoise(rng)
    return SteppedClients(problem, noise) if step_by_step else analytic_clients(problem, noise)


def _trajectory(total: _Summary, names: Sequence[str]) -> Trajectory:
    with np.errstate(invalid="ignore"):
        error = np.sqrt(total.squares / (total.count - 1) / total.count)
        return sampled_trajectory(names, total.mean, error, total.count)

"""The description of a log: how often, how long, with whom and when clients are present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.logs.availability_log import AvailabilityLog, Rounds
from fltheory.logs.goodness_of_fit import (
    ModelFit,
    clusters,
    correlations,
    fits,
    holm,
    sampled_masks,
)
from fltheory.logs.transitions import clopper_pearson, eigenvalue_intervals
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

BATCHES = 20
_ERROR = 0.05
_LEAST_CHANGES = 20
_SIGNS = 8
_NEIGHBOURS = 25
_LEAST_ROUNDS, _LEAST_CYCLES = 204, 4
_SHARE_THAT_MATTERS = 0.05


@dataclass(frozen=True, eq=False)
class LogDescription(ReadOnlyArrays):
    """The results of `describe`; each interval misses its value with probability 0.05.

    Attributes
    ----------
    log : AvailabilityLog
    marginals : array, (N, 3)
        Share of rounds of each client, with an interval. It is Student's t interval from 20 batches
        of successive rounds, which are nearly independent if memory is shorter than a batch. For
        clients never or always present, it is the Clopper-Pearson interval, as if rounds were
        independent.
    stays, gaps : array
        Quantiles 0.1, 0.5, 0.9 and 1 of the lengths of stays, and of absences between them, that
        begin and end within the log, or NaN if there are none.
    eigenvalues : array, (N,)
        Second eigenvalue of each client's two-state chain; NaN for clients that do not vary.
    largest_eigenvalue : array, (3,)
        The largest absolute value among clients that changed at least 20 times, with an interval
        that holds for all of them together; NaN if there are none.
    pairs : array, (3,)
        Quantiles 0.05, 0.5 and 0.95 of pairwise correlations in a sample of clients.
    cluster_sizes : tuple of int
        Clusters of the sample, the largest first.
    period : float or None
        Rounds per cycle: as given, or the clearest cycle in the periodograms if its p-value is
        below 0.05.
    period_p_value : float
        p-value of the clearest cycle, corrected for all periods; NaN if the period was given.
    halves_p_value : float
        p-value of the hypothesis that both halves are alike. It is the smallest over all clients
        and the total, corrected by Holm's method.
    changed : int
        Number of clients whose halves differ, after the correction.
    fits : tuple of ModelFit
    sampled : tuple of int
        Numbers of clients and rounds used for pairs, clusters and models.
    """

    log: AvailabilityLog
    marginals: FloatArray
    stays: FloatArray
    gaps: FloatArray
    eigenvalues: FloatArray
    largest_eigenvalue: FloatArray
    pairs: FloatArray
    cluster_sizes: tuple[int, ...]
    period: float | None
    period_p_value: float
    halves_p_value: float
    changed: int
    fits: tuple[ModelFit, ...]
    sampled: tuple[int, int]

    @property
    def drifts(self) -> bool:
        """Whether the log's halves differ."""
        return bool(self.halves_p_value < _ERROR)

    def rejects(self, model: str) -> bool:
        """Return whether a model is rejected: ``independent``, ``on-off Markov``, ..."""
        return any(fit.rejected for fit in self.fits if fit.model == model)

    @property
    def never_there(self) -> tuple[str, ...]:
        """Names of the clients never seen."""
        away = np.flatnonzero(self.log.rounds_present == 0)
        return tuple(self.log.clients[index] for index in away)

    @property
    def always_there(self) -> tuple[str, ...]:
        """Names of the clients present in every round."""
        there = np.flatnonzero(self.log.rounds_present == self.log.n_rounds)
        return tuple(self.log.clients[index] for index in there)

    def document(self) -> dict[str, Any]:
        """Return everything as numbers, texts, lists and dictionaries; None means unknown."""
        names = ("availability", "lower", "upper")
        numbers = zip(self.log.clients, self.marginals, self.eigenvalues, strict=True)
        return {
            "clients": self.log.n_clients,
            "rounds": self.log.n_rounds,
            "stays": int(self.log.who.size),
            "stays_between_rounds": self.log.between_rounds,
            "never_there": list(self.never_there),
            "always_there": list(self.always_there),
            "lengths_of_stay": _known(self.stays),
            "lengths_of_absence": _known(self.gaps),
            "largest_second_eigenvalue": _known(self.largest_eigenvalue),
            "pair_correlations": _known(self.pairs),
            "cluster_sizes": list(self.cluster_sizes),
            "period": self.period,
            "period_p_value": _known([self.period_p_value])[0],
            "halves_p_value": _known([self.halves_p_value])[0],
            "clients_changed": self.changed,
            "fits": {
                fit.model: {"p_value": fit.p_value, "corrected": fit.corrected} for fit in self.fits
            },
            "sampled": {"clients": self.sampled[0], "rounds": self.sampled[1]},
            "each": [
                {"client": name, **dict(zip(names, _known(row), strict=True))}
                | {"second_eigenvalue": _known([nu])[0]}
                for name, row, nu in numbers
            ],
        }


@checks_kinds
def describe(log: AvailabilityLog, *, period: float | None = None, seed: int = 0) -> LogDescription:
    """Describe a log.

    Parameters
    ----------
    log : AvailabilityLog
    period : float, optional
        Rounds per cycle, e.g. 24 if a round is an hour. By default, the period is detected.
    seed : int
        Seed of the sample of clients, and of the draws from the models.

    Raises
    ------
    ValueError
        If the period is below two rounds or longer than the log.

    Examples
    --------
    >>> masks = np.random.default_rng(0).random((400, 3)) < [0.2, 0.5, 0]
    >>> found = describe(AvailabilityLog.from_masks(masks, ["ann", "bob", "cid"]))
    >>> found.never_there, [fit.rejected for fit in found.fits]
    (('cid',), [False, False, False])
    """
    rng = np.random.default_rng(validation.seed_number("seed", seed))
    p_value = np.nan
    if period is None:
        period, p_value = clearest_cycle(log, rng)
    else:
        most = log.n_rounds
        must_be = f"from 2 rounds to the log's {most}"
        validation.real_number("period", period, must_be, lambda number: 2 <= number <= most)
    there = sampled_masks(log, rng)
    correlation = correlations(there)[np.triu_indices(there.shape[1], 1)]
    labels = clusters(there)
    batches = batch_shares(log, period)
    halves, changed = _halves(log, batches)
    estimate, _, _ = eigenvalue_intervals(log, _ERROR)
    return LogDescription(
        log=log,
        marginals=marginal_intervals(log, batches),
        stays=_quantiles(_whole_stays(log), (0.1, 0.5, 0.9, 1)),
        gaps=_quantiles(_whole_gaps(log), (0.1, 0.5, 0.9, 1)),
        eigenvalues=estimate,
        largest_eigenvalue=largest_eigenvalue(log),
        pairs=_quantiles(correlation, (0.05, 0.5, 0.95)),
        cluster_sizes=tuple(sorted(np.bincount(labels).tolist(), reverse=True)),
        period=period,
        period_p_value=p_value,
        halves_p_value=halves,
        changed=changed,
        fits=fits(log, rng, period),
        sampled=(there.shape[1], there.shape[0]),
    )


def batch_shares(log: AvailabilityLog, period: float | None = None) -> FloatArray:
    """Return each client's share of rounds in each of up to 20 batches, (batches, N).

    With a period, a batch consists of whole cycles, so that batches cover the same times of the
    cycle; rounds after the last whole batch are left out.
    """
    edges = batch_edges(log.n_rounds, period)
    length = log.stop - log.first
    before = np.array(
        [
            np.bincount(log.who, np.clip(edge - log.first, 0, length), minlength=log.n_clients)
            for edge in edges
        ]
    )
    return np.asarray(np.diff(before, axis=0) / np.diff(edges)[:, None])


def batch_edges(rounds: int, period: float | None = None) -> Rounds:
    """Return the starts of up to 20 batches of rounds, and the end of the last one."""
    count = min(BATCHES, rounds)
    if period is None or rounds < 4 * period:
        return np.linspace(0, rounds, count + 1).astype(np.int64)
    count = min(BATCHES, int(rounds // period))
    length = rounds // (count * period) * period
    return np.round(np.arange(count + 1) * length).astype(np.int64)


def clearest_cycle(log: AvailabilityLog, rng: np.random.Generator) -> tuple[float | None, float]:
    """Return the clearest cycle's period (None unless p < 0.05) and its p-value.

    It uses periodograms of the number of clients present and of eight sums of clients with random
    signs, as clients in opposite time zones may cancel in the number. An ordinate over the mean of
    its m neighbours (50, fewer for the longest cycles) has the F(2, 2m) distribution if the
    spectrum is smooth and there are many rounds. The smallest p-value is corrected for all
    ordinates of all sums.
    """
    from scipy import stats

    signs = np.vstack([np.ones(log.n_clients), rng.choice((-1.0, 1.0), (_SIGNS, log.n_clients))])
    if log.n_rounds < _LEAST_ROUNDS:
        return None, np.nan
    smallest = 1.0
    clear: list[tuple[float, int, FloatArray]] = []
    for sign in signs:
        series = _signed_number(log, sign)
        power = np.abs(np.fft.rfft(series)[1:-1]) ** 2
        # A long cycle has few neighbours below it, so equally few are used above it, because a
        # slope of the spectrum must not look like a cycle.
        place = np.arange(_LEAST_CYCLES, power.size - _LEAST_CYCLES)
        reach = np.minimum(np.minimum(place, power.size - 1 - place), _NEIGHBOURS)
        sums = np.append(0, np.cumsum(power))
        ordinates = power[place]
        around = sums[place + reach + 1] - sums[place - reach] - ordinates
        floor = np.finfo(float).tiny + 1e-20 * power.max()
        ratio = ordinates / np.maximum(around / (2 * reach), floor)
        p_values = stats.f.sf(ratio, 2, 4 * reach) * ratio.size * len(signs)
        smallest = min(smallest, float(p_values.min()))
        clear += [
            (float(ordinates[at] / power.sum()), int(place[at]) + 1, series)
            for at in np.flatnonzero(p_values < _ERROR).tolist()
        ]
    if not clear:
        return None, smallest
    # Overtones may be clearer than the cycle itself, so the longest significant period is used.
    least = min(_SHARE_THAT_MATTERS, max(share for share, _, _ in clear))
    _, at, series = min((one for one in clear if one[0] >= least), key=lambda one: one[1])
    return _refined_period(series, at), smallest


def _signed_number(log: AvailabilityLog, sign: FloatArray) -> FloatArray:
    """Return the sum of the signs of those present, minus its mean, (n_rounds,)."""
    change = np.bincount(log.first, sign[log.who], log.n_rounds + 1)
    change -= np.bincount(log.stop, sign[log.who], log.n_rounds + 1)
    series = np.cumsum(change)[: log.n_rounds]
    return np.asarray(series - series.mean(), dtype=np.float64)


def _refined_period(series: FloatArray, at: int) -> float:
    """Return the period with the most power between the neighbours of an ordinate."""
    frequencies = (at + np.linspace(-0.9, 0.9, 37)) / len(series)
    rounds = np.arange(len(series))
    power = [abs(np.exp(-2j * np.pi * f * rounds) @ series) for f in frequencies]
    return float(1 / frequencies[int(np.argmax(power))])


def marginal_intervals(log: AvailabilityLog, batches: FloatArray) -> FloatArray:
    """Return shares of rounds with their intervals, from the shares of batches, (N, 3)."""
    from scipy import stats

    share = log.marginals
    count = len(batches)
    reach = stats.t.ppf(1 - _ERROR / 2, count - 1) * batches.std(axis=0, ddof=1) / np.sqrt(count)
    lower, upper = np.maximum(share - reach, 0), np.minimum(share + reach, 1)
    hits = log.rounds_present.astype(np.float64)
    exact = clopper_pearson(hits, np.full_like(hits, log.n_rounds), _ERROR)
    fixed = (share == 0) | (share == 1)
    bounds = (np.where(fixed, e, b) for e, b in zip(exact, (lower, upper), strict=True))
    return np.column_stack([share, *bounds])


def _whole_stays(log: AvailabilityLog) -> FloatArray:
    whole = (log.first > 0) & (log.stop < log.n_rounds)
    return (log.stop - log.first)[whole].astype(np.float64)


def _whole_gaps(log: AvailabilityLog) -> FloatArray:
    same = log.who[1:] == log.who[:-1]
    return (log.first[1:] - log.stop[:-1])[same].astype(np.float64)


def _quantiles(values: FloatArray, at: tuple[float, ...]) -> FloatArray:
    return np.quantile(values, at) if values.size else np.full(len(at), np.nan)


def largest_eigenvalue(log: AvailabilityLog) -> FloatArray:
    """Return the largest absolute second eigenvalue with a joint interval, (3,)."""
    changes = np.bincount(log.who, minlength=log.n_clients)
    varied = 2 * changes >= _LEAST_CHANGES
    if not varied.any():
        return np.full(3, np.nan)
    found = eigenvalue_intervals(log, _ERROR / np.count_nonzero(varied))
    estimate, lower, upper = (part[varied] for part in found)
    known = np.isfinite(estimate)
    if not known.any():
        return np.full(3, np.nan)
    estimate, lower, upper = estimate[known], lower[known], upper[known]
    least = np.where(lower * upper > 0, np.minimum(np.abs(lower), np.abs(upper)), 0)
    most = np.maximum(np.abs(lower), np.abs(upper))
    return np.array([np.abs(estimate).max(), least.max(), min(most.max(), 1.0)])


def _halves(log: AvailabilityLog, batches: FloatArray) -> tuple[float, int]:
    """Return the corrected p-value of Welch's test of both halves, and how many changed."""
    from scipy import stats

    half = len(batches) // 2
    if half < 2:
        return np.nan, 0
    series = np.column_stack([batches, batches.mean(axis=1)])
    first, second = series[:half], series[half:]
    # Equal shares may differ in their last bits.
    varies = np.ptp(first, axis=0) + np.ptp(second, axis=0) > 1e-12
    if not varies.any():
        return np.nan, 0
    # Computed from means and deviations, as SciPy warns if all shares of a half are equal.
    told = [
        (part.mean(axis=0)[varies], part.std(axis=0, ddof=1)[varies], len(part))
        for part in (first, second)
    ]
    tested = stats.ttest_ind_from_stats(*told[0], *told[1], equal_var=False)
    corrected = np.array(holm(np.asarray(tested.pvalue).tolist()))
    of_total = bool(varies[-1])
    clients = corrected[:-1] if of_total else corrected
    return float(corrected.min()), int(np.count_nonzero(clients < _ERROR))


def _known(values: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]

"""FedAU's cut-off K: the one with the smallest weight error, and the paper's choices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.engines.fedau_weights.weight_error import (
    checked_chances,
    checked_cutoff,
    mean_weight_errors,
    weight_error,
)
from fltheory.logs.availability_log import AvailabilityLog
from fltheory.long_work.progress import Progress, within
from fltheory.validation import FloatArray

__all__ = ["best_cutoff"]

_NEVER_REACHED = 1e-12
_REFINED_BY = 1.25
# Below this, the error of the transform, about 1e-11, is not negligible.
_TOO_SMALL = 1e-4


@dataclass(frozen=True)
class CutoffError:
    """A cut-off and the resulting error of the weights.

    Attributes
    ----------
    cutoff : int or math.inf
        K.
    error : float
        ``1/(N T) sum_{t<T} sum_n E[(p_n omega_t^n - 1)^2]``, which Theorem 3 bounds.
    """

    cutoff: float
    error: float


@dataclass(frozen=True)
class BestCutoff:
    """The best cut-off for a population and horizon, beside the paper's choices.

    Attributes
    ----------
    best : CutoffError
        The K with the smallest error.
    corollary : CutoffError
        K = log_c T of Corollary 4, rounded to the nearest integer that is at least 1.
    experiments : CutoffError
        K = 50 of the paper's experiments.
    none : CutoffError
        No cut-off.
    """

    best: CutoffError
    corollary: CutoffError
    experiments: CutoffError
    none: CutoffError


def weight_errors(
    p: ArrayLike | AvailabilityLog,
    rounds: int,
    cutoffs: ArrayLike,
    *,
    progress: Progress | None = None,
) -> FloatArray:
    """Return the mean error of the weights over clients and rounds, for each cut-off.

    Parameters
    ----------
    p : float, array, (n,), or AvailabilityLog
        Participation probabilities, in (0, 1], for independent rounds; or a log, of which the first
        T rounds are followed for all clients that are ever present in it.
    rounds : int
        T.
    cutoffs : array, (k,)
        Values of K; infinity for none.
    progress : callable, optional
        Called with (clients done, number of distinct clients, the next one).

    Returns
    -------
    array, (k,)

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    try:
        values = np.atleast_1d(np.asarray(cutoffs, dtype=np.float64))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"cutoffs must be numbers, got {validation.shown(cutoffs)}") from error
    if values.ndim != 1:
        raise ValueError(f"cutoffs must have shape (k,), got {values.shape}")
    for cutoff in values.tolist():
        checked_cutoff(int(cutoff) if cutoff.is_integer() else cutoff)
    rounds = validation.whole_number("rounds", rounds, at_least=1)
    if isinstance(p, AvailabilityLog):
        along = _AlongLog(p, rounds)
        return np.array([along.error(cutoff) for cutoff in values.tolist()])
    chances, counts = np.unique(checked_chances(p), return_counts=True)
    total = np.zeros(values.size)
    # Clients with equal probabilities have the same error.
    for done, (chance, count) in enumerate(zip(chances.tolist(), counts, strict=True)):
        if progress is not None:
            progress(done, chances.size, f"p = {chance:g}")
        total += count * _errors(chance, values, rounds)
    return total / counts.sum()


def best_cutoff(
    p: ArrayLike | AvailabilityLog, rounds: int | None = None, *, progress: Progress | None = None
) -> BestCutoff:
    """Return the cut-off K with the smallest weight error, and the paper's choices for comparison.

    Errors are first computed for values of K that grow by a quarter at a time, up to T or until
    longer intervals are practically impossible for every client, and then for all K between the
    neighbours of the best one. The smallest error may be missed if there are several local minima.

    Parameters
    ----------
    p : float, array, (n,), or AvailabilityLog
        Participation probabilities of one or several clients, for which the error is an exact
        expectation over independent rounds; or a log, for which it is the error of FedAU's weights
        in the log's own rounds.
    rounds : int
        T, at least 2; by default, the number of rounds in the log.
    progress : callable, optional
        Called with (work done, all work as far as known, the next client).

    Raises
    ------
    ValueError
        If p is outside (0, 1], or there are fewer than 2 rounds, or more rounds than the log has.

    Examples
    --------
    >>> best_cutoff(1.0, 10).best
    CutoffError(cutoff=1.0, error=0.0)
    >>> in_turn = AvailabilityLog.from_masks([[1, 0], [0, 1]] * 10)
    >>> best_cutoff(in_turn).best.cutoff
    2.0
    """
    if isinstance(p, AvailabilityLog):
        rounds = p.n_rounds if rounds is None else rounds
        validation.whole_number("rounds", rounds, at_least=2, at_most=p.n_rounds)
        chances, longest, different = p.marginals[p.rounds_present > 0], int(rounds), 1
    else:
        rounds = validation.whole_number("rounds", rounds, at_least=2)
        chances = np.atleast_1d(validation.availability("p", p, shape="() or (n,)"))
        longest, different = _longest_worthwhile(chances, rounds), np.unique(chances).size
    coarse = _growing(longest)
    errors = weight_errors(p, rounds, coarse, progress=within(progress, 0, 2 * different))
    place = int(np.argmin(errors))
    low, high = coarse[max(place - 1, 0)], coarse[min(place + 1, len(coarse) - 1)]
    fine = np.arange(low, high + 1)
    refined = weight_errors(p, rounds, fine, progress=within(progress, different, 2 * different))
    best = int(np.argmin(refined))
    others = (corollary_cutoff(chances, rounds), 50.0, math.inf)
    corollary, experiments, none = weight_errors(p, rounds, others).tolist()
    return BestCutoff(
        best=CutoffError(float(fine[best]), float(refined[best])),
        corollary=CutoffError(others[0], corollary),
        experiments=CutoffError(50.0, experiments),
        none=CutoffError(math.inf, none),
    )


def corollary_cutoff(p: ArrayLike, rounds: int) -> float:
    """Return ``K = log_c T`` with ``c = 1/(1 - min p)^2`` (Corollary 4), at least 1, rounded.

    If every client always takes part, c is infinite and K is 1.
    """
    least = float(np.min(np.asarray(p, dtype=np.float64)))
    if least >= 1:
        return 1.0
    return float(max(1, round(math.log(rounds) / (-2 * math.log1p(-least)))))


def _errors(p: float, cutoffs: FloatArray, rounds: int) -> FloatArray:
    """Return a client's error for each cut-off, (k,), to a relative accuracy of 1e-7 or better."""
    errors = np.array(mean_weight_errors(p, cutoffs, rounds))
    for place in np.flatnonzero(errors < _TOO_SMALL):
        longest = cutoffs[place] if cutoffs[place] == math.inf else int(cutoffs[place])
        errors[place] = weight_error(p, longest, rounds).values.mean()
    return errors


class _AlongLog:
    """FedAU's weights in a log's first rounds, for all intervals of all clients at once.

    A client's ended intervals follow one another from the first round on. If the j-th ends before
    round e_j, omega is e_j / j until the next one ends.
    """

    def __init__(self, log: AvailabilityLog, rounds: int) -> None:
        self._shares = log.marginals[log.rounds_present > 0]
        self._rounds = rounds
        there = log.present(0, rounds, np.flatnonzero(log.rounds_present))
        # Each client's rounds are split at its presences, and at the end, where no interval ends.
        cuts = np.vstack([there, np.ones(there.shape[1], dtype=bool)])
        self._who, place = np.nonzero(cuts.T)
        self._ends = place + 1
        opens = np.append(True, self._who[1:] != self._who[:-1])
        self._begins = np.where(opens, 0, np.roll(self._ends, 1))
        self._is_last = np.roll(opens, -1)
        self._ends[self._is_last] = rounds

    def error(self, cutoff: float) -> float:
        """Return the mean of ``(p omega - 1)^2`` over clients and rounds."""
        longest = self._rounds + 1 if cutoff > self._rounds else int(cutoff)
        lengths = self._ends - self._begins
        numbers = np.where(self._is_last, lengths // longest, -(-lengths // longest))
        who, first = np.repeat(self._who, numbers), np.cumsum(numbers) - numbers
        nth = np.arange(who.size) + 1 - np.repeat(first, numbers)
        ends = np.minimum(
            np.repeat(self._begins, numbers) + longest * nth, np.repeat(self._ends, numbers)
        )
        opens = np.append(True, who[1:] != who[:-1])[: who.size]
        ended = np.arange(who.size) - np.flatnonzero(opens)[np.cumsum(opens) - 1] + 1
        until = np.where(np.roll(opens, -1), self._rounds, np.roll(ends, -1))
        off = (self._shares[who] * ends / ended - 1) ** 2 @ (until - ends)
        # omega is 1 until the first interval ends, or throughout if none does.
        begun = np.full(self._shares.size, self._rounds)
        begun[who[opens]] = ends[opens]
        return float(off + (self._shares - 1) ** 2 @ begun) / (self._rounds * self._shares.size)


def _longest_worthwhile(p: FloatArray, rounds: int) -> int:
    least = float(p.min())
    if not 0 < least < 1:
        return 1
    return max(1, min(rounds, math.ceil(math.log(_NEVER_REACHED) / math.log1p(-least))))


def _growing(longest: int) -> FloatArray:
    values = [1]
    while values[-1] < longest:
        values.append(min(longest, max(values[-1] + 1, int(values[-1] * _REFINED_BY))))
    return np.array(values, dtype=np.float64)

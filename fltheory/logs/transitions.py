"""How clients come and go: a two-state chain fitted to each client's stays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.logs.availability_log import AvailabilityLog, Rounds
from fltheory.participation.base import Participation
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray

_NEARLY_ONE = 1 - 1e-9


@checks_kinds
def fit_on_off(log: AvailabilityLog) -> MarkovOnOff:
    """Fit an independent two-state chain to every client, as `Trace.as_on_off` does.

    The log is assumed to start again after its end. So as many transitions lead to a state as leave
    it, and the fitted availability is the share of rounds. Clients that are never or always present
    remain so. A client that alternates every round, whose chain would be periodic, gets a second
    eigenvalue just above -1.

    Examples
    --------
    >>> log = AvailabilityLog.from_masks([[1, 0], [1, 0], [0, 0], [0, 0]])
    >>> chains = fit_on_off(log)
    >>> chains.availability.tolist(), chains.correlation.tolist()
    ([0.5, 0.0], [0.0, 0.0])
    """
    there = log.rounds_present.astype(np.float64)
    away = log.n_rounds - there
    goes_on = np.zeros(log.n_clients)
    goes_on[np.intersect1d(log.who[log.first == 0], log.who[log.stop == log.n_rounds])] = 1
    leaves = np.bincount(log.who, minlength=log.n_clients) - goes_on
    varies = (there > 0) & (away > 0)
    nu = np.zeros(log.n_clients)
    nu[varies] = 1 - leaves[varies] / there[varies] - leaves[varies] / away[varies]
    return MarkovOnOff(log.marginals, np.clip(nu, -_NEARLY_ONE, _NEARLY_ONE))


@checks_kinds
def draw_log(
    process: Participation,
    rounds: int,
    *,
    seed: int = 0,
    clients: Sequence[str] | None = None,
) -> AvailabilityLog:
    """Draw a log of a process.

    Parameters
    ----------
    process : Participation
    rounds : int
    seed : int
    clients : sequence of str, (N,), optional
        Names; ``client 0``, ``client 1``, ... by default.

    Examples
    --------
    >>> float(draw_log(MarkovOnOff([0.5, 1.0], [0.9, 0.0]), 100).marginals[1])
    1.0
    """
    rounds = validation.whole_number("rounds", rounds, at_least=1)
    rng = np.random.default_rng(validation.seed_number("seed", seed))
    drawn = islice(process.masks(rng, 1), rounds)
    names = clients or [f"client {index}" for index in range(process.n_clients)]
    before = np.zeros(process.n_clients, dtype=bool)
    comes: list[Rounds] = []
    leaves: list[Rounds] = []
    # Only changes are kept, so that a long log of many clients fits in memory.
    for number, masks in enumerate(drawn):
        there = masks[0]
        for kept, changed in ((comes, there & ~before), (leaves, before & ~there)):
            who = np.flatnonzero(changed)
            kept.append(np.column_stack([who, np.full(who.size, number)]))
        before = there
    at_end = np.flatnonzero(before)
    leaves.append(np.column_stack([at_end, np.full(at_end.size, rounds)]))
    begins, ends = (_by_client(np.concatenate(kept)) for kept in (comes, leaves))
    return AvailabilityLog(names, rounds, begins[:, 0], begins[:, 1], ends[:, 1])


def _by_client(changes: Rounds) -> Rounds:
    return changes[np.argsort(changes[:, 0], kind="stable")]


def eigenvalue_intervals(
    log: AvailabilityLog, error: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimates of and intervals for clients' eigenvalues ``1 - P(leaves) - P(comes)``.

    The intervals come from Clopper-Pearson intervals for the probabilities of leaving and of
    coming, with half of ``error`` for each, over all rounds but the last. They are NaN if a client
    is always in one state.

    Parameters
    ----------
    log : AvailabilityLog
    error : float
        Probability that an interval misses, for each client.

    Returns
    -------
    estimate, lower, upper : array, (N,)
    """
    count = log.n_clients
    last = log.stop == log.n_rounds
    at_end = np.bincount(log.who[last], minlength=count)
    leaves = np.bincount(log.who[~last], minlength=count)
    comes = np.bincount(log.who[log.first > 0], minlength=count)
    there = log.rounds_present - at_end
    away = log.n_rounds - 1 - there
    with np.errstate(invalid="ignore", divide="ignore"):
        estimate = 1 - leaves / there - comes / away
    low_leave, high_leave = clopper_pearson(leaves, there, error / 2)
    low_come, high_come = clopper_pearson(comes, away, error / 2)
    known = np.isfinite(estimate)
    lower = np.where(known, 1 - high_leave - high_come, np.nan)
    return estimate, lower, np.where(known, 1 - low_leave - low_come, np.nan)


def clopper_pearson(
    hits: ArrayLike, trials: ArrayLike, error: float
) -> tuple[FloatArray, FloatArray]:
    """Return exact confidence intervals for binomial probabilities, [0, 1] without trials."""
    from scipy import special

    found = np.asarray(hits, dtype=np.float64)
    misses = np.asarray(trials, dtype=np.float64) - found
    with np.errstate(invalid="ignore"):
        lower = special.betaincinv(found, misses + 1, error / 2)
        upper = special.betaincinv(found + 1, misses, 1 - error / 2)
    return np.where(found > 0, lower, 0.0), np.where(misses > 0, upper, 1.0)

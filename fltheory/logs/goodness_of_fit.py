"""Goodness of fit of a log to four models, which are fitted, simulated and compared.

All models are judged by the same statistics of presence, on a stated sample of clients and rounds:
how often clients come or go, stays and gaps of one round, correlations of presence some rounds
apart, the variation of the number present, and correlations of pairs. A model is simulated 199
times. The log is stranger than a simulation if its most extreme statistic, in standard deviations,
is more extreme. The rank gives the p-value of this parametric bootstrap, whose level is exact up to
the error of the fit, whatever the distribution of the statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fltheory.logs.availability_log import AvailabilityLog
from fltheory.logs.transitions import fit_on_off
from fltheory.participation.base import Masks
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray

# With the log itself there are 200, so p-values are multiples of 1/200, including 0.05.
DRAWS = 199
MOST_CLIENTS = 48
MOST_ROUNDS = 4096
_LAGS = (2, 4, 8, 16, 32)
_MOST_PARTS = 24
_STEPS = 20
_LEAST_CYCLES = 4

Draw = Callable[[np.random.Generator, int], Iterable[Masks]]


@dataclass(frozen=True)
class ModelFit:
    """How well a model fits.

    Attributes
    ----------
    model : str
        ``independent``, ``on-off Markov``, ``clustered`` or ``cyclic``.
    p_value : float
        The probability that a draw from the fitted model is at least as strange as the log.
    corrected : float
        The p-value corrected by Holm's method for the models tried.
    """

    model: str
    p_value: float
    corrected: float

    @property
    def rejected(self) -> bool:
        """Whether the corrected p-value is below 0.05."""
        return self.corrected < 0.05


def fits(
    log: AvailabilityLog,
    rng: np.random.Generator,
    period: float | None = None,
    draws: int = DRAWS,
) -> tuple[ModelFit, ...]:
    """Return how well each model fits a log; empty if nobody comes or goes.

    Parameters
    ----------
    log : AvailabilityLog
    rng : numpy.random.Generator
        Generator for the sample of clients and the simulations.
    period : float, optional
        Rounds per cycle; the cyclic model is tried only with a period and at least four cycles.
    draws : int
    """
    there = sampled_masks(log, rng)
    if there.shape[1] == 0:
        return ()
    models: dict[str, Draw] = {
        "independent": _independent(there),
        "on-off Markov": _on_off(there),
        "clustered": _clustered(there),
    }
    if period is not None and _LEAST_CYCLES * period <= len(there):
        models["cyclic"] = _cyclic(there, period)
    p_values = [_p_value(there, draw, draws, rng, period) for draw in models.values()]
    return tuple(map(ModelFit, models, p_values, holm(p_values)))


def sampled_masks(log: AvailabilityLog, rng: np.random.Generator) -> Masks:
    """Return the presence of the sampled clients that come and go, in the sampled rounds."""
    rounds = min(log.n_rounds, MOST_ROUNDS)
    begin = (log.n_rounds - rounds) // 2
    varies = np.flatnonzero((log.rounds_present > 0) & (log.rounds_present < log.n_rounds))
    chosen = np.sort(rng.permutation(varies)[:MOST_CLIENTS])
    there = log.present(begin, begin + rounds, chosen)
    return there[:, there.any(axis=0) & ~there.all(axis=0)]


def holm(p_values: list[float]) -> list[float]:
    """Return p-values corrected by Holm's method.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    factors = count - np.arange(count)
    stepped = np.maximum.accumulate(np.minimum(1.0, factors * np.asarray(p_values)[order]))
    corrected = np.empty(count)
    corrected[order] = stepped
    return [float(p) for p in corrected]


def clusters(there: Masks) -> NDArray[np.int64]:
    """Return the cluster of each client, from 0, by average linkage of correlations.

    The number of clusters, up to eight, maximises the modularity: the sum, over pairs within
    clusters, of the correlation minus the mean over all pairs. There is one cluster unless
    correlations within clusters exceed those between by three standard errors of a single pair.
    """
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    count = there.shape[1]
    found = np.zeros(count, dtype=np.int64)
    if count < 3:
        return found
    correlation = correlations(there)
    pairs = ~np.eye(count, dtype=bool)
    excess = np.where(pairs, correlation - correlation[pairs].mean(), 0)
    tree = hierarchy.linkage(squareform(np.maximum(1 - correlation, 0), checks=False), "average")
    most = 0.0
    for number in range(2, min(8, count - 1) + 1):
        labels = hierarchy.fcluster(tree, number, "maxclust").astype(np.int64) - 1
        same = labels[:, None] == labels[None, :]
        if not (same & pairs).any() or same.all():
            continue
        contrast = correlation[same & pairs].mean() - correlation[~same].mean()
        modularity = float(excess[same].sum())
        if modularity > most and contrast > 3 / np.sqrt(len(there)):
            most, found = modularity, labels
    return found


def correlations(there: Masks) -> FloatArray:
    """Return the correlations of clients' presence, zero for constant clients, (m, m)."""
    centred = there - there.mean(axis=0)
    norms = np.sqrt((centred**2).sum(axis=0))
    scaled = centred / np.where(norms > 0, norms, 1)
    found = scaled.T @ scaled
    np.fill_diagonal(found, 1)
    return np.asarray(found)


def _independent(there: Masks) -> Draw:
    shares = there.mean(axis=0)
    return lambda rng, draws: (rng.random(there.shape) < shares for _ in range(draws))


def _on_off(there: Masks) -> Draw:
    chains = fit_on_off(AvailabilityLog.from_masks(there))
    return lambda rng, draws: _drawn(chains, rng, draws, len(there))


def _drawn(
    chains: MarkovOnOff, rng: np.random.Generator, draws: int, rounds: int
) -> Iterable[Masks]:
    # All draws are made at once, because a step of the chains takes as long for a single draw.
    every = np.array(list(islice(chains.masks(rng, draws), rounds)))
    return map(np.ascontiguousarray, every.swapaxes(0, 1))


def _clustered(there: Masks) -> Draw:
    """Return the model in which clients are present, independently, while their cluster is up.

    Whether a cluster is up is a two-state chain. If z is the share of rounds in which it is up,
    then for two members ``E[x_i x_j]/(p_i p_j)`` is 1/z, and one round apart the excess over one is
    smaller by the factor of the chain's second eigenvalue.
    """
    labels = clusters(there)
    shares = there.mean(axis=0)
    relative = there / shares
    up, memory = np.ones(labels.max() + 1), np.zeros(labels.max() + 1)
    for label in range(len(up)):
        members = relative[:, labels == label]
        count = members.shape[1]
        if count < 2:
            continue
        total = members.sum(axis=1)
        pairs = count * (count - 1)
        now = ((total**2).mean() - (members**2).mean(axis=0).sum()) / pairs - 1
        later = (total[1:] * total[:-1]).mean() - (members[1:] * members[:-1]).mean(axis=0).sum()
        most = 1 - shares[labels == label].max()
        up[label] = 1 - min(now / (1 + now), most) if now > 0 else 1
        memory[label] = np.clip((later / pairs - 1) / now, 0, 0.999) if now > 0 else 0
    chains = MarkovOnOff(up, memory)
    coins = np.minimum(shares / up[labels], 1)

    def draw(rng: np.random.Generator, draws: int) -> Iterable[Masks]:
        for which in _drawn(chains, rng, draws, len(there)):
            yield which[:, labels] & (rng.random(there.shape) < coins)

    return draw


def _cyclic(there: Masks, period: float) -> Draw:
    """Return the model in which probabilities of presence depend on the time in the cycle.

    The probabilities follow a profile over up to 24 parts of the cycle. The profile is the same for
    all clients of a zone, up to a factor. Zones are found from the distribution of clients' rounds
    over the parts.
    """
    parts = int(min(_MOST_PARTS, max(round(period), 2)))
    phase = (np.arange(len(there)) % period * parts / period).astype(np.int64)
    counts = np.array([np.bincount(phase, column, parts) for column in there.T])
    zones = _zones(counts)
    chances = np.empty(there.shape)
    for zone in np.unique(zones):
        members = zones == zone
        profile = counts[members].sum(axis=0) / np.bincount(phase, minlength=parts)
        factors = counts[members].sum(axis=1) / counts[members].sum()
        chances[:, members] = profile[phase, None] * factors
    chances = np.minimum(chances, 1)
    return lambda rng, draws: (rng.random(there.shape) < chances for _ in range(draws))


def _zones(counts: FloatArray) -> NDArray[np.int64]:
    """Return the zone of each client, from the counts of its rounds in the parts of a cycle.

    Each zone has a multinomial distribution, and each client is in its most likely zone. The number
    of zones, up to eight, minimises Schwarz's criterion. Initially, zones are clients grouped in
    the order of their mean hours.
    """
    clients, parts = counts.shape
    hour = np.angle(counts @ np.exp(2j * np.pi * np.arange(parts) / parts))
    order = np.argsort(hour, kind="stable")
    found, smallest = np.zeros(clients, dtype=np.int64), np.inf
    for number in range(1, min(8, clients) + 1):
        zones = np.empty(clients, dtype=np.int64)
        zones[order] = np.arange(clients) * number // clients
        for _ in range(_STEPS):
            totals = np.array([counts[zones == zone].sum(axis=0) for zone in range(number)])
            # Half a round in each part, so that no part is impossible.
            laws = (totals + 0.5) / (totals + 0.5).sum(axis=1, keepdims=True)
            likelihoods = counts @ np.log(laws).T
            zones = likelihoods.argmax(axis=1)
        free = number * (parts - 1) * np.log(counts.sum()) + 2 * clients * np.log(number)
        criterion = free - 2 * likelihoods.max(axis=1).sum()
        if criterion < smallest:
            found, smallest = zones, criterion
    return found


def _p_value(
    there: Masks, draw: Draw, draws: int, rng: np.random.Generator, period: float | None
) -> float:
    numbers = np.array(
        [_numbers(there, period), *(_numbers(drawn, period) for drawn in draw(rng, draws))]
    )
    # Over the log and all draws together, so that scaling does not distinguish any of them.
    spread = numbers.std(axis=0)
    far = np.abs(numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1)
    strangeness = far.max(axis=1)
    return float(np.count_nonzero(strangeness >= strangeness[0]) / len(strangeness))


def _numbers(there: Masks, period: float | None) -> FloatArray:
    here, then = there[1:-1], there[2:]
    before = there[:-2]
    lags = [lag for lag in _LAGS if lag < len(there) // 4]
    if period is not None:
        lags.append(max(1, min(round(period), len(there) - 1)))
    correlation = correlations(there)
    return np.array(
        [
            np.count_nonzero(there[1:] != there[:-1]),
            np.count_nonzero(here & ~then & ~before),
            np.count_nonzero(~here & then & before),
            *(np.count_nonzero(there[lag:] != there[:-lag]) for lag in lags),
            there.sum(axis=1).var(),
            (correlation**2).sum(),
        ],
        dtype=np.float64,
    )

"""Slips in the weights of present clients, in the raw weights, the divisor or the order.

Every algorithm with such weights has ``w = raw / total`` over the clients present. Here raw is the
paper's number for a client (its data size, alpha/pi, omega, ...), and total is the sum of raw, N or
1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.own_runs import Play, Slip, Steps
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

Weigh: TypeAlias = Callable[[Play, FloatArray, float], FloatArray]
"""The weights of those present, of raw ones (N,), zero where absent, and the paper's total."""


def per_client(play: Play, name: str) -> FloatArray:
    """Return an option as one number for each client."""
    return np.array(np.broadcast_to(np.asarray(play.given[name], dtype=np.float64), (play.n,)))


def everybody(play: Play) -> FloatArray:
    """Return the raw weights of all clients, if these are the same in all rounds."""
    if "availability" in play.given and play.one.divisor == "present":
        return per_client(play, "target_weights") / per_client(play, "availability")
    if play.one.by_size and play.given.get("weighting", "n_samples") == "n_samples":
        return play.sizes
    return np.ones(play.n)


def over(total: float) -> float:
    """Return a divisor, with 1 in place of 0."""
    return total if total > 0 else 1.0


def shares(values: FloatArray) -> FloatArray:
    """Return numbers divided by their sum."""
    return values / over(float(values.sum()))


def steps_of(play: Play) -> FloatArray:
    """Return the local steps of each client."""
    steps = np.asarray(play.given["local_steps"], dtype=np.float64)
    return np.array(np.broadcast_to(steps, (play.n,)))


def weighing(says: str, weigh: Weigh) -> Slip:
    """Return a slip with wrong weights."""

    def weights(play: Play, proper: FloatArray) -> FloatArray:
        if play.one.divisor == "present":
            raw = np.where(play.here, everybody(play), 0.0)
            total = float(raw.sum())
        else:
            total = float(play.n) if play.one.divisor == "all" else 1.0
            raw = proper * total
        found = weigh(play, raw, total)
        if play.one.sized_steps:
            # FedNova's raw weights are tau_eff p_k / tau_k.
            tau = steps_of(play)
            found = float(found @ tau) * found / tau
        return found

    return Slip(says, weights=weights)


def _total_before(play: Play, raw: FloatArray, total: float) -> FloatArray:
    return raw / over(play.before("total", total) if raw.any() else total)


def _ordered(play: Play, raw: FloatArray, who: list[int]) -> FloatArray:
    """Return weights in the order of ``who``, which differs from that of the changes."""
    weights = np.zeros(play.n)
    weights[who] = shares(raw)[play.who]
    return weights


def _pairwise(play: Play, raw: FloatArray, total: float) -> FloatArray:
    weights, m = np.zeros(play.n), len(play.who)
    weights[play.who] = [0.5 ** (m - max(j, 1)) for j in range(m)]
    return weights


def _in_place(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
    begun = play.kept.get(("model", play.t), x)
    change = go(begun) - begun
    share = shares(np.where(play.here, everybody(play), 0.0))[k]
    play.kept["model", play.t] = begun + play.given["server_lr"] * share * change
    return change


def _of_data(play: Play) -> FloatArray:
    return play.here * play.sizes / over(float(play.sizes.sum()))


_SHARES_OF_ALL = "weights are shares among all clients, so absent ones hold the model back"
_DIVISORS: Mapping[str, Mapping[str, Weigh]] = {
    "present": {
        "divides by all N clients, not by those present": lambda p, raw, total: raw / p.n,
        "weights are not renormalised over those present: changes are added up": (
            lambda p, raw, total: raw
        ),
        _SHARES_OF_ALL: (lambda p, raw, total: raw / over(everybody(p).sum())),
        "divides by one client too many": lambda p, raw, total: raw / (total + 1),
        "weights are divided by their sum in the round before": _total_before,
    },
    "all": {
        "the sum is not divided by N": lambda p, raw, total: raw,
        "the sum is divided by the number present, not by N": lambda p, raw, total: (
            raw / over(p.here.sum())
        ),
        "weights are renormalised over those present": lambda p, raw, total: shares(raw),
    },
    "one": {
        "weights are renormalised: divided by their sum over those who train": (
            lambda p, raw, total: shares(raw)
        ),
        "the update is divided by the number of those who train": lambda p, raw, total: (
            raw / over(float((raw > 0).sum()))
        ),
        "the update is divided by N": lambda p, raw, total: raw / p.n,
    },
}
"""Divisors of weights that differ from the paper's."""

_ANY: Mapping[str, Weigh] = {
    "weights are applied twice": lambda p, raw, total: (raw / over(total)) ** 2,
    "averages pairwise, one client after another, so the last one counts most": _pairwise,
}
_OTHERS = "changes and weights are in different orders: a client gets another's weight"
_BY_SIZE: Mapping[str, Weigh] = {
    "takes the plain mean instead of weighting by data size": lambda p, raw, total: shares(
        p.here * 1.0
    ),
    "weights are applied twice, and renormalised": lambda p, raw, total: shares(raw**2),
    f"{_OTHERS}, by size": lambda p, raw, total: _ordered(
        p, raw, sorted(p.who, key=lambda k: p.sizes[k])
    ),
    _OTHERS: lambda p, raw, total: _ordered(p, raw, p.who[::-1]),
    "weighs by the root of the data size": lambda p, raw, total: shares(np.sqrt(raw)),
}
_PLAIN: Mapping[str, Weigh] = {
    "weighs by data size instead of taking the plain mean": lambda p, raw, total: shares(
        p.here * p.sizes
    ),
}
_SHARES_OF_DATA: Mapping[str, Weigh] = {
    "weighs by the share of all clients' data, not of those present": lambda p, raw, total: (
        _of_data(p)
    ),
}
_SIZE_TOO: Mapping[str, Weigh] = {
    "also weighs by data size": lambda p, raw, total: raw / total * p.n * _of_data(p),
    "also weighs by data size, by shares of it": lambda p, raw, total: raw * _of_data(p),
}


_OVER_TARGETS: Mapping[str, Weigh] = {
    "weights are divided by the sum of the target weights present": lambda p, raw, total: (
        raw / over(float((p.here * per_client(p, "target_weights")).sum()))
    ),
}


def inverse(one: Specification, fact: str) -> list[Slip]:
    """Return slips in weights ``alpha / fact``; the fact is an availability or a rate."""

    def by(says: str, alpha: float, power: float) -> Slip:
        def weigh(play: Play, raw: FloatArray, total: float) -> FloatArray:
            known = "target_weights" in play.given
            targets = per_client(play, "target_weights") if known else np.ones(play.n)
            ratio = np.where(raw > 0, raw / targets, 1.0)
            new = np.where(raw > 0, targets**alpha * ratio**-power, 0.0)
            if play.one.divisor == "present":
                return shares(new)
            return new / (play.n if alpha == 0 and known else total)

        return weighing(says, weigh)

    found = [
        by(f"changes are multiplied by the {fact}, not divided by it", 1, 1),
        by(f"the {fact} is not used: changes are not divided by it", 1, 0),
        by(f"changes are divided by the {fact} twice", 1, -2),
    ]
    if "target_weights" in one.options:
        found += [by("target weights are not used", 0, -1)]
    return found


_KNOWN: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "a client gets the availability of the client before: off by one": lambda p: np.roll(p, 1),
    "availabilities are made to sum to one, as if they were probabilities of being drawn": shares,
    "changes are divided by 1 - p, the probability of absence": lambda p: np.maximum(1 - p, 1e-3),
    "the mean availability stands for each client's own": lambda p: np.full(p.size, p.mean()),
}


def _told(says: str, change: Callable[[FloatArray], FloatArray]) -> Slip:
    def options(play: Play, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"availability": tuple(change(per_client(play, "availability")).tolist())}

    return Slip(says, options=options)


def of_weights(one: Specification) -> list[Slip]:
    """Return the slips that an algorithm's weights can have."""
    if not one.divisor:
        return []
    targets = {"target_weights", "aggregation_weights"} & set(one.options)
    plain = one.divisor == "present" and not targets
    tables = [
        _DIVISORS[one.divisor],
        _ANY,
        _BY_SIZE if one.by_size else {},
        _PLAIN if plain and not one.sized_steps else {},
        _SHARES_OF_DATA if plain else {},
        {} if plain else _SIZE_TOO,
        _OVER_TARGETS if targets and one.divisor == "present" else {},
    ]
    found = [weighing(says, weigh) for table in tables for says, weigh in table.items()]
    if plain and not one.by_size:
        # If all weights are equal, this is the same as dividing by N.
        found = [slip for slip in found if slip.says != _SHARES_OF_ALL]
    if one.by_size:
        says = "a client without data counts as if it had a sample"
        found += [Slip(says, sizes=lambda play, sizes: np.maximum(sizes, 1))]
        says = "clients train one after another: the model moves as each client answers"
        found += [] if one.sized_steps else [Slip(says, local=_in_place)]
    if "availability" in one.options and not one.chooses:
        found += [*inverse(one, "availability")]
        # If weights are divided by their sum, a common factor does not matter.
        found += [
            _told(says, change)
            for says, change in _KNOWN.items()
            if change is not shares or one.divisor != "present"
        ]
    return found

"""Slips in the weights of those present: what is weighed, what it is divided by, whose it is.

Every algorithm with such weights has ``w = raw / total`` over those present, raw being what its
paper says of a client (its data, alpha/pi, omega, ...), and total their sum, or N, or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.own_runs import Play, Slip
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

Weigh: TypeAlias = Callable[[Play, FloatArray, float], FloatArray]
"""The weights of those present, of raw ones (N,), zero where absent, and the paper's total."""


def per_client(play: Play, name: str) -> FloatArray:
    """Return an option as one number for each client."""
    return np.array(np.broadcast_to(np.asarray(play.given[name], dtype=np.float64), (play.n,)))


def everybody(play: Play) -> FloatArray:
    """Return the raw weights of all clients, where they do not change from round to round."""
    if "availability" in play.given and play.one.divisor == "present":
        return per_client(play, "target_weights") / per_client(play, "availability")
    if play.one.by_size and play.given.get("weighting", "n_samples") == "n_samples":
        return play.sizes
    return np.ones(play.n)


def over(total: float) -> float:
    """Return a number to divide by, 1 in place of 0."""
    return total if total > 0 else 1.0


def shares(values: FloatArray) -> FloatArray:
    """Return numbers divided by their sum."""
    return values / over(float(values.sum()))


def steps_of(play: Play) -> FloatArray:
    """Return the local steps of each client."""
    steps = np.asarray(play.given["local_steps"], dtype=np.float64)
    return np.array(np.broadcast_to(steps, (play.n,)))


def weighing(says: str, weigh: Weigh) -> Slip:
    """Return other weights than the paper's."""

    def weights(play: Play, proper: FloatArray) -> FloatArray:
        if play.one.divisor == "present":
            raw = np.where(play.here, everybody(play), 0.0)
            total = float(raw.sum())
        else:
            total = float(play.n) if play.one.divisor == "all" else 1.0
            raw = proper * total
        found = weigh(play, raw, total)
        if play.one.sized_steps:
            # FedNova's are tau_eff p_k / tau_k.
            tau = steps_of(play)
            found = float(found @ tau) * found / tau
        return found

    return Slip(says, weights=weights)


def _total_before(play: Play, raw: FloatArray, total: float) -> FloatArray:
    if raw.any():
        play.kept["total"], total = total, play.kept.get("total", total)
    return raw / over(total)


def _ordered(play: Play, raw: FloatArray, total: float, order: Callable[..., Any]) -> FloatArray:
    """Return weights that come in another order than the changes."""
    weights = np.zeros(play.n)
    weights[order(play.who, key=lambda k: play.sizes[k])] = raw[play.who] / over(total)
    return weights


def _pairwise(play: Play, raw: FloatArray, total: float) -> FloatArray:
    weights, m = np.zeros(play.n), len(play.who)
    weights[play.who] = [0.5 ** (m - max(j, 1)) for j in range(m)]
    return weights


_SIZE_ALSO = "weighs by data size, too"
_OTHERS_WEIGHT = "changes and weights are in different orders: a client gets another's weight"

DIVISORS: Mapping[str, tuple[Slip, ...]] = {
    "present": (
        weighing(
            "divides by all N clients, not by those present",
            lambda play, raw, total: raw / play.n,
        ),
        weighing(
            "weights are not renormalised over those present: adds changes up instead of taking "
            "their mean",
            lambda play, raw, total: raw,
        ),
        weighing(
            "weights are shares among all clients, not among those present: absent ones hold the "
            "model back",
            lambda play, raw, total: raw / over(everybody(play).sum()),
        ),
        weighing("divides by one client too many", lambda play, raw, total: raw / (total + 1)),
        weighing("weights are divided by their sum in the round before", _total_before),
        weighing("weights are divided by N, too", lambda play, raw, total: shares(raw) / play.n),
    ),
    "all": (
        weighing("the sum is not divided by N", lambda play, raw, total: raw),
        weighing(
            "the sum is divided by the number present, not by N",
            lambda play, raw, total: raw / over(play.here.sum()),
        ),
        weighing(
            "weights are renormalised over those present: biased where they vary",
            lambda play, raw, total: shares(raw),
        ),
    ),
    "one": (
        weighing(
            "weights are renormalised over those who train", lambda play, raw, total: shares(raw)
        ),
        weighing(
            "the update is divided by the number of those who train",
            lambda play, raw, total: raw / over(float((raw > 0).sum())),
        ),
        weighing("the update is divided by N", lambda play, raw, total: raw / play.n),
    ),
}
"""What weights are divided by, beside what they should be."""

ANY: tuple[Slip, ...] = (
    weighing("weights are applied twice", lambda play, raw, total: (raw / over(total)) ** 2),
    weighing("averages pairwise, one client after the other: the last counts most", _pairwise),
)

BY_SIZE: tuple[Slip, ...] = (
    weighing(
        "takes the plain mean where weights by data size are meant",
        lambda play, raw, total: shares(play.here * 1.0),
    ),
    weighing(
        "weights are applied twice, and renormalised", lambda play, raw, total: shares(raw**2)
    ),
    weighing(_OTHERS_WEIGHT, lambda play, raw, total: _ordered(play, raw, total, sorted)),
    weighing(
        _OTHERS_WEIGHT,
        lambda play, raw, total: _ordered(play, raw, total, lambda who, key: who[::-1]),
    ),
    weighing(
        "weighs by the inverse of the data size",
        lambda play, raw, total: shares(np.where(raw > 0, 1 / np.maximum(raw, 1e-300), 0)),
    ),
    weighing(
        "weighs by the square root of the data size", lambda play, raw, total: shares(np.sqrt(raw))
    ),
    Slip(
        "a client without data counts as if it had a sample",
        sizes=lambda play, sizes: np.maximum(sizes, 1),
    ),
)
SIZE_WHERE_PLAIN = weighing(
    "weighs by data size where the plain mean is meant",
    lambda play, raw, total: shares(play.here * play.sizes),
)
SIZE_TOO = (
    weighing(
        _SIZE_ALSO,
        lambda play, raw, total: raw / total * play.sizes * play.n / over(play.sizes.sum()),
    ),
    weighing(
        f"{_SIZE_ALSO}, by shares of it",
        lambda play, raw, total: raw * play.sizes / over(play.sizes.sum()),
    ),
)
SHARES_OF_ALL_DATA = weighing(
    "weighs by the share of all clients' data, not of those present",
    lambda play, raw, total: play.here * play.sizes / over(play.sizes.sum()),
)


def inverse(one: Specification, fact: str) -> tuple[Slip, ...]:
    """Return slips of weights ``alpha / fact``, the fact being an availability or a rate."""

    def by(says: str, alpha: float, power: float) -> Slip:
        def weigh(play: Play, raw: FloatArray, total: float) -> FloatArray:
            targets = np.ones(play.n)
            if "target_weights" in play.given:
                targets = per_client(play, "target_weights")
            # What is given is alpha / fact: the rest of the powers is missing.
            ratio = np.where(raw > 0, raw / targets, 1.0)
            new = np.where(raw > 0, targets**alpha * ratio**-power, 0.0)
            if play.one.divisor == "present":
                return shares(new)
            return new / (play.n if alpha == 0 and "target_weights" in play.given else total)

        return weighing(says, weigh)

    found = [
        by(f"changes are multiplied by the {fact}, not divided by it", 1, 1),
        by(f"the {fact} is not used: changes are not divided by it", 1, 0),
        by(f"changes are divided by the {fact} twice", 1, -2),
        by(f"changes are divided by the root of the {fact}", 1, -0.5),
    ]
    if "target_weights" in one.options:
        found += [
            by("target weights are not used", 0, -1),
            by("target weights are applied twice", 2, -1),
        ]
    return tuple(found)


def _rolled(values: FloatArray) -> FloatArray:
    return np.roll(values, 1)


def known(name: str) -> tuple[Slip, ...]:
    """Return slips in what is known of each client's availability."""

    def told(says: str, change: Callable[[FloatArray], FloatArray]) -> Slip:
        return Slip(
            says,
            options=lambda play, given: (
                {name: tuple(change(per_client(play, name)).tolist())}
                if given.get(name) is not None
                else {}
            ),
        )

    return (
        told("a client gets the availability of the client before: off by one", _rolled),
        told(
            "availabilities are made to sum to one, as if they were chances of being drawn", shares
        ),
        told(
            "changes are divided by 1 - p, the probability of absence",
            lambda p: np.maximum(1 - p, 1e-3),
        ),
        told(
            "the mean availability stands for each client's own",
            lambda p: np.full(p.size, p.mean()),
        ),
    )


def of_weights(one: Specification) -> list[Slip]:
    """Return the slips that an algorithm's weights can have."""
    if not one.divisor:
        return []
    found = [*DIVISORS[one.divisor], *ANY]
    targets = {"target_weights", "aggregation_weights"} & set(one.options)
    if one.by_size:
        found += [*BY_SIZE, SHARES_OF_ALL_DATA]
    if not one.sized_steps and not targets and one.divisor == "present":
        found += [SIZE_WHERE_PLAIN, *([] if one.by_size else [SHARES_OF_ALL_DATA])]
    if targets or one.divisor != "present":
        found += SIZE_TOO
    if "availability" in one.options and not one.chooses:
        found += [*inverse(one, "availability"), *known("availability")]
    return found

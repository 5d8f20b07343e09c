"""Pseudo-code that averages local models: FedAvg, FedProx, FedNova."""

from __future__ import annotations

from functools import partial

import numpy as np

from fltheory.testing.conformance.likely_causes.rounds import (
    Paper,
    Pull,
    Rounds,
    option_of,
    shares,
    weighted,
)
from fltheory.validation import FloatArray

MEAN_SLIPS = {
    "sizes": "weighs by data size where the plain mean is meant",
    "plain": "takes the plain mean where weights by data size are meant",
    "over N": "divides by all N clients, not by those present",
    "sum": "adds changes up instead of taking their mean",
    "twice": "weights are applied twice",
    "twice, sum one": "weights are applied twice, and renormalised",
    "sizes over N": "weighs by the share of all clients' data, not of those present",
    "shares of all": "weights are shares among all clients, not among those present: absent ones "
    "hold the model back",
    "sorted": "changes and weights are in different orders: a client gets another's weight",
    "reversed": "changes and weights are in different orders: a client gets another's weight",
    "one too many": "divides by one client too many",
    "no data counts": "a client without data counts as if it had a sample",
    "running": "averages pairwise, one client after the other: the last counts most",
    "inverse sizes": "weighs by the inverse of the data size",
    "root sizes": "weighs by the square root of the data size",
}
PLAIN_MEAN_SLIPS = {
    name: text
    for name, text in MEAN_SLIPS.items()
    if name
    not in ("plain", "twice, sum one", "no data counts", "shares of all", "sorted", "reversed")
}
"""Those of an algorithm that takes plain means."""


def mean_weights(rounds: Rounds, who: list[int], *, by_size: bool) -> dict[int, float]:
    """Return the weights of those present: their shares of the data, or all alike."""
    sizes = rounds.sizes[who]
    if rounds.has("no data counts"):
        sizes = np.maximum(sizes, 1)
    raw = _raw(rounds, sizes, by_size=by_size)
    total = _total(rounds, raw, by_size=by_size)
    weights = raw / total if total > 0 else np.zeros(len(who))
    if rounds.slip.startswith("twice"):
        weights = weights**2
        weights = shares(weights) if rounds.has("twice, sum one") else weights
    if rounds.has("running") and who:
        weights = np.array([0.5 ** (len(who) - max(j, 1)) for j in range(len(who))])
    if rounds.has("sorted"):
        who = sorted(who, key=lambda k: rounds.sizes[k])
    return dict(zip(who[::-1] if rounds.has("reversed") else who, weights.tolist(), strict=True))


def _raw(rounds: Rounds, sizes: FloatArray, *, by_size: bool) -> FloatArray:
    if rounds.has("inverse sizes"):
        return np.where(sizes > 0, 1 / np.maximum(sizes, 1), 0.0)
    if rounds.has("root sizes"):
        return np.sqrt(sizes)
    if rounds.has("plain") or (not by_size and not rounds.slip.startswith("sizes")):
        return np.ones(sizes.size)
    return sizes


def _total(rounds: Rounds, raw: FloatArray, *, by_size: bool) -> float:
    if rounds.has("over N"):
        return float(rounds.n)
    if rounds.has("sum"):
        return 1.0
    if rounds.has("shares of all") and not by_size:
        return float(rounds.n)
    if rounds.has("sizes over N") or rounds.has("shares of all"):
        return float(rounds.sizes.sum())
    return float(raw.sum()) + rounds.has("one too many")


def averaged(rounds: Rounds, changes: dict[int, FloatArray], *, by_size: bool) -> FloatArray:
    """Return the participants' mean change."""
    weights = mean_weights(rounds, list(changes), by_size=by_size)
    return weighted(changes, weights, rounds.dim)


def _changes(rounds: Rounds, who: list[int], pull: Pull | None = None) -> (
    dict[int, FloatArray]
):  # fmt: skip
    """Return the participants' changes, of none where nobody of them has data."""
    weights = mean_weights(rounds, who, by_size=_by_size(rounds))
    who = who if any(weights.values()) else []
    if not rounds.has("in place"):
        changes = {k: rounds.change(k, pull=pull) for k in who}
        return dict.fromkeys(who, changes[who[-1]]) if who and rounds.has("one array") else changes
    begun, changes = rounds.x, {}
    for k in who:
        changes[k] = rounds.change(k, pull=pull)
        rounds.x = rounds.x + rounds.case.server_lr * weights[k] * changes[k]
    rounds.x = begun
    return changes


SHARED_SLIPS = {
    "one array": "all local models are one array in memory, which holds the last one: models "
    "overwrite each other",
    "in place": "the model moves as each client answers, and the next one starts from there: "
    "clients train one after another",
}


def _by_size(rounds: Rounds) -> bool:
    return bool(option_of(rounds, "weighting", "n_samples") == "n_samples")


def fedavg(rounds: Rounds) -> None:
    """Play ``x <- x + server_lr sum_k w_k (y_k - x)``, w shares of the data."""
    for who in rounds.present():
        changes = _changes(rounds, who)
        rounds.move(averaged(rounds, changes, by_size=_by_size(rounds)))


PROX_SLIPS = {
    "to zero": "the proximal term pulls to zero, not to the round's model",
    "to x0": "the proximal term pulls to the first model, not to the round's",
    "to the model before": "the proximal term pulls to the model of the round before",
    "no pull": "the proximal term is left out",
    "pushed": "the proximal term pushes away: its sign is wrong",
    "pull doubled": "the proximal term's gradient is 2 mu (y - x), for mu/2 ||y - x||^2 is "
    "taken without its half",
    "not squared": "the proximal term is mu/2 ||y - x||, not squared: it pulls alike at any "
    "distance",
    "not squared, no half": "the proximal term is mu ||y - x||, not squared: it pulls alike at any "
    "distance",
    "to own model": "the proximal term pulls to the client's own last model, not to the round's "
    "model of the server",
    "to the step before": "the proximal term pulls to the local model of the step before, not to "
    "the round's model",
    "last step": "the proximal term acts in the last local step only, not in every one",
    "pull halved": "the proximal term's gradient is mu/2 (y - x), the half is kept",
    "after the steps": "the proximal term is applied once, after the local steps",
}


def _pull(
    slip: str, strength: float, anchor: FloatArray, y: FloatArray, before: FloatArray, last: bool
) -> FloatArray:
    if slip == "last step" and not last:
        return np.zeros_like(y)
    away = y - (before if slip == "to the step before" else anchor)
    length = float(np.linalg.norm(away))
    if slip.startswith("not squared") and length > 0:
        away = away / length
    return strength * away


def fedprox(rounds: Rounds) -> None:
    """Play FedAvg with mu (y - x) added to every local gradient."""
    mu = float(option_of(rounds, "proximal", 0.0))
    sent = dict.fromkeys(range(rounds.n), rounds.x)
    for who in rounds.present():
        anchor = rounds.x
        if rounds.has("to zero"):
            anchor = rounds.zeros(rounds.dim)
        if rounds.has("to x0"):
            anchor = np.array(rounds.case.x0)
        if rounds.has("to the model before"):
            anchor = rounds.before
        strength = {
            "no pull": 0.0,
            "pushed": -mu,
            "pull doubled": 2 * mu,
            "pull halved": mu / 2,
            "not squared": mu / 2,
            "after the steps": 0.0,
        }.get(rounds.slip, mu)
        pull = partial(_pull, rounds.slip, strength, anchor)
        changes = _changes(rounds, who, pull)
        if rounds.has("to own model"):
            changes = {
                k: rounds.change(k, pull=partial(_pull, rounds.slip, strength, sent[k]))
                for k in who
            }
        sent.update({k: rounds.x + change for k, change in changes.items()})
        if rounds.has("after the steps"):
            changes = {k: (1 - rounds.eta * mu) * change for k, change in changes.items()}
        rounds.move(averaged(rounds, changes, by_size=_by_size(rounds)))


NOVA_SLIPS = {
    "tau plain mean": "tau_eff is the plain mean of the steps, not the one weighted by data",
    "tau of all": "tau_eff is over all clients, not over those present",
    "tau plain of all": "tau_eff is the plain mean over all clients",
    "tau largest": "tau_eff is the largest number of steps",
    "tau least": "tau_eff is the least number of steps",
    "tau one": "tau_eff is left out: changes are normalised and not scaled back",
    "tau sum": "tau_eff is the sum of the steps, without weights",
    "tau whole": "tau_eff is cut to a whole number",
    "tau squared": "tau_eff is sum p tau^2 / sum p tau",
    "tau harmonic": "tau_eff is the harmonic mean of the steps",
    "not normalised": "changes are not divided by their own numbers of steps: plain FedAvg",
    "normalised twice": "changes are divided by their own numbers of steps twice",
    "same steps": "everybody runs the first client's number of steps",
    "most steps": "everybody runs the largest number of steps",
    "most steps everywhere": "everybody runs the largest number of steps",
    "by the largest": "changes are divided by the largest number of steps, not by their own",
    "by the largest present": "changes are divided by the largest number of steps among those "
    "present, not by their own",
    "p of all in the sum": "p is a share of all clients' data, not of those present",
    "tau of the round before": "tau_eff is that of the round before",
    "tau inverted": "the change is divided by tau_eff instead of multiplied",
    "p not renormalised": "p is not renormalised over those present, neither in the sum nor in "
    "tau_eff",
    "tau and lr": "tau_eff is multiplied by client_lr",
}


def fednova(rounds: Rounds) -> None:
    """Play ``x <- x + server_lr tau_eff sum_k p_k (y_k - x) / tau_k``."""
    tau = np.array(rounds.case.steps, dtype=np.float64)
    before = 0.0
    if rounds.has("most steps everywhere"):
        tau[:] = tau.max()
    for who in rounds.present():
        p = mean_weights(rounds, who, by_size=True)
        if rounds.has("p not renormalised"):
            p = {k: rounds.sizes[k] / max(rounds.sizes.sum(), 1) for k in who}
        changes = {}
        for k in who:
            change = rounds.change(k)
            own = tau[k]
            if rounds.slip.startswith("by the largest"):
                own = max(tau[who]) if rounds.slip.endswith("present") else max(tau)
            power = {"not normalised": 0, "normalised twice": 2}.get(rounds.slip, 1)
            changes[k] = change / own**power
        effective = _effective(rounds, who, p, tau) if who else 0.0
        if rounds.has("tau of the round before") and effective > 0:
            before, effective = effective, before or effective
        if rounds.has("p of all in the sum"):
            p = {k: rounds.sizes[k] / max(rounds.sizes.sum(), 1) for k in who}
        rounds.move(effective * weighted(changes, p, rounds.dim))


def _effective(rounds: Rounds, who: list[int], p: dict[int, float], tau: FloatArray) -> float:
    mine, weights = tau[who], np.array([p[k] for k in who])
    proper = float(weights @ mine)
    if proper == 0:
        return 0.0
    every = shares(rounds.sizes.tolist())
    others = {
        "tau plain mean": mine.mean(),
        "tau of all": every @ tau,
        "tau plain of all": tau.mean(),
        "tau largest": mine.max(),
        "tau least": mine.min(),
        "tau one": 1.0,
        "tau sum": mine.sum(),
        "tau whole": max(1.0, float(int(proper + 1e-9))),
        "tau squared": weights @ mine**2 / proper,
        "tau harmonic": 1 / (weights @ (1 / mine)),
        "not normalised": 1.0,
        "tau inverted": 1 / proper,
        "tau and lr": proper * rounds.eta,
    }
    return float(others.get(rounds.slip, proper))


_WITHOUT_SIZES = {name: text for name, text in MEAN_SLIPS.items() if name != "sizes"}

PAPERS = {
    "fedavg": Paper(fedavg, {**MEAN_SLIPS, **SHARED_SLIPS}),
    "fedprox": Paper(fedprox, {**PROX_SLIPS, **MEAN_SLIPS, **SHARED_SLIPS}),
    "fednova": Paper(fednova, {**NOVA_SLIPS, **_WITHOUT_SIZES}),
}

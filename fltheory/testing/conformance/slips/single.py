"""Slips in parts that only one algorithm has, such as terms, controls, counts and choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fltheory.testing.conformance.own_runs import Change, Play, Slip, Steps, slips
from fltheory.testing.conformance.slips.memory import State
from fltheory.testing.conformance.slips.weights import over, per_client, shares, steps_of
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

# --- FedProx: the proximal term, of the client, mu, y, the round's model and the steps left

_TERM: Mapping[str, Callable[..., Any]] = {
    "pulls to zero, not to the round's model": lambda p, k, mu, y, x, left: mu * y,
    "pulls to the first model": lambda p, k, mu, y, x, left: mu * (y - p.x0[0]),
    "pulls to the model of the round before": lambda p, k, mu, y, x, left: mu * (y - p.x_before),
    "is left out": lambda p, k, mu, y, x, left: 0.0,
    "pushes away: its sign is wrong": lambda p, k, mu, y, x, left: mu * (x - y),
    "is taken without its half: 2 mu (y - x)": lambda p, k, mu, y, x, left: 2 * mu * (y - x),
    "keeps the half: mu/2 (y - x)": lambda p, k, mu, y, x, left: mu / 2 * (y - x),
    "is mu/2 ||y - x||, not squared": lambda p, k, mu, y, x, left: mu / 2 * _length(y - x),
    "is mu ||y - x||, not squared": lambda p, k, mu, y, x, left: mu * _length(y - x),
    "pulls to the client's own last model, not to the server's": lambda p, k, mu, y, x, left: (
        mu * (y - p.kept.get(("sent", k), p.x0[0]))
    ),
    "pulls to the local model of the step before": lambda p, k, mu, y, x, left: (
        mu * (y - p.kept["step before"])
    ),
    "acts in the last local step only": lambda p, k, mu, y, x, left: mu * (y - x) * (left == 0),
}


def _length(away: FloatArray) -> FloatArray:
    return np.asarray(away / over(float(np.linalg.norm(away))))


def _term(says: str, pull: Callable[..., Any]) -> Slip:
    def local(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
        before = x

        def added(step: int, y: FloatArray) -> FloatArray:
            nonlocal before
            play.kept["step before"], before = before, y
            return np.asarray(pull(play, k, go.proximal, y, x, go.number - 1 - step))

        play.kept["sent", k] = end = go(x, added=added)
        return end - x

    return Slip(f"the proximal term {says}", local=local)


def fedprox(one: Specification) -> list[Slip]:
    """Return slips in the proximal term."""
    return [_term(says, pull) for says, pull in _TERM.items()]


# --- FedNova: weights of p, tau, (N,), and who is present; p is 0 for the absent

_TAU: Mapping[str, Callable[..., float]] = {
    "is the plain mean of the steps": lambda play, p, tau, here: tau[here].mean(),
    "is over all clients, not over those present": lambda play, p, tau, here: (
        shares(play.sizes) @ tau
    ),
    "is the plain mean over all clients": lambda play, p, tau, here: tau.mean(),
    "is the largest number of steps": lambda play, p, tau, here: tau[here].max(),
    "is left out: changes are not scaled back": lambda play, p, tau, here: 1.0,
    "is cut to a whole number": lambda play, p, tau, here: int(p @ tau + 1e-9),
    "is sum p tau^2 / sum p tau": lambda play, p, tau, here: p @ tau**2 / (p @ tau),
    "divides the change": lambda play, p, tau, here: 1 / (p @ tau),
    "is that of the round before": lambda play, p, tau, here: play.before("tau", p @ tau),
}
_NOVA: Mapping[str, Callable[..., Any]] = {
    **{
        f"tau_eff {says}": lambda play, p, tau, here, of=of: of(play, p, tau, here) * p / tau
        for says, of in _TAU.items()
    },
    "plain FedAvg: changes are not divided by their numbers of steps": lambda play, p, tau, here: p,
    "changes are divided by their own numbers of steps, twice": lambda play, p, tau, here: (
        p @ tau * p / tau**2
    ),
    "changes are divided by the largest number of steps, not by their own": (
        lambda play, p, tau, here: p @ tau * p / tau.max()
    ),
    "p is a share of all clients' data, not of those present": lambda play, p, tau, here: (
        p @ tau * here * shares(play.sizes) / tau
    ),
}


def _nova(says: str, weigh: Callable[..., Any], **parts: Any) -> Slip:
    def weights(play: Play, proper: FloatArray) -> FloatArray:
        p = shares(np.where(play.here, play.sizes, 0.0))
        return np.asarray(weigh(play, p, steps_of(play), play.here)) if p.any() else p

    return Slip(says, weights=weights, **parts)


def _most_steps(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
    return go(x, number=int(steps_of(play).max())) - x


def fednova(one: Specification) -> list[Slip]:
    """Return slips in the handling of different numbers of steps."""
    largest = "everybody runs the largest number of steps"
    return [
        *(_nova(says, weigh) for says, weigh in _NOVA.items()),
        _nova(largest, lambda play, p, tau, here: p @ tau * p / tau, local=_most_steps),
        _nova(f"{largest}, and tau is that", lambda play, p, tau, here: p, local=_most_steps),
    ]


# --- SCAFFOLD: c of itself, changes and values of the c_i of those present; c_i+ of c_i, c and way

_C: Mapping[str, Callable[[Play, FloatArray, FloatArray, FloatArray], FloatArray]] = {
    "is divided by the number present, |S|, not by N": lambda p, c, d, n: c + d.mean(0),
    "adds up changes of the c_i without dividing by N": lambda p, c, d, n: c + d.sum(0),
    "adds the new c_i, not their change c_i+ - c_i": lambda p, c, d, n: c + n.sum(0) / p.n,
    "is the mean of the new c_i of those present": lambda p, c, d, n: n.mean(0),
    "is never renewed": lambda p, c, d, n: c,
    "takes the last client's change only": lambda p, c, d, n: c + d[-1] / p.n,
    "adds changes multiplied by |S|/N instead of divided by N": lambda p, c, d, n: (
        c + d.sum(0) * len(n) / p.n
    ),
    "is multiplied by |S|/N once more": lambda p, c, d, n: c + d.sum(0) * len(n) / p.n**2,
    "takes changes weighted by data size": lambda p, c, d, n: (
        c + p.sizes[p.who] @ d / over(p.sizes.sum())
    ),
    "is renewed with server_lr, too": lambda p, c, d, n: c + p.given["server_lr"] * d.sum(0) / p.n,
    "is divided by the clients seen so far": lambda p, c, d, n: c + d.sum(0) / p.seen.sum(),
}
_CORRECTION: Mapping[str, Callable[[FloatArray, FloatArray], Any]] = {
    "the correction has the wrong sign: c_i - c": lambda c, own: own - c,
    "local steps leave the server's control out: only - c_i": lambda c, own: -own,
    "local steps leave the client's control out: only + c": lambda c, own: c,
    "local steps are not corrected": lambda c, own: 0.0,
}
_RENEWAL: Mapping[str, Callable[..., Any]] = {
    "lacks - c": lambda p, own, c, way: own + way,
    "lacks c_i": lambda p, own, c, way: way - c,
    "has + c instead of - c": lambda p, own, c, way: own + c + way,
    "divides by client_lr alone, not by K client_lr": lambda p, own, c, way: (
        own - c + way * p.given["local_steps"]
    ),
    "divides by K alone, not by K client_lr": lambda p, own, c, way: (
        own - c + way * p.given["client_lr"]
    ),
    "has y - x instead of x - y: its sign": lambda p, own, c, way: own - c - way,
    "divides by server_lr, too": lambda p, own, c, way: own - c + way / p.given["server_lr"],
}
_C_I: Mapping[str, Callable[..., Any]] = {
    "is set to 0 when the client is absent, so it starts at 0 when the client returns": (
        lambda p, old, new, c: np.where(p.here[:, None], new, 0.0)
    ),
    "is set to the server's while it is absent": lambda p, old, new, c: np.where(
        p.here[:, None], new, c
    ),
    "is never renewed": lambda p, old, new, c: 0 * new,
    "is stored multiplied by server_lr": lambda p, old, new, c: np.where(
        p.here[:, None], p.given["server_lr"] * new, new
    ),
    "is everybody's": lambda p, old, new, c: np.tile(new[p.who[-1]], (p.n, 1)) if p.who else new,
}


_OTHER_OPTION: Mapping[str, Change] = {
    "the other option renews the controls": lambda p, given: {"option": 3 - given["option"]}
}


def _right_c(p: Play, c: FloatArray, changes: FloatArray, new: FloatArray) -> FloatArray:
    return np.asarray(c + changes.sum(axis=0) / p.n)


def _controls(says: str, *, c: Change = _right_c, kept: Any = None, **parts: Any) -> Slip:
    """Return a slip in which the server's control is stored and updated by ``c``.

    If both are right, this control is the mean of the c_i, but not if one of them has a fault.
    ``kept`` returns what clients store, given the play, their old and new controls, and c.
    """

    def mean(play: Play, rows: FloatArray, proper: FloatArray) -> FloatArray:
        found: FloatArray = play.kept.setdefault("c", 0 * proper)
        return found

    def after(play: Play, old: State, new: State) -> dict[str, Any]:
        before, fresh = old["c_i"][0], new["c_i"][0]
        if play.who:
            changes = (fresh - before)[play.who]
            play.kept["c"] = c(play, play.kept["c"], changes, fresh[play.who])
        return {} if kept is None else {"c_i": kept(play, before, fresh, play.kept["c"])[None]}

    return Slip(says, **{"mean": mean, "after": after, **parts})


def _renewal(says: str, change: Callable[[Play, int, State, FloatArray], FloatArray]) -> Slip:
    """Return a slip with a wrong c_i+, made from the client, the old state and the correct c_i+."""

    def after(play: Play, old: State, new: State) -> dict[str, Any]:
        rows = new["c_i"][0].copy()
        for k in play.who:
            rows[k] = change(play, k, old, rows[k])
        if play.who:
            changes = (rows - old["c_i"][0])[play.who]
            play.kept["c"] = _right_c(play, play.kept["c"], changes, rows[play.who])
        return {"c_i": rows[None]}

    return _controls(says, after=after)


def _second_option(change: Callable[..., Any]) -> Callable[..., FloatArray]:
    def found(play: Play, k: int, old: State, fresh: FloatArray) -> FloatArray:
        own, c = old["c_i"][0, k], play.kept["c"]
        second = play.given.get("option", 2) == 2
        return np.asarray(change(play, own, c, fresh - own + c)) if second else fresh

    return found


def _at_the_end(play: Play, k: int, old: State, fresh: FloatArray) -> FloatArray:
    first = play.given.get("option", 2) == 1
    return play.clients[k].gradient(play.x + play.changes[k]) if first else fresh


def _pushed(push: Callable[[FloatArray, FloatArray], Any]) -> Change:
    def local(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
        return replace(go, push=push(play.kept["c"], play.state["c_i"][0, k]))(x) - x

    return local


def _one_by_one(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
    """Return local steps with a server control that is updated after each client."""
    c, c_i = play.kept["c"], play.state["c_i"][0, k]
    seen = play.kept.setdefault(("seen", play.t), c)
    change = replace(go, push=seen - c_i)(x) - x
    new = c_i - seen - change / (go.number * go.lr)
    if play.given.get("option", 2) == 1:
        new = go.client.gradient(x)
    play.kept["seen", play.t] = seen + (new - c_i) / play.n
    play.kept["new", play.t, k] = new
    return change


def _one_by_one_kept(play: Play, old: State, new: State) -> dict[str, Any]:
    fresh = new["c_i"].copy()
    for k in play.who:
        fresh[0, k] = play.kept["new", play.t, k]
    play.kept["c"] = play.kept.get(("seen", play.t), play.kept["c"])
    return {"c_i": fresh}


def _renewed_first(play: Play, state: State) -> dict[str, Any]:
    rows = state["c_i"].copy()
    for k in play.who:
        rows[0, k] = play.clients[k].gradient(state["x"][0])
    return {"c_i": rows}


def _begun(of: str) -> Change:
    """Return controls, of the server, the clients, or all, that start as copies of the model."""

    def first(play: Play, state: State) -> dict[str, Any]:
        if of != "every c_i":
            play.kept["c"] = play.x0[0]
        return {} if of == "the server's control" else {"c_i": play.x0 + 0 * state["c_i"]}

    return first


def scaffold(one: Specification) -> list[Slip]:
    """Return slips in the controls."""
    begun = ("every c_i", "the server's control", "every control")
    once = "the correction c - c_i acts in the first local step only"
    within = "the server's control is renewed client by client within the round"
    return [
        *(_controls(f"the server's control {says}", c=c) for says, c in _C.items()),
        *(_controls(says, local=_pushed(push)) for says, push in _CORRECTION.items()),
        *(
            _renewal(f"c_i+ {says} (option II)", _second_option(change))
            for says, change in _RENEWAL.items()
        ),
        *(_controls(f"a client's control {says}", kept=rows) for says, rows in _C_I.items()),
        *(
            _controls(f"{of} starts at the model's weights instead of 0", first=_begun(of))
            for of in begun
        ),
        _renewal(
            "c_i+ is the gradient where the local steps end, not at x (option I)", _at_the_end
        ),
        _controls("c_i is renewed before the local steps use the old c_i", before=_renewed_first),
        _controls(
            once,
            local=lambda p, k, x, go: go(x, added=lambda j, y: np.asarray(go.push) * (j == 0)) - x,
        ),
        *slips("options", _OTHER_OPTION),
        _controls(within, local=_one_by_one, after=_one_by_one_kept),
    ]


# --- FedAU: intervals, and omega of those that have ended, the open one and the round

_INTERVALS: Mapping[str, Mapping[str, Any]] = {
    "intervals are truncated at the cut-off on return, instead of ending when they reach it": {
        "cap": True
    },
    "a client's first interval begins when it first appears, not at the start": {"late": True},
    "an interval is counted one round too short": {"longer": -1},
    "an interval is counted one round too long": {"longer": 1},
    "omega starts at 0 instead of 1": {"first": 0.0},
    "omega is the last interval, not their mean": {"mean": lambda ended: ended[-1]},
    "omega is the median of the intervals, not their mean": {"mean": np.median},
    "omega's initial 1 counts as an interval": {"begun": (1.0,)},
    "an interval that reaches the cut-off is not counted": {"uncounted": True},
    "an interval that reaches the cut-off is counted, and continues": {"unbroken": True},
    "an empty round does not lengthen intervals": {"empty": True},
}
_OMEGA: Mapping[str, Callable[[Play, FloatArray], FloatArray]] = {
    "omega already counts the interval that ends in this round": lambda p, omega: (
        (p.state["ended"][0] + p.state["lasted"][0] + 1) / (p.state["intervals"][0] + 1)
    ),
    "omega is that of the round before: one round late": lambda p, omega: p.before(
        "omega", omega, np.ones(p.n)
    ),
    "omega is rounds over participations": lambda p, omega: p.t / np.maximum(p.times, 1),
    "all clients share one omega, the mean": lambda p, omega: np.full(p.n, omega.mean()),
    "changes are divided by omega": lambda p, omega: 1 / np.maximum(omega, 1e-9),
    "omega is not used: all weights are 1": lambda p, omega: omega**0,
    "omega is applied twice": lambda p, omega: omega**2,
}
_CUT: Mapping[str, Change] = {
    "intervals are cut off one round too early: the cut-off is one less": lambda p, most: max(
        1, most - 1
    ),
    "intervals are cut off one round too late: the cut-off is one more": lambda p, most: most + 1,
    "the cut-off is not applied": lambda p, most: math.inf,
}


def _intervals(how: State, play: Play, plain: Change, counts: State, who: Any) -> State:
    """Return the counts after a round, with omega from wrongly counted intervals."""
    cutoff = play.given.get("cutoff", math.inf)
    ended = play.kept.setdefault("ended", [list(how.get("begun", ())) for _ in range(play.n)])
    age = play.kept.setdefault("age", np.zeros(play.n))
    age += bool(play.who) or "empty" not in how
    for k, here in enumerate(play.here):
        if "late" in how and not play.seen_before[k]:
            age[k] = 0
        elif here or (age[k] == cutoff and "cap" not in how):
            length = age[k] + how.get("longer", 0)
            if here or "uncounted" not in how:
                ended[k].append(min(length, cutoff) if "cap" in how else length)
            age[k] *= not here and "unbroken" in how
    mean, first = how.get("mean", np.mean), how.get("first", 1.0)
    omega = [float(mean(those)) if those else first for those in ended]
    return {**plain(counts, who), "omega": np.array([omega])}


def _at(how: State) -> Change:
    """Return the initial omega."""
    return lambda p, state: {"omega": how.get("first", 1.0) + 0 * state["omega"]}


def fedau(one: Specification) -> list[Slip]:
    """Return slips in the intervals between rounds of presence."""
    return [
        *(
            slip
            for says, how in _INTERVALS.items()
            for slip in slips("method.counted", {says: partial(_intervals, how)}, first=_at(how))
        ),
        *slips("algorithm.cutoff", _CUT),
        *(
            Slip(says, weights=lambda p, w, of=of: of(p, p.state["omega"][0]) / p.n)
            for says, of in _OMEGA.items()
        ),
    ]


def fedavg_is(one: Specification) -> list[Slip]:
    """Return slips in which the availability is replaced by observed frequencies."""
    says = "the share of rounds seen so far stands for the availability"
    return [Slip(says, weights=lambda p, w: p.t / np.maximum(p.times, 1) / p.n)]


# --- F3AST: by what clients are chosen, of alpha and r, and how r is renewed

_MERIT: Mapping[str, Callable[[Play, FloatArray, FloatArray], FloatArray]] = {
    "by target weight, not by target weight over rate": lambda p, alpha, r: alpha,
    "by their rate alone": lambda p, alpha, r: -r,
    "by data size": lambda p, alpha, r: p.sizes,
    "by alpha^2 / r, not by alpha^2 / r^2": lambda p, alpha, r: alpha**2 / r,
    "by alpha / r^2, not by alpha^2 / r^2: only the rate is squared": lambda p, alpha, r: (
        alpha / r**2
    ),
    "in the wrong order, starting with those that matter least": lambda p, alpha, r: -alpha / r,
    "in the order of their numbers": lambda p, alpha, r: -np.arange(p.n, dtype=np.float64),
}
_SMOOTHED: Mapping[str, Callable[..., Any]] = {
    "the rate counts presence instead of being chosen": lambda p, plain, r, mark: plain(
        r, np.array([p.here * 1.0])
    ),
    "rates do not decay in an empty round": lambda p, plain, r, mark: (
        plain(r, mark) if p.who else r
    ),
    "rates of absent clients do not decay": lambda p, plain, r, mark: np.where(
        p.here, plain(r, mark), r
    ),
}
_TAKEN: Mapping[str, Change] = {
    "everybody present trains: size is not used": lambda p, size: 10**9,
    "one client too many is chosen": lambda p, size: size + 1,
    "one client too few is chosen": lambda p, size: size - 1,
}
_WEIGHED: Mapping[str, Change] = {
    "the update is divided by size": lambda p, w: w / p.given["size"],
    "weights use the rate before it is updated": lambda p, w: _old_rate(p, w),
    "weights use the learned rate before it is updated": lambda p, w: (
        _old_rate(p, w) if _learned(p) else w
    ),
    "weights are (alpha/r)^2, not alpha/r": lambda p, w: w**2,
}
_SMOOTHING: Mapping[str, Change] = {
    "smoothing: the rate keeps beta of its past instead of 1 - beta": lambda p, given: {
        "smoothing": 1 - given["smoothing"]
    },
}
_RATES: Mapping[str, Callable[[Play], float]] = {
    "1": lambda p: 1.0,
    "size/N": lambda p: p.given["size"] / p.n,
    "1/N": lambda p: 1 / p.n,
}
_UNKNOWN: Mapping[str, Change] = {
    "the availability is not used": lambda p, given: {"availability": None}
}


def _learned(play: Play) -> bool:
    return play.given.get("availability") is None


def _by_merit(merit: Callable[..., FloatArray]) -> Change:
    def chosen(play: Play, plain: Change, urgency: FloatArray, who: np.ndarray) -> Any:
        alpha = per_client(play, "target_weights")
        values = merit(play, alpha, alpha / urgency[0])
        # Only the order of the merits matters, and absent clients have 0.
        return plain((values - values.min() + 1)[None], who)

    return chosen


_CHOSEN: Mapping[str, Change] = {
    "clients are chosen in the wrong order, starting with those that matter least": (
        lambda p, plain, urgency, who: plain(
            1 / np.where(who, urgency, 1.0)[:, ::-1], who[:, ::-1]
        )[:, ::-1]
    ),
    "the most urgent of all clients are chosen, and the absent among them do not answer": (
        lambda p, plain, urgency, who: who & plain(urgency, np.ones_like(who))
    ),
}


def _most_urgent(play: Play, plain: Change, urgency: FloatArray, who: np.ndarray) -> Any:
    return who & (np.arange(play.n) == int(np.argmax(np.where(who, urgency, -1.0))))


def _old_rate(play: Play, proper: FloatArray) -> FloatArray:
    rate = play.state["rate"][0] if _learned(play) else per_client(play, "availability")
    return np.where(proper > 0, per_client(play, "target_weights") / rate, 0.0)


def _begun_at(rate: Callable[[Play], float]) -> Change:
    return lambda p, state: {"rate": rate(p) + 0 * state["rate"]} if "rate" in state else {}


def f3ast(one: Specification) -> list[Slip]:
    """Return slips in the rates and in the choice."""
    merits = {says: _by_merit(merit) for says, merit in _MERIT.items()}
    starts = {says: _begun_at(rate) for says, rate in _RATES.items()}
    again = "clients are drawn with replacement, so the most urgent one is taken `size` times"
    return [
        *slips("method._chosen", merits, "clients are chosen {}"),
        *slips("method._chosen", _CHOSEN),
        *slips("method._chosen", {again: _most_urgent}, weights=lambda p, w: w * p.given["size"]),
        *slips("algorithm.size", _TAKEN),
        *slips("weights", _WEIGHED),
        *slips("method._smoothed", _SMOOTHED),
        *slips("options", _SMOOTHING),
        *slips("first", starts, "rates start at {} instead of the target weights"),
        *slips("options", _UNKNOWN),
    ]


# --- CA-Fed: estimates, and who is kept by losses, alpha, pi and lambda

_KEPT: Mapping[str, Callable[..., Any]] = {
    "nobody is ever excluded, or excluded clients train as well": (
        lambda p, plain, losses, *rest: losses["loss"] == losses["loss"]
    ),
    "clients are tried by availability first, then by correlation": (
        lambda p, plain, losses, alpha, pi, by: plain(losses, alpha, -by, -pi)
    ),
    "clients are tried in ascending correlation": lambda p, plain, losses, alpha, pi, by: plain(
        losses, alpha, pi, -by
    ),
    "clients are tried in descending availability": lambda p, plain, losses, alpha, pi, by: plain(
        losses, alpha, -pi, by
    ),
    "clients are tried in order of |correlation|": lambda p, plain, losses, alpha, pi, by: plain(
        losses, alpha, pi, np.abs(by)
    ),
    "the clients excluded are those of the round before": lambda p, plain, *given: p.before(
        "kept", now := plain(*given), np.ones_like(now)
    ),
    "a client that was excluded never comes back": lambda p, plain, *given: (
        p.kept.update(left=p.kept.get("left", True) & plain(*given)) or p.kept["left"]
    ),
    "the minima are assumed to be 0": lambda p, plain, losses, *rest: plain(
        {**losses, "minimum": 0 * losses["minimum"]}, *rest
    ),
}
_EPSILON: Mapping[str, Mapping[str, Any]] = {
    "at most one client is excluded in a pass": {"one": True},
    "only present clients are tried": {"present": True},
    "the bias, the distance of the weights, is not squared": {"power": 1},
    "the loss term is not divided by the share of those kept": {"plain": True},
    "Gamma, the largest gap, is over the clients kept": {"of": lambda p, those: those},
    "Gamma, the largest gap, is over the clients present": {"of": lambda p, those: p.who},
}
_GIVEN: Mapping[str, Change] = {
    "loss_smoothing: the loss keeps beta of its past instead of 1 - beta": lambda p, given: {
        "loss_smoothing": 1 - given["loss_smoothing"]
    },
    "losses are not smoothed": lambda p, given: {"loss_smoothing": 1.0},
    "kappa_bar is not squared": lambda p, given: {"kappa_bar": given["kappa_bar"] ** 0.5},
    "the threshold is not used": lambda p, given: {"threshold": 0.0},
    "the prior's two numbers are swapped": lambda p, given: {"prior": given["prior"][::-1]},
    "known_minima are not used": lambda p, given: {"known_minima": None},
    "availability and correlation are not used where they are given": lambda p, given: {
        "availability": None,
        "correlation": None,
    },
}
_WEIGHTS_OF_KEPT: Mapping[str, Callable[[Play, np.ndarray], float]] = {
    "weights are divided by the sum of those not excluded: they sum to one": lambda p, kept: p.kept[
        "ratios"
    ][kept].sum(),
    "weights are divided by the share of alpha that is left": lambda p, kept: per_client(
        p, "target_weights"
    )[kept].sum(),
}


def _not_again(play: Play, plain: Change, kept: Any, *given: Any, **rest: Any) -> Any:
    first = play.kept.get("left", np.ones_like(kept)) if kept.all() else kept
    play.kept["left"] = plain(first, *given, **rest)
    return play.kept["left"]


def _remembered(play: Play, plain: Change, losses: Any, alpha: Any, pi: Any, by: Any) -> Any:
    play.kept["kept"], play.kept["ratios"] = plain(losses, alpha, pi, by), (alpha / pi)[0]
    return play.kept["kept"]


def _pass(number: int) -> Change:
    """Return the clients left after only the first pass, or only the second."""

    def left(play: Play, plain: Change, kept: Any, *given: Any, **rest: Any) -> Any:
        play.kept["pass"] = 1 - play.kept.get("pass", 1)
        return plain(kept, *given, **rest) if play.kept["pass"] == number else kept

    return left


def _tried(how: Mapping[str, Any]) -> Change:
    """Return the clients left if clients are tried one by one with a different epsilon.

    The numbers are Python floats, with which sums over six clients take a tenth of the time that
    NumPy needs.
    """

    def left_in(
        play: Play, plain: Change, kept: Any, alpha: Any, gap: Any, by: Any, **given: float
    ) -> np.ndarray:
        share_of, gap_of, left = alpha[0].tolist(), gap[0].tolist(), np.flatnonzero(kept[0])
        here, factor = play.here.tolist(), given["kappa_bar"] ** 2

        def epsilon(those: list[int]) -> float:
            share = sum([share_of[k] for k in those])
            over = how["of"](play, those) if "of" in how else range(play.n)
            largest = max([gap_of[k] for k in over], default=0.0)
            loss = sum([share_of[k] * gap_of[k] for k in those]) / (1 if "plain" in how else share)
            return loss + factor * (1 - share) ** how.get("power", 2) * largest

        those = left.tolist()
        now = epsilon(those)
        for k in np.argsort(-by[0], kind="stable").tolist() if max(gap_of) > 0 else ():
            without = [j for j in those if j != k]
            if k not in those or not without or ("present" in how and not here[k]):
                continue
            if now - (then := epsilon(without)) >= given["threshold"]:
                those, now = without, then
                if "one" in how:
                    break
        return np.isin(np.arange(play.n), those)[None]

    return left_in


ONE_BY_ONE: Mapping[str, Change] = {"kept_after_exclusion": _tried({})}


def _bare(counts: State, prior: float) -> FloatArray:
    """Return the correlation from raw frequencies, which without observations are 0 or 1/2."""
    seen = counts["present"] + counts["absent"]
    away = counts["absent"] - np.where(seen > 0, 1 - counts["last"], 0.0)
    was_there, tiny = counts["present"] - counts["last"], 1e-300
    stays = (counts["stayed"] + prior) / np.maximum(was_there + 2 * prior, tiny)
    return np.asarray(stays + (counts["waited"] + prior) / np.maximum(away + 2 * prior, tiny) - 1)


def _estimated(share: bool, prior: float | None) -> Change:
    """Return estimates without the prior, of the availability, the correlation, or both."""

    def known(play: Play, plain: Change, state: State, who: Any) -> Any:
        counts, pi, by = plain(state, who)
        if counts and share:
            seen = counts["present"] + counts["absent"]
            pi = np.maximum(counts["present"], 1e-300) / np.maximum(seen, 1)
        return counts, pi, by if prior is None or not counts else _bare(counts, prior)

    return known


def _round_late(play: Play, plain: Change, state: State, who: Any) -> Any:
    counts, pi, by = plain(state, who)
    first, second = play.given["prior"]
    then = play.before("facts", (pi, by), (first / (first + second) + 0 * pi, 0 * by))
    return (counts, *then) if counts else (counts, pi, by)


def _raw_minimum(play: Play, plain: Change, state: State, report: Any, who: Any) -> Any:
    least = np.where(state["reported"] > 0, np.minimum(state["minimum"], report), report)
    return {**plain(state, report, who), "minimum": np.where(who, least, state["minimum"])}


def _as_kept(share: Callable[[Play, np.ndarray], float]) -> Change:
    return lambda p, w: w / over(float(share(p, p.kept["kept"][0])))


# Without the prior: whether the availability is so, and what is added to the correlation's counts.
_WITHOUT_PRIOR: Mapping[str, Sequence[tuple[bool, float | None]]] = {
    "the availability is": [(True, None)],
    "the correlation is": [(False, 0.0), (False, 1e-9)],
    "the availability and the correlation are": [(True, 0.0), (True, 1e-9)],
}
_REPORTS: Mapping[str, Change] = {
    "losses are reported after the local steps, not at the round's model": lambda p, k, x: (
        p.clients[k].loss(Steps(p.clients[k], p.given["local_steps"], p.given["client_lr"])(x))
    ),
}


def ca_fed(one: Specification) -> list[Slip]:
    """Return slips in the estimates, the exclusion and the weights."""
    exclusions = {
        "clients are tried in the order of correlation only": _pass(0),
        "clients are tried in the order of availability only": _pass(1),
        **{says: _tried(how) for says, how in _EPSILON.items()},
        "a client that was excluded never comes back: each round adds to the exclusions": (
            _not_again
        ),
    }
    raw = "the minimum is over raw reports, not over smoothed losses"
    late = "the availability is estimated without the present round: one round late"
    return [
        *slips("method._kept", _KEPT),
        *slips("names.kept_after_exclusion", exclusions),
        *slips("options", _GIVEN),
        *(
            slip
            for says, share in _WEIGHTS_OF_KEPT.items()
            for slip in slips("method._kept", {says: _remembered}, weights=_as_kept(share))
        ),
        *slips("method._losses", {raw: _raw_minimum}),
        *slips("loss", _REPORTS),
        *(
            slip
            for says, hows in _WITHOUT_PRIOR.items()
            for how in hows
            for slip in slips(
                "method._availability", {f"{says} estimated without the prior": _estimated(*how)}
            )
        ),
        *slips("method._availability", {late: _round_late}),
    ]


# --- SAFARI: factors on the server's own step

_OWN: Mapping[str, Callable[[Play], float]] = {
    "has the clients' step size": lambda p: p.given["client_lr"] / p.given["assist_lr"],
    "is left out": lambda p: 0.0,
    "has the wrong sign": lambda p: -1.0,
    "is made local_steps times as long": lambda p: p.given["local_steps"],
}


def safari(one: Specification) -> list[Slip]:
    """Return slips in the server rounds."""

    def moved(rate: Callable[[Play], float]) -> Change:
        return lambda p, x, d: x + d * (rate(p) if p.branches[p.t - 1] == "server" else 1.0)

    return [Slip(f"the server's own step {says}", move=moved(of)) for says, of in _OWN.items()]


# --- FedAWE: echo factors, the clients' initial models, and whose models are averaged

_SINCE: Mapping[str, Callable[[Play, FloatArray], Any]] = {
    "is left out: every update counts once": lambda p, since: 1.0 + 0 * since,
    "counts the rounds missed, t - tau - 1": lambda p, since: since - 1,
    "counts one round too many, t - tau + 1": lambda p, since: since + 1,
    "starts a round late, with tau = 0 instead of -1": lambda p, since: since - ~p.seen_before,
    "counts all rounds so far: tau is not renewed": lambda p, since: p.t + 0 * since,
    "does not count rounds in which nobody is present": lambda p, since: _since(p),
}
_OWN_MODELS: Mapping[str, Callable[[Play, State], FloatArray]] = {
    "start from the server's latest model, not from their own": lambda p, state: state["x"][
        :, None
    ],
    "that were away start from x0, not from their own model": lambda p, state: np.where(
        p.kept.get("here", p.here)[:, None], state["x_i"], p.x0
    ),
}


def _since(play: Play) -> FloatArray:
    found = play.kept.get("since", np.ones(play.n))
    play.kept["since"] = np.where(play.here, 1.0, found + bool(play.who))
    return np.asarray(found)


def _echo(says: str, of: Callable[[Play, FloatArray], Any]) -> Slip:
    """Return a slip with wrong numbers of rounds in the echo, although counts are right."""

    def before(play: Play, state: State) -> State:
        play.kept["counted"] = counted = state["since"][0]
        return {"since": of(play, counted)[None]}

    def after(play: Play, old: State, new: State) -> State:
        return {"since": np.where(play.here, 1.0, play.kept["counted"] + 1)[None]}

    return Slip(says, before=before, after=after)


def _after_start(play: Play, state: State, of: Callable[[Play, State], FloatArray]) -> State:
    begun = of(play, state) + 0 * state["x_i"]
    play.kept["here"] = play.here
    return {"x_i": begun}


def _averaged(says: str, mean: Callable[..., FloatArray], **parts: Any) -> Slip:
    """Return a slip with a wrong mean (d,) of present clients' models, given all models (N, d)."""

    def average(play: Play, plain: Change, weights: FloatArray, echoed: FloatArray) -> FloatArray:
        play.kept["echoed"] = echoed
        return mean(play, plain(weights, echoed)[0], echoed[0])[None]

    return Slip(says, names={"weighted_sum": average, **parts.pop("names", {})}, **parts)


def fedawe(one: Specification) -> list[Slip]:
    """Return slips in the echoes and in the clients' own models."""
    return [
        *(_echo(f"the echo {says}", of) for says, of in _SINCE.items()),
        replace(
            _echo(
                "the rounds since the last multiply the local step size, not the update",
                lambda p, since: 1.0 + 0 * since,
            ),
            local=lambda p, k, x, go: go(x, lr=go.lr * p.kept["counted"][k]) - x,
        ),
        *(
            Slip(f"clients {says}", before=lambda p, state, of=of: _after_start(p, state, of))
            for says, of in _OWN_MODELS.items()
        ),
        _averaged(
            "echoed updates are added to the server's model, not to the client's own",
            lambda p, mean, echoed: (
                mean + p.x - p.state["x_i"][0, p.who].mean(axis=0) if p.who else mean
            ),
        ),
        _averaged(
            "a present client keeps its own model instead of taking the mean",
            lambda p, mean, echoed: mean,
            names={"renewed": lambda p, plain, old, new, who: plain(old, p.kept["echoed"], who)},
        ),
        _averaged(
            "the mean is over all clients' models, including absent ones",
            lambda p, mean, echoed: echoed.mean(axis=0),
        ),
        _averaged(
            "server_lr scales the change of the server's model, not each update",
            lambda p, mean, echoed: p.x + p.given["server_lr"] * (mean - p.x),
            options=lambda p, given: {"server_lr": 1.0},
        ),
        _averaged(
            "the mean is weighted by data size instead of being a plain mean",
            lambda p, mean, echoed: (
                shares(p.here * p.sizes) @ echoed if p.sizes[p.here].any() else mean
            ),
        ),
    ]


SINGLE: Mapping[str, Callable[[Specification], list[Slip]]] = {
    "fedprox": fedprox,
    "fednova": fednova,
    "scaffold": scaffold,
    "fedau": fedau,
    "fedavg-is": fedavg_is,
    "f3ast": f3ast,
    "ca-fed": ca_fed,
    "safari": safari,
    "fedawe": fedawe,
}
"""The parts that are an algorithm's own."""

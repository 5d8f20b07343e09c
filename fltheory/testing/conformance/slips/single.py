"""Slips in parts that one algorithm alone has: its term, its controls, its counts, its choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.own_runs import Change, Play, Slip, Steps
from fltheory.testing.conformance.slips.weights import over, per_client, shares, steps_of
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

# --- FedProx: the proximal term


def _term(
    says: str, pull: Callable[[Play, int, float, FloatArray, FloatArray, int], FloatArray]
) -> Slip:
    """Return another term: of the client, mu, y, the round's model and the local step."""

    def local(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
        before = x

        def added(step: int, y: FloatArray) -> FloatArray:
            nonlocal before
            play.kept["step before"], before = before, y
            return np.asarray(pull(play, k, go.proximal, y, x, go.number - 1 - step))

        end = go(x, added=added)
        play.kept["sent", k] = end
        return end - x

    return Slip(says, local=local)


def _length(away: FloatArray) -> FloatArray:
    return np.asarray(away / over(float(np.linalg.norm(away))))


def fedprox(one: Specification) -> list[Slip]:
    """Return what goes wrong in the proximal term."""
    terms: Mapping[str, Callable[..., Any]] = {
        "pulls to zero, not to the round's model": lambda p, k, mu, y, x, left: mu * y,
        "pulls to the first model, not to the round's": (
            lambda p, k, mu, y, x, left: mu * (y - p.x0[0])
        ),
        "pulls to the model of the round before": (
            lambda p, k, mu, y, x, left: mu * (y - p.x_before)
        ),
        "is left out": lambda p, k, mu, y, x, left: 0.0,
        "pushes away: its sign is wrong": lambda p, k, mu, y, x, left: mu * (x - y),
        "has the gradient 2 mu (y - x), for mu/2 ||y - x||^2 is taken without its half": (
            lambda p, k, mu, y, x, left: 2 * mu * (y - x)
        ),
        "has the gradient mu/2 (y - x), the half is kept": (
            lambda p, k, mu, y, x, left: mu / 2 * (y - x)
        ),
        "is mu/2 ||y - x||, not squared: it pulls alike at any distance": (
            lambda p, k, mu, y, x, left: mu / 2 * _length(y - x)
        ),
        "is mu ||y - x||, not squared: it pulls alike at any distance": (
            lambda p, k, mu, y, x, left: mu * _length(y - x)
        ),
        "pulls to the client's own last model, not to the round's model of the server": (
            lambda p, k, mu, y, x, left: mu * (y - p.kept.get(("sent", k), p.x0[0]))
        ),
        "pulls to the local model of the step before, not to the round's model": (
            lambda p, k, mu, y, x, left: mu * (y - p.kept["step before"])
        ),
        "acts in the last local step only, not in every one": (
            lambda p, k, mu, y, x, left: mu * (y - x) * (left == 0)
        ),
    }
    after = Slip(
        "the proximal term is applied once, after the local steps",
        local=lambda play, k, x, go: (1 - go.lr * go.proximal) * (replace(go, proximal=0.0)(x) - x),
    )
    return [*(_term(f"the proximal term {says}", pull) for says, pull in terms.items()), after]


# --- FedNova: tau_eff and the division by each client's own number of steps


def _nova(says: str, weigh: Callable[[Play, FloatArray, FloatArray, np.ndarray], Any]) -> Slip:
    """Return other weights, of p, tau (N,) and who is present; p is 0 for the absent."""

    def weights(play: Play, proper: FloatArray) -> FloatArray:
        p = shares(np.where(play.here, play.sizes, 0.0))
        if not p.any():
            return p
        return np.asarray(weigh(play, p, steps_of(play), play.here), dtype=np.float64)

    return Slip(says, weights=weights)


def _tau(says: str, effective: Callable[[Play, FloatArray, FloatArray, np.ndarray], float]) -> Slip:
    def weigh(play: Play, p: FloatArray, tau: FloatArray, here: np.ndarray) -> FloatArray:
        return effective(play, p, tau, here) * p / tau

    return _nova(f"tau_eff {says}", weigh)


def _everybody_steps(says: str, number: Callable[[Play], float], told: bool) -> Slip:
    """Return steps alike for all; if ``told``, tau is believed to be that, too."""

    def local(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
        change = go(x, number=int(number(play))) - x
        return change * steps_of(play)[k] / number(play) if told else change

    def weigh(play: Play, proper: FloatArray) -> FloatArray:
        p = shares(np.where(play.here, play.sizes, 0.0))
        tau = steps_of(play)
        return number(play) * p / tau if told else float(p @ tau) * p / tau

    return Slip(f"everybody runs the {says} number of steps", local=local, weights=weigh)


def _tau_before(play: Play, p: FloatArray, tau: FloatArray, here: np.ndarray) -> float:
    now = float(p @ tau)
    play.kept["tau"], then = now, play.kept.get("tau", now)
    return float(then)


def fednova(one: Specification) -> list[Slip]:
    """Return what goes wrong where clients make different numbers of steps."""
    effective: Mapping[str, Callable[..., float]] = {
        "is the plain mean of the steps, not the one weighted by data": (
            lambda play, p, tau, here: tau[here].mean()
        ),
        "is over all clients, not over those present": (
            lambda play, p, tau, here: shares(play.sizes) @ tau
        ),
        "is the plain mean over all clients": lambda play, p, tau, here: tau.mean(),
        "is the largest number of steps": lambda play, p, tau, here: tau[here].max(),
        "is the least number of steps": lambda play, p, tau, here: tau[here].min(),
        "is left out: changes are normalised and not scaled back": (lambda play, p, tau, here: 1.0),
        "is the sum of the steps, without weights": lambda play, p, tau, here: tau[here].sum(),
        "is cut to a whole number": lambda play, p, tau, here: int(p @ tau + 1e-9),
        "is sum p tau^2 / sum p tau": lambda play, p, tau, here: p @ tau**2 / (p @ tau),
        "is the harmonic mean of the steps": lambda play, p, tau, here: 1 / (p @ (1 / tau)),
        "divides the change instead of multiplying it": (lambda play, p, tau, here: 1 / (p @ tau)),
        "is that of the round before": _tau_before,
        "is multiplied by client_lr": (
            lambda play, p, tau, here: p @ tau * play.given["client_lr"]
        ),
    }
    own = "changes are divided by the largest number of steps"
    return [
        *(_tau(says, of) for says, of in effective.items()),
        _nova(
            "changes are not divided by their own numbers of steps: plain FedAvg",
            lambda play, p, tau, here: p,
        ),
        _nova(
            "changes are divided by their own numbers of steps twice: normalised twice",
            lambda play, p, tau, here: p @ tau * p / tau**2,
        ),
        _nova(f"{own}, not by their own", lambda play, p, tau, here: p @ tau * p / tau.max()),
        _nova(
            f"{own} among those present, not by their own",
            lambda play, p, tau, here: p @ tau * p / tau[here].max(),
        ),
        _nova(
            "p is a share of all clients' data, not of those present",
            lambda play, p, tau, here: p @ tau * here * shares(play.sizes) / tau,
        ),
        _everybody_steps("first client's", lambda play: steps_of(play)[0], False),
        _everybody_steps("largest", lambda play: steps_of(play).max(), False),
        _everybody_steps("largest", lambda play: steps_of(play).max(), True),
    ]


# --- SCAFFOLD: the controls

Gain: TypeAlias = Callable[[Play, FloatArray, FloatArray, FloatArray], FloatArray]


def _plain_gain(play: Play, c: FloatArray, old: FloatArray, new: FloatArray) -> FloatArray:
    return np.asarray(c + (new - old).sum(axis=0) / play.n)


def _controls(says: str, *, gain: Gain = _plain_gain, kept: Any = None, **parts: Any) -> Slip:
    """Return a server's control that is stored, and renewed by ``gain`` of those present.

    It is the mean of the c_i where both are right, but not beside a fault in one of them.
    ``kept`` is what clients keep, of the play, what they had, what is new, and c.
    """

    def mean(play: Play, rows: FloatArray, proper: FloatArray) -> FloatArray:
        found: FloatArray = play.kept.setdefault("c", 0 * proper)
        return found

    def after(play: Play, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        who, before, fresh = play.who, old["c_i"][0], new["c_i"][0]
        if who:
            play.kept["c"] = gain(play, play.kept["c"], before[who], fresh[who])
        return {} if kept is None else {"c_i": kept(play, before, fresh, play.kept["c"])[None]}

    return Slip(says, **{"mean": mean, "after": after, **parts})


def _renewal(says: str, change: Callable[[Play, FloatArray, FloatArray, FloatArray], Any]) -> Slip:
    """Return another c_i+ of option II: of c_i, c and (x - y)/(K lr) of those present."""

    def after(play: Play, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        before, fresh, who = old["c_i"][0], new["c_i"][0].copy(), play.who
        if play.given.get("option", 2) == 2 and who:
            c = play.kept["c"]
            fresh[who] = change(play, before[who], c, fresh[who] - before[who] + c)
        if who:
            play.kept["c"] = _plain_gain(play, play.kept["c"], before[who], fresh[who])
        return {"c_i": fresh[None]}

    return _controls(says, after=after)


def _correction(says: str, push: Callable[[FloatArray, FloatArray], FloatArray | float]) -> Slip:
    """Return another correction, of c and c_i, in the local steps."""

    def local(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
        c, c_i = play.kept["c"], play.state["c_i"][0, k]
        return replace(go, push=push(c, c_i))(x) - x

    def after(play: Play, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        fresh = new["c_i"][0].copy()
        for k in play.who:
            play.kept["c"] = play.kept["c"] + (fresh[k] - old["c_i"][0, k]) / play.n
        return {}

    return _controls(says, local=local, after=after)


def _gradients(play: Play, x: FloatArray) -> FloatArray:
    return np.array([client.gradient(x) for client in play.clients])


def _started(says: str, first: Callable[[Play], FloatArray] | None, c: bool = False) -> Slip:
    """Return controls that do not start at 0."""

    def begun(play: Play, state: Mapping[str, Any]) -> dict[str, Any]:
        if c:
            play.kept["c"] = play.x0[0]
        return {} if first is None else {"c_i": first(play)[None]}

    return _controls(says, first=begun)


def _one_by_one(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
    """Return local steps with a control that is renewed as each client answers."""
    c, c_i = play.kept["c"], play.state["c_i"][0, k]
    seen = play.kept.setdefault(("seen", play.t), c)
    change = replace(go, push=seen - c_i)(x) - x
    if play.given.get("option", 2) == 1:
        new = go.client.gradient(x)
    else:
        new = c_i - c - change / (go.number * go.lr)
    play.kept["seen", play.t] = seen + (new - c_i) / play.n
    return change


def _one_by_one_kept(play: Play, old: Any, new: Any) -> dict[str, Any]:
    fresh = new["c_i"].copy()
    for k in play.who if play.given.get("option", 2) == 2 else ():
        reach = play.given["local_steps"] * play.given["client_lr"]
        fresh[0, k] = old["c_i"][0, k] - play.kept["c"] - play.changes[k] / reach
    play.kept["c"] = play.kept.get(("seen", play.t), play.kept.get("c", 0.0))
    return {"c_i": fresh}


def _renewed_first(play: Play, state: Mapping[str, Any]) -> dict[str, Any]:
    rows = state["c_i"].copy()
    for k in play.who:
        rows[0, k] = play.clients[k].gradient(state["x"][0])
    return {"c_i": rows}


def scaffold(one: Specification) -> list[Slip]:
    """Return what goes wrong in the controls."""
    server = "the server's control"
    gains: Mapping[str, Gain] = {
        "is divided by the number present, |S|, instead of N": (
            lambda p, c, old, new: c + (new - old).mean(axis=0)
        ),
        "adds up changes of the c_i without dividing by N": (
            lambda p, c, old, new: c + (new - old).sum(axis=0)
        ),
        "adds the new c_i instead of their change c_i+ - c_i": (
            lambda p, c, old, new: c + new.sum(axis=0) / p.n
        ),
        "is the mean of the new c_i of those present": lambda p, c, old, new: new.mean(axis=0),
        "is never renewed": lambda p, c, old, new: c,
        "takes the change of the last client present only": (
            lambda p, c, old, new: c + (new - old)[-1] / p.n
        ),
        "adds the changes of the c_i times |S|/N, not divided by N": (
            lambda p, c, old, new: c + (new - old).sum(axis=0) * len(new) / p.n
        ),
        "is multiplied by |S|/N once more": (
            lambda p, c, old, new: c + (new - old).sum(axis=0) * len(new) / p.n**2
        ),
        "takes changes weighted by data size where plain means are meant": (
            lambda p, c, old, new: c + p.sizes[p.who] @ (new - old) / over(p.sizes.sum())
        ),
        "is renewed with server_lr, too": (
            lambda p, c, old, new: c + p.given["server_lr"] * (new - old).sum(axis=0) / p.n
        ),
        "is divided by the clients seen so far, not by N": (
            lambda p, c, old, new: c + (new - old).sum(axis=0) / p.seen.sum()
        ),
    }
    corrections: Mapping[str, Callable[..., Any]] = {
        "the correction has the wrong sign: c_i - c instead of c - c_i": lambda c, own: own - c,
        "local steps leave the server's control out: only - c_i": lambda c, own: -own,
        "local steps leave the client's control out: only + c": lambda c, own: c,
        "local steps are not corrected: plain FedAvg": lambda c, own: 0.0,
    }
    renewals: Mapping[str, Callable[..., Any]] = {
        "lacks - c": lambda p, own, c, way: own + way,
        "lacks c_i": lambda p, own, c, way: way - c,
        "has + c instead of - c": lambda p, own, c, way: own + c + way,
        "divides by client_lr alone, not by K client_lr": (
            lambda p, own, c, way: own - c + way * p.given["local_steps"]
        ),
        "divides by K alone, not by K client_lr": (
            lambda p, own, c, way: own - c + way * p.given["client_lr"]
        ),
        "has y - x instead of x - y: its sign": lambda p, own, c, way: own - c - way,
        "divides by server_lr, too": (lambda p, own, c, way: own - c + way / p.given["server_lr"]),
        "divides by (K + 1) client_lr": (
            lambda p, own, c, way: (
                own - c + way * p.given["local_steps"] / (p.given["local_steps"] + 1)
            )
        ),
    }
    kept: Mapping[str, Callable[..., Any]] = {
        "a client's control is set to 0 in a round in which it is absent: it begins with 0 again "
        "when it returns": lambda p, old, new, c: np.where(p.here[:, None], new, 0.0),
        "absent clients' controls are set to the server's": (
            lambda p, old, new, c: np.where(p.here[:, None], new, c)
        ),
        "clients' controls are never renewed": lambda p, old, new, c: 0 * new,
        "clients' controls are kept with server_lr in them": (
            lambda p, old, new, c: np.where(p.here[:, None], p.given["server_lr"] * new, new)
        ),
        "all clients share one control": lambda p, old, new, c: (
            np.tile(new[p.who[-1]], (p.n, 1)) if p.who else new
        ),
    }
    return [
        *(_controls(f"{server} {says}", gain=gain) for says, gain in gains.items()),
        *(_correction(says, push) for says, push in corrections.items()),
        *(_renewal(f"c_i+ {says} (option II)", change) for says, change in renewals.items()),
        *(_controls(says, kept=rows) for says, rows in kept.items()),
        _started(
            "every c_i starts at the model's weights instead of 0",
            lambda play: np.tile(play.x0[0], (play.n, 1)),
        ),
        _started(f"{server} starts at the model's weights instead of 0", None, c=True),
        _started(
            "all controls start at the model's weights instead of 0",
            lambda play: np.tile(play.x0[0], (play.n, 1)),
            c=True,
        ),
        _started(
            "every c_i starts at the client's gradient at x0 instead of 0",
            lambda play: _gradients(play, play.x0[0]),
        ),
        _controls(
            "c_i is renewed before the local steps use it: they see the new c_i, not the old one",
            before=_renewed_first,
        ),
        _controls(
            "the correction c - c_i acts in the first local step only, not in every one",
            local=lambda play, k, x, go: (
                go(x, added=lambda step, y: np.asarray(go.push) * (step == 0)) - x
            ),
        ),
        Slip(
            "the other option renews the controls",
            options=lambda play, given: {"option": 3 - given.get("option", 2)},
        ),
        _controls(
            "c_i+ is the gradient where the local steps end, not at x (option I)",
            after=_at_the_end,
        ),
        _controls(
            f"{server} is renewed client by client within the round",
            local=_one_by_one,
            after=_one_by_one_kept,
        ),
    ]


def _at_the_end(play: Play, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    rows = new["c_i"][0].copy()
    for k in play.who if play.given.get("option", 2) == 1 else ():
        rows[k] = play.clients[k].gradient(play.x + play.changes[k])
    if play.who:
        play.kept["c"] = _plain_gain(play, play.kept["c"], old["c_i"][0, play.who], rows[play.who])
    return {"c_i": rows[None]}


# --- FedAU: intervals and omega


def _counted(says: str, **how: Any) -> Slip:
    """Return other counts of intervals; `_omega_after` has what may be told of them."""

    def counted(play: Play, plain: Change) -> Change:
        return lambda counts, who: _omega_after(play, plain(counts, who), how)

    return Slip(says, algorithm={"counted": counted}, first=lambda play, state: _first(how, state))


def _first(how: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    return {"omega": how["first"] + 0 * state["omega"]} if "first" in how else {}


def _omega_after(play: Play, proper: Mapping[str, Any], how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts after a round, omega told anew from the intervals that have ended.

    ``cap`` cuts intervals to K when the client returns, and no sooner; ``late`` starts a client's
    clock when it first appears; ``longer`` is added to each interval; ``empty`` rounds lengthen
    none; ``uncounted`` and ``unbroken`` are what happens to an interval that reaches K;
    ``mean`` is omega of the ended intervals, the open one and ``first``.
    """
    cutoff = play.given.get("cutoff", math.inf)
    ended = play.kept.setdefault("ended", [list(how.get("begun", ())) for _ in range(play.n)])
    age = play.kept.setdefault("age", np.zeros(play.n))
    if play.who or not how.get("empty"):
        age += 1
    for k in range(play.n):
        here, new = bool(play.here[k]), not play.seen_before[k]
        if how.get("late") and new:
            age[k] = 0
            continue
        cut = age[k] == cutoff and not how.get("cap")
        if not (here or cut):
            continue
        length = age[k] + how.get("longer", 0)
        if here or not how.get("uncounted"):
            ended[k].append(min(length, cutoff) if how.get("cap") else length)
        if here or not how.get("unbroken"):
            age[k] = 0
    mean, first = how.get("mean", lambda those, open_, t: np.mean(those)), how.get("first", 1.0)
    omega = [
        float(mean(those, open_, play.t)) if those or how.get("open") else first
        for those, open_ in zip(ended, age, strict=True)
    ]
    return {**proper, "omega": np.array([omega])}


def _moving(ended: list[float], age: float, t: int) -> float:
    mean = ended[0]
    for length in ended[1:]:
        mean = (mean + length) / 2
    return mean


def _omega(says: str, change: Callable[[Play, FloatArray, FloatArray], FloatArray]) -> Slip:
    """Return weights with other omegas, of the proper weights and all omegas."""
    return Slip(
        says, weights=lambda play, proper: change(play, proper, play.state["omega"][0]) / play.n
    )


def _omega_of_now(play: Play, proper: FloatArray, omega: FloatArray) -> FloatArray:
    state = play.state
    lasted, intervals = state["lasted"][0] + 1, state["intervals"][0] + 1
    return np.asarray((state["ended"][0] + lasted) / intervals)


def _omega_late(play: Play, proper: FloatArray, omega: FloatArray) -> FloatArray:
    play.kept["omega"], before = omega, play.kept.get("omega", np.ones(play.n))
    return np.asarray(before)


def _times(play: Play) -> FloatArray:
    play.kept["times"] = play.kept.get("times", np.zeros(play.n)) + play.here
    return np.asarray(play.kept["times"])


def fedau(one: Specification) -> list[Slip]:
    """Return what goes wrong in the intervals between rounds of presence."""

    def cutoff(says: str, change: Callable[[float], float]) -> Slip:
        return Slip(says, algorithm={"cutoff": lambda play, given: max(1, change(given))})

    waits = lambda those, age, t: np.mean(those) if len(those) > 1 else 1.0  # noqa: E731
    return [
        cutoff("intervals are cut off one round too early", lambda given: given - 1),
        cutoff("intervals are cut off one round too late", lambda given: given + 1),
        cutoff("the cut-off is not applied", lambda given: math.inf),
        _counted(
            "intervals are cut to the cut-off when the client returns, instead of ending after "
            "cut-off rounds",
            cap=True,
        ),
        _counted(
            "a client's first interval begins when it first appears, not at the start", late=True
        ),
        _counted(
            "an interval is counted one round too short: 0 for a client that returns at once",
            longer=-1,
        ),
        _counted("an interval is counted one round too long", longer=1),
        _counted("omega starts at 0 instead of 1", first=0.0),
        _counted("omega is 1 until two intervals have ended", mean=waits),
        _counted(
            "omega is the last interval, not their mean", mean=lambda those, age, t: those[-1]
        ),
        _counted(
            "omega is the median of the intervals, not their mean",
            mean=lambda those, age, t: np.median(those),
        ),
        _counted("the first 1 of omega counts as an interval of its own", begun=(1.0,)),
        _counted("omega is a moving average, not the mean of all intervals", mean=_moving),
        _counted(
            "the open interval counts in the mean",
            open=True,
            mean=lambda those, age, t: np.mean([*those, age] if age else those),
        ),
        _counted("an interval that reaches the cut-off is not counted", uncounted=True),
        _counted("an interval that reaches the cut-off is counted and goes on", unbroken=True),
        _counted("an empty round does not lengthen intervals", empty=True),
        _omega("omega counts the interval that ends in this round already", _omega_of_now),
        _omega("omega is that of the round before: a round late", _omega_late),
        _omega(
            "omega is rounds over participations, without intervals",
            lambda play, proper, omega: play.t / np.maximum(_times(play), 1),
        ),
        _omega(
            "all clients share one omega, the mean",
            lambda play, proper, omega: np.full(play.n, omega.mean()),
        ),
        _omega(
            "changes are divided by omega instead of multiplied",
            lambda play, proper, omega: 1 / np.maximum(omega, 1e-9),
        ),
        _omega("omega is not used: all weights are 1", lambda play, proper, omega: omega**0),
        _omega("omega is applied twice", lambda play, proper, omega: omega**2),
    ]


# --- FedAvg-IS


def fedavg_is(one: Specification) -> list[Slip]:
    """Return what goes wrong where the availability is taken from what was seen."""
    return [
        Slip(
            "the share of rounds seen so far stands for the availability",
            weights=lambda play, proper: play.t / np.maximum(_times(play), 1) / play.n,
        ),
    ]


# --- F3AST: rates and whom they choose


def _merit(says: str, merit: Callable[[Play, FloatArray, FloatArray], FloatArray]) -> Slip:
    """Return another order in which clients are chosen, of alpha and r."""

    def chosen(play: Play, plain: Change) -> Change:
        def found(urgency: FloatArray, who: np.ndarray) -> Any:
            alpha = per_client(play, "target_weights")
            values = merit(play, alpha, alpha / urgency[0])
            # Those present are of positive merit, and the order alone counts.
            return plain((values - values.min() + 1)[None], who)

        return found

    return Slip(says, algorithm={"_chosen": chosen})


def _rates(says: str, smoothed: Callable[[Play, Change, Any, Any], Any]) -> Slip:
    """Return rates that are renewed otherwise."""
    return Slip(
        says,
        algorithm={
            "_smoothed": lambda play, plain: lambda rate, mark: smoothed(play, plain, rate, mark)
        },
    )


def _learned(play: Play) -> bool:
    return play.given.get("availability") is None


def _first_rates(says: str, rate: Callable[[Play], FloatArray]) -> Slip:
    return Slip(
        says, first=lambda play, state: {"rate": rate(play)[None]} if "rate" in state else {}
    )


def _rate_weights(says: str, change: Callable[[Play, FloatArray], FloatArray]) -> Slip:
    return Slip(says, weights=change)


def _old_rate(play: Play, proper: FloatArray) -> FloatArray:
    rate = play.state["rate"][0] if _learned(play) else per_client(play, "availability")
    return np.where(proper > 0, per_client(play, "target_weights") / rate, 0.0)


def _taken(says: str, change: Callable[[int], float]) -> Slip:
    return Slip(says, algorithm={"size": lambda play, size: change(size)})


def _one_taken(play: Play, plain: Change) -> Change:
    def found(urgency: FloatArray, who: np.ndarray) -> Any:
        merit = np.where(who, urgency, -1.0)
        return who & (np.arange(who.shape[1]) == int(np.argmax(merit)))

    return found


def _foremost_of_all(play: Play, plain: Change) -> Change:
    return lambda urgency, who: who & plain(urgency, np.ones_like(who))


def _last_of_equals(play: Play, plain: Change) -> Change:
    def found(urgency: FloatArray, who: np.ndarray) -> Any:
        last = 1 / np.where(who, urgency, 1.0)
        return plain(last[:, ::-1], who[:, ::-1])[:, ::-1]

    return found


def _mean_rate(play: Play, plain: Change, rate: Any, mark: Any) -> Any:
    play.kept["marks"] = play.kept.get("marks", 0) + mark
    return np.maximum(play.kept["marks"], 1) / play.t if _learned(play) else plain(rate, mark)


def _remembered(play: Play, plain: Change, rate: Any, mark: Any) -> Any:
    if _learned(play):
        return plain(rate, mark)
    play.kept["rate"] = plain(play.kept.get("rate", rate), mark)
    return play.kept["rate"]


def f3ast(one: Specification) -> list[Slip]:
    """Return what goes wrong in the rates and in the choice."""
    merits: Mapping[str, Callable[..., Any]] = {
        "clients are chosen by target weight, not by target weight over rate": (
            lambda play, alpha, rate: alpha
        ),
        "clients are chosen by their rate alone": lambda play, alpha, rate: -rate,
        "clients are chosen by data size": lambda play, alpha, rate: play.sizes,
        "clients are chosen by alpha^2 / r, not by alpha^2 / r^2": (
            lambda play, alpha, rate: alpha**2 / rate
        ),
        "clients are chosen by alpha / r^2, not by alpha^2 / r^2: the rate alone is squared": (
            lambda play, alpha, rate: alpha / rate**2
        ),
        "the clients that matter least are chosen": lambda play, alpha, rate: -alpha / rate,
        "the first clients present are chosen": (
            lambda play, alpha, rate: -np.arange(play.n, dtype=np.float64)
        ),
    }
    return [
        *(_merit(says, merit) for says, merit in merits.items()),
        Slip("the clients that matter least are chosen", algorithm={"_chosen": _last_of_equals}),
        Slip(
            "the most urgent of all clients are chosen, and the absent among them do not answer",
            algorithm={"_chosen": _foremost_of_all},
        ),
        Slip(
            "clients are drawn with replacement: the most urgent one is taken size times",
            algorithm={"_chosen": _one_taken},
            weights=lambda play, proper: proper * play.given["size"],
        ),
        _taken("everybody present trains: size is not used", lambda size: 10**9),
        _taken("one client too many is chosen", lambda size: size + 1),
        _taken("one client too few is chosen", lambda size: size - 1),
        Slip(
            "the update is divided by size",
            weights=lambda play, proper: proper / play.given["size"],
        ),
        _rate_weights("weights use the rate before its renewal", _old_rate),
        _rate_weights(
            "weights use the learned rate before its renewal",
            lambda play, proper: _old_rate(play, proper) if _learned(play) else proper,
        ),
        _rate_weights("weights are (alpha/r)^2, not alpha/r", lambda play, proper: proper**2),
        _rates(
            "the rate counts presence instead of being chosen",
            lambda play, plain, rate, mark: plain(rate, np.array([play.here * 1.0])),
        ),
        Slip(
            "the rate keeps beta of its past instead of 1 - beta",
            options=lambda play, given: {"smoothing": 1 - given["smoothing"]},
        ),
        Slip("the rate is never renewed", options=lambda play, given: {"smoothing": 0.0}),
        _rates(
            "rates do not decay in an empty round",
            lambda play, plain, rate, mark: plain(rate, mark) if play.who else rate,
        ),
        _rates(
            "rates of absent clients do not decay",
            lambda play, plain, rate, mark: np.where(play.here, plain(rate, mark), rate),
        ),
        _first_rates("rates start at 1 instead of the target weights", lambda p: np.ones(p.n)),
        _first_rates(
            "rates start at size/N instead of the target weights",
            lambda p: np.full(p.n, p.given["size"] / p.n),
        ),
        _first_rates(
            "rates start at 1/N instead of the target weights", lambda p: np.full(p.n, 1 / p.n)
        ),
        Slip(
            "the availability that is given is not used",
            options=lambda play, given: {"availability": None},
        ),
        _rates("rates are the shares of rounds so far instead of smoothed", _mean_rate),
        _rates("with availability known, the rate is kept from round to round", _remembered),
    ]


# --- CA-Fed: estimates and exclusion


def _facts(
    says: str, change: Callable[[Play, Mapping[str, Any], FloatArray, FloatArray], Any]
) -> Slip:
    """Return another availability and correlation, of the counts and the paper's two."""

    def known(play: Play, plain: Change) -> Change:
        def found(state: Mapping[str, Any], who: np.ndarray) -> Any:
            counts, pi, correlation = plain(state, who)
            return counts, *change(play, counts, pi, correlation)

        return found

    return Slip(says, algorithm={"_availability": known})


def _bare(counts: Mapping[str, Any], prior: float) -> FloatArray:
    """Return the correlation by bare frequencies: 0 of 0, or a half, where there are none."""
    seen = counts["present"] + counts["absent"]
    there = counts["present"] - counts["last"]
    away = counts["absent"] - np.where(seen > 0, 1 - counts["last"], 0.0)
    tiny = 1e-300
    stays = (counts["stayed"] + prior) / np.maximum(there + 2 * prior, tiny)
    return np.asarray(stays + (counts["waited"] + prior) / np.maximum(away + 2 * prior, tiny) - 1)


def _bare_share(counts: Mapping[str, Any]) -> FloatArray:
    seen = counts["present"] + counts["absent"]
    return np.asarray(np.maximum(counts["present"], 1e-300) / np.maximum(seen, 1))


def _estimated(
    play: Play, counts: Any, pi: Any, correlation: Any, *, share: bool, prior: float | None
) -> Any:
    if not counts:
        return pi, correlation
    return (
        _bare_share(counts) if share else pi,
        correlation if prior is None else _bare(counts, prior),
    )


def _a_round_late(play: Play, counts: Any, pi: Any, correlation: Any) -> Any:
    if not counts:
        return pi, correlation
    before = play.kept.setdefault("facts", [(None, None)])
    first, second = play.given["prior"]
    start = np.full_like(pi, first / (first + second))
    then = before[-1]
    before.append((pi, correlation))
    return (start, 0 * start) if then[0] is None else then


def _kept_as(says: str, change: Callable[[Play, Change, Any, Any, Any, Any], Any]) -> Slip:
    """Return others who are kept: of the losses, alpha, pi and lambda."""
    return Slip(
        says,
        algorithm={
            "_kept": lambda play, plain: (
                lambda losses, alpha, pi, correlation: change(
                    play, plain, losses, alpha, pi, correlation
                )
            )
        },
    )


def _pass(says: str, number: int) -> Slip:
    """Return the first or the second pass alone."""

    def left(play: Play, plain: Change, kept: Any, *given: Any, **rest: Any) -> Any:
        play.kept["pass"] = 1 - play.kept.get("pass", 1)
        return plain(kept, *given, **rest) if play.kept["pass"] == number else kept

    return Slip(says, names={"kept_after_exclusion": left})


def _tried(says: str, **how: Any) -> Slip:
    """Return clients tried by another epsilon, `_left_in` has which."""

    def left(play: Play, plain: Change, kept: Any, alpha: Any, gap: Any, by: Any, **given: Any) -> (
        np.ndarray
    ):  # fmt: skip
        found = _left_in(play, kept[0], alpha[0], gap[0], by[0], how, **given)
        return np.asarray(found[None])

    return Slip(says, names={"kept_after_exclusion": left})


def _left_in(
    play: Play,
    kept: np.ndarray,
    alpha: FloatArray,
    gap: FloatArray,
    by: FloatArray,
    how: Mapping[str, Any],
    *,
    threshold: float,
    kappa_bar: float,
) -> np.ndarray:
    """Return who is left after clients were tried one by one, as in Algorithm 1."""

    def epsilon(those: np.ndarray) -> float:
        share = float(alpha[those].sum())
        over_whom = how.get("largest", lambda play, those: slice(None))(play, those)
        largest = float(gap[over_whom].max(initial=0.0))
        loss = float(alpha[those] @ gap[those]) / (1.0 if how.get("plain") else share)
        return loss + kappa_bar**2 * (1 - share) ** how.get("power", 2) * largest

    left = kept.copy()
    for k in np.argsort(-by, kind="stable") if gap.max() > 0 else ():
        if not left[k] or left.sum() == 1 or (how.get("present") and not play.here[k]):
            continue
        without = left & (np.arange(left.size) != k)
        if epsilon(left) - epsilon(without) >= threshold:
            left = without
            if how.get("one"):
                break
    return left


def _losses_as(says: str, change: Callable[[Play, Any, dict[str, Any], Any], Any]) -> Slip:
    """Return other losses and minima, of the state before, the paper's and the reports."""

    def losses(play: Play, plain: Change) -> Change:
        def found(state: Any, report: Any, who: Any) -> Any:
            proper = plain(state, report, who)
            return {**proper, **change(play, state, proper, report)}

        return found

    return Slip(says, algorithm={"_losses": losses})


def _minima(says: str, least: Callable[[Any], Any]) -> Slip:
    return _kept_as(
        says,
        lambda play, plain, losses, *rest: plain({**losses, "minimum": least(losses)}, *rest),
    )


def _late(play: Play, plain: Change, losses: Any, *rest: Any) -> Any:
    now = plain(losses, *rest)
    play.kept["kept"], then = now, play.kept.get("kept", np.ones_like(now))
    return then


def _for_ever(play: Play, plain: Change, losses: Any, *rest: Any) -> Any:
    found = play.kept["left"] = play.kept.get("left", True) & plain(losses, *rest)
    return found


def _not_again(play: Play, plain: Change, kept: Any, *given: Any, **rest: Any) -> Any:
    first = play.kept.get("left", np.ones_like(kept)) if kept.all() else kept
    play.kept["left"] = plain(first, *given, **rest)
    return play.kept["left"]


def _weights_of_kept(says: str, weigh: Callable[[Play, FloatArray, np.ndarray], Any]) -> Slip:
    """Return weights that depend on who is kept, present or not: of alpha/pi and the mask."""

    def remember(play: Play, plain: Change) -> Change:
        def found(losses: Any, alpha: Any, pi: Any, correlation: Any) -> Any:
            play.kept["kept"] = plain(losses, alpha, pi, correlation)
            play.kept["ratios"] = (alpha / pi)[0]
            return play.kept["kept"]

        return found

    return Slip(
        says,
        algorithm={"_kept": remember},
        weights=lambda play, proper: (
            proper / over(float(weigh(play, play.kept["ratios"], play.kept["kept"][0])))
        ),
    )


def ca_fed(one: Specification) -> list[Slip]:
    """Return what goes wrong in the estimates, in who is excluded and in the weights."""
    everybody = lambda play, plain, losses, *rest: np.ones_like(losses["loss"], dtype=bool)  # noqa: E731
    return [
        _kept_as("nobody is ever excluded, or excluded clients train, too", everybody),
        _pass("clients are tried in the order of correlation only", 0),
        _pass("clients are tried in the order of availability only", 1),
        _kept_as(
            "clients are tried by availability first, then by correlation",
            lambda play, plain, losses, alpha, pi, by: plain(losses, alpha, -by, -pi),
        ),
        _kept_as(
            "clients are tried in ascending correlation",
            lambda play, plain, losses, alpha, pi, by: plain(losses, alpha, pi, -by),
        ),
        _kept_as(
            "clients are tried in descending availability",
            lambda play, plain, losses, alpha, pi, by: plain(losses, alpha, -pi, by),
        ),
        _kept_as(
            "the modulus of the correlation orders, not its signed value",
            lambda play, plain, losses, alpha, pi, by: plain(losses, alpha, pi, np.abs(by)),
        ),
        _tried("at most one client is excluded in a pass", one=True),
        _tried("only present clients are tried", present=True),
        _tried("the distance of the weights, the bias, is not squared", power=1),
        _tried("the loss term is not renormalised over those kept", plain=True),
        _tried("Gamma is over the clients kept, not over all", largest=lambda play, those: those),
        _tried(
            "Gamma is over the clients present, not over all",
            largest=lambda play, those: play.here,
        ),
        _kept_as("those excluded are the ones of the round before", _late),
        _kept_as("a client that was excluded never comes back", _for_ever),
        Slip(
            "a client that was excluded never comes back: each round begins with those whom the "
            "one before left",
            names={"kept_after_exclusion": _not_again},
        ),
        _weights_of_kept(
            "weights are renormalised over those who are not excluded: they sum to one",
            lambda play, ratios, kept: ratios[kept].sum(),
        ),
        _weights_of_kept(
            "weights are divided by the share of alpha that is left",
            lambda play, ratios, kept: per_client(play, "target_weights")[kept].sum(),
        ),
        *(
            Slip(says, options=lambda play, given, change=change: change(given))
            for says, change in _OTHER_OPTIONS.items()
        ),
        Slip(
            "a client goes where epsilon rises by less than the threshold",
            algorithm={"threshold": lambda play, threshold: -threshold},
        ),
        _losses_as(
            "the first report is smoothed from 0",
            lambda play, state, proper, report: {
                name: np.where(
                    (state["reported"] == 0) & (proper["reported"] > 0),
                    play.given["loss_smoothing"] * report,
                    proper[name],
                )
                for name in ("loss", "minimum")
            },
        ),
        _losses_as(
            "the minimum is over raw reports, not over smoothed losses",
            lambda play, state, proper, report: {
                "minimum": np.where(
                    play.here,
                    np.where(state["reported"] > 0, np.minimum(state["minimum"], report), report),
                    state["minimum"],
                )
            },
        ),
        Slip(
            "losses are reported after the local steps, not at the round's model",
            loss=lambda play, k, x: play.clients[k].loss(
                Steps(play.clients[k], play.given["local_steps"], play.given["client_lr"])(x)
            ),
        ),
        _minima("the minima are taken to be 0", lambda losses: 0 * losses["minimum"]),
        _minima(
            "all clients share the least loss as their minimum",
            lambda losses: (
                0 * losses["minimum"]
                + np.where(losses["reported"] > 0, losses["minimum"], np.inf).min()
            ),
        ),
        _facts(
            "the availability is estimated without the prior",
            lambda *given: _estimated(*given, share=True, prior=None),
        ),
        *(
            _facts(
                says,
                lambda *given, share=share, prior=prior: _estimated(
                    *given, share=share, prior=prior
                ),
            )
            for says, share in {
                "the correlation is estimated without the prior": False,
                "the availability and the correlation are estimated without the prior": True,
            }.items()
            for prior in (0.0, 1e-9)
        ),
        _facts(
            "the availability is estimated without the present round: a round late", _a_round_late
        ),
        _facts(
            "all clients share the mean availability",
            lambda play, counts, pi, correlation: (0 * pi + pi.mean(), correlation),
        ),
    ]


_OTHER_OPTIONS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "the smoothed loss keeps beta of its past instead of 1 - beta": lambda given: {
        "loss_smoothing": 1 - given["loss_smoothing"]
    },
    "losses are not smoothed": lambda given: {"loss_smoothing": 1.0},
    "kappa_bar is not squared": lambda given: {"kappa_bar": given["kappa_bar"] ** 0.5},
    "the threshold is not used": lambda given: {"threshold": 0.0},
    "the prior's two numbers are swapped": lambda given: {
        "prior": (given["prior"][1], given["prior"][0])
    },
    "the minima that are given are not used": lambda given: {"known_minima": None},
    "the availability and correlation that are given are not used": lambda given: {
        "availability": None,
        "correlation": None,
    },
}


# --- SAFARI: the server's own step


def safari(one: Specification) -> list[Slip]:
    """Return what goes wrong in the rounds of the server."""

    def own(says: str, rate: Callable[[Play], float]) -> Slip:
        def moved(play: Play, x: FloatArray, step: FloatArray) -> FloatArray:
            by_server = play.branches[play.t - 1] == "server"
            return x + step * (rate(play) if by_server else 1.0)

        return Slip(f"the server's own step {says}", move=moved)

    return [
        own("has the clients' step size", lambda p: p.given["client_lr"] / p.given["assist_lr"]),
        own("is left out", lambda play: 0.0),
        own("has the wrong sign", lambda play: -1.0),
        own("is made local_steps times as long", lambda play: play.given["local_steps"]),
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
}
"""What algorithms have of their own."""

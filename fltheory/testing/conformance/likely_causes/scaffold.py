"""SCAFFOLD in pseudo-code: controls correct the local steps."""

from __future__ import annotations

import numpy as np

from fltheory.testing.conformance.likely_causes.averaging import PLAIN_MEAN_SLIPS, averaged
from fltheory.testing.conformance.likely_causes.rounds import Paper, Rounds, option_of
from fltheory.validation import FloatArray

SCAFFOLD_SLIPS = {
    "c over S": "the server's control is divided by the number present, |S|, instead of N",
    "c sum": "the server's control adds up changes of the c_i without dividing by N",
    "c adds c_i": "the server's control adds the new c_i instead of their change c_i+ - c_i",
    "c is the new mean": "the server's control is the mean of the new c_i of those present",
    "c never": "the server's control is never renewed",
    "c_i never": "clients' controls are never renewed",
    "c_i at the weights": "every c_i starts at the model's weights instead of 0",
    "c at the weights": "the server's control starts at the model's weights instead of 0",
    "both at the weights": "all controls start at the model's weights instead of 0",
    "renewed before": "c_i is renewed before the local steps use it: they see the new c_i, not "
    "the old one",
    "used renewed": "the local steps use c_i of this round already: the new c_i, not the old one "
    "from before",
    "c_i at gradients": "every c_i starts at the client's gradient at x0 instead of 0",
    "corrected once": "the correction c - c_i acts in the first local step only, not in every one",
    "c last": "the server's control takes the change of the last client present only",
    "c times S": "the server's control adds the changes of the c_i times |S|/N, not divided by N",
    "correction sign": "the correction has the wrong sign: c_i - c instead of c - c_i",
    "no c": "local steps leave the server's control out: only - c_i",
    "no c_i": "local steps leave the client's control out: only + c",
    "no correction": "local steps are not corrected: plain FedAvg",
    "c_i+ without c": "c_i+ lacks - c (option II)",
    "c_i+ without c_i": "c_i+ lacks c_i (option II)",
    "c_i+ plus c": "c_i+ has + c instead of - c (option II)",
    "c_i+ without K": "c_i+ divides by client_lr alone, not by K client_lr (option II)",
    "c_i+ without lr": "c_i+ divides by K alone, not by K client_lr (option II)",
    "c_i+ sign": "c_i+ has y - x instead of x - y (option II)",
    "c_i+ by server_lr": "c_i+ divides by server_lr, too",
    "c_i+ K one more": "c_i+ divides by (K + 1) client_lr",
    "c_i+ with the new c": "c_i+ uses the server's control after its renewal (option II)",
    "option swapped": "the other option renews the controls",
    "gradient at the end": "c_i+ is the gradient where the local steps end, not at x (option I)",
    "c by size": "changes of controls are weighted by data size where plain means are meant",
    "c renewed at once": "the server's control is renewed client by client within the round",
    "reset when absent": "a client's control is set to 0 in a round in which it is absent: it "
    "begins with 0 again when it returns",
    "absent follow c": "absent clients' controls are set to the server's",
    "c scaled": "the server's control is multiplied by |S|/N once more",
    "c with server_lr": "the server's control is renewed with server_lr, too",
    "c_i with server_lr": "clients' controls are kept with server_lr in them",
    "c_i swapped": "controls are kept by the place in the round, not by the client",
    "c_i shared": "all clients share one control",
    "c over seen": "the server's control is divided by the clients seen so far, not by N",
    "c before the steps": "the server's control of the round before corrects the steps",
}


def scaffold(rounds: Rounds) -> None:
    """Play steps along g - c_i + c; c moves by 1/N of the changes of the c_i."""
    c, c_i = _first_controls(rounds)
    option = int(option_of(rounds, "option", 2))
    option = 3 - option if rounds.has("option swapped") else option
    seen: set[int] = set()
    old_c = c
    for who in rounds.present():
        changes, fresh = {}, {}
        for place, k in enumerate(who):
            kept = _slot(rounds, place, k)
            if rounds.has("renewed before"):
                c_i[kept] = rounds.case.clients[k].gradient(rounds.x)
            own = c_i[kept]
            if rounds.has("used renewed"):
                own = rounds.case.clients[k].gradient(rounds.x)
            towards = old_c if rounds.has("c before the steps") else c
            changes[k] = rounds.change(k, _correction(rounds, towards, own))
            fresh[kept] = _renewed(rounds, k, option, changes[k], c, c_i[kept])
            if rounds.has("c renewed at once"):
                c = c + (fresh[kept] - c_i[kept]) / rounds.n
        seen |= set(who)
        old_c, c = c, _server_control(rounds, c, c_i, fresh, len(seen))
        late = rounds.has("c_i+ with the new c") and option == 2
        for k, value in fresh.items():
            c_i[k] = value + old_c - c if late else value
        _slipped_controls(rounds, c_i, who, c)
        rounds.move(averaged(rounds, changes, by_size=False))


def _first_controls(rounds: Rounds) -> tuple[FloatArray, FloatArray]:
    c, c_i = rounds.zeros(rounds.dim), rounds.zeros(rounds.n, rounds.dim)
    if rounds.slip in ("c at the weights", "both at the weights"):
        c = np.array(rounds.x)
    if rounds.slip in ("c_i at the weights", "both at the weights"):
        c_i = np.tile(rounds.x, (rounds.n, 1))
    if rounds.has("c_i at gradients"):
        c_i = np.array([client.gradient(rounds.x) for client in rounds.case.clients])
    return c, c_i


def _slipped_controls(rounds: Rounds, c_i: FloatArray, who: list[int], c: FloatArray) -> None:
    """Do to the clients' controls after a round what should not be done."""
    away = [k for k in range(rounds.n) if k not in who]
    if rounds.has("reset when absent"):
        c_i[away] = 0
    if rounds.has("absent follow c"):
        c_i[away] = c
    if rounds.has("c_i never"):
        c_i[:] = 0
    if rounds.has("c_i with server_lr"):
        c_i[who] *= rounds.case.server_lr


def _slot(rounds: Rounds, place: int, k: int) -> int:
    if rounds.has("c_i shared"):
        return 0
    return place if rounds.has("c_i swapped") else k


def _correction(rounds: Rounds, c: FloatArray, own: FloatArray) -> FloatArray:
    if rounds.has("no correction"):
        return np.zeros_like(c)
    sign = -1.0 if rounds.has("correction sign") else 1.0
    return sign * (c * (not rounds.has("no c")) - own * (not rounds.has("no c_i")))


def _renewed(
    rounds: Rounds, k: int, option: int, change: FloatArray, c: FloatArray, own: FloatArray
) -> FloatArray:
    """Return c_i+."""
    client = rounds.case.clients[k]
    if option == 1:
        at_end = rounds.has("gradient at the end")
        return client.gradient(rounds.x + change if at_end else rounds.x)
    steps: float = rounds.case.steps[k] + rounds.has("c_i+ K one more")
    reach = {"c_i+ without K": rounds.eta, "c_i+ without lr": steps}.get(
        rounds.slip, steps * rounds.eta
    )
    if rounds.has("c_i+ by server_lr"):
        reach = reach * rounds.case.server_lr
    sign = 1.0 if rounds.has("c_i+ sign") else -1.0
    back = {"c_i+ without c": 0.0, "c_i+ plus c": 1.0}.get(rounds.slip, -1.0)
    return own * (not rounds.has("c_i+ without c_i")) + back * c + sign * change / reach


def _server_control(
    rounds: Rounds, c: FloatArray, c_i: FloatArray, fresh: dict[int, FloatArray], seen: int
) -> FloatArray:
    if not fresh or rounds.has("c never") or rounds.has("c renewed at once"):
        return c
    who = list(fresh)
    new = np.array([fresh[k] for k in who])
    old = c_i[who]
    if rounds.has("c is the new mean"):
        return np.asarray(new.mean(axis=0))
    gain = new if rounds.has("c adds c_i") else new - old
    if rounds.has("c by size"):
        total = max(rounds.sizes.sum(), 1.0)
        return c + np.asarray((rounds.sizes[who, None] * gain).sum(axis=0) / total)
    if rounds.has("c last"):
        return c + gain[-1] / rounds.n
    if rounds.has("c times S"):
        return c + np.asarray(gain.sum(axis=0)) * len(who) / rounds.n
    divisor = {"c over S": len(who), "c sum": 1, "c over seen": seen}.get(rounds.slip, rounds.n)
    factor = 1.0
    if rounds.has("c scaled"):
        factor = len(who) / rounds.n
    if rounds.has("c with server_lr"):
        factor = rounds.case.server_lr
    return c + factor * np.asarray(gain.sum(axis=0)) / divisor


PAPERS = {"scaffold": Paper(scaffold, {**SCAFFOLD_SLIPS, **PLAIN_MEAN_SLIPS})}

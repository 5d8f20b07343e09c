"""Forge random certificates, and count the illegal or false ones that the checker accepts.

Good certificates of made-up statements are drawn for every algorithm and every kind of
participation, with both kinds of noise, diagonal and full Hessians, and hypotheses on every round;
their two numbers are right to the twentieth digit, or wrong in it. Most are then spoilt: a number
of the setting becomes illegal or just different, a chain's row no longer sums to one, an algorithm
gets another's name, a range of rounds, a formula, a symbol's meaning or a number is changed, a
field is added or removed. Most changes of the setting come before the two numbers are computed, so
that only legality or truth decides. The checker's answer is compared with that of
``tests/verify/by_enumeration.py``, which follows every branch of a run and shares no code with it.

    python benchmarks/forged_certificates.py [--count 25000] [--seed 0]
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fltheory.verify.certificates.certificate_checker import (
    CertificateError,
    check_certificate,
    parsed,
)
from tests.verify.by_enumeration import OF_PARTICIPANTS, STANDARD, is_setting, sides_of

Document = dict[str, Any]
Rng = random.Random

DIGIT = Fraction(1, 10**20)
FIELDS = {"version", "theorem", "reading", "statement", "setting", "truth", "bound"}
STATED = {"symbols", "definitions", "round_symbols", "conditions", "quantity", "bound"}
ILLEGAL: tuple[Any, ...] = (
    "0", "-1", "-1/9", "7", "1", "101/100", "1/0", "0.5", "1e9", "1e999999999", "nan", "1/2/3",
    " 1/2", "sqrt(2)", "", None, True, 1, 0, -1, 3, 99, 10**9, 1.5, [], {}, [0], ["1"], [[]],
    "wait", "FedAvg", "Constant",
)  # fmt: skip
NAMES = (
    "FedAvg", "FedAU", "FedVarp", "Scaffold", "Safari", "Mifa", "Fedavg", "CAFed", "Scheduled",
    "UniformSubset", "Bernoulli", "MarkovOnOff", "Cyclic", "Constant", "Harmonic", "", "FedProx",
    "FedNova", "F3ast", "LocalSgd", "WaitingSubset",
)  # fmt: skip


def _number(rng: Rng, least: int = -6) -> str:
    return str(Fraction(rng.randint(least, 6), rng.choice((1, 2, 3, 5))))


def _positive(rng: Rng, by: int = 1) -> str:
    return str(Fraction(_number(rng, 1)) / by)


def _shares(rng: Rng, n: int) -> list[str]:
    parts = [rng.randint(1, 3) for _ in range(n)]
    return [str(Fraction(part, sum(parts))) for part in parts]


def _hessian(rng: Rng, d: int) -> list[list[str]]:
    a, b = (Fraction(_number(rng, 1)) for _ in range(2))
    if d == 1:
        return [[str(a)]]
    off = rng.choice((Fraction(0), min(a, b) / 2, -min(a, b) / 3))
    return [[str(a), str(off)], [str(off), str(b)]]


def _steps(rng: Rng) -> Document:
    if rng.random() < 0.3:
        return {"name": "Constant", "value": _positive(rng, 8)}
    return {"name": "Harmonic", "scale": _positive(rng, 4), "offset": _number(rng, 0)}


def drawn_method(rng: Rng, n: int) -> Document:
    """Draw an algorithm, sometimes with a wrapper around it."""
    name = rng.choice((
        "FedAvg", "WeightedFedAvg", "FedAvgIS", "Unbiased", "AdaFed", "FedAU", "FedAR", "Mifa",
        "FedVarp", "ClusterFedVarp", "Scaffold", "Safari", "Safari", "FedProx", "FedNova", "F3ast",
        "LocalSgd",
    ))  # fmt: skip
    if name == "LocalSgd":
        weights, steps = _shares(rng, n), rng.choice((1, 2, 3))
        return {"name": name, "step_sizes": _steps(rng), "local_steps": steps,
                "aggregation_weights": weights}  # fmt: skip
    own: Document = {"client_lr": _positive(rng, 8), "local_steps": rng.choice((1, 1, 2))}
    if name != "Safari":
        own["server_lr"] = _positive(rng)
    likely = [str(Fraction(rng.randint(1, 3), 3)) for _ in range(n)]
    further: dict[str, Document] = {
        "WeightedFedAvg": {"aggregation_weights": [_positive(rng) for _ in range(n)]},
        "FedAvgIS": {"availability": likely},
        "Unbiased": {"availability": likely, "target_weights": _shares(rng, n)},
        "AdaFed": {"availability": likely, "target_weights": _shares(rng, n)},
        "FedAU": {"cutoff": rng.choice((None, 1, 2))},
        "FedAR": {
            "cutoff": rng.choice((None, 0, 1)),
            "weight": {"name": "CappedLinear", "growth": _number(rng, 0), "largest": "5/4"},
        },
        "Mifa": {"start": rng.choice(("wait", "zero"))},
        "ClusterFedVarp": {"clusters": [0] * n},
        "Scaffold": {"option": rng.choice((1, 2))},
        "Safari": {"q": str(Fraction(rng.randint(0, 8), 8)), "assist_lr": _positive(rng, 4)},
        "FedProx": {
            "proximal": _number(rng, 0),
            "client_weights": rng.choice((None, [_number(rng, 0) for _ in range(n)])),
        },
        "FedNova": {
            "local_steps": rng.choice((2, [rng.randint(1, 3) for _ in range(n)])),
            "client_weights": rng.choice((None, [_positive(rng) for _ in range(n)])),
        },
        "F3ast": {
            "target_weights": _shares(rng, n), "size": rng.randint(1, n),
            "smoothing": str(Fraction(rng.randint(0, 3), 4)),
            "availability": rng.choice((None, likely)),
        },
    }  # fmt: skip
    found = {"name": name, **own, **further.get(name, {})}
    if name == "Scaffold" and rng.random() < 0.3:
        return {"name": "WarmStarted", "scaffold": found}
    kind = rng.random()
    if kind < 0.1:
        return {"name": "ServerMomentum", "momentum": "1/3", "algorithm": found}
    if kind < 0.3:
        found = {"name": "Scheduled", "step_sizes": _steps(rng), "algorithm": found}
    if kind < 0.2:
        found = {"name": "AveragedIterate", "weights": _steps(rng), "algorithm": found}
    return found


def drawn_participation(rng: Rng, n: int) -> Document:
    """Draw a participation process."""
    name = rng.choice(
        ("UniformSubset", "Bernoulli", "MarkovOnOff", "FiniteChain", "Cyclic", "WaitingSubset")
    )
    if name == "UniformSubset":
        excluded = rng.sample(range(n), rng.randint(0, n - 1))
        return {"name": name, "size": rng.randint(1, n - len(excluded)), "excluded": excluded}
    if name in ("Bernoulli", "WaitingSubset"):
        size = {} if name == "Bernoulli" else {"size": rng.randint(1, n)}
        availability = [rng.choice(("1/2", "1/3", "1")) for _ in range(n)]
        return {"name": name, "availability": availability, **size}
    if name == "MarkovOnOff":
        return {
            "name": name,
            "availability": [rng.choice(("1/2", "1/3", "1", "0")) for _ in range(n)],
            "correlation": [rng.choice(("0", "1/2", "-1/4")) for _ in range(n)],
            "start": rng.choice((None, None, [rng.randint(0, 1) for _ in range(n)])),
        }
    if name == "Cyclic":
        periods = [rng.randint(1, 3) for _ in range(n)]
        offsets = [rng.randint(0, 2) for _ in range(n)]
        active = [rng.randint(1, period) for period in periods]
        return {"name": name, "periods": periods, "offsets": offsets, "active": active}
    size = rng.randint(1, 3)
    sets = [sorted(rng.sample(range(n), rng.randint(0, n))) for _ in range(size)]
    return {
        "name": name, "transition": [_shares(rng, size) for _ in range(size)], "sets": sets,
        "start": rng.choice((None, None, 0)),
    }  # fmt: skip


def drawn_setting(rng: Rng) -> Document:
    """Draw a setting."""
    n, d = rng.choice((1, 2, 2, 2, 3)), rng.choice((1, 1, 1, 2))
    shared = [_hessian(rng, d)] * n
    return {
        "algorithm": drawn_method(rng, n),
        "problem": {
            "hessians": shared if rng.random() < 0.3 else [_hessian(rng, d) for _ in range(n)],
            "optima": [[_number(rng) for _ in range(d)] for _ in range(n)],
            "sigma": _number(rng, 0),
            "server_sigma": _number(rng, 0),
            "target_weights": _shares(rng, n),
        },
        "participation": drawn_participation(rng, n),
        "rounds": rng.choice((1, 2, 2) if n < 3 else (1, 1, 2)),
        "x0": [_number(rng) for _ in range(d)],
    }


_SYMBOLS = {
    "L": "L", "mu": "mu", "s": "sigma", "N": "n_clients", "K": "local_steps", "R": "rounds",
    "F_0": "excess_loss", "D": "sqrt(squared_distance)", "Gam": "Gamma", "m": "participants",
    "w": "1 - is_warm",
}  # fmt: skip


def drawn_statement(rng: Rng, w: Document) -> Document:
    """Draw a statement whose bound and hypotheses hold about half of the time."""
    factor = rng.choice(("1/10", "1/2", "1", "3"))
    symbols = dict(_SYMBOLS)
    if w["algorithm"]["name"] == "Safari":
        symbols["q"] = "q"
    if w["problem"]["hessians"] == [w["problem"]["hessians"][0]] * len(w["problem"]["optima"]):
        symbols["G"] = "sigma_G"
    bounds = (
        f"{factor}*D**2*(1 - h/9)**R + s**2/(10*L)", f"{factor}*L*F_0/(R + h) - Gam/7",
        f"{factor}*(L**2*D**2 + K*N) - 1/3", "-s", f"{factor}*F_0*log(2 + D + h) - sqrt(N + 1)",
    )  # fmt: skip
    conditions = {
        "smooth": "L < oo",
        "convex": "mu > 0",
        "cold": "Eq(w, 1)",
        "a step": f"h <= {rng.choice((1, 2, 9))}/(L*K)",
        "gradients": f"G_1 <= {rng.choice((1, 20, 10**4))}*(L*D + s + 1)**2 + 1/7",
        "losses": f"G_2 + 1/10**6 >= mu*G_3/{rng.choice((2, 100, 10**6))}",
        "mean": "G_3 + G_1 + 1/1000 > 0",
    }
    kept = rng.sample(sorted(conditions), rng.randint(1, 6))
    of = rng.choice(STANDARD)
    if rng.random() < 0.2 and w["participation"]["name"] == "UniformSubset":
        base = w["algorithm"]["name"] in ("FedAvg", "Safari")
        of = rng.choice(OF_PARTICIPANTS) if base else of
    reduction, before = rng.choice(("last", "mean", "min", "max")), [0, -1]
    weights = rng.choice(("1", "1", "1 + r", "(1 - h/9)**(R - r)")) if reduction == "mean" else "1"
    return {
        "symbols": symbols,
        "definitions": {"h": rng.choice(("K/20", "K*mu/9"))},
        "round_symbols": {
            "G_1": {"of": "squared_gradient", "reduction": "every", "rounds": before},
            "G_2": {"of": "excess_loss", "reduction": "every", "rounds": before},
            "G_3": {"of": "squared_distance", "reduction": "mean", "rounds": before},
        },
        "conditions": {name: conditions[name] for name in kept},
        "quantity": {
            "of": of, "reduction": reduction, "rounds": rng.choice(([0, 0], [1, 0], before)),
            "weights": weights,
        },
        "bound": rng.choice(bounds),
    }  # fmt: skip


def with_numbers(document: Document, rng: Rng) -> Document:
    """Recompute the two numbers if that is possible, sometimes with a wrong digit."""
    try:
        if not is_small(document["setting"]):
            return document
        truth, bound, _ = sides_of(document)
    except Exception:  # if the sides cannot be computed, the numbers stay
        return document
    below, above = (math.floor(side / DIGIT) * DIGIT for side in (truth, bound))
    shifts = (-1, -1, -1, 2)  # sometimes a last digit too high or too low
    return {
        **document,
        "truth": str(below + rng.choice(shifts) * DIGIT),
        "bound": str(above - rng.choice(shifts) * DIGIT),
    }


def is_small(w: Document) -> bool:
    """Return whether a run has few enough branches to enumerate."""
    few = w["rounds"] <= 3 and _local_steps(w["algorithm"]) <= 3
    return bool(few and not _has_exponents(w))


def _has_exponents(document: Document) -> bool:
    """Return whether a number is like 1e999999999, which takes Python hours to compute."""
    return re.search(r"[0-9]e[0-9]", json.dumps(document)) is not None


def _local_steps(a: Document) -> int:
    inner = a.get("algorithm") or a.get("scaffold")
    if inner:
        return _local_steps(inner)
    given = a["local_steps"]
    return max(given) if isinstance(given, list) else int(given)


def drawn(rng: Rng) -> Document:
    """Draw a certificate without its two numbers."""
    setting = drawn_setting(rng)
    return {
        "version": 3, "theorem": "made/up", "reading": "printed",
        "statement": drawn_statement(rng, setting), "setting": setting, "truth": "1", "bound": "0",
    }  # fmt: skip


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key) below a value."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _illegal_place(document: Document, rng: Rng) -> Document:
    place, key = rng.choice(list(_places(document["setting"])))
    place[key] = copy.deepcopy(rng.choice(ILLEGAL))
    return document


def _other_number_of_setting(document: Document, rng: Rng) -> Document:
    texts = [(p, k) for p, k in _places(document["setting"]) if isinstance(p[k], str | int)]
    place, key = rng.choice(texts)
    if isinstance(place[key], int):
        place[key] += rng.choice((-1, 1))
    elif place[key][-1:].isdigit():
        place[key] = rng.choice((_number(rng), f"-{place[key]}", f"{place[key]}0"))
    return document


def _other_name(document: Document, rng: Rng) -> Document:
    named = [p for p, k in _places(document["setting"]) if k == "name"]
    rng.choice(named)["name"] = rng.choice(NAMES)
    return document


def _other_row(document: Document, rng: Rng) -> Document:
    rows = document["setting"]["participation"].get("transition")
    if rows:
        rows[0][0] = rng.choice(("0", "1/7", "1", "-1/2", "2"))
        rows[0][-1] = rng.choice((rows[0][-1], str(1 - Fraction(rows[0][0]))))
    else:
        document["setting"]["participation"] = drawn_participation(rng, 2)
    return document


def _other_range(document: Document, rng: Rng) -> Document:
    rules = document["statement"]["round_symbols"]
    rule = rng.choice([document["statement"]["quantity"], *rules.values()])
    rule["rounds"] = [rng.randint(-1, 3), rng.randint(-3, 1)]
    return document


def _other_formula(document: Document, rng: Rng) -> Document:
    statement = document["statement"]
    extra = rng.choice((" + 1/1000", " - N", "*2", "/(N - N)", " + G_3", "**(2)", " + x"))
    kind = rng.random()
    if kind < 0.4:
        statement["bound"] += extra
    elif kind < 0.6:
        name = rng.choice(sorted(statement["symbols"]))
        statement["symbols"][name] = rng.choice(("L", "mu/2", "nothing", "rounds + 1"))
    else:
        name = rng.choice(sorted(statement["conditions"]))
        statement["conditions"][name] = rng.choice(("s < 2*K", "G_1 > 1/7", "1/s <= 3", "N"))
    return document


def _other_number(document: Document, rng: Rng) -> Document:
    name = rng.choice(("truth", "bound"))
    shift = rng.choice((DIGIT * 3, -DIGIT * 3, Fraction(-1), Fraction(1)))
    document[name] = str(Fraction(document[name]) + shift)
    return document


def _other_shape(document: Document, rng: Rng) -> Document:
    place = rng.choice([document, document["statement"], document["setting"],
                        document["setting"]["problem"]])  # fmt: skip
    if rng.random() < 0.5 and place:
        del place[rng.choice(sorted(place))]
    else:
        place[rng.choice(("note", "weights", "G_3"))] = "0"
    return document


_Spoil = Callable[[Document, Rng], Document]
# Changes of the setting or the statement, after which the two numbers are computed, and of
# anything.
EARLY: tuple[_Spoil, ...] = (
    _illegal_place, _illegal_place, _other_number_of_setting, _other_number_of_setting,
    _other_name, _other_row, _other_range, _other_formula,
)  # fmt: skip
LATE: tuple[_Spoil, ...] = (*EARLY, _other_number, _other_number, _other_shape, _other_shape)


def forged(rng: Rng) -> Document:
    """Draw a certificate, usually spoilt before or after its numbers are computed."""
    while True:
        document = _spoilt(drawn(rng), rng, EARLY, rng.choice((0, 0, 0, 1, 1)))
        document = with_numbers(document, rng)
        document = _spoilt(document, rng, LATE, rng.choice((0, 0, 1)))
        if is_judged_soon(document):
            return document


def is_judged_soon(document: Document) -> bool:
    """Return whether the second computation ends: 99 rounds are legal, but have 2^99 branches."""
    w = document.get("setting")
    return not is_setting(w) or is_small(w)


def _spoilt(document: Document, rng: Rng, spoils: Sequence[_Spoil], times: int) -> Document:
    for _ in range(times):
        try:
            document = rng.choice(spoils)(copy.deepcopy(document), rng)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError):
            continue  # a change of something that an earlier one removed
    return document


def is_right(document: Document) -> bool:
    """Return whether, by the second computation, a certificate is legal and right in all parts."""
    try:
        return _has_its_fields(document) and _is_true(document)
    except Exception:  # a certificate that cannot be evaluated is not right
        return False


def _has_its_fields(document: Document) -> bool:
    statement, w = document["statement"], document["setting"]
    rules = [statement["quantity"], *statement["round_symbols"].values()]
    every = {str(rule["rounds"]) for rule in rules if rule["reduction"] == "every"}
    ranges = [rule["rounds"] for rule in rules]
    return (
        set(document) == FIELDS
        and set(statement) == STATED
        and not _has_exponents(document)
        and is_setting(w)
        and all(0 <= first <= w["rounds"] + end <= w["rounds"] for first, end in ranges)
        and len(every) <= 1
        and not set(statement["symbols"]) & {*statement["definitions"], *statement["round_symbols"]}
    )


def _is_true(document: Document) -> bool:
    truth, bound, met = sides_of(document)
    stated = Fraction(document["truth"]), Fraction(document["bound"])
    return met and truth >= stated[0] > stated[1] >= bound


def accepted(document: Document) -> bool:
    """Return whether the checker accepts a certificate, given as text."""
    try:
        check_certificate(parsed(json.dumps(document)))
    except CertificateError:
        return False
    return True


def judged(count: int, seed: int) -> Counter[tuple[bool, bool]]:
    """Count certificates by (whether right, whether accepted)."""
    rng = random.Random(seed)
    found: Counter[tuple[bool, bool]] = Counter()
    for _ in range(count):
        document = forged(rng)
        verdict = is_right(document), accepted(document)
        if verdict[0] != verdict[1]:
            print(json.dumps(document), file=sys.stderr)
        found[verdict] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=25_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = judged(given.count, given.seed)
    wrong = found[False, True] + found[False, False]
    right = found[True, True] + found[True, False]
    print(f"{found[False, True]} of {wrong} illegal or false certificates accepted (target 0)")
    print(f"{found[True, True]} of {right} legal and true ones accepted (target all)")
    return 1 if found[False, True] or found[True, False] else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The checker alone, as a file of its own: its numbers, what it refuses, and how soon.

Numbers are compared with a second computation, `by_enumeration`, along every branch of a run. The
checker is loaded from its file, with no package around it.
"""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

import pytest

from tests.verify.certificate_cases import (
    DENSE,
    IN_PLANE,
    METHODS,
    ON_LINE,
    method,
    setting,
)
from tests.verify.checker_alone import PLACE, checker

F: TypeAlias = Fraction
KEPT = Path(__file__).parents[3] / "verification" / "certificates"
SYMBOLS_OF = {
    "L": "L", "mu": "mu", "sigma": "sigma", "D": "sqrt(squared_distance)", "K": "local_steps",
    "T": "rounds", "F_0": "excess_loss", "N": "n_clients", "eta": "client_lr",
}  # fmt: skip
EVERY = {"of": "squared_gradient", "reduction": "every", "rounds": [0, -1]}
STATEMENT: dict[str, Any] = {
    "symbols": SYMBOLS_OF,
    "definitions": {"h": "K*eta"},
    "round_symbols": {
        "G": EVERY,
        "E": {**EVERY, "of": "excess_loss"},
        "M": {**EVERY, "reduction": "mean", "of": "squared_distance"},
    },
    "conditions": {
        "smooth": "L < oo",
        "a step": "h <= 10/L + 1/mu**2",
        "a rooted step": "eta < sqrt(30)*K**(1/2)/Min(L, 1/mu)",
        "gradients": "G <= 10**6*(D + 1) + E + M",
    },
    "quantity": {
        "of": "squared_distance", "reduction": "mean", "rounds": [1, 0], "weights": "1",
    },
    "bound": "log(1 + h*D)/10**9 - F_0 - sigma**2",
}  # fmt: skip


def document(w: Any, truth: Any, bound: Any = "0", /, **stated: Any) -> dict[str, Any]:
    """A certificate of a made-up statement."""
    return copy.deepcopy({
        "version": 3, "theorem": "made/up", "reading": "printed",
        "statement": {**STATEMENT, **stated}, "setting": w, "truth": str(truth),
        "bound": str(bound),
    })  # fmt: skip


@contextmanager
def refused(message: str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect a refusal in one line that says this, within a few seconds."""
    start = process_time()
    with pytest.raises(checker.CertificateError) as caught:
        yield caught
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    # To be traced takes longer, as while mutants of the checker are judged.
    assert process_time() - start < (3 if sys.gettrace() is None else 30)


def check(document: Any) -> tuple[F, F]:
    """Check a document on its way through JSON."""
    return checker.check_certificate(checker.parsed(json.dumps(document)))


def known(w: Any) -> Any:
    return checker._Known(checker._setting(copy.deepcopy(w)))


def down(value: F, digits: int = 30) -> F:
    """Round down, and one digit further where that changes nothing."""
    found = Fraction(math.floor(value * 10**digits), 10**digits)
    return found if found < value else found - Fraction(1, 10**digits)


AVERAGED = METHODS["averaged"]


def number(name: str, w: Any, bits: int = 64) -> Any:
    low, high = known(w).number(name, bits)
    return low if low == high else (low, high)


def claim(name: str, w: Any, truth: Any) -> Any:
    return document(w, truth, "-1", quantity=name, bound="-1", conditions={})


GOOD = document(setting("Safari"), "1/10", "1/20")


def changed(place: str, value: Any, of: Any = None) -> dict[str, Any]:
    """A good certificate with one entry changed, or removed where the value is ``...``."""
    found = copy.deepcopy(GOOD if of is None else of)
    *path, last = place.split("/")
    inner: Any = found
    for key in path:
        inner = inner[int(key) if isinstance(inner, list) else key]
    if value is ...:
        del inner[last]
    else:
        inner[int(last) if isinstance(inner, list) else last] = value
    return found


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("problem/hessians", [[["1"]]] * 2, "setting.problem.hessians: must be a list of 3"),
        ("problem/hessians/0", [["1", "0"]], "setting.problem.hessians[0][0]: must be a list of 1"),
        ("problem/hessians/1", [["0"]], "setting.problem.hessians[1]: must be symmetric, positive"),
        ("problem/hessians/2", [["-1"]], "setting.problem.hessians[2]: must be symmetric, posi"),
        ("problem/optima", [], "setting.problem.optima: must be 1 to 16 points, got 0"),
        ("problem/optima", [["1"]] * 17, "setting.problem.optima: must be 1 to 16 points, got 17"),
        ("problem/optima", [[], [], []], "setting.problem.optima: must be points of one dimension"),
        ("problem/optima", [["1"] * 9] * 3, "must be points of one dimension, up to 8"),
        ("participation", {"name": "Bernoulli", "availability": ["1/2"]}, "must be a list of 3"),
        ("problem/optima/1", ["1", "2"], "setting.problem.optima: must be points of one dim"),
        ("problem/sigma", "-1/9", "setting.problem.sigma: must be at least 0, got '-1/9'"),
        ("problem/server_sigma", "-1", "setting.problem.server_sigma: must be at least 0"),
        ("problem/target_weights", ["1/2", "1/2"], "target_weights: must be one for each of 3"),
        ("problem/target_weights", ["1/2", "1/2", "1/2"], "target_weights: must be of sum 1"),
        ("problem/target_weights", ["1", "-1", "1"], "target_weights[1]: must be above 0"),
        ("problem/note", "", "setting.problem.note: is not a field here"),
        ("problem/optima", ..., "setting.problem.optima: the field is missing"),
        ("x0", ["1", "2"], "setting.x0: must be a list of 1"),
        ("x0", "1", "setting.x0: must be a list, got '1'"),
        ("rounds", 0, "setting.rounds: must be at least 1, got 0"),
        ("rounds", True, "setting.rounds: must be a whole number, got True"),
        ("rounds", "3", "setting.rounds: must be a whole number, got '3'"),
        ("rounds", 10_001, "setting.rounds: must be at most 10000"),
        ("rounds", 10**19, "setting.rounds: must be at most 10000"),
        ("algorithm", None, "setting.algorithm.name: must be a text, got None"),
        ("algorithm/name", "Safary", "setting.algorithm.name: must be one of FedAvg, Weighted"),
        ("algorithm/name", 3, "setting.algorithm.name: must be a text"),
        ("algorithm/name", "FedAvg", "setting.algorithm.server_lr: the field is missing"),
        ("algorithm/q", "-50", "setting.algorithm.q: must be at least 0, got '-50'"),
        ("algorithm/q", "51/50", "setting.algorithm.q: must be from 0 to 1, got '51/50'"),
        ("algorithm/q", "1e9", "must be a fraction like '3/4', got '1e9'"),
        ("algorithm/q", "0.5", "must be a fraction like '3/4'"),
        ("algorithm/q", "1/0", "must be a fraction like '3/4'"),
        ("algorithm/q", "1/00", "must be a fraction like '3/4'"),
        ("algorithm/q", " 1/2", "must be a fraction like '3/4'"),
        ("algorithm/q", "1_0/20", "must be a fraction like '3/4'"),
        ("algorithm/q", "1/-2", "must be a fraction like '3/4'"),
        ("algorithm/q", "\u0661/\u0662", "must be a fraction like '3/4'"),
        ("algorithm/q", "", "must be a fraction like '3/4'"),
        ("algorithm/q", "1/" + "3" * 99, "must be text of at most 100 characters"),
        ("algorithm/q", 1, "must be text"),
        ("algorithm/q", None, "must be text"),
        ("algorithm/client_lr", "0", "setting.algorithm.client_lr: must be above 0, got '0'"),
        ("algorithm/client_lr", "-1/5", "setting.algorithm.client_lr: must be above 0"),
        ("algorithm/assist_lr", "0", "setting.algorithm.assist_lr: must be above 0"),
        ("algorithm/local_steps", 0, "setting.algorithm.local_steps: must be at least 1"),
        ("algorithm/local_steps", "2", "setting.algorithm.local_steps: must be a whole number"),
        ("algorithm/local_steps", 10**9, "setting.algorithm.local_steps: must be fewer"),
        ("algorithm/option", 1, "setting.algorithm.option: is not a field here"),
        ("participation", [], "setting.participation.name: must be a text, got []"),
        ("participation/name", "Everyone", "setting.participation.name: must be one of Uniform"),
        ("participation/size", 0, "setting.participation.size: must be from 1 to 3, the eligible"),
        ("participation/size", 4, "setting.participation.size: must be from 1 to 3"),
        ("participation/size", True, "setting.participation.size: must be a whole number"),
        ("participation/excluded", [0, 0], "excluded: must be clients from 0 to 2, none twice"),
        ("participation/excluded", [3], "excluded: must be clients from 0 to 2"),
        ("participation/excluded", [-1], "excluded: must be clients from 0 to 2"),
        ("participation/excluded", [0, 1], "setting.participation.size: must be from 1 to 1"),
        ("participation/excluded", 0, "setting.participation.excluded: must be a list"),
        ("participation/excluded", [0, 1, 2], "setting.participation.size: must be from 1 to 0"),
    ],
)  # fmt: skip
def test_what_is_no_setting_is_refused(place: str, value: Any, message: str) -> None:
    assert check(GOOD) == (F(1, 10), F(1, 20))
    with refused(message):
        check(changed(f"setting/{place}", value))


def of(name: Any, who: str = "two of three") -> Any:
    return document(setting(name, who), "1/10", "1/20", symbols={}, definitions={}, bound="0",
                    conditions={}, round_symbols={})  # fmt: skip


@pytest.mark.parametrize(
    ("good", "place", "value", "message"),
    [
        (of("FedAU"), "algorithm/cutoff", 0, "setting.algorithm.cutoff: must be at least 1"),
        (of("FedAU"), "algorithm/cutoff", "2", "setting.algorithm.cutoff: must be a whole number"),
        (of("FedAR"), "algorithm/cutoff", -1, "setting.algorithm.cutoff: must be at least 0"),
        (of("FedAR"), "algorithm/weight/growth", "-1/9", "weight.growth: must be at least 0"),
        (of("FedAR"), "algorithm/weight/largest", "9/10", "weight.largest: must be at least 1"),
        (of("FedAR"), "algorithm/weight/name", "Linear", "weight.name: must be one of CappedLin"),
        (of("Mifa"), "algorithm/start", "late", "algorithm.start: must be 'wait' or 'zero'"),
        (of("Scaffold"), "algorithm/option", 3, "setting.algorithm.option: must be 1 or 2"),
        (of("Scaffold"), "algorithm/option", True, "option: must be a whole number, got True"),
        (of("Scaffold"), "algorithm/server_lr", "0", "server_lr: must be above 0"),
        (of("WeightedFedAvg"), "algorithm/aggregation_weights", ["1"], "one for each of 3 cl"),
        (of("WeightedFedAvg"), "algorithm/aggregation_weights/1", "-1", "must be at least 0"),
        (of("WeightedFedAvg"), "algorithm/aggregation_weights", ["0"] * 3, "must be not all zero"),
        (of("FedAvgIS"), "algorithm/availability/0", "0", "availability[0]: must be above 0"),
        (of("FedAvgIS"), "algorithm/availability/0", "7/6", "availability: must be in (0, 1]"),
        (of("FedAvgIS"), "algorithm/availability", ["1"], "must be one for each of 3 clients"),
        (of("Unbiased"), "algorithm/target_weights", ["1/2"] * 2, "must be one for each of 3"),
        (of("ClusterFedVarp"), "algorithm/clusters", [0, 2, 0], "clusters: must be whole num"),
        (of("ClusterFedVarp"), "algorithm/clusters", [1, 1, 1], "clusters: must be whole num"),
        (of("ClusterFedVarp"), "algorithm/clusters", [0, 0], "must be one for each of 3 clie"),
        (of("FedProx"), "algorithm/proximal", "-1/9", "proximal: must be at least 0"),
        (of("FedProx"), "algorithm/client_weights", ["0"] * 3, "must be not all zero"),
        (of("FedProx"), "algorithm/client_weights/1", "-1", "must be at least 0"),
        (of("FedProx"), "algorithm/client_weights", ["1"] * 2, "one for each of 3 clients"),
        (of("FedProx"), "algorithm/local_steps", [1, 1, 1], "must be a whole number, got [1"),
        (of("FedNova"), "algorithm/local_steps/0", 0, "local_steps[0]: must be at least 1"),
        (of("FedNova"), "algorithm/local_steps", 0, "local_steps: must be at least 1"),
        (of("FedNova"), "algorithm/local_steps", [1, 1], "one for each of 3 clients"),
        (of("FedNova"), "algorithm/local_steps/2", 10**9, "local_steps: must be fewer"),
        (of("F3ast"), "algorithm/size", 0, "setting.algorithm.size: must be at least 1"),
        (of("F3ast"), "algorithm/size", 4, "size: must be at most the 3 clients, got 4"),
        (of("F3ast"), "algorithm/smoothing", "1", "smoothing: must be below 1"),
        (of("F3ast"), "algorithm/smoothing", "-1/9", "smoothing: must be at least 0"),
        (of("F3ast"), "algorithm/target_weights/0", "1/3", "target_weights: must be of sum 1"),
        (of("F3ast"), "algorithm/availability", ["1"], "one for each of 3 clients"),
        (of("F3ast"), "algorithm/availability", ["0", "1", "1"], "must be above 0"),
        (of("LocalSgd"), "algorithm/aggregation_weights/0", "1/3", "must be of sum 1"),
        (of("LocalSgd"), "algorithm/local_steps", 0, "local_steps: must be at least 1"),
        (of("LocalSgd"), "algorithm/step_sizes/scale", "0", "step_sizes.scale: must be above 0"),
        (of("momentum"), "algorithm/algorithm", method("LocalSgd"), "algorithm: must be LocalSgd"),
        (of("averaged"), "algorithm/algorithm", method("LocalSgd"), "must be LocalSgd alone"),
        (of("momentum"), "algorithm/momentum", "1", "setting.algorithm.momentum: must be below 1"),
        (of("momentum"), "algorithm/momentum", "-1/9", "momentum: must be at least 0"),
        (of("scheduled"), "algorithm/step_sizes/scale", "0", "step_sizes.scale: must be above 0"),
        (of("scheduled"), "algorithm/step_sizes/offset", "-1", "offset: must be at least 0"),
        (of("scheduled"), "algorithm/algorithm", METHODS["momentum"], "one of FedAvg"),
        (of("scheduled"), "algorithm/algorithm", METHODS["scheduled"], "algorithm.name: must be"),
        (of("scheduled"), "algorithm/algorithm", AVERAGED, "algorithm.name: must be one of FedA"),
        (of("warm"), "algorithm/scaffold", method("FedAvg"), "name: must be Scaffold, got FedAvg"),
        (of("plain average"), "algorithm/weights/value", "0", "weights.value: must be above 0"),
        (of("FedAU", "independent"), "participation/availability/0", "-1/2", "above 0"),
        (of("FedAU", "independent"), "participation/availability/0", "0", "above 0"),
        (of("FedAU", "independent"), "participation/availability", ["1"], "a list of 3"),
        (of("FedAU", "independent"), "participation/availability/0", "3/2", "in (0, 1]"),
        (of("FedAU", "on and off"), "participation/availability/0", "-1/2", "at least 0"),
        (of("FedAU", "on and off"), "participation/availability/0", "3/2", "from 0 to 1"),
        (of("FedAU", "on and off"), "participation/correlation/0", "1", "must be in (-1, 1)"),
        (of("FedAU", "on and off"), "participation/correlation/0", "-1", "must be in (-1, 1)"),
        (of("FedAU", "on and off"), "participation/correlation/2", "-2/3", "in (-1, 1)"),
        # comes with 7/4 times 2/3
        (of("FedAU", "on and off"), "participation",
         {"name": "MarkovOnOff", "availability": ["2/3"] * 3, "correlation": ["-3/4", "0", "0"],
          "start": None}, "correlation: must be in (-1, 1), at least -pi/(1 - pi) and -(1 - pi)"),
        (of("FedAU", "on and off"), "participation/start", [1, 0], "a list of 3"),
        (of("FedAU", "on and off"), "participation/start", [1, 0, 2], "0 or 1 for each client"),
        (of("FedAvg", "waiting"), "participation/availability/0", "0", "above 0"),
        (of("FedAvg", "waiting"), "participation/availability", ["1", "1"], "a list of 3"),
        (of("FedAvg", "waiting"), "participation/size", 0, "size: must be from 1 to 3, got 0"),
        (of("FedAvg", "waiting"), "participation/size", 4, "size: must be from 1 to 3, got 4"),
        (of("FedAU", "a chain"), "participation/transition/1", ["0", "1/3", "1/3"], "of sum 1"),
        (of("FedAU", "a chain"), "participation/transition/1", ["1", "1/3", "-1/3"], "at least 0"),
        (of("FedAU", "a chain"), "participation/transition/2", ["1", "0"], "a list of 3"),
        (of("FedAU", "a chain"), "participation/transition/2", ["0", "0", "1"], "irreducible and"),
        (of("FedAU", "a chain"), "participation/transition",
         [["0", "1", "0"], ["0", "0", "1"], ["1", "0", "0"]], "irreducible and aperiodic"),
        (of("FedAU", "a chain"), "participation/transition", [], "1 to 64 rows, got 0"),
        (of("FedAU", "a chain"), "participation/transition", "1", "1 to 64 rows, got 0"),
        (of("FedAU", "a chain"), "participation/transition", [["1"]] * 65, "1 to 64 rows"),
        (of("FedAU", "a chain"), "participation/sets", [[0], [1]], "a list of 3"),
        (of("FedAU", "a chain"), "participation/sets/0", [3], "clients from 0 to 2 in incr"),
        (of("FedAU", "a chain"), "participation/sets/0", [1, 0], "clients from 0 to 2 in incr"),
        (of("FedAU", "a chain"), "participation/sets/0", [1, 1], "clients from 0 to 2 in incr"),
        (of("FedAU", "a chain"), "participation/start", 3, "must be a state below 3"),
        (of("FedAU", "a chain"), "participation/start", -1, "must be a state below 3"),
        (of("FedAU", "cycles"), "participation/periods/0", 0, "periods: must be at least 1"),
        (of("FedAU", "cycles"), "participation/offsets/0", -1, "offsets: must be at least 0"),
        (of("FedAU", "cycles"), "participation/active/0", 2, "active: must be from 1 to the per"),
        (of("FedAU", "cycles"), "participation/active/1", 0, "active: must be from 1 to the per"),
        (of("FedAU", "cycles"), "participation/periods", [11, 12, 5], "of a multiple up to 64"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:40],
)  # fmt: skip
def test_illegal_parts_of_other_settings(good: Any, place: str, value: Any, message: str) -> None:
    assert check(good)
    with refused(message):
        check(changed(f"setting/{place}", value, good))


def test_hessians_are_symmetric() -> None:
    good = document(setting("FedAvg", problem=IN_PLANE), "1/10", "1/20")
    assert check(good)
    with refused("setting.problem.hessians[0]: must be symmetric, positive definite"):
        check(changed("setting/problem/hessians/0", [["2", "1/2"], ["1/3", "1"]], good))
    with refused("setting.problem.hessians[0]: must be symmetric, positive definite"):
        check(changed("setting/problem/hessians/0", [["1", "2"], ["2", "1"]], good))
    assert DENSE[0] == good["setting"]["problem"]["hessians"][0]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("version", 2, "version: must be 3, got 2"),
        ("version", True, "version: must be a whole number, got True"),
        ("version", ..., "certificate.version: the field is missing"),
        ("theorem", 4, "theorem: must be a short text, got 4"),
        ("reading", None, "reading: must be a short text, got None"),
        ("truth", "1/20", "truth: must be above the bound, 1/20"),
        ("truth", "9" * 99, "truth: must be at most the quantity"),
        ("truth", "7" * 101, "truth: must be text of at most 100 characters"),
        ("bound", "-99", "bound: must be at least the statement's, got -99"),
        ("bound", "1e9", "bound: must be a fraction like"),
        ("comment", "trust me", "certificate.comment: is not a field here"),
        ("setting", "GOOD", "setting: must be an object with fields, got 'GOOD'"),
        ("setting/note", "", "setting.note: is not a field here"),
        ("statement", None, "statement: must be an object with fields, got None"),
        ("statement/note", "0", "statement.note: is not a field here"),
        ("statement/symbols", None, "statement.symbols: must be an object"),
        ("statement/symbols/q", "control", "'control' is not a formula in fractions"),
        ("statement/symbols/q", "1/(L - L)", "conditions.smooth: not met"),
        ("statement/symbols/q", "sigma_G", "sigma_G is infinite"),
        ("statement/definitions/L", "1", "statement.definitions.L: is a symbol's name"),
        ("statement/definitions", None, "statement.definitions: must be an object"),
        ("statement/definitions/h", "K*G", "'G' is not a formula in fractions"),
        ("statement/conditions", None, "statement.conditions: must be an object"),
        ("statement/conditions/smooth", 1, "statement.conditions.smooth: must be a short text"),
        ("statement/conditions/smooth", "mu", "'mu' is not a condition"),
        ("statement/conditions/smooth", "mu >= 1", "conditions.smooth: not met in round 0: mu"),
        ("statement/conditions/smooth", "rounds > 0", "'rounds' is not a formula in fractions"),
        ("statement/conditions/smooth", "1/(K - 2) > 0", "conditions.smooth: not met in round 0"),
        ("statement/conditions/smooth", "sqrt(2)**2 >= 2", "is too close to an equality"),
        ("statement/bound", None, "statement.bound: must be a short text"),
        ("statement/bound", "G", "'G' is not a formula in fractions"),
        ("statement/round_symbols", [], "statement.round_symbols: must be an object"),
        ("statement/round_symbols/L", EVERY, "statement.round_symbols.L: is a symbol's name"),
        ("statement/round_symbols/h", EVERY, "statement.round_symbols.h: is a symbol's name"),
        ("statement/round_symbols/G/rounds", [1, -1], "round_symbols: must be about the same rou"),
        ("statement/round_symbols/G/rounds", [0, -3], "rounds: must be rounds of a run of 2"),
        ("statement/round_symbols/G/rounds", [3, 0], "rounds: must be rounds of a run of 2"),
        ("statement/round_symbols/G/rounds", [-1, 0], "must be a first round and an end up to 0"),
        ("statement/round_symbols/G/rounds", [0, 1], "must be a first round and an end up to 0"),
        ("statement/round_symbols/G/rounds", [0], "must be a first round and an end up to 0"),
        ("statement/round_symbols/G/rounds", [0, False], "must be a whole number"),
        ("statement/round_symbols/G/rounds", "00", "must be a list"),
        ("statement/round_symbols/G/weights", "1", "weights: is not a field here"),
        ("statement/quantity/rounds", [2, -1], "statement.quantity.rounds: must be rounds of a"),
        ("statement/quantity/of", "loss", "statement.quantity.of: must be one of squared_dist"),
        ("statement/quantity/of", ["loss"], "statement.quantity.of: must be a short text"),
        ("statement/quantity/reduction", "sum", "statement.quantity.reduction: must be one of"),
        ("statement/quantity/reduction", "every", "must be one number, not one per round"),
        ("statement/quantity/weights", "r - 2", "weights: must not be negative, round 1"),
        ("statement/quantity/weights", "0", "weights: must not all be 0"),
        ("statement/quantity/weights", "x", "'x' is not a formula in fractions"),
        ("statement/quantity/weights", ..., "statement.quantity.weights: the field is missing"),
        ("statement/quantity", [], "statement.quantity: must be an object"),
        ("statement/quantity", "nothing", "'nothing' is not a formula in fractions"),
        ("statement/quantity", "D", "'D' is not a formula in fractions"),
    ],
)  # fmt: skip
def test_every_field_counts(place: str, value: Any, message: str) -> None:
    with refused(message):
        check(changed(place, value))


def test_weights_that_are_roots_are_bracketed() -> None:
    """Of 0 and 1 with weights sqrt(2) and 2 the mean is 2/(2 + sqrt(2)) = 2 - sqrt(2)."""
    statement = checker._Statement(GOOD["statement"], known(GOOD["setting"]))
    numbers = [(F(0), F(0)), (F(1), F(1))]
    low, high = statement._weighted("sqrt(2*r + 2)", numbers, range(2), 64)
    assert (2 - high) ** 2 < 2 < (2 - low) ** 2
    assert high - low < F(1, 2**60)


def test_weights_are_for_means() -> None:
    found = changed("statement/quantity/reduction", "last")
    assert check(found)
    found["statement"]["quantity"]["weights"] = "2"
    with refused("statement.quantity.weights: must be 1, except in a mean, got '2'"):
        check(found)


def test_work_is_limited() -> None:
    for w, changes in (
        (setting("Scaffold"), {"rounds": 10_000}),
        (setting("FedAU uncut", "independent"), {"rounds": 40}),
    ):
        checker.MOST_WORK, before = 20_000, checker.MOST_WORK
        try:
            with refused("setting: the run takes more than 20000 units of work"):
                check(document({**w, **changes}, "1/10"))
        finally:
            checker.MOST_WORK = before
    many = setting("FedAU", "independent", 10_000)
    checker.MOST_WORK, before = 20_000, checker.MOST_WORK
    try:
        with refused("setting: the run takes more than 20000 units of work"):
            check(claim("weight_error_ratio", many, "1"))
        with refused("setting: the run takes more than 20000 units of work"):
            check(claim("chance_of_absence", many, "1"))
    finally:
        checker.MOST_WORK = before


SYMBOLS = {"a": F(2, 3), "b": F(5), "z": F(0), "n": F(-2)}


def spans(symbols: dict[str, Any]) -> dict[str, tuple[F, F]]:
    return {name: v if isinstance(v, tuple) else (v, v) for name, v in symbols.items()}


def value_of(text: str, symbols: dict[str, Any]) -> F:
    low, high = checker._span(checker.syntax_of(text), spans(symbols), 1)
    assert low == high
    return low


def is_met(text: str, symbols: dict[str, Any]) -> bool:
    return checker._settled(text, lambda bits: checker._decided(text, spans(symbols), bits))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + 2*b", F(32, 3)),
        ("-a**2/(b - 1)", F(-1, 9)),
        ("b**(-1)", F(1, 5)),
        ("z**0 - b**0", 0),
        ("n**2 + n**3 + n**(-1)", F(-9, 2)),
        ("sqrt(a*6) + (b**3)**(1/3)", 7),
        ("(a*3*4)**(-2/3)", F(1, 4)),
        ("sqrt(4/9) - 1/sqrt(1/4)", F(-4, 3)),
        ("sqrt(z) + 32**(1/5)", 2),
        ("4096**(1/12)", 2),
        ("Min(a, b, n) - Max(a, b)", -7),
        ("1 - a - b*(b - a)/b", -4),
    ],
)
def test_formulas(text: str, value: F) -> None:
    assert value_of(text, SYMBOLS) == value


@pytest.mark.parametrize(
    "text",
    ["c", "__import__('os')", "a if b else a", "1.5", "True", "a.b", "[a]",
     "a // b", "a % b", "+a", "not a", "sqrt(n)", "sqrt(a, b)",
     "log(a, b)", "ln(4)", "log(z)", "log(n)", "1**(1/13)",
     "1**sqrt(b)", "Min()", "sqrt(x=a)",
     "a**(1/13)", "lambda: a", "a < b", "(a", "", "a; b", "f'{a}'", "a\n", "a\x00", "(a := b)",
     "a and b", "Min(*a)", "n**(1/2)"],
)  # fmt: skip
def test_other_formulas_are_refused(text: str) -> None:
    with refused("statement: "):
        value_of(text, SYMBOLS)


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "9**9**9**9", "b**(10**9)", "b**(-10**9)", "(b**1000)**1000",
     "-" * 1500 + "a", "(" * 150 + "a" + ")" * 150, "a+" * 900 + "a", "a**" * 600 + "a",
     "a" * 2001, "*".join(["(b**99999)"] * 4), "Min(" * 101 + "a" + ")" * 101],
    ids=range(12),
)  # fmt: skip
def test_formulas_that_would_take_long_are_refused_at_once(text: str) -> None:
    with refused("statement: "):
        value_of(text, SYMBOLS)


def test_the_longest_formulas() -> None:
    assert value_of("a+" * 90 + "a", SYMBOLS) == 91 * F(2, 3)
    assert value_of("b**100000", SYMBOLS) == 5**100000
    assert value_of("(" * 100 + "a" + ")" * 100, SYMBOLS) == F(2, 3)
    assert value_of("a" + " " * 1999, SYMBOLS) == F(2, 3)
    with refused("must be a short text"):
        value_of("a" + " " * 2000, SYMBOLS)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("a <= 2/3", True),
        ("a <= 1", True),
        ("b <= a", False),
        ("a < 2/3", False),
        ("a < b", True),
        ("b >= a", True),
        ("a >= a", True),
        ("a >= b", False),
        ("a > b", False),
        ("a > a", False),
        ("b > a", True),
        ("Eq(3*a, 2)", True),
        ("Eq(a, b)", False),
        ("Eq(b, a)", False),
        ("Eq(sqrt(b), sqrt(a))", False),
        ("Eq(sqrt(a), sqrt(b))", False),
        ("a < oo", True),
        ("1 <= 1/(3*a - 2)", False),
        ("1/z < oo", False),
        ("sqrt(b)**2 < 5 + 1/10**1000", True),
        ("sqrt(b) <= 2236067977499789696409173668731276235/10**36", False),
        ("sqrt(b) <= 2236067977499789696409173668731276236/10**36", True),
        ("2236067977499789696409173668731276235/10**36 < sqrt(b)", True),
        ("2236067977499789696409173668731276236/10**36 < sqrt(b)", False),
        ("1/(sqrt(b) - sqrt(5 - 1/10**40)) > 10**40", True),
        ("1/(sqrt(b) - sqrt(5 - 1/10**40)) > 10**41", False),
        ("b**(1/3) > 17099759466766969893/10**19", True),
        ("b**(1/3) < 17099759466766969894/10**19", True),
        ("b**(2/3)*b**(-1/2) < b**(1/6) + 1/10**30", True),
        ("b**(2/3)*b**(-1/2) < b**(1/6) - 1/10**30", False),
        ("(sqrt(b) - 3)**2 > 583592/10**6", True),
        ("(sqrt(b) - 3)**3 < -445824/10**6", True),
        ("-sqrt(b)*n > 4", True),
        ("sqrt(b)*n < -4", True),
        ("(1 - sqrt(b))*n > 2", True),
        ("Min(sqrt(b), 3) < Max(sqrt(b), 2) + a", True),
        ("log(2) > 69314718055994530941723212145817/10**32", True),
        ("log(2) < 69314718055994530941723212145818/10**32", True),
        ("log(b) > 160943791243410037460075933322618/10**32", True),
        ("log(b) < 160943791243410037460075933322619/10**32", True),
        ("log(3/100) < -350655789731998167/10**17", True),
        ("log(3/100) > -350655789731998168/10**17", True),
        ("log(1/z - 1) < 1", False),
    ],
)
def test_conditions(text: str, met: bool) -> None:
    assert is_met(text, SYMBOLS) is met


WIDE = {
    "u": (F(1), F(2)), "v": (F(10), F(20)), "w": (F(-3), F(5)), "x": (F(-7), F(-2)), "a": F(4),
    "y": (F(-3), F(1, 2)), "p": (F(1, 2), F(2)), "t": (F(0), F(5)), "s": (F(-5), F(0)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("u + v", 11, 22),
        ("u - v", -19, -8),
        ("-w", -5, 3),
        ("u*v", 10, 40),
        ("w*v", -60, 100),
        ("w*x", -35, 21),
        ("x*x", 4, 49),
        ("a*w", -12, 20),
        ("w*a", -12, 20),
        ("u/v", F(1, 20), F(1, 5)),
        ("a/x", -2, F(-4, 7)),
        ("w**2", 0, 25),
        ("w**3", -27, 125),
        ("y**2", 0, 9),
        ("p**2", F(1, 4), 4),
        ("t**2", 0, 25),
        ("s**2", 0, 25),
        ("x**2", 4, 49),
        ("x**3", -343, -8),
        ("v**(-1)", F(1, 20), F(1, 10)),
        ("x**(-2)", F(1, 49), F(1, 4)),
        ("Min(u, w)", -3, 2),
        ("Max(u, w)", 1, 5),
        ("Max(x, w)", -3, 5),
    ],
)
def test_brackets_hold_every_value_between(text: str, low: F, high: F) -> None:
    assert checker._span(checker.syntax_of(text), spans(WIDE), 8) == (low, high)


@pytest.mark.parametrize("text", ["sqrt(u)", "v**(1/3)", "(u*v)**(2/3)"])
def test_roots_of_brackets_are_rounded_outwards(text: str) -> None:
    low, high = checker._span(checker.syntax_of(text), spans(WIDE), 8)
    inside = {"sqrt(u)": (1, 2, 2), "v**(1/3)": (10, 20, 3), "(u*v)**(2/3)": (100, 1600, 3)}[text]
    least, most, degree = inside
    assert low**degree <= least
    assert high**degree >= most
    assert (low + F(1, 20)) ** degree > least
    assert (high - F(1, 20)) ** degree < most


def test_a_root_is_rounded_by_one_unit() -> None:
    """2.236 is between 572/256 and 573/256."""
    assert checker._span(checker.syntax_of("sqrt(5)"), {}, 8) == (F(572, 256), F(573, 256))
    assert checker._span(checker.syntax_of("sqrt(v*5)"), spans(WIDE), 8) == (
        F(math.isqrt(50 * 4**8), 2**8), 10 + F(1, 2**8)
    )  # fmt: skip


@pytest.mark.parametrize("text", ["log(u)", "log(v)", "log(p)"])
def test_logarithms_of_brackets(text: str) -> None:
    low, high = checker._span(checker.syntax_of(text), spans(WIDE), 64)
    least, most = (math.log(float(end)) for end in spans(WIDE)[text[4]])
    assert abs(float(low) - least) < 1e-15
    assert abs(float(high) - most) < 1e-15


@pytest.mark.parametrize(
    "text", ["1/w", "w**(-1)", "w**(-2)", "sqrt(w)", "1/(u - 1)", "1/(u - 2)", "log(w)", "log(t)"]
)
def test_brackets_around_zero_are_too_wide_to_divide_by(text: str) -> None:
    with pytest.raises(checker._UndecidedError):
        checker._span(checker.syntax_of(text), spans(WIDE), 8)


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        ("u < v", True), ("v < u", False), ("u <= v", True), ("v <= u", False), ("v > u", True),
        ("u > v", False), ("v >= u", True), ("u >= v", False), ("u < w", None), ("u <= w", None),
        ("w > u", None), ("u >= w", None), ("Eq(u, v)", False), ("Eq(v, u)", False),
        ("Eq(u, w)", None), ("u <= 2", True), ("u < 2", None), ("2 < u", False), ("2 <= u", None),
        ("u >= 1", True), ("u > 1", None), ("1 > u", False), ("1 >= u", None), ("Eq(u, u)", None),
        ("Eq(u, 2)", None), ("Eq(u, 1)", None), ("Eq(2, u)", None), ("Eq(a, 4)", True),
    ],
)  # fmt: skip
def test_what_brackets_decide(text: str, decided: bool | None) -> None:
    if decided is None:
        with pytest.raises(checker._UndecidedError):
            checker._decided(text, spans(WIDE), 8)
    else:
        assert checker._decided(text, spans(WIDE), 8) is decided


@pytest.mark.parametrize(
    "text",
    ["sqrt(b)*sqrt(b) <= b", "Eq(sqrt(b)**2, b)", "1/(sqrt(b)**2 - b) < 1"],
)
def test_equalities_of_irrational_numbers_are_refused(text: str) -> None:
    with refused("is too close to an equality to decide"):
        is_met(text, SYMBOLS)


@pytest.mark.parametrize(
    "text",
    ["a", "a < b < b", "a == b", "a != b", "Eq(a)", "Eq(a, b, a)", "Eq(a, rhs=b)", "oo > a",
     "a <= oo", "a > oo", "c < oo", "Lt(a, b)", "sqrt(n) < oo", "oo < oo", "a in b"],
)  # fmt: skip
def test_what_is_no_condition_is_refused(text: str) -> None:
    with refused("statement: "):
        is_met(text, SYMBOLS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "must be an object with fields"),
        ('{"q": 1, "q": 2}', "q: the field is given twice"),
        ('{"a": {"q": 1, "q": 1}}', "q: the field is given twice"),
        ('{"q": NaN}', "NaN: numbers must be whole, or text like '3/4'"),
        ('{"q": -Infinity}', "-Infinity: numbers must be whole"),
        ('{"q": 0.5}', "0.5: numbers must be whole"),
        ('{"q": 1e9}', "1e9: numbers must be whole"),
        ('{"q": %s}' % ("9" * 21), "99999999999999999999...: a whole number must have at most 20"),
        ('{"q": ' * 50_000, "not JSON"),
        ('{"q": "%s"}' % ("9" * 1_000_000), "file: must have at most 1000000 characters"),
    ],
    ids=range(11),
)
def test_json_that_readers_let_pass_is_refused(text: str, message: str) -> None:
    with refused(message):
        checker.parsed(text)
    assert checker.parsed('{"q": %s}' % ("9" * 20)) == {"q": 10**20 - 1}


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(GOOD))
    bad.write_text(json.dumps(changed("truth", "1000")))
    assert checker.main([str(good)]) == 0
    out = capsys.readouterr().out
    assert "made/up (printed), as the file states it" in out
    assert f"  {GOOD['statement']['quantity']} <= {GOOD['statement']['bound']}\n" in out
    assert "  is false, and every condition holds: 1/10 > 1/20\n" in out
    assert checker.main([str(good), str(bad), str(tmp_path / "none.json")]) == 1
    out = capsys.readouterr().out
    assert out.count("refused: ") == 2
    assert f"{bad}: refused: truth: must be" in out


def test_the_file_is_a_program(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text(json.dumps(GOOD))
    for path, status, said in ((good, 0, f"{good}: made/up (pri"), (tmp_path, 1, "refused: ")):
        done = subprocess.run(
            [sys.executable, "-I", PLACE, path], capture_output=True, text=True, check=False
        )
        assert done.returncode == status
        assert said in done.stdout
        assert not done.stderr


@pytest.mark.parametrize("name", ["ca-fed-appendix-e", "fedar-assumption-7", "fedau-3-step"])
def test_kept_certificates(name: str) -> None:
    """Their numbers are a third and two thirds of the way between the sides that engines found."""
    text = (KEPT / f"{name}.json").read_text(encoding="utf-8")
    found = checker.parsed(text)
    truth, bound = F(found["truth"]), F(found["bound"])
    assert check(found) == (truth, bound)
    with refused("truth: must be at most the quantity, got "):
        check({**found, "truth": str(truth + F(3, 2) * (truth - bound))})
    with refused("bound: must be at least the statement's, got "):
        check({**found, "bound": str(bound - F(3, 2) * (truth - bound))})


def many(n: int, participation: Any, **changes: Any) -> Any:
    """A setting of many clients."""
    problem = {
        **ON_LINE, "hessians": [[["1"]]] * n, "optima": [["1"]] * n,
        "target_weights": [str(F(1, n))] * n,
    }  # fmt: skip
    found = {**setting(changes.pop("algorithm", "FedAvg"), problem=problem), **changes}
    return {**found, "participation": participation}


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (many(15, {"name": "Bernoulli", "availability": ["1/2"] * 15}), "of up to 16384 sets"),
        (
            many(9, {"name": "MarkovOnOff", "availability": ["1/2"] * 9,
                     "correlation": ["1/2"] * 9, "start": None}),
            "of up to 256 sets",
        ),
        (
            many(2, {"name": "FiniteChain", "transition": [[str(F(1, 60))] * 60] * 60,
                     "sets": [[0]] * 60, "start": None}),
            None,
        ),
        (
            many(2, {"name": "FiniteChain", "transition": [[f"{'1' * 40}/{'6' * 40}"] * 6] * 6,
                     "sets": [[0]] * 6, "start": None}),
            None,
        ),
        (setting("averaged", "two of three", 9_000), "setting.rounds: must be fewer"),
        (setting(method("FedAvg", local_steps=2_000)), "local_steps: must be fewer, because"),
    ],
    ids=range(6),
)  # fmt: skip
def test_what_would_take_long_is_refused_before_it_begins(w: Any, message: str | None) -> None:
    if message is None:
        assert known(w).w.law.stationary
    else:
        with refused(message):
            known(w)


def test_long_cutoffs_are_refused() -> None:
    for name in ("weight_error_ratio", "chance_of_absence"):
        w = setting(method("FedAU", cutoff=10**9), rounds=9_999)
        w["participation"] = {"name": "Bernoulli", "availability": [f"1/{'3' * 40}", "1", "1"]}
        with refused("statement.quantity: fractions grow too long"):
            number(name, w)

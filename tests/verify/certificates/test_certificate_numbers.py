"""The checker's moments and numbers against every branch of a run, and against hands."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest

from tests.drawn import a_tenth, in_turn
from tests.part import part
from tests.verify.by_enumeration import (
    OF_PARTICIPANTS,
    STANDARD,
    World,
    logarithm,
    numbers_of,
    paths,
    root,
    rows_of,
)
from tests.verify.certificate_cases import (
    FLAT_CLIENTS,
    HARMONIC,
    IN_PLANE,
    METHODS,
    ON_LINE,
    PARTICIPATION,
    method,
    setting,
)
from tests.verify.certificates.test_certificate_checker import (
    STATEMENT,
    check,
    claim,
    document,
    down,
    known,
    number,
    refused,
)
from tests.verify.checker_alone import checker

F: TypeAlias = Fraction


TIED = [["2", "1/2"], ["1/2", "1"]]


def long_absent(name: Any) -> Any:
    """Six rounds in which clients are absent for up to four on end; one branch."""
    rare = {"name": "Cyclic", "periods": [1, 4, 5], "offsets": [0, 2, 4], "active": [1, 1, 2]}
    return {**setting(name, rounds=6), "participation": rare}


SETTINGS: dict[str, Any] = {
    **{name: setting(name) for name in METHODS},
    **{f"{name}, in the plane": setting(name, "one of two", 2, IN_PLANE) for name in METHODS},
    **{
        f"{name}, {who}": setting(name, who)
        for name in ("FedAU", "FedAR", "FedVarp", "Mifa", "Safari", "FedAvg")
        for who in PARTICIPATION
    },
    **{f"{name}, long absent": long_absent(name) for name in METHODS},
    "FedAU, longer cut-off": long_absent(method("FedAU", cutoff=3)),
    "FedAR, longer cut-off": long_absent(method("FedAR", cutoff=2)),
    "FedAR, no cut-off": long_absent(method("FedAR", cutoff=0)),
    "axes tied": setting("Scaffold", "two of three", 2, {**IN_PLANE, "hessians": [TIED] * 3}),
    "axes apart": setting("Scaffold", "two of three", 2, FLAT_CLIENTS),
    "more rounds": setting("FedAU", "cycles", 6),
    "MIFA waits": setting("Mifa", "cycles", 5),
    "FedAR waits": setting("FedAR", "cycles", 6),
    "warm, and three rounds of which only the first is": setting("warm", rounds=3),
    "everybody chosen": setting(method("F3ast", size=3)),
    "a little noise": setting("Scaffold", problem={**ON_LINE, "sigma": "1/2"}),
    "one round": setting("Safari", rounds=1),
    "without noise": setting("Scaffold", problem={**ON_LINE, "sigma": "0"}),
    "one client": setting(
        method("FedAvg", local_steps=3),
        problem={**ON_LINE, "hessians": [[["2"]]], "optima": [["1"]], "target_weights": ["1"]},
    ),
}
SETTINGS["one client"]["participation"] = {"name": "UniformSubset", "size": 1, "excluded": []}
SETTINGS["one client, assisted"] = {**SETTINGS["one client"], "algorithm": method("Safari")}


# Every method stays in make test, in one of its settings.
DRAWN = {
    one
    for name in METHODS
    for one in part([name, f"{name}, in the plane", f"{name}, long absent"], of=3)
} | set(part(SETTINGS, of=6))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in DRAWN else pytest.mark.soundness) for name in SETTINGS],
)
def test_brackets_hold_what_every_branch_gives(name: str) -> None:
    rows, of_setting = rows_of(SETTINGS[name]), known(SETTINGS[name])
    for of in STANDARD:
        series = of_setting.series(of, 256)
        assert len(series) == len(rows)
        for row, (low, high) in zip(rows, series, strict=True):
            assert low <= row[of] <= high
            assert high - low < F(1, 2**200)


@pytest.mark.parametrize(
    ("w", "of"),
    [
        (setting("Safari", "two of three", 1), OF_PARTICIPANTS),
        (setting("Safari", "one of two", 1, IN_PLANE), OF_PARTICIPANTS),
        (setting("Safari", "on and off", 1), OF_PARTICIPANTS),
        (setting("Safari", problem={**ON_LINE, "sigma": "0"}), OF_PARTICIPANTS),
        (setting("averaged", "on and off"), ("biased_excess_loss",)),
        (setting("WeightedFedAvg", "a chain", 1, IN_PLANE), ("biased_excess_loss",)),
        (setting("averaged", "cycles"), ("biased_excess_loss",)),
    ],
    ids=range(7),
)
def test_other_quantities(w: Any, of: tuple[str, ...]) -> None:
    rows, of_setting = rows_of(w, of), known(w)
    for name in of:
        for row, (low, high) in zip(rows, of_setting.series(name, 256), strict=True):
            assert low <= row[name] <= high
            assert high - low < F(1, 2**200)


def test_quantities_of_participants_need_some() -> None:
    for of in OF_PARTICIPANTS:
        with refused("setting.participation: must have participants in every round"):
            known(empty(setting("FedAU", "a chain"))).series(of, 64)


@pytest.mark.parametrize("name", ["averaged", "Scaffold", "scheduled"])
def test_sums_of_gradients_need_plain_local_steps(name: str) -> None:
    """Elsewhere they would be those of the first round's steps, from the average, uncorrected."""
    with refused("participant_gradient_sum needs plain local SGD, started at the server model"):
        known(setting(name)).series("participant_gradient_sum", 64)


def empty(w: Any) -> Any:
    """Nobody takes part in the first state of a chain."""
    found = copy.deepcopy(w)
    found["participation"]["sets"][0] = []
    return found


@pytest.mark.parametrize(
    "name", ["FedAvg", "FedVarp", "ClusterFedVarp", "FedAR", "Scaffold", "Mifa", "AdaFed", "FedAU"]
)
def test_rounds_without_anybody(name: str) -> None:
    w = empty(setting(name, "a chain"))
    of_setting = known(w)
    for row, (low, high) in zip(
        rows_of(w), of_setting.series("squared_distance", 256), strict=True
    ):
        assert low <= row["squared_distance"] <= high


@pytest.mark.parametrize(
    ("of", "rounds", "reduction"),
    in_turn(
        STANDARD, ([0, 0], [1, 0], [0, -1], [1, -2], [3, 0]), ("last", "mean", "min", "max"), of=3
    ),
)
def test_the_truth_is_decided_to_the_last_digit(of: str, reduction: str, rounds: list[int]) -> None:
    w = setting("Safari", "one of two", 3)
    numbers = [row[of] for row in rows_of(w)][rounds[0] : 4 + rounds[1]]
    exact = {
        "last": numbers[-1], "mean": sum(numbers) / len(numbers), "min": min(numbers),
        "max": max(numbers),
    }[reduction]  # fmt: skip
    quantity = {"of": of, "reduction": reduction, "rounds": rounds, "weights": "1"}
    below = down(exact)
    assert check(document(w, below, "-100", quantity=quantity, bound="-100")) == (below, -100)
    with refused("truth: must be at most the quantity"):
        check(document(w, below + F(2, 10**30), "-100", quantity=quantity, bound="-100"))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("(1 - mu*h/2)**(T - 1 - r)", lambda r: (1 - F(1, 2) * F(2, 5) / 2) ** (3 - 1 - r)),
        ("Max(r - 1, 0)*sqrt(4*K*8)", lambda r: F(max(r - 1, 0))),
        ("1 + r", lambda r: F(1 + r)),
        ("-r + 3", lambda r: F(3 - r)),
    ],
)
def test_weighted_means(text: str, share: Any) -> None:
    w = setting("Safari", "one of two", 3)
    rows = rows_of(w)[:-1]
    shares = [share(r) for r in range(3)]
    exact = sum(s * row["excess_loss"] for s, row in zip(shares, rows, strict=True)) / sum(shares)
    quantity = {"of": "excess_loss", "reduction": "mean", "rounds": [0, -1], "weights": text}
    below = down(exact)
    assert check(document(w, below, "-100", quantity=quantity, bound="-100"))
    with refused("truth: must be at most the quantity"):
        check(document(w, below + F(2, 10**30), "-100", quantity=quantity, bound="-100"))


@pytest.mark.parametrize("text", ["sqrt(2)**2 - 2 + r", "sqrt(2)**2 - 2"])
def test_weights_that_may_be_negative_or_zero_are_refused(text: str) -> None:
    quantity = {"of": "excess_loss", "reduction": "mean", "rounds": [0, -1], "weights": text}
    with refused("'the truth' is too close to an equality to decide"):
        check(document(setting("Safari"), "1/100", quantity=quantity))


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7, 8, 12, 20])
@pytest.mark.parametrize("text", ["sqrt(2 + r)", "(3 - r)*sqrt(1/7)", "r + sqrt(1/100)"])
def test_weighted_means_in_coarse_units(text: str, bits: int) -> None:
    w = setting("Safari", "one of two", 3)
    shares = [
        {"sqrt(2 + r)": root(F(2 + r)), "r + sqrt(1/100)": r + F(1, 10)}.get(
            text, (3 - r) * root(F(1, 7))
        )
        for r in range(3)
    ]
    rows = [row["excess_loss"] for row in rows_of(w)[:-1]]
    exact = sum(s * row for s, row in zip(shares, rows, strict=True)) / sum(shares)
    quantity = {"of": "excess_loss", "reduction": "mean", "rounds": [0, -1], "weights": text}
    stated = document(w, "1/100", quantity=quantity)["statement"]
    low, high = checker._Statement(stated, known(w)).truth(bits)
    assert low - F(1, 10**50) <= exact <= high + F(1, 10**50)
    assert high - low < F(200, 2**bits)


def test_a_bound_is_decided_to_the_last_digit() -> None:
    """The first round's squared distance is (3 - 13/24)^2, above 6."""
    w = setting("Safari", rounds=1)
    quantity = {**STATEMENT["quantity"], "rounds": [0, -1]}
    exact = F(math.isqrt(2 * 10**60), 10**30)
    with refused("bound: must be at least the statement's"):
        check(document(w, "3", exact, bound="sqrt(2)", quantity=quantity))
    assert check(document(w, "3", exact + F(1, 10**30), bound="sqrt(2)", quantity=quantity))
    assert check(document(w, "3", "5/7", bound="5/7", quantity=quantity))
    with refused("bound: must be at least the statement's"):
        check(document(w, "3", "4/7", bound="5/7", quantity=quantity))


@pytest.mark.parametrize(("symbol", "of"), [("G", STANDARD[1]), ("E", STANDARD[2])])
def test_hypotheses_are_decided_in_every_round(symbol: str, of: str) -> None:
    w = setting("Safari", "one of two", 3)
    numbers = [row[of] for row in rows_of(w)][:-1]
    for sign, extreme, off in (("<", max(numbers), 1), (">", min(numbers), -1)):
        near = extreme + F(off, 10**20)
        conditions = {"at most": f"{symbol} {sign} {near}"}
        assert check(document(w, "1/100", conditions=conditions))
        beyond = extreme - F(off, 10**20)
        conditions = {"below": f"{symbol} {sign} {beyond}"}
        with refused(f"conditions.below: not met in round {numbers.index(extreme)}: {symbol}"):
            check(document(w, "1/100", conditions=conditions))


def test_symbols_that_are_reduced_over_rounds() -> None:
    w = setting("Safari", "one of two", 3)
    numbers = [row["squared_distance"] for row in rows_of(w)][:-1]
    mean = sum(numbers) / 3
    near = F(1, 10**20)
    conditions = {"mean": f"M <= {mean + near}", "no less": f"M >= {mean - near}"}
    assert check(document(w, "1/100", conditions=conditions))
    with refused("conditions.mean: not met in round 0"):
        check(document(w, "1/100", conditions={"mean": f"M <= {mean - near}"}))


def test_symbols_along_the_run_may_be_of_other_rounds() -> None:
    """A mean over three rounds beside what is looked at in each of two; it is about 6 here."""
    w = setting("Safari", rounds=2)
    mean = sum(row["squared_distance"] for row in rows_of(w)) / 3
    rules = {**STATEMENT["round_symbols"]}
    rules["M"] = {**rules["M"], "rounds": [0, 0]}
    near = F(1, 10**20)
    conditions = {"both": f"G + M >= {mean - near}", "mean": f"M <= {mean + near}"}
    assert check(document(w, "1/100", conditions=conditions, round_symbols=rules))
    conditions["mean"] = f"M <= {mean - near}"
    with refused("conditions.mean: not met in round 0"):
        check(document(w, "1/100", conditions=conditions, round_symbols=rules))


def test_symbols_that_no_condition_uses_are_not_worked_out() -> None:
    """Nobody takes part now and then, so that a mean over participants has no value."""
    w = empty(setting("FedAU", "a chain"))
    rules = {**STATEMENT["round_symbols"]}
    rules["X"] = {**rules["M"], "of": "participant_excess_loss"}
    assert check(document(w, "1/100", round_symbols=rules))
    with refused("setting.participation: must have participants in every round"):
        check(document(w, "1/100", round_symbols=rules, conditions={"some": "X > 0"}))


def test_several_symbols_of_every_round_meet_in_the_same_round() -> None:
    """E and G are those of one Hessian in one dimension, E = G/2h at every round."""
    w = setting("Safari", "one of two", 3)
    h = 2 * F(1, 2) + F(1, 2) * F(1, 3) + F(1, 6)
    near = F(1, 10**20)
    text = f"Max(2*{h}*E - G, G - 2*{h}*E) <= {near}"
    assert check(document(w, "1/100", conditions={"tied": text}))


NUMBERS = {
    "L", "mu", "sigma", "server_sigma", "n_clients", "rounds", "squared_distance", "Gamma",
    "excess_loss", "participants", "is_warm",
}  # fmt: skip


OF_ONE_STEP = [name for name in SETTINGS if "scheduled" not in name and "averaged" not in name]
OWN_STEPS = {"FedNova": {"client_lr"}, "LocalSgd": {"local_steps"}}


@pytest.mark.parametrize("name", a_tenth(OF_ONE_STEP, of=3))
def test_numbers_of_a_setting(name: str) -> None:
    found, of_setting = numbers_of(SETTINGS[name]), known(SETTINGS[name])
    own = OWN_STEPS.get(SETTINGS[name]["algorithm"]["name"], {"client_lr", "local_steps"})
    assert set(found) >= NUMBERS | (set() if "warm" in name or "momentum" in name else own)
    for symbol, value in found.items():
        low, high = of_setting.number(symbol, 128)
        assert low - F(1, 10**50) <= value <= high + F(1, 10**50)
        assert high - low <= F(1, 2**128)


def test_numbers_by_hand() -> None:
    """On a line with Hessians 2, 1/2, 1, optima 1, -2, 1/3 and weights 1/2, 1/3, 1/6."""
    w = setting("Scaffold")
    # x* = (1 - 1/3 + 1/18)/(1 + 1/6 + 1/6) = (13/18)/(4/3)
    star = F(13, 24)
    pulls = [2 * (star - 1), F(1, 2) * (star + 2), star - F(1, 3)]
    assert number("control_gap", w) == sum(g * g for g in pulls) / 3
    assert number("Gamma", w) == F(1, 4) * (star + 2) ** 2
    assert number("squared_distance", w) == (3 - star) ** 2
    assert number("excess_loss", w) == F(2, 3) * (3 - star) ** 2
    shared = {**ON_LINE, "hessians": [[["2"]]] * 3}
    # x* = 1/2 - 2/3 + 1/18 = -1/9
    assert number("sigma_G", setting("Scaffold", problem=shared)) == 2 * (2 - F(1, 9))
    assert number("is_warm", setting("warm")) == 1
    assert number("has_memory", w) == 0
    assert number("dependence", w) == 0
    assert number("distance_from_uniform", w) == 0
    assert number("q", setting("Safari")) == F(3, 4)
    assert number("assist_lr", setting("Safari")) == F(1, 7)
    assert number("option", w) == 2
    assert number("cutoff", setting("FedAU")) == 2


def test_curvatures_by_hand() -> None:
    """Of diagonal Hessians they are entries; of ((2, 1), (1, 2)) they are 3 and 1."""
    flat = setting("Scaffold", problem=FLAT_CLIENTS)
    assert number("L", flat) == 3
    assert number("mu", flat) == F(1, 2)
    tied = {**IN_PLANE, "hessians": [[["2", "1"], ["1", "2"]]] * 3}
    for name, value in (("L", 3), ("mu", 1)):
        low, high = known(setting("Scaffold", problem=tied)).number(name, 64)
        assert low <= value <= high <= low + F(1, 2**64)


def test_participation_by_hand() -> None:
    excluded = setting("Scaffold", "one of two")
    assert number("participants", excluded) == 1
    assert number("distance_from_uniform", excluded) == F(1, 3)
    # One of two is drawn, and the third never is.
    assert number("least_availability", excluded) == 0
    assert number("largest_availability", excluded) == F(1, 2)
    assert number("has_memory", setting("Scaffold", "independent")) == 0
    independent = setting("Scaffold", "independent")
    assert number("participants", independent) == F(11, 6)
    assert number("distance_from_uniform", independent) == 1
    independent["participation"] = {"name": "Bernoulli", "availability": ["1/2", "1/2", "1"]}
    # two at a time on average; the pairs with client 2 have 1/4 each instead of 1/3
    assert number("distance_from_uniform", independent) == F(1, 2)
    on_off = setting("Scaffold", "on and off")
    assert number("has_memory", on_off) == 1
    # |nu| max(pi, 1 - pi): 1/2 x 1/2 and 1/4 x 2/3
    assert number("dependence", on_off) == F(1, 4)
    assert number("chain_states", on_off) == 4
    assert number("least_availability", on_off) == F(1, 3)
    assert number("largest_availability", on_off) == 1
    assert number("chain_rate", on_off) == F(3, 4)
    assert number("chain_factor", on_off) == F(1, 2) + 1 + F(2, 3)
    assert number("chain_onset", on_off) == 0
    assert number("start_distance", on_off) == 0
    # all off at first: the stationary chance of that is 1/2 x 2/3
    assert number("start_distance", setting("FedAU", "all off at first")) == F(2, 3)
    # a chain's law is (2, 3/2, 1)/(9/2): pi P = pi
    chain = setting("Scaffold", "a chain")
    law = [F(4, 9), F(1, 3), F(2, 9)]
    assert known(chain).w.law.stationary == dict(enumerate(law))
    assert number("participants", chain) == law[0] + 2 * law[1] + law[2]
    assert number("chain_states", chain) == 3
    assert number("has_memory", chain) == 1
    # after the third state comes the first: client 2 then comes with 0 instead of 2/9, client 1
    # with 1/3 after the second state, and client 0, there in 7/9, comes with 1/3 after the second
    assert number("dependence", chain) == F(2, 3) - F(2, 9)
    cycles = setting("FedAU", "cycles")
    assert number("participants", cycles) == 1 + F(1, 2) + F(2, 3)
    assert number("dependence", cycles) == F(2, 3)
    waiting = setting("FedAvg", "waiting")  # for 2, 3 and 2 + 3 - 3/2 rounds
    mean_wait = (2 + 3 + F(7, 2)) / 3
    assert number("participants", waiting) == 2 / mean_wait
    assert number("has_memory", waiting) == 1
    assert number("chain_states", waiting) == 4 + 2 + 2
    nothing = {**waiting, "participation": {**waiting["participation"], "availability": ["1"] * 3}}
    assert number("participants", nothing) == 2
    assert number("has_memory", nothing) == 0
    alike = {"name": "FiniteChain", "transition": [["1/2", "1/2"]] * 2, "sets": [[0, 1], [2]],
             "start": None}  # fmt: skip
    assert number("has_memory", {**chain, "participation": alike}) == 0
    assert number("has_memory", {**chain, "participation": {**alike, "start": 0}}) == 1
    everyone = {"name": "MarkovOnOff", "availability": ["1", "1/2", "0"],
                "correlation": ["0", "0", "0"], "start": None}  # fmt: skip
    assert number("has_memory", {**chain, "participation": everyone}) == 0
    assert number("chain_states", {**chain, "participation": everyone}) == 2
    assert number("chain_rate", {**chain, "participation": everyone}) == F(1, 2)
    fixed = {**chain, "participation": {**everyone, "availability": ["1", "1", "0"]}}
    assert number("chain_states", fixed) == 1
    assert number("chain_rate", fixed) == F(1, 2)
    assert number("chain_factor", fixed) == 3


CA_FED = {
    "algorithm": {
        "name": "AveragedIterate", "weights": HARMONIC, "algorithm": {
            "name": "Projected", "onto": {"centre": ["1/2"], "radius": "5"}, "algorithm": {
                "name": "Scheduled", "step_sizes": HARMONIC, "algorithm": {
                    **method("WeightedFedAvg", server_lr="1"),
                    "aggregation_weights": ["1/2", "1/4"],
                },
            },
        },
    },
    "problem": {
        "hessians": [[["2"]], [["1"]]], "optima": [["1"], ["-2"]], "sigma": "0",
        "server_sigma": "0", "target_weights": ["1/2", "1/2"],
    },
    "participation": {
        "name": "MarkovOnOff", "availability": ["1/2", "1/3"], "correlation": ["1/2", "0"],
        "start": None,
    },
    "rounds": 4, "x0": ["3"],
}  # fmt: skip


def test_numbers_of_ca_fed_by_hand() -> None:
    """p = (1/4, 1/12) over 1/3 = (3/4, 1/4); w_B* = (3/2 - 1/2)/(7/4) = 4/7, w* = 0."""
    assert number("total_weight", CA_FED) == F(3, 4)
    assert number("least_weight", CA_FED) == F(1, 4)
    assert number("mean_weight", CA_FED) == F(1, 3)
    assert number("mean_squared_weight", CA_FED) == F(1, 8) + F(1, 48)
    assert number("biased_squared_distance", CA_FED) == F(17, 7) ** 2
    assert number("biased_Gamma", CA_FED) == F(18, 7) ** 2 / 2
    assert number("radius", CA_FED) == 5
    assert number("reach_of_optima", CA_FED) == F(5, 2)
    assert number("reach_of_minimisers", CA_FED) == F(5, 2)
    assert number("reach_of_start", CA_FED) == F(5, 2)
    # D = 2 (1/2 + 5), H = (5 + 1/2)^2 - (3/7)^2, the second client's being 7.5^2/2 - (18/7)^2/2
    assert number("largest_gradient", CA_FED) == 11
    assert number("largest_loss_change", CA_FED) == F(11, 2) ** 2 - F(9, 49)
    assert number("first_step", CA_FED) == F(1, 5)
    assert number("step_decay", CA_FED) == 1
    assert number("step_sum", CA_FED) == F(1, 5) + F(1, 7) + F(1, 9) + F(1, 11)
    far = copy.deepcopy(CA_FED)
    far["problem"]["optima"][1] = ["-30"]
    # w_B* = (3/2 - 15/2)/(7/4): the second client's loss there is larger than anywhere in W
    assert number("largest_loss_change", far) == max(
        F(36) ** 2 / 2 - (30 - F(24, 7)) ** 2 / 2, (30 - F(24, 7)) ** 2 / 2
    )


def test_sums_over_all_rounds() -> None:
    """Of (1/2)/(t + 3/2) and of 1/t: trigamma(5/2)/4 and pi^2/6, to 7 digits."""
    low, high = known(CA_FED).number("step_square_sum", 64)
    assert low < F(1225895, 10**7) < high + F(1, 10**6)
    assert high - low < F(1, 10**8)
    exact = (math.pi**2 / 2 - 4 - F(4, 9)) / 4
    assert float(low) <= float(exact) + 1e-12
    assert float(high) >= float(exact) - 1e-12
    low, high = known(CA_FED).number("inverse_square_sum", 64)
    assert float(low) <= math.pi**2 / 6 + 1e-15
    assert float(high) >= math.pi**2 / 6 - 1e-15
    assert high - low < F(1, 10**9)


def mixing_like(correlation: str, **changes: Any) -> Any:
    """CA-Fed's setting with another chain, other step sizes or another ball."""
    w = copy.deepcopy(CA_FED)
    w["participation"]["correlation"] = [correlation, "0"]
    projected = w["algorithm"]["algorithm"]
    projected["onto"] |= {k: v for k, v in changes.items() if k in ("centre", "radius")}
    projected["algorithm"]["step_sizes"] = {
        **HARMONIC, **{k: v for k, v in changes.items() if k in ("scale", "offset")}
    }  # fmt: skip
    w["problem"] |= {k: v for k, v in changes.items() if k == "optima"}
    return w


def delays(rate: F, factor: F, change: F, last: int) -> list[int]:
    """Return J_1, J_2, ...: the least m that has 2 C_P H t lambda^m <= 1, t at most."""
    found, m, power = [], 0, F(1)
    for t in range(1, last + 1):
        while 2 * factor * change * t * power > 1:
            m, power = m + 1, power * rate
        found.append(m)
    return found


def at_equality() -> Any:
    """Chains of C_P = 1 and losses that change by H = 1/2: 2 C_P H t lambda^m is 1 at once."""
    w = mixing_like("1/2", radius="1", centre=["1"], optima=[["1"], ["1"]])
    w["problem"]["hessians"] = [[["1"]]] * 2
    w["participation"]["availability"] = ["1/2", "1/2"]
    return w


_FACTOR, _CHANGE = F(1, 2) + F(2, 3), F(11, 2) ** 2 - F(9, 49)


@pytest.mark.parametrize(
    ("w", "rate", "factor", "change"),
    [
        (mixing_like("1/2"), F(3, 4), _FACTOR, _CHANGE),
        (mixing_like("31/32"), F(63, 64), _FACTOR, _CHANGE),
        (at_equality(), F(3, 4), F(1), F(1, 2)),
    ],
    ids=["fast", "slow", "at equality"],
)
def test_delayed_sums(w: Any, rate: F, factor: F, change: F) -> None:
    """The first n = 1024 terms by their definition, and the rest as the checker's text says.

    What is left of sum 1/(t - J_t + o)^2 is above the integral of 1/(t - m_n + o)^2 from n + 1 on,
    and below that of 1/(a (t - n) + b)^2 from n on, with a = 1 - 1/(n (1 - lambda)) and
    b = n - m_n - 1 + o. With ln t, that is ln n and ln(t/n): the latter, by parts, adds the
    integral of 1/(a (a (t - n) + b) t), and a (t - n) + b is at least min(a, b/n) t.
    """
    n, o, s = 1024, F(3, 2), F(1, 4)
    m = delays(rate, factor, change, n)
    terms = [s / (t - min(m_t, t) + o) ** 2 for t, m_t in enumerate(m, start=1)]
    unit = F(1, 2**220)
    total = sum(math.floor(term / unit) for term in terms) * unit
    of_logs = sum(math.floor(logarithm(F(t)) * v / unit) for t, v in enumerate(terms, start=1))
    b, a = n - m[-1] - 1 + o, 1 - 1 / (n * (1 - rate))
    rest, most, log_n = s / (n + 1 - m[-1] + o), s / (a * b), logarithm(F(n))
    (low, high), (log_low, log_high) = known(w).delayed("chain_factor", 16)
    near = F(1, 2**110)
    # a logarithm is known to 64 bits after the point, but for k + 1 < 12 times 64 roundings
    wide = F(2 * 12 * 64, 2**64) * total
    assert total + rest - near <= low <= total + rest
    assert total + most - near <= high - near <= total + most
    assert of_logs * unit + rest * log_n - wide <= log_low <= of_logs * unit + rest * log_n
    more = s / (a * min(a, b / n) * n)
    exact = of_logs * unit + most * log_n + more
    assert exact - near <= log_high <= exact + wide


@pytest.mark.parametrize(
    ("correlation", "scale"),
    [("1/2", "1/2"), ("31/32", "1/2"), ("1/2", f"1/{2**70}")],
    ids=["fast", "slow", "steps below the last digit that is kept"],
)
def test_delayed_sums_hold_the_truth(correlation: str, scale: str) -> None:
    """A million terms in floats, and what is left of 1/t^2 and ln(t)/t^2 beyond."""
    w = mixing_like(correlation, scale=scale)
    of = known(w)
    low, high = of.number("delayed_square_sum", 16)
    log_low, log_high = of.number("delayed_log_sum", 16)
    rate, t = (1 + float(F(correlation))) / 2, np.arange(1, 10**6 + 1)
    needed = np.log(2 * (1 / 2 + 2 / 3) * (5.5**2 - 9 / 49) * t) / -math.log(rate)
    m, square = np.maximum(0, np.ceil(needed)), float(F(scale)) ** 2
    terms = square / (t - np.minimum(m, t) + 1.5) ** 2
    left = square / (t[-1] - m[-1])
    assert float(low) <= terms.sum() + left * 1.001
    assert float(high) >= terms.sum() + left * 0.999
    logs, more = (np.log(t) * terms).sum(), left * (math.log(10**6) + 1)
    assert float(log_low) <= logs + more * 1.001
    assert float(log_high) >= logs + more * 0.999


def test_delayed_sums_of_chains_that_mix_barely() -> None:
    """Of n = 1024 terms, n (1 - lambda) must be 2 at least, however little the losses change."""
    still: dict[str, Any] = {"radius": "1/1000000", "centre": "1", "optima": [["1"], ["1"]]}
    still["centre"] = ["1"]
    assert known(mixing_like("255/256", **still)).delayed("chain_factor", 16)
    for w in (mixing_like("256/257", **still), mixing_like("1/2", offset="1025")):
        with refused("statement.symbols: the chain mixes too slowly"):
            known(w).delayed("chain_factor", 16)
    assert known(mixing_like("1/2", offset="1024")).delayed("chain_factor", 16)
    # J_1024 is 1023, and 1024 in the larger ball
    assert known(mixing_like("31/32", radius="637/10")).delayed("chain_factor", 16)
    for w in (mixing_like("31/32", radius="321/5"), mixing_like("127/128")):
        with refused("statement.symbols: the chain mixes too slowly"):
            known(w).delayed("chain_factor", 16)


def test_a_projection_must_be_idle() -> None:
    rows = known(CA_FED).series("squared_distance", 128)
    plain = copy.deepcopy(CA_FED)
    plain["algorithm"]["algorithm"] = plain["algorithm"]["algorithm"]["algorithm"]
    assert rows == known(plain).series("squared_distance", 128)
    assert rows[0][0] <= 9 <= rows[0][1]

    def with_ball(radius: str, centre: str = "1/2", **changes: Any) -> Any:
        found = copy.deepcopy(CA_FED)
        found["algorithm"]["algorithm"]["onto"] = {"centre": [centre], "radius": radius}
        found["problem"] |= changes
        return found

    # After the first round the model is at most at 3, where nobody comes.
    assert known(with_ball("5/2")).series("squared_distance", 64)
    with refused("setting.algorithm.onto: the projection may move the model"):
        known(with_ball("249/100")).series("squared_distance", 64)
    with refused("setting.algorithm.onto: the projection may move the model"):
        known(with_ball("1", "3")).series("squared_distance", 64)
    with refused("setting.algorithm.onto: a projection needs exact gradients"):
        known(with_ball("100", sigma="1/10")).series("squared_distance", 64)
    with refused("setting.algorithm.onto: a projection needs exact gradients"):
        known(with_ball("100", server_sigma="1/10")).series("squared_distance", 64)
    counted = with_ball("100")
    counted["algorithm"] = {**counted["algorithm"]["algorithm"], "algorithm": method("FedAU")}
    with refused("setting.algorithm.onto: a projection needs exact gradients, and weights that"):
        known(counted).series("squared_distance", 64)
    counted["algorithm"]["algorithm"] = method("FedAvg")
    assert known(counted).series("squared_distance", 64)


def test_a_ball_may_be_anywhere() -> None:
    """What was above, ten to the right, x* no longer being 0."""
    for radius, is_idle in (("5/2", True), ("249/100", False)):
        w = copy.deepcopy(CA_FED)
        w["algorithm"]["algorithm"]["onto"] = {"centre": ["21/2"], "radius": radius}
        w["problem"]["optima"], w["x0"] = [["11"], ["8"]], ["13"]
        if is_idle:
            assert known(w).series("squared_distance", 64)
        else:
            with refused("setting.algorithm.onto: the projection may move the model"):
                known(w).series("squared_distance", 64)


def with_and_without_ball(algorithm: Any) -> tuple[Any, Any]:
    """Return CA-Fed's setting with another algorithm, projected onto a wide ball and not."""
    inside, plain = copy.deepcopy(CA_FED), copy.deepcopy(CA_FED)
    ball = {"centre": ["0"], "radius": "20"}
    inside["algorithm"]["algorithm"] = {"name": "Projected", "onto": ball, "algorithm": algorithm}
    plain["algorithm"]["algorithm"] = algorithm
    return inside, plain


def test_a_ball_around_an_average_of_what_remembers() -> None:
    """It is the last model that is projected, not its average, nor the memory."""
    w, plain = with_and_without_ball(method("FedVarp"))
    assert known(w).series("squared_distance", 64) == known(plain).series("squared_distance", 64)


def test_a_ball_is_left_only_by_what_may_happen() -> None:
    """Steps of the server's own would leave it, were there any: q = 1."""
    for q, is_idle in (("1", True), ("99/100", False)):
        w, _ = with_and_without_ball(method("Safari", q=q, assist_lr="1000"))
        if is_idle:
            assert known(w).series("squared_distance", 64)
        else:
            with refused("setting.algorithm.onto: the projection may move the model"):
                known(w).series("squared_distance", 64)


def test_a_ball_takes_work_that_counts() -> None:
    """At least a unit for each number of the state, round and set of participants."""
    w, plain = with_and_without_ball(method("FedAvg"))
    spent = []
    for one in (w, plain):
        found = known(one)
        found.series("squared_distance", 64)
        spent.append(found.effort._spent)
    assert spent[0] >= spent[1] + 2 * w["rounds"]


def test_axes_are_worked_out_apart_where_nothing_ties_them() -> None:
    assert [len(run.block.axes) for run in known(SETTINGS["axes apart"]).runs] == [1, 1]
    assert [len(run.block.axes) for run in known(SETTINGS["axes tied"]).runs] == [2]


def test_quantities_of_the_setting_itself() -> None:
    """FedAU's step with p = 1/2, K = 3 and t = 1: 1/4 over 3/16; the others by hand."""
    fedau = setting(method("FedAU", cutoff=3), rounds=2)
    fedau["participation"] = {"name": "Bernoulli", "availability": ["1/2"] * 3}
    assert number("weight_error_ratio", fedau) == F(4, 3)
    assert check(claim("weight_error_ratio", fedau, "4/3"))
    with refused("truth: must be at most the quantity"):
        check(claim("weight_error_ratio", fedau, "134/100"))
    # p = 2/3, K = 2: Var S = 2/9, so that p^2 Var S + 1/81 is 1/9, the error while omega is 1; at
    # t = 2 omega is 1, 3/2 or 2, with chances 4/9, 2/9 and 1/3: (1/9)(4/9) + (1/9)(1/3) is less.
    fedau["algorithm"]["cutoff"] = 2
    fedau["rounds"] = 3
    fedau["participation"]["availability"] = ["2/3"] * 3
    assert number("weight_error_ratio", fedau) == 1
    absent = setting(method("FedAU", cutoff=1), rounds=3)
    absent["participation"] = {"name": "Bernoulli", "availability": ["1/2", "1", "1"]}
    # of 8 runs of three rounds, those that are twice absent on end: 3
    assert number("chance_of_absence", absent) == F(3, 8)
    absent["participation"]["availability"] = ["1/2", "1/2", "1"]
    assert number("chance_of_absence", absent) == 1 - F(5, 8) ** 2
    convex = copy.deepcopy(CA_FED)
    # p = (3/4, 1/4), nu ~ (1/3, 1), q/Q = (2/3, 1/3): nu = (1/4, 3/4)
    d, e = (F(1, 2), F(-1, 2)), (F(-5, 12), F(5, 12))
    weights = (4, F(4, 3))
    dot = sum(a * b * w for a, b, w in zip(d, e, weights, strict=True))
    assert number("weight_convexity", convex) == dot + F(1, 2) * F(5, 12) * sum(weights)


@pytest.mark.parametrize("who", ["independent", "on and off", "all off at first", "a chain"])
@pytest.mark.parametrize("cutoff", [1, 2])
def test_the_chance_of_absence_over_every_path(who: str, cutoff: int) -> None:
    w = setting(method("FedAU", cutoff=cutoff), who, 4)
    exact = F(0)
    for chance, sets in paths(World(w), 4):
        spells = [
            [all(i not in s for s in sets[t : t + cutoff + 1]) for t in range(4 - cutoff)]
            for i in range(3)
        ]
        exact += chance * any(map(any, spells))
    assert number("chance_of_absence", w) == exact > 0


@pytest.mark.parametrize("p", [F(1, 2), F(1, 3), F(3, 4)])
@pytest.mark.parametrize("cutoff", [1, 2, 3])
@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_errors_of_fedau_over_every_path(p: F, cutoff: int, rounds: int) -> None:
    """E(p omega_t - 1)^2 over p^2 Var S/floor(t/K) + (1 - p)^2K, with S an interval cut off.

    And over 2K(1 - p)/t + (1 - p)^2K. Of the three clients two are always there, without error.
    """
    w = setting(method("FedAU", cutoff=cutoff), rounds=rounds)
    w["participation"] = {"name": "Bernoulli", "availability": [str(p), "1", "1"]}
    lengths = [*[(k, p * (1 - p) ** (k - 1)) for k in range(1, cutoff)]]
    lengths.append((cutoff, 1 - sum(chance for _, chance in lengths)))
    mean = sum(k * chance for k, chance in lengths)
    variance = sum(k * k * chance for k, chance in lengths) - mean**2
    errors = [(1 - p) ** 2]
    for t in range(1, rounds):
        error = F(0)
        for path in product((True, False), repeat=t):
            ended, since = [], 0
            for is_there in path:
                since += 1
                if is_there or since == cutoff:
                    ended, since = [*ended, since], 0
            omega = F(sum(ended), len(ended)) if ended else F(1)
            error += p ** sum(path) * (1 - p) ** (t - sum(path)) * (p * omega - 1) ** 2
        errors.append(error)
    late = (1 - p) ** (2 * cutoff)
    later = range(1, rounds)
    limits = [p**2 * variance / max(t // cutoff, 1) + late for t in later]
    assert [checker._counted(p, cutoff)(t) for t in later] == limits
    counted = [errors[t] / limit for t, limit in zip(later, limits, strict=True)]
    assert number("weight_error_ratio", w) == max(counted, default=0)
    assert number("late_weight_error_ratio", w) == max(counted[cutoff - 1 :], default=0)
    lines = [errors[t] / (2 * cutoff * (1 - p) / t + late) for t in later]
    assert number("weight_error_share", w) == max(lines, default=0)
    assert number("mean_weight_error", w) == sum(errors) / rounds / 3
    assert number("mean_lasting_absence", w) == late / 3
    assert number("mean_absence", w) == (1 - p) / 3
    assert number("mean_squared_absence", w) == (1 - p) ** 2 / 3
    assert number("harmonic_sum", w) == {1: 0, 2: 1, 6: F(137, 60)}[rounds]


def test_shares_of_ca_fed_by_hand() -> None:
    """alpha = (1/2, 1/2), p = (3/4, 1/4), H = 3/2, H_B = 7/4, x* = 0, w_B = 4/7, L/mu = 2.

    The tightest w has (8 H_B - H)(w - w_B) = H w_B: w - w_B = (6/7)/(25/2), w = 16/25.
    """
    assert number("chi_square", CA_FED) == F(1, 12) + F(1, 4)
    assert number("total_variation", CA_FED) == F(1, 4)
    assert number("share_curvature", CA_FED) == 1 - 2 * F(2, 3) ** 2
    assert number("tightest_excess", CA_FED) == F(3, 4) * F(16, 25) ** 2
    assert number("tightest_biased_excess", CA_FED) == F(7, 8) * F(12, 175) ** 2
    # z = 1 and y = (1/2 - 1/3) (1/2)/(1/3) = 1/4 of the first client, b = 1/3, p = 3/4
    assert number("summand_curvature", CA_FED) == F(13, 12) / 4 / (F(1, 3) + F(3, 4) / 16)
    # L/mu = 6, of other losses: x* = 5/7, w_B = 17/19, H = 7/4 and H_B = 19/8
    other = {**CA_FED, "problem": {**CA_FED["problem"], "hessians": [[["3"]], [["1/2"]]]}}
    other["problem"]["optima"] = [["1"], ["-1"]]
    steep, bent, mean = 72, F(19, 8), F(7, 4)
    w_b, star = F(9, 4) / bent - F(1, 8) / bent, F(5, 7)
    w = (steep * bent * w_b - mean * star) / (steep * bent - mean)
    assert number("tightest_excess", other) == mean * (w - star) ** 2 / 2
    assert number("tightest_biased_excess", other) == bent * (w - w_b) ** 2 / 2
    alone = {
        **CA_FED["problem"], "hessians": [[["2"]]], "optima": [["1"]], "target_weights": ["1"],
    }  # fmt: skip
    w = {**setting("WeightedFedAvg", problem=alone), "x0": ["3"]}
    w["algorithm"] = {**w["algorithm"], "aggregation_weights": ["1"]}
    w["participation"] = {"name": "Bernoulli", "availability": ["1/2"]}
    assert number("summand_curvature", w) == 0
    tied = setting("WeightedFedAvg", problem={**IN_PLANE, "hessians": [TIED] * 3})
    with refused("the tightest point needs L and mu as fractions"):
        number("tightest_excess", tied)


@pytest.mark.parametrize("pi", [("1/2", "1/3", "1"), ("1/3", "1/2", "1/2"), ("1", "1/5", "1/5")])
def test_the_sharpest_bend_of_a_summand(pi: tuple[str, ...]) -> None:
    """From the second derivative s of (p - alpha)^2/p, as (b + p) z y is b z^2 + p y^2 - s/2.

    Of all steps v, sum v = 0, the best has y = alpha/p where z = 1, if it can be had.
    """
    w = setting("WeightedFedAvg", "independent")
    w["participation"] = {"name": "Bernoulli", "availability": list(pi)}
    w["algorithm"]["aggregation_weights"] = ["1/3", "1/9", "2"]
    chances, q = [F(text) for text in pi], [F(1, 3), F(1, 9), F(2)]
    alpha, h = [F(1, 2), F(1, 3), F(1, 6)], F(1, 10**30)

    def bend(k: int, v: list[F]) -> F:
        def summand(t: F) -> F:
            shares = [a * (b + t * c) for a, b, c in zip(chances, q, v, strict=True)]
            return (shares[k] / sum(shares) - alpha[k]) ** 2 / (shares[k] / sum(shares))

        second = (summand(h) - 2 * summand(F(0)) + summand(-h)) / h**2
        total = sum(a * b for a, b in zip(chances, q, strict=True))
        y = sum(a * c for a, c in zip(chances, v, strict=True)) / total
        p, z = chances[k] * q[k] / total, v[k] / q[k]
        return 1 - second / 2 / (alpha[k] ** 2 / p * z**2 + p * y**2)

    found, best = number("summand_curvature", w), F(0)
    total = sum(a * b for a, b in zip(chances, q, strict=True))
    for k in range(3):
        i, j = (other for other in range(3) if other != k)
        wanted = alpha[k] / (chances[k] * q[k] / total) * total - chances[k] * q[k]
        v = [F(0)] * 3
        v[k] = q[k]
        if chances[i] == chances[j]:
            v[i] = -q[k]
        else:
            # v_i + v_j = -q_k, pi_i v_i + pi_j v_j = y pi'q - pi_k q_k
            v[i] = (wanted + chances[j] * q[k]) / (chances[i] - chances[j])
            v[j] = -q[k] - v[i]
        best = max(best, bend(k, v))
        for steps in product((F(-1), F(1, 3), F(2)), repeat=2):
            assert bend(k, [*steps, -sum(steps)]) <= found + F(1, 10**20)
    assert abs(best - found) < F(1, 10**20)


@pytest.mark.parametrize("sigma", ["1/9", "1", "5"])
@pytest.mark.parametrize("availability", [("1/2", "1/3", "3/4"), ("1/5", "1/4", "1/5")])
def test_the_weights_of_fastest_convergence(sigma: str, availability: tuple[str, ...]) -> None:
    """Where (1/2 q'Aq + b)/(pi'q) is least its slopes are theta where q > 0, and no less else."""
    w = mixing_like("1/2")
    third = {"hessians": [[["2"]]] * 3, "optima": [["1"], ["-2"], ["0"]], "sigma": sigma,
             "target_weights": ["1/2", "1/4", "1/4"]}  # fmt: skip
    w["problem"] |= third
    w["participation"] |= {"availability": list(availability), "correlation": ["0", "0", "1/2"]}
    inner = w["algorithm"]["algorithm"]["algorithm"]["algorithm"]
    inner["aggregation_weights"] = ["1/2", "1/4", "2"]
    found = known(w)
    (low, high), _ = checker._price(found, 64)
    assert 0 <= high - low < F(1, 10**8)
    pi = np.array([float(F(text)) for text in availability])
    left = np.maximum(1 - float(low) / pi, 0)
    q = 2.75 * left / left.sum()
    squares = (math.pi**2 / 2 - 4 - F(4, 9)) / 4
    a = float(F(sigma)) ** 2 * float(squares) * pi
    # x* is -0, x0 3, two local steps, and 2^3 sets of clients
    star = 1 / 2 - 1 / 2
    b = 2 * (3 - star) ** 2 / 2 + 8 * 2.75 * (float(squares) + math.pi**2 / 6) / 4
    ratio = (a @ q**2 / 2 + b) / (pi @ q)
    slopes = ratio * pi - a * q
    theta = [float(end) for end in found.number("weight_multiplier", 64)]
    size = abs(theta[0]) + ratio
    assert theta[1] - theta[0] < 1e-6 * size
    assert theta[0] - 1e-8 * size <= slopes[q > 0].min()
    assert slopes[q > 0].max() <= theta[1] + 1e-8 * size
    assert (slopes[q == 0] <= theta[1]).all()
    pairs = [(q[i], q[j]) for i, j in product(range(3), repeat=2) if pi[i] < pi[j] and q[i] > 0]
    ends = [float(end) for end in found.number("weight_inversion", 64)]
    largest = max((x / y for x, y in pairs), default=0.0)
    assert ends[0] - 1e-9 <= largest <= ends[1] + 1e-9
    assert ends[1] - ends[0] < 1e-6


@pytest.mark.parametrize("sigma", ["1/9", "1", "5"])
def test_the_weights_of_fastest_convergence_between_wide_sums(sigma: str) -> None:
    """Where sum eta_t^2 is between 1/5 and 3/10, and sum 1/t^2 between 1 and 2: both extremes.

    pi = (1/2, 1/3), Q = 3/4, two local steps from 3, x* = 0, four sets: b is 9 + 3/4 (1/5 + 1) at
    least and 9 + 3/4 (3/10 + 2) at most.
    """
    w = {**CA_FED, "problem": {**CA_FED["problem"], "sigma": sigma}}
    found = known(w)
    found._numbers["step_square_sum", 64] = F(1, 5), F(3, 10)
    found._numbers["inverse_square_sum", 64] = F(1), F(2)
    square = F(sigma) ** 2
    a, b = (square / 5, square * F(3, 10)), (9 + F(3, 4) * F(6, 5), 9 + F(3, 4) * F(23, 10))

    def side(u: F) -> F:
        left = [max(1 - 2 * u, F(0)), max(1 - 3 * u, F(0))]
        spread = left[0] ** 2 / 2 + left[1] ** 2 / 3
        return F(9, 16) * (u / sum(left) + spread / (2 * sum(left) ** 2))

    ends, scale = checker._price(found, 64)
    assert scale == a
    wanted = b[0] / a[1], b[1] / a[0]
    assert side(ends[0]) <= wanted[0] < side(ends[0] + F(1, 2**63))
    assert side(ends[1] - F(1, 2**63)) < wanted[1] <= side(ends[1])
    u = [float(end) for end in ends]
    total = [max(1 - 2 * x, 0) + max(1 - 3 * x, 0) for x in u]
    corners = [float(x) * 3 / 4 * y / z for x in a for y, z in zip(u, total, strict=True)]
    multiplier = [float(end) for end in found.number("weight_multiplier", 64)]
    assert multiplier == pytest.approx([min(corners), max(corners)], rel=1e-6)
    ratios = [max(1 - 3 * x, 0) / (1 - 2 * x) for x in u]
    inversion = [float(end) for end in found.number("weight_inversion", 64)]
    assert inversion == pytest.approx([ratios[1], ratios[0]], rel=1e-9)


@pytest.mark.parametrize(
    ("of", "rate", "factor", "change"),
    [
        (mixing_like("1/2"), F(3, 4), _FACTOR, _CHANGE),
        (mixing_like("-1/4"), F(5, 8), _FACTOR, _CHANGE),
        (mixing_like("31/32"), F(63, 64), _FACTOR, _CHANGE),
        (at_equality(), F(3, 4), F(1), F(1, 2)),
    ],
    ids=["fast", "in turn", "slow", "at equality"],
)
@pytest.mark.parametrize("rounds", [1, 2, 40])
def test_sums_over_a_run(of: Any, rate: F, factor: F, change: F, rounds: int) -> None:
    """eta_t = (1/2)/(t + 3/2); J_t is cut to t - 1, and what is cut is not in the second sum."""
    w = {**of, "rounds": rounds}
    eta = [F(1, 2) / (t + F(3, 2)) for t in range(1, rounds + 1)]
    wanted = delays(rate, factor, change, rounds)
    cut = [min(m, t) for t, m in enumerate(wanted)]
    pairs = list(zip(cut, wanted, strict=True))
    expected = {
        "run_square_sum": sum(each**2 for each in eta),
        "run_delay_sum": sum(j * eta[t - j] ** 2 for t, j in enumerate(cut)),
        "run_unmixed_sum": sum(
            eta[t] * factor * rate**j for t, (j, m) in enumerate(pairs) if j == m
        ),
    }
    for name, exact in expected.items():
        low, high = known(w).number(name, 64)
        assert low <= exact <= high
        assert high - low <= F(rounds**2, 2**128)


def test_the_work_of_sums_over_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten units a round, one for each ten bits of 64^m, and as many for each m on the way.

    lambda = 63/64 and 2 C_P H = 7/3 (121/4 - 9/49): m is 270 in the first round, and 64^270 has
    1,621 bits; m is 314 in the second, and 64^314 has 1,885.
    """
    counted: list[int] = []
    found = known({**mixing_like("31/32"), "rounds": 2})
    found.number("largest_loss_change", 64)
    monkeypatch.setattr(checker._Effort, "spend", lambda self, units: counted.append(units))
    found.number("run_delay_sum", 64)
    on_the_way = [(6 * m + 1) // 10 for m in range(1, 315)]
    assert counted == [*on_the_way[:270], 10 + 162, *on_the_way[270:], 10 + 188] * 2


def test_sums_over_a_run_of_far_too_slow_chains() -> None:
    wide = mixing_like("31/32", radius="1" + "0" * 99)
    wide["problem"]["hessians"] = [[["2"]], [["1" + "0" * 99]]]
    wide["problem"]["optima"] = [["0"], ["1" + "0" * 99]]
    with refused("setting: the run takes more than 20000000 units of work"):
        known(wide).number("run_delay_sum", 64)


def test_extents_are_those_of_the_far_ends() -> None:
    """1/3 + a/2 - b/4 with a in [-1, 2] and b in [1, 5]: from 1/3 - 1/2 - 5/4 to 1/3 + 1 - 1/4."""
    box = [(F(1), F(1)), (F(-1), F(2)), (F(1), F(5))]
    low, high = checker._extent({0: F(1, 3), 1: F(1, 2), 2: F(-1, 4)}, box)
    unit = F(1, 2**checker.FINEST)
    assert low * unit <= F(-17, 12) < (low + 1) * unit
    assert (high - 1) * unit < F(13, 12) <= high * unit


def test_weights_that_are_not_convex_enough_by_the_definition() -> None:
    """d.e + |d||e|, with products weighted by 1/nu: p - nu and nu - q/Q, nu ~ alpha^2/p."""
    w = setting("WeightedFedAvg", "independent")
    alpha, pi = (F(1, 2), F(1, 3), F(1, 6)), (F(1, 2), F(1, 3), F(1))
    w["algorithm"]["aggregation_weights"] = ["1/3", "1/9", "2"]
    q = (F(1, 3), F(1, 9), F(2))
    shares = [a * b for a, b in zip(pi, q, strict=True)]
    p = [share / sum(shares) for share in shares]
    ratios = [a * a / b for a, b in zip(alpha, p, strict=True)]
    nu = [ratio / sum(ratios) for ratio in ratios]
    d = [a - b for a, b in zip(p, nu, strict=True)]
    e = [a - b / sum(q) for a, b in zip(nu, q, strict=True)]

    def times(x: list[F], y: list[F]) -> F:
        return sum((a * b / c for a, b, c in zip(x, y, nu, strict=True)), F(0))

    exact = times(d, e) + root(times(d, d) * times(e, e))
    low, high = known(w).number("weight_convexity", 64)
    assert low <= exact + F(1, 10**55)
    assert exact <= high
    assert high - low == F(1, 2**64)


@pytest.mark.parametrize(
    ("name", "w", "message"),
    [
        ("q", setting("FedAvg"), "statement.symbols: FedAvg has no q"),
        ("cutoff", setting("FedAU uncut"), "statement.symbols: FedAU has no cutoff"),
        ("sigma_G", setting("FedAvg"), "sigma_G is infinite because Hessians differ"),
        ("client_lr", setting("scheduled"), "client_lr depends on the round"),
        (
            "control_gap",
            setting("warm"),
            "control_gap is known only for controls that start at zero",
        ),
        (
            "control_gap",
            setting("FedVarp"),
            "control_gap is known only for controls that start at zero",
        ),
        ("total_weight", setting("FedAvg"), "the algorithm has no aggregation_weights"),
        ("chain_rate", setting("FedAvg"), "mixing is known only for one chain per client"),
        ("radius", setting("FedAvg"), "the algorithm has no ball W"),
        ("step_sum", setting("FedAvg"), "step sizes are not scheduled"),
        ("weight_error_ratio", setting("FedVarp"), "FedVarp has no cutoff"),
        ("weight_error_ratio", setting("FedAR"), "weight errors are known only for FedAU"),
        (
            "weight_error_ratio",
            setting("FedAU", "cycles"),
            "weight errors are known only for FedAU",
        ),
    ],
)
def test_numbers_that_a_setting_does_not_have(name: str, w: Any, message: str) -> None:
    with refused(message):
        number(name, w)


def test_sums_that_are_infinite() -> None:
    for steps in ({"name": "Constant", "value": "1/2"}, {**HARMONIC, "offset": "0"}):
        w = copy.deepcopy(CA_FED)
        w["algorithm"]["algorithm"]["algorithm"]["step_sizes"] = steps
        for name in ("step_square_sum", "delayed_square_sum"):
            with refused("a sum over all rounds is infinite"):
                number(name, w)
    w["algorithm"]["algorithm"]["algorithm"]["step_sizes"] = {"name": "Constant", "value": "1/2"}
    assert number("step_sum", w) == 2
    assert number("step_decay", w) == 0
    assert number("client_lr", w) == F(1, 2)


def test_suprema_over_a_ball_of_round_losses_only() -> None:
    w = copy.deepcopy(CA_FED)
    w["problem"] |= {"hessians": [[["2", "0"], ["0", "1"]]] * 2, "optima": [["1", "0"], ["0", "1"]]}
    w["x0"] = ["0", "0"]
    w["algorithm"]["algorithm"]["onto"]["centre"] = ["0", "0"]
    with refused("suprema over W need Hessians that are multiples of I"):
        number("largest_gradient", w)
    w["problem"]["hessians"] = [[["2", "0"], ["0", "2"]]] * 2
    assert number("largest_gradient", w) == 12


def test_chains_that_mix_too_slowly_for_a_sum() -> None:
    w = copy.deepcopy(CA_FED)
    w["participation"]["correlation"] = ["9999/10000", "0"]
    with refused("the chain mixes too slowly"):
        number("delayed_square_sum", w)


def test_the_factor_that_ca_fed_cites() -> None:
    """sqrt(3) times 2 sqrt(2 (pi^2 + (1 - pi)^2)) of each of two clients; a chain of two states.

    With pi = 9/10 that squared is 8 * 41/50 = 164/25; with 1/10 the same, and 3 (164/25)^2.
    """
    w = copy.deepcopy(CA_FED)
    w["participation"] |= {"availability": ["9/10", "1/10"], "correlation": ["0", "1/2"]}
    low, high = known(w).number("cited_chain_factor", 64)
    assert low <= high <= low + F(1, 2**60)
    assert low**2 <= 3 * F(164, 25) ** 2 <= high**2
    rows = [["99/100", "1/100"], ["9/100", "91/100"]]
    w["participation"] = {"name": "FiniteChain", "transition": rows, "sets": [[0, 1], []]}
    w["participation"]["start"] = None
    low, high = known(w).number("cited_chain_factor", 64)
    assert low**2 <= F(164, 25) <= high**2
    assert known(w).number("chain_rate", 64) == (F(19, 20), F(19, 20))
    with refused("mixing is known only for one chain per client"):
        known(w).number("chain_factor", 64)

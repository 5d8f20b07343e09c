"""Where the checker's limits are: the last that each lets pass, and the first that it refuses.

The limits are those at the top of the checker's file, counted by hand here.
"""

from __future__ import annotations

import math
from dataclasses import is_dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import pytest

from tests.verify.by_enumeration import rows_of
from tests.verify.certificate_cases import HARMONIC, IN_PLANE, ON_LINE, method, setting
from tests.verify.certificates.test_certificate_checker import (
    GOOD,
    SYMBOLS,
    changed,
    check,
    is_met,
    known,
    many,
    of,
    refused,
    value_of,
)
from tests.verify.checker_alone import checker

F: TypeAlias = Fraction


def read(w: Any) -> Any:
    return checker._setting(w)


def test_a_file_of_a_million_characters() -> None:
    text = '{"q": "%s"}'
    assert checker.parsed(text % ("9" * 999_991))["q"][0] == "9"
    with refused("file: must have at most 1000000 characters"):
        checker.parsed(text % ("9" * 999_992))


def test_numbers_of_a_hundred_characters_and_texts_of_two_thousand() -> None:
    assert checker.fraction("q", "1/" + "3" * 98) == F(1, int("3" * 98))
    with refused("q: must be text of at most 100 characters, got "):
        checker.fraction("q", "1/" + "3" * 99)
    assert checker.text_of("q", "a" * 2000) == "a" * 2000
    with refused("q: must be a short text, got "):
        checker.text_of("q", "a" * 2001)


def test_what_is_shown_of_long_values() -> None:
    """Up to 60 characters are shown; of what is longer, 57 and three points."""
    with refused("q: must be a fraction like '3/4', got '" + "a" * 58 + "'"):
        checker.fraction("q", "a" * 58)
    with refused("q: must be a fraction like '3/4', got '" + "a" * 56 + "...") as caught:
        checker.fraction("q", "a" * 59)
    assert str(caught.value).endswith("a...")
    assert checker._shown(F(1, 3)) == "1/3"
    # 2^-198 has 1 + 199 bits, and is 62 characters long
    assert checker._shown(F(1, 2**198)) == f"1/{2**198}"[:57] + "..."
    assert checker._shown(F(1, 2**199)) == "a fraction of 201 bits"
    name = "q" * 99
    with refused("q" * 60 + ": the field is given twice") as caught:
        checker.parsed(f'{{"{name}": 1, "{name}": 2}}')
    assert "q" * 61 not in str(caught.value)
    with refused("0." + "1" * 58 + ": numbers must be whole"):
        checker.parsed('{"q": 0.%s}' % ("1" * 99))
    with refused("statement: " + "f" * 60 + " is not a known function"):
        value_of("f" * 99 + "(a)", SYMBOLS)


def test_what_is_shown_of_long_whole_numbers() -> None:
    with refused("9" * 20 + "...: a whole number must have at most 20 digits") as caught:
        checker.parsed('{"q": %s}' % ("9" * 25))
    assert str(caught.value)[:23] == "9" * 20 + "..."


def test_nesting_to_a_depth_of_a_hundred() -> None:
    """A name is two levels of the tree, and each sign a further one."""
    assert value_of("-" * 98 + "a", SYMBOLS) == SYMBOLS["a"]
    with refused("must be nested less deeply"):
        value_of("-" * 99 + "a", SYMBOLS)
    with refused("is not a formula in fractions"):
        value_of("(" * 101 + "a" + ")" * 101, SYMBOLS)


def test_values_of_four_hundred_thousand_bits() -> None:
    """2^k has k + 1 bits, and its denominator one; 0 and its denominator have one together."""
    large = "*".join(["(2**130000)"] * 3)
    assert value_of(f"2**9998*{large}", SYMBOLS) == 2**399_998
    with refused("statement: a value in a formula has more than 400000 bits"):
        value_of(f"2**9999*{large}", SYMBOLS)
    assert value_of("z**400000", SYMBOLS) == 0
    assert value_of("1**(-200000)", SYMBOLS) == 1
    for text in ("z**400001", "1**(-200001)"):
        with refused("statement: a power in a formula has more than 400000 bits"):
            value_of(text, SYMBOLS)


def test_brackets_as_narrow_as_they_get() -> None:
    """Brackets of 2^-4096 decide between numbers 10^-1200 apart, no finer ones are tried."""
    assert is_met("sqrt(b)**2 < 5 + 1/10**1200", SYMBOLS)
    with refused("is too close to an equality to decide"):
        is_met("sqrt(b)**2 < 5 + 1/10**1300", SYMBOLS)


def plane(d: int) -> dict[str, Any]:
    unit = [[str(int(i == j)) for j in range(d)] for i in range(d)]
    return {**ON_LINE, "hessians": [unit] * 3, "optima": [["1"] * d] * 3}


def test_sixteen_clients_and_eight_dimensions() -> None:
    assert len(read(many(16, {"name": "UniformSubset", "size": 16, "excluded": []})).x0) == 1
    with refused("setting.problem.optima: must be 1 to 16 points, got 17"):
        read(many(17, {"name": "UniformSubset", "size": 17, "excluded": []}))
    w = {**setting("FedAvg", problem=plane(8)), "x0": ["0"] * 8}
    assert len(read(w).x0) == 8
    with refused("setting.problem.optima: must be points of one dimension, up to 8"):
        read({**setting("FedAvg", problem=plane(9)), "x0": ["0"] * 9})


def test_ten_thousand_rounds() -> None:
    assert read(setting("FedAvg", rounds=10_000)).rounds == 10_000
    with refused("setting.rounds: must be at most 10000, got 10001"):
        read(setting("FedAvg", rounds=10_001))


def chain(rows: Any, **changes: Any) -> dict[str, Any]:
    found = {"name": "FiniteChain", "transition": rows, "sets": [[0]] * len(rows), "start": None}
    return {**setting("FedAvg"), "participation": {**found, **changes}}


def slow(size: int) -> list[list[str]]:
    """The slowest to mix: only the ((size - 1)^2 + 1)-th power has no zero (Wielandt)."""
    rows = [["0"] * size for _ in range(size)]
    for i in range(size):
        rows[i][(i + 1) % size] = "1"
    rows[-1][:2] = ["1/2", "1/2"]
    return rows


def test_chains_of_sixty_four_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_solved", lambda matrix, vector: vector)  # it takes a second
    assert read(chain(slow(64))).law.states == 64
    with refused("setting.participation.transition: must be 1 to 64 rows, got 65"):
        read(chain(slow(65)))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_chains_that_mix_as_late_as_any(size: int) -> None:
    """Wielandt's bound: the powers before have a zero, so that fewer steps are too few."""
    rows = slow(size) if size > 1 else [["1"]]
    assert read(chain(rows)).law.states == size


def test_entries_of_a_chain_as_long_as_they_may_be() -> None:
    """20^2 entries of 100 bits: (b - 1)/b with 50 bits each, times 400 are 40,000."""
    for b, legal in ((2**50 - 1, True), (2**50, False)):
        rows = slow(20)
        rows[-1][:2] = [f"1/{b}", f"{b - 1}/{b}"]
        w = chain(rows)
        if legal:
            assert read(w).law.states == 20
        else:
            with refused("setting.participation.transition: must be of fewer or shorter numbers"):
                read(w)


def test_sets_of_independent_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = {"name": "Bernoulli", "availability": ["1/2"] * 14 + ["1"]}
    with monkeypatch.context() as patch:
        patch.setattr(checker, "_sets_of", lambda chances: [])  # they take seconds
        assert read(many(15, halves)).law.states == 1
    with refused("setting.participation.availability: must be of up to 16384 sets, got 15"):
        read(many(15, {**halves, "availability": ["1/2"] * 15}))
    each = {"name": "MarkovOnOff", "availability": ["1/2"] * 8 + ["1", "0"],
            "correlation": ["1/2"] * 10, "start": None}  # fmt: skip
    assert read(many(10, each)).law.states == 2**8
    with refused("setting.participation.availability: must be of up to 256 sets, got 9"):
        read(many(10, {**each, "availability": ["1/2"] * 9 + ["0"]}))


def test_waits_of_two_hundred_and_fifty_six_states() -> None:
    """16 subsets of 1 and 28 of 2, each with whom of it has been seen; 56 of 3 are too many."""
    waits = {"name": "WaitingSubset", "availability": ["1/2"] * 16, "size": 1}
    assert read(many(16, waits)).law.states == 16 * 2
    assert read(many(8, {**waits, "availability": ["1/2"] * 8, "size": 2})).law.states == 28 * 4
    half = {**waits, "availability": ["1/2"] * 4 + ["1"] * 4, "size": 2}
    assert read(many(8, half)).law.states == 6 * 4 + 16 * 2 + 6
    with refused("setting.participation.size: must be of up to 256 states, got 448"):
        read(many(8, {**half, "size": 3}))
    # 5 of 5 have 32 states: (b - 1)/b with 125 bits each, times 5 and 32, are 40,000.
    for b, legal in ((2**125 - 1, True), (2**125, False)):
        rare = {**waits, "availability": [f"{b - 1}/{b}"] + ["1/2"] * 4, "size": 5}
        if legal:
            assert read(many(5, rare)).law.states == 32
        else:
            with refused("setting.participation.availability: must be of fewer or shorter"):
                read(many(5, rare))


def test_cycles_of_sixty_four_rounds() -> None:
    cycles = {"name": "Cyclic", "periods": [64, 32, 1], "offsets": [0] * 3, "active": [1] * 3}
    assert read({**setting("FedAvg"), "participation": cycles}).law.states == 64
    with refused("setting.participation.periods: must be of a multiple up to 64, got [65, 1, 1]"):
        read({**setting("FedAvg"), "participation": {**cycles, "periods": [65, 1, 1]}})


@pytest.mark.parametrize(("n", "d", "steps"), [(1, 1, 6000), (3, 2, 1000), (2, 1, 3000)])
def test_local_steps(n: int, d: int, steps: int) -> None:
    """1 - 7/8 has 1 + 4 bits, and 20 more are allowed for: 25 for each step, client and axis."""
    hessian = [[["1", "7"][i == j] if i == j else "0" for j in range(d)] for i in range(d)]
    problem = {
        **ON_LINE, "hessians": [hessian] * n, "optima": [["1"] * d] * n,
        "target_weights": [str(F(1, n))] * n,
    }  # fmt: skip
    w = setting(method("FedAvg", client_lr="1/8", local_steps=steps), problem=problem)
    w = {**w, "participation": {"name": "UniformSubset", "size": 1, "excluded": []}}
    w["x0"] = ["0"] * d
    assert read(w).rounds == 2
    w["algorithm"] = {**w["algorithm"], "local_steps": steps + 1}
    with refused(f"local_steps: must be fewer, because fractions grow too long, got {steps + 1}"):
        read(w)


@pytest.mark.parametrize(
    ("name", "own", "most"),
    [
        # 1 - (1/3 + 1/7)/4 is 37/42, of 12 bits, and 1 - 1/12 is 11/12, of 8; 20 are added
        ("FedProx", lambda steps: {"proximal": "1/7", "local_steps": steps}, 2343),
        ("FedNova", lambda steps: {"local_steps": [1, steps]}, 2678),
    ],
)
def test_local_steps_that_are_held_or_differ(name: str, own: Any, most: int) -> None:
    problem = {
        **ON_LINE, "hessians": [[["1/3"]]] * 2, "optima": [["1"]] * 2,
        "target_weights": ["1/2", "1/2"],
    }  # fmt: skip
    for steps in (most, most + 1):
        algorithm = method(name, client_lr="1/4", client_weights=None, **own(steps))
        w = {**setting(algorithm, "one of two", problem=problem), "x0": ["0"]}
        if steps == most:
            assert read(w).rounds == 2
        else:
            with refused(
                f"local_steps: must be fewer, because fractions grow too long, got {steps}"
            ):
                read(w)


def test_local_steps_with_the_first_of_falling_step_sizes() -> None:
    """1/(1 + 7) makes 1 - 7/8 of it as above; 1/(2 + 7) would be a bit longer."""
    problem = {**ON_LINE, "hessians": [[["7"]]] * 3}
    falling = {"name": "Harmonic", "scale": "1", "offset": "7"}
    for steps in (2000, 2001):
        inner = method("FedAvg", local_steps=steps)
        w = setting({"name": "Scheduled", "step_sizes": falling, "algorithm": inner},
                    problem=problem)  # fmt: skip
        if steps == 2000:
            assert read(w).rounds == 2
        else:
            with refused("local_steps: must be fewer, because fractions grow too long, got 2001"):
                read(w)


@pytest.mark.parametrize("around", ["Scheduled", "AveragedIterate"])
@pytest.mark.parametrize(
    ("sizes", "rounds"),
    [
        # bits of scale and offset, and 14 more: 2 + 4 + 14 and 2 + 1 + 14
        ({**HARMONIC, "scale": "1", "offset": "1/4"}, 7_500),
        ({"name": "Constant", "value": "1"}, 8_823),
    ],
)
def test_rounds_of_step_sizes_that_are_summed(around: str, sizes: Any, rounds: int) -> None:
    field = {"Scheduled": "step_sizes", "AveragedIterate": "weights"}[around]
    outer = {"name": around, field: sizes, "algorithm": method("FedAvg")}
    assert read(setting(outer, rounds=rounds)).rounds == rounds
    with refused(
        f"setting.rounds: must be fewer, because fractions grow too long, got {rounds + 1}"
    ):
        read(setting(outer, rounds=rounds + 1))


def test_twenty_million_units_of_work() -> None:
    effort = checker._Effort()
    effort.spend(20_000_000)
    with refused("setting: the run takes more than 20000000 units of work"):
        effort.spend(1)


def spent(monkeypatch: pytest.MonkeyPatch, w: Any, ask: Any) -> list[int]:
    """Return the units of work that a question about a setting counts, one by one."""
    counted: list[int] = []
    monkeypatch.setattr(checker._Effort, "spend", lambda effort, units: counted.append(units))
    ask(known(w))
    return counted


def test_the_work_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """One client in one dimension, three local steps, and x' = a x + b; the second round is alike.

    A map of 2 entries, 1 axis and 1 participant; 20 for each local step; (1 + 2)^2 pairs of factors
    of 1 and x'; 1 + 2 + 3 moments go into those of 1, x' and x'^2, at two units each from 256 bits
    on; and the three go to one state of the chain.
    """
    problem = {
        **ON_LINE, "hessians": [[["2"]]], "optima": [["1"]], "sigma": "0", "target_weights": ["1"],
    }  # fmt: skip
    w = setting(method("FedAvg", local_steps=3), problem=problem)
    w["participation"] = {"name": "UniformSubset", "size": 1, "excluded": []}
    for bits, each in ((256, 12), (255, 6)):
        counted = spent(monkeypatch, w, lambda of: of.series("squared_distance", bits))  # noqa: B023
        assert counted == [2 * 1 * (1 + 1), 20 * 3, 9, each, 3, each, 3]


def test_the_work_of_a_round_in_the_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three take part, in turn; two local steps multiply two by two matrices."""
    w = setting("FedAvg", "two of three", 1, IN_PLANE)
    counted = spent(monkeypatch, w, lambda of: of.series("squared_distance", 64))
    assert counted.count(3 * 2 * (1 + 2)) == 3
    assert counted.count(20 * 2 * 2**3) == 3


def test_the_work_of_counting_absences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sets follow each row of ages: (0), then (0) and (1).

    Of a client one interval has ended after a round, or none; after two, two, one in the first,
    or one in the second. Two of the three clients are alike.
    """
    w = setting(method("FedAU", cutoff=1), rounds=2)
    w["participation"] = {"name": "Bernoulli", "availability": ["1/2", "1", "1"]}
    assert spent(monkeypatch, w, lambda of: of.number("chance_of_absence", 64)) == [200] * 3
    w["algorithm"] = method("FedAU", cutoff=2)
    assert spent(monkeypatch, w, lambda of: of.number("weight_error_ratio", 64)) == [200, 300] * 2


def test_the_work_of_long_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is chosen comes to (3 + 2^9000)/2^9002, of 18,004 bits; the last of them has as many.

    Where only the others are there, the first falls to 3/2^9002, of 9,005 bits.
    """
    rates = [F(1, 2**9_000), F(1, 3), F(2, 3) - F(1, 2**9_000)]
    w = setting(method("F3ast", target_weights=["1/2", "1/3", "1/6"]), rounds=1)
    counted: list[int] = []
    monkeypatch.setattr(checker._Effort, "spend", lambda self, units: counted.append(units))
    known(w).runs[0].images(0, tuple(rates), 1)
    assert counted.count(18**2 + 18**2) == 2
    assert counted.count(9**2 + 18**2) == 1


@pytest.mark.parametrize(
    ("first", "second", "is_below"),
    [
        ((0, 1), (1, 2), True),
        ((0, 1), (2, 3), True),
        ((2, 3), (0, 1), False),
        ((1, 2), (0, 1), None),
        ((0, 2), (1, 3), None),
        ((0, 3), (1, 2), None),
        ((1, 1), (1, 1), True),
    ],
)
def test_what_is_surely_at_most_another(first: Any, second: Any, is_below: bool | None) -> None:
    """(1, 2) and (0, 1) may both be 1."""
    if is_below is None:
        with pytest.raises(checker._UndecidedError):
            checker._below(first, second)
    else:
        assert checker._below(first, second) is is_below


def test_chances_to_the_power_of_a_long_cut_off() -> None:
    """(1/2)^2K of three clients: 3 bits each to the power of 2K, 150,000 in all."""
    w = setting(method("FedAU", cutoff=8333))
    w["participation"] = {"name": "Bernoulli", "availability": ["1/2"] * 3}
    assert known(w).number("mean_lasting_absence", 64) == (F(1, 2**16666),) * 2
    w["algorithm"] = method("FedAU", cutoff=8334)
    with refused("statement.quantity: fractions grow too long"):
        known(w).number("mean_lasting_absence", 64)


def test_rounds_of_their_own_are_not_kept() -> None:
    """Falling step sizes make every round another; ten thousand of them would fill a memory."""
    for name in ("scheduled", "averaged"):
        found = known(setting(name, "two of three", 12))
        found.series("squared_distance", 64)
        (run,) = found.runs
        assert len(run._maps) == 1
        assert len(run.block._known) <= 2 * 3 + 1


def test_brackets_are_added_and_rounded_outwards() -> None:
    assert checker._rounded([], 3) == (0, 0)
    assert checker._rounded([(8, 8), (-16, 8)], 3) == (-1, 2)
    assert checker._rounded([(7, 7)], 3) == (0, 1)
    assert checker._rounded([(-1, -1)], 3) == (-1, 0)
    assert checker._fixed(F(7, 3), 2) == (9, 10)
    assert checker._outwards((F(1, 3), F(2, 3)), 2) == (F(1, 4), F(3, 4))
    assert checker._fixed(F(-7, 4), 2) == (-7, -7)


def test_fractions_of_a_hundred_and_fifty_thousand_bits() -> None:
    found = known(setting("FedAU"))
    checker._check_length(found, 150_000)
    with refused("statement.quantity: fractions grow too long"):
        checker._check_length(found, 150_001)
    # powers of 1/2, three bits each, up to the 60,002nd
    w = setting(method("FedAU", cutoff=60_000))
    w["participation"] = {"name": "Bernoulli", "availability": ["1/2", "1", "1"]}
    with refused("statement.quantity: fractions grow too long"):
        known(w).number("weight_error_ratio", 64)


@pytest.mark.parametrize("degree", [2, 3, 5, 12])
def test_whole_roots(degree: int) -> None:
    for number in [*range(70), *(base**degree + off for base in (5, 9) for off in (-1, 0, 1))]:
        root = checker._whole_root(number, degree)
        assert root**degree <= number < (root + 1) ** degree


@pytest.mark.parametrize("bits", [64, 100, 256])
@pytest.mark.parametrize(
    "value", [F(1), F(2), F(3), F(1, 2), F(1, 3), F(2, 3), F(127), F(10**9, 7)]
)
def test_logarithms(value: F, bits: int) -> None:
    """Brackets hold ``ln v = 2 sum of z^n/n over odd n``, z = (v - 1)/(v + 1), and are narrow."""
    low, high = checker._log_of(value, bits)
    # ln v = ln(v/2^k) + k ln 2, each by the series, of which 200 terms leave less than 3^-400
    k = 0
    while not F(1, 2) <= value / F(2) ** k < F(3, 2):
        k += 1 if value > 1 else -1
    # bits/2 terms, rounded by two units each, for the rest and for each of the k logarithms of 2
    assert high - low <= (abs(k) + 2) * F(2 * bits, 2**bits)
    exact = sum_of_series(value / F(2) ** k) + k * sum_of_series(F(2))
    assert low <= exact + F(1, 3**390)
    assert high >= exact - F(1, 3**390)


def test_the_series_of_artanh_in_coarse_units() -> None:
    """Where a unit is as large as 1/2 to 1/1024, no rounding hides another."""
    for bits, above, below in product(range(1, 11), range(30), (90, 97)):
        low, high = checker._artanh(F(above, below), bits)
        exact = math.atanh(above / below)
        assert low <= exact + 1e-12
        assert high >= exact - 1e-12


def sum_of_series(value: F) -> F:
    z = (value - 1) / (value + 1)
    return 2 * sum((z**n / n for n in range(1, 400, 2)), F(0))


def test_every_field_of_an_object_is_needed_and_no_other() -> None:
    for place, names in {
        "": ("version", "theorem", "reading", "statement", "setting", "truth", "bound"),
        "statement": ("symbols", "definitions", "round_symbols", "conditions", "quantity", "bound"),
        "statement/quantity": ("of", "reduction", "rounds", "weights"),
        "setting": ("algorithm", "problem", "participation", "rounds", "x0"),
    }.items():
        shown = place.replace("/", ".") or "certificate"
        for name in names:
            with refused(f"{shown}.{name}: the field is missing"):
                check(changed(f"{place}/{name}".strip("/"), ...))
        with refused(f"{shown}.note: is not a field here"):
            check(changed(f"{place}/note".strip("/"), 0))
    assert check(GOOD)


def test_what_goes_wrong_unexpectedly_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ZeroDivisionError("by 0"), KeyError("q"), RecursionError(), TypeError("int")):

        def fail(document: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(checker, "_checked", fail)
        with refused(f"certificate: damaged or incomplete: {str(error)!r}"):
            check(GOOD)


def test_nothing_that_was_read_can_be_changed() -> None:
    kinds = [kind for kind in vars(checker).values() if is_dataclass(kind)]
    assert len(kinds) == 7
    assert all(kind.__dataclass_params__.frozen for kind in kinds)


def test_pairs_are_those_of_a_triangle() -> None:
    assert sorted(checker._pairs(3)) == [(a, b) for a, b in product(range(3), repeat=2) if a <= b]
    assert known(setting("FedAvg")).star == [F(13, 24)]


@pytest.mark.parametrize(
    ("good", "place", "value"),
    [
        (of("FedAU"), "algorithm/cutoff", 1),
        (of("FedAR"), "algorithm/cutoff", 0),
        (of("FedAR"), "algorithm/weight/growth", "0"),
        (of("FedAR"), "algorithm/weight/largest", "1"),
        (of("momentum"), "algorithm/momentum", "0"),
        (of("momentum"), "algorithm/momentum", "99/100"),
        (of("scheduled"), "algorithm/step_sizes/offset", "0"),
        (of("Safari"), "algorithm/q", "0"),
        (of("Safari"), "algorithm/q", "1"),
        (of("Safari"), "algorithm/local_steps", 1),
        (of("Safari"), "algorithm/client_lr", "1/1000000"),
        (of("Safari"), "problem/sigma", "0"),
        (of("Safari"), "problem/server_sigma", "0"),
        (of("Safari"), "participation/size", 1),
        (of("Safari"), "participation/size", 3),
        (of("Safari"), "participation/excluded", [0]),
        (of("Safari"), "participation/excluded", [2]),
        (of("Safari"), "rounds", 1),
        (of("Scaffold"), "algorithm/option", 1),
        (of("Mifa"), "algorithm/start", "zero"),
        (of("FedAvgIS"), "algorithm/availability", ["1"] * 3),
        (of("WeightedFedAvg"), "algorithm/aggregation_weights", ["0", "1/9", "0"]),
        (of("ClusterFedVarp"), "algorithm/clusters", [2, 0, 1]),
        (of("FedAU", "on and off"), "participation/availability", ["1", "1/3", "1/3"]),
        # stays with 0 after a round there: -1/2 + 3/2 * 1/3; comes surely after one away: 3/2 * 2/3
        (of("FedAU", "on and off"), "participation/correlation/2", "-1/2"),
        (
            {**of("FedAU", "on and off")}, "participation",
            {"name": "MarkovOnOff", "availability": ["2/3", "1", "0"],
             "correlation": ["-1/2", "0", "0"], "start": None},
        ),
        (of("FedAU", "on and off"), "participation/start", [1, 1, 0]),
        (of("FedAU", "a chain"), "participation/start", 0),
        (of("FedAU", "a chain"), "participation/start", 2),
        (of("FedAU", "a chain"), "participation/sets/0", [0, 1, 2]),
        (of("FedAU", "cycles"), "participation/active", [1, 2, 3]),
        (of("FedAU", "cycles"), "participation/offsets", [0, 0, 0]),
        (of("FedAU", "cycles"), "participation/offsets", [5, 7, 100]),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:40],
)  # fmt: skip
def test_the_most_extreme_of_what_is_legal(good: Any, place: str, value: Any) -> None:
    found = changed(f"setting/{place}", value, good)
    rows = rows_of(found["setting"])
    assert check(found)
    for row, (low, high) in zip(
        rows, known(found["setting"]).series("squared_distance", 128), strict=True
    ):
        assert low <= row["squared_distance"] <= high
        assert high - low < F(1, 2**90)

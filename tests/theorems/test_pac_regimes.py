"""The learning problems of SA-FL's Theorems 2 and 3 are what they are called, number by number."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fltheory.learnability import Source
from fltheory.learnability.populations import Marginal, Population, uniform
from fltheory.learnability.system import DisagreementCase, TailCase, UniformPair
from fltheory.theorems.sa_fl import pac

HALF = Fraction(1, 2)
PLAIN = Source(uniform(0, 1), HALF)
# (1 - beta)/beta is the exponent of |x - t| in how much likelier the right label is.
NOISY = Source(uniform(0, 1), HALF, beta=HALF, scale=2)
QUARTER_WRONG = Source(uniform(0, 1), HALF, scale=HALF)
OUTER = Marginal((0, Fraction(1, 4), Fraction(3, 4), 1), (HALF, 0, HALF))
GAP = Source(OUTER, HALF)
NOISY_GAP = Source(OUTER, HALF, beta=HALF, scale=2)
AT_3_5 = Source(uniform(0, 1), Fraction(3, 5))

TWO = [30, 100, 300, 1000, 3000]
FOUR = [10**k for k in range(2, 7)]
LATER = [10**k for k in range(3, 8)]
FROM_20 = [20, 200, 2000, 20000, 200000]

# P, the server's, D at any size, the sizes, and n_T and n_S of 1,000 or of n_T = 1,000.
TENTH, SHARED = (100, 900), (1000, 4000)
SYSTEMS = {
    ("THEOREM_2", "clients miss the middle"): (PLAIN, PLAIN, GAP, LATER, TENTH),
    ("THEOREM_2", "constant noise"): (QUARTER_WRONG, QUARTER_WRONG, QUARTER_WRONG, FOUR, TENTH),
    ("THEOREM_2", "noise near the target"): (NOISY, NOISY, NOISY, FOUR, TENTH),
    ("THEOREM_2", "noisy clients miss the middle"): (NOISY, NOISY, NOISY_GAP, LATER, TENTH),
    ("THEOREM_2", "ten server samples"): (PLAIN, PLAIN, GAP, FOUR, (10, 990)),
    ("THEOREM_2", "ten server samples but clients everywhere"): (
        *(PLAIN, PLAIN, PLAIN),
        FOUR,
        (10, 990),
    ),
    ("THEOREM_2", "clients only"): (PLAIN, PLAIN, GAP, FOUR, (0, 1000)),
    ("THEOREM_2", "clients with another target"): (PLAIN, PLAIN, AT_3_5, TWO, TENTH),
    ("REMARK_2", "server's points shifted"): (
        *(PLAIN, Source(uniform(Fraction(3, 8), Fraction(5, 8)), HALF), GAP),
        LATER,
        TENTH,
    ),
    ("REMARK_2", "labels of P' and D noisier"): (PLAIN, NOISY, NOISY, FOUR, TENTH),
    ("REMARK_2", "server's target shifted"): (
        *(PLAIN, Source(uniform(0, 1), Fraction(11, 20)), GAP),
        TWO,
        TENTH,
    ),
    ("REMARK_2", "server misses the middle too"): (
        *(PLAIN, Source(uniform(Fraction(3, 4), 1), HALF), GAP),
        FOUR,
        TENTH,
    ),
    ("THEOREM_3", "one target"): (PLAIN, PLAIN, PLAIN, FOUR, SHARED),
    ("THEOREM_3", "one target with noise near it"): (NOISY, NOISY, NOISY, FROM_20, SHARED),
    ("THEOREM_3", "clients' target within 2/n_T"): (PLAIN, PLAIN, None, TWO, SHARED),
    ("THEOREM_3", "clients' target apart"): (PLAIN, PLAIN, AT_3_5, TWO, SHARED),
}


def test_every_system_is_listed() -> None:
    groups = ("THEOREM_2", "REMARK_2", "THEOREM_3")
    listed = {(group, name) for group in groups for name in getattr(pac, f"{group}_REGIMES")}
    assert listed == set(SYSTEMS)


@pytest.mark.parametrize(("group", "name"), SYSTEMS)
def test_systems(group: str, name: str) -> None:
    system = getattr(pac, f"{group}_REGIMES")[name].setting
    target, server, clients, sizes, split = SYSTEMS[group, name]
    assert only(system.target) == target
    assert only(system.server) == server
    assert list(system.sizes) == sizes
    assert system.split(1000) == split
    for size in sizes:
        shifted = Source(uniform(0, 1), HALF + Fraction(2, size))
        assert only(system.clients(size)) == (shifted if clients is None else clients)


def only(population: Population) -> Source:
    ((weight, source),) = population.present
    assert weight == 1
    return source


def test_labels_that_are_wrong() -> None:
    """A quarter of all labels: an error elsewhere costs half of what it does without noise."""
    for source, cost in ((PLAIN, Fraction(1, 4)), (QUARTER_WRONG, Fraction(1, 8))):
        assert source.excess(Fraction(3, 4)) == cost


def test_tails_pairs_and_disagreements() -> None:
    tails = {name: regime.setting for name, regime in pac.LEMMA_1_REGIMES.items()}
    assert tails == {
        "likely": TailCase(100, Fraction(1, 10)),
        "unlikely": TailCase(100, Fraction(1, 10**6)),
        "most unlikely": TailCase(100, Fraction(1, 10**40)),
        "exponentially unlikely": TailCase(2000, Fraction(1, 2**1000)),
    }
    assert {name: regime.setting for name, regime in pac.EXAMPLE_REGIMES.items()} == {
        "target in the middle": UniformPair(0, 1, Fraction(1, 4), Fraction(3, 4), HALF),
        "target off the middle": UniformPair(0, 1, 0, HALF, Fraction(3, 8)),
        "target at Q's end": UniformPair(0, 1, 0, HALF, HALF),
        "Q = P": UniformPair(0, 1, 0, 1, Fraction(1, 3)),
    }
    apart, near = (pac.LEMMA_2_REGIMES[name].setting for name in ("apart", "within 3/n_T"))
    for case in (apart, near):
        assert isinstance(case, DisagreementCase)
        assert list(case.sizes) == FOUR
    assert [apart.mass(size) for size in FOUR] == [0.5] * 5
    assert [near.mass(size) for size in FOUR] == pytest.approx([3 / size for size in FOUR])

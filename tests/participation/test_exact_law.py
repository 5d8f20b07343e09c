"""Laws in fractions, against the float laws and by hand."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest

from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.participation.exact_law import ExactlyKnown

PROCESSES = [
    UniformSubset(4, 2, excluded=(1,)),
    Bernoulli([0.3, 1, 0.25]),
    AtMost([0.3, 1, 0.5, 0.2], 2),
    FiniteChain([[0.5, 0.5], [0.25, 0.75]], [[1, 0], [1, 1]]),
    MarkovOnOff([0.4, 0.5, 1], [0.5, -0.2, 0]),
    Trace([[1, 0], [0, 1], [1, 1]]),
]


@pytest.mark.parametrize("process", PROCESSES, ids=repr)
def test_sets_are_as_probable_as_in_floats(process) -> None:
    """Stationary probabilities, to a few roundings; all laws sum to one exactly."""
    law = process.exact_law()
    found: defaultdict[bytes, Fraction] = defaultdict(Fraction)
    assert sum(chance for _, chance in law.initial) == 1
    for state, chance in law.initial:
        assert sum(onward for _, onward in law.following(state)) == 1
        for share, mask in law.sets(state):
            found[mask.tobytes()] += chance * share
    for probability, mask in process.outcomes():
        assert float(found.pop(mask.tobytes())) == pytest.approx(probability, rel=1e-14)
    assert not any(found.values())


@pytest.mark.parametrize("process", PROCESSES[3:], ids=repr)
def test_the_first_law_is_stationary(process) -> None:
    law = process.exact_law()
    after: defaultdict[int, Fraction] = defaultdict(Fraction)
    for state, chance in law.initial:
        for following, onward in law.following(state):
            after[following] += chance * onward
    assert dict(after) == dict(law.initial)


def test_chains_by_hand() -> None:
    """nu + (1 - nu) pi and (1 - nu) pi in decimals; thirds are thirds."""
    law = MarkovOnOff([0.4], 0.5, start=[1]).exact_law()
    assert law.initial == [(1, Fraction(1))]
    assert law.following(1) == [(0, Fraction(3, 10)), (1, Fraction(7, 10))]
    assert law.following(0) == [(0, Fraction(4, 5)), (1, Fraction(1, 5))]
    thirds = FiniteChain([[1 / 3, 1 / 3, 1 / 3]] * 3, [[1], [0], [1]]).exact_law()
    assert thirds.initial == tuple((state, Fraction(1, 3)) for state in range(3))


def test_cycles_begin_with_their_first_round() -> None:
    law = Cyclic([2, 3], [0, 1]).exact_law()
    assert law.initial == ((0, Fraction(1)),)
    assert law.following(5) == ((0, Fraction(1)),)


def test_who_does_not_know_says_so() -> None:
    assert not isinstance(WaitingSubset([0.5, 0.5], 1), ExactlyKnown)

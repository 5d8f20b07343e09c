"""Laws in fractions, by hand and path by path, and what classes override against what follows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations, compress, islice, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.logs import AvailabilityLog
from fltheory.logs.played_log import PlayedLog
from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Trace,
    UniformSubset,
    VaryingBernoulli,
    WaitingSubset,
)
from fltheory.participation.chain_structure import stationary_law
from fltheory.participation.process import Law, Process, process_of

Sets = tuple[tuple[bool, ...], ...]
N = 3
decimals = st.integers(1, 9).map(lambda tenths: tenths / 10)
chances = st.lists(decimals | st.just(1.0), min_size=N, max_size=N)
bits = st.lists(st.booleans(), min_size=N, max_size=N)


@st.composite
def chains(draw: st.DrawFn) -> FiniteChain:
    """Rows without zeros, which make any chain irreducible and aperiodic."""
    size = draw(st.integers(1, 4))
    rows = [draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)) for _ in range(size)]
    masks = [draw(bits) for _ in rows]
    start = draw(st.none() | st.integers(0, size - 1))
    return FiniteChain([np.array(row) / sum(row) for row in rows], masks, start=start)


@st.composite
def on_offs(draw: st.DrawFn) -> MarkovOnOff:
    """With clients that are always and never there, who may begin otherwise."""
    pi = draw(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), min_size=N, max_size=N))
    nu = draw(st.lists(st.sampled_from([-0.2, 0.0, 0.5, 0.9]), min_size=N, max_size=N))
    nu = [max(n, 0.0) if p in (0, 1) else n for n, p in zip(nu, pi, strict=True)]
    return MarkovOnOff(pi, nu, start=draw(st.none() | bits))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    rounds = [*draw(st.lists(bits, min_size=1, max_size=4)), [True] * N]
    return Trace(rounds, start=draw(st.none() | st.integers(0, len(rounds) - 1)))


PROCESSES = {
    "bernoulli": st.builds(Bernoulli, chances),
    "uniform": st.builds(
        lambda m, who: UniformSubset(N, m, excluded=who), st.just(1), st.sets(st.integers(0, 1))
    ),
    "at most": st.builds(AtMost, chances, st.integers(1, N)),
    "waiting": st.builds(WaitingSubset, chances, st.integers(1, N)),
    "varying": st.builds(
        VaryingBernoulli,
        st.lists(
            st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=N, max_size=N),
            min_size=1,
            max_size=3,
        ),
    ),
    "chain": chains(),
    "on-off": on_offs(),
    "trace": traces(),
    "cyclic": st.builds(
        Cyclic, st.just([1, 2, 3]), st.lists(st.integers(0, 3), min_size=N, max_size=N)
    ),
}
any_process = pytest.mark.parametrize("kind", PROCESSES)


class Plain(Process):
    """Nothing but another process's law: all else follows."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.n_clients = process.n_clients

    def law(self) -> Law:
        return self.process.law()

    @property
    def n_states(self) -> int | None:
        return 1 if len(self.law().who(0)) > 1 else self.process.n_states


def rounds_of(law: Law, rounds: int) -> Mapping[Sets, Fraction]:
    """Return every sequence of participant sets with its probability."""
    found: defaultdict[Sets, Fraction] = defaultdict(Fraction)
    paths = [((), state, chance) for state, chance in law.first]
    for _ in range(rounds):
        seen = [
            ((*path, tuple(mask.tolist())), state, chance * p)
            for path, state, chance in paths
            for p, mask in law.who(state)
        ]
        paths = [
            (path, ahead, chance * p)
            for path, state, chance in seen
            for ahead, p in law.following(state)
        ]
    for path, _, chance in paths:
        found[path] += chance
    return {path: chance for path, chance in found.items() if chance > 0}


def by_set(process: Process) -> Mapping[tuple[bool, ...], float]:
    found: defaultdict[tuple[bool, ...], float] = defaultdict(float)
    for chance, mask in process.outcomes():
        found[tuple(mask.tolist())] += chance
    return found


@any_process
@given(data=st.data())
def test_what_is_overridden_is_what_follows_from_the_law(kind: str, data: st.DataObject) -> None:
    process = data.draw(PROCESSES[kind])
    plain = Plain(process)
    np.testing.assert_allclose(process.marginals, plain.marginals, atol=1e-12)
    np.testing.assert_allclose(process.pair_inclusions, plain.pair_inclusions, atol=1e-12)
    assert by_set(process) == pytest.approx(by_set(plain), abs=1e-12)
    assert plain.n_outcomes == len(by_set(process))
    if process.fixed_size is not None:
        assert process.fixed_size == plain.fixed_size
    if kind != "cyclic":  # of which rounds are counted, and sizes not looked into
        assert (process.n_outcomes, process.fixed_size) == (plain.n_outcomes, plain.fixed_size)


@any_process
@given(data=st.data())
def test_floats_of_states_are_those_of_the_law(kind: str, data: st.DataObject) -> None:
    process = data.draw(PROCESSES[kind])
    if process.n_states == 1:
        return
    ours, plain = process.states(), Process.states(process)
    unit = np.eye(process.n_states)
    np.testing.assert_array_equal(ours.masks, plain.masks)
    np.testing.assert_allclose(ours.initial, plain.initial, atol=1e-14)
    np.testing.assert_allclose(ours.forward(unit), plain.forward(unit), atol=1e-14)
    np.testing.assert_allclose(ours.backward(unit), plain.backward(unit), atol=1e-14)
    np.testing.assert_allclose(plain.limit @ plain.factors[0], plain.limit, atol=1e-14)
    if ours.limit is not None:
        np.testing.assert_allclose(ours.limit, plain.limit, atol=1e-12)


@any_process
@given(data=st.data())
def test_laws_are_laws(kind: str, data: st.DataObject) -> None:
    """Exactly; and rounds are independent and alike where a process says so."""
    process = data.draw(PROCESSES[kind])
    law = process.law()
    assert sum(chance for _, chance in law.first) == 1
    for state in range(process.n_states):
        assert sum(chance for _, chance in law.following(state)) == 1
        assert sum(chance for chance, _ in law.who(state)) == 1
        assert all(isinstance(chance, Fraction) for chance, _ in law.who(state))
        assert all(isinstance(chance, Fraction) for _, chance in law.following(state))
    if process.independent:
        one = {(tuple(mask.tolist()),): share for share, mask in process.exact_outcomes()}
        assert rounds_of(law, 1) == one
        alike = {(*a, *b): p * q for (a, p), (b, q) in product(one.items(), repeat=2)}
        assert rounds_of(law, 2) == alike
    else:
        assert kind not in ("bernoulli", "uniform", "at most")


@any_process
@given(data=st.data(), seed=st.integers(0, 9))
def test_draws_are_possible_and_paths_that_are_known_are_drawn(
    kind: str, data: st.DataObject, seed: int
) -> None:
    process = data.draw(PROCESSES[kind])
    possible = rounds_of(process.law(), 3)
    for drawn in (process, Plain(process)):
        rounds = [mask.copy() for mask in islice(drawn.masks(np.random.default_rng(seed), 20), 3)]
        for path in np.stack(rounds, axis=1).tolist():
            assert tuple(map(tuple, path)) in possible
    known = process.known_path(3)
    assert (known is None) == (process.period is None)
    if known is not None:
        assert list(possible) == [tuple(map(tuple, known.tolist()))]
        again = process.known_path(2 * process.period)
        np.testing.assert_array_equal(again[: process.period], again[process.period :])


def test_draws_that_follow_from_a_law_have_its_chances() -> None:
    """Every path of two rounds in 40,000 runs, within 8 deviations: false alarms below 1e-12."""
    process = WaitingSubset([0.3, 0.6, 1.0], 2)
    drawn = np.stack(list(islice(Plain(process).masks(np.random.default_rng(4), 40_000), 2)), 1)
    for path, chance in rounds_of(process.law(), 2).items():
        share = (drawn == np.array(path)).all(axis=(1, 2)).mean()
        assert abs(share - chance) < 8 * np.sqrt(float(chance * (1 - chance)) / 40_000)


def waited(p: list[Fraction], size: int, rounds: int) -> Mapping[Sets, Fraction]:
    """Return every sequence of sets by going over all draws, and all who may be available.

    A second telling of the waits, from MIFA's code: draw, wait until each has been available.
    """
    n = len(p)
    draws = list(combinations(range(n), size))
    available = [
        (frozenset(compress(range(n), there)), math.prod(map(chance_of, p, there)))
        for there in product((True, False), repeat=n)
    ]
    runs = [((), chosen, frozenset(), Fraction(1, len(draws))) for chosen in draws]
    for _ in range(rounds):
        after = []
        for (path, chosen, seen, run), (here, chance) in product(runs, available):
            now = seen | here
            if set(chosen) <= now:
                who = tuple(i in chosen for i in range(n))
                share = run * chance / len(draws)
                after += [((*path, who), other, frozenset(), share) for other in draws]
            else:
                after.append(((*path, (False,) * n), chosen, now, run * chance))
        runs = [each for each in after if each[-1] > 0]
    found: defaultdict[Sets, Fraction] = defaultdict(Fraction)
    for path, _, _, chance in runs:
        found[path] += chance
    return dict(found)


def chance_of(p: Fraction, there: bool) -> Fraction:
    return p if there else 1 - p


@pytest.mark.parametrize("p", [["3/10", "1", "3/5"], ["1/2", "1/5", "9/10"]])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_waits_are_those_of_the_rounds_played_one_by_one(p: list[str], size: int) -> None:
    exact = [Fraction(text) for text in p]
    law = WaitingSubset([float(q) for q in exact], size).law()
    expected = waited(exact, size, 3)
    if size == 1 and p[1] == "1":  # one draw of three, and who is seen at once
        assert expected[((False, True, False),) * 3] == Fraction(1, 27)
    assert rounds_of(law, 3) == expected


def test_chains_by_hand() -> None:
    """nu + (1 - nu) pi and (1 - nu) pi in decimals; thirds are thirds."""
    law = MarkovOnOff([0.4], 0.5, start=[1]).law()
    assert law.first == [(1, Fraction(1))]
    assert law.following(1) == [(0, Fraction(3, 10)), (1, Fraction(7, 10))]
    assert law.following(0) == [(0, Fraction(4, 5)), (1, Fraction(1, 5))]
    thirds = FiniteChain([[1 / 3, 1 / 3, 1 / 3]] * 3, [[1], [0], [1]]).law()
    assert thirds.first == tuple((state, Fraction(1, 3)) for state in range(3))


def test_cycles_begin_with_their_first_round() -> None:
    law = Cyclic([2, 3], [0, 1]).law()
    assert law.first == ((0, Fraction(1)),)
    assert law.following(5) == ((0, Fraction(1)),)


@pytest.mark.parametrize(
    "process",
    [
        FiniteChain([[0.1, 0.9], [0.5, 0.5]], np.eye(2), start=1),
        MarkovOnOff([0.4, 0.7], [0.5, 0.2], start=[1, 0]),
        WaitingSubset([0.5, 0.2], 1),
    ],
    ids=repr,
)
def test_what_a_chain_forgets(process: Process) -> None:
    """Total variation between first and last laws, and lambda_2, by NumPy's eigenvalues."""
    states = process.states()
    matrix = states.backward(np.eye(process.n_states))
    limit = stationary_law(matrix)
    assert process.mixes
    expected = np.abs(states.initial - limit).sum() / 2
    assert process.start_distance == pytest.approx(expected, rel=1e-12)
    second = np.sort(np.abs(np.linalg.eigvals(matrix)))[-2]
    assert process.mixing.second_eigenvalue == pytest.approx(second, abs=1e-9)


class Stranger:
    """What the contract asked for before there was a law: a coin for each of two clients."""

    independent, n_clients, fixed_size, n_outcomes = True, 2, None, 4

    def outcomes(self):
        for mask in product([False, True], repeat=2):
            yield 0.25, np.array(mask)


@pytest.mark.parametrize("process", [Cyclic([2], [0]), UniformSubset(2, 1), Bernoulli([0.5])])
def test_what_does_not_mix_says_so(process: Process) -> None:
    for name in ("mixing", "start_distance"):
        with pytest.raises(
            ValueError,
            match="participation must be a Markov chain that converges to "
            "a stationary distribution, got",
        ):
            getattr(process, name)


def test_a_strangers_process_has_the_defaults() -> None:
    stranger = Stranger()
    process = process_of(stranger)
    assert process.n_outcomes == 4
    assert next(process.outcomes())[0] == 0.25
    assert process.n_states is process.period is process.client_chains is None
    assert process.known_path(3) is process.uniform_draw is None
    assert not process.mixes
    assert type(process.in_numbers(np.array)) is Stranger
    assert process_of(process) is process


def test_a_log_has_an_end_and_no_law() -> None:
    log = AvailabilityLog.from_masks([[1, 0], [1, 1]])
    assert PlayedLog(log).n_states is None

"""Exact moments in fractions and in balls, against runs along every history in fractions."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from fractions import Fraction

import hypothesis
import numpy as np
import pytest
from flint import arb, arb_mat, fmpq
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.algorithms import (
    AdaFed,
    AveragedIterate,
    CAFed,
    ClusterFedVarp,
    Constant,
    F3ast,
    FedAR,
    FedAU,
    FedAvg,
    FedAvgIS,
    FedAWE,
    FedNova,
    FedProx,
    FedVarp,
    Harmonic,
    LocalSgd,
    Mifa,
    Projected,
    ProxSkip,
    Safari,
    Scaffold,
    Scheduled,
    ServerMomentum,
    Unbiased,
    WarmStarted,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.algorithms.table import ALGORITHMS as TABLE
from fltheory.algorithms.table import PARTS
from fltheory.engines import Setting, exact, paths, stationary
from fltheory.engines.affine.numbers import RATIONAL, Balls, InexactRoundError
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.enclosure import enclosed
from fltheory.engines.enclosure.enclosed import (
    ExactRun,
    NotEnclosedError,
    Work,
    _is_sharp,
    _Powers,
    enclosed_limits,
)
from fltheory.engines.observables import (
    BiasedExcessLoss,
    ParticipantExcessLoss,
    ParticipantGradientSum,
)
from fltheory.engines.trajectory import FIELDS
from fltheory.logs import AvailabilityLog
from fltheory.logs.played_log import PlayedLog
from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Participation,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.problems import Ball, QuadraticProblem
from tests.drawn import in_turn
from tests.engines import fraction_runs as runs
from tests.engines.history.test_histories import ALGORITHMS, PROCESSES

THIRDS = [1 / 3, 1 / 3, 1 / 3]
LIBRARY: dict[str, Algorithm | Schedule] = {
    "FedAvg": FedAvg(0.1, 3, server_lr=0.7),
    "SAFARI": Safari(0.3, 0.1, 0.2, 2),
    "weighted": WeightedFedAvg((0.2, 0.3, 0.5), 0.1, 2),
    "unbiased": Unbiased([0.2, 0.3, 0.5], [0.5, 0.6, 0.7], 0.1, 2),
    "AdaFed": AdaFed(THIRDS, [0.5, 0.6, 0.7], 0.1, 2),
    "inverse availability": FedAvgIS((0.5, 0.6, 0.7), 0.1, 2),
    "FedProx": FedProx(0.1, 2, 0.3, client_weights=(1.0, 2.0, 0.0)),
    "FedNova": FedNova(0.1, (2, 1, 3)),
    "FedVARP": FedVarp(0.1, 2),
    "clusters": ClusterFedVarp((0, 0, 1), 0.1, 2),
    "SCAFFOLD": Scaffold(0.1, 2),
    "SCAFFOLD I": Scaffold(0.1, 2, option=1),
    "warm SCAFFOLD": WarmStarted(Scaffold(0.1, 2)),
    "MIFA": Mifa(0.1, 2, start="zero"),
    "waiting MIFA": Mifa(0.1, 2),
    "FedAR": FedAR(0.1, 2, cutoff=1.0),
    "FedAU": FedAU(0.1, 2, cutoff=3),
    "FedAWE": FedAWE(0.1, 2, server_lr=0.8),
    "F3AST": F3ast(THIRDS, 2, 0.1, 2),
    "averaged": AveragedIterate(FedAvg(0.1, 2)),
    "averaged by steps": AveragedIterate(Scheduled(FedAvg(0.1, 2), Harmonic(0.3)), Constant(0.3)),
    "scheduled": Scheduled(FedAvg(0.1, 2), Harmonic(0.3, offset=1.0)),
    "momentum": ServerMomentum(FedAvg(0.1, 2), 0.5),
    "single steps": LocalSgd(Harmonic(0.3), 2, (0.2, 0.3, 0.5)),
    "ProxSkip": ProxSkip(0.1, 0.3),
    # the roots of these weights are 9/25, 12/25 and 4/5
    "single steps in fractions": LocalSgd(Harmonic(0.3), 2, (0.1296, 0.2304, 0.64)),
    "projected": Projected(
        Scheduled(WeightedFedAvg((0.2, 0.3, 0.5), 0.1, 2), Harmonic(0.3, offset=1.0)),
        Ball([0.0, 0.0], 20.0),
    ),
}
WITHOUT_NOISE = ("projected",)  # onto a ball that noise may leave
IRRATIONAL = ("single steps",)
WHO: dict[str, Participation] = {
    "subsets": UniformSubset(3, 2),
    "coins": Bernoulli([0.5, 0.6, 0.7]),
    "cycle": Cyclic([2, 3, 1], [0, 1, 0]),
    "on and off": MarkovOnOff([0.4, 0.5, 0.6], [0.5, -0.2, 0.1]),
}


def setting(name: str, who: str, rounds: int = 3, sigma: float = 0.5) -> Setting:
    problem = QuadraticProblem(
        [[[1.0, 0.2], [0.2, 2.0]], [[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 3.0]]],
        [[0.1, 0.0], [1.0, 1.3], [2.0, 0.0]],
        sigma=sigma,
        server_sigma=0.3,
    )
    return Setting(LIBRARY[name], problem, WHO[who], rounds, [2.0, 1.0])


@pytest.mark.parametrize(
    ("name", "who"), in_turn([name for name in ALGORITHMS if "grows" not in name], PROCESSES)
)
def test_fractions_are_those_of_every_history(name: str, who: str) -> None:
    """Equal to the last digit, and inside the balls.

    Fails if a float gets into a round, if a decimal is taken for the float that stands for it, or
    if histories with different counts are merged.
    """
    algorithm, by_hand = ALGORITHMS[name]
    participation, law, rounds = PROCESSES[who]
    rounds = min(rounds, 4)
    problem = QuadraticProblem([[[0.9]], [[0.6]]], [[-1.3], [2.7]], sigma=0.7)
    line = runs.Line(
        [Fraction(9, 10), Fraction(3, 5)], [Fraction(-13, 10), Fraction(27, 10)], Fraction(7, 10)
    )
    expected = list(runs.squared_distances(by_hand, line, law, rounds, Fraction(31, 10)))
    run = Setting(algorithm, problem, participation, rounds, [3.1])
    assert exact(run, arithmetic="rational").squared_distance.tolist() == expected
    balls = exact(run, arithmetic="enclosed")
    assert balls.enclosed
    assert balls.rounding_error is not None
    for value, error, truth in zip(
        balls.squared_distance, balls.rounding_error.squared_distance, expected, strict=True
    ):
        assert abs(Fraction(float(value)) - truth) <= Fraction(float(error))
        assert error <= 1e-12 * value


@pytest.mark.parametrize("sigma", [0.0, 0.7])
@pytest.mark.parametrize("who", ["Bernoulli", "Markov"])
def test_averages_of_scheduled_rounds_are_those_of_every_history(who: str, sigma: float) -> None:
    """CA-Fed's average under step sizes 3/10/(t + 1); without noise rounds are many paths.

    Fails if a weight of the average, or a step size, is a float, or is that of another round.
    """
    participation, law = {
        "Bernoulli": (
            Bernoulli([0.3, 0.8]),
            runs.bernoulli([Fraction(3, 10), Fraction(4, 5)]),
        ),
        "Markov": (
            MarkovOnOff([0.3, 0.8], [0.5, 0.2]),
            runs.on_and_off([Fraction(3, 10), Fraction(4, 5)], [Fraction(1, 2), Fraction(1, 5)]),
        ),
    }[who]
    problem = QuadraticProblem([[[0.9]], [[0.6]]], [[-1.3], [2.7]], sigma=sigma)
    line = runs.Line(
        [Fraction(9, 10), Fraction(3, 5)],
        [Fraction(-13, 10), Fraction(27, 10)],
        Fraction(7, 10) if sigma else Fraction(0),
    )
    by_hand = runs.averaged_weighted(
        [Fraction(1, 5), Fraction(2, 5)], 2, lambda t: Fraction(3, 10) / (t + 1)
    )
    expected = list(runs.squared_distances(by_hand, line, law, 4, Fraction(31, 10)))
    plain = Scheduled(WeightedFedAvg((0.2, 0.4), 0.1, 2), Harmonic(0.3, offset=1.0))
    run = Setting(AveragedIterate(plain), problem, participation, 4, [3.1])
    assert exact(run, arithmetic="rational").squared_distance.tolist() == expected
    balls = exact(run, arithmetic="enclosed")
    assert balls.rounding_error is not None
    for value, error, truth in zip(
        balls.squared_distance, balls.rounding_error.squared_distance, expected, strict=True
    ):
        assert abs(Fraction(float(value)) - truth) <= Fraction(float(error)) <= truth / 10**12


@pytest.mark.parametrize(("name", "who"), in_turn(LIBRARY, WHO))
def test_every_algorithm_is_contained(name: str, who: str) -> None:
    """Balls hold the fractions, and the float64 engines agree, for all three quantities."""
    given = setting(name, who, sigma=0.0 if name in WITHOUT_NOISE else 0.5)
    balls = exact(given, arithmetic="enclosed")
    assert balls.rounding_error is not None
    try:
        plain = exact(given)
    except NotAffineError:
        plain = paths(given)
    assert plain.rounding_error is not None
    for field in FIELDS:
        gap = np.abs(plain[field] - balls[field])
        assert (gap <= plain.rounding_error[field] + balls.rounding_error[field]).all()
    if name in IRRATIONAL:
        with pytest.raises(InexactRoundError, match="square root of 1/5 is not a fraction"):
            exact(given, arithmetic="rational")
        return
    fractions = exact(given, arithmetic="rational")
    for field in FIELDS:
        for value, error, truth in zip(
            balls[field], balls.rounding_error[field], fractions[field], strict=True
        ):
            assert abs(Fraction(float(value)) - truth) <= Fraction(float(error))
            # balls so narrow that a fault in the ninth digit would put the fraction outside
            assert error <= 1e-9 * value


def test_every_algorithm_of_the_table_is_contained_or_refused_in_a_line() -> None:
    """CA-Fed's weights follow from losses, so that its moments are no matter of affine maps."""
    tried = {part for given in LIBRARY.values() for part in _classes_in(given)}
    known = {entry.algorithm for entry in TABLE.values()} | set(PARTS)
    assert known - tried == {CAFed}
    for arithmetic in ("enclosed", "rational"):
        given = replace(setting("FedAvg", "on and off"), algorithm=CAFed(THIRDS, 0.1, 2))
        with pytest.raises(
            NotAffineError, match="takes the losses of a value that depends on"
        ) as caught:
            exact(given, arithmetic=arithmetic)
        assert "\n" not in str(caught.value)


def _classes_in(thing: object) -> set[type]:
    inner = [getattr(thing, item.name) for item in fields(thing)] if is_dataclass(thing) else []
    return {type(thing)} | {found for part in inner for found in _classes_in(part)}


@pytest.mark.parametrize(
    ("name", "who"), in_turn(["FedAvg", "SAFARI", "SCAFFOLD"], ["on and off", "subsets"], of=2)
)
def test_powers_of_one_round_are_the_rounds(
    name: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Baby and giant steps give every round that plain steps do."""
    given = setting(name, who, rounds=20)
    monkeypatch.setattr(enclosed, "_LARGEST_POWERED", 0)
    stepped = exact(given, arithmetic="enclosed")
    monkeypatch.setattr(enclosed, "_LARGEST_POWERED", 10**6)
    monkeypatch.setattr(enclosed, "_FEWEST_POWERED", 0)
    powered = exact(given, arithmetic="enclosed")
    assert stepped.rounding_error is not None
    assert powered.rounding_error is not None
    for field in FIELDS:
        off = stepped.rounding_error[field] + powered.rounding_error[field]
        assert (np.abs(powered[field] - stepped[field]) <= off).all()
        assert (off <= 2e-12 * stepped[field]).all()


def powers(small: np.ndarray, large: np.ndarray, radius: float = 0.0) -> _Powers:
    """Return sums that are known of one quantity: a row a small step, a column a large one."""
    left, right = (
        arb_mat([[arb(x, radius * abs(x)) for x in row] for row in part.tolist()])
        for part in (small, large)
    )
    return _Powers(left, right, 1, small.shape[0] * large.shape[1] - 1)


def check_held(sums: _Powers) -> tuple[np.ndarray, np.ndarray]:
    """Check that the floats are no farther from the balls than they say; return both."""
    found = sums.floats()
    assert found is not None
    for ball, middle, error in zip(sums.balls().flat, found[0].flat, found[1].flat, strict=True):
        assert abs(ball - arb(float(middle))) <= arb(float(error))
    return found


@hypothesis.given(st.integers(0, 2**32 - 1), st.floats(0, 40), st.sampled_from([0.0, 1e-18, 1e-9]))
def test_sums_in_floats_hold_those_in_balls(seed: int, spread: float, radius: float) -> None:
    """Numbers of both signs and of many sizes, whose sums cancel."""
    rng = np.random.default_rng(seed)
    small, large = (
        rng.standard_normal(shape) * 10.0 ** rng.uniform(-spread, spread, shape)
        for shape in ((3, 7), (7, 2))
    )
    check_held(powers(small, large, radius))


def test_what_both_factors_may_be_off_by_counts() -> None:
    """Between -1 and 1 each: so is the product."""
    around_zero = arb_mat([[arb(0, 1)]])
    _, errors = check_held(_Powers(around_zero, around_zero, 1, 0))
    assert 1 <= errors[0, 0] <= 1 + 1e-5


def test_sums_in_floats_know_what_they_lose() -> None:
    """One and 2,000 halves of its last place: each is lost to the sum that holds the one."""
    small = np.array([[1.0] + [2.0**-54] * 2000])
    middles, errors = check_held(powers(small, np.ones((2001, 1))))
    # Far more is lost than the half of a last place that any float may be off by.
    assert 1 + 2000 * 2.0**-54 - middles[0, 0] > 2.0**-50
    assert errors[0, 0] <= 2003 * 2.0**-52


def test_sums_near_an_overflow_are_not_made_in_floats() -> None:
    assert powers(np.array([[1e200]]), np.array([[1e100]])).floats() is None


def test_sums_that_cancel_are_made_in_balls() -> None:
    """A third less a third is zero, and floats know it to 1e-16."""
    with Balls(128).in_use():
        third = arb(1) / 3
        steps = arb_mat([[third, third, 2, third], [third, 0, third, third]])
        # The last large step goes beyond the rounds.
        sums = _Powers(arb_mat([[1, -1], [0, 1]]), steps, 1, 6)
        found, sharp = sums.floats(), sums.sharpened()
    assert found is not None
    assert sharp is not None
    assert not _is_sharp(*found)
    assert _is_sharp(*sharp)
    expected = [0, 1 / 3, 1 / 3, 0, 5 / 3, 1 / 3, 0]
    assert sharp[0][:, 0].tolist() == pytest.approx(expected, rel=1e-15, abs=1e-30)
    assert sharp[1][[0, 6], 0].max() < 1e-30
    # What needs no balls stays as it was summed.
    assert (sharp[0][[2, 4, 5]] == found[0][[2, 4, 5]]).all()
    assert (sharp[1][[2, 4, 5]] == found[1][[2, 4, 5]]).all()


def test_many_rounds_of_rotated_clients_stay_sharp() -> None:
    """Naive balls of 64 bits would have a radius of 1e152 here: more bits are taken."""
    rng = np.random.default_rng(0)
    turned = []
    for _ in range(3):
        q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
        hessian = q @ np.diag(np.linspace(0.1, 1.0, 6)) @ q.T
        turned.append(0.5 * (hessian + hessian.T))
    problem = QuadraticProblem(turned, rng.standard_normal((3, 6)), sigma=1.0)
    given = Setting(FedAvg(0.5, 10), problem, UniformSubset(3, 3), 500, np.ones(6))
    run = exact(given, arithmetic="enclosed")
    assert run.rounding_error is not None
    assert (run.rounding_error.squared_distance <= 1e-10 * run.squared_distance).all()
    plain = exact(given)
    np.testing.assert_allclose(run.squared_distance, plain.squared_distance, rtol=1e-9)


def test_observables_are_those_of_float64() -> None:
    problem = random_problem(6, 3, 2, sigma=0.7)
    observe = (
        ParticipantGradientSum(2, 0.1),
        ParticipantExcessLoss(),
        BiasedExcessLoss((0.2, 0.3, 0.5)),
    )
    for who in (
        UniformSubset(3, 2),
        FiniteChain([[0.5, 0.5], [0.25, 0.75]], [[1, 1, 0], [0, 1, 1]]),
    ):
        given = Setting(FedAvg(0.1, 2), problem, who, 5, [2.0, 1.0])
        balls = exact(given, observe=observe, arithmetic="enclosed")
        plain = exact(given, observe=observe)
        for item in observe:
            np.testing.assert_allclose(balls[item.name], plain[item.name], rtol=1e-10)


def test_limits_solve_the_equations_in_fractions() -> None:
    """``v / (1 - a^2)`` for one noisy client; elsewhere the float64 limit within its bound."""
    problem = QuadraticProblem([[1.0]], [[0.5]], sigma=2.0)
    given = Setting(FedAvg(0.5, 1), problem, UniformSubset(1, 1), 1, [0.0])
    limits = ExactRun(given, RATIONAL).limits()
    assert limits is not None
    assert Fraction(int(limits[0].p), int(limits[0].q)) == Fraction(1) / (1 - Fraction(1, 4))
    for who in WHO.values():
        given = Setting(LIBRARY["SAFARI"], setting("SAFARI", "coins").problem, who, 1, [0.0, 0.0])
        limits = ExactRun(given, RATIONAL).limits()
        if limits is None or who.n_outcomes == 6:
            continue
        found = stationary(given)
        for field, value in zip(FIELDS, limits, strict=True):
            truth = Fraction(int(value.p), int(value.q))
            gap = abs(Fraction(getattr(found, field)) - truth)
            assert gap <= Fraction(found.rounding_error[field])


def test_a_limit_in_balls_holds_the_fraction() -> None:
    """``v / (1 - a^2)`` for one noisy client; beyond a step of 2 there is none."""
    problem = QuadraticProblem([[1.0]], [[0.5]], sigma=2.0)
    with Balls(128).in_use():
        limits = enclosed_limits(FedAvg(0.5, 1), problem, UniformSubset(1, 1))
        found = limits["squared_distance"].value
        assert found.contains(fmpq(4, 3))
        assert float(found.rad()) < 1e-35
        with pytest.raises(NotEnclosedError, match="must have a limit"):
            enclosed_limits(FedAvg(2.5, 1), problem, UniformSubset(1, 1))


def test_overflow_says_in_which_round() -> None:
    """x doubles in sign and size by 99 per round from 1: 99^(2 r) passes 1e300 after round 75."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    given = Setting(FedAvg(100.0, 1), problem, UniformSubset(1, 1), 100, [1.0])
    run = exact(given, arithmetic="enclosed")
    assert run.diverged_at == 76
    assert np.isinf(run.squared_distance[76:]).all()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            Setting(
                FedAvg(0.1, 1),
                random_problem(1, 2, 1),
                PlayedLog(AvailabilityLog.from_masks([[1, 0], [1, 1]])),
                1,
                [0.0],
            ),
            NotAffineError,
            "participation must give its distribution in exact fractions",
        ),
        (
            # 1716 subsets of six, each with any of them seen.
            Setting(
                FedAvg(0.1, 1), random_problem(1, 13, 1), WaitingSubset([0.5] * 13, 6), 1, [0.0]
            ),
            NotAffineError,
            "at most 65536 outcomes or states for a run to be enclosed, got 109824",
        ),
        (
            Setting(
                FedAR(0.1, 1, cutoff=lambda t: np.where(np.asarray(t) <= 4, 0.0, 5.0)),
                random_problem(1, 2, 1),
                Trace([[1, 0], [0, 1]], start=0),
                2,
                [0.0],
            ),
            InexactRoundError,
            r"uses the float 0\.0",
        ),
        (
            # 60 over 30 is about 10^17: all of them would fill any memory.
            Setting(FedAvg(0.1, 1), random_problem(1, 60, 1), UniformSubset(60, 30), 1, [0.0]),
            NotAffineError,
            "participation must have at most 65536 outcomes .* got 118264581564861424",
        ),
    ],
    ids=["participation", "too many states", "a float in the round", "too many sets"],
)
def test_what_has_no_fractions_is_refused(given: Setting, error, message: str) -> None:
    with pytest.raises(error, match=message):
        exact(given, arithmetic="rational")


def test_bad_arithmetic_is_named() -> None:
    with pytest.raises(ValueError, match="arithmetic must be one of"):
        exact(setting("FedAvg", "coins"), arithmetic="quadruple")


def test_at_most_in_fractions() -> None:
    """One of two clients at most: half of the rounds with both, by hand."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    given = Setting(FedAvg(1.0, 1), problem, AtMost([0.5, 1.0], 1), 1, [0.0])
    assert exact(given, arithmetic="rational").squared_distance.tolist() == [0, 1]


def test_what_work_costs_and_when_it_is_given_up() -> None:
    """n^3/32 and n^2/16 for each state that may follow, in proportion to digits beyond 128 bits."""
    assert Work.of_map(8, 3, 128) == 10 + 2 * 3 + (16 + 3 * 4)
    assert Work.of_map(8, 3, 64) == Work.of_map(8, 3, 128)
    assert Work.of_map(8, 3, 512) == 10 + 2 * 3 + 4 * (16 + 3 * 4)
    work = Work(100.0)
    work.read(2, 3, 1)  # 2 x 2 x 3 x 4 = 48
    work.foresee(52.0)
    with pytest.raises(NotEnclosedError, match="costs more than 100 units"):
        work.foresee(52.5)
    work.spend(52.0)
    with pytest.raises(NotEnclosedError, match="costs more than 100 units"):
        work.spend(0.5)
    Work().spend(1e30)


@pytest.mark.parametrize(
    ("largest", "rounds", "powered"), [(6, 12, True), (5, 12, False), (6, 11, False)]
)
def test_when_rounds_are_taken_as_powers(
    largest: int, rounds: int, powered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of 2 and the constant 1 have 6 second moments: twice as many rounds are enough."""
    used: list[int] = []
    of = _Powers.of
    monkeypatch.setattr(enclosed, "_LARGEST_POWERED", largest)
    monkeypatch.setattr(
        enclosed._Powers, "of", lambda *arguments: (used.append(1), of(*arguments))[1]
    )
    problem = QuadraticProblem([[1.0, 0.0], [0.0, 0.5]], [[1.0, 2.0]])
    setting = Setting(FedAvg(0.25, 1), problem, UniformSubset(1, 1), rounds, [0.0, 0.0])
    found = exact(setting, arithmetic="enclosed").squared_distance
    assert bool(used) is powered
    gaps = np.array([0.75, 0.875])[:, None] ** np.arange(rounds + 1) * [[1.0], [2.0]]
    np.testing.assert_allclose(found, (gaps**2).sum(axis=0), rtol=1e-12)

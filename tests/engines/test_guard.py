"""Real rounds of a setting, before any engine answers."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_api_compat import array_namespace

from fltheory.algorithms import FedAvg, FedVarp, Harmonic, Mifa, Safari, Scaffold, Scheduled
from fltheory.algorithms.contract import Algorithm
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines import Setting, exact, guard, monte_carlo, paths
from fltheory.engines.affine.symbolic.clients import FormClients
from fltheory.engines.affine.symbolic.forms import AffineArray, Namespace, NotAffineError
from fltheory.engines.guard import (
    RandomRoundError,
    RoundRefusedError,
    SharedDraws,
    _RealRounds,
    _Seen,
    guard_affine,
    guarded,
    rounds_now,
)
from fltheory.engines.sampled.reach import reach
from fltheory.evidence.truths import Sampling, truth
from fltheory.evidence.verdict import Grade
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from tests.comparison import OF_FOUR_CLIENTS

PROBLEM = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=0.5)


def test_replicas_share_draws_up_to_a_factor() -> None:
    """Rows of replicas 0 to 3 in any order: factors 0, 1, -1 and 2 of one number."""
    numbers = SharedDraws(3, 4).normal(np.array([1, 3, 0, 2, 2, 1, 0, 3]), 2)
    first, second = numbers[0], numbers[5]
    assert (first != second).all()
    np.testing.assert_array_equal(numbers[1], 2 * first)
    np.testing.assert_array_equal(numbers[2], 0 * first)
    np.testing.assert_array_equal(numbers[3], -first)
    np.testing.assert_array_equal(numbers[4], -second)
    np.testing.assert_array_equal(numbers[7], 2 * second)


class TwoFaced(FedAvg):
    """FedAvg on forms; on numbers it does something else, in one of four ways."""

    what: str = ""

    def round(self, state, clients, who, branch):
        after = super().round(state, clients, who, branch)
        if not isinstance(after["x"], np.ndarray):
            return after
        if self.what == "far":
            return {"x": np.clip(after["x"], -100.0, 100.0)}
        if self.what == "stops":
            return {"x": np.where(np.abs(state["x"]) < 1e-4, state["x"], after["x"])}
        if self.what == "shifted":
            return {"x": after["x"] + 1e-3}
        again = super().round(state, clients, who, branch)
        return {"x": after["x"] + 0.1 * np.abs(after["x"] - again["x"])}


@pytest.mark.parametrize("what", ["far", "stops", "shifted", "noisy"])
@pytest.mark.parametrize("chain", [False, True])
def test_what_forms_do_not_show_is_found(what: str, chain: bool) -> None:
    """A clip beyond 100, a stop close to x*, a shift, and a round that is not affine in its noise.

    Fails if states far away, those close to x*, plain values, or noise and its opposite are not
    compared.
    """
    algorithm = TwoFaced(0.5, 1)
    object.__setattr__(algorithm, "what", what)
    who = MarkovOnOff([0.5, 0.5], 0.3) if chain else UniformSubset(2, 1)
    with pytest.raises(NotAffineError):
        exact(Setting(algorithm, PROBLEM, who, 4, [1.0]))


def test_far_states_are_apart_in_every_direction() -> None:
    """What is zero wherever all coordinates are alike, as they are from the start on here."""

    class Apart(FedAvg):
        def round(self, state, clients, who, branch):
            after = super().round(state, clients, who, branch)
            if not isinstance(after["x"], np.ndarray):
                return after
            return {"x": after["x"] + 0.1 * np.abs(np.diff(state["x"], axis=1))}

    square = QuadraticProblem(np.eye(2), [[-1.0, -1.0], [1.0, 1.0]])
    with pytest.raises(NotAffineError):
        guard_affine(Setting(Apart(0.5, 1), square, UniformSubset(2, 1), 4, [1.0, 1.0]))


def _steeper(made: Any) -> Any:
    """Return forms whose slopes are a millionth too steep, and the rest as it is."""
    if not isinstance(made, AffineArray):
        return made
    values = made.values.copy()
    values[..., 1:] *= 1 + 1e-6
    return AffineArray(made.space, values)


@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize(
    ("where", "name", "algorithm"),
    [
        (FormClients, "_summed", FedAvg(0.5, 1)),
        (FormClients, "_moved", FedVarp(0.5, 1)),
        (FormClients, "_each", Scaffold(0.5, 1)),
        (Namespace, "where", Mifa(0.5, 1, start="zero")),
        (Namespace, "mean", Mifa(0.5, 1, start="zero")),
        (Namespace, "matmul", FedVarp(0.5, 1)),
        (AffineArray, "__add__", FedAvg(0.5, 1)),
        (AffineArray, "__rmul__", Safari(0.5, 0.5, 0.5, 1)),
        (AffineArray, "__truediv__", FedVarp(0.5, 1)),
    ],
)
def test_forms_that_are_wrong_are_found(
    where: type, name: str, algorithm: Any, chain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every set alike; in whatever makes the maps that engines read."""
    honest = getattr(where, name)
    monkeypatch.setattr(where, name, lambda *given, **more: _steeper(honest(*given, **more)))
    who = MarkovOnOff([0.5, 0.5], 0.3) if chain else UniformSubset(2, 1)
    with pytest.raises(NotAffineError, match="deviates from its affine map"):
        exact(Setting(algorithm, PROBLEM, who, 4, [1.0]))


@pytest.mark.parametrize("rounds", [1, 2, 3, 9, 10, 400])
def test_rounds_over_the_whole_run_are_run_from_near_and_far(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule's first rounds one after another, its last, and 2^8 times as far on both sides."""
    seen: list[_Seen] = []
    honest = _RealRounds._goes_on
    monkeypatch.setattr(
        _RealRounds,
        "_goes_on",
        lambda self, one, random: seen.append(one) or honest(self, one, random),
    )
    setting = Setting(
        Scheduled(FedAvg(0.5, 1), Harmonic(1.0, 2.0)), PROBLEM, UniformSubset(2, 1), rounds, [-3.0]
    )
    guard_affine(setting)
    indices = [one.now.index for one in seen]
    assert indices[: min(rounds, 16)] == list(range(1, min(rounds, 16) + 1))
    assert indices[-1] == rounds
    assert seen[0].before["x"].tolist() == [[-3.0]] * 3
    for one in seen:
        assert np.abs(one.way["x"]).max() > 2**5


@pytest.mark.parametrize("spoilt", [1, 2, 5, 16, 400])
def test_a_round_that_differs_is_named(spoilt: int) -> None:
    """The schedule of a wrong round: only that one is not what was read."""

    class Late(FedAvg):
        def at(self, index: int) -> FedAvg:
            wrong = TwoFaced(0.5, 1)
            object.__setattr__(wrong, "what", "shifted")
            return wrong if index == spoilt else FedAvg(0.5, 1)

    setting = Setting(Late(0.5, 1), PROBLEM, UniformSubset(2, 1), max(spoilt, 9), [1.0])
    with pytest.raises(NotAffineError, match=f"round {spoilt} deviates"):
        guard_affine(setting)


class Private(FedAvg):
    """Differential privacy, as a lab would write it."""

    def round(self, state, clients, who, branch):
        after = super().round(state, clients, who, branch)
        return {"x": after["x"] + np.random.normal(0.0, 0.1, np.shape(after["x"]))}  # noqa: NPY002


def test_a_round_that_draws_by_itself_is_sampled_and_says_why() -> None:
    """One client at 1, noise of variance 1/100 per round: 1/4 of it stays and is joined by more.

    Fails if `paths` answers in place of `exact`, if the generator is not seeded, or if looking at
    rounds draws from the user's generator.
    """
    alone = QuadraticProblem([[1.0]], [[0.0]])
    setting = Setting(Private(0.5, 1), alone, UniformSubset(1, 1), 2, [1.0])
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.normal(size=3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    for engine in (exact, paths):
        with pytest.raises(RandomRoundError, match="draws from NumPy's global generator"):
            engine(setting)
    found = truth(setting, (), Sampling(replicas=1000, error_probability=1e-9))
    assert found.grade is Grade.STATISTICAL
    last, error = (
        found.trajectory.squared_distance[-1],
        found.trajectory.standard_error.squared_distance[-1],
    )
    assert abs(last - (1 / 16 + 0.01 / 4 + 0.01)) < 6.5 * error < 0.03
    again = monte_carlo(setting, replicas=1000, seed=0)
    np.testing.assert_array_equal(again.squared_distance, found.trajectory.squared_distance)
    np.testing.assert_array_equal(np.random.normal(size=3), expected)  # noqa: NPY002


def test_bounds_on_updates_are_not_believed_of_an_overridden_round() -> None:
    """Nothing is known of how far a round goes that throws the model to 1000."""

    class Thrown(FedAvg):
        def round(self, state, clients, who, branch):
            return {"x": np.sign(state["x"]) * 1e3}

    setting = Setting(Thrown(0.5, 1), PROBLEM, UniformSubset(2, 1), 2, [1.0])
    assert np.isinf(reach(setting).distance[1:]).all()
    assert np.isfinite(reach(replace(setting, algorithm=FedAvg(0.5, 1))).distance).all()


def test_maps_are_guarded_once_for_what_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    honest = _RealRounds.differs
    monkeypatch.setattr(_RealRounds, "differs", lambda self: runs.append(1) or honest(self))
    for lr in (0.3125, 0.3125, 0.34375):
        for arithmetic in ("float64", "enclosed"):
            problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
            setting = Setting(FedAvg(lr, 1), problem, UniformSubset(2, 1), 3, [1.0])
            exact(setting, arithmetic=arithmetic)
    assert len(runs) == 2


class Momentum(FedAvg):
    """The memory is moved by the model."""

    def init(self, x0: Any, n_clients: int) -> Any:
        return {"x": x0, "m": 0 * x0}

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        m = state["m"] / 2 + super().round(state, clients, who, branch)["x"] - state["x"]
        return {"x": state["x"] + m, "m": m}


def test_a_long_run_of_one_map_takes_no_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow rounds of a user's own would otherwise take hours."""
    ran: list[int] = []
    honest = _RealRounds._round

    def run(self: Any, now: Any, *given: Any, **more: Any) -> Any:
        ran.append(now.index)
        return honest(self, now, *given, **more)

    monkeypatch.setattr(_RealRounds, "_round", run)
    guarded(Setting(Momentum(0.5, 1), PROBLEM, UniformSubset(2, 1), 4000, [1.0]))
    assert len(ran) < 100


def test_what_is_cached_of_rounds_is_small() -> None:
    problem = QuadraticProblem(np.eye(1000), np.eye(2, 1000))
    setting = Setting(Momentum(0.5, 1), problem, UniformSubset(2, 1), 5, np.ones(1000))
    seen = rounds_now(setting)
    assert isinstance(seen, tuple)
    assert len(seen) == 10
    assert sum(map(len, seen)) < 1000


class Checked(FedAvg):
    """It counts, and fails once it has diverged."""

    def init(self, x0: Any, n_clients: int) -> Any:
        return {"x": x0, "t": array_namespace(x0).zeros((x0.shape[0], 1))}

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        if isinstance(state["x"], np.ndarray):
            assert np.isfinite(state["x"]).all()
        return {**super().round({"x": state["x"]}, clients, who, branch), "t": state["t"] + 1}


def test_rounds_are_not_run_after_the_run_has_diverged() -> None:
    """Distances grow four times a round, beyond all floats in round 512."""
    setting = Setting(Checked(5.0, 1), PROBLEM, UniformSubset(2, 2), 600, [1.0])
    assert guarded(setting).differs == ""


class Divides(FedAvg):
    """The mean of nobody is 0/0, which is not used; or else whoever divides by 0 stops there."""

    stops: bool = False

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        try:
            shares = np.where(who.any(axis=1, keepdims=True), who / who.sum(axis=1)[:, None], 0.0)
        except FloatingPointError:
            if not self.stops:
                raise
            shares = np.zeros(who.shape)
        x = state["x"]
        return {"x": x + clients.summed_local_sgd(x, who, shares, steps=1, lr=0.5)}


class Stops(Divides):
    stops = True


def test_errors_that_engines_silence_are_no_reason_to_refuse() -> None:
    """But a round that goes another way where NumPy raises is refused."""
    ways = (
        Setting(one(0.5, 1), PROBLEM, Bernoulli([0.5, 0.5]), 3, [1.0]) for one in (Divides, Stops)
    )
    with np.errstate(all="raise"):
        assert guarded(next(ways)).differs == ""
        with pytest.raises(RoundRefusedError, match="where NumPy may warn, or raise"):
            guarded(next(ways))


def test_states_of_objects_are_refused_by_name() -> None:
    class Objects(Checked):
        def init(self, x0: Any, n_clients: int) -> Any:
            return {"x": x0, "t": np.zeros((x0.shape[0], 1), dtype=object)}

    with pytest.raises(RoundRefusedError, match="'t' of type object, which is not numeric"):
        guarded(Setting(Objects(0.5, 1), PROBLEM, UniformSubset(2, 1), 3, [1.0]))


def test_the_last_of_many_sets_is_seen() -> None:
    """Everybody is the last of 1024 sets, and hardly ever drawn."""

    class OtherwiseOfAll(FedAvg):
        def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
            x, step = state["x"], 1.0
            if isinstance(x, np.ndarray):
                step = np.where(who.all(axis=1, keepdims=True), 0.5, 1.0)
            return {"x": x + step * (super().round(state, clients, who, branch)["x"] - x)}

    problem = QuadraticProblem([[1.0]], np.arange(10.0)[:, None])
    with pytest.raises(NotAffineError, match="deviates from its affine map"):
        exact(Setting(OtherwiseOfAll(0.5, 1), problem, Bernoulli([0.5] * 10), 3, [1.0]))


def test_a_round_may_import_what_nobody_has_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module's first import may also ask the operating system for a seed."""
    source = "import random\nOWN = random.Random()\nRATE = 0.25\n"
    (tmp_path / "imported_late.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_late", raising=False)

    class ImportsLate(FedAvg):
        def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
            from imported_late import RATE  # type: ignore[import-not-found]

            x = state["x"]
            return {"x": x + clients.summed_local_sgd(x, who, who / 1, steps=1, lr=RATE)}

    alone = QuadraticProblem([[1.0]], [[0.0]])
    found = exact(Setting(ImportsLate(0.5, 1), alone, UniformSubset(1, 1), 2, [1.0]))
    assert found.squared_distance.tolist() == [1.0, 0.75**2, 0.75**4]


@dataclass(frozen=True)
class OneOddRound:
    """Round 80 of 100, which is not among those that are run, has a branch too few."""

    def at(self, t):
        algorithm = Safari(0.5, 0.1, 0.1, 1)
        if t == 80:
            object.__setattr__(algorithm, "q", 1.5)
        return algorithm


def test_branches_of_every_round_are_checked() -> None:
    setting = Setting(OneOddRound(), PROBLEM, UniformSubset(2, 1), 100, [1.0])
    with pytest.raises(ValueError, match=r"sum to 1, got .* in round 80"):
        guarded(setting)


class DrawsGlobally(FedAvg):
    """A step that NumPy's global generator decides."""

    def round(self, state, clients, who, branch):
        after = super().round(state, clients, who, branch)
        return {"x": after["x"] + np.random.standard_normal(after["x"].shape)}  # noqa: NPY002


def test_threads_do_not_take_each_others_draws_for_their_rounds() -> None:
    """Pure and drawing rounds are looked at and sampled in turn by four threads at once."""
    found: list[tuple[bool, str]] = []
    runs: list[float] = []

    def look(thread: int) -> None:
        for count in range(12):
            draws = (thread + count) % 2 == 0
            algorithm = DrawsGlobally(0.5, 1) if draws else FedAvg(0.5, 1)
            start = 1.0 + thread + 4 * count
            setting = Setting(algorithm, PROBLEM, UniformSubset(2, 1), 3, [start])
            found.append((draws, guarded(setting).draws_from))
            if draws:
                same = Setting(algorithm, PROBLEM, UniformSubset(2, 1), 3, [1.0])
                runs.append(float(monte_carlo(same, 20, 7).squared_distance[-1]))

    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(look, range(4)))
    assert {drawn for draws, drawn in found if draws} == {"NumPy's global generator"}
    assert {drawn for draws, drawn in found if not draws} == {""}
    assert len(set(runs)) == 1
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@dataclass(frozen=True)
class LongestAbsence(Algorithm):
    """Steps fall with the longest absence: of a replica's own clients, or of all replicas'."""

    over_replicas: bool

    def init(self, x0: Any, n_clients: int) -> Any:
        return {"x": x0, "absent": array_namespace(x0).zeros((x0.shape[0], n_clients))}

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        xp, absent = array_namespace(state["x"]), state["absent"]
        longest = xp.max(absent) if self.over_replicas else xp.max(absent, axis=1, keepdims=True)
        change = clients.local_sgd(state["x"], who, steps=1, lr=0.5).sum(axis=1)
        return {
            "x": state["x"] + change / (2 + longest),
            "absent": xp.where(who, 0 * absent, absent + 1),
        }


class LongAbsence(LongestAbsence):
    """Steps are short once a client has been away for five rounds: of a batch, or of a run."""

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        long = state["absent"] >= 5
        long = long.any() if self.over_replicas else long.any(axis=1, keepdims=True)
        change = clients.local_sgd(state["x"], who, steps=1, lr=0.5).sum(axis=1)
        absent = np.where(who, 0 * state["absent"], state["absent"] + 1)
        return {"x": state["x"] + change * np.where(long, 0.5, 0.25), "absent": absent}


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_samples_are_not_taken_of_replicas_that_look_at_rare_others(sigma: float) -> None:
    """Fails if only the guard's few paths tell, none of which is away for so long."""
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]], sigma=sigma)
    own, others = (
        Setting(LongAbsence(over), problem, Bernoulli([0.7, 0.6]), 12, [3.0])
        for over in (False, True)
    )
    run, computed = monte_carlo(own, 2000, 0), paths(own).squared_distance
    assert run.standard_error is not None
    assert (abs(run.squared_distance - computed) <= 6 * run.standard_error.squared_distance).all()
    with pytest.raises(RoundRefusedError, match="gives a replica another 'x' in a batch"):
        monte_carlo(others, 200, 0)


def test_branches_that_can_be_read_once_are_refused_by_name() -> None:
    class Once(FedAvg):
        branches = iter([("clients", 1.0)])  # type: ignore[assignment]

    setting = Setting(Once(0.5, 1), PROBLEM, UniformSubset(2, 1), 3, [1.0])
    for arithmetic in ("float64", "enclosed"):
        with pytest.raises(RoundRefusedError, match="can be read once only"):
            exact(setting, arithmetic=arithmetic)


def test_fresh_seeds_are_seen_beside_a_profiler_in_python() -> None:
    class Fresh(FedAvg):
        def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
            rare = np.random.default_rng().random() < 2.0**-40
            after = super().round(state, clients, who, branch)
            return {"x": after["x"] + 1e9 * rare}

    seen: list[str] = []
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    try:
        with pytest.raises(RoundRefusedError, match="operating system"):
            guarded(Setting(Fresh(0.5, 1), PROBLEM, UniformSubset(2, 1), 3, [1.0]))
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert "c_call" in seen


def test_replicas_with_other_counts_must_not_change_what_one_comes_to() -> None:
    """Histories are the replicas of one run on forms, so such a round has no moments by history.

    Fails if replicas are only seen side by side while their counts are still equal.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    own, others = (
        Setting(LongestAbsence(over), problem, Bernoulli([0.5, 0.7]), 6, [3.0])
        for over in (False, True)
    )
    fractions = exact(own, arithmetic="rational").squared_distance[-1]
    assert paths(own).squared_distance[-1] == pytest.approx(float(fractions), rel=1e-12)
    for run in (paths, lambda s: exact(s, arithmetic="enclosed"), lambda s: monte_carlo(s, 10, 0)):
        with pytest.raises(RoundRefusedError, match="gives a replica another 'x' in a batch"):
            run(others)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_packages_own_rounds_are_the_same_in_large_batches(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which settings do not see: of the package's own code they run few replicas."""
    monkeypatch.setattr(guard, "runs_users_code", lambda algorithm: True)
    optima = np.random.default_rng(0).normal(size=(4, 2))
    problem = QuadraticProblem(np.diag([1.0, 0.5]), optima)
    algorithm = ALGORITHMS[name].tried(4, OF_FOUR_CLIENTS)
    rounds = _RealRounds(Setting(algorithm, problem, Bernoulli([0.5] * 4), 40, [1.0, 2.0]))
    assert rounds.unequal() == ""

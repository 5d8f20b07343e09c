"""Real rounds against what forms say of them."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, exact
from fltheory.engines.affine import probe
from fltheory.engines.affine import replay as replay_module
from fltheory.engines.affine.replay import SharedDraws, replay
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.participation import MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem

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
    """FedAvg on forms; on numbers it does something else, in one of three ways."""

    what: str = ""

    def round(self, state, clients, who, branch):
        after = super().round(state, clients, who, branch)
        if not isinstance(after["x"], np.ndarray):
            return after
        if self.what == "far":
            return {"x": np.clip(after["x"], -100.0, 100.0)}
        if self.what == "shifted":
            return {"x": after["x"] + 1e-3}
        again = super().round(state, clients, who, branch)
        return {"x": after["x"] + 0.1 * np.abs(after["x"] - again["x"])}


@pytest.mark.parametrize("what", ["far", "shifted", "noisy"])
@pytest.mark.parametrize("chain", [False, True])
def test_what_forms_do_not_show_is_found(what: str, chain: bool) -> None:
    """A clip beyond 100, a shift, and a round that is not affine in its noise.

    Fails if far states, plain values, or noise and its opposite are not compared.
    """
    algorithm = TwoFaced(0.5, 1)
    object.__setattr__(algorithm, "what", what)
    who = MarkovOnOff([0.5, 0.5], 0.3) if chain else UniformSubset(2, 1)
    with pytest.raises(NotAffineError):
        exact(Setting(algorithm, PROBLEM, who, 4, [1.0]))


def test_maps_that_are_wrong_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slopes a millionth too steep, in every set alike."""
    honest = probe.Probe.maps

    def wrong(self, masks):
        maps = honest(self, masks)
        return probe.SetMaps((1 + 1e-6) * maps.slopes, maps.offsets, maps.noises)

    monkeypatch.setattr(probe.Probe, "maps", wrong)
    with pytest.raises(NotAffineError):
        exact(Setting(FedAvg(0.5, 1), PROBLEM, UniformSubset(2, 1), 4, [1.0]))


@pytest.mark.parametrize(
    ("rounds", "replayed"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (9, [1, 2, 5, 9]), (10, [1, 2, 5, 10])],
)
def test_rounds_over_the_whole_run_are_replayed_from_near_and_far(
    rounds: int, replayed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the run's own start, and 2^8 times as far as it on both sides."""
    seen: list[int] = []
    begun: list[np.ndarray] = []

    def noted(setting, layout, index, states, maps, clients):
        assert maps.masks.shape == (3, 2)
        seen.append(index)
        begun.append(states)
        return states

    monkeypatch.setattr(replay_module, "_replayed", noted)
    setting = Setting(FedAvg(0.5, 1), PROBLEM, UniformSubset(2, 1), rounds, [-3.0])
    layout = StateLayout.of(setting.algorithm, PROBLEM)
    replay(setting, PROBLEM, layout)
    assert seen == replayed
    start, far, opposite = begun[0] + layout.origin
    assert start.tolist() == [-3.0]
    assert abs(float(far[0])) == 3 * 2**8
    assert (far == -opposite).all()
    seen.clear()
    for largest, count in ((2, len(replayed)), (1, 0)):
        monkeypatch.setattr(replay_module, "_LARGEST", largest)
        seen.clear()
        replay(setting, PROBLEM, layout)
        assert len(seen) == count


@pytest.mark.parametrize("spoilt", [1, 2, 5, 9])
def test_a_round_that_differs_is_named(spoilt: int) -> None:
    """The schedule of a wrong round: only that one is not what was read."""

    class Late(FedAvg):
        def at(self, index: int) -> FedAvg:
            wrong = TwoFaced(0.5, 1)
            object.__setattr__(wrong, "what", "shifted")
            return wrong if index == spoilt else FedAvg(0.5, 1)

    setting = Setting(Late(0.5, 1), PROBLEM, UniformSubset(2, 1), 9, [1.0])
    layout = StateLayout.of(FedAvg(0.5, 1), PROBLEM)
    with pytest.raises(NotAffineError, match=f"round {spoilt} misses"):
        replay(setting, PROBLEM, layout)

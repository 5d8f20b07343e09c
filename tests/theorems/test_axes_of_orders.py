"""Along which numbers orders are read off, and what changes with them, typed again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAR, FedAU, Safari, Scheduled
from fltheory.engines import Setting
from fltheory.participation import Cyclic
from fltheory.theorems.fedau.setting import FedAUSetting

ALONG = [s for s in theorems.registered() if hasattr(s, "axes")]
THIRDS_OF_DECADES = [100, 215, 464, 1000, 2154, 4642, 10_000, 21_544, 46_416, 100_000]
HALF_DECADES = [2, 20, 200, 632, 2000]
GRIDS = {
    ("sa-fl/corollary-1", "R"): THIRDS_OF_DECADES,
    ("sa-fl/corollary-1", "K"): [1, 10, 100, 200, 500, 1000],
    ("sa-fl/corollary-2", "R"): THIRDS_OF_DECADES,
    ("sa-fl/remark-6-nonconvex", "K"): [1, 10, 100, 200, 500, 1000],
    ("sa-fl/remark-6-convex", "R"): [2 * rounds for rounds in THIRDS_OF_DECADES],
    ("fedau/1", "s"): [1, 10, 100, 316, 1000],
    ("fedau/2-option-1", "T"): HALF_DECADES,
    ("fedau/2-option-2", "T"): HALF_DECADES,
    ("fedau/corollary-4", "T"): HALF_DECADES,
    ("fedau/3", "T"): HALF_DECADES,
    ("fedau/3", "K"): [1, 10, 100, 316, 1000],
    ("fednova/1", "T"): [100, 1000, 10_000, 31_623, 100_000],
    ("fedawe/1", "T"): [10**5, 10**6, 10**7, 31_622_777, 10**8],
    ("fedawe/corollary-1", "T"): [10**5, 10**6, 10**7, 31_622_777, 10**8],
    ("fedar/1", "T"): [1, 10, 100, 300, 1000],
    ("fedar/2", "T"): [3, 30, 300, 1000, 3000],
    ("fedar/average-inactivity", "P"): [1, 2, 4, 8],
    ("fedar/maximum-inactivity", "tau_max"): [1, 2, 4, 8],
    ("fedar/number-of-clients", "N"): [2, 4, 8, 16],
    ("fedar/initial-error", "F_0"): [1, 2, 4, 8],
    ("fedar/variance", "sigma"): [1, 2, 4, 8],
    ("fedavg-li/4", "n"): [1, 10, 100, 1000],
    **{
        (f"scaffold-bias/{name}", variable): [1, 10, 100, 316, 1000]
        for name in ("4.1", "11", "16")
        for variable in "nm"
    },
}


def axis_of(identifier: str, reading: str, index: int):
    return theorems.get(identifier, reading).axes[index]


def some_setting(identifier: str, reading: str = "printed") -> Setting:
    return next(iter(theorems.get(identifier, reading).regimes.values())).setting


@pytest.mark.parametrize("statement", ALONG, ids=lambda s: f"{s.id} {s.reading}")
def test_values_along_the_axes(statement) -> None:
    for axis in statement.axes:
        key = statement.id, str(axis.variable)
        # Later where client rounds are as rare as log(R)/R: etabar is too large before.
        factor = 2 if (statement.id, statement.reading) == ("sa-fl/corollary-2", "repaired") else 1
        if key in GRIDS:
            for regime in statement.regimes.values():
                expected = [factor * value for value in GRIDS[key]]
                assert list(axis.grid(regime.setting)) == expected
        elif statement.theorem.id in ("sa-fl/4", "sa-fl-submission/4"):
            for regime in statement.regimes.values():
                grid = list(axis.grid(regime.setting))
                size = int(regime.setting.participation.fixed_size)
                last = {"R": regime.setting.rounds, "m": 1000 * size, "K": 1000}[key[1]]
                assert (grid[0], grid[-1]) == (last / 1000, last)
        else:
            assert statement.id == "fedar/weight"


@pytest.mark.parametrize("identifier", ["scaffold-bias/4.1", "scaffold-bias/11", "fedavg-li/4"])
def test_steps_fall_and_clients_grow(identifier: str) -> None:
    """Along n steps are divided; along m clients are multiplied as well, and nothing else."""
    before = some_setting(identifier)
    for axis in theorems.get(identifier).axes:
        after = axis.schedule(before, 100)
        more = 100 if str(axis.variable) == "m" else 1
        assert after.problem.n_clients == more * before.problem.n_clients
        assert after.participation.fixed_size == after.problem.n_clients
        np.testing.assert_array_equal(after.problem.x_star, before.problem.x_star)
        steps = [getattr(one.algorithm, "client_lr", None) for one in (before, after)]
        if steps[0] is None:
            steps = [one.algorithm.step_sizes.value for one in (before, after)]
        assert steps[1] == pytest.approx(steps[0] / 100, rel=1e-15)
        assert after.algorithm.local_steps == before.algorithm.local_steps
        assert after.problem.sigma == before.problem.sigma


@pytest.mark.parametrize(
    "identifier", ["sa-fl-submission/corollary-1", "sa-fl/corollary-1-speedup"]
)
@pytest.mark.parametrize(("index", "value"), [(0, 400), (1, 30), (2, 50)])
def test_speed_up(identifier: str, index: int, value: int) -> None:
    """q = 1 - 1/(2mK), eta_s = sqrt(mK/R) or 1/sqrt(R), or q = 1/2, eta_s = 1/5; K = 1, m = 3."""
    setting = theorems.get(identifier).regimes["minority excluded"].setting
    axis = axis_of(identifier, "printed", index)
    m, K = value if index == 1 else 3, value if index == 2 else 1
    for along in (axis, *axis.of_families):
        found = along.schedule(setting, value)
        algorithm, rounds = found.algorithm, found.rounds
        product = m * K if identifier == "sa-fl-submission/corollary-1" else 1
        assert algorithm.assist_lr == pytest.approx(math.sqrt(product / rounds))
        assert algorithm.client_lr == pytest.approx(2 * algorithm.assist_lr / K)
        assert algorithm.q == pytest.approx(1 / 2 if along.under else 1 - 1 / (2 * m * K))
        assert algorithm.local_steps == K
        assert rounds == (25 * product if along.under else 400 if index == 0 else 10_000)
        who, problem = found.participation, found.problem
        assert who.marginals.tolist() == [0, 1, 1, 1] * (m // 3)
        assert (problem.L, problem.sigma_G) == pytest.approx((0.01, 0.1))
        np.testing.assert_allclose(problem.x_star, setting.problem.x_star, atol=1e-12)


def test_nothing_is_known_of_steps_that_change_or_of_a_server_without_noise() -> None:
    """The server's noise stays at steps that stay: (1 - 1/2) (1/100 1/5)^2 = 2e-6."""
    statement = theorems.get("sa-fl-submission/corollary-1")
    axis = axis_of(statement.id, "printed", 1)
    (family,) = axis.of_families

    def known(along, regime: str):
        return along.known_decay(statement.settings_along(along, statement.regimes[regime].setting))

    assert known(axis, "at the level of the noise") is None
    assert known(family, "i.i.d., quiet server") is None
    found = known(family, "at the level of the noise")
    assert (found.exponent, found.in_floats) == (0.0, False)
    assert "2e-06" in found.why


def test_growth_of_psi_in_thousandths() -> None:
    (axis,) = theorems.get("fedar/weight").axes
    setting = some_setting("fedar/weight")
    assert list(axis.grid(setting)) == [0, 10, 50, 200]
    scheduled = axis.schedule(setting, 50).algorithm
    assert isinstance(scheduled, Scheduled)
    fedar = scheduled.algorithm
    assert isinstance(fedar, FedAR)
    np.testing.assert_allclose(fedar.weight(np.array([0, 1, 10, 30])), [1, 1.05, 1.5, 2])


@pytest.mark.parametrize("reading", ["printed", "derived", "repaired"])
@pytest.mark.parametrize("rounds", [400, 10_000])
def test_safari_over_rounds(reading: str, rounds: int) -> None:
    """eta_s = 1/sqrt(R), or sqrt(mK/R); eta_c = 2 eta_s/K; m = K = 2."""
    setting = some_setting("sa-fl/corollary-1", reading)
    found = axis_of("sa-fl/corollary-1", reading, 0).schedule(setting, rounds)
    algorithm = found.algorithm
    assert isinstance(algorithm, Safari)
    expected = math.sqrt((4 if reading == "derived" else 1) / rounds)
    assert algorithm.assist_lr == pytest.approx(expected)
    assert algorithm.client_lr == pytest.approx(2 * expected / 2)
    assert algorithm.q == (1 / (2 * math.sqrt(rounds)) if reading == "repaired" else 0.5)
    assert (found.rounds, algorithm.local_steps) == (rounds, 2)
    unchanged(found, setting)


@pytest.mark.parametrize("reading", ["printed", "derived", "repaired"])
@pytest.mark.parametrize("steps", [1, 50])
def test_safari_over_local_steps(reading: str, steps: int) -> None:
    """And the server's noise with them: sigma_s^2 = sigma^2/(2mK), m = 2."""
    setting = some_setting("sa-fl/corollary-1", reading)
    found = axis_of("sa-fl/corollary-1", reading, 1).schedule(setting, steps)
    algorithm, r = found.algorithm, setting.rounds
    assert isinstance(algorithm, Safari)
    expected = math.sqrt((1 if reading == "printed" else 2 * steps) / r)
    assert algorithm.assist_lr == pytest.approx(expected)
    assert algorithm.client_lr == pytest.approx(2 * expected / steps)
    rare = 1 / (2 * math.sqrt(2 * steps * r))
    assert algorithm.q == pytest.approx(rare if reading == "repaired" else 0.5)
    assert (found.rounds, algorithm.local_steps) == (r, steps)
    assert found.problem.sigma == setting.problem.sigma
    assert found.problem.server_sigma == pytest.approx(
        setting.problem.sigma / math.sqrt(2 * 2 * steps)
    )
    np.testing.assert_array_equal(found.problem.optima, setting.problem.optima)
    np.testing.assert_array_equal(found.problem.hessians, setting.problem.hessians)


@pytest.mark.parametrize("reading", ["printed", "derived", "repaired"])
def test_safari_with_steps_of_log_r_over_r(reading: str) -> None:
    setting = some_setting("sa-fl/corollary-2", reading)
    before = setting.algorithm
    assert isinstance(before, Safari)
    found = axis_of("sa-fl/corollary-2", reading, 0).schedule(setting, 1000)
    after, scale = found.algorithm, math.log(1000) / 1000 / (math.log(1e5) / 1e5)
    assert isinstance(after, Safari)
    assert after.assist_lr == pytest.approx(scale * before.assist_lr)
    assert after.client_lr == pytest.approx(scale * before.client_lr)
    assert after.q == pytest.approx(math.log(1000) / 2000 if reading == "repaired" else 0.5)
    assert found.rounds == 1000
    unchanged(found, setting)


def unchanged(found: Setting, before: Setting) -> None:
    assert found.problem is before.problem
    assert found.participation is before.participation
    np.testing.assert_array_equal(found.x0, before.x0)


def test_fedau_with_smaller_steps() -> None:
    setting = some_setting("fedau/1")
    found = axis_of("fedau/1", "printed", 0).schedule(setting, 100)
    assert found.algorithm.client_lr == pytest.approx(setting.algorithm.client_lr / 100)
    assert found.algorithm.server_lr == setting.algorithm.server_lr
    assert found.rounds == setting.rounds
    unchanged(found, setting)


@pytest.mark.parametrize("option", ["fedau/2-option-1", "fedau/2-option-2"])
@pytest.mark.parametrize(("rounds", "factor"), [(2, 10), (200, 10), (632, 2000 / 632), (2000, 1)])
def test_fedau_over_rounds(option: str, rounds: int, factor: float) -> None:
    """gamma is proportional to 1/sqrt(T) in the last decade."""
    setting = some_setting(option)
    found = axis_of(option, "printed", 0).schedule(setting, rounds)
    expected = setting.algorithm.client_lr * math.sqrt(factor)
    assert found.algorithm.client_lr == pytest.approx(expected)
    assert found.rounds == rounds
    unchanged(found, setting)


@pytest.mark.parametrize(("reading", "largest"), [("printed", 2), ("derived", 4)])
@pytest.mark.parametrize("regime", ["bounded gradients", "quadratic"])
@pytest.mark.parametrize("rounds", [3, 2000])
def test_fedau_at_the_corollarys_steps(
    reading: str, largest: int, regime: str, rounds: int
) -> None:
    """gamma = 1/(L I sqrt(T)), gamma eta the least of three, K = log_c T; L = 1, I = 2."""
    statement = theorems.get("fedau/corollary-4", reading)
    setting = statement.regimes[regime].setting
    found = statement.axes[0].schedule(setting, rounds)
    algorithm, problem = found.algorithm, found.problem
    assert isinstance(algorithm, FedAU)
    gamma = min(1 / (2 * math.sqrt(rounds)), 1 / (4 * math.sqrt(15) * 2))
    assert algorithm.client_lr == pytest.approx(gamma)
    # c = (1 - p)^-2 for the rarest, p = 3/4.
    assert algorithm.cutoff == max(1, round(math.log(rounds) / math.log(16)))
    square = FedAUSetting(found).largest_square
    noise = square * (2 * problem.sigma_G**2 + problem.sigma**2)
    excess = float(problem.excess_loss(setting.x0))
    by_noise = math.sqrt(excess * 2 / (noise * 2 * rounds))
    product = min(by_noise, 1 / (largest * 2), 2 / (27 * 2 * square))
    assert algorithm.client_lr * algorithm.server_lr == pytest.approx(product)
    assert algorithm.client_lr * algorithm.server_lr <= product
    assert (found.rounds, algorithm.local_steps) == (rounds, 2)
    unchanged(found, setting)


def test_fedaus_weights_over_rounds_and_cutoffs() -> None:
    setting = some_setting("fedau/3")
    longer = axis_of("fedau/3", "printed", 0).schedule(setting, 300)
    assert (longer.rounds, longer.algorithm) == (300, setting.algorithm)
    later = axis_of("fedau/3", "printed", 1).schedule(setting, 7)
    assert isinstance(later.algorithm, FedAU)
    assert (later.rounds, later.algorithm.cutoff) == (setting.rounds, 7)
    for found in (longer, later):
        unchanged(found, setting)


def test_fedar_over_rounds() -> None:
    plain = some_setting("fedar/1")
    found = axis_of("fedar/1", "printed", 0).schedule(plain, 30)
    assert (found.rounds, found.algorithm) == (30, plain.algorithm)
    unchanged(found, plain)
    smooth = some_setting("fedar/2")
    found = axis_of("fedar/2", "printed", 0).schedule(smooth, 3000)
    assert found.rounds == 3000
    # eta = 1/(2 L K sqrt(T)), K = 2.
    assert found.algorithm.client_lr == pytest.approx(1 / (4 * math.sqrt(3000)))
    unchanged(found, smooth)


def cycles_of(setting: Setting) -> tuple[list[int], list[int], int]:
    who = setting.participation
    assert isinstance(who, Cyclic)
    active = int(np.asarray(who.active).max())
    return list(who.periods), list(who.offsets), active


def test_fedar_with_other_absences() -> None:
    """Four clients, one after the other, there once in P rounds; or away for a gap at a time.

    Absences of g rounds, one in a cycle of g (g + 1), add up to g (g + 1)/2: 1/2 per round.
    """
    (period,) = theorems.get("fedar/average-inactivity").axes
    setting = some_setting("fedar/average-inactivity")
    assert cycles_of(period.schedule(setting, 8)) == ([8] * 4, [0, 2, 4, 6], 1)
    assert period.schedule(setting, 8).rounds == 150
    (gap,) = theorems.get("fedar/maximum-inactivity").axes
    periods, offsets, active = cycles_of(gap.schedule(setting, 4))
    assert (periods, offsets, active) == ([20] * 4, [0, 5, 10, 15], 16)
    assert gap.schedule(setting, 4).rounds == 150


def test_fedar_with_more_clients() -> None:
    (axis,) = theorems.get("fedar/number-of-clients").axes
    setting = theorems.get("fedar/number-of-clients").regimes["exact gradients"].setting
    found = axis.schedule(setting, 8)
    assert found.problem.optima.ravel().tolist() == [3, -3] * 4
    assert found.problem.sigma == 0
    assert cycles_of(found) == ([4] * 8, [0, 0, 1, 1, 2, 2, 3, 3], 1)
    assert found.rounds == 150


def test_steps_of_fedawe_along_the_rounds() -> None:
    """(11) bites at T = 10^5; the corollary: eta_l = 1/(sqrt(T) s L), eta_g = sqrt(s delta m)."""
    order = theorems.get("fedawe/1")
    start = order.regimes["one Hessian"].setting
    axis = order.axes[0]
    for along, local, server in ((axis, 1000, 1), (axis.of_families[0], 1, 1000)):
        first, last = along.schedule(start, 10**5), along.schedule(start, 10**8)
        lr, factor = first.algorithm.client_lr, first.algorithm.server_lr
        assert lr / last.algorithm.client_lr == pytest.approx(math.sqrt(local))
        assert factor / last.algorithm.server_lr == pytest.approx(math.sqrt(server))
        # rho = max(1 - 9/10 8/10, 0), delta = 8/10, s = 4, L = 1, beta = 0
        root = math.sqrt(0.28)
        assert lr * factor == pytest.approx(0.8 * (1 - root) / (640 * (1 + root) * math.sqrt(2)))
        assert lr == pytest.approx(0.8 / (800 * math.sqrt(2)))
    found = axis_of("fedawe/corollary-1", "printed", 0).schedule(start, 10**6)
    assert found.algorithm.client_lr == pytest.approx(1 / 4000)
    assert found.algorithm.server_lr == pytest.approx(math.sqrt(4 * 0.8 * 2))

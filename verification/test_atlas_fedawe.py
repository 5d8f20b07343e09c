"""FedAWE along a run, computed a second time by loops over all paths and in closed form."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fltheory import theorems
from fltheory.claims.statement import unit_flags
from fltheory.engines import Setting
from fltheory.theorems.atlas import fedawe as symbols
from fltheory.verify import Outcome, check

H = np.array([1.0, 0.5])
OPTIMA = np.array([1.0, -1.0])
X_STAR = (H @ OPTIMA) / H.sum()


def gradient_of_F(x: float) -> float:
    return float(H.mean() * (x - X_STAR))


def paths(setting: Setting, rounds: int):
    """Yield probability, local models and a = t - tau before each round, for each path.

    Paths are those of Algorithm 1. Noise is plus or minus its standard deviation, which gives the
    same second moments as any noise of that size.
    """
    method, rows = setting.algorithm, setting.participation.availability
    steps, noise = method.local_steps, setting.problem.sigma
    signs = list(product((-1.0, 1.0), repeat=2 * steps)) if noise else [(0.0,) * (2 * steps)]

    def follow(t: int, chance: float, before: list):
        if t == rounds:
            yield chance, before
            return
        x, away = before[-1]
        for here in product((False, True), repeat=2):
            p = math.prod(
                q if one else 1 - q for q, one in zip(rows[t % len(rows)], here, strict=True)
            )
            if p == 0:
                continue
            for sign in signs if any(here) else signs[:1]:
                moved = []
                for i in range(2):
                    y = x[i]
                    for k in range(steps):
                        y -= method.client_lr * (
                            H[i] * (y - OPTIMA[i]) + noise * sign[i * steps + k]
                        )
                    moved.append(x[i] - method.server_lr * away[i] * (x[i] - y))
                members = [i for i in range(2) if here[i]]
                mean = sum(moved[i] for i in members) / max(len(members), 1)
                then = [mean if here[i] else x[i] for i in range(2)]
                waits = [1 if here[i] else away[i] + 1 for i in range(2)]
                weight = p / (len(signs) if any(here) else 1)
                yield from follow(t + 1, chance * weight, [*before, (then, waits)])

    yield from follow(0, 1.0, [(setting.x0.tolist() * 2, [1, 1])])


def auxiliary(setting: Setting, x: list[float], away: list[int]) -> list[float]:
    method = setting.algorithm
    reach = method.client_lr * method.server_lr * method.local_steps
    return [x[i] - reach * (away[i] - 1) * H[i] * (x[i] - OPTIMA[i]) for i in range(2)]


def test_lemma_3_by_every_path() -> None:
    """Two rounds of two clients, two local steps: the round after each choice of absences."""
    theorem = theorems.get("fedawe/lemma-3")
    setting = theorem.family.setting(rounds=2, local_steps=2)
    method, noise = setting.algorithm, setting.problem.sigma
    lr, steps, eta = method.client_lr, 2, method.client_lr * method.server_lr
    sums: dict = defaultdict(lambda: np.zeros(3))
    for chance, run in paths(setting, 2):
        for t in (0, 1):
            x, away = run[t]
            z = auxiliary(setting, x, away)
            mean, square = np.mean(z), np.square(away)
            after = np.mean(auxiliary(setting, *run[t + 1]))
            slopes = H * (np.array(x) - OPTIMA)
            bound = (
                H.mean() / 2 * (mean - X_STAR) ** 2
                - eta * steps / 4 * gradient_of_F(mean) ** 2
                + 2
                * eta
                * steps
                * noise**2
                * (eta * 0.9 + 4.5 * 2 * lr**2 * steps)
                / 4
                * square.sum()
                + 35 * method.server_lr * lr**3 * steps**3 / 2 * (square * slopes**2).sum()
                + 2.2 * eta * steps / 2 * np.square(np.array(x) - z).sum()
                + eta * steps / 4 * np.square(z - mean).sum()
            )
            sums[t, tuple(away)] += chance * np.array(
                [1, H.mean() / 2 * (after - X_STAR) ** 2, bound]
            )
    weight, truth, bound = max(sums.values(), key=lambda one: one[1] / one[2])
    verdict = check(theorem, setting)
    assert verdict.outcome is Outcome.HOLDS
    assert len(sums) == 5
    assert verdict.truth == pytest.approx(truth / weight, rel=1e-9)
    assert verdict.bound == pytest.approx(bound / weight, rel=1e-9)


@pytest.mark.parametrize("name", ["fedawe/1", "fedawe/corollary-1"])
def test_mean_squared_gradients_by_every_path(name: str) -> None:
    quantity = theorems.get(name, "derived").quantity
    setting = theorems.get("fedawe/lemma-3").family.setting(rounds=3, local_steps=2)
    expected = 0.0
    for chance, run in paths(setting, 2):
        for x, away in run:
            models = auxiliary(setting, x, away) if name == "fedawe/1" else x
            expected += chance * gradient_of_F(np.mean(models)) ** 2 / 3
    value, error = quantity.value(setting)
    assert value == pytest.approx(expected, rel=1e-9)
    assert error < 1e-9


def test_a_long_run_by_a_plain_recursion() -> None:
    """Everybody in every second round, exact gradients: 5000 times two rounds, four sets each.

    Models are equal before each odd round, so that the moments of one model are all there is.
    """
    theorem = theorems.get("fedawe/1", "derived")
    regime = theorem.regimes["everybody every second round"].setting
    exact_gradients = replace(regime.problem, sigma=0.0)
    setting = replace(regime, problem=exact_gradients, rounds=10_000)
    method = setting.algorithm
    lr, steps = method.client_lr, method.local_steps
    kept = (1 - lr * H) ** steps
    offsets = OPTIMA - X_STAR

    def stepped(i: int, slope: float, shift: float, echo: float) -> tuple[float, float]:
        factor = 1 - method.server_lr * echo * (1 - kept[i])
        return factor * slope, factor * shift + method.server_lr * echo * (1 - kept[i]) * offsets[i]

    reach = lr * method.server_lr * steps
    rounds = []
    for here in product((False, True), repeat=2):
        chance = math.prod(p if one else 1 - p for p, one in zip((0.9, 0.8), here, strict=True))
        own = [stepped(i, 1.0, 0.0, 1.0) for i in range(2)]
        mean = np.mean([own[i] for i in range(2) if here[i]], axis=0) if any(here) else None
        models = [tuple(mean) if here[i] else (1.0, 0.0) for i in range(2)]
        echoes = [1.0 if here[i] else 2.0 for i in range(2)]
        waited = [
            (a - reach * (e - 1) * h * a, b - reach * (e - 1) * h * (b - o))
            for (a, b), e, h, o in zip(models, echoes, H, offsets, strict=True)
        ]
        both = np.mean([stepped(i, *models[i], echoes[i]) for i in range(2)], axis=0)
        rounds.append((chance, np.mean(waited, axis=0), both))
    first, second = float((setting.x0 - X_STAR)[0]), float(((setting.x0 - X_STAR) ** 2)[0])

    def square(line) -> float:
        a, b = line
        return a * a * second + 2 * a * b * first + b * b

    total = 0.0
    for _ in range(5_000):
        total += second + sum(chance * square(waited) for chance, waited, _ in rounds)
        lines = [(chance, *both) for chance, _, both in rounds]
        second = sum(c * square((a, b)) for c, a, b in lines)
        first = sum(c * (a * first + b) for c, a, b in lines)
    truth, error = theorem.quantity.value(setting)
    assert truth == pytest.approx(H.mean() ** 2 * total / 10_000, rel=1e-9)
    assert error < 1e-9


def test_what_local_steps_of_one_length_leave_when_server_steps_vanish() -> None:
    """Everybody's updates weigh alike, so that models end where they add up to zero."""
    order = theorems.get("fedawe/1")
    start = order.regimes["more local steps"].setting
    (axis,) = order.axes[0].of_families
    setting = axis.schedule(start, 10**8)
    assert setting.algorithm.server_lr < 0.1
    moved = 1 - (1 - setting.algorithm.client_lr * H) ** 20
    end = (moved @ (50 * OPTIMA)) / moved.sum()
    truth, _ = order.theorem.quantity.value(setting)
    assert truth == pytest.approx((H.mean() * (end - 50 * X_STAR)) ** 2, rel=0.02)
    verdict = check(order, start)
    assert verdict.outcome is Outcome.REFUTED
    assert "eta_g falls: truth -0.0" in verdict.detail
    # Nothing is left if all clients have the same curvature, or make one step.
    for regime in ("one Hessian", "one local step"):
        assert check(order, order.regimes[regime].setting).outcome is Outcome.HOLDS


def test_the_step_condition_is_of_no_one_unit_and_implies_one_that_is() -> None:
    printed, derived = theorems.get("fedawe/1").theorem, theorems.get("fedawe/1", "derived")
    flagged = {str(one.flag.expression) for one in unit_flags(printed)}
    assert {"L + 1", "L**2 + 1"} <= flagged
    assert not unit_flags(derived)
    names = ("a small product of steps", "small local steps")
    for value in (0.01, 0.3, 1.0, 3.0, 100.0):
        given = {
            symbols.s: 5,
            symbols.delta: 0.5,
            symbols.rho: 0.75,
            symbols.beta: 0.4,
            symbols.L: value,
        }
        for name in names:
            old, new = (
                next(h for h in one.hypotheses if h.name == name).condition.rhs.subs(given)
                for one in (printed, derived)
            )
            assert old < new


@pytest.mark.parametrize(
    ("name", "factor"), [("fedawe/lemma-3", 0.69), ("fedawe/1", 0.1), ("fedawe/corollary-1", 0.05)]
)
def test_a_planted_fault_is_found(name: str, factor: float) -> None:
    theorem = theorems.get(name, "derived")
    wrong = replace(theorem, bound=theorem.bound * factor)
    outcomes = {check(wrong, regime.setting).outcome for regime in theorem.regimes.values()}
    assert Outcome.REFUTED in outcomes


@pytest.mark.parametrize("name", ["fedawe/1", "fedawe/corollary-1"])
def test_a_faster_order_is_refuted(name: str) -> None:
    order = theorems.get(name)
    axis = order.axes[0]
    faster = replace(axis, order=axis.order / axis.variable, families={})
    bound = order.theorem.bound / axis.variable
    wrong = replace(
        order, axes=(faster,), theorem=replace(order.theorem, bound=bound), refutations=()
    )
    assert check(wrong, order.regimes["one local step"].setting).outcome is Outcome.REFUTED

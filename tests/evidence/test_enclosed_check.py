"""Verdicts whose sides are enclosed."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import Safari
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import (
    ExactRun,
    NotEnclosedError,
    Work,
    enclosed_trajectory,
)
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Grade
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.symbols import symbol
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.theorems.sa_fl.symbols import eta_c, eta_s
from fltheory.verify import Outcome, check

THEOREM = sa_fl.THEOREM_5_DERIVED


def _setting(client_lr: float = 0.1, assist_lr: float = 0.05, rounds: int = 3) -> Setting:
    problem = QuadraticProblem([[1.0]], [[0.3], [-0.1]], sigma=0.2, server_sigma=0.4)
    return Setting(
        Safari(0.5, client_lr, assist_lr, 1), problem, UniformSubset(2, 1), rounds, [0.7]
    )


def test_both_sides_are_those_of_plain_fractions() -> None:
    """One client of two, or the server, a step each: the second moment by its own recursion."""
    verdict = check(THEOREM, _setting())

    optima, star = (Fraction(3, 10), Fraction(-1, 10)), Fraction(1, 10)
    lr, server, q = Fraction(1, 10), Fraction(1, 20), Fraction(1, 2)
    first: Any = Fraction(7, 10) - star
    second: Any = first**2
    for _ in range(3):
        pulls = [lr * (c - star) for c in optima]
        kept = 1 - lr
        clients = [kept**2 * second + 2 * kept * p * first + p**2 for p in pulls]
        of_clients = sum(clients) / 2 + (lr * Fraction(1, 5)) ** 2
        of_server = (1 - server) ** 2 * second + (server * Fraction(2, 5)) ** 2
        second = q * of_clients + (1 - q) * of_server
        first = q * (kept * first + sum(pulls) / 2) + (1 - q) * (1 - server) * first
    sigma_G, sigma, sigma_s = Fraction(1, 5), Fraction(1, 5), Fraction(2, 5)
    bound = (
        (1 - lr / 2) ** 3 * Fraction(6, 10) ** 2
        + 8 * q * lr * sigma_G**2
        + 4 * q * lr * sigma**2  # twice the printed noise: in (61) it is counted twice
        + 4 * q * (1 + lr) * 5 * lr**2 * (sigma**2 + 6 * sigma_G**2)
        + (1 - q) * server * sigma_s**2
    )
    assert verdict.evidence.grade is Grade.EXACT
    assert abs(Fraction(verdict.truth) - second) <= Fraction(verdict.evidence.error)
    assert verdict.bound == pytest.approx(float(bound), rel=1e-15)


def test_an_equation_between_decimals_is_met_or_not() -> None:
    met = check(THEOREM, _setting(0.1, 0.05))
    missed = check(THEOREM, _setting(0.1 + 1e-12, 0.05))
    assert {h.name: h.holds for h in met.hypotheses}["coupled step sizes"] is True
    assert {h.name: h.holds for h in missed.hypotheses}["coupled step sizes"] is False
    assert missed.outcome is Outcome.INAPPLICABLE


def test_a_tenth_and_a_fifth_are_three_tenths() -> None:
    equation = Hypothesis("sum", sp.Eq(eta_c + sp.Rational(1, 5), eta_s, evaluate=False), "here")
    theorem = replace(THEOREM, hypotheses=(equation,))
    assert check(theorem, _setting(0.1, 0.3)).hypotheses[0].holds is True


def test_constants_that_were_floats_make_a_verdict_of_floats() -> None:
    rounded = replace(
        THEOREM,
        read_as={
            one: symbol(one.name, number=lambda run, one=one: float(one.on(run)))
            for one, _ in THEOREM.constants.numbers
        },
    )
    verdict = check(rounded, _setting())
    assert verdict.evidence.grade is Grade.FLOAT64
    assert verdict.outcome is check(THEOREM, _setting()).outcome


def test_rotated_clients_are_enclosed_too() -> None:
    basis, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    hessian = basis @ np.diag([0.25, 0.5, 1.0]) @ basis.T
    problem = QuadraticProblem(
        (hessian + hessian.T) / 2, np.random.default_rng(2).normal(size=(4, 3)).round(3), sigma=0.5
    )
    theorem = sa_fl.THEOREM_4_DERIVED
    setting = Setting(Safari(0.5, 0.02, 0.05, 5), problem, UniformSubset(4, 2), 20, [1.0, 0.0, 0.0])
    sides = theorem.enclosed(setting)
    assert sides is not None
    assert 0 < sides.bound_error < 1e-12 * sides.bound


def test_what_is_enclosed_is_not_worked_out_in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_floats(*_: object) -> None:
        raise AssertionError("the truth is known, and better")

    monkeypatch.setattr("fltheory.claims.along_run.truth", in_floats)
    assert check(THEOREM, _setting()).evidence.grade is Grade.EXACT
    order = theorems.get("fedau/1")
    setting = order.regimes["equal weights"].setting
    assert order.verdict(setting, Sampling()).evidence.grade is Grade.EXACT


def test_work_is_limited() -> None:
    work = Work(100)
    work.spend(99)
    with pytest.raises(NotEnclosedError, match="more than 100 units"):
        work.foresee(1.5)
    work.foresee(1)
    with pytest.raises(NotEnclosedError, match="more than 100 units"):
        work.spend(Work.of_map(1, 1, 128))


@pytest.mark.parametrize("limit", [2e5, 2e6])
def test_what_would_go_beyond_the_limit_is_refused_at_once(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Histories that stay the same cost the same: 16 of them for 1,501 rounds, 5e6 units."""
    applied = []
    moved = ExactRun.moved
    monkeypatch.setattr(ExactRun, "moved", lambda *given: applied.append(1) or moved(*given))
    setting = theorems.get("scaffold/nonconvex").regimes["long stretches"].setting
    with pytest.raises(NotEnclosedError, match="costs more"):
        enclosed_trajectory(setting, (), Work(limit))
    assert len(applied) < 5
    few = replace(setting, rounds=20)
    assert enclosed_trajectory(few, (), Work(limit)).rounds == 20


def test_histories_that_become_too_many_are_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """FedAU's counts of three clients: 8, 64, 343, ... histories, for 100 rounds."""
    applied = []
    moved = ExactRun.moved
    monkeypatch.setattr(ExactRun, "moved", lambda *given: applied.append(1) or moved(*given))
    setting = theorems.get("fedau/2-option-2", "derived").regimes["noisy gradients"].setting
    with pytest.raises(NotEnclosedError, match="costs more than 2e\\+06 units"):
        enclosed_trajectory(setting, (), Work(2e6))
    assert len(applied) == 3
    assert enclosed_trajectory(replace(setting, rounds=3), (), Work(2e6)).rounds == 3


def test_what_a_function_refuses_of_exact_numbers_is_asked_in_floats() -> None:
    def domain(setting: Setting) -> Setting:
        if not isinstance(setting.algorithm.client_lr, float) or setting.rounds == 4:
            raise ValueError(
                f"client_lr must be one we speak of, got {setting.algorithm.client_lr}"
            )
        return THEOREM.domain(setting)

    picky = replace(THEOREM, domain=domain)
    evidence = check(picky, _setting()).evidence
    assert (evidence.grade, "we speak of" in evidence.why_not_exact) == (Grade.FLOAT64, True)
    with pytest.raises(ValueError, match=r"we speak of, got 0\.1$"):
        check(picky, _setting(rounds=4))


@pytest.mark.parametrize(("bound", "below"), [(10**290, False), (10**300, False), (10**400, True)])
def test_what_overflows_is_above_moderate_bounds(bound: int, below: bool | None) -> None:
    """A step of 100 multiplies squares by 99^2 per round: 99^200 is between 1e399 and 1e400."""
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    setting = Setting(Safari(1.0, 100.0, 1.0, 1), problem, UniformSubset(2, 2), 100, [1.0])
    theorem = replace(
        sa_fl.THEOREM_5_DERIVED,
        bound=sp.Integer(bound),
        hypotheses=(),
        definitions={},
        round_symbols=(),
    )
    sides = theorem.enclosed(setting)
    assert sides is not None
    assert math.isinf(sides.truth)
    assert sides.below is below


def test_a_constant_that_was_rounded_costs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise AssertionError("no run can be enclosed beside a rounded bound")

    monkeypatch.setattr("fltheory.evidence.enclosed_check.enclosed_run", run)

    def rounded(setting: Setting) -> float:
        return float(setting.algorithm.assist_lr) * 0.5

    read_as = {eta_s: symbol("eta_s", number=rounded)}
    verdict = check(replace(THEOREM, read_as=read_as), _setting())
    assert verdict.evidence.grade is Grade.FLOAT64

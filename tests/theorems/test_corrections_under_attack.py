"""What stands in a refuted statement's place withstands an attack; the benchmark's is longer."""

from __future__ import annotations

import runpy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import (
    AveragedIterate,
    Constant,
    FedAU,
    Projected,
    Safari,
    Scaffold,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.engines import Setting
from fltheory.engines.observables import BiasedExcessLoss
from fltheory.evidence.truths import truth
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.problems import Ball, QuadraticProblem
from fltheory.theorems.correction import correction
from fltheory.verify import Sampling
from tests.drawn import a_tenth

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "attack_corrections.py"
ATTACK = SimpleNamespace(**runpy.run_path(str(BENCHMARK), run_name="attack"))
attacked, small = ATTACK.attacked, ATTACK.small
CORRECTED = [s.id for s in theorems.registered() if s.reading == "printed" and s.refutations]
CHEAP = (
    "pac/1-guessing",
    "pac/1-sum",
    "pac/example",
    "pac/lemma-1",
    "pac/lemma-1-errors",
    "pac/lemma-1-disagreements",
)
OTHERS = [
    name
    for name in CORRECTED
    if name not in CHEAP and (name, correction(name).corrected.reading) not in ATTACK.SMALL_RUNS
]


@pytest.mark.parametrize("key", ATTACK.SMALL_RUNS, ids=" ".join)
def test_no_batch_of_small_runs_breaks_a_reading(key: tuple[str, str]) -> None:
    makers = ATTACK.SMALL_RUNS[key]
    some = makers[:: max(1, len(makers) // 4)][:4]
    attack = ATTACK.in_small_runs(theorems.get(*key), some, 40, 0)
    assert attack.applicable >= 40
    assert attack.broken_by == ""
    assert attack.largest_ratio > 0 or theorems.get(*key).basis.bound == 0


def test_every_reading_that_claims_to_be_true_is_attacked_or_says_why_not() -> None:
    known = {(s.id, s.reading): s for s in ATTACK.readings_under_attack()}
    assert set(ATTACK.SMALL_RUNS) <= set(known)
    without = {key[0] for key, one in known.items() if one.why_not_searched}
    assert without == {"fedar/1", "fedar/2", "pac/3"}


@pytest.mark.parametrize(
    ("key", "dropped"),
    [
        (("sa-fl/4", "derived"), "few client rounds"),
        (("sa-fl/5", "derived"), "few client rounds"),
        (("ca-fed/appendix-d", "derived"), "theta* not negative"),
        (("fedar/assumption-7", "derived"), "a bound that the schedule keeps"),
    ],
)
def test_without_a_condition_it_is_broken(key: tuple[str, str], dropped: str) -> None:
    statement = theorems.get(*key)
    kept = tuple(item for item in statement.hypotheses if item.name != dropped)
    assert len(kept) == len(statement.hypotheses) - 1
    assert attacked(replace(statement, hypotheses=kept, derivation=None), 500, 0).broken_by


@pytest.mark.parametrize(
    ("key", "times"),
    [
        (("sa-fl/5", "derived"), sp.Rational(9, 10)),
        (("sa-fl/4", "repaired"), sp.Rational(1, 2)),
        (("scaffold/convex", "derived"), sp.Rational(1, 5)),
        (("ca-fed/1", "sharper"), sp.Rational(3, 4)),
        (("ca-fed/2", "derived"), sp.Rational(1, 30)),
        (("fedau/2-option-2", "derived"), sp.Rational(1, 60)),
    ],
)
def test_with_a_smaller_bound_it_is_broken(key: tuple[str, str], times: sp.Rational) -> None:
    statement = theorems.get(*key)
    less = replace(statement, bound=times * statement.bound, derivation=None)
    assert attacked(less, 500, 0).broken_by


def _quadratic(losses: SimpleNamespace, one: int, **more: object) -> QuadraticProblem:
    """Return a setting's clients: F_i' = a (x - l) + tilt_i."""
    a = losses.curvatures[one, :, 0]
    optima = losses.kinks[one, 0] - losses.tilts[one] / a
    return QuadraticProblem(a[:, None, None], optima[:, None], **more)


SHAPES = {
    "safari": partial(
        small.safari,
        kind="quadratic",
        theorem=5,
        **{"eligible": 2, "excluded": 1, "drawn": 1, "steps": 2, "rounds": 3, "noisy": True},
    ),
    "scaffold": partial(
        small.scaffold,
        kind="quadratic",
        **{"clients": 2, "drawn": 1, "steps": 2, "rounds": 3, "noisy": True},
    ),
    "fedau": partial(
        small.fedau,
        kind="quadratic",
        **{"clients": 2, "steps": 2, "rounds": 4, "noisy": False, "near": False},
    ),
    "markov": partial(
        small.markov,
        kind="quadratic",
        **{"clients": 2, "steps": 2, "rounds": 4, "noisy": False},
    ),
}


def _played(name: str, batch: SimpleNamespace, one: int) -> tuple[Setting, tuple[object, ...]]:
    v = {key: value[one] if np.ndim(value) else value for key, value in batch.values.items()}
    x0, none = [batch.start[one]], ()
    if name == "safari":
        problem = _quadratic(batch.losses, one, sigma=v["sigma"], server_sigma=v["sigma_s"])
        safari = Safari(v["q"], client_lr=v["eta_c"], assist_lr=v["eta_s"], local_steps=2)
        return Setting(safari, problem, UniformSubset(3, 1, excluded=(2,)), 3, x0), none
    if name == "scaffold":
        algorithm = Scaffold(v["eta_l"], 2, server_lr=v["eta_g"], option=2)
        problem = _quadratic(batch.losses, one, sigma=v["sigma"])
        return Setting(algorithm, problem, UniformSubset(2, 1), 3, x0), none
    if name == "fedau":
        algorithm = FedAU(v["gamma"], 2, server_lr=v["eta"], cutoff=int(v["cutoff"]))
        return Setting(algorithm, _quadratic(batch.losses, one), Bernoulli(v["p"]), 4, x0), none
    steps = Constant(v["eta_1"])
    fedavg = WeightedFedAvg(tuple(v["q"]), v["eta_1"], 2)
    inner = Projected(Scheduled(fedavg, steps), Ball([0.0], v["rho"]))
    p = v["pi"] * v["q"] / (v["pi"] @ v["q"])
    participation = MarkovOnOff(tuple(v["pi"]), tuple(v["nu"]))
    averaged = AveragedIterate(inner, weights=steps)
    setting = Setting(averaged, _quadratic(batch.losses, one), participation, 4, x0)
    return setting, (BiasedExcessLoss(tuple(p)),)


@pytest.mark.parametrize("name", SHAPES)
def test_small_runs_agree_with_the_exact_engine(name: str) -> None:
    """Every path in NumPy against the recursion of moments, on quadratic clients."""
    batch = SHAPES[name](np.random.default_rng(5), 12)
    chosen = range(12)
    if name == "markov":
        eta = batch.values["eta"]
        chosen = [one for one in range(12) if eta[one, 0] == eta[one, -1]]
    assert len(list(chosen)) >= 3
    for one in chosen:
        setting, observed = _played(name, batch, one)
        run = truth(setting, observed, Sampling()).trajectory
        left = {
            "safari": run.squared_distance[-1],
            "scaffold": run.excess_loss[:-1],
            "fedau": run.squared_gradient[:-1].mean(),
            "markov": run["biased_excess_loss"][-1] if observed else None,
        }[name]
        if name == "scaffold":
            step = 2 * batch.values["eta_l"][one] * batch.values["eta_g"][one]
            weights = (1 - batch.values["mu"][one] * step / 2) ** -np.arange(3.0)
            left = np.average(left, weights=weights)
        assert batch.truth[one] == pytest.approx(left, rel=1e-6, abs=1e-12 * batch.truth.max())


@pytest.mark.parametrize("identifier", CHEAP)
def test_a_corrected_statement_is_not_broken(identifier: str) -> None:
    attack = attacked(correction(identifier).corrected, 30, 200)
    assert attack.applicable >= 1
    assert attack.broken_by == ""
    assert attack.largest_ratio <= 1


@pytest.mark.parametrize("identifier", a_tenth(OTHERS, name=str))
def test_others_of_them_are_not_broken(identifier: str) -> None:
    assert attacked(correction(identifier).corrected, 3, 10).broken_by == ""


def test_a_correction_without_its_condition_is_broken() -> None:
    """Lemma 1 without m >= 2 d_H: one sample is enough of a witness."""
    corrected = correction("pac/lemma-1").corrected
    found = attacked(replace(corrected, hypotheses=()), 1000, 1000)
    assert found.broken_by


def test_the_upper_limit_on_steps_keeps_other_schedules_out() -> None:
    """Corollary 2, derived: with constant steps, or of order 1/sqrt(R), no R of all meets it."""
    derived = theorems.get("sa-fl/corollary-2", "derived")
    (axis,) = derived.axes
    setting = derived.regimes["unbiased sampling, L = 20"].setting
    limits = {"large enough step", "steps of no larger order"}
    assert {h.name for h in axis.hypotheses} == limits
    assert [one.under for one in axis.of_families] == [
        "constant steps",
        "steps of order 1/sqrt(R)",
    ]
    for family in axis.of_families:
        along = derived.settings_along(family, setting)
        checks = [
            check
            for one in along
            for check in derived.theorem_on(axis).hypotheses_without_run(one)
            if check.name in limits
        ]
        assert not all(check.holds for check in checks), family.under


@pytest.mark.soundness
def test_constant_steps_break_corollary_2_without_a_limit_on_them() -> None:
    derived = theorems.get("sa-fl/corollary-2", "derived")
    (axis,) = derived.axes
    loose = replace(derived, axes=(replace(axis, hypotheses=()),), derivation=None)
    setting = derived.regimes["unbiased sampling, L = 20"].setting
    assert loose.trial(setting, Sampling()).refutes
    assert not derived.trial(setting, Sampling()).refutes

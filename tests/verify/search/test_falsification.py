"""The search: it finds what is there, keeps its budget, and invents nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.evidence.verdict import Outcome
from fltheory.theorems import Theorem
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.verify import certificate, falsify
from fltheory.verify.safari.instances import (
    changed,
    coupling_of,
    decoded,
    drawn,
    evaluated,
    rounded,
    simpler,
    simplified_genes,
)

DERIVED = theorems.get("sa-fl/5", "derived")


@pytest.mark.parametrize("budget", [1500, pytest.param(10_000, marks=pytest.mark.soundness)])
def test_a_printed_statement_is_refuted_and_certified(budget: int) -> None:
    theorem = theorems.get("sa-fl/4")
    found = falsify(theorem, budget)
    assert found.witness is not None
    assert certificate(theorem, found.witness)["theorem"] == "sa-fl/4"
    assert 0 < found.settings_applicable < found.settings_tried == budget
    assert found.best_ratio > 1


def without_start(theorem: Theorem) -> Theorem:
    """Theorem 5 with a bound that says nothing of the start."""
    return replace(theorem, bound=theorem.bound - (1 - sa_fl.eta_bar) ** sa_fl.R * sa_fl.D_0**2)


def without_condition_on_q(theorem: Theorem) -> Theorem:
    return replace(theorem, hypotheses=theorem.hypotheses[:-1])


@pytest.mark.parametrize("plant", [without_start, without_condition_on_q])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.soundness) for s in (1, 2))]
)
def test_planted_faults_are_found(plant, seed: int) -> None:
    found = falsify(plant(DERIVED), budget=3000, seed=seed)
    assert found.witness is not None
    assert certificate(plant(DERIVED), found.witness)["truth"]


def test_where_a_statement_is_searched_is_its_own_to_say() -> None:
    """Not who reads its symbols: an equal theorem with functions of its own is searched alike."""
    own = replace(DERIVED, domain=lambda setting: DERIVED.domain(setting))
    counts = [falsify(t, budget=300).settings_applicable for t in (DERIVED, own)]
    assert counts[0] == counts[1] > 0
    assert falsify(own, budget=300).best_ratio == falsify(DERIVED, budget=300).best_ratio
    around = falsify(replace(DERIVED, search_space=None), budget=3)
    assert around.best is not None
    assert around.best.lines[0].startswith("Safari, ")


def test_the_search_keeps_its_budget_and_reports_it() -> None:
    seen: list[int] = []
    found = falsify(DERIVED, budget=600, progress=lambda tried, total, best: seen.append(tried))
    assert found.witness is None
    assert found.settings_tried == 600
    assert 0 < found.settings_applicable < 600
    assert found.best_ratio < 1 + 1e-9
    assert seen == [250, 500, 600]


def test_the_same_seed_finds_the_same() -> None:
    first, again, other = (falsify(DERIVED, budget=60, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.best != other.best


@pytest.mark.parametrize(
    ("budget", "seed", "message"),
    [(0, 0, "budget must be a whole number of at least 1"), (5, -1, "seed must be a whole number")],
)
def test_bad_arguments(budget: int, seed: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        falsify(DERIVED, budget, seed)


@pytest.mark.parametrize("seed", range(20))
def test_instances_solve_the_coupling_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    genes = changed(changed(drawn(rng), rng), rng)
    for theorem, factor in ((theorems.get("sa-fl/4"), None), (DERIVED, 4)):
        witness = decoded(coupling_of(theorem), genes)
        if witness is None:
            continue
        L, mu = max(witness.curvatures), min(witness.curvatures)
        expected = 2 * witness.assist_lr if factor is None else 4 * witness.assist_lr * L / (L + mu)
        assert witness.client_lr * witness.local_steps == expected
        assert 0 < witness.q < 1


def test_without_a_coupling_the_steps_are_free() -> None:
    kept = tuple(h for h in DERIVED.hypotheses if "coupled" not in h.name)
    free = replace(DERIVED, hypotheses=kept)
    assert coupling_of(free) is None
    rng = np.random.default_rng(5)
    drawn_ones = (decoded(None, drawn(rng)) for _ in range(50))
    instances = [instance for instance in drawn_ones if instance is not None]
    ratios = {w.client_lr * w.local_steps / w.assist_lr for w in instances}
    assert len(ratios) > 40


@pytest.mark.parametrize(
    "coupling",
    [
        sp.Eq(sa_fl.eta_c**2, sa_fl.eta_s, evaluate=False),
        sp.Eq(sa_fl.eta_c, -sa_fl.eta_s, evaluate=False),
        sp.Eq(sa_fl.eta_c, sp.sqrt(sa_fl.eta_s), evaluate=False),
        sp.Eq(sa_fl.eta_c * (sa_fl.K - sa_fl.K**2 / sa_fl.K), 1, evaluate=False),
    ],
)
def test_a_coupling_without_a_rational_positive_step_makes_no_instance(coupling) -> None:
    assert decoded(coupling, drawn(np.random.default_rng(0))) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0123456, Fraction(12, 1000)), (98765.0, Fraction(99000)), (1.0, Fraction(1))],
)
def test_numbers_have_two_digits(value: float, expected: Fraction) -> None:
    assert rounded(value) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rounds", 37),
        ("local_steps", 20),
        ("smoothness", Fraction(47, 10)),
        ("start", Fraction(-3, 7)),
        ("sigma", Fraction(0)),
        ("sigma", Fraction(1, 3)),
        ("dim", 2),
        ("layout", 4),
        ("q", Fraction(7, 9)),
    ],
)
def test_simpler_values_end_with_the_value_itself(name: str, value: object) -> None:
    options = list(simpler(name, value))
    assert options[-1] == value
    assert len(set(options)) == len(options)


def test_simplification_keeps_the_refutation() -> None:
    """The one-round witness of Theorem 5 with crooked numbers."""
    theorem = theorems.get("sa-fl/5")
    genes = {
        "layout": 0,
        "dim": 1,
        "grouped_axis": 1,
        "start_axis": 1,
        "smoothness": Fraction(1300),
        "condition": Fraction(17, 10),
        "spread": Fraction(37, 100),
        "start": Fraction(-71, 100),
        "sigma": Fraction(0),
        "server_sigma": Fraction(0),
        "q": Fraction(13, 100),
        "local_steps": 1,
        "step": Fraction(99, 100),
        "detuning": Fraction(7, 10),
        "rounds": 1,
    }
    assert evaluated(theorem, genes).outcome is Outcome.REFUTED
    simple = simplified_genes(theorem, genes)
    result = evaluated(theorem, simple)
    assert result is not None
    assert result.outcome is Outcome.REFUTED
    assert simple["rounds"] <= genes["rounds"]
    assert sum(len(str(v)) for v in simple.values()) <= sum(len(str(v)) for v in genes.values())

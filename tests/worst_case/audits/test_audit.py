"""Audits of SA-FL's Theorem 5: verdicts, ratios, thresholds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fltheory import theorems, worst_case
from fltheory.report.terminal.proof_text import audit_text
from fltheory.worst_case import ClientClass, SafariRound, SmoothClass
from fltheory.worst_case.audits.audit import ClassOutcome, threshold
from fltheory.worst_case.audits.theorem_form import DESCENT_FORM, DISTANCE_FORM
from fltheory.worst_case.rounds.measure import DESCENT, Claim

DERIVED = theorems.get("sa-fl/5", "derived")
EVERYWHERE = ClientClass(1, "0.1", "everywhere")
TEN = SafariRound(eligible=9, excluded=1, participants=4, local_steps=5, client_lr="1/400", q="1/2")


def test_the_claim_is_theorem_5_to_the_letter() -> None:
    """By hand: (1 - rate) times each term of the printed floor, its noise twice, as (60) has it."""
    clients = ClientClass(1, "0.1", "everywhere", sigma=1, server_sigma=1)
    played = TEN.coupled(DERIVED, clients)
    L, mu, q, K, m = Fraction(1), Fraction(1, 10), Fraction(1, 2), 5, 4
    eta = Fraction(1, 400)
    assert played.assist_lr == eta * K * (L + mu) / (4 * L)
    claim = DISTANCE_FORM.claim(DERIVED, clients, played)
    bar = eta * K * mu / 2
    drift = 4 * q * L * (1 + K * eta * L) / mu * 5 * K * eta**2
    assert claim.speed == 1 - bar
    assert claim.heterogeneity == bar * (8 * q * eta * K / mu + 6 * K * drift)
    assert claim.noise == bar * (4 * q * eta / (mu * m) + drift)
    assert claim.server_noise == bar * (1 - q) * (L + mu) / (2 * L * mu) * played.assist_lr
    assert claim.server_noise == (1 - q) * played.assist_lr**2


@pytest.mark.parametrize(
    ("q", "one_round"),
    [("1/20", "PROVED"), ("0.0712", "PROVED"), ("0.0732", "REFUTED"), ("1/2", "REFUTED")],
)
def test_with_an_excluded_client_the_inequality_needs_a_small_q(q: str, one_round: str) -> None:
    found = worst_case.audit(DERIVED, EVERYWHERE, replace(TEN, q=q))
    assert found.one_round.outcome.name == one_round
    assert found.failed == ()
    assert found.hypotheses["few client rounds"] is None
    if found.one_round.certificate is not None:
        found.one_round.certificate.verify()
        assert found.residual_ratio >= 1
        assert found.one_round is found.all_rounds
    else:
        assert found.residual_ratio < 1


@pytest.mark.parametrize(
    ("name", "clients", "changed"),
    [
        ("sa-fl/5", EVERYWHERE, {"q": "1/2"}),
        ("sa-fl/5", ClientClass(2, "0.1", "everywhere"), {"eligible": 4, "excluded": 6}),
        ("sa-fl/4", SmoothClass(1), {"client_lr": "1/2000"}),
        ("sa-fl/4", SmoothClass(2, 1, 1), {"eligible": 5, "excluded": 5, "client_lr": "1/300"}),
    ],
)
def test_the_condition_on_q_decides_the_derived_theorem(
    name: str, clients: Any, changed: dict[str, Any]
) -> None:
    """With excluded clients one round is refuted, and proved of runs that meet the condition."""
    theorem = theorems.get(name, "derived")
    found = worst_case.audit(theorem, clients, replace(TEN, **changed))
    assert found.one_round.outcome is ClassOutcome.REFUTED
    assert (found.all_rounds.outcome, found.all_rounds.given) == (ClassOutcome.PROVED, True)
    proof = found.all_rounds.certificate
    assert proof is not None
    proof.verify()
    assert found.given_residual is not None
    assert found.given_residual < found.paper.residual
    assert "for every client loss, for runs that meet 'few client rounds'" in audit_text(found)
    check_what_is_supposed(proof, np.random.default_rng(0))


def check_what_is_supposed(proof: Any, rng: np.random.Generator) -> None:
    """``claim's right side - left side + multiplier (what is supposed) >= 0``, by play.

    Quadratics of one Hessian, as their dissimilarity is the same everywhere; all sets.
    """
    read = proof.proof
    who, box, L = read.taking_part, read.boxes[0], float(read.L)
    n, N, m, K = who.n_eligible, who.n_clients, who.participants, read.local_steps
    eta, bound = float(box.client_lr[0]), {k: float(v[0]) for k, v in read.bound.items()}
    times = {k: float(v) for k, v in read.given.items()}
    for _ in range(20):
        low = -L if read.of_descent else float(read.mu)
        h = rng.choice([L, low, rng.uniform(low, L)])
        slopes = rng.normal(size=N) * 10 ** rng.uniform(-2, 1)
        slopes -= slopes.mean()
        level, x = (slopes**2).max(), rng.normal()
        x_k, moved = np.full(N, x), np.zeros(N)
        for _ in range(K):
            gradients = h * x_k + slopes
            moved, x_k = moved + gradients, x_k - eta * gradients
        mean = moved[:n].mean()
        square = mean**2 + (n - m) / (m * (n - 1)) * moved[:n].var()
        q, own = float(read.q), eta * float(read.assist_ratio)
        first, second = q * eta * mean + (1 - q) * own * h * x, q * eta**2 * square
        second += (1 - q) * (own * h * x) ** 2
        supposed = times["gradient"] * (h * x) ** 2 + times["moved"] * square
        supposed += times["values"] * (h / 2 * x**2 + slopes[:n].mean() * x)
        supposed += times["heterogeneity"] * level
        if read.of_descent:
            left = -h * x * first + L / 2 * second
            right = -bound["decrease"] * (h * x) ** 2 + bound["heterogeneity"] * level
        else:
            left = x**2 - 2 * x * first + second
            right = bound["rate"] * x**2 + bound["heterogeneity"] * level
        # In units with L = 1 and over e, what multipliers are of: L^2 for a gradient's square.
        unit = L if read.of_descent else L**2
        weight = float(box.given) * L * eta / unit
        assert right - left + weight * supposed >= -1e-9 * (x**2 + level)


def test_without_excluded_clients_no_condition_on_q_is_needed() -> None:
    """At q = 1, and K eta_c L up to 4, far beyond the theorem's own limit."""
    for client_lr, limit in (("1/40", True), ("4/5", False)):
        found = worst_case.audit(
            DERIVED,
            EVERYWHERE,
            SafariRound(eligible=10, participants=4, local_steps=5, q=1, client_lr=client_lr),
        )
        assert found.one_round.outcome is ClassOutcome.PROVED
        assert ("small client step" not in found.failed) == limit


def test_how_far_the_bound_is_from_the_best() -> None:
    found = worst_case.audit(
        DERIVED,
        EVERYWHERE,
        SafariRound(eligible=10, participants=4, local_steps=5, q="1/2", client_lr="1/40"),
    )
    assert 42 < found.residual_ratio < 2334
    assert 106 < found.floor_ratio < 6967
    assert 2.4 < found.rate_ratio < 4


def test_the_threshold_of_q_is_found_within_a_512th() -> None:
    found = threshold(DERIVED, EVERYWHERE, TEN, "q", first=0, last=1, precision="1/512")
    assert found.proved is not None
    assert found.refuted is not None
    assert found.proved < Fraction("0.0723") < found.refuted + Fraction(1, 512)
    assert 0 < found.refuted - found.proved <= Fraction(1, 512)
    assert found.proof is not None
    assert found.proof.certificate is not None
    found.proof.certificate.verify()


def test_the_class_at_the_optimum_is_refuted_by_its_worst_clients() -> None:
    found = worst_case.audit(
        DERIVED,
        ClientClass(1, "0.1"),
        SafariRound(
            eligible=5, excluded=4, participants=2, local_steps=2, q="9/10", client_lr="1/20"
        ),
    )
    witness = found.one_round.witness
    assert found.one_round.outcome is ClassOutcome.REFUTED
    assert witness is not None


def test_a_statement_of_another_form_is_refused() -> None:
    played = replace(TEN, assist_lr="1/40")
    for name in ("sa-fl/corollary-1", "fedprox/4", "ca-fed/2"):
        with pytest.raises(ValueError, match=rf"Delta_0 / \(decrease R\) \+ floor, got {name}"):
            worst_case.audit(theorems.get(name), EVERYWHERE, played)  # type: ignore[arg-type]


def test_clients_that_are_convex_only_are_refused() -> None:
    flat = ClientClass(1, 0, "everywhere")
    with pytest.raises(ValueError, match="mu must be above 0 for sa-fl/5, whose bound is for"):
        worst_case.audit(DERIVED, flat, TEN)
    with pytest.raises(ValueError, match="mu must be above 0 for sa-fl/5, whose bound is for"):
        threshold(DERIVED, flat, TEN, "q", first=0, last=1)


@pytest.mark.parametrize(
    ("name", "reading", "step"),
    [
        ("sa-fl/5", "printed", Fraction(1, 80)),
        ("sa-fl/5", "repaired", Fraction(1, 160)),
        ("sa-fl/4", "derived", Fraction(1, 110)),
    ],
)
def test_the_largest_step_that_a_theorem_allows_is_the_default(
    name: str, reading: str, step: Fraction
) -> None:
    """1/(8LK), 1/(16LK) and the first of 1/(kLK) below sqrt(30)/(60 LK); L = 2, K = 5."""
    played = replace(TEN, client_lr=None)
    clients = ClientClass(2, "0.1", "everywhere")
    assert played.coupled(theorems.get(name, reading), clients).client_lr == step


def test_nonconvex_clients_have_no_bound_on_the_distance() -> None:
    with pytest.raises(ValueError, match="client_class must have convex clients"):
        worst_case.audit(DERIVED, SmoothClass(1), TEN)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q": "3/2"}, "q must be at most 1"),
        ({"q": "half"}, "q must be a fraction"),
        ({"q": "1e-400"}, "q must be 0 or from 1e-100 to 1e100, the range that a solver takes"),
        ({"local_steps": 61}, "local_steps must be at most 60, which is what the checker"),
        ({"participants": 10}, "participants must be at most the 9 eligible"),
        ({"client_lr": 0}, "client_lr must be above 0"),
        ({"client_lr": float("nan")}, "client_lr must be a fraction"),
    ],
)
def test_bad_input_is_one_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        worst_case.audit(DERIVED, EVERYWHERE, replace(TEN, **changed))


def test_clients_whose_rates_floats_cannot_tell_from_1_are_refused() -> None:
    clients = ClientClass("1e12", "1/10", heterogeneity="everywhere")
    with pytest.raises(ValueError, match="must have L at most 1e10 mu"):
        worst_case.audit(DERIVED, clients, TEN)


def test_a_rate_near_1_is_shown_by_its_distance_from_1() -> None:
    clients = ClientClass("1e6", "1/10", heterogeneity="everywhere")
    text = audit_text(worst_case.audit(DERIVED, clients, replace(TEN, client_lr=None)))
    assert "rate 1 - " in text
    assert "rate 1 beside" not in text


def test_one_client_has_no_floor_at_all() -> None:
    """F is its loss, and gradients are exact: what the solver leaves is not the best floor."""
    alone = SafariRound(eligible=1, participants=1, local_steps=5, q="1/2", client_lr="1/40")
    found = worst_case.audit(theorems.get("sa-fl/5"), ClientClass(1, "1/10", "everywhere"), alone)
    assert found.same_speed is not None
    assert found.same_speed.residual == pytest.approx(0, abs=1e-12)
    assert found.least_floor is not None
    assert found.least_floor.floor <= found.same_speed.floor < 1e-9


@pytest.mark.parametrize("first", [0, 1])
def test_larger_decreases_with_the_same_floor_are_enough(first: int) -> None:
    """Six more, evenly between its own and the best; half the floor where round 0 is left out."""
    theorem: Any = SimpleNamespace(quantity=SimpleNamespace(rounds=SimpleNamespace(first=first)))
    claim = Claim(Fraction(1, 3), Fraction(1, 5), Fraction(1, 7), Fraction(0), DESCENT)
    tried = list(DESCENT_FORM.enough(theorem, claim, 0.45678))
    assert [float(one.speed) for one in tried] == pytest.approx(
        [1 / 3 + share * (0.45678 - 1 / 3) / 7 for share in range(7)], rel=1e-11
    )
    for one in tried:
        assert one.heterogeneity / one.speed * (1 + first) == Fraction(3, 5)
        assert one.noise / one.speed * (1 + first) == Fraction(3, 7)
        assert one.server_noise == 0


def test_faster_rates_with_the_same_floor_are_enough() -> None:
    """Six more, evenly between its own and the best."""
    claim = Claim(Fraction(1, 2), Fraction(1, 5), Fraction(1, 7), Fraction(0))
    tried = list(DISTANCE_FORM.enough(DERIVED, claim, 0.12345))
    assert [float(one.speed) for one in tried] == pytest.approx(
        [1 / 2 - share * (1 / 2 - 0.12345) / 7 for share in range(7)], rel=1e-11
    )
    for one in tried:
        assert one.heterogeneity / (1 - one.speed) == Fraction(2, 5)
        assert one.noise / (1 - one.speed) == Fraction(2, 7)

"""Audits of a theorem of one's own, in its author's symbols.

The best rate of a gradient step on all L-smooth, mu-strongly convex losses is
max(|1 - eta L|, |1 - eta mu|)^2 (Polyak), and noise adds eta^2 sigma^2/N to it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
import sympy as sp

from fltheory.engines import Setting, exact
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.participation import Bernoulli
from fltheory.worst_case import ClientClass, SafariRound, audit
from fltheory.worst_case.audits.audit import Audit, ClassOutcome
from fltheory.worst_case.audits.quadratic_witness import QuadraticWitness
from fltheory.worst_case.audits.theorem_form import DISTANCE_FORM, names_in
from tests.worst_case.audits.own_theorem import MINE, PARTS

D_0, L, N, R, K, m, mu, eta, sigma = (
    PARTS[name] for name in ("D_0", "L", "N", "R", "K", "m", "mu", "eta_c", "sigma")
)
NOISY = ClientClass(1, "1/10", "everywhere", sigma=1)
TEN = SafariRound(eligible=10)
FLOOR = eta * sigma**2 / (N * mu)


def found(bound: sp.Expr, played: SafariRound = TEN) -> Audit:
    return audit(replace(MINE, bound=bound), NOISY, played)


def test_the_templates_theorem_is_proved() -> None:
    stages: list[tuple[float, float, str]] = []
    result = audit(MINE, NOISY, TEN, progress=lambda *stage: stages.append(stage))
    assert [done for done, _, _ in stages] == list(range(6))
    assert {total for _, total, _ in stages} == {6}
    assert result.all_rounds.outcome is ClassOutcome.PROVED
    assert result.failed == ()
    played = result.round
    assert (played.participants, played.local_steps, played.q) == (10, 1, 1)
    assert (played.client_lr, played.assist_lr) == (Fraction(1, 8), 0)
    rate = (1 - Fraction(1, 80)) ** 2
    assert result.claim.speed == rate
    assert result.best_speed == pytest.approx(float(rate))
    # The least residual is eta^2 sigma^2/N, and the bound's is (1 - rate) eta sigma^2/(N mu).
    assert result.residual_ratio == pytest.approx(2 - 1 / 80, rel=1e-4)
    assert math.isnan(result.unconditional_ratio)  # it has no condition on q
    certificate = result.all_rounds.certificate
    assert certificate is not None
    certificate.verify()
    assert certificate.proof.noisy


@pytest.mark.parametrize("step", ["1", "0.37", "0.0137"])
def test_tight_rates_are_proved_at_other_steps(step: str) -> None:
    assert found(MINE.bound, replace(TEN, client_lr=step)).all_rounds.certificate is not None


@pytest.mark.parametrize(
    ("bound", "outcome"),
    [
        ((1 - eta * mu) ** (3 * R) * D_0**2 + FLOOR, ClassOutcome.REFUTED),
        ((1 - eta * mu) ** (2 * R) * D_0**2 + FLOOR / 4, ClassOutcome.UNDECIDED),
        # Steps of 1/8 leave eta sigma^2/(N mu (2 - eta mu)) in the end.
        ((1 - eta * mu) ** (2 * R) * D_0**2 + FLOOR / 2, ClassOutcome.UNDECIDED),
        ((1 - eta * mu) ** (2 * R) * D_0**2 + FLOOR / (2 - eta * mu), ClassOutcome.PROVED),
        ((1 - eta * mu) ** R * D_0**2 + FLOOR, ClassOutcome.PROVED),
    ],
)
def test_slips_are_never_proved(bound: sp.Expr, outcome: ClassOutcome) -> None:
    assert found(bound).all_rounds.outcome is outcome


def test_a_witness_breaks_the_bound_by_the_engines_too() -> None:
    result = found((1 - eta * mu) ** (3 * R) * D_0**2 + FLOOR)
    witness = result.all_rounds.witness
    assert isinstance(witness, QuadraticWitness)
    setting = witness.setting
    distances = exact(setting)["squared_distance"]
    rate = (1 - 0.1 / 8) ** 3
    assert distances[-1] > rate**setting.rounds * distances[0]


@pytest.mark.parametrize(
    ("start", "rate"),
    [
        ((1 - eta * mu) ** (2 * R), Fraction(81, 100)),
        (((1 - eta * mu) ** 2) ** R, Fraction(81, 100)),
        ((1 - eta * mu) ** R * (1 - 2 * eta * mu) ** R, Fraction(72, 100)),
        (sp.Float(0.9) ** R, Fraction(9, 10)),
    ],
)
def test_rates_are_read_off_however_they_are_written(start: sp.Expr, rate: Fraction) -> None:
    theorem = replace(MINE, bound=start * D_0**2 + FLOOR)
    a_round = replace(TEN, client_lr=1).coupled(theorem, NOISY)
    assert DISTANCE_FORM.claim(theorem, NOISY, a_round).speed == rate


def test_the_same_in_other_letters_is_the_same() -> None:
    """D is the squared distance here, and letters are those of other numbers."""
    D = symbol("L", number="squared_distance", nonnegative=True)
    swapped = {
        L: symbol("mu", number="L", positive=True),
        mu: symbol("beta", number="mu", positive=True),
    }
    theorem = replace(
        MINE,
        bound=MINE.bound.subs(D_0**2, D).xreplace(swapped),
        hypotheses=(Hypothesis("small steps", sp.Le(eta, 1 / swapped[L]), "Theorem 1"),),
    )
    clients = ClientClass(2, "1/10", "everywhere", sigma=1)
    played = SafariRound(eligible=3, participants=3, local_steps=1, client_lr="2/5")
    mine, other = audit(MINE, clients, played), audit(theorem, clients, played)
    assert other.claim == mine.claim
    assert other.hypotheses == {"small steps": True}
    assert replace(played, client_lr="3/5").coupled(theorem, clients).client_lr == Fraction(3, 5)
    assert audit(theorem, clients, replace(played, client_lr="3/5")).failed == ("small steps",)


def test_hypotheses_of_the_round_are_checked() -> None:
    result = audit(MINE, NOISY, SafariRound(eligible=5, participants=4, local_steps=2))
    assert result.failed == ("one local step", "everybody takes part")
    assert audit(MINE, NOISY, replace(TEN, client_lr="3/2")).failed == ("small steps",)
    assert audit(MINE, NOISY, SafariRound(eligible=5, excluded=1)).failed == (
        "everybody takes part",
    )


def test_a_theorem_on_other_participation_is_not_audited() -> None:
    """Its numbers may well be numbers of clients drawn uniformly, too."""

    def independent(setting: Setting) -> Setting:
        if not isinstance(setting.participation, Bernoulli):
            raise ValueError(f"participation must be Bernoulli, got {setting.participation!r}")
        return setting

    some = replace(PARTS["FAMILY"].setting(), participation=Bernoulli([0.5] * 4))
    theorem = replace(
        MINE,
        hypotheses=MINE.hypotheses[:-1],
        domain=independent,
        regimes={"some come": Regime("p = 1/2", lambda: some)},
    )
    with pytest.raises(ValueError, match=r"uniformly drawn.*my/1 is not: participation must be B"):
        audit(theorem, NOISY, TEN)


def test_an_unknown_hypothesis_is_left_open() -> None:
    unknown = Hypothesis("left open", sp.Le(eta, 1), "Theorem 1", is_known=False)
    result = audit(replace(MINE, hypotheses=(*MINE.hypotheses, unknown)), NOISY, TEN)
    assert result.hypotheses["left open"] is None


def test_a_mean_of_gradients_of_plain_fedavg_is_proved() -> None:
    """Summed over rounds: F(x+) <= F - eta/2 ||grad F||^2 + L eta^2 sigma^2/(2N) at eta <= 1/L."""
    Delta = symbol("Delta", number="excess_loss", nonnegative=True)
    theorem = replace(
        MINE,
        quantity=BoundedQuantity("squared_gradient", "mean", RoundRange(0, -1), "mean", "mean"),
        bound=2 * Delta / (eta * R) + L * eta * sigma**2 / N,
        hypotheses=MINE.hypotheses[1:],
    )
    right = audit(theorem, NOISY, TEN)
    assert right.all_rounds.outcome is ClassOutcome.PROVED
    assert right.unconditional is None
    wrong = audit(replace(theorem, bound=theorem.bound / 3), NOISY, TEN)
    assert wrong.all_rounds.outcome is not ClassOutcome.PROVED


def test_what_a_formula_is_made_of() -> None:
    x, y = sp.symbols("x y")
    theorem = replace(MINE, definitions={x: y + mu, y: 2 * eta})
    assert names_in(theorem, x * D_0) == {"[y]", "mu", "squared_distance"}
    theorem = replace(MINE, definitions={y: 2 * eta, x: y + mu})
    assert names_in(theorem, x * D_0 * sp.Symbol("G")) == {
        "[G]", "client_lr", "mu", "squared_distance",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "played", "message"),
    [
        (
            {"read_as": {D_0: symbol("D_0", number=lambda setting: 1.0)}},
            TEN,
            "the value of D_0 must be a formula in numbers of a setting for my/1 to be proved",
        ),
        (
            {"read_as": {sigma: symbol("sigma", number="Gamma")}},
            TEN,
            r"theorem must have a floor in sigma_G\^2",
        ),
        (
            {"read_as": {mu: symbol("mu", number="Gamma")}},
            TEN,
            "rate of my/1 must be a fraction for the round's numbers to be proved, got",
        ),
        (
            {"bound": sp.exp(-eta * mu * R) * D_0**2 + FLOOR},
            TEN,
            "rate of my/1 must be a fraction .* got exp",
        ),
        ({"bound": 2 * MINE.bound}, TEN, r"theorem must bound E\|\|x_R - x\*\|\|\^2 by rate\^R"),
        ({}, replace(TEN, q="1/2"), "q must be 1 for my/1, which has no server step"),
        (
            {"hypotheses": (Hypothesis("long steps", sp.Ge(eta, 1 / L), "Theorem 1"),)},
            TEN,
            "client_lr must be given for my/1: no step of .* meets 'long steps'",
        ),
    ],
)
def test_what_cannot_be_audited_is_one_line(changed, played, message) -> None:
    with pytest.raises(ValueError, match=message):
        audit(replace(MINE, **changed), NOISY, played)

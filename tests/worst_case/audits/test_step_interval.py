"""Intervals of step sizes: one certificate, checked against certificates of single steps."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from fltheory import theorems
from fltheory.worst_case import ClientClass, SafariRound
from fltheory.worst_case.audits.audit import _over_e, interval_certificate
from fltheory.worst_case.audits.theorem_form import DISTANCE_FORM
from fltheory.worst_case.checker import one_round
from fltheory.worst_case.rounds.certificate import Certificate

DERIVED = theorems.get("sa-fl/5", "derived")
CLIENTS = ClientClass(1, "0.1", "everywhere", sigma=1)
SETTING = SafariRound(eligible=10, participants=4, local_steps=5, q="1/2", client_lr="1/40")


@pytest.fixture(scope="module")
def made() -> Certificate:
    found = interval_certificate(DERIVED, CLIENTS, SETTING, first="1/400", last="1/40")
    assert found is not None
    return found


def test_it_covers_the_interval_and_no_more(made: Certificate) -> None:
    made.verify()
    assert made.covers(client_lr="1/400")
    assert made.covers(client_lr="1/77")
    assert made.covers(n_clients=10, client_lr="1/40")
    assert not made.covers(client_lr="1/39")


def test_its_bound_is_the_theorems_at_every_step(made: Certificate) -> None:
    for step in ("1/400", "1/100", "1/40"):
        played = replace(SETTING, client_lr=step).coupled(DERIVED, CLIENTS)
        claim = DISTANCE_FORM.claim(DERIVED, CLIENTS, played)
        named = {"rate": claim.speed, "gap": 0, **claim.residual}
        assert made.proof.bound_at(Fraction(step)) == named


def test_noise_of_the_last_step_leaves_nothing_for_the_others() -> None:
    """It is q client_lr^2 / m = 1/2 * 1/1600 / 4; the others may have twice that: over e = 1/40."""
    played = SETTING.coupled(DERIVED, CLIENTS)
    alone = {
        "rate": [Fraction(1, 2)],
        "heterogeneity": [Fraction(0)],
        "noise": [Fraction(1, 12800)],
    }
    assert _over_e(played, CLIENTS, alone) == (20.0, 0.0, 0.0)
    thrice = alone | {"noise": [Fraction(3, 12800)]}
    assert _over_e(played, CLIENTS, thrice)[2] == float(Fraction(2 * 40, 12800))


def test_a_lower_claim_is_refused(made: Certificate) -> None:
    document = json.loads(made.text)
    document["bound"]["heterogeneity"] = [
        str(Fraction(c) / 1000) for c in document["bound"]["heterogeneity"]
    ]
    with pytest.raises(ValueError, match=r"in Bernstein coefficient \d: .* negative eigenvalue"):
        one_round.check_proof(one_round.parsed(json.dumps(document)))


@pytest.mark.parametrize("name", ["server_noise", "noise", "heterogeneity"])
def test_a_claim_is_checked_between_the_nodes_as_well(made: Certificate, name: str) -> None:
    """A coefficient that is large at all four nodes of a box, and negative between two of them.

    A multiple of ``-step (step - n_1) (step - n_2) (step - n_3)`` is added: nothing at
    three of the nodes, more at the first, and less between the second and the third.
    """
    document = json.loads(made.text)
    document["boxes"] = document["boxes"][:1]
    low, high = (Fraction(end) for end in document["boxes"][0]["client_lr"])
    one, two, three = (low + (high - low) * node for node in one_round.NODES[1:])
    dip = [-one * two * three, one * two + one * three + two * three, -(one + two + three), 1]
    before = [Fraction(c) for c in document["bound"][name]]
    before += [Fraction(0)] * (5 - len(before))

    def changed(size: int) -> list[Fraction]:
        return [c - size * d for c, d in zip(before, [0, *dip], strict=True)]

    def at(coefficients: list[Fraction], step: Fraction) -> Fraction:
        return sum((c * step**i for i, c in enumerate(coefficients)), Fraction(0))

    size = next(10**k for k in range(100) if at(changed(10**k), (one + two) / 2) < 0)
    forged = changed(size)
    assert all(at(forged, node) >= at(before, node) for node in (low, one, two, three))
    document["bound"][name] = [str(c) for c in forged]
    with pytest.raises(one_round.ProofError, match=f"bound.{name}: is less"):
        one_round.check_proof(one_round.parsed(json.dumps(document)))


def test_bernstein_coefficients_are_those_of_a_cubic() -> None:
    """(1 - t)^3 and its like have one coefficient of one and the others of zero."""
    basis = [
        lambda t: (1 - t) ** 3,
        lambda t: 3 * t * (1 - t) ** 2,
        lambda t: 3 * t**2 * (1 - t),
        lambda t: t**3,
    ]
    for index, polynomial in enumerate(basis):
        values = [polynomial(node) for node in one_round.NODES]
        found = [
            sum(w * v for w, v in zip(row, values, strict=True)) for row in one_round.BERNSTEIN
        ]
        assert found == [int(index == place) for place in range(4)]


def test_boxes_that_leave_a_gap_are_refused(made: Certificate) -> None:
    document = json.loads(made.text)
    box = document["boxes"][0]
    other = json.loads(json.dumps(box))
    other["client_lr"] = ["1/30", "1/20"]
    document["boxes"].append(other)
    with pytest.raises(ValueError, match=r"boxes\[\d\].client_lr: must begin where the previous"):
        one_round.check_proof(one_round.parsed(json.dumps(document)))


def test_what_is_false_somewhere_is_not_proved() -> None:
    """With an excluded client and q = 1/2 the inequality is refuted at every step."""
    clients = ClientClass(1, "0.1", "everywhere")
    one_excluded = replace(SETTING, eligible=9, excluded=1)
    found = interval_certificate(DERIVED, clients, one_excluded, first="1/410", last="1/400")
    assert found is None


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="first must be below last = 1/40"):
        interval_certificate(DERIVED, CLIENTS, SETTING, first="1/40", last="1/40")

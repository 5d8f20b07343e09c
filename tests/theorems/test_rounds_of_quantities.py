"""Which rounds the papers' left sides and conditions are about, typed again, and said in words."""

from __future__ import annotations

import pytest

from fltheory import theorems
from fltheory.grammar.quantities import BoundedQuantity, RoundRange

BEFORE_EACH, AFTER_EACH, WHOLE = RoundRange(0, -1), RoundRange(1, 0), RoundRange(0, 0)
QUANTITIES = {
    ("sa-fl/4", "printed"): ("mean", AFTER_EACH),
    ("sa-fl/4", "derived"): ("mean", BEFORE_EACH),
    ("sa-fl/4", "repaired"): ("mean", BEFORE_EACH),
    ("sa-fl-submission/4", "printed"): ("mean", AFTER_EACH),
    ("sa-fl-submission/4", "derived"): ("mean", BEFORE_EACH),
    ("sa-fl-submission/4", "repaired"): ("mean", BEFORE_EACH),
    ("sa-fl/remark-5-bound-4", "printed"): ("mean", AFTER_EACH),
    ("sa-fl/remark-5-bound-5", "printed"): ("last", WHOLE),
    **{("sa-fl/5", reading): ("last", WHOLE) for reading in ("printed", "derived", "repaired")},
    **{("ca-fed/2", reading): ("last", WHOLE) for reading in ("printed", "any C_P", "derived")},
    **{("ca-fed/lemma-2", reading): ("mean", BEFORE_EACH) for reading in ("printed", "derived")},
    ("fedau/2-option-1", "derived"): ("mean", BEFORE_EACH),
    ("fedau/2-option-2", "derived"): ("mean", BEFORE_EACH),
    **{
        (f"scaffold/{losses}", reading): ("mean", BEFORE_EACH)
        for losses in ("strongly-convex", "convex", "nonconvex")
        for reading in ("printed", "pseudo-code", "derived")
    },
}
# SA-FL's conditions on q: before a round, as the proofs use them.
CONDITIONS = {
    ("sa-fl/4", "printed"): "max",
    ("sa-fl/4", "derived"): "mean",
    ("sa-fl-submission/4", "printed"): "min",
    ("sa-fl-submission/4", "derived"): "mean",
    ("sa-fl/5", "printed"): "every",
    ("sa-fl/5", "derived"): "every",
}
ON_RUNS = {
    (s.id, s.reading): s
    for s in theorems.registered()
    if isinstance(getattr(s, "quantity", None), BoundedQuantity)
}


def test_rounds_of_left_sides() -> None:
    found = {key: (s.quantity.reduction, s.quantity.rounds) for key, s in ON_RUNS.items()}
    # Those of one round, and of the model after the last step, are the atlas's and FedAU's lemma.
    last = ("last", RoundRange(0, 0))
    others = {key: rule for key, rule in found.items() if key not in QUANTITIES}
    assert {key: found[key] for key in QUANTITIES} == QUANTITIES
    assert set(others.values()) == {last}


def test_rounds_of_conditions() -> None:
    for key, reduction in CONDITIONS.items():
        for symbol in ON_RUNS[key].round_symbols:
            assert (symbol.reduction, symbol.rounds) == (reduction, BEFORE_EACH)


@pytest.mark.parametrize(
    "key", [key for key in ON_RUNS if key[0] in ("sa-fl/4", "sa-fl-submission/4")]
)
def test_sums_name_their_rounds(key: tuple[str, str]) -> None:
    quantity = ON_RUNS[key].quantity
    first, last = {AFTER_EACH: ("1", "R"), BEFORE_EACH: ("0", "R-1")}[quantity.rounds]
    assert quantity.text == f"1/R sum_{{r={first}}}^{{{last}}} E||grad F(x_r)||^2"
    assert rf"\sum_{{r={first}}}^{{{last}}}" in quantity.latex

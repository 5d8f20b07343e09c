"""Look-up of statements."""

import pytest

from fltheory import theorems
from fltheory.theorems.registry import ids, readings

WHOLE = ("printed", "derived", "repaired")
TIGHT = ("printed", "derived", "tight")
READINGS = {
    "sa-fl-submission/4": WHOLE,
    "sa-fl/4": WHOLE,
    "sa-fl/5": WHOLE,
    "sa-fl/corollary-1": WHOLE,
    "sa-fl/corollary-2": WHOLE,
    "sa-fl-submission/corollary-1": ("printed", "derived"),
    "sa-fl/corollary-1-speedup": ("printed", "derived"),
    "sa-fl/a1": ("printed", "derived"),
    "sa-fl/a1-ratio": ("printed",),
    "sa-fl/a1-order": ("printed",),
    "sa-fl/remark-5-fedavg": ("printed",),
    "sa-fl/remark-5-sgd": ("printed",),
    "sa-fl/remark-5-bound-4": ("printed",),
    "sa-fl/remark-5-bound-5": ("printed",),
    "sa-fl/remark-6-fedavg": ("printed",),
    "sa-fl/remark-6-nonconvex": ("printed",),
    "sa-fl/remark-6-convex": ("printed",),
    "ca-fed/1": ("printed", "sharper"),
    "ca-fed/2": ("printed", "any C_P", "derived"),
    "ca-fed/3": ("printed", "sharper"),
    "ca-fed/lemma-1": ("printed",),
    "ca-fed/local-gradients": ("printed", "derived"),
    "ca-fed/lemma-2": ("printed", "derived"),
    "ca-fed/lemma-3": ("printed", "derived"),
    "ca-fed/falling-steps": ("printed", "derived"),
    "ca-fed/appendix-d": ("printed", "derived", "any noise"),
    "ca-fed/appendix-d-convex": ("printed",),
    "ca-fed/appendix-e": ("printed", "derived", "two clients"),
    "ca-fed/appendix-e-summands": ("printed", "derived"),
    "ca-fed/mixing": ("printed", "any C_P"),
    "ca-fed/product-chain": ("printed",),
    "ca-fed/vi-a": ("printed", "derived"),
    "ca-fed/vi-a-limit": ("printed",),
    "ca-fed/vi-b": ("printed",),
    "ca-fed/vi-b-order": ("printed",),
    "ca-fed/vi-b-estimates": ("printed",),
    "fedau/1": ("printed", "derived"),
    "fedau/2-option-1": ("printed", "derived"),
    "fedau/2-option-2": ("printed", "derived"),
    "fedau/corollary-4": ("printed", "derived"),
    "fedau/3": ("printed", "derived"),
    "fedau/3-rounds": ("printed",),
    "fedau/3-step": ("printed", "derived"),
    "fedau/lemma-b-3-3": ("printed",),
    "scaffold/strongly-convex": ("printed", "pseudo-code", "derived"),
    "scaffold/convex": ("printed", "pseudo-code", "derived"),
    "scaffold/nonconvex": ("printed", "pseudo-code", "derived"),
    "lemmas/perturbed-strong-convexity": ("printed", "tight"),
    "lemmas/separation": ("printed",),
    "lemmas/martingale-separation": ("printed", "tight"),
    "lemmas/separation-in-61": ("printed",),
    "lemmas/bounded-drift": ("printed", "derived", "tight"),
    "fedar/1": ("printed", "derived"),
    "fedar/2": ("printed", "derived"),
    "fedar/average-inactivity": ("printed",),
    "fedar/maximum-inactivity": ("printed",),
    "fedar/number-of-clients": ("printed",),
    "fedar/weight": ("printed",),
    "fedar/initial-error": ("printed",),
    "fedar/variance": ("printed",),
    "fedar/assumption-7": ("printed", "bounded absence", "derived"),
    "pac/1": TIGHT,
    "pac/1-equivalence": ("printed", "same data", "derived"),
    "pac/1-guessing": ("printed", "derived"),
    "pac/1-chernoff": ("printed", "tight"),
    "pac/1-rare": ("printed", "tight"),
    "pac/1-sum": ("printed", "derived"),
    "pac/1-conditional": ("printed", "tight"),
    "pac/example": ("printed", "derived"),
    "pac/lemma-1": ("printed", "derived", "any constant"),
    "pac/lemma-1-errors": ("printed", "derived"),
    "pac/lemma-1-disagreements": ("printed", "derived"),
    "pac/2": ("printed", "uniform in Q", "derived"),
    "pac/remark-2": ("printed",),
    "pac/lemma-2": ("printed", "derived"),
    "pac/3": ("printed", "derived"),
    "fedavg-li/1": ("printed", "from w_1"),
    "fedavg-li/2": ("printed", "from w_1"),
    "fedavg-li/3": ("printed", "from w_1"),
    "fedavg-li/distance": ("printed",),
    "fedavg-li/3-scaling": ("printed", "derived"),
    "fedavg-li/4": ("printed", "with constants"),
    "local-gd/lemma-1": ("printed",),
    "local-gd/lemma-1-small-steps": ("printed",),
    "local-gd/lemma-2": ("printed", "derived"),
    "local-gd/1": ("printed", "derived"),
    "local-gd/corollary-1": ("printed", "derived"),
    "local-gd/communication": ("printed", "derived"),
    "proxskip/5": ("printed",),
    "proxskip/6": ("printed",),
    "fedprox/4": ("printed",),
    "fednova/1": ("printed",),
    "fednova/2": ("printed",),
    "fedawe/lemma-2": ("printed",),
    "fedawe/lemma-2-squares": ("printed",),
    "fedawe/lemma-4": ("printed",),
    "fedawe/lemma-3": ("printed", "derived"),
    "fedawe/1": ("printed", "derived"),
    "fedawe/corollary-1": ("printed", "derived"),
    "scaffold-bias/4.1": ("printed",),
    "scaffold-bias/11": ("printed",),
    "scaffold-bias/16": ("printed",),
}


def test_every_statement_has_its_readings() -> None:
    assert ids() == tuple(READINGS)
    for identifier, expected in READINGS.items():
        assert readings(identifier) == expected
        for reading in readings(identifier):
            statement = theorems.get(identifier, reading=reading)
            assert (statement.id, statement.reading) == (identifier, reading)


def test_printed_is_the_default_reading() -> None:
    assert theorems.get("sa-fl/5").reading == "printed"


def test_unknown_id_lists_near_ones() -> None:
    with pytest.raises(ValueError, match=r"must be a registered theorem .*sa-fl/5.*, got 'sa-fl5'"):
        theorems.get("sa-fl5")


def test_unknown_reading_lists_the_known() -> None:
    with pytest.raises(
        ValueError, match="must be one of printed, derived, repaired, got 'charitable'"
    ):
        theorems.get("sa-fl/5", reading="charitable")


def names(statements) -> list[tuple[str, str]]:
    return [(statement.id, statement.reading) for statement in statements]


def test_a_beginning_is_an_id_or_what_stands_before_a_slash() -> None:
    assert names(theorems.registered("sa-fl/5")) == [
        ("sa-fl/5", reading) for reading in ("printed", "derived", "repaired")
    ]
    of_paper = {statement.id for statement in theorems.registered("sa-fl")}
    assert {"sa-fl/4", "sa-fl/5", "sa-fl/corollary-1"} <= of_paper
    assert not {identifier for identifier in of_paper if not identifier.startswith("sa-fl/")}
    assert theorems.registered("sa-fl/") == theorems.registered("sa-fl")
    with pytest.raises(ValueError, match="id must be a registered theorem"):
        theorems.registered("sa-f")


def test_statements_come_once_in_the_order_of_the_beginnings() -> None:
    twice = theorems.registered("sa-fl/5", "sa-fl/4", "sa-fl")
    assert twice[0].id == "sa-fl/5"
    assert sorted(names(twice)) == sorted(names(theorems.registered("sa-fl")))


def test_what_is_loaded_holds_statements_alone() -> None:
    with pytest.raises(ValueError, match="source must contain only statements, got 3"):
        theorems.load([3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="source must contain only statements, got 'sa-fl/5'"):
        theorems.load(name for name in ["sa-fl/5"])  # type: ignore[misc]


def test_the_atlas_is_a_name_for_its_papers() -> None:
    found = theorems.registered("atlas", "sa-fl/5")
    papers = {one.id.partition("/")[0] for one in found[:-3]}
    assert papers >= {"fedavg-li", "local-gd", "proxskip", "fedprox", "fednova", "fedawe"}
    assert not papers & {"sa-fl", "ca-fed", "fedau", "fedar", "pac", "scaffold", "lemmas"}
    assert [one.id for one in found[-3:]] == ["sa-fl/5"] * 3

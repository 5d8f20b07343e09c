"""Ranges of rounds, their reductions, and what is refused where a statement is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.engines.trajectory import Trajectory
from fltheory.grammar.quantities import reduced
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import (
    BoundedQuantity,
    DirectionClaim,
    Hypothesis,
    RateAxis,
    RateClaim,
    RoundRange,
    RoundSymbol,
    Theorem,
)
from fltheory.theorems.registry import readings
from tests.theorems import own

ROUNDS = np.array([5.0, 1.0, 4.0, 2.0])
SETTING = Setting(FedAvg(0.1, 1), QuadraticProblem([[1.0]], [[0.0]]), UniformSubset(1, 1), 3, [1.0])


@pytest.mark.parametrize(
    ("rounds", "text", "values"),
    [
        (RoundRange(0, -1), "r = 0 .. R-1", [5, 1, 4]),
        (RoundRange(1, 0), "r = 1 .. R", [1, 4, 2]),
        (RoundRange(0, 0), "r = 0 .. R", [5, 1, 4, 2]),
    ],
)
def test_range_of_rounds(rounds: RoundRange, text: str, values: list[float]) -> None:
    assert rounds.text == text
    assert rounds.of(ROUNDS).tolist() == values


@pytest.mark.parametrize(
    ("reduction", "values"),
    [("mean", [3]), ("max", [5]), ("min", [1]), ("last", [2]), ("every", [5, 1, 4, 2])],
)
def test_reductions(reduction, values) -> None:
    assert reduced(ROUNDS, reduction, RoundRange(0, 0)).tolist() == values


def test_bounded_quantity_reads_its_field() -> None:
    trajectory = Trajectory(ROUNDS, 10 * ROUNDS, 100 * ROUNDS)
    quantity = BoundedQuantity("squared_gradient", "mean", RoundRange(1, 0), "text", "latex")
    assert quantity.of(trajectory, SETTING) == pytest.approx(70 / 3)
    assert quantity.error(np.array([9.0, 1.0, 2.0, 3.0]), SETTING) == 2.0


def test_a_mean_can_weigh_its_rounds() -> None:
    """Weights of the setting, which need not sum to one; a round of weight zero does not count."""
    trajectory = Trajectory(np.array([np.inf, 1.0, 4.0, 2.0]), ROUNDS, ROUNDS)
    quantity = BoundedQuantity(
        "squared_distance",
        "mean",
        RoundRange(0, -1),
        "text",
        "latex",
        weights=lambda setting: np.array([0.0, 1.0, setting.rounds]),
    )
    assert quantity.of(trajectory, SETTING) == pytest.approx((1 * 1 + 3 * 4) / 4)
    assert quantity.error(np.array([9.0, 1.0, 2.0, 3.0]), SETTING) == pytest.approx(7 / 4)


@pytest.mark.parametrize("reduction", ["average", "Max", "", None])
def test_an_unknown_reduction_is_refused(reduction: Any) -> None:
    """It was taken for the minimum: a misspelt mean made of a refuted theorem one that holds."""
    symbol = sp.Symbol("g")
    message = r"reduction.* must be one of 'mean', 'max', 'min', .*'last', got"
    with pytest.raises(ValueError, match=message):
        reduced(ROUNDS, reduction, RoundRange(0, 0))
    with pytest.raises(ValueError, match=message):
        RoundSymbol(symbol, "squared_distance", reduction, RoundRange(0, 0), "")
    with pytest.raises(ValueError, match=message):
        replace(own.TRUE.quantity, reduction=reduction)


@pytest.mark.parametrize("rounds", [RoundRange(4, 0), RoundRange(0, -4), RoundRange(0, -7)])
def test_an_empty_range_is_refused(rounds: RoundRange) -> None:
    """A range that ends before round 0 does not begin again at the other end."""
    message = rf"at least one round, got r = {rounds.first} \.\. R.* of a run of R = 3 rounds"
    assert rounds.of(ROUNDS).size == 0
    for reduction in ("mean", "max", "min", "last", "every"):
        with pytest.raises(ValueError, match=message):
            reduced(ROUNDS, reduction, rounds)
    quantity = BoundedQuantity("squared_distance", "mean", rounds, "", "", weights=lambda s: ROUNDS)
    for given in (quantity, replace(quantity, weights=None)):
        with pytest.raises(ValueError, match=message):
            given.error(ROUNDS, SETTING)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ((-1, 0), "first must be a whole number of at least 0, got -1"),
        ((0.5, 0), r"first must be a whole number of at least 0, got 0\.5"),
        ((0, 1), "beyond_last must be a whole number of at most 0, .* got 1"),
        ((0, -0.5), r"beyond_last must be a whole number of at most 0, .* got -0\.5"),
        ((0, False), "beyond_last must be a whole number of at most 0, .* got False"),
        ((0, "0"), "beyond_last must be a whole number of at most 0, .* got '0'"),
    ],
)
def test_ranges_are_of_whole_rounds(ends: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RoundRange(*ends)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"field": ""}, "field of a bounded quantity must be a non-empty string, got ''"),
        ({"reduction": "every"}, "reduction of a bounded .* 'last', got 'every'"),
        ({"rounds": (0, 0)}, r"rounds of a bounded quantity must be RoundRange, got \(0, 0\)"),
        ({"weights": np.ones(3)}, "weights of a bounded quantity must be callable, got"),
        ({"weights": len}, "weights of a bounded quantity must belong to a mean, got 'last'"),
        ({"unit": "m"}, "unit of a bounded quantity must be Unit or None, got 'm'"),
        ({"text": None}, "text of a bounded quantity must be str, got None"),
    ],
)
def test_bad_quantities(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(own.TRUE.quantity, **changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"symbol": "g"}, "symbol of a round symbol must be a SymPy symbol, got 'g'"),
        ({"field": " "}, "field of the round symbol g must be a non-empty string, got ' '"),
        ({"rounds": None}, "rounds of the round symbol g must be RoundRange, got None"),
    ],
)
def test_bad_round_symbols(changed: dict[str, Any], message: str) -> None:
    symbol = RoundSymbol(sp.Symbol("g"), "excess_loss", "every", RoundRange(0, 0), "")
    with pytest.raises(ValueError, match=message):
        replace(symbol, **changed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", own.ETA < 1, ""), "name of a hypothesis must be a non-empty string"),
        (("h", True, ""), "condition of hypothesis 'h' must be a SymPy relation, got True"),
        (("h", own.ETA < 1, None), "source of hypothesis 'h' must be a string, got None"),
    ],
)
def test_bad_hypotheses(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hypothesis(*arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": ""}, "id of the theorem '' must be a non-empty string, got ''"),
        ({"reading": ""}, "reading of the theorem 'own/true' must be a non-empty string"),
        ({"quantity": None}, "quantity of the theorem 'own/true' must be BoundedQuantity, got"),
        ({"bound": 1.0}, "bound of the theorem 'own/true' must be a SymPy expression .* got 1.0"),
        ({"hypotheses": [own.ETA < 2]}, "hypotheses .* must be a tuple of Hypothesis, got"),
        (
            {"hypotheses": (own.ETA < 2,)},
            "hypotheses .* must be a tuple of Hypothesis, got eta < 2",
        ),
        ({"domain": {own.ETA: 1.0}}, "domain of the theorem 'own/true' must be callable"),
        ({"domain": lambda: {}}, "domain of the theorem 'own/true' must take 1 argument,"),
        ({"definitions": {own.R: 1}}, "definitions .* mapping of Symbol to Expr, got R: 1 in it"),
        ({"round_symbols": (own.R,)}, "round_symbols .* must be a tuple of RoundSymbol, got R"),
        ({"observe": ()}, r"observe .* must be callable, got \(\)"),
        ({"regimes": [("a", None)]}, "regimes .* must be a mapping of str to Regime, got"),
        ({"regimes": {"a": SETTING}}, "regimes .* must be a mapping of str to Regime, got 'a'"),
        (
            {"regimes": {"": own.TRUE.regimes["usual"]}},
            "a name in regimes .* non-empty string, got ''",
        ),
        ({"read_as": {own.R: "m"}}, "read_as .* a mapping of Symbol to Symbol, got R: 'm' in it"),
        ({"family": own.make}, "family .* must be Family or None, got"),
    ],
)
def test_bad_theorems(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(own.TRUE, **changed)


@pytest.mark.parametrize(
    ("identifier", "changed", "message"),
    [
        ("sa-fl/corollary-1", {"axes": ()}, "sa-fl/corollary-1.* at least one axis, got no axes"),
        ("sa-fl/corollary-1", {"theorem": None}, "theorem .* must be Inequality, got"),
        ("fedar/weight", {"axes": ()}, "the claim 'fedar/weight' must have at least one axis"),
        ("ca-fed/1", {"quantity": own.TRUE.quantity}, "quantity .* must be PointQuantity, got"),
        ("pac/1", {"relation": "=<"}, "relation .* must be Relation, got '=<'"),
        ("pac/2", {"variable": "n"}, "variable of the claim 'pac/2' must be a SymPy symbol"),
        ("pac/2", {"reading": None}, "reading of the claim 'pac/2' must be a non-empty string"),
    ],
)
def test_bad_claims(identifier: str, changed: dict[str, Any], message: str) -> None:
    claim: Any = theorems.get(identifier, readings(identifier)[0])
    with pytest.raises(ValueError, match=message):
        replace(claim, **changed)


def test_a_direction_has_one_axis() -> None:
    (claim,) = (
        item
        for item in theorems.registered()
        if (item.id, item.reading) == ("fedar/weight", "printed")
    )
    assert isinstance(claim, DirectionClaim)
    with pytest.raises(
        ValueError, match="the claim 'fedar/weight' must have exactly one axis, got 2"
    ):
        replace(claim, axes=claim.axes * 2)


def test_bad_axes() -> None:
    rounds = sp.Symbol("R")
    with pytest.raises(ValueError, match="grid of the axis of R must be callable, got"):
        RateAxis(rounds, 1 / rounds, (1, 2), lambda setting, value: setting)  # type: ignore[arg-type]


def test_every_registered_statement_can_be_made_again() -> None:
    kinds = {type(replace(statement)) for statement in theorems.registered()}
    assert {Theorem, RateClaim, DirectionClaim} < kinds


@pytest.mark.parametrize("grid", [(), (1, 10, 999), (0, 10, 1000), (1, 1000, 1000)])
def test_an_order_is_read_off_three_decades(grid: tuple[int, ...]) -> None:
    """A direction is read off any values that increase."""
    order, direction = theorems.get("fedar/1"), theorems.get("fedar/weight")
    setting = order.regimes["in rotation"].setting
    short = replace(order.axes[0], grid=lambda setting: grid)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"grid of the axis of T must increase .* got \("):
        order.values(short, setting)  # type: ignore[union-attr]
    assert direction.values(direction.axes[0], setting)[0] == 0  # type: ignore[union-attr]

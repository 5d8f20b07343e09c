"""Maps: what is varied, and regions known in closed form."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import nonconvex
from fltheory.theorems import BoundedQuantity, Hypothesis, RoundRange
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.verify import MapAxis, Outcome, map_region
from fltheory.verify.region_map import default_axis, parameters, varied

BASE = theorems.get("sa-fl/5").regimes["biased minority excluded"].setting


def test_each_parameter_changes_what_it_says_and_what_is_tied_to_it() -> None:
    safari = BASE.algorithm
    assert varied(BASE, "q", 0.125).algorithm == replace(safari, q=0.125)
    assert varied(BASE, "rounds", 7.0).rounds == 7
    steps = varied(BASE, "local_steps", 10.0).algorithm
    assert steps.local_steps == 10
    assert steps.client_lr * 10 == pytest.approx(safari.client_lr * 5)
    step = varied(BASE, "step", 0.5).algorithm
    assert (step.client_lr, step.assist_lr) == (safari.client_lr / 2, safari.assist_lr / 2)
    away = varied(BASE, "distance", 3.0)
    np.testing.assert_allclose(away.x0 - BASE.problem.x_star, 3 * (BASE.x0 - BASE.problem.x_star))
    spread = varied(BASE, "heterogeneity", 4.0).problem
    assert spread.sigma_G == pytest.approx(4 * BASE.problem.sigma_G)
    np.testing.assert_allclose(spread.x_star, BASE.problem.x_star, atol=1e-12)
    assert (spread.sigma, spread.L) == (BASE.problem.sigma, BASE.problem.L)


@pytest.mark.parametrize("name", parameters())
def test_default_values_increase_and_make_settings(name: str) -> None:
    axis = default_axis(BASE, name)
    assert list(axis.values) == sorted(set(axis.values))
    assert all(isinstance(varied(BASE, name, value), Setting) for value in axis.values)


def test_a_region_in_closed_form() -> None:
    """Applies iff q <= 0.3, and then says E||x_R - x*||^2 <= D_0^2 / R.

    With equal clients and no noise E||x_R - x*||^2 <= D_0^2, with equality only at the start.
    """
    iid = theorems.get("sa-fl/5").regimes["i.i.d."].setting
    theorem = replace(
        theorems.get("sa-fl/5"),
        bound=sa_fl.D_0**2 / sa_fl.R,
        hypotheses=(Hypothesis("few", sa_fl.q <= 0.3, "here"),),
        round_symbols=(),
    )
    region = map_region(
        theorem, iid, MapAxis("q", (0.1, 0.3, 0.31, 1.0)), MapAxis("rounds", (1, 90))
    )
    holds, refuted, silent = Outcome.HOLDS, Outcome.REFUTED, Outcome.INAPPLICABLE
    outcomes = [[verdict.outcome for verdict in row] for row in region.verdicts]
    assert outcomes == [[holds, holds, silent, silent], [refuted, refuted, silent, silent]]
    assert region.share(holds) == region.share(refuted) == 0.25
    assert region.summary == ("applies on 50.0% of the cells: HOLDS on 25.0%, REFUTED on 25.0%")
    truth = region.verdicts[1][0].truth
    assert region.looseness[1, 0] == pytest.approx(math.log10(4.0 / 90 / truth))
    assert region.looseness.shape == (2, 4)


def test_an_empty_region_shows_as_such() -> None:
    nowhere = replace(
        theorems.get("sa-fl/5"),
        hypotheses=(Hypothesis("none", sp.Le(sa_fl.q, -1, evaluate=False), "here"),),
    )
    region = map_region(nowhere, BASE, MapAxis("q", (0.1, 0.9)), MapAxis("rounds", (1.0, 2.0)))
    assert region.summary == "applies nowhere on this map"


def test_an_infinite_bound_has_no_looseness() -> None:
    other = theorems.get("sa-fl/5").regimes["different Hessians"].setting
    region = map_region(
        theorems.get("sa-fl/5"), other, MapAxis("q", (0.5,)), MapAxis("rounds", (2.0,))
    )
    assert np.isnan(region.looseness).all()


def test_progress_counts_cells() -> None:
    seen: list[tuple[int, int, str]] = []
    axes = MapAxis("q", (0.1, 0.9)), MapAxis("rounds", (1.0, 2.0))
    map_region(theorems.get("sa-fl/5"), BASE, *axes, progress=lambda *step: seen.append(step))
    assert [step[:2] for step in seen] == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert seen[1][2] == "q = 0.9, rounds = 1"


def fedavg() -> Setting:
    problem = nonconvex(3, 2, L=1.0, sigma_G=0.5)
    return Setting(FedAvg(0.1, 2), problem, UniformSubset(3, 2), 3, [1.0, 1.0])


@pytest.mark.parametrize(
    ("setting", "name", "value", "message"),
    [
        (BASE, "colour", 1.0, "parameter must be one of q, rounds, .*, got 'colour'"),
        (BASE, "q", 1.5, r"q must be a probability in \[0, 1\], got 1.5"),
        (BASE, "rounds", 0.0, "rounds must be a whole number of at least 1, got 0"),
        (BASE, "step", 0.0, "client_lr must be a finite number above 0"),
        (fedavg(), "q", 0.5, "q must be a parameter of the algorithm"),
        (fedavg(), "heterogeneity", 2.0, "heterogeneity must belong to a QuadraticProblem"),
    ],
)
def test_bad_parameters(setting: Setting, name: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        varied(setting, name, value)


def test_bad_maps() -> None:
    axis = MapAxis("q", (0.5,))
    with pytest.raises(ValueError, match="y must differ from x, got 'q' for both"):
        map_region(theorems.get("sa-fl/5"), BASE, axis, axis)
    with pytest.raises(ValueError, match="must be an inequality to be mapped"):
        map_region(theorems.get("sa-fl/corollary-2"), BASE, axis, MapAxis("rounds", (1.0,)))


def test_a_bad_bound_of_a_quantity_is_not_hidden() -> None:
    quantity = BoundedQuantity("nothing", "last", RoundRange(0, 0), "text", "latex")
    broken = replace(theorems.get("sa-fl/5"), quantity=quantity)
    with pytest.raises(ValueError, match="name must be one of"):
        map_region(broken, BASE, MapAxis("q", (0.5,)), MapAxis("rounds", (1.0,)))


def test_whole_numbers_of_an_axis_stand_once() -> None:
    """13 roundings of 1 to 10 R, R = 1, would be 1, 1, 1, 2, 2, ..."""
    setting = replace(theorems.get("sa-fl/5").regimes["q = 0"].setting, rounds=1)
    values = default_axis(setting, "rounds").values
    assert len(set(values)) == len(values) > 3


def test_what_may_be_varied_is_listed_once() -> None:
    setting = theorems.get("sa-fl/5").regimes["q = 0"].setting
    with pytest.raises(ValueError, match="parameter must be one of") as error:
        default_axis(setting, "nothing")
    listed = str(error.value).split("one of ")[1].split(", got")[0].split(", ")
    assert listed.count("rounds") == 1
    assert len(set(listed)) == len(listed)

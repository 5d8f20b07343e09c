"""False variants of the atlas's statements, as they are misquoted: each is refuted unaided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.claims.statement import Inequality
from fltheory.grammar.printed_form import as_printed
from fltheory.theorems.atlas import fedavg_li as li
from fltheory.theorems.atlas import fedawe, fednova, fedprox, proxskip
from fltheory.theorems.atlas import local_gd as gd
from fltheory.verify import check, falsify

Variant = Callable[[Inequality], Inequality]


def bound(formula: Callable[[], sp.Expr]) -> Variant:
    return lambda one: replace(one, bound=as_printed(formula))


def bound_around_regimes(formula: Callable[[], sp.Expr]) -> Variant:
    return lambda one: replace(one, bound=as_printed(formula), family=None)


def without(name: str) -> Variant:
    """Without a hypothesis; around the regimes, as the family keeps to it."""

    def dropped(one: Inequality) -> Inequality:
        rest = tuple(item for item in one.hypotheses if item.name != name)
        assert len(rest) < len(one.hypotheses)
        return replace(one, hypotheses=rest, family=None)

    return dropped


VARIANTS: dict[str, tuple[str, int, Variant]] = {
    "gamma is lost before the distance": (
        "fedavg-li/1",
        15,
        bound_around_regimes(
            lambda: li.kappa / (li.gamma + li.T - 1) * (2 * li.B / li.mu + li.mu / 2 * li.D_1**2)
        ),
    ),
    "T in place of T - 1": (
        "fedavg-li/1",
        15,
        bound_around_regimes(
            lambda: (
                li.kappa / (li.gamma + li.T) * (2 * li.B / li.mu + li.mu * li.gamma / 2 * li.D_1**2)
            )
        ),
    ),
    "the square of H is lost": (
        "local-gd/lemma-2",
        10,
        bound(
            lambda: 5 * gd.L * gd.gamma**2 * gd.H * gd.D_p + gd.H * 8 * gd.gamma**2 * gd.sigma**2
        ),
    ),
    "the lemma for any step": ("local-gd/lemma-1-small-steps", 100, without("small steps")),
    "p in place of its square": (
        "proxskip/6",
        30,
        bound_around_regimes(
            lambda: (
                sp.Max(
                    (1 - proxskip.gamma * proxskip.mu) ** proxskip.T, (1 - proxskip.p) ** proxskip.T
                )
                * proxskip.Psi_0
            )
        ),
    ),
    "the smaller of the two rates": (
        "proxskip/6",
        20,
        bound_around_regimes(
            lambda: (
                sp.Min(
                    (1 - proxskip.gamma * proxskip.mu) ** proxskip.T,
                    (1 - proxskip.p**2) ** proxskip.T,
                )
                * proxskip.Psi_0
            )
        ),
    ),
    "the factors 2 are lost": (
        "fednova/2",
        30,
        bound(lambda: fednova.surrogate + fednova.chi**2 * fednova.kappa**2),
    ),
    "the square of chi is lost": (
        "fednova/2",
        60,
        bound(lambda: 2 * fednova.surrogate + 2 * fednova.chi * fednova.kappa**2),
    ),
    "rho to first order in 1/mu": (
        "fedprox/4",
        10,
        bound(lambda: fedprox.F_0 - fedprox.g**2 / fedprox.mu),
    ),
    "the square of delta is lost": ("fedawe/lemma-2-squares", 20, bound(lambda: 2 / fedawe.delta)),
    "the square of the mean for the mean square": (
        "fedawe/lemma-2-squares",
        60,
        bound(lambda: 1 / fedawe.delta**2),
    ),
}


# A witness's numbers are made round with both sides enclosed, which takes these seconds.
DEAR = {"the square of H is lost"}


@pytest.mark.filterwarnings("ignore:overflow encountered")  # steps that diverge
@pytest.mark.parametrize(
    "slip",
    [pytest.param(slip, marks=pytest.mark.soundness if slip in DEAR else ()) for slip in VARIANTS],
)
def test_a_slip_is_refuted(slip: str) -> None:
    name, budget, vary = VARIANTS[slip]
    theorem = theorems.get(name)
    assert isinstance(theorem, Inequality)
    variant = replace(vary(theorem), reading=slip, refutations=())
    found = falsify(variant, budget)
    assert found.witness is not None
    setting = found.witness.setting()
    assert check(variant, setting).outcome.name == "REFUTED"
    # It is the slip that is at fault.
    assert check(theorem, setting).outcome.name in ("HOLDS", "INAPPLICABLE")

"""From SA-FL's bounds to the orders claimed in its corollaries, as limits."""

from __future__ import annotations

import sympy as sp

from fltheory.derivations.derivation import Derivation, FiniteLimit, Step, Substitution, deferred
from fltheory.theorems.sa_fl.symbols import K, L, R, eta_bar, eta_c, eta_s, m, mu, q, sigma, sigma_s

_TAKEN = (
    "The theorem, with its hypotheses met at every R.",
    "Every variable that the limit does not name is held fixed.",
    "SymPy computes the limits.",
)
_FALLS = "(1 - etabar)^R falls as etabar grows, so constants larger than one are enough too."
_NOTHING_ELSE: Substitution = {}
_PLAIN = {eta_s: 1 / sp.sqrt(R)}
_FASTER = {eta_s: sp.sqrt(m * K / R)}
_QUIET = {sigma_s: sigma / sp.sqrt(m * K)}


@deferred
def corollary_1_printed(bound: sp.Expr) -> Derivation:
    """Return the orders at eta_s = 1/sqrt(R), as printed, and at the step that attains them."""
    rare = {q: 1 - 1 / (m * K)}
    return Derivation(
        (
            _in_rounds("eta_s = 1/sqrt(R)", bound, _PLAIN),
            _with_speedup(
                "eta_s = 1/sqrt(R), sigma_s^2 = sigma^2/(mK)", bound, {**_PLAIN, **_QUIET}
            ),
            _with_speedup("eta_s = 1/sqrt(R), q = 1 - 1/(mK)", bound, {**_PLAIN, **rare}),
            _with_speedup(
                "eta_s = sqrt(mK/R), sigma_s^2 = sigma^2/(mK)", bound, {**_FASTER, **_QUIET}
            ),
        ),
        _TAKEN,
    )


@deferred
def speedup(bound: sp.Expr, *, half: bool = False, plain: bool = False) -> Derivation:
    """Return the orders in m K R with q = 1 - 1/(mK), and with other permitted choices."""
    rare = {q: 1 - 1 / (m * K)}
    steps = [_with_speedup("eta_s = sqrt(mK/R), q = 1 - 1/(mK)", bound, {**_FASTER, **rare})]
    if half:
        at_half = {**_FASTER, q: sp.Rational(1, 2)}
        steps.append(_with_speedup("eta_s = sqrt(mK/R), q = 1/2", bound, at_half))
    if plain:
        steps.append(_with_speedup("eta_s = 1/sqrt(R), q = 1 - 1/(mK)", bound, {**_PLAIN, **rare}))
    return Derivation(tuple(steps), _TAKEN)


@deferred
def corollary_1_derived(bound: sp.Expr) -> Derivation:
    """Return the orders at eta_s = sqrt(mK/R)."""
    return Derivation(
        (
            _in_rounds("eta_s = sqrt(mK/R)", bound, _FASTER),
            _with_speedup(
                "eta_s = sqrt(mK/R), sigma_s^2 = sigma^2/(mK)", bound, {**_FASTER, **_QUIET}
            ),
        ),
        _TAKEN,
    )


@deferred
def corollary_1_repaired(bound: sp.Expr) -> Derivation:
    """Return the orders with client rounds so rare that 4 q sigma_G^2 has the claimed order."""
    rare, rarer = {q: 1 / sp.sqrt(R)}, {q: 1 / sp.sqrt(m * K * R)}
    return Derivation(
        (
            _in_rounds("eta_s = 1/sqrt(R), q = 1/sqrt(R)", bound, {**_PLAIN, **rare}),
            _with_speedup(
                "eta_s = sqrt(mK/R), q = 1/sqrt(mKR), sigma_s^2 = sigma^2/(mK)",
                bound,
                {**_FASTER, **_QUIET, **rarer},
            ),
        ),
        _TAKEN,
    )


@deferred
def corollary_2_printed(bound: sp.Expr) -> Derivation:
    """Return the order at two constants in etabar = Omega(log(R)/R)."""
    steps = (_in_contraction(bound, sp.Integer(1)), _in_contraction(bound, sp.Rational(1, 2)))
    return Derivation(steps, _TAKEN)


@deferred
def corollary_2_derived(bound: sp.Expr) -> Derivation:
    """Return the order at constants of at least one."""
    steps = (_in_contraction(bound, sp.Integer(1)), _in_contraction(bound, sp.Integer(2)))
    return Derivation(steps, (*_TAKEN, _FALLS))


@deferred
def corollary_2_repaired(bound: sp.Expr) -> Derivation:
    """Return the order with client rounds so rare that 4 q sigma_G^2/mu^2 has it, too."""
    rare = {q: sp.log(R) / R}
    steps = tuple(_in_contraction(bound, sp.Integer(size), rare) for size in (1, 2))
    return Derivation(steps, (*_TAKEN, _FALLS))


def _in_rounds(schedule: str, bound: sp.Expr, under: Substitution) -> Step:
    return Step(
        f"order in R, {schedule}",
        "sqrt(R) times the bound stays finite as R grows",
        FiniteLimit((bound * sp.sqrt(R)).xreplace(dict(under)), (R,)),
    )


def _with_speedup(schedule: str, bound: sp.Expr, under: Substitution) -> Step:
    return Step(
        f"order in m K R, {schedule}",
        "sqrt(mKR) times the bound stays finite as first R and then K grows",
        FiniteLimit((bound * sp.sqrt(m * K * R)).xreplace(dict(under)), (R, K)),
    )


def _in_contraction(
    bound: sp.Expr, constant: sp.Rational, further: Substitution = _NOTHING_ELSE
) -> Step:
    contraction = constant * sp.log(R) / R
    under = {
        eta_bar: contraction,
        eta_c: 2 * contraction / (K * mu),
        eta_s: (L + mu) * contraction / (2 * L * mu),
        **further,
    }
    size = "log(R)/R" if constant == 1 else f"{constant} log(R)/R"
    rarely = ", q = log(R)/R" if further else ""
    return Step(
        f"order in R, etabar = {size}{rarely}",
        "R/log(R) times the bound stays finite as R grows",
        FiniteLimit((bound * R / sp.log(R)).xreplace(under), (R,)),
    )

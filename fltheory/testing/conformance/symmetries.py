"""Laws that compare an implementation with itself on a transformed case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fltheory.testing.conformance import case_maker
from fltheory.testing.conformance.bench import Bench, LawTrial, ModelComparison, of_sizes, on
from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.case_maker import CaseMaker
from fltheory.validation import FloatArray

_SIZES = ((2, 2, 4), (4, 3, 10))
_CASES = of_sizes(case_maker.uneven, *_SIZES)
# The factors on options if losses are four times as large.
_UNITS = {"proximal": 4.0, "assist_lr": 0.25}


def moved(case: Case, turn: FloatArray, scale: float, shift: FloatArray) -> Case:
    """Return the case in coordinates ``scale turn x + shift``; losses are multiplied by scale^2."""
    return case.with_clients(
        lambda k, client: {
            "hessian": turn @ client.hessian @ turn.T,
            "optimum": scale * turn @ client.optimum + shift,
        },
        x0=scale * turn @ case.x0 + shift,
        options=with_losses(case.options, scale**2),
    )


def with_losses(options: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Return options for multiplied losses; thresholds and minima are also multiplied."""
    scaled = dict(options)
    if "threshold" in scaled:
        scaled["threshold"] = factor * scaled["threshold"]
    if isinstance(scaled.get("known_minima"), tuple):
        scaled["known_minima"] = tuple(factor * one for one in scaled["known_minima"])
    return scaled


def _back(bench: Bench, case: Case, turn: FloatArray, scale: float, shift: FloatArray) -> (
    ModelComparison
):  # fmt: skip
    there = bench.actual(moved(case, turn, scale, shift))
    here = (there - shift) @ turn / scale
    slack = bench.rtol * float(np.abs(shift).max(initial=0.0)) / scale
    plain = bench.compared(case, here, bench.actual(case))
    return replace(plain, tolerance=plain.tolerance + slack)


def _translated(bench: Bench, case: Case) -> ModelComparison:
    return _back(bench, case, np.eye(case.dim), 1.0, np.linspace(5.0, 9.0, case.dim))


def _rotated(bench: Bench, case: Case) -> ModelComparison:
    rng = np.random.default_rng(case.dim)
    turn = np.linalg.qr(rng.standard_normal((case.dim, case.dim)))[0]
    return _back(bench, case, np.asarray(turn), 1.0, np.zeros(case.dim))


def _scaled(bench: Bench, case: Case) -> ModelComparison:
    return _back(bench, case, np.eye(case.dim), 0.125, np.zeros(case.dim))


def _in_other_units(bench: Bench, case: Case) -> ModelComparison:
    """Compare with curvatures four times as large and steps a quarter as long."""
    options = with_losses(case.options, 4.0)
    for name, factor in _UNITS.items():
        if name in options:
            options[name] = factor * options[name]
    steeper = case.with_clients(lambda k, client: {"hessian": 4.0 * client.hessian})
    other = replace(steeper, client_lr=case.client_lr / 4, options=options)
    return bench.compared(case, bench.actual(other), bench.actual(case))


def _renamed(bench: Bench, case: Case) -> ModelComparison:
    # If the last client represents the server, it stays last.
    last = case.n_clients - bench.specification.server
    order = [*range(last - 1)[::-1], last - 1, *range(last, case.n_clients)]
    return bench.compared(case, bench.actual(case.ordered(order)), bench.actual(case))


def _sooner_ended(bench: Bench, case: Case) -> ModelComparison:
    rounds = (case.rounds + 1) // 2
    early = bench.actual(case.first_rounds(rounds))
    return bench.compared(case, early, bench.actual(case)[: rounds + 1])


def _others_away(bench: Bench, case: Case) -> ModelComparison:
    """Compare with other losses of clients that are never present."""
    away = np.asarray(~case.trace.any(axis=0))
    other = case.with_clients(
        lambda k, client: (
            {"hessian": 2 * client.hessian, "optimum": client.optimum + 7.0} if away[k] else {}
        )
    )
    return bench.compared(case, bench.actual(other), bench.actual(case))


translated, rotated = on(_translated, *_CASES), on(_rotated, *_CASES)
sooner_ended = on(_sooner_ended, *_CASES)
others_away = on(_others_away, *of_sizes(case_maker.never, *_SIZES))


def scaled(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases in different units of the model and, if steps are not fixed, of the loss."""
    if not {"threshold", "known_minima"} & set(make.hyper):
        yield from on(_scaled, *_CASES)(make)
        if not {"client_lr", *_UNITS} & set(make.hyper):
            yield from on(_in_other_units, *_CASES)(make)


def renamed(make: CaseMaker) -> Iterator[LawTrial]:
    """Yield cases in which the clients, which are all different, are reordered."""
    if make.n_fixed is None:
        yield from on(_renamed, *_CASES)(make)

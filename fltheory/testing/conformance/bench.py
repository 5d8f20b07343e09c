"""Comparison of an implementation's models with those that a law expects."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.case_maker import CaseMaker, Kind, steady
from fltheory.testing.conformance.guarded_run import NOT_FINITE, GuardedRun, Misconduct
from fltheory.testing.conformance.own_runs import Slip
from fltheory.testing.conformance.slips.table import played
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

_MOST_TRIED = 160
_LONGEST_SEARCH = 1.5
# Single precision has a relative error of 6e-8; a few steps and differences increase it.
_SINGLE = 3e-6


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Expected and actual models, with one row per round, and the tolerance.

    Attributes
    ----------
    expected, actual : array, (rows, d)
    tolerance : float or array, (rows, d)
    label : str
        A description of a row.
    """

    expected: FloatArray
    actual: FloatArray
    tolerance: FloatArray | float
    label: str = "after round {row}"

    @property
    def first_wrong(self) -> int | None:
        """The first row that differs by more than the tolerance."""
        # This is not written with "above", because a comparison with NaN must not pass.
        wrong = ~(np.abs(self.expected - self.actual) <= self.tolerance)
        rows = np.flatnonzero(wrong.any(axis=1))
        return int(rows[0]) if rows.size else None

    @property
    def nearly(self) -> bool:
        """Whether all models agree to single precision."""
        size = np.abs(self.expected).max(initial=0.0)
        return bool(np.abs(self.expected - self.actual).max(initial=0.0) <= _SINGLE * size)


@dataclass(eq=False)
class Bench:
    """An implementation and the reference with which it is compared.

    Attributes
    ----------
    specification : Specification
    guarded : GuardedRun
    rtol : float
        Tolerance on models, relative to the largest number in a case.
    narrowed : dict
        A cache that gives, of the slips that explain a failure, those that also explain all other
        cases.
    """

    specification: Specification
    guarded: GuardedRun
    rtol: float
    narrowed: dict[tuple[object, bool], tuple[Slip, ...]] = field(default_factory=dict)
    _ours: dict[tuple[object, ...], FloatArray] = field(default_factory=dict)

    def actual(self, case: Case) -> FloatArray:
        """Return the implementation's models for a case."""
        return self.guarded.models(case)

    def ours(self, case: Case) -> FloatArray:
        """Return the models of the package's algorithm for a case."""
        if case.key not in self._ours:
            models = played(self.specification.name, case)
            if not np.isfinite(models).all():
                given = ", ".join(f"{name}={value!r}" for name, value in case.keywords.items())
                raise ValueError(
                    "fixed arguments must keep models finite: the package's own models overflow "
                    f"with {given}"
                )
            self._ours[case.key] = models
        return self._ours[case.key]

    def compared(self, case: Case, expected: FloatArray, actual: FloatArray) -> ModelComparison:
        """Return a comparison with the tolerance `rtol`, relative to the largest number so far."""
        return ModelComparison(expected, actual, self.allowed(case, expected)[:, None])

    def allowed(self, case: Case, expected: FloatArray) -> FloatArray:
        """Return the tolerance for each expected model, (rows,)."""
        size = np.maximum.accumulate(np.abs(expected).max(axis=1))
        return np.asarray(self.rtol * (case.scale + size))

    def against_ours(self, case: Case) -> ModelComparison:
        """Compare with the package's algorithm."""
        return self.compared(case, self.ours(case), self.actual(case))


Compare: TypeAlias = Callable[[Bench, Case], ModelComparison]


@dataclass(frozen=True, eq=False)
class LawTrial:
    """A case that a law tries.

    Attributes
    ----------
    case : Case
    compare : callable
        Makes the comparison of the law, given the bench and this case or a smaller one.
    shrinks : bool
        Whether the case may be replaced by smaller cases.
    words : tuple of str
        How the expected models are derived, round by round.
    """

    case: Case
    compare: Compare
    shrinks: bool = True
    words: tuple[str, ...] = ()


Trials: TypeAlias = Callable[[CaseMaker], Iterator[LawTrial]]
"""Cases that a law tries, the smallest first; none where it does not apply."""


def on(compare: Compare, *cases: Mapping[str, Any]) -> Trials:
    """Return trials of a comparison on cases with these arguments of `CaseMaker.case`."""
    return lambda make: (LawTrial(make.case(**wanted), compare) for wanted in cases)


def of_sizes(kind: Kind, *sizes: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Return arguments for cases of one kind with sizes (N, d, rounds)."""
    return [{"kind": kind, "n": n, "dim": dim, "rounds": rounds} for n, dim, rounds in sizes]


@dataclass(frozen=True, eq=False)
class Failure:
    """A failed law, with the case, and both models or the fault of the call."""

    trial: LawTrial
    comparison: ModelComparison | None
    misconduct: Misconduct | None = None

    @property
    def case(self) -> Case:
        """The case on which the law fails."""
        return self.trial.case

    @property
    def kind(self) -> str:
        """The fault of the call, in a word or two; empty if the models differ."""
        return "" if self.misconduct is None else self.misconduct.kind


def failure_of(bench: Bench, trial: LawTrial) -> Failure | None:
    """Return the failure of a trial, or None if the law holds.

    Raises
    ------
    ValueError
        If the package's own models also overflow, because of fixed values.
    """
    try:
        comparison = trial.compare(bench, trial.case)
    except Misconduct as misconduct:
        if misconduct.kind == NOT_FINITE:
            bench.ours(misconduct.case)
        return Failure(replace(trial, case=misconduct.case), None, misconduct)
    return Failure(trial, comparison) if comparison.first_wrong is not None else None


def smallest(bench: Bench, failure: Failure, *, fixed: Collection[str], n_fixed: bool) -> Failure:
    """Return the failure on the smallest case found within about a second.

    Options in ``fixed`` are not changed.

    Rounds after the first wrong one are dropped first. Then rounds, clients, dimensions, local
    steps and participants are dropped one by one, as long as the law fails in the same way.
    Finally, the numbers are simplified.
    """
    deadline, tried = time.perf_counter() + _LONGEST_SEARCH, 0
    if not failure.trial.shrinks:
        return failure
    found = _cut(bench, failure)
    shrinking = True
    while shrinking:
        shrinking = False
        for case in found.case.smaller(
            fewer_clients=not n_fixed, fewer_steps="local_steps" not in fixed
        ):
            if time.perf_counter() > deadline or tried > _MOST_TRIED:
                break
            tried += 1
            smaller = _fails_alike(bench, found, case)
            if smaller is not None:
                found, shrinking = _cut(bench, smaller), True
                break
    for case in _simpler(found.case, fixed):
        simpler = _fails_alike(bench, found, case)
        found = found if simpler is None else simpler
    return found


def _cut(bench: Bench, failure: Failure) -> Failure:
    """Leave out the rounds after the first wrong one."""
    row = None if failure.comparison is None else failure.comparison.first_wrong
    if row is None or row >= failure.case.rounds:
        return failure
    shorter = _fails_alike(bench, failure, failure.case.first_rounds(max(row, 1)))
    return failure if shorter is None else shorter


def _fails_alike(bench: Bench, failure: Failure, case: Case) -> Failure | None:
    if not np.array_equal(bench.specification.prepared(case).trace, case.trace):
        # In the smaller case, a choice would be a tie.
        return None
    try:
        found = failure_of(bench, replace(failure.trial, case=case))
    except (ValueError, ArithmeticError, IndexError):
        # The reference refuses the smaller case, so it shows nothing.
        return None
    if found is None or found.kind != failure.kind:
        return None
    return found if steady(bench.specification, case, bench.rtol) else None


def _simpler(case: Case, fixed: Collection[str]) -> list[Case]:
    """Return the case with numbers that are as simple as possible."""
    if case.dim > 1:
        return []
    lr = case.client_lr if {"client_lr", "proximal"} & set(fixed) else 0.5
    curved = np.eye(1) * 0.5 / lr
    plain = case.with_clients(
        lambda k, client: {
            "hessian": curved if client.hessian.any() else client.hessian,
            "optimum": np.array([8.0 * k]),
        },
        x0=np.array([4.0]),
        client_lr=lr,
    )
    if "server_lr" in fixed or case.server_lr is None:
        return [plain]
    return [plain, replace(plain, server_lr=1.0)]

"""The suite, which checks an implementation against all laws and reports the findings."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.long_work.progress import Progress
from fltheory.testing.conformance.bench import Bench, Failure, failure_of, smallest
from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.case_maker import CaseMaker
from fltheory.testing.conformance.diagnosis import causes_of, hints_of
from fltheory.testing.conformance.guarded_run import GuardedRun, check_signature
from fltheory.testing.conformance.laws import IGNORES_TRACE, LAWS, LONGEST, ConformanceLaw
from fltheory.testing.conformance.own_runs import Run, algorithm_of
from fltheory.testing.conformance.report import (
    ConformanceError,
    ConformanceReport,
    LawFinding,
    LawOutcome,
    differences,
)
from fltheory.testing.conformance.specifications import Specification, specification

if TYPE_CHECKING:
    import pytest

RTOL = 1e-9
_FINEST = 1e-14
_TOLERANCES = (
    "from 1e-14 (below it even correct implementations differ, by rounding) to 0.01 (above it "
    "faults go unnoticed)"
)


def check_algorithm(
    run: Run,
    name: str,
    *,
    seed: int = 0,
    rtol: float = RTOL,
    expected: Mapping[str, str] | None = None,
    laws: Collection[str] | None = None,
    stop_at_first: bool = False,
    raises: bool = True,
    progress: Progress | None = None,
    **hyper: Any,
) -> ConformanceReport:
    """Check that an implementation computes what the paper of its algorithm says.

    Parameters
    ----------
    run : callable
        ``run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options)``, which returns
        the models after every round, (rounds + 1, d), starting with x0. ``x0`` (d,) and ``trace``
        (rounds, N), which says who is present in each round, are read-only. ``clients`` have an
        exact ``gradient(x)`` (d,), ``loss(x)`` and ``n_samples``. ``options`` are the parameters
        that the algorithm has in its paper; `conformance_algorithms` lists them.
    name : str
        The algorithm, e.g. ``"scaffold"``.
    seed : int
        Determines the cases.
    rtol : float
        Tolerance on models, relative to the largest number in a case. Use about 1e-4 for an
        implementation in single precision.
    expected : mapping of str to str, optional
        Laws that are known to fail, with reasons. If such a law passes, this is reported.
    laws : collection of str, optional
        The laws to check; by default, all laws.
    stop_at_first : bool
        Whether to stop at the first failure.
    raises : bool
        Whether to raise an error if the implementation does not conform. Otherwise, only the report
        says so.
    progress : callable, optional
        Called with (laws done, laws, name of the next).
    **hyper
        Options and step sizes to fix, e.g. ``option=1`` if only this option is implemented. All
        others are varied.

    Returns
    -------
    ConformanceReport

    Raises
    ------
    ConformanceError
        An AssertionError. Its message says which law fails, and gives the smallest trace that shows
        this, the expected and the returned models, and likely causes.
    ValueError
        If the algorithm, a law or an option is unknown, or ``run`` does not accept the arguments.

    Examples
    --------
    >>> from fltheory.testing import check_algorithm, run_of
    >>> check_algorithm(run_of("mifa"), "mifa", start="zero", laws=["by-hand"]).conforms
    True
    """
    validation.is_callable("run", run)
    fixed = checked_request(name, seed=seed, rtol=rtol, expected=expected, hyper=hyper)
    one, checked = specification(name), laws_of(name, laws)
    if not checked:
        raise ValueError(f"laws must name at least one law, got {laws!r}: nothing is checked")
    check_signature(run, _smallest(one, fixed))
    guarded = GuardedRun(run)
    bench, begun = Bench(one, guarded, rtol), time.perf_counter()
    inspection = Inspection(bench, fixed, seed)
    findings: list[LawFinding] = []
    for index, law in enumerate(checked):
        if progress is not None:
            progress(index, len(checked), law.name)
        # The caller may have set NumPy to raise errors, which would make correct code fail.
        with np.errstate(all="warn", under="ignore"):
            finding = declared(inspection.finding(law), (expected or {}).get(law.name))
        findings.append(finding)
        if stop_at_first and not finding.outcome.good:
            break
    failed = [one for one in findings if one.outcome is LawOutcome.FAILED]
    with np.errstate(all="ignore"):
        unexplained = bool(failed) and not any(one.causes for one in failed)
        hints = hints_of(bench, inspection.maker("hints")) if unexplained else ()
    report = ConformanceReport(
        algorithm=one.name,
        findings=tuple(findings),
        seed=seed,
        rtol=rtol,
        calls=guarded.calls,
        seconds_inside=guarded.seconds,
        seconds=time.perf_counter() - begun,
        notes=_notes(guarded, one.lasts(fixed)),
        hints=hints,
    )
    if raises and not report.conforms:
        raise ConformanceError(report)
    return report


def checked_request(
    name: str,
    *,
    seed: int,
    rtol: float,
    expected: Mapping[str, str] | None,
    hyper: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fixed options in the form for ``run``, after validating all arguments."""
    one = specification(name)
    validation.seed_number("seed", seed)
    validation.real_number("rtol", rtol, _TOLERANCES, lambda number: _FINEST <= number <= 0.01)
    if expected is not None:
        validation.mapping_of("expected", expected, str, str)
        laws_of(name, expected)
        for law, reason in expected.items():
            validation.text(f"expected[{law!r}]", reason)
    fixed = one.checked(hyper)
    # The package's own algorithm checks the ranges of values before anything is run.
    case = _smallest(one, fixed)
    n = case.n_clients
    given = {
        name: one.options[name].for_clients(value, n)
        for name, value in fixed.items()
        if name in one.options
    }
    algorithm_of(one, (1,) * n, **{**case.keywords, **given})
    return fixed


def _smallest(one: Specification, fixed: Mapping[str, Any]) -> Case:
    return CaseMaker(one, fixed, np.random.default_rng(0)).drawn(n=2, rounds=1)


def laws_of(name: str, named: Collection[str] | None = None) -> list[ConformanceLaw]:
    """Return all laws of an algorithm, or the named ones.

    Raises
    ------
    ValueError
        If a law does not exist or is not about the algorithm.
    """
    one = specification(name)
    if isinstance(named, str):
        raise ValueError(f"laws must be a list of names, got the string {named!r}")
    if named is not None and not isinstance(named, Iterable):
        raise ValueError(f"laws must be a list of names, got {named!r}")
    known = {law.name: law for law in LAWS.values() if law.applies(one)}
    for law in named or ():
        if law not in known:
            raise ValueError(f"laws of {one.name} must be among {', '.join(known)}, got {law!r}")
    return [law for law in known.values() if named is None or law.name in named]


@dataclass(frozen=True, eq=False)
class Inspection:
    """The check of laws on one implementation.

    Attributes
    ----------
    bench : Bench
    hyper : mapping
    seed : int
    """

    bench: Bench
    hyper: Mapping[str, Any]
    seed: int

    def maker(self, words: str) -> CaseMaker:
        """Return a law's case maker, which has its own generator so that laws are independent."""
        rng = np.random.default_rng([self.seed, crc32(words.encode())])
        return CaseMaker(self.bench.specification, self.hyper, rng, self.bench.rtol)

    def finding(self, law: ConformanceLaw) -> LawFinding:
        """Return the finding on a law."""
        found, tried = None, False
        for trial in law.trials(self.maker(law.name)):
            tried = True
            found = failure_of(self.bench, trial)
            if found is not None:
                break
        if not tried:
            return LawFinding(law.name, law.says, LawOutcome.NOT_APPLICABLE)
        return LawFinding(law.name, law.says, LawOutcome.PASSED) if found is None else (
            self._told(law, found)
        )  # fmt: skip

    def _told(self, law: ConformanceLaw, first: Failure) -> LawFinding:
        n_fixed = self.maker("").number_of_clients(1) > 1
        failure = smallest(self.bench, first, fixed=self.hyper.keys(), n_fixed=n_fixed)
        case, comparison, misconduct = failure.case, failure.comparison, failure.misconduct
        explained = misconduct is None or misconduct.kind == IGNORES_TRACE
        causes = causes_of(self.bench, failure, self.maker) if explained else ()
        found = LawFinding(law.name, law.says, LawOutcome.FAILED, causes=causes)
        if misconduct is not None:
            return replace(found, message=f"{misconduct}\n{case.described()}")
        assert comparison is not None
        row = comparison.first_wrong
        assert row is not None
        expected, actual = comparison.expected[row], comparison.actual[row]
        allowed = np.broadcast_to(comparison.tolerance, comparison.expected.shape)[row]
        label = comparison.label.format(row=row)
        text = differences(case, expected, actual, label, float(allowed.max()))
        return replace(
            found,
            message="\n".join([text, *failure.trial.words[:row]]),
            round=row,
            expected=tuple(expected.tolist()),
            actual=tuple(actual.tolist()),
        )


def declared(finding: LawFinding, reason: str | None) -> LawFinding:
    """Return a finding marked as an expected failure, or as an unexpected pass."""
    if reason is None:
        return finding
    failed = finding.outcome is LawOutcome.FAILED
    outcome = LawOutcome.EXPECTED if failed else LawOutcome.UNEXPECTED_PASS
    return replace(finding, outcome=outcome, reason=reason)


def _notes(guarded: GuardedRun, lasts: float) -> tuple[str, ...]:
    notes = []
    if guarded.coarse:
        notes.append(f"run returns {guarded.coarse}, which holds few digits: see rtol=")
    if guarded.asked_absent:
        notes.append(
            f"{guarded.asked_absent} gradients were requested from clients who are never present "
            "in that run; a real client could not answer"
        )
    if lasts > LONGEST:
        notes.append(
            f"no client is away for more than {LONGEST} rounds, so a cut-off of {lasts:g} is not "
            "reached, and what happens there is not checked"
        )
    return tuple(notes)


@dataclass(frozen=True)
class LawCheck:
    """One law of an algorithm. Calling it with an implementation raises an error if the law fails.

    Attributes
    ----------
    algorithm, law : str
    seed : int
    rtol : float
    hyper : mapping
        As in `check_algorithm`.
    """

    algorithm: str
    law: str
    seed: int = 0
    rtol: float = RTOL
    hyper: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, run: Run) -> None:
        """Check an implementation; a law that does not apply is skipped.

        Raises
        ------
        ConformanceError
            An AssertionError with the full finding.
        """
        import pytest  # the command does not need pytest

        report = check_algorithm(
            run,
            self.algorithm,
            seed=self.seed,
            rtol=self.rtol,
            laws=[self.law],
            raises=False,
            **self.hyper,
        )
        if not report.checked:
            pytest.skip(f"{self.law} does not apply with the fixed arguments")
        if not report.conforms:
            raise ConformanceError(report)


@checks_kinds
def conformance_laws(
    name: str,
    *,
    seed: int = 0,
    rtol: float = RTOL,
    expected: Mapping[str, str] | None = None,
    **hyper: Any,
) -> pytest.MarkDecorator:
    """Return a mark that runs a test once for each law of an algorithm.

    The test takes one argument, ``law``, and calls it with an implementation.

    Parameters
    ----------
    name, seed, rtol
        As in `check_algorithm`.
    expected : mapping of str to str, optional
        Laws that are known to fail, with reasons. Their tests are marked as strict expected
        failures.
    **hyper
        As in `check_algorithm`.

    Raises
    ------
    ValueError
        If the algorithm or a law is unknown, or `check_algorithm` refuses an argument.

    Examples
    --------
    >>> from fltheory.testing import conformance_laws, run_of
    >>> @conformance_laws("scaffold", option=2)
    ... def test_scaffold(law):
    ...     law(run_of("scaffold"))
    """
    import pytest

    checked_request(name, seed=seed, rtol=rtol, expected=expected, hyper=hyper)
    reasons = dict(expected or {})
    return pytest.mark.parametrize(
        "law",
        [
            pytest.param(
                LawCheck(name, law.name, seed, rtol, hyper),
                id=law.name,
                marks=[pytest.mark.xfail(reason=reasons[law.name], strict=True)]
                if law.name in reasons
                else [],
            )
            for law in laws_of(name)
        ],
    )

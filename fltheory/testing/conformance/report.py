"""The suite's findings, one for each law, and the report of all findings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum

import numpy as np

from fltheory.testing.conformance.case import Case, numbers
from fltheory.validation import FloatArray


class LawOutcome(Enum):
    """The outcome of a law."""

    PASSED = "passed"
    FAILED = "FAILED"
    EXPECTED = "failed as expected"
    UNEXPECTED_PASS = "passed, but its failure was declared"
    NOT_APPLICABLE = "does not apply"

    @property
    def good(self) -> bool:
        """Whether an implementation with this outcome conforms."""
        return self not in (LawOutcome.FAILED, LawOutcome.UNEXPECTED_PASS)


@dataclass(frozen=True)
class LawFinding:
    """The finding on one law.

    Attributes
    ----------
    law : str
    says : str
        The law in a sentence.
    outcome : LawOutcome
    message : str
        For a failure, the smallest trace that shows it, and the expected and actual models.
    causes : tuple of str
        Likely causes, the most likely first. Each of them gives exactly the actual models.
    reason : str
        Why the failure was declared.
    round : int or None
        The first round whose model differs.
    expected, actual : tuple of float, or None
        The models after that round.
    """

    law: str
    says: str
    outcome: LawOutcome
    message: str = ""
    causes: tuple[str, ...] = ()
    reason: str = ""
    round: int | None = None
    expected: tuple[float, ...] | None = None
    actual: tuple[float, ...] | None = None

    @property
    def text(self) -> str:
        """The finding as text."""
        lines = [f"{self.outcome.value}: {self.law}: {self.says}"]
        if self.reason:
            lines.append(f"  declared: {self.reason}")
        lines += [f"  {line}" for line in self.message.splitlines()]
        lines += [f"  likely cause: {cause}" for cause in self.causes]
        return "\n".join(lines)


@dataclass(frozen=True)
class ConformanceReport:
    """The suite's findings about an implementation.

    Attributes
    ----------
    algorithm : str
    findings : tuple of LawFinding
        One finding per law, in the order of the laws.
    seed : int
    rtol : float
    calls : int
        Number of calls of the implementation.
    seconds_inside, seconds : float
        Time spent inside the implementation, and in total.
    notes : tuple of str
        Observations that are worth knowing but are not faults.
    hints : tuple of str
        Observations about the implementation, if no cause is named.
    """

    algorithm: str
    findings: tuple[LawFinding, ...]
    seed: int
    rtol: float
    calls: int
    seconds_inside: float
    seconds: float
    notes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def conforms(self) -> bool:
        """Whether at least one law applies, and every law holds or fails as declared."""
        return self.checked and all(finding.outcome.good for finding in self.findings)

    @property
    def checked(self) -> bool:
        """Whether at least one law applies to the fixed options."""
        return any(one.outcome is not LawOutcome.NOT_APPLICABLE for one in self.findings)

    @property
    def failures(self) -> tuple[LawFinding, ...]:
        """The unexpected findings, i.e. failures, and declared failures that pass."""
        return tuple(one for one in self.findings if not one.outcome.good)

    @property
    def text(self) -> str:
        """The report as text, with failures in full, followed by a line for the rest."""
        counts = {
            outcome: [one.law for one in self.findings if one.outcome is outcome]
            for outcome in LawOutcome
        }
        verdict = "conforms" if self.conforms else "does not conform"
        verdict = verdict if self.checked else "nothing is checked"
        lines = [
            f"{self.algorithm}: {verdict}: "
            + ", ".join(f"{len(laws)} {one.value}" for one, laws in counts.items() if laws)
            + f" (seed {self.seed}, {self.calls} runs, {self.seconds:.1f} s, "
            f"{self.seconds_inside:.1f} s of it in run)"
        ]
        causes = list(dict.fromkeys(one for finding in self.failures for one in finding.causes[:1]))
        lines += [f"likely cause: {cause}" for cause in causes[:3]]
        if not causes and any(one.expected for one in self.failures):
            lines.append("no cause is named: no usual mistake reproduces your models on every case")
        lines += [f"hint: {hint}" for hint in self.hints]
        for finding in self.failures[:3]:
            lines += ["", finding.text]
        if len(self.failures) > 3:
            others = ", ".join(one.law for one in self.failures[3:])
            lines += ["", f"also {len(self.failures) - 3} more: {others}"]
        for finding in self.findings:
            if finding.outcome is LawOutcome.EXPECTED:
                lines += ["", f"{finding.law} failed as declared: {finding.reason}"]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> str:
        """Return the report as JSON."""
        entries = asdict(self)
        for entry in entries["findings"]:
            entry["outcome"] = entry["outcome"].name
        return json.dumps({**entries, "conforms": self.conforms}, indent=2) + "\n"


class ConformanceError(AssertionError):
    """An implementation that does not conform.

    Parameters
    ----------
    report : ConformanceReport
        The findings. The error's message is their text.
    """

    def __init__(self, report: ConformanceReport) -> None:
        super().__init__(report.text)
        self.report = report


def differences(
    case: Case, expected: FloatArray, actual: FloatArray, label: str, tolerance: float
) -> str:
    """Return a case, with its models at the first difference, as text."""
    gap = float(np.abs(expected - actual).max())
    return "\n".join(
        [
            case.described(),
            f"{label}: expected x = {numbers(expected)}",
            f"{'':{len(label)}}    actual x = {numbers(actual)}",
            f"{'':{len(label)}}    off by {gap:.3g}, allowed {tolerance:.3g}",
        ]
    )

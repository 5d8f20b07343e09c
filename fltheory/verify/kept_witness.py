"""Witnesses kept as settings, and checking them again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fltheory import theorems as registry
from fltheory.engines import Setting
from fltheory.engines.setting_file import read_witness
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.verify.check import check


@dataclass(frozen=True)
class KeptWitness:
    """A setting that was kept because it refutes a statement, and what it shows now.

    Attributes
    ----------
    setting : Setting
    verdict : Verdict
    """

    setting: Setting
    verdict: Verdict

    @property
    def refutes(self) -> bool:
        """Whether the statement is refuted on it."""
        return self.verdict.outcome is Outcome.REFUTED


def read_kept_witness(path: Path) -> KeptWitness:
    """Read a setting that says what it refutes, and check that statement on it.

    Raises
    ------
    ValueError
        If the file is no setting, does not say what it refutes, or names a statement that is
        neither registered nor loaded.
    """
    setting, refutes = read_witness(path)
    if refutes is None:
        raise ValueError(
            f"{path} must have a table [refutes] with a theorem and a reading to be checked as a "
            "witness, got a setting alone: fltheory compare checks every statement on it"
        )
    statement = registry.get(refutes.theorem, refutes.reading)
    return KeptWitness(setting, check(statement, setting))

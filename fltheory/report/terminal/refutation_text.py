"""Texts on a certificate, a kept witness, and the survival of a repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from fltheory.decimals import fraction_text
from fltheory.engines import Setting
from fltheory.learnability.system import LearningSetting
from fltheory.verify.certificates.certificate import Certified
from fltheory.verify.check import KeptWitness
from fltheory.verify.search.falsification import Survival

_MOST_NUMBERS = 6
_MOST_LETTERS = 200


def setting_lines(setting: Setting | LearningSetting) -> Mapping[str, str]:
    """Return algorithm, problem, participation, rounds and start, each on its own line.

    For a learning problem, return its fields.
    """
    if not isinstance(setting, Setting):
        return {item.name: brief(getattr(setting, item.name)) for item in fields(setting)}
    return {
        "algorithm": brief(setting.algorithm),
        "problem": brief(setting.problem),
        "participation": brief(setting.participation),
        "rounds": str(setting.rounds),
        "start": brief(setting.x0),
    }


def brief(value: Any) -> str:
    """Return an object in a line; arrays of more than six numbers become shape and range.

    Examples
    --------
    >>> brief(np.arange(12.0).reshape(3, 4))
    '3 x 4 numbers, 0 to 11'
    """
    if is_dataclass(value) and not isinstance(value, type):
        return _of_dataclass(value)
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list):
        return f"({_some([brief(item) for item in value])})"
    return _cut(" ".join(repr(value).split()))


def _of_dataclass(value: Any) -> str:
    shown = ((item.name, getattr(value, item.name)) for item in fields(value))
    inside = ", ".join(f"{name} = {brief(held)}" for name, held in shown if held is not None)
    return f"{type(value).__name__}({inside})"


def _of_array(value: np.ndarray[Any, Any]) -> str:
    if value.size <= _MOST_NUMBERS and value.ndim == 1:
        return f"({', '.join(f'{item:.6g}' for item in value.tolist())})"
    shape = " x ".join(str(size) for size in value.shape)
    return f"{shape} numbers, {value.min():.6g} to {value.max():.6g}" if value.size else "()"


def _some(texts: list[str]) -> str:
    if len(texts) <= _MOST_NUMBERS:
        return ", ".join(texts)
    return f"{', '.join(texts[: _MOST_NUMBERS - 1])}, ... {len(texts)} in all"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def certified_text(certified: Certified) -> str:
    """Return the refuted statement, its setting, and two numbers between its sides."""
    theorem = certified.theorem
    return "\n".join(
        [
            f"{theorem.id} ({theorem.reading}): REFUTED, checked in fractions",
            *_indented(certified.lines),
            f"  {theorem.quantity.text} >= {fraction_text(certified.truth)}",
            f"  > {fraction_text(certified.bound)} >= bound; every hypothesis holds",
        ]
    )


def kept_witness_text(witness: KeptWitness) -> str:
    """Return a kept setting's current verdict, with evidence, both sides and hypotheses."""
    verdict = witness.verdict
    grade = verdict.evidence.grade.name.lower()
    still = "" if witness.refutes else ": no longer refuted by this setting"
    return "\n".join(
        [
            f"{verdict.theorem} ({verdict.reading}): {verdict.outcome.name} ({grade} evidence)"
            f"{still}",
            *_indented(kept_witness_lines(witness)),
        ]
    )


def kept_witness_lines(witness: KeptWitness) -> tuple[str, ...]:
    """Return a kept witness's setting, both sides and every hypothesis, each on its own line."""
    verdict = witness.verdict
    words = {True: "met", False: "fails", None: "left open"}
    return (
        *(f"{name}: {text}" for name, text in setting_lines(witness.setting).items()),
        f"truth {verdict.truth:.6g}, bound {verdict.bound:.6g}, truth/bound {verdict.ratio:.4g}",
        *(
            f"hypothesis '{check.name}', {check.condition}: {words[check.holds]}"
            for check in verdict.hypotheses
        ),
    )


def survival_text(survival: Survival) -> str:
    """Return the search results on the repaired statement, and whether each repair is needed."""
    return "\n".join(_survival_lines(survival))


def _survival_lines(survival: Survival) -> Iterator[str]:
    found = survival.search
    yield str(found)
    if found.witness is None:
        yield f"{found.theorem} ({found.reading}) survives the search, which is not a proof"
    for mend, without in survival.without:
        fate = "refuted without it" if without.witness else "not refuted without it"
        yield f"  {mend.about} [{mend.source}]: {fate}"
        if without.witness:
            yield from (f"    {line}" for line in without.witness.lines)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]

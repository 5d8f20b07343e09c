"""What a certificate and a kept witness say, and what a repair survived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fltheory.decimals import fraction_text
from fltheory.report.terminal.setting_text import setting_lines
from fltheory.verify.certificates.certificate import Certified
from fltheory.verify.kept_witness import KeptWitness
from fltheory.verify.search.survival import Survival


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
    """Return what a kept setting is worth now: verdict and evidence, both sides, hypotheses."""
    verdict = witness.verdict
    grade = verdict.evidence.grade.name.lower()
    still = "" if witness.refutes else ": refuted no more by this setting"
    return "\n".join(
        [
            f"{verdict.theorem} ({verdict.reading}): {verdict.outcome.name} ({grade} evidence)"
            f"{still}",
            *_indented(kept_witness_lines(witness)),
        ]
    )


def kept_witness_lines(witness: KeptWitness) -> tuple[str, ...]:
    """Return a kept witness's setting, both sides and every hypothesis, each in a line."""
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
    """Return the search of the repaired statement, and whether each mend is needed."""
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

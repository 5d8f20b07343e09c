"""What has been found: a page made from the stored witnesses and from searches run for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from fltheory.parallel import as_they_come
from fltheory.progress import Progress, share_of
from fltheory.report.refutation_text import falsification_effort, rate_falsification_text, shown
from fltheory.theorems import (
    DecayClaim,
    DirectionClaim,
    LearningClaim,
    PointClaim,
    RateClaim,
    Statement,
    StepOutcome,
    Theorem,
    check_derivation,
    get,
    ids,
    readings,
    unit_flags,
)
from fltheory.verify import (
    Cell,
    Certified,
    Falsification,
    Outcome,
    Survival,
    check_regimes,
    falsify,
    falsify_rate,
    read_certificate,
    survival,
)
from fltheory.verify.extremal_instances import is_about_safari

Claim: TypeAlias = Theorem | PointClaim | LearningClaim | DecayClaim

_DIRECTIONS = {
    "<=": "is at most",
    "<": "is below",
    ">=": "is at least",
    ">": "is above",
}
_SHARE_FOR_ORDERS = 20
_SHARE_AROUND_REGIMES = 100

_INTRODUCTION = """\
# Findings

What was found about every printed statement, and for those that are refuted the claim, what
refutes it, and where statement and proof part. Words are in [the glossary](glossary.md), outcomes
are explained in [what a verdict means](verdicts.md). This is about formulas as they stand in the
texts at hand, not about people: a misprint, or a slip in the conversion of a text, counts like any
other fault of a formula.

Made by `fltheory findings` from the certificates in `verification/witnesses/`, and from searches
run for it; do not edit. Each certificate was found by `fltheory falsify` and is checked in exact
arithmetic by `fltheory certify FILE`.
"""


def findings(
    paths: Sequence[Path],
    shown_from: Path,
    budget: int,
    *,
    progress: Progress | None = None,
) -> str:
    """Return the page for these certificates, in Markdown.

    Parameters
    ----------
    paths : sequence of Path
        Certificates, each of which is checked first.
    shown_from : Path
        Folder that file names are shown relative to.
    budget : int
        Settings that each search of a repair, or of a statement without a certificate, may
        try; a twentieth of it for a claimed order, a hundredth around regimes.
    progress : callable, optional
        Called with (statements done, statements, what is searched).

    Raises
    ------
    ValueError
        If a certificate fails.
    """
    certified = {path: read_certificate(path) for path in paths}
    refuted = {c.theorem.id: path.relative_to(shown_from) for path, c in certified.items()}
    rest = [identifier for identifier in ids() if identifier not in refuted]
    about_safari = [name for name in rest if is_about_safari(get(name))]
    names = [certificate.theorem.id for certificate in certified.values()]
    names += [*(f"{identifier}, its regimes" for identifier in rest), *about_safari]
    names.append("searches around regimes")
    shares = (share_of(progress, index, len(names), name) for index, name in enumerate(names))
    sections = [
        _section(c, path.relative_to(shown_from), _survival(c, budget, next(shares)))
        for path, c in certified.items()
    ]
    cells = {name: check_regimes([get(name)], progress=next(shares)) for name in rest}
    searched = {name: _searched(get(name), budget, next(shares)) for name in about_safari}
    others = [name for name in rest if name not in searched]
    searched |= _all_around_regimes(others, budget, next(shares))
    every = _statements(refuted, cells, searched)
    introduction = [_INTRODUCTION, *every]
    of_regimes = ("\n".join(_lines_of_regimes(get(name), cells[name])) for name in rest)
    sections += [f"{section.rstrip()}\n" for section in of_regimes if section]
    return "\n".join([*introduction, *sections])


def _survival(certified: Certified, budget: int, progress: Progress | None) -> Survival:
    return survival(get(certified.theorem.id, "repaired"), budget, progress=progress)


def _statements(
    refuted: Mapping[str, Path],
    cells: Mapping[str, Sequence[Cell]],
    searched: Mapping[str, str],
) -> Iterator[str]:
    yield "## Every printed statement\n"
    for identifier in ids():
        if identifier in refuted:
            yield f"- {identifier}: refuted, certified in `{refuted[identifier].as_posix()}`"
            continue
        heading, *witness = searched[identifier].splitlines()
        yield f"- {heading}; {_verdicts(cells[identifier])}"
        if witness:
            yield from ("", *(f"        {line.strip()}" for line in witness), "")
    yield ""


def _searched(statement: Statement, budget: int, progress: Progress | None) -> str:
    """Return what a search of a statement about SAFARI found, the witness in further lines."""
    if isinstance(statement, RateClaim):
        worst = falsify_rate(statement, max(1, budget // _SHARE_FOR_ORDERS), progress=progress)
        return rate_falsification_text(worst)
    return _effort_text(falsify(statement, budget, progress=progress))


def _all_around_regimes(
    identifiers: Sequence[str], budget: int, progress: Progress | None
) -> dict[str, str]:
    """Search other statements, on all processors; return what was found of each in a line."""
    found: dict[str, str] = {}
    for identifier, text in as_they_come(partial(_around_regimes, budget=budget), identifiers):
        found[identifier] = text
        if progress is not None:
            progress(len(found), len(identifiers), identifier)
    return found


def _around_regimes(identifier: str, budget: int) -> tuple[str, str]:
    statement = get(identifier)
    name = f"{statement.id} ({statement.reading})"
    if isinstance(statement, RateClaim):
        return identifier, f"{name}: not searched, as orders are searched for SAFARI only"
    if isinstance(statement, LearningClaim | DecayClaim):
        return identifier, f"{name}: not searched, as only runs of an algorithm are"
    found = falsify(statement, max(1, budget // _SHARE_AROUND_REGIMES))
    fate = "refuted" if found.witness else "no refutation found"
    return identifier, f"{name}: {fate} around its regimes, {_rough_effort(found)}"


def _verdicts(cells: Sequence[Cell]) -> str:
    """Return a statement's verdicts over its regimes, those refuted by name."""
    count = Counter(cell.verdict.outcome.name for cell in cells)
    refuted = [repr(c.regime) for c in cells if c.verdict.outcome is Outcome.REFUTED]
    named = f" ({', '.join(refuted)})" if refuted else ""
    return f"its regimes: {', '.join(f'{n} {name}' for name, n in sorted(count.items()))}{named}"


def _effort_text(found: Falsification) -> str:
    return f"{found.theorem} ({found.reading}): {falsification_effort(found)}"


def _section(certified: Certified, path: Path, survived: Survival) -> str:
    return "\n".join(_lines(certified, path, survived)) + "\n"


def _lines(certified: Certified, path: Path, survived: Survival) -> Iterator[str]:
    theorem = certified.theorem
    yield from _claim_lines(theorem)
    yield f"**Witness** (`{path.as_posix()}`). Every condition holds, and"
    yield f"`{theorem.quantity.text} = {shown(certified.truth)}` exceeds the bound,"
    yield f"`{shown(certified.bound)}`."
    yield ""
    for line in certified.witness.lines:
        yield f"    {line}"
    yield ""
    yield from _reading_lines(theorem)
    yield from _parting_lines(theorem)
    yield from _repair_lines(survived)


def _lines_of_regimes(theorem: Statement, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the section of a statement that regimes refute; nothing where none does."""
    refuted = [cell for cell in cells if cell.verdict.outcome is Outcome.REFUTED]
    if not refuted:
        return
    if isinstance(theorem, RateClaim):
        yield from _order_lines(theorem)
    else:
        yield from _claim_lines(theorem)
        for symbol, expression in theorem.definitions.items():
            yield f"Here `{symbol}` is `{expression}`."
            yield ""
    yield f"**Refuted by regimes** (`fltheory verify {theorem.id}`). Every condition holds, and the"
    yield f"{_broken(theorem)}; each is computed a second time in `verification/`."
    yield ""
    yield from (_refutation_line(theorem, cell) for cell in refuted)
    yield ""
    yield from _reading_lines(theorem)
    if theorem.derivation is not None:
        yield from _parting_lines(theorem)


def _refutation_line(theorem: Statement, cell: Cell) -> str:
    verdict, about = cell.verdict, theorem.regimes[cell.regime].about
    sides = f"{verdict.truth:.4g} {verdict.contrary} {verdict.bound:.4g}"
    if verdict.is_rate:
        sides = f"slope {verdict.truth:+.2f} > {verdict.bound:+.2f}"
    elif isinstance(theorem, DirectionClaim):
        sides = verdict.detail
    elif verdict.detail:
        sides += f", {verdict.detail}"
    return f"- {cell.regime} ({about}): {sides}, {verdict.evidence.grade.name.lower()}"


def _broken(theorem: Statement) -> str:
    if isinstance(theorem, DirectionClaim):
        return "quantity goes the other way"
    if isinstance(theorem, DecayClaim | RateClaim):
        return "quantity decays in another order"
    is_lower = isinstance(theorem, LearningClaim) and theorem.direction in (">", ">=")
    return "truth falls short of the bound" if is_lower else "truth exceeds the bound"


def _heading_lines(theorem: Statement) -> Iterator[str]:
    yield f"## {theorem.id}, {theorem.reading}"
    yield ""
    yield f"{theorem.title}. Source: {theorem.source}."
    yield ""


def _order_lines(claim: RateClaim) -> Iterator[str]:
    """Yield a claimed order, or direction, along each of its axes."""
    yield from _heading_lines(claim)
    quantity = claim.theorem.quantity.text
    for axis in claim.axes:
        words = f"is, in {axis.variable}, of the order of"
        if isinstance(claim, DirectionClaim):
            words = f"rises and falls with {axis.variable} as does"
        yield f"**Claim.** If all conditions hold, `{quantity}` {words}"
        yield ""
        yield f"    {axis.order}"
        yield ""
        for hypothesis in (*claim.theorem.hypotheses, *axis.hypotheses):
            yield f"- {hypothesis.name}: `{hypothesis.condition}`"
        yield ""


def _claim_lines(theorem: Claim) -> Iterator[str]:
    yield from _heading_lines(theorem)
    direction = theorem.direction if isinstance(theorem, LearningClaim) else "<="
    if isinstance(theorem, DecayClaim):
        words, bound = f"is, in {theorem.variable}, of the order of", theorem.order
    else:
        words, bound = _DIRECTIONS[direction], theorem.bound
    yield f"**Claim.** If all conditions hold, `{theorem.quantity.text}` {words}"
    yield ""
    yield f"    {bound}"
    yield ""
    for hypothesis in theorem.hypotheses:
        yield f"- {hypothesis.name}: `{hypothesis.condition}`"
    if theorem.hypotheses:
        yield ""


def _reading_lines(theorem: Statement) -> Iterator[str]:
    yield f"**As printed.** {theorem.note}"
    yield ""
    if "derived" not in readings(theorem.id):
        return
    yield f"**The derived reading.** {get(theorem.id, 'derived').note}"
    yield ""


def _parting_lines(theorem: Statement) -> Iterator[str]:
    """Yield the steps between proof and statement that do not follow, and unlike units."""
    results = check_derivation(theorem.derivation) if theorem.derivation else ()
    parting = [result for result in results if result.outcome is not StepOutcome.FOLLOWS]
    yield f"**Where statement and proof part** (`fltheory derive {theorem.id}`)."
    yield ""
    for result in parting:
        yield f"- {result.step.label}: {result.outcome.name}. {result.step.text}"
    has_units = not isinstance(theorem, RateClaim) and bool(theorem.units)
    for flag in unit_flags(theorem) if has_units else ():
        yield f"- unlike units: {flag}"
    yield ""


def _rough_effort(found: Falsification) -> str:
    """Return the effort in round numbers: the page is the same on machines that round otherwise."""
    applicable = float(f"{found.settings_applicable:.0e}")
    return (
        f"{found.settings_tried} settings tried, about {applicable:.0f} of them met every "
        f"hypothesis, largest truth/bound about {found.best_ratio:.1g}"
    )


def _repair_lines(survived: Survival) -> Iterator[str]:
    found = survived.search
    fate = "survives the search, which is not a proof" if found.witness is None else "is refuted"
    yield "**Repair.** The printed statement with the fewest changes that its proof asks for"
    yield f"{fate}: {_rough_effort(found)}."
    yield ""
    for mend, without in survived.without:
        needed = "refuted without it" if without.witness else "not refuted without it"
        yield f"- {mend.about}, {mend.source}: {needed}"

"""The report: a self-contained HTML page that needs no network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from fltheory import __version__
from fltheory.claims.statement import Statement
from fltheory.engines.setting_file import refutes_in
from fltheory.evidence.verdict import Grade
from fltheory.files.read_file import existing_file, text_of, toml_of
from fltheory.grammar.refutation import Weight
from fltheory.long_work.progress import Progress
from fltheory.report.figures.figure_axes import drawn
from fltheory.report.figures.region_figure import region_figure
from fltheory.report.html.report_view import (
    MARKS,
    BesideView,
    CertificateView,
    KeptView,
    ReadingView,
    RegimeView,
    TheoremView,
    checks_of,
    counts,
    refuted,
    theorems_of,
)
from fltheory.report.terminal.refutation_text import setting_lines
from fltheory.report.terminal.verdict_table import what_is_refuted
from fltheory.report.verdict_file import MadeBy
from fltheory.verify import Outcome, check, falsify, map_region, read_certificate
from fltheory.verify.certificates.certificate_checker import parsed
from fltheory.verify.check import read_kept_witness
from fltheory.verify.region_map import default_axis, default_axis_names, starting_point
from fltheory.verify.runs import Cell
from fltheory.worst_case import read_proof

HOW_TO_CITE = (
    "A verdict is about a statement in one reading, so cite both, with the version: "
    f'"`fedavg-li/1` (printed), fltheory {__version__}", and the paper itself for the theorem. '
    "`CITATION.cff` in the repository's root has the software's entry. `fltheory verify "
    "fedavg-li/1` recomputes the verdicts."
)
HOW_TO_CORRECT = (
    "The transcriptions are ours, and errors in them are ours. Send the statement's id, what the "
    "paper says, and where (version, page, equation), as an issue or a change of the paper's file "
    "in `fltheory/theorems/`; corrections come before everything else. A verdict that rests on a "
    "doubtful passage is not counted, and the statement's note names the passage."
)


_PAGE = files("fltheory.report.html") / "page"


def html_report(
    statements: Sequence[Statement],
    cells: Sequence[Cell],
    certificates: Sequence[CertificateView],
    made_by: MadeBy,
    kept: Sequence[KeptView] = (),
    beside: Sequence[BesideView] = (),
) -> str:
    """Return the report on some statements, with refutations first, followed by every statement.

    The same arguments give the same text.

    Parameters
    ----------
    statements : sequence of Statement
    cells : sequence of Cell
        The verdicts, as `fltheory.verify.check_regimes` returns them.
    certificates : sequence of CertificateView
        Certificates of refutations; see `certificates_in`. Those of other statements are left out.
    made_by : MadeBy
        Versions, seed and sampling, which the report lists.
    kept : sequence of KeptView
        Witnesses that are kept as settings; see `kept_in`.
    beside : sequence of BesideView
        Searches, maps and proofs to show; see `searched`, `mapped` and `proved`.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fltheory.report.html", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    theorems = theorems_of(statements, cells, certificates, kept)
    script = (_PAGE / "report.js").read_text(encoding="utf-8")
    return environment.get_template("report.html").render(
        theorems=theorems,
        refuted=list(refuted(theorems)),
        headline=headline(theorems, beside),
        beside=beside,
        counts=counts(_rows(theorems)),
        n_rows=len(_rows(theorems)),
        verdicts=[(MARKS[outcome], outcome) for outcome in MARKS],
        grades=list(Grade),
        weights=list(Weight),
        used=_used(theorems),
        outcomes=Outcome,
        any_provable=any(one.over_provable for theorem in theorems for one in theorem.readings),
        how_to_cite=_with_code(HOW_TO_CITE),
        how_to_correct=_with_code(HOW_TO_CORRECT),
        made_by=made_by,
        style=Markup((_PAGE / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=_hash(script),
        data_url=_data_url,
    )


def certificates_in(folder: Path, statements: Sequence[Statement]) -> tuple[CertificateView, ...]:
    """Check the certificates in a folder that are about some of these statements.

    Raises
    ------
    ValueError
        If the folder does not exist, or a certificate fails.
    """
    if not folder.is_dir():
        raise ValueError(f"witnesses must be an existing folder, got {str(folder)!r}")
    names = {(statement.id, statement.reading) for statement in statements}
    views = []
    for path in sorted(folder.glob("*.json")):
        text = text_of("certificates must be files", path)
        if _about(text) in names:
            views.append(_certified(path, text))
    return tuple(views)


def kept_in(folder: Path, statements: Sequence[Statement]) -> tuple[KeptView, ...]:
    """Check the witnesses that a folder keeps as settings against some of these statements.

    Raises
    ------
    ValueError
        If a witness no longer refutes its statement, or if it is not a setting.
    """
    names = {(statement.id, statement.reading) for statement in statements}
    about = ((path, _kept_about(path)) for path in sorted(folder.glob("*.toml")))
    return tuple(_kept(path) for path, name in about if name in names)


def _kept(path: Path) -> KeptView:
    """Check a witness that is kept as a setting."""
    found = read_kept_witness(path)
    verdict = found.verdict
    name = verdict.theorem, verdict.reading
    if not found.refutes:
        raise ValueError(f"{path} no longer refutes {name[0]} ({name[1]}): {verdict.outcome.name}")
    text = path.read_text(encoding="utf-8")
    sides = f"{verdict.truth:.6g}", f"{verdict.bound:.6g}"
    grade = verdict.evidence.grade.name.lower()
    lines = tuple(f"{part}: {it}" for part, it in setting_lines(found.setting).items())
    checks = checks_of(verdict.hypotheses)
    return KeptView(*name, lines, checks, grade, *sides, path.as_posix(), text)


def _kept_about(path: Path) -> tuple[str, str] | None:
    """Return the statement that a setting file says it refutes, or None for any other file."""
    try:
        refutes = refutes_in(toml_of("witnesses must be files", path))
    except ValueError:
        return None
    return None if refutes is None else (refutes.theorem, refutes.reading)


def _certified(path: Path, text: str) -> CertificateView:
    """Check a certificate."""
    found = read_certificate(path)
    name = found.theorem.id, found.theorem.reading
    # The checker has decided every hypothesis; the numbers on both sides are for readers.
    hypotheses = check(found.theorem, found.setting).hypotheses
    place = path.as_posix()
    return CertificateView(*name, found.lines, found.truth, found.bound, place, text, hypotheses)


def _about(text: str) -> tuple[Any, Any] | None:
    """Return the statement that a certificate says it refutes, or None for any other text."""
    try:
        document = parsed(text)
        return document["theorem"], document["reading"]
    except (ValueError, LookupError):
        return None


def searched(
    statement: Statement, budget: int, seed: int, progress: Progress | None = None
) -> BesideView:
    """Search for a refutation of a statement."""
    heading = f"Search: {statement.id} ({statement.reading})"
    name = statement.id, statement.reading
    try:
        found = falsify(statement, budget, seed, progress=progress)
    except ValueError as error:
        return BesideView(heading, (f"not searched: {error}",), *name)
    lines = tuple(str(found).splitlines())
    if found.witness is not None:
        return BesideView(heading, lines, *name, refutes=True)
    return BesideView(heading, lines, *name, tried=found.settings_tried)


def mapped(statement: Statement, progress: Progress | None = None) -> BesideView:
    """Map where a statement applies over its first two parameters, as ``fltheory map`` does."""
    heading = f"Map: {statement.id} ({statement.reading})"
    name = statement.id, statement.reading
    try:
        start = starting_point(statement)
        axes = [default_axis(start, axis) for axis in default_axis_names(start)]
        region = map_region(statement, start, *axes, progress=progress)
    except ValueError as error:
        return BesideView(heading, (f"not mapped: {error}",), *name)
    picture = drawn(lambda: region_figure(region), ".svg")
    return BesideView(heading, (region.summary,), *name, picture=picture)


def proved(path: Path) -> BesideView:
    """Check a proof for every client loss of a class.

    Raises
    ------
    ValueError
        If the file contains no proof, or a proof that fails.
    """
    proof = read_proof(existing_file("certificate must be a file that exists", path))
    if proof is None:
        raise ValueError(f"certificate must be one that fltheory prove wrote, got {str(path)!r}")
    try:
        proof.verify()
    except ValueError as error:
        raise ValueError(f"proof in {path} fails: {error}") from error
    heading = "Proof for every client loss of the class that it names, whatever the theorem"
    return BesideView(heading, proof.lines, file=str(path), text=proof.text)


def headline(theorems: Sequence[TheoremView], beside: Sequence[BesideView] = ()) -> str:
    """Return the findings in a sentence or two."""
    readings = [reading for theorem in theorems for reading in theorem.readings]
    refuted = {(r.statement.id, r.name) for r in readings if r.is_refuted}
    refuted |= {(view.theorem, view.reading) for view in beside if view.refutes}
    statements = [reading.statement for reading in readings]
    cells = [row.cell for row in _rows(theorems)]
    tried = [view.tried for view in beside if view.tried and view.reading == "printed"]
    found = what_is_refuted(statements, refuted, cells, tried)
    if not found:
        return _of_other_readings(readings)
    return ". ".join(found) + "."


def _of_other_readings(readings: Sequence[ReadingView]) -> str:
    broken = sum(reading.is_refuted for reading in readings)
    return f"{broken} of {len(readings)} readings are refuted."


def _rows(theorems: Sequence[TheoremView]) -> list[RegimeView]:
    return [row for theorem in theorems for reading in theorem.readings for row in reading.rows]


def _used(theorems: Sequence[TheoremView]) -> dict[str, list[str]]:
    """Return the readings and grades that occur, in order, as filters."""
    readings = [reading.name for theorem in theorems for reading in theorem.readings]
    grades = {row.grade for row in _rows(theorems)}
    return {
        "readings": list(dict.fromkeys(readings)),
        "grades": [grade.name.lower() for grade in Grade if grade.name.lower() in grades],
    }


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return base64.b64encode(digest).decode("ascii")


def _with_code(text: str) -> Markup:
    """Mark text in backticks as code."""
    return Markup(re.sub("`(.*?)`", r"<code>\1</code>", str(escape(text))))


def _data_url(content: str | bytes, kind: str = "application/json") -> str:
    data = content.encode("utf-8") if isinstance(content, str) else content
    encoded = base64.b64encode(data).decode("ascii")
    return f"data:{kind};base64,{encoded}"

"""The content of the report, computed from statements, cells and certificates alone.

Any kind of statement can be shown. Parts that a statement does not have (quantity, bound,
hypotheses, axes, symbols) are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from markupsafe import Markup

from fltheory.claims.statement import Statement
from fltheory.decimals import fraction_text
from fltheory.evidence.verdict import Grade, HypothesisCheck
from fltheory.grammar.refutation import Refutation
from fltheory.report.html.mathml import symbol, typeset, typeset_assertion
from fltheory.report.html.sparkline import sparkline
from fltheory.report.terminal.refutation_text import setting_lines
from fltheory.report.terminal.verdict_table import ratio_text, remark
from fltheory.verify import Outcome
from fltheory.verify.runs import Cell

MARKS = {
    Outcome.REFUTED: "✗",
    Outcome.UNDECIDED: "?",
    Outcome.HOLDS: "✓",
    Outcome.INAPPLICABLE: "\N{EN DASH}",
}
_READINGS = {
    "printed": "to the letter, faults included",
    "derived": "what its own proof gives",
    "repaired": (
        "the printed statement, changed so that its proof supports it and it applies widely"
    ),
}
_GRADES = tuple(Grade)


@dataclass(frozen=True)
class Line:
    """A formula, with a name before and a source after it; each of these may be empty."""

    name: str
    pieces: tuple[Markup, ...]
    source: str = ""


@dataclass(frozen=True)
class RegimeView:
    """One regime of a statement."""

    cell: Cell
    about: str

    @property
    def verdict(self) -> str:
        """The verdict's name."""
        return self.cell.verdict.outcome.name

    @property
    def mark(self) -> str:
        """The verdict's sign."""
        return MARKS[self.cell.verdict.outcome]

    @property
    def severity(self) -> int:
        """The rank of the verdict; refuted comes first."""
        return list(MARKS).index(self.cell.verdict.outcome)

    @property
    def grade(self) -> str:
        """The evidence's grade."""
        return self.cell.verdict.evidence.grade.name.lower()

    @property
    def strength(self) -> int:
        """The rank of the grade; the strongest comes first."""
        return _GRADES.index(self.cell.verdict.evidence.grade)

    @property
    def ratio(self) -> str:
        """Truth/bound, or both slopes, as short text."""
        return ratio_text(self.cell.verdict)

    @property
    def ratio_value(self) -> str:
        """The sort key for the column of ratios; empty if there is no ratio."""
        verdict = self.cell.verdict
        if math.isnan(verdict.ratio) or (math.isinf(verdict.bound) and not verdict.is_rate):
            return ""
        return repr(float(verdict.ratio))

    @property
    def remark(self) -> str:
        """A remark, i.e. the failed hypothesis, an order's slopes, or both sides if refuted."""
        return remark(self.cell.verdict)

    @property
    def evidence(self) -> str:
        """The evidence for the truth, in one line."""
        evidence = self.cell.verdict.evidence
        parts = [evidence.grade.value, f"truth within ±{evidence.error:.2g}"]
        if evidence.replicas is not None:
            parts.append(f"{evidence.replicas} replicas")
            parts.append(f"misses with probability {evidence.error_probability:.1e} at most")
        if evidence.why_not_exact:
            parts.append(f"not exact: {evidence.why_not_exact}")
        return "; ".join([*parts, evidence.scope] if evidence.scope else parts)

    @property
    def sides(self) -> str:
        """Both sides, in numbers."""
        verdict = self.cell.verdict
        if verdict.is_rate:
            return verdict.detail
        return f"truth {verdict.truth:.6g}, bound {verdict.bound:.6g}"

    @property
    def checks(self) -> tuple[Check, ...]:
        """Each hypothesis with both of its sides in numbers."""
        return checks_of(self.cell.verdict.hypotheses)

    @cached_property
    def spark(self) -> Markup:
        """A picture of truth and bound; empty if there is no run."""
        return sparkline(self.cell.curve) if self.cell.curve is not None else Markup("")


@dataclass(frozen=True)
class Check:
    """A hypothesis on a setting, with a sign and a word for its state, its name, and both sides."""

    mark: str
    state: str
    name: str
    sides: str


_STATES = {
    True: (MARKS[Outcome.HOLDS], "met"),
    False: (MARKS[Outcome.REFUTED], "not met"),
    None: (MARKS[Outcome.UNDECIDED], "undecided"),
}
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "inf": "∞"}


def checks_of(hypotheses: Sequence[HypothesisCheck]) -> tuple[Check, ...]:
    """Return the displayed form of hypotheses."""
    return tuple(Check(*_STATES[one.holds], one.name, _typeset(one.sides)) for one in hypotheses)


def _typeset(sides: str) -> str:
    for text, sign in _SIGNS.items():
        sides = sides.replace(text, sign)
    return sides


@dataclass(frozen=True)
class Count:
    """The number of rows with a verdict."""

    mark: str
    verdict: str
    meaning: str
    number: int


def counts(rows: Sequence[RegimeView]) -> tuple[Count, ...]:
    """Count rows by verdict, with refuted first; verdicts without rows are included."""
    found = Counter(row.cell.verdict.outcome for row in rows)
    return tuple(Count(mark, o.name, o.value, found[o]) for o, mark in MARKS.items())


@dataclass(frozen=True)
class ReadingView:
    """One statement in one reading, with its rows."""

    statement: Statement
    rows: tuple[RegimeView, ...]
    certificates: tuple[CertificateView, ...] = ()
    kept: tuple[KeptView, ...] = ()

    @property
    def name(self) -> str:
        """The reading."""
        return self.statement.reading

    @property
    def about(self) -> str:
        """The reading, explained in words."""
        return _READINGS.get(self.statement.reading, "")

    @property
    def anchor(self) -> str:
        """The HTML id on the page."""
        return anchor(f"{self.statement.id}-{self.statement.reading}")

    @cached_property
    def claims(self) -> tuple[Line, ...]:
        """The claims, i.e. a bound, or an order for each variable."""
        return tuple(
            Line("" if one.variable is None else f"in {one.variable}", typeset_assertion(one))
            for one in self.statement.assertions
        )

    @property
    def left_in_words(self) -> str:
        """For a claim without a run, the left side in words, if its formula is not enough."""
        quantity = self.statement.basis.quantity
        return quantity.text if quantity.latex and not hasattr(quantity, "rounds") else ""

    @property
    def from_bound(self) -> tuple[Markup, ...]:
        """For a claimed order, the bound of the theorem on which it rests."""
        basis = self.statement.basis
        if basis is self.statement:
            return ()
        return tuple(piece for one in basis.assertions for piece in typeset_assertion(one))

    @cached_property
    def hypotheses(self) -> tuple[Line, ...]:
        """The conditions, in order."""
        return tuple(
            Line(item.name, typeset(item.condition), item.source)
            for item in self.statement.conditions
        )

    @cached_property
    def definitions(self) -> tuple[tuple[Markup, tuple[Markup, ...]], ...]:
        """The symbols that abbreviate expressions."""
        items = self.statement.basis.definitions.items()
        return tuple((symbol(name), typeset(expression)) for name, expression in items)

    @cached_property
    def symbols(self) -> tuple[tuple[Markup, str], ...]:
        """The symbols and their meanings."""
        basis = self.statement.basis
        of_rounds = ((symbol(item.symbol), _of_rounds(item)) for item in basis.round_symbols)
        meanings = basis.meanings.items()
        return (*of_rounds, *((symbol(name), meaning) for name, meaning in meanings))

    @property
    def counts(self) -> tuple[Count, ...]:
        """How many regimes have each verdict."""
        return counts(self.rows)

    @property
    def refuted(self) -> tuple[RegimeView, ...]:
        """The regimes that refute the reading."""
        return tuple(row for row in self.rows if row.cell.verdict.outcome is Outcome.REFUTED)

    @property
    def is_refuted(self) -> bool:
        """Whether a regime, a certificate or a kept witness refutes it."""
        return bool(self.refuted or self.certificates or self.kept)

    @property
    def faults(self) -> tuple[Refutation, ...]:
        """The reasons for a refutation, i.e. the faults that rows or certificates show."""
        regimes = {row.cell.regime for row in self.refuted}
        return tuple(
            fault
            for fault in self.statement.refutations
            if regimes.intersection(fault.regimes) or (self.certificates and fault.certificates)
        )

    @property
    def witnesses(self) -> tuple[tuple[RegimeView, Mapping[str, str]], ...]:
        """The refuting regimes, each with its setting."""
        regimes = self.statement.regimes
        return tuple((row, setting_lines(regimes[row.cell.regime].setting)) for row in self.refuted)

    @property
    def is_order(self) -> bool:
        """Whether an order is claimed, which no finite certificate can decide."""
        return any(one.variable is not None for one in self.statement.assertions)

    @cached_property
    def over_provable(self) -> float | None:
        """The ratio of the bound to the best provable bound, or None if nothing is proved."""
        # This is imported here because loading the solver takes longer than making most reports.
        from fltheory.worst_case.audits.run_audit import times_best_provable

        return times_best_provable(self.statement.id, self.statement.reading)

    @property
    def has_curves(self) -> bool:
        """Whether any row has a picture."""
        return any(row.spark for row in self.rows)

    @property
    def tightest(self) -> RegimeView | None:
        """The row with the largest truth/bound among those that the statement applies to."""
        decided = (Outcome.HOLDS, Outcome.REFUTED)
        applied = [
            row
            for row in self.rows
            if row.cell.verdict.outcome in decided and row.ratio_value not in ("", "inf")
        ]
        return max(applied, key=lambda row: float(row.ratio_value), default=None)


def _of_rounds(item: Any) -> str:
    every = f" in every round {item.rounds.text}" if item.reduction == "every" else ""
    return f"{item.meaning}{every}"


@dataclass(frozen=True)
class CertificateView:
    """A certificate that was checked while the page was made.

    Attributes
    ----------
    theorem, reading : str
        The theorem and the reading that it refutes.
    lines : tuple of str
        The witness.
    left, right : Fraction
        Two numbers with ``left > right``. The left-hand side is at least ``left``, and the bound is
        at most ``right``.
    file, text : str
        The path of the file and its full text.
    hypotheses : tuple of HypothesisCheck
        The hypotheses, with both sides at the witness.
    """

    theorem: str
    reading: str
    lines: tuple[str, ...]
    left: Fraction
    right: Fraction
    file: str
    text: str
    hypotheses: tuple[HypothesisCheck, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """Each hypothesis with both of its sides in numbers."""
        return checks_of(self.hypotheses)

    @property
    def truth(self) -> str:
        """The left side as a fraction, or approximately."""
        return _grouped(self.left)

    @property
    def bound(self) -> str:
        """The right side as a fraction, or approximately."""
        return _grouped(self.right)


@dataclass(frozen=True)
class KeptView:
    """A witness kept as a setting; its statement was checked on it while the page was made.

    Attributes
    ----------
    theorem, reading : str
        The theorem and the reading that it refutes.
    lines : tuple of str
        The setting.
    checks : tuple of Check
        Every hypothesis, with both sides.
    grade : str
        The grade of the evidence.
    truth, bound : str
        Both sides.
    file, text : str
        The path of the file and its full text.
    """

    theorem: str
    reading: str
    lines: tuple[str, ...]
    checks: tuple[Check, ...]
    grade: str
    truth: str
    bound: str
    file: str
    text: str


@dataclass(frozen=True)
class BesideView:
    """A supplement to the verdicts: a search, a map, or a proof that was checked.

    Attributes
    ----------
    heading : str
    lines : tuple of str
    theorem, reading : str
        The statement's id and reading. Both are empty for a proof, which is about a class of
        clients.
    refutes : bool
        Whether a search has found a refutation.
    tried : int
        Number of settings tried by a search that found no refutation.
    picture : bytes
        A figure as SVG.
    file, text : str
        The proof's file and its full text.
    """

    heading: str
    lines: tuple[str, ...]
    theorem: str = ""
    reading: str = ""
    refutes: bool = False
    tried: int = 0
    picture: bytes = b""
    file: str = ""
    text: str = ""


def _grouped(value: Fraction) -> str:
    return f"{value.numerator:,}" if value.denominator == 1 else fraction_text(value)


@dataclass(frozen=True)
class TheoremView:
    """All readings of one statement."""

    id: str
    readings: tuple[ReadingView, ...]

    @property
    def anchor(self) -> str:
        """The HTML id on the page."""
        return anchor(self.id)

    @property
    def title(self) -> str:
        """The statement's one-line summary."""
        return self.readings[0].statement.title

    @property
    def source(self) -> str:
        """The statement's source."""
        return self.readings[0].statement.source


def anchor(name: str) -> str:
    """Return a name as an HTML id."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def theorems_of(
    statements: Sequence[Statement],
    cells: Sequence[Cell],
    certificates: Sequence[CertificateView],
    kept: Sequence[KeptView] = (),
) -> tuple[TheoremView, ...]:
    """Group readings by id, in order, each with its cells and witnesses."""
    readings = [_reading(statement, cells, certificates, kept) for statement in statements]
    ids = dict.fromkeys(statement.id for statement in statements)
    return tuple(
        TheoremView(name, tuple(r for r in readings if r.statement.id == name)) for name in ids
    )


def _reading(
    statement: Statement,
    cells: Sequence[Cell],
    certificates: Sequence[CertificateView],
    kept: Sequence[KeptView],
) -> ReadingView:
    key = (statement.id, statement.reading)
    rows = (RegimeView(c, _about(statement, c.regime)) for c in cells if c.key[:2] == key)
    own = (view for view in certificates if (view.theorem, view.reading) == key)
    own_kept = (view for view in kept if (view.theorem, view.reading) == key)
    return ReadingView(statement, tuple(rows), tuple(own), tuple(own_kept))


def _about(statement: Statement, regime: str) -> str:
    return statement.regimes[regime].about if regime in statement.regimes else ""


def refuted(theorems: Sequence[TheoremView]) -> Iterator[ReadingView]:
    """Yield the readings that are refuted, starting with the printed ones."""
    every = [reading for theorem in theorems for reading in theorem.readings if reading.is_refuted]
    yield from (reading for reading in every if reading.name == "printed")
    yield from (reading for reading in every if reading.name != "printed")

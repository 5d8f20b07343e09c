"""Statements and cells for the report: real ones, one of an unknown kind, one that attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import sympy as sp

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.evidence.verdict import Evidence, Grade, HypothesisCheck
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.refutation import Refutation, StatementKind
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import PURE
from fltheory.report.html.html_report import certificates_in
from fltheory.report.html.report_view import CertificateView
from fltheory.report.verdict_file import MadeBy
from fltheory.theorems import Hypothesis, PointQuantity, Regime
from fltheory.verify import Outcome, Verdict, check_regimes
from fltheory.verify.runs import Cell
from tests.fewer_regimes import with_regimes

WITNESSES = Path(__file__).parents[2] / "verification" / "witnesses"
ATTACK = "</script><script>window.attacked = 1</script><img src=x onerror='window.attacked = 1'>"


COUNT = PointQuantity(lambda setting: (3.0, 0.0), "number of clients", PURE)


@dataclass(frozen=True)
class NewKind:
    """A statement of a kind that the report was not written for."""

    id: str
    reading: str
    title: str
    source: str
    regimes: Mapping[str, Regime] = field(default_factory=dict)
    note: str = ""
    quantity: PointQuantity = COUNT
    hypotheses: tuple[Hypothesis, ...] = ()
    meanings: Mapping[sp.Symbol, str] = field(default_factory=dict)
    definitions: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    round_symbols: tuple[()] = ()
    kind: StatementKind = StatementKind.REMARK
    refutations: tuple[Refutation, ...] = ()

    @property
    def basis(self) -> NewKind:
        return self

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        return (Assertion(self.quantity.text, "", Relation.AT_LEAST, sp.Integer(2)),)

    @property
    def conditions(self) -> tuple[Hypothesis, ...]:
        return self.hypotheses


def _of_regimes(identifier: str, reading: str, *names: str) -> Statement:
    statement = theorems.get(identifier, reading)
    return with_regimes(statement, {name: statement.regimes[name] for name in names})


def _attacking() -> Statement:
    """Return a point claim all of whose texts try to run a script."""
    known = theorems.get("ca-fed/appendix-e")
    regime, attack = replace(known.regimes["two clients"], about=ATTACK), symbol(ATTACK, ATTACK)
    return replace(
        known,
        id=f"attack/{ATTACK}",
        title=ATTACK,
        source=ATTACK,
        note=ATTACK,
        quantity=PointQuantity(lambda setting: (3.0, 0.0), ATTACK, PURE),
        bound=attack,
        hypotheses=(Hypothesis(ATTACK, sp.Gt(attack, 0), ATTACK),),
        definitions={attack: attack + 1},
        regimes={ATTACK: regime},
        refutations=(replace(known.refutations[0], regimes=(ATTACK,), change=ATTACK),),
    )


def _judged(statement: Any, outcome: Outcome, grade: Grade) -> list[Cell]:
    failing = HypothesisCheck("small step", "s <= 1", "here", False, -0.25, at_round=3)
    return [
        Cell(
            name,
            Verdict(
                statement.id,
                statement.reading,
                outcome,
                Evidence(grade, 0.1, 1e-9, 2000, ATTACK),
                3.0,
                2.0,
                (replace(failing, name=ATTACK),),
                detail=ATTACK,
            ),
        )
        for name in statement.regimes
    ]


@cache
def case() -> tuple[list[Any], list[Cell], Sequence[CertificateView], MadeBy]:
    """Return what `html_report` takes."""
    real = [
        _of_regimes("sa-fl/5", "printed", "i.i.d.", "q = 0", "different Hessians", "m = 1"),
        _of_regimes("sa-fl/5", "derived", "i.i.d.", "q = 0", "q = 1"),
        _of_regimes("sa-fl/corollary-2", "printed", "i.i.d."),
        theorems.get("ca-fed/appendix-d"),
    ]
    attack = _attacking()
    new = NewKind(
        "pac/1", "printed", "Of a new kind", "Section 9", {"here": real[0].regimes["q = 0"]}
    )
    cells = [
        *check_regimes(real, curves=True),
        *_judged(attack, Outcome.REFUTED, Grade.RATIONAL),
        *_judged(new, Outcome.UNDECIDED, Grade.STATISTICAL),
    ]
    statements = [*real, attack, new]
    return statements, cells, certificates_in(WITNESSES, statements), MadeBy(0, 2000)

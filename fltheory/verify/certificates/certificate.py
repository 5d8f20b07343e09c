"""Certificates of refutation: written from a setting, read with suspicion.

A certificate holds the statement's formulas, what each of their symbols is, the setting, and two
numbers between the sides of the inequality that the setting breaks, all as fractions in JSON. The
package's engines find the two numbers; whether they are right, and every hypothesis met, is left to
the independent checker. Reading one makes sure that its formulas are the registered statement's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import sympy as sp

from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Inequality, Statement
from fltheory.engines import Setting
from fltheory.files.read_file import existing_file
from fltheory.files.whole_file import write_whole
from fltheory.grammar.quantities import rule_text
from fltheory.theorems import get
from fltheory.verify.certificates.certificate_checker import (
    MOST_CHARACTERS,
    VERSION,
    CertificateError,
    check_certificate,
    parsed,
)
from fltheory.verify.certificates.setting_text import setting_from_text, setting_text
from fltheory.verify.check import check
from fltheory.verify.safari.witness import Witness


@dataclass(frozen=True)
class Certified:
    """A certificate that passed.

    Attributes
    ----------
    theorem : Inequality
    document : mapping
        What the file holds.
    truth, bound : Fraction
        ``truth > bound``, the one at most the left-hand side, the other at least the bound.
    """

    theorem: Inequality
    document: Mapping[str, Any]
    truth: Fraction
    bound: Fraction

    @property
    def setting(self) -> Setting:
        """The setting in float64, for the engines."""
        return setting_from_text(self.document["setting"])

    @property
    def lines(self) -> tuple[str, ...]:
        """The setting in a few lines: algorithm, clients, participation, start."""
        setting = self.document["setting"]
        problem = setting["problem"]
        return (
            _in_a_line(setting["algorithm"]),
            f"clients: {_in_a_line(problem)}",
            f"participation: {_in_a_line(setting['participation'])}",
            f"x0 = {_in_a_line(setting['x0'])}, {setting['rounds']} rounds",
        )


def _in_a_line(value: Any) -> str:
    """Return JSON as a reader writes it: names first, no quotation marks."""
    if isinstance(value, list):
        return f"({', '.join(map(_in_a_line, value))})"
    if not isinstance(value, Mapping):
        return str(value)
    inner = ", ".join(f"{k} = {_in_a_line(v)}" for k, v in value.items() if k != "name")
    return f"{value['name']}({inner})" if "name" in value else inner


@checks_kinds
def certificate(theorem: Statement, refuting: Setting | Witness) -> dict[str, Any]:
    """Return the certificate that a setting refutes a theorem.

    Raises
    ------
    ValueError
        If it does not: some hypothesis fails, or the bound is not broken by more than rounding;
        if the statement has no certificates, or if the checker does not know a symbol, the
        algorithm or the participation, or refuses a run as too long.

    Examples
    --------
    >>> from fltheory import theorems
    >>> statement = theorems.get("fedau/3-step")
    >>> refuting = statement.regimes["before an interval ends"].setting
    >>> found = certificate(statement, refuting)
    >>> Fraction(found["truth"]) > Fraction(found["bound"])
    True
    """
    statement = statement_text(theorem)
    setting = refuting.setting() if isinstance(refuting, Witness) else refuting
    text = refuting.setting_text() if isinstance(refuting, Witness) else setting_text(setting)
    verdict = check(theorem, setting)
    truth, bound = _round_numbers_between(verdict.bound, verdict.truth)
    document = {
        "version": VERSION,
        "theorem": theorem.id,
        "reading": theorem.reading,
        "statement": statement,
        "setting": text,
        "truth": str(truth),
        "bound": str(bound),
    }
    check_certificate(document)
    return document


def _round_numbers_between(bound: float, truth: float) -> tuple[Fraction, Fraction]:
    """Return two numbers a third and two thirds of the way, of as few digits as tell them apart."""
    for digits in range(2, 18):
        low, high = (
            Fraction(f"{bound + share * (truth - bound):.{digits}g}") for share in (1 / 3, 2 / 3)
        )
        if bound < low < high < truth:
            return high, low
    raise ValueError(
        f"setting must break the bound by more than rounding, got {truth} against {bound}"
    )


def statement_text(theorem: Statement) -> dict[str, Any]:
    """Return a statement's formulas, and what each symbol is, as the checker reads them.

    Raises
    ------
    ValueError
        For a claim of a kind without certificates, or a symbol whose number is no formula.
    """
    claim = theorem.for_certificate()
    along_run = claim.round_symbols
    definitions, used = _used(claim)
    known = {item.symbol for item in along_run}
    for symbol in used:
        if symbol not in claim.quantities and symbol not in known:
            raise ValueError(
                f"{claim.id} cannot be certified: number of {symbol} must be a formula in "
                "numbers of a setting"
            )
    return {
        "symbols": {str(s): claim.quantities[s] for s in used if s not in known},
        "definitions": {str(s): str(e) for s, e in definitions.items()},
        "round_symbols": {
            str(item.symbol): rule_text(item.field, item.reduction, item.rounds)
            for item in along_run
            if item.symbol in used
        },
        "conditions": {item.name: str(item.condition) for item in claim.hypotheses},
        "quantity": claim.quantity.certified_text(claim.id),
        "bound": str(claim.bound),
    }


def _used(theorem: Inequality) -> tuple[dict[sp.Symbol, sp.Expr], list[sp.Symbol]]:
    """Return the definitions and the other symbols that the statement's formulas need."""
    formulas: list[sp.Basic] = [theorem.bound, *(h.condition for h in theorem.hypotheses)]
    names = {str(s): s for s in (*theorem.meanings, *theorem.definitions)}
    formulas += theorem.quantity.formulas(names)
    needed = _symbols(formulas)
    definitions: dict[sp.Symbol, sp.Expr] = {}
    for symbol in reversed(list(theorem.definitions)):
        if symbol in needed:
            definitions[symbol] = theorem.definitions[symbol]
            needed |= _symbols([theorem.definitions[symbol]])
    r = sp.Symbol("r")
    free = sorted(needed - {*definitions, r}, key=str)
    return dict(reversed(definitions.items())), free


def _symbols(formulas: Iterable[sp.Basic]) -> set[Any]:
    return {symbol for formula in formulas for symbol in formula.free_symbols}


def write_certificate(path: Path, document: Mapping[str, Any]) -> None:
    """Write a certificate as JSON."""
    write_whole(path, json.dumps(document, indent=1) + "\n")


def read_certificate(path: Path | str) -> Certified:
    """Read and check a certificate.

    Raises
    ------
    ValueError
        Naming the first field that fails: damage, a formula that is not the registered
        statement's, a number that is wrong, a hypothesis that is not met, a bound that holds,
        or a setting that the statement does not speak of.

    Examples
    --------
    >>> read_certificate("nowhere.json")
    Traceback (most recent call last):
    ValueError: certificate must be an existing file, got 'nowhere.json'
    """
    document = _document_of(path)
    found = get(document["theorem"], document["reading"])
    registered = statement_text(found)
    theorem = found.for_certificate()
    _compare_statement(document.get("statement"), registered)
    # The checker goes first: nothing else here is made for numbers that a stranger wrote.
    truth, bound = check_certificate(document)
    certified = Certified(theorem, document, truth, bound)
    theorem.constants(certified.setting)
    return certified


def _document_of(path: Path | str) -> dict[str, Any]:
    """Return what a file holds, if it names a statement at all."""
    text = _text_of(path)
    try:
        document = parsed(text)
        for name in ("theorem", "reading"):
            if not isinstance(document.get(name), str):
                raise CertificateError(f"{name}: the field is missing, or no text")
    except CertificateError as error:
        why = error if text.strip() else "the file is empty"
        raise CertificateError(
            "certificate must be a file that fltheory falsify or prove wrote, "
            f"got {str(path)!r}: {why}"
        ) from error
    return document


def _text_of(path: Path | str) -> str:
    must_be = "certificate must be an existing file"
    try:
        content = existing_file(must_be, path, most_bytes=MOST_CHARACTERS).read_bytes()
    except OSError as error:
        raise ValueError(f"{must_be}, got {str(path)!r}: {error.strerror}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CertificateError(
            "certificate must be a file that fltheory falsify or prove wrote, "
            f"got {str(path)!r}: not JSON: {error}"
        ) from error


def _compare_statement(found: Any, registered: Mapping[str, Any]) -> None:
    if not isinstance(found, dict):
        raise CertificateError("statement: the field is missing")
    for name, text in registered.items():
        if found.get(name) != text:
            raise CertificateError(f"statement.{name}: is not the registered statement's")

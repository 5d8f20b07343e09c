"""Certificates of refutation: written from an exact replay, read with suspicion.

A certificate holds the statement's formulas, the setting and both sides, all as fractions in
JSON. Writing one replays the witness by enumeration; reading one runs the independent checker,
and makes sure that the formulas in it are those of the registered statement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import sympy as sp

from fltheory.theorems import Hypothesis, RateClaim, RoundRange, Theorem, get, sa_fl
from fltheory.verify.certificate_checker import CertificateError, check_certificate
from fltheory.verify.extremal_instances import is_about_safari
from fltheory.verify.rational_replay import replay
from fltheory.verify.witness import Witness

VERSION = 1
_MOST_DIGITS = 1_000_000


@dataclass(frozen=True)
class Certified:
    """A certificate that passed.

    Attributes
    ----------
    theorem : Theorem
    witness : Witness
    truth, bound : Fraction
        ``truth > bound``, exactly.
    """

    theorem: Theorem
    witness: Witness
    truth: Fraction
    bound: Fraction


def certificate(theorem: Theorem, witness: Witness) -> dict[str, Any]:
    """Return the certificate that a witness refutes a theorem.

    Raises
    ------
    ValueError
        If, replayed without rounding, some hypothesis fails or the bound is not broken.
    """
    with _long_numbers():
        return _certificate(theorem, witness)


def _certificate(theorem: Theorem, witness: Witness) -> dict[str, Any]:
    exact = replay(theorem, witness)
    failing = [name for name, holds in exact.hypotheses.items() if not holds]
    if failing:
        raise ValueError(f"witness must meet every hypothesis, it fails {', '.join(failing)}")
    if exact.truth <= exact.bound:
        raise ValueError(f"witness must break the bound, got {exact.truth} <= {exact.bound}")
    constants = {str(symbol) for symbol in theorem.meanings}
    return {
        "version": VERSION,
        "theorem": theorem.id,
        "reading": theorem.reading,
        "statement": statement_text(theorem),
        "witness": witness.to_json(),
        "constants": {
            name: str(value) for name, value in exact.values.items() if name in constants
        },
        "truth": str(exact.truth),
        "bound": str(exact.bound),
    }


@contextmanager
def _long_numbers() -> Iterator[None]:
    """Lift Python's limit on the digits of whole numbers as text: fractions grow by the round."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(_MOST_DIGITS)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


def statement_text(theorem: Theorem) -> dict[str, Any]:
    """Return a theorem's formulas as text that the checker evaluates in fractions.

    Conditions with square roots are squared: both of their sides are positive.
    """
    return {
        "bound": str(theorem.bound),
        "conditions": {item.name: _rational_condition(item) for item in theorem.hypotheses},
        "definitions": {str(s): str(e) for s, e in theorem.definitions.items()},
        "round_symbols": {
            str(item.symbol): _rule(item.field, item.reduction, item.rounds)
            for item in theorem.round_symbols
        },
        "quantity": _rule(
            theorem.quantity.field, theorem.quantity.reduction, theorem.quantity.rounds
        ),
        "one_noise_level": theorem.constants is sa_fl.one_noise_level,
    }


def _rule(field: str, reduction: str, rounds: RoundRange) -> dict[str, Any]:
    return {"of": field, "reduction": reduction, "rounds": [rounds.first, rounds.beyond_last]}


def _rational_condition(hypothesis: Hypothesis) -> str:
    condition = hypothesis.condition
    roots = [power for power in condition.atoms(sp.Pow) if not power.exp.is_integer]
    if not any(power.exp.is_Rational for power in roots):
        return str(condition)
    squared = (sp.expand(side * side) for side in (condition.lhs, condition.rhs))
    return str(condition.func(*squared))


def write_certificate(path: Path, document: Mapping[str, Any]) -> None:
    """Write a certificate as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_certificate(path: Path) -> Certified:
    """Read and check a certificate.

    Raises
    ------
    ValueError
        Naming the first field that fails: damage, a formula that is not the registered
        statement's, a value that differs, a hypothesis that is not met, a bound that holds.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"certificate must be an existing file, got {str(path)!r}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CertificateError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise CertificateError(f"{path}: version: must be {VERSION}")
    theorem = get(str(document.get("theorem")), str(document.get("reading")))
    if isinstance(theorem, RateClaim):
        raise CertificateError(f"{path}: theorem: {theorem.id} is a claimed order")
    if not isinstance(theorem, Theorem) or not is_about_safari(theorem):
        raise CertificateError(f"{path}: theorem: {theorem.id} is not about SAFARI")
    _compare_statement(document.get("statement"), statement_text(theorem))
    witness = Witness.from_json(document.get("witness") or {})
    with _long_numbers():
        truth, bound = check_certificate(document)
    return Certified(theorem, witness, truth, bound)


def _compare_statement(found: Any, registered: Mapping[str, Any]) -> None:
    if not isinstance(found, dict):
        raise CertificateError("statement: the field is missing")
    for name, text in registered.items():
        if found.get(name) != text:
            raise CertificateError(f"statement.{name}: is not the registered statement's")

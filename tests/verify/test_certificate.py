"""Certificates: what the checker accepts, and the first field at which it refuses."""

from __future__ import annotations

import ast
import copy
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.verify import (
    CertificateError,
    certificate,
    certificate_checker,
    read_certificate,
    write_certificate,
)
from fltheory.verify.certificate_checker import check_certificate, is_met, value_of
from tests.verify.witnesses import GROUPS, ONE_ROUND

THEOREM = theorems.get("sa-fl/5")


@pytest.fixture
def document() -> dict:
    return certificate(THEOREM, ONE_ROUND)


def stored(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "witness.json"
    path.write_text(json.dumps(document))
    return path


def test_a_true_certificate_passes(tmp_path: Path, document: dict) -> None:
    path = tmp_path / "deep" / "witness.json"
    write_certificate(path, document)
    certified = read_certificate(path)
    assert (certified.truth, certified.bound) == (Fraction(1, 10), 0)
    assert certified.witness == ONE_ROUND
    assert certified.theorem.id == "sa-fl/5"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("version",), 2, "version: must be 1"),
        (("truth",), "1/9", "truth: must be 1/10, got 1/9"),
        (("bound",), "-1", "bound: must be 0, got -1"),
        (("constants", "L"), "999", "constants.L: must be 1000, got 999"),
        (("constants", "sigma_G"), None, "damaged or incomplete"),
        (("witness", "q"), "1/11", "constants.q: must be 1/11, got 1/10"),
        (("witness", "rounds"), "1", "witness field rounds must be int"),
        (("witness", "rounds"), 2, "constants.R: must be 2, got 1"),
        (("witness",), None, "witness field curvatures must be given"),
        (("statement", "bound"), "-1", "statement.bound: is not the registered statement's"),
        (("statement", "conditions"), {}, "statement.conditions: is not the registered"),
        (("statement",), None, "statement: the field is missing"),
        (("reading",), "derived", "statement.conditions: is not the registered"),
        (("reading",), "mine", "reading of sa-fl/5 must be one of"),
        (("theorem",), "sa-fl/6", "must be a registered theorem"),
        (("theorem",), "sa-fl/corollary-2", "is a claimed order"),
        (("theorem",), "ca-fed/1", "ca-fed/1 is not about SAFARI"),
        (("theorem",), "ca-fed/2", "ca-fed/2 is not about SAFARI"),
    ],
)
def test_an_edited_certificate_is_refused_with_its_first_wrong_field(
    tmp_path: Path, document: dict, place: tuple[str, ...], value: object, message: str
) -> None:
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        read_certificate(stored(tmp_path, document))


def test_what_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "witness.json"
    path.write_text("{")
    with pytest.raises(CertificateError, match="not JSON"):
        read_certificate(path)
    with pytest.raises(ValueError, match="certificate must be an existing file"):
        read_certificate(tmp_path / "nowhere.json")


def edited(document: dict, **changes: object) -> dict:
    """A consistent certificate of another setting: constants follow the witness."""
    changed = copy.deepcopy(document)
    changed["witness"] |= changes
    return changed


def test_a_failing_hypothesis_is_refused_though_the_bound_is_broken(document: dict) -> None:
    document = edited(document, q="9/10")
    document["constants"]["q"] = "9/10"
    document["truth"] = "9/10"
    with pytest.raises(CertificateError, match="few clients' rounds: not met in round 0"):
        check_certificate(document)


def test_a_bound_that_holds_is_refused(document: dict) -> None:
    document["statement"]["bound"] = "q"
    document["bound"] = "1/10"
    with pytest.raises(CertificateError, match="the bound is not broken"):
        check_certificate(document)


def test_nothing_is_certified_that_does_not_refute() -> None:
    with pytest.raises(ValueError, match="must meet every hypothesis, it fails coupled step"):
        certificate(THEOREM, GROUPS)
    landing = replace(ONE_ROUND, q=Fraction(1, 10), x0=(Fraction(0),))
    with pytest.raises(ValueError, match="must meet every hypothesis, it fails few clients"):
        certificate(THEOREM, landing)
    small = replace(ONE_ROUND, client_lr=Fraction(1, 50000), assist_lr=Fraction(1, 100000))
    with pytest.raises(ValueError, match=r"must (meet every hypothesis|break the bound)"):
        certificate(THEOREM, small)


def test_the_checker_shares_no_code() -> None:
    source = Path(certificate_checker.__file__).read_text()
    assert source.count("\n") < 200
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert imported <= {
        "__future__",
        "ast",
        "collections.abc",
        "fractions",
        "math",
        "operator",
        "typing",
    }


SYMBOLS = {"a": Fraction(2, 3), "b": Fraction(5)}


@pytest.mark.parametrize(
    ("text", "value"),
    [("a + 2*b", Fraction(32, 3)), ("-a**2/(b - 1)", Fraction(-1, 9)), ("b**(-1)", Fraction(1, 5))],
)
def test_formulas(text: str, value: Fraction) -> None:
    assert value_of(text, SYMBOLS) == value


@pytest.mark.parametrize(
    "text", ["c", "sqrt(a)", "a**a", "__import__('os')", "a if b else a", "1.5"]
)
def test_other_formulas_are_refused(text: str) -> None:
    with pytest.raises(CertificateError):
        value_of(text, SYMBOLS)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("a <= 2/3", True),
        ("a < 2/3", False),
        ("b >= a", True),
        ("a > b", False),
        ("Eq(3*a, 2)", True),
        ("a < oo", True),
        ("1 <= 1/(3*a - 2)", False),
    ],
)
def test_conditions(text: str, met: bool) -> None:
    assert is_met(text, SYMBOLS) is met

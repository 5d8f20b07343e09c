"""What checkers share: a stranger's text is refused by the field; matrices are by hand."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fltheory.worst_case.proof import checker_tools as tools


def test_a_document_has_its_fields_and_constants() -> None:
    text = '{"kind": "a", "size": 3}'
    assert tools.document_of(text, "kind size", 100, kind="a") == {"kind": "a", "size": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", r"certificate: must be an object with fields, got \[\]"),
        ("{}", r"certificate\.kind: the field is missing"),
        ('{"kind": "a"}', r"certificate\.size: the field is missing"),
        ('{"kind": "b", "size": 1}', "kind: must be 'a', got 'b'"),
        ('{"kind": "a", "size": 1, "more": 1}', r"certificate\.more: is not a field"),
        ('{"kind": "a", "kind": "a", "size": 1}', "given twice"),
        ('{"kind": "a", "size": 1.5}', "1.5: numbers must be whole"),
        ('{"kind": "a", "size": NaN}', "NaN: numbers must be whole"),
        (" " * 101, "must have at most 100 characters"),
    ],
)
def test_what_is_no_document_is_refused(text: str, message: str) -> None:
    with pytest.raises(tools.ProofError, match=message):
        tools.document_of(text, "kind size", 100, kind="a")


def test_one_is_not_true() -> None:
    with pytest.raises(tools.ProofError, match="version: must be 1, got True"):
        tools.document_of('{"version": true}', "version", 100, version=1)


@pytest.mark.parametrize("found", ["1/0", "1.5", "1e3", "", "1/-2", " 1", 1, None, "9" * 2001])
def test_what_is_no_fraction_is_refused(found: Any) -> None:
    with pytest.raises(tools.ProofError, match=r"^here: must be"):
        tools.fraction("here", found)


def test_fractions_and_whole_numbers_are_read() -> None:
    assert tools.row("here", ["-3/4", "10", "0/7"]) == [Fraction(-3, 4), Fraction(10), Fraction(0)]
    assert tools.whole("here", -3) == -3
    for found in (True, 1.0, "1", 10**16):
        with pytest.raises(tools.ProofError, match="must be a whole number"):
            tools.whole("here", found)


def test_vectors_and_squares() -> None:
    one, two = tools.basis(2, 0), tools.basis(2, 1)
    both = tools.added(one, tools.scaled(Fraction(3), two))
    assert both == [1, 3]
    total = tools.squares(2, [(Fraction(2), both), (Fraction(-1), one)])
    assert total == [[1, 6], [6, 18]]
    tools.add(total, [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(-1)]])
    assert total == [[2, 6], [6, 17]]


def test_the_checkers_need_the_standard_library_alone() -> None:
    """Each is run where it lies, with no package installed, and says how it is called."""
    folder = Path(str(tools.__file__)).parent
    for name in ("proof_checker", "averaging_checker", "lyapunov_checker"):
        call = [sys.executable, "-E", "-s", "-S", str(folder / f"{name}.py")]
        run = subprocess.run(call, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (2, f"usage: python {name}.py FILE\n")

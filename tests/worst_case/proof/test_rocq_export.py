"""Theorems for Rocq: sums of squares are what they should be, and a theorem says what is claimed.

Whether Rocq accepts them is seen by `make rocq`, where Rocq is installed.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import rocq_mutants
from fltheory.algorithms import WeightedFedAvg
from fltheory.participation import MarkovOnOff
from fltheory.worst_case import ClientClass, best_bound, certificate, read_proof
from fltheory.worst_case.checker.correlated_checker import Chain
from fltheory.worst_case.checker.one_round import DESCENT_CLAIM
from fltheory.worst_case.correlated.bound import CorrelatedCertificate
from fltheory.worst_case.correlated.phases import PhasesCertificate
from fltheory.worst_case.correlated.rich import RichCertificate
from fltheory.worst_case.memory import LyapunovCertificate
from fltheory.worst_case.proof.proof_file import ProofFile
from fltheory.worst_case.proof.rocq_export import bursts_theorem
from fltheory.worst_case.proof.rocq_words import NotExportedError, sum_of_squares
from fltheory.worst_case.rounds.certificate import Certificate

ROCQ = Path(__file__).parents[3] / "rocq"
KEPT = sorted((ROCQ / "proofs").glob("*.json"))


def _program(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROCQ / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


read_back = _program("read_back")  # which the other imports
check = _program("check")
small = st.fractions(-3, 3, max_denominator=7)


@given(st.lists(st.lists(small, min_size=3, max_size=3), min_size=1, max_size=4))
def test_squares_add_up_to_the_matrix(rows: list[list[Fraction]]) -> None:
    """Of a Gram matrix, also where it is singular; no weight is negative."""
    gram = [[sum(r[i] * r[j] for r in rows) for j in range(3)] for i in range(3)]
    squares = sum_of_squares(gram)
    assert all(weight >= 0 for weight, _ in squares)
    padded = [(w, [*form, *[Fraction(0)] * (3 - len(form))]) for w, form in squares]
    assert gram == [
        [sum((w * form[i] * form[j] for w, form in padded), Fraction(0)) for j in range(3)]
        for i in range(3)
    ]


@given(st.lists(small, min_size=3, max_size=3), st.fractions("1/1000000", 1))
def test_what_is_below_zero_somewhere_has_no_squares(form: list[Fraction], less: Fraction) -> None:
    gram = [[a * b - less * (i == j == 0) for j, b in enumerate(form)] for i, a in enumerate(form)]
    with pytest.raises(NotExportedError, match="positive semidefinite"):
        sum_of_squares(gram)


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_a_theorem_says_what_its_certificate_claims(file: Path) -> None:
    proof = read_proof(file)
    assert proof is not None
    read_back.compare(proof.rocq_theorem(), json.loads(file.read_text(encoding="utf-8")))


# What a certificate says of its proof alone; all else is of its claim.
OF_THE_PROOF = re.compile(
    r"boxes\.0\.(?:pairs|budgets|noises|orthogonal|given)\b|"
    r"(?:below|noise_below|function|multipliers|noises|orthogonal)\b"
)


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_every_field_of_a_claim_is_read(file: Path) -> None:
    """Each number, word and list of it is changed once, left out, and has another beside it."""
    proof, document = read_proof(file), read_back.certificate_in(file)
    assert proof is not None
    said = read_back.read(proof.rocq_theorem())
    noisy, q = document["class"].get("noise"), document.get("round", {}).get("q")
    # A factor of zero: the mean square of noise that is not there, or 1 - q.
    void = ["bound.noise"] * (noisy is False and "boxes" in document)
    void += ["bound.server_noise", "round.assist_lr_over_client_lr"] * (q == "1")
    assert read_back.claimed(document) == said
    changed = 0
    for place, other in _each_changed_once(document):
        if place.removesuffix(".0") in void:
            other = _replaced(document, place.split("."), "-1/1000000")
        elif OF_THE_PROOF.match(place):
            continue
        changed += 1
        assert _claim(other) != said, place
    assert changed > 20


def _claim(document: Any) -> Any:
    try:
        return read_back.claimed(document)
    except read_back.NotReadError as error:
        return str(error)


def _each_changed_once(document: Any) -> Iterator[tuple[str, Any]]:
    for place, value in _fields(document):
        yield ".".join(place), _replaced(document, place, _other(value))
    for place, value in [((), document), *_fields(document)]:
        if isinstance(value, dict) and not OF_THE_PROOF.match(".".join(place)):
            yield ".".join((*place, "more")), _replaced(document, place, value | {"more": "1"})
            for name in value:
                less = {other: field for other, field in value.items() if other != name}
                yield f"{'.'.join((*place, name))} ", _replaced(document, place, less)


def _fields(found: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    inner = found.items() if isinstance(found, dict) else enumerate(found)
    for name, value in inner:
        own = (*place, str(name))
        yield own, value
        if isinstance(value, dict | list):
            yield from _fields(value, own)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value, value[0] if value and not isinstance(value[0], str) else "1"]
    if not isinstance(value, str):
        return 1
    try:
        return str(Fraction(value) + Fraction(1, 7))
    except ValueError:
        return f"{value} "


def _replaced(found: Any, place: Sequence[str], value: Any) -> Any:
    if not place:
        return value
    changed, name = found.copy(), place[0] if isinstance(found, dict) else int(place[0])
    changed[name] = _replaced(found[name], place[1:], value)
    return changed


def test_a_theorem_without_noise_is_not_a_certificate_with_noise() -> None:
    """Both are true, and Rocq accepts the theorem: it says less than is claimed."""
    method, come = WeightedFedAvg([0.5] * 2, 0.1, 1), MarkovOnOff([0.5] * 2, 0.5)
    noisy = json.loads(certificate(best_bound(method, come, ClientClass(1, "1/10", sigma=1))).text)
    quiet = json.loads(json.dumps(noisy))
    quiet["class"]["noise"], quiet["noise_below"] = False, "0"
    quiet["bound"] |= {"start_noise": "0", "noise": "0"}
    quiet["noises"] = [[[] for _ in cells] for cells in noisy["noises"]]
    for value in quiet["function"]:
        value["constant"] = "0"
    made = CorrelatedCertificate(json.dumps(quiet))
    made.verify()
    text = made.rocq_theorem()
    read_back.compare(text, quiet)
    with pytest.raises(read_back.NotReadError, match=r"class\.noise must be false, got true"):
        read_back.compare(text, noisy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "the certificate must be an object with fields, got 5"),
        ("[1]", r"the certificate must be an object with fields, got \[1\]"),
        ('{"kind": 1, "kind": 2}', "the certificate must have each field once"),
        ("[" * 100_000, "must be a certificate: maximum recursion"),
        ('{"kind": "a proof"}', "the certificate's kind must be "),
    ],
)
def test_what_is_no_certificate_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = read_proof(ROCQ / "proofs" / "convex.json")
    assert proof is not None
    theorem, other = tmp_path / "theorem.v", tmp_path / "other.json"
    theorem.write_text(proof.rocq_theorem(), encoding="utf-8")
    other.write_text(text, encoding="utf-8")
    assert read_back.main([str(theorem), str(other)]) == 1
    said = capsys.readouterr().err
    assert re.match(f"not read: .*{message}", said)
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "number", ["(4 <= n)|n 4", "4%nat;", "(1 # 20)", "interpolable 1", "(1 / 10)"]
)
def test_other_alphabets_digits_are_no_numbers(number: str) -> None:
    """Fields, whole numbers and real ones, each wherever it stands."""
    proof = read_proof(ROCQ / "proofs" / "fedavg_every_number.json")
    assert proof is not None
    text = changed = proof.rocq_theorem()
    for own in number.split("|"):
        last = re.sub(r"\d(?=\D*$)", lambda digit: chr(0x0660 + int(digit[0])), own)
        changed = changed.replace(own, last)
    assert changed != text
    with pytest.raises(read_back.NotReadError, match="shape of an exported theorem"):
        read_back.read(changed)


def test_a_file_that_is_not_there_is_told_before_the_library_is_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does a file begin that is neither a certificate nor a theorem."""
    monkeypatch.setattr(check.shutil, "which", lambda name: name)
    monkeypatch.setattr(check, "compile_library", lambda folder: pytest.fail("compiled"))
    other = tmp_path / "theorem.v"
    other.write_text("Axiom false : False.\n", encoding="utf-8")
    for file, message in (
        (tmp_path / "none.v", "No such file or directory"),
        (tmp_path / "none.json", "certificate must be an existing file, got"),
        (other, "must be of the shape of an exported theorem"),
    ):
        assert check.main([str(file)]) == 1
        assert message in capsys.readouterr().err


def test_no_other_statement_is_read_back_as_the_claim() -> None:
    assert rocq_mutants.read_mutants(200, seed=38) == 0


@pytest.mark.soundness
def test_none_of_thousands_of_other_statements_is() -> None:
    assert rocq_mutants.read_mutants(5_000, seed=38) == 0


def test_a_reader_that_reads_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is of mutants that are accepted, and so not zero if all are."""
    monkeypatch.setattr(rocq_mutants.read_back, "compare", lambda text, certificate: {})
    assert rocq_mutants.read_mutants(60, seed=38) > 20


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("given", "run", "a hypothesis on the run"),
        ("steps", "interval", "an interval of step sizes"),
        ("coming", "noise", "noise of clients that come independently"),
        ("coming", "descent", "a descent of F where clients come independently"),
        ("participants", 2_000, "more than 1000 participants"),
    ],
)
def test_what_the_library_does_not_know_is_named(field: str, value: Any, message: str) -> None:
    kept = "averaging_present" if field == "coming" else "convex"
    document = json.loads((ROCQ / "proofs" / f"{kept}.json").read_text(encoding="utf-8"))
    box = document["boxes"][0]
    if field == "given":
        document["given"] = dict.fromkeys(("gradient", "moved", "values", "heterogeneity"), "0")
        document["class"]["heterogeneity"] = "everywhere"
        box["budgets"] = ["1/2", "1/2"]
    elif field == "steps":
        box["client_lr"][1] = "1/9"
    elif value == "noise":
        document["class"]["noise"] = True
        box["noises"] = ["1/2", "1/2"]
    elif value == "descent":
        document["claim"] = DESCENT_CLAIM
        document["bound"]["decrease"] = document["bound"].pop("rate")
        del document["bound"]["gap"]
        box["pairs"] = [[row[:-1] for row in rows[:-1]] for rows in box["pairs"]]
        box["budgets"] = ["1/2", "1/2"]
    else:
        document["round"]["taking_part"] |= {"participants": value, "n_clients": value}
    with pytest.raises(ValueError, match=message):
        Certificate(json.dumps(document)).rocq_theorem()


def test_a_single_client_with_memory_is_refused() -> None:
    """Its certificate has no block of what clients differ in, which Rocq's checker asks for."""
    document = json.loads((ROCQ / "proofs" / "memory_saga.json").read_text(encoding="utf-8"))
    document["method"] |= {"n_clients": 1, "probability": "1"}
    with pytest.raises(NotExportedError, match="a single client"):
        LyapunovCertificate(json.dumps(document)).rocq_theorem()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("groups", 2, "several groups of clients in bursts"),
        ("noise", True, "noise of clients in bursts"),
        ("n_clients", 21, "more than 20 clients in bursts"),
        ("availability", "1", "clients that are always present"),
        ("local_steps", 11, "more than 10 local steps"),
    ],
)
def test_what_is_not_known_of_clients_in_bursts_is_named(
    place: str, value: Any, message: str
) -> None:
    proof = CorrelatedCertificate((ROCQ / "proofs" / "bursts.json").read_text()).proof
    (own,) = proof.groups
    changed = {
        "groups": {"groups": [own, own]},
        "noise": {"noisy": value},
        "local_steps": {"local_steps": value},
    }.get(place) or {"groups": [replace(own, **{place: Fraction(value)})]}
    with pytest.raises(NotExportedError, match=message):
        bursts_theorem(replace(proof, **changed))


def test_a_chain_of_sets_is_refused() -> None:
    proof = CorrelatedCertificate((ROCQ / "proofs" / "bursts.json").read_text()).proof
    one = Fraction(1)
    chain = Chain([[True] * 4], [[one]], [one])
    with pytest.raises(NotExportedError, match="a chain of sets"):
        bursts_theorem(replace(proof, chain=chain))


@pytest.mark.parametrize("kind", [RichCertificate, PhasesCertificate])
def test_other_functions_of_clients_in_bursts_are_refused(kind: type[ProofFile[Any]]) -> None:
    with pytest.raises(ValueError, match=f"Rocq, got '{kind.checker.KIND}'"):
        kind("{}").rocq_theorem()


# As Coq 8.16 prints them.
REST_ON = """\
Axioms:
ClassicalDedekindReals.sig_forall_dec
  : forall P : nat -> Prop,
    (forall n : nat, {P n} + {~ P n}) ->
    {n : nat | ~ P n} + {forall n : nat, P n}
FunctionalExtensionality.functional_extensionality_dep
  : forall (A : Type) (B : A -> Type) (f g : forall x : A, B x),
    (forall x : A, f x = g x) -> f = g
"""


def test_the_real_numbers_axioms_are_allowed() -> None:
    check.check_assumptions(REST_ON)
    check.check_assumptions("Closed under the global context\n")


@pytest.mark.parametrize(
    "printed",
    [
        "",
        REST_ON + "false : False\n",
        REST_ON + "f is assumed to be guarded.\n",
        REST_ON + "D is assumed to be positive.\n",
        REST_ON + "T relies on an unsafe hierarchy.\n",
        REST_ON.replace("-> f = g", "-> False"),
    ],
)
def test_what_else_a_theorem_rests_on_is_refused(printed: str) -> None:
    with pytest.raises(ValueError, match="a theorem must"):
        check.check_assumptions(printed)


CONTEXT = """\
CONTEXT SUMMARY
===============

* Theory: Set is predicative

* Axioms:
    Coq.Logic.FunctionalExtensionality.functional_extensionality_dep

* Constants/Inductives relying on type-in-type: <none>

* Constants/Inductives relying on unsafe (co)fixpoints: <none>

* Inductives whose positivity is assumed: <none>
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    Coq.Logic", "    fltheory.Bound.false\n    Coq.Logic"),
        ("(co)fixpoints: <none>", "(co)fixpoints:\n    fltheory.Bound.f"),
        ("assumed: <none>", "assumed:\n    fltheory.Bound.D"),
        ("* Axioms:", "* Nothing:"),
    ],
)
def test_what_the_compiled_library_assumes_is_refused(old: str, new: str) -> None:
    check.check_context(CONTEXT)
    with pytest.raises(ValueError, match="must"):
        check.check_context(CONTEXT.replace(old, new))


@pytest.mark.parametrize("name", check.LIBRARY)
def test_the_library_proves_what_it_says(name: str) -> None:
    check.check_source(name, (ROCQ / f"{name}.v").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "line",
    [
        "Axioms a b : False.",
        "Parameters a b : False.",
        "Unset Guard Checking.",
        "#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n.",
        "Lemma l : False. Admitted.",
        "Require Import Classical.",
        "From mathcomp Require Import all_ssreflect.",
        "From fltheory Require Import Bound.",
        "From Coq Require Export Reals.",
        'Declare ML Module "other".',
    ],
)
def test_a_library_that_assumes_is_refused(line: str) -> None:
    source = (ROCQ / "Round.v").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"Round\.v must"):
        check.check_source("Round", source + line + "\n")


@pytest.mark.soundness
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Rocq: apt-get install coq")
@pytest.mark.parametrize(
    ("kept", "old", "new"),
    [
        ("sa_fl_5", "rate := (159 # 160);", "rate := (98 # 100);"),
        ("gap_fedavg", "gap := (1759150964155547 # 2500250000000000);", "gap := (704 # 1000);"),
        ("sa_fl_4", "decrease := (48886604939 # 962802625160);", "decrease := (51 # 1000);"),
        # The second is above the solver's least floor by less than 2%.
        (
            "bursts",
            "each_heterogeneity := (2864471923575 # 1099511627776)",
            "each_heterogeneity := (2553 # 1000)",
        ),
    ],
)
def test_rocq_accepts_a_theorem_and_not_a_smaller_bound(
    kept: str, old: str, new: str, tmp_path: Path
) -> None:
    """The smaller bound stands in the claim alone: the theorem is then another one, too."""
    proof = read_proof(ROCQ / "proofs" / f"{kept}.json")
    assert proof is not None
    text = proof.rocq_theorem()
    assert old in text
    good = _checked(text, tmp_path)
    assert good.returncode == 0, good.stderr
    bad = _checked(text.replace(old, new), tmp_path)
    assert bad.returncode == 1
    assert "Unable to unify" in bad.stderr


def _checked(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    theorem = folder / "theorem.v"
    theorem.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(ROCQ / "check.py"), str(theorem)], capture_output=True, text=True
    )

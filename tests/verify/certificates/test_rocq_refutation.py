"""Refutations as theorems for Rocq: what they say is the certificate's, and nothing else passes.

Whether Rocq accepts them is seen by `make rocq`, where Rocq is installed, and in the soundness run.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fltheory.verify.certificates.certificate_checker import CertificateError, check_certificate
from fltheory.verify.certificates.rocq_refutation import rocq_refutation
from fltheory.worst_case.proof.rocq_words import NotExportedError

ROOT = Path(__file__).parents[3]
ROCQ = ROOT / "rocq"
KEPT = sorted((ROOT / "verification" / "witnesses").glob("*.json"))
FEDAU = ROOT / "verification" / "certificates" / "fedau-3-step.json"
CHAINS = [FEDAU.parent / f"ca-fed-2-{of}.json" for of in ("server-step", "start", "units")]
OTHERS = sorted({*FEDAU.parent.glob("*.json")} - {FEDAU, *CHAINS})


def _program(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROCQ / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


read_back = _program("read_back")  # which the last imports
read_refutation = _program("read_refutation")
check = _program("check")
QUANTITIES = set(read_refutation.QUANTITIES.values())


def _document(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_every_kept_certificate_that_is_exported_is_checked() -> None:
    def is_exported(file: Path) -> bool:
        try:
            rocq_refutation(_document(file))
        except NotExportedError:
            return False
        return True

    refutations = ROOT / "verification"
    exported = {*filter(is_exported, refutations.glob("*/*.json"))}
    assert exported == {file for file in check.kept() if refutations in file.parents}


@pytest.mark.parametrize("file", [*KEPT, *CHAINS], ids=lambda file: file.stem)
def test_a_theorem_says_what_its_certificate_does(file: Path) -> None:
    document = _document(file)
    said = read_refutation.compare(rocq_refutation(document), document)
    truth = document["truth"]
    number = f"({truth.replace('/', ' / ')})" if "/" in truth else truth
    assert any(part.startswith(f"{number} <= ") for part in said.parts)


@pytest.mark.parametrize("rounds", [1000, 999])
def test_rounds_are_those_of_the_certificate(rounds: int) -> None:
    document = _document(KEPT[-1])
    text = rocq_refutation(document | {"setting": document["setting"] | {"rounds": rounds}})
    assert f"after s {rounds} (squared_distance s xs)" in text
    if rounds != document["setting"]["rounds"]:
        with pytest.raises(read_refutation.NotReadError, match="INR 999"):
            read_refutation.compare(text, document)


def test_what_the_library_does_not_know_is_named() -> None:
    """Every other kept certificate; each reason is one line."""
    reasons = {}
    for file in OTHERS:
        with pytest.raises(ValueError, match="that Rocq's library knows") as refusal:
            rocq_refutation(_document(file))
        reasons[file.stem] = str(refusal.value).partition("got one with ")[2]
        assert "\n" not in reasons[file.stem]
    assert reasons["ca-fed-2-any-start"] == "the algorithm AveragedIterate"
    assert reasons["scaffold-convex"] == "the algorithm Scaffold"


def test_an_error_of_fedaus_weights_is_the_checkers() -> None:
    """After a round a weight is 1: (p - 1)^2 = 9/25 is above 9/5 of the line, 21/125."""
    document = _document(FEDAU)
    text = rocq_refutation(document)
    assert "weight_error (2 / 5) 3 1 = (9 / 25)." in text
    assert "proof_line (2 / 5) 3 1 = (21 / 125)." in text
    read_refutation.compare(text, document)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(2 / 5) 3 1 =", "(2 / 5) 3 2 ="),
        ("(2 / 5) 3", "(1 / 5) 3"),
        ("(2 / 5) 3", "(2 / 5) 4"),
        ("(9 / 5)", "(8 / 5)"),
        ("(7 / 5)", "(6 / 5)"),
        (" <= weight_error", " >= weight_error"),
        ("0 < proof_line", "0 <= proof_line"),
        ("* proof_line", "+ proof_line"),
        ("120)%nat", "121)%nat"),
        ("Lemma error", "Axiom a : False.\nLemma error"),
        ("  rewrite", "  admit. rewrite"),
        ("Import Weights", "Import Process"),
        ("1 <= (7", "2 <= (7"),
    ],
)
def test_another_statement_on_weights_is_not_read_back(old: str, new: str) -> None:
    document = _document(FEDAU)
    text = rocq_refutation(document)
    assert old in text
    with pytest.raises(read_refutation.NotReadError):
        read_refutation.compare(text.replace(old, new), document)


def test_a_weights_error_that_comes_late_is_named() -> None:
    """From the second round on, no error of the kept certificate is above 9/5 of the line."""
    document = _document(FEDAU) | {"truth": "11/5"}
    with pytest.raises(ValueError, match="largest after more than 8 rounds"):
        rocq_refutation(document)


def _other(path: tuple[Any, ...], value: Any, file: Path = KEPT[-1]) -> dict[str, Any]:
    changed = deepcopy(_document(file))
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


HESSIAN = ("setting", "problem", "hessians", 0)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ((*HESSIAN,), [["50", "1"], ["1", "50"]], "Hessians that are not diagonal"),
        ((*HESSIAN, 0, 0), "40", "a gradient dissimilarity that is not finite"),
        (("setting", "problem", "optima", 0, 1), "1", "a gradient dissimilarity that is not rat"),
        (("setting", "problem", "target_weights", 0), "1/5", "unequal importances of clients"),
        (("setting", "problem", "noise_shares"), ["1", "1/2", "1", "1"], "clients of unequal noi"),
        (("setting", "participation", "name"), "Bernoulli", "the participation Bernoulli"),
        (("setting", "rounds"), 6000, "more than 5000 rounds"),
        (("setting", "algorithm", "local_steps"), 2000, "more than 1000 local steps"),
        (("statement", "symbols", "m"), "Gamma", "the number Gamma"),
        (("statement", "quantity", "of"), "biased_excess_loss", "the quantity biased_excess_loss"),
        (("statement", "quantity", "weights"), "r", "a weighted mean over rounds"),
        (("statement", "quantity", "reduction"), "min", "the min over rounds"),
        (("statement", "bound"), "log(mu)", r"the formula log\(mu\)"),
        (("statement", "bound"), "mu**q", "the exponent q"),
        (("statement", "conditions", "smooth clients"), "q < oo", "the condition q < oo"),
    ],
)
def test_each_thing_that_is_not_known_is_named(
    path: tuple[Any, ...], value: Any, reason: str
) -> None:
    with pytest.raises(ValueError, match=f"got one with {reason}"):
        rocq_refutation(_other(path, value))


RAW = ("setting", "problem")
SCHEDULE = ("setting", "algorithm", "algorithm", "algorithm", "step_sizes")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ((*RAW, "sigma"), "1", "clients' gradients with noise"),
        ((*RAW, "optima", 0), ["20", "0"], "models of several coordinates"),
        ((*RAW, "target_weights", 0), "1/3", "unequal importances of clients"),
        ((*SCHEDULE, "scale"), "1/3", "step sizes that are not harmonic, or averages with other"),
        (("setting", "algorithm", "name"), "Averaged", "the algorithm Averaged"),
        (("setting", "rounds"), 6000, "more than 5000 rounds"),
        (("setting", "participation", "start"), [1, 1], "a chain that does not start from its"),
        (
            ("setting", "participation", "correlation", 0),
            "1/2",
            "a truth above zero of a chain with",
        ),
        (("setting", "participation", "availability", 0), "1", "clients that are always or never"),
        (("setting", "participation", "name"), "Cyclic", "the participation Cyclic"),
        (("bound",), "70", "a bound of 70: 16384 terms of its sums put the theorem's between 6"),
    ],
)
def test_each_thing_that_is_not_known_of_a_chain_is_named(
    path: tuple[Any, ...], value: Any, reason: str
) -> None:
    """The printed bound of ca-fed-2-start is 71.17, by the independent checker."""
    with pytest.raises(ValueError, match=f"got one with {reason}"):
        rocq_refutation(_other(path, value, CHAINS[1]))


# ---------------------------------------------------------------- mutants

SLIPS = [
    ("<=", ">="),
    (" <= ", " < "),
    (" > 0", " >= 0"),
    (" + ", " - "),
    (" * ", " / "),
    (" = ", " <= "),
    ("forall r", "exists r"),
    ("forall x", "exists x"),
    ("strongly_convex", "smooth"),
    ("full_gradient", "gradient"),
    ("minus", "add"),
    ("squared_distance", "squared_gradient"),
    ("average", "largest"),
    ("Process.sigma", "server_sigma"),
    ("sqrt", "Rabs"),
    (" /\\\n", " \\/\n"),
    ("(r < ", "(r <= "),
    ("mean_loss s x", "mean_loss s (point s xs)"),
    ("true_objective", "biased_objective"),
    ("biased_objective s w -", "true_objective s w -"),
    ("w_B)", "w_star)"),
    ("is_lub", "bound"),
    ("client_loss s i x", "client_loss s i w_star"),
    ("largest", "sum"),
    ("INR t *", "INR t +"),
    ("lambda_P ^ m", "lambda_P * INR m"),
    ("2 * C_P", "C_P"),
    ("(/ INR t) ^ 2", "/ INR t"),
    ("delayed_step s delay t", "step s t"),
    ("S_2 /", "S_0 /"),
    ("least (", "id ("),
    ("exists (delay : nat -> nat) S_0", "forall (delay : nat -> nat) S_0"),
    ("sums_to", "infinite_sum"),
    ("diagonalises s U eigenvalues V", "diagonalises s V eigenvalues U"),
    ("at_average", "Rmax"),
    ("r > 1 / 2", "r > 1 / 3"),
]
EXTRA = [
    "Axiom false : False.\n",
    "Definition squared_distance (a : setting) (b : list Q) (x : vectors a) : R := 2.\n",
    "Definition after (a : setting) (r : nat) (f : vectors a -> R) : R := 2.\n",
    "Definition mean_loss : R := 0.\n",
    "Definition smooth : R := 0.\n",
    "Unset Guard Checking.\n",
    "Definition at_average (a : chain_setting) (t : nat) (f : R -> R) : R := 200.\n",
    "Lemma at_average : True.\nProof. exact I. Qed.\n",
    "Definition ln : term := Whole 0.\n",
    "Lemma more : False.\nProof. Admitted.\n",
    "Lemma more : False.\nProof. exact I. Abort. Axiom more : False. Qed.\n",
    'Notation "a <= b" := (True).\n',
]


def _mutant(text: str, rng: random.Random) -> str:
    """Return a file of which one number, sign, word, line or the proof's end is another."""
    kind = rng.randrange(5)
    start, end = text.index("Theorem "), text.index("Proof.\n  split")
    if kind == 0:  # a digit of setting, symbols or statement
        first = text.index("Definition s ")
        last = text.index("Definition condition_0" if "condition_0" in text else "Lemma kept")
        places = [
            i
            for i in (*range(first, last), *range(start, end))
            if text[i].isdigit() and not re.match(r"_\d", text[i - 1 : i + 1])
        ]
        place = rng.choice(places)
        other = rng.choice([d for d in "0123456789" if d != text[place]])
        return text[:place] + other + text[place + 1 :]
    if kind == 1:
        present = [slip for slip in SLIPS if slip[0] in text[start:end]]
        old, new = rng.choice(present)
        where = rng.choice([m.start() for m in re.finditer(re.escape(old), text[start:end])])
        return text[: start + where] + new + text[start + where + len(old) :]
    if kind == 2:
        parts = text[start:end].split(" /\\\n")
        del parts[rng.randrange(len(parts))]
        return text[:start] + " /\\\n".join(parts) + text[end:]
    if kind == 3:
        lines = [m.start() + 1 for m in re.finditer(r"\n(?=Definition|Theorem|Lemma)", text)]
        place = rng.choice(lines)
        return text[:place] + rng.choice(EXTRA) + text[place:]
    old, new = rng.choice(
        [
            ("Qed.\n\nPrint", "Admitted.\n\nPrint"),
            ("Qed.\n\nTheorem", "Qed.\nAxiom more : False.\n\nTheorem"),
            ("Open Scope R_scope.", "Open Scope Q_scope."),
            ("Process Enclose", "Enclose Process"),
            ("Definition q : R := Q2R (coin s)", "Definition q : R := Q2R (client_lr s)"),
            ("Definition mu : R", "Definition smooth : R"),
            ("  sigma := ", "  server_sigma := "),
            ("  exact (proj2", "  admit; exact (proj2"),
            ("  split; [exact truth|].", "  split; [admit|]."),
            ("Open Scope R_scope.", "Open Scope R_scope. Axiom more : False."),
            ("Definition D : R", "Definition G : R"),
            ("sqrt (D ^ 2 + sigma ^ 2)", "sqrt (D ^ 2 - sigma ^ 2)"),
            ("Definition sigma : R := 0", "Definition sigma : R := 1"),
            ("frobenius s U * frobenius s V", "frobenius s U * frobenius s U"),
            ("let psi := G ^ 2", "let psi := G"),
            ("ln (1 / lambda_P)", "ln lambda_P"),
            ("S_1 : R := step_sum", "S_1 : R := 2 * step_sum"),
            ("origin := ", "ball_centre := "),
            ("root_0 * ", ""),
            ("lra. Qed.", "lra. Qed. Axiom more : False."),
            ("Series Chained", "Chained Series"),
        ]
    )
    return text.replace(old, new, 1)


def _mutants(count: int) -> int:
    """Return how many mutants were other files; none of them may say what the certificate does."""
    rng = random.Random(38)
    documents = [_document(file) for file in [*KEPT, *CHAINS]]
    texts = [rocq_refutation(document) for document in documents]
    tried = 0
    for _ in range(count):
        index = rng.randrange(len(texts))
        changed = _mutant(texts[index], rng)
        if re.sub(r"\s+", " ", changed) == re.sub(r"\s+", " ", texts[index]):
            continue
        tried += 1
        with pytest.raises(read_refutation.NotReadError):
            read_refutation.compare(changed, documents[index])
    return tried


def test_no_other_statement_is_read_back_as_the_certificates() -> None:
    assert _mutants(150) > 100


@pytest.mark.soundness
def test_none_of_thousands_of_other_statements_is() -> None:
    assert _mutants(5_000) > 4_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # Rocq would read the next definition as a comment, Python the rest of the line.
        ({"L : R := 50.": "L : R := 50 #(* ."}, "no comment after its first"),
        ({"L : R := 50.": "L : R := 50 (* .", "mu : R := 50.": "mu : R := 50 *)."}, "no comment"),
        ({"  mu > 0": "  (* mu > 0", "+ mu) /\\": "+ mu) /\\ *)"}, "no comment"),
        ({"L : R := 50.": "L : R := 50 # 1."}, "must be of the shape"),
        ({"sa-fl/5 (printed)": "sa-fl/5 (derived)"}, "the statement: the theorem says sa-fl/5 (d"),
    ],
)
def test_comments_and_other_names_are_refused(changes: dict[str, str], message: str) -> None:
    document = _document(KEPT[-1])
    text = rocq_refutation(document)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(read_refutation.NotReadError, match=re.escape(message)):
        read_refutation.compare(text, document)


def test_a_proof_of_its_own_is_refused() -> None:
    text = rocq_refutation(_document(KEPT[0]))
    ending = "eq_refl)|]. Qed. Axiom a : False. Theorem b : False. Proof. exact (a)"
    for old, new in (
        ("eq_refl)|]", ending),
        ("vm_cast_no_check (eq_refl true)", "exact more"),
        ("checked the_refutation = true", "checked the_refutation = checked the_refutation"),
    ):
        with pytest.raises(read_refutation.NotReadError, match="must be of the shape"):
            read_refutation.read(text.replace(old, new, 1))


# ---------------------------------------------------------------- proofs that would be more

HIDDEN = "(transparent_abstract (exact (fun _ _ _ => 10000)) using at_average)"
MORE = f"ltac:(assert (chain_setting -> nat -> (R -> R) -> R) by {HIDDEN}; exact (Whole 1))"
# Before a lemma: a command within a proof, a name that hides a word of the statement, a string that
# hides the theorem from Rocq.
BEFORE = [
    "Lemma zzz : True.\nProof. refine ?[g].\n[g]: { Definition refutation := I.\n[g]: { Abort.",
    "Lemma truth : True.\nProof. split.\n[g]: { Abort.",
    f"Definition zz : term := {MORE}.",
    f"Definition t_psi : term := {MORE}.",
    "Definition reals : list R := [ltac:(exact 1)].",
    "Lemma rate : ltac:(exact True).\nProof. split. Qed.",
    "Lemma rate : True with at_average : True.\nProof. split. Qed.",
    'Lemma rate : True.\nProof. try fail "hidden. lra. Qed.',
    'Lemma rate : "a" = "a".\nProof. reflexivity. Qed.',
    "Lemma at_average : True.\nProof. split. Qed.",
    "Lemma rate : True. split. Qed.",
    "Lemma rate : True.\nProof. split. Qed. Abort.",
    "Lemma rate : True.\nProof. split.",
    "Lemma rate : True.\nProof. Proof. split. Qed.",
    "Definition at_average : term := (Whole 1).",
    "Ltac at_average := idtac.",
    "Ltac by_roots := abstract lra.",
    "Notation at_average := ln.",
    "Theorem rate : True.\nProof. split. Qed.",
    "Proof. split. Qed.",
]
# In the place of a proof's only tactic.
WITHIN = [
    "[g]: { Abort",
    "1: { by_numbers",
    "all: by_numbers",
    "{ by_numbers",
    "refine ?[g]. by_numbers",
    "- by_numbers",
    "Abort. by_numbers",
    "Restart. by_numbers",
    'idtac "a". by_numbers',
    "abstract by_numbers",
    "abstract by_numbers using at_average",
    "assert True by (transparent_abstract split using ln). by_numbers",
    "exact ltac:(by_numbers)",
    "exact (fun x : R => x)",
    "by_numbers; Abort",
    "split; [by_numbers|admit]",
    "let x := constr:(1) in by_numbers",
    "by_numbers...",
]


@pytest.mark.parametrize("sentence", BEFORE)
@pytest.mark.parametrize("place", ["Lemma kept ", "Lemma truth ", "Theorem "])
def test_nothing_but_its_own_lemmas_is_read(place: str, sentence: str) -> None:
    text = rocq_refutation(_document(CHAINS[1]))
    assert place in text
    with pytest.raises(read_refutation.NotReadError):
        read_refutation.read(text.replace(place, f"{sentence}\n{place}"))


@pytest.mark.parametrize("tactic", WITHIN)
@pytest.mark.parametrize("place", ["Proof. by_numbers. Qed.", "  split; [by_numbers|]."])
def test_nothing_but_its_own_tactics_is_read(place: str, tactic: str) -> None:
    text = rocq_refutation(_document(CHAINS[1]))
    changed = text.replace(place, place.replace("by_numbers", tactic), 1)
    assert changed != text
    with pytest.raises(read_refutation.NotReadError):
        read_refutation.read(changed)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (CHAINS[1], "local_work := 1%nat", "local_work := ltac:(exact 1%nat)"),
        (CHAINS[1], "eigenvalues : list R := [1", "eigenvalues : list R := [ltac:(exact 1)"),
        (CHAINS[1], "list (list R) := [[1;", "list (list R) := [[ln;"),
        (CHAINS[1], "psi := G ^ 2", "psi := ltac:(exact G) ^ 2"),
        (
            CHAINS[1],
            "Definition root_0 : R := sqrt (100",
            "Definition root_0 : R := sqrt (1\u06600",
        ),
        (CHAINS[1], "Definition root_1", "Definition root_\u0661"),
        (CHAINS[1], "Lemma kept", "Lemma\u00a0kept"),
        (KEPT[-1], "case := s", "case := ltac:(assert nat by (abstract lia using after); exact s)"),
        (KEPT[-1], "dimension := 2%nat", "dimension := ltac:(exact 2%nat)"),
        (KEPT[-1], "L : R := 50", "L : R := ltac:(exact 50)"),
        (KEPT[-1], "mu > 0", "ltac:(exact (mu > 0))"),
        (KEPT[-1], "mu > 0", '"mu" > 0'),
        (KEPT[-1], "Definition etabar", "Definition participants"),
        (KEPT[-1], "Below (Whole 0)", "Below ltac:(exact (Whole 0))"),
        (KEPT[-1], "Qed.\n\nPrint", "[g]: { Abort. Qed.\n\nPrint"),
        (FEDAU, "field.", "abstract field using proof_line."),
        (FEDAU, "(9 / 5)", "(\u0669 / 5)"),
    ],
)
def test_definitions_hold_numbers_and_formulas_alone(file: Path, old: str, new: str) -> None:
    text = rocq_refutation(_document(file))
    assert old in text
    with pytest.raises(read_refutation.NotReadError):
        read_refutation.read(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (CHAINS[1], "S_2 Y_0 Y_1 <= 83.", "S_2 Y_0 Y_1 <= 96."),
        (CHAINS[1], "96 <= at_average", "50 <= at_average"),
        (KEPT[-1], "<= (3 / 2) /", "<= (9 / 5) /"),
        (FEDAU, "<= (7 / 5) <", "<= (9 / 5) <"),
    ],
)
def test_a_truth_is_above_its_bound(file: Path, old: str, new: str) -> None:
    text = rocq_refutation(_document(file))
    assert old in text
    with pytest.raises(read_refutation.NotReadError, match="truth must be above the bound, got"):
        read_refutation.read(text.replace(old, new))


# ---------------------------------------------------------------- with Rocq


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled."""
    folder = tmp_path_factory.mktemp("rocq")
    check.compile_library(folder)
    return folder


def _checked(text: str, library: Path) -> subprocess.CompletedProcess[str]:
    (library / "theorem.v").write_text(text, encoding="utf-8")
    return subprocess.run(
        ["coqc", "-Q", ".", "fltheory", "theorem.v"], cwd=library, capture_output=True, text=True
    )


@pytest.mark.soundness
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Rocq: apt-get install coq")
def test_rocq_accepts_a_refutation_and_no_larger_truth(library: Path) -> None:
    """The truth of sa-fl/4 is 0.145044, by the independent checker: below 146/1000."""
    document = _document(KEPT[0])
    good = _checked(rocq_refutation(document), library)
    assert good.returncode == 0, good.stderr
    check.check_assumptions(good.stdout)
    bad = _checked(rocq_refutation(document | {"truth": "146/1000"}), library)
    assert bad.returncode == 1
    assert "checked the_refutation" in bad.stderr


@pytest.mark.soundness
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Rocq: apt-get install coq")
def test_rocq_accepts_a_refutation_on_a_chain_and_no_other_number(library: Path) -> None:
    """The truth of ca-fed-2-start is 107.93, and its bound 71.17, by the independent checker."""
    document = _document(CHAINS[1])
    text = rocq_refutation(document)
    good = _checked(text, library)
    assert good.returncode == 0, good.stderr
    check.check_assumptions(good.stdout, text)
    with pytest.raises(ValueError, match="axioms alone, got Classical_Prop"):
        check.check_assumptions(good.stdout)
    for other in (
        rocq_refutation(document | {"truth": "108"}),
        text.replace("(Whole 83)", "(Whole 70)").replace("<= 83.", "<= 70."),
        text.replace("eigenvalues : list R := [1; 0", "eigenvalues : list R := [1; (1 / 2)"),
        text.replace("H : R := (1665 / 2)", "H : R := 840"),
    ):
        assert other != text
        assert _checked(other, library).returncode == 1


@pytest.mark.soundness
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Rocq: apt-get install coq")
def test_rocq_refuses_what_a_hidden_word_makes_true(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the reader lets it pass: the truth is 107.93, and 9600 is below 10000."""
    text = rocq_refutation(_document(CHAINS[1]))
    check.check_theorem(text, library)
    start = text.index("Lemma truth")
    end = text.index("Lemma bounded")
    lemma = text[start:end].partition("Proof.")[0] + "Proof. unfold at_average. lra. Qed.\n"
    hidden = f"{text[:start]}Definition zz : term := {MORE}.\n{lemma}{text[end:]}"
    hidden = hidden.replace("96 <= at_average", "9600 <= at_average")
    assert _checked(hidden, library).returncode == 0
    with pytest.raises(read_refutation.NotReadError):
        check.check_theorem(hidden, library)
    monkeypatch.setattr(read_refutation, "_check_proofs", lambda *_: None)
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        check.check_theorem(hidden, library)
    assert 'expected to have type "Restated.restated"' in " ".join(refusal.value.stdout.split())


@pytest.mark.soundness
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Rocq: apt-get install coq")
@pytest.mark.parametrize("of", sorted(QUANTITIES))
def test_rocqs_process_is_the_checkers(of: str, library: Path) -> None:
    """A truth that is smaller by 1e-9 than the checker's moments is accepted, a larger one not."""
    rng = random.Random(of)
    n, d, is_safari = rng.randint(2, 4), rng.randint(1, 3), rng.random() < 0.5

    def tenths(least: int, most: int) -> str:
        return str(Fraction(rng.randint(least, most), 10))

    steps = {"client_lr": tenths(1, 5), "local_steps": rng.randint(1, 4)}
    setting = {
        "algorithm": {"name": "Safari", "q": tenths(1, 9), "assist_lr": tenths(1, 5), **steps}
        if is_safari
        else {"name": "FedAvg", "server_lr": tenths(5, 15), **steps},
        "problem": {
            "hessians": [
                [[tenths(1, 20) if a == b else "0" for b in range(d)] for a in range(d)]
                for _ in range(n)
            ],
            "optima": [[tenths(-30, 30) for _ in range(d)] for _ in range(n)],
            "sigma": tenths(1, 20),
            "server_sigma": tenths(1, 20),
            "target_weights": [str(Fraction(1, n))] * n,
        },
        "participation": {"name": "UniformSubset", "size": rng.randint(1, n - 1), "excluded": [0]},
        "rounds": rng.randint(2, 5),
        "x0": [tenths(-30, 30) for _ in range(d)],
    }
    quantity = {"of": of, "reduction": "mean", "rounds": [0, -1], "weights": "1"}
    statement = {
        **{name: {} for name in ("symbols", "definitions", "round_symbols", "conditions")},
        "quantity": quantity,
        "bound": "1 - 1",
    }
    document = {
        "version": 3, "theorem": "a", "reading": "b", "statement": statement, "setting": setting,
        "truth": "1", "bound": "0",
    }  # fmt: skip
    truth = _truth(document)
    for less, status in ((Fraction(1, 10**9), 0), (Fraction(-1, 10**9), 1)):
        changed = document | {"truth": str(round(truth - less, 12))}
        text = rocq_refutation(changed)
        read_refutation.compare(text, changed)
        found = _checked(text, library)
        assert found.returncode == status, found.stderr


def _truth(document: dict[str, Any]) -> Fraction:
    """Return what the independent checker brackets, by halving."""
    low, high = Fraction(0), Fraction(10**4)
    while high - low > Fraction(1, 10**11):
        middle = round((low + high) / 2, 12)
        try:
            check_certificate(document | {"truth": str(middle), "bound": "0"})
        except CertificateError:
            high = middle
        else:
            low = middle
    return low

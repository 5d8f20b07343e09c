"""Change exported theorems, and count the accepted ones that state something else.

An exported file gets a number, a sign, an inequality, a part of the statement or a lemma's name
changed at random, or is printed by an exporter that gets large numbers wrong. Each is compiled with
the library, with the axioms compared as `make rocq` does, and read back and compared with its
certificate. The target: no file whose statement differs from the claim is accepted by both, and
none with a bound below the claimed one is accepted by Rocq. A changed multiplier that still proves
the claim is not a miss, as the statement is the same.

    python benchmarks/rocq_mutants.py [--compiled 200] [--read 5000] [--refutations 60] [--seed 38]

Refutations of CA-Fed's Theorem 2 get a number, a sign, an inequality or a word changed anywhere,
including their lemmas, or a command inserted before a lemma or within a proof. The reader must
accept none of these.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "rocq")]

import check  # noqa: E402
import read_back  # noqa: E402
import read_refutation  # noqa: E402

from fltheory.verify.certificates.rocq_refutation import rocq_refutation  # noqa: E402
from fltheory.worst_case import read_proof  # noqa: E402

KEPT = sorted((ROOT / "rocq" / "proofs").glob("*.json"))
SLOW = ("fedavg_ten_steps",)  # only read back
SMALLER_IS_STRONGER = {
    "rate": True,
    "heterogeneity": True,
    "noise": True,
    "server_noise": True,
    "start": True,
    "start_heterogeneity": True,
    "gap": False,
    "decrease": False,
}
SIGNS = (
    (" + ", " - "),
    (" - ", " + "),
    ("minus ", "add "),
    ("(1 - ", "(1 + "),
    ("[(", "[(-"),
    ("; (", "; (-"),
    (":= (", ":= (-"),
    (":= 1", ":= (-1)"),
    ("interpolable 1 ", "interpolable (-1) "),
)
INEQUALITIES = (
    ("<= d * d", "< d * d"),
    ("<= d * d", ">= d * d"),
    ("<= ", ">= "),
    ("<= ", "< "),
    ("\n  <= ", "\n  = "),
    (" <= n)%nat", " < n)%nat"),
    (" <= n)%nat", " >= n)%nat"),
    ("INR n <= ", "INR n >= "),
    ("(i < ", "(i <= "),
    ("(i < ", "(i > "),
)
WORDS = (
    ("forall (V : space)", "exists (V : space)"),
    ("(xs : V)", "(xs x0 : V)"),
    ("d * d", "d"),
    ("d * d", "d * d * d"),
    ("square ", "inner x "),
    ("(x xs : V)", "(xs x : V)"),
    ("-> V) (x", "-> V) (xs"),
    ("draws_uniformly draws n", "draws_uniformly draws m"),
    ("mean_gradient", "total"),
    ("mean_loss", "sum"),
    ("clients_round", "server_round"),
    ("exact_gradients", "noisy_gradients"),
    ("noisy_gradients G xi", "exact_gradients G"),
    ("expectation draws", "expectation noises"),
    ("(minus x xs)", "(minus x x)"),
    ("(minus x xs)", "zero"),
    ("unbiased noises sigma", "unbiased noises 0"),
    ("probabilities draws", "True"),
    ("xs) zero", "xs) xs"),
    ("everywhere := true", "everywhere := false"),
    ("everywhere := false", "everywhere := true"),
    ("descent := true", "descent := false"),
    ("noisy := true", "noisy := false"),
    ("rate ^ r", "rate ^ (r + 1)"),
    ("iterates 0%nat", "iterates 1%nat"),
    ("(0 < T)", "(0 <= T)"),
    ("= h ->", "<= h ->"),
    ("/ INR T", "/ (INR T * INR T)"),
    ("average T", "sum T"),
    ("xs : V) (h : R)", "xs : V) (h h0 : R)"),
    ("(is_there there)", "(is_there [])"),
    ("(present there)", "(length there)"),
    ("x t)", "x (t + 1))"),
    ("(x, zero)", "(x, x)"),
    ("(/ INR T)", "(/ INR (S T))"),
    ("(summing ", "(fun round => round) ("),
    ("of_distance := true", "of_distance := false"),
    ("of_gap := false", "of_gap := true"),
    ("over_present := false", "over_present := true"),
    ("tower iterates", "tower (fun r => iterates (S r))"),
    (" ->\n", " \\/\n"),
    (" ->\n", " /\\\n"),
)
ADDED = (
    "Axiom false : False.\n",
    "Axiom one_round : forall c w, accepted c w = true -> holds c.\n",
    "Definition square {V : space} (v : V) : R := 0.\n",
    "Definition interpolable {V : space} (L mu : R) (F : V -> R) (G : V -> V) : Prop := False.\n",
    "Definition draws_uniformly (l : law (nat -> bool)) (n m : nat) : Prop := False.\n",
    "Definition INR (n : nat) : R := 0.\n",
    'Notation "a <= b" := (b <= a).\n',
    'Notation "a / b" := (a * 0) (b at level 40).\n',
    "Local Unset Guard Checking.\n",
    "Require Import Classical.\n",
    "Section S. Hypothesis no : False.\n",
    "Lemma no : True.\nProof.\n  refine ?[g].\n  [g]: { Definition square := I.\n[g]: { Abort.\n",
    "Definition no : nat := ltac:(assert nat by (abstract exact 0%nat using square); exact 0).\n",
    'Lemma no : True.\nProof. try fail "hidden.\n',
)
NAMES = (
    ("one_round the_claim", "one_descent the_claim"),
    ("one_descent the_claim", "one_round the_claim"),
    ("one_round the_claim", "all_rounds the_claim"),
    ("one_in_bursts the_claim", "one_round the_claim"),
    ("bursts_in_numbers H", "in_numbers H"),
    ("OneRound Bound Bursts", "OneRound Bound Memory"),
    ("ltac:(vm_compute; reflexivity)", "I"),
    ("ltac:(vm_compute; reflexivity)", "eq_refl"),
    ("ltac:(vm_compute; reflexivity)", "ltac:(native_compute; reflexivity)"),
    ("all_rounds ", "all_rounds_gain "),
    ("all_rounds_steady ", "all_rounds "),
    ("geometric_value by lra", "geometric_one"),
    ("geometric_one", "geometric_value by lra"),
    ("in_numbers H", "cbv in H"),
    ("lra.\nQed", "nra.\nQed"),
    ("lra.\nQed", "admit.\nAdmitted"),
    ("Qed.", "Admitted."),
    ("Qed.", "Defined."),
    ("Qed.", "Abort."),
    ("Theorem bound", "Lemma bound"),
    ("Theorem bound", "Axiom bound"),
    ("Theorem bound_for_every_loss :", "Theorem bound_for_every_los :"),
    ("Print Assumptions bound_for_every_loss_after_every_round", "Print Assumptions one_round"),
    ("Print Assumptions bound_for_every_loss_after_every_round.", ""),
    ("Print Assumptions bound", "Check bound"),
    ("the_claim the_certificate", "the_claim the_claim"),
    ("OneRound Bound Descent Rounds", "OneRound Bound Rounds Quadratic"),
)


def _replaced(text: str, rng: random.Random, pairs: tuple[tuple[str, str], ...]) -> str:
    """Return a text with a random occurrence of one of the pairs replaced."""
    old, new = rng.choice([pair for pair in pairs if pair[0] in text])
    at = rng.choice([found.start() for found in re.finditer(re.escape(old), text)])
    return text[:at] + new + text[at + len(old) :]


def _number(text: str, rng: random.Random) -> str:
    """Change a digit, a digit's place, or an integer in a theorem, the claim or the proof."""
    parts = ["Definition the_claim", "Definition the_cert", "Theorem ", "_every_round :"]
    begin = rng.choice([part for part in parts if part in text])
    at = text.index(begin) + len(begin)
    numbers = list(re.finditer(r"(?<![A-Za-z_])\d+", text[at:]))
    found = rng.choice(numbers[: max(20, len(numbers) // 2)])
    old = found[0]
    place = rng.randrange(len(old))
    new = rng.choice(
        [
            old[:place] + str((int(old[place]) + rng.randrange(1, 10)) % 10) + old[place + 1 :],
            old + rng.choice("0123456789"),
            old[:-1] or "7",
            str(int(old) + 1),
            str(max(int(old) - 1, 0)),
        ]
    )
    start = at + found.start()
    return text[:start] + new + text[start + len(old) :]


def _sign(text: str, rng: random.Random) -> str:
    return _replaced(text, rng, SIGNS)


def _inequality(text: str, rng: random.Random) -> str:
    return _replaced(text, rng, INEQUALITIES)


def _statement(text: str, rng: random.Random) -> str:
    """Change a word, or leave out, repeat or insert a line."""
    kind = rng.randrange(4)
    if kind < 2:
        return _replaced(text, rng, WORDS)
    at = rng.choice([text.index("Theorem "), text.rindex("Theorem ")])
    if kind == 2:
        lines = text[at : text.index("Proof.", at)].splitlines(keepends=True)
        place = rng.randrange(1, len(lines))
        lines[place : place + 1] = lines[place : place + 1] * rng.choice([0, 2])
        return text[:at] + "".join(lines) + text[text.index("Proof.", at) :]
    return text[:at] + rng.choice(ADDED) + text[at:]


def _name(text: str, rng: random.Random) -> str:
    return _replaced(text, rng, NAMES)


def _printer(text: str, rng: random.Random) -> str:
    """Print all numbers of some length wrongly, or one number wrongly wherever it occurs."""
    most = rng.choice([1, 2, 3, 4, 5, 8, 12])
    if rng.random() < 0.5:
        wrong = rng.choice([lambda t: "0", lambda t: "1", lambda t: t[:most], lambda t: t[::-1]])
        return re.sub(
            rf"(?<![A-Za-z_])\d{{{most + 1},}}",
            lambda found: wrong(found[0]).lstrip("0") or "0",
            text,
        )
    claim = text[text.index("Definition the_claim") : text.index("Definition the_cert")]
    old = rng.choice(re.findall(r"(?<![A-Za-z_])\d+", claim))
    return re.sub(rf"(?<![A-Za-z_\d]){old}(?!\d)", str(int(old) + rng.choice([-1, 1, 2])), text)


KINDS: dict[str, Callable[[str, random.Random], str]] = {
    "number": _number,
    "sign": _sign,
    "inequality": _inequality,
    "statement": _statement,
    "name": _name,
    "printer": _printer,
}


def mutant(text: str, kind: str, rng: random.Random) -> str:
    """Return an exported file with a change of the given kind, never unchanged."""
    made = text
    while made == text:
        made = KINDS[kind](text, rng)
    return made


def exported(file: Path) -> str:
    """Return a kept certificate as a theorem."""
    proof = read_proof(file)
    if proof is None:
        raise ValueError(f"{file} must be a proof for every client loss")
    return proof.rocq_theorem()


def said(text: str) -> str:
    """Return a file's statements, without the proofs and their input to the library."""
    parts = r"^Definition the_(?:claim|certificate) .*?\|\}\.$|^Proof\.$.*?^Qed\.$"
    return re.sub(parts, "", text, flags=re.MULTILINE | re.DOTALL)


def is_read(text: str, certificate: dict[str, Any]) -> bool:
    """Whether a file is read back as its certificate's claim."""
    try:
        read_back.compare(text, certificate)
    except read_back.NotReadError:
        return False
    return True


def is_stronger(text: str, certificate: dict[str, Any]) -> bool:
    """Whether a file of the right form states a bound below the claimed one."""
    try:
        numbers = read_back.read(text)
    except read_back.NotReadError:
        return False
    meant = read_back.claimed(certificate)
    return any(
        name in meant and name in numbers and (numbers[name] < meant[name]) == smaller
        for name, smaller in SMALLER_IS_STRONGER.items()
        if numbers.get(name) != meant.get(name)
    )


def is_compiled(text: str, folder: Path) -> bool:
    """Whether Rocq accepts a file, using only the axioms of the real numbers."""
    (folder / "Exported.v").write_text(text, encoding="utf-8")
    try:
        printed = subprocess.run(
            ["coqc", "-Q", ".", "fltheory", "Exported.v"],
            cwd=folder,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
        ).stdout
        check.check_assumptions(printed, text)
    except (subprocess.SubprocessError, ValueError):
        return False
    return True


def compiled(count: int, seed: int) -> int:
    """Print what Rocq and the reader say of mutants by kind; return how many miss the target."""
    rng = random.Random(seed)
    files = [file for file in KEPT if file.stem not in SLOW]
    tallies: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check.compile_library(folder)
        for index in range(count):
            file = files[index % len(files)]
            kind = list(KINDS)[index % len(KINDS)]
            certificate = read_back.certificate_in(file)
            text = exported(file)
            changed = mutant(text, kind, rng)
            by_rocq, by_reader = is_compiled(changed, folder), is_read(changed, certificate)
            same = said(changed) == said(text)
            tallies[kind] += Counter(
                {
                    "made": 1,
                    "Rocq": by_rocq,
                    "reader": by_reader,
                    "both": by_rocq and by_reader,
                    "stronger, Rocq": by_rocq and is_stronger(changed, certificate),
                }
            )
            if by_rocq and ((by_reader and not same) or is_stronger(changed, certificate)):
                missed += 1
                print(f"missed: {kind} {index} of {file.stem}, seed {seed}")
    for kind, tally in tallies.items():
        print(f"{kind}: {', '.join(f'{tally[what]} {what}' for what in tally)}")
    total = sum(tallies.values(), Counter[str]())
    print(
        f"compiled {total['made']}: Rocq accepted {total['Rocq']}, the reader {total['reader']}, "
        f"both {total['both']}; {missed} missed (target 0)"
    )
    return missed


def read_mutants(count: int, seed: int) -> int:
    """Print how many mutants are read back as the claim; return how many state something else."""
    rng = random.Random(seed + 1)
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in KEPT]
    texts = [exported(file) for file in KEPT]
    accepted = missed = 0
    for index in range(count):
        which = rng.randrange(len(texts))
        changed = mutant(texts[which], list(KINDS)[index % len(KINDS)], rng)
        if is_read(changed, documents[which]):
            accepted += 1
            if said(changed) != said(texts[which]):
                missed += 1
                print(f"missed: {index} of {KEPT[which].stem}, seed {seed}")
    print(f"read back {count}: {accepted} accepted, {missed} of them with another statement")
    return missed


REFUTATION_SLIPS = (
    *SIGNS[:2], *INEQUALITIES[2:4], *INEQUALITIES[8:], (" <= ", " < "), (" * ", " + "),
    ("is_lub", "bound"), ("U", "V"), ("w_B", "w_star"), ("sqrt ", "Rabs "), ("biased_", "true_"),
    ("true_", "biased_"), ("ln ", "exp "), ("lambda_P ^ m", "lambda_P"), ("S_0", "S_2"),
    ("Y_1", "Y_0"), ("delayed_step s delay", "step s"), ("least ", "id "), (" r ", " 1 "),
    ("D", "H"), ("Qed.", "Admitted."), ("by_numbers", "admit"), ("exact chain", "exact diagonal"),
    ("(eq_refl true)", "I"), ("/\\", "\\/"), ("forall", "exists"), ("root_0", "1"), ("2 * ", ""),
)  # fmt: skip


# Commands to insert after a sentence.
COMMANDS = (
    "refine ?[g]. [g]: { Abort.", "[g]: { Definition ln := I.", "{ lra. }", "Abort.", "Restart.",
    'try fail "hidden.', 'idtac "', "abstract lra.", "transparent_abstract lra using at_average.",
    "Definition ln : term := Whole 0.", "Notation ln := exp.", "Ltac by_numbers := idtac.",
    "Definition t_psi : term := ltac:(assert R by (abstract exact 0 using ln); exact t_bound).",
    "Lemma rate : True with sums_to : True.", "Lemma least : True. Proof. split. Qed.", "Admitted.",
    "Require Import Classical.", "Axiom no : False.", "Hypothesis no : False.",
    "Unset Guard Checking.",
)  # fmt: skip


def _with_command(text: str, rng: random.Random) -> str:
    """Return a refutation with a command inserted after a sentence, possibly in a proof."""
    ends = [found.end() for found in re.finditer(r"\.(?=\s)", text) if found.end() > 300]
    at = rng.choice(ends)
    return f"{text[:at]}\n{rng.choice(COMMANDS)}{text[at:]}"


def refutations(count: int, seed: int) -> int:
    """Print verdicts on changed refutations; return how many Rocq and the reader both accept."""
    rng = random.Random(seed + 2)
    names = ("ca-fed-2-start", "ca-fed-2-units")
    files = [ROOT / "verification" / "certificates" / f"{name}.json" for name in names]
    by_rocq = by_reader = missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check.compile_library(folder)
        for index in range(count):
            document = json.loads(files[index % 2].read_text(encoding="utf-8"))
            text = changed = rocq_refutation(document)
            has_command = index % 3 == 1
            while changed == text:
                if has_command:
                    changed = _with_command(text, rng)
                elif index % 3:
                    changed = _replaced(text, rng, REFUTATION_SLIPS)
                else:
                    at = rng.choice(
                        [m.start() for m in re.finditer(r"\d", text) if m.start() > 300]
                    )
                    changed = text[:at] + rng.choice("0123456789") + text[at + 1 :]
            is_proved = is_compiled(changed, folder)
            try:
                read_refutation.compare(changed, document)
                is_same = True
            except (ValueError, LookupError):
                is_same = False
            by_rocq, by_reader = by_rocq + is_proved, by_reader + is_same
            before, after = (re.split(r"Lemma kept|Theorem", t) for t in (text, changed))
            stated = [(parts[0], parts[-1].partition("Proof.")[0]) for parts in (before, after)]
            if is_same and (has_command or (is_proved and stated[0] != stated[1])):
                missed += 1
                print(f"missed: refutation {index}, seed {seed}")
    print(f"refutations {count}: Rocq accepted {by_rocq}, the reader {by_reader}; {missed} missed")
    return missed


def main() -> int:
    """Compile and read mutants; the status is 1 if one that states something else is accepted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--compiled", type=int, default=200)
    parser.add_argument("--read", type=int, default=5_000)
    parser.add_argument("--refutations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=38)
    given = parser.parse_args()
    missed = read_mutants(given.read, given.seed) if given.read else 0
    missed += compiled(given.compiled, given.seed) if given.compiled else 0
    missed += refutations(given.refutations, given.seed) if given.refutations else 0
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Have Rocq check proofs and refutations: the library, and theorems made from certificates.

    python rocq/check.py [FILE.json | FILE.v ...]

Without a file: those kept in ``rocq/proofs``, and refutations kept in ``verification``. A
certificate is exported first, and what its theorem says is read back and compared. The library is
compiled, then each theorem; the axioms that Rocq prints must be those of its real numbers and
nothing else. Then ``coqchk`` checks the library again, but not Rocq's own.
Status 1 if anything is not as it must be; without Rocq nothing is checked, and that is said.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import read_back
import read_refutation

HERE = Path(__file__).resolve().parent
# In the order in which they need each other.
LIBRARY = (
    "Space",
    "Forms",
    "Round",
    "OneRound",
    "Sound",
    "Groups",
    "Draw",
    "Noise",
    "Bound",
    "Descent",
    "Averaging",
    "Rounds",
    "Memory",
    "Bursts",
    "Quadratic",
    "Process",
    "Enclose",
    "Moments",
    "Refutation",
    "Refuted",
    "Weights",
    "Chain",
    "Series",
    "Chained",
)
# The axioms of the real numbers of Rocq's standard library, with what each says: a name alone could
# be another one's.
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec : forall P : nat -> Prop,"
    " (forall n : nat, {P n} + {~ P n}) -> {n : nat | ~ P n} + {forall n : nat, P n}",
    "ClassicalDedekindReals.sig_not_dec : forall P : Prop, {~ ~ P} + {~ P}",
    "FunctionalExtensionality.functional_extensionality_dep : forall (A : Type) (B : A -> Type)"
    " (f g : forall x : A, B x), (forall x : A, f x = g x) -> f = g",
}
# The standard library defines the logarithm with it.
EXCLUDED_MIDDLE = "Classical_Prop.classic : forall P : Prop, P \\/ ~ P"
REFUTATION = "(** A refutation"  # begins with this
# Nothing is imported, and each name says where it is from.
COMPARED = """\
From fltheory Require Restated Exported.
Timeout 300 Definition compared : fltheory.Restated.restated := fltheory.Exported.{name}.
Print Assumptions compared.
"""
# What assumes something, or has the kernel check less.
UNPROVED = re.compile(
    r"\b(?:Admitted|admit|Axioms?|Parameters?|Conjectures?|bypass_check|Bypass|Unset|Checking|"
    r"Declare|Load|Redirect|Primitive)\b"
)


def main(arguments: list[str]) -> int:
    """Check files, or those that are kept."""
    if shutil.which("coqc") is None:
        print("nothing is checked: Rocq is not installed (Debian: apt-get install coq)")
        return 0
    files = [Path(name) for name in arguments] or kept()
    try:
        # What is wrong with a file is told before the library is compiled.
        theorems = [_theorem(file) for file in files]
        with tempfile.TemporaryDirectory() as folder:
            compile_library(Path(folder))
            for file, theorem in zip(files, theorems, strict=True):
                _check(file, theorem, Path(folder))
            if not arguments:
                _check_again(Path(folder))
    except (subprocess.CalledProcessError, OSError, ValueError) as error:
        print(f"{error}\n{getattr(error, 'stdout', '') or ''}", file=sys.stderr)
        return 1
    return 0


def kept() -> list[Path]:
    """Return the certificates that are checked if no file is named."""
    verification = HERE.parent / "verification"
    folders = HERE / "proofs", verification / "witnesses"
    of_ca_fed = [f"ca-fed-2-{what}" for what in ("server-step", "start", "units")]
    return [
        *(file for folder in folders for file in sorted(folder.glob("*.json"))),
        *(verification / "certificates" / f"{name}.json" for name in ("fedau-3-step", *of_ca_fed)),
    ]


def compile_library(folder: Path) -> None:
    """Check the library's sources and compile them in a folder.

    Raises
    ------
    ValueError
        If a file assumes what it says, or takes from elsewhere.
    CalledProcessError
        If Rocq refuses one.
    """
    begun = time.monotonic()
    for name in LIBRARY:
        source = (HERE / f"{name}.v").read_text(encoding="utf-8")
        check_source(name, source)
        (folder / f"{name}.v").write_text(source, encoding="utf-8")
        _run("coqc", "-Q", ".", "fltheory", f"{name}.v", folder=folder)
    print(f"library of {len(LIBRARY)} files compiled in {time.monotonic() - begun:.0f} s")


def check_source(name: str, source: str) -> None:
    """Refuse a file of the library that assumes what it says, or takes from elsewhere.

    Raises
    ------
    ValueError
        Naming the file and the word or line.
    """
    found = UNPROVED.search(source)
    if found:
        raise ValueError(f"{name}.v must prove what it says, got {found[0]}")
    earlier = "|".join(LIBRARY[: LIBRARY.index(name)])
    for line in re.findall(r".*\b(?:Require|From)\b.*", source):
        if not re.fullmatch(
            rf"From (?:Coq Require Import(?: \w+)+|fltheory Require Import(?: (?:{earlier}))+)\.",
            line,
        ):
            raise ValueError(f"{name}.v must need Coq and earlier files alone, got {line}")


def check_assumptions(printed: str, theorem: str = "") -> None:
    """Refuse what a theorem rests on, as Rocq prints it, if it is not among `ALLOWED`.

    A theorem with a logarithm may also rest on excluded middle.

    Raises
    ------
    ValueError
        With the first line that is something else: an axiom, or what the kernel was told to assume.
    """
    entries = re.sub(r"\n +", " ", printed).strip().splitlines()
    if not entries:
        raise ValueError("a theorem must print what it rests on, got nothing")
    allowed = {*ALLOWED, "Axioms:", "Closed under the global context"}
    if re.search(r"\bln\b", theorem):
        allowed.add(EXCLUDED_MIDDLE)
    for entry in entries:
        if entry not in allowed:
            raise ValueError(f"a theorem must rest on the real numbers' axioms alone, got {entry}")


def _exported(file: Path) -> str:
    """Return a certificate's theorem, which says what the certificate claims."""
    from fltheory.worst_case import read_proof

    proof = read_proof(file)
    if proof is None:
        from fltheory.verify import read_certificate
        from fltheory.verify.certificates.rocq_refutation import rocq_refutation

        document = read_certificate(file).document
        text = rocq_refutation(document)
        read_refutation.compare(text, document)
    else:
        proof.verify()
        text = proof.rocq_theorem()
        read_back.compare(text, read_back.certificate_in(file))
    return text


def _theorem(file: Path) -> str:
    """Export a certificate, or take a theorem as it is, and read it back."""
    if file.suffix == ".json":
        return _exported(file)
    text = file.read_text(encoding="utf-8")
    program = read_refutation if text.startswith(REFUTATION) else read_back
    program.read(text)
    return text


def _check(file: Path, text: str, folder: Path) -> None:
    """Have Rocq check a file's theorem."""
    begun = time.monotonic()
    remark = "" if file.suffix == ".json" else "; what it says was compared with no certificate"
    check_theorem(text, folder)
    print(f"{file}: checked by Rocq in {time.monotonic() - begun:.0f} s{remark}")


def check_theorem(text: str, folder: Path) -> None:
    """Have Rocq check a theorem, beside the library in a folder.

    A refutation brings lemmas of its own, which may hide words of its statement. So the statement,
    as it was read, is compiled again in a file that has nothing else of the theorem's file, and
    Rocq must find that the theorem is a proof of it.

    Raises
    ------
    ValueError
        If a refutation cannot be read, or a theorem rests on anything but the real numbers' axioms.
    CalledProcessError
        If Rocq refuses it, or it is another statement.
    """
    said = read_refutation.read(text) if text.startswith(REFUTATION) else None
    printed = _compiled("Exported", text, folder)
    if said is not None:
        _compiled("Restated", said.restated, folder)
        printed = _compiled("Compared", COMPARED.format(name=said.name), folder)
    check_assumptions(printed, text)


def check_context(printed: str) -> None:
    """Refuse what the library's compiled files assume, as ``coqchk -o`` prints it.

    Raises
    ------
    ValueError
        For an axiom that is not the standard library's, or a check that was left out.
    """
    left_out = re.findall(r"^\* Constants.*|^\* Inductives.*", printed, re.MULTILINE)
    axioms = re.search(r"^\* Axioms:(.*?)^\*", printed, re.MULTILINE | re.DOTALL)
    if axioms is None or len(left_out) != 3:
        raise ValueError(f"coqchk must print what the library rests on, got {printed[-200:]}")
    others = [name for name in axioms[1].split() if not name.startswith("Coq.")]
    others += [line for line in left_out if not line.endswith("<none>")]
    if others:
        raise ValueError(f"the library must assume nothing of its own, got {others[0]}")


def _check_again(folder: Path) -> None:
    begun = time.monotonic()
    # Rocq's standard library comes compiled, and takes ten times as long as this one.
    files = [word for name in LIBRARY for word in ("-norec", f"fltheory.{name}")]
    check_context(_run("coqchk", "-silent", "-o", "-Q", ".", "fltheory", *files, folder=folder))
    print(f"library checked again by coqchk in {time.monotonic() - begun:.0f} s")


def _compiled(name: str, text: str, folder: Path) -> str:
    """Return what Rocq prints when it compiles a text."""
    (folder / f"{name}.v").write_text(text, encoding="utf-8")
    return _run("coqc", "-Q", ".", "fltheory", f"{name}.v", folder=folder)


def _run(*command: str, folder: Path) -> str:
    return subprocess.run(
        command, cwd=folder, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Have Rocq check proofs for every client loss: the library, and theorems made from certificates.

    python rocq/check.py [FILE.json | FILE.v ...]

Without a file: those kept in ``rocq/proofs``. A certificate is exported first, and what its theorem
says is read back and compared. The library is compiled, then each theorem; the axioms that Rocq
prints must be those of its real numbers and nothing else. Then ``coqchk`` checks the library again.
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
    "Rounds",
    "Quadratic",
)
# Those of the real numbers of Rocq's standard library.
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
}


def main(arguments: list[str]) -> int:
    """Check files, or those that are kept."""
    if shutil.which("coqc") is None:
        print("nothing is checked: Rocq is not installed (Debian: apt-get install coq)")
        return 0
    files = [Path(name) for name in arguments] or sorted((HERE / "proofs").glob("*.json"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            _compile_library(Path(folder))
            for file in files:
                _check(file, Path(folder))
            if not arguments:
                _check_again(Path(folder))
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"{error}\n{getattr(error, 'stdout', '') or ''}", file=sys.stderr)
            return 1
    return 0


def _compile_library(folder: Path) -> None:
    begun = time.monotonic()
    for name in LIBRARY:
        source = (HERE / f"{name}.v").read_text(encoding="utf-8")
        if re.search(r"\b(Admitted|Axiom|Parameter|Conjecture|admit)\b", source):
            raise ValueError(f"{name}.v must prove what it says")
        (folder / f"{name}.v").write_text(source, encoding="utf-8")
        _run("coqc", "-Q", ".", "fltheory", f"{name}.v", folder=folder)
    print(f"library of {len(LIBRARY)} files compiled in {time.monotonic() - begun:.0f} s")


def _check(file: Path, folder: Path) -> None:
    """Export a certificate, or take a theorem as it is; read it back, and have it checked."""
    begun = time.monotonic()
    if file.suffix == ".json":
        from fltheory.worst_case import read_proof

        proof = read_proof(file)
        if proof is None:
            raise ValueError(f"{file} must be a proof for every client loss")
        proof.verify()
        text = proof.rocq_theorem()
        read_back.compare(text, read_back.certificate_in(file))
    else:
        text = file.read_text(encoding="utf-8")
        read_back.read(text)
    (folder / "Exported.v").write_text(text, encoding="utf-8")
    printed = _run("coqc", "-Q", ".", "fltheory", "Exported.v", folder=folder)
    axioms = set(re.findall(r"^([\w.]+)\s*(?::|$)", printed, re.MULTILINE)) - {"Axioms"}
    if not axioms <= ALLOWED:
        raise ValueError(f"{file}: rests on {', '.join(sorted(axioms - ALLOWED))}")
    print(f"{file}: checked by Rocq in {time.monotonic() - begun:.0f} s")


def _check_again(folder: Path) -> None:
    begun = time.monotonic()
    _run(
        "coqchk",
        "-silent",
        "-Q",
        ".",
        "fltheory",
        *(f"fltheory.{name}" for name in LIBRARY),
        folder=folder,
    )
    print(f"library checked again by coqchk in {time.monotonic() - begun:.0f} s")


def _run(*command: str, folder: Path) -> str:
    return subprocess.run(
        command, cwd=folder, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

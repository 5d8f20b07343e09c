"""Refutations of a bound on FedAU's online weights, as theorems for Rocq (formerly Coq)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fltheory.worst_case.proof.rocq_export import refused

MOST_HISTORIES = 8  # rounds that the worst error may be in: Rocq adds up 2^8 histories

_STATEMENT: Mapping[str, Any] = {
    "symbols": {"T": "rounds", "tau": "dependence"},
    "definitions": {},
    "round_symbols": {},
    "conditions": {"participation independent of the past": "Eq(tau, 0)", "two rounds": "T >= 2"},
    "quantity": "weight_error_ratio",
    "bound": "1",
}


def weight_error_refutation(document: Mapping[str, Any], name: str) -> str:
    """Return a file for Rocq: one client's error in one round is above the line of the proof.

    Parameters
    ----------
    document : mapping
        The certificate, checked before.
    name : str
        Of the theorem.

    Raises
    ------
    NotExportedError
        For other conditions, participation that is not independent, or an error that is largest
        only after more than `MOST_HISTORIES` rounds.
    """
    raw = document["setting"]
    if dict(document["statement"]) != _STATEMENT:
        raise refused("a statement on weights that is not FedAU's Theorem 3")
    if raw["participation"]["name"] != "Bernoulli":
        raise refused(f"the participation {raw['participation']['name']}")
    cutoff, truth = raw["algorithm"]["cutoff"], Fraction(document["truth"])
    for t in range(1, min(raw["rounds"], MOST_HISTORIES + 1)):
        for p in map(Fraction, raw["participation"]["availability"]):
            error, line = _error(p, cutoff, t), _line(p, cutoff, t)
            if p < 1 and error >= truth * line:
                bound = Fraction(document["bound"])
                client = f"({p.numerator} / {p.denominator}) {cutoff} {t}"
                head = _HEAD.format(**document)
                return head + _theorem(name, client, error, line, truth, bound, raw["rounds"], t)
    raise refused(f"an error that is largest after more than {MOST_HISTORIES} rounds")


def _error(p: Fraction, cutoff: int, rounds: int) -> Fraction:
    """Return the expected square of a weight's error after some rounds."""
    rows = {(Fraction(1), 0, 0): Fraction(1)}
    for _ in range(rounds):
        after: dict[tuple[Fraction, int, int], Fraction] = {}
        for (omega, ended, age), chance in rows.items():
            over = (ended * omega + age + 1) / (ended + 1), ended + 1, 0
            waiting = over if age + 1 == cutoff else (omega, ended, age + 1)
            for row, share in ((over, p), (waiting, 1 - p)):
                after[row] = after.get(row, Fraction(0)) + chance * share
        rows = after
    return sum((c * (p * row[0] - 1) ** 2 for row, c in rows.items()), Fraction(0))


def _line(p: Fraction, cutoff: int, t: int) -> Fraction:
    """Return the line of the proof that bounds it."""
    law = {k: p * (1 - p) ** (k - 1) for k in range(1, cutoff)} | {cutoff: (1 - p) ** (cutoff - 1)}
    mean = sum((k * chance for k, chance in law.items()), Fraction(0))
    variance = sum((k * k * chance for k, chance in law.items()), Fraction(0)) - mean**2
    return p**2 * variance / max(t // cutoff, 1) + (1 - p) ** (2 * cutoff)


_HEAD = """\
(** A refutation of {theorem} ({reading}), and its proof: check it with Rocq
    (Coq 8.16 or later) beside the library in the folder rocq of fltheory. *)

From Coq Require Import Reals Arith Lra.
From fltheory Require Import Weights.
Open Scope R_scope.

"""


def _theorem(
    name: str, client: str, error: Fraction, line: Fraction, truth: Fraction, bound: Fraction,
    rounds: int, t: int,
) -> str:  # fmt: skip
    def real(value: Fraction) -> str:
        return f"({value.numerator} / {value.denominator})"

    computed = "cbv -[Rplus Rmult Ropp Rinv Rminus Rdiv IZR]. field."
    return f"""\
Lemma error : weight_error {client} = {real(error)}.
Proof. {computed} Qed.

Lemma line : proof_line {client} = {real(line)}.
Proof. {computed} Qed.

Theorem {name} :
  (2 <= {rounds})%nat /\\
  (1 <= {t} < {rounds})%nat /\\
  0 < proof_line {client} /\\
  {real(truth)} * proof_line {client} <= weight_error {client} /\\
  1 <= {real(bound)} < {real(truth)}.
Proof.
  rewrite error, line. repeat split; try lra; apply Nat.leb_le; reflexivity.
Qed.

Print Assumptions {name}.
"""

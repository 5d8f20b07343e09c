"""Lyapunov proofs of methods with memory as theorems for Rocq.

The theorem speaks of the model and of what is remembered, and of no Lyapunov function: that is a
matter of the proof, which hands it to the checker of ``rocq/Memory.v``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from fltheory.worst_case.checker.kernel import FractionRows
from fltheory.worst_case.checker.memory import LyapunovProof, slacks
from fltheory.worst_case.proof.rocq_export import (
    HEAD,
    listed,
    pairs_listed,
    rational,
    real,
    refuse,
    squares_listed,
)

MOST_CLIENTS = 1_000  # Rocq counts them one by one
_MEMORY = 1  # the place of the remembered gradients' mean, after x - x*


def memory_theorem(proof: LyapunovProof, name: str = "bound_for_every_loss") -> str:
    """Return a file for Rocq whose theorem is what a proof of a method with memory claims.

    Parameters
    ----------
    proof : LyapunovProof
        Checked before.
    name : str
        Of the theorem.

    Raises
    ------
    NotExportedError
        For a single client, or more than `MOST_CLIENTS`.
    """
    refuse(
        {
            "a single client": proof.n_clients == 1,
            f"more than {MOST_CLIENTS} clients": proof.n_clients > MOST_CLIENTS,
        }
    )
    head = HEAD.replace("Descent Rounds", "Memory Rounds")
    return "\n".join((head, *_claim(proof), *_certificate(proof), *_theorem(proof, name)))


def _claim(proof: LyapunovProof) -> Iterator[str]:
    bound = proof.bound
    values = {
        "pool": f"{proof.n_clients}%nat",
        "chance": rational(proof.probability),
        "two_there": rational(proof.together),
        "step_size": rational(proof.step),
        "surprise": rational(proof.surprise),
        "from_zero": str(proof.start == "zero").lower(),
        "of_gap": str(bound["gap"] > 0).lower(),
        "all_smoothness": rational(proof.L),
        "all_convexity": rational(proof.mu),
        "each_round": rational(bound["rate"]),
        "each_gap": rational(bound["gap"]),
        "at_start": rational(bound["start"]),
        "dissimilarity": rational(bound["heterogeneity"]),
    }
    yield "Definition the_claim : memory_claim := {|"
    yield ";\n".join(f"  {field} := {value}" for field, value in values.items())
    yield "|}.\n"


def _certificate(proof: LyapunovProof) -> Iterator[str]:
    values = {
        "of_means": _rows(proof.means),
        "of_differences": _rows(proof.differences),
        "memory_value": rational(proof.memory_value),
        "model_value": rational(proof.model_value),
    }
    for inequality, (form, zero) in slacks(proof).items():
        blocks = form.blocks(zero)
        # Clients do not differ in x - x*, and the mean of what is remembered may be zero.
        differences = _without(blocks["differences of clients"], 0)
        means = _without(blocks["means"], _MEMORY) if zero else blocks["means"]
        values[f"{inequality}_pairs"] = pairs_listed(proof.multipliers[inequality], Fraction(1))
        values[f"{inequality}_means"] = squares_listed(_in_units(proof, means))
        values[f"{inequality}_differences"] = squares_listed(_in_units(proof, differences))
    yield "Definition the_certificate : lyapunov := {|"
    yield ";\n".join(f"  {field} := {value}" for field, value in values.items())
    yield "|}.\n"


def _rows(rows: FractionRows) -> str:
    return listed([listed(map(rational, row)) for row in rows])


def _without(block: FractionRows, place: int) -> FractionRows:
    """Return a block with a coordinate more, on which it does not depend."""
    rows = [[*row[:place], Fraction(0), *row[place:]] for row in block]
    return [*rows[:place], [Fraction(0)] * (len(block) + 1), *rows[place:]]


def _in_units(proof: LyapunovProof, block: FractionRows) -> FractionRows:
    """Return a block for gradients in units of their own, of which w and u are."""
    units = [Fraction(1), 1 / proof.L, Fraction(1), 1 / proof.L]
    size = range(len(block))
    return [[units[i] * units[j] * block[i][j] for j in size] for i in size]


def _theorem(proof: LyapunovProof, name: str) -> Iterator[str]:
    """Yield the theorem in plain mathematics, and its proof."""
    n, bound = proof.n_clients, {part: real(value) for part, value in proof.bound.items()}
    first = (
        f"(forall i, (i < {n})%nat -> same (G i (memory i)) zero)"
        if proof.start == "zero"
        else "memory = (fun _ => x)"
    )
    left = "expectation (iterates r) (fun state => square (minus (fst state) xs))"
    if proof.bound["gap"]:
        left = (
            f"{bound['gap']} * sum r (fun k => {bound['rate']} ^ (r - 1 - k)\n"
            "    * expectation (iterates k) (fun state =>\n"
            f"        mean_loss {n} F (fst state) - mean_loss {n} F xs))"
        )
    yield (
        f"Open Scope R_scope.\n\nTheorem {name} :\n"
        "  forall (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V) (d : R)\n"
        "    (memory : nat -> V) (draws : law (nat -> bool))"
        " (iterates : nat -> law (V * (nat -> V))),\n"
        f"  (forall i, (i < {n})%nat -> "
        f"interpolable {real(proof.L)} {real(proof.mu)} (F i) (G i)) ->\n"
        f"  same (mean_gradient {n} G xs) zero ->\n"
        f"  average {n} (fun i => square (G i xs)) <= d * d ->\n"
        f"  there_with draws {n} {real(proof.probability)} {real(proof.together)} ->\n"
        f"  {first} ->\n"
        "  iterates 0%nat = [(1, (x, memory))] ->\n"
        "  (forall r, probabilities (iterates r)) ->\n"
        "  (forall value, tower iterates value (fun state => expectation draws (fun who =>\n"
        f"    value (memory_round {n} {real(proof.step)} {real(proof.surprise)} G who state))))"
        " ->\n"
        f"  forall r, {left}\n"
        f"  <= {bound['rate']} ^ r * ({bound['start']} * square (minus x xs) "
        f"+ {bound['heterogeneity']} * (d * d))."
    )
    yield "Proof.\n  intros V F G x xs d memory draws iterates A B C D E I W T."
    yield "  assert (H := one_memory the_claim the_certificate ltac:(vm_compute; reflexivity))."
    yield "  specialize (H V F G x xs d memory draws iterates). unfold the_claim in H."
    yield "  memory_in_numbers H. exact (H A B C D E I W T)."
    yield f"Qed.\n\nPrint Assumptions {name}.\n"

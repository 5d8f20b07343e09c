"""Proofs about clients that come and go in bursts as theorems for Rocq.

The theorem speaks of the law of who is there and of the model, round after round. The function
that falls is a matter of the proof, which hands it to the checker of ``rocq/Bursts.v``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from fltheory.worst_case.checker.correlated_checker import Checker, CorrelatedProof, Sums, name_of
from fltheory.worst_case.checker.kernel import FractionRows, Fractions
from fltheory.worst_case.proof.rocq_export import (
    HEAD,
    defined,
    listed,
    pairs_listed,
    rational,
    real,
    refuse,
    squares_listed,
)

MOST_CLIENTS, MOST_STEPS = 20, 10


def bursts_theorem(proof: CorrelatedProof, name: str = "bound_for_every_loss") -> str:
    """Return a file for Rocq whose theorem is what a proof about clients in bursts claims.

    Parameters
    ----------
    proof : CorrelatedProof
        Checked before.
    name : str
        Of the theorem.

    Raises
    ------
    NotExportedError
        For a chain of sets, several groups of clients, noise, clients that are always there, or
        more than `MOST_CLIENTS` or `MOST_STEPS` local steps.
    """
    refuse_rounds(proof, proof.noisy)
    head = HEAD.replace("Descent Rounds", "Bursts")
    return "\n".join((head, _claim(proof), _certificate(proof), *_theorem(proof, name)))


def refuse_rounds(rounds: Any, noisy: bool) -> None:
    """Refuse rounds of clients in bursts that Rocq's library does not know, or is too slow for.

    Parameters
    ----------
    rounds : CorrelatedProof or AveragingRound
    noisy : bool
        Whether clients' gradients have noise.

    Raises
    ------
    NotExportedError
        Naming the first thing that is not known.
    """
    own = rounds.groups[0]
    refuse(
        {
            "a chain of sets of clients": rounds.chain is not None,
            "several groups of clients in bursts": len(rounds.groups) > 1,
            "noise of clients in bursts": noisy,
            "clients that are always there": own.availability == 1,
            f"more than {MOST_CLIENTS} clients in bursts": own.n_clients > MOST_CLIENTS,
            f"more than {MOST_STEPS} local steps": rounds.local_steps > MOST_STEPS,
        }
    )


def _claim(proof: CorrelatedProof) -> str:
    own, bound = proof.groups[0], proof.bound
    values = {
        "crowd": f"{own.n_clients}%nat",
        "availability": rational(own.availability),
        "correlation": rational(own.correlation),
        "over_present": str(proof.averaging == "present").lower(),
        "of_distance": str(proof.measure == "distance").lower(),
        "of_gap": str(proof.measure == "loss").lower(),
        "at_first": rational(bound["start"]),
        "heterogeneity_at_first": rational(bound["start_heterogeneity"]),
        "steps": f"{proof.local_steps}%nat",
        "step_size": rational(proof.client_lr),
        "server_step": rational(proof.server_lr * own.weight),
        "all_smoothness": rational(proof.L),
        "all_convexity": rational(proof.mu),
        "each_rate": rational(bound["rate"]),
        "each_heterogeneity": rational(bound["heterogeneity"]),
    }
    return defined("the_claim", "bursts_claim", values)


def _certificate(proof: CorrelatedProof) -> str:
    checker, places = Checker(proof), range(len(proof.states))
    values = {
        "below": rational(proof.below),
        "values": listed([_row(proof, place) for place in places]),
        "pairs_of_present": listed([_pairs(proof, place, True) for place in places]),
        "pairs_of_absent": listed([_pairs(proof, place, False) for place in places]),
        "squares_of_rounds": listed([_squares(checker.round_slack(place)) for place in places]),
        "squares_from_below": listed([_squares(checker.end_slack(place)) for place in places]),
        "squares_at_first": _squares(checker.start_slack()),
    }
    return defined("the_certificate", "bursts_certificate", values)


def _row(proof: CorrelatedProof, place: int) -> str:
    """Return the five numbers of the function in a state."""
    one = proof.function[place]
    (a, b), (_, c) = one.form
    return listed(map(rational, (a, b, c, one.present[0], one.all[0])))


def _pairs(proof: CorrelatedProof, place: int, present: bool) -> str:
    """Return the multipliers of those present, or absent, in a state; none where nobody is."""
    for cell, weights in zip(
        proof.cells(proof.states[place]), proof.multipliers[place], strict=True
    ):
        if cell[1] == present:
            return pairs_listed(weights, Fraction(1))
    return "[]"


def _squares(sums: Sums) -> str:
    """Return a slack's blocks as squares: of means, and of what clients of each cell differ in."""
    blocks = sums.blocks()
    differing = {
        present: squares_listed(_in_gradients(blocks[name], members))
        for cell in sums.cells
        for _, present, members in [cell]
        if (name := f"differences of {name_of(cell)}") in blocks
    }
    means = squares_listed(_composed(blocks["means"], _means_in_gradients(sums)))
    return listed([means, differing.get(True, "[]"), differing.get(False, "[]")])


def _means_in_gradients(sums: Sums) -> list[Fractions]:
    """Return a block's coordinates in Rocq's: gradients there are not less those at x*.

    Both are x - x* first; the block leaves out the first cell's mean gradient at x*, which is what
    the other's is times how many they are, and zero without another.
    """
    count = sums.n_vectors
    first = {True: 1, False: 1 + count}
    size = 1 + 2 * count
    steps = [
        [Fraction(int(place == first[present] + j)) for place in range(size)]
        for _, present, _ in sums.cells
        for j in range(count - 1)
    ]
    rows = [_unit(size, 0), *steps]
    if len(sums.cells) == 2:
        (_, _, there), (_, _, away) = sums.cells
        for j, row in enumerate(steps):
            row[-1] += Fraction(away, there) if j < count - 1 else Fraction(-1)
        rows.append(_unit(size, size - 1))
    return rows


def _in_gradients(block: FractionRows, members: int) -> FractionRows:
    """Return a block of differences for one client, in gradients that are not less those at x*."""
    size = len(block)
    rows = [_unit(size, j) for j in range(size)]
    for row in rows[:-1]:
        row[-1] -= 1
    return [[value / members for value in row] for row in _composed(block, rows)]


def _unit(size: int, index: int) -> list[Fraction]:
    return [Fraction(int(place == index)) for place in range(size)]


def _composed(block: FractionRows, rows: Sequence[Fractions]) -> FractionRows:
    """Return a form in other coordinates, in which its own are these rows."""
    size = range(len(rows[0]))
    half = [
        [
            sum((value * row[j] for value, row in zip(one, rows, strict=True)), Fraction(0))
            for j in size
        ]
        for one in block
    ]
    return [
        [
            sum((row[i] * one[j] for row, one in zip(rows, half, strict=True)), Fraction(0))
            for j in size
        ]
        for i in size
    ]


def _theorem(proof: CorrelatedProof, name: str) -> Iterator[str]:
    """Yield the theorem in plain mathematics, and its proof."""
    own = proof.groups[0]
    n, bound = own.n_clients, {part: real(value) for part, value in proof.bound.items()}
    divided = "1" if proof.averaging == "weights" else "(Nat.max 1 (present there))"
    played = (
        f"(fun there =>\n      clients_round {n} {divided} {proof.local_steps} "
        f"{real(proof.client_lr)} {real(proof.server_lr * own.weight)}\n"
        "        (exact_gradients G) (is_there there))"
    )
    run = f"(in_bursts {n} {real(own.availability)} {real(own.correlation)}"
    started = f"({bound['start']} * square (minus x xs) + {bound['start_heterogeneity']} * h)"
    floor, value = f"{bound['heterogeneity']} * h", "(fun state => square (minus (snd state) xs))"
    right = f"{started} / INR T\n     + {floor}"
    if proof.measure == "distance":
        left = f"average T (fun t => expectation\n    {run} {played} x t)\n    {value})"
    elif proof.measure == "loss":
        left = (
            f"expectation\n    {run} (summing {played}) (x, zero) T)\n    (fun state => "
            f"mean_loss {n} F (scale (/ INR T) (snd (snd state)))) - mean_loss {n} F xs"
        )
    else:
        rate = bound["rate"]
        left = f"expectation\n    {run} {played} x T)\n    {value}"
        right = f"{rate} ^ T * {started}\n     + (1 - {rate} ^ T) / (1 - {rate}) * ({floor})"
    yield (
        f"Open Scope R_scope.\n\nTheorem {name} :\n"
        "  forall (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V) (h : R),\n"
        f"  (forall i, (i < {n})%nat -> "
        f"interpolable {real(proof.L)} {real(proof.mu)} (F i) (G i)) ->\n"
        f"  same (mean_gradient {n} G xs) zero ->\n"
        f"  average {n} (fun i => square (G i xs)) = h ->\n"
        f"  forall T, (0 < T)%nat ->\n  {left}\n  <= {right}."
    )
    yield "Proof.\n  intros V F G x xs h A B C T P."
    yield "  assert (H := one_in_bursts the_claim the_certificate ltac:(vm_compute; reflexivity))."
    yield "  specialize (H V F G x xs h). unfold the_claim in H. bursts_in_numbers H."
    yield "  exact (H A B C T P)."
    yield f"Qed.\n\nPrint Assumptions {name}.\n"

"""One-round proofs as theorems for Rocq (formerly Coq): the claim in plain mathematics.

The exported file states the bound for every real inner product space, every number of clients that
the certificate covers and all losses that meet the interpolation inequality, in the words of
``rocq/Round.v``. Its proof hands claim and multipliers to the checker of ``rocq/OneRound.v``, which
``rocq/Bound.v`` proves sound. What Rocq's kernel then still computes are the slack's blocks, and
that each is a sum of squares, which is written out here: ``S = sum_k d_k (l_k)^2``, all ``d_k``
not negative. A factorisation in floats, rounded to dyadic fractions, gives the first squares; what
it leaves is diagonally dominant, and so a sum of squares of single coordinates and of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from fltheory.worst_case.checker.kernel import FractionRows, Fractions
from fltheory.worst_case.checker.one_round import Box, Drawn, Proof, slack_blocks

MOST_STEPS = 30
MOST_PARTICIPANTS = 1_000  # Rocq counts them one by one
_BITS = 40  # of the factors' entries
Square = tuple[Fraction, Fractions]
"""A weight that is not negative, and the linear form whose square it weighs."""


class NotExportedError(ValueError):
    """Rocq's library does not know proofs of this kind, or they are too large."""


def rocq_theorem(proof: Proof, name: str = "bound_for_every_loss") -> str:
    """Return a file for Rocq whose theorems are what a proof claims, of a round and of all.

    Parameters
    ----------
    proof : Proof
        Checked before.
    name : str
        Of the theorem.

    Raises
    ------
    NotExportedError
        For clients that come independently, a gap or a descent of F, an interval of steps, more
        than `MOST_STEPS` local steps or `MOST_PARTICIPANTS`.
    """
    first, last = proof.client_lr
    drawn = _drawn(proof)
    refused = {
        "a bound on F and not on the distance": proof.of_descent or any(proof.bound["gap"]),
        "an interval of step sizes": first < last,
        "a hypothesis on the run": bool(proof.given),
        f"more than {MOST_STEPS} local steps": proof.local_steps > MOST_STEPS,
        f"more than {MOST_PARTICIPANTS} participants": drawn.participants > MOST_PARTICIPANTS,
    }
    for what, present in refused.items():
        if present:
            raise NotExportedError(
                f"a certificate must be of a kind that Rocq's library knows, got one with {what}"
            )
    return "\n".join(
        (_HEAD, *_claim(proof), *_certificate(proof, proof.boxes[0]), *_theorem(proof, name))
    )


def _drawn(proof: Proof) -> Drawn:
    """Return who takes part, if they are drawn uniformly."""
    if isinstance(proof.taking_part, Drawn):
        return proof.taking_part
    raise NotExportedError(
        "a certificate must be of a kind that Rocq's library knows, got one with clients that "
        "come independently"
    )


_HEAD = """\
(** A bound for every client loss, and its proof: check it with Rocq (Coq 8.16 or later) beside the
    library in the folder rocq of fltheory. *)

From Coq Require Import Reals QArith List Lra Arith.
From fltheory Require Import Space Forms Round OneRound Bound Rounds.
Import ListNotations.
Open Scope Q_scope.
"""


# ---------------------------------------------------------------- numbers and lists


def _rational(value: Fraction | int) -> str:
    value = Fraction(value)
    if value.denominator == 1:
        return f"({value.numerator})" if value < 0 else str(value.numerator)
    return f"({value.numerator} # {value.denominator})"


def _real(value: Fraction | int) -> str:
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    return f"({value.numerator} / {value.denominator})"


def _list(items: Sequence[str]) -> str:
    return f"[{'; '.join(items)}]"


def _linear(coefficients: Fractions) -> str:
    return _list([_rational(value) for value in coefficients])


# ---------------------------------------------------------------- the claim and its certificate


def _claim(proof: Proof) -> Iterator[str]:
    lr, drawn = proof.client_lr[0], _drawn(proof)
    pool = drawn.n_eligible
    values = {
        "participants": f"{drawn.participants}%nat",
        "local_steps": f"{proof.local_steps}%nat",
        "most_eligible": "None" if pool is None else f"Some {_rational(pool)}",
        "excluded_share": _rational(drawn.excluded_share),
        "q": _rational(proof.q),
        "client_lr": _rational(lr),
        "server_lr": _rational(proof.server_lr),
        "assist_lr": _rational(proof.assist_ratio * lr),
        "smoothness": _rational(proof.L),
        "convexity": _rational(proof.mu),
        "everywhere": str(proof.heterogeneity == "everywhere").lower(),
        "noisy": str(proof.noisy).lower(),
        **{name: _rational(value) for name, value in _bound(proof).items()},
    }
    yield "Definition the_claim : claim := {|"
    yield ";\n".join(f"  {field} := {value}" for field, value in values.items())
    yield "|}.\n"


def _bound(proof: Proof) -> dict[str, Fraction]:
    bound = proof.bound_at(proof.client_lr[0])
    return {name: value for name, value in bound.items() if name != "gap"}


def _certificate(proof: Proof, box: Box) -> Iterator[str]:
    bound, lr = _bound(proof), proof.client_lr[0]
    budget = bound["heterogeneity"]
    noise = bound["noise"] - proof.q * (proof.server_lr * lr) ** 2 / _drawn(proof).participants
    blocks = _in_units(proof, slack_blocks(proof, box, lr))
    values = {
        **{
            f"{group}_pairs": _pairs(pairs, lr)
            for group, pairs in zip(("eligible", "excluded"), [*box.pairs, []], strict=False)
        },
        "budgets": _linear([budget * part for part in box.budgets]),
        "noises": _linear([noise * part for part in box.noises]),
        "orthogonal": _orthogonal(proof, box.orthogonal),
        **{
            f"{name}_squares": _squares(blocks.get(block, []))
            for name, block in (
                ("mean", "means"),
                ("eligible", "differences of eligible clients"),
                ("excluded", "differences of excluded clients"),
                ("fluctuation", "fluctuations of eligible clients"),
            )
        },
    }
    yield "Definition the_certificate : certificate := {|"
    yield ";\n".join(f"  {field} := {value}" for field, value in values.items())
    yield "|}.\n"


def _pairs(weights: FractionRows, lr: Fraction) -> str:
    """Return the multipliers of pairs: in units of the loss, and not of L = 1."""
    return _list(
        [
            f"({a}%nat, {b}%nat, {_rational(lr * value)})"
            for a, row in enumerate(weights)
            for b, value in enumerate(row)
            if value
        ]
    )


def _orthogonal(proof: Proof, values: Fractions) -> str:
    """Return the multipliers of products that are zero: of a step's noise and what was before."""
    count = proof.local_steps - 1
    before = [(k, j) for k in range(count) for j in (*range(k), *range(count, count + k))]
    unit = 2 * proof.client_lr[0] / proof.L
    return _list(
        [
            f"({k}%nat, {j}%nat, {_rational(unit * value)})"
            for (k, j), value in zip(before, values, strict=False)
            if value
        ]
    )


def _in_units(proof: Proof, blocks: Mapping[str, FractionRows]) -> dict[str, FractionRows]:
    """Return the blocks not over e, for gradients in units of their own."""
    e = proof.L * proof.client_lr[0]
    made = {}
    for name, block in blocks.items():
        size = range(len(block))
        units = [1 / proof.L] * len(block)
        if name == "means":
            units[0] = Fraction(1)
        made[name] = [[e * units[i] * units[j] * block[i][j] for j in size] for i in size]
    return made


# ---------------------------------------------------------------- sums of squares


def _squares(matrix: FractionRows) -> str:
    return _list(
        [f"({_rational(weight)}, {_linear(form)})" for weight, form in sum_of_squares(matrix)]
    )


def sum_of_squares(matrix: FractionRows) -> list[Square]:
    """Write a positive semidefinite matrix of fractions as ``sum_k d_k l_k l_k'``.

    Raises
    ------
    NotExportedError
        If it is not positive semidefinite.

    Examples
    --------
    >>> one = Fraction(1)
    >>> sum_of_squares([[one, one], [one, one]])
    [(Fraction(1, 1), [Fraction(1, 1), Fraction(1, 1)])]
    """
    rounded = _rounded_squares(matrix)
    rest = _left_over(matrix, rounded)
    dominant = _dominant_squares(rest)
    return _eliminated(matrix) if dominant is None else [*rounded, *dominant]


def _rounded_squares(matrix: FractionRows) -> list[Square]:
    """Return squares that come near a matrix from below, by half of its least eigenvalue."""
    size = len(matrix)
    # Coordinates of powers of two, in which the diagonal is about one.
    scales = [_power_of_two(matrix[i][i]) for i in range(size)]
    scaled = np.array(
        [[float(matrix[i][j] * scales[i] * scales[j]) for j in range(size)] for i in range(size)]
    ).reshape(size, size)
    least = float(np.linalg.eigvalsh(scaled).min(initial=np.inf))
    if not 1e-13 < least < np.inf:
        return []
    factor = np.linalg.cholesky(scaled - least / 2 * np.eye(size))
    return [
        (
            Fraction(1),
            [
                Fraction(round(float(factor[i, k]) * 2**_BITS), 2**_BITS) / scales[i]
                for i in range(size)
            ],
        )
        for k in range(size)
    ]


def _power_of_two(value: Fraction) -> Fraction:
    """Return about one over the root of a number; 1 where it is not positive."""
    if value <= 0:
        return Fraction(1)
    exponent = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return Fraction(2) ** -exponent


def _left_over(matrix: FractionRows, squares: Sequence[Square]) -> FractionRows:
    size = range(len(matrix))
    rest = [list(row) for row in matrix]
    for weight, form in squares:
        for i in size:
            if form[i]:
                for j in size:
                    rest[i][j] -= weight * form[i] * form[j]
    return rest


def _dominant_squares(rest: FractionRows) -> list[Square] | None:
    """Return the squares of a diagonally dominant matrix, None if it is not dominant."""
    size = len(rest)
    found: list[Square] = []
    diagonal = [rest[i][i] for i in range(size)]
    for i, j in combinations(range(size), 2):
        value = rest[i][j]
        if value:
            form = [Fraction(0)] * size
            form[i], form[j] = Fraction(1), Fraction(1 if value > 0 else -1)
            found.append((abs(value), form))
            diagonal[i] -= abs(value)
            diagonal[j] -= abs(value)
    if any(value < 0 for value in diagonal):
        return None
    return found + [
        (value, [Fraction(int(place == i)) for place in range(i + 1)])
        for i, value in enumerate(diagonal)
        if value
    ]


def _eliminated(matrix: FractionRows) -> list[Square]:
    """Return the squares of exact elimination: their numbers have many digits."""
    rest, found = [list(row) for row in matrix], []
    for k in range(len(matrix)):
        pivot = rest[k][k]
        if pivot < 0 or (pivot == 0 and any(rest[k])):
            raise NotExportedError("the slack must be positive semidefinite to be exported")
        if pivot:
            form = [value / pivot for value in rest[k]]
            found.append((pivot, form))
            rest = _left_over(rest, [(pivot, form)])
    return found


# ---------------------------------------------------------------- the theorem


@dataclass(frozen=True)
class _Statement:
    """What one round's theorem says, in parts: that of all rounds is made of the same."""

    sizes: str
    random: str
    hypotheses: tuple[str, ...]
    round: str
    rate: str
    floor: str


def _statement(proof: Proof) -> _Statement:
    bound = {name: _real(value) for name, value in _bound(proof).items()}
    drawn = _drawn(proof)
    lr, m, q = proof.client_lr[0], drawn.participants, _real(proof.q)
    alone, server = not drawn.excluded_share, proof.q < 1
    everybody = "n" if alone else "(n + s)"
    pool = drawn.n_eligible
    seen, over, closed = (
        ("(noisy_gradients G xi)", " expectation errors (fun xi =>", ")")
        if proof.noisy
        else ("(exact_gradients G)", "", "")
    )
    played = (
        f"expectation draws (fun who =>{over}\n"
        f"      square (minus (clients_round {everybody} {m} {proof.local_steps} {_real(lr)} "
        f"{_real(proof.server_lr)}\n        {seen} who x) xs)){closed}"
    )
    floor = f"{bound['heterogeneity']} * (d * d)"
    if server:
        assist = _real(proof.assist_ratio * lr)
        played = (
            f"{q} * {played}\n  + (1 - {q}) * expectation noises (fun noise =>\n"
            f"      square (minus (server_round {everybody} {assist} G noise x) xs))"
        )
        floor += f"\n     + {bound['server_noise']} * (sigma * sigma)"
    if proof.noisy:
        floor += f"\n     + {bound['noise']} * (rho * rho)"
    hypotheses = [f"({m} <= n)%nat"]
    hypotheses += [] if pool is None else [f"INR n <= {_real(pool)}"]
    hypotheses += [] if alone else [f"INR s = {_real(drawn.excluded_share)} * (INR n + INR s)"]
    hypotheses += [
        f"(forall i, (i < {everybody})%nat -> "
        f"interpolable {_real(proof.L)} {_real(proof.mu)} (F i) (G i))",
        f"same (mean_gradient {everybody} G xs) zero",
        f"(forall i y, (i < {everybody})%nat ->\n"
        f"    square (minus (G i y) (mean_gradient {everybody} G y)) <= d * d)"
        if proof.heterogeneity == "everywhere"
        else f"average {everybody} (fun i => square (G i xs)) <= d * d",
        f"draws_uniformly draws n {m}",
    ]
    hypotheses += ["unbiased noises sigma"] if server else []
    if proof.noisy:
        hypotheses.append(f"noise_of_clients errors n {proof.local_steps} rho")
    return _Statement(
        "n" if alone else "n s",
        "(draws : law (nat -> bool))"
        + (" (noises : law V) (sigma : R)" if server else "")
        + (" (errors : law (nat -> nat -> V)) (rho : R)" if proof.noisy else ""),
        tuple(hypotheses),
        played,
        bound["rate"],
        floor,
    )


def _theorem(proof: Proof, name: str) -> Iterator[str]:
    """Yield the theorem in plain mathematics, that of all rounds, and their proofs."""
    said = _statement(proof)
    known = "".join(f"  {each} ->\n" for each in said.hypotheses)
    clients = "(F : nat -> V -> R) (G : nat -> V -> V)"
    yield (
        f"Open Scope R_scope.\n\nTheorem {name} :\n"
        f"  forall (V : space) ({said.sizes} : nat) {clients} (x xs : V) (d : R)\n"
        f"    {said.random},\n{known}  {said.round}\n"
        f"  <= {said.rate} * square (minus x xs) + {said.floor}."
    )
    drawn = _drawn(proof)
    alone, server = not drawn.excluded_share, proof.q < 1
    counted = " ".join(
        ["P", *(["N"] if drawn.n_eligible is not None else []), *([] if alone else ["S"])]
    )
    noise = (" noises sigma" if server else "") + (" errors rho" if proof.noisy else "")
    met = f"{counted} A B C D" + (" E" if server else "") + (" U" if proof.noisy else "")
    yield from _proof_of(said, proof, f"{noise} {met}")
    rate = said.rate
    terms = f"((1 - {rate} ^ r) / (1 - {rate}))" if rate != "1" else "INR r"
    value = "(fun x => square (minus x xs))"
    yield (
        f"Theorem {name}_after_every_round :\n"
        f"  forall (V : space) ({said.sizes} : nat) {clients} (xs : V) (d : R)\n"
        f"    {said.random} (iterates : nat -> law V),\n{known}"
        "  (forall r, probabilities (iterates r)) ->\n"
        f"  tower iterates {value} (fun x =>\n"
        f"  {said.round}) ->\n"
        f"  forall r, expectation (iterates r) {value}\n"
        f"  <= {rate} ^ r * expectation (iterates 0%nat) {value}\n"
        f"     + ({said.floor})\n     * {terms}."
    )
    geometric = "geometric_one" if rate == "1" else "geometric_value by lra"
    yield "Proof."
    yield f"  intros V {said.sizes} F G xs d draws{noise} iterates {met} W T r."
    yield f"  rewrite <- {geometric}."
    yield "  refine (all_rounds iterates _ _ _ _ _ W T _ r); [lra|intros x]."
    yield f"  assert (H := {name} V {said.sizes} F G x xs d draws{noise} {met}). lra."
    yield f"Qed.\n\nPrint Assumptions {name}_after_every_round.\n"


def _proof_of(said: _Statement, proof: Proof, met: str) -> Iterator[str]:
    alone = not _drawn(proof).excluded_share
    sizes = "n 0%nat" if alone else "n s"
    sigma, noises, last = (
        ("sigma", "noises", "E") if proof.q < 1 else ("0", "[(1, zero)]", "(silent V)")
    )
    rho, errors = ("rho", "errors") if proof.noisy else ("0", "[(1, fun _ _ => zero)]")
    known = ["P", "N" if " N " in met else "I", "Z" if alone else "S"]
    yield "Proof."
    yield f"  intros V {said.sizes} F G x xs d draws{met}."
    yield "  assert (H := one_round the_claim the_certificate ltac:(vm_compute; reflexivity))."
    yield f"  specialize (H V {sizes} F G x xs d {sigma} {rho} draws {noises} {errors})."
    yield "  unfold the_claim in H. in_numbers H."
    if alone:
        yield "  assert (Z : INR 0 = 0 * (INR n + INR 0)) by (simpl; ring)."
        yield "  rewrite ?Nat.add_0_r in H."
    last += " U" if proof.noisy else ""
    yield f"  specialize (H (conj {known[0]} (conj {known[1]} {known[2]})) A B C D {last}). lra."
    yield "Qed.\n"

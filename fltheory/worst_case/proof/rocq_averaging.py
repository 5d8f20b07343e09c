"""Proofs of weighted averaging as theorems for Rocq: clients in groups, there independently.

What a theorem supposes of the clients' weights in a round are their moments: the mean and the mean
square of one, and the mean product of two. ``rocq/Averaging.v`` holds the checker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from fltheory.worst_case.checker.one_round import Crowd, Proof, slack_blocks
from fltheory.worst_case.proof.rocq_export import (
    HEAD,
    MOST_STEPS,
    NotExportedError,
    claim_fields,
    in_units,
    listed,
    pairs_listed,
    rational,
    real,
    refuse,
    squares_listed,
)


def averaging_theorem(proof: Proof, name: str = "bound_for_every_loss") -> str:
    """Return a file for Rocq whose theorems are what a proof of weighted averaging claims.

    Parameters
    ----------
    proof : Proof
        Checked before, of clients that come independently.
    name : str
        Of the theorem.

    Raises
    ------
    NotExportedError
        For a descent of F, noise, a server's step of its own, an interval of steps, groups whose
        weight is zero, or more than `MOST_STEPS` local steps of all groups.
    """
    first, last = proof.client_lr
    steps = proof.local_steps * len(proof.crowds)
    refuse(
        {
            "a descent of F where clients come independently": proof.of_descent,
            "noise of clients that come independently": proof.noisy,
            "a server's step where clients come independently": proof.q < 1,
            "an interval of step sizes": first < last,
            "a group whose weight is zero": any(not own.mean for own in proof.crowds),
            f"more than {MOST_STEPS} local steps of all groups": steps > MOST_STEPS,
        }
    )
    head = HEAD.replace("Bound Descent", "Bound Averaging")
    return "\n".join((head, *_claim(proof), *_certificate(proof), *_theorem(proof, name)))


def _size(crowd: Crowd) -> int:
    if crowd.n_clients is None:
        raise NotExportedError("a group of clients must have a number of them to be exported")
    return crowd.n_clients


def _products(proof: Proof) -> list[list[Fraction]]:
    """Return the mean products of two clients' weights, zero where a group has no two."""
    crowds = proof.crowds
    return [
        [
            value / pairs if (pairs := _size(own) * (_size(other) - (c == d))) else Fraction(0)
            for d, (other, value) in enumerate(zip(crowds, own.pairs, strict=True))
        ]
        for c, own in enumerate(crowds)
    ]


def _moments(proof: Proof) -> list[list[Fraction]]:
    """Return each group's share, mean weight and mean square, of one client."""
    return [
        [own.share / _size(own) for own in proof.crowds],
        [own.mean / _size(own) for own in proof.crowds],
        [own.square / _size(own) for own in proof.crowds],
    ]


def _sizes(proof: Proof) -> str:
    return listed([str(_size(own)) for own in proof.crowds]) + "%nat"


def _claim(proof: Proof) -> Iterator[str]:
    shares, mean, square = (listed(map(rational, one)) for one in _moments(proof))
    products = listed([listed(map(rational, row)) for row in _products(proof)])
    yield "Definition the_claim : averaging := {|"
    yield f"  sizes := {_sizes(proof)};"
    yield f"  shares := {shares};\n  mean_weights := {mean};\n  square_weights := {square};"
    yield f"  product_weights := {products};\n  the_round := {{|"
    drawn = {"participants": "1%nat", "most_eligible": "None", "excluded_share": "0"}
    yield ";\n".join(f"  {k} := {v}" for k, v in claim_fields(proof, drawn).items())
    yield "|} |}.\n"


def _certificate(proof: Proof) -> Iterator[str]:
    box, lr = proof.boxes[0], proof.client_lr[0]
    budget = proof.bound_at(lr)["heterogeneity"]
    if proof.heterogeneity == "optimum":
        parts = [budget * box.budgets[0] * own.share for own in proof.crowds]
        at_optimum, at_x = parts, [Fraction(0) for _ in parts]
    else:
        at_optimum, at_x = ([budget * part for part in box.budgets[i::2]] for i in (0, 1))
    blocks = in_units(proof, slack_blocks(proof, box, lr))
    # The mean of the first group's gradients at x*, which is what the others leave.
    place, means = 1 + proof.local_steps, [list(row) for row in blocks["means"]]
    means.insert(place, [Fraction(0)] * len(means))
    for row in means:
        row.insert(place, Fraction(0))
    values = {
        "pairs_of_groups": listed([pairs_listed(pairs, lr) for pairs in box.pairs]),
        "budgets_at_optimum": listed(map(rational, at_optimum)),
        "budgets_at_x": listed(map(rational, at_x)),
        "squares_of_means": squares_listed(means),
        "squares_of_groups": listed(
            [squares_listed(blocks.get(f"differences of {own.name}", [])) for own in proof.crowds]
        ),
    }
    yield "Definition the_certificate : averaging_certificate := {|"
    yield ";\n".join(f"  {field} := {value}" for field, value in values.items())
    yield "|}.\n"


def _reals(values: Sequence[Fraction]) -> str:
    return listed(map(real, values))


def _theorem(proof: Proof, name: str) -> Iterator[str]:
    """Yield the theorem in plain mathematics, that of all rounds, and their proofs."""
    lr = proof.client_lr[0]
    bound = {part: real(value) for part, value in proof.bound_at(lr).items()}
    shares, mean, square = map(_reals, _moments(proof))
    sizes, products = _sizes(proof), listed([_reals(row) for row in _products(proof)])
    gradient = f"weighed_gradient {sizes} {shares} G"
    loss = f"weighed {sizes} {shares} (fun c i => F c i"
    gap = f"{loss} x)\n       - {loss} xs)"
    known = (
        f"  (forall c i, member {sizes} c i -> "
        f"interpolable {real(proof.L)} {real(proof.mu)} (F c i) (G c i)) ->\n"
        f"  same ({gradient} xs) zero ->\n  "
        + (
            f"(forall c i y, member {sizes} c i ->\n"
            f"    square (minus (G c i y) ({gradient} y)) <= d * d)"
            if proof.heterogeneity == "everywhere"
            else f"weighed {sizes} {shares} (fun c i => square (G c i xs)) <= d * d"
        )
        + f" ->\n  random_weights weights {sizes}\n    {mean}\n    {square}\n    {products} ->\n"
    )
    played = (
        "expectation weights (fun weight => square (minus\n"
        f"      (averaging_round {sizes} {proof.local_steps} {real(lr)} {real(proof.server_lr)}"
        " G weight x) xs))"
    )
    gained = any(proof.bound["gap"])
    less = f"\n     - {bound['gap']} * ({gap})" if gained else ""
    rate, floor = bound["rate"], f"{bound['heterogeneity']} * (d * d)"
    clients = "(F : nat -> nat -> V -> R) (G : nat -> nat -> V -> V)"
    yield (
        f"Open Scope R_scope.\n\nTheorem {name} :\n  forall (V : space) {clients} (x xs : V) "
        f"(d : R)\n    (weights : law (nat -> nat -> R)),\n{known}  {played}\n"
        f"  <= {rate} * square (minus x xs){less}\n     + {floor}."
    )
    yield "Proof.\n  intros V F G x xs d weights A B C D."
    yield (
        "  assert (H := one_averaging the_claim the_certificate ltac:(vm_compute; reflexivity))."
    )
    yield "  specialize (H V F G x xs d weights). unfold the_claim in H. averaging_in_numbers H."
    yield "  specialize (H A B C D). lra.\nQed.\n"
    value = "(fun x => square (minus x xs))"
    start, terms, weight = f"{rate} ^ r * ", f"((1 - {rate} ^ r) / (1 - {rate}))", ""
    proved = "  rewrite <- geometric_value by lra.\n  refine (all_rounds"
    proved += "_gain iterates _ _" if gained else " iterates"
    proved += " _ _ _ _ _ W T _ r); [lra|intros x]."
    if gained:
        weight = f"{rate} ^ (r - 1 - k) * "
    if rate == "1":
        start, terms, weight = "", "INR r", ""
        proved = "  refine (all_rounds_steady iterates _ _ _ _ _ W T _ r); intros x."
        if not gained:
            start = "1 ^ r * "
            proved = "  rewrite <- geometric_one.\n  refine (all_rounds iterates _ _ _ _ _ W T _ r)"
            proved += "; [lra|intros x]."
    summed = (
        f"\n     + {bound['gap']} * sum r (fun k => {weight}expectation (iterates k)\n"
        f"         (fun x => {gap}))"
        if gained
        else ""
    )
    yield (
        f"Theorem {name}_after_every_round :\n  forall (V : space) {clients} (xs : V) (d : R)\n"
        f"    (weights : law (nat -> nat -> R)) (iterates : nat -> law V),\n{known}"
        "  (forall r, probabilities (iterates r)) ->\n"
        f"  tower iterates {value} (fun x =>\n  {played}) ->\n"
        f"  forall r, expectation (iterates r) {value}{summed}\n"
        f"  <= {start}expectation (iterates 0%nat) {value}\n     + {floor} * {terms}."
    )
    yield "Proof.\n  intros V F G xs d weights iterates A B C D W T r."
    yield proved
    yield f"  assert (H := {name} V F G x xs d weights A B C D). lra."
    yield f"Qed.\n\nPrint Assumptions {name}_after_every_round.\n"

"""One-round proofs as theorems for Rocq (formerly Coq), with the claim in plain mathematics.

The exported file states the bound for every real inner product space, every number of clients that
the certificate covers and all losses that meet the interpolation inequality, in terms of
``rocq/Round.v``. Its proof passes the claim and the multipliers to the checker of
``rocq/OneRound.v``, which ``rocq/Bound.v`` proves sound. Rocq's kernel only has to compute the
slack's blocks and to check that each is the sum of squares written out here. Further down are
proofs about weighted averaging, methods with memory, and clients that come and go in bursts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fltheory.worst_case.checker.correlated_checker import Checker, CorrelatedProof, Sums, name_of
from fltheory.worst_case.checker.kernel import FractionRows, Fractions
from fltheory.worst_case.checker.memory import LyapunovProof, slacks
from fltheory.worst_case.checker.one_round import RESIDUAL, Box, Crowd, Drawn, Proof, slack_blocks
from fltheory.worst_case.proof.rocq_words import (
    NotExportedError,
    defined,
    listed,
    pairs_listed,
    rational,
    rationals,
    real,
    refuse,
    refused,
    rows_listed,
    squares_listed,
)

_NAME = "bound_for_every_loss"
MOST_STEPS = 30
MOST_PARTICIPANTS = 1_000  # Rocq represents such numbers in unary


def rocq_theorem(proof: Proof) -> str:
    """Return a Rocq file with theorems that state a proof's claim, for one and for all rounds.

    Parameters
    ----------
    proof : Proof
        A proof that has been checked.

    Raises
    ------
    NotExportedError
        If clients are present independently, if the proof is for an interval of steps, or if there
        are more than `MOST_STEPS` local steps or `MOST_PARTICIPANTS` participants.
    """
    first, last = proof.client_lr
    drawn = _drawn(proof)
    refuse(
        {
            "an interval of step sizes": first < last,
            "a hypothesis on the run": bool(proof.given),
        }
    )
    refuse_large(proof.local_steps, drawn.participants)
    return "\n".join((_HEAD, _claim(proof), _certificate(proof, proof.boxes[0]), *_theorem(proof)))


def refuse_large(local_steps: int, participants: int) -> None:
    """Refuse a round of drawn clients that would take Rocq too long.

    Raises
    ------
    NotExportedError
        If there are too many local steps or participants.
    """
    refuse(
        {
            f"more than {MOST_STEPS} local steps": local_steps > MOST_STEPS,
            f"more than {MOST_PARTICIPANTS} participants": participants > MOST_PARTICIPANTS,
        }
    )


def _drawn(proof: Proof) -> Drawn:
    """Return the participants' distribution, if they are drawn uniformly."""
    if isinstance(proof.taking_part, Drawn):
        return proof.taking_part
    raise refused("clients that come independently")


_HEAD = """\
(** A bound for every client loss, and its proof: check it with Rocq (Coq 8.16 or later) beside the
    library in the folder rocq of fltheory. *)

From Coq Require Import Reals QArith List Lra Arith.
From fltheory Require Import Space Forms Round OneRound Bound Descent Rounds.
Import ListNotations.
Open Scope Q_scope.
"""


# ---------------------------------------------------------------- the claim and its certificate


_COEFFICIENTS = ("rate", "gap", "decrease", *RESIDUAL)


def _claim(proof: Proof) -> str:
    drawn = _drawn(proof)
    pool = drawn.n_eligible
    of_draw = {
        "participants": f"{drawn.participants}%nat",
        "most_eligible": "None" if pool is None else f"Some {rational(pool)}",
        "excluded_share": rational(drawn.excluded_share),
    }
    return defined("the_claim", "claim", _claim_fields(proof, of_draw))


def _claim_fields(proof: Proof, of_draw: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a claim, given those about participation."""
    lr = proof.client_lr[0]
    bound = proof.bound_at(lr)
    return {
        **of_draw,
        "local_steps": f"{proof.local_steps}%nat",
        "q": rational(proof.q),
        "client_lr": rational(lr),
        "server_lr": rational(proof.server_lr),
        "assist_lr": rational(proof.assist_ratio * lr),
        "smoothness": rational(proof.L),
        "convexity": rational(proof.mu),
        "everywhere": str(proof.heterogeneity == "everywhere").lower(),
        "noisy": str(proof.noisy).lower(),
        "descent": str(proof.of_descent).lower(),
        **{name: rational(bound.get(name, Fraction(0))) for name in _COEFFICIENTS},
    }


def _certificate(proof: Proof, box: Box) -> str:
    lr = proof.client_lr[0]
    bound, unit = proof.bound_at(lr), _square(proof)
    last_noise = proof.q * (proof.server_lr * lr) ** 2 / _drawn(proof).participants
    noise = unit * bound["noise"] - last_noise
    budgets = [unit * bound["heterogeneity"] * part for part in box.budgets]
    if proof.of_descent:
        # A descent has no gradients at x*, so their coefficients are zero.
        budgets = [value for part in budgets for value in (Fraction(0), part)]
    blocks = _in_units(proof, slack_blocks(proof, box, lr))
    values = {
        **{
            f"{group}_pairs": pairs_listed(pairs, lr * _parts(proof))
            for group, pairs in zip(("eligible", "excluded"), [*box.pairs, []], strict=False)
        },
        "budgets": rationals(budgets),
        "noises": rationals([noise * part for part in box.noises]),
        "orthogonal": _orthogonal(proof, box.orthogonal),
        **{
            f"{name}_squares": squares_listed(blocks.get(block, []))
            for name, block in (
                ("mean", "means"),
                ("eligible", "differences of eligible clients"),
                ("excluded", "differences of excluded clients"),
                ("fluctuation", "fluctuations of eligible clients"),
            )
        },
    }
    return defined("the_certificate", "certificate", values)


def _parts(proof: Proof) -> int:
    """Return 2 for a descent of F, in which squares count half, and 1 for the squared distance."""
    return 2 if proof.of_descent else 1


def _square(proof: Proof) -> Fraction:
    """Return the squared distance that corresponds to one unit of the measured quantity."""
    return 2 / proof.L if proof.of_descent else Fraction(1)


def _orthogonal(proof: Proof, values: Fractions) -> str:
    """Return the multipliers of products of a step's noise with earlier vectors, of mean zero."""
    count = proof.local_steps - 1
    before = [(k, j) for k in range(count) for j in (*range(k), *range(count, count + k))]
    unit = 2 * proof.client_lr[0] / proof.L * _parts(proof)
    return listed(
        [
            f"({k}%nat, {j}%nat, {rational(unit * value)})"
            for (k, j), value in zip(before, values, strict=False)
            if value
        ]
    )


def _in_units(proof: Proof, blocks: Mapping[str, FractionRows]) -> dict[str, FractionRows]:
    """Return the blocks, multiplied by e, for gradients in their original units."""
    e = proof.L * proof.client_lr[0] * _parts(proof)
    made = {}
    for name, block in blocks.items():
        if name == "means" and proof.of_descent:
            # The first coordinate, x - x*, is left out.
            nothing = [Fraction(0)] * (1 + len(block))
            block = [nothing, *([Fraction(0), *row] for row in block)]
        size = range(len(block))
        units = [1 / proof.L] * len(block)
        if name == "means":
            units[0] = Fraction(1)
        made[name] = [[e * units[i] * units[j] * block[i][j] for j in size] for i in size]
    return made


# ---------------------------------------------------------------- the theorem


@dataclass(frozen=True)
class _Statement:
    """The parts of the theorem on one round, which the theorem on all rounds also has.

    Attributes
    ----------
    sizes, points, random, round : str
    hypotheses : tuple of str
    value : str
        The quantity that a round decreases, as a function of the model.
    before, floor : str
        The bound on it before the round, and the floor that a round adds.
    gain : str
        An additional decrease, as a function of the model; empty if there is none.
    speed, rate : str
        The coefficients of the gain and of the value before the round.
    """

    sizes: str
    points: str
    random: str
    hypotheses: tuple[str, ...]
    round: str
    value: str
    before: str
    gain: str
    speed: str
    rate: str
    floor: str


def _statement(proof: Proof) -> _Statement:
    bound = {name: real(value) for name, value in proof.bound_at(proof.client_lr[0]).items()}
    drawn = _drawn(proof)
    lr, m, q = proof.client_lr[0], drawn.participants, real(proof.q)
    alone, server = not drawn.excluded_share, proof.q < 1
    everybody = "n" if alone else "(n + s)"
    seen, over, closed = (
        ("(noisy_gradients G xi)", " expectation errors (fun xi =>", ")")
        if proof.noisy
        else ("(exact_gradients G)", "", "")
    )
    loss = f"mean_loss {everybody} F"
    opened, shut = (f"{loss} ", "") if proof.of_descent else ("square (minus ", " xs)")
    played = (
        f"expectation draws (fun who =>{over}\n"
        f"      {opened}(clients_round {everybody} {m} {proof.local_steps} {real(lr)} "
        f"{real(proof.server_lr)}\n        {seen} who x){shut}){closed}"
    )
    floor = f"{bound['heterogeneity']} * (d * d)"
    if server:
        assist = real(proof.assist_ratio * lr)
        played = (
            f"{q} * {played}\n  + (1 - {q}) * expectation noises (fun noise =>\n"
            f"      {opened}(server_round {everybody} {assist} G noise x){shut})"
        )
        floor += f"\n     + {bound['server_noise']} * (sigma * sigma)"
    if proof.noisy:
        floor += f"\n     + {bound['noise']} * (rho * rho)"
    value, gain, speed = "(fun x => square (minus x xs))", "", ""
    before = f"{bound.get('rate', '1')} * square (minus x xs)"
    if proof.of_descent:
        value, speed = f"({loss})", bound["decrease"]
        gain = f"(fun x => square (mean_gradient {everybody} G x))"
        before = f"{loss} x\n     - {speed} * square (mean_gradient {everybody} G x)"
    elif bound["gap"] != "0":
        gain, speed = f"(fun x => {loss} x - {loss} xs)", bound["gap"]
        before += f"\n     - {speed} * ({loss} x - {loss} xs)"
    return _Statement(
        "n" if alone else "n s",
        "xs" * (not proof.of_descent),
        "(draws : law (nat -> bool))"
        + (" (noises : law V) (sigma : R)" if server else "")
        + (" (errors : law (nat -> nat -> V)) (rho : R)" if proof.noisy else ""),
        tuple(_hypotheses(proof, everybody)),
        played,
        value,
        before,
        gain,
        speed,
        bound.get("rate", "1"),
        floor,
    )


def _hypotheses(proof: Proof, everybody: str) -> Iterator[str]:
    drawn = _drawn(proof)
    m, pool, server = drawn.participants, drawn.n_eligible, proof.q < 1
    yield f"({m} <= n)%nat"
    if pool is not None:
        yield f"INR n <= {real(pool)}"
    if drawn.excluded_share:
        yield f"INR s = {real(drawn.excluded_share)} * (INR n + INR s)"
    yield (
        f"(forall i, (i < {everybody})%nat -> "
        f"interpolable {real(proof.L)} {real(proof.mu)} (F i) (G i))"
    )
    if not proof.of_descent:
        yield f"same (mean_gradient {everybody} G xs) zero"
    yield (
        f"(forall i y, (i < {everybody})%nat ->\n"
        f"    square (minus (G i y) (mean_gradient {everybody} G y)) <= d * d)"
        if proof.heterogeneity == "everywhere"
        else f"average {everybody} (fun i => square (G i xs)) <= d * d"
    )
    if proof.of_descent:
        yield "probabilities draws"
    yield f"draws_uniformly draws n {m}"
    if server and proof.of_descent:
        yield "probabilities noises"
    if server:
        yield "unbiased noises sigma"
    if proof.noisy:
        yield f"noise_of_clients errors n {proof.local_steps} rho"


def _theorem(proof: Proof) -> Iterator[str]:
    """Yield the theorems on one round and on all rounds in plain mathematics, with proofs."""
    said = _statement(proof)
    known = "".join(f"  {each} ->\n" for each in said.hypotheses)
    before_floor = "\n     + " if said.gain else " + "
    clients = "(F : nat -> V -> R) (G : nat -> V -> V)"
    yield (
        f"Open Scope R_scope.\n\nTheorem {_NAME} :\n"
        f"  forall (V : space) ({said.sizes} : nat) {clients} ({_names('x', said.points)} : V) "
        f"(d : R)\n"
        f"    {said.random},\n{known}  {said.round}\n"
        f"  <= {said.before}{before_floor}{said.floor}."
    )
    drawn = _drawn(proof)
    alone, server = not drawn.excluded_share, proof.q < 1
    met = _names(
        "P",
        "N" * (drawn.n_eligible is not None),
        "S" * (not alone),
        "A C Q D" if proof.of_descent else "A B C D",
        ("R E" if proof.of_descent else "E") * server,
        "U" * proof.noisy,
    )
    random = _names("draws", "noises sigma" * server, "errors rho" * proof.noisy)
    yield from _proof_of(said, proof, random, met)
    optimum = f" ({said.points} : V)" if said.points else ""
    known_names, points = f"V {said.sizes} F G", _names("x", said.points)
    yield from _after_every_round(
        f"({said.sizes} : nat) {clients}{optimum} (d : R)\n    {said.random}",
        known,
        said.round,
        said.value,
        (said.speed, said.gain),
        said.rate,
        f"({said.floor})\n     * ",
        f"{_names(known_names, said.points)} d {random} iterates {met}",
        f"{known_names} {points} d {random} {met}",
    )


def _after_every_round(
    variables: str,
    known: str,
    played: str,
    value: str,
    gained: tuple[str, str],
    rate: str,
    floor: str,
    introduced: str,
    applied: str,
) -> Iterator[str]:
    """Yield the theorem on all rounds, which follows from that on one round, and its proof.

    Parameters
    ----------
    variables, known, played : str
        The theorem's variables, its assumptions, and the expected value after a round.
    value : str
        The quantity that a round decreases, as a function of the model.
    gained : (str, str)
        The additional decrease, as a coefficient and a function of the model. The function is empty
        if there is none.
    rate, floor : str
        Rate and floor of one round. The floor ends with the multiplication sign before the
        geometric sum over rounds.
    introduced, applied : str
        The names of variables and hypotheses, and the arguments of the theorem on one round.
    """
    speed, gain = gained
    start, terms = f"{rate} ^ r * ", f"((1 - {rate} ^ r) / (1 - {rate}))"
    weight, geometric = f"{rate} ^ (r - 1 - k) * ", "geometric_value by lra"
    if rate == "1":
        start, terms, weight = "1 ^ r * " * (not gain), "INR r", ""
        geometric = "geometric_one"
    summed = (
        f"\n     + {speed} * sum r (fun k => {weight}expectation (iterates k)\n         {gain})"
        if gain
        else ""
    )
    yield (
        f"Theorem {_NAME}_after_every_round :\n"
        f"  forall (V : space) {variables} (iterates : nat -> law V),\n{known}"
        "  (forall r, probabilities (iterates r)) ->\n"
        f"  tower iterates {value} (fun x =>\n  {played}) ->\n"
        f"  forall r, expectation (iterates r) {value}{summed}\n"
        f"  <= {start}expectation (iterates 0%nat) {value}\n     + {floor}{terms}."
    )
    yield f"Proof.\n  intros {introduced} W T r."
    if gain and rate == "1":
        yield "  refine (all_rounds_steady iterates _ _ _ _ _ W T _ r); intros x."
    else:
        lemma = "all_rounds_gain iterates _ _" if gain else "all_rounds iterates"
        yield f"  rewrite <- {geometric}.\n  refine ({lemma} _ _ _ _ _ W T _ r); [lra|intros x]."
    yield f"  assert (H := {_NAME} {applied}). lra."
    yield f"Qed.\n\nPrint Assumptions {_NAME}_after_every_round.\n"


def _names(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _proof_of(said: _Statement, proof: Proof, random: str, met: str) -> Iterator[str]:
    drawn = _drawn(proof)
    alone, server = not drawn.excluded_share, proof.q < 1
    sizes = "n 0%nat" if alone else "n s"
    sigma, noises = ("sigma", "noises") if server else ("0", "[(1, zero)]")
    rho, errors = ("rho", "errors") if proof.noisy else ("0", "[(1, fun _ _ => zero)]")
    law, lemma, numbers = "A B C D", "one_round", "in_numbers"
    last = "E" if server else "(silent V)"
    if proof.of_descent:
        law, lemma, numbers = "A C Q D", "one_descent", "descent_in_numbers"
        last = "R E" if server else "(silence V) (silent V)"
    points = _names("x", said.points)
    fewest = "N" if drawn.n_eligible is not None else "I"
    yield "Proof."
    yield f"  intros V {said.sizes} F G {points} d {random} {met}."
    yield f"  assert (H := {lemma} the_claim the_certificate ltac:(vm_compute; reflexivity))."
    yield f"  specialize (H V {sizes} F G {points} d {sigma} {rho} draws {noises} {errors})."
    yield f"  unfold the_claim in H. {numbers} H."
    if alone:
        yield "  assert (Z : INR 0 = 0 * (INR n + INR 0)) by (simpl; ring)."
        yield "  rewrite ?Nat.add_0_r in H."
    last += " U" * proof.noisy
    share = "Z" if alone else "S"
    yield f"  specialize (H (conj P (conj {fewest} {share})) {law} {last}). lra."
    yield "Qed.\n"


# ------------------------------------------------------------ weighted averaging A theorem's
# assumptions about the clients' weights in a round concern their moments, i.e. the mean and the
# mean square of one weight, and the mean product of two. The checker is in ``rocq/Averaging.v``.


def averaging_theorem(proof: Proof) -> str:
    """Return a Rocq file with theorems that state a proof's claim about weighted averaging.

    Parameters
    ----------
    proof : Proof
        A proof about independently present clients that has been checked.

    Raises
    ------
    NotExportedError
        If the proof is about a descent of F, noise, server steps, an interval of steps or groups
        with weight zero, or if local steps summed over groups exceed `MOST_STEPS`.
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
    head = _HEAD.replace("Bound Descent", "Bound Averaging")
    return "\n".join(
        (
            head,
            *_averaging_claim(proof),
            _averaging_certificate(proof),
            *_averaging_said(proof),
        )
    )


def _group_size(crowd: Crowd) -> int:
    if crowd.n_clients is None:
        raise NotExportedError("a group of clients must have a number of them to be exported")
    return crowd.n_clients


def _mean_products(proof: Proof) -> list[list[Fraction]]:
    """Return the mean products of two clients' weights, or zero if a group has only one client."""
    crowds = proof.crowds
    return [
        [
            value / pairs
            if (pairs := _group_size(own) * (_group_size(other) - (c == d)))
            else Fraction(0)
            for d, (other, value) in enumerate(zip(crowds, own.pairs, strict=True))
        ]
        for c, own in enumerate(crowds)
    ]


def _moments(proof: Proof) -> list[list[Fraction]]:
    """Return, for one client of each group, its share, mean weight and mean squared weight."""
    return [
        [own.share / _group_size(own) for own in proof.crowds],
        [own.mean / _group_size(own) for own in proof.crowds],
        [own.square / _group_size(own) for own in proof.crowds],
    ]


def _group_sizes(proof: Proof) -> str:
    return listed([str(_group_size(own)) for own in proof.crowds]) + "%nat"


def _averaging_claim(proof: Proof) -> Iterator[str]:
    shares, mean, square = map(rationals, _moments(proof))
    yield "Definition the_claim : averaging := {|"
    yield f"  sizes := {_group_sizes(proof)};"
    yield f"  shares := {shares};\n  mean_weights := {mean};\n  square_weights := {square};"
    yield f"  product_weights := {rows_listed(_mean_products(proof))};\n  the_round := {{|"
    drawn = {"participants": "1%nat", "most_eligible": "None", "excluded_share": "0"}
    yield ";\n".join(f"  {k} := {v}" for k, v in _claim_fields(proof, drawn).items())
    yield "|} |}.\n"


def _averaging_certificate(proof: Proof) -> str:
    box, lr = proof.boxes[0], proof.client_lr[0]
    budget = proof.bound_at(lr)["heterogeneity"]
    if proof.heterogeneity == "optimum":
        parts = [budget * box.budgets[0] * own.share for own in proof.crowds]
        at_optimum, at_x = parts, [Fraction(0) for _ in parts]
    else:
        at_optimum, at_x = ([budget * part for part in box.budgets[i::2]] for i in (0, 1))
    blocks = _in_units(proof, slack_blocks(proof, box, lr))
    # The mean of the first group's gradients at x* follows from those of the other groups.
    place, means = 1 + proof.local_steps, [list(row) for row in blocks["means"]]
    means.insert(place, [Fraction(0)] * len(means))
    for row in means:
        row.insert(place, Fraction(0))
    values = {
        "pairs_of_groups": listed([pairs_listed(pairs, lr) for pairs in box.pairs]),
        "budgets_at_optimum": rationals(at_optimum),
        "budgets_at_x": rationals(at_x),
        "squares_of_means": squares_listed(means),
        "squares_of_groups": listed(
            [squares_listed(blocks.get(f"differences of {own.name}", [])) for own in proof.crowds]
        ),
    }
    return defined("the_certificate", "averaging_certificate", values)


def _reals(values: Sequence[Fraction]) -> str:
    return listed(map(real, values))


def _averaging_said(proof: Proof) -> Iterator[str]:
    """Yield the theorems on one round and on all rounds in plain mathematics, with proofs."""
    lr = proof.client_lr[0]
    bound = {part: real(value) for part, value in proof.bound_at(lr).items()}
    shares, mean, square = map(_reals, _moments(proof))
    sizes, products = _group_sizes(proof), listed([_reals(row) for row in _mean_products(proof)])
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
        f"Open Scope R_scope.\n\nTheorem {_NAME} :\n  forall (V : space) {clients} (x xs : V) "
        f"(d : R)\n    (weights : law (nat -> nat -> R)),\n{known}  {played}\n"
        f"  <= {rate} * square (minus x xs){less}\n     + {floor}."
    )
    yield "Proof.\n  intros V F G x xs d weights A B C D."
    yield (
        "  assert (H := one_averaging the_claim the_certificate ltac:(vm_compute; reflexivity))."
    )
    yield "  specialize (H V F G x xs d weights). unfold the_claim in H. averaging_in_numbers H."
    yield "  specialize (H A B C D). lra.\nQed.\n"
    yield from _after_every_round(
        f"{clients} (xs : V) (d : R)\n    (weights : law (nat -> nat -> R))",
        known,
        played,
        "(fun x => square (minus x xs))",
        (bound["gap"], f"(fun x => {gap})" if gained else ""),
        rate,
        f"{floor} * ",
        "V F G xs d weights iterates A B C D",
        "V F G x xs d weights A B C D",
    )


# ------------------------------------------------------------ methods with memory The theorem is
# only about the model and the memory. The Lyapunov function belongs to the proof, which passes it
# to the checker of ``rocq/Memory.v``.

MOST_CLIENTS = 1_000  # Rocq represents such numbers in unary
_MEMORY = 1  # index of the remembered gradients' mean, after x - x*


def memory_theorem(proof: LyapunovProof) -> str:
    """Return a Rocq file with a theorem that states a proof's claim about a method with memory.

    Parameters
    ----------
    proof : LyapunovProof
        A proof that has been checked.

    Raises
    ------
    NotExportedError
        If there is only one client, or if there are more than `MOST_CLIENTS`.
    """
    refuse(
        {
            "a single client": proof.n_clients == 1,
            f"more than {MOST_CLIENTS} clients": proof.n_clients > MOST_CLIENTS,
        }
    )
    head = _HEAD.replace("Descent Rounds", "Memory Rounds")
    return "\n".join((head, _memory_claim(proof), _memory_certificate(proof), *_memory_said(proof)))


def _memory_claim(proof: LyapunovProof) -> str:
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
    return defined("the_claim", "memory_claim", values)


def _memory_certificate(proof: LyapunovProof) -> str:
    values = {
        "of_means": rows_listed(proof.means),
        "of_differences": rows_listed(proof.differences),
        "memory_value": rational(proof.memory_value),
        "model_value": rational(proof.model_value),
    }
    for inequality, (form, zero) in slacks(proof).items():
        blocks = form.blocks(zero)
        # Clients do not differ in x - x*, and the remembered gradients may have mean zero.
        differences = _without(blocks["differences of clients"], 0)
        means = _without(blocks["means"], _MEMORY) if zero else blocks["means"]
        values[f"{inequality}_pairs"] = pairs_listed(proof.multipliers[inequality], Fraction(1))
        values[f"{inequality}_means"] = squares_listed(_memory_in_units(proof, means))
        values[f"{inequality}_differences"] = squares_listed(_memory_in_units(proof, differences))
    return defined("the_certificate", "lyapunov", values)


def _without(block: FractionRows, place: int) -> FractionRows:
    """Return a block with an additional coordinate on which it does not depend."""
    rows = [[*row[:place], Fraction(0), *row[place:]] for row in block]
    return [*rows[:place], [Fraction(0)] * (len(block) + 1), *rows[place:]]


def _memory_in_units(proof: LyapunovProof, block: FractionRows) -> FractionRows:
    """Return a block with the gradients w and u in their original units."""
    units = [Fraction(1), 1 / proof.L, Fraction(1), 1 / proof.L]
    size = range(len(block))
    return [[units[i] * units[j] * block[i][j] for j in size] for i in size]


def _memory_said(proof: LyapunovProof) -> Iterator[str]:
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
        f"Open Scope R_scope.\n\nTheorem {_NAME} :\n"
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
    yield f"Qed.\n\nPrint Assumptions {_NAME}.\n"


# ------------------------------------------------------------ clients in bursts The theorem is
# about the distribution of who is present and about the model in every round. The decreasing
# function belongs to the proof, which passes it to the checker of ``rocq/Bursts.v``.

MOST_IN_BURSTS, MOST_STEPS_IN_BURSTS = 20, 10


def bursts_theorem(proof: CorrelatedProof) -> str:
    """Return a Rocq file with a theorem that states a proof's claim about clients in bursts.

    Parameters
    ----------
    proof : CorrelatedProof
        A proof that has been checked.

    Raises
    ------
    NotExportedError
        If the proof is about a chain of sets, several groups of clients, noise or clients that are
        always present, or if there are more than `MOST_IN_BURSTS` clients or `MOST_STEPS_IN_BURSTS`
        local steps.
    """
    refuse_rounds(proof, proof.noisy)
    head = _HEAD.replace("Descent Rounds", "Bursts")
    return "\n".join((head, _bursts_claim(proof), _bursts_certificate(proof), *_bursts_said(proof)))


def refuse_rounds(rounds: Any, noisy: bool) -> None:
    """Refuse rounds of clients in bursts that Rocq's library cannot, or cannot quickly, check.

    Parameters
    ----------
    rounds : CorrelatedProof or AveragingRound
    noisy : bool
        Whether clients' gradients have noise.

    Raises
    ------
    NotExportedError
        If something is not covered. The message names the first such feature.
    """
    own = rounds.groups[0]
    refuse(
        {
            "a chain of sets of clients": rounds.chain is not None,
            "several groups of clients in bursts": len(rounds.groups) > 1,
            "noise of clients in bursts": noisy,
            "clients that are always present": own.availability == 1,
            f"more than {MOST_IN_BURSTS} clients in bursts": own.n_clients > MOST_IN_BURSTS,
            f"more than {MOST_STEPS_IN_BURSTS} local steps": rounds.local_steps
            > MOST_STEPS_IN_BURSTS,
        }
    )


def _bursts_claim(proof: CorrelatedProof) -> str:
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


def _bursts_certificate(proof: CorrelatedProof) -> str:
    checker, places = Checker(proof), range(len(proof.states))
    values = {
        "below": rational(proof.below),
        "values": listed([_numbers_of(proof, place) for place in places]),
        "pairs_of_present": listed([_pairs_of(proof, place, True) for place in places]),
        "pairs_of_absent": listed([_pairs_of(proof, place, False) for place in places]),
        "squares_of_rounds": listed([_squares_of(checker.round_slack(place)) for place in places]),
        "squares_from_below": listed([_squares_of(checker.end_slack(place)) for place in places]),
        "squares_at_first": _squares_of(checker.start_slack()),
    }
    return defined("the_certificate", "bursts_certificate", values)


def _numbers_of(proof: CorrelatedProof, place: int) -> str:
    """Return the five numbers of the function in a state."""
    one = proof.function[place]
    (a, b), (_, c) = one.form
    return rationals((a, b, c, one.present[0], one.all[0]))


def _pairs_of(proof: CorrelatedProof, place: int, present: bool) -> str:
    """Return the multipliers of present or of absent clients in a state, if there are any."""
    for cell, weights in zip(
        proof.cells(proof.states[place]), proof.multipliers[place], strict=True
    ):
        if cell[1] == present:
            return pairs_listed(weights, Fraction(1))
    return "[]"


def _squares_of(sums: Sums) -> str:
    """Return a slack's blocks, of means and of each cell's differences, as squares."""
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
    """Return a block's coordinates in terms of Rocq's, whose gradients are not relative to x*.

    In Rocq's coordinates, gradients at x* are not subtracted. In both, x - x* comes first. The
    block leaves out the first cell's mean gradient at x*. This follows from the other cell's mean
    and the cells' sizes, and is zero if there is no other cell.
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
    """Return a block of differences for one client, without subtracting gradients at x*."""
    size = len(block)
    rows = [_unit(size, j) for j in range(size)]
    for row in rows[:-1]:
        row[-1] -= 1
    return [[value / members for value in row] for row in _composed(block, rows)]


def _unit(size: int, index: int) -> list[Fraction]:
    return [Fraction(int(place == index)) for place in range(size)]


def _composed(block: FractionRows, rows: Sequence[Fractions]) -> FractionRows:
    """Return a form in new coordinates; the rows are the old coordinates in terms of the new."""
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


def _bursts_said(proof: CorrelatedProof) -> Iterator[str]:
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
        f"Open Scope R_scope.\n\nTheorem {_NAME} :\n"
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
    yield f"Qed.\n\nPrint Assumptions {_NAME}.\n"

"""Read what an exported theorem says, from its file alone: a program of its own.

    python read_back.py FILE.v [CERTIFICATE.json]

Everything in the file is compared with the one shape that such a file has: what it imports, two
definitions that hold nothing but numbers, the theorems of one round and of all with their
hypotheses, and proofs that hand the numbers to the library. What is not of that shape, a name
defined anew say, is refused. With the certificate beside it the theorems' numbers must be those of
its claim. Standard library only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

WHOLE = r"[0-9]+"
REAL = r"(?:[0-9]+|\(-[0-9]+\)|\(-?[0-9]+ / [1-9][0-9]*\))"
VALUE = r"(?:[0-9]+|\(-?[0-9]+(?: # [0-9]+)?\))"
FIELD = rf"  [a-z_]+ := (?:[0-9]+%nat|None|Some {VALUE}|true|false|{VALUE});?\n"
NAMES = (
    r"(?:eligible|excluded)_(?:pairs|squares)|budgets|noises|orthogonal|(?:mean|fluctuation)_squares|"
    r"pairs_of_groups|budgets_at_(?:optimum|x)|squares_of_(?:means|groups)|sizes|shares|"
    r"(?:mean|square|product)_weights|of_(?:means|differences)|"
    r"(?:positive|decrease|begin)_(?:pairs|means|differences)|"
    r"values|pairs_of_(?:present|absent)|squares_(?:of_rounds|from_below|at_first)"
)
LISTS = rf"  (?:{NAMES}) := \[[0-9 #();,\[\]%nat\-]*\](?:%nat)?;?\n"
REALS = rf"\[{REAL}(?:; {REAL})*\]"
# What stands for a number, or for some, by its name; else one real number does.
SLOTS = {
    "m": WHOLE,
    "K": WHOLE,
    "n": WHOLE,
    "sizes": rf"\[{WHOLE}(?:; {WHOLE})*\]%nat",
    **dict.fromkeys(("shares", "means", "squares"), REALS),
    "products": rf"\[{REALS}(?:; {REALS})*\]",
}

HEAD = """\
(** A bound for every client loss, and its proof: check it with Rocq (Coq 8.16 or later) beside the
    library in the folder rocq of fltheory. *)

From Coq Require Import Reals QArith List Lra Arith.
From fltheory Require Import Space Forms Round OneRound Bound Descent Rounds.
Import ListNotations.
Open Scope Q_scope.

Definition the_claim : claim := {|
@(?:FIELD)*@|}.

Definition the_certificate : certificate := {|
@(?:LISTS)*@|}.

Open Scope R_scope.

Theorem @(?P<name>[a-z][a-z0-9_]*)@ :
"""
# Clients in groups, whose weights are random.
AVERAGING = HEAD.replace("Bound Descent", "Bound Averaging")
AVERAGING = AVERAGING.replace(
    "claim : claim := {|\n", "claim : averaging := {|\n@(?:LISTS)*@  the_round := {|\n"
)
AVERAGING = AVERAGING.replace("|}.\n\nDefinition", "|} |}.\n\nDefinition")
AVERAGING = AVERAGING.replace(": certificate :=", ": averaging_certificate :=")
# Methods with memory.
MEMORY = HEAD.replace("Descent Rounds", "Memory Rounds")
MEMORY = MEMORY.replace(": claim :=", ": memory_claim :=").replace(
    ": certificate :=", ": lyapunov :="
)
MEMORY = MEMORY.replace("@(?:LISTS)*@", "@(?:LISTS|FIELD)*@")
# Clients that come and go in bursts.
BURSTS = MEMORY.replace("Memory Rounds", "Bursts").replace(": memory_claim :=", ": bursts_claim :=")
BURSTS = BURSTS.replace(": lyapunov :=", ": bursts_certificate :=")
EXCLUDING = ("n s", "(n + s)", "INR s = {share} * (INR n + INR s) ->\n  ")
ALONE = ("n", "n", "")
DIFFERENCES = {
    "everywhere": """(forall i y, (i < {N})%nat ->
    square (minus (G i y) (mean_gradient {N} G y)) <= d * d)""",
    "optimum": "average {N} (fun i => square (G i xs)) <= d * d",
}
PROOF = """Proof.
@(?:  .*\\n)*@Qed.

"""
EVERY_ROUND = "Theorem @(?P=name)@_after_every_round :\n"
# What a round makes smaller; by how much besides, of one round, and in the sum over rounds.
APART = "mean_loss {N} F x - mean_loss {N} F xs"
SLOPE = "square (mean_gradient {N} G x)"
VALUES = {
    "distance": ("(fun x => square (minus x xs))", "", "", ""),
    "gap": ("(fun x => square (minus x xs))", "{gap}", f"({APART})", APART),
    "descent": ("(mean_loss {N} F)", "{decrease}", SLOPE, SLOPE),
}
END = "Print Assumptions @(?P=name)@_after_every_round.\n"
# What a proof may be made of.
DRAWS = r"draws (?:noises sigma )?(?:errors rho )?"
MET = r"P (?:N )?(?:S )?A (?:B C|C Q) D(?: R)?(?: E)?(?: U)?"
STEPS = re.compile(
    r"intros V F G x xs d memory draws iterates A B C D E I W T\.|"
    r"assert \(H := one_memory the_claim the_certificate "
    r"ltac:\(vm_compute; reflexivity\)\)\.|"
    r"specialize \(H V F G x xs d memory draws iterates\)\. unfold the_claim in H\.|"
    r"memory_in_numbers H\. exact \(H A B C D E I W T\)\.|"
    r"intros V F G x xs h A B C T P\.|"
    r"assert \(H := one_in_bursts the_claim the_certificate "
    r"ltac:\(vm_compute; reflexivity\)\)\.|"
    r"specialize \(H V F G x xs h\)\. unfold the_claim in H\. bursts_in_numbers H\.|"
    r"exact \(H A B C T P\)\.|"
    r"intros V F G (?:x )?xs d weights (?:iterates )?A B C D(?: W T r)?\.|"
    r"assert \(H := one_averaging the_claim the_certificate "
    r"ltac:\(vm_compute; reflexivity\)\)\.|"
    r"specialize \(H V F G x xs d weights\)\. unfold the_claim in H\. averaging_in_numbers H\.|"
    r"specialize \(H A B C D\)\. lra\.|"
    r"assert \(H := THEOREM V F G x xs d weights A B C D\)\. lra\.|"
    rf"intros V n (?:s )?F G x (?:xs )?d {DRAWS}{MET}\.|"
    r"assert \(H := one_(?:round|descent) the_claim the_certificate "
    r"ltac:\(vm_compute; reflexivity\)\)\.|"
    r"specialize \(H V n (?:s|0%nat) F G x (?:xs )?d (?:sigma|0) (?:rho|0) draws "
    r"(?:noises|\[\(1, zero\)\]) (?:errors|\[\(1, fun _ _ => zero\)\])\)\.|"
    r"unfold the_claim in H\. (?:descent_)?in_numbers H\.|"
    r"assert \(Z : INR 0 = 0 \* \(INR n \+ INR 0\)\) by \(simpl; ring\)\.|"
    r"rewrite \?Nat\.add_0_r in H\.|"
    r"specialize \(H \(conj P \(conj [NI] [SZ]\)\) A (?:B C|C Q) D (?:R |\(silence V\) )?"
    r"(?:E|\(silent V\))(?: U)?\)\. lra\.|"
    rf"intros V n (?:s )?F G (?:xs )?d {DRAWS}iterates {MET} W T r\.|"
    r"rewrite <- (?:geometric_one|geometric_value by lra)\.|"
    r"refine \(all_rounds(?:_gain iterates _ _| iterates) _ _ _ _ _ W T _ r\); \[lra\|intros x\]\.|"
    r"refine \(all_rounds_steady iterates _ _ _ _ _ W T _ r\); intros x\.|"
    rf"assert \(H := THEOREM V n (?:s )?F G x (?:xs )?d {DRAWS}{MET}\)\. lra\."
)


class NotReadError(ValueError):
    """The file is not of the shape of an exported theorem, or says something else."""


class Shape(NamedTuple):
    """What a theorem speaks of, beside its numbers.

    Attributes
    ----------
    share, most, server, noisy, steady : bool
        Whether some clients are excluded, their number has a bound, the server may step by itself,
        clients' gradients have noise, and floors of rounds add up.
    heterogeneity : str
        Where gradients differ by a bound.
    measure : str
        "distance", "gap" of F besides, or "descent" of F.
    """

    share: bool
    most: bool
    server: bool
    noisy: bool
    steady: bool
    heterogeneity: str
    measure: str


def shape_of(text: str) -> Shape:
    """Return the one shape that a file can have; whether it has it is seen by its pattern."""
    return Shape(
        share="(n s : nat)" in text,
        most="INR n <= " in text,
        server="(sigma : R)" in text,
        noisy="(rho : R)" in text,
        steady="* INR r." in text,
        heterogeneity="optimum" if re.search(r"square \(G (?:c )?i xs\)", text) else "everywhere",
        measure="distance"
        if not re.search("mean_loss|F c i xs", text)
        else "gap"
        if "xs : V" in text
        else "descent",
    )


def statements(shape: Shape) -> tuple[str, str]:
    """Return both theorems' text with places for their numbers, in braces."""
    sizes, everybody, excluded = EXCLUDING if shape.share else ALONE
    descent, server = shape.measure == "descent", shape.server
    seen, over, closed = (
        ("noisy_gradients G xi", " expectation errors (fun xi =>", ")")
        if shape.noisy
        else ("exact_gradients G", "", "")
    )
    opened, shut = ("mean_loss {N} F ", "") if descent else ("square (minus ", " xs)")
    one_round = (
        "expectation draws (fun who =>"
        + over
        + f"\n      {opened}(clients_round {{N}} {{m}} {{K}} {{client_lr}} {{server_lr}}\n        ("
        + seen
        + f") who x){shut})"
        + closed
    )
    floor = "{heterogeneity} * (d * d)"
    if server:
        one_round = (
            "{q} * " + one_round + "\n  + (1 - {q}) * expectation noises (fun noise =>\n      "
            f"{opened}(server_round {{N}} {{assist_lr}} G noise x){shut})"
        )
        floor += "\n     + {server_noise} * (sigma * sigma)"
    if shape.noisy:
        floor += "\n     + {noise} * (rho * rho)"
    value, speed, gain, gained = VALUES[shape.measure]
    before, first, weight = (
        "{rate} * square (minus x xs)",
        "{rate} ^ r * ",
        "{rate} ^ (r - 1 - k) * ",
    )
    if descent:
        before = "mean_loss {N} F x"
    if speed and shape.steady:
        first = weight = ""
    less = f"\n     - {speed} * {gain}\n    " if speed else ""
    sums = (
        f"\n     + {speed} * sum r (fun k => {weight}expectation (iterates k)\n         "
        f"(fun x => {gained}))"
        if speed
        else ""
    )
    points, optimum = ("x", "") if descent else ("x xs", "(xs : V) ")
    losses = f"  forall (V : space) ({sizes} : nat) (F : nat -> V -> R) (G : nat -> V -> V) "
    random = (
        "    (draws : law (nat -> bool))"
        + (" (noises : law V) (sigma : R)" if server else "")
        + (" (errors : law (nat -> nat -> V)) (rho : R)" if shape.noisy else "")
    )
    hypotheses = (
        "  ({m} <= n)%nat ->\n  "
        + ("INR n <= {most} ->\n  " if shape.most else "")
        + excluded
        + "(forall i, (i < {N})%nat -> interpolable {L} {mu} (F i) (G i)) ->\n  "
        + ("" if descent else "same (mean_gradient {N} G xs) zero ->\n  ")
        + DIFFERENCES[shape.heterogeneity]
        + (" ->\n  probabilities draws" if descent else "")
        + " ->\n  draws_uniformly draws n {m} ->\n"
        + ("  probabilities noises ->\n" if descent and server else "")
        + ("  unbiased noises sigma ->\n" if server else "")
        + ("  noise_of_clients errors n {K} rho ->\n" if shape.noisy else "")
    )
    one = (
        f"{losses}({points} : V) (d : R)\n{random},\n{hypotheses}  {one_round}\n"
        f"  <= {before}{less} + {floor}.\n"
    )
    terms = "INR r" if shape.steady else "((1 - {rate} ^ r) / (1 - {rate}))"
    if shape.steady and not speed:
        first = "1 ^ r * "
    all_rounds = (
        f"{losses}{optimum}(d : R)\n{random} (iterates : nat -> law V),\n{hypotheses}"
        f"  (forall r, probabilities (iterates r)) ->\n  tower iterates {value} (fun x =>\n"
        f"  {one_round}) ->\n  forall r, expectation (iterates r) {value}{sums}\n"
        f"  <= {first}expectation (iterates 0%nat) {value}\n"
        f"     + ({floor})\n     * {terms}.\n"
    )
    return one.replace("{N}", everybody), all_rounds.replace("{N}", everybody)


def averaging_statements(shape: Shape) -> tuple[str, str]:
    """Return both theorems' text, of clients in groups, with places for their numbers."""
    gradient, loss = "weighed_gradient {sizes} {shares} G", "weighed {sizes} {shares} (fun c i => "
    gap = f"{loss}F c i x)\n       - {loss}F c i xs)"
    differences = (
        f"{loss}square (G c i xs)) <= d * d"
        if shape.heterogeneity == "optimum"
        else "(forall c i y, member {sizes} c i ->\n"
        f"    square (minus (G c i y) ({gradient} y)) <= d * d)"
    )
    one_round = (
        "expectation weights (fun weight => square (minus\n      "
        "(averaging_round {sizes} {K} {client_lr} {server_lr} G weight x) xs))"
    )
    hypotheses = (
        "  (forall c i, member {sizes} c i -> interpolable {L} {mu} (F c i) (G c i)) ->\n"
        f"  same ({gradient} xs) zero ->\n  {differences} ->\n"
        "  random_weights weights {sizes}\n    {means}\n    {squares}\n    {products} ->\n"
    )
    losses = "  forall (V : space) (F : nat -> nat -> V -> R) (G : nat -> nat -> V -> V) "
    random = "    (weights : law (nat -> nat -> R))"
    less = sums = ""
    first, terms = "{rate} ^ r * ", "((1 - {rate} ^ r) / (1 - {rate}))"
    weight = "{rate} ^ (r - 1 - k) * "
    if shape.steady:
        first, terms, weight = "1 ^ r * ", "INR r", ""
    if shape.measure == "gap":
        less = f"\n     - {{gap}} * ({gap})"
        sums = (
            f"\n     + {{gap}} * sum r (fun k => {weight}expectation (iterates k)\n"
            f"         (fun x => {gap}))"
        )
        first = "" if shape.steady else first
    value = VALUES[shape.measure][0]
    one = (
        f"{losses}(x xs : V) (d : R)\n{random},\n{hypotheses}  {one_round}\n"
        f"  <= {{rate}} * square (minus x xs){less}\n     + {{heterogeneity}} * (d * d).\n"
    )
    all_rounds = (
        f"{losses}(xs : V) (d : R)\n{random} (iterates : nat -> law V),\n{hypotheses}"
        f"  (forall r, probabilities (iterates r)) ->\n  tower iterates {value} (fun x =>\n"
        f"  {one_round}) ->\n  forall r, expectation (iterates r) {value}{sums}\n"
        f"  <= {first}expectation (iterates 0%nat) {value}\n"
        f"     + {{heterogeneity}} * (d * d) * {terms}.\n"
    )
    return one, all_rounds


def memory_statement(from_zero: bool, of_gap: bool) -> str:
    """Return the theorem's text, of a method with memory, with places for its numbers."""
    left = "expectation (iterates r) (fun state => square (minus (fst state) xs))"
    if of_gap:
        left = (
            "{gap} * sum r (fun k => {rate} ^ (r - 1 - k)\n"
            "    * expectation (iterates k) (fun state =>\n"
            "        mean_loss {n} F (fst state) - mean_loss {n} F xs))"
        )
    first = (
        "(forall i, (i < {n})%nat -> same (G i (memory i)) zero)"
        if from_zero
        else "memory = (fun _ => x)"
    )
    return (
        "  forall (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V) (d : R)\n"
        "    (memory : nat -> V) (draws : law (nat -> bool)) "
        "(iterates : nat -> law (V * (nat -> V))),\n"
        "  (forall i, (i < {n})%nat -> interpolable {L} {mu} (F i) (G i)) ->\n"
        "  same (mean_gradient {n} G xs) zero ->\n"
        "  average {n} (fun i => square (G i xs)) <= d * d ->\n"
        "  there_with draws {n} {p} {two} ->\n"
        f"  {first} ->\n  iterates 0%nat = [(1, (x, memory))] ->\n"
        "  (forall r, probabilities (iterates r)) ->\n"
        "  (forall value, tower iterates value (fun state => expectation draws (fun who =>\n"
        "    value (memory_round {n} {step} {surprise} G who state)))) ->\n"
        f"  forall r, {left}\n"
        "  <= {rate} ^ r * ({start} * square (minus x xs) + {heterogeneity} * (d * d)).\n"
    )


def bursts_statement(over_present: bool, measure: str) -> str:
    """Return the theorem's text, of clients in bursts, with places for its numbers."""
    divided = "(Nat.max 1 (present there))" if over_present else "1"
    played = (
        f"(fun there =>\n      clients_round {{n}} {divided} {{K}} {{client_lr}} {{server_lr}}\n"
        "        (exact_gradients G) (is_there there))"
    )
    run, value = "(in_bursts {n} {p} {lambda}", "(fun state => square (minus (snd state) xs))"
    started = "({start} * square (minus x xs) + {start_heterogeneity} * h)"
    bound = f"{started} / INR T\n     + {{heterogeneity}} * h"
    if measure == "distance":
        left = f"average T (fun t => expectation\n    {run} {played} x t)\n    {value})"
    elif measure == "loss":
        left = (
            f"expectation\n    {run} (summing {played}) (x, zero) T)\n    (fun state => "
            "mean_loss {n} F (scale (/ INR T) (snd (snd state)))) - mean_loss {n} F xs"
        )
    else:
        left = f"expectation\n    {run} {played} x T)\n    {value}"
        bound = (
            f"{{rate}} ^ T * {started}\n"
            "     + (1 - {rate} ^ T) / (1 - {rate}) * ({heterogeneity} * h)"
        )
    return (
        "  forall (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V) (h : R),\n"
        "  (forall i, (i < {n})%nat -> interpolable {L} {mu} (F i) (G i)) ->\n"
        "  same (mean_gradient {n} G xs) zero ->\n"
        "  average {n} (fun i => square (G i xs)) = h ->\n"
        f"  forall T, (0 < T)%nat ->\n  {left}\n  <= {bound}.\n"
    )


def _read_memory(text: str) -> dict[str, Any]:
    from_zero, of_gap = "memory = " not in text, "mean_loss" in text
    numbers = _read_one(text, MEMORY + memory_statement(from_zero, of_gap))
    return {**numbers, "from_zero": from_zero, "measure": "gap" if of_gap else "distance"}


def _read_bursts(text: str) -> dict[str, Any]:
    over_present = "Nat.max" in text
    measure = "loss" if "mean_loss" in text else "rate" if "^ T" in text else "distance"
    numbers = _read_one(text, BURSTS + bursts_statement(over_present, measure))
    return {**numbers, "over_present": over_present, "measure": measure}


def _read_one(text: str, head: str) -> dict[str, Any]:
    """Return the numbers of a file with one theorem."""
    end = END.replace("_after_every_round", "")
    found = _whole_pattern(head + PROOF + end).fullmatch(text)
    if found is None:
        raise NotReadError("the file must be of the shape of an exported theorem")
    _check_proofs(text, found["name"])
    return {name: _value(one) for name, one in found.groupdict().items() if name != "name"}


def read(text: str) -> dict[str, Any]:
    """Return the numbers of an exported file's theorems, by name.

    Raises
    ------
    NotReadError
        If the file is of another shape.
    """
    if "memory_round" in text:
        return _read_memory(text)
    if "in_bursts" in text:
        return _read_bursts(text)
    shape = shape_of(text)
    in_groups = "averaging_round" in text
    said = averaging_statements(shape) if in_groups else statements(shape)
    found = _pattern(AVERAGING if in_groups else HEAD, *said).fullmatch(text)
    if found is None:
        raise NotReadError("the file must be of the shape of an exported theorem")
    # Where the rate is one, as many floors add up as there are rounds.
    if shape.measure != "descent" and shape.steady != (_value(found["rate"]) == 1):
        raise NotReadError(f"the rate does not fit the bound of all rounds, got {found['rate']}")
    _check_proofs(text, found["name"])
    return _numbers_in_groups(found, shape) if in_groups else _numbers(found, shape)


def _check_proofs(text: str, name: str) -> None:
    for body in re.findall(r"^Proof\.\n(.*?)^Qed\.$", text, re.MULTILINE | re.DOTALL):
        for line in body.splitlines():
            if not STEPS.fullmatch(line.strip().replace(f"H := {name} ", "H := THEOREM ")):
                raise NotReadError(f"the proof has a line of its own: {line.strip()[:60]}")


def _pattern(head: str, first: str, all_rounds: str) -> re.Pattern[str]:
    return _whole_pattern(head + first + PROOF + EVERY_ROUND + all_rounds + PROOF + END)


@cache
def _whole_pattern(text: str) -> re.Pattern[str]:
    seen: set[str] = set()
    parts = [
        piece if index % 2 else _literal(piece, seen) for index, piece in enumerate(text.split("@"))
    ]
    return re.compile("".join(parts).replace("FIELD", FIELD).replace("LISTS", LISTS))


def _literal(piece: str, seen: set[str]) -> str:
    def slot(found: re.Match[str]) -> str:
        name = found.group(1)
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{SLOTS.get(name, REAL)})"

    escaped = re.escape(piece).replace(r"\{", "{").replace(r"\}", "}")
    return re.sub(r"\{([A-Za-z_]+)\}", slot, escaped)


def _numbers(found: re.Match[str], shape: Shape) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        name: _value(text) for name, text in found.groupdict().items() if name != "name"
    }
    numbers |= {"heterogeneity_at": shape.heterogeneity, "noisy": shape.noisy}
    numbers |= {"measure": shape.measure}
    numbers |= {} if shape.share else {"share": Fraction(0)}
    numbers |= {} if shape.most else {"most": None}
    numbers |= {} if shape.server else {"q": Fraction(1)}
    return numbers


def _numbers_in_groups(found: re.Match[str], shape: Shape) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "heterogeneity_at": shape.heterogeneity,
        "measure": shape.measure,
    }
    for name, text in found.groupdict().items():
        if name == "products":
            numbers[name] = [_values(row) for row in re.findall(REALS, text)]
        elif name != "name":
            numbers[name] = _values(text) if name in SLOTS and name != "K" else _value(text)
    return numbers


def _values(text: str) -> list[Fraction]:
    return [_value(one) for one in re.findall(REAL, text)]


def _value(text: str) -> Fraction:
    above, _, below = text.strip("()").partition(" / ")
    return Fraction(int(above), int(below or 1))


class Fields:
    """An object of a certificate, whose fields are taken one by one: none may be left over."""

    def __init__(self, found: Any, place: str = "") -> None:
        self._place = place
        if not isinstance(found, Mapping):
            self._refuse("", "an object with fields", found)
        self._left, self._parts = dict(found), list[Fields]()

    def _refuse(self, name: str, wanted: str, found: Any) -> NoReturn:
        place = ".".join(filter(None, (self._place, name)))
        what = f"the certificate's {place}" if place else "the certificate"
        raise NotReadError(f"{what} must be {wanted}, got {_shown(found)}")

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str) -> Any:
        """Return a field's value, whatever it is."""
        if name not in self._left:
            self._refuse("", f"an object with the field {name}", [*self._left])
        return self._left.pop(name)

    def proof(self, names: str) -> None:
        """Leave out what the claim does not depend on, as only the proof does."""
        for name in names.split():
            self.take(name)

    def part(self, name: str) -> Fields:
        """Return an object in a field."""
        return self._part(name, self.take(name))

    def _part(self, place: str, found: Any) -> Fields:
        self._parts.append(Fields(found, ".".join(filter(None, (self._place, place)))))
        return self._parts[-1]

    def each(self, name: str) -> list[Fields]:
        """Return the objects of a list."""
        return [self._part(f"{name}.{c}", one) for c, one in enumerate(self._list(name))]

    def only(self, name: str) -> Fields:
        """Return the one object of a list."""
        found = self.each(name)
        if len(found) != 1:
            self._refuse(name, "a list of one", len(found))
        return found[0]

    def _list(self, name: str) -> list[Any]:
        found = self.take(name)
        if not isinstance(found, list):
            self._refuse(name, "a list", found)
        return found

    def one_of(self, name: str, *values: Any) -> Any:
        """Return a field's value, which must be among these."""
        found = self.take(name)
        if not any(type(found) is type(value) and found == value for value in values):
            self._refuse(name, " or ".join(map(_shown, values)), found)
        return found

    def whole(self, name: str, *words: str) -> Any:
        """Return a whole number of at least one, or one of these words."""
        found = self.take(name)
        if found in words:
            return found
        if type(found) is not int or found < 1:
            wanted = ("a whole number of at least 1", *map(_shown, words))
            self._refuse(name, " or ".join(wanted), found)
        return Fraction(found)

    def number(self, name: str) -> Fraction:
        """Return a fraction."""
        return self._fraction(name, self.take(name))

    def numbers(self, name: str) -> list[Fraction]:
        """Return a list of fractions."""
        return [self._fraction(name, one) for one in self._list(name)]

    def _fraction(self, name: str, found: Any) -> Fraction:
        if not isinstance(found, str) or not re.fullmatch("-?[0-9]+(?:/0*[1-9][0-9]*)?", found):
            self._refuse(name, "a fraction like '3/4'", found)
        return Fraction(found)

    def be(self, name: str, value: Fraction | int) -> Fraction:
        """Return a fraction, which must be this one."""
        found = self.number(name)
        if found != value:
            self._refuse(name, str(value), str(found))
        return found

    def value_at(self, name: str, at: Fraction) -> Fraction:
        """Return the value of a polynomial, from its coefficients."""
        powers = enumerate(self.numbers(name))
        return sum((c * at**power for power, c in powers), Fraction(0))

    def void(self, name: str, value: Fraction) -> None:
        """Refuse a negative number where every other makes the same claim, as a factor of zero."""
        if value < 0:
            self._refuse(name, "at least 0", str(value))

    def end(self) -> None:
        """Refuse what is left over, here and in the parts."""
        for name, found in self._left.items():
            self._refuse(name, "left out, as it is not read", found)
        for part in self._parts:
            part.end()


def _shown(found: Any) -> str:
    text = json.dumps(found, default=str)
    return text if len(text) <= 300 else f"{text[:297]}..."


def claimed(certificate: Any) -> dict[str, Any]:
    """Return the same numbers from a certificate's own fields, all of which are read.

    Raises
    ------
    NotReadError
        For a field of another value than one under which an exported theorem says the same, or one
        that is not known. What belongs to the proof alone is not read.
    """
    top = Fields(certificate)
    numbers: dict[str, Any] = CLAIMED[top.one_of("kind", *CLAIMED)](top)
    top.end()
    return numbers


_RESIDUAL = "heterogeneity dissimilarity^2 + noise sigma^2 + server_noise server_sigma^2"
CLAIM = f"E||x+ - x*||^2 <= rate ||x - x*||^2 - gap (F(x) - F*) + {_RESIDUAL}"
DESCENT_CLAIM = f"E F(x+) <= F(x) - decrease ||grad F(x)||^2 + {_RESIDUAL}"


def _claimed_of_a_round(top: Fields) -> dict[str, Any]:
    top.one_of("version", 3)
    top.one_of("given", None)
    box, played, clients, bound = (
        top.only("boxes"),
        *(top.part(name) for name in ("round", "class", "bound")),
    )
    box.proof("pairs budgets noises orthogonal given")
    ends = box.numbers("client_lr")
    if len(ends) != 2 or ends[0] != ends[1]:
        raise NotReadError(
            "the certificate's boxes.0.client_lr must be one step size, as the first and the last,"
            f" got {', '.join(map(str, ends))}"
        )
    lr, drawn = ends[0], played.part("taking_part")
    alone = "groups" in drawn
    descends = top.one_of("claim", CLAIM, *[DESCENT_CLAIM] * (not alone)) == DESCENT_CLAIM
    numbers: dict[str, Any] = {
        "K": played.whole("local_steps"),
        "client_lr": lr,
        "server_lr": played.number("server_lr"),
        "L": clients.number("L"),
        "mu": clients.number("mu"),
        "heterogeneity_at": clients.one_of("heterogeneity", "everywhere", "optimum"),
        "heterogeneity": bound.value_at("heterogeneity", lr),
        "measure": "descent",
    }
    if descends:
        numbers["decrease"] = bound.value_at("decrease", lr)
    else:
        numbers["rate"], gap = (bound.value_at(name, lr) for name in ("rate", "gap"))
        numbers |= {"measure": "gap", "gap": gap} if gap else {"measure": "distance"}
    noisy = clients.one_of("noise", False, *[True] * (not alone))
    q = played.be("q", 1) if alone else played.number("q")
    assist_lr = played.number("assist_lr_over_client_lr") * lr
    noise, server_noise = (bound.value_at(name, lr) for name in ("noise", "server_noise"))
    if noisy:
        numbers["noise"] = noise
    else:
        bound.void("noise", noise)
    if q == 1:
        played.void("assist_lr_over_client_lr", assist_lr)
        bound.void("server_noise", server_noise)
    else:
        numbers |= {"assist_lr": assist_lr, "server_noise": server_noise}
    if alone:
        return numbers | _claimed_in_groups(drawn)
    share, n_clients = drawn.number("excluded_share"), drawn.whole("n_clients", "every")
    return numbers | {
        "m": drawn.whole("participants"),
        "share": share,
        "most": None if n_clients == "every" else n_clients * (1 - share),
        "q": q,
        "noisy": noisy,
    }


_DISSIMILAR = "dissimilarity^2 >= 1/N sum_i ||grad F_i(x*)||^2"
_AT_FIRST = "rate^R (start ||x_0 - x*||^2 + heterogeneity dissimilarity^2)"
MEMORY_CLAIM = f"E||x_R - x*||^2 <= {_AT_FIRST}, {_DISSIMILAR}"
MEMORY_GAP_CLAIM = f"gap sum_(r<R) rate^(R-1-r) E[F(x_r) - F*] <= {_AT_FIRST}, {_DISSIMILAR}"


def _claimed_of_memory(top: Fields) -> dict[str, Any]:
    top.one_of("version", 3)
    top.proof("function multipliers")
    method, clients, bound = (top.part(name) for name in ("method", "class", "bound"))
    n = method.whole("n_clients")
    if method.one_of("sampling", "drawn", "independent") == "drawn":
        m = method.whole("participants")
        p, two = method.be("probability", m / n), m * (m - 1) / max(n * (n - 1), Fraction(1))
    else:
        method.one_of("participants", 0)
        p = method.number("probability")
        two = p * p
    gap = bound.number("gap")
    top.one_of("claim", MEMORY_GAP_CLAIM if gap else MEMORY_CLAIM)
    return {
        "n": n,
        "p": p,
        "two": two,
        "step": method.number("step"),
        "surprise": method.number("surprise"),
        "L": clients.number("L"),
        "mu": clients.number("mu"),
        "from_zero": method.one_of("start", "zero", "gradients") == "zero",
        **({"measure": "gap", "gap": gap} if gap else {"measure": "distance"}),
        **{name: bound.number(name) for name in ("rate", "start", "heterogeneity")},
    }


_START = "start ||x_0 - x*||^2 + start_heterogeneity h + start_noise sigma^2"
_EACH = "heterogeneity h + noise sigma^2"
_H = "h = sum alpha_i ||grad F_i(x*)||^2"
BURSTS_CLAIMS = {
    f"1/T sum_(t<T) E||x_t - x*||^2 <= ({_START})/T + {_EACH} for every T, {_H}": "distance",
    f"E F((x_0 + .. + x_(T-1))/T) - F* <= ({_START})/T + {_EACH} for every T, {_H}": "loss",
    f"E||x_t - x*||^2 <= rate^t ({_START}) + (1 - rate^t)/(1 - rate) ({_EACH}) for every t, "
    f"{_H}": "rate",
}


def _claimed_in_bursts(top: Fields) -> dict[str, Any]:
    top.one_of("version", 2)
    top.proof("below noise_below function multipliers noises orthogonal")
    played, clients, bound = (top.part(name) for name in ("round", "class", "bound"))
    played.one_of("chain", None)
    own = played.only("groups")
    n = own.whole("n_clients")
    own.be("target_weight", 1 / n)
    over_present = played.one_of("averaging", "weights", "present") == "present"
    weight = own.be("weight", 1) if over_present else own.number("weight")
    measure = BURSTS_CLAIMS[top.one_of("claim", *BURSTS_CLAIMS)]
    # The theorem's gradients are exact, and what it sums over rounds has no rate.
    clients.one_of("noise", False)
    for name in ("start_noise", "noise"):
        bound.be(name, 0)
    rate = {"rate": bound.number("rate")} if measure == "rate" else {}
    if not rate:
        bound.be("rate", 1)
    return {
        "n": n,
        "p": own.number("availability"),
        "lambda": own.number("correlation"),
        "K": played.whole("local_steps"),
        "client_lr": played.number("client_lr"),
        "server_lr": played.number("server_lr") * weight,
        "over_present": over_present,
        "L": clients.number("L"),
        "mu": clients.number("mu"),
        "measure": measure,
        **rate,
        **{n: bound.number(n) for n in ("start", "start_heterogeneity", "heterogeneity")},
    }


def _claimed_in_groups(drawn: Fields) -> dict[str, Any]:
    """Return what the theorem supposes of the clients' weights, from who is there when."""
    groups = drawn.each("groups")
    over_present = drawn.one_of("averaging", "weights", "present") == "present"
    sizes = [int(own.whole("n_clients")) for own in groups]
    there = [own.number("availability") for own in groups]
    weights = [own.be("weight", 1) if over_present else own.number("weight") for own in groups]
    if over_present:

        def mean_of(power: int, *clients: int) -> Fraction:
            """Return the mean of one over the number present to a power, where these are."""
            others = [p for c, p in enumerate(there) for _ in range(sizes[c] - clients.count(c))]
            law = [Fraction(1)]
            for p in others:
                law = [a * (1 - p) + b * p for a, b in zip([*law, 0], [0, *law], strict=True)]
            total = sum(q / Fraction(k + len(clients)) ** power for k, q in enumerate(law))
            for c in clients:
                total *= there[c]
            return Fraction(total)

    else:

        def mean_of(power: int, *clients: int) -> Fraction:
            """Return the mean product of clients' weights, or of one's square."""
            made = Fraction(1)
            for c in clients:
                made *= there[c] * weights[c] ** (power - len(clients) + 1)
            return made

    kinds = range(len(groups))
    return {
        "sizes": [Fraction(n) for n in sizes],
        "shares": [own.number("target_weight") for own in groups],
        "means": [mean_of(1, c) for c in kinds],
        "squares": [mean_of(2, c) for c in kinds],
        # A group of one has no two.
        "products": [
            [mean_of(2, c, e) if c != e or sizes[c] > 1 else Fraction(0) for e in kinds]
            for c in kinds
        ],
    }


CLAIMED = {
    "proof for every client loss": _claimed_of_a_round,
    "Lyapunov function for every client loss": _claimed_of_memory,
    "correlated rounds for every client loss": _claimed_in_bursts,
}


def certificate_in(file: Path) -> Any:
    """Return what a certificate's file holds.

    Raises
    ------
    NotReadError
        If it is no JSON, or gives a field twice.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except RecursionError as error:
        raise NotReadError(f"{file} must be a certificate: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotReadError("the certificate must have each field once")
    return found


def compare(text: str, certificate: Any) -> dict[str, Any]:
    """Return what a theorem says, which must be what a certificate claims.

    Raises
    ------
    NotReadError
        If it is not.
    """
    said, meant = read(text), claimed(certificate)
    for name in sorted({*said, *meant}):
        if said.get(name) != meant.get(name):
            raise NotReadError(
                f"{name}: the theorem says {said.get(name)}, the certificate {meant.get(name)}"
            )
    return said


def main(arguments: list[str]) -> int:
    """Print a theorem's numbers: status 1 if it says something else, 2 for a wrong call."""
    if len(arguments) not in (1, 2):
        print("usage: python read_back.py FILE.v [CERTIFICATE.json]", file=sys.stderr)
        return 2
    try:
        text = Path(arguments[0]).read_text(encoding="utf-8")
        if len(arguments) == 2:
            said = compare(text, certificate_in(Path(arguments[1])))
        else:
            said = read(text)
    except (OSError, ValueError) as error:
        print(f"not read: {error}", file=sys.stderr)
        return 1
    for name, value in sorted(said.items()):
        print(f"{name} = {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

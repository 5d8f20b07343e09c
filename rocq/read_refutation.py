"""Read what an exported refutation says, from its file alone: a program of its own.

    python read_refutation.py FILE.v [CERTIFICATE.json]

The file must have the one shape that such a file has: what it imports, a setting, the statement's
symbols, what the checker is handed, the theorem, and a proof that calls the library alone. Lemmas
on CA-Fed have names from a list and proofs of tactics from another. The truth must be above the
bound. With the certificate beside it, setting, symbols, hypotheses, conditions, bound and both
numbers must be the certificate's. What no certificate has to say, the constants of smoothness and
the like, is worked out again from its setting. Standard library only.

What a word of the statement means is not seen in the text, but by Rocq: `Said.restated` says the
statement again, in a file without the proofs, and ``check.py`` has Rocq compare both.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

Rows = list[list[Fraction]]

IMPORTS = (
    "From Coq Require Import Reals QArith Qreals List Arith. "
    "From fltheory Require Import Space Round Process Enclose Moments Refutation Refuted. "
    "Import ListNotations. Open Scope Q_scope. "
)
FIELDS = (
    "dimension", "clients", "hessians", "optima", "sigma", "server_sigma", "eligible",
    "participants", "coin", "local_steps", "client_lr", "server_lr", "assist_lr", "start",
)  # fmt: skip
# What the statement takes from the library: no symbol may be called so.
_WORDS = """
forall fun nat list R Q r i x s xs after average largest sqrt Q2R INR mean_loss point loss gradient
smooth strongly_convex square minus full_gradient unbiased axis_noise dimension server_sigma
squared_distance squared_gradient excess_loss participant_excess_loss participant_gradient_sum start
Process setting condition refutation checked true accepted the_refutation restated
"""
# A symbol may be called as the field `sigma` is: where it stands for the field, it is `Process`'s.
WORDS = frozenset({*_WORDS.split(), *FIELDS} - {"sigma"})
# No pattern has room for a string, or for a colon before anything but a type: so no `ltac:`.
NUMBERS = r"(?:[0-9 ;\[\]()#\-]|%nat)*"
SETTING = rf"[a-z_]+ := {NUMBERS}(?:; [a-z_]+ := {NUMBERS})*"
FORMULA = r"[A-Za-z0-9_ +*/^()=<>,\-]*"
IN_TERMS = r"[A-Za-z0-9_ ()#]*"
IN_PROOFS = r"(?:[A-Za-z0-9_ ()=>]|Nat\.lt_0_succ|Process\.sigma)*"
FILE = re.compile(
    r"\(\*\* A refutation of (?P<of>[A-Za-z0-9 /\-]+ \([A-Za-z0-9 _\-]+\)), "
    r"and its proof: check it with Rocq \(Coq 8\.16 or later\) beside the library in the folder "
    r"rocq of fltheory\. \*\) "
    + re.escape(IMPORTS)
    + rf"Definition s : setting := \{{\| (?P<setting>{SETTING}) \|\}}\. "
    r"Definition xs : list Q := (?P<optimum>[0-9 ;\[\]()#\-]*)\. Open Scope R_scope\. "
    rf"(?P<symbols>(?:Definition [A-Za-z][A-Za-z0-9_]*(?: \(r : nat\))? : R := {FORMULA}\. )*?)"
    rf"(?:Definition condition_\d+ : condition := {IN_TERMS}\. )*"
    r"Definition the_refutation : refutation := "
    r"\{\| (?:[A-Za-z0-9_ ;\[\]()#%]|:= |\{\||\|\})* \|\}\. "
    r"Lemma accepted : checked the_refutation = true\. "
    r"Proof\. vm_cast_no_check \(eq_refl true\)\. Qed\. "
    r"Theorem (?P<name>[a-z][a-z0-9_]*) : "
    r"(?P<said>(?:[A-Za-z0-9_ +*/^()=<>,\\%\-]|Process\.sigma)*)\. Proof\. "
    rf"(?:split; \[exact \({IN_PROOFS}\)\|\]\. )*exact \({IN_PROOFS}\)\. Qed\. "
    r"Print Assumptions (?P=name)\. ?"
)
CLIENT = r"\((?P<p>\d+ / [1-9]\d*)\) (?P<cutoff>\d+) (?P<t>\d+)"
AGAIN = r"\((?P=p)\) (?P=cutoff) (?P=t)"
COMPUTED = r"Proof\. cbv -\[Rplus Rmult Ropp Rinv Rminus Rdiv IZR\]\. field\. Qed\. "
FRACTION = r"\(\d+ / [1-9]\d*\)"
# Of FedAU's online weights.
WEIGHTS = re.compile(
    FILE.pattern[: FILE.pattern.index("From")]
    + re.escape("From Coq Require Import Reals Arith Lra. From fltheory Require Import Weights. ")
    + r"Open Scope R_scope\. "
    rf"Lemma error : weight_error {CLIENT} = {FRACTION}\. {COMPUTED}"
    rf"Lemma line : proof_line {AGAIN} = {FRACTION}\. {COMPUTED}"
    r"Theorem (?P<name>[a-z][a-z0-9_]*) : \(2 <= (?P<rounds>\d+)\)%nat /\\ "
    r"\(1 <= (?P=t) < (?P=rounds)\)%nat /\\ "
    rf"0 < proof_line {AGAIN} /\\ "
    rf"(?P<truth>{FRACTION}) \* proof_line {AGAIN} <= weight_error {AGAIN} /\\ "
    rf"1 <= (?P<bound>{FRACTION}) < (?P=truth)\. "
    r"Proof\. rewrite error, line\. repeat split; try lra; apply Nat\.leb_le; reflexivity\. Qed\. "
    r"Print Assumptions (?P=name)\. ?"
)
SYMBOL = re.compile(r"Definition (\w+)( \(r : nat\))? : R := ([^.{}]*)\. ")
NUMBER = r"(?:\d+|\(\d+ / \d+\)|\(- \d+\)|\(- \(\d+ / \d+\)\))"
GIVEN = {
    "Q2R (coin s)": "q",
    "Q2R (client_lr s)": "client_lr",
    "Q2R (server_lr s)": "server_lr",
    "Q2R (assist_lr s)": "assist_lr",
    "Q2R (sigma s)": "sigma",
    "Q2R (server_sigma s)": "server_sigma",
    "INR (participants s)": "participants",
    "INR (local_steps s)": "local_steps",
    "INR (clients s)": "n_clients",
}
EVERYBODY = r"\(forall i, \(i < (?P<n>\d+)\)%nat -> "
LEVEL = {"sigma": "(Q2R (Process.sigma s))", "server_sigma": "(Q2R (server_sigma s))"}
# What is said of a number that the statement's symbols are made of.
FACTS = {
    "L": rf"{EVERYBODY}smooth (?P<v>{NUMBER}) \(loss s i\) \(gradient s i\)\)",
    "mu": rf"{EVERYBODY}strongly_convex (?P<v>{NUMBER}) \(loss s i\) \(gradient s i\)\)",
    "sigma_G": r"\(forall i x, \(i < (?P<n>\d+)\)%nat -> square \(minus \(gradient s i x\) "
    rf"\(full_gradient s x\)\) <= (?P<v>{NUMBER}) \* (?P=v)\)",
    "squared_distance": rf"squared_distance s xs \(point s \(start s\)\) = (?P<v>{NUMBER})",
    "excess_loss": rf"excess_loss s xs \(point s \(start s\)\) = (?P<v>{NUMBER})",
}
OPTIMUM = "(forall x, mean_loss s (point s xs) <= mean_loss s x)"
QUANTITIES = {
    "squared_distance s xs": "squared_distance",
    "squared_gradient s": "squared_gradient",
    "excess_loss s xs": "excess_loss",
    "participant_excess_loss s xs": "participant_excess_loss",
    "participant_gradient_sum s": "participant_gradient_sum",
}


class NotReadError(ValueError):
    """The file is not of the shape of an exported refutation, or says something else."""


@dataclass(frozen=True)
class Said:
    """What a file says, as text without line breaks.

    Attributes
    ----------
    of : str
        The statement and its reading, as the first line names them.
    name : str
        The theorem's.
    setting : mapping
        Fields of the setting, by name.
    optimum : str
    symbols : mapping
        What each symbol is said to be, and whether it is of every round.
    parts : list of str
        The theorem's statements, all of which it says.
    restated : str
        A file for Rocq that has the same definitions and statement, and no proofs.
    """

    of: str
    name: str
    setting: Mapping[str, str]
    optimum: str
    symbols: Mapping[str, tuple[str, bool]]
    parts: list[str]
    restated: str


def read(text: str) -> Said:
    """Return what an exported file says.

    Raises
    ------
    NotReadError
        If the file is of another shape.
    """
    if not re.fullmatch(r"[\n -~]*", text):
        raise NotReadError("the file must be in ASCII")
    plain = re.sub(r"\s+", " ", text)
    # What stands in a comment is read here, but not by Rocq.
    if plain.count("(*") > 1:
        raise NotReadError("the file must have no comment after its first")
    if found := FILE.fullmatch(plain):
        said, truth, bound = _read_run(found)
    elif found := WEIGHTS.fullmatch(plain):
        said, truth, bound = _read_weights(found)
    elif found := CHAIN.fullmatch(plain):
        said, truth, bound = _read_chain(found)
    else:
        raise NotReadError("the file must be of the shape of an exported refutation")
    if _number(truth) <= _number(bound):
        raise NotReadError(f"the truth must be above the bound, got {truth} and {bound}")
    return said


def _read_run(found: re.Match[str]) -> tuple[Said, str, str]:
    """Return what a file on a run of SAFARI or FedAvg says, its truth and its bound."""
    symbols: dict[str, tuple[str, bool]] = {}
    for name, every, meaning in SYMBOL.findall(found["symbols"]):
        if name in WORDS or name in symbols:
            raise NotReadError(f"a symbol must have a name of its own, got {name}")
        symbols[name] = meaning, bool(every)
    said = _said(found, found.end("symbols"), _fields(found["setting"], FIELDS), symbols)
    parts = ["", *said.parts]
    return said, parts[-1].partition(" <= ")[0], parts[-2].rpartition(" <= ")[2]


def _read_weights(found: re.Match[str]) -> tuple[Said, str, str]:
    """Return the numbers of a file on FedAU's weights, the error and what it should be below."""
    numbers = {
        name: (found[name], False) for name in WEIGHTS.groupindex if name not in ("of", "name")
    }
    said = _said(found, found.string.index("Lemma error"), {}, numbers)
    return said, found["truth"], found["bound"]


def _said(
    found: re.Match[str],
    definitions_end: int,
    setting: Mapping[str, str],
    symbols: Mapping[str, tuple[str, bool]],
) -> Said:
    """Return what a file says, given where its definitions end and what they are."""
    text, head = found.string, f"Theorem {found['name']} : "
    theorem = text.index(head, definitions_end) + len(head)
    stated = text[theorem : text.index(". Proof. ", theorem)]
    definitions = text[text.index("*) ") + len("*) ") : definitions_end]
    return Said(
        of=found["of"],
        name=found["name"],
        setting=setting,
        optimum=found.groupdict().get("optimum") or "",
        symbols=symbols,
        parts=stated.split(" /\\ "),
        restated=f"{definitions} Definition restated : Prop := {stated}.\n",
    )


# ---------------------------------------------------------------- numbers, lists and formulas


def _number(text: str) -> Fraction:
    """Return a number as the file writes it: 3, (3 # 4), (3 / 4), (- 3)."""
    plain = re.sub(r"[() ]", "", text).replace("#", "/").removesuffix("%nat")
    if not re.fullmatch(r"-?\d+(/[1-9]\d*)?", plain):
        raise NotReadError(f"a number must be a fraction, got {text}")
    return Fraction(plain)


def _list(text: str) -> list[Fraction]:
    if not re.fullmatch(r"\[[^\[\]]*\](%nat)?", text):
        raise NotReadError(f"a list of numbers must be one, got {text}")
    return [_number(item) for item in text.removesuffix("%nat")[1:-1].split(";")]


def _rows(text: str) -> Rows:
    if not re.fullmatch(r"\[\[[^\[\]]*\](; \[[^\[\]]*\])*\]", text):
        raise NotReadError(f"a table must have a list for each client, got {text}")
    return [_list(row) for row in re.findall(r"\[[^\[\]]*\]", text[1:-1])]


def _formula(text: str) -> str:
    """Return a formula's tree: of the file's, and of a certificate's."""
    plain = re.sub(r"\((\w+) r\)", r"\1", text.replace("^", "**"))
    try:
        return ast.dump(ast.parse(plain.strip(), mode="eval").body)
    except SyntaxError as error:
        raise NotReadError(f"a formula must be one, got {text}") from error


class _Meant(ast.NodeTransformer):
    """A certificate's formula with the file's words in it."""

    def __init__(self, words: Mapping[str, ast.expr], whole: Mapping[str, int]) -> None:
        self._words, self._whole = words, whole

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return what stands in the place of a name."""
        return self._words.get(node.id, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Return an operation; of a power's exponent, the number that it is."""
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Name):
            if node.right.id not in self._whole:
                raise NotReadError(f"an exponent must be whole, got {node.right.id}")
            node.right = ast.Constant(self._whole[node.right.id])
        return self.generic_visit(node)  # type: ignore[return-value]

    def tree(self, text: str) -> str:
        """Return a formula's tree."""
        return ast.dump(self.visit(ast.parse(text, mode="eval").body))


# ---------------------------------------------------------------- what a certificate says


class _Claim:
    """A certificate's own fields, and what follows from its setting."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.statement, raw = document["statement"], document["setting"]
        self.truth, self.bound = Fraction(document["truth"]), Fraction(document["bound"])
        self.run = raw["rounds"]
        problem, algorithm, who = raw["problem"], raw["algorithm"], raw["participation"]
        if algorithm["name"] not in ("Safari", "FedAvg") or who["name"] != "UniformSubset":
            raise NotReadError("the certificate must be of SAFARI or FedAvg, and uniform draws")
        n = len(problem["optima"])
        if any(Fraction(w) * n != 1 for w in problem["target_weights"]):
            raise NotReadError("the certificate must be of clients of equal importance")
        if any(Fraction(share) != 1 for share in problem.get("noise_shares", [])):
            raise NotReadError("the certificate must be of clients of equal noise")
        self.hessians = [[Fraction(r[k]) for k, r in enumerate(h)] for h in problem["hessians"]]
        for h in problem["hessians"]:
            if any(Fraction(v) for k, r in enumerate(h) for j, v in enumerate(r) if j != k):
                raise NotReadError("the certificate must be of diagonal Hessians")
        self.optima = [[Fraction(c) for c in point] for point in problem["optima"]]
        self.start = [Fraction(x) for x in raw["x0"]]
        q = Fraction(algorithm["q"]) if algorithm["name"] == "Safari" else Fraction(1)
        self.setting: dict[str, Any] = {
            "dimension": Fraction(len(self.start)),
            "clients": Fraction(n),
            "hessians": self.hessians,
            "optima": self.optima,
            "sigma": Fraction(problem["sigma"]),
            "server_sigma": Fraction(problem["server_sigma"]),
            "eligible": [Fraction(i) for i in range(n) if i not in who["excluded"]],
            "participants": Fraction(who["size"]),
            "coin": q,
            "local_steps": Fraction(algorithm["local_steps"]),
            "client_lr": Fraction(algorithm["client_lr"]),
            "server_lr": Fraction(algorithm.get("server_lr", 1)),
            "assist_lr": Fraction(algorithm.get("assist_lr", 1)),
            "start": self.start,
        }
        columns = [list(zip(*rows, strict=True)) for rows in (self.hessians, self.optima)]
        self.optimum = [
            sum((a * b for a, b in zip(h, c, strict=True)), Fraction(0)) / sum(h)
            for h, c in zip(*columns, strict=True)
        ]

    def has(self, name: str, value: Fraction) -> bool:
        """Tell whether a number of the setting is this."""
        entries = [h for row in self.hessians for h in row]
        means = [sum(column) / len(self.hessians) for column in zip(*self.hessians, strict=True)]
        apart = [(x - c) ** 2 for x, c in zip(self.start, self.optimum, strict=True)]
        if name == "sigma_G":
            pulls = [
                sum((h * (c - x)) ** 2 for h, c, x in zip(row, at, self.optimum, strict=True))
                for row, at in zip(self.hessians, self.optima, strict=True)
            ]
            return all(row == self.hessians[0] for row in self.hessians) and value**2 == max(pulls)
        return (
            value
            == {
                "L": max(entries),
                "mu": min(entries),
                "squared_distance": sum(apart),
                "excess_loss": sum(h * a for h, a in zip(means, apart, strict=True)) / 2,
            }[name]
        )

    def rule(self, rule: Mapping[str, Any]) -> tuple[str, str, int, int]:
        """Return a quantity, what is made of it, in which first round, and of how many."""
        first, last = rule["rounds"][0], self.run + rule["rounds"][1]
        if rule["reduction"] == "last":
            return rule["of"], "one", last, 1
        return rule["of"], rule["reduction"], first, last - first + 1


def _said_along(text: str, rounds: int) -> tuple[str, str, int, int]:
    """Return the same of what a file says."""
    at = r"after s (?P<at>r|\(\d+ \+ r\)|\d+) \((?P<of>[a-z_ ]+)\)"
    found = re.fullmatch(rf"(?:(?P<kind>average|largest) (?P<count>\d+) \(fun r => {at}\))", text)
    found = found or re.fullmatch(at, text)
    if found is None or found["of"] not in QUANTITIES:
        raise NotReadError(f"what is expected along the run must be a quantity's, got {text}")
    fields = found.groupdict()
    kind, place, of = fields.get("kind"), fields["at"], QUANTITIES[fields["of"]]
    if kind is None and "r" not in place:
        return of, "one", int(place), 1
    first = 0 if place == "r" else int(place[1:].split()[0])
    if kind is None:
        return of, "every", first, rounds
    count = int(fields["count"])
    return (of, "mean", first, count) if kind == "average" else (of, "max", first, count + 1)


# ---------------------------------------------------------------- CA-Fed on a Markov chain

# What the symbols of CA-Fed's Theorem 2 are in a certificate, and the rest of its statement.
CHAIN_SYMBOLS = {
    "C_P": "cited_chain_factor", "D": "largest_gradient", "D_0": "sqrt(squared_distance)",
    "E": "local_steps", "G": "sqrt(largest_gradient**2 + sigma**2)", "Gamma": "Gamma",
    "H": "largest_loss_change", "L": "L", "M": "chain_states",
    "N_q": "sigma**2*mean_squared_weight", "Q": "total_weight", "S_0": "inverse_square_sum",
    "S_1": "step_sum", "S_2": "step_square_sum", "T": "rounds", "T_P": "chain_onset",
    "Y_0": "cited_delayed_log_sum", "Y_1": "cited_delayed_square_sum", "lambda_P": "chain_rate",
    "mu": "mu", "pi_q": "mean_weight", "r": "step_decay", "r_0": "reach_of_start",
    "r_min": "reach_of_minimisers", "rho": "radius",
}  # fmt: skip
CHAIN_CONDITIONS = [
    "r_min < rho",
    "L < oo",
    "mu > 0",
    "r_0 <= rho",
    "r <= 1",
    "r > 1/2",
    "T >= T_P",
]
CHAIN_FIELDS = (
    "curvatures", "minimisers", "weights", "local_work", "server_step", "step_scale",
    "step_offset", "ball_centre", "ball_radius", "origin", "transition", "present", "stationary",
)  # fmt: skip
# What a file says, and where numbers, tables and formulas stand in it.
CHAIN_FILE = r"""
Definition s : chain_setting := {| <setting:fields> |}. Open Scope R_scope.
Definition w_star : R := <w_star:number>. Definition w_B : R := <w_B:number>.
<roots:roots>Definition U : list (list R) := <U:table>. Definition V : list (list R) := <V:table>.
Definition eigenvalues : list R := <eigenvalues:row>. Definition sigma : R := 0.
Definition C_P : R := sqrt (INR (n_states s - 1)) * frobenius s U * frobenius s V.
Definition D : R := <D:number>. Definition D_0 : R := sqrt ((Q2R (origin s) - w_star) ^ 2).
Definition E : R := INR (local_work s). Definition G : R := sqrt (D ^ 2 + sigma ^ 2).
Definition Gamma : R := <Gamma:number>. Definition H : R := <H:number>.
Definition L : R := <L:number>. Definition M : R := INR (n_states s).
Definition N_q : R := sigma ^ 2 * mean_squared_weight s.
Definition Q_ : R := sum (n_clients s) (weight s). Definition S_1 : R := step_sum s <rounds:count>.
Definition T : R := INR <rounds:count>. Definition T_P : R := 0.
Definition lambda_P : R := (1 + second_eigenvalue eigenvalues) / 2.
Definition mu : R := <mu:number>. Definition pi_q : R := mean_weight s.
Definition r : R := decay. Definition r_0 : R := reach s [Q2R (origin s)].
Definition r_min : R := reach s (w_star :: w_B :: map Q2R (minimisers s)).
Definition rho : R := radius s. Definition bound (S_0 S_2 Y_0 Y_1 : R) : R :=
let upsilon := <upsilon:formula> in let psi := <psi:formula> in let phi := <phi:formula> in
<formula:formula>. <lemmas:lemmas>Theorem <name:name> : is_stationary s /\
diagonalises s U eigenvalues V /\ (forall x, true_objective s w_star <= true_objective s x) /\
(forall x, biased_objective s w_B <= biased_objective s x) /\
(forall i, (i < <clients:count>)%nat -> smooth L (client_loss s i) (client_gradient s i)) /\
(forall i, (i < <clients:count>)%nat ->
strongly_convex mu (client_loss s i) (client_gradient s i)) /\
is_lub (among_clients_in_W s (fun i x => Rabs (client_gradient s i x))) D /\
is_lub (among_clients_in_W s (fun i x => Rabs (client_loss s i x - client_loss s i w_B))) H /\
Gamma = largest <last:count> (fun i => client_loss s i w_star) /\
r_min < rho /\ mu > 0 /\ r_0 <= rho /\ r <= 1 /\ r > 1 / 2 /\ T >= T_P /\ <truth:number> <=
at_average s <rounds:count> (fun w => biased_objective s w - biased_objective s w_B) /\
exists (delay : nat -> nat) S_0 S_2 Y_0 Y_1, (forall t, (1 <= t)%nat ->
least (fun m => 2 * C_P * H * INR t * lambda_P ^ m <= 1) (delay t)) /\
sums_to (fun t => (/ INR t) ^ 2) S_0 /\ sums_to (fun t => step s t ^ 2) S_2 /\
sums_to (fun t => ln (INR t) * delayed_step s delay t ^ 2) Y_0 /\
sums_to (fun t => delayed_step s delay t ^ 2) Y_1 /\ bound S_0 S_2 Y_0 Y_1 <= <bound:number>.
<proof:lemmas>Print Assumptions <name:name>.
"""
KINDS = {
    "fields": SETTING,
    "number": r"(?:\d+|\(-?\d+(?: / [1-9]\d*)?\))",
    "count": r"\d+",
    "name": r"[a-z][a-z0-9_]*",
    "row": r"\[[0-9 ;()/\-]*\]",
    "table": r"\[\[(?:[0-9 ;()/*\-\[\]]|root_[01])*\]\]",
    "roots": r"(?:Definition root_\d : R := sqrt \(\d+ / \d+\)\. )*",
    "formula": r"[A-Za-z0-9_ +*/^()\-]*",
    "lemmas": r"(?:.*?\. )?",  # see `_check_lemmas`
}


def _pattern(template: str) -> str:
    """Return a template as a pattern; what has one name must be the same wherever it stands."""
    pieces = re.split(r"<(\w+):(\w+)>", re.sub(r"\s+", " ", template.strip()))
    found = re.escape(pieces[0])
    for place in range(1, len(pieces), 3):
        name, kind, after = pieces[place : place + 3]
        again = f"(?P<{name}>" in found
        found += (f"(?P={name})" if again else f"(?P<{name}>{KINDS[kind]})") + re.escape(after)
    return found


CHAIN = re.compile(
    FILE.pattern[: FILE.pattern.index("From")]
    + re.escape(
        "From Coq Require Import Reals QArith Qreals ZArith List Arith Lra Lia. From fltheory "
        "Require Import Space Round Process Enclose Moments Refuted Chain Series Chained. "
        "Import ListNotations. Open Scope Q_scope. "
    )
    + _pattern(CHAIN_FILE)
    + " ?"
)
# Between definitions and theorem stand lemmas, and terms and lists for their proofs. They have no
# names but these, so that none hides a word of the statement.
ABOUT = r"(?:[A-Za-z0-9_ ;()#\[\]*/+=<>,%\-]|Z\.of_nat)+"
LEMMA = re.compile(
    r"Lemma (?:kept|chain|square_root_[01]|square_both|diagonal|length_[UV]|rate|gradients|changes|"
    r"(?:true|biased)_optimum|(?:smooth|convex)_losses|factor|reached|log_of_(?:reach|rate)|"
    r"is_(?:D|D_0|E|G|Gamma|L|M|N_q|Q_|pi_q)|all_inside|truth|bounded) : " + ABOUT
)
HELP = re.compile(
    r"Definition (?:t_(?:factor|reach|upsilon|psi|phi|bound) : term|reals : list R|"
    rf"around_reals : list interval) := {ABOUT}"
    r"|Ltac by_roots := (?:assert \(F[0-2] := square_(?:root_[01]|both)\); )+"
    r"cbv -\[Rplus Rmult Ropp Rinv Rminus Rdiv IZR Rle sqrt(?: root_[01])+\]; repeat split; lra"
)
# What a proof may be made of, between semicolons, bars and brackets.
ARGUMENT = r"(?:[A-Za-z0-9_ ()#/-]|Nat\.ltb_lt)+"
TACTIC = re.compile(
    r"(?:repeat )?(?:split|constructor)|reflexivity|f_equal|lra|cbv \[largest\]|"
    r"by_(?:states|numbers|roots|conjuncts)|vm_cast_no_check \(eq_refl true\)|"
    rf"(?:exact|apply|transitivity) {ARGUMENT}|unfold \w+|rewrite \w+(?:, \w+)*|"
    rf"replace {ARGUMENT} with {ARGUMENT} by by_numbers|destruct \({ARGUMENT}\) as \[m Above\]"
)
BETWEEN = re.compile(r";|\||\[(?!m Above\]|largest\])|(?<!m Above)(?<!\[largest)\]")


def _check_proofs(lemmas: str, proof: str) -> None:
    """Refuse whatever is not a lemma of the list, or within a proof not one of the tactics."""
    theorem, place = "Theorem", "outside"
    for sentence in (*lemmas.split(". ")[:-1], theorem, *proof.split(". ")[:-1]):
        if place == "outside" and (sentence is theorem or LEMMA.fullmatch(sentence)):
            place = "stated"
        elif place == "outside" and HELP.fullmatch(sentence):
            continue
        elif place == "stated" and sentence == "Proof":
            place = "proving"
        elif place == "proving" and sentence == "Qed":
            place = "outside"
        elif place != "proving" or not all(
            TACTIC.fullmatch(part.strip()) for part in BETWEEN.split(sentence) if part.strip()
        ):
            raise NotReadError(f"a proof must say nothing else, got {sentence[:60]}")
    if place != "outside":
        raise NotReadError(f"a proof must end, got one that is {place}")


def _read_chain(found: re.Match[str]) -> tuple[Said, str, str]:
    """Return what a file on CA-Fed says, its truth and its bound."""
    _check_proofs(found["lemmas"], found["proof"])
    setting, roots = _fields(found["setting"], CHAIN_FIELDS), {}
    for name, square in re.findall(r"(root_\d) : R := sqrt (\([^)]*\))", found["roots"]):
        if name in roots:
            raise NotReadError(f"a root must have a name of its own, got {name}")
        roots[name] = (square, False)
    numbers = {
        name: (value, False)
        for name, value in found.groupdict().items()
        if name not in ("of", "setting", "roots", "lemmas", "proof", "name")
    }
    said = _said(found, found.start("lemmas"), setting, {**roots, **numbers})
    return said, found["truth"], found["bound"]


def _fields(text: str, names: tuple[str, ...]) -> dict[str, str]:
    fields = [field.partition(" := ") for field in re.split(r"; (?=[a-z_]+ :=)", text)]
    if tuple(name for name, _, _ in fields) != names:
        raise NotReadError("the setting must have the fields of a setting, in their order")
    return {name: value for name, _, value in fields}


def _squares(table: str, roots: Mapping[str, Fraction]) -> Fraction:
    """Return the sum of the squares of a table's entries: products of roots and a fraction."""
    total = Fraction(0)
    for entry in re.split(r"[;\[\]]+", table):
        if entry.strip():
            *factors, last = entry.strip().split(" * ")
            square = _number(last) ** 2
            for factor in factors:
                square *= roots[factor]
            total += square
    return total


def _compare_chain(said: Said, certificate: Mapping[str, Any]) -> None:
    """Compare a theorem on CA-Fed with its certificate's statement and setting."""
    statement, raw = certificate["statement"], certificate["setting"]
    values = {name: text for name, (text, _) in said.symbols.items()}
    _same("the symbols", CHAIN_SYMBOLS, statement["symbols"])
    _same("the conditions", CHAIN_CONDITIONS, [*statement["conditions"].values()])
    quantity = {"of": "biased_excess_loss", "reduction": "last", "rounds": [0, 0], "weights": "1"}
    _same("the quantity", quantity, statement["quantity"])
    _same("along the run", {}, statement["round_symbols"])
    meant = _Meant({"log": ast.Name("ln", ast.Load()), "Q": ast.Name("Q_", ast.Load())}, {})
    _same("definitions", list(statement["definitions"]), ["upsilon", "psi", "phi"])
    for name, formula in {**statement["definitions"], "formula": statement["bound"]}.items():
        _same(name, _formula(re.sub(r"\bln (?=\()", "ln", values[name])), meant.tree(formula))
    chain = _Chain(raw)
    for name, value in chain.setting.items():
        written = said.setting[name]
        if name == "present":
            _same(name, written, f"{value}%nat".replace(",", ";"))
        else:
            many = _rows if name == "transition" else _list
            _same(name, (many if isinstance(value, list) else _number)(written), value)
    for name, value in chain.numbers.items():
        _same(name, _number(values[name]), value)
    roots = {name: _number(text) for name, text in values.items() if name.startswith("root_")}
    lengths = _squares(values["U"], roots) * _squares(values["V"], roots)
    _same("the eigenbasis", lengths, chain.lengths)
    first, *others = _list(values["eigenvalues"])
    _same("eigenvalues", [first, *sorted(others)], [1, *sorted(chain.eigenvalues[1:])])
    n = len(chain.setting["minimisers"])
    counts = {"rounds": raw["rounds"], "clients": n, "last": n - 1}
    _same("counts", {name: int(values[name]) for name in counts}, counts)
    for name in ("truth", "bound"):
        _same(f"the {name}'s number", _number(values[name]), Fraction(certificate[name]))


class _Chain:
    """A setting of CA-Fed on a chain, and what follows from it."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        average, problem = raw["algorithm"], raw["problem"]
        projected = average["algorithm"]
        scheduled = projected["algorithm"]
        inner, sizes = scheduled["algorithm"], scheduled["step_sizes"]
        names = [part["name"] for part in (average, projected, scheduled, inner, sizes)]
        _same(
            "the algorithm",
            ["AveragedIterate", "Projected", "Scheduled", "WeightedFedAvg", "Harmonic"],
            names,
        )
        _same("the average's weights", average["weights"], sizes)
        h = [_only(_only(hessian)) for hessian in problem["hessians"]]
        c = [_only(point) for point in problem["optima"]]
        q = [Fraction(value) for value in inner["aggregation_weights"]]
        n, ball = len(c), projected["onto"]
        if any(Fraction(w) * n != 1 for w in problem["target_weights"]):
            raise NotReadError("the certificate must be of clients of equal importance")
        _same("the noise", Fraction(problem["sigma"]), 0)
        _same("the chain's start", raw["participation"]["start"], None)
        start, radius, centre = _only(raw["x0"]), Fraction(ball["radius"]), _only(ball["centre"])
        self._read_participation(raw["participation"])
        self.setting: dict[str, Any] = {
            "curvatures": h, "minimisers": c, "weights": q,
            "local_work": Fraction(inner["local_steps"]),
            "server_step": Fraction(inner["server_lr"]),
            "step_scale": Fraction(sizes["scale"]), "step_offset": Fraction(sizes["offset"]),
            "ball_centre": centre, "ball_radius": radius, "origin": start,
            "transition": self.moves, "present": self.sets, "stationary": self.law,
        }  # fmt: skip
        there = [
            sum(p for p, who in zip(self.law, self.sets, strict=True) if i in who) for i in range(n)
        ]
        star = sum(a * b for a, b in zip(h, c, strict=True)) / sum(h)
        pulls = [p * w * a for p, w, a in zip(there, q, h, strict=True)]
        biased = sum(p * x for p, x in zip(pulls, c, strict=True)) / sum(pulls)
        reach = [abs(x - centre) + radius for x in c]
        ends = [a * r * r / 2 for a, r in zip(h, reach, strict=True)]
        before = [a * (x - biased) ** 2 / 2 for a, x in zip(h, c, strict=True)]
        self.numbers = {
            "w_star": star, "w_B": biased, "L": max(h), "mu": min(h),
            "D": max(a * r for a, r in zip(h, reach, strict=True)),
            "H": max(*before, *(e - b for e, b in zip(ends, before, strict=True))),
            "Gamma": max(a * (x - star) ** 2 / 2 for a, x in zip(h, c, strict=True)),
        }  # fmt: skip

    def _read_participation(self, who: Mapping[str, Any]) -> None:
        """Read the chain of sets: of clients that come and go on their own, or of two states."""
        if who["name"] == "FiniteChain":
            self.moves = [[Fraction(p) for p in row] for row in who["transition"]]
            (_, leaves), (comes, _) = self.moves
            shares = [comes / (leaves + comes)]
            self.law, self.sets = [shares[0], 1 - shares[0]], who["sets"]
            kept = [1 - leaves - comes]
        else:
            _same("the participation", who["name"], "MarkovOnOff")
            shares = [Fraction(p) for p in who["availability"]]
            kept = [Fraction(v) for v in who["correlation"]]
            # Sets in the order in which the file has them: by whether client 0 is there, and so on.
            every = range(len(shares))
            self.sets = [
                [i for i in every if not place >> (len(shares) - 1 - i) & 1]
                for place in range(2 ** len(shares))
            ]

            def chance(who_is: list[int], before: list[int] | None) -> Fraction:
                found = Fraction(1)
                for i, (p, v) in enumerate(zip(shares, kept, strict=True)):
                    memory = v * (i in before) if before is not None else p * v
                    there = p * (1 - v) + memory
                    found *= there if i in who_is else 1 - there
                return found

            self.law = [chance(who_is, None) for who_is in self.sets]
            self.moves = [[chance(after, before) for after in self.sets] for before in self.sets]
        self.lengths, self.eigenvalues = Fraction(1), [Fraction(1)]
        for value in kept:
            self.eigenvalues += [value * other for other in self.eigenvalues]
        for p in shares:
            self.lengths *= 8 * (p * p + (1 - p) * (1 - p))


def _only(items: list[Any]) -> Any:
    if len(items) != 1:
        raise NotReadError("the certificate must be of models of one coordinate")
    return items[0] if isinstance(items[0], list) else Fraction(items[0])


# ---------------------------------------------------------------- comparison


def compare(text: str, certificate: Mapping[str, Any]) -> Said:
    """Return what a file says, which must be what a certificate says.

    Raises
    ------
    NotReadError
        Naming the first place that differs.
    """
    said = read(text)
    _same("the statement", said.of, f"{certificate['theorem']} ({certificate['reading']})")
    if not said.setting:
        _compare_weights({name: text for name, (text, _) in said.symbols.items()}, certificate)
        return said
    if "transition" in said.setting:
        _compare_chain(said, certificate)
        return said
    claim = _Claim(certificate)
    for name, value in said.setting.items():
        meant = claim.setting[name]
        many = _rows if name in ("hessians", "optima") else _list
        _same(name, (many if isinstance(meant, list) else _number)(value), meant)
    _same("the optimum", _list(said.optimum), claim.optimum)
    _compare_statement(said, claim)
    return said


def _compare_weights(said: Mapping[str, str], certificate: Mapping[str, Any]) -> None:
    """Compare a theorem on FedAU's weights: of one of the clients, in one of the rounds."""
    statement, setting = certificate["statement"], certificate["setting"]
    _same("the quantity", "weight_error_ratio", statement["quantity"])
    _same("the bound", "1", statement["bound"])
    _same("the conditions", ["Eq(tau, 0)", "T >= 2"], [*statement["conditions"].values()])
    _same("the symbols", {"T": "rounds", "tau": "dependence"}, statement["symbols"])
    _same("the algorithm", "FedAU", setting["algorithm"]["name"])
    _same("the participation", "Bernoulli", setting["participation"]["name"])
    available = [Fraction(p) for p in setting["participation"]["availability"]]
    _same("the client", _number(said["p"]) in available, True)
    _same("the cut-off", int(said["cutoff"]), setting["algorithm"]["cutoff"])
    _same("the rounds", int(said["rounds"]), setting["rounds"])
    _same("the round", 1 <= int(said["t"]) < setting["rounds"], True)
    for name in ("truth", "bound"):
        _same(f"the {name}'s number", _number(said[name]), Fraction(certificate[name]))


def _same(place: str, said: object, meant: object) -> None:
    if said != meant:
        raise NotReadError(f"{place}: the theorem says {said}, the certificate {meant}")


def _compare_statement(said: Said, claim: _Claim) -> None:
    parts = iter(said.parts)
    _same("the first part", next(parts), OPTIMUM)
    asked = _asked(claim)
    words: dict[str, ast.expr] = {}
    for name in (name for name in asked if name in FACTS):
        found = re.fullmatch(FACTS[name], next(parts, ""))
        value = found and found.groupdict()
        if not value or not claim.has(name, _number(value["v"])):
            raise NotReadError(f"{name}: the theorem must say what the setting has")
        _same(f"clients of {name}", int(value.get("n") or len(claim.optima)), len(claim.optima))
        words[name] = ast.parse(value["v"].strip(), mode="eval").body
    for name in (name for name in LEVEL if name in asked):
        level = LEVEL[name]
        _same(name, next(parts, ""), f"unbiased (axis_noise (dimension s) {level}) {level}")
    rules = _compare_symbols(said, claim, words)
    renamed = {_own(name): ast.Name(name, ast.Load()) for name in said.symbols}
    meant = _Meant(renamed, _whole(claim))
    for condition in _conditions(claim):
        _compare_condition(next(parts, ""), condition, meant, rules)
    written, _, number = next(parts, "").rpartition(" <= ")
    _same("the bound", _formula(written), meant.tree(claim.statement["bound"]))
    _same("the bound's number", _number(number), claim.bound)
    number, _, written = next(parts, "").partition(" <= ")
    _same("the truth's number", _number(number), claim.truth)
    rule = {key: claim.statement["quantity"][key] for key in ("of", "reduction", "rounds")}
    _same("the truth", _said_along(written, 1), claim.rule(rule))
    _same("the weights", claim.statement["quantity"]["weights"], "1")
    _same("parts left over", list(parts), [])


def _own(name: str) -> str:
    """Return a symbol's name in the statement: one that is taken has a line after it."""
    return name[:-1] if name.endswith("_") else name


def _asked(claim: _Claim) -> list[str]:
    """Return the numbers that symbols are made of, in the order in which they are asked for."""
    found: dict[str, None] = {}
    for formula in claim.statement["symbols"].values():
        found |= dict.fromkeys(re.findall(r"[A-Za-z_]\w*", formula))
    found.pop("sqrt", None)
    return list(found)


def _whole(claim: _Claim) -> dict[str, int]:
    known = {"rounds": claim.run, "local_steps": int(claim.setting["local_steps"])}
    return {s: known[f] for s, f in claim.statement["symbols"].items() if f in known}


def _compare_symbols(
    said: Said, claim: _Claim, words: Mapping[str, ast.expr]
) -> dict[str, tuple[str, str, int, int]]:
    """Compare what symbols are; return those along the run, by the file's names."""
    statement = claim.statement
    names = [*statement["symbols"], *statement["definitions"], *statement["round_symbols"]]
    _same("the symbols", [_own(name) for name in said.symbols], names)
    meant, rules = _Meant(words, _whole(claim)), {}
    own = _Meant({_own(name): ast.Name(name, ast.Load()) for name in said.symbols}, _whole(claim))
    for name, (meaning, every) in said.symbols.items():
        key = _own(name)
        if key in statement["round_symbols"]:
            rules[name] = claim.rule(statement["round_symbols"][key])
            _same(name, every, rules[name][1] == "every")
            _same(name, _said_along(meaning, rules[name][3]), rules[name])
            continue
        _same(name, every, False)
        if key in statement["symbols"]:
            for written, number in {**GIVEN, f"INR {claim.run}": "rounds"}.items():
                meaning = meaning.replace(written, number)
            _same(name, _formula(meaning), meant.tree(statement["symbols"][key]))
        else:
            _same(name, _formula(meaning), own.tree(statement["definitions"][key]))
    return rules


def _conditions(claim: _Claim) -> Iterator[str]:
    """Yield the conditions that are not of a constant's being finite."""
    for text in claim.statement["conditions"].values():
        symbol, _, right = text.partition(" < ")
        if right != "oo":
            yield text
        elif claim.statement["symbols"].get(symbol) not in ("L", "sigma_G"):
            raise NotReadError(f"the theorem cannot say that {symbol} is finite")


def _compare_condition(
    part: str, condition: str, meant: _Meant, rules: Mapping[str, tuple[str, str, int, int]]
) -> None:
    tree = ast.parse(condition, mode="eval").body
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    counts = {rule[3] for name, rule in rules.items() if rule[1] == "every" and _own(name) in names}
    every = re.fullmatch(r"\(forall r, \(r < (\d+)\)%nat -> (.*)\)", part)
    _same(f"rounds of {condition}", {int(every[1])} if every else set(), counts)
    written = every[2] if every else part
    match tree:
        case ast.Compare(left=left, ops=[kind], comparators=[right]):
            sign = {ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">"}[type(kind)]
        case ast.Call(func=ast.Name(id="Eq"), args=[left, right]):
            sign = "="
        case _:
            raise NotReadError(f"a condition must compare, got {condition}")
    first, found, second = re.split(r" (<=|>=|<|>|=) ", written + " = ", maxsplit=1)[:3]
    second = second.removesuffix(" = ")
    _same(f"the sign of {condition}", found, sign)
    _same(condition, _formula(first), meant.tree(ast.unparse(left)))
    _same(condition, _formula(second), meant.tree(ast.unparse(right)))


def main(arguments: list[str]) -> int:
    """Print what a file says: status 1 if it says something else, 2 for a wrong call."""
    if len(arguments) not in (1, 2):
        print("usage: python read_refutation.py FILE.v [CERTIFICATE.json]", file=sys.stderr)
        return 2
    try:
        text = Path(arguments[0]).read_text(encoding="utf-8")
        said = read(text)
        if len(arguments) == 2:
            compare(text, json.loads(Path(arguments[1]).read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"not read: {error}", file=sys.stderr)
        return 1
    for part in said.parts:
        print(part)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Refutations exported as theorems for Rocq (formerly Coq): a setting breaks a bound.

The exported file states the content of a certificate of refutation in terms of
``rocq/Process.v``. On a setting of quadratic clients, every hypothesis of the statement is met, the
bound is at most one number, and the expectation along the process is at least a larger number. The
proof passes all of this to the checker of ``rocq/Refuted.v``. Rocq's kernel runs this checker,
which computes two moments of each coordinate, round by round, in rational intervals.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fltheory.verify.certificates.rocq_chains import chain_refutation, is_on_chain
from fltheory.verify.certificates.rocq_formula import Formula, Reader, heading, parsed
from fltheory.worst_case.proof.rocq_words import (
    defined,
    rational,
    rationals,
    refused,
    rows_listed,
    wrapped,
)

MOST_ROUNDS = 5_000  # Rocq represents such numbers in unary
MOST_STEPS = 1_000
MOST_WORK = 50_000  # the product of numbers of sets, clients per set, local steps and coordinates

Row = list[Fraction]

# Names used in the file, which symbols of the statement must not shadow.
_TAKEN = """
R Q s r i x xs after at average bound_below case checked clients coin conditions dimension eligible
excess_loss expectation false fun forall full_gradient gradient gradients hessians in_round largest
loss mean_loss minus nat optima optimum participant_excess_loss point participant_gradient_sum
participants q_root reduced refutation refuted rounds run smooth sqrt square squared_distance
squared_gradient start strongly_convex symbols true truth truth_above unbiased axis_noise
local_steps client_lr server_lr assist_lr server_sigma INR Q2R list setting of first more accepted
the_refutation condition Process
"""
TAKEN = frozenset(_TAKEN.split())

_QUANTITIES = {
    "squared_distance": ("SquaredDistance", "squared_distance s xs"),
    "squared_gradient": ("SquaredGradient", "squared_gradient s"),
    "excess_loss": ("ExcessLoss", "excess_loss s xs"),
    "participant_excess_loss": ("ParticipantExcessLoss", "participant_excess_loss s xs"),
    "participant_gradient_sum": ("ParticipantGradientSum", "participant_gradient_sum s"),
}


def rocq_refutation(document: Mapping[str, Any]) -> str:
    """Return a Rocq file whose theorem states the content of a certificate of refutation.

    Parameters
    ----------
    document : mapping
        The certificate, which must have passed the check.

    Raises
    ------
    NotExportedError
        If the algorithm is neither SAFARI nor FedAvg (for FedAU, only statements about its weights
        can be exported), participation is not uniform, importances are unequal, a Hessian is not
        diagonal, the library does not know a number or quantity, or the run is too long for it.
    """
    if document["statement"]["quantity"] == "weight_error_ratio":
        return weight_error_refutation(document)
    if is_on_chain(document):
        return chain_refutation(document)
    played = _Played(document["setting"])
    said = _Statement(document, played)
    return "\n".join(
        (
            heading(document),
            _HEAD,
            *played.lines(),
            *said.definitions(),
            *said.theorem(),
        )
    )


_HEAD = """\
From Coq Require Import Reals QArith Qreals List Arith.
From fltheory Require Import Space Round Process Enclose Moments Refutation Refuted.
Import ListNotations.
Open Scope Q_scope.
"""


# ---------------------------------------------------------------- numbers


def _root(value: Fraction) -> Fraction | None:
    """Return a number's square root if it is rational."""
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return root if root * root == value else None


# ---------------------------------------------------------------- the setting


class _Played:
    """A setting of a kind that the library supports."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        problem, algorithm, who = raw["problem"], raw["algorithm"], raw["participation"]
        if algorithm["name"] not in ("Safari", "FedAvg"):
            raise refused(f"the algorithm {algorithm['name']}")
        if who["name"] != "UniformSubset":
            raise refused(f"the participation {who['name']}")
        self.optima = [[Fraction(c) for c in point] for point in problem["optima"]]
        n, d = len(self.optima), len(self.optima[0])
        full = [[[Fraction(h) for h in row] for row in rows] for rows in problem["hessians"]]
        if any(h[a][b] for h in full for a in range(d) for b in range(a)):
            raise refused("Hessians that are not diagonal")
        self.hessians = [[h[a][a] for a in range(d)] for h in full]
        if any(Fraction(w) != Fraction(1, n) for w in problem["target_weights"]):
            raise refused("unequal importances of clients")
        if any(Fraction(share) != 1 for share in problem.get("noise_shares", [])):
            raise refused("clients of unequal noise")
        is_safari = algorithm["name"] == "Safari"
        self.numbers = {
            "sigma": Fraction(problem["sigma"]),
            "server_sigma": Fraction(problem["server_sigma"]),
            "coin": Fraction(algorithm["q"]) if is_safari else Fraction(1),
            "client_lr": Fraction(algorithm["client_lr"]),
            "server_lr": Fraction(1) if is_safari else Fraction(algorithm["server_lr"]),
            "assist_lr": Fraction(algorithm["assist_lr"]) if is_safari else Fraction(1),
        }
        self.is_safari = is_safari
        self.counts = {
            "dimension": d,
            "clients": n,
            "participants": int(who["size"]),
            "local_steps": int(algorithm["local_steps"]),
        }
        self.eligible = [i for i in range(n) if i not in who["excluded"]]
        self.start = [Fraction(x) for x in raw["x0"]]
        self.rounds = int(raw["rounds"])
        self._check_sizes()
        self.star = [
            sum((h[a] * c[a] for h, c in self._clients), Fraction(0))
            / sum((h[a] for h, _ in self._clients), Fraction(0))
            for a in range(d)
        ]

    @property
    def _clients(self) -> list[tuple[Row, Row]]:
        return list(zip(self.hessians, self.optima, strict=True))

    def _check_sizes(self) -> None:
        m, steps = self.counts["participants"], self.counts["local_steps"]
        work = math.comb(len(self.eligible), m) * m * steps * self.counts["dimension"]
        for what, size, most in (
            ("rounds", self.rounds, MOST_ROUNDS),
            ("local steps", steps, MOST_STEPS),
            ("products for one round", work, MOST_WORK),
        ):
            if size > most:
                raise refused(f"more than {most} {what}")

    def lines(self) -> Iterator[str]:
        counts, numbers = self.counts, {k: rational(v) for k, v in self.numbers.items()}
        fields = {
            "dimension": f"{counts['dimension']}%nat",
            "clients": f"{counts['clients']}%nat",
            "hessians": rows_listed(self.hessians),
            "optima": rows_listed(self.optima),
            "sigma": numbers["sigma"],
            "server_sigma": numbers["server_sigma"],
            "eligible": f"[{'; '.join(map(str, self.eligible))}]%nat",
            "participants": f"{counts['participants']}%nat",
            "coin": numbers["coin"],
            "local_steps": f"{counts['local_steps']}%nat",
            "client_lr": numbers["client_lr"],
            "server_lr": numbers["server_lr"],
            "assist_lr": numbers["assist_lr"],
            "start": rationals(self.start),
        }
        yield defined("s", "setting", fields)
        yield f"Definition xs : list Q := {rationals(self.star)}.\n"
        yield "Open Scope R_scope.\n"

    # ------------------------------------------------------------ numbers that a formula can use

    def given(self, name: str) -> tuple[str, str] | None:
        """Return a number of the setting, as text of the file and as a term, or None if unknown."""
        fields = {**{n: n for n in self.numbers if n != "coin"}, "q": "coin"}
        if not self.is_safari:
            del fields["q"], fields["assist_lr"]
        if name in fields:
            return f"Q2R ({fields[name]} s)", f"(Number {rational(self.numbers[fields[name]])})"
        counts = {"participants": "participants", "local_steps": "local_steps"}
        counts["n_clients"] = "clients"
        if name in counts:
            return f"INR ({counts[name]} s)", f"(Count {self.counts[counts[name]]})"
        return (f"INR {self.rounds}", f"(Count {self.rounds})") if name == "rounds" else None

    def fact(self, name: str) -> tuple[Fraction, str, str] | None:
        """Return the value of a constant that the theorem must state, the statement and a proof."""
        if name not in ("L", "mu", "sigma_G", "squared_distance", "excess_loss"):
            return None
        value = self._value(name)
        text, term = _real(value), _real_term(value)
        everyone = f"(forall i, (i < {self.counts['clients']})%nat -> "
        clients = "(loss s i) (gradient s i))"
        here = "(point s (start s))"
        said, proof = {
            "L": (f"{everyone}smooth {text} {clients}", f"smooth_clients s {term}"),
            "mu": (f"{everyone}strongly_convex {text} {clients}", f"convex_clients s {term}"),
            "sigma_G": (
                f"(forall i x, (i < {self.counts['clients']})%nat ->\n"
                "    square (minus (gradient s i x) (full_gradient s x)) "
                f"<= {text} * {text})",
                f"similar_clients s {term}",
            ),
            "squared_distance": (
                f"squared_distance s xs {here} = {text}",
                f"at_start s xs SquaredDistance {term}",
            ),
            "excess_loss": (
                f"excess_loss s xs {here} = {text}",
                f"at_start s xs ExcessLoss {term}",
            ),
        }[name]
        return value, said, f"{proof} eq_refl"

    def _value(self, name: str) -> Fraction:
        entries = [h for row in self.hessians for h in row]
        if name == "L":
            return max(entries)
        if name == "mu":
            return min(entries)
        apart = [x - star for x, star in zip(self.start, self.star, strict=True)]
        if name == "squared_distance":
            return sum((a * a for a in apart), Fraction(0))
        mean = [
            sum(column, Fraction(0)) / len(column) for column in zip(*self.hessians, strict=True)
        ]
        if name == "excess_loss":
            return sum((h * a * a for h, a in zip(mean, apart, strict=True)), Fraction(0)) / 2
        if any(row != self.hessians[0] for row in self.hessians):
            raise refused("a gradient dissimilarity that is not finite")
        largest = max(
            sum(
                ((h * (star - c)) ** 2 for h, star, c in zip(hs, self.star, cs, strict=True)),
                Fraction(0),
            )
            for hs, cs in self._clients
        )
        root = _root(largest)
        if root is None:
            raise refused("a gradient dissimilarity that is not rational")
        return root


def _real(value: Fraction) -> str:
    text = str(abs(value.numerator))
    if value.denominator != 1:
        text = f"({text} / {value.denominator})"
    return f"(- {text})" if value < 0 else text


def _real_term(value: Fraction) -> str:
    term = f"(Whole {abs(value.numerator)})"
    if value.denominator != 1:
        term = f"(Over {term} (Whole {value.denominator}))"
    return f"(Opposite {term})" if value < 0 else term


# ---------------------------------------------------------------- the statement


@dataclass(frozen=True)
class _Along:
    """A symbol that varies along the run: the library's term and the definition in the file."""

    term: str
    definition: str
    is_every: bool
    count: int


class _Statement:
    """A statement's formulas, as text of the file and as terms of the library."""

    def __init__(self, document: Mapping[str, Any], played: _Played) -> None:
        self._document, self._played = document, played
        raw = document["statement"]
        self._facts: dict[str, tuple[str, str]] = {}
        self._terms: dict[str, str] = {}
        self._whole: dict[str, int] = {}
        self._written: list[str] = []
        self._rules: dict[str, _Along] = {}
        of_numbers = Reader(self._number, _root_of, self._whole)
        of_symbols = Reader(self._symbol, _root_of, self._whole)
        for name, text in raw["symbols"].items():
            tree = parsed(text)
            if isinstance(tree, ast.Name) and tree.id in ("rounds", "local_steps"):
                whole = {"rounds": played.rounds, **played.counts}
                self._whole[name] = whole[tree.id]
            self._define(name, of_numbers.read(tree))
        for name, text in raw["definitions"].items():
            self._define(name, of_symbols.read(parsed(text)))
        self._rules = {name: self._along(rule) for name, rule in raw["round_symbols"].items()}
        for place, (name, rule) in enumerate(self._rules.items()):
            argument = " (r : nat)" if rule.is_every else ""
            self._written.append(
                wrapped(f"Definition {_named(name)}{argument} : R := {rule.definition}.")
            )
            self._terms[name] = f"(Named {place})"
        if isinstance(raw["quantity"], str):
            raise refused("a quantity that is not along a run")
        if raw["quantity"]["weights"] != "1":
            raise refused("a weighted mean over rounds")
        self._truth = self._along({k: v for k, v in raw["quantity"].items() if k != "weights"})
        self._conditions = list(self._read_conditions(raw["conditions"], of_symbols))
        self._bound = of_symbols.read(parsed(raw["bound"]))

    def _define(self, name: str, formula: Formula) -> None:
        self._written.append(wrapped(f"Definition {_named(name)} : R := {formula.text}."))
        self._terms[name] = formula.term

    # ------------------------------------------------------------ formulas

    def _number(self, name: str) -> Formula:
        """Return a number of the setting, as a formula."""
        given = self._played.given(name)
        if given is not None:
            return Formula(*given)
        fact = self._played.fact(name)
        if fact is None:
            raise refused(f"the number {name}")
        self._facts.setdefault(name, fact[1:])
        return Formula(_real(fact[0]), _real_term(fact[0]))

    def _symbol(self, name: str) -> Formula:
        rule = self._rules.get(name)
        word = f"({_named(name)} r)" if rule and rule.is_every else _named(name)
        return Formula(word, self._terms[name])

    # ------------------------------------------------------------ along the run

    def _along(self, rule: Mapping[str, Any]) -> _Along:
        if rule["of"] not in _QUANTITIES:
            raise refused(f"the quantity {rule['of']}")
        kind, said = _QUANTITIES[rule["of"]]
        first, last = rule["rounds"][0], self._played.rounds + rule["rounds"][1]
        reduction = rule["reduction"]
        if reduction == "last":
            first = last
        more = last - first
        word, text = {
            "every": ("Every", f"after s {_round(first)} ({said})"),
            "last": ("Every", f"after s {first} ({said})"),
            "mean": ("Mean", f"average {more + 1} (fun r => after s {_round(first)} ({said}))"),
            "max": ("Largest", f"largest {more} (fun r => after s {_round(first)} ({said}))"),
        }.get(reduction, ("", ""))
        if not word:
            raise refused(f"the {reduction} over rounds")
        term = f"{{| of := {kind}; reduced := {word}; first := {first}; more := {more} |}}"
        return _Along(term, text, reduction == "every", more + 1)

    def _read_conditions(
        self, conditions: Mapping[str, str], of_symbols: Reader
    ) -> Iterator[tuple[str, str, bool]]:
        """Yield conditions as text and as terms, and whether they are about every round."""
        for text in conditions.values():
            tree = parsed(text)
            match tree:
                case ast.Compare(ops=[ast.Lt()], comparators=[ast.Name(id="oo")]):
                    # The file states for the clients themselves that a constant is finite.
                    self._check_finite(tree.left)
                    continue
                case ast.Compare(left=left, ops=[kind], comparators=[right]):
                    sides, sign = (left, right), type(kind)
                case ast.Call(func=ast.Name(id="Eq"), args=[left, right]):
                    sides, sign = (left, right), ast.Eq
                case _:
                    raise refused(f"the condition {text}")
            first, second = map(of_symbols.read, sides)
            signs: Mapping[type, tuple[str, str, bool]] = {
                ast.LtE: ("<=", "AtMost", False),
                ast.Lt: ("<", "Below", False),
                ast.GtE: (">=", "AtMost", True),
                ast.Gt: (">", "Below", True),
                ast.Eq: ("=", "Equal", False),
            }
            written, word, turned = signs[sign]
            terms = (second.term, first.term) if turned else (first.term, second.term)
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            is_every = any(n in self._rules and self._rules[n].is_every for n in names)
            said = f"{first.text} {written} {second.text}"
            yield said, f"{word} {' '.join(terms)}", is_every

    def _check_finite(self, tree: ast.expr) -> None:
        symbols = self._document["statement"]["symbols"]
        number = symbols.get(tree.id) if isinstance(tree, ast.Name) else None
        if number not in ("L", "sigma_G"):
            raise refused(f"the condition {ast.unparse(tree)} < oo")

    # ------------------------------------------------------------ the file

    def definitions(self) -> Iterator[str]:
        yield from self._written
        yield ""

    def theorem(self) -> Iterator[str]:
        """Yield the theorem, the data that the proof passes to the checker, and the proof."""
        truth, bound = (Fraction(self._document[key]) for key in ("truth", "bound"))
        rounds = max([rule.count for rule in self._rules.values() if rule.is_every], default=1)
        said = [("(forall x, mean_loss s (point s xs) <= mean_loss s x)",
                 "at_optimum s xs eq_refl"), *self._facts.values(), *self._noise()]  # fmt: skip
        for place, (text, _, is_every) in enumerate(self._conditions):
            holds = "condition_holds the_refutation accepted"
            proof = f"{place} condition_{place} eq_refl"
            if is_every:
                said.append(
                    (f"(forall r, (r < {rounds})%nat -> {text})",
                     f"(fun r H => {holds} r H {proof})")
                )  # fmt: skip
            else:
                said.append((text, f"{holds} 0 (Nat.lt_0_succ {rounds - 1}) {proof}"))
        said += [
            (f"{self._bound.text} <= {_real(bound)}",
             "proj1 (proj2 (refuted the_refutation accepted))"),
            (f"{_real(truth)} <= {self._truth.definition}",
             "proj2 (proj2 (refuted the_refutation accepted))"),
        ]  # fmt: skip
        yield from self._claim(truth, bound, rounds)
        yield "Theorem refutation :\n" + " /\\\n".join(wrapped(text, 2) for text, _ in said) + "."
        yield "Proof."
        for place, (_, proof) in enumerate(said):
            last = place == len(said) - 1
            yield f"  exact ({proof})." if last else f"  split; [exact ({proof})|]."
        yield "Qed.\n\nPrint Assumptions refutation.\n"

    def _noise(self) -> Iterator[tuple[str, str]]:
        for name in ("sigma", "server_sigma"):
            if name in self._document["statement"]["symbols"].values():
                level = f"(Q2R ({name} s))"
                # Once defined, the symbol sigma is distinct from the setting's field of the same
                # name.
                level = level.replace("(sigma", "(Process.sigma")
                yield (
                    f"unbiased (axis_noise (dimension s) {level}) {level}",
                    f"noise_unbiased s {level} eq_refl",
                )

    def _claim(self, truth: Fraction, bound: Fraction, rounds: int) -> Iterator[str]:
        for place, (_, term, _) in enumerate(self._conditions):
            yield wrapped(f"Definition condition_{place} : condition := {term}.")
        conditions = "; ".join(f"condition_{k}" for k in range(len(self._conditions)))
        symbols = "; ".join(rule.term for rule in self._rules.values())
        fields = {
            "case": "s",
            "optimum": "xs",
            "symbols": f"[{symbols}]%nat",
            "run": f"{self._played.rounds}%nat",
            "rounds": f"{rounds}%nat",
            "conditions": f"[{conditions}]",
            "truth": f"{self._truth.term}%nat",
            "bound": self._bound.term,
            "truth_above": _real_term(truth),
            "bound_below": _real_term(bound),
        }
        yield defined("the_refutation", "refutation", fields, breaks=True)
        yield "Lemma accepted : checked the_refutation = true."
        yield "Proof. vm_cast_no_check (eq_refl true). Qed.\n"


def _round(first: int) -> str:
    return f"({first} + r)" if first else "r"


def _root_of(function: str, inner: Formula) -> Formula:
    """Return a square root, the only function that the library has."""
    if function != "sqrt":
        raise refused(f"the formula {function}({inner.text})")
    return Formula(f"sqrt ({inner.text})", f"(Root {inner.term})")


def _named(name: str) -> str:
    return f"{name}_" if name in TAKEN else name


# ------------------------------------------------------------ FedAU's online weights

MOST_HISTORIES = 8  # last round for a worst error, since Rocq adds up 2^8 histories

_STATEMENT_ON_WEIGHTS: Mapping[str, Any] = {
    "symbols": {"T": "rounds", "tau": "dependence"},
    "definitions": {},
    "round_symbols": {},
    "conditions": {"participation independent of the past": "Eq(tau, 0)", "two rounds": "T >= 2"},
    "quantity": "weight_error_ratio",
    "bound": "1",
}


def weight_error_refutation(document: Mapping[str, Any]) -> str:
    """Return a Rocq file with a proof that a weight error exceeds the line of FedAU's proof.

    Parameters
    ----------
    document : mapping
        The certificate, which must have passed the check.

    Raises
    ------
    NotExportedError
        If there are other conditions, participation is not independent, or the error is largest
        only after more than `MOST_HISTORIES` rounds.
    """
    raw = document["setting"]
    if dict(document["statement"]) != _STATEMENT_ON_WEIGHTS:
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
                return (
                    heading(document)
                    + _HEAD_OF_WEIGHTS
                    + _theorem_on_weights(client, error, line, truth, bound, raw["rounds"], t)
                )
    raise refused(f"an error that is largest after more than {MOST_HISTORIES} rounds")


def _error(p: Fraction, cutoff: int, rounds: int) -> Fraction:
    """Return the expected squared error of a weight after the given number of rounds."""
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
    """Return the line of the proof that bounds this error."""
    law = {k: p * (1 - p) ** (k - 1) for k in range(1, cutoff)} | {cutoff: (1 - p) ** (cutoff - 1)}
    mean = sum((k * chance for k, chance in law.items()), Fraction(0))
    variance = sum((k * k * chance for k, chance in law.items()), Fraction(0)) - mean**2
    return p**2 * variance / max(t // cutoff, 1) + (1 - p) ** (2 * cutoff)


_HEAD_OF_WEIGHTS = """
From Coq Require Import Reals Arith Lra.
From fltheory Require Import Weights.
Open Scope R_scope.

"""


def _theorem_on_weights(
    client: str, error: Fraction, line: Fraction, truth: Fraction, bound: Fraction,
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

Theorem refutation :
  (2 <= {rounds})%nat /\\
  (1 <= {t} < {rounds})%nat /\\
  0 < proof_line {client} /\\
  {real(truth)} * proof_line {client} <= weight_error {client} /\\
  1 <= {real(bound)} < {real(truth)}.
Proof.
  rewrite error, line. repeat split; try lra; apply Nat.leb_le; reflexivity.
Qed.

Print Assumptions refutation.
"""

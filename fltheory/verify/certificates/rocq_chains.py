"""Refutations of CA-Fed's Theorem 2 under Markov availability, exported as theorems for Rocq."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product, starmap
from typing import Any

from fltheory.verify.certificates.rocq_formula import Formula, Reader, heading, parsed
from fltheory.worst_case.proof.rocq_words import (
    defined,
    listed,
    rational,
    rationals,
    real,
    refused,
    rows_listed,
    wrapped,
)

MOST_ROUNDS = 5_000  # Rocq enumerates them
MOST_TERMS = 16_384  # terms of the sums over all rounds before the remainder is bounded
MOST_STATES = 4

_SYMBOLS = {
    "C_P": "cited_chain_factor", "D": "largest_gradient", "D_0": "sqrt(squared_distance)",
    "E": "local_steps", "G": "sqrt(largest_gradient**2 + sigma**2)", "Gamma": "Gamma",
    "H": "largest_loss_change", "L": "L", "M": "chain_states",
    "N_q": "sigma**2*mean_squared_weight", "Q": "total_weight", "S_0": "inverse_square_sum",
    "S_1": "step_sum", "S_2": "step_square_sum", "T": "rounds", "T_P": "chain_onset",
    "Y_0": "cited_delayed_log_sum", "Y_1": "cited_delayed_square_sum", "lambda_P": "chain_rate",
    "mu": "mu", "pi_q": "mean_weight", "r": "step_decay", "r_0": "reach_of_start",
    "r_min": "reach_of_minimisers", "rho": "radius",
}  # fmt: skip
_DEFINITIONS = {
    "upsilon": "2*D_0**2/E + M*Q*(S_0 + S_2)/4",
    "psi": "G**2*S_2*(2*E/3 - 2/3)*(2*E - 1) + 4*Gamma*L*S_2*(E*Q + 2)",
    "phi": "2*D*E*G*Q*(Y_0 + Y_1*log(2*C_P*H))",
}
_BOUND = "(phi/log(1/lambda_P) + psi + (N_q*S_2/2 + upsilon)/pi_q)/S_1"
# Hypotheses of the statement and their proofs in the file. That L is finite is stated for the
# clients.
_CONDITIONS = {
    "r_min < rho": "apply reach_below; [|repeat constructor]; by_numbers",
    "L < oo": "",
    "mu > 0": "by_numbers",
    "r_0 <= rho": "apply reach_at_most; [|repeat constructor]; by_numbers",
    "r <= 1": "by_numbers",
    "r > 1/2": "by_numbers",
    "T >= T_P": "apply Rle_ge; apply (pos_INR {rounds})",
}
_ALGORITHM = ["AveragedIterate", "Projected", "Scheduled", "WeightedFedAvg"]
_QUANTITY = {"of": "biased_excess_loss", "reduction": "last", "rounds": [0, 0], "weights": "1"}


def is_on_chain(document: Mapping[str, Any]) -> bool:
    """Whether a certificate refutes CA-Fed's Theorem 2, as printed."""
    said = document["statement"]
    return (
        said["symbols"] == _SYMBOLS
        and said["definitions"] == _DEFINITIONS
        and list(said["conditions"].values()) == list(_CONDITIONS)
        and (said["quantity"], said["bound"], said["round_symbols"]) == (_QUANTITY, _BOUND, {})
    )


def chain_refutation(document: Mapping[str, Any]) -> str:
    """Return a Rocq file that says that a run's average exceeds the bound of CA-Fed's Theorem 2.

    Parameters
    ----------
    document : mapping
        The certificate, which must have passed the check.

    Raises
    ------
    NotExportedError
        If gradients have noise, models have several coordinates, importances are unequal, the chain
        has more than `MOST_STATES` states or is not a product of two-state chains of the clients,
        or `MOST_TERMS` terms of the theorem's sums do not suffice to show that the certificate's
        bound is above the theorem's.
    """
    return "\n".join(_File(document, _Setting(document["setting"])).lines())


# ---------------------------------------------------------------- the setting


class _Setting:
    """A run of CA-Fed on clients of one coordinate, with a product of two-state chains."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._read_algorithm(raw["algorithm"])
        problem = raw["problem"]
        self.minimisers = [Fraction(point[0]) for point in problem["optima"]]
        n = len(self.minimisers)
        if len(problem["optima"][0]) > 1:
            raise refused("models of several coordinates")
        if Fraction(problem["sigma"]) != 0:
            raise refused("clients' gradients with noise")
        if any(Fraction(share) != Fraction(1, n) for share in problem["target_weights"]):
            raise refused("unequal importances of clients")
        self.curvatures = [Fraction(h[0][0]) for h in problem["hessians"]]
        self.start, self.rounds = Fraction(raw["x0"][0]), raw["rounds"]
        if self.rounds > MOST_ROUNDS:
            raise refused(f"more than {MOST_ROUNDS} rounds")
        self.factors = list(_factors(raw["participation"]))
        places = list(product((0, 1), repeat=len(self.factors)))
        if len(places) > MOST_STATES:
            raise refused(f"more than {MOST_STATES} states of the chain")
        self.present = [_present(raw["participation"], place) for place in places]
        self.places = places
        self.stationary = [self.along(lambda f, at: f.law[at], place) for place in places]
        self.transition = [
            [self.along(lambda f, a, b: f.moves[a][b], start, end) for end in places]
            for start in places
        ]

    def along(self, of: Callable[..., Fraction], *places: Sequence[int]) -> Fraction:
        """Return the product over chains of a function of each, at given states."""
        each = zip(self.factors, *places, strict=True)
        return math.prod(starmap(of, each), start=Fraction(1))

    def _read_algorithm(self, average: Mapping[str, Any]) -> None:
        parts = [average]
        while "algorithm" in parts[-1]:
            parts.append(parts[-1]["algorithm"])
        if [part["name"] for part in parts] != _ALGORITHM:
            raise refused(f"the algorithm {average['name']}")
        _, projected, scheduled, inner = parts
        sizes = scheduled["step_sizes"]
        if sizes["name"] != "Harmonic" or sizes != average["weights"]:
            raise refused("step sizes that are not harmonic, or averages with other weights")
        self.scale, self.offset = Fraction(sizes["scale"]), Fraction(sizes["offset"])
        self.weights = [Fraction(q) for q in inner["aggregation_weights"]]
        self.local_steps, self.server_lr = inner["local_steps"], Fraction(inner["server_lr"])
        ball = projected["onto"]
        self.centre, self.radius = Fraction(ball["centre"][0]), Fraction(ball["radius"])

    def mean(self, shares: Sequence[Fraction]) -> Fraction:
        """Return the minimiser of a weighted mean of losses."""
        bends = [p * h for p, h in zip(shares, self.curvatures, strict=True)]
        return _total(b * c for b, c in zip(bends, self.minimisers, strict=True)) / _total(bends)

    @cached_property
    def availability(self) -> list[Fraction]:
        states = list(zip(self.stationary, self.present, strict=True))
        clients = range(len(self.minimisers))
        return [_total(p for p, who in states if i in who) for i in clients]

    @cached_property
    def star(self) -> Fraction:
        return self.mean([Fraction(1)] * len(self.minimisers))

    @cached_property
    def mean_weight(self) -> Fraction:
        both = zip(self.availability, self.weights, strict=True)
        return _total(a * q for a, q in both)

    @cached_property
    def shares(self) -> list[Fraction]:
        """CA-Fed's p: availability times weight, divided by the sum of these products."""
        both = zip(self.availability, self.weights, strict=True)
        return [a * q / self.mean_weight for a, q in both]

    @cached_property
    def biased(self) -> Fraction:
        return self.mean(self.shares)

    def loss(self, i: int, x: Fraction) -> Fraction:
        return self.curvatures[i] * (x - self.minimisers[i]) ** 2 / 2

    def farthest(self, i: int) -> Fraction:
        """Return the end of W farther from a client's minimiser."""
        return self.centre + (self.radius if self.minimisers[i] <= self.centre else -self.radius)

    def step(self, t: int) -> float:
        return float(self.scale) / (t + float(self.offset))

    @cached_property
    def mean_of_average(self) -> float:
        """The approximate expected average of a chain without memory."""
        if any(row != self.stationary for row in self.transition):
            raise refused("a truth above zero of a chain with memory")
        model, total, weight = float(self.start), 0.0, 0.0
        for t in range(1, self.rounds + 1):
            step, moved = self.step(t), model
            total, weight = total + step * model, weight + step
            for a, q, h, c in zip(
                self.availability, self.weights, self.curvatures, self.minimisers, strict=True
            ):
                kept = (1 - step * float(h)) ** self.local_steps
                moved += float(self.server_lr * a * q) * (kept - 1) * (model - float(c))
            model = moved
        return total / weight


def _total(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


@dataclass(frozen=True)
class _Factor:
    """A two-state chain: its stationary distribution and transition probabilities."""

    law: tuple[Fraction, Fraction]
    moves: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]

    @property
    def second(self) -> Fraction:
        return self.moves[0][0] + self.moves[1][1] - 1

    @property
    def length(self) -> Fraction:
        return self.law[0] ** 2 + self.law[1] ** 2


def _factors(who: Mapping[str, Any]) -> Iterator[_Factor]:
    """Yield the chains whose product is the participation process; state 0 means present."""
    if who.get("start") is not None:
        raise refused("a chain that does not start from its stationary law")
    if who["name"] == "MarkovOnOff":
        for share, kept in zip(who["availability"], who["correlation"], strict=True):
            pi, nu = Fraction(share), Fraction(kept)
            if not 0 < pi < 1:
                raise refused("clients that are always or never present")
            stays, comes = nu + (1 - nu) * pi, (1 - nu) * pi
            yield _Factor((pi, 1 - pi), ((stays, 1 - stays), (comes, 1 - comes)))
    elif who["name"] == "FiniteChain" and len(who["transition"]) == 2:
        (a, b), (c, d) = ([Fraction(p) for p in row] for row in who["transition"])
        yield _Factor((c / (b + c), b / (b + c)), ((a, b), (c, d)))
    else:
        raise refused(f"the participation {who['name']}")


def _present(who: Mapping[str, Any], place: Sequence[int]) -> list[int]:
    if who["name"] == "FiniteChain":
        return list(who["sets"][place[0]])
    return [i for i, at in enumerate(place) if at == 0]


# ---------------------------------------------------------------- numbers and formulas in the file


def _formula(text: str, terms: Mapping[str, str] | None = None) -> Formula:
    """Return a formula of the statement, also as a term if the terms of its symbols are known."""
    known = terms or {}

    def named(word: str) -> Formula:
        return Formula(word, known.get(word, ""))

    reader = Reader(
        lambda name: named("Q_" if name == "Q" else name),
        lambda _, inner: named(f"ln ({inner.text})"),
        {},
    )
    return reader.read(parsed(text))


# ---------------------------------------------------------------- the file

_HEAD = """
From Coq Require Import Reals QArith Qreals ZArith List Arith Lra Lia.
From fltheory Require Import Space Round Process Enclose Moments Refuted Chain Series Chained.
Import ListNotations.
Open Scope Q_scope.
"""
_INFINITE = ("S_0", "S_2", "Y_0", "Y_1")  # in the order of the library
_LN_2 = Fraction(6932, 10_000)
_DIGITS = 10**9  # of logarithms
_HALVINGS = 40  # terms of a logarithm, until it is nearly linear
_SUMS = """\
  exists (delay : nat -> nat) S_0 S_2 Y_0 Y_1,
    (forall t, (1 <= t)%nat ->
      least (fun m => 2 * C_P * H * INR t * lambda_P ^ m <= 1) (delay t)) /\\
    sums_to (fun t => (/ INR t) ^ 2) S_0 /\\
    sums_to (fun t => step s t ^ 2) S_2 /\\
    sums_to (fun t => ln (INR t) * delayed_step s delay t ^ 2) Y_0 /\\
    sums_to (fun t => delayed_step s delay t ^ 2) Y_1 /\\
    bound S_0 S_2 Y_0 Y_1 <= {bound}."""
_COMPUTED = "vm_cast_no_check (eq_refl true)."


class _File:
    """The theorem for a certificate, and the data that its proof passes to the library."""

    def __init__(self, document: Mapping[str, Any], setting: _Setting) -> None:
        self._document, self._s = document, setting
        s = setting
        clients = range(len(s.minimisers))
        steep = [(s.curvatures[i] * abs(s.farthest(i) - s.minimisers[i]), i) for i in clients]
        self._gradient, self._steepest = max(steep)
        # Each client's losses at the far end of W and, if it is in W, at the client's own
        # minimiser.
        changes = [
            (abs(s.loss(i, x) - s.loss(i, s.biased)), i, x)
            for i in clients
            for x in (s.farthest(i), s.minimisers[i])
        ]
        self._change, self._changing, self._changed_at = max(changes)
        self._gap = max(s.loss(i, s.star) for i in clients)
        self._second = max(map(abs, self._eigenvalues()[1:]))
        self._rate = (1 + self._second) / 2
        self._values = {
            "D": self._gradient, "D_0": abs(s.start - s.star), "E": Fraction(s.local_steps),
            "G": self._gradient, "Gamma": self._gap, "L": max(s.curvatures),
            "M": Fraction(len(s.places)), "N_q": Fraction(0), "Q_": _total(s.weights),
            "pi_q": s.mean_weight,
        }  # fmt: skip

    def _eigenvalues(self) -> list[Fraction]:
        return [self._s.along(lambda f, e: f.second**e, place) for place in self._s.places]

    def _tables(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return U, of products of (1, 1) and root (1 - pi, -pi), and its inverse V."""
        factors, places = self._s.factors, self._s.places

        def entry(state: Sequence[int], which: Sequence[int], is_left: bool) -> str:
            roots, value = [], Fraction(1)
            for k, (f, at, e) in enumerate(zip(factors, state, which, strict=True)):
                sign = 1 - 2 * at
                if e:
                    roots.append(f"root_{k} * ")
                    value *= sign * (f.length / 2 if is_left else f.law[1 - at])
                elif is_left:
                    value *= f.law[at]
            return f"{''.join(roots)}{real(value)}"

        return (
            [[entry(state, which, False) for which in places] for state in places],
            [[entry(state, which, True) for state in places] for which in places],
        )

    # ------------------------------------------------------------ choices of the proof

    @cached_property
    def _factor(self) -> float:
        """An approximation of C_P."""
        squares = (len(self._s.places) - 1) * self._length("U") * self._length("V")
        return math.sqrt(squares)

    def _rest(self) -> str:
        """Return the library's data for the sums; the main one is the number of terms to add.

        Beyond n terms, the remainder is bounded by terms that decay like ``1/(gamma (t + e))^2``.
        """
        s, wait = self._s, math.ceil(self._rate / (1 - self._rate))
        b, wanted = float(s.offset), float(Fraction(self._document["bound"]))
        sums, high = [0.0] * 4, [math.inf] * 4
        for t, m, sums in self._partial_sums():
            gamma, e = math.floor(1000 * (1 - wait / t)) / 1000, 0
            if gamma > 0:
                e = math.floor(min(b, (t - m - 1 + b) / gamma - t))
            if e < 0:
                gamma, e = math.floor(1000 * (t - m - 1 + b) / t) / 1000, 0
            if t % 32 or gamma <= 0:
                continue
            above = _log(t + e)[1]
            tail = float(s.scale) ** 2 / (t + e)
            late = tail / gamma**2
            rest = (1 / t, tail, late * (1.5 + math.log(t + e)), late)
            high = [low + more for low, more in zip(sums, rest, strict=True)]
            if self._bound_at(high, sums) < wanted - 1e-6 * abs(wanted):
                slope = Fraction(round(1000 * gamma), 1000)
                return f"{t} {wait} {rational(slope)} {e} {rational(above)}"
        raise refused(
            f"a bound of {wanted:g}: {MOST_TERMS} terms of its sums put the theorem's between "
            f"{self._bound_at(sums, high):g} and {self._bound_at(high, sums):g}"
        )

    def _partial_sums(self) -> Iterator[tuple[int, int, list[float]]]:
        """Yield each round, its delay and the approximate sums so far."""
        s, rate, reach = self._s, float(self._rate), 2 * self._factor * float(self._change)
        m, mixed, log, sums = 0, 1.0, 0.0, [0.0] * 4
        for t in range(1, MOST_TERMS + 1):
            while reach * t * mixed > 1 - 1e-9:
                m, mixed = m + 1, mixed * rate
            power = t.bit_length() - 1
            log = power * float(_LN_2) if t == 1 << power else log + 1 / (t - 1)
            late = s.step(max(t - m, 0)) ** 2
            for k, more in enumerate((1 / t**2, s.step(t) ** 2, log * late, late)):
                sums[k] += more
            yield t, m, sums

    def _bound_at(self, high: Sequence[float], low: Sequence[float]) -> float:
        """Return the approximate bound; a negative logarithm is multiplied by the smaller sum."""
        v = {name: float(value) for name, value in self._values.items()}
        log = math.log(2 * self._factor * float(self._change))
        late = high[3] if log > 0 else low[1]
        upsilon = 2 * v["D_0"] ** 2 / v["E"] + v["M"] * v["Q_"] * (high[0] + high[1]) / 4
        psi = v["G"] ** 2 * (2 * v["E"] / 3 - 2 / 3) * (2 * v["E"] - 1)
        psi = high[1] * (psi + 4 * v["Gamma"] * v["L"] * (v["E"] * v["Q_"] + 2))
        phi = 2 * v["D"] * v["E"] * v["G"] * v["Q_"] * (high[2] + late * log)
        steps = sum(self._s.step(t) for t in range(1, self._s.rounds + 1))
        return (phi / -math.log(self._rate) + psi + upsilon / v["pi_q"]) / steps

    # ------------------------------------------------------------ definitions

    def lines(self) -> Iterator[str]:
        """Yield the file's lines."""
        yield heading(self._document) + _HEAD
        for part in (self._setting(), self._symbols(), self._proofs(), self._theorem()):
            for text in part:
                indent = len(text) - len(text.lstrip())
                yield text if "\n" in text or not text else wrapped(text.strip(), indent)

    def _setting(self) -> Iterator[str]:
        s = self._s
        sets = listed([listed([str(i) for i in who]) for who in s.present])
        fields = {
            "curvatures": rationals(s.curvatures),
            "minimisers": rationals(s.minimisers),
            "weights": rationals(s.weights),
            "local_work": f"{s.local_steps}%nat",
            "server_step": rational(s.server_lr),
            "step_scale": rational(s.scale),
            "step_offset": rational(s.offset),
            "ball_centre": rational(s.centre),
            "ball_radius": rational(s.radius),
            "origin": rational(s.start),
            "transition": rows_listed(s.transition),
            "present": f"{sets}%nat",
            "stationary": rationals(s.stationary),
        }
        yield defined("s", "chain_setting", fields, breaks=True) + "\nOpen Scope R_scope.\n"

    def _symbols(self) -> Iterator[str]:
        s = self._s
        left, right = self._tables()
        yield f"Definition w_star : R := {real(s.star)}."
        yield f"Definition w_B : R := {real(s.biased)}."
        for k, f in enumerate(s.factors):
            yield f"Definition root_{k} : R := sqrt {real(2 / f.length)}."
        for name, table in (("U", left), ("V", right)):
            yield f"Definition {name} : list (list R) := {listed(map(listed, table))}."
        yield f"Definition eigenvalues : list R := {listed(map(real, self._eigenvalues()))}."
        meanings = {
            "sigma": "0",
            "C_P": "sqrt (INR (n_states s - 1)) * frobenius s U * frobenius s V",
            "D": real(self._gradient),
            "D_0": "sqrt ((Q2R (origin s) - w_star) ^ 2)",
            "E": "INR (local_work s)",
            "G": "sqrt (D ^ 2 + sigma ^ 2)",
            "Gamma": real(self._gap),
            "H": real(self._change),
            "L": real(max(s.curvatures)),
            "M": "INR (n_states s)",
            "N_q": "sigma ^ 2 * mean_squared_weight s",
            "Q_": "sum (n_clients s) (weight s)",
            "S_1": f"step_sum s {s.rounds}",
            "T": f"INR {s.rounds}",
            "T_P": "0",
            "lambda_P": "(1 + second_eigenvalue eigenvalues) / 2",
            "mu": real(min(s.curvatures)),
            "pi_q": "mean_weight s",
            "r": "decay",
            "r_0": "reach s [Q2R (origin s)]",
            "r_min": "reach s (w_star :: w_B :: map Q2R (minimisers s))",
            "rho": "radius s",
        }
        for name, meaning in meanings.items():
            yield f"Definition {name} : R := {meaning}."
        yield "Definition bound (S_0 S_2 Y_0 Y_1 : R) : R :="
        for name, text in _DEFINITIONS.items():
            yield f"  let {name} := {_formula(text).text} in"
        yield f"  {_formula(_BOUND).text}.\n"

    # ------------------------------------------------------------ proofs

    def _proofs(self) -> Iterator[str]:
        s = self._s
        self._ends = " ".join(rational(end([s.start, *s.minimisers])) for end in (min, max))
        yield from _lemma("kept", f"is_kept s {self._ends} = true", _COMPUTED)
        states = "split; [|split; [|split; [|split]]]; by_states."
        yield from _lemma("chain", "is_stationary s", states)
        yield from self._eigenbasis()
        yield from _lemma("rate", f"lambda_P = Q2R {rational(self._rate)}", "by_numbers.")
        yield from self._facts()
        yield from self._numbers()
        yield from self._sides()

    def _eigenbasis(self) -> Iterator[str]:
        """Yield the lemmas on U and V; they are about polynomials in roots, reduced to squares."""
        roots = [f"root_{k}" for k in range(len(self._s.factors))]
        squares = [2 / f.length for f in self._s.factors]
        for root, square in zip(roots, squares, strict=True):
            said = f"{root} * {root} = {real(square)}"
            yield from _lemma(f"square_{root}", said, "apply sqrt_sqrt. lra.")
        facts = [f"square_{root}" for root in roots]
        if len(roots) == 2:
            said = f"root_0 * root_0 * (root_1 * root_1) = {real(squares[0] * squares[1])}"
            facts.append("square_both")
            yield from _lemma(facts[-1], said, "rewrite square_root_0, square_root_1. lra.")
        known = "".join(f"assert (F{k} := {fact}); " for k, fact in enumerate(facts))
        kept = f"Rplus Rmult Ropp Rinv Rminus Rdiv IZR Rle sqrt {' '.join(roots)}"
        yield f"Ltac by_roots := {known}cbv -[{kept}]; repeat split; lra."
        basis = "split; [reflexivity|split; [reflexivity|]]; apply all_pairs; by_roots."
        yield from _lemma("diagonal", "diagonalises s U eigenvalues V", basis)
        for table in ("U", "V"):
            said = f"frobenius s {table} = sqrt {real(self._length(table))}"
            yield from _lemma(f"length_{table}", said, "unfold frobenius. f_equal. by_roots.")

    def _length(self, table: str) -> Fraction:
        """Return the sum of the squares of U's entries, or of V's."""
        return self._s.along(lambda f: 2 * f.length if table == "V" else Fraction(4))

    def _facts(self) -> Iterator[str]:
        s, each = self._s, "apply all_below; by_conjuncts"
        for word, point, value in (("true", "w_star", s.star), ("biased", "w_B", s.biased)):
            said = f"forall x, {word}_objective s {point} <= {word}_objective s x"
            proof = f"replace {point} with (Q2R {rational(value)}) by by_numbers."
            yield from _lemma(
                f"{word}_optimum", said, f"{proof} apply ({word}_least s). {_COMPUTED}"
            )
        at_end = f"apply Nat.ltb_lt; reflexivity|by_numbers|by_numbers|{each}"
        place = f"{self._steepest} {real(s.farthest(self._steepest))}"
        proof = f"apply (largest_gradient s D {place}); [{at_end}]."
        yield from _lemma("gradients", self._said_gradients(), proof)
        place = f"{self._changing} {real(self._changed_at)}"
        proof = f"apply (largest_change s H w_B {place}); [{at_end}]."
        yield from _lemma("changes", self._said_changes(), proof)
        for name, what, lemma in (
            ("smooth_losses", "smooth L", "smooth_clients_of s L"),
            ("convex_losses", "strongly_convex mu", "convex_clients_of s mu"),
        ):
            yield from _lemma(name, self._said_of_clients(what), f"apply ({lemma}); {each}.")

    def _numbers(self) -> Iterator[str]:
        """Yield the enclosures of the bound's numbers, and the bound as a term."""
        s = self._s
        left, right = (f"(Root {_number(self._length(table))})" for table in ("U", "V"))
        others = len(s.places) - 1
        factor = f"Times (Times (Root (Whole {others})) {left}) {right}"
        yield f"Definition t_factor : term := {factor}."
        factor = "unfold C_P. rewrite length_U, length_V."
        factor += f" replace (INR (n_states s - 1)) with {others} by by_numbers. reflexivity."
        yield from _lemma("factor", "C_P = value nameless t_factor", factor)
        change = _number(self._change)
        yield f"Definition t_reach : term := Times (Times (Whole 2) t_factor) {change}."
        proof = f"apply inside_around; [rewrite factor; reflexivity|{_COMPUTED[:-1]}]."
        yield from _lemma("reached", "inside (2 * C_P * H) (around t_reach)", proof)
        rate = f"(Over (Whole 1) (Number {rational(self._rate)}))"
        of_rate = "apply inside_around; [rewrite rate; reflexivity|reflexivity]"
        reach = 2 * self._factor * float(self._change)
        around: dict[str, tuple[str, str]] = {}
        for lemma, of, inside, term, nearly in (
            ("log_of_reach", "2 * C_P * H", "exact reached", "t_reach", reach),
            ("log_of_rate", "1 / lambda_P", of_rate, rate, 1 / float(self._rate)),
        ):
            ends = " ".join(map(rational, _log(nearly)))
            around[f"ln ({of})"] = f"(span {ends})", lemma
            proof = (
                f"apply (inside_log {_HALVINGS} _ (around {term})); [{inside}|{_COMPUTED[:-1]}]."
            )
            yield from _lemma(lemma, f"inside (ln ({of})) (span {ends})", proof)
        for name, value in self._values.items():
            proof = "by_numbers."
            if name in ("D_0", "G"):
                proof = f"transitivity {real(value)}; [apply root_is; by_numbers|by_numbers]."
            yield from _lemma(f"is_{name}", f"{name} = Q2R {rational(value)}", proof)
            around[name] = f"(i_number {rational(value)})", f"(inside_rational _ _ is_{name})"
        steps = f"(i_sum {s.rounds} (fun k => i_step s (Z.of_nat (S k))))"
        around["S_1"] = steps, f"(inside_steps s {self._ends} {s.rounds} kept)"
        yield f"Definition reals : list R := {listed(around)}."
        yield f"Definition around_reals : list interval := {listed(i for i, _ in around.values())}."
        proofs = "".join(f"constructor; [exact {proof}|]. " for _, proof in around.values())
        yield from _lemma(
            "all_inside", "Forall2 inside reals around_reals", f"{proofs}constructor."
        )
        terms = {name: f"(Named {k})" for k, name in enumerate((*_INFINITE, *around))}
        for name, text in (*_DEFINITIONS.items(), ("bound", _BOUND)):
            yield f"Definition t_{name} : term := {_formula(text, terms).term}."
            terms[name] = f"t_{name}"

    def _sides(self) -> Iterator[str]:
        s = self._s
        truth, at = Fraction(self._document["truth"]), rational(s.biased)
        proof = f"replace w_B with (Q2R {at}) by by_numbers. "
        if truth <= 0:
            proof += "apply Rle_trans with 0; [lra|]. "
            proof += f"apply (not_negative s {self._ends} kept chain). {_COMPUTED}"
        else:
            slope = Fraction(s.mean_of_average - float(s.biased)).limit_denominator(1000)
            proof += f"destruct (above s {self._ends} kept chain (eq_refl true) {s.rounds} {at} "
            proof += (
                f"{rational(slope)} {_number(truth)}) as [m Above]; [{_COMPUTED[:-1]}|exact Above]."
            )
        yield from _lemma("truth", self._said_truth(), proof)
        hints = f"{rational(self._rate)} {rational(_LN_2)} {self._rest()}"
        number = _number(Fraction(self._document["bound"]))
        said = f"is_below s (around t_reach) {hints} around_reals t_bound {number} = true"
        yield from _lemma("bounded", said, _COMPUTED)
        yield ""

    # ------------------------------------------------------------ the theorem

    def _said_gradients(self) -> str:
        return "is_lub (among_clients_in_W s (fun i x => Rabs (client_gradient s i x))) D"

    def _said_changes(self) -> str:
        change = "Rabs (client_loss s i x - client_loss s i w_B)"
        return f"is_lub (among_clients_in_W s (fun i x => {change})) H"

    def _said_of_clients(self, what: str) -> str:
        n = len(self._s.minimisers)
        return f"forall i, (i < {n})%nat -> {what} (client_loss s i) (client_gradient s i)"

    def _said_truth(self) -> str:
        truth = real(Fraction(self._document["truth"]))
        return (
            f"{truth} <= at_average s {self._s.rounds}"
            " (fun w => biased_objective s w - biased_objective s w_B)"
        )

    def _theorem(self) -> Iterator[str]:
        parts = [
            ("is_stationary s", "exact chain"),
            ("diagonalises s U eigenvalues V", "exact diagonal"),
            ("(forall x, true_objective s w_star <= true_objective s x)", "exact true_optimum"),
            ("(forall x, biased_objective s w_B <= biased_objective s x)", "exact biased_optimum"),
            (f"({self._said_of_clients('smooth L')})", "exact smooth_losses"),
            (f"({self._said_of_clients('strongly_convex mu')})", "exact convex_losses"),
            (self._said_gradients(), "exact gradients"),
            (self._said_changes(), "exact changes"),
            (
                f"Gamma = largest {len(self._s.minimisers) - 1} (fun i => client_loss s i w_star)",
                "cbv [largest]; by_numbers",
            ),
            *(
                (text.replace("1/2", "1 / 2"), proof.format(rounds=self._s.rounds))
                for text, proof in _CONDITIONS.items()
                if proof
            ),
            (self._said_truth(), "exact truth"),
        ]
        yield "Theorem refutation :"
        yield from (f"  {text} /\\" for text, _ in parts)
        yield _SUMS.format(bound=real(Fraction(self._document["bound"])))
        yield "Proof."
        yield from (f"  split; [{proof}|]." for _, proof in parts)
        # The lemma itself contains the checker's numbers.
        rest = f"{' '.join('_' * 10)} reached rate all_inside bounded"
        yield f"  exact (below s _ _ _ {rational(self._rate)} {rest})."
        yield "Qed.\n\nPrint Assumptions refutation.\n"


def _log(value: float) -> tuple[Fraction, Fraction]:
    """Return fractions below and above a logarithm."""
    nearly = math.floor(math.log(value) * _DIGITS)
    return Fraction(nearly - 2, _DIGITS), Fraction(nearly + 3, _DIGITS)


def _lemma(name: str, said: str, proof: str) -> Iterator[str]:
    yield f"Lemma {name} : {said}."
    yield f"Proof. {proof} Qed."


def _number(value: Fraction) -> str:
    """Return a number as a term with the value written in the file."""
    term = f"(Whole {rational(Fraction(value.numerator))})"
    return term if value.denominator == 1 else f"(Over {term} (Whole {value.denominator}))"

"""An independent checker for clients that come and go in bursts: fractions, standard library only.

With `kernel.py` in the same folder, this file is a separate program:
``python correlated_checker.py FILE``. Client i of group c takes part in a round with probability
``stays = correlation + comes`` if it took part in the previous one, otherwise with probability
``comes = (1 - correlation) availability``, independently of the others. Alternatively, a chain
gives the probabilities with which one set of clients follows another. A round is

    x+ = x - server_lr client_lr sum_{i in S'} w_i D_i,     D_i the sum of i's K local gradients

with w_i the client's weight, or one over the number of those present. With ``z = x - x*``,
``g_i = grad F_i(x*)``, ``delta_i = grad F_i - g_i``, ``sum alpha_i g_i = 0`` and
``h = sum alpha_i ||g_i||^2``, a certificate holds a function of x and of S, the set of clients in
the previous round, which enters by their number in each group,

    W_S = V' form V + sum_c (present_c sum_{i in S, c} + all_c sum_{i in c}) alpha_i ||g_i||^2
          + constant sigma^2,   V = (z, u_1..u_C, U_1..U_{C-1}),  u_c, U_c the sums of alpha_i g_i

over S and all of c, and multipliers of interpolation conditions. The checker shows, for every
state,

    rate W_S - E[W_{S'}(x+) | S] - measured + heterogeneity h + noise sigma^2 >= 0,

``W_S >= -below h - noise_below sigma^2`` (or ``>= ||z||^2`` where nothing is measured), and a bound
on E W_S at the start, where S has the chain's stationary distribution. The sum over rounds gives
the claim.

Expectations are computed with tags: one or two clients are followed individually, and the others
are counted. Forms are sums over clients and pairs of clients. A *cell* consists of the present, or
of the absent, members of a group. If a form does not change when clients of a cell are exchanged,
it has no negative value if its block of means and its blocks of differences have none. The
modelling code instead works with draws of uniform subsets, means and variances.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.checker import kernel
else:
    import kernel

Fractions = kernel.Fractions
FractionRows = kernel.FractionRows
ProofError = kernel.ProofError
State = tuple[int, ...]
Cell = tuple[int, bool, int]
"""A group, whether present, and how many."""

KIND, VERSION = "correlated rounds for every client loss", 2
FIELDS = (
    "kind version claim round class bound below noise_below function multipliers noises orthogonal"
)
MOST_CHARACTERS = 8_000_000
MOST_STATES, MOST_STEPS, MOST_CLIENTS = 4096, 40, 100_000
COEFFICIENTS = "rate start start_heterogeneity start_noise heterogeneity noise"
_FIRST = "start ||x_0 - x*||^2 + start_heterogeneity h + start_noise sigma^2"
_EACH = "heterogeneity h + noise sigma^2"
_H = "h = sum alpha_i ||grad F_i(x*)||^2"
CLAIMS = {
    "distance": f"1/T sum_(t<T) E||x_t - x*||^2 <= ({_FIRST})/T + {_EACH} for every T, {_H}",
    "loss": f"E F((x_0 + .. + x_(T-1))/T) - F* <= ({_FIRST})/T + {_EACH} for every T, {_H}",
    "rate": (
        f"E||x_t - x*||^2 <= rate^t ({_FIRST}) + (1 - rate^t)/(1 - rate) ({_EACH}) for every t, "
        f"{_H}"
    ),
}


@dataclass(frozen=True)
class MarkovGroup:
    """A group of clients, with their number, availability, correlation, importance and weight."""

    n_clients: int
    availability: Fraction
    correlation: Fraction
    target_weight: Fraction
    weight: Fraction

    @property
    def comes(self) -> Fraction:
        """Probability that a client absent in one round is present in the next."""
        return (1 - self.correlation) * self.availability

    @property
    def stays(self) -> Fraction:
        """Probability that a client present in one round is present in the next."""
        return self.correlation + self.comes


@dataclass(frozen=True)
class Chain:
    """A Markov chain of sets of participants: sets, transitions and stationary distribution."""

    masks: Sequence[Sequence[bool]]
    transition: FractionRows
    law: Fractions


@dataclass(frozen=True)
class Value:
    """W in one state: its form and the coefficients for present clients, all clients and noise."""

    form: FractionRows
    present: Fractions
    all: Fractions
    constant: Fraction


@dataclass(frozen=True)
class CorrelatedRounds:
    """A claim as it was read, with the rounds and clients that it is about.

    Attributes
    ----------
    measure : str
        The quantity summed over rounds, "distance" or "loss", or "rate" if nothing is summed.
    groups : list of MarkovGroup
    chain : Chain or None
        The chain that determines who takes part, if clients are not independent. Each client is
        then a group.
    averaging : str
        "weights" or "present".
    local_steps : int
    client_lr, server_lr, L, mu : Fraction
    noisy : bool
    bound : mapping of str to Fraction
    below : Fraction
    """

    measure: str
    groups: Sequence[MarkovGroup]
    chain: Chain | None
    averaging: str
    local_steps: int
    client_lr: Fraction
    server_lr: Fraction
    L: Fraction
    mu: Fraction
    noisy: bool
    bound: Mapping[str, Fraction]
    below: Fraction

    @cached_property
    def states(self) -> list[State]:
        """All states: possible numbers of clients present per group, or the states of the chain."""
        if self.chain is not None:
            return [tuple(map(int, mask)) for mask in self.chain.masks]
        return [
            state
            for state in product(*(range(own.n_clients + 1) for own in self.groups))
            if all(
                own.availability < 1 or number == own.n_clients
                for own, number in zip(self.groups, state, strict=True)
            )
        ]

    def cells(self, state: State) -> list[Cell]:
        """Return (group, whether present, members) for each cell that has members."""
        found = []
        for c, (own, number) in enumerate(zip(self.groups, state, strict=True)):
            found += [(c, True, number)] if number else []
            found += [(c, False, own.n_clients - number)] if number < own.n_clients else []
        return found

    def reach(self, state: State) -> Fractions:
        """Return, for each group, the factor of a participant's gradients."""
        step = self.server_lr * self.client_lr
        if self.averaging == "present":
            return [step / max(sum(state), 1)] * len(state)
        return [step * own.weight for own in self.groups]


@dataclass(frozen=True)
class CorrelatedProof(CorrelatedRounds):
    """A certificate as it was read; nothing in it has been checked yet.

    Attributes
    ----------
    noise_below : Fraction
    function : list of Value
        One value per state, in the order of `states`.
    multipliers : list of lists of matrices
        One matrix per state and cell; entry (a, b) belongs to the condition of points a and b.
    noises, orthogonal : lists of lists of Fractions
        Multipliers per state and cell: of ``E||xi_k||^2 <= sigma^2``, and of the products of
        ``xi_k`` with earlier noise, then with fluctuations of gradients.
    """

    noise_below: Fraction
    function: Sequence[Value]
    multipliers: Sequence[Sequence[FractionRows]]
    noises: Sequence[FractionRows]
    orthogonal: Sequence[FractionRows]


# ---------------------------------------------------------------- reading an untrusted file


def parsed(text: str) -> CorrelatedProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        If a field, which the message names, is missing, invalid or out of range.
    """
    top = kernel.document_of(text, FIELDS, MOST_CHARACTERS, version=VERSION, kind=KIND)
    rounds = rounds_of(top)
    n, steps, noisy = len(rounds.groups), rounds.local_steps, rounds.noisy

    def value(place: str, found: Any) -> Value:
        one = kernel.fields_of(place, found, "form present all constant")
        return Value(
            kernel.symmetric_of(f"{place}.form", one["form"], 2 * n),
            kernel.numbers_of(f"{place}.present", one["present"], n),
            kernel.numbers_of(f"{place}.all", one["all"], n),
            kernel.fraction(f"{place}.constant", one["constant"]),
        )

    extra = steps * (steps - 1)
    proof = CorrelatedProof(
        **vars(rounds),
        noise_below=kernel.fraction("noise_below", top["noise_below"]),
        function=kernel.list_of("function", top["function"], value),
        multipliers=of_cells(
            "multipliers", top["multipliers"], lambda p, f: kernel.weights_of(p, f, steps + 1)
        ),
        noises=of_cells(
            "noises", top["noises"], lambda p, f: kernel.numbers_of(p, f, steps if noisy else 0)
        ),
        orthogonal=of_cells(
            "orthogonal",
            top["orthogonal"],
            lambda p, f: kernel.numbers_of(p, f, extra if noisy else 0),
        ),
    )
    _check_ranges(proof)
    return proof


def rounds_of(top: Mapping[str, Any], most_states: int = MOST_STATES) -> CorrelatedRounds:
    """Read a certificate's claim and the rounds and clients that it is about."""
    measures = [name for name, claim in CLAIMS.items() if top["claim"] == claim]
    if not measures:
        raise ProofError(f"claim: unknown, got {kernel.shown(top['claim'])}")
    played = kernel.fields_of(
        "round", top["round"], "averaging local_steps client_lr server_lr chain groups"
    )
    clients = kernel.fields_of("class", top["class"], "L mu noise")
    bound = kernel.fields_of("bound", top["bound"], COEFFICIENTS)
    groups = kernel.list_of("round.groups", played["groups"], _group)
    chain = None if played["chain"] is None else _chain(played["chain"], groups)
    if type(clients["noise"]) is not bool:
        raise ProofError(
            f"class.noise: must be true or false, got {kernel.shown(clients['noise'])}"
        )
    if played["averaging"] not in ("weights", "present"):
        raise ProofError("round.averaging: must be 'weights' or 'present'")
    steps = kernel.whole("round.local_steps", played["local_steps"])
    _check_size(groups, steps, most_states)
    found = CorrelatedRounds(
        measure=measures[0],
        groups=groups,
        chain=chain,
        averaging=played["averaging"],
        local_steps=steps,
        client_lr=kernel.fraction("round.client_lr", played["client_lr"]),
        server_lr=kernel.fraction("round.server_lr", played["server_lr"]),
        L=kernel.fraction("class.L", clients["L"]),
        mu=kernel.fraction("class.mu", clients["mu"]),
        noisy=clients["noise"],
        bound={
            name: kernel.fraction(f"bound.{name}", bound[name]) for name in COEFFICIENTS.split()
        },
        below=kernel.fraction("below", top["below"]),
    )
    rate, noise = found.bound["rate"], (found.bound["noise"], found.bound["start_noise"])
    kernel.in_range(
        {
            "round.client_lr": found.client_lr > 0,
            "round.server_lr": found.server_lr > 0,
            "class.L": found.L > 0,
            "class.mu": 0 < found.mu < found.L,
            "bound.rate": 0 <= rate < 1 if found.measure == "rate" else rate == 1,
            "below": found.measure != "rate" or found.below == 0,
            "bound.noise": found.noisy or not any(noise),
            "round.groups.weight": found.averaging == "weights"
            or all(own.weight == 1 for own in found.groups),
        }
    )
    return found


def _group(place: str, found: Any) -> MarkovGroup:
    names = "n_clients availability correlation target_weight weight"
    one = kernel.fields_of(place, found, names)
    numbers = {
        name: kernel.fraction(f"{place}.{name}", one[name])
        for name in names.split()
        if name[0] != "n"
    }
    group = MarkovGroup(kernel.whole(f"{place}.n_clients", one["n_clients"]), **numbers)
    kernel.in_range(
        {
            f"{place}.n_clients": 1 <= group.n_clients <= MOST_CLIENTS,
            f"{place}.availability": 0 < group.availability <= 1,
            f"{place}.correlation": 0 <= group.correlation < 1,
            f"{place}.target_weight": group.target_weight > 0,
        }
    )
    return group


def _chain(found: Any, groups: Sequence[MarkovGroup]) -> Chain:
    place = "round.chain"
    one = kernel.fields_of(place, found, "masks transition law")
    law = kernel.row(f"{place}.law", one["law"])
    size, masks = len(law), one["masks"]
    rows = kernel.rows_of(f"{place}.transition", one["transition"], size)
    drawn = isinstance(masks, list) and len(masks) == size
    kernel.in_range(
        {
            f"{place}.law": 1 <= size <= MOST_STATES and min(law) >= 0 and sum(law) == 1,
            f"{place}.masks": drawn
            and all(isinstance(mask, list) and len(mask) == len(groups) for mask in masks)
            and all(type(there) is bool for mask in masks for there in mask),
            f"{place}.transition": all(min(row) >= 0 and sum(row) == 1 for row in rows),
        }
    )
    after = [sum(p * row[j] for p, row in zip(law, rows, strict=True)) for j in range(size)]
    there = [
        sum(p for p, mask in zip(law, masks, strict=True) if mask[i]) for i in range(len(groups))
    ]
    kernel.in_range(
        {
            f"{place}.law (stationary)": after == law,
            "round.groups (each a client of the chain)": all(
                own.n_clients == 1 and own.correlation == 0 and own.availability == p
                for own, p in zip(groups, there, strict=True)
            ),
        }
    )
    return Chain(masks, rows, law)


def of_cells(place: str, found: Any, of: Any) -> list[list[Any]]:
    """Return the results of ``of`` for every state and cell."""
    return kernel.list_of(place, found, lambda p, f: kernel.list_of(p, f, of))


def _check_size(groups: Sequence[MarkovGroup], steps: int, most_states: int) -> None:
    if not 1 <= steps <= MOST_STEPS:
        raise ProofError("round.local_steps: out of range")
    if not groups or math.prod(own.n_clients + 1 for own in groups) > most_states:
        raise ProofError(f"round.groups: must make 1 to {most_states} states")
    if sum((own.n_clients * own.target_weight for own in groups), Fraction(0)) != 1:
        raise ProofError("round.groups: target weights of all clients must add up to 1")


def _check_ranges(proof: CorrelatedProof) -> None:
    ranges = {
        "noise_below": proof.measure != "rate" or proof.noise_below == 0,
        "function": len(proof.function) == len(proof.states),
    }
    for name in ("multipliers", "noises", "orthogonal"):
        cells = [len(own) for own in getattr(proof, name)]
        ranges[name] = cells == [len(proof.cells(state)) for state in proof.states]
    kernel.in_range(ranges)
    if any(w < 0 for cells in proof.noises for row in cells for w in row):
        raise ProofError("noises: must not be negative")


# ---------------------------------------------------------------- who comes next, by tags


def _counted(stay: int, come: int, stays: int, comes: int, whole: int) -> list[int]:
    """Return the distribution of the number present of ``stay + come``, times whole^(their sum)."""
    law = [1]
    for count, there in ((stay, stays), (come, comes)):
        for _ in range(count):
            law = [
                (law[k] if k < len(law) else 0) * (whole - there) + (law[k - 1] * there if k else 0)
                for k in range(len(law) + 1)
            ]
    return law


class Next:
    """The joint distribution, given a state, of the next state and of tagged clients' presence.

    Parameters
    ----------
    proof : CorrelatedProof
    place : int or None
        The index of a state, or None for the chain's stationary distribution.
    """

    def __init__(self, proof: CorrelatedRounds, place: int | None) -> None:
        self._proof = proof
        self._state = None if place is None else proof.states[place]
        self._cache: dict[tuple[int, ...], list[int]] = {}
        self._of_chain: list[int] | None = None
        if proof.chain is not None:
            law = proof.chain.law if place is None else proof.chain.transition[place]
            self._of_chain, self.denominator = whole_of(law)
            return
        self._wholes = [
            math.lcm(own.availability.denominator, own.correlation.denominator)
            * own.availability.denominator
            for own in proof.groups
        ]

    @cached_property
    def denominator(self) -> int:
        """The common denominator of `chances`."""
        return math.prod(
            whole**own.n_clients
            for whole, own in zip(self._wholes, self._proof.groups, strict=True)
        )

    def _of_group(self, c: int, present: int, absent: int) -> list[int]:
        """Return the probabilities of each number present in a group and all its tagged clients."""
        key = (c, present, absent)
        if key not in self._cache:
            own, whole = self._proof.groups[c], self._wholes[c]
            if self._state is None:
                stay, come, p, q = 0, own.n_clients, own.availability, own.availability
            else:
                stay, come = self._state[c], own.n_clients - self._state[c]
                p, q = own.stays, own.comes
            stays, comes = int(p * whole), int(q * whole)
            law = _counted(stay - present, come - absent, stays, comes, whole)
            factor = stays**present * comes**absent
            self._cache[key] = [0] * (present + absent) + [factor * value for value in law]
        return self._cache[key]

    def chances(self, tags: Sequence[tuple[int, bool]]) -> list[int]:
        """Return each next state's probability, all tagged clients present, times `denominator`."""
        if self._of_chain is not None:
            return [
                chance * all(state[c] for c, _ in tags)
                for chance, state in zip(self._of_chain, self._proof.states, strict=True)
            ]
        laws = [
            self._of_group(
                c,
                sum(tag == (c, True) for tag in tags),
                sum(tag == (c, False) for tag in tags),
            )
            for c in range(len(self._proof.groups))
        ]
        return [
            math.prod(law[number] for law, number in zip(laws, state, strict=True))
            for state in self._proof.states
        ]


# ---------------------------------------------------------------- sums over clients and pairs


class Sums:
    """Sums over clients and pairs of clients of a state's cells, as a form of the kernel.

    Client i has its own vectors ``v_i = (delta_0, .., delta_{K-1}, g)``.

    Parameters
    ----------
    proof : CorrelatedProof
    cells : sequence of (int, bool, int)
    """

    def __init__(self, proof: CorrelatedRounds, cells: Sequence[Cell]) -> None:
        self.cells = cells
        self.n_vectors = proof.local_steps + 1
        self._alpha = [proof.groups[c].target_weight for c, _, _ in cells]
        self._clients = kernel.Coordinates(
            1,
            [
                kernel.Group(name_of(cell), cell[2], self.n_vectors, self.n_vectors)
                for cell in cells
            ],
        )
        self.form = kernel.SymmetricForm(self._clients)
        self.z = self._clients.shared(0)

    def vector(self, k: int, index: int) -> kernel.Vector:
        """Return one of the vectors that each client of a cell has."""
        return self._clients.own(k, index)

    def mean(self, k: int, index: int) -> kernel.Vector:
        """Return the mean of one of these vectors over a cell."""
        return self._clients.mean(k, index)

    def add_square(self, factor: Fraction) -> None:
        """Add ``factor ||z||^2``."""
        self.form.add(factor, self.z, self.z)

    def add_h(self, factor: Fraction) -> None:
        """Add ``factor h``."""
        for k, alpha in enumerate(self._alpha):
            self.add_own_g(k, factor * alpha)

    def add_own_g(self, k: int, factor: Fraction) -> None:
        """Add ``factor sum_i ||g_i||^2`` over a cell."""
        g = self.vector(k, self.n_vectors - 1)
        self.form.add_each(factor * self.cells[k][2], k, g, g)

    def add_along(self, k: int, row: Fractions) -> None:
        """Add ``2 sum_i <z, row v_i>`` over a cell."""
        for index, value in enumerate(row):
            if value:
                self.form.add(2 * self.cells[k][2] * value, self.z, self.mean(k, index))

    def add_own(self, k: int, rows: FractionRows) -> None:
        """Add ``sum_i v_i' rows v_i`` over a cell."""
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                if value:
                    self.form.add_each(
                        self.cells[k][2] * value, k, self.vector(k, i), self.vector(k, j)
                    )

    def add_pairs(self, k: int, m: int, rows: FractionRows) -> None:
        """Add ``v_i' rows v_j`` over pairs of clients of two cells, in both orders."""
        one, other = self.cells[k][2], self.cells[m][2]
        count = one * (one - 1) if k == m else 2 * one * other
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                if value and count:
                    self.form.add_two(count * value, k, m, self.vector(k, i), self.vector(m, j))

    def check(self, place: str) -> None:
        """Check that the form is a sum of squares wherever ``sum alpha_i g_i = 0``."""
        self.form.check_values(place)
        kernel.check_blocks(place, self.blocks())

    def blocks(self) -> dict[str, FractionRows]:
        """Return the blocks that must be positive semidefinite, given ``sum alpha_i g_i = 0``.

        The first cell's mean of g is left out.
        """
        total = self._clients.nothing
        for k, (alpha, (_, _, members)) in enumerate(zip(self._alpha, self.cells, strict=True)):
            total = total + alpha * members * self.mean(k, self.n_vectors - 1)
        return self.form.blocks([total])


def name_of(cell: Cell) -> str:
    """Return a cell's name for messages."""
    return f"those {'present' if cell[1] else 'absent'} of group {cell[0]}"


# ---------------------------------------------------------------- W, now and after a round


class Checker:
    """A certificate's inequalities, derived from its numbers and checked.

    Parameters
    ----------
    proof : CorrelatedProof
    following : sequence of Value, optional
        W after the round, if it differs from W before.
    """

    def __init__(self, proof: CorrelatedProof, following: Sequence[Value] | None = None) -> None:
        self.proof = proof
        self._following = proof.function if following is None else following
        self.size = proof.local_steps + 1
        self.alpha = [own.target_weight for own in proof.groups]

    def law(self, place: int | None) -> Next:
        """Return who comes after a state; None for the stationary law."""
        return Next(self.proof, place)

    def _parts(self, moves: bool) -> list[Parts]:
        """Return the parts of W in every state, with x moved by a round or not."""
        return [
            Parts(self.proof, value, self.proof.reach(state) if moves else None)
            for state, value in zip(
                self.proof.states, self._following if moves else self.proof.function, strict=True
            )
        ]

    @cached_property
    def _after(self) -> Columns:
        return Columns(self._parts(True))

    @cached_property
    def _before(self) -> Columns:
        return Columns(self._parts(False))

    def add_expected(self, sums: Sums, factor: Fraction, law: Next, moves: bool) -> None:
        """Add a multiple of E W over the next state."""
        columns = self._after if moves else self._before

        def mean(tags: Sequence[tuple[int, bool]]) -> Mean:
            return Mean(law.chances(tags), law.denominator, factor)

        tags = [(c, present) for c, present, _ in sums.cells]
        nobody, singles = mean([]), [mean([tag]) for tag in tags]
        sums.add_square(nobody(columns["square"]))
        for k, (c, _) in enumerate(tags):
            along = zip(columns["along", c, 1], columns["along", c, 0], strict=True)
            sums.add_along(k, [singles[k](a) + nobody(b) for a, b in along])
            # As 1_i 1_i = 1_i, the product of a client with itself has the indicator 1_i in all
            # parts but the one that does not depend on its presence.
            sums.add_own(k, self._taken(columns, c, c, nobody, *[singles[k]] * 3))
            self._add_alone(sums, k, columns, singles[k], nobody)
            for m in range(k, len(tags)):
                if k == m and sums.cells[k][2] == 1:
                    continue
                d, both = tags[m][0], mean([tags[k], tags[m]])
                sums.add_pairs(
                    k, m, self._taken(columns, c, d, nobody, singles[k], singles[m], both)
                )

    def _add_alone(self, sums: Sums, k: int, columns: Columns, one: Mean, nobody: Mean) -> None:
        """Add the terms ``||g_i||^2`` of a cell's clients, averaged over the next state."""
        c = sums.cells[k][0]
        sums.add_own_g(k, one(columns["present", c]) + nobody(columns["all", c]))

    def _taken(
        self, columns: Columns, c: int, d: int, nobody: Mean, one: Mean, two: Mean, both: Mean
    ) -> FractionRows:
        parts = ((both, 1, 1), (one, 1, 0), (two, 0, 1), (nobody, 0, 0))
        return [
            [
                sum((mean(columns["pair", c, d, a, b, i, j]) for mean, a, b in parts), Fraction(0))
                for j in range(self.size)
            ]
            for i in range(self.size)
        ]

    def add_now(self, sums: Sums, factor: Fraction, place: int) -> None:
        """Add a multiple of W in a state, given its members."""
        parts = self._now(place)
        sums.add_square(factor * parts.square)
        for k, (c, present, _) in enumerate(sums.cells):
            asked = (1, 0) if present else (0,)
            for a in asked:
                sums.add_along(k, [factor * value for value in parts.along(c, a)])
            for m in range(k, len(sums.cells)):
                d, other = sums.cells[m][0], (1, 0) if sums.cells[m][1] else (0,)
                for a, b in product(asked, other):
                    taken = [[factor * value for value in row] for row in parts.pair(c, d, a, b)]
                    sums.add_pairs(k, m, taken)
                    if k == m:
                        sums.add_own(k, taken)
            self._add_alone_now(sums, k, factor, parts)

    def _now(self, place: int) -> Parts:
        return Parts(self.proof, self.proof.function[place], None)

    def _add_alone_now(self, sums: Sums, k: int, factor: Fraction, parts: Parts) -> None:
        c, present, _ = sums.cells[k]
        value = parts.value.all[c] + (parts.value.present[c] if present else 0)
        sums.add_own_g(k, factor * value * self.alpha[c])

    # ------------------------------------------------------------ the inequality of a round

    def check_round(self, place: int) -> None:
        """Check, using its multipliers, that the inequality of a round holds in a state."""
        self.round_slack(place).check(f"state {self.proof.states[place]}")

    def round_slack(self, place: int) -> Sums:
        """Return the form that must not be negative for a round's inequality to hold in a state."""
        proof, state = self.proof, self.proof.states[place]
        sums = Sums(proof, proof.cells(state))
        self.add_now(sums, proof.bound["rate"], place)
        self.add_expected(sums, Fraction(-1), self.law(place), moves=True)
        sums.add_h(proof.bound["heterogeneity"])
        if proof.measure == "distance":
            sums.add_square(Fraction(-1))
        K, L, eta = proof.local_steps, proof.L, proof.client_lr
        for k, (c, _, members) in enumerate(sums.cells):
            nothing = 0 * sums.z
            # Losses are divided by L, so that they are 1-smooth. Given are points, and gradients
            # minus g; x* comes last.
            points, gradients = [sums.z], [1 / L * sums.vector(k, j) for j in range(K)]
            for j in range(K - 1):
                step = sums.vector(k, j) + sums.vector(k, K)
                points.append(points[-1] - eta * step)
            weights = [[members * L * w for w in row] for row in proof.multipliers[place][k]]
            sums.form.add_conditions(
                k, weights, [*points, nothing], [*gradients, nothing], proof.mu / L
            )
            # F_i(x*) is subtracted, so the value there is zero.
            sums.form.values[k][K] = Fraction(0)
            if proof.measure == "loss":
                sums.form.add_value(-members * L * self.alpha[c], k, 0)
        return sums

    def check_end(self, place: int) -> None:
        """Check that W is bounded from below in a state."""
        state = self.proof.states[place]
        self.end_slack(place).check(f"state {state}, lower bound")
        if self.proof.function[place].constant + self.proof.noise_below < 0:
            raise ProofError(f"state {state}: noise_below is too small")

    def end_slack(self, place: int) -> Sums:
        """Return the form that must not be negative for W to be bounded from below in a state."""
        proof = self.proof
        sums = Sums(proof, proof.cells(proof.states[place]))
        self.add_now(sums, Fraction(1), place)
        sums.add_h(proof.below)
        if proof.measure == "rate":
            sums.add_square(Fraction(-1))
        return sums

    def check_start(self) -> None:
        """Check that the stationary mean of W is at most the claimed initial bound."""
        proof = self.proof
        self.start_slack().check("start")
        noise = self._mean_constant(Next(proof, None), proof.function) + proof.noise_below
        if noise > proof.bound["start_noise"]:
            raise ProofError(
                "bound.start_noise: the Lyapunov function is larger at the start than claimed"
            )

    def start_slack(self) -> Sums:
        """Return the form that must not be negative for the claimed initial bound on W."""
        proof = self.proof
        sums = Sums(proof, [(c, False, own.n_clients) for c, own in enumerate(proof.groups)])
        self.add_expected(sums, Fraction(-1), self.law(None), moves=False)
        sums.add_square(proof.bound["start"])
        sums.add_h(proof.bound["start_heterogeneity"] - proof.below)
        return sums

    # ------------------------------------------------------------ noise

    def _mean_constant(self, law: Next, function: Sequence[Value]) -> Fraction:
        constants = whole_of([value.constant for value in function])
        return Mean(law.chances([]), law.denominator)(constants)

    def check_noise(self, place: int) -> None:
        """Check that noise adds no more in a round than ``noise sigma^2``.

        The noise of a client changes only that client's later points and gradients h_k. It is
        independent of other clients' noise, and xi_k is independent of what came before:
        ``E<xi_k, xi_l> = E<xi_k, h_l'> = 0``, l < k, l' <= k.
        """
        proof, state = self.proof, self.proof.states[place]
        law, K, L = Next(proof, place), proof.local_steps, proof.L
        total = proof.bound["rate"] * proof.function[place].constant + proof.bound["noise"]
        total -= self._mean_constant(law, self._following)
        for k, (c, present, members) in enumerate(proof.cells(state)):
            clients = kernel.Coordinates(2 * K, [kernel.Group("a client", 1, 0, K + 1)])
            form, nothing = kernel.SymmetricForm(clients), clients.nothing
            xi = [clients.shared(K + j) for j in range(K)]
            # The first gradient is at x itself, which noise of this round has not moved.
            h = [nothing, *(clients.shared(j) for j in range(1, K))]
            points = [nothing]
            for j in range(K - 1):
                points.append(points[-1] - proof.client_lr * (h[j] + xi[j]))
            weights = [[L * w for w in row] for row in proof.multipliers[place][k]]
            gradients = [1 / L * one for one in h]
            form.add_conditions(0, weights, [*points, nothing], [*gradients, nothing], proof.mu / L)
            squares = whole_of(
                [
                    value.form[0][0] * proof.reach(other)[c] ** 2
                    for value, other in zip(self._following, proof.states, strict=True)
                ]
            )
            moved = nothing
            for one in (*h, *xi):
                moved = moved + one
            form.add(-Mean(law.chances([(c, present)]), law.denominator)(squares), moved, moved)
            for j, weight in enumerate(proof.noises[place][k]):
                form.add(weight, xi[j], xi[j])
                total -= members * weight
            pairs = [(xi[j], xi[i]) for j in range(K) for i in range(j)]
            pairs += [(xi[j], h[i + 1]) for j in range(K) for i in range(j)]
            for (one, other), weight in zip(pairs, proof.orthogonal[place][k], strict=True):
                form.add(2 * weight, one, other)
            # Function values are already means, and they cancelled in `check_round`.
            kernel.check_blocks(f"state {state}, noise", form.blocks())
        if total < 0:
            raise ProofError(f"state {state}: noise adds more than is claimed")

    # ------------------------------------------------------------ all of it

    def check(self) -> None:
        """Check every state, and the start.

        Raises
        ------
        ProofError
            If an inequality is not proved. The message names the first one.
        """
        for place in range(len(self.proof.states)):
            self.check_round(place)
            self.check_end(place)
            if self.proof.noisy:
                self.check_noise(place)
        self.check_start()


class Parts:
    """The coefficients of W in one state, after x has moved by ``-reach sum_{i in S} D_i``.

    Each vector of V is ``[first] z + sum_i (1{i in S} asked_c + certain_c) v_i``.
    """

    def __init__(self, proof: CorrelatedProof, value: Value, reach: Fractions | None) -> None:
        self.value, self._form = value, value.form
        n, K = len(proof.groups), proof.local_steps
        zero = [Fraction(0)] * (K + 1)
        self._vectors: list[tuple[list[Fractions], list[Fractions]]] = []
        for c, own in enumerate(proof.groups):
            g = [own.target_weight * value for value in _basis(K + 1, K)]
            asked, certain = [list(zero) for _ in range(2 * n)], [list(zero) for _ in range(2 * n)]
            if reach is not None:
                asked[0] = [-reach[c]] * K + [-reach[c] * K]
            asked[1 + c] = g
            if c < n - 1:
                certain[1 + n + c] = g
            self._vectors.append((certain, asked))

    @property
    def square(self) -> Fraction:
        """The coefficient of ||z||^2."""
        return self._form[0][0]

    def along(self, c: int, a: int) -> Fractions:
        """Return the coefficients of <z, v_i>, always (a = 0) or if i is in S (a = 1)."""
        rows = self._vectors[c][a]
        return [
            sum(
                (f * row[i] for f, row in zip(self._form[0], rows, strict=True) if f),
                Fraction(0),
            )
            for i in range(len(rows[0]))
        ]

    def pair(self, c: int, d: int, a: int, b: int) -> FractionRows:
        """Return the coefficients of products of v_i and v_j, for i of group c and j of d."""
        left, right = self._vectors[c][a], self._vectors[d][b]
        total = _zeros(len(left[0]))
        for p, row in enumerate(self._form):
            for q, value in enumerate(row):
                if not value:
                    continue
                for i, x in enumerate(left[p]):
                    if x:
                        for j, y in enumerate(right[q]):
                            if y:
                                total[i][j] += value * x * y
        return total


Whole = tuple[list[int], int]


def _zeros(size: int) -> FractionRows:
    return [[Fraction(0)] * size for _ in range(size)]


def _basis(size: int, index: int) -> Fractions:
    return [Fraction(int(place == index)) for place in range(size)]


def whole_of(values: Fractions) -> Whole:
    """Return the numbers as integers over one common denominator."""
    below = math.lcm(*(value.denominator for value in values))
    return [value.numerator * (below // value.denominator) for value in values], below


class Columns:
    """For each quantity, its numbers in all states, with one common denominator."""

    def __init__(self, parts: Sequence[Parts]) -> None:
        self._parts = parts
        self._found: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        if key not in self._found:
            self._fill(key)
        return self._found[key]

    def _fill(self, key: Any) -> None:
        parts = self._parts
        if key == "square":
            self._found[key] = whole_of([part.square for part in parts])
        elif key[0] in ("present", "all"):
            c = key[1]
            alpha = [part._vectors[c][1][1 + c][-1] for part in parts]
            values = [getattr(part.value, key[0])[c] for part in parts]
            self._found[key] = whole_of([a * v for a, v in zip(alpha, values, strict=True)])
        elif key[0] == "along":
            rows = [part.along(key[1], key[2]) for part in parts]
            self._found[key] = [whole_of(list(column)) for column in zip(*rows, strict=True)]
        else:
            _, c, d, a, b, *_ = key
            matrices = [part.pair(c, d, a, b) for part in parts]
            for i in range(len(matrices[0])):
                for j in range(len(matrices[0])):
                    self._found["pair", c, d, a, b, i, j] = whole_of(
                        [matrix[i][j] for matrix in matrices]
                    )


class Mean:
    """The mean of a function of the next state, counting only states with all tagged clients."""

    def __init__(
        self, chances: list[int], denominator: int, factor: Fraction = Fraction(1)
    ) -> None:
        self._chances, self._over = chances, factor / denominator

    def __call__(self, values: Whole) -> Fraction:
        """Return the mean of numbers, one per state."""
        numbers, below = values
        total = sum(p * v for p, v in zip(self._chances, numbers, strict=True) if v)
        return total * self._over / below


def checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    proof = parsed(text)
    Checker(proof).check()
    return kernel.with_numbers(CLAIMS[proof.measure], proof.bound)


if __name__ == "__main__":
    sys.exit(kernel.run(sys.argv[1:], "correlated_checker.py", checked))

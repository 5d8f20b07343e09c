"""An independent checker where clients come and go in bursts: fractions and the standard library.

With `checker_tools.py` beside it this file is a program of its own: ``python correlated_checker.py
FILE``. Client i of group c takes part in a round with probability ``stays = correlation + comes`` if it
did in the one before, else with ``comes = (1 - correlation) availability``, independently of the others.
A round is

    x+ = x - server_lr client_lr sum_{i in S'} w_i D_i,     D_i the sum of i's K local gradients

with w_i the client's weight, or one over the number of those present. With ``z = x - x*``, ``g_i = grad
F_i(x*)``, ``delta_i = grad F_i - g_i``, ``sum alpha_i g_i = 0`` and ``h = sum alpha_i ||g_i||^2``, a
certificate holds a function of x and of S, who took part in the round before, by how many of each group,

    W_S = V' form V + sum_c (present_c sum_{i in S, c} + all_c sum_{i in c}) alpha_i ||g_i||^2
          + constant sigma^2,   V = (z, u_1..u_C, U_1..U_{C-1}),  u_c, U_c the sums of alpha_i g_i

over S and all of c, and multipliers of interpolation conditions. Shown is, for every state,

    rate W_S - E[W_{S'}(x+) | S] - measured + heterogeneity h + noise sigma^2 >= 0,

``W_S >= -below h - noise_below sigma^2`` (or ``>= ||z||^2`` where nothing is measured), and a bound on E W_S
at the start, where S has the chain's stationary law. Summed over rounds this is the claim.

Expectations are taken by tags: one or two clients are followed, and the others are counted. Forms are sums
over clients and pairs of clients; one that does not change when clients of a *cell* (present, or absent,
members of a group) are exchanged has no negative value if its block of means and its blocks of
differences have none. The modelling works with draws of uniform subsets, means and variances instead.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.proof import checker_tools as tools
else:
    import checker_tools as tools

Fractions = tools.Fractions
FractionRows = tools.FractionRows
ProofError = tools.ProofError
State = tuple[int, ...]

KIND, VERSION = "correlated rounds for every client loss", 1
FIELDS = (
    "kind version claim round class bound below noise_below function multipliers noises orthogonal"
)
MOST_CHARACTERS = 8_000_000
MOST_STATES, MOST_STEPS, MOST_CLIENTS = 4096, 40, 100_000
COEFFICIENTS = "rate start start_heterogeneity start_noise heterogeneity noise"
_MEAN = (
    "(start ||x_0 - x*||^2 + start_heterogeneity h + start_noise sigma^2)/T + heterogeneity h + noise "
    "sigma^2 for every T, h = sum alpha_i ||grad F_i(x*)||^2"
)
CLAIMS = {
    "distance": f"1/T sum_(t<T) E||x_t - x*||^2 <= {_MEAN}",
    "loss": f"E F((x_0 + .. + x_(T-1))/T) - F* <= {_MEAN}",
    "rate": (
        "E||x_t - x*||^2 <= rate^t (start ||x_0 - x*||^2 + start_heterogeneity h + start_noise sigma^2) "
        "+ (1 - rate^t)/(1 - rate) (heterogeneity h + noise sigma^2) for every t, "
        "h = sum alpha_i ||grad F_i(x*)||^2"
    ),
}


@dataclass(frozen=True)
class Group:
    """Clients that are alike: how many, who is there when, importance and weight."""

    n_clients: int
    availability: Fraction
    correlation: Fraction
    target_weight: Fraction
    weight: Fraction

    @property
    def comes(self) -> Fraction:
        """Probability of one that was not there to be there next."""
        return (1 - self.correlation) * self.availability

    @property
    def stays(self) -> Fraction:
        """Probability of one that was there to be there next."""
        return self.correlation + self.comes


@dataclass(frozen=True)
class Value:
    """W in one state: its form, what the present and all of a group add, and of noise."""

    form: FractionRows
    present: Fractions
    all: Fractions
    constant: Fraction


@dataclass(frozen=True)
class CorrelatedProof:
    """A certificate as it was read: nothing of it is believed yet.

    Attributes
    ----------
    measure : str
        "distance" or "loss": what is summed over rounds; "rate": nothing.
    groups : list of Group
    averaging : str
        "weights" or "present".
    local_steps : int
    client_lr, server_lr, L, mu : Fraction
    noisy : bool
    bound : mapping of str to Fraction
    below, noise_below : Fraction
    function : list of Value
        One a state, in the order of `states`.
    multipliers : list of lists of matrices
        Of each state and cell; entry (a, b) belongs to the condition of points a and b.
    noises, orthogonal : lists of lists of Fractions
        Of each state and cell: of ``E||xi_k||^2 <= sigma^2``; of ``xi_k`` with earlier noise, then
        with fluctuations of gradients.
    """

    measure: str
    groups: Sequence[Group]
    averaging: str
    local_steps: int
    client_lr: Fraction
    server_lr: Fraction
    L: Fraction
    mu: Fraction
    noisy: bool
    bound: Mapping[str, Fraction]
    below: Fraction
    noise_below: Fraction
    function: Sequence[Value]
    multipliers: Sequence[Sequence[FractionRows]]
    noises: Sequence[FractionRows]
    orthogonal: Sequence[FractionRows]

    @cached_property
    def states(self) -> list[State]:
        """How many of each group can have been there."""
        return [
            state
            for state in product(*(range(own.n_clients + 1) for own in self.groups))
            if all(
                own.availability < 1 or number == own.n_clients
                for own, number in zip(self.groups, state, strict=True)
            )
        ]

    def cells(self, state: State) -> list[tuple[int, bool, int]]:
        """Return (group, whether present, members) of all cells that have members."""
        found = []
        for c, (own, number) in enumerate(zip(self.groups, state, strict=True)):
            found += [(c, True, number)] if number else []
            found += [(c, False, own.n_clients - number)] if number < own.n_clients else []
        return found

    def reach(self, state: State) -> Fractions:
        """Return what the gradients of a participant of each group are multiplied by."""
        step = self.server_lr * self.client_lr
        if self.averaging == "present":
            return [step / max(sum(state), 1)] * len(state)
        return [step * own.weight for own in self.groups]


# ---------------------------------------------------------------- reading what a stranger wrote


def parsed(text: str) -> CorrelatedProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        Naming the field that is missing, is not what it must be, or is out of range.
    """
    top = tools.document_of(text, FIELDS, MOST_CHARACTERS, kind=KIND, version=VERSION)
    measures = [name for name, claim in CLAIMS.items() if top["claim"] == claim]
    if not measures:
        raise ProofError(f"claim: is none that is known, got {tools.shown(top['claim'])}")
    played = tools.fields_of(
        "round", top["round"], "averaging local_steps client_lr server_lr groups"
    )
    clients = tools.fields_of("class", top["class"], "L mu noise")
    bound = tools.fields_of("bound", top["bound"], COEFFICIENTS)
    groups = tools.list_of("round.groups", played["groups"], _group)
    for place, found in (("class.noise", clients["noise"]),):
        if type(found) is not bool:
            raise ProofError(f"{place}: must be true or false, got {tools.shown(found)}")
    if played["averaging"] not in ("weights", "present"):
        raise ProofError("round.averaging: must be 'weights' or 'present'")
    steps = tools.whole("round.local_steps", played["local_steps"])
    _check_size(groups, steps)
    size = 2 * len(groups)

    def value(place: str, found: Any) -> Value:
        one = tools.fields_of(place, found, "form present all constant")
        return Value(
            _matrix(f"{place}.form", one["form"], size),
            _numbers(f"{place}.present", one["present"], len(groups)),
            _numbers(f"{place}.all", one["all"], len(groups)),
            tools.fraction(f"{place}.constant", one["constant"]),
        )

    noisy = clients["noise"]
    extra = steps * (steps - 1)
    proof = CorrelatedProof(
        measure=measures[0],
        groups=groups,
        averaging=played["averaging"],
        local_steps=steps,
        client_lr=tools.fraction("round.client_lr", played["client_lr"]),
        server_lr=tools.fraction("round.server_lr", played["server_lr"]),
        L=tools.fraction("class.L", clients["L"]),
        mu=tools.fraction("class.mu", clients["mu"]),
        noisy=noisy,
        bound={name: tools.fraction(f"bound.{name}", bound[name]) for name in COEFFICIENTS.split()},
        below=tools.fraction("below", top["below"]),
        noise_below=tools.fraction("noise_below", top["noise_below"]),
        function=tools.list_of("function", top["function"], value),
        multipliers=_of_cells(
            "multipliers", top["multipliers"], lambda p, f: _matrix(p, f, steps + 1)
        ),
        noises=_of_cells(
            "noises", top["noises"], lambda p, f: _numbers(p, f, steps if noisy else 0)
        ),
        orthogonal=_of_cells(
            "orthogonal", top["orthogonal"], lambda p, f: _numbers(p, f, extra if noisy else 0)
        ),
    )
    _check_ranges(proof)
    return proof


def _group(place: str, found: Any) -> Group:
    names = "n_clients availability correlation target_weight weight"
    one = tools.fields_of(place, found, names)
    numbers = {
        name: tools.fraction(f"{place}.{name}", one[name]) for name in names.split() if name[0] != "n"
    }
    group = Group(tools.whole(f"{place}.n_clients", one["n_clients"]), **numbers)
    ranges = {
        "n_clients": 1 <= group.n_clients <= MOST_CLIENTS,
        "availability": 0 < group.availability <= 1,
        "correlation": 0 <= group.correlation < 1,
        "target_weight": group.target_weight > 0,
    }
    for name, holds in ranges.items():
        if not holds:
            raise ProofError(f"{place}.{name}: out of range")
    return group


def _numbers(place: str, found: Any, size: int) -> Fractions:
    row: Fractions = tools.row(place, found)
    if len(row) != size:
        raise ProofError(f"{place}: must have {size} numbers")
    return row


def _matrix(place: str, found: Any, size: int) -> FractionRows:
    rows: FractionRows = tools.list_of(place, found, tools.row)
    if len(rows) != size or any(len(row) != size for row in rows):
        raise ProofError(f"{place}: must be {size} rows of {size} numbers")
    return rows


def _of_cells(place: str, found: Any, of: Any) -> list[list[Any]]:
    return tools.list_of(place, found, lambda p, f: tools.list_of(p, f, of))


def _check_size(groups: Sequence[Group], steps: int) -> None:
    if not 1 <= steps <= MOST_STEPS:
        raise ProofError("round.local_steps: out of range")
    if not groups or math.prod(own.n_clients + 1 for own in groups) > MOST_STATES:
        raise ProofError(f"round.groups: must make 1 to {MOST_STATES} states")
    if sum((own.n_clients * own.target_weight for own in groups), Fraction(0)) != 1:
        raise ProofError("round.groups: target weights of all clients must add up to 1")


def _check_ranges(proof: CorrelatedProof) -> None:
    bound = proof.bound
    ranges = {
        "round.client_lr": proof.client_lr > 0,
        "round.server_lr": proof.server_lr > 0,
        "class.L": proof.L > 0,
        "class.mu": 0 < proof.mu < proof.L,
        "bound.rate": 0 <= bound["rate"] < 1 if proof.measure == "rate" else bound["rate"] == 1,
        "below": proof.measure != "rate" or proof.below == 0,
        "noise_below": proof.measure != "rate" or proof.noise_below == 0,
        "bound.noise": proof.noisy or bound["noise"] == bound["start_noise"] == 0,
        "round.groups.weight": proof.averaging == "weights"
        or all(own.weight == 1 for own in proof.groups),
        "function": len(proof.function) == len(proof.states),
    }
    for name in ("multipliers", "noises", "orthogonal"):
        cells = [len(own) for own in getattr(proof, name)]
        ranges[name] = cells == [len(proof.cells(state)) for state in proof.states]
    for place, holds in ranges.items():
        if not holds:
            raise ProofError(f"{place}: out of range")
    for value in proof.function:
        if any(value.form[i][j] != value.form[j][i] for i in range(len(value.form)) for j in range(i)):
            raise ProofError("function.form: must be symmetric")
    weights = (w for cells in proof.multipliers for rows in cells for row in rows for w in row)
    noises = (w for cells in proof.noises for row in cells for w in row)
    if any(w < 0 for w in weights):
        raise ProofError("multipliers: must not be negative")
    if any(w < 0 for w in noises):
        raise ProofError("noises: must not be negative")


# ---------------------------------------------------------------- who comes next, by tags


def _counted(stay: int, come: int, stays: int, comes: int, whole: int) -> list[int]:
    """Return the law of how many of ``stay + come`` clients are there, times whole^(stay + come)."""
    law = [1]
    for count, there in ((stay, stays), (come, comes)):
        for _ in range(count):
            law = [
                (law[k] if k < len(law) else 0) * (whole - there) + (law[k - 1] * there if k else 0)
                for k in range(len(law) + 1)
            ]
    return law


class Next:
    """The law of the next state, from a state, together with tagged clients' presence.

    Parameters
    ----------
    proof : CorrelatedProof
    state : tuple of int, or None
        None for the chain's stationary law.
    """

    def __init__(self, proof: CorrelatedProof, state: State | None) -> None:
        self._proof, self._state = proof, state
        self._cache: dict[tuple[int, ...], list[int]] = {}
        self._wholes = [
            math.lcm(own.availability.denominator, own.correlation.denominator)
            * own.availability.denominator
            for own in proof.groups
        ]
        self.denominator = math.prod(
            whole**own.n_clients for whole, own in zip(self._wholes, proof.groups, strict=True)
        )

    def _of_group(self, c: int, present: int, absent: int) -> list[int]:
        """Return chances of each number there, so many tagged ones among them."""
        key = (c, present, absent)
        if key not in self._cache:
            own, whole = self._proof.groups[c], self._wholes[c]
            if self._state is None:
                stay, come, p, q = 0, own.n_clients, own.availability, own.availability
            else:
                stay, come = self._state[c], own.n_clients - self._state[c]
                p, q = own.stays, own.comes
            stays, comes = int(p * whole), int(q * whole)
            assert stays == p * whole and comes == q * whole
            law = _counted(stay - present, come - absent, stays, comes, whole)
            factor = stays**present * comes**absent
            self._cache[key] = [0] * (present + absent) + [factor * value for value in law]
        return self._cache[key]

    def chances(self, tags: Sequence[tuple[int, bool]]) -> list[int]:
        """Return, for every next state, its chance with all tagged in it, times `denominator`."""
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


@dataclass
class Sums:
    """A form: ``square ||z||^2 + 2 sum_i <z, along v_i> + sum_i v_i' own v_i + sum_{i != j} v_i' pair v_j``.

    With ``v_i = (delta_0, .., delta_{K-1}, g)`` of client i; along and own by cell, pair by two.
    """

    square: Fraction
    along: list[Fractions]
    own: list[FractionRows]
    pair: dict[tuple[int, int], FractionRows]

    @classmethod
    def nothing(cls, cells: int, size: int) -> Sums:
        """Return the form that is zero."""
        return cls(
            Fraction(0),
            [[Fraction(0)] * size for _ in range(cells)],
            [_zeros(size) for _ in range(cells)],
            {(k, m): _zeros(size) for k in range(cells) for m in range(k, cells)},
        )

    def add(self, factor: Fraction, other: Sums) -> None:
        """Add a multiple of another."""
        self.square += factor * other.square
        for mine, row in zip(self.along, other.along, strict=True):
            for j, value in enumerate(row):
                mine[j] += factor * value
        for one, more in zip(self.own, other.own, strict=True):
            _add(one, factor, more)
        for key, more in other.pair.items():
            _add(self.pair[key], factor, more)

    def blocks(
        self, cells: Sequence[tuple[int, bool, int]], alpha: Fractions
    ) -> Iterator[FractionRows]:
        """Yield the matrices that must have no negative eigenvalue."""
        size = len(self.along[0])
        members = [count for _, _, count in cells]
        full = [[self.square] + [m * a for m, row in zip(members, self.along, strict=True) for a in row]]
        for k, m in enumerate(members):
            for i in range(size):
                line = [m * self.along[k][i]]
                for other, n in enumerate(members):
                    for j in range(size):
                        if k == other:
                            line.append(m * self.own[k][i][j] + m * (m - 1) * self.pair[k, k][i][j])
                        elif k < other:
                            line.append(m * n * self.pair[k, other][i][j])
                        else:
                            line.append(m * n * self.pair[other, k][j][i])
                full.append(line)
        yield _reduced(full, [alpha[c] * m for c, _, m in cells], size)
        for k, m in enumerate(members):
            if m > 1:
                own, pair = self.own[k], self.pair[k, k]
                yield [[own[i][j] - pair[i][j] for j in range(size)] for i in range(size)]


def _zeros(size: int) -> FractionRows:
    return [[Fraction(0)] * size for _ in range(size)]


def _add(rows: FractionRows, factor: Fraction, more: FractionRows) -> None:
    for row, values in zip(rows, more, strict=True):
        for j, value in enumerate(values):
            row[j] += factor * value


def _reduced(full: FractionRows, weights: Fractions, size: int) -> FractionRows:
    """Return a form of means on the space where ``sum weights mean g = 0``."""
    places = [1 + k * size + size - 1 for k in range(len(weights))]
    kept = [i for i in range(len(full)) if i != places[-1]]
    ratio = {
        place: -w / weights[-1] for place, w in zip(places[:-1], weights[:-1], strict=True)
    }
    last = places[-1]

    def of(i: int) -> list[tuple[int, Fraction]]:
        return [(i, Fraction(1)), *([(last, ratio[i])] if i in ratio else [])]

    return [
        [sum((a * b * full[p][q] for p, a in of(i) for q, b in of(j)), Fraction(0)) for j in kept]
        for i in kept
    ]


# ---------------------------------------------------------------- W, now and after a round


class Checker:
    """What a certificate's inequalities are, worked out from its numbers.

    Parameters
    ----------
    proof : CorrelatedProof
    """

    def __init__(self, proof: CorrelatedProof) -> None:
        self.proof = proof
        self.size = proof.local_steps + 1
        self.alpha = [own.target_weight for own in proof.groups]

    def _parts(self, moves: bool) -> list[_Parts]:
        """Return what W is made of in every state, x moved by a round before or not."""
        return [
            _Parts(self.proof, value, self.proof.reach(state) if moves else None)
            for state, value in zip(self.proof.states, self.proof.function, strict=True)
        ]

    @cached_property
    def _after(self) -> _Columns:
        return _Columns(self._parts(True))

    @cached_property
    def _before(self) -> _Columns:
        return _Columns(self._parts(False))

    def expected(self, cells: Sequence[tuple[int, bool, int]], law: Next, moves: bool) -> Sums:
        """Return E W over the next state."""
        columns = self._after if moves else self._before
        found = Sums.nothing(len(cells), self.size)

        def mean(tags: Sequence[tuple[int, bool]]) -> _Mean:
            return _Mean(law.chances(tags), law.denominator)

        tags = [(c, present) for c, present, _ in cells]
        nobody, singles = mean([]), [mean([tag]) for tag in tags]
        found.square = nobody(columns["square"])
        for k, (c, _) in enumerate(tags):
            found.along[k] = [
                singles[k](a) + nobody(b)
                for a, b in zip(columns["along", c, 1], columns["along", c, 0], strict=True)
            ]
            # 1_i 1_i = 1_i: of the client itself, all but what does not ask whether it is there.
            _add(found.own[k], Fraction(1), self._taken(columns, c, c, nobody, *[singles[k]] * 3))
            g = self.size - 1
            found.own[k][g][g] += singles[k](columns["present", c])
            found.own[k][g][g] += nobody(columns["all", c])
            for m in range(k, len(tags)):
                if k == m and cells[k][2] == 1:
                    continue
                d, both = tags[m][0], mean([tags[k], tags[m]])
                taken = self._taken(columns, c, d, nobody, singles[k], singles[m], both)
                _add(found.pair[k, m], Fraction(1), taken)
        return found

    def _taken(
        self, columns: _Columns, c: int, d: int, nobody: _Mean, one: _Mean, two: _Mean, both: _Mean
    ) -> FractionRows:
        parts = ((both, 1, 1), (one, 1, 0), (two, 0, 1), (nobody, 0, 0))
        return [
            [
                sum((mean(columns["pair", c, d, a, b, i, j]) for mean, a, b in parts), Fraction(0))
                for j in range(self.size)
            ]
            for i in range(self.size)
        ]

    def now(self, place: int) -> Sums:
        """Return W in a state, whose members are known."""
        proof, cells = self.proof, self.proof.cells(self.proof.states[place])
        parts = _Parts(proof, proof.function[place], None)
        found = Sums.nothing(len(cells), self.size)
        found.square = parts.square
        g = self.size - 1
        for k, (c, present, _) in enumerate(cells):
            asked = (1, 0) if present else (0,)
            found.along[k] = [
                sum((parts.along(c, a)[i] for a in asked), Fraction(0)) for i in range(self.size)
            ]
            for m in range(k, len(cells)):
                d, other = cells[m][0], (1, 0) if cells[m][1] else (0,)
                taken = _zeros(self.size)
                for a, b in product(asked, other):
                    _add(taken, Fraction(1), parts.pair(c, d, a, b))
                found.pair[k, m] = taken
                if k == m:
                    found.own[k] = [list(row) for row in taken]
            found.own[k][g][g] += parts.value.all[c] * self.alpha[c]
            found.own[k][g][g] += parts.value.present[c] * self.alpha[c] if present else 0
        return found

    def add_h(self, form: Sums, factor: Fraction, cells: Sequence[tuple[int, bool, int]]) -> None:
        """Add ``factor h``."""
        g = self.size - 1
        for own, (c, _, _) in zip(form.own, cells, strict=True):
            own[g][g] += factor * self.alpha[c]

    # ------------------------------------------------------------ the inequality of a round

    def round_form(self, place: int) -> Sums:
        """Return what must not be negative in a round, conditions with their multipliers in it."""
        proof, cells = self.proof, self.proof.cells(self.proof.states[place])
        form = Sums.nothing(len(cells), self.size)
        form.add(proof.bound["rate"], self.now(place))
        law = Next(proof, proof.states[place])
        form.add(Fraction(-1), self.expected(cells, law, moves=True))
        if proof.measure == "distance":
            form.square -= 1
        self.add_h(form, proof.bound["heterogeneity"], cells)
        for k, (c, _, members) in enumerate(cells):
            weights = proof.multipliers[place][k]
            self._check_values(weights, self.alpha[c], place, k)
            z_z, z_v, v_v = self._conditions(weights)
            form.square += members * z_z
            form.along[k] = [a + b for a, b in zip(form.along[k], z_v, strict=True)]
            _add(form.own[k], Fraction(1), v_v)
        return form

    def _check_values(self, weights: FractionRows, alpha: Fraction, state: int, cell: int) -> None:
        """Function values cancel, or add up to what is measured."""
        K = self.proof.local_steps
        for point in range(K):
            flow = sum((row[point] for row in weights), Fraction(0)) - sum(weights[point])
            wanted = alpha if self.proof.measure == "loss" and point == 0 else Fraction(0)
            if flow != wanted:
                raise ProofError(
                    f"multipliers[{state}][{cell}]: the function values of point {point} do not cancel"
                )

    @cached_property
    def _points(self) -> tuple[FractionRows, FractionRows]:
        """Return a client's points and gradients less g, in (z, delta_0.., g); x* comes last."""
        K, eta = self.proof.local_steps, self.proof.client_lr
        points, gradients = [], []
        for k in range(K):
            steps = [-eta if j < k else Fraction(0) for j in range(K)]
            points.append([Fraction(1), *steps, -eta * k])
            gradients.append(tools.basis(K + 2, 1 + k))
        return [*points, [Fraction(0)] * (K + 2)], [*gradients, [Fraction(0)] * (K + 2)]

    def _conditions(self, weights: FractionRows) -> tuple[Fraction, Fractions, FractionRows]:
        """Return the sum of weighted conditions of a client: of z, of z with it, of itself."""
        total = self._weighed(weights, *self._points)
        return total[0][0], total[0][1:], [row[1:] for row in total[1:]]

    def _weighed(
        self, weights: FractionRows, points: FractionRows, gradients: FractionRows
    ) -> FractionRows:
        """Return ``sum weight (<g_b, x_a - x_b> + 1/(2(1 - mu/L)) (...))`` as a matrix."""
        L, mu, size = self.proof.L, self.proof.mu, len(points[0])
        total = [[Fraction(0)] * size for _ in range(size)]
        factor = 1 / (2 * (1 - mu / L))
        for a, b in product(range(len(points)), repeat=2):
            weight = weights[a][b]
            if a == b or not weight:
                continue
            apart = [p - q for p, q in zip(points[a], points[b], strict=True)]
            steeper = [p - q for p, q in zip(gradients[a], gradients[b], strict=True)]
            moved = gradients[b]
            for i in range(size):
                for j in range(size):
                    crossed = (steeper[i] * apart[j] + steeper[j] * apart[i]) / 2
                    squares = steeper[i] * steeper[j] / L + mu * apart[i] * apart[j]
                    total[i][j] += weight * (
                        (moved[i] * apart[j] + moved[j] * apart[i]) / 2
                        + factor * (squares - 2 * mu / L * crossed)
                    )
        return total

    # ------------------------------------------------------------ noise

    def check_noise(self, place: int) -> None:
        """Noise adds no more in a round than ``noise sigma^2``."""
        proof, state = self.proof, self.proof.states[place]
        cells, law, K = proof.cells(state), Next(proof, state), proof.local_steps
        total = proof.bound["rate"] * proof.function[place].constant + proof.bound["noise"]
        total -= _Mean(law.chances([]), law.denominator)(
            _whole([value.constant for value in proof.function])
        )
        size = 2 * K - 1
        # h_1 .. h_{K-1}, then xi_0 .. xi_{K-1}; the point x* does not fluctuate.
        xi = [tools.basis(size, K - 1 + k) for k in range(K)]
        h = [[Fraction(0)] * size, *(tools.basis(size, k) for k in range(K - 1))]
        points = [[Fraction(0)] * size]
        for k in range(1, K):
            moved = [-proof.client_lr * (a + b) for a, b in zip(h[k - 1], xi[k - 1], strict=True)]
            points.append([a + b for a, b in zip(points[-1], moved, strict=True)])
        gradients = [*h, [Fraction(0)] * size]
        points.append([Fraction(0)] * size)
        for k, (c, present, members) in enumerate(cells):
            squares = _whole(
                [
                    value.form[0][0] * proof.reach(other)[c] ** 2
                    for value, other in zip(proof.function, proof.states, strict=True)
                ]
            )
            factor = _Mean(law.chances([(c, present)]), law.denominator)(squares)
            block = self._weighed(proof.multipliers[place][k], points, gradients)
            for i in range(size):
                for j in range(size):
                    block[i][j] -= factor
            for step, weight in enumerate(proof.noises[place][k]):
                block[K - 1 + step][K - 1 + step] += weight
                total -= members * weight
            pairs = [(K - 1 + step, K - 1 + j) for step in range(K) for j in range(step)]
            pairs += [(K - 1 + step, j) for step in range(K) for j in range(step)]
            for (i, j), weight in zip(pairs, proof.orthogonal[place][k], strict=True):
                block[i][j] += weight
                block[j][i] += weight
            if not tools.is_positive_semidefinite(block):
                raise ProofError(f"state {state}: noise of a client adds more than is claimed")
        if total < 0:
            raise ProofError(f"state {state}: noise adds more than is claimed")
        least = proof.function[place].constant + proof.noise_below
        if least < 0:
            raise ProofError(f"state {state}: noise_below is too small")

    # ------------------------------------------------------------ all of it

    def check(self) -> None:
        """Check every state, and the start.

        Raises
        ------
        ProofError
            With the first inequality that is not shown.
        """
        proof = self.proof
        for place, state in enumerate(proof.states):
            cells = proof.cells(state)
            for block in self.round_form(place).blocks(cells, self.alpha):
                if not tools.is_positive_semidefinite(block):
                    raise ProofError(f"state {state}: the inequality of a round is not shown")
            end = self.now(place)
            self.add_h(end, proof.below, cells)
            if proof.measure == "rate":
                end.square -= 1
            for block in end.blocks(cells, self.alpha):
                if not tools.is_positive_semidefinite(block):
                    raise ProofError(f"state {state}: the function is not bounded from below")
            if proof.noisy:
                self.check_noise(place)
        self._check_start()

    def _check_start(self) -> None:
        proof = self.proof
        cells = [(c, False, own.n_clients) for c, own in enumerate(proof.groups)]
        form = Sums.nothing(len(cells), self.size)
        law = Next(proof, None)
        form.add(Fraction(-1), self.expected(cells, law, moves=False))
        form.square += proof.bound["start"]
        self.add_h(form, proof.bound["start_heterogeneity"] - proof.below, cells)
        for block in form.blocks(cells, self.alpha):
            if not tools.is_positive_semidefinite(block):
                raise ProofError("bound.start: the function is larger at first")
        constants = _whole([value.constant for value in proof.function])
        noise = _Mean(law.chances([]), law.denominator)(constants) + proof.noise_below
        if noise > proof.bound["start_noise"]:
            raise ProofError("bound.start_noise: the function is larger at first")


class _Parts:
    """What W of one state is made of, after x has been moved by ``-reach sum_{i in S} D_i``.

    Each vector of V is ``[first] z + sum_i (1{i in S} asked_c + certain_c) v_i``.
    """

    def __init__(self, proof: CorrelatedProof, value: Value, reach: Fractions | None) -> None:
        self.value = value
        n, K = len(proof.groups), proof.local_steps
        zero = [Fraction(0)] * (K + 1)
        self._vectors: list[tuple[list[Fractions], list[Fractions]]] = []
        for c, own in enumerate(proof.groups):
            g = tools.scaled(own.target_weight, tools.basis(K + 1, K))
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
        return self.value.form[0][0]

    def along(self, c: int, a: int) -> Fractions:
        """Return what multiplies <z, v_i>, certainly (a = 0) or if i is in S (a = 1)."""
        rows = self._vectors[c][a]
        return [
            sum((f * row[i] for f, row in zip(self.value.form[0], rows, strict=True) if f), Fraction(0))
            for i in range(len(rows[0]))
        ]

    def pair(self, c: int, d: int, a: int, b: int) -> FractionRows:
        """Return what multiplies v_i and v_j, of groups c and d."""
        left, right = self._vectors[c][a], self._vectors[d][b]
        total = _zeros(len(left[0]))
        for p, row in enumerate(self.value.form):
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


def _whole(values: Fractions) -> Whole:
    """Return numbers as whole ones over one denominator."""
    below = math.lcm(*(value.denominator for value in values))
    return [value.numerator * (below // value.denominator) for value in values], below


class _Columns:
    """Numbers of all states side by side, over one denominator each."""

    def __init__(self, parts: Sequence[_Parts]) -> None:
        self._parts = parts
        self._found: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        if key not in self._found:
            self._fill(key)
        return self._found[key]

    def _fill(self, key: Any) -> None:
        parts = self._parts
        if key == "square":
            self._found[key] = _whole([part.square for part in parts])
        elif key[0] in ("present", "all"):
            c = key[1]
            alpha = [part._vectors[c][1][1 + c][-1] for part in parts]
            values = [getattr(part.value, key[0])[c] for part in parts]
            self._found[key] = _whole([a * v for a, v in zip(alpha, values, strict=True)])
        elif key[0] == "along":
            rows = [part.along(key[1], key[2]) for part in parts]
            self._found[key] = [_whole(list(column)) for column in zip(*rows, strict=True)]
        else:
            _, c, d, a, b, *_ = key
            matrices = [part.pair(c, d, a, b) for part in parts]
            for i in range(len(matrices[0])):
                for j in range(len(matrices[0])):
                    self._found["pair", c, d, a, b, i, j] = _whole(
                        [matrix[i][j] for matrix in matrices]
                    )


class _Mean:
    """The mean of a number of the next state, tagged clients being there."""

    def __init__(self, chances: list[int], denominator: int) -> None:
        self._chances, self._denominator = chances, denominator

    def __call__(self, values: Whole) -> Fraction:
        numbers, below = values
        total = sum(p * v for p, v in zip(self._chances, numbers, strict=True) if v)
        return Fraction(total, below * self._denominator)


def check_correlated(proof: CorrelatedProof) -> None:
    """Accept a certificate that proves its claim, and nothing else.

    Raises
    ------
    ProofError
        With the first thing that fails.
    """
    Checker(proof).check()


def _check(text: str) -> str:
    proof = parsed(text)
    check_correlated(proof)
    numbers = ", ".join(f"{name} = {float(value):.6g}" for name, value in proof.bound.items())
    return f"{CLAIMS[proof.measure]}; {numbers}"


if __name__ == "__main__":
    sys.exit(tools.run(sys.argv[1:], "correlated_checker.py", _check))

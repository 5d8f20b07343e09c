"""An independent checker of one-round proofs: fractions and the standard library only.

With `checker_tools.py` beside it this file is a program of its own: ``python proof_checker.py
FILE``. A certificate holds a round, a class of clients, the bound that
is claimed for all of them, and multipliers, all as fractions. The slack is derived here a second
time, from the round as it is played and not from the modelling's formulas:

- the round is run on lists of coefficients, a step after another;
- interpolation conditions are summed as the Laplacian of the graph that multipliers weigh;
- participants enter through the probabilities that one and that two clients are drawn.

Then ``rate ||x||^2 + ... - E||x+||^2`` is a weighted sum of what is not negative for any client of
the class, plus squares, if every block below has no negative eigenvalue: decided by elimination
in whole numbers. So is ``F(x) - decrease ||grad F(x)||^2 + ... - E F(x+)``, with F(x+) bounded by
the descent lemma: F is as smooth as its clients are. Over an interval of step sizes the blocks
are cubic polynomials at most; if their Bernstein coefficients are positive semidefinite, so are
they in between.

Notation: lengths in units with L = 1, e = L client_lr, all blocks divided by e.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.proof import checker_tools as tools
else:
    import checker_tools as tools

Fractions = tools.Fractions
FractionRows = tools.FractionRows
ProofError = tools.ProofError

KIND, VERSION = "proof for every client loss", 1
FIELDS = "kind version claim round class bound boxes"
MOST_CHARACTERS = 10_000_000  # of a file
MOST_STEPS = 60  # local steps
MOST_BOXES = 1_000
MOST_COEFFICIENTS = 5  # of a claim, as a polynomial in client_lr
NODES = (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1))
BERNSTEIN = tuple(
    tuple(Fraction(value, 6) for value in row)
    for row in ((6, 0, 0, 0), (-5, 18, -9, 2), (2, -9, 18, -5), (0, 0, 0, 6))
)
"""Bernstein coefficients of a cubic on [0, 1] from its values at the nodes."""
CLAIM = (
    "E||x+ - x*||^2 <= rate ||x - x*||^2 + heterogeneity dissimilarity^2 + noise sigma^2 + "
    "server_noise server_sigma^2"
)
DESCENT_CLAIM = (
    "E F(x+) <= F(x) - decrease ||grad F(x)||^2 + heterogeneity dissimilarity^2 + noise sigma^2 + "
    "server_noise server_sigma^2"
)
RESIDUAL = ("heterogeneity", "noise", "server_noise")

Polynomial = list[Fraction]


# ---------------------------------------------------------------- reading what a stranger wrote


@dataclass(frozen=True)
class Proof:
    """A certificate as it was read: nothing of it is believed yet.

    Attributes
    ----------
    claim : str
        `CLAIM` or `DESCENT_CLAIM`.
    participants, local_steps : int
    n_clients : int or None
        None for every number of clients.
    excluded_share, q, server_lr, assist_ratio : Fraction
        ``assist_ratio`` is the server's step over the clients'.
    L, mu : Fraction
        ``-L <= mu < L`` for a descent, where losses need not be convex.
    heterogeneity : str
    noisy : bool
        Whether gradients of clients have noise.
    bound : mapping of str to list of Fraction
        Coefficients of the claim, polynomials in client_lr.
    boxes : list of Box
    """

    claim: str
    participants: int
    local_steps: int
    n_clients: int | None
    excluded_share: Fraction
    q: Fraction
    server_lr: Fraction
    assist_ratio: Fraction
    L: Fraction
    mu: Fraction
    heterogeneity: str
    noisy: bool
    bound: Mapping[str, Polynomial]
    boxes: list[Box]

    @property
    def of_descent(self) -> bool:
        """Whether the claim is on F, and not on the distance to x*."""
        return self.claim == DESCENT_CLAIM

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the claim's coefficients."""
        return ("decrease" if self.of_descent else "rate", *RESIDUAL)

    @property
    def n_points(self) -> dict[str, int]:
        """How many points of each group's clients are compared, x* among them but for descent."""
        at_optimum = 0 if self.of_descent else 1
        steps = {"eligible": self.local_steps} | ({"excluded": 1} if self.excluded_share else {})
        return {group: count + at_optimum for group, count in steps.items()}

    @property
    def client_lr(self) -> tuple[Fraction, Fraction]:
        """The step sizes that are covered, first and last."""
        return self.boxes[0].client_lr[0], self.boxes[-1].client_lr[1]

    @property
    def n_eligible(self) -> Fraction | None:
        """How many clients can be drawn."""
        return None if self.n_clients is None else self.n_clients * (1 - self.excluded_share)

    @property
    def n_excluded(self) -> Fraction | None:
        """How many clients never take part."""
        return None if self.n_clients is None else self.n_clients * self.excluded_share

    def covers(self, n_clients: int) -> bool:
        """Whether the proof holds for a number of clients, at the same share of excluded ones.

        Fewer clients than the certificate speaks of make the participants' mean less random, and
        all else depends on the share alone.
        """
        excluded = n_clients * self.excluded_share
        if excluded.denominator != 1 or n_clients - excluded < self.participants:
            return False
        return self.n_clients is None or n_clients <= self.n_clients


@dataclass(frozen=True)
class Box:
    """Multipliers for step sizes from one to another, over e.

    Attributes
    ----------
    client_lr : pair of Fraction
    pairs : mapping of str to matrix
        Of each group with two points at least: entry (a, b) belongs to the condition of points a
        and b; x* is last.
    budgets, noises : list of Fraction
        The parts of the claimed coefficients that each budget gets; at most one in all.
    orthogonal : list of Fraction
        Of products that are zero.
    """

    client_lr: tuple[Fraction, Fraction]
    pairs: Mapping[str, FractionRows]
    budgets: Fractions
    noises: Fractions
    orthogonal: Fractions


def parsed(text: str) -> Proof:
    """Read a certificate.

    Raises
    ------
    ProofError
        Naming the field that is missing, is not what it must be, or is out of range.
    """
    top = tools.document_of(text, FIELDS, MOST_CHARACTERS, kind=KIND, version=VERSION)
    if top["claim"] not in (CLAIM, DESCENT_CLAIM):
        raise ProofError(f"claim: must be {CLAIM!r} or {DESCENT_CLAIM!r}")
    return _in_range(_proof(top))


def _proof(top: Mapping[str, Any]) -> Proof:
    played = tools.fields_of(
        "round",
        top["round"],
        "participants local_steps n_clients excluded_share q server_lr assist_lr_over_client_lr",
    )
    clients = tools.fields_of("class", top["class"], "L mu heterogeneity noise")
    speed = "rate" if top["claim"] == CLAIM else "decrease"
    names = (speed, *RESIDUAL)
    bound = tools.fields_of("bound", top["bound"], " ".join(names))
    every = played["n_clients"] == "every"
    return Proof(
        claim=top["claim"],
        participants=tools.whole("round.participants", played["participants"]),
        local_steps=tools.whole("round.local_steps", played["local_steps"]),
        n_clients=None if every else tools.whole("round.n_clients", played["n_clients"]),
        excluded_share=tools.fraction("round.excluded_share", played["excluded_share"]),
        q=tools.fraction("round.q", played["q"]),
        server_lr=tools.fraction("round.server_lr", played["server_lr"]),
        assist_ratio=tools.fraction(
            "round.assist_lr_over_client_lr", played["assist_lr_over_client_lr"]
        ),
        L=tools.fraction("class.L", clients["L"]),
        mu=tools.fraction("class.mu", clients["mu"]),
        heterogeneity=clients["heterogeneity"],
        noisy=clients["noise"],
        bound={name: tools.list_of(f"bound.{name}", bound[name], tools.fraction) for name in names},
        boxes=tools.list_of("boxes", top["boxes"], _box),
    )


def _box(place: str, found: Any) -> Box:
    fields = tools.fields_of(place, found, "client_lr pairs budgets noises orthogonal")
    ends = tools.list_of(f"{place}.client_lr", fields["client_lr"], tools.fraction)
    if len(ends) != 2:
        raise ProofError(f"{place}.client_lr: must be two numbers, got {len(ends)}")
    if not isinstance(fields["pairs"], dict):
        raise ProofError(f"{place}.pairs: must be an object with fields")
    return Box(
        (ends[0], ends[1]),
        {
            group: tools.list_of(f"{place}.pairs.{group}", rows, tools.row)
            for group, rows in fields["pairs"].items()
        },
        *(
            tools.list_of(f"{place}.{name}", fields[name], tools.fraction)
            for name in ("budgets", "noises", "orthogonal")
        ),
    )


def _in_range(proof: Proof) -> Proof:
    share = proof.excluded_share
    pool = proof.n_eligible
    ranges = {
        "round.local_steps": 1 <= proof.local_steps <= MOST_STEPS,
        "round.excluded_share": 0 <= share < 1,
        "round.participants": proof.participants >= 1
        and (pool is None or pool >= proof.participants),
        "round.n_clients": pool is None or pool.denominator == 1,
        "round.q": 0 <= proof.q <= 1,
        "round.server_lr": proof.server_lr > 0,
        "round.assist_lr_over_client_lr": proof.assist_ratio >= 0,
        "class.L": proof.L > 0,
        "class.mu": (-proof.L if proof.of_descent else 0) <= proof.mu < proof.L,
        "class.heterogeneity": proof.heterogeneity == "everywhere"
        or (proof.heterogeneity == "optimum" and not proof.of_descent),
        "class.noise": isinstance(proof.noisy, bool),
        "boxes": 1 <= len(proof.boxes) <= MOST_BOXES,
    }
    for place, holds in ranges.items():
        if not holds:
            raise ProofError(f"{place}: out of range")
    return proof


# ---------------------------------------------------------------- what must be shown


def check_proof(proof: Proof) -> None:
    """Check that a certificate proves its claim.

    Raises
    ------
    ProofError
        Naming the first thing that fails.
    """
    _check_intervals(proof)
    for index, box in enumerate(proof.boxes):
        place = f"boxes[{index}]"
        _check_multipliers(proof, box, place)
        for at, blocks in _bernstein(proof, box):
            for name, block in blocks.items():
                if tools.is_positive_semidefinite(block):
                    continue
                if name in RESIDUAL:
                    raise ProofError(
                        f"bound.{name}: is less than the last step's alone {at} ({place})"
                    )
                raise ProofError(f"{place}: the slack of {name} has a negative eigenvalue {at}")


def _check_intervals(proof: Proof) -> None:
    """Boxes follow one another; over an interval all must be divisible by the step size."""
    for index, box in enumerate(proof.boxes):
        first, last = box.client_lr
        if not 0 < first <= last:
            raise ProofError(f"boxes[{index}].client_lr: must be above 0 and in order")
        if index and first != proof.boxes[index - 1].client_lr[1]:
            raise ProofError(f"boxes[{index}].client_lr: must begin where the last box ends")
    first, last = proof.client_lr
    for name in proof.coefficients:
        polynomial = proof.bound[name]
        if not 1 <= len(polynomial) <= MOST_COEFFICIENTS:
            raise ProofError(f"bound.{name}: must have one to {MOST_COEFFICIENTS} coefficients")
        if first < last and polynomial[0] != (name == "rate"):
            raise ProofError(f"bound.{name}: must be {int(name == 'rate')} at a step size of 0")


def _check_multipliers(proof: Proof, box: Box, place: str) -> None:
    sizes = {group: size for group, size in proof.n_points.items() if size > 1}
    if box.pairs.keys() != sizes.keys():
        raise ProofError(f"{place}.pairs: must be of {' and '.join(sizes) or 'no'} clients")
    for group, size in sizes.items():
        tools.check_graph(box.pairs[group], size, f"{place}.pairs.{group}")
    fluctuations = proof.local_steps - 1 if proof.noisy else 0
    # Each group's gradients at x, and at x* where they enter.
    each = len(proof.n_points) * (1 if proof.of_descent else 2)
    counts = {
        "budgets": 1 if proof.heterogeneity == "optimum" else each,
        "noises": fluctuations,
        "orthogonal": fluctuations * max(fluctuations - 1, 0),
    }
    for name, count in counts.items():
        if len(getattr(box, name)) != count:
            raise ProofError(f"{place}.{name}: must be {count} numbers")
    for name in ("budgets", "noises"):
        parts = getattr(box, name)
        if min(parts, default=Fraction(0)) < 0 or sum(parts) > 1:
            raise ProofError(f"{place}.{name}: must not be negative, nor more than one in all")


def _bernstein(proof: Proof, box: Box) -> list[tuple[str, Mapping[str, FractionRows]]]:
    """Return the blocks at a step size, or the coefficients that hold it over a box."""
    first, last = box.client_lr
    if first == last:
        return [("", slack_blocks(proof, box, first))]
    values = [slack_blocks(proof, box, first + (last - first) * node) for node in NODES]
    return [
        (f"in Bernstein coefficient {index}", _weighted(row, values))
        for index, row in enumerate(BERNSTEIN)
    ]


def _weighted(
    weights: Sequence[Fraction], values: Sequence[Mapping[str, FractionRows]]
) -> Mapping[str, FractionRows]:
    """Return a weighted sum of blocks."""
    total = {}
    for name, block in values[0].items():
        size = range(len(block))
        total[name] = [
            [
                sum((w * v[name][i][j] for w, v in zip(weights, values, strict=True)), Fraction(0))
                for j in size
            ]
            for i in size
        ]
    return total


# ---------------------------------------------------------------- the slack, derived from the play


def slack_blocks(proof: Proof, box: Box, client_lr: Fraction) -> Mapping[str, FractionRows]:
    """Return the blocks of the slack over e, at one step size."""
    bound = {
        name: sum((c * client_lr**i for i, c in enumerate(polynomial)), Fraction(0))
        for name, polynomial in proof.bound.items()
    }
    e = proof.L * client_lr
    # With lengths and gradients in units of L = 1, a loss is one of L, and its noise L/2 a square.
    unit, square = (proof.L, proof.L / 2) if proof.of_descent else (proof.L**2, Fraction(1))
    budget = bound["heterogeneity"] * unit / e
    last_noise = square * proof.q * (proof.server_lr * client_lr) ** 2 / proof.participants
    # Where there is no noise its coefficient is void, but a reader takes it for one.
    noise = (bound["noise"] - last_noise) * unit / e if proof.noisy else bound["noise"] * unit / e
    server_noise = square * (1 - proof.q) * (proof.assist_ratio * client_lr) ** 2
    if proof.of_descent:
        play: _Play = _Descent(proof, box, e)
        decrease = bound["decrease"] * unit / e
    else:
        play, decrease = _Play(proof, box, e), (1 - bound["rate"]) / e
    # What is left for each coefficient of the claim is a block of its own, as it must not be
    # negative at any step size of a box either, nodes or not.
    blocks = {
        "heterogeneity": [[budget]],
        "noise": [[noise]],
        "server_noise": [[(bound["server_noise"] - server_noise) / e]],
        "means": play.means(decrease, budget),
    }
    # A group of one client has no differences.
    if proof.n_eligible != 1:
        blocks["differences of eligible clients"] = play.differences(budget)
    if proof.excluded_share and proof.n_excluded != 1:
        blocks["differences of excluded clients"] = play.excluded_differences(budget)
    if proof.noisy and proof.local_steps > 1:
        blocks["fluctuations"] = play.fluctuations(noise)
    return blocks


class _Play:
    """The round, played on coefficient lists; what is bounded is the distance to x*."""

    square = Fraction(1)  # what the squared length of a step counts

    def __init__(self, proof: Proof, box: Box, e: Fraction) -> None:
        self.proof, self.box, self.e = proof, box, e
        self.mu = proof.mu / proof.L
        self.out = proof.excluded_share
        self.steps = proof.local_steps

    def means(self, decrease: Fraction, budget: Fraction) -> FractionRows:
        """Return the block of means: x, g_0 .. g_{K-1}, and u_*, u_0 of those excluded."""
        size = 1 + self.steps + (2 if self.out else 0)
        x = tools.basis(size, 0)
        along = [tools.basis(size, 1 + k) for k in range(self.steps)]
        nothing = [Fraction(0)] * size
        gradient, own_at_optimum = along[0], nothing
        if self.out:
            others_at_optimum, others = tools.basis(size, size - 2), tools.basis(size, size - 1)
            own_at_optimum = tools.scaled(-self.out / (1 - self.out), others_at_optimum)
            gradient = tools.added(
                tools.scaled(1 - self.out, along[0]), tools.scaled(self.out, others)
            )
        slack = tools.squares(size, [(-decrease, x)])
        self._add_progress(slack, x, along, gradient)
        points, gradients = self._path(x, along), [*along, own_at_optimum]
        tools.add(slack, self._conditions("eligible", points, gradients))
        at_x = [tools.added(along[0], tools.scaled(Fraction(-1), gradient))]
        at_optimum = [own_at_optimum]
        if self.out:
            both = [others, others_at_optimum]
            tools.add(slack, self._conditions("excluded", [x, nothing], both))
            at_x.append(tools.added(others, tools.scaled(Fraction(-1), gradient)))
            at_optimum.append(others_at_optimum)
        tools.add(slack, self._heterogeneity(budget, at_optimum, at_x))
        return slack

    def differences(self, budget: Fraction) -> FractionRows:
        """Return the block of what eligible clients differ in: g_0 .. g_{K-1}, g_*."""
        size = self.steps + 1
        seen = [tools.basis(size, k) for k in range(size)]
        moved = tools.added(*seen[:-1])
        slack = tools.squares(size, [(-self._sampled(), moved)])
        points = self._path([Fraction(0)] * size, seen[:-1])
        tools.add(slack, self._conditions("eligible", points, seen))
        tools.add(slack, self._heterogeneity(budget, [seen[-1]], [seen[0]]))
        return slack

    def excluded_differences(self, budget: Fraction) -> FractionRows:
        """Return the block of what excluded clients differ in: u_0 and u_*."""
        nothing = [Fraction(0)] * 2
        seen = [tools.basis(2, 0), tools.basis(2, 1)]
        slack = self._conditions("excluded", [nothing, nothing], seen)
        empty = [Fraction(0)] * 2
        tools.add(slack, self._heterogeneity(budget, [empty, seen[1]], [empty, seen[0]]))
        return slack

    def fluctuations(self, noise: Fraction) -> FractionRows:
        """Return the block of what is random of one client given x: h_1 .., and xi_0 .."""
        count = self.steps - 1
        nothing = [Fraction(0)] * (2 * count)
        random = [nothing] + [tools.basis(2 * count, k) for k in range(count)]
        noises = [tools.basis(2 * count, count + k) for k in range(count)]
        seen = [tools.added(h, xi) for h, xi in zip(random, [*noises, nothing], strict=True)]
        moved = tools.added(*seen)
        one = self.square * self.proof.q / self.proof.participants
        weight = -one * self.proof.server_lr**2 * self.e
        slack = tools.squares(2 * count, [(weight, moved)])
        points = self._path(nothing, seen)
        tools.add(slack, self._conditions("eligible", points, [*random, nothing][: len(points)]))
        tools.add(
            slack,
            tools.squares(
                2 * count,
                [(noise * part, xi) for part, xi in zip(self.box.noises, noises, strict=True)],
            ),
        )
        free = iter(self.box.orthogonal)
        for k in range(count):
            # xi_k is independent of g_1 .. g_k and of earlier noise.
            for other in [*range(k), *range(count, count + k)]:
                value = next(free)
                slack[count + k][other] += value
                slack[other][count + k] += value
        return slack

    def _path(self, start: Fractions, seen: Sequence[Fractions]) -> list[Fractions]:
        """Return the points of K local steps before each of them, and x* = 0."""
        points = [start]
        for moved in seen[:-1]:
            points.append(tools.added(points[-1], tools.scaled(-self.e, moved)))
        return [*points, [Fraction(0)] * len(start)]

    def _add_progress(
        self, slack: FractionRows, x: Fractions, along: list[Fractions], gradient: Fractions
    ) -> None:
        """Add ``||x||^2 - E||x+||^2`` over e: what the two kinds of round do, in the mean."""
        q = self.proof.q
        for chance, step, direction in (
            (q, self.proof.server_lr * self.e, tools.added(*along)),
            (1 - q, self.proof.assist_ratio * self.e, gradient),
        ):
            after = tools.added(x, tools.scaled(-step, direction))
            tools.add(
                slack, tools.squares(len(x), [(chance / self.e, x), (-chance / self.e, after)])
            )

    def _sampled(self) -> Fraction:
        """Return what it adds, over e, that some of the eligible are drawn."""
        reach = self.proof.server_lr**2 * self.e
        return self.square * self.proof.q * self._spread() * reach

    def _spread(self) -> Fraction:
        """Return c: the variance of the drawn clients' mean, for differences of mean square one.

        ``1/m^2 (P(i) n - P(i, j) n)``: the differences of any client's with all others' add up
        to minus its own square. For every n its limit, 1/m, is the largest.
        """
        size, pool = self.proof.participants, self.proof.n_eligible
        if pool is None:
            return Fraction(1, size)
        if pool == 1:
            return Fraction(0)
        one = size / pool
        two = one * (size - 1) / (pool - 1)
        return (one - two) * pool / size**2

    def _conditions(
        self, group: str, points: list[Fractions], gradients: list[Fractions]
    ) -> FractionRows:
        """Return ``sum_ab w_ab A_ab``.

        With the Laplacian D of the weights' graph, ``sum w_ab |v_a - v_b|^2 = v'Dv``, and
        ``sum w_ab <g_b, x_a - x_b>`` is ``g'(W' - diag(what comes in)) x``.
        """
        weights = self.box.pairs[group]
        count = len(weights)
        entering = [sum((row[b] for row in weights), Fraction(0)) for b in range(count)]
        leaving = [sum(row, Fraction(0)) for row in weights]
        laplacian = [
            [
                (entering[a] + leaving[a] if a == b else 0) - weights[a][b] - weights[b][a]
                for b in range(count)
            ]
            for a in range(count)
        ]
        transport = [
            [weights[a][b] - (entering[b] if a == b else 0) for a in range(count)]
            for b in range(count)
        ]
        scale = 1 / (2 * (1 - self.mu))
        gg = _product(gradients, laplacian, gradients)
        xx = _product(points, laplacian, points)
        gx = _product(gradients, laplacian, points)
        moved = _product(gradients, transport, points)
        size = len(points[0])
        return [
            [
                (moved[i][j] + moved[j][i]) / 2
                + scale * (gg[i][j] + self.mu * xx[i][j] - self.mu * (gx[i][j] + gx[j][i]))
                for j in range(size)
            ]
            for i in range(size)
        ]

    def _heterogeneity(
        self, budget: Fraction, at_optimum: list[Fractions], at_x: list[Fractions]
    ) -> FractionRows:
        """Return the budgets: gradients of each group at x*, and at x less F's gradient."""
        size = len(at_optimum[0])
        parts = [budget * part for part in self.box.budgets]
        if self.proof.heterogeneity == "optimum":
            shares = [1 - self.out, self.out]
            weighed = [(parts[0] * w, v) for w, v in zip(shares, at_optimum, strict=False)]
        else:
            each = zip(at_optimum, at_x, strict=True)
            weighed = list(zip(parts, [v for both in each for v in both], strict=False))
        return tools.squares(size, weighed)


class _Descent(_Play):
    """The same round, of which the loss F is bounded: there is no x*, and x is the origin."""

    square = Fraction(1, 2)

    def means(self, decrease: Fraction, budget: Fraction) -> FractionRows:
        """Return the block of means: g_0 .. g_{K-1}, and u_0 of those excluded."""
        size = self.steps + (1 if self.out else 0)
        along = [tools.basis(size, k) for k in range(self.steps)]
        gradient, off = along[0], []
        if self.out:
            others = tools.basis(size, size - 1)
            gradient = tools.added(
                tools.scaled(1 - self.out, along[0]), tools.scaled(self.out, others)
            )
            off = [tools.added(others, tools.scaled(Fraction(-1), gradient))]
        slack = tools.squares(size, [(-decrease, gradient)])
        self._add_fall(slack, along, gradient)
        tools.add(
            slack, self._conditions("eligible", self._path([Fraction(0)] * size, along), along)
        )
        off.insert(0, tools.added(along[0], tools.scaled(Fraction(-1), gradient)))
        tools.add(slack, self._heterogeneity(budget, [], off))
        return slack

    def _add_fall(self, slack: FractionRows, along: list[Fractions], gradient: Fractions) -> None:
        """Add ``F(x) - E F(x+)`` over e, bounded: ``<grad F, p> - ||p||^2/2`` for a step -p."""
        q, zero = self.proof.q, [Fraction(0)] * len(gradient)
        for chance, step, direction in (
            (q, self.proof.server_lr * self.e, tools.added(zero, *along)),
            (1 - q, self.proof.assist_ratio * self.e, gradient),
        ):
            along_gradient = chance * step / self.e / 2
            for i, left in enumerate(gradient):
                for j, right in enumerate(direction):
                    slack[i][j] += along_gradient * left * right
                    slack[j][i] += along_gradient * left * right
            tools.add(
                slack, tools.squares(len(gradient), [(-chance * step**2 / self.e / 2, direction)])
            )

    def differences(self, budget: Fraction) -> FractionRows:
        """Return the block of what eligible clients differ in: g_0 .. g_{K-1}."""
        size = self.steps
        seen = [tools.basis(size, k) for k in range(size)]
        slack = tools.squares(size, [(-self._sampled(), tools.added(*seen))])
        tools.add(slack, self._conditions("eligible", self._path([Fraction(0)] * size, seen), seen))
        tools.add(slack, self._heterogeneity(budget, [], [seen[0]]))
        return slack

    def excluded_differences(self, budget: Fraction) -> FractionRows:
        """Return the block of what excluded clients differ in: u_0."""
        return self._heterogeneity(budget, [], [[Fraction(0)], [Fraction(1)]])

    def _path(self, start: Fractions, seen: Sequence[Fractions]) -> list[Fractions]:
        """Return the points of K local steps before each of them."""
        return super()._path(start, seen)[:-1]

    def _conditions(
        self, group: str, points: list[Fractions], gradients: list[Fractions]
    ) -> FractionRows:
        """Return ``sum_ab w_ab A_ab``; zero where there is one point alone."""
        if group in self.box.pairs:
            return super()._conditions(group, points, gradients)
        return tools.squares(len(points[0]), [])

    def _heterogeneity(
        self, budget: Fraction, at_optimum: list[Fractions], at_x: list[Fractions]
    ) -> FractionRows:
        """Return the budgets: gradients of each group at x, less F's gradient."""
        parts = [budget * part for part in self.box.budgets]
        return tools.squares(len(at_x[0]), list(zip(parts, at_x, strict=False)))


# ---------------------------------------------------------------- lists of fractions


def _product(left: list[Fractions], middle: FractionRows, right: list[Fractions]) -> FractionRows:
    """Return ``left' middle right`` for lists of rows, skipping zeros."""
    half = [
        tools.added(*(tools.scaled(value, row) for value, row in zip(values, right, strict=True)))
        for values in middle
    ]
    size = len(right[0])
    total = [[Fraction(0)] * size for _ in range(size)]
    for row, others in zip(left, half, strict=True):
        for i, value in enumerate(row):
            if value:
                for j, other in enumerate(others):
                    if other:
                        total[i][j] += value * other
    return total


def _checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    proof = parsed(text)
    check_proof(proof)
    return proof.claim


if __name__ == "__main__":
    sys.exit(tools.run(sys.argv[1:], "proof_checker.py", _checked))

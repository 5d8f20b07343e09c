"""The checker of bounds on one round, in fractions.

A certificate holds a round, a class of clients, the bound that is claimed for all of them, and
multipliers. The slack is derived here a second time, from terms of single clients and of pairs of
clients, while the modelling code works with means and variances. With ``x* = 0`` and
``F = sum_i alpha_i F_i``, it is

- for the distance, ``rate |x|^2 - gap (F(x) - F*) + residual - E|x+|^2``;
- for the descent, ``F(x) - decrease |grad F(x)|^2 + residual - E F(x+)``, with F(x+) bounded by the
  descent lemma: F is as smooth as its clients are. There is no x*, and x is the origin.

Two kinds of terms are added: multipliers times terms that are at most zero for every client of the
class, and budgets for quantities that the class bounds. The claim holds for all clients of the
class, in any dimension, if function values cancel and the resulting form has no negative value.

*Participation.* Either m of the eligible clients are drawn, with all sets equally likely, or
clients are present independently of one another. Client i moves the model by its random weight W_i
times its update from K local steps. For clients i and j of groups c and d, only these moments
matter:

    n E W_i,   n E W_i^2,   n_c n_d E W_i W_j   (n (n - 1) within one group)

If a bound is for every number n >= m of eligible clients, differences between clients matter most
as n goes to infinity, because the mean over pairs of different clients contains ``-1/(n - 1)``
times the squared differences.

The *noise* of a local step is independent between clients and has mean zero given the past. A
client's randomness given x has a form of its own, in ``h_1 .. h_{K-1}``, the random parts of its
gradients, and the noise ``xi_0 .. xi_{K-2}`` of all steps but the last.

*Assumptions about a run.* A claim may be restricted to models at which

    gradient ||grad F(x)||^2 + moved E||mean of the participants' sums of gradients||^2
    + values (mean of F_i(x) - F_i(x*) over eligible clients) + heterogeneity dissimilarity^2

is at most zero. As this sum enters linearly, a proof that uses it with a multiplier is also valid
if only its mean over models is at most zero.

*Intervals.* Over an interval of step sizes the blocks, divided by e, are polynomials of degree
three at most; if their Bernstein coefficients are positive semidefinite, so are the blocks on the
whole interval.

Notation: lengths are in units with L = 1, e = L client_lr, and everything is divided by e.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.checker import kernel
else:
    import kernel

Fractions = kernel.Fractions
FractionRows = kernel.FractionRows
ProofError = kernel.ProofError
Vector = kernel.Vector

KIND, VERSION = "proof for every client loss", 3
FIELDS = "kind version claim round class bound given boxes"
MOST_CHARACTERS = 10_000_000  # of a file
MOST_STEPS = 60  # local steps of drawn clients
MOST_ROWS = 100  # groups of independent clients, times (local steps + 1)
MOST_NUMBERS = 20_000  # possible numbers of clients present over all groups, for a mean
MOST_PRESENT = 200  # clients in a mean, as availability is raised to this power
LARGEST_DENOMINATOR = 10**20  # bits of such an availability
MOST_BOXES = 1_000
MOST_COEFFICIENTS = 5  # of a claim, as a polynomial in client_lr
NODES = (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1))
BERNSTEIN = tuple(
    tuple(Fraction(value, 6) for value in row)
    for row in ((6, 0, 0, 0), (-5, 18, -9, 2), (2, -9, 18, -5), (0, 0, 0, 6))
)
"""Bernstein coefficients of a cubic on [0, 1] from its values at the nodes."""
_RESIDUAL_TEXT = "heterogeneity dissimilarity^2 + noise sigma^2 + server_noise server_sigma^2"
CLAIM = f"E||x+ - x*||^2 <= rate ||x - x*||^2 - gap (F(x) - F*) + {_RESIDUAL_TEXT}"
DESCENT_CLAIM = f"E F(x+) <= F(x) - decrease ||grad F(x)||^2 + {_RESIDUAL_TEXT}"
RESIDUAL = ("heterogeneity", "noise", "server_noise")
GIVEN = ("gradient", "moved", "values", "heterogeneity")
COEFFICIENTS = {CLAIM: ("rate", "gap", *RESIDUAL), DESCENT_CLAIM: ("decrease", *RESIDUAL)}

Polynomial = list[Fraction]


# ---------------------------------------------------------------- who takes part


@dataclass(frozen=True)
class Crowd:
    """Interchangeable clients, and the moments of their random weights.

    Attributes
    ----------
    name : str
    n_clients : int or None
        None if the claim is for every number from the number of participants upwards.
    share : Fraction
        The total weight of these clients in F.
    mean, square : Fraction
        ``n E W_i`` and ``n E W_i^2``, with n their number.
    pairs : list of Fraction
        ``n n_d E W_i W_j`` for a client j of each other crowd d; ``n (n - 1) E W_i W_j`` within the
        crowd itself.
    """

    name: str
    n_clients: int | None
    share: Fraction
    mean: Fraction
    square: Fraction
    pairs: Fractions


@dataclass(frozen=True)
class Drawn:
    """A fixed number of eligible clients, drawn uniformly; excluded clients never take part.

    Attributes
    ----------
    participants : int
    n_clients : int or None
        None if the claim is for every number of clients.
    excluded_share : Fraction
    """

    participants: int
    n_clients: int | None
    excluded_share: Fraction

    @property
    def n_eligible(self) -> int | None:
        """How many clients can be drawn."""
        return None if self.n_clients is None else int(self.n_clients * (1 - self.excluded_share))

    @property
    def n_excluded(self) -> int | None:
        """How many clients never take part."""
        return None if self.n_clients is None else int(self.n_clients * self.excluded_share)

    @property
    def crowds(self) -> list[Crowd]:
        """Return the crowds; weights are 1/m, with probability m/n, or m(m-1)/(n(n-1)) for two."""
        zero, m, out = Fraction(0), self.participants, self.excluded_share
        two = Fraction(m - 1, m)
        eligible = Crowd(
            "eligible clients", self.n_eligible, 1 - out, Fraction(1), Fraction(1, m), [two, zero]
        )
        excluded = Crowd("excluded clients", self.n_excluded, out, zero, zero, [zero, zero])
        return [eligible, excluded] if out else [eligible]

    def covers(self, n_clients: int) -> bool:
        """Whether a proof holds for a number of clients, with the same share of excluded clients.

        With fewer clients the participants' mean is less random; everything else depends only on
        the share.
        """
        excluded = n_clients * self.excluded_share
        if excluded.denominator != 1 or n_clients - excluded < self.participants:
            return False
        return self.n_clients is None or n_clients <= self.n_clients


@dataclass(frozen=True)
class ReadGroup:
    """Clients with equal availability, target weight and aggregation weight, as they were read."""

    n_clients: int
    availability: Fraction
    target_weight: Fraction
    weight: Fraction


@dataclass(frozen=True)
class Independent:
    """Clients present independently of one another.

    Attributes
    ----------
    averaging : str
        Either "weights" or "present". The latter is the mean over the clients present; if nobody is
        present, the model does not change.
    groups : list of ReadGroup
    """

    averaging: str
    groups: list[ReadGroup]

    @property
    def crowds(self) -> list[Crowd]:
        """Return the crowds; for a mean, sum over the possible numbers of clients present."""
        mean, one, two = self._weights() if self.averaging == "weights" else self._means()
        counts = [own.n_clients for own in self.groups]
        return [
            Crowd(
                f"group {c}",
                own.n_clients,
                own.n_clients * own.target_weight,
                own.n_clients * mean[c],
                own.n_clients * one[c],
                [own.n_clients * (counts[d] - (c == d)) * two[c][d] for d in range(len(counts))],
            )
            for c, own in enumerate(self.groups)
        ]

    def _weights(self) -> tuple[Fractions, Fractions, FractionRows]:
        mean = [own.availability * own.weight for own in self.groups]
        one = [own.availability * own.weight**2 for own in self.groups]
        return mean, one, [[left * right for right in mean] for left in mean]

    def _means(self) -> tuple[Fractions, Fractions, FractionRows]:
        groups = self.groups
        zeros = [Fraction(0)] * len(groups)
        mean, one, two = zeros[:], zeros[:], [zeros[:] for _ in groups]
        for numbers in product(*(range(own.n_clients + 1) for own in groups)):
            there = sum(numbers)
            if there == 0:
                continue
            chance = math.prod(
                (
                    math.comb(own.n_clients, k)
                    * own.availability**k
                    * (1 - own.availability) ** (own.n_clients - k)
                    for own, k in zip(groups, numbers, strict=True)
                ),
                start=Fraction(1),
            )
            for c, own in enumerate(groups):
                is_there = chance * Fraction(numbers[c], own.n_clients)
                mean[c] += is_there / there
                one[c] += is_there / there**2
                for d, other in enumerate(groups):
                    left = other.n_clients - (c == d)
                    if left:
                        both = is_there * Fraction(numbers[d] - (c == d), left)
                        two[c][d] += both / there**2
        return mean, one, two

    def covers(self, n_clients: int) -> bool:
        """Whether a proof holds for a number of clients, which is so only for its own number."""
        return n_clients == sum(own.n_clients for own in self.groups)


# ---------------------------------------------------------------- reading an untrusted file


@dataclass(frozen=True)
class Box:
    """Multipliers for an interval of step sizes, divided by e.

    Attributes
    ----------
    client_lr : pair of Fraction
    pairs : list of matrices
        One matrix per crowd. Entry (a, b) belongs to the condition of points a and b; x* is last.
    budgets, noises : list of Fraction
        The share of the claimed coefficient that each budget gets; the sum of shares is at most
        one.
    orthogonal : list of Fraction
        Multipliers of products that are zero.
    given : Fraction
        Multiplier of the assumption about a run.
    """

    client_lr: tuple[Fraction, Fraction]
    pairs: list[FractionRows]
    budgets: Fractions
    noises: Fractions
    orthogonal: Fractions
    given: Fraction


@dataclass(frozen=True)
class Proof:
    """A certificate as it was read; nothing in it has been checked yet.

    Attributes
    ----------
    claim : str
        `CLAIM` or `DESCENT_CLAIM`.
    taking_part : Drawn or Independent
    crowds : list of Crowd
    local_steps : int
    q, server_lr, assist_ratio : Fraction
        ``q`` is the probability of a client round. Otherwise the server takes a step itself, and
        ``assist_ratio`` is the ratio of its length to that of the clients' steps.
    L, mu : Fraction
        ``-L <= mu < L`` for a descent, for which losses need not be convex.
    heterogeneity : str
        "optimum": ``sum_i alpha_i ||grad F_i(x*)||^2 <= dissimilarity^2``; "everywhere":
        ``||grad F_i(x) - grad F(x)|| <= dissimilarity`` for every client and x.
    noisy : bool
        Whether gradients of clients have noise.
    bound : mapping of str to list of Fraction
        Coefficients of the claim, polynomials in client_lr.
    given : mapping of str to Fraction
        The assumption about a run, which is a sum that is at most zero; empty if there is none.
    boxes : list of Box
    """

    claim: str
    taking_part: Drawn | Independent
    crowds: list[Crowd]
    local_steps: int
    q: Fraction
    server_lr: Fraction
    assist_ratio: Fraction
    L: Fraction
    mu: Fraction
    heterogeneity: str
    noisy: bool
    bound: Mapping[str, Polynomial]
    given: Mapping[str, Fraction]
    boxes: list[Box]

    @property
    def of_descent(self) -> bool:
        """Whether the claim is on F rather than on the distance to x*."""
        return self.claim == DESCENT_CLAIM

    @property
    def client_lr(self) -> tuple[Fraction, Fraction]:
        """The smallest and the largest step size covered."""
        return self.boxes[0].client_lr[0], self.boxes[-1].client_lr[1]

    def bound_at(self, client_lr: Fraction) -> dict[str, Fraction]:
        """Return the claim's coefficients at a step size."""
        return {
            name: sum((c * client_lr**i for i, c in enumerate(polynomial)), Fraction(0))
            for name, polynomial in self.bound.items()
        }

    def steps_of(self, crowd: Crowd) -> int:
        """Return how many gradients of a crowd's clients enter, which is one if they are absent."""
        return self.local_steps if crowd.mean else 1

    def points_of(self, crowd: Crowd) -> int:
        """Return the number of points per client of a crowd, including x* except for a descent."""
        return self.steps_of(crowd) + (not self.of_descent)


def parsed(text: str) -> Proof:
    """Read a certificate.

    Raises
    ------
    ProofError
        If a field, which the message names, is missing, invalid or out of range.
    """
    top = kernel.document_of(text, FIELDS, MOST_CHARACTERS, kind=KIND, version=VERSION)
    if top["claim"] not in (CLAIM, DESCENT_CLAIM):
        raise ProofError(f"claim: must be {CLAIM!r} or {DESCENT_CLAIM!r}")
    names = "taking_part local_steps q server_lr assist_lr_over_client_lr"
    played = kernel.fields_of("round", top["round"], names)
    clients = kernel.fields_of("class", top["class"], "L mu heterogeneity noise")
    coefficients = COEFFICIENTS[top["claim"]]
    bound = kernel.fields_of("bound", top["bound"], " ".join(coefficients))
    given = {}
    if top["given"] is not None:
        given = kernel.fields_of("given", top["given"], " ".join(GIVEN))
    steps = kernel.whole("round.local_steps", played["local_steps"])
    kernel.in_range({"round.local_steps": 1 <= steps <= MOST_ROWS})
    taking_part = _taking_part(played["taking_part"], steps)
    proof = Proof(
        claim=top["claim"],
        taking_part=taking_part,
        crowds=taking_part.crowds,
        local_steps=steps,
        q=kernel.fraction("round.q", played["q"]),
        server_lr=kernel.fraction("round.server_lr", played["server_lr"]),
        assist_ratio=kernel.fraction(
            "round.assist_lr_over_client_lr", played["assist_lr_over_client_lr"]
        ),
        L=kernel.fraction("class.L", clients["L"]),
        mu=kernel.fraction("class.mu", clients["mu"]),
        heterogeneity=clients["heterogeneity"],
        noisy=clients["noise"],
        bound={name: kernel.row(f"bound.{name}", bound[name]) for name in coefficients},
        given={name: kernel.fraction(f"given.{name}", value) for name, value in given.items()},
        boxes=[],
    )
    kernel.in_range(
        {
            "round.q": 0 <= proof.q <= 1,
            "round.server_lr": proof.server_lr > 0,
            "round.assist_lr_over_client_lr": proof.assist_ratio >= 0,
            "class.L": proof.L > 0,
            "class.mu": (-proof.L if proof.of_descent else 0) <= proof.mu < proof.L,
            "class.heterogeneity": proof.heterogeneity == "everywhere"
            or (proof.heterogeneity == "optimum" and not proof.of_descent),
            "class.noise": isinstance(proof.noisy, bool),
            # A descent has no point x*, and heterogeneity is not bounded at the optimum.
            "given": not proof.given
            or (
                isinstance(taking_part, Drawn)
                and proof.heterogeneity == "everywhere"
                and not (proof.of_descent and proof.given["values"])
            ),
            "boxes": isinstance(top["boxes"], list) and 1 <= len(top["boxes"]) <= MOST_BOXES,
        }
    )
    boxes = kernel.list_of("boxes", top["boxes"], lambda place, box: _box(place, box, proof))
    proof.boxes.extend(boxes)
    return proof


def _taking_part(found: Any, steps: int) -> Drawn | Independent:
    place = "round.taking_part"
    if isinstance(found, dict) and "groups" in found:
        return _independent(place, kernel.fields_of(place, found, "averaging groups"), steps)
    fields = kernel.fields_of(place, found, "participants n_clients excluded_share")
    every = fields["n_clients"] == "every"
    drawn = Drawn(
        kernel.whole(f"{place}.participants", fields["participants"]),
        None if every else kernel.whole(f"{place}.n_clients", fields["n_clients"]),
        kernel.fraction(f"{place}.excluded_share", fields["excluded_share"]),
    )
    size, out = drawn.n_clients, drawn.excluded_share
    kernel.in_range(
        {
            "round.local_steps": steps <= MOST_STEPS,
            f"{place}.excluded_share": 0 <= out < 1,
            f"{place}.n_clients": size is None or (size * out).denominator == 1,
            f"{place}.participants": drawn.participants >= 1
            and (size is None or size * (1 - out) >= drawn.participants),
        }
    )
    return drawn


def _independent(place: str, fields: Mapping[str, Any], steps: int) -> Independent:
    groups = kernel.list_of(f"{place}.groups", fields["groups"], _group)
    in_mean, place_of = fields["averaging"] == "present", f"{place}.groups"
    counts = [own.n_clients for own in groups]
    kernel.in_range(
        {
            f"{place}.averaging": fields["averaging"] in ("weights", "present"),
            place_of: 1 <= len(groups) <= MOST_ROWS // (steps + 1) and min(counts) >= 1,
            f"{place_of}.availability": all(0 < own.availability <= 1 for own in groups),
            f"{place_of}.weight": all(own.weight >= 0 for own in groups)
            and not (in_mean and any(own.weight != 1 for own in groups)),
            f"{place_of}.target_weight": all(own.target_weight > 0 for own in groups)
            and sum(own.n_clients * own.target_weight for own in groups) == 1,
        }
    )
    if in_mean:
        _check_work(place_of, groups)
    return Independent(fields["averaging"], groups)


def _group(place: str, found: Any) -> ReadGroup:
    names = "n_clients availability target_weight weight"
    fields = kernel.fields_of(place, found, names)
    return ReadGroup(
        kernel.whole(f"{place}.n_clients", fields["n_clients"]),
        *(kernel.fraction(f"{place}.{name}", fields[name]) for name in names.split()[1:]),
    )


def _check_work(place: str, groups: Sequence[ReadGroup]) -> None:
    """Check, for a mean over those present, that all numbers of clients can be enumerated."""
    if sum(own.n_clients for own in groups) > MOST_PRESENT:
        raise ProofError(f"{place}: must have at most {MOST_PRESENT} clients for a mean")
    if math.prod(own.n_clients + 1 for own in groups) > MOST_NUMBERS:
        raise ProofError(
            f"{place}: must have at most {MOST_NUMBERS} combinations of numbers of clients present"
        )
    if any(own.availability.denominator > LARGEST_DENOMINATOR for own in groups):
        raise ProofError(f"{place}.availability: must have fewer digits for a mean")


def _box(place: str, found: Any, proof: Proof) -> Box:
    fields = kernel.fields_of(place, found, "client_lr pairs budgets noises orthogonal given")
    ends = kernel.row(f"{place}.client_lr", fields["client_lr"])
    if len(ends) != 2:
        raise ProofError(f"{place}.client_lr: must be two numbers, got {len(ends)}")
    crowds = proof.crowds
    if not isinstance(fields["pairs"], list) or len(fields["pairs"]) != len(crowds):
        raise ProofError(f"{place}.pairs: must be {len(crowds)} matrices")
    budgets = 1 if proof.heterogeneity == "optimum" else len(crowds) * (2 - proof.of_descent)
    taking_part = sum(1 for own in crowds if own.mean)
    count = proof.local_steps - 1 if proof.noisy else 0
    free = taking_part * count * max(count - 1, 0)
    return Box(
        (ends[0], ends[1]),
        [
            kernel.weights_of(f"{place}.pairs[{c}]", rows, proof.points_of(own))
            for c, (own, rows) in enumerate(zip(crowds, fields["pairs"], strict=True))
        ],
        kernel.shares_of(f"{place}.budgets", fields["budgets"], budgets),
        kernel.shares_of(f"{place}.noises", fields["noises"], taking_part * count),
        kernel.numbers_of(f"{place}.orthogonal", fields["orthogonal"], free),
        _multiplier(f"{place}.given", fields["given"], proof),
    )


def _multiplier(place: str, found: Any, proof: Proof) -> Fraction:
    value = kernel.fraction(place, found)
    kernel.in_range({place: value == 0 or (value > 0 and bool(proof.given))})
    return value


def _check_intervals(proof: Proof) -> None:
    """Check that boxes are adjacent and, for intervals, that claims are divisible by the step."""
    for index, box in enumerate(proof.boxes):
        first, last = box.client_lr
        if not 0 < first <= last:
            raise ProofError(f"boxes[{index}].client_lr: must be above 0 and in order")
        if index and first != proof.boxes[index - 1].client_lr[1]:
            raise ProofError(f"boxes[{index}].client_lr: must begin where the previous box ends")
    first, last = proof.client_lr
    for name, polynomial in proof.bound.items():
        if not 1 <= len(polynomial) <= MOST_COEFFICIENTS:
            raise ProofError(f"bound.{name}: must have one to {MOST_COEFFICIENTS} coefficients")
        if first < last and polynomial[0] != (name == "rate"):
            raise ProofError(f"bound.{name}: must be {int(name == 'rate')} at a step size of 0")


# ---------------------------------------------------------------- what must be shown


def check_proof(proof: Proof) -> None:
    """Check that a certificate proves its claim.

    Raises
    ------
    ProofError
        If a check fails. The message names the first one that does.
    """
    _check_intervals(proof)
    for index, box in enumerate(proof.boxes):
        place = f"boxes[{index}]"
        for at, blocks in _bernstein(proof, box, place):
            for name in RESIDUAL:
                if blocks.pop(name)[0][0] < 0:
                    raise ProofError(
                        f"bound.{name}: is less than the last step's alone {at} ({place})"
                    )
            kernel.check_blocks(f"{place} {at}".strip(), blocks)


def _bernstein(proof: Proof, box: Box, place: str) -> list[tuple[str, dict[str, FractionRows]]]:
    """Return the slack's blocks at one step size, or Bernstein coefficients of these for a box."""
    first, last = box.client_lr
    if first == last:
        return [("", slack_blocks(proof, box, first, place))]
    values = [slack_blocks(proof, box, first + (last - first) * node, place) for node in NODES]
    return [
        (f"in Bernstein coefficient {index}", _weighted(row, values))
        for index, row in enumerate(BERNSTEIN)
    ]


def _weighted(
    weights: Sequence[Fraction], values: Sequence[Mapping[str, FractionRows]]
) -> dict[str, FractionRows]:
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


# ---------------------------------------------------------------- the slack, derived from the round


def slack_blocks(
    proof: Proof, box: Box, client_lr: Fraction, place: str = "slack"
) -> dict[str, FractionRows]:
    """Return the blocks of the slack over e, at one step size.

    What remains of each coefficient of the residual is a separate block, since it must not be
    negative at any step size of a box, not only at the nodes.

    Raises
    ------
    ProofError
        If function values do not cancel.
    """
    bound = proof.bound_at(client_lr)
    e = proof.L * client_lr
    # With lengths and gradients in units where L = 1, losses are divided by L, and noise
    # contributes L/2 times its square.
    unit, square = (proof.L, Fraction(1, 2)) if proof.of_descent else (proof.L**2, Fraction(1))
    scale = unit / e
    per_square = square * proof.L**2 / unit
    moved = proof.q * proof.server_lr**2 * sum((own.square for own in proof.crowds), Fraction(0))
    # Without noise, the coefficient of noise has no effect. Readers would still believe it, so it
    # is checked too.
    last_noise = per_square * moved * client_lr**2 if proof.noisy else Fraction(0)
    server_noise = per_square * (1 - proof.q) * (proof.assist_ratio * client_lr) ** 2
    budget, noise = bound["heterogeneity"] * scale, (bound["noise"] - last_noise) * scale
    if proof.given:
        budget += box.given * proof.given["heterogeneity"]
    play = _Play(proof, box, e, square)
    play.suppose()
    if proof.of_descent:
        play.claim_descent(bound["decrease"] * scale)
    else:
        play.claim_distance((1 - bound["rate"]) / e, bound["gap"] * proof.L / e)
    play.add_heterogeneity(budget)
    play.form.check_values(place)
    return {
        "heterogeneity": [[budget]],
        "noise": [[noise]],
        "server_noise": [[(bound["server_noise"] - server_noise) / e]],
        **play.form.blocks(play.zero),
        **play.fluctuations(noise),
    }


class _Play:
    """One round, computed on coefficients of forms.

    Parameters
    ----------
    proof : Proof
    box : Box
    e : Fraction
    square : Fraction
        The factor of the squared length of a step, which is 1, or 1/2 in the descent lemma.
    """

    def __init__(self, proof: Proof, box: Box, e: Fraction, square: Fraction) -> None:
        self.proof, self.box, self.e, self.square = proof, box, e, square
        self.mu = proof.mu / proof.L
        at_optimum = int(not proof.of_descent)
        steps = [proof.steps_of(own) for own in proof.crowds]
        self.clients = kernel.Coordinates(
            at_optimum,
            [
                kernel.Group(own.name, own.n_clients, count + at_optimum, proof.points_of(own))
                for own, count in zip(proof.crowds, steps, strict=True)
            ],
        )
        self.nothing = self.clients.nothing
        self.x = self.clients.shared(0) if at_optimum else self.nothing
        self.along = [[self.clients.own(c, k) for k in range(n)] for c, n in enumerate(steps)]
        self.at_optimum = [self.clients.own(c, n) if at_optimum else None
                           for c, n in enumerate(steps)]  # fmt: skip
        self.gradient = self._over_clients([self.clients.mean(c, 0) for c in range(len(steps))])
        # The gradient of F at x* is zero.
        self.zero = (
            [self._over_clients([self.clients.mean(c, n) for c, n in enumerate(steps)])]
            if at_optimum
            else []
        )
        self.form = kernel.SymmetricForm(self.clients)
        for c, own in enumerate(self.along):
            points, gradients = _path(self.x, own, e), list(own)
            optimum = self.at_optimum[c]
            if optimum is not None:
                points.append(self.nothing)
                gradients.append(optimum)
            self.form.add_conditions(c, box.pairs[c], points, gradients, self.mu)

    def _over_clients(self, means: list[Vector]) -> Vector:
        """Return the mean over all clients, weighted as in F."""
        weighed = [own.share * mean for own, mean in zip(self.proof.crowds, means, strict=True)]
        return _sum(weighed, self.nothing)

    def claim_distance(self, decrease: Fraction, gap: Fraction) -> None:
        """Add ``|x|^2 - E|x+|^2`` over e, minus the claimed decrease."""
        self.form.add(-decrease, self.x, self.x)
        for c, own in enumerate(self.proof.crowds):
            self.form.add_value(-gap * own.share, c, 0)
            self.form.add_value(gap * own.share, c, self.proof.steps_of(own))
        self._add_round(self.x)

    def claim_descent(self, decrease: Fraction) -> None:
        """Add the lower bound on ``F(x) - E F(x+)`` over e, minus the claimed decrease."""
        self.form.add(-decrease, self.gradient, self.gradient)
        self._add_round(self.gradient)

    def suppose(self) -> None:
        """Add the assumption about a run, except its dissimilarity term, times its multiplier."""
        proof, given = self.proof, self.proof.given
        if not given:
            return
        times, own = self.box.given, proof.crowds[0]
        self.form.add(times * given["gradient"], self.gradient, self.gradient)
        moved = _sum(self.along[0], self.nothing)
        self.form.add_each(times * given["moved"] * own.square, 0, moved, moved)
        if own.pairs[0]:
            self.form.add_two(times * given["moved"] * own.pairs[0], 0, 0, moved, moved)
        if given["values"]:
            self.form.add_value(times * given["values"] / proof.L, 0, 0)
            self.form.add_value(-times * given["values"] / proof.L, 0, proof.steps_of(own))

    def _add_round(self, start: Vector) -> None:
        """Add ``square (2 <start, p> - E|p|^2)`` over e, for the step -p of a round."""
        proof, form = self.proof, self.form
        gain = proof.server_lr * self.e
        clients, server = self.square * proof.q / self.e, self.square * (1 - proof.q) / self.e
        moved = [_sum(own, self.nothing) for own in self.along]
        for c, own in enumerate(proof.crowds):
            form.add_each(2 * clients * gain * own.mean, c, start, moved[c])
            form.add_each(-clients * gain**2 * own.square, c, moved[c], moved[c])
            for d in range(len(proof.crowds)):
                if own.pairs[d]:
                    form.add_two(-clients * gain**2 * own.pairs[d], c, d, moved[c], moved[d])
        step = proof.assist_ratio * self.e
        form.add(2 * server * step, start, self.gradient)
        form.add(-server * step**2, self.gradient, self.gradient)

    def add_heterogeneity(self, budget: Fraction) -> None:
        """Add budgets times squared gradients at x* and, if bounded everywhere, at x minus F's."""
        parts = iter([budget * part for part in self.box.budgets])
        if self.proof.heterogeneity == "optimum":
            whole = next(parts)
            for c, own in enumerate(self.proof.crowds):
                optimum = self.at_optimum[c]
                assert optimum is not None
                self.form.add_each(whole * own.share, c, optimum, optimum)
            return
        for c, along in enumerate(self.along):
            off = along[0] - self.gradient
            for vector in (self.at_optimum[c], off):
                if vector is not None:
                    self.form.add_each(next(parts), c, vector, vector)

    def fluctuations(self, noise: Fraction) -> dict[str, FractionRows]:
        """Return the blocks of one client's randomness given x, in h_1, .. and xi_0, ..."""
        count = self.proof.local_steps - 1
        if not self.proof.noisy or not count:
            return {}
        parts, free = iter(self.box.noises), iter(self.box.orthogonal)
        found = {}
        for c, crowd in enumerate(self.proof.crowds):
            if not crowd.mean:
                continue
            points = self.proof.points_of(crowd)
            one = kernel.Coordinates(0, [kernel.Group("one client", 1, 2 * count, points)])
            own = [one.own(0, k) for k in range(2 * count)]
            random, noises = [one.nothing, *own[:count]], own[count:]
            seen = [h + xi for h, xi in zip(random, [*noises, one.nothing], strict=True)]
            moved = _sum(seen, one.nothing)
            form = kernel.SymmetricForm(one)
            reach = self.square * self.proof.q * self.proof.server_lr**2 * self.e
            form.add_each(-reach * crowd.square, 0, moved, moved)
            if self.proof.given:
                alone = _sum(random, one.nothing)
                times = self.box.given * self.proof.given["moved"]
                form.add_each(times * crowd.square, 0, alone, alone)
            at = [*_path(one.nothing, seen, self.e), one.nothing][:points]
            form.add_conditions(0, self.box.pairs[c], at, [*random, one.nothing][:points], self.mu)
            for xi in noises:
                form.add_each(noise * next(parts), 0, xi, xi)
            for k in range(count):
                # xi_k is independent of h_1 .. h_k and of earlier noise.
                for other in [*range(k), *range(count, count + k)]:
                    form.add_each(2 * next(free), 0, own[count + k], own[other])
            found[f"fluctuations of {crowd.name}"] = form.blocks()["means"]
        return found


def _path(start: Vector, seen: Sequence[Vector], e: Fraction) -> list[Vector]:
    """Return the model before each local step."""
    points = [start]
    for gradient in seen[:-1]:
        points.append(points[-1] - e * gradient)
    return points


def _sum(vectors: Sequence[Vector], nothing: Vector) -> Vector:
    total = nothing
    for vector in vectors:
        total = total + vector
    return total


def checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    proof = parsed(text)
    check_proof(proof)
    return proof.claim

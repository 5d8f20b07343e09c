"""One round in fractions, with participants drawn uniformly or available independently.

A round of FedAvg or SAFARI draws participants, while weighted averaging uses the clients present.
Settings are covered if all rounds are alike and the clients of a kind are interchangeable.

Definitions
-----------
Client i's update ``D_i``, the sum of its gradients, has a random weight ``W_i``. Clients of the
same kind are interchangeable; kind c has n of them. With ``a_c = E sum W_i`` over the kind,
``M_cd = E (sum_c W_i)(sum_d W_j)`` and ``v_c = n (E W_i^2 - E W_i W_j)``,

    E||sum W_i D_i||^2 = sum_cd M_cd <mean_c D, mean_d D> + sum_c v_c mean_c ||D_i - mean_c D||^2
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms import (
    CAFed,
    Constant,
    FedAU,
    FedAvg,
    LocalSgd,
    Projected,
    Safari,
    Unbiased,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.decimals import as_fraction, normalised
from fltheory.participation import FiniteChain
from fltheory.participation.base import Participation
from fltheory.participation.chain_structure import stationary_law
from fltheory.participation.process import process_of
from fltheory.participation.subsets_of_available import number_there
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import one_round as checker
from fltheory.worst_case.rounds.client_class import exact

# ------------------------------------------------------------ kinds of clients, and their weights


@dataclass(frozen=True)
class ClientKind:
    """A kind of interchangeable clients, whose losses may differ.

    Attributes
    ----------
    name : str
    n_clients : int or None
        None if the round is for every number of clients.
    share : Fraction
        The total weight of these clients in F.
    takes_part : bool
    """

    name: str
    n_clients: int | None
    share: Fraction
    takes_part: bool = True


@dataclass(frozen=True, eq=False)
class WeightMoments(ReadOnlyArrays):
    """Moments of the weights of each kind of client, without ``server_lr``.

    Attributes
    ----------
    mean : array, (C,)
        a.
    second : array, (C, C)
        M.
    spread : array, (C,)
        v.
    square : array, (C,)
        ``n E W_i^2``, the factor on independent noise of the clients.
    """

    mean: FloatArray
    second: FloatArray
    spread: FloatArray
    square: FloatArray


# ------------------------------------------------------------ participants drawn uniformly Settings
# are covered if all rounds are alike and clients are interchangeable. This means that rounds do not
# depend on the past, participants are drawn uniformly, weights are equal, and the model is never
# projected.


@dataclass(frozen=True)
class OneRound:
    """K local steps of m clients drawn from the eligible ones, or a step of the server.

    Attributes
    ----------
    n_clients : int or None
        N, including excluded clients, or None if the round is valid for every N with at least m
        eligible clients.
    excluded_share : Fraction
        The share of clients who never take part.
    participants : int
        m.
    local_steps : int
        K.
    client_lr, server_lr, assist_lr : Fraction
        Step of local SGD, factor on the averaged update, and the server's own step.
    q : Fraction
        Probability of a client round; 1 for FedAvg.
    """

    n_clients: int | None
    excluded_share: Fraction
    participants: int
    local_steps: int
    client_lr: Fraction
    server_lr: Fraction
    assist_lr: Fraction
    q: Fraction

    @classmethod
    def of(cls, algorithm: Algorithm | Schedule, participation: Participation) -> OneRound:
        """Return the round of an algorithm with its participation.

        Raises
        ------
        ValueError
            If the setting is not covered (the message says why), or if a step is not a fraction.
        """
        draw = process_of(participation).uniform_draw
        if draw is None:
            raise ValueError(
                "participation must be UniformSubset, got "
                f"{type(participation).__name__}: {_why_not(participation)}"
            )
        return cls(
            n_clients=participation.n_clients,
            excluded_share=Fraction(len(draw.excluded), participation.n_clients),
            participants=draw.size,
            **_steps(algorithm, everybody=draw.size == participation.n_clients),
        )

    @property
    def n_eligible(self) -> int | None:
        """Number of clients that can be drawn, or None for any number."""
        return None if self.n_clients is None else int(self.n_clients * (1 - self.excluded_share))

    @property
    def n_excluded(self) -> int | None:
        """Number of clients that never take part, or None for any number."""
        return None if self.n_clients is None else int(self.n_clients * self.excluded_share)

    @property
    def sampling_variance(self) -> Fraction:
        """The constant c in ``E||mean over the drawn - mean||^2 = c/n sum ||D_i - mean||^2``.

        For a round with any number of clients, c is the supremum, 1/m.
        """
        size, pool = self.participants, self.n_eligible
        if pool is None:
            return Fraction(1, size)
        return Fraction(pool - size, size * (pool - 1)) if pool > 1 else Fraction(0)

    @property
    def tells_clients_apart(self) -> bool:
        """Whether clients' differences matter; they do not if the model moves only along grad F.

        The model moves only along grad F if only the server takes steps, or if every client takes
        one step.
        """
        everybody = self.excluded_share == 0 and self.sampling_variance == 0
        return self.q > 0 and not (everybody and self.local_steps == 1)

    @property
    def kinds(self) -> tuple[ClientKind, ...]:
        """The kinds of clients: those that can be drawn, and those that cannot."""
        out = self.excluded_share
        eligible = ClientKind("eligible", self.n_eligible, 1 - out)
        excluded = ClientKind("excluded", self.n_excluded, out, takes_part=False)
        return (eligible, excluded) if out else (eligible,)

    @property
    def moments(self) -> WeightMoments:
        """The moments of weights. Each drawn client has weight 1/m, so weights add up to one."""
        first = np.eye(len(self.kinds))[0]
        spread, square = float(self.sampling_variance), float(self.noise_weight)
        return WeightMoments(first, np.outer(first, first), spread * first, square * first)

    @property
    def total_weight(self) -> Fraction:
        """The sum of all clients' weights, which is one."""
        return Fraction(1)

    @property
    def noise_weight(self) -> Fraction:
        """The factor on noise, ``E sum_i W_i^2 = 1/m``."""
        return Fraction(1, self.participants)

    @property
    def taking_part(self) -> Mapping[str, Any]:
        """The participation, in the format of certificates."""
        return {
            "participants": self.participants,
            "n_clients": "every" if self.n_clients is None else self.n_clients,
            "excluded_share": str(self.excluded_share),
        }

    @property
    def algorithm(self) -> FedAvg | Safari:
        """The algorithm, with its steps as floats."""
        client_lr, q = float(self.client_lr), float(self.q)
        if self.assist_lr == 0:
            return FedAvg(client_lr, self.local_steps, server_lr=float(self.server_lr))
        return Safari(q, client_lr, float(self.assist_lr), self.local_steps)

    def for_every_n_clients(self) -> OneRound:
        """Return the round for any number of clients with the same share of excluded ones."""
        return replace(self, n_clients=None)


def _steps(algorithm: Algorithm | Schedule, everybody: bool) -> Mapping[str, Any]:
    if isinstance(algorithm, LocalSgd):
        algorithm = _single_steps(algorithm, everybody)
    if isinstance(algorithm, Safari):
        q = exact("q", algorithm.q)
        return {
            "local_steps": algorithm.local_steps,
            "client_lr": exact("client_lr", algorithm.client_lr, above=0),
            "server_lr": Fraction(1),
            "assist_lr": exact("assist_lr", algorithm.assist_lr, above=0),
            "q": q,
        }
    if isinstance(algorithm, FedAvg):
        return {
            "local_steps": algorithm.local_steps,
            "client_lr": exact("client_lr", algorithm.client_lr, above=0),
            "server_lr": exact("server_lr", algorithm.server_lr, above=0),
            "assist_lr": Fraction(0),
            "q": Fraction(1),
        }
    raise ValueError(
        f"algorithm must be FedAvg or Safari, got {type(algorithm).__name__}: "
        f"{_why_not_run(algorithm)}"
    )


def _single_steps(method: LocalSgd, everybody: bool) -> FedAvg:
    """Return local SGD that averages after every step, as an instance of FedAvg."""
    if not (method.averages_after(1) and method.averages_after(2)):
        raise ValueError(
            "local_steps must be 1 for LocalSgd, whose rounds are single steps, averaged from the "
            f"first on, got {method!r}"
        )
    if not isinstance(method.step_sizes, Constant):
        raise ValueError(
            "step_sizes must be Constant for one inequality to hold in every round, got "
            f"{method.step_sizes!r}"
        )
    if len(set(method.aggregation_weights)) > 1 or not (everybody or method.counts_draws):
        raise ValueError(
            "aggregation_weights must be equal, and every client must step, for LocalSgd to be "
            "FedAvg"
        )
    return FedAvg(method.step_sizes.at(1), 1)


def _why_not(participation: Participation) -> str:
    if not participation.independent:
        return "its rounds depend on the past, and one inequality must hold for every round"
    return "clients must be interchangeable, drawn uniformly and in a fixed number"


def _why_not_run(algorithm: Algorithm | Schedule) -> str:
    if isinstance(algorithm, FedAU):
        return "its weights are random and depend on the past"
    if isinstance(algorithm, Projected):
        return "a projection is not a linear map of gradients"
    if isinstance(algorithm, Schedule):
        return "its rounds differ, and one inequality must hold for every round"
    return "fltheory has no form of its round as a linear map of a model and gradients"


# ------------------------------------------------------------ clients available independently
# Settings are covered if all rounds are alike and the clients of a group are interchangeable. This
# means independent availability, fixed weights or the mean over those present, and a model that is
# never projected.

Averaging: TypeAlias = Literal["weights", "present"]
_MOST_MEMBERS = 200


@dataclass(frozen=True)
class AvailabilityGroup:
    """Clients of equal availability, importance and weight.

    Attributes
    ----------
    n_clients : int
    availability : Fraction
        p, in (0, 1], the probability of being present.
    target_weight : Fraction
        alpha of each client, above 0.
    weight : Fraction
        The server's factor on the update of each client; it is 1 if the server averages over the
        clients present.
    correlation : Fraction
        lambda, in [0, 1). A client that is present stays with probability
        ``lambda + (1 - lambda) p``, and one that is absent comes with probability
        ``(1 - lambda) p``. If rounds are independent, lambda is 0.

    Raises
    ------
    ValueError
        If a number is not a fraction or is out of range.
    """

    n_clients: int
    availability: Fraction
    target_weight: Fraction
    weight: Fraction
    correlation: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=1)
        ranges = {"availability": 0, "target_weight": 0, "weight": None, "correlation": None}
        for name, above in ranges.items():
            object.__setattr__(self, name, exact(name, getattr(self, name), above=above))
        if self.availability > 1:
            raise ValueError(f"availability must be at most 1, got {self.availability}")
        if self.correlation >= 1:
            raise ValueError(f"correlation must be below 1, got {self.correlation}")

    @property
    def stays(self) -> Fraction:
        """Probability that a client that is present takes part in the next round."""
        return self.correlation + self.comes

    @property
    def comes(self) -> Fraction:
        """Probability that a client that is absent takes part in the next round."""
        return (1 - self.correlation) * self.availability


@dataclass(frozen=True)
class ParticipantChain:
    """A Markov chain of sets of participants; several states may have the same set.

    Attributes
    ----------
    masks : tuple of tuples of bool, (M, N)
    transition : tuple of tuples of Fraction, (M, M)
        Transition probabilities; each row belongs to the current state.
    law : tuple of Fraction, (M,)
        The stationary distribution.
    """

    masks: tuple[tuple[bool, ...], ...]
    transition: tuple[tuple[Fraction, ...], ...]
    law: tuple[Fraction, ...]

    @classmethod
    def of(cls, chain: FiniteChain) -> ParticipantChain:
        """Return a chain in fractions; rows are rescaled to sum to one.

        Raises
        ------
        ValueError
            If the chain has a given start, or more states than proofs cover.
        """
        if chain.start is not None:
            raise ValueError("participation must have no start: its first round must be stationary")
        if chain.n_states * chain.n_clients > _MOST_MEMBERS:
            raise ValueError(
                "number of states times number of clients of participation must be at most "
                f"{_MOST_MEMBERS}, got {chain.n_states} x {chain.n_clients} = "
                f"{chain.n_states * chain.n_clients}"
            )
        rows = [normalised(row) for row in chain.transition.tolist()]
        law = stationary_law(rows).tolist()
        masks = tuple(tuple(bool(one) for one in mask) for mask in chain.state_masks)
        return cls(masks, tuple(map(tuple, rows)), tuple(law))

    @property
    def availability(self) -> list[Fraction]:
        """The share of rounds in which each client is present."""
        return [
            sum((p for p, mask in zip(self.law, self.masks, strict=True) if mask[i]), Fraction(0))
            for i in range(len(self.masks[0]))
        ]

    @property
    def correlation(self) -> float:
        """The modulus of the second eigenvalue, approximately."""
        sizes = np.abs(np.linalg.eigvals(np.array(self.transition, dtype=float)))
        return min(float(np.sort(sizes)[-2]) if len(sizes) > 1 else 0.0, 0.999)


@dataclass(frozen=True)
class AveragingRound:
    """K local steps of the clients present, summed with weights or averaged.

    Attributes
    ----------
    groups : tuple of AvailabilityGroup
        The groups; the target weights of all clients add up to 1.
    averaging : {"weights", "present"}
        "weights" gives ``x + server_lr sum w_i (y_i - x)``; "present" gives the mean over the
        clients present, or x if nobody is present.
    local_steps : int
    client_lr, server_lr : Fraction
    chain : ParticipantChain or None
        The chain that determines who takes part, if clients are not independent. Each client is
        then a group.

    Raises
    ------
    ValueError
        If a number is out of range, target weights do not add up to 1, or clients have weights
        although the server averages over those present.
    """

    groups: tuple[AvailabilityGroup, ...]
    averaging: Averaging
    local_steps: int
    client_lr: Fraction
    server_lr: Fraction
    chain: ParticipantChain | None = None

    def __post_init__(self) -> None:
        validation.one_of("averaging", self.averaging, get_args(Averaging))
        validation.whole_number("local_steps", self.local_steps, at_least=1)
        for name in ("client_lr", "server_lr"):
            object.__setattr__(self, name, exact(name, getattr(self, name), above=0))
        total = sum((own.n_clients * own.target_weight for own in self.groups), Fraction(0))
        if total != 1:
            raise ValueError(f"target weights of all clients must add up to 1, got {total}")
        if self.averaging == "present" and any(own.weight != 1 for own in self.groups):
            raise ValueError("weight must be 1 where the server averages over those present")

    def _check_work(self) -> None:
        """Refuse rounds that the checker of proofs would reject or misread."""
        if self.is_correlated:
            raise ValueError(
                "a_round must have clients that are uncorrelated in time for one inequality to "
                "hold in every round"
            )
        rows = len(self.groups) * (self.local_steps + 1)
        if rows > checker.MOST_ROWS:
            raise ValueError(
                "groups of equal availability and weight, times local_steps + 1, must be at most "
                f"{checker.MOST_ROWS}, got {rows}"
            )
        if self.averaging == "weights":
            return
        counts = [own.n_clients for own in self.groups]
        if sum(counts) > checker.MOST_PRESENT:
            raise ValueError(
                "to average over those present, there must be at most "
                f"{checker.MOST_PRESENT} clients, got {sum(counts)}"
            )
        numbers = math.prod(count + 1 for count in counts)
        if numbers > checker.MOST_NUMBERS:
            raise ValueError(
                "to average over those present, the groups must have at most "
                f"{checker.MOST_NUMBERS} combinations of numbers of clients present, got {numbers}"
            )

    @classmethod
    def of(
        cls,
        algorithm: Algorithm | Schedule,
        participation: Participation,
        target_weights: ArrayLike | None = None,
    ) -> AveragingRound:
        """Return the round of an algorithm with its participation and the objective.

        Target weights default to those of the algorithm if it has any, otherwise to equal weights.

        Raises
        ------
        ValueError
            If the setting is not covered (the message says why), or a number is not a fraction.
        """
        chain = (
            ParticipantChain.of(participation) if isinstance(participation, FiniteChain) else None
        )
        chains = process_of(participation).client_chains
        if chain is None and chains is None:
            raise ValueError(
                "participation must be Bernoulli, MarkovOnOff or a FiniteChain, got "
                f"{type(participation).__name__}: clients must be present independently of one "
                "another or by a Markov chain"
            )
        never = np.flatnonzero(participation.marginals == 0)
        if never.size:
            raise ValueError(
                "participation must have every client present with positive probability, got "
                f"availability 0 for client {never[0]}"
            )
        if chains is not None and (chains.first != participation.marginals).any():
            raise ValueError("participation must have no start: its first round must be stationary")
        if not isinstance(algorithm, (WeightedFedAvg, Unbiased, FedAvg)):
            raise ValueError(
                "algorithm must be WeightedFedAvg, Unbiased or FedAvg, got "
                f"{type(algorithm).__name__}: {_why_not_averaged(algorithm)}"
            )
        n_clients = participation.n_clients
        available = [as_fraction(p) for p in participation.marginals.tolist()]
        correlated = [Fraction(0)] * n_clients
        if chain is not None:
            available = chain.availability
        elif chains is not None:
            correlated = [
                as_fraction(nu) if p < 1 else Fraction(0)
                for p, nu in zip(available, chains.correlation.tolist(), strict=True)
            ]
        targets = _targets(algorithm, n_clients, target_weights)
        weights = _weights(algorithm, available, targets)
        clients = list(zip(available, targets, weights, correlated, strict=True))
        found = Counter(clients).items() if chain is None else [(one, 1) for one in clients]
        return cls(
            tuple(AvailabilityGroup(count, *numbers) for numbers, count in found),
            "present" if isinstance(algorithm, FedAvg) else "weights",
            algorithm.local_steps,
            exact("client_lr", algorithm.client_lr, above=0),
            exact("server_lr", algorithm.server_lr, above=0),
            chain,
        )

    @property
    def is_correlated(self) -> bool:
        """Whether presence depends on who was present in the previous round."""
        return self.chain is not None or any(own.correlation for own in self.groups)

    @property
    def correlations(self) -> list[float]:
        """The approximate correlation of each group's presence between consecutive rounds."""
        if self.chain is not None:
            return [self.chain.correlation] * len(self.groups)
        return [float(own.correlation) for own in self.groups]

    @property
    def total_weight(self) -> Fraction:
        """The sum of all clients' weights, which is 1 for a mean."""
        if self.averaging == "present":
            return Fraction(1)
        return sum((own.n_clients * own.weight for own in self.groups), Fraction(0))

    @property
    def noise_weight(self) -> Fraction:
        """The factor on noise, ``E sum_i W_i^2``; for a mean over S, ``E[1/|S|; |S| > 0]``."""
        if self.averaging == "present":
            law = number_there(
                [own.availability for own in self.groups for _ in range(own.n_clients)]
            )
            return sum(
                (chance / number for number, chance in enumerate(law) if number), Fraction(0)
            )
        return sum(
            (own.n_clients * own.availability * own.weight**2 for own in self.groups), Fraction(0)
        )

    @property
    def q(self) -> Fraction:
        """The probability of a client round, which is one because the server takes no steps."""
        return Fraction(1)

    @property
    def assist_lr(self) -> Fraction:
        """The server's own step, which is zero."""
        return Fraction(0)

    @property
    def tells_clients_apart(self) -> bool:
        """Whether differences between clients matter, which they do in general."""
        return True

    @property
    def kinds(self) -> tuple[ClientKind, ...]:
        """The kinds of clients, which are the groups."""
        return tuple(
            ClientKind(str(c), own.n_clients, own.n_clients * own.target_weight, own.weight > 0)
            for c, own in enumerate(self.groups)
        )

    @property
    def moments(self) -> WeightMoments:
        """The moments of weights; for a mean, from convolutions of binomial distributions.

        Raises
        ------
        ValueError
            If there are too many groups and local steps for a proof.
        """
        self._check_work()
        return _weight_moments(self)

    @property
    def taking_part(self) -> Mapping[str, Any]:
        """The participation, in the format of certificates."""
        fractions = ("availability", "target_weight", "weight")
        return {
            "averaging": self.averaging,
            "groups": [
                {"n_clients": own.n_clients} | {name: str(getattr(own, name)) for name in fractions}
                for own in self.groups
            ],
        }

    def weighted(self, weights: Sequence[Fraction]) -> AveragingRound:
        """Return the round with different weights, one per group."""
        groups = zip(self.groups, weights, strict=True)
        return replace(
            self,
            averaging="weights",
            groups=tuple(replace(own, weight=weight) for own, weight in groups),
        )


def _weight_moments(a_round: AveragingRound) -> WeightMoments:
    counts = np.array([own.n_clients for own in a_round.groups], dtype=np.float64)
    p = np.array([float(own.availability) for own in a_round.groups])
    if a_round.averaging == "weights":
        weights = np.array([float(own.weight) for own in a_round.groups])
        mean = counts * p * weights
        spread = counts * weights**2 * p * (1 - p)
        second = np.outer(mean, mean) + np.diag(spread)
        return WeightMoments(mean, second, spread, counts * weights**2 * p)
    one, ones = p.copy(), p.copy()
    for c in range(len(p)):
        others = _number(counts, p, [c])
        at = 1 / np.arange(1, len(others) + 1)
        one[c], ones[c] = p[c] * (others @ at), p[c] * (others @ at**2)
    together = np.zeros((len(p), len(p)))
    for c in range(len(p)):
        for d in range(len(p)):
            if c != d or counts[c] > 1:
                others = _number(counts, p, [c, d])
                together[c, d] = p[c] * p[d] * (others @ (2.0 + np.arange(len(others))) ** -2)
    pairs = np.outer(counts, counts) - np.diag(counts)
    spread = counts * (ones - np.diag(together))
    second = pairs * together + np.diag(counts * ones)
    return WeightMoments(counts * one, second, spread, counts * ones)


def _number(counts: FloatArray, p: FloatArray, without: list[int]) -> FloatArray:
    """Return the distribution of the number present, without one client of each listed group."""
    from scipy.stats import binom

    law = np.ones(1)
    for c, (count, chance) in enumerate(zip(counts, p, strict=True)):
        left = int(count) - without.count(c)
        law = np.convolve(law, binom.pmf(np.arange(left + 1), left, chance))
    return law


def _why_not_averaged(algorithm: Any) -> str:
    if isinstance(algorithm, CAFed):
        return "whom it leaves out depends on the past; WeightedFedAvg takes fixed weights"
    if isinstance(algorithm, Projected):
        return "a projection is not a linear map of gradients"
    if isinstance(algorithm, Schedule):
        return "its rounds differ, and one inequality must hold for every round"
    return (
        "its round is neither a sum of the participants' updates with fixed weights nor their mean"
    )


def _targets(algorithm: Any, n_clients: int, given: ArrayLike | None) -> list[Fraction]:
    own = algorithm.target_weights if isinstance(algorithm, Unbiased) else None
    if given is None and own is None:
        return [Fraction(1, n_clients)] * n_clients
    values = np.asarray(own if given is None else given, dtype=object).tolist()
    targets = [exact("target_weights", value, above=0) for value in values]
    if len(targets) != n_clients:
        raise ValueError(f"target_weights must have one entry for each of the {n_clients} clients")
    if own is not None and targets != [as_fraction(value) for value in own.tolist()]:
        raise ValueError("target_weights must be the algorithm's own")
    total = sum(targets, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise ValueError(f"target_weights must add up to 1, got {float(total):.12g}")
    # Numbers such as 1/3 have no finite decimals, so the rounding error is distributed.
    return [target / total for target in targets]


def _weights(algorithm: Any, available: list[Fraction], targets: list[Fraction]) -> list[Fraction]:
    if isinstance(algorithm, FedAvg):
        return [Fraction(1)] * len(available)
    if isinstance(algorithm, Unbiased):
        return [target / p for target, p in zip(targets, available, strict=True)]
    weights = [exact("aggregation_weights", w) for w in algorithm.aggregation_weights]
    if len(weights) != len(available):
        raise ValueError(
            f"aggregation_weights must have one entry for each of the {len(available)} clients"
        )
    return weights


Played: TypeAlias = OneRound | AveragingRound
"""One round in fractions, whoever takes part."""

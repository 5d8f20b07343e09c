"""One round of FedAvg or SAFARI, in fractions.

Covered is what makes rounds alike and clients interchangeable: rounds that do not depend on the
past, participants drawn uniformly, equal weights, and a model that is never projected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory.algorithms import Constant, FedAU, FedAvg, LocalSgd, Projected, Safari
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.participation.base import Participation
from fltheory.participation.process import process_of
from fltheory.worst_case.rounds.client_class import exact
from fltheory.worst_case.rounds.played import ClientKind, WeightMoments


@dataclass(frozen=True)
class OneRound:
    """K local steps of m clients drawn from those eligible, or a step of the server's.

    Attributes
    ----------
    n_clients : int or None
        N, excluded ones included; None for every number from m eligible ones on.
    excluded_share : Fraction
        The share of clients who never take part.
    participants : int
        m.
    local_steps : int
        K.
    client_lr, server_lr, assist_lr : Fraction
        Step of local SGD, factor on the averaged update, and the server's own step.
    q : Fraction
        Probability of a clients' round; 1 for FedAvg.
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
        """Read a round off an algorithm and its participation.

        Raises
        ------
        ValueError
            For what is not covered, with the reason, and for steps that are no fractions.
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
        """How many clients can be drawn, None for any number."""
        return None if self.n_clients is None else int(self.n_clients * (1 - self.excluded_share))

    @property
    def n_excluded(self) -> int | None:
        """How many clients never take part, None for any number."""
        return None if self.n_clients is None else int(self.n_clients * self.excluded_share)

    @property
    def sampling_variance(self) -> Fraction:
        """C with ``E||mean over the drawn - mean||^2 = c/n sum ||D_i - mean||^2``.

        For every number of clients it is its supremum 1/m.
        """
        size, pool = self.participants, self.n_eligible
        if pool is None:
            return Fraction(1, size)
        return Fraction(pool - size, size * (pool - 1)) if pool > 1 else Fraction(0)

    @property
    def tells_clients_apart(self) -> bool:
        """Whether it matters how clients differ: not if the model moves along grad F alone.

        So it does where only the server steps, and where every client takes one step.
        """
        everybody = self.excluded_share == 0 and self.sampling_variance == 0
        return self.q > 0 and not (everybody and self.local_steps == 1)

    @property
    def kinds(self) -> tuple[ClientKind, ...]:
        """Clients who can be drawn, and those who cannot."""
        out = self.excluded_share
        eligible = ClientKind("eligible", self.n_eligible, 1 - out)
        excluded = ClientKind("excluded", self.n_excluded, out, takes_part=False)
        return (eligible, excluded) if out else (eligible,)

    @property
    def moments(self) -> WeightMoments:
        """Weights of those drawn are 1/m, and add up to one."""
        first = np.eye(len(self.kinds))[0]
        spread, square = float(self.sampling_variance), float(self.noise_weight)
        return WeightMoments(first, np.outer(first, first), spread * first, square * first)

    @property
    def total_weight(self) -> Fraction:
        """One."""
        return Fraction(1)

    @property
    def noise_weight(self) -> Fraction:
        """``E sum_i W_i^2 = 1/m``."""
        return Fraction(1, self.participants)

    @property
    def taking_part(self) -> Mapping[str, Any]:
        """Who takes part, as certificates have it."""
        return {
            "participants": self.participants,
            "n_clients": "every" if self.n_clients is None else self.n_clients,
            "excluded_share": str(self.excluded_share),
        }

    @property
    def algorithm(self) -> FedAvg | Safari:
        """The algorithm with its own code, its steps as floats."""
        client_lr, q = float(self.client_lr), float(self.q)
        if self.assist_lr == 0:
            return FedAvg(client_lr, self.local_steps, server_lr=float(self.server_lr))
        return Safari(q, client_lr, float(self.assist_lr), self.local_steps)

    def for_every_n_clients(self) -> OneRound:
        """Return the round for every number of clients at this share of excluded ones."""
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
    """Return local SGD that averages after every step as FedAvg."""
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
            "aggregation_weights must be equal, and everybody must step, for LocalSgd to be FedAvg"
        )
    return FedAvg(method.step_sizes.at(1), 1)


def _why_not(participation: Participation) -> str:
    if not participation.independent:
        return "its rounds depend on the past, and one inequality is to hold for each of them"
    return "clients must be interchangeable, drawn uniformly and in a fixed number"


def _why_not_run(algorithm: Algorithm | Schedule) -> str:
    if isinstance(algorithm, FedAU):
        return "its weights are random and depend on the past"
    if isinstance(algorithm, Projected):
        return "a projection is no linear map of gradients"
    if isinstance(algorithm, Schedule):
        return "its rounds differ, and one inequality is to hold for each of them"
    return "its round is not written as a linear map of a model and gradients here"

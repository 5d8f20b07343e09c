"""What a bound is about: a class of clients, and one round of FedAvg or SAFARI in fractions.

Covered is what makes rounds alike and clients interchangeable: rounds that do not depend on the
past, participants drawn uniformly, equal weights, and a model that is never projected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from fltheory import validation
from fltheory.algorithms import FedAU, FedAvg, Projected, Safari
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.decimals import as_fraction
from fltheory.participation import UniformSubset
from fltheory.participation.base import Participation

Heterogeneity: TypeAlias = Literal["optimum", "everywhere"]


@dataclass(frozen=True)
class ClientClass:
    """All clients with L-smooth, mu-strongly convex losses, in any dimension.

    Numbers are taken as what was written: a `Fraction`, a whole number, text such as ``"0.1"`` or
    ``"1/3"``, or a float, which stands for its shortest decimal.

    Parameters
    ----------
    L, mu : number
        Smoothness and strong convexity of every client, ``0 <= mu < L``.
    heterogeneity : {"optimum", "everywhere"}
        How clients may differ. "optimum": ``1/N sum_i ||grad F_i(x*)||^2 <= dissimilarity^2``, and
        the program is then exact. "everywhere": ``||grad F_i(x) - grad F(x)|| <= dissimilarity``
        for every client and x (SA-FL's sigma_G), of which the program uses the model and x* only,
        so that it proves bounds but refutes none.
    dissimilarity : number
        sigma_* or sigma_G, above 0. No rate or coefficient depends on it, floors and residuals do.
    sigma, server_sigma : number
        Noise of the clients' and of the server's gradients, ``E||noise||^2 <= sigma^2``.

    Raises
    ------
    ValueError
        For constants that are no fractions or out of range.

    Examples
    --------
    >>> ClientClass(1, "0.1").condition_number
    Fraction(10, 1)
    """

    L: Fraction
    mu: Fraction
    heterogeneity: Heterogeneity = "optimum"
    _: KW_ONLY
    dissimilarity: Fraction = Fraction(1)
    sigma: Fraction = Fraction(0)
    server_sigma: Fraction = Fraction(0)

    def __init__(
        self,
        L: Any,
        mu: Any,
        heterogeneity: Heterogeneity = "optimum",
        sigma: Any = 0,
        server_sigma: Any = 0,
        *,
        dissimilarity: Any = 1,
    ) -> None:
        validation.one_of("heterogeneity", heterogeneity, get_args(Heterogeneity))
        numbers = {
            "L": exact("L", L, above=0),
            "mu": exact("mu", mu),
            "dissimilarity": exact("dissimilarity", dissimilarity, above=0),
            "sigma": exact("sigma", sigma),
            "server_sigma": exact("server_sigma", server_sigma),
        }
        if numbers["mu"] >= numbers["L"]:
            raise ValueError(f"mu must be below L = {numbers['L']}, got {mu!r}")
        object.__setattr__(self, "heterogeneity", heterogeneity)
        for name, value in numbers.items():
            object.__setattr__(self, name, value)

    @property
    def condition_number(self) -> Fraction:
        """L/mu.

        Raises
        ------
        ZeroDivisionError
            If mu is 0.
        """
        return self.L / self.mu

    @property
    def is_exact(self) -> bool:
        """Whether the program's value is attained, so that what it cannot prove is false."""
        return self.heterogeneity == "optimum" and self.sigma == 0


@dataclass(frozen=True)
class SmoothClass:
    """All clients with L-smooth losses, convex or not, in any dimension.

    ``||grad F_i(x) - grad F(x)|| <= dissimilarity`` for every client and x, of which the program
    uses the model before a round only. Numbers are taken as by `ClientClass`.

    Parameters
    ----------
    L : number
        Smoothness of every client and of F.
    sigma, server_sigma : number
        Noise of the clients' and of the server's gradients, ``E||noise||^2 <= sigma^2``.
    dissimilarity : number
        sigma_G, above 0.

    Raises
    ------
    ValueError
        For constants that are no fractions or out of range.

    Examples
    --------
    >>> SmoothClass(2).mu
    Fraction(-2, 1)
    """

    L: Fraction
    sigma: Fraction = Fraction(0)
    server_sigma: Fraction = Fraction(0)
    _: KW_ONLY
    dissimilarity: Fraction = Fraction(1)

    def __init__(
        self, L: Any, sigma: Any = 0, server_sigma: Any = 0, *, dissimilarity: Any = 1
    ) -> None:
        for name, value, above in (
            ("L", L, 0),
            ("dissimilarity", dissimilarity, 0),
            ("sigma", sigma, None),
            ("server_sigma", server_sigma, None),
        ):
            object.__setattr__(self, name, exact(name, value, above=above))

    @property
    def mu(self) -> Fraction:
        """The least curvature of a client, ``-L``."""
        return -self.L

    @property
    def heterogeneity(self) -> Heterogeneity:
        """Dissimilarity is bounded everywhere: there need not be an optimum."""
        return "everywhere"


def exact(name: str, value: Any, *, above: int | None = None) -> Fraction:
    """Return the fraction that somebody wrote, not negative, or above a number.

    Raises
    ------
    ValueError
        If it is no fraction, or out of range.
    """
    must_be = "at least 0" if above is None else f"above {above}"
    try:
        number = Fraction(value) if isinstance(value, str) else as_fraction(value)
    except (ValueError, ZeroDivisionError):
        number = None
    if number is None or isinstance(value, bool):
        raise ValueError(
            f"{name} must be a fraction {must_be}, as a Fraction, a whole number, a decimal or "
            f"text like '1/3', got {value!r}"
        )
    if number < 0 or (above is not None and number <= above):
        raise ValueError(f"{name} must be {must_be}, got {value!r}")
    return number


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
        if not isinstance(participation, UniformSubset):
            raise ValueError(
                "participation must be UniformSubset, got "
                f"{type(participation).__name__}: {_why_not(participation)}"
            )
        excluded: Collection[int] = participation.excluded
        return cls(
            n_clients=participation.n_clients,
            excluded_share=Fraction(len(excluded), participation.n_clients),
            participants=participation.size,
            **_steps(algorithm),
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
    def algorithm(self) -> FedAvg | Safari:
        """The algorithm with its own code, its steps as floats."""
        client_lr, q = float(self.client_lr), float(self.q)
        if self.assist_lr == 0:
            return FedAvg(client_lr, self.local_steps, server_lr=float(self.server_lr))
        return Safari(q, client_lr, float(self.assist_lr), self.local_steps)

    def for_every_n_clients(self) -> OneRound:
        """Return the round for every number of clients at this share of excluded ones."""
        return replace(self, n_clients=None)


def _steps(algorithm: Algorithm | Schedule) -> Mapping[str, Any]:
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

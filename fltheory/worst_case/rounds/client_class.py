"""Classes of clients for which bounds are proved, with constants in fractions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from fltheory import validation
from fltheory.decimals import as_fraction, written_fraction
from fltheory.validation import shown

# Far beyond this limit the solver's floats overflow or underflow.
_SMALLEST = Fraction(1, 10**100)
_LARGEST_RATIO = 10**10

Heterogeneity: TypeAlias = Literal["optimum", "everywhere"]


@dataclass(frozen=True)
class ClientClass:
    """All clients with L-smooth, mu-strongly convex losses, in any dimension.

    Numbers are exact. They may be given as a `Fraction`, an integer, text such as ``"0.1"`` or
    ``"1/3"``, or a float, which stands for its shortest decimal.

    Parameters
    ----------
    L, mu : number
        Smoothness and strong convexity of every client, ``0 <= mu < L``.
    heterogeneity : {"optimum", "everywhere"}
        How clients may differ. "optimum" means ``1/N sum_i ||grad F_i(x*)||^2 <= dissimilarity^2``;
        the program is then exact. "everywhere" means
        ``||grad F_i(x) - grad F(x)|| <= dissimilarity`` for every client and x (SA-FL's sigma_G).
        The program uses this only at the model and at x*, so it can prove bounds but not refute
        them.
    dissimilarity : number
        sigma_* or sigma_G, above 0. Floors and residuals depend on it, but rates and coefficients
        do not.
    sigma, server_sigma : number
        Noise of the clients' and of the server's gradients, ``E||noise||^2 <= sigma^2``.

    Raises
    ------
    ValueError
        If a constant is not a fraction or is out of range.

    Examples
    --------
    >>> ClientClass(1, "0.1").mu
    Fraction(1, 10)
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
    def is_exact(self) -> bool:
        """Whether the program's value is attained, so that a bound it cannot prove is false."""
        return self.heterogeneity == "optimum" and self.sigma == 0


@dataclass(frozen=True)
class SmoothClass:
    """All clients with L-smooth losses, convex or not, in any dimension.

    The bound ``||grad F_i(x) - grad F(x)|| <= dissimilarity`` holds for every client and x. The
    program uses it only at the model before a round. Numbers are exact, as in `ClientClass`.

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
        If a constant is not a fraction or is out of range.

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
        """The smallest possible curvature of a client, ``-L``."""
        return -self.L

    @property
    def heterogeneity(self) -> Heterogeneity:
        """Always "everywhere", because there need not be an optimum at which to bound it."""
        return "everywhere"


def check_ratio(client_class: ClientClass | SmoothClass) -> None:
    """Raise ValueError if L/mu is so large that float64 cannot tell rates from 1."""
    if client_class.mu > 0 and _LARGEST_RATIO * client_class.mu < client_class.L:
        raise ValueError(
            "client_class must have L at most 1e10 mu, beyond which float64 cannot tell rates from "
            f"1, got L = {client_class.L} and mu = {client_class.mu}"
        )


def exact(name: str, value: Any, *, above: int | None = None) -> Fraction:
    """Return a number as a fraction, after checking that it is at least 0, or more than ``above``.

    Raises
    ------
    ValueError
        If it is not a fraction or is out of range.
    """
    must_be = "at least 0" if above is None else f"above {above}"
    try:
        number = written_fraction(value) if isinstance(value, str) else as_fraction(value)
    except ValueError:
        number = None
    if number is None or isinstance(value, bool):
        raise ValueError(
            f"{name} must be a fraction {must_be}, as a Fraction, a whole number, a decimal or "
            f"text like '1/3', got {shown(value)}"
        )
    if number < 0 or (above is not None and number <= above):
        got = value if isinstance(value, Fraction) else repr(value)
        raise ValueError(f"{name} must be {must_be}, got {got}")
    if number and not _SMALLEST <= number <= 1 / _SMALLEST:
        raise ValueError(
            f"{name} must be 0 or from 1e-100 to 1e100, the range that a solver takes, got "
            f"{value!r}"
        )
    return number

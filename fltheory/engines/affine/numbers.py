"""The numbers on which an algorithm's round can be run: float64, fractions, or balls.

A *ball* is a midpoint with a radius that covers all rounding errors so far (Johansson, Arb, IEEE
Trans. Comput. 2017). The inputs of a run, such as a step size or an optimum, are decimals that
somebody wrote down. So a float stands for its shortest decimal, and 0.1 is one tenth. But a float
that arises *inside* an exact round has already been rounded, so mixing it with exact numbers is an
error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, is_dataclass
from fractions import Fraction
from threading import RLock
from typing import Any, ClassVar, TypeAlias

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from fltheory.content import attributes_of
from fltheory.decimals import as_fraction

Entries: TypeAlias = NDArray[Any]
"""Array entries of one arithmetic: float64 or objects."""


_PRECISION = RLock()
_DIGITS, _ODD, _LOST = 2**52 - 1, -0x61C8864680B583EB, 55
_LAST = 63


class InexactRoundError(ValueError):
    """A round cannot be run exactly: it makes a float, or balls cannot decide a comparison."""


class Compared:
    """Comparison operators that pass on both the relation and its negation."""

    __slots__ = ()

    def _compared(
        self, other: Any, relation: Callable[..., Any], contrary: Callable[..., Any]
    ) -> Any:
        raise NotImplementedError

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt, operator.ge)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le, operator.gt)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt, operator.le)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge, operator.lt)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq, operator.ne)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne, operator.eq)


class ExactNumber(Compared):
    """A fraction or a ball that refuses to be mixed with floats.

    Parameters
    ----------
    value : fmpq or arb
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def _combined(self, other: Any, combine: Callable[[Any, Any], Any]) -> Any:
        raw = raw_number(other)
        return NotImplemented if raw is NotImplemented else type(self)(combine(self.value, raw))

    def __add__(self, other: Any) -> Any:
        kind = type(self)
        # Matrix products consist mostly of sums and products of numbers of one kind.
        if type(other) is kind:
            return kind(self.value + other.value)
        return self._combined(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self._combined(other, lambda mine, theirs: theirs + mine)

    def __sub__(self, other: Any) -> Any:
        return self._combined(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._combined(other, lambda mine, theirs: theirs - mine)

    def __mul__(self, other: Any) -> Any:
        kind = type(self)
        if type(other) is kind:
            return kind(self.value * other.value)
        return self._combined(other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        return self._combined(other, operator.mul)

    def __truediv__(self, other: Any) -> Any:
        return self._combined(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combined(other, lambda mine, theirs: theirs / mine)

    def __floordiv__(self, other: Any) -> Any:
        return self._combined(other, floor_divided)

    def __mod__(self, other: Any) -> Any:
        return self._combined(other, rest)

    def __floor__(self) -> int:
        whole = floor_divided(self.value, fmpq(1))
        return int(whole.fmpq().p if isinstance(whole, arb) else whole.p)

    def __ceil__(self) -> int:
        return -math.floor(-self)

    def __trunc__(self) -> int:
        return math.floor(self) if self >= 0 else math.ceil(self)

    __int__ = __trunc__

    def __round__(self, digits: int | None = None) -> int:
        if digits is not None:
            raise InexactRoundError(
                f"round() to {digits} digits is not available for exact numbers"
            )
        down = math.floor(self)
        # Halves are rounded to the even neighbour, as Python does.
        up = self - down > fmpq(1, 2) or (down % 2 == 1 and self - down == fmpq(1, 2))
        return down + int(up)

    def rint(self) -> ExactNumber:
        """Return the nearest integer; NumPy calls this method."""
        return type(self)(fmpq(round(self)))

    def __pow__(self, exponent: Any) -> Any:
        return type(self)(whole_power(self.value, operator.index(exponent)))

    def sqrt(self) -> ExactNumber:
        """Return the square root; NumPy calls this method.

        Raises
        ------
        InexactRoundError
            If the number is a fraction whose square root is not a fraction.
        """
        arithmetic = Balls(ctx.prec) if isinstance(self.value, arb) else RATIONAL
        return type(self)(arithmetic.root(self.value))

    @property
    def p(self) -> Any:
        """Numerator of a fraction; a ball has none."""
        return self.value.p

    @property
    def q(self) -> Any:
        """Denominator of a fraction; a ball has none."""
        return self.value.q

    def maximum(self, other: ExactNumber) -> ExactNumber:
        """Return the larger of two numbers or, for overlapping balls, a ball that contains it."""
        values = self.value, other.value
        if any(isinstance(value, arb) for value in values):
            return type(self)(arb(values[0]).max(arb(values[1])))
        return type(self)(max(values))

    def __neg__(self) -> ExactNumber:
        return type(self)(-self.value)

    def __abs__(self) -> ExactNumber:
        return type(self)(abs(self.value))

    def _compared(
        self, other: Any, relation: Callable[..., bool], contrary: Callable[..., bool]
    ) -> Any:
        if isinstance(other, float | np.floating) and math.isinf(other):
            return relation(0.0, float(other))
        raw = raw_number(other)
        if raw is NotImplemented:
            return NotImplemented
        return decided(self.value, raw, relation, contrary)

    def __hash__(self) -> int:
        # Equal numbers have equal hashes, and so do an integer and the fraction equal to it.
        if isinstance(self.value, fmpq):
            return hash(Fraction(int(self.value.p), int(self.value.q)))
        exact = self.value.fmpq() if self.value.is_exact() else None
        if exact is None:
            return hash(identity_of(self.value))
        return hash(Fraction(int(exact.p), int(exact.q)))

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __float__(self) -> float:
        # This is only for checks of arguments; a float that is fed back into the round is refused
        # there.
        return as_float(self.value)

    def _sympy_(self) -> sp.Rational:
        # Otherwise SymPy would turn it into a float, which hides that it was exact.
        if not isinstance(self.value, fmpq):
            raise InexactRoundError(f"the ball {self.value} cannot be converted to a SymPy number")
        return sp.Rational(int(self.value.p), int(self.value.q))

    def __repr__(self) -> str:
        return f"{self.value}"


def raw_number(other: Any) -> Any:
    """Return the fraction, ball or integer behind an operand, or NotImplemented for arrays.

    Raises
    ------
    InexactRoundError
        If the operand is a float.
    """
    if isinstance(other, ExactNumber):
        return other.value
    if isinstance(other, bool | int | np.integer | np.bool_):
        return int(other)
    if isinstance(other, Fraction):
        return fmpq(other.numerator, other.denominator)
    if isinstance(other, fmpq | arb):
        return other
    if isinstance(other, float | np.floating):
        raise InexactRoundError(
            f"the round uses the float {float(other)!r} where a fraction is needed: write whole "
            "numbers and hyper-parameters, and divide the backend's numbers, not two whole "
            "numbers"
        )
    return NotImplemented


def whole_power(value: Any, exponent: int) -> Any:
    """Return an integer power of a fraction or ball, even of a ball that contains zero.

    FLINT's own power of such a ball is NaN, because it uses the logarithm.
    """
    if not isinstance(value, arb):
        return value**exponent
    result, power = arb(1), value
    for digit in reversed(bin(abs(exponent))[2:]):
        if digit == "1":
            result = result * power
        power = power * power
    return result if exponent >= 0 else 1 / result


def floor_divided(value: Any, by: Any) -> Any:
    """Return the integer part of a quotient of fractions or balls.

    Raises
    ------
    InexactRoundError
        If the ball contains more than one possible integer part.
    """
    quotient = (value if isinstance(value, arb) else fmpq(value)) / by
    if not isinstance(quotient, arb):
        return fmpq(int(quotient.p) // int(quotient.q))
    whole = quotient.floor().unique_fmpz()
    if whole is None:
        raise InexactRoundError(f"the whole part of {quotient} cannot be decided at this precision")
    return arb(whole)


def rest(value: Any, by: Any) -> Any:
    """Return the remainder of a floor division."""
    return value - by * floor_divided(value, by)


def decided(
    left: Any, right: Any, relation: Callable[..., bool], contrary: Callable[..., bool]
) -> bool:
    """Return whether a relation holds between two fractions or balls.

    Raises
    ------
    InexactRoundError
        If balls overlap, so that neither the relation nor its negation is certain.
    """
    if relation(left, right):
        return True
    if contrary(left, right):
        return False
    raise InexactRoundError(
        f"the comparison of {left} with {right} cannot be decided at this precision"
    )


def as_float(value: Any) -> float:
    """Return the float nearest to a fraction, or to the midpoint of a ball."""
    if isinstance(value, ExactNumber):
        return as_float(value.value)
    if isinstance(value, fmpq):
        # Python rounds the quotient of integers correctly; FLINT does not promise to do so.
        try:
            return int(value.p) / int(value.q)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    # For a ball, this is the float nearest to its midpoint.
    return float(value)


def identity_of(value: Any) -> Any:
    """Return a key that identifies a number; for a ball, it has the digits that printing omits.

    Examples
    --------
    >>> identity_of(0.5)
    0.5
    """
    if isinstance(value, ExactNumber):
        return identity_of(value.value)
    if isinstance(value, arb):
        return value.mid().man_exp(), value.rad().man_exp()
    return value


class _AsMade:
    """An arithmetic that leaves results of operations and comparisons unchanged."""

    def made(self, values: Entries) -> Entries:
        """Return the result of an operation, unchanged."""
        return values

    def decided(self, answers: Entries) -> Entries:
        """Return the outcome of a comparison, an ordering or a floor, unchanged."""
        return answers


@dataclass(frozen=True)
class Float64(_AsMade):
    """Plain floats."""

    name: str = "float64"
    exact: bool = False

    def entry(self, value: Any) -> Any:
        """Return the float."""
        return as_float(value)

    def parameter(self, value: Any) -> Any:
        """Return the float; a float of another precision keeps it."""
        return value if isinstance(value, float | np.floating) else as_float(value)

    def root(self, value: Any) -> Any:
        """Return the square root."""
        return math.sqrt(value)


@dataclass(frozen=True, eq=False)
class Shaken(Float64):
    """Floats that are deliberately perturbed in proportion to their size, to imitate rounding.

    Equal numbers get equal perturbations, so equal terms still cancel, and integers stay exact. A
    perturbed number is marked by having the last bits of the seed; some other numbers have them by
    chance.
    """

    seed: int = 0
    share: float = 1.0
    decisions: list[bytes] = field(default_factory=list)
    largest: ClassVar[float] = 2.0**-43

    def parameter(self, value: Any) -> float:
        """Return a perturbed float; results computed from it are also perturbed."""
        made = ShakenNumber(self.made(np.array(as_float(value))))
        made.arithmetic = self
        return made

    def made(self, values: Entries) -> Entries:
        """Return the result of an operation, perturbed by at most a share of ``largest``.

        A number that is already perturbed is kept, because it is the same number after it is copied
        or multiplied by one.
        """
        marked = values.view(np.int64) & _LAST == self.seed & _LAST
        return self._off(values, marked | (values == np.rint(values)))

    def _off(self, values: Entries, kept: Any) -> Entries:
        if self.share == 0:
            return values
        # The high bits of a product with an odd number depend on all digits, so neighbours differ.
        bits = values.view(np.int64)
        with np.errstate(all="ignore"):
            mixed = ((bits & _DIGITS) ^ self.seed) * _ODD
            off = (self.share * (mixed >> _LOST)).astype(np.int64)
            return np.where(
                kept, values, (((bits + off) & ~_LAST) | (self.seed & _LAST)).view(np.float64)
            )

    def decided(self, answers: Entries) -> Entries:
        """Return the outcome of a comparison, an ordering or a floor, and record it."""
        self.decisions.append(np.asarray(answers).tobytes())
        return answers


class ShakenNumber(float):
    """A perturbed float; its sums, products, quotients and powers are perturbed again."""

    __slots__ = ("arithmetic",)

    arithmetic: Shaken


def _off_again(name: str) -> Callable[..., Any]:
    operation = getattr(float, name)

    def step(self: ShakenNumber, *others: Any) -> Any:
        made = operation(self, *others)
        # Arrays are perturbed by their own operations.
        return self.arithmetic.parameter(made) if type(made) is float else made

    return step


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(ShakenNumber, f"__{_name}__", _off_again(f"__{_name}__"))
    setattr(ShakenNumber, f"__r{_name}__", _off_again(f"__r{_name}__"))
for _name in ("__neg__", "__abs__"):
    setattr(ShakenNumber, _name, _off_again(_name))


@dataclass(frozen=True)
class Rational(_AsMade):
    """Fractions, as FLINT's ``fmpq``."""

    name: str = "rational"
    exact: bool = True

    def entry(self, value: Any) -> Any:
        """Return a number as a fraction; a float is read as its shortest decimal."""
        if isinstance(value, fmpq):
            return value
        fraction = as_fraction(value)
        return fmpq(fraction.numerator, fraction.denominator)

    def parameter(self, value: Any) -> ExactNumber:
        """Return the fraction, guarded against floats."""
        return ExactNumber(self.entry(value))

    def root(self, value: Any) -> Any:
        """Return the square root of a fraction that is a square.

        Raises
        ------
        InexactRoundError
            If the fraction is not a square.
        """
        above, below = math.isqrt(max(int(value.p), 0)), math.isqrt(int(value.q))
        if fmpq(above, below) ** 2 != value:
            raise InexactRoundError(f"the square root of {value} is not a fraction")
        return fmpq(above, below)


@dataclass(frozen=True)
class Balls(_AsMade):
    """Balls whose midpoints have a given number of bits, as Arb's ``arb``."""

    bits: int
    name: str = "enclosed"
    exact: bool = True

    def entry(self, value: Any) -> Any:
        """Return a ball that contains a number; a float is read as its shortest decimal."""
        if isinstance(value, arb):
            return value
        if isinstance(value, fmpq):
            return arb(value)
        fraction = as_fraction(value)
        return arb(fmpq(fraction.numerator, fraction.denominator))

    def parameter(self, value: Any) -> ExactNumber:
        """Return the ball, guarded against floats."""
        return ExactNumber(self.entry(value))

    def root(self, value: Any) -> Any:
        """Return the square root."""
        return value.sqrt()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Compute with ``bits`` bits while other threads wait; FLINT's precision is global."""
        with _PRECISION:
            before = ctx.prec
            ctx.prec = self.bits
            try:
                yield
            finally:
                ctx.prec = before


FLOAT64 = Float64()
RATIONAL = Rational()
Arithmetic: TypeAlias = Float64 | Rational | Balls
"""A number type, with the conversions to it.

``entry`` converts a number to an array entry, reading a float as its shortest decimal;
``parameter`` converts a hyper-parameter. If ``exact`` is true, floats are refused inside a round.
"""


def entries(arithmetic: Arithmetic, values: Any) -> Entries:
    """Return an array of an arithmetic's entries from an array of numbers."""
    if not arithmetic.exact:
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            return values.astype(np.float64)
        given = np.asarray(values, dtype=object)
        flat = [
            as_float(item.value if isinstance(item, ExactNumber) else item) for item in given.flat
        ]
        return np.array(flat, dtype=np.float64).reshape(given.shape)
    given = np.asarray(values)
    made = np.empty(given.size, dtype=object)
    # Equal floats are common (masks, zeros, identities), so each is converted to a fraction once.
    known: dict[Any, Any] = {}
    for index, item in enumerate(given.reshape(-1).tolist()):
        if isinstance(item, ExactNumber):
            made[index] = item.value
        elif isinstance(item, arb | fmpq):
            made[index] = item
        else:
            if item not in known:
                known[item] = arithmetic.entry(item)
            made[index] = known[item]
    return made.reshape(given.shape)


def with_parameters(thing: Any, arithmetic: Arithmetic) -> Any:
    """Return an algorithm, schedule or similar with its numbers converted to an arithmetic.

    Floats and fractions in its fields, and in tuples, arrays and objects in them, become numbers of
    the arithmetic. Integers, names and functions stay unchanged. Checks of arguments are not run
    again, because the values are the same.
    """
    if isinstance(thing, ExactNumber) and not arithmetic.exact:
        return arithmetic.parameter(thing)
    if isinstance(thing, float | np.floating | Fraction):
        return arithmetic.parameter(thing) if math.isfinite(thing) else thing
    if isinstance(thing, np.ndarray) and thing.dtype.kind in (
        "O" if arithmetic is FLOAT64 else "fO"
    ):
        made = np.empty(thing.shape, dtype=object if arithmetic.exact else np.float64)
        for index, item in np.ndenumerate(thing):
            made[index] = with_parameters(item, arithmetic)
        made.flags.writeable = False
        return made
    if type(thing) in (tuple, list):
        items = [with_parameters(item, arithmetic) for item in thing]
        same = all(made is item for made, item in zip(items, thing, strict=True))
        return thing if same else type(thing)(items)
    numbers = is_dataclass(thing) and not isinstance(thing, type)
    if numbers or (type(thing).__module__ != "builtins" and hasattr(thing, "round")):
        return _with_fields(thing, attributes_of(thing), arithmetic)
    return thing


def _with_fields(thing: Any, values: dict[str, Any], arithmetic: Arithmetic) -> Any:
    made = {name: with_parameters(value, arithmetic) for name, value in values.items()}
    if all(made[name] is value for name, value in values.items()):
        return thing
    other = copy(thing)
    # Values cached from the old numbers would be wrong for the new ones.
    for name in set(getattr(other, "__dict__", {})) - set(attributes_of(thing)):
        del other.__dict__[name]
    for name, value in made.items():
        object.__setattr__(other, name, value)
    return other

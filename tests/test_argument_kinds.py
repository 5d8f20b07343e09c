"""Arguments of public functions are of the kind that their annotation says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from fltheory.argument_kinds import checks_kinds

if TYPE_CHECKING:
    from nowhere import Unknown


class Sized(Protocol):
    n_clients: int

    def masks(self) -> None: ...


class Stranger:
    """Has one member of `Sized`, which takes long."""

    @property
    def n_clients(self) -> int:
        raise AssertionError("computed")


class Delegating:
    def __getattr__(self, name: str) -> int:
        return 3


@checks_kinds
def everything(
    one: Fraction,
    some: Sequence[Fraction] = (),
    named: Mapping[str, Fraction] | None = None,
    *,
    pair: tuple[int, str] = (1, ""),
    text: str = "",
    flag: bool = False,
    call: Callable[[], int] | None = None,
    names: Sequence[str] | None = None,
    sized: Sized | None = None,
    number: float = 0.0,
    array: ArrayLike = 0.0,
    exact_array: NDArray[np.float64] | None = None,
    unknown: Unknown | None = None,
    anything: Any = None,
    **further: str,
) -> str:
    """Say that all is well."""
    return "fine"


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"some": [HALF, HALF]},
        {"some": (HALF,)},
        {"some": iter([3])},  # nothing that is gone through once
        {"some": np.array([1.0])},
        {"named": {"a": HALF}},
        {"pair": (2, "b")},
        {"pair": [2, "b"]},
        {"flag": np.True_},
        {"call": lambda: 3},
        {"sized": Stranger()},
        {"sized": Delegating()},
        {"number": "half", "array": "half", "exact_array": 3, "unknown": 3, "anything": 3},
    ],
)
def test_what_is_of_its_kind_passes(given: dict[str, Any]) -> None:
    assert everything(HALF, **given) == "fine"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"some": 3}, "some must be a sequence, each a Fraction, got 3"),
        ({"some": "ab"}, "some must be a sequence, each a Fraction, got 'ab'"),
        ({"some": [HALF, 0.5]}, r"some must be a sequence, each a Fraction, got \[Fraction"),
        (
            {"named": [HALF]},
            "named must be a mapping whose values are each a Fraction or None, got",
        ),
        (
            {"named": {"a": 1}},
            "named must be a mapping whose values are each a Fraction or None, got",
        ),
        ({"pair": 3}, "pair must be a sequence, got 3"),
        ({"text": None}, "text must be text, got None"),
        ({"flag": 1}, "flag must be True or False, got 1"),
        ({"call": 3}, "call must be callable or None, got 3"),
        ({"names": np.array("ab")}, r"names must be a sequence, each text, or None, got array"),
        ({"names": [3]}, r"names must be a sequence, each text, or None, got \[3\]"),
        ({"sized": 3}, "sized must be a Sized or None, got 3"),
        ({"sized": Stranger}, "sized must be a Sized or None, got <class"),
        ({"sized": everything}, "sized must be a Sized or None, got <function"),
    ],
)
def test_what_is_not_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        everything(HALF, **given)


def test_arguments_by_place_and_missing_ones() -> None:
    with pytest.raises(ValueError, match="one must be a Fraction, got 3"):
        everything(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'one'"):
        everything()  # type: ignore[call-arg]


def test_methods_and_generators_keep_what_they_are() -> None:
    class Counter:
        @classmethod
        @checks_kinds
        def of(cls, start: Fraction) -> Iterator[Fraction]:
            yield start

    assert list(Counter.of(HALF)) == [HALF]
    with pytest.raises(ValueError, match="start must be a Fraction"):
        Counter.of(3)  # type: ignore[arg-type]


def test_a_decorator_below_hides_nothing() -> None:
    @checks_kinds
    @contextmanager
    def opened(start: Fraction) -> Iterator[Fraction]:
        yield start

    with pytest.raises(ValueError, match="start must be a Fraction, got 3"):
        opened(3)  # type: ignore[arg-type]

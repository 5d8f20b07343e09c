"""Certificates that a line of Theorem 3's proof (FedAU) fails: fractions, standard library only.

A client takes part in each round with probability p. The certificate holds p, the cut-off K, the
round t, and both sides of ``E[(p omega_t - 1)^2] <= p^2 Var S / max(floor(t/K), 1) + (1-p)^(2K)``.
Checking one runs Algorithm 2 along each of the 2^t histories; nothing is shared with the engines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

VERSION = 1
STATEMENT = "fedau/3-step"
_MOST_ROUNDS = 16
_FIELDS = ("version", "theorem", "reading", "p", "cutoff", "t", "truth", "bound")


def weight_certificate(p: Fraction, cutoff: int, t: int) -> dict[str, Any]:
    """Return the certificate that the step fails for a client after t rounds.

    Raises
    ------
    ValueError
        For p outside (0, 1], K below 1, t outside 1 .. 16, or where it does not fail.

    Examples
    --------
    >>> found = weight_certificate(Fraction(1, 2), 3, 1)
    >>> found["truth"], found["bound"]
    ('1/4', '3/16')
    """
    truth, bound = both_sides(p, cutoff, t)
    if truth <= bound:
        raise ValueError(f"p, cutoff and t must break the bound, got {truth} <= {bound}")
    return {
        "version": VERSION,
        "theorem": STATEMENT,
        "reading": "printed",
        "p": str(p),
        "cutoff": cutoff,
        "t": t,
        "truth": str(truth),
        "bound": str(bound),
    }


def both_sides(p: Fraction, cutoff: int, t: int) -> tuple[Fraction, Fraction]:
    """Return the error after t rounds, over every history, and the step's bound on it.

    Raises
    ------
    ValueError
        For p outside (0, 1], K below 1 or t outside 1 .. 16.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p must be in (0, 1], got {p}")
    if cutoff < 1:
        raise ValueError(f"cutoff must be a whole number of at least 1, got {cutoff}")
    if not 1 <= t <= _MOST_ROUNDS:
        raise ValueError(f"t must be a whole number from 1 to {_MOST_ROUNDS}, got {t}")
    truth = Fraction(0)
    for history in product((False, True), repeat=t):
        chance = prod((p if here else 1 - p) for here in history)
        truth += chance * (p * _weight(history, cutoff) - 1) ** 2
    law = {k: p * (1 - p) ** (k - 1) for k in range(1, cutoff)} | {cutoff: (1 - p) ** (cutoff - 1)}
    mean = sum(k * mass for k, mass in law.items())
    variance = sum((k - mean) ** 2 * mass for k, mass in law.items())
    return truth, p**2 * variance / max(t // cutoff, 1) + (1 - p) ** (2 * cutoff)


def check_weight_certificate(document: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """Return both sides if the certificate is right.

    Raises
    ------
    ValueError
        If a field is missing, or not what it must be; the message names the first.
    """
    _check_fields(document)
    sides = both_sides(_fraction(document, "p"), document["cutoff"], document["t"])
    for name, computed in zip(("truth", "bound"), sides, strict=True):
        if _fraction(document, name) != computed:
            raise ValueError(f"{name} must be {computed}, got {document[name]}")
    if sides[0] <= sides[1]:
        raise ValueError(f"truth must exceed the bound, got {sides[0]} <= {sides[1]}")
    return sides


def _check_fields(document: Mapping[str, Any]) -> None:
    missing = [name for name in _FIELDS if name not in document]
    if missing:
        raise ValueError(f"certificate must have a field {missing[0]}")
    expected = {"version": VERSION, "theorem": STATEMENT, "reading": "printed"}
    for name, value in expected.items():
        if document[name] != value:
            raise ValueError(f"{name} must be {value!r}, got {document[name]!r}")
    for name in ("cutoff", "t"):
        if type(document[name]) is not int:
            raise ValueError(f"{name} must be a whole number, got {document[name]!r}")


def read_weight_certificate(path: Path) -> dict[str, Any] | None:
    """Return a file's certificate of this kind, unchecked; None if it is of another kind."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError):
        return None
    is_one = isinstance(document, dict) and document.get("theorem") == STATEMENT
    return document if is_one else None


def _fraction(document: Mapping[str, Any], name: str) -> Fraction:
    try:
        return Fraction(document[name])
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{name} must be a fraction, got {document[name]!r}") from error


def _weight(history: tuple[bool, ...], cutoff: int) -> Fraction:
    """Return omega after a history, by Algorithm 2."""
    intervals, lasted, omega = 0, 0, Fraction(1)
    for present in history:
        lasted += 1
        if present or lasted == cutoff:
            omega = (intervals * omega + lasted) / (intervals + 1)
            intervals, lasted = intervals + 1, 0
    return omega

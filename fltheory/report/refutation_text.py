"""What a search for a refutation found, and what a certificate says, in a few lines."""

from __future__ import annotations

from fractions import Fraction

from fltheory.verify import Certified, Falsification


def falsification_text(found: Falsification) -> str:
    """Return the witness, or how hard it was looked for."""
    effort = (
        f"{found.settings_tried} settings tried, {found.settings_applicable} of them met every "
        f"hypothesis, largest truth/bound {found.best_ratio:.6g}"
    )
    name = f"{found.theorem} ({found.reading})"
    if found.witness is None:
        return f"{name}: no refutation found; {effort}"
    return "\n".join([f"{name}: REFUTED; {effort}", *_indented(found.witness.lines)])


def certified_text(certified: Certified) -> str:
    """Return the refuted statement, its witness and both sides."""
    theorem = certified.theorem
    return "\n".join(
        [
            f"{theorem.id} ({theorem.reading}): REFUTED, checked in fractions",
            *_indented(certified.witness.lines),
            f"  {theorem.quantity.text} = {shown(certified.truth)}",
            f"  > bound = {shown(certified.bound)}; every hypothesis holds",
        ]
    )


def _indented(lines: tuple[str, ...]) -> list[str]:
    return [f"  {line}" for line in lines]


def shown(value: Fraction) -> str:
    """Return a fraction if it is short, and what it is about."""
    if value.denominator == 1:
        return str(value)
    exact = f"{value} = " if value.denominator < 10**6 else ""
    return f"{exact}{float(value):.6g}"

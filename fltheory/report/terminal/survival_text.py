"""What a repaired statement survived, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from fltheory.verify.search.survival import Survival


def survival_text(survival: Survival) -> str:
    """Return the search of the repaired statement, and whether each mend is needed."""
    return "\n".join(_lines(survival))


def _lines(survival: Survival) -> Iterator[str]:
    found = survival.search
    yield str(found)
    if found.witness is None:
        yield f"{found.theorem} ({found.reading}) survives the search, which is not a proof"
    for mend, without in survival.without:
        fate = "refuted without it" if without.witness else "not refuted without it"
        yield f"  {mend.about} [{mend.source}]: {fate}"
        if without.witness:
            yield from (f"    {line}" for line in without.witness.lines)

"""Names in a table: the nearest is told for an unknown one, and all that are missing."""

from __future__ import annotations

import pytest

from fltheory.files.tables import check_names

KNOWN = ("rounds", "client_lr", "local_steps")


def test_what_is_known_and_complete_passes() -> None:
    check_names("training", ["client_lr", "rounds"], KNOWN, ["rounds"])
    check_names("training", [], KNOWN)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (["round"], "training has rounds, got 'round'"),
        (["local_step", "lr"], "training has local_steps, got 'local_step'; training has "),
        (["x"], "training has rounds, client_lr, local_steps, got 'x'"),
    ],
)
def test_unknown_names(table: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        check_names("training", table, KNOWN)


def test_missing_names_are_told_together_and_with_the_unknown() -> None:
    with pytest.raises(ValueError, match=r"^training must have rounds, client_lr, got nothing$"):
        check_names("training", [], KNOWN, KNOWN[:2])
    both = r"^training has rounds, got 'round'; training must have rounds, got round$"
    with pytest.raises(ValueError, match=both):
        check_names("training", ["round"], KNOWN, ["rounds"])

"""fltheory theorems: the list."""

from __future__ import annotations


def test_theorems_lists_all(fltheory_command) -> None:
    status, out, _ = fltheory_command("theorems")
    assert status == 0
    assert all(
        name in out
        for name in ("sa-fl/4", "sa-fl/5", "sa-fl-submission/4", "corollary-1", "corollary-2")
    )


def test_brackets_of_a_title_are_no_markup(fltheory_command) -> None:
    assert "Uniform P on [a, b]" in " ".join(fltheory_command("theorems")[1].split())


def test_a_paper_is_listed_alone(fltheory_command) -> None:
    status, out, _ = fltheory_command("theorems", "fedau")
    assert status == 0
    assert "fedau/1" in out
    assert "sa-fl" not in out
    status, out, err = fltheory_command("theorems", "fedaux")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "fedau/" in err

"""Old names of commands: they still do what they did, say the new one, and are not in the help."""

from __future__ import annotations

from pathlib import Path

import pytest

from fltheory import cli

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("derive sa-fl/corollary-1", "explain sa-fl/corollary-1 --proof"),
        ("repair sa-fl/5 --budget 20", "falsify sa-fl/5 --repairs --budget 20"),
    ],
)
def test_an_old_name_does_what_the_new_one_does(fltheory_command, old: str, new: str) -> None:
    status, out, err = fltheory_command(*old.split())
    assert (status, out) == fltheory_command(*new.split())[:2]
    assert status == 0
    assert err.count("\n") == 1
    assert f"is now fltheory {new.split()[0]} " in err


@pytest.mark.parametrize(
    ("old", "script"),
    [
        ("reproduce power sa-fl/5 --every 2", "power.py"),
        ("reproduce ca-fed", "ca_fed.py"),
        ("pac impossible 2 1 1", "impossibility.py"),
    ],
)
def test_what_makes_pages_is_a_script_now(fltheory_command, old: str, script: str) -> None:
    status, out, err = fltheory_command(*old.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"is now python docs/scripts/{script}, in a checkout of fltheory" in err
    assert (DOCS / "scripts" / script).is_file()


def test_the_options_of_one_command_exclude_each_other(fltheory_command) -> None:
    for arguments in (
        ("explain", "sa-fl/5", "--proof", "--corrected"),
        ("explain", "sa-fl/5", "--proof", "--now"),
        ("falsify", "sa-fl/5", "--repairs", "--out", "x.json"),
        ("falsify", "sa-fl/5", "--repairs", "--reading", "derived"),
    ):
        status, out, err = fltheory_command(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "must be left out" in err


def test_the_help_has_at_most_sixteen_commands() -> None:
    # Families of commands, which have a name before theirs, come on top.
    assert len([words for words in cli.COMMANDS if " " not in words]) <= 16
    assert not {"derive", "repair", "pac"} & {words.split()[0] for words in cli.COMMANDS}

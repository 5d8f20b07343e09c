"""Old names of commands: they still do what they did, say the new one, and are not in the help."""

from __future__ import annotations

from pathlib import Path

import pytest

from fltheory import cli
from fltheory.commands.shared.former_names import FORMER_OPTIONS, with_options_of_now


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("derive sa-fl/corollary-1", "explain sa-fl/corollary-1 --proof"),
        ("repair sa-fl/5 --budget 20", "falsify sa-fl/5 --repairs --budget 20"),
        ("pac impossible 2 1 1", "reproduce impossibility 2 1 1"),
    ],
)
def test_an_old_name_does_what_the_new_one_does(fltheory_command, old: str, new: str) -> None:
    status, out, err = fltheory_command(*old.split())
    assert (status, out) == fltheory_command(*new.split())[:2]
    assert status == 0
    assert err.count("\n") == 1
    assert f"is now fltheory {new.split()[0]} " in err


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        (words, old, new)
        for words, renamed in FORMER_OPTIONS.items()
        for old, new in renamed.items()
    ],
)
@pytest.mark.parametrize("joined", ["=", None])
def test_an_old_option_is_the_new_one(
    fltheory_command, tmp_path: Path, words: str, old: str, new: str, joined: str | None
) -> None:
    """Shown by a place that cannot be written to, which is named by the new option."""
    (tmp_path / "taken").write_text("")
    place = str(tmp_path / "taken" / "a.md")
    option = [f"{old}={place}"] if joined else [old, place]
    status, out, err = fltheory_command(*words.split(), *option)
    said, refused = err.splitlines()
    assert (status, out) == (2, "")
    assert said.startswith(f"fltheory {words} {old} is now fltheory {words} {new};")
    assert refused.startswith(f"fltheory: {new.removeprefix('--')} must be where a file can")
    # Another command may have an option of that name.
    assert with_options_of_now(["train", old, "a"]) == ["train", old, "a"]


def test_bad_input_is_one_line(fltheory_command) -> None:
    status, _, err = fltheory_command("pac", "possible", 2, 1, 1)
    assert (status, "must be impossible, got 'possible'" in err) == (2, True)


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

"""How a command ends other than well."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor

import pytest
import typer

from fltheory.commands.shared.exit_status import (
    Interrupted,
    as_bad_input,
    exit_interrupted,
    run,
)

ENDED = "processes must finish their work, got one that died: too little memory?"


def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], work: Callable[[], None]
) -> tuple[int, str]:
    """Return the status and the error stream of a command that does this work."""
    app = typer.Typer()
    app.command()(work)
    monkeypatch.setattr("sys.argv", ["fltheory"])
    with pytest.raises(SystemExit) as stop:
        run(app)
    return int(stop.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ValueError("p must be in (0, 1]"), 2, "fltheory: p must be in (0, 1]\n"),
        (ValueError(), 2, ""),
        (typer.BadParameter("no such thing"), 2, "fltheory: Invalid value: no such thing\n"),
        (KeyboardInterrupt(), 130, "fltheory: interrupted, nothing was written\n"),
        (typer.Abort(), 130, "fltheory: interrupted, nothing was written\n"),
        (Interrupted("3 rows are in x"), 130, "fltheory: interrupted, 3 rows are in x\n"),
        (typer.Exit(1), 1, ""),
        (BrokenExecutor(), 2, f"fltheory: {ENDED}\n"),
        (ValueError("a\nb\x1b[31m\u202e"), 2, "fltheory: a\\nb\\x1b[31m\\u202e\n"),
        (None, 0, ""),
    ],
    ids=repr,
)
def test_an_end_is_a_line_and_a_status(
    monkeypatch, capsys, error: BaseException | None, status: int, line: str
) -> None:
    def work() -> None:
        if error is not None:
            raise error

    assert ended(monkeypatch, capsys, work) == (status, line)


def test_an_error_of_the_program_is_not_bad_input(monkeypatch, capsys) -> None:
    def work() -> None:
        raise LookupError("a fault")

    with pytest.raises(LookupError, match="a fault"):
        ended(monkeypatch, capsys, work)


def test_an_interrupt_before_the_command_line_is_there(capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        exit_interrupted()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "fltheory: interrupted, nothing was written\n"


def test_only_the_kinds_named_are_bad_input() -> None:
    with (
        pytest.raises(ValueError, match=r"^torch is missing$") as caught,
        as_bad_input(ImportError),
    ):
        raise ModuleNotFoundError("torch is missing")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    with pytest.raises(LookupError), as_bad_input(ImportError, ArithmeticError):
        raise LookupError


@pytest.mark.usefixtures("own_theorems_forgotten")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('number="L"', "number=lambda setting: setting.problem.LL", "AttributeError: "),
        (
            "def make(step,",
            "def make(stp,",
            "ValueError: make must take every parameter by name (step, ",
        ),
    ],
)
def test_a_fault_of_a_users_own_file_is_its_line(
    fltheory_command, tmp_path, old: str, new: str, message: str
) -> None:
    """Whichever process came upon it; a fault of the package's own is shown in full."""
    path = tmp_path / "mine.py"
    fltheory_command("new", "theorem", path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    for command in (("verify", "my"), ("falsify", "my/1", "--budget", "2")):
        status, _, err = fltheory_command("--load", path, *command)
        assert (status, err.count("\n")) == (2, 1)
        assert err.startswith(f"fltheory: {path}, line ")
        assert message in err

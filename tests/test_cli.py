"""The command line as a whole: its commands, its help, and bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
import typer

import fltheory.verify
from fltheory import cli, commands

HELP = """
import sys
from fltheory.cli import main
sys.argv = ["fltheory", *sys.argv[1:], "--help"]
try:
    main()
finally:
    for name in ("torch", "cvxpy", "sympy", "numpy", "scipy", "matplotlib", "pandas", "jinja2"):
        assert name not in sys.modules, name
"""


def help_of(words: str) -> str:
    """Return the help that a fresh process shows, which must not load anything heavy for it."""
    answer = subprocess.run(
        [sys.executable, "-c", HELP, *words.split()],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"},
    )
    return answer.stdout


def listed(page: str) -> list[str]:
    """Return the first words of the lines in the frame of commands."""
    frame = page.splitlines()[1:]
    return [line.split()[1] for line in frame if line.startswith("│ ") and line[2] != " "]


def test_help_lists_commands_by_reader_and_loads_nothing_heavy() -> None:
    page = help_of("")
    places = [page.index(f"─ {panel} ─") for panel in cli.PANELS]
    assert places == sorted(places)
    for start, end, words in zip(
        places, [*places[1:], len(page)], cli.PANELS.values(), strict=True
    ):
        every = {one.split()[0] for one in words}
        assert set(listed(page[start:end])) == every


@pytest.mark.parametrize("family", cli.FAMILIES)
def test_a_family_lists_its_commands(family: str) -> None:
    page = help_of(family)
    assert cli.FAMILIES[family] in page
    assert [f"{family} {name}" for name in listed(page[page.index("Commands") :])] == [
        words for words in cli.COMMANDS if words.startswith(f"{family} ")
    ]


@pytest.mark.parametrize("words", cli.COMMANDS)
def test_the_example_of_a_command_is_understood(words: str) -> None:
    """Its arguments and options are the command's own; whether files exist is asked later."""
    (arguments,) = [panel[words] for panel in cli.PANELS.values() if words in panel]
    command = typer.main.get_command(cli.app)
    for name in words.split():
        command = command.commands[name]
    assert command.make_context(words, arguments.split()).args == []
    assert f"fltheory {words} {arguments}".rstrip() in command.epilog


def test_every_file_with_a_command_is_registered() -> None:
    names = [module.name for module in walk_packages(commands.__path__, "fltheory.commands.")]
    having = {name for name in names if hasattr(import_module(name), "command")}
    alone = [words for words in cli.COMMANDS if " " not in words]
    assert having == {f"fltheory.commands.{words}" for words in alone}
    assert len(alone) < len(set(map(cli.command_of, cli.COMMANDS))) == len(cli.COMMANDS)
    assert len(set(cli.COMMANDS)) == len(cli.COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "sa-fl/55"), "sa-fl/5"),
        (("explain", "sa-fl/55"), "sa-fl/5"),
        (("explain", "sa-fl/5", "--reading", "mine"), "printed, derived"),
        (("explain", "sa-fl/55", "--proof"), "sa-fl/5"),
        (("explain", "sa-fl/5", "--proof", "--reading", "mine"), "printed, derived"),
        (("verify", "--baseline", "nowhere.csv"), "baseline must be an existing file"),
        (("verify", "--replicas", "1"), "replicas must be a whole number of at least 2, got 1"),
        (("verify", "--seed", "-1"), "seed must be a whole number of at least 0, got -1"),
        (("verify", "--replicas", "many"), "'--replicas': Input should be a valid integer"),
        (("ca_fed.py", "--rounds", "1"), "rounds must be a whole number of at least 2"),
        (("ca_fed.py", "--seeds", "0"), "seeds must be a whole number of at least 1"),
        (("reproduce", "sa-fl"), "page must be one of bias"),
        (("impossibility.py", "10", "20", "10"), "m must be below M = 10"),
        (
            ("impossibility.py", "10", "0", "5"),
            "n must be a whole number of at least 1, got 0",
        ),
        (("verify", "--unknown"), "--unknown"),
        (("disprove",), "disprove"),
        (("describe", "log.csv", "--json", "a.json"), "command must be fltheory trace describe"),
        (("theorem", "my.py"), "command must be fltheory new theorem"),
    ],
)
def test_bad_input_is_one_line_and_status_two(fltheory_command, arguments, message) -> None:
    status, _, err = fltheory_command(*arguments)
    assert status == 2
    assert err.startswith("fltheory: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "--html"),
        ("verify", "--csv"),
        ("verify", "--json"),
        ("falsify", "sa-fl/5", "--out"),
        ("map", "sa-fl/5", "--figure"),
        ("cutoff", "0.5", "--figure"),
        ("power.py", "--out"),
        ("power.py", "--page"),
        ("findings.py", "--out"),
        ("ca_fed.py", "--out"),
        ("ca_fed.py", "--page"),
    ],
    ids=" ".join,
)
def test_a_place_that_cannot_be_written_to_is_named_before_the_work(
    fltheory_command, monkeypatch, tmp_path: Path, arguments
) -> None:
    def begun(*arguments: object, **options: object) -> None:
        raise AssertionError("the work was begun")

    for name in ("check_regimes", "map_region"):
        monkeypatch.setattr(fltheory.verify, name, begun)
    monkeypatch.setattr("docs.scripts.power.judged", begun)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    status, out, err = fltheory_command(*arguments, "taken/new.svg")
    assert (status, out) == (2, "")
    option = arguments[-1].removeprefix("--")
    assert err == f"fltheory: {option} must be a path that can be written to, got 'taken/new.svg'\n"


@pytest.mark.parametrize("command", [("map", "sa-fl/5"), ("cutoff", "0.5")], ids=" ".join)
def test_figures_have_two_formats(fltheory_command, command) -> None:
    status, _, err = fltheory_command(*command, "--figure", "figure.pdf")
    assert (status, err) == (2, "fltheory: figure must end in .png or .svg, got 'figure.pdf'\n")


def test_what_is_about_runs_declines(fltheory_command) -> None:
    status, _, err = fltheory_command("map", "pac/1", "--regime", "half take part")
    assert status == 2
    assert "pac/1" in err


def test_what_no_setting_can_refute_is_not_searched(fltheory_command) -> None:
    status, _, err = fltheory_command("falsify", "fedar/1")
    assert status == 2
    assert "theorem must be one that a setting can refute, got fedar/1" in err


def test_an_order_of_hidden_constants_is_judged_by_verify(fltheory_command) -> None:
    status, _, err = fltheory_command("falsify", "fednova/1")
    assert (status, err.count("\n")) == (2, 1)
    assert "constants that are not known; fltheory verify judges its slopes" in err


@pytest.mark.usefixtures("own_theorems_forgotten")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--load", "{}", "explain", "own/true"),
        ("explain", "--load", "{}", "own/true"),
        ("explain", "own/true", "--load={}"),
    ],
)
def test_a_file_is_loaded_wherever_that_is_asked_for(fltheory_command, arguments) -> None:
    file = Path(__file__).parent / "theorems" / "own.py"
    status, out, _ = fltheory_command(*(word.format(file) for word in arguments))
    assert status == 0
    assert "Gradient descent contracts" in out


def test_a_load_without_a_file_is_one_line(fltheory_command) -> None:
    status, _, err = fltheory_command("verify", "--load")
    assert (status, err.count("\n"), "--load" in err) == (2, 1, True)


def test_without_a_command_a_terminal_names_three_doors() -> None:
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    shown = subprocess.run([sys.executable, "-m", "fltheory"], stdout=slave, check=True)
    os.close(slave)
    text = os.read(master, 10_000).decode()
    assert shown.returncode == 0
    commands = [line.split("fltheory ")[1].split() for line in text.splitlines() if "  " in line]
    assert {words[0] for words in commands} == {"verify", "new", "conformance", "advise"}
    page = subprocess.run(
        [sys.executable, "-m", "fltheory"], capture_output=True, text=True, check=True
    )
    assert "Usage: fltheory" in page.stdout

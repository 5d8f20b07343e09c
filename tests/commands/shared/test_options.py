"""Arguments and options that several commands have: each is one that several have.

A name of an option is one meaning and one kind of value, whatever the command.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

from fltheory import cli
from fltheory.cli import COMMANDS, command_of
from fltheory.commands.shared import options, preparation

ROOT = Path(__file__).parents[3]
SHARED = [name for name, value in vars(options).items() if get_args(value) and name[0].isupper()]


def test_there_are_some() -> None:
    assert {"TheoremId", "FigureFile", "Check"} <= set(SHARED)


@pytest.mark.parametrize("name", SHARED)
def test_several_commands_have_it(name: str) -> None:
    commands = map(command_of, COMMANDS)
    having = [one for one in commands if name in one.__annotations__.values()]
    # Programs that make this project's pages take options too, and so does what precedes commands.
    parameter = re.compile(rf"^    \w+: {name}( = .*)?,$", re.MULTILINE)
    programs = [
        path
        for path in [*(ROOT / "docs" / "scripts").glob("*.py"), Path(preparation.__file__)]
        if parameter.search(path.read_text(encoding="utf-8"))
    ]
    assert len(having) + len(programs) > 1


@pytest.mark.parametrize("folder", [options.WITNESSES, options.CERTIFICATES], ids=str)
def test_the_usual_folders_hold_certificates(folder: Path) -> None:
    assert list((ROOT / folder).glob("*.json"))


# What an option's help begins with, and what kind of value it takes, wherever it is.
MEANINGS = {
    "--out": ("Where to ", Path),
    "--page": ("Write a page to this file", Path),
    "--figure": ("Write a figure to this file", Path),
    "--json": (r"Write the \w+ as JSON to this file", Path),
    "--csv": ("Write the verdicts as CSV to this file", Path),
    "--rocq": ("Where to write the proof as a theorem", Path),
    "--html": ("Write the report to this file", Path),
    # Of a page that the project keeps, or of an advice: either way nothing is kept of it.
    "--check": (
        "Write nothing; exit 1 if it differs|Also train on the bundled digits along the log",
        bool,
    ),
    "--seed": ("Random seed.", int),
    "--reading": ("Which reading, e.g. printed or derived", str),
    "--regime": ("Regime to start from", str),
    "--set": ("Set a parameter or an option: name=value", list[str]),
    "--rounds": ("Number of rounds", int),
    "--local-steps": ("Local steps per round", int),
    "--replicas": ("Sample size if sampled", int),
    "--budget": ("Number of settings to try", int),
    "--columns": ("What the log's columns are called", str),
    "--sizes": ("CSV client,size", Path),
    "--noise": ("Gradient noise relative to the gradient at the start", float),
    "--dissimilarity": ("Gamma, in units of", float),
    "--condition": ("L / mu", float),
    "--round-length": ("How long a round lasts", float),
    "--store": ("Results database|Where to keep each algorithm's results", Path),
    "--dask": ("Run on a Dask cluster", str),
    "--data": ("Folder of the data set's files", Path),
}


def every_option() -> Iterator[tuple[str, str, str, Any]]:
    """Yield words of a command, an option's name, its help and its kind of value."""
    root = typer.main.get_command(cli.app)
    for words in COMMANDS:
        command = root
        for name in words.split():
            command = command.commands[name]
        hints = get_type_hints(command_of(words))
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name in hints:
                kinds = set(get_args(hints[parameter.name])) - {type(None)}
                kind = kinds.pop() if kinds else hints[parameter.name]
                yield words, parameter.opts[0], parameter.help, kind


def test_an_option_means_the_same_in_every_command() -> None:
    for words, name, help_text, kind in every_option():
        if name in MEANINGS:
            beginning, expected = MEANINGS[name]
            text = help_text.removeprefix("With --on: ")
            assert re.match(beginning, text, re.IGNORECASE), (words, name, help_text)
            assert kind == expected, (words, name, kind)


def test_what_several_commands_have_is_given_a_meaning_here() -> None:
    names = Counter(name for _, name, _, _ in every_option())
    assert {name for name, count in names.items() if count > 1} <= set(MEANINGS)
    assert set(MEANINGS) <= set(names)

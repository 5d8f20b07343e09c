"""The command line, put together: a command is a file of `fltheory.commands`."""

from __future__ import annotations

from importlib import import_module
from typing import NoReturn

import typer

from fltheory.commands import exit_status
from fltheory.commands.preparation import prepare

# The words of each command, in the order of the help; its file has their name.
COMMANDS = (
    "theorems",
    "explain",
    "derive",
    "verify",
    "falsify",
    "prove",
    "certify",
    "map",
    "compare",
    "repair",
    "weights",
    "cutoff",
    "train",
    "new theorem",
    "new algorithm",
    "pac impossible",
    "reproduce findings",
    "reproduce power",
    "reproduce bias",
    "reproduce drift",
    "reproduce ca-fed",
    "reproduce shapley",
    "reproduce pac-figures",
)
FAMILIES = {
    "new": "Start a file of your own: a theorem or an algorithm.",
    "pac": "PAC learnability, exactly.",
    "reproduce": "Make this project's own pages: findings, papers' experiments, power, biases.",
}


def assembled() -> typer.Typer:
    """Return the command line with all its commands."""
    root = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="Is the convergence theorem true as printed, where does it apply, how loose is it?",
    )
    root.callback()(prepare)
    families = {
        name: typer.Typer(no_args_is_help=True, help=text) for name, text in FAMILIES.items()
    }
    for words in COMMANDS:
        *family, name = words.split()
        module = import_module(f"fltheory.commands.{module_name(words)}")
        owner = families[family[0]] if family else root
        owner.command(name, context_settings=getattr(module, "CONTEXT", None))(module.command)
    for name, typer_of_family in families.items():
        root.add_typer(typer_of_family, name=name)
    return root


def module_name(words: str) -> str:
    """Return the name of the file in `fltheory.commands` that has a command.

    Examples
    --------
    >>> module_name("reproduce ca-fed")
    'reproduce_ca_fed'
    """
    return words.replace(" ", "_").replace("-", "_")


app = assembled()


def main() -> NoReturn:
    """Run the command line; bad input is one line and exit status 2."""
    exit_status.run(app)

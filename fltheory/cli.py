"""Assemble the command line from the files of `fltheory.commands`, one per command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from importlib import import_module
from typing import NoReturn

import typer

from fltheory.commands.shared import exit_status
from fltheory.commands.shared.former_names import Rest, add_hidden, with_new_options
from fltheory.commands.shared.preparation import prepare
from fltheory.commands.shared.written_files import with_inputs_kept

# For each kind of user: the words of each command, in the order of the help, and example arguments.
# A command's file is named after its first word.
PANELS = {
    "A theorem": {
        "theorems": "fedau",
        "explain": "sa-fl/5 --corrected",
        "verify": "sa-fl/5 --html report.html",
        "falsify": "sa-fl/5 --out witness.json",
        "prove": "sa-fl/5 --q 1/10 --out proof.json",
        "certify": "witness.json",
        "map": "sa-fl/5 --x q --y rounds --figure map.svg",
        "compare": "my_setting.toml --figure compared.svg",
        "new theorem": "my_theorem.py",
        "new algorithm": "my_algorithm.py",
        "new setting": "my_setting.toml",
    },
    "An implementation": {
        "conformance": "my_code.py:run scaffold",
        "train": "experiments/digits.toml",
    },
    "A deployment": {
        "advise": "log.csv --figure advice.svg",
        "trace describe": "log.csv --figure log.svg",
        "trace fit": "log.csv --out process.toml",
        "trace sample": "process.toml --rounds 1000 --out drawn.csv",
        "weights": "clients.toml",
        "cutoff": "0.1 --rounds 1000",
    },
    "Large jobs": {
        "sweep": "sweep.toml --out sweep.db",
        "results": "sweep.db --where outcome=REFUTED --out refuted.csv",
    },
}
COMMANDS = tuple(words for commands in PANELS.values() for words in commands)
FAMILIES = {
    "new": "Start a file of your own: a theorem, an algorithm or a setting.",
    "trace": "A log of who was online: describe it, fit a process to it, draw another.",
}


def assembled(typed: Collection[str] | None = None) -> typer.Typer:
    """Return the command line with all its commands.

    Parameters
    ----------
    typed : collection of str, optional
        The words after ``fltheory``. Other commands get no options, only their place in the help,
        because reading all options takes longer than showing the help.
    """
    root = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Is the convergence theorem true as printed, where does it apply, how loose is it?",
    )
    root.callback(invoke_without_command=True)(prepare)
    families = {
        name: typer.Typer(no_args_is_help=True, help=text) for name, text in FAMILIES.items()
    }
    for panel, commands in PANELS.items():
        for words, arguments in commands.items():
            *family, name = words.split()
            command = command_of(words)
            add = partial(
                (families[family[0]] if family else root).command,
                name,
                context_settings=getattr(sys.modules[command.__module__], "CONTEXT", None),
                epilog=f"For example: fltheory {words} {arguments}".rstrip(),
            )
            is_typed = typed is None or words.split()[0] in typed
            shown = (with_inputs_kept if is_typed else _without_options)(command)
            (add() if family else add(rich_help_panel=panel))(shown)
        for name in dict.fromkeys(words.split()[0] for words in commands):
            if name in families:
                root.add_typer(families[name], name=name, rich_help_panel=panel)
    for words in COMMANDS:
        if " " in words:
            settings = {"ignore_unknown_options": True}
            root.command(words.split()[1], hidden=True, context_settings=settings)(_whole(words))
    add_hidden(root)
    return root


def _whole(words: str) -> Callable[[Rest], None]:
    """Return a command that corrects users who type only a command's second word."""

    def told(rest: Rest = None) -> None:
        del rest
        raise ValueError(f"command must be fltheory {words}, got fltheory {words.split()[1]}")

    return told


def _without_options(command: Callable[..., None]) -> Callable[[], None]:
    def shown_only() -> None:
        raise AssertionError(f"{command.__module__} was not typed")

    shown_only.__doc__ = command.__doc__
    return shown_only


def command_of(words: str) -> Callable[..., None]:
    """Return the function of a command; for "trace fit", this is ``trace.fit``."""
    file, _, name = words.partition(" ")
    found: Callable[..., None] = getattr(
        import_module(f"fltheory.commands.{file}"), name or "command"
    )
    return found


app = assembled()


def with_loads_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with every ``--load FILE`` in front, wherever it was typed.

    Files must be loaded before the command runs, so the option belongs to the whole program.

    Examples
    --------
    >>> with_loads_first(["verify", "my/1", "--load", "mine.py", "--seed", "1"])
    ['--load', 'mine.py', 'verify', 'my/1', '--seed', '1']
    """
    first, rest = [], []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--load" and (file := next(waiting, None)) is not None:
            first += [argument, file]
        elif argument.startswith("--load="):
            first.append(argument)
        else:
            rest.append(argument)
    return first + rest


def run_script(command: Callable[..., None]) -> NoReturn:
    """Run a function as a separate program, with the options and error handling of a command."""
    root = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    root.command()(with_inputs_kept(command))
    exit_status.run(root, f"python {sys.argv[0]}")


def main() -> NoReturn:
    """Run the command line; bad input gives one line and exit status 2."""
    sys.argv[1:] = with_new_options(with_loads_first(sys.argv[1:]))
    exit_status.run(assembled(sys.argv[1:]))

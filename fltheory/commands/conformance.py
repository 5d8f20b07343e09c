"""``fltheory conformance``."""

from __future__ import annotations

import os
import sys
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fltheory.commands.shared.options import READ, Changes, Seed, pair, written
from fltheory.commands.shared.written_files import tell_written
from fltheory.files.user_file import fault_in, run_file

if TYPE_CHECKING:
    from fltheory.long_work.progress import Progress


def command(
    implementation: Annotated[
        str | None,
        READ,
        typer.Argument(
            help="module:function or file.py:function, called as run(x0, clients, trace, *, "
            "client_lr, local_steps, server_lr, ...); it returns the model after each round, x0 "
            "first.",
            metavar="RUN",
        ),
    ] = None,
    algorithm: Annotated[str | None, typer.Argument(help="Algorithm, e.g. scaffold.")] = None,
    changes: Changes = None,
    seed: Seed = 0,
    rtol: Annotated[float, typer.Option(help="Relative tolerance between models.")] = 1e-9,
    expect: Annotated[
        list[str] | None, typer.Option(help="A law known to fail, and why: law=reason; repeatable.")
    ] = None,
    law: Annotated[list[str] | None, typer.Option(help="Check only this law; repeatable.")] = None,
    first: Annotated[bool, typer.Option("--first", help="Stop at the first failure.")] = False,
    json: Annotated[
        Path | None, written(".json"), typer.Option(help="Write the report as JSON to this file.")
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List algorithms with options and laws.")
    ] = False,
) -> None:
    """Check that an implementation computes what its paper says; exit status 1 if not.

    Clients have gradient(x), loss(x) and n_samples; the trace has one row per round and one column
    per client.
    """
    from fltheory.files.whole_file import write_whole
    from fltheory.long_work.parallel import EndedError, in_own_process

    if listing:
        print(listed_text(algorithm or implementation))
        return
    if implementation is None or algorithm is None:
        raise ValueError(
            "RUN and ALGORITHM must be given, e.g. my_code.py:run scaffold; --list shows algorithms"
        )
    hyper = {name: value_of(text) for name, text in map(pair("--set"), changes or ())}
    asked = {
        "seed": seed,
        "rtol": rtol,
        "expected": dict(map(pair("--expect"), expect or ())),
        "laws": law,
        "stop_at_first": first,
    }
    check = partial(_checked, implementation, algorithm, hyper, asked)
    try:
        conforms, text, document = in_own_process(check, "loading")
    except EndedError as ended:
        raise ValueError(
            f"{implementation} must return models, but its process ended ({ended}): no laws were "
            "checked"
        ) from None
    print(text)
    if json is not None:
        write_whole(json, document)
    tell_written(json)
    if not conforms:
        raise typer.Exit(1)


def _checked(
    implementation: str,
    algorithm: str,
    hyper: Mapping[str, Any],
    asked: Mapping[str, Any],
    progress: Progress,
) -> tuple[bool, str, str]:
    """Return whether an implementation conforms, and the report as text and as JSON."""
    from fltheory.testing import check_algorithm
    from fltheory.testing.conformance.specifications import specification

    def told(done: float, total: float, law: str) -> None:
        progress(done, total, f"checking {law}")

    # Checked here, as an unknown option may have the name of an argument of the check.
    specification(algorithm).checked(hyper)
    run = loaded(implementation)
    report = check_algorithm(run, algorithm, raises=False, progress=told, **asked, **hyper)
    return report.conforms, report.text, report.to_json()


def listed_text(name: str | None) -> str:
    """Return the algorithms, or one of them, with their options and laws, as text."""
    from fltheory.testing.conformance.specifications import conformance_algorithms, specification
    from fltheory.testing.conformance.suite import laws_of

    lines, known = [], conformance_algorithms()
    for one in [specification(name).name] if name else known:
        lines += [one, *(f"  {option}: {text}" for option, text in known[one].items())]
        if name:
            lines += ["laws:", *(f"  {law.name}: {law.says}" for law in laws_of(one))]
    if not name:
        lines.append("laws of an algorithm: fltheory conformance --list ALGORITHM")
    return "\n".join(lines)


def value_of(text: str) -> Any:
    """Return an option's value: a number, a tuple of numbers, None, or else the text itself.

    Examples
    --------
    >>> value_of("2"), value_of("0.5, 0.5"), value_of("zero")
    (2, (0.5, 0.5), 'zero')
    """
    try:
        value = literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return tuple(value) if isinstance(value, list) else value


def loaded(implementation: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` or ``file.py:function`` names.

    Modules of the working directory can be imported.

    Raises
    ------
    ValueError
        If there is no such file, module or function, or importing it fails: in one line.
    """
    place, sign, name = implementation.rpartition(":")
    if not sign or not place or not name:
        raise ValueError(f"RUN must be module:function or file.py:function, got {implementation!r}")
    module = _imported(place)
    try:
        found = attrgetter(name)(module)
    except AttributeError:
        raise ValueError(f"RUN must name a function of {place}, got {name!r}") from None
    except Exception as error:
        raise ValueError(fault_in(_home(place), error)) from error
    if not callable(found):
        raise ValueError(f"RUN must be a function, got {name!r} = {found!r}")
    return found


def _imported(place: str) -> ModuleType:
    sys.path[:0] = _search_path(place)
    if place.endswith(".py"):
        return run_file(Path(place), "file of RUN")
    try:
        return import_module(place)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A script that ends with sys.exit() has not been checked, whatever its status.
        raise ValueError(fault_in(_home(place), error)) from error


def _home(place: str) -> Path:
    """Return the file of a module, or its name if it has none."""
    try:
        spec = None if place.endswith(".py") else find_spec(place)
    except (ImportError, ValueError):
        spec = None
    return Path(place if spec is None or spec.origin is None else spec.origin)


def _search_path(place: str) -> Sequence[str]:
    folder = os.path.dirname(os.path.realpath(place)) if place.endswith(".py") else str(Path.cwd())
    return [folder] if folder not in sys.path else []

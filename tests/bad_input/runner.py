"""Bad inputs, one after the other, each in a forked process: what is wrong with the answers.

    python -m tests.bad_input.runner commands|calls|both [--show] [--third] [PART]

One process loads everything once; a case costs its fork and its work. An answer is fine if it
comes within five seconds of processor time and a gigabyte, with the documented exit status or
kind of error, in one line that says what it should, and nothing written.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.part import part

HERE = Path(__file__).parent
SECONDS = 5
# A machine under load may take longer than the processor works.
PATIENCE = float(os.environ.get("PATIENCE", "60"))
MEMORY = 1 << 30
LONGEST_LINE = 800
LONG_NAME = "x" * 300


@dataclass(frozen=True)
class Case:
    """A bad input.

    Attributes
    ----------
    name : str
    kind : str
        What its command, or its argument, has in common with others.
    says : str
        What the answer must have in it.
    run : callable
        Called in a process of its own, in a folder with the corpus's files.
    check : callable
        Returns what is wrong with its exit status, output and error output, nothing if all is fine.
    """

    name: str
    kind: str
    says: str
    run: Callable[[], None]
    check: Callable[[str, int, str, str], str]


@dataclass(frozen=True)
class Answer:
    """What became of a case: what is wrong, empty if nothing is; what it wrote; how long."""

    case: str
    wrong: str
    err: str
    seconds: float


def answers(cases: list[Case], folder: Path) -> Iterator[Answer]:
    """Run cases one after the other, in a folder that none of them may change."""
    os.chdir(folder)
    waiting = cases
    while waiting:
        done = 0
        for case, answer in zip(waiting, _answered_by_a_child(waiting, folder), strict=False):
            done += 1
            yield Answer(
                case.name,
                case.check(case.says, answer["status"], answer["out"], answer["err"])
                or answer["left"],
                answer["err"],
                answer["seconds"],
            )
        waiting = waiting[done:]


def _answered_by_a_child(cases: list[Case], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield answers of cases until one ends the process that all of them run in."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            _be_child(cases, folder, writing)
        finally:
            # Whatever happens, what the parent has still to do is not done twice.
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as answered:
        for _ in cases:
            began = time.monotonic()
            ready, _, _ = select.select([answered], [], [], PATIENCE)
            line = answered.readline() if ready else b""
            if line:
                yield json.loads(line)
                continue
            with contextlib.suppress(ProcessLookupError):
                # Also whatever it has started.
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            seconds = time.monotonic() - began
            status = os.waitstatus_to_exitcode(status) if ready else -signal.SIGKILL
            yield {"status": status, "out": "", "err": "", "left": "", "seconds": seconds}
            return
    os.waitpid(child, 0)


def _be_child(cases: list[Case], folder: Path, writing: int) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    memory = _virtual() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    before = _listing(folder)
    for case in cases:
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS + 1, resource.RLIM_INFINITY))
        began = time.monotonic()
        status, out, err = _run(case)
        seconds = time.monotonic() - began
        left = ""
        if (after := _listing(folder)) != before:
            changed = sorted(dict(after.items() ^ before.items()))
            left = f"files were written or taken away: {', '.join(changed)[:200]}"
            for name in reversed(changed):
                if name not in before:
                    (os.rmdir if name.endswith("/") else os.unlink)(name)
            before = _listing(folder)
        answer = {"status": status, "out": out, "err": err, "left": left, "seconds": seconds}
        os.write(writing, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def _run(case: Case) -> tuple[int, str, str]:
    """Run a case: its exit status, and what it wrote."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        status = 0
        try:
            case.run()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1 if stop.code else 0
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        return status, _words(out), _words(err)


def _virtual() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _words(file: Any) -> str:
    file.seek(0)
    return str(file.read(1 << 16).decode("utf-8", "replace"))


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the files below a folder, with their sizes and times."""
    found = {}
    for entry in os.scandir(folder):
        if not entry.is_dir(follow_symlinks=False):
            about = entry.stat(follow_symlinks=False)
            found[entry.path] = (about.st_size, about.st_mtime_ns)
        elif entry.name != "__pycache__":
            found[f"{entry.path}/"] = (0, 0)
            found |= _listing(Path(entry.path))
    return found


# ---------------------------------------------------------------- what is wrong with an answer


def _stopped(status: int, err: str) -> str:
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"took more than {SECONDS} s"
    if status < 0:
        return f"died of signal {-status}"
    if "MemoryError" in err:
        return "took too much memory"
    return ""


def wrong_command(says: str, status: int, out: str, err: str) -> str:
    """Return what is wrong with how a command ended on bad input."""
    lines = err.splitlines()
    if stopped := _stopped(status, err):
        return stopped
    if "Traceback" in err:
        return f"traceback: {lines[-1]}"
    if status == 0:
        return "accepted"
    if status != 2:
        return f"exit status {status}"
    if out.strip():
        return f"output before the error: {out.splitlines()[0]}"
    if len(lines) != 1 or not err.startswith("fltheory: "):
        return f"{len(lines)} lines"
    return _unclear(says, lines[0])


def wrong_call(says: str, status: int, out: str, err: str) -> str:
    """Return what is wrong with how a call of the library ended."""
    if stopped := _stopped(status, err):
        return stopped
    if status == 0:
        return f"accepted: {out.strip()[:80]}"
    kind, _, message = err.partition(": ")
    if status != 2 or kind != "ValueError":
        return f"raises {err.strip().splitlines()[-1][:200]}"
    return _unclear(says, message)


def _unclear(says: str, line: str) -> str:
    if len(line) > LONGEST_LINE:
        return f"a line of {len(line)} characters"
    if says not in line:
        return f"does not say {says!r}"
    return ""


# ---------------------------------------------------------------- the tables as cases


def command_cases(folder: Path) -> list[Case]:
    """Return the cases of the table of command lines."""
    from tests.typed import run_typed

    def run(words: list[str]) -> Callable[[], None]:
        def now() -> None:
            run_typed(words)

        return now

    cases = []
    for number, group in enumerate(_table("commands.toml")["group"]):
        command = group["command"]
        for place, (given, says) in enumerate(group["cases"]):
            name = f"{command} {given}"
            words = name
            if "FILE" in command:
                base = folder / group.get("base", f"none{group.get('ending')}")
                file = folder / f"given-{number}-{place}{base.suffix}"
                text = given if "ending" in group else _edited(base, given)
                file.write_text(text, encoding="utf-8")
                words = command.replace("FILE", file.name)
                says = says.replace("FILE", file.name)
            words, says = (text.replace("NAME", LONG_NAME) for text in (words, says))
            cases.append(Case(name, command, says, run(shlex.split(words)), wrong_command))
    return cases


def _edited(base: Path, edit: str) -> str:
    """Return a file's text with a field changed: "a.b = VALUE", or "-a.b" to take it away."""
    import tomllib

    import tomli_w

    is_json = base.suffix == ".json"
    document = json.loads(base.read_text()) if is_json else tomllib.loads(base.read_text())
    path, _, value = edit.partition(" = ")
    *parents, last = path.removeprefix("-").split(".")
    table: Any = document
    for parent in parents:
        table = table[int(parent) if isinstance(table, list) else parent]
    last_key: Any = int(last) if isinstance(table, list) else last
    if path.startswith("-"):
        del table[last_key]
    else:
        table[last_key] = json.loads(value) if is_json else tomllib.loads(f"x = {value}")["x"]
    return json.dumps(document) if is_json else tomli_w.dumps(document)


def call_cases(folder: Path) -> list[Case]:
    """Return the cases of the table of calls: those written out, and arguments of each kind."""
    names = _names()

    def run(text: str) -> Callable[[], None]:
        def now() -> None:
            try:
                print(repr(eval(text, dict(names))))
            except Exception as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
                sys.exit(2 if isinstance(error, ValueError) else 3)

        return now

    table = _table("calls.toml")
    texts = [(*case, case[0].partition("(")[0]) for case in table["calls"]]
    for group in table["group"]:
        good = group["good"]
        for argument, kind in group["bad"].items():
            for value in table["kinds"][kind]:
                given = {**good, argument: value}
                listed = ", ".join(f"{name}={text}" for name, text in given.items())
                texts.append((f"{group['make']}({listed})", argument, kind))
    return [Case(text, kind, says, run(text), wrong_call) for text, says, kind in texts]


def third(cases: list[Case]) -> list[Case]:
    """Return a third of each kind of case."""
    kinds: dict[str, list[Case]] = {}
    for case in cases:
        kinds.setdefault(case.kind, []).append(case)
    return [case for kind in kinds.values() for case in part(kind, name=lambda c: c.name, of=3)]


def _names() -> dict[str, Any]:
    """Return what calls may name: every public name, what commands call besides, and NumPy."""
    from importlib import import_module

    import numpy as np

    import fltheory as fl

    found: dict[str, Any] = {"np": np, "fl": fl, "Path": Path, "nan": np.nan, "inf": np.inf}
    for package in reversed(
        (
            "problems",
            "participation",
            "algorithms",
            "engines",
            "weights",
            "logs",
            "fedau",
            "learnability",
            "verify",
            "worst_case",
        )
    ):
        module = import_module(f"fltheory.{package}")
        found |= {name: getattr(module, name) for name in module.__all__}
    for module, name in (
        ("verify.region_map", "default_axis"),
        ("logs.transitions", "draw_log"),
    ):
        found[name] = getattr(import_module(f"fltheory.{module}"), name)
    found["setting"] = fl.theorem("sa-fl/5", reading="derived").regimes["q = 0"].setting
    return found


def _table(name: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def main(which: str, *options: str) -> None:
    """Run a table or both, print what is wrong as lines of JSON, and what was run."""
    from tests.bad_input.files import made_files
    from tests.bad_input.loading import load_everything

    load_everything()
    parts = [option for option in options if not option.startswith("--")] or [""]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        made_files(folder)
        tables = {"commands": [command_cases], "calls": [call_cases]}
        makers = tables.get(which, [command_cases, call_cases])
        cases = [case for made in makers for case in made(folder)]
        cases = third(cases) if "--third" in options else cases
        cases = [case for case in cases if any(map(case.name.startswith, parts))]
        wrong, slowest = 0, Answer("", "", "", 0.0)
        for answer in answers(cases, folder):
            slowest = max(slowest, answer, key=lambda one: one.seconds)
            if answer.wrong:
                wrong += 1
            if answer.wrong or "--show" in options:
                print(f"{answer.seconds:.2f} {answer.case[:160]!r}: {answer.wrong or 'fine'}")
                print(f"    {answer.err[-400:].strip()}", flush=True)
        who = resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF
        used = map(resource.getrusage, who)
        seconds = sum(one.ru_utime + one.ru_stime for one in used)
        os.chdir("/")
    print(
        f"{len(cases)} cases, {wrong} wrong, {seconds:.1f} s of processor time, "
        f"slowest {slowest.seconds:.2f} s: {slowest.case[:80]}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

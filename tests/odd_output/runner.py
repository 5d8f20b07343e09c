"""Every command where its output is not what it usually is, in forked processes.

    python -m tests.odd_output.runner [--all | --part] [COMMAND ...]

Three runs of each: into a terminal of 40 columns that knows ASCII alone; into a pipe that nobody
reads any more; with a full disk, and the output on it. It must end with the documented status, in
at most one line of error; what it writes is whole, the same each time, or absent.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import resource
import shlex
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.odd_output.undeclared import refuse_undeclared
from tests.part import part

COLUMNS = 40
CLOSED = "the output must be open, got a closed one"
OUT = "out"
"""The folder that commands write to."""

QUICK = (
    "theorems",
    "explain sa-fl/5",
    "explain sa-fl/5 --corrected",
    "verify fedar/assumption-7 --json out/v.json --csv out/v.csv --html out/v.html",
    "falsify sa-fl/5 --budget 100",
    "certify kept.json",
    "new theorem out/t.py",
    "new algorithm out/a.py",
    "new setting out/s.toml",
    "conformance --list",
    "conformance code.py:run FedAvg --first --json out/law.json",
    "trace fit log.csv --out out/process.toml",
    "trace sample process.toml --rounds 20 --out out/drawn.csv",
    "weights trade-off.toml --out out/weights.csv",
    "cutoff 0.1 0.5 --rounds 50",
    "sweep sweep.toml --processes 1 --out out/sweep.db",
    "results store.db --out out/table.csv",
    "results store.db",
)
SLOW = (
    "--help",
    "explain sa-fl/5 --proof",
    "prove sa-fl/4 --q 1/10 --out out/proof.json",
    "certify certificate.json",
    "map fedar/assumption-7 --figure out/map.svg",
    "compare setting.toml --json out/c.json --figure out/c.svg",
    "train experiment.toml --out out/runs",
    "advise log.csv --figure out/advice.svg --json out/advice.json",
    "trace describe log.csv --figure out/log.svg",
    "cutoff 0.1 0.5 --rounds 50 --figure out/cutoff.svg",
)
# Calls of the other commands, which need no odd output to show that they run, and what a call says
# where it would take too long, or an extra is missing.
ONCE = {
    "prove sa-fl/4 --q 1/10": "",
    "map ca-fed/appendix-e": "",
    "compare setting.toml": "",
    "advise log.csv": "",
    "trace describe log.csv": "",
    "train experiment.toml": "fltheory[torch]",
}


@dataclass(frozen=True)
class Answer:
    """How a command ended: its status, what it said, and the files it left."""

    status: int
    out: bytes
    err: str
    files: dict[str, bytes]


class Terminal(io.TextIOWrapper):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def run_all(
    commands: Sequence[str], folder: Path, prepare: Callable[[int], None]
) -> dict[str, Answer]:
    """Run commands in a process of their own, with the output that ``prepare`` makes of a file."""
    answers, filled = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.chdir(folder)
        with open(filled, "wb") as stream:
            for words in commands:
                stream.write(pickle.dumps(_answer(words, folder, prepare)))
                stream.flush()
        os._exit(0)
    os.close(filled)
    with open(answers, "rb") as stream:
        found = {words: pickle.load(stream) for words in commands}
    os.waitpid(child, 0)
    return found


def _answer(words: str, folder: Path, prepare: Callable[[int], None]) -> Answer:
    from fltheory import cli

    shutil.rmtree(folder / OUT, ignore_errors=True)
    (folder / OUT).mkdir()
    # Files may not grow where the disk is full, so errors go to a pipe.
    said, err = os.pipe()
    os.dup2(err, 2)
    os.close(err)
    with tempfile.TemporaryFile() as out:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8")
        prepare(out.fileno())
        sys.argv = ["fltheory", *shlex.split(words)]
        status: object = 1
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code
        except BaseException:
            traceback.print_exc()
        try:
            if sys.stdout is not None:
                # As Python does when it ends, and then has a status of its own.
                sys.stdout.flush()
        except OSError:
            status = 120
        sys.stderr.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with open(said, "rb") as stream:
            error = stream.read().decode("utf-8", "replace")
        out.seek(0)
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted((folder / OUT).rglob("*"))
            if path.is_file()
        }
        return Answer(
            status if isinstance(status, int) else int(bool(status)), out.read(), error, files
        )


def _stream(number: int, kind: type[io.TextIOWrapper] = io.TextIOWrapper, **options: str) -> None:
    os.dup2(number, 1)
    sys.stdout = kind(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), **options)


def usual(out: int) -> None:
    """Give a file."""
    _stream(out, encoding="utf-8")


def unheard(out: int) -> None:
    """Give a pipe whose other end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    _stream(writing, encoding="utf-8")


def closed(out: int) -> None:
    """Give nothing, as ``>&-`` does."""
    os.close(1)
    sys.stdout = None


def full(out: int) -> None:
    """Give an output that is full, on a disk that has no room for more than 100 bytes."""
    _stream(os.open("/dev/full", os.O_WRONLY), encoding="utf-8")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))


def narrow(out: int) -> None:
    """Give a terminal of 40 columns that knows ASCII alone."""
    os.environ |= {"COLUMNS": str(COLUMNS), "TERM": "dumb"}
    _stream(out, Terminal, encoding="ascii")


def faults(shown: Answer, cut: Answer, stopped: Answer) -> Iterator[str]:
    """Yield what is wrong with how a command ended where it is narrow, unheard, and full."""
    if shown.err or shown.status not in (0, 1):
        yield f"narrow: status {shown.status}, {shown.err[-300:]!r}"
    yield from (f"narrow: {line!r}" for line in too_long(shown.out.decode("ascii", "replace")))
    yield from (f"narrow: {line!r}" for line in cut_short(shown.out.decode("ascii", "replace")))
    if b"\x1b" in shown.out:
        yield "narrow: a dumb terminal is sent styles"
    said = bool(shown.out)
    if cut.err or cut.status != (141 if said else shown.status):
        yield f"unheard: status {cut.status}, {cut.err[-300:]!r}"
    for name, content in cut.files.items():
        # Some say when they were made, or how long that took.
        if not name.endswith((".db", ".pt")) and _timeless(content) != _timeless(
            shown.files.get(name, b"")
        ):
            yield f"unheard: {name} differs"
    line = stopped.err.splitlines()
    if stopped.status != 2 or len(line) != 1 or not line[0].startswith("fltheory: "):
        yield f"full: status {stopped.status}, {stopped.err[-300:]!r}"
    if left := [name for name, content in stopped.files.items() if content]:
        yield f"full: {left} was left"


def helps() -> Iterator[str]:
    """Yield the call for every command's help; each has another call as well."""
    from fltheory.cli import COMMANDS

    for command in COMMANDS:
        assert any(f"{words} ".startswith(f"{command} ") for words in (*QUICK, *ONCE)), command
        yield f"{command} --help"


def not_run(answers: dict[str, Answer]) -> Iterator[str]:
    """Yield the commands whose help or call does not end as it should."""
    for words, answer in answers.items():
        says = ONCE.get(words, "")
        status = 2 if says else 0
        if answer.status != status or bool(answer.err) != bool(says) or says not in answer.err:
            yield f"{words}: status {answer.status}, {answer.err[-300:]!r}"


def _timeless(content: bytes) -> bytes:
    return re.sub(rb'("seconds\w*": )[-+.e0-9]+', rb"\1", content)


def too_long(text: str) -> list[str]:
    """Return the lines that are wider than the terminal for no good reason."""
    return [
        line
        for line in text.splitlines()
        if len(line) > COLUMNS
        and len(line.split()) > 1
        and not line.lstrip().startswith("fltheory ")
    ]


def cut_short(text: str) -> list[str]:
    """Return the lines of tables with a mark, an ellipsis in ASCII, in place of what is cut."""
    return [line for line in text.splitlines() if "~ |" in line]


def main(*options: str) -> None:
    """Run the quick commands, one in five of them, all, or those named; print what is wrong."""
    every = 5 if options == ("--part",) else 1
    if every > 1:
        options = ()
    if not options:
        # The slow ones need extras.
        refuse_undeclared()
    from tests.bad_input.files import good_files
    from tests.bad_input.loading import load_everything
    from tests.sweep.designs import as_toml

    load_everything()
    begun = time.process_time()
    named = [option for option in options if option != "--all"]
    chosen = [
        words
        for words in (*part(QUICK, of=every), *(SLOW if options else ()))
        if not named or any(words.startswith(part) for part in named)
    ]
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        good_files(folder)
        (folder / "sweep.toml").write_text(as_toml())
        run_all(["sweep sweep.toml --processes 1 --out store.db"], folder, usual)
        answers = [run_all(chosen, folder, condition) for condition in (narrow, unheard, full)]
        for words in chosen:
            found = list(faults(*(answer[words] for answer in answers)))
            wrong += bool(found)
            for fault in found:
                print(f"{words}: {fault}", flush=True)
        if not options:
            for fault in not_run(run_all([*helps(), *part(ONCE, of=every)], folder, usual)):
                wrong += 1
                print(fault)
        answer = run_all(["theorems"], folder, closed)["theorems"]
        if (answer.status, answer.err) != (2, f"fltheory: {CLOSED}\n"):
            wrong += 1
            print(f"closed: status {answer.status}, {answer.err!r}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() - begun + used.ru_utime + used.ru_stime
    print(f"{len(chosen)} commands, {wrong} wrong, {seconds:.0f} s of processor time")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

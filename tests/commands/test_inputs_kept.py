"""No command writes over what it reads, nor one file twice, however the two are spelt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from fltheory.cli import COMMANDS, command_of
from fltheory.commands.shared import written_files
from fltheory.commands.shared.written_files import file_uses, with_inputs_kept
from fltheory.files.read_file import Result, results_apart, text_of
from fltheory.logs import read_log
from tests.bad_input.files import EXPERIMENT, LOG

Command = Callable[..., None]
Run = Callable[..., tuple[int, str, str]]


def clashes() -> Iterator[tuple[str, str, str]]:
    """Yield a command's words and two parameters, the later of which it writes."""
    for words in COMMANDS:
        uses = file_uses(command_of(words))
        reads = [name for name, use in uses.items() if use.writes is not True]
        writes = [name for name, use in uses.items() if use.writes]
        for one, other in (*product(reads, writes), *combinations(writes, 2)):
            if one != other:
                yield words, one, other


def given(words: str, **places: Path | str) -> dict[str, Any]:
    """Return arguments as Typer gives them."""
    hints = get_type_hints(command_of(words))
    found: dict[str, Any] = dict.fromkeys(signature(command_of(words)).parameters)
    for name, place in places.items():
        text = f"{place}:run" if words == "conformance" and name == "implementation" else place
        found[name] = [text] if "list" in str(hints[name]) else text
    return found


# What names files although it is no path: "file.py:function", and a log among numbers.
NAMES_FILES = {("conformance", "implementation"), ("cutoff", "p")}


def test_every_parameter_that_names_a_file_says_what_becomes_of_it() -> None:
    for words in COMMANDS:
        command = command_of(words)
        named = {name for name, hint in get_type_hints(command).items() if "Path" in str(hint)}
        assert named | {name for one, name in NAMES_FILES if one == words} == set(
            file_uses(command)
        )


@pytest.mark.parametrize(("words", "one", "other"), list(clashes()))
def test_a_file_given_twice_is_refused_before_any_work(
    tmp_path: Path, words: str, one: str, other: str
) -> None:
    (tmp_path / "file.pt").write_text("kept")
    (tmp_path / "link").symlink_to("file.pt")
    uses = file_uses(command_of(words))
    places = {
        name: tmp_path if uses[name].files else tmp_path / place
        for name, place in ((one, "file.pt"), (other, "link"))
    }
    arguments = given(words, **places) | {"record": other == "baseline"}
    with pytest.raises(ValueError, match=" must be another file than "):
        with_inputs_kept(command_of(words))(**arguments)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder: files, links of all kinds to them and to what is not there."""
    files = {"log.csv": LOG, "sizes.csv": "client,size\nann,1\nbob,2\n", "e.toml": EXPERIMENT}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/log.csv").write_text(LOG)
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "log.csv")
    links = {"link.csv": "log.csv", "far.csv": "link.csv", "here": ".", "to-new.csv": "new.csv"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    # Python keeps a file compiled that it has loaded, beside it.
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.name: path.read_bytes() for path in files}


SAME = ["./log.csv", "link.csv", "far.csv", "hard.csv", "here/log.csv", "folder/../log.csv", "{}"]
SAME_NEW = ["./new.csv", "NEW.csv", "to-new.csv", "here/new.csv", "folder/../new.csv", "{}"]


@pytest.mark.parametrize("name", ["log.csv", *SAME])
@pytest.mark.parametrize("is_read", [True, False])
def test_one_file_is_known_under_all_its_names(folder: Path, name: str, is_read: bool) -> None:
    first, second = Path("log.csv"), Path(name.format(folder / "log.csv"))
    for one, other in ((first, second), (second, first)):
        results = [Result("out", one), *([] if is_read else [Result("page", other)])]
        with pytest.raises(ValueError, match="must be another file than"):
            results_apart(results, [other] if is_read else []).__enter__()


@pytest.mark.parametrize("name", SAME_NEW)
def test_a_file_that_is_not_there_yet_is_known_too(folder: Path, name: str) -> None:
    results = [
        Result("out", Path("new.csv")),
        Result("page", Path(name.format(folder / "new.csv"))),
    ]
    with pytest.raises(ValueError, match="page must be another file than out, got "):
        results_apart(results, []).__enter__()


@pytest.mark.parametrize("other", ["folder/log.csv", "folder/new.csv", "sizes.csv", "none/log.csv"])
def test_different_files_are_let_through(folder: Path, other: str) -> None:
    results = [Result("out", Path("log.csv")), Result("page", Path("new.csv"))]
    with results_apart(results, [Path(other)]):
        pass


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("weights log.csv --out log.csv", "out must be another file than 'log.csv', which is read"),
        ("weights log.csv --sizes sizes.csv --out sizes.csv", "out must be another file than"),
        ("trace sample log.csv --rounds 9 --out ./log.csv", "which is read, got 'log.csv'"),
        ("trace sample log.csv --rounds 9 --out hard.csv", "which is read, got 'hard.csv'"),
        ("advise log.csv --json link.csv", "json must be another file than 'log.csv'"),
        ("train e.toml --page e.toml", "page must be another file than 'e.toml', which is read"),
        ("verify --baseline log.csv --csv log.csv", "csv must be another file than 'log.csv'"),
        ("verify sa-fl/5 --json new.json --html new.json", "html must be another file than json"),
        (
            "--load mine.py advise log.csv --json mine.py",
            "json must be another file than 'mine.py'",
        ),
    ],
)
def test_what_users_type_is_refused(
    folder: Path, fltheory_command: Run, own_theorems_forgotten: None, line: str, said: str
) -> None:
    if "--load" in line:
        assert fltheory_command("new", "theorem", "mine.py")[0] == 0
    before = contents(folder)
    status, out, err = fltheory_command(*line.split())
    assert (status, out) == (2, "")
    assert said in err
    assert contents(folder) == before


@pytest.mark.parametrize(("name", "status"), [("log.csv", 2), ("hard.csv", 2), ("other.txt", 0)])
def test_the_output_is_a_file_too(
    folder: Path, monkeypatch, fltheory_command: Run, name: str, status: int
) -> None:
    (folder / "other.txt").write_text("")
    monkeypatch.setattr(written_files, "_OUTPUT", folder / name)
    found, _, err = fltheory_command("trace", "fit", "log.csv", "--out", "process.toml")
    assert found == status
    assert ("the output must be another file than 'log.csv'" in err) == (status == 2)


def test_what_is_read_meanwhile_is_no_result_either(folder: Path) -> None:
    with results_apart([Result("page", Path("link.csv")), Result("out", Path("e.toml"), True)], []):
        assert text_of("it must be there", "e.toml") == EXPERIMENT
        with pytest.raises(ValueError, match=r"^page must be another file than 'hard.csv', which"):
            read_log("hard.csv")
    assert read_log("hard.csv").n_clients == 2


def test_two_commands_may_record_in_one_file_at_once(
    tmp_path: Path, monkeypatch, fltheory_command
) -> None:
    from fltheory import verify
    from fltheory.verify.baseline import read_baseline, write_baseline
    from fltheory.verify.runs import Record

    path, check, other = tmp_path / "b.csv", verify.check_regimes, ("my/1", "printed", "one")

    def meanwhile(*statements: Any, **options: Any) -> Any:
        write_baseline(path, {other: Record("HOLDS", 0.5)})
        return check(*statements, **options)

    monkeypatch.setattr(verify, "check_regimes", meanwhile)
    line = "verify fedar/assumption-7 --baseline", path, "--record"
    status, _, err = fltheory_command(*line[0].split(), *line[1:])
    assert (status, err) == (0, "")
    assert set(read_baseline(path)) > {other}

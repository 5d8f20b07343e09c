"""What is wrong with a log or with sizes, said alike by every command that reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

COMMANDS: dict[str, list[str]] = {
    "advise": ["advise", "log.csv", "--json", "found.json"],
    "describe": ["trace", "describe", "log.csv", "--json", "found.json"],
    "fit": ["trace", "fit", "log.csv", "--out", "process.toml"],
    "sample": ["trace", "sample", "log.csv", "--rounds", "10", "--out", "drawn.csv"],
    "weights": ["weights", "log.csv", "--out", "weights.csv"],
    "cutoff": ["cutoff", "log.csv", "--rounds", "20"],
    "train": ["train", "experiment.toml", "--out", "runs"],
}
WITH_SIZES = ("advise", "weights")
EXPERIMENT = """\
title = "A test"
source = "Nobody"
figure = "late"
seeds = [0]
data = { name = "digits", training_fraction = 0.1 }
model = { name = "logistic" }
partition = { kind = "classes", n_clients = 2, classes_per_client = 5 }
participation = { kind = "log", file = "log.csv" }
algorithm = { name = "FedAvg" }
training = { rounds = 2, client_lr = 0.1, local_steps = 1, batch_size = 16 }
columns = [{ label = "one" }]
rows = [{ label = "FedAvg" }]
"""

# A log's text, and what is said after the file's name.
LOGS = {
    "overlapping intervals": (
        "client,from,to\nann,0,3\nbob,1,2\nann,2,4\n",
        "line 4: stays of a client must not overlap, got two of 'ann', the other in line 2",
    ),
    "times out of order": (
        "client,time,present\nann,0,1\nbob,1,1\nann,2,0\nann,1,1\n",
        "line 5: time of a client must be after its previous one, "
        "which is 2 in line 4; got 1 for 'ann'",
    ),
    "from after to": ("client,from,to\nann,0,3\nbob,4,2\n", "line 3: from must be before to"),
    "rounds out of order": (
        "round,ann,bob\n0,1,0\n2,0,1\n1,1,1\n",
        "line 3: rounds must be consecutive, got 2 after 0",
    ),
    "one round": ("round,ann,bob\n0,1,0\n", "a log must have at least two rounds, got one"),
    "one moment": (
        "client,time,present\nann,5,1\nbob,5,0\n",
        "a log must have at least two rounds, got one",
    ),
    "nobody ever": (
        "round,ann,bob\n0,0,0\n1,0,0\n",
        "at least one client must be online in at least one round",
    ),
    "no stays": (
        "client,from,to\nann,,\nbob,,\n",
        "at least one client must be online at some time",
    ),
    "no client": ("client,from,to\nann,0,3\n,1,2\n", "line 3: client must be a name, got none"),
    "half there": ("round,ann,bob\n0,1,0\n1,0,0.5\n", "line 3: bob must be 0 or 1, got '0.5'"),
    "no time": ("client,from,to\nann,0,3\nbob,now,4\n", "line 3: from must be a number or a date"),
    "no date": (
        "client,time,present\nann,2026-01-01,1\nbob,today,1\n",
        "line 3: time must be a number or a date, got 'today'",
    ),
    "no log": ("name,age\nann,3\n", "line 1: columns must be client,time,present;"),
    "no rows": ("client,from,to\n", "a log must have rows below its header, got none"),
}
SIZES = {
    "client without size": ("client,size\nann,1\n", "every client of the log must have a size"),
    "client twice": ("client,size\nann,1\nbob,1\nann,2\n", "line 4: client 'ann' must appear once"),
    "no size": ("client,size\nann,1\nbob,0\n", "line 3: size must be a positive number, got '0'"),
    "no header": ("ann,1\nbob,2\n", "line 1: the header must be client,size"),
}
FINE = "client,from,to\nann,0,5\nann,7,20\nbob,2,16\n"
# Rules that are no faults: docs/how-to/logs.md.
ACCEPTED = {
    "all present": "round,ann,bob\n" + "".join(f"{number},1,1\n" for number in range(20)),
    "one never there": FINE + "cid,,\n",
    "stays in any order": "client,from,to\nbob,2,16\nann,7,20\nann,0,5\n",
    "still there": FINE + "cid,4,\n",
    "semicolons": FINE.replace(",", ";"),
}

Run = Callable[..., tuple[int, str, str]]


def ran(run: Run, name: str, *more: str) -> tuple[int, str, str]:
    if name == "train":
        pytest.importorskip("torch")
        Path("experiment.toml").write_text(EXPERIMENT)
    return run(*COMMANDS[name], *more)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("fault", LOGS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_fault_of_a_log_is_one_line(fltheory_command: Run, command: str, fault: str) -> None:
    text, said = LOGS[fault]
    Path("log.csv").write_text(text)
    status, out, err = ran(fltheory_command, command)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert f"log.csv: {said}" in err
    assert {path.name for path in Path().iterdir()} <= {"log.csv", "experiment.toml"}


@pytest.mark.parametrize("fault", SIZES)
@pytest.mark.parametrize("command", WITH_SIZES)
def test_a_fault_of_sizes_is_one_line(fltheory_command: Run, command: str, fault: str) -> None:
    text, said = SIZES[fault]
    Path("log.csv").write_text(FINE)
    Path("sizes.csv").write_text(text)
    status, out, err = ran(fltheory_command, command, "--sizes", "sizes.csv")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert f"sizes.csv: {said}" in err
    assert {path.name for path in Path().iterdir()} == {"log.csv", "sizes.csv"}


# Advice on logs that are fine takes seconds: tests/commands/test_advise_command.py.
@pytest.mark.parametrize("kind", ACCEPTED)
@pytest.mark.parametrize("command", ["describe", "fit", "sample", "weights", "cutoff", "train"])
def test_what_is_no_fault_is_accepted(fltheory_command: Run, command: str, kind: str) -> None:
    Path("log.csv").write_text(ACCEPTED[kind])
    more = ["--set", "partition.n_clients=3"] if "cid" in ACCEPTED[kind] else []
    status, _, err = ran(fltheory_command, command, *(more if command == "train" else []))
    assert (status, err) == (0, "")

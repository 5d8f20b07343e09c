"""``fltheory trace``: a log described, fitted and drawn."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from fltheory.engines.setting_file import read_participation
from fltheory.logs import AvailabilityLog, read_log, write_log
from fltheory.participation import MarkovOnOff, Trace


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    """Return a log of four clients and 300 rounds; the last client is never there."""
    masks = np.random.default_rng(5).random((300, 4)) < [0.2, 0.5, 0.8, 0]
    write_log(
        tmp_path / "log.csv.gz", AvailabilityLog.from_masks(masks, ["ann", "bob", "cid", "dot"])
    )
    return tmp_path / "log.csv.gz"


def test_describe_says_it_in_words_numbers_and_a_figure(
    fltheory_command, log_file, tmp_path
) -> None:
    found, figure = tmp_path / "found.json", tmp_path / "log.svg"
    status, out, err = fltheory_command(
        "trace", "describe", log_file, "--json", found, "--figure", figure
    )
    assert (status, err) == (0, "")
    assert "4, 300 rounds" in out
    assert "never online     1: dot" in out
    assert "not rejected" in out
    assert f"`fltheory advise {log_file}` says" in out
    document = json.loads(found.read_text())
    shares = read_log(log_file).present().mean(axis=0)
    assert [one["availability"] for one in document["each"]] == shares.tolist()
    assert document["never_there"] == ["dot"]
    assert document["each"][3]["second_eigenvalue"] is None
    assert "<svg" in figure.read_text()


def test_what_comes_next_reads_the_log_as_it_was_read(fltheory_command, tmp_path) -> None:
    log = tmp_path / "my log.csv"
    log.write_text("who,on,off\nann,0,60\nbob,60,\nann,180,300\n")
    read = ("--round-length", "60", "--columns", "client=who,from=on,to=off")
    _, out, _ = fltheory_command("trace", "describe", log, *read)
    assert "never online     0 of those that the log names\n" in out
    (line,) = (line for line in out.splitlines() if line.startswith("Next: "))
    words = shlex.split(line.split("`")[1])
    assert words == [
        *("fltheory", "advise", str(log)),
        *("--round-length", "60.0", "--columns", "client=who,from=on,to=off"),
    ]


def test_fit_writes_what_a_setting_has_and_sample_draws_it(
    fltheory_command, log_file, tmp_path
) -> None:
    process, drawn = tmp_path / "process.toml", tmp_path / "drawn.csv"
    assert fltheory_command("trace", "fit", log_file, "--out", process)[0] == 0
    fitted, names = read_participation(process)
    assert isinstance(fitted, MarkovOnOff)
    assert names == ("ann", "bob", "cid", "dot")
    expected = Trace(read_log(log_file).present()[:, :3]).as_on_off()
    np.testing.assert_allclose(fitted.availability[:3], expected.availability)
    np.testing.assert_allclose(fitted.correlation[:3], expected.correlation)
    options = ("--rounds", 50, "--seed", 3, "--out")
    assert fltheory_command("trace", "sample", process, *options, drawn)[0] == 0
    like = tmp_path / "like.csv"
    assert fltheory_command("trace", "sample", log_file, *options, like)[0] == 0
    assert like.read_text() == drawn.read_text()
    log = read_log(drawn)
    assert (log.clients, log.n_rounds) == (names, 50)
    masks = fitted.masks(np.random.default_rng(3), 1)
    np.testing.assert_array_equal(log.present(), np.concatenate([next(masks) for _ in range(50)]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("describe", "none.csv"), "path must be an existing file, got 'none.csv'"),
        (("describe", "bad.csv"), "bad.csv: line 2: from must be before to, got 3 and 1"),
        (
            ("describe", "good.csv", "--period", "1"),
            "period must be from 2 rounds to the log's 3, got 1",
        ),
        (("describe", "good.csv", "--round-length", "0"), "round_length must be positive"),
        (("describe", "good.csv", "--figure", "x.pdf"), "figure must end in .png or .svg"),
        (("fit", "good.csv", "--out", "process.csv"), "out must end in .toml"),
        (("sample", "none.toml", "--rounds", "9", "--out", "x.csv"), "must exist, got 'none.toml'"),
        (("sample", "bad.toml", "--rounds", "9", "--out", "x.csv"), "clients must be 2 names"),
        (
            ("sample", "good.csv", "--rounds", "1", "--out", "x.csv"),
            "rounds must be a whole number",
        ),
        (("sample", "good.csv", "--rounds", "9", "--out", "x.txt"), "out must end in .csv or .gz"),
    ],
)
def test_bad_input_is_one_line(fltheory_command, monkeypatch, tmp_path, arguments, message) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text("client,from,to\nann,0,3\nbob,1,2\n")
    Path("bad.csv").write_text("client,from,to\nann,3,1\n")
    Path("bad.toml").write_text(
        'clients = ["ann"]\n[participation]\nkind = "Bernoulli"\navailability = [0.5, 1.0]\n'
    )
    status, out, err = fltheory_command("trace", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err

"""``fltheory advise``: three sentences, a table, JSON and a figure from a log."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fltheory.logs import AvailabilityLog, write_log
from fltheory.testing.conformance.specifications import specification


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    """Return a log of four clients and 60 rounds; the last client is never there."""
    masks = np.random.default_rng(5).random((60, 4)) < [0.1, 0.5, 0.9, 0]
    write_log(tmp_path / "log.csv", AvailabilityLog.from_masks(masks, ["ann", "bob", "cid", "dot"]))
    return tmp_path / "log.csv"


def test_advice_in_words_numbers_and_a_figure(fltheory_command, log_file, tmp_path) -> None:
    sizes, found, figure = (tmp_path / name for name in ("sizes.csv", "advice.json", "advice.svg"))
    sizes.write_text("client,size\nann,1\nbob,2\ncid,3\ndot,4\n")
    status, out, err = fltheory_command(
        "advise", log_file, "--sizes", sizes, "--json", found, "--figure", figure
    )
    assert (status, err) == (0, "")
    use, fedavg, never, proved = out.splitlines()[:4]
    assert use.startswith("Use ")
    assert fedavg.startswith("Plain FedAvg, weighted by data, ends ")
    assert never.startswith("1 client never appears (dot; 0.4 of the target)")
    assert proved.startswith(
        "Not proved for every loss: dot never came online, and with clients at pi = 0"
    )
    assert "sizes divided by their sum, 10" in out
    document = json.loads(found.read_text())
    assert document["sentences"] == [use, fedavg, never, proved]
    assert document["proved"] is None
    assert len(document["algorithms"]) == 12
    assert "<svg" in figure.read_text()


def test_what_is_proved_for_every_loss_is_told_and_written(fltheory_command, tmp_path) -> None:
    masks = np.random.default_rng(5).random((60, 3)) < [0.5, 0.5, 0.6]
    write_log(tmp_path / "log.csv", AvailabilityLog.from_masks(masks))
    found, proof = tmp_path / "advice.json", tmp_path / "proof.json"
    words = ["advise", tmp_path / "log.csv", "--condition", "5", "--json", found]
    status, out, err = fltheory_command(*words, "--prove", proof)
    assert (status, err) == (0, "")
    document = json.loads(found.read_text())
    line = document["sentences"][3]
    assert line in out.splitlines()
    assert line.startswith("Proved for every loss: ")
    assert " 60 rounds), for every smooth, strongly convex loss with L/mu <= 5 " in line
    # The algorithm that it is about, by name: it need not be the advised one.
    assert document["proved"]["averaging"] == "weights"
    assert "every loss: Unbiased (updates count by target weight / pi), with " in line
    # Rounded up.
    said = float(line.partition(" is at most ")[2].split()[0])
    assert 0 <= said - document["proved"]["distance"] < 0.01
    assert fltheory_command("certify", proof)[0] == 0
    # A log of which nothing is proved writes nothing.
    write_log(tmp_path / "log.csv", AvailabilityLog.from_masks(masks * [1, 1, 0]))
    none = tmp_path / "none.json"
    status, out, err = fltheory_command("advise", tmp_path / "log.csv", "--prove", none)
    assert status == 0
    assert "nothing was proved" in out
    assert not none.exists()


def test_what_is_assumed_changes_the_advice(fltheory_command, log_file, tmp_path) -> None:
    biases = []
    for dissimilarity in ("0.5", "2"):
        found = tmp_path / "advice.json"
        fltheory_command("advise", log_file, "--dissimilarity", dissimilarity, "--json", found)
        biases.append(json.loads(found.read_text())["exclusion"]["at_worst"])
    # Distances grow with the root of dissimilarity.
    assert biases[1] == pytest.approx(2 * biases[0])


def test_clients_are_measured_by_their_gradients(fltheory_command, log_file, tmp_path) -> None:
    # Gradients x - o_k, optima 0, 1 and 2 and so on: F's is 4 at the start, x = 5, sigma_G = root
    # of 2/3 everywhere, and minibatches deviate by 1/2 each way, by root 1/2 from their mean.
    rows = ["client,point,w", ",start,5", ",late,1"]
    for optimum, client in enumerate(("ann", "bob", "cid")):
        for point, x in (("start", 5), ("late", 1)):
            rows += [f"{client},{point},{x - optimum + off}" for off in (-0.5, 0.5)]
    (tmp_path / "gradients.csv").write_text("\n".join(rows))
    found = tmp_path / "advice.json"
    words = ["advise", log_file, "--model", tmp_path / "gradients.csv", "--json", found]
    status, out, err = fltheory_command(*words)
    assert (status, err) == (0, "")
    assert "measured on 3 clients at 2 points: sigma 0.707" in out
    document = json.loads(found.read_text())
    # Of 3 of 4 clients, minibatches give 1/4 to each mean's square, and sampling the rest.
    between = (2 / 3 - 0.25 * (1 - 1 / 3)) / (1 - (1 / 3) / 3)
    start = 16 - 0.25 / 3 - between * (1 / 3) / 3
    assert document["assumed"]["dissimilarity"] == pytest.approx(between / start / 2)
    assert document["assumed"]["noise"] == pytest.approx((0.5 / start) ** 0.5)
    assert document["measured"]["condition"]["value"] == 1
    fltheory_command(*words, "--noise", "3")
    assert json.loads(found.read_text())["assumed"]["noise"] == 3


@pytest.mark.parametrize(
    ("gradients", "said"),
    [
        ("client,point,w\nzoe,start,1\n", "line 2: client must be one of the log's, got 'zoe'"),
        (
            "client,point,w\n"
            + "".join(f"{c},0,{x}\n" for c in ("ann", "bob", "cid") for x in (1, -1)),
            "gradients.csv: the mean gradient of all clients at the first point, '0', must exceed",
        ),
    ],
)
def test_gradients_that_tell_nothing_are_one_line(
    fltheory_command, log_file, tmp_path, gradients, said
) -> None:
    (tmp_path / "gradients.csv").write_text(gradients)
    status, out, err = fltheory_command("advise", log_file, "--model", tmp_path / "gradients.csv")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    ("text", "sizes", "said"),
    [
        ("round,ann,bob\n0,1,0\n", None, "round"),
        ("round,ann,bob\n0,0,0\n1,0,0\n", None, "at least one client must be online"),
        ("client,from,to\nann,0,3\nann,2,4\n", None, "line 3: stays of a client must not overlap"),
        ("client,time,present\nann,2,1\nann,1,0\n", None, "line 3"),
        ("round,ann,bob\n0,1,0\n1,0,1\n", "client,size\nann,1\n", "none for 'bob'"),
    ],
)
def test_bad_input_is_one_line(fltheory_command, tmp_path, text, sizes, said) -> None:
    (tmp_path / "log.csv").write_text(text)
    words = ["advise", tmp_path / "log.csv"]
    if sizes is not None:
        (tmp_path / "sizes.csv").write_text(sizes)
        words += ["--sizes", tmp_path / "sizes.csv"]
    status, out, err = fltheory_command(*words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


def test_everybody_always_there_is_a_log_like_any_other(fltheory_command, tmp_path) -> None:
    write_log(tmp_path / "log.csv", AvailabilityLog.from_masks(np.ones((20, 3))))
    status, out, err = fltheory_command("advise", tmp_path / "log.csv")
    assert (status, err) == (0, "")
    use, fedavg, never = out.splitlines()[:3]
    assert use.startswith("Use FedAvg, which needs nothing")
    assert fedavg.startswith("Plain FedAvg has no bias here")
    assert never.startswith("Every client that the log names")


@pytest.mark.parametrize("command", ["advise", "cutoff", "weights"])
def test_what_the_logs_own_tests_reject_comes_first(
    fltheory_command, tmp_path, command: str
) -> None:
    """Half the clients are rare in the first half of the log, the others in the second."""
    chances = np.where(np.arange(200)[:, None] < 100, [0.9, 0.1], [0.1, 0.9])
    masks = np.random.default_rng(3).random((200, 2)) < chances
    write_log(tmp_path / "log.csv", AvailabilityLog.from_masks(masks))
    status, out, err = fltheory_command(command, tmp_path / "log.csv")
    assert (status, err) == (0, "")
    assert out.startswith("Caution: availability changes along this log (its halves differ, p = ")
    assert "2 of 2 clients changed" in out.splitlines()[0]


def test_columns_by_other_names_and_clients_never_seen(fltheory_command, tmp_path) -> None:
    rows = "".join(
        f"u{k},x,{10 * k + 3 * n},{10 * k + 3 * n + 2}\n" for k in (0, 1) for n in range(3)
    )
    (tmp_path / "log.csv").write_text("user,device,login,logout\n" + rows)
    (tmp_path / "sizes.csv").write_text("client,size\nu0,3\nu1,2\neve,5\n")
    words = [tmp_path / "log.csv", "--columns", "client=user,from=login,to=logout"]
    status, out, err = fltheory_command("advise", *words, "--sizes", tmp_path / "sizes.csv")
    assert (status, err) == (0, "")
    assert "1 client never appears (eve; 0.5 of the target)" in out
    last = out.splitlines()[-1]
    assert last.startswith("Next: ")
    # Ready to paste, but for the file: the name is one that the command knows.
    assert specification(last.split("my_code.py:run ")[1].split("`")[0])
    status, _, err = fltheory_command("advise", words[0], "--columns", "client=name,from=a,to=b")
    assert status == 2
    assert "columns must be among user, device, login, logout; got name, a, b" in err
    # Without the option, the message says how to give it.
    _, _, err = fltheory_command("advise", words[0])
    assert err.endswith("--columns client=user,from=login,to=logout says which is which\n")


def test_a_check_without_torch_is_one_line(
    fltheory_command, log_file, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "fltheory.hardware.training", raising=False)
    status, out, err = fltheory_command("advise", log_file, "--check")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "pip install 'fltheory[torch]'" in err

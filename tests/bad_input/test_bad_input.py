"""Bad inputs: each ends within seconds with one line that says what is wrong, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.bad_input.runner import wrong_call, wrong_command

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are the kernel's")
@pytest.mark.parametrize(
    ("options", "least"), [(["--third"], 800), pytest.param([], 2400, marks=pytest.mark.soundness)]
)
def test_bad_input_is_one_line(options: list[str], least: int) -> None:
    # Experiments, which some commands are about, are run by torch.
    table = "both" if find_spec("torch") else "calls"
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bad_input.runner", table, *options],
        cwd=ROOT,
        # Where there are real images an experiment on them is no bad input.
        env={name: value for name, value in os.environ.items() if name != "FLTHEORY_DATA"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    count = int(ran.stdout.split()[0])
    assert count >= (least if table == "both" else least // 2), ran.stdout


@pytest.mark.parametrize(
    ("status", "out", "err", "wrong"),
    [
        (2, "", "fltheory: rounds must be 1, got 0\n", ""),
        (0, "", "", "accepted"),
        (1, "", "fltheory: rounds\n", "exit status 1"),
        (2, "begun\n", "fltheory: rounds\n", "output before the error: begun"),
        (2, "", "fltheory: rounds\nmore\n", "2 lines"),
        (2, "", "fltheory: no\n", "does not say 'rounds'"),
        (1, "", "Traceback (most\nKeyError: 3\n", "traceback: KeyError: 3"),
        (-24, "", "", "took more than 5 s"),
        (-11, "", "", "died of signal 11"),
    ],
)
def test_what_is_wrong_with_a_command(status: int, out: str, err: str, wrong: str) -> None:
    assert wrong_command("rounds", status, out, err) == wrong


@pytest.mark.parametrize(
    ("status", "err", "wrong"),
    [
        (2, "ValueError: rounds must be 1\n", ""),
        (0, "", "accepted: "),
        (3, "KeyError: 3\n", "raises KeyError: 3"),
        (2, "ValueError: no\n", "does not say 'rounds'"),
    ],
)
def test_what_is_wrong_with_a_call(status: int, err: str, wrong: str) -> None:
    assert wrong_call("rounds", status, "", err) == wrong

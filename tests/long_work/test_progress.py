"""The bar of long work, on a terminal and elsewhere, and interrupts."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from fltheory.long_work import progress
from fltheory.long_work.progress import shown_progress, within

BAR = "\N{BOX DRAWINGS HEAVY HORIZONTAL}"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", stream)
    with shown_progress("starting") as advance:
        advance(3, 8, "[cell] " + "long " * 40)
    return stream.getvalue()


def test_a_terminal_shows_what_how_far_and_how_long(monkeypatch) -> None:
    shown = shown_on(monkeypatch, Terminal())
    line = next(part for part in shown.split("\n") if "3/8" in part)
    assert BAR in line
    assert re.search(r"\d:\d\d:\d\d.* left .*-:--:--", line)
    assert "[cell] long" in line
    # However often the clock redraws the bar, one line ends: the last one.
    assert shown.count("\n") == 1, "a long text must not break the line"


def test_a_piece_of_unknown_length_has_no_end(monkeypatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", stream)
    with shown_progress() as advance:
        advance(8, 8, "counted")
        advance(0, 0, "drawing")
    last = next(part for part in reversed(stream.getvalue().split("\n")) if "drawing" in part)
    assert "0/?" in last


def in_lines(
    monkeypatch: pytest.MonkeyPatch, seconds: Sequence[float], *, each: bool = False
) -> list[str]:
    """Return the lines of work that says how far it is at these times of a clock of its own."""
    stream = io.StringIO()
    clock = iter([0.0, *seconds])
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(progress, "Timer", Mock())
    with shown_progress("starting", each=each) as advance:
        for done in range(len(seconds)):
            advance(done, len(seconds), f"piece {done}")
    return stream.getvalue().splitlines()


# What is left is as long as what is done, by their shares: at 4.5 s 5 of 8 are done, 3 take 2.7 s.


def test_elsewhere_long_work_writes_a_line_now_and_then(monkeypatch) -> None:
    monkeypatch.delenv("FLTHEORY_PROGRESS")
    assert in_lines(monkeypatch, [0.5, 1.9, 2.0, 3.0, 3.9, 4.5, 8.9, 9.5]) == [
        "fltheory: 2 of 8, piece 2 (2 s, about 6 s left)",
        "fltheory: 5 of 8, piece 5 (4 s, about 3 s left)",
        "fltheory: 7 of 8, piece 7 (10 s, about 1 s left)",
    ]


def test_each_of_a_few_long_stages_has_its_line(monkeypatch) -> None:
    monkeypatch.delenv("FLTHEORY_PROGRESS")
    assert in_lines(monkeypatch, [0.5, 2.5, 2.8, 3.0], each=True) == [
        "fltheory: 1 of 4, piece 1 (2 s, about 8 s left)",
        "fltheory: 2 of 4, piece 2 (3 s, about 3 s left)",
        "fltheory: 3 of 4, piece 3 (3 s, about 1 s left)",
    ]


def test_quick_work_and_work_that_is_to_be_quiet_write_nothing(monkeypatch) -> None:
    assert os.environ["FLTHEORY_PROGRESS"] == "off"
    assert in_lines(monkeypatch, [0.5, 5.0]) == []
    monkeypatch.delenv("FLTHEORY_PROGRESS")
    assert in_lines(monkeypatch, [0.5, 1.9]) == []


def test_work_that_never_says_how_far_it_is_has_its_line(monkeypatch) -> None:
    """Not by the clock: the timer is asked what it would do, and when."""
    timer = Mock()
    stream = io.StringIO()
    clock = iter([0.0, 2.05])
    monkeypatch.delenv("FLTHEORY_PROGRESS")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "Timer", timer)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with shown_progress("proving"):
        (seconds, write), _ = timer.call_args
        assert seconds == pytest.approx(2.05)
        write()
    assert stream.getvalue() == "fltheory: proving (2 s)\n"
    timer.return_value.start.assert_called_once()
    timer.return_value.cancel.assert_called_once()


def test_the_bar_is_gone_after_an_interrupt(monkeypatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(KeyboardInterrupt), shown_progress("starting"):
        raise KeyboardInterrupt
    assert stream.getvalue().rstrip().endswith("\x1b[2K")
    assert "\x1b[?25h" in stream.getvalue(), "the cursor must come back"


def test_pieces_share_a_bar() -> None:
    seen: list[tuple[float, float, str]] = []

    def note(*shown: object) -> None:
        seen.append(shown)  # type: ignore[arg-type]

    for index in range(2):
        part = within(note, 10 * index, 20, "reading: ")
        assert part is not None
        part(5, 10, "half")
    assert seen == [
        (5, 20, "reading: half"),
        (15, 20, "reading: half"),
    ]
    assert within(None, 0, 1) is None


def in_a_terminal(arguments: Sequence[str], until: str) -> tuple[int, str]:
    """Run Python in a pseudo-terminal and press Ctrl-C once it shows ``until``."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100", "OMP_NUM_THREADS": "1"},
        start_new_session=True,
        preexec_fn=_take_the_terminal,
    )
    os.close(theirs)
    shown, pressed = "", False
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 1.0)
        try:
            shown += os.read(ours, 65536).decode(errors="replace") if ready else ""
        except OSError:  # the other end is closed
            break
        if until in shown and not pressed:
            os.write(ours, b"\x03")
            pressed = True
    os.close(ours)
    return process.wait(timeout=600), shown


def _take_the_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Tests that run in the background ignore interrupts, and their children would, too.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("arguments", "until"),
    [
        (("-m", "fltheory", "verify", "sa-fl/4"), "sa-fl/4 printed: "),
        (("docs/scripts/power.py", "sa-fl/4", "--out", "{}/power.json"), "searching"),
    ],
    ids=["verify", "power"],
)
def test_an_interrupt_is_one_line_and_status_130(tmp_path, arguments, until: str) -> None:
    """The second has children: they must neither go on, for an hour, nor write a traceback."""
    places = [argument.format(tmp_path) for argument in arguments]
    status, shown = in_a_terminal(places, until)
    assert status == 130
    assert BAR in shown, "the bar must be there before the interrupt"
    assert ("loading" in shown[: shown.index(until)]) == ("fltheory" in arguments)
    assert shown.count("fltheory: interrupted, ") == 1
    assert "Traceback" not in shown

"""The bar of long work, on a terminal and elsewhere, and interrupts."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from fltheory.progress import shown_progress, within

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
    with shown_progress("starting") as progress:
        progress(3, 8, "[cell] " + "long " * 40)
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
    with shown_progress() as progress:
        progress(8, 8, "counted")
        progress(0, 0, "drawing")
    last = next(part for part in reversed(stream.getvalue().split("\n")) if "drawing" in part)
    assert "0/?" in last


def test_elsewhere_nothing_is_written(monkeypatch) -> None:
    assert shown_on(monkeypatch, io.StringIO()) == ""


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
    """Run fltheory in a pseudo-terminal and press Ctrl-C once it shows ``until``."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fltheory", *arguments],
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


@pytest.mark.parametrize(
    ("arguments", "until"),
    [
        (("verify", "sa-fl/4"), "sa-fl/4 printed: "),
        (("reproduce", "power", "sa-fl/4", "--out", "{}/power.json"), "searching"),
    ],
    ids=["verify", "power"],
)
def test_an_interrupt_is_one_line_and_status_130(tmp_path, arguments, until: str) -> None:
    """The second has children: they must neither go on, for an hour, nor write a traceback."""
    places = [argument.format(tmp_path) for argument in arguments]
    status, shown = in_a_terminal(places, until)
    assert status == 130
    assert BAR in shown, "the bar must be there before the interrupt"
    assert shown.index("loading") < shown.index(until)
    assert shown.count("fltheory: interrupted, ") == 1
    assert "Traceback" not in shown

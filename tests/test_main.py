"""What the command runs."""

from __future__ import annotations

import sys

import pytest

from fltheory import __main__, cli


def test_it_is_the_command_line(monkeypatch) -> None:
    called = []
    monkeypatch.setattr(cli, "main", lambda: called.append("main"))
    __main__.main()
    assert called == ["main"]


def test_an_interrupt_while_loading_is_one_line(monkeypatch, capsys) -> None:
    class Interrupting:
        def find_spec(self, name: str, path: object, target: object = None) -> None:
            if name == "fltheory.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "fltheory.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as stop:
        __main__.main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "fltheory: interrupted, nothing was written\n"

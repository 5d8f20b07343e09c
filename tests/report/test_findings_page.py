"""The list that the page of findings opens with."""

from __future__ import annotations

from importlib import import_module

import pytest

markdown = pytest.importorskip("markdown")
findings = import_module("fltheory.report.findings")


def test_a_witness_in_the_list_is_a_block_and_the_list_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(findings, "ids", lambda: ("a", "b"))
    searched = {"a": "a: BROKEN\n  Hessian diag(1)\n  q = 1/2", "b": "b: nothing"}
    page = "\n".join(findings._statements({}, {"a": (), "b": ()}, searched))
    html = markdown.markdown(page)
    assert "<pre><code>Hessian diag(1)\nq = 1/2\n</code></pre>" in html
    assert html.count("<li>") == 2

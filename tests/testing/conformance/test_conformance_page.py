"""The page docs/how-to/conformance.md says what there is, and shows what is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fltheory.testing import check_algorithm
from fltheory.testing.conformance.laws import LAWS
from fltheory.testing.conformance.specifications import conformance_algorithms
from fltheory.testing.conformance.suite import laws_of

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "conformance.md").read_text("utf-8")


def reference() -> str:
    """Return the tables of algorithms and of laws."""
    lines = ["| algorithm | options |", "|---|---|"]
    for name, options in conformance_algorithms().items():
        said = "; ".join(f"`{option}`: {text}" for option, text in options.items())
        lines.append(f"| `{name}` | {said} |")
    names = list(conformance_algorithms())
    about = {name: {law.name for law in laws_of(name)} for name in names}
    lines += ["", "| law | says | applies to |", "|---|---|---|"]
    for law in LAWS.values():
        those = [name for name in names if law.name in about[name]]
        of = "all" if those == names else ", ".join(those)
        lines.append(f"| `{law.name}` | {law.says.replace('|', chr(92) + '|')} | {of} |")
    return "\n".join(lines) + "\n"


def test_the_page_lists_algorithms_options_and_laws() -> None:
    assert reference() in PAGE


def test_the_page_shows_the_message_that_its_example_gives() -> None:
    code = re.findall(r'```python title="my_code.py"\n(.*?)```', PAGE, re.DOTALL)[0]
    shown = re.findall(r"```text\n(fedavg: .*?)```", PAGE, re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(code, names)
    report = check_algorithm(names["run"], "fedavg", raises=False, stop_at_first=True)
    rest = report.text
    for part in (part.strip("\n") for part in shown.split("...")):
        assert part in rest
        rest = rest[rest.index(part) + len(part) :]

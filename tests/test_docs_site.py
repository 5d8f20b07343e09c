"""The documentation's build: configuration, pages and the coverage gate."""

from __future__ import annotations

import importlib.util
import zlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("mkdocs")

from mkdocs.exceptions import PluginError

from fltheory.report.pages.public_names import public_names

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_inventory(folder: Path, names: list[str]) -> SimpleNamespace:
    body = "\n".join(f"{name} py:function 1 page.html#$ -" for name in names)
    header = b"# Sphinx inventory version 2\n# Project: x\n# Version: 0\n# zlib\n"
    (folder / "objects.inv").write_bytes(header + zlib.compress(body.encode()))
    return SimpleNamespace(site_dir=str(folder))


def all_names() -> list[str]:
    return [f"fltheory.{part}.{name}" for part, names in public_names().items() for name in names]


def test_a_reference_without_a_public_name_fails_the_build(
    hooks: ModuleType, tmp_path: Path
) -> None:
    hooks.on_post_build(write_inventory(tmp_path, all_names()))
    kept = [name for name in all_names() if name != "fltheory.verify.check"]
    with pytest.raises(PluginError, match=r"not in the reference: fltheory.verify.check$"):
        hooks.on_post_build(write_inventory(tmp_path, kept))


def test_a_public_name_without_a_docstring_fails_the_build(
    hooks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hooks.on_config(SimpleNamespace(nav=[])).nav == []
    monkeypatch.setattr(hooks, "undocumented", lambda: ("fltheory.verify.check",))
    with pytest.raises(PluginError, match=r"without a docstring: fltheory.verify.check"):
        hooks.on_config(SimpleNamespace(nav=[]))


def test_papers_and_reference_are_in_the_navigation(hooks: ModuleType) -> None:
    nav = [{"Papers": []}, {"Reference": []}, "index.md"]
    hooks.on_config(SimpleNamespace(nav=nav))
    assert {"SA-FL (ICML 2024)": "papers/sa-fl.md"} in nav[0]["Papers"]
    assert {"verify": "reference/verify.md"} in nav[1]["Reference"]


def test_pages_that_are_not_listed_go_to_the_findings(hooks: ModuleType) -> None:
    nav = [{"Findings": [{"Findings": "findings.md"}]}, {"More": [{"Home": "index.md"}]}]
    hooks.on_config(SimpleNamespace(nav=nav))
    added = nav[0]["Findings"][1:]
    assert "tutorial.md" in added
    assert not {"findings.md", "index.md"} & set(added)


def test_warnings_are_errors() -> None:
    assert "strict: true" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_the_citation_has_what_the_format_asks_for() -> None:
    """Of Citation File Format 1.2.0: cff-version, message, title and authors; and the version."""
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert all(citation[key] for key in ("message", "title", "authors"))
    import fltheory

    assert citation["version"] == fltheory.__version__

"""The documentation's build: configuration, pages and the coverage gate."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("mkdocs")

from mkdocs.exceptions import PluginError

from fltheory import theorems
from fltheory.report.paper_page import papers
from fltheory.report.public_names import public_names

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
    assert hooks.on_config(SimpleNamespace(nav=[], markdown_extensions=[])).nav == []
    monkeypatch.setattr(hooks, "undocumented", lambda: ("fltheory.verify.check",))
    with pytest.raises(PluginError, match=r"without a docstring: fltheory.verify.check"):
        hooks.on_config(SimpleNamespace(nav=[], markdown_extensions=[]))


def test_papers_and_reference_are_in_the_navigation(hooks: ModuleType) -> None:
    nav = [{"Papers": []}, {"Reference": []}, "index.md"]
    hooks.on_config(SimpleNamespace(nav=nav, markdown_extensions=[]))
    assert {"SA-FL (ICML 2024)": "papers/sa-fl.md"} in nav[0]["Papers"]
    assert {"verify": "reference/verify.md"} in nav[1]["Reference"]


def test_links_to_sources_work_in_the_repository_and_become_pages_on_the_site(
    hooks: ModuleType,
) -> None:
    known = {f"reference/{name}.md" for name in public_names()}
    known |= {f"papers/{name}.md" for name in papers(theorems.registered())}
    found = 0
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"\]\((?:\.\./)*(?:reference|papers)/", text), page
        name = page.relative_to(ROOT / "docs").as_posix()
        linked = SimpleNamespace(file=SimpleNamespace(src_uri=name))
        shown = hooks.on_page_markdown(text, linked, None, None)
        for source in re.findall(r"\]\(((?:\.\./)+fltheory/[^)#]*)", text):
            assert (page.parent / source).is_file(), source
            target = hooks.generated_page(source.split("fltheory/")[1])
            assert target in known, target
            assert f"]({'../' * name.count('/')}{target}" in shown
            found += 1
    assert found > 10


def test_pages_that_are_not_listed_go_to_the_findings(hooks: ModuleType) -> None:
    nav = [{"Findings": [{"Findings": "findings.md"}]}, {"More": [{"Home": "index.md"}]}]
    hooks.on_config(SimpleNamespace(nav=nav, markdown_extensions=[]))
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("from x* to w_B*, F* and x*.", "from x* to w_B*, F* and x*."),
        ("P(h_Q^* = 1) and h_Q^*", "P(h_Q^* = 1) and h_Q^*"),
        ("-a*(L + b)**2/(4*L**2*b)", "-a*(L + b)**2/(4*L**2*b)"),
        ("*computed*, **not** x*", "<em>computed</em>, <strong>not</strong> x*"),
        ("*Misprint.* x*", "<em>Misprint.</em> x*"),
        ("`x*y` x*", "<code>x*y</code> x*"),
    ],
)
def test_stars_of_formulas_survive(hooks: ModuleType, text: str, shown: str) -> None:
    from markdown import markdown

    config = SimpleNamespace(nav=[], markdown_extensions=["pymdownx.betterem"])
    extensions = hooks.on_config(config).markdown_extensions
    options = {"pymdownx.betterem": {"smart_enable": "all"}}
    assert "pymdownx.betterem: {smart_enable: all}" in (ROOT / "mkdocs.yml").read_text("utf-8")
    found = markdown(text, extensions=extensions, extension_configs=options)
    assert found == f"<p>{shown}</p>"


_SMALL_SITE = """\
site_name: small
docs_dir: docs
theme: {name: material, font: false}
extra: {polyfills: [iframe-worker.js]}
plugins: [search, offline]
"""


@pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None,
    reason="chromium and chromedriver are not installed",
)
def test_search_works_from_disk_and_without_a_network(tmp_path: Path) -> None:
    webdriver = pytest.importorskip("selenium.webdriver")
    pages = tmp_path / "docs"
    pages.mkdir()
    (pages / "index.md").write_text("# Home\n\nNothing here.\n")
    (pages / "other.md").write_text("# Elsewhere\n\nA refutation.\n")
    (pages / "iframe-worker.js").write_bytes((ROOT / "docs" / "iframe-worker.js").read_bytes())
    (tmp_path / "mkdocs.yml").write_text(_SMALL_SITE)
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=tmp_path, check=True)
    home = tmp_path / "site" / "index.html"
    assert not re.search(r'<script src="http', home.read_text("utf-8"))

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    browser = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    try:
        browser.get(home.as_uri())
        browser.execute_script("document.querySelector('[data-md-toggle=search]').click()")
        browser.find_element("css selector", ".md-search__input").send_keys("refutation")
        until = time.monotonic() + 20
        found: list[str] = []
        while not found and time.monotonic() < until:
            time.sleep(0.1)
            hits = browser.find_elements("css selector", ".md-search-result__item")
            found = [hit.text for hit in hits]
        assert "Elsewhere" in found[0]
    finally:
        browser.quit()


_WIDE_PAGE = """\
# Wide

| a | b | c | d | e | f |
|---|---|---|---|---|---|
| `sa-fl-submission/4` | `sa-fl-submission/4` | `sa-fl-submission/4` | {word} | {word} | {word} |

<span class="formula"><math><mrow>{row}</mrow></math></span>

In a sentence <math><mrow><mo>{{</mo>{row}<mo>}}</mo></mrow></math> as well.
"""


@pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None,
    reason="chromium and chromedriver are not installed",
)
def test_wide_tables_and_formulas_scroll_in_their_own_box(tmp_path: Path) -> None:
    webdriver = pytest.importorskip("selenium.webdriver")
    pages = tmp_path / "docs"
    pages.mkdir()
    row = "<mi>x</mi><mo>+</mo>" * 60
    (pages / "index.md").write_text(_WIDE_PAGE.format(word="inapplicable" * 3, row=row))
    for name in ("formulas.css", "iframe-worker.js"):
        (pages / name).write_bytes((ROOT / "docs" / name).read_bytes())
    config = f"{_SMALL_SITE}extra_css: [formulas.css]\nmarkdown_extensions: [tables, md_in_html]\n"
    (tmp_path / "mkdocs.yml").write_text(config)
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=tmp_path, check=True)
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox"):
        options.add_argument(argument)
    browser = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    try:
        phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        browser.get((tmp_path / "site" / "index.html").as_uri())
        width, table, formula = browser.execute_script(
            "const box = name => document.querySelector(name);"
            "return [document.documentElement.scrollWidth, box('table').scrollWidth,"
            " box('.formula').scrollWidth]"
        )
        assert width <= 390
        assert min(table, formula) > 390
    finally:
        browser.quit()


def test_the_site_asks_for_what_search_from_disk_needs() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "polyfills: [iframe-worker.js]" in text
    assert "\n  - offline" in text


def test_the_home_page_shows_a_verdict_and_a_figure() -> None:
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert "REFUTED: " in text
    assert "](refutation.svg)" in text
    assert "|---" not in text


def test_a_corrected_statement_is_typeset_above_its_latex(hooks: ModuleType) -> None:
    findings = (ROOT / "docs" / "findings.md").read_text("utf-8")
    page = hooks.on_page_markdown(findings, None, None, None)
    statements = page.count(r"\begin{corrected}")
    assert statements > 5
    assert page.count('<span class="formula"><math') >= 2 * statements
    assert '<span class="formula"><code' not in page
    assert "- smooth clients: <span" in page
    assert r"\changed" not in re.sub(r"```latex.*?```", "", page, flags=re.DOTALL)
    assert hooks.on_page_markdown("```latex\nx\n```", None, None, None) == "```latex\nx\n```"


def content(hooks: ModuleType, html: str) -> str:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"), meta={})
    return hooks.on_page_content(html, page, None, None)


def test_cells_that_hold_sentences_are_marked(hooks: ModuleType) -> None:
    long = "a sentence of more words than a narrow column can hold in a few lines, <code>x</code>"
    html = content(hooks, f"<td>short</td><td>{long}</td><td>short</td>")
    assert html == f'<td>short</td><td class="sentence">{long}</td><td>short</td>'


def test_rows_of_a_table_in_an_output_do_not_break(hooks: ModuleType) -> None:
    row = "│ sa-fl/5 │ printed │"
    html = content(hooks, f"<pre><code>$ fltheory\n{row}\nUse MIFA</code></pre>")
    assert html == f'<pre><code>$ fltheory\n<span class="row">{row}</span>\nUse MIFA</code></pre>'


def test_a_figure_is_a_link_to_its_file(hooks: ModuleType) -> None:
    html = content(hooks, '<p><img alt="bias" src="bias.svg" /></p>')
    assert html.startswith('<p><a class="figure" href="bias.svg"><img ')


def test_formulas_in_sentences_are_typeset_and_code_is_left_alone(hooks: ModuleType) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))

    def shown(text: str) -> str:
        return hooks.on_page_markdown(text, page, None, None)

    letter = "<mi>\N{GREEK SMALL LETTER SIGMA}</mi>"
    for formula in ("sigma_G^2", r"$\sigma_G^2$"):
        words = re.sub("</?mrow>", "", shown(f"at most {formula} here"))
        assert f"<math><msubsup>{letter}<mi>G</mi><mn>2</mn></msubsup></math>" in words
    assert "<mfrac>" in shown(r"$$\frac{1}{2}$$")
    assert shown("a||x||^2 <= b") == "a‖x‖<sup>2</sup> ≤ b"
    for left in ("`sigma_G^2 <= 1`", "# The sigma of it", "```\neta_c <= 1\n```", "x_star", "5 $"):
        assert shown(left) == left

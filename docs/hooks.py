"""MkDocs hooks for pages besides the written ones: papers, the reference, the coverage gate.

The build fails if a name in a public ``__all__`` has no docstring or no entry in the reference.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.util import ETX, STX
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

from fltheory import theorems
from fltheory.report.html.mathml import in_words, mathml
from fltheory.report.latex import plain_text
from fltheory.report.paper_page import paper_name, paper_page, papers
from fltheory.report.public_names import description, public_names, undocumented
from fltheory.verify.baseline import read_baseline

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
BASELINE = DOCS.parent / "verification" / "baseline.csv"


# Pages made of modules have every word of theirs: written ones answer a question first, and of
# those the pages that one begins with.
_BOOSTS = {
    "tutorial": 9.0,
    "how-to/conformance": 8.0,
    "how-to/refutation": 9.0,
    "training": 4.0,
    "how-to/": 4.0,
    "add-": 4.0,
    "verdicts": 4.0,
    "correlated": 4.0,
    "every-loss": 4.0,
    "bias": 3.0,
    "others-code": 5.0,
    "findings": 2.0,
    "performance": 3.0,
    "verdict-files": 3.0,
    "papers/": 0.001,
    "reference/": 0.001,
}


class _Starred(InlineProcessor):
    """Stars of formulas, which are no emphasis: ``h^*``, ``4*L**2*(a + b)``."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        return f"{STX}{ord('*')}{ETX}" * len(m[0]), m.start(), m.end()


class _Stars(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        # Behind code (190), which keeps its stars anyway, and before emphasis (60).
        md.inlinePatterns.register(
            _Starred(r"(?<=\^)\*|(?<=[\w)])\*\*?(?=[\w(])", md), "starred", 175
        )


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the generated pages in the navigation, and those of findings that nobody listed."""
    config.markdown_extensions.append(_Stars())
    missing = undocumented()
    if missing:
        raise PluginError(f"public names without a docstring: {', '.join(missing)}")
    for entry in config.nav or []:
        if isinstance(entry, dict) and "Papers" in entry:
            entry["Papers"] += [
                {paper_name(statements): f"papers/{name}.md"}
                for name, statements in papers(theorems.registered()).items()
            ]
        if isinstance(entry, dict) and "Reference" in entry:
            entry["Reference"] += [{name: f"reference/{name}.md"} for name in public_names()]
    listed = set(_pages(config.nav or []))
    for entry in config.nav or []:
        if isinstance(entry, dict) and "Findings" in entry:
            entry["Findings"] += sorted({path.name for path in DOCS.glob("*.md")} - listed)
    return config


def _pages(nav: Any) -> Iterator[str]:
    """Yield the pages that a navigation lists, at any depth."""
    if isinstance(nav, str):
        yield nav
    for entry in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _pages(entry)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    recorded = read_baseline(BASELINE)
    for name, statements in papers(theorems.registered()).items():
        text = paper_page(statements, recorded)
        files.append(File.generated(config, f"papers/{name}.md", content=text))
    for name in public_names():
        text = _reference(name)
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


_GREEK = (
    "alpha|beta|gamma|delta|epsilon|theta|kappa|lambda|mu|nu|pi|rho|sigma|tau|phi|chi|psi|omega|"
    "eta|Gamma|Delta|Sigma|Omega"
)
# What is left alone (code, headings, tags, targets of links); a formula, between one or two
# dollars as GitHub reads them; in a sentence a Greek letter's name, and a letter with an exponent.
_FORMULA = re.compile(
    r"(?P<left>^```[\s\S]*?^```$|`+[^`\n]+`+|^ {4}.*$|^#.*$|<[/a-z][^>]*>|\]\([^)]*\))"
    r"|\$\$(?P<display>[^$]+)\$\$|\$(?P<inline>[^$\s][^$\n]*)\$"
    rf"|(?<![\w\\-])(?P<name>(?:{_GREEK})(?:_(?P<index>\w+))?(?:\^(?P<power>\w+|\\?\*))?)(?!\w)"
    r"|(?<![\w\\])(?P<letter>[A-Za-z])(?=[_^])(?:_(?P<sub>\w))?(?:\^(?P<to>\d+|\\?\*))?(?![\w^_])"
    r"|(?<=[)\]|])\^(?P<of_bracket>\d+)"
    r"|(?P<sign><=|>=|\+-|\\\|\\\||\|\|(?=\S))",
    re.MULTILINE,
)
_SIGNS = {"<=": "≤", ">=": "≥", "+-": "±"}
_SOURCE = re.compile(r"\]\((?:\.\./)+fltheory/([\w/]+\.py)(?=[)#])")
_CORRECTED = re.compile(r"^```latex\n(.*?\\begin\{corrected\}.*?)^```$", re.DOTALL | re.MULTILINE)
_CONDITION = re.compile(r"^  \\item (.*?): \$(.*)\$[,.]$", re.MULTILINE)
_CLAIM = re.compile(r"\\begin\{(multline|equation)\*\}(.*?)\\end\{\1\*\}", re.DOTALL)
# A left side that is only text, as `corrected_latex` writes it, with the signs that LaTeX reserves.
_WORDS = re.compile(r"\{?\\text\{((?:\\text[a-z]+\{\}|\\[_{}$&%#]|\\[lg]eq|[^{}\\])*)\}\}?")
_CHANGE = re.compile(r"\\changed\{[^{}]*\}")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Typeset each corrected statement above its LaTeX; link generated pages, not their source.

    A page in the repository links the source, as what is made of it is on the site alone.
    """
    markdown = _SOURCE.sub(
        lambda found: f"]({'../' * page.file.src_uri.count('/')}{generated_page(found[1])}",
        markdown,
    )
    markdown = _FORMULA.sub(_typeset_formula, markdown)
    return _CORRECTED.sub(lambda found: f"{_typeset(found[1])}\n{found[0]}", markdown)


def _typeset_formula(found: re.Match[str]) -> str:
    if found["left"]:
        return found[0]
    if found["display"]:
        return _formula(found["display"])
    if found["sign"]:
        return _SIGNS.get(found["sign"], "‖")
    if found["of_bracket"]:
        return f"<sup>{found['of_bracket']}</sup>"
    latex = found["inline"]
    if found["name"]:
        latex = _indexed(
            "\\" + found["name"].split("_")[0].split("^")[0], found["index"], found["power"]
        )
    elif found["letter"]:
        latex = _indexed(found["letter"], found["sub"], found["to"])
    return str(mathml(latex, latex)).replace(' displaystyle="true"', "")


def _indexed(letter: str, index: str | None, power: str | None) -> str:
    below = rf"_{{{index}}}" if index else ""
    above = rf"^{{{power.lstrip(chr(92))}}}" if power else ""
    return f"{letter}{below}{above}"


def generated_page(source: str) -> str:
    """Return the page that is made of a module: a paper's, or one of the reference.

    Examples
    --------
    >>> generated_page("theorems/sa_fl/statements.py")
    'papers/sa-fl.md'
    >>> generated_page("hardware/datasets/__init__.py")
    'reference/hardware.datasets.md'
    """
    name = source.removesuffix(".py").removesuffix("/__init__")
    if name.startswith("theorems/"):
        return f"papers/{name.split('/')[1].replace('_', '-')}.md"
    return f"reference/{name.replace('/', '.')}.md"


def _typeset(corrected: str) -> str:
    """Return hypotheses and claims of a corrected statement in Markdown, as MathML."""
    statement = _CHANGE.sub("", corrected.partition(r"\begin{enumerate}")[0])
    lines = [f"- {_name(name)}: {_formula(latex)}" for name, latex in _CONDITION.findall(statement)]
    lines += ["", *(_formula(latex) for _, latex in _CLAIM.findall(statement))]
    return "\n".join([*lines, ""])


def _name(latex: str) -> str:
    """Return a hypothesis's name, whose formulas stand between dollars."""
    return re.sub(r"\$([^$]*)\$", lambda formula: str(mathml(formula[1], formula[1])), latex)


def _formula(latex: str) -> str:
    """Return a formula, a line of LaTeX after the other; what is only text stays text."""
    pieces = []
    for line in latex.split(2 * chr(92)):
        words = _WORDS.match(line.lstrip())
        if words:
            pieces.append(str(in_words(plain_text(words[1]))))
            line = line.replace(words[0], "{}", 1)
        pieces.append(str(mathml(line, line)))
    return f'<span class="formula">{"<wbr>".join(pieces)}</span>'


_CODE = re.compile(r"(?<=<code>).*?(?=</code></pre>)", re.DOTALL)
_ROW = re.compile(r"^.*[│┃┏┡└─].*$", re.MULTILINE)
_FIGURE = re.compile(r'<p>(<img [^>]*src="([^"]*)"[^>]*>)</p>')


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark what the style sheet keeps legible; link each figure to its file, to be enlarged.

    Marked are cells of tables that hold sentences, and rows of tables in outputs: other lines of
    code and outputs may break.
    """
    boosts = (boost for start, boost in _BOOSTS.items() if page.file.src_uri.startswith(start))
    page.meta["search"] = {"boost": next(boosts, 1.0)}
    html = re.sub(r"<td>(?=(?:(?!</td>).){70})", '<td class="sentence">', html)
    html = _CODE.sub(lambda code: _ROW.sub(r'<span class="row">\g<0></span>', code[0]), html)
    return _FIGURE.sub(r'<p><a class="figure" href="\2">\1</a></p>', html)


def on_post_build(config: MkDocsConfig) -> None:
    """Fail if a public name is not in the reference that was built."""
    inventory = (Path(config.site_dir) / "objects.inv").read_bytes()
    body = zlib.decompress(inventory.split(b"\n", 4)[4]).decode()
    documented = {line.split(" ", 1)[0] for line in body.splitlines()}
    wanted = {
        f"fltheory.{package}.{name}" for package, names in public_names().items() for name in names
    }
    missing = sorted(wanted - documented)
    if missing:
        raise PluginError(f"public names that are not in the reference: {', '.join(missing)}")


def _reference(package: str) -> str:
    lines = [f"# fltheory.{package}", "", description(package), ""]
    for name in public_names()[package]:
        lines += [f"::: fltheory.{package}.{name}", ""]
    return "\n".join(lines)

"""Formulas as MathML, which browsers typeset without scripts.

A long formula is split into pieces, one per summand, and a line may break between two pieces.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from xml.etree import ElementTree

import sympy as sp
from markupsafe import Markup

from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.printed_form import ordered_terms, printed_form, printed_latex

_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_PRESENTATION = (
    "math mfrac mi mn mo mover mpadded mroot mrow mspace msqrt mstyle msub msubsup msup mtable "
    "mtd mtext mtr munder munderover"
)
_LAYOUT = (
    "accent accentunder columnalign columnspacing display displaystyle fence form lspace "
    "linethickness mathvariant maxsize minsize movablelimits rowspacing rspace scriptlevel "
    "separator stretchy symmetric width height depth voffset"
)
_ELEMENTS, _ATTRIBUTES = frozenset(_PRESENTATION.split()), frozenset(_LAYOUT.split())
_PARTS = {"msubsup": 3, "munderover": 3} | dict.fromkeys(
    ("mfrac", "msub", "msup", "munder", "mover", "mroot"), 2
)
_TALL = frozenset(["mfrac", "munder", "munderover", "mtable"])
_ALPHABETS = {"double-struck": "DOUBLE-STRUCK", "script": "SCRIPT", "bold": "BOLD"}
SIGNS_IN_LATEX: Mapping[Relation, str] = {
    Relation.AT_MOST: r"\leq",
    Relation.BELOW: "<",
    Relation.AT_LEAST: r"\geq",
    Relation.ABOVE: ">",
    Relation.OF_ORDER: "= O",
    Relation.GOES_WITH: r"\text{ goes with }",
}
_RELATIONS: Mapping[type[sp.Basic], str] = {
    sp.Eq: "=",
    sp.Ne: r"\neq",
    sp.Le: r"\leq",
    sp.Lt: "<",
    sp.Ge: r"\geq",
    sp.Gt: ">",
}


def typeset(expression: sp.Basic) -> tuple[Markup, ...]:
    """Return an expression as pieces of MathML, broken before relations and at sums."""
    return tuple(mathml(piece, str(expression)) for piece in _pieces(expression))


def typeset_assertion(assertion: Assertion) -> tuple[Markup, ...]:
    """Return both sides of an assertion and the relation between them, as pieces of MathML."""
    left, text = assertion.left_latex, assertion.left
    left_side = mathml(left, text) if left else in_words(text)
    return (left_side, *(mathml(piece, assertion.text) for piece in related_latex(assertion)))


def related_latex(assertion: Assertion) -> tuple[str, ...]:
    """Return an assertion's relation and right side in LaTeX, in pieces.

    A claimed order or direction is one piece; a bound has one piece per summand.
    """
    if assertion.variable is None:
        first, *rest = _pieces(assertion.right)
        return (rf"{{}} {SIGNS_IN_LATEX[assertion.relation]} {first}", *rest)
    right = printed_latex(assertion.right)
    if assertion.relation is Relation.OF_ORDER:
        right = rf"\left({right}\right)"
    return (rf"{{}} {SIGNS_IN_LATEX[assertion.relation]} {right}",)


def in_words(text: str) -> Markup:
    """Return a quantity that is known only as text."""
    return Markup('<span class="quantity">{}</span>').format(text)


@lru_cache(maxsize=4096)
def mathml(latex: str, text: str) -> Markup:
    """Return one formula as a MathML element, or as text if it cannot be typeset.

    Parameters
    ----------
    latex : str
    text : str
        Shown instead if the converter cannot handle the LaTeX.
    """
    from latex2mathml.converter import convert

    try:
        root = ElementTree.fromstring(convert(latex))
    except Exception:  # The converter has no error type of its own, and the text is always correct.
        return _as_text(text)
    if not _is_plain(root):
        return _as_text(text)
    for node in root.iter():
        node.tag = node.tag.removeprefix(_NAMESPACE)
    _tidy(root)
    root.attrib.update({"displaystyle": "true"})
    root.attrib.pop("display", None)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _as_text(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


def _is_plain(root: ElementTree.Element) -> bool:
    """Return whether an element is pure presentation MathML without leftover LaTeX."""
    return all(
        node.tag.removeprefix(_NAMESPACE) in _ELEMENTS
        and _ATTRIBUTES.issuperset(node.attrib)
        and len(node) == _PARTS.get(node.tag.removeprefix(_NAMESPACE), len(node))
        and "\\" not in (node.text or "")
        for node in root.iter()
    )


def _tidy(root: ElementTree.Element) -> None:
    """Keep brackets around flat content from growing, and use the letters of other alphabets."""
    for node in root.iter():
        variant = _ALPHABETS.get(node.attrib.get("mathvariant", ""))
        if variant is not None and node.text:
            node.text = _letter(node.text, variant)
            del node.attrib["mathvariant"]
        if node.text == "\N{INFINITY}":
            node.tag = "mi"
        if node.tag == "mrow" and not any(part.tag in _TALL for part in node.iter()):
            for child in node:
                if child.attrib.get("fence") == "true":
                    child.attrib["stretchy"] = "false"


def _letter(letter: str, alphabet: str) -> str:
    case = "CAPITAL" if letter.isupper() else "SMALL"
    for name in (f"MATHEMATICAL {alphabet}", alphabet):
        try:
            return unicodedata.lookup(f"{name} {case} {letter.upper()}")
        except KeyError:
            continue
    return letter


def _pieces(expression: sp.Basic) -> Iterator[str]:
    form = printed_form(expression)
    order = None if form is None else "none"
    shown = expression if form is None else form
    sign = _RELATIONS.get(type(shown))
    if sign is None:
        yield from _summands(shown, order)
        return
    left, right = shown.args
    yield from _summands(left, order)
    first, *rest = _summands(right, order)
    yield rf"{{}} {sign} {first}"
    yield from rest


def _summands(expression: sp.Basic, order: str | None) -> list[str]:
    """Return the LaTeX of each summand, with a leading sign except for the first."""
    if order is None:
        first, *rest = map(printed_latex, ordered_terms(expression))
    else:
        terms = expression.args if isinstance(expression, sp.Add) else (expression,)
        first, *rest = (sp.latex(term, order=order) for term in terms)
    return [first, *(_signed(term) for term in rest)]


def _signed(latex: str) -> str:
    stripped = latex.lstrip()
    if stripped.startswith("-"):
        return rf"{{}} - {stripped[1:]}"
    return rf"{{}} + {stripped}"


def symbol(name: sp.Symbol) -> Markup:
    """Return a symbol as MathML."""
    return mathml(sp.latex(name), str(name))

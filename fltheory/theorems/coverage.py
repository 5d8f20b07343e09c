"""Which numbered statements of the five papers' texts are registered, and why others are not.

Theorems, lemmas, corollaries and remarks, by the numbers that the texts give them. A statement is
covered by those whose source names it; what names none has a reason here, which the papers' pages
show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fltheory.claims.statement import Statement


@dataclass(frozen=True, eq=False)
class Text:
    """A paper's text, and its numbered statements.

    Attributes
    ----------
    name : str
        What the sources of its statements begin with.
    numbered : tuple of str
        ``"Theorem 1"`` and so on, in the order of the kinds.
    reasons : mapping
        Why a numbered statement is not registered as one of its own.
    """

    name: str
    numbered: tuple[str, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def covering(self, label: str, statements: Sequence[Statement]) -> tuple[str, ...]:
        """Return the ids of the statements whose source names a numbered one, in order.

        Examples
        --------
        >>> from fltheory.theorems import registered
        >>> TEXTS[0].covering("Remark 5", registered("sa-fl"))[:2]
        ('sa-fl/remark-5-fedavg', 'sa-fl/remark-5-sgd')
        """
        named = re.compile(rf"(?:, | and ){re.escape(label)}(?![\w.]\d|\d)")
        found = (
            s.id for s in statements if s.source.startswith(self.name) and named.search(s.source)
        )
        return tuple(dict.fromkeys(found))


def _numbers(kind: str, last: int) -> tuple[str, ...]:
    return tuple(f"{kind} {number}" for number in range(1, last + 1))


_SAME = "the same claim as in the ICML version, {}"
TEXTS = (
    Text(
        "SA-FL (ICML 2024)",
        (
            *_numbers("Theorem", 5),
            *_numbers("Corollary", 2),
            *_numbers("Lemma", 2),
            *_numbers("Remark", 6),
        ),
        {
            "Remark 1": "on what data servers have; nothing in it can be computed",
            "Remark 3": "Theorem 4 in words; that gradients vanish is Corollary 1",
            "Remark 4": "Theorem 5 in words; that distances vanish is Corollary 2",
        },
    ),
    Text(
        "SA-FL (earlier anonymous version)",
        (*_numbers("Theorem", 4), *_numbers("Corollary", 1)),
        {f"Theorem {n}": _SAME.format(f"`pac/{n}`") for n in (1, 2, 3)},
    ),
    Text(
        "CA-Fed (arXiv 2301.04632, later version)",
        (*_numbers("Theorem", 3), *_numbers("Lemma", 3)),
    ),
    Text(
        "FedAU (ICLR 2024; arXiv 2306.03401; from the author's slides)",
        (*_numbers("Theorem", 3), "Corollary 4", "Lemma B.3.3"),
    ),
    Text(
        "FedAR (arXiv 2407.19103)",
        (*_numbers("Theorem", 2), *_numbers("Remark", 3)),
        {"Remark 3": "named in the text, but in an appendix that is not at hand"},
    ),
)


def texts_of(statements: Sequence[Statement]) -> tuple[Text, ...]:
    """Return the texts that some statements are from; none for papers of the atlas."""
    return tuple(
        text for text in TEXTS if any(one.source.startswith(text.name) for one in statements)
    )

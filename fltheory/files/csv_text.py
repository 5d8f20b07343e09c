"""Tables as CSV, of which a spreadsheet computes nothing.

A spreadsheet takes text that begins with ``=``, ``+``, ``-``, ``@`` or a control character for a
formula, which may send what the table holds to anybody; and names are chosen by anybody. So, as
OWASP recommends, an apostrophe is put in front of it, and `read_text` takes it away again. Text
that has apostrophes before such a sign gets one more: so all text is read back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORMULA = re.compile("'*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]")  # the last four: wide forms
_QUOTE = '"'
_QUOTED = re.compile('[",\r\n]')


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Return rows as CSV, the header first; None is an empty cell.

    Examples
    --------
    >>> csv_text([("client", "gain"), ("=1+1", -0.5), ("-0.5", None), ("'=x", 3)])
    "client,gain\n'=1+1,-0.5\n-0.5,\n''=x,3\n"
    """
    # The standard library's writer leaves "\r" without quotation marks, which readers end a row at.
    return "".join(",".join(map(_written, row)) + "\n" for row in rows)


def read_text(cell: str) -> str:
    """Return the text of which `csv_text` has made a cell.

    Examples
    --------
    >>> [read_text(cell) for cell in ("'=1+1", "-0.5", "''=x", "it's", "'twas")]
    ['=1+1', '-0.5', "'=x", "it's", "'twas"]
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _written(cell: object) -> str:
    text = "" if cell is None else str(cell)
    if isinstance(cell, str) and _FORMULA.match(cell) and not _is_number(cell):
        text = f"'{text}"
    return f'"{text.replace(_QUOTE, 2 * _QUOTE)}"' if _QUOTED.search(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

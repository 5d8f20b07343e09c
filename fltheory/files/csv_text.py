"""Tables as CSV that spreadsheets do not evaluate as formulas.

Spreadsheets interpret text that begins with ``=``, ``+``, ``-``, ``@`` or a control character as a
formula, which may send the table's content elsewhere, and anybody may have chosen the names in a
table. So, as OWASP recommends, such text gets a leading apostrophe, which `read_text` removes. Text
that already has apostrophes before such a sign gets one more, so all text is read back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORMULA = re.compile("'*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]")  # the last four are full-width
_QUOTE = '"'
_QUOTED = re.compile('[",\r\n]')


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Return rows as CSV, with the header first; None becomes an empty cell.

    Examples
    --------
    >>> csv_text([("client", "gain"), ("=1+1", -0.5), ("-0.5", None), ("'=x", 3)])
    "client,gain\n'=1+1,-0.5\n-0.5,\n''=x,3\n"
    """
    # The standard library's writer does not quote "\r", but readers end a row at it.
    return "".join(",".join(map(_written, row)) + "\n" for row in rows)


def read_text(cell: str) -> str:
    """Return the text from which `csv_text` made a cell.

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

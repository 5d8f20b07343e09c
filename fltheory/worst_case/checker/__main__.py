"""Check a proof of any kind: print its claim and exit with 0 if it is proved, otherwise with 1.

``python -I -S fltheory/worst_case/checker FILE`` runs the folder as a separate program, which needs
only Python's standard library and these files.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.checker import (
        correlated_checker,
        kernel,
        memory,
        one_round,
        phases_checker,
        polynomial_checker,
        rich_checker,
    )
else:
    import correlated_checker
    import kernel
    import memory
    import one_round
    import phases_checker
    import polynomial_checker
    import rich_checker

KINDS: dict[str, Any] = {
    own.KIND: own
    for own in (
        one_round,
        memory,
        correlated_checker,
        rich_checker,
        phases_checker,
        polynomial_checker,
    )
}


def check(text: str) -> str:
    """Check a certificate's text and return its claim."""
    kind = kernel.kind_of(text)
    if kind not in KINDS:
        raise kernel.ProofError(f"kind: must be one of {', '.join(map(repr, KINDS))}")
    return str(KINDS[kind].checked(text))


if __name__ == "__main__":
    sys.exit(kernel.run(sys.argv[1:], "checker", check))

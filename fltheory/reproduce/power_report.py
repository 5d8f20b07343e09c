"""How strong the search is, as a page; and the file that a long measurement resumes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fltheory.report.files.result_file import read_results, write_results
from fltheory.reproduce.power import Judged, Plan

_INTRODUCTION = """\
# The power of the search

Made by `fltheory reproduce power`; do not edit. A search that refutes nothing says something only
if it is known to refute what is false. So faults are planted: in every theorem's derived reading,
one at a time, each constant is divided by 2, 10 and 100, each sign, exponent and reduction over
rounds is changed, and each hypothesis is dropped. A mutant counts as false once anything refutes
it: the search, a regime of the theorem, or a second search with another seed; each refutation is
confirmed by the exact engine. Mutants that nothing refutes may be true, so the share is of those
known to be false."""


def power_page(results: Sequence[Judged], plan: Plan) -> str:
    """Return the measurement in Markdown: shares by theorem, and the false mutants missed."""
    return "\n".join(_lines(results, plan)) + "\n"


def power_summary(results: Sequence[Judged]) -> str:
    """Return in a line how many false mutants were found."""
    found, false = (sum(r.is_found for r in results), sum(r.is_false for r in results))
    share = f" ({found / false:.1%})" if false else ""
    return f"{len(results)} mutants, {false} of them known to be false, {found} found{share}"


def _lines(results: Sequence[Judged], plan: Plan) -> Iterator[str]:
    yield _INTRODUCTION
    yield ""
    share = "All mutants" if plan.every == 1 else f"One mutant of {plan.every}"
    yield f"{share}; budget {plan.budget} settings a search, seed {plan.seed}: {_bold(results)}."
    yield ""
    yield "| theorem | mutants | known to be false | found | share |"
    yield "|---|---|---|---|---|"
    for name in sorted({result.theorem for result in results}):
        yield _row(name, [result for result in results if result.theorem == name])
    yield ""
    yield "## False, and missed by the search"
    yield ""
    missed = [result for result in results if result.is_false and not result.is_found]
    for result in sorted(missed, key=lambda r: (r.theorem, r.reading, r.index)):
        yield f"- {result.theorem}: `{result.about}` (refuted by {result.refuted_by})"
    if not missed:
        yield "None."


def _bold(results: Sequence[Judged]) -> str:
    return f"**{power_summary(results)}**"


def _row(name: str, results: Sequence[Judged]) -> str:
    found, false = (sum(r.is_found for r in results), sum(r.is_false for r in results))
    share = f"{found / false:.1%}" if false else "none false"
    return f"| {name} | {len(results)} | {false} | {found} | {share} |"


def write_judged(path: Path, results: Sequence[Judged], plan: Plan) -> None:
    """Write what has been judged so far, as JSON, in one go."""
    write_results(path, "judged", results, plan)


def read_judged(path: Path, plan: Plan) -> list[Judged]:
    """Read what was judged before; nothing if there is no such file.

    Raises
    ------
    ValueError
        If it is damaged, or was made with another plan.
    """
    return read_results(
        path,
        "judged",
        plan,
        command="power",
        plan_of=lambda entry: Plan(**entry),
        result_of=lambda entry: Judged(**entry),
    )

"""``fltheory falsify``."""

from __future__ import annotations

import os
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.shared.options import PrintedReading, Seed, TheoremId, written
from fltheory.commands.shared.preparation import next_command, the_id
from fltheory.commands.shared.written_files import tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement
    from fltheory.engines import Setting
    from fltheory.verify.safari.witness import Witness


_EACH_SEARCH = 10_000


def command(
    theorem: TheoremId,
    reading: PrintedReading = "printed",
    budget: Annotated[
        int | None,
        typer.Option(
            help="Number of settings to try; default: 10000 for SAFARI, 500 in a family, 100 for "
            "an order, else 1000."
        ),
    ] = None,
    seed: Seed = 0,
    repairs: Annotated[
        bool,
        typer.Option(
            "--repairs", help="Search the repaired statement, then drop each repair in turn."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        written(".json", ".toml"),
        typer.Option(
            help="Where to write the certificate (.json), or the witness's setting (.toml)."
        ),
    ] = None,
) -> None:
    """Search for a setting that refutes a statement, and certify it if possible."""
    theorem = the_id(theorem)
    if repairs:
        if out is not None or reading != "printed":
            raise ValueError("reading and out must be left out with --repairs")
        search_repairs(theorem, budget, seed)
        return
    from fltheory.theorems import registry

    statement = registry.get(theorem, reading)
    if out is not None and out.suffix == ".json" and statement.why_not_certified:
        why = statement.why_not_certified
        raise ValueError(f"out must end in .toml for {theorem}, which has no certificate: {why}")
    _falsify(statement, budget, seed, out)


def _falsify(statement: Statement, budget: int | None, seed: int, out: Path | None) -> None:
    from fltheory.engines import Setting
    from fltheory.verify import falsify as search
    from fltheory.verify.safari.witness import Witness

    with shown_progress() as advance:
        found = search(statement, budget, seed, progress=advance)
    print(found)
    witness = found.witness
    if witness is None:
        if out is not None:
            print(f"nothing written to {out}: nothing was found")
        return
    setting = witness.setting()
    if not isinstance(setting, Setting):
        print(f"not certified: {statement.why_not_certified}")
        if out is not None:
            print(f"nothing written to {out}: only runs of an algorithm have setting files")
        return
    if out is not None and out.suffix == ".toml":
        _keep(statement, setting, out)
        return
    try:
        _certify(statement, witness if isinstance(witness, Witness) else setting, out)
    except ValueError as error:
        print(f"not certified: {error}")
        if out is not None:
            # A result that took long is still kept, but never in a file that already exists.
            endings = chain((".toml",), (f".{number}.toml" for number in count(2)))
            places = map(out.with_suffix, endings)
            _keep(statement, setting, next(one for one in places if not os.path.lexists(one)))


def search_repairs(theorem: str, budget: int | None, seed: int) -> None:
    """Show the search on the repaired statement, and which of its repairs are needed, if known.

    A reading that is not made of single repairs is only searched as a whole.
    """
    from fltheory.report.terminal.refutation_text import survival_text
    from fltheory.theorems.correction import correction
    from fltheory.verify.search.falsification import survival

    mended = correction(theorem).corrected
    if mended.repair is None:
        _falsify(mended, budget, seed, None)
        return
    with shown_progress() as advance:
        each = _EACH_SEARCH if budget is None else budget
        found = survival(mended, each, seed, progress=advance)
    print(survival_text(found))


def _keep(statement: Statement, setting: Setting, place: Path) -> None:
    from fltheory.engines.setting_file import Refutes, write_setting

    try:
        write_setting(place, setting, Refutes(statement.id, statement.reading))
    except ValueError as error:
        print(f"nothing written: {error}")
        return
    tell_written(place)
    print(f"check it again: {next_command('certify', place)}")


def _certify(statement: Statement, witness: Witness | Setting, out: Path | None) -> None:
    from fltheory.verify import certificate
    from fltheory.verify.certificates.certificate import write_certificate

    with shown_progress("certifying the witness in fractions"):
        document = certificate(statement, witness)
    print("certified: checked in fractions, every hypothesis holds and the bound is violated")
    if out is not None:
        write_certificate(out, document)
        tell_written(out)
        print(f"check it again: {next_command('certify', out)}")

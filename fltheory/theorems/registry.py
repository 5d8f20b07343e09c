"""All registered theorems, by id and reading."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import decode_source
from pathlib import Path

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Statement
from fltheory.files.user_file import run_file
from fltheory.grammar.fields import check_meanings
from fltheory.theorems import atlas
from fltheory.theorems.ca_fed import discussion as ca_fed_discussion
from fltheory.theorems.ca_fed import lemmas as ca_fed_lemmas
from fltheory.theorems.ca_fed import statements as ca_fed
from fltheory.theorems.ca_fed import weights as ca_fed_weights
from fltheory.theorems.cited_lemmas import STATEMENTS as CITED_LEMMAS
from fltheory.theorems.fedar import STATEMENTS as FEDAR
from fltheory.theorems.fedau import statements as fedau
from fltheory.theorems.fedau import weights as fedau_weights
from fltheory.theorems.sa_fl import impossibility as sa_fl_impossibility
from fltheory.theorems.sa_fl import pac as sa_fl_pac
from fltheory.theorems.sa_fl import remarks as sa_fl_remarks
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.theorems.scaffold import STATEMENTS as SCAFFOLD

PAPERS = (
    sa_fl.STATEMENTS,
    sa_fl_remarks.STATEMENTS,
    ca_fed.STATEMENTS,
    ca_fed_lemmas.STATEMENTS,
    ca_fed_weights.STATEMENTS,
    ca_fed_discussion.STATEMENTS,
    fedau.STATEMENTS,
    fedau_weights.STATEMENTS,
    (fedau.DESCENT,),
    SCAFFOLD,
    CITED_LEMMAS,
    FEDAR,
    sa_fl_impossibility.STATEMENTS,
    sa_fl_pac.STATEMENTS,
    atlas.STATEMENTS,
)

_BY_NAME: dict[tuple[str, str], Statement] = {
    (statement.id, statement.reading): statement for paper in PAPERS for statement in paper
}

_OF_PAPERS = frozenset(_BY_NAME)
_LOADED: dict[str, str] = {}


@checks_kinds
def registered(*beginnings: str) -> tuple[Statement, ...]:
    """Return the registered statements, in every reading.

    Parameters
    ----------
    *beginnings : str
        Ids, or the parts of ids before a slash (``"sa-fl"``), in the order of the result, or
        ``"atlas"`` for all papers of the atlas. Without any, all statements are returned in the
        order of registration.

    Raises
    ------
    ValueError
        If no id starts that way; the message lists similar ones.

    Examples
    --------
    >>> [statement.reading for statement in registered("sa-fl/5")]
    ['printed', 'derived', 'repaired']
    """
    if not beginnings:
        return tuple(_BY_NAME.values())
    chosen: dict[tuple[str, str], Statement] = {}
    for beginning in beginnings:
        matching = {
            name: statement
            for name, statement in _BY_NAME.items()
            if name[0] == beginning or name[0].startswith(f"{beginning.removesuffix('/')}/")
        }
        if beginning == "atlas":
            matching |= {(one.id, one.reading): one for one in atlas.STATEMENTS}
        if not matching:
            readings(beginning)
        chosen |= matching
    return tuple(chosen.values())


def ids() -> tuple[str, ...]:
    """Return the ids of all registered theorems, in order."""
    return tuple(dict.fromkeys(identifier for identifier, _ in _BY_NAME))


def readings(identifier: str) -> tuple[str, ...]:
    """Return the readings of a theorem.

    Raises
    ------
    ValueError
        If the id is unknown; the message lists similar ones.
    """
    found = tuple(reading for known, reading in _BY_NAME if known == identifier)
    if not found:
        if identifier.endswith(".py"):
            raise ValueError(
                f"id must be a registered theorem, got {identifier!r}: load the statements "
                f"of a file with fltheory --load {identifier}"
            )
        raise ValueError(
            f"id must be a registered theorem ({_near(identifier)}), got {identifier!r}: "
            "register your own with --load FILE"
        )
    return found


def _near(identifier: str) -> str:
    """Return the ids that were probably meant: those that start that way, or similar ones."""
    begun = [known for known in ids() if known.startswith(f"{identifier.removesuffix('/')}/")]
    near = begun or get_close_matches(identifier, ids(), n=3, cutoff=0.4)
    return ", ".join(near) or "fltheory theorems lists them"


@checks_kinds
def get(identifier: str, reading: str = "printed") -> Statement:
    """Return a theorem by its id, e.g. ``"sa-fl/5"``, in one of its readings.

    Raises
    ------
    ValueError
        If the id or reading is unknown; the message lists alternatives.

    Examples
    --------
    >>> get("sa-fl/5", reading="derived").name
    'sa-fl/5 (derived)'
    """
    known = readings(identifier)
    if reading not in known:
        raise ValueError(
            f"reading of {identifier} must be one of {', '.join(known)}, got {reading!r}"
        )
    return _BY_NAME[identifier, reading]


def statement_of(theorem: Statement | str) -> Statement:
    """Return a statement, given either the statement or its id (for the printed reading).

    Raises
    ------
    ValueError
        If the id is unknown, or the argument is neither a statement nor an id.
    """
    if isinstance(theorem, str):
        return get(theorem)
    if not isinstance(theorem, Statement):
        raise ValueError(
            f"theorem must be a statement, e.g. fl.theorem('sa-fl/5'), or its id, got {theorem!r}"
        )
    return theorem


def register(statements: Iterable[Statement]) -> None:
    """Add your own statements for the lifetime of this process.

    They replace earlier registrations of your own with the same id and reading.

    Raises
    ------
    ValueError
        If an id and reading are those of a paper's statement here or are given twice, or if a
        symbol has no meaning. Nothing is added in these cases.
    """
    fresh: dict[tuple[str, str], Statement] = {}
    for statement in statements:
        name = statement.id, statement.reading
        if name in _OF_PAPERS or name in fresh:
            raise ValueError(
                f"id must be one that no other theorem has, got {name[0]!r} ({name[1]}) again"
            )
        if statement.basis is statement:
            check_meanings(statement, f"the theorem {statement.id!r}")
        fresh[name] = statement
    _BY_NAME.update(fresh)


def loaded_files() -> dict[str, str]:
    """Return the text of every loaded file of theorems, by its name without the suffix."""
    return dict(_LOADED)


@checks_kinds
def load(source: Path | str | Iterable[Statement]) -> tuple[Statement, ...]:
    """Register your own statements for the lifetime of this process, and return them.

    They replace earlier registrations of your own with the same id and reading.

    Parameters
    ----------
    source : Path, str or statements
        A Python file is run for its ``STATEMENTS``.

    Raises
    ------
    ValueError
        If there is no such file, it does not define ``STATEMENTS``, these are not statements, an id
        and reading are those of a paper's statement or are given twice, or a symbol has no meaning.
        Nothing is registered in these cases.

    Examples
    --------
    >>> load("nowhere.py")
    Traceback (most recent call last):
    ValueError: file of theorems must exist, got 'nowhere.py'
    """
    if isinstance(source, Iterable) and not isinstance(source, str):
        given = tuple(source)
        for item in given:
            if not isinstance(item, Statement):
                raise ValueError(f"source must contain only statements, got {item!r:.60}")
        register(given)
        return given
    path = validation.path("source", source)
    found = _statements_in(path)
    try:
        register(found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    _LOADED[path.stem] = decode_source(path.read_bytes())
    return found


def _statements_in(path: Path) -> tuple[Statement, ...]:
    """Run a file and return its statements; running it cannot replace registered ones."""
    before = dict(_BY_NAME)
    try:
        module = run_file(path, "file of theorems")
    finally:
        _BY_NAME.update(before)
    found = getattr(module, "STATEMENTS", None)
    # An empty tuple means no statements: a file may have only algorithms.
    if not isinstance(found, tuple):
        got = "none" if found is None else repr(found)[:60]
        raise ValueError(f"STATEMENTS of {path} must be a tuple of statements, got {got}")
    for item in found:
        if not isinstance(item, Statement):
            raise ValueError(
                f"STATEMENTS of {path} must be a tuple of statements, got {item!r:.60} in it"
            )
        if not all(isinstance(part, str) and part for part in (item.id, item.reading)):
            raise ValueError(
                f"id and reading of statements of {path} must be strings, got {item.id!r} "
                f"({item.reading!r})"
            )
    return found

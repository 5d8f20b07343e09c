"""Work that is kept cell by cell in a store, if one was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fltheory.commands.resumption import resumable
from fltheory.commands.written_files import check_places, tell_written

if TYPE_CHECKING:
    from fltheory.sweep import Store
    from fltheory.sweep.kept import KeptWork


@contextmanager
def kept_in(path: Path | None) -> Iterator[KeptWork | None]:
    """Give what keeps work in a store, None without one; an interrupt says what is kept.

    Raises
    ------
    ValueError
        If there can be no such store.
    """
    if path is None:
        yield None
        return
    from fltheory.sweep import Store
    from fltheory.sweep.kept import KeptWork

    check_places(store=path)
    with Store(path, create=True) as store, resumable(lambda: f"{len(store)} cells are in {path}"):
        yield KeptWork(store)


def tell_kept(kept: KeptWork | None) -> None:
    """Say where the cells of a command are, and which of them other versions made."""
    if kept is not None:
        tell_other_versions(kept.store, kept.keys)
        tell_written(kept.store.path)


def tell_other_versions(store: Store, keys: set[str]) -> None:
    """Say which of some cells were made with other versions than are here."""
    from fltheory.sweep.cell import versions

    for made_by, count in store.versions(keys).items():
        if made_by != versions():
            print(f"  {count} of them were made with {made_by}, and are kept as they are")

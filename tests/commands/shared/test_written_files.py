"""The files that commands write: places, figures, pages."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from matplotlib.figure import Figure

from fltheory.commands.shared.options import FigureFile, FurtherPage
from fltheory.commands.shared.written_files import (
    check_page,
    check_places,
    draw,
    tell_written,
    with_inputs_kept,
)
from fltheory.files.whole_file import write_whole


def test_places_are_named_by_their_option(tmp_path: Path) -> None:
    check_places(out=tmp_path / "new" / "a.json", page=None)
    with pytest.raises(ValueError, match=r"^page must be a file, got the folder"):
        check_places(out=tmp_path / "a.json", page=tmp_path)


def test_a_figure_is_drawn_if_it_was_asked_for(tmp_path: Path) -> None:
    told, place = [], tmp_path / "a.svg"
    draw(Figure, None, lambda *state: told.append(state))
    assert told == []
    draw(Figure, place, lambda *state: told.append(state))
    assert told == [(0, 0, f"drawing {place}")]
    assert place.is_file()


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    done = []

    def command(figure: FigureFile = None, page: FurtherPage = None) -> None:
        done.append(figure)

    careful = with_inputs_kept(command)
    careful(figure=tmp_path / "a.svg", page=None)
    with pytest.raises(ValueError, match=r"^figure must end in .png or .svg, got '.*a.pdf'$"):
        careful(figure=tmp_path / "a.pdf", page=None)
    with pytest.raises(ValueError, match=r"^page must be a file, got the folder"):
        careful(figure=None, page=tmp_path)
    assert done == [tmp_path / "a.svg"]


def test_a_file_is_named_if_it_was_asked_for(capsys) -> None:
    tell_written(None)
    tell_written(Path("a.svg"))
    assert capsys.readouterr().out == "written to a.svg\n"


def test_another_page_ends_the_command(tmp_path: Path, capsys) -> None:
    page = tmp_path / "a.md"
    for present in (None, "other", ""):
        if present is not None:
            page.write_text(present)
        with pytest.raises(typer.Exit) as end:
            check_page(page, "text", "it should be: run it")
        assert end.value.exit_code == 1
        assert capsys.readouterr().out == f"{page} is not what it should be: run it\n"
    page.write_text("text")
    check_page(page, "text", "it should be: run it")
    assert capsys.readouterr().out == ""


def test_a_folder_that_is_made_is_named_once(tmp_path: Path, capsys) -> None:
    first, second = tmp_path / "new" / "a.json", tmp_path / "new" / "b.json"
    check_places(json=first, csv=second)
    for path in (first, second):
        write_whole(path, "")
        tell_written(path)
    folder = tmp_path / "new"
    assert capsys.readouterr().out == (
        f"written to {first} (new folder {folder})\nwritten to {second}\n"
    )

"""``yolofs review --tool``: a program of the user's gets two directories, and its right one is the
selection.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.mount

LINES = "".join(f"{number}\n" for number in range(1, 21))
STAGED = LINES.replace("3\n", "three\n", 1).replace("18\n", "eighteen\n")


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    (yolofs.project / "a.txt").write_text(LINES)
    (yolofs.project / "gone").write_text("precious\n")
    with yolofs.mounted() as mountpoint:
        (mountpoint / "a.txt").write_text(STAGED)
        (mountpoint / "new").write_text("one\ntwo\n")
        (mountpoint / "gone").unlink()
        yield mountpoint


def reviewed(yolofs: Program, tool: str, *answers: tuple[str, str]) -> str:
    """Run the review with a tool, and type an answer each time that something is asked; return all
    that was said.
    """
    with Terminal(yolofs.project, ["review", "--tool", tool]) as terminal:
        for question, answer in answers:
            terminal.wait_for(question)
            terminal.type(answer + "\n")
        assert terminal.wait() == 0, terminal.text
        return terminal.text


def script(tmp_path: Path, text: str) -> str:
    """Return a command that runs a shell script with the two directories as $1 and $2."""
    path = tmp_path / "tool.sh"
    path.write_text(text)
    return f"sh {path}"


def test_the_two_directories_have_what_was_before_and_what_is_staged(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    said = reviewed(yolofs, script(tmp_path, f'cp -r "$1" {tmp_path}/l; cp -r "$2" {tmp_path}/r'), ("[q]uit", "q"))
    assert "selected: 3 changes; not selected: 0 changes" in said
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in sorted(tmp_path.glob("[lr]/*"))}
    assert found == {
        "l/a.txt": LINES,
        "l/gone": "precious\n",
        "r/a.txt": STAGED,
        "r/new": "one\ntwo\n",
    }


def test_nothing_of_it_lies_where_the_agent_could_look(yolofs: Program, view: Path, tmp_path: Path) -> None:
    reviewed(yolofs, script(tmp_path, f'echo "$1" > {tmp_path}/where'), ("[q]uit", "q"))
    assert (tmp_path / "where").read_text().startswith(f"{yolofs.session}/review-")
    assert list(yolofs.session.glob("review-*")) == []


def test_what_the_right_one_has_is_committed_and_the_rest_stays_staged(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    tool = script(tmp_path, 'sed -i s/eighteen/18/ "$2/a.txt"; echo one > "$2/new"; cp "$1/gone" "$2/gone"')
    said = reviewed(yolofs, tool, ("[q]uit", "c"), ("commit that?", "y"))
    assert "commit 1 done" in said
    assert (yolofs.project / "a.txt").read_text() == LINES.replace("3\n", "three\n", 1)
    assert (yolofs.project / "new").read_text() == "one\n"
    assert (yolofs.project / "gone").read_text() == "precious\n"
    assert (view / "a.txt").read_text() == STAGED
    assert (view / "new").read_text() == "one\ntwo\n"
    assert not (view / "gone").exists()


def test_what_the_right_one_does_not_have_is_dropped(yolofs: Program, view: Path, tmp_path: Path) -> None:
    tool = script(tmp_path, 'sed -i s/eighteen/18/ "$2/a.txt"; rm "$2/new"; cp "$1/gone" "$2/gone"')
    said = reviewed(yolofs, tool, ("[q]uit", "d"))
    assert "to undo that: yolofs travel " in said
    assert (view / "a.txt").read_text() == LINES.replace("3\n", "three\n", 1)
    assert (view / "gone").read_text() == "precious\n"
    assert not (view / "new").exists()


def test_what_was_written_in_the_tool_is_staged_after_asking(yolofs: Program, view: Path, tmp_path: Path) -> None:
    tool = script(tmp_path, 'echo written by hand >> "$2/new"')
    reviewed(yolofs, tool, ("stage 1 edited file?", "y"), ("[q]uit", "c"), ("commit that?", "y"))
    assert (yolofs.project / "new").read_text() == "one\ntwo\nwritten by hand\n"
    assert (view / "new").read_text() == "one\ntwo\nwritten by hand\n"


def test_a_tool_that_fails_changes_nothing(yolofs: Program, view: Path, tmp_path: Path) -> None:
    with Terminal(yolofs.project, ["review", "--tool", script(tmp_path, 'rm "$2/new"; exit 3')]) as terminal:
        assert terminal.wait() == 1
        assert "ended with exit code 3, so nothing is done" in terminal.text
    assert (view / "new").exists()


def test_what_comes_beside_the_files_is_not_taken(yolofs: Program, view: Path, tmp_path: Path) -> None:
    tool = script(tmp_path, 'echo x > "$2/other"; rm "$2/new"; ln -s /etc/passwd "$2/new"')
    said = reviewed(yolofs, tool, ("[q]uit", "q"))
    assert "new is not taken" in said
    assert "other is not taken" in said

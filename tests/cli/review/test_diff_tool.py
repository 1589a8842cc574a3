"""``yolofs review --tool``: a program of the user's gets two directories, and its right one is the
selection.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import COMMAND, Program, with_few_files
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

LINES = "".join(f"{number}\n" for number in range(1, 21))
STAGED = LINES.replace("3\n", "three\n", 1).replace("18\n", "eighteen\n")

WITHOUT_PASSING = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()
"""What a command begins with for which modes count, also as root."""


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


def test_the_tool_gets_base_in_its_left_directory_and_what_is_staged_in_its_right_one(
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


def test_the_directories_of_the_tool_lie_in_the_session_where_no_agent_looks(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    reviewed(yolofs, script(tmp_path, f'echo "$1" > {tmp_path}/where'), ("[q]uit", "q"))
    assert (tmp_path / "where").read_text().startswith(f"{yolofs.session}/review-")
    assert list(yolofs.session.glob("review-*")) == []


def test_what_the_right_directory_has_is_committed_and_the_rest_stays_staged(
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


def test_a_change_of_which_a_part_is_taken_is_counted_once(yolofs: Program, view: Path, tmp_path: Path) -> None:
    takes_a_part = 'sed -i s/three/3/ "$2/a.txt"'
    said = reviewed(yolofs, script(tmp_path, takes_a_part), ("[q]uit", "q"))
    assert "selected: 2 changes and a part of 1 more; not selected: the rest of it" in said
    said = reviewed(yolofs, script(tmp_path, f'{takes_a_part}; rm "$2/new"'), ("[q]uit", "q"))
    assert "selected: 1 change and a part of 1 more; not selected: 1 change and the rest of it" in said


def test_what_the_right_directory_lacks_is_dropped(yolofs: Program, view: Path, tmp_path: Path) -> None:
    tool = script(tmp_path, 'sed -i s/eighteen/18/ "$2/a.txt"; rm "$2/new"; cp "$1/gone" "$2/gone"')
    said = reviewed(yolofs, tool, ("[q]uit", "d"))
    assert "to undo that: yolofs travel " in said
    assert (view / "a.txt").read_text() == LINES.replace("3\n", "three\n", 1)
    assert (view / "gone").read_text() == "precious\n"
    assert not (view / "new").exists()


def test_an_edit_made_in_the_tool_is_staged_after_asking(yolofs: Program, view: Path, tmp_path: Path) -> None:
    tool = script(tmp_path, 'echo written by hand >> "$2/new"')
    reviewed(yolofs, tool, ("stage 1 edited file?", "y"), ("[q]uit", "c"), ("commit that?", "y"))
    assert (yolofs.project / "new").read_text() == "one\ntwo\nwritten by hand\n"
    assert (view / "new").read_text() == "one\ntwo\nwritten by hand\n"


def test_a_new_file_that_the_tool_empties_is_staged_and_committed_empty(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    """No lines of it are a part of it: to have none of them is another text."""
    tool = script(tmp_path, ': > "$2/new"; cp "$1/a.txt" "$2/a.txt"; cp "$1/gone" "$2/gone"')
    said = reviewed(yolofs, tool, ("stage 1 edited file?", "y"), ("[q]uit", "c"), ("commit that?", "y"))
    assert "selected: 1 change; not selected: 2 changes" in said
    assert (yolofs.project / "new").read_text() == ""
    assert (view / "new").read_text() == ""
    assert (view / "a.txt").read_text() == STAGED


def test_a_tool_that_fails_changes_nothing(yolofs: Program, view: Path, tmp_path: Path) -> None:
    with Terminal(yolofs.project, ["review", "--tool", script(tmp_path, 'rm "$2/new"; exit 3')]) as terminal:
        assert terminal.wait() == 1
        assert "ended with exit code 3, so nothing is done" in terminal.text
    assert (view / "new").exists()


def test_files_and_modes_that_the_tool_added_are_named_as_not_taken(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    (yolofs.project / "tool").write_text("#!/bin/sh\n")
    (yolofs.project / "tool").chmod(0o755)
    (view / "tool").write_text("#!/bin/sh\ntrue\n")
    changes = (
        'test -x "$2/tool" && test -x "$1/tool" || exit 5; chmod -x "$2/tool"',
        'echo x > "$2/other"; ln -s / "$2/leads"; rm "$2/a.txt"; ln -sf /etc/passwd "$2/new"',
    )
    said = reviewed(yolofs, script(tmp_path, "\n".join(changes)), ("[q]uit", "c"), ("commit that?", "y"))
    assert "tool is not taken with its new mode: the tool has made it not executable; yolofs run -- chmod" in said
    for name in ("other", "leads"):
        assert f"{name} is not taken: it was not handed out; yolofs run adds files" in said
    assert "a.txt is not taken: to delete it was not staged; yolofs run -- rm" in said
    assert "new is not taken: it is no longer a regular file" in said
    assert (yolofs.project / "tool").stat().st_mode & 0o777 == 0o755
    assert (yolofs.project / "a.txt").read_text() == LINES
    assert (view / "a.txt").read_text() == STAGED
    assert (view / "new").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("edit", ["", "true by hand"])
def test_a_mode_that_the_tool_takes_back_stays_staged_and_the_text_is_taken(
    yolofs: Program, view: Path, tmp_path: Path, edit: str
) -> None:
    """So scm-diff-editor leaves a file of which the user does not select the mode."""
    (yolofs.project / "tool").write_text("#!/bin/sh\n")
    (view / "tool").write_text("#!/bin/sh\ntrue\n")
    (view / "tool").chmod(0o755)
    (yolofs.project / "mode").write_text("m\n")
    (view / "mode").chmod(0o755)
    changes = 'test -x "$2/tool" && ! test -x "$1/tool" || exit 5; chmod -x "$2/tool" "$2/mode"'
    changes += f'; echo "{edit}" >> "$2/tool"' if edit else ""
    asked = [("stage 1 edited file?", "y")] if edit else []
    said = reviewed(yolofs, script(tmp_path, changes), *asked, ("[q]uit", "c"), ("commit that?", "y"))
    assert "is not taken" not in said
    assert "selected: 3 changes and a part of 1 more; not selected: 1 change and the rest of it" in said
    assert (yolofs.project / "tool").read_text() == f"#!/bin/sh\ntrue\n{edit}" + ("\n" if edit else "")
    assert (yolofs.project / "tool").stat().st_mode & 0o777 == 0o644
    assert [(yolofs.project / "mode").stat().st_mode & 0o777, (view / "mode").stat().st_mode & 0o777] == [0o644, 0o755]
    assert (view / "tool").stat().st_mode & 0o777 == 0o755


def test_vim_takes_a_hunk_out(yolofs: Program, view: Path, tmp_path: Path) -> None:
    assert shutil.which("vim"), "vim is not there; scripts/setup.sh installs it"
    tool = script(tmp_path, 'exec vim -u NONE -N -n -d "$1/a.txt" "$2/a.txt"')
    with Terminal(yolofs.project, ["review", "--tool", tool], size=(100, 24)) as terminal:
        terminal.wait_for_screen("three", "right/a.txt")
        terminal.type("\x17l3Gdo:wqa\r")  # to the right window, and its third line as on the left
        terminal.wait_for("[q]uit")
        terminal.type("c\n")
        terminal.wait_for("commit that?")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (yolofs.project / "a.txt").read_text() == LINES.replace("18\n", "eighteen\n")
    assert (view / "a.txt").read_text() == STAGED


def test_hostile_names_come_through_and_steer_no_terminal(yolofs: Program, view: Path, tmp_path: Path) -> None:
    names = [b"-rf", b"a\nb", b"\x1b[2J", b"\xff\xfe", b"$(touch owned)", b" "]
    for name in names:
        (view / os.fsdecode(name)).write_text("x\n")
    tool = script(tmp_path, 'cd "$2" && find . -type f ! -name a.txt ! -name new -exec sh -c \'echo y >"$1"\' - {} \\;')
    said = reviewed(yolofs, tool, ("stage 6 edited files?", "y"), ("[q]uit", "c"), ("commit that?", "y"))
    assert "\x1b[2J" not in said
    assert {name: (yolofs.project / os.fsdecode(name)).read_text() for name in names} == dict.fromkeys(names, "y\n")
    assert not (yolofs.project / "owned").exists()


@pytest.mark.parametrize("place", ["nested/.git", "bare"])
def test_a_repository_that_is_staged_runs_nothing_for_a_tool_that_calls_git(
    yolofs: Program, view: Path, tmp_path: Path, place: str
) -> None:
    """Editors ask git about each file that they open; its settings name programs."""
    settings = f"[core]\n\tfsmonitor = touch {tmp_path}/owned\n[diff]\n\texternal = touch {tmp_path}/owned\n"
    for name, text in (
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", settings),
        ("objects/x", ""),
        ("refs/x", ""),
        ("../file", ""),
    ):
        (view / place / name).parent.mkdir(parents=True, exist_ok=True)
        (view / place / name).write_text(text)
    top = place.partition("/")[0]
    asks_git = f"git status; git diff --no-index {tmp_path}/a {tmp_path}/b; true"
    tool = script(tmp_path, f'cd "$2" && ls -A . > {tmp_path}/shown; cd "$2/{top}"; {asks_git}')
    (tmp_path / "a").touch()
    (tmp_path / "b").write_text("b\n")
    reviewed(yolofs, tool, ("[q]uit", "q"))
    assert "new" in (tmp_path / "shown").read_text()
    assert not (tmp_path / "owned").exists()


def test_nothing_that_an_editor_would_act_on_is_handed_out(yolofs: Program, view: Path, tmp_path: Path) -> None:
    """Neither the staged version nor the earlier one, nor one at an exempt path."""
    for name in (".envrc", ".vscode/tasks.json"):
        (yolofs.project / name).parent.mkdir(exist_ok=True)
        (yolofs.project / name).write_text("before\n")
    names = ".envrc", ".vscode/settings.json", "sub/.exrc", ".idea/startup.xml", "node_modules/m/.dir-locals.el", "a.py"
    for name in names:
        (view / name).parent.mkdir(parents=True, exist_ok=True)
        (view / name).write_text("staged\n")
    (view / ".vscode/tasks.json").rename(view / ".vscode/tasks")
    (view / "setuid").write_text("")
    (view / "setuid").chmod(0o4755)
    said = reviewed(yolofs, script(tmp_path, f'find "$1" "$2" -type f > {tmp_path}/shown'), ("[q]uit", "q"))
    shown = sorted(line.partition("/right/")[2] for line in (tmp_path / "shown").read_text().splitlines())
    assert [name for name in shown if name] == ["a.py", "a.txt", "new"]
    assert "note: 7 that the host would run or trust not shown; to look at them: yolofs review" in said


def test_the_tool_gets_no_files_beyond_a_total_size(yolofs: Program, view: Path, tmp_path: Path) -> None:
    """A hole costs an agent nothing, and is as long for the tool as anything else."""
    for number in range(2):
        with (view / f"hole {number}").open("wb") as file:
            file.truncate(130 << 20)
    said = reviewed(yolofs, script(tmp_path, f'ls "$2" > {tmp_path}/shown'), ("[q]uit", "q"))
    assert "a.txt" in (tmp_path / "shown").read_text()
    assert (tmp_path / "shown").read_text().count("hole") == 1
    assert "note: 1 that is no regular file" in said


@pytest.fixture
def renamed(yolofs: Program, view: Path) -> None:
    (yolofs.project / "here").write_text(LINES)
    (view / "here").rename(view / "there")
    (view / "there").write_text(STAGED)


def test_a_rename_is_taken_back_by_the_old_file_at_the_old_place(
    yolofs: Program, view: Path, renamed: None, tmp_path: Path
) -> None:
    """So scm-diff-editor leaves it where the user selects nothing of it."""
    said = reviewed(yolofs, script(tmp_path, 'rm "$2/there"; cp "$1/here" "$2/here"'), ("[q]uit", "d"))
    assert "selected: 3 changes; not selected: 1 change" in said
    assert "is not taken" not in said
    assert (view / "here").read_text() == LINES
    assert not (view / "there").exists()


def test_a_text_put_back_to_its_old_place_is_taken_without_the_rename(
    yolofs: Program, view: Path, renamed: None, tmp_path: Path
) -> None:
    tool = script(tmp_path, 'mv "$2/there" "$2/here"; sed -i s/eighteen/18/ "$2/here"')
    said = reviewed(yolofs, tool, ("[q]uit", "c"), ("commit that?", "y"))
    assert "is not taken" not in said
    assert (yolofs.project / "here").read_text() == LINES.replace("3\n", "three\n", 1)
    assert (view / "there").read_text() == STAGED
    assert not (view / "here").exists()


def test_a_rename_that_the_tool_removes_is_not_taken_for_another_file_at_its_old_place(
    yolofs: Program, view: Path, renamed: None, tmp_path: Path
) -> None:
    (view / "here").write_text("another\n")
    said = reviewed(yolofs, script(tmp_path, 'rm "$2/there"'), ("[q]uit", "q"))
    assert "there is not taken: to delete it was not staged" in said


@pytest.mark.parametrize("name", ["a.txt", "there", "mode"])
def test_a_text_written_in_the_tool_does_not_replace_what_the_agent_has_written_meanwhile(
    yolofs: Program, view: Path, renamed: None, tmp_path: Path, name: str
) -> None:
    (yolofs.project / "mode").write_text("m\n")
    (view / "mode").chmod(0o700)
    tool = script(tmp_path, f'echo by hand >> "$2/{name}"; echo agent >> {view}/{name}')
    with Terminal(yolofs.project, ["review", "--tool", tool]) as terminal:
        terminal.wait_for("stage 1 edited file?")
        terminal.type("y\n")
        assert terminal.wait() == 20, terminal.text
        assert f"{name} has changed since it was looked at" in terminal.text
    assert (view / name).read_text().endswith("\nagent\n")
    assert "by hand" not in (view / name).read_text()


def test_what_was_staged_before_a_text_that_cannot_be_is_said(yolofs: Program, view: Path, tmp_path: Path) -> None:
    tool = script(tmp_path, f'echo by hand | tee -a "$2/a.txt" >> "$2/new"; echo agent >> {view}/new')
    with Terminal(yolofs.project, ["review", "--tool", tool]) as terminal:
        terminal.wait_for("stage 2 edited files?")
        terminal.type("y\n")
        assert terminal.wait() == 20, terminal.text
        (number,) = re.findall(r"staged before that: a.txt; to undo it: yolofs travel (\d+)", terminal.text)
        assert "new has changed since it was looked at" in terminal.text
    assert (view / "a.txt").read_text() == f"{STAGED}by hand\n"
    yolofs("travel", number)
    assert (view / "a.txt").read_text() == STAGED


def test_backups_that_a_tool_keeps_are_not_worth_a_word(yolofs: Program, view: Path, tmp_path: Path) -> None:
    """They are left out in silence: kdiff3 keeps .orig, emacs ~, vim a swap file."""
    (view / ".dot").write_text("dot\n")
    kept = "a.txt.orig new~ .a.txt.swp .new.un~ a.txt.bak .dot~"
    writes = 'for name in a.txt new; do sed s/18/18/ "$2/$name" > "$2/t" && mv "$2/t" "$2/$name"; done'
    said = reviewed(
        yolofs, script(tmp_path, f'cd "$2"; touch {kept} a.rej; mkdir -p made/by/it; {writes}'), ("[q]uit", "q")
    )
    assert "warning: a.rej is not taken: it was not handed out; yolofs run adds files" in said
    assert said.count("warning:") == 1
    assert "selected: 4 changes; not selected: 0 changes" in said


def test_a_selection_that_conflicts_with_base_is_refused_by_its_paths_and_with_the_commands_that_settle_it(
    yolofs: Program, view: Path
) -> None:
    """The keys for that are on the screen alone."""
    (yolofs.project / "a.txt").write_text(f"host\n{LINES}")
    with Terminal(yolofs.project, ["review", "--tool", "true"]) as terminal:
        terminal.wait_for("[q]uit")
        terminal.type("c\n")
        assert terminal.wait() == 9
    said = terminal.text.partition("[q]uit, and leave all staged?")[2]
    assert "base has changed at 1 path" in said
    assert f"  {yolofs.project}/a.txt" in said
    assert "hint: yolofs commit --merge merges text" in said
    assert "m merges" not in said
    assert not (yolofs.project / "new").exists()


def test_a_commit_of_what_a_tool_has_left_folds_and_names_the_command_that_lists_it(
    yolofs: Program, view: Path
) -> None:
    (yolofs.project / "touched").write_text("x\n")
    os.utime(view / "touched", ns=(0, 0))
    said = reviewed(yolofs, "true", ("[q]uit", "c"), ("commit that?", "y"))
    assert "-  times alone: touched  (1 change; yolofs status --unfold)" in said


def test_a_tool_that_touches_nothing_selects_everything(yolofs: Program, view: Path, tmp_path: Path) -> None:
    said = reviewed(yolofs, "true", ("[q]uit", "c"), ("commit that?", "y"))
    assert "commit 1 done" in said
    assert (yolofs.project / "a.txt").read_text() == STAGED
    assert not (yolofs.project / "gone").exists()


def test_what_is_typed_while_the_tool_goes_on_answers_no_question(yolofs: Program, view: Path, tmp_path: Path) -> None:
    tool = script(tmp_path, f"echo started; until [ -e {tmp_path}/over ]; do sleep 0.05; done")
    with Terminal(yolofs.project, ["review", "--tool", tool]) as terminal:
        terminal.wait_for("started")
        terminal.type("c\ny\n")
        terminal.wait_for("c\ny\n")  # the terminal has taken it in
        (tmp_path / "over").touch()
        terminal.wait_for("[q]uit")
        terminal.type("q\n")
        assert terminal.wait() == 0
        assert "nothing done" in terminal.text
    assert (yolofs.project / "a.txt").read_text() == LINES


def test_a_tool_that_is_not_there_is_said_to_be_not_there(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["review", "--tool", "no-such-tool --wait"]) as terminal:
        assert terminal.wait() == 1
    assert "no-such-tool --wait ended with exit code 127, so nothing is done" in terminal.text
    assert "hint: the shell finds no such command; install it, or give its whole path" in terminal.text


@pytest.mark.parametrize("tool", ["", "  "])
def test_an_empty_command_for_the_tool_is_refused(yolofs: Program, view: Path, tool: str) -> None:
    with Terminal(yolofs.project, ["review", "--tool", tool]) as terminal:
        assert terminal.wait() == 2
    assert "--tool names no command" in terminal.text


def test_a_tool_that_a_signal_ends_is_told_by_it(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["review", "--tool", "kill -TERM $$; true"]) as terminal:
        assert terminal.wait() == 1
    assert "was ended by SIGTERM, so nothing is done" in terminal.text


def test_the_tool_gets_paths_relative_to_the_project_whatever_the_root_is(tmp_path: Path) -> None:
    yolofs = with_few_files(tmp_path / "project")
    (yolofs.project / ".yolofs.toml").write_text("scratch = []\n")
    (yolofs.project / "src").mkdir()
    (yolofs.project / "src/a").write_text("a\n")
    with yolofs.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(yolofs.project)[1:]
        (view / "src/a").write_text("A\n")
        (view / "src/b").write_text("b\n")
        tool = script(yolofs.project.parent, 'diff "$1/src/a" "$2/src/a"; rm "$2/src/a"; echo > "$2/src/more"')
        said = reviewed(yolofs, tool, ("[q]uit", "q"))
        assert "> A" in said
        assert "warning: src/a is not taken: to delete it was not staged; yolofs run -- rm does that" in said
        assert "warning: src/more is not taken: it was not handed out; yolofs run adds files" in said
        (view.parent / "outside").write_text("o\n")
        said = reviewed(yolofs, script(tmp_path, f'ls "$2{yolofs.project.parent}" #'), ("[q]uit", "q"))
        assert {"outside", "project"} <= set(said.split())


def test_a_tool_that_removes_the_right_directory_drops_nothing(yolofs: Program, view: Path, tmp_path: Path) -> None:
    with Terminal(yolofs.project, ["review", "--tool", script(tmp_path, 'rm -r "$2"')]) as terminal:
        terminal.wait_for("the tool has removed the whole directory of what is staged, so nothing is done")
        assert terminal.wait() == 1
    assert (view / "new").read_text() == "one\ntwo\n"
    assert not (view / "gone").exists()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ('chmod 0 "$2"', "the directory of what is staged cannot be read any more, as "),
        ('chmod 0 "$2/deep"', "the directory deep cannot be read any more, as "),
    ],
)
def test_a_directory_that_the_tool_has_closed_is_named_and_nothing_is_done(
    yolofs: Program, view: Path, tmp_path: Path, damage: str, said: str
) -> None:
    (view / "deep").mkdir()
    (view / "deep/file").write_text("deep\n")
    with Terminal(
        yolofs.project, ["review", "--tool", script(tmp_path, damage)], command=(*WITHOUT_PASSING, *COMMAND)
    ) as terminal:
        assert terminal.wait() == 1
        assert said in terminal.text
        assert "(Permission denied), so nothing is done" in " ".join(terminal.text.split())
        assert "no longer a regular file" not in terminal.text
    assert (view / "new").read_text() == "one\ntwo\n"
    assert not [path for path in yolofs.session.iterdir() if path.name.startswith("review-")]


def test_a_file_that_the_tool_has_closed_is_said_to_be_closed(yolofs: Program, view: Path, tmp_path: Path) -> None:
    with Terminal(
        yolofs.project,
        ["review", "--tool", script(tmp_path, 'chmod 0 "$2/new"')],
        command=(*WITHOUT_PASSING, *COMMAND),
    ) as terminal:
        terminal.wait_for("warning: new is not taken: it cannot be read: Permission denied")
        terminal.wait_for("[q]uit")
        terminal.type("q\n")
        assert terminal.wait() == 0


def test_a_tool_that_stops_itself_is_continued_where_no_shell_could(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    said = reviewed(yolofs, script(tmp_path, 'kill -STOP $$; rm "$2/new"'), ("[q]uit", "q"))
    assert "has stopped, and is told to go on" in said
    assert "selected: 2 changes; not selected: 1 change" in said


@pytest.mark.parametrize("signal", ["STOP", "TSTP"])
def test_a_tool_that_stops_itself_gives_the_terminal_back_to_the_shell(
    yolofs: Program, view: Path, tmp_path: Path, signal: str
) -> None:
    tool = script(tmp_path, f'kill -{signal} $$; rm "$2/new"')
    command = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
    with Terminal(yolofs.project, [], command=command, PS1="outside> ", HISTFILE="") as shell:
        shell.wait_for("outside> ")
        shell.type(f"{shlex.join(COMMAND)} review --tool {shlex.quote(tool)}\n")
        shell.wait_for("has stopped; fg lets it go on")
        shell.wait_for("Stopped")
        shell.type("echo between=$((40 + 2))\n")
        shell.wait_for("between=42")
        shell.type("fg\n")
        shell.wait_for("selected: 2 changes; not selected: 1 change")
        shell.wait_for("[q]uit")
        shell.type("q\n")
        shell.type("exit\n")
        assert shell.wait() == 0
    assert shell.text.count("has stopped; fg lets it go on") == 1

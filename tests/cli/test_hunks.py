"""``yolofs hunks``, and what commit and restore do with single ones of them."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, run_killed, run_with_input

pytestmark = pytest.mark.mount

TEXT = "".join(f"{number}\n" for number in range(1, 21))
BOTH = TEXT.replace("2\n", "two\n", 1).replace("19\n", "nineteen\n")
FIRST = TEXT.replace("2\n", "two\n", 1)
LAST = TEXT.replace("19\n", "nineteen\n")


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    """A mounted project with a text of two changed lines, beside files that are deleted, added and
    moved.
    """
    (yolofs.project / "text").write_text(TEXT)
    (yolofs.project / "goes").write_text("goes\n")
    (yolofs.project / "moves").write_text("moves\n")
    with yolofs.mounted() as view:
        (view / "text").write_text(BOTH)
        (view / "goes").unlink()
        (view / "moves").rename(view / "moved")
        (view / "new").mkdir()
        (view / "new/file").write_text("a\nb\nc\n")
        (view / "dir/b.txt").chmod(0o600)
        yield view


def hunks(yolofs: Program, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yolofs("hunks", "--json", *words).json["hunks"]
    return found


def ids(yolofs: Program, kind: str, name: str = "") -> list[str]:
    return [one["id"] for one in hunks(yolofs) if one["kind"] == kind and one["path"].endswith(name)]


def shown(top: Path) -> dict[str, str]:
    return {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}


def test_hunks_are_listed_with_ids_and_lines(yolofs: Program, view: Path) -> None:
    out = yolofs("hunks").out
    for name in [one["id"] for one in hunks(yolofs)]:
        assert len(name) == 16
        assert name in out
    assert "text     text  @@ -2 +2 @@\n-2\n+two\n" in out
    assert "renamed  moves -> moved" in out
    assert "mode     dir/b.txt  0644 -> 0600" in out
    assert "-2\n" not in yolofs("hunks", "--list").out
    assert [(one["kind"], Path(one["path"]).name) for one in hunks(yolofs)] == [
        ("mode", "b.txt"),
        ("deleted", "goes"),
        ("renamed", "moved"),
        ("added", "new"),
        ("added", "file"),
        ("text", "text"),
        ("text", "text"),
    ]
    first = next(one for one in hunks(yolofs) if one["kind"] == "text")
    assert first["old_lines"] == ["2\n"]
    assert first["new_lines"] == ["two\n"]
    assert (first["old_start"], first["new_start"], first["region"]) == (1, 1, "project")


def test_a_path_or_a_range_limits_the_list(yolofs: Program, view: Path) -> None:
    assert {one["kind"] for one in hunks(yolofs, "--", "text")} == {"text"}
    yolofs("snapshot", "before")
    (view / "text").write_text(FIRST)
    assert [one["new_lines"] for one in hunks(yolofs, "before..")] == [["19\n"]]


def test_a_committed_hunk_is_in_base_and_the_rest_stays_staged(yolofs: Program, view: Path) -> None:
    before = shown(view)
    first, last = ids(yolofs, "text")
    done = yolofs("commit", "--yes", "--hunk", first)
    assert "commit 1 done" in done.err
    assert (yolofs.project / "text").read_text() == FIRST
    assert shown(view) == before
    assert (yolofs.project / "goes").exists()
    left = ids(yolofs, "text")
    assert len(left) == 1
    assert left != [last]  # base is another one now
    yolofs("commit", "--yes", "--hunk", left[0])
    assert (yolofs.project / "text").read_text() == BOTH
    yolofs("undo", "--yes")
    assert (yolofs.project / "text").read_text() == FIRST
    assert (view / "text").read_text() == BOTH


def test_hunks_of_every_kind_are_committed_by_themselves(yolofs: Program, view: Path) -> None:
    before = shown(view)
    for kind, name in (("deleted", "goes"), ("renamed", "moved"), ("mode", "b.txt"), ("added", "new/file")):
        (name,) = ids(yolofs, kind, name)
        yolofs("commit", "--yes", "--hunk", name)
        assert shown(view) == before
    base = yolofs.project
    assert not (base / "goes").exists()
    assert (base / "moved").read_text() == "moves\n"
    assert not (base / "moves").exists()
    assert stat.S_IMODE((base / "dir/b.txt").stat().st_mode) == 0o600
    assert (base / "new/file").read_text() == "a\nb\nc\n"
    assert (base / "text").read_text() == TEXT


def test_single_lines_of_an_added_file_are_committed(yolofs: Program, view: Path) -> None:
    (name,) = ids(yolofs, "added", "file")
    yolofs("commit", "--yes", "--hunk", f"{name}:1,3")
    assert (yolofs.project / "new/file").read_text() == "a\nc\n"
    assert (view / "new/file").read_text() == "a\nb\nc\n"
    assert [one["new_lines"] for one in hunks(yolofs, "--", "new/file")] == [["b\n"]]


def test_a_dropped_hunk_is_as_in_base_and_all_else_stays(yolofs: Program, view: Path) -> None:
    first, _ = ids(yolofs, "text")
    done = yolofs("restore", "--hunk", first)
    assert (view / "text").read_text() == LAST
    assert (yolofs.project / "text").read_text() == TEXT
    assert not (view / "goes").exists()
    assert "to undo that: yolofs travel" in done.err
    (name,) = ids(yolofs, "deleted")
    document = yolofs("restore", "--json", "--hunk", name).json
    assert [change["kind"] for change in document["changes"]] == ["A"]
    assert document["held"] == []
    assert (view / "goes").read_text() == "goes\n"
    yolofs("travel", "1")
    assert (view / "text").read_text() == BOTH


def test_a_deletion_in_a_directory_that_was_then_moved_is_dropped_where_that_lies_now(
    yolofs: Program, view: Path
) -> None:
    """What else was deleted with it stays so."""
    (yolofs.project / "d/e").mkdir(parents=True)
    for name in ("one", "two"):
        (yolofs.project / f"d/e/{name}").write_text(f"{name}\n")
    shutil.rmtree(view / "d/e")
    (view / "d").rename(view / "elsewhere")
    hunks = {hunk["path"].rpartition("/")[2]: hunk["id"] for hunk in yolofs("hunks", "--json").json["hunks"]}
    yolofs("restore", "--hunk", hunks["two"])
    assert (view / "elsewhere/e/two").read_text() == "two\n"
    assert os.listdir(view / "elsewhere/e") == ["two"]
    assert {"D  d/e/one", "R  d/ -> elsewhere/"} <= set(yolofs("status").out.splitlines())


def test_dropping_every_hunk_leaves_nothing_staged(yolofs: Program, view: Path) -> None:
    names = " ".join(one["id"] for one in hunks(yolofs))
    done = run_with_input(["restore", "--hunk", "-"], yolofs.project, names.encode())
    assert done.returncode == 0
    assert hunks(yolofs) == []
    assert shown(view) == shown(yolofs.project)


def test_a_hunk_is_dropped_to_what_an_earlier_generation_has(yolofs: Program, view: Path) -> None:
    (view / "text").write_text(FIRST)
    yolofs("snapshot", "first")
    (view / "text").write_text(BOTH)
    (name,) = [one["id"] for one in hunks(yolofs, "first..")]
    yolofs("restore", "--from", "first", "--hunk", name)
    assert (view / "text").read_text() == FIRST


def test_an_id_that_does_not_exist_any_more_is_refused(yolofs: Program, view: Path) -> None:
    first, last = ids(yolofs, "text")
    (view / "text").write_text(LAST)
    for command in (("commit", "--yes"), ("restore",)):
        message = yolofs.refused(*command, "--hunk", last, "--hunk", first, code=20)
        assert f"2 of the hunks do not exist ({last}, {first})" in message
        assert "hint: yolofs hunks" in message
    assert (yolofs.project / "text").read_text() == TEXT
    assert (view / "text").read_text() == LAST
    message = yolofs.refused("commit", "--yes", "--hunk", last, code=20)
    assert f"there is no hunk {last}" in message


def test_for_an_id_of_an_earlier_generation_that_does_not_exist_its_hunks_are_offered(
    yolofs: Program, view: Path
) -> None:
    yolofs("snapshot", "one two")
    (view / "text").write_text(FIRST)
    none = ("--hunk", "0" * 16)
    assert "\nhint: yolofs hunks 'one two..'\n" in yolofs.refused("restore", "--from", "one two", *none, code=20)
    assert "\nhint: yolofs hunks ..1\n" in yolofs.refused("commit", "--yes", "--up-to", "1", *none, code=20)
    assert "\nhint: yolofs hunks\n" in yolofs.refused("restore", *none, code=20)
    assert len(hunks(yolofs, "one two..")) == 1


def test_a_hunk_is_looked_for_at_the_path_that_is_named(yolofs: Program, view: Path) -> None:
    first, _ = ids(yolofs, "text")
    yolofs.refused("commit", "--yes", "--hunk", first, "new", code=20)
    yolofs("commit", "--yes", "--hunk", first, "text")
    assert (yolofs.project / "text").read_text() == FIRST


def test_where_base_has_changed_nothing_is_committed(yolofs: Program, view: Path) -> None:
    (yolofs.project / "text").write_text(TEXT + "more\n")
    first = ids(yolofs, "text")[0]
    before = yolofs("timeline", "--json").json
    yolofs.refused("commit", "--yes", "--hunk", first, code=9)
    assert (yolofs.project / "text").read_text() == TEXT + "more\n"
    assert (view / "text").read_text() == BOTH
    assert yolofs("timeline", "--json").json == before
    yolofs("commit", "--yes", "--ours", "--hunk", first)
    assert (view / "text").read_text() == BOTH


def test_a_hunk_of_host_code_is_committed_only_by_its_path_or_with_trusted(yolofs: Program, view: Path) -> None:
    (view / ".envrc").write_text("export A=1\nexport B=2\n")
    (name,) = ids(yolofs, "added", ".envrc")
    done = yolofs("commit", "--yes", "--hunk", name, code=16)
    assert "1 file stays staged, as it has to be named (or --trusted)" in done.err
    assert not (yolofs.project / ".envrc").exists()
    yolofs("commit", "--yes", "--hunk", f"{name}:1", ".envrc")
    assert (yolofs.project / ".envrc").read_text() == "export A=1\n"
    (rest,) = ids(yolofs, "text", ".envrc")
    yolofs("commit", "--yes", "--trusted", "--hunk", rest)
    assert (yolofs.project / ".envrc").read_text() == "export A=1\nexport B=2\n"


def test_a_hunk_that_cannot_go_alone_stays_and_the_hint_commits_both(yolofs: Program, view: Path) -> None:
    (view / "moves").write_text("another\n")
    (added,) = ids(yolofs, "added", "moves")
    done = yolofs("commit", "--yes", "--hunk", added, code=16)
    assert "it goes together with renamed" in done.err
    assert not (yolofs.project / "moved").exists()
    hint = next(line for line in done.err.splitlines() if line.startswith("hint: "))
    yolofs(*hint.removeprefix("hint: yolofs ").split(), "--yes")
    assert (yolofs.project / "moved").read_text() == "moves\n"
    assert (yolofs.project / "moves").read_text() == "another\n"


def test_the_hint_for_a_hunk_that_cannot_be_dropped_alone_names_the_version_too(yolofs: Program, view: Path) -> None:
    yolofs("snapshot")
    (view / "moved").rename(view / "further")
    (view / "moved").write_text("another\n")
    found = {one["path"].rpartition("/")[2]: one["id"] for one in hunks(yolofs, "1..") if one["kind"] != "time"}
    done = yolofs("restore", "--from", "1", "--hunk", found["further"], code=16)
    hint = next(line for line in done.err.splitlines() if line.startswith("hint: "))
    yolofs(*hint.removeprefix("hint: yolofs ").split())
    assert (view / "moved").read_text() == "moves\n"
    assert not (view / "further").exists()


def test_the_hint_for_a_hunk_of_an_earlier_generation_names_that(yolofs: Program, view: Path) -> None:
    (view / "moves").write_text("another\n")
    yolofs("snapshot")
    (view / "moves").write_text("later\n")
    words = ("--yes", "--up-to", "1", "--hunk")
    (added,) = (one["id"] for one in hunks(yolofs, "..1") if one["path"].endswith("moves"))
    done = yolofs("commit", *words, added, code=16)
    hint = next(line for line in done.err.splitlines() if line.startswith("hint: "))
    yolofs(*hint.removeprefix("hint: yolofs ").split(), "--yes")
    assert (yolofs.project / "moves").read_text() == "another\n"
    assert (view / "moves").read_text() == "later\n"


def test_a_hunk_of_an_earlier_generation_that_stays_is_as_it_is_now_once_others_are_committed(
    yolofs: Program, view: Path
) -> None:
    """The commit has ended the timeline, so no option names that generation any more."""
    (view / "moves").write_text("another\n")
    yolofs("snapshot")
    (view / "moves").write_text("later\n")
    found = [one["id"] for one in hunks(yolofs, "..1") if one["path"].endswith(("moves", "/text"))]
    done = yolofs("commit", "--yes", "--up-to", "1", *(word for name in found for word in ("--hunk", name)), code=16)
    assert (yolofs.project / "text").read_text() == BOTH
    assert "\nhint: as it is now: yolofs hunks\n" in done.err


def test_json_says_what_a_commit_of_hunks_has_done(yolofs: Program, view: Path) -> None:
    first, _ = ids(yolofs, "text")
    document = yolofs("commit", "--yes", "--json", "--hunk", first).json
    assert document["commit"] == 1
    assert [change["kind"] for change in document["changes"]] == ["M"]
    assert document["held_hunks"] == []


def test_without_a_mount_hunks_are_dropped_and_committed_too(yolofs: Program) -> None:
    (yolofs.project / "text").write_text(TEXT)
    with yolofs.mounted() as view:
        (view / "text").write_text(BOTH)
    first, last = ids(yolofs, "text")
    yolofs("restore", "--hunk", last)
    (first,) = ids(yolofs, "text")
    yolofs("commit", "--yes", "--hunk", first)
    assert (yolofs.project / "text").read_text() == FIRST
    assert hunks(yolofs) == []


def test_hunks_edit_stages_what_the_editor_saved(yolofs: Program, view: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/^+two/+TWO/' \"$1\"\n")
    editor.chmod(0o755)
    first, _ = ids(yolofs, "text")
    done = yolofs("hunks", "--edit", first, EDITOR=str(editor))
    assert "edited; to undo that: yolofs travel" in done.err
    assert (view / "text").read_text() == BOTH.replace("two\n", "TWO\n")
    assert (yolofs.project / "text").read_text() == TEXT
    yolofs.refused("hunks", "--edit", first, code=20, EDITOR=str(editor))


def test_a_hunk_in_the_editor_lies_in_the_session(yolofs: Program, view: Path, tmp_path: Path) -> None:
    first, _ = ids(yolofs, "text")
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/where\n')
    editor.chmod(0o755)
    yolofs("hunks", "--edit", first, EDITOR=str(editor))
    where = Path((tmp_path / "where").read_text())
    assert where.is_relative_to(yolofs.session)
    assert not where.parent.exists()


def test_an_edit_that_does_not_apply_is_refused(yolofs: Program, view: Path) -> None:
    first, _ = ids(yolofs, "text")
    for patch, said in ((b"-3\n+x\n", "of the old version"), (b"x\n", "starts with none of")):
        done = run_with_input(["hunks", "--edit", first, "--edited", "-"], yolofs.project, patch)
        assert done.returncode == 2
        assert said in done.stderr.decode()
    done = run_with_input(["hunks", "--edit", first, "--edited", "-"], yolofs.project, b"# nothing\n")
    assert (done.returncode, done.stderr) == (0, b"nothing is changed\n")
    assert (view / "text").read_text() == BOTH
    yolofs.refused("hunks", "--edit", first, code=1, EDITOR="false")


@pytest.mark.parametrize("command", ["commit", "restore"])
def test_the_hint_names_all_that_goes_with_a_name_of_a_file_with_several(
    yolofs: Program, view: Path, command: str
) -> None:
    (view / "one").write_text(TEXT)
    os.link(view / "one", view / "two")
    yolofs("commit", "--yes", "one", "two")
    (view / "one").write_text(BOTH)
    (view / "two").unlink()
    (deleted,) = ids(yolofs, "deleted", "two")
    yes = ["--yes"] if command == "commit" else []
    done = yolofs(command, *yes, "--hunk", deleted, code=16)
    assert "as in base already" not in done.err
    hint = next(line for line in done.err.splitlines() if line.startswith("hint: "))
    yolofs(*hint.removeprefix("hint: yolofs ").split(), *yes)
    assert [one["path"] for one in hunks(yolofs) if one["path"].endswith(("one", "two"))] == []


def test_a_hard_link_stays_one_where_a_hunk_is_dropped(yolofs: Program, view: Path) -> None:
    (view / "one").write_text("a\nb\n")
    os.link(view / "one", view / "two")
    yolofs("commit", "--yes", "one", "two")
    (view / "one").write_text("A\nb\nc\n")
    names = [one for one in hunks(yolofs) if one["path"].endswith(("one", "two"))]
    assert [(one["path"][-3:], one["new_lines"]) for one in names] == [
        ("one", ["A\n"]), ("one", ["c\n"]), ("two", ["A\n"]), ("two", ["c\n"]),
    ]  # fmt: skip
    done = yolofs("restore", "--hunk", names[0]["id"], code=16)
    assert "goes together with text" in done.err
    yolofs("restore", "--hunk", names[0]["id"], "--hunk", names[2]["id"])
    assert (view / "one").read_text() == (view / "two").read_text() == "a\nb\nc\n"
    assert os.path.samefile(view / "one", view / "two")
    yolofs("commit", "--yes", "one", "two")
    assert os.path.samefile(yolofs.project / "one", yolofs.project / "two")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("session.selecting.actions", "take_hunks_back"),
        ("cli.commit.committing_hunks", "commit_up_to"),
        ("session.up_to", "commit"),
    ],
)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.some(3)
def test_a_kill_under_a_mount_leaves_all_staged_or_is_done(
    yolofs: Program, view: Path, module: str, name: str, after: bool
) -> None:
    before = shown(view)
    first, _ = ids(yolofs, "text")
    done = run_killed(["commit", "--yes", "--hunk", first], yolofs.project, module=module, name=name, after=after)
    assert done.returncode == -signal.SIGKILL
    assert shown(view) == before
    is_done = after and name != "take_hunks_back"
    assert (yolofs.project / "text").read_text() == (FIRST if is_done else TEXT)
    assert len(ids(yolofs, "text")) == (1 if is_done else 2)
    if not is_done:
        yolofs("commit", "--yes", "--hunk", first)
    assert (yolofs.project / "text").read_text() == FIRST
    assert shown(view) == before
    assert [path.name for path in yolofs.session.iterdir() if path.name.startswith("journal.merged")] == []


def test_a_file_of_a_deleted_directory_comes_back_alone_with_all_its_names(yolofs: Program) -> None:
    (yolofs.project / "old/inner").mkdir(parents=True)
    (yolofs.project / "old/inner/wanted").write_text("wanted\n")
    (yolofs.project / "old/other").write_text("other\n")
    os.link(yolofs.project / "old/inner/wanted", yolofs.project / "second name")
    with yolofs.mounted() as view:
        shutil.rmtree(view / "old")
        (name,) = ids(yolofs, "deleted", "old/inner/wanted")
        yolofs("restore", "--hunk", name)
        assert shown(view / "old") == {"inner/wanted": "wanted\n"}
        wanted = (view / "old/inner/wanted").stat()
        assert wanted.st_ino == (view / "second name").stat().st_ino
        assert wanted.st_nlink == 2
        assert [one["path"] for one in hunks(yolofs)] == [str(yolofs.project / "old/other")]


def test_a_name_that_would_come_back_as_another_file_is_refused(yolofs: Program) -> None:
    (yolofs.project / "one").write_text("linked\n")
    os.link(yolofs.project / "one", yolofs.project / "other")
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        yolofs("snapshot", "before")
        (view / "one").unlink()
        (gone,) = [one["id"] for one in hunks(yolofs, "before..") if one["kind"] == "deleted"]
        assert "has more names (hard links)" in yolofs.refused("restore", "--from", "before", "--hunk", gone, code=19)
        assert not (view / "one").exists()


def test_a_text_that_is_wholly_as_before_has_its_time_again(yolofs: Program, view: Path) -> None:
    (view / "text").chmod(0o600)
    yolofs("restore", *(word for name in ids(yolofs, "text", "text") for word in ("--hunk", name)))
    assert [one["kind"] for one in hunks(yolofs) if one["path"].endswith("/text")] == ["mode"]
    assert (view / "text").stat().st_mtime_ns == (yolofs.project / "text").stat().st_mtime_ns


def test_a_program_goes_on_with_an_open_file_of_which_a_hunk_is_committed(yolofs: Program, view: Path) -> None:
    first, _ = ids(yolofs, "text")
    with (view / "text").open("r+") as file:
        yolofs("commit", "--yes", "--hunk", first)
        assert file.read() == BOTH
        file.write("more\n")
        file.flush()
        assert (view / "text").read_text() == BOTH + "more\n"
        assert (yolofs.project / "text").read_text() == FIRST


def test_bytes_that_are_no_text_come_through_exactly(yolofs: Program, view: Path) -> None:
    (yolofs.project / "crlf").write_bytes(b"a\r\nb\r\n\xff\nend")
    (view / "crlf").write_bytes(b"a\r\nB\r\n\xff\nEND\xfe")
    found = hunks(yolofs, "--", "crlf")
    assert [one["new_lines"] for one in found] == [["B\r\n"], ["END\ufffd"]]
    assert found[1]["new_lines_bytes"] == ["END%FE"]
    yolofs("commit", "--yes", "--hunk", found[1]["id"])
    assert (yolofs.project / "crlf").read_bytes() == b"a\r\nb\r\n\xff\nEND\xfe"


def test_a_drop_that_writes_the_state_anew_shows_no_travel_and_no_dead_run(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "before")
    added = ids(yolofs, "added", "new/file") + ids(yolofs, "added", "new")
    yolofs("restore", *(word for name in added for word in ("--hunk", name)))
    told = yolofs("log").out
    assert "hunks as in base" in told
    assert "travel" not in told
    assert "dead" not in told
    told = yolofs("timeline").out
    assert "travel" not in told
    assert "dead" not in told
    assert "all written anew" in told
    assert "dead" not in yolofs("log", "-v").out
    travels = [one for one in yolofs("log", "--json").json["records"] if one["kind"] == "travel"]
    assert [one["anew"] for one in travels] == [True]
    nodes = yolofs("timeline", "--json").json["generations"]
    assert [one["anew"] for one in nodes] == [one["kind"] == "travel" for one in nodes]
    assert "no travel to go back from" in yolofs("travel", "-", code=7).err
    (anew,) = [one["number"] for one in nodes if one["anew"]]
    assert yolofs("diff", f"{anew}..{anew + 1}").out == yolofs("diff", str(anew + 1)).out
    assert yolofs("diff", f"{anew - 1}..{anew}").out == ""
    assert f"shows generation {anew - 1};" in yolofs("travel", str(anew)).err

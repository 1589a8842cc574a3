"""``yolofs restore``, ``travel --only``, ``cat`` and ``ls``: what was at a path in another
generation.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program

pytestmark = pytest.mark.mount


def looks(top: Path) -> dict[str, tuple[object, ...]]:
    """Return all that is to come back, by path: kind, mode, owner, content, time and number of
    names.
    """
    found: dict[str, tuple[object, ...]] = {}
    for path in (top, *top.rglob("*")) if os.path.lexists(top) else ():
        st = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        links = st.st_nlink if not stat.S_ISDIR(st.st_mode) else 0
        name = str(path.relative_to(top))
        found[name] = (st.st_mode, st.st_uid, st.st_gid, content, st.st_mtime_ns, links)
    return found


def fill(top: Path) -> None:
    """Make one of each kind."""
    (top / "deep/er").mkdir(parents=True)
    (top / "deep/file").write_bytes(b"content\n" * 9)
    (top / "deep/file").chmod(0o4750)
    os.utime(top / "deep/file", ns=(1, 1_400_000_000_123_456_789))
    os.link(top / "deep/file", top / "deep/er/link")
    (top / "symlink").symlink_to("deep/file")
    os.mkfifo(top / "fifo", 0o600)
    (top / "empty").mkdir(0o700)
    (top / "empty").chmod(0o1770)
    os.utime(top / "empty", ns=(1, 1_500_000_000_000_000_000))


def _remove(top: Path) -> None:
    shutil.rmtree(top)


def _replace(top: Path) -> None:
    shutil.rmtree(top)
    top.write_text("a file\n")


def _change(top: Path) -> None:
    (top / "deep/file").write_text("changed\n")
    (top / "deep/er/link").chmod(0o600)
    (top / "symlink").unlink()
    (top / "symlink").mkdir()
    (top / "symlink/new").write_text("new\n")
    (top / "empty").rmdir()
    (top / "more").write_text("more\n")


def _move(top: Path) -> None:
    top.rename(top.with_name("elsewhere"))


@pytest.mark.parametrize("moves", ["mv one uno", "mv one/a uno/a"])
def test_a_name_of_a_file_with_several_that_comes_back_alone_is_said_to_be_a_file_of_its_own(
    yolofs: Program, moves: str
) -> None:
    (yolofs.project / "one").mkdir()
    (yolofs.project / "one/a").write_text("one file\n")
    (yolofs.project / "one/b").hardlink_to(yolofs.project / "one/a")
    with yolofs.mounted() as view:
        if "/" in moves:
            (view / "uno").mkdir()
        _, before, after = moves.split()
        (view / before).rename(view / after)
        first = yolofs("snapshot").out.strip()
        (view / "uno/a").unlink()
        done = yolofs("restore", "--from", first, "uno/a")
        assert "note: uno/a comes back as a file of its own, no hard link of its other names\n" in done.err
        (view / "uno/a").unlink()
        fields = yolofs("restore", "--json", "--from", first, "uno/a").json
        assert fields["left_out"] == [{"path": str(yolofs.project / "uno/a"), "what": ["links"]}]
        yolofs("travel", first)
        if "/" not in moves:
            for name in "ab":
                (view / "uno" / name).unlink()
            assert "a file of its own" not in yolofs("restore", "--from", first, "uno").err
            assert (view / "uno/a").stat().st_nlink == 2


@pytest.mark.parametrize(
    ("change", "origin", "is_mounted"),
    points(
        list(itertools.product([_remove, _replace, _change, _move], ["base", "generation"], [False, True])),
        "brought back",
        some=4,
    ),
)
def test_a_restored_directory_has_its_files_attributes_and_times_again(
    yolofs: Program, change: Callable[[Path], None], origin: str, is_mounted: bool
) -> None:
    if origin == "base":
        fill(yolofs.project / "top")
        os.setxattr(yolofs.project / "top/deep/file", "user.one", b"1")
    with yolofs.mounted() as view:
        if origin == "generation":
            fill(view / "top")
        (view / "beside").write_text("beside\n")
        before = looks(view / "top")
        yolofs("snapshot", "before")
        change(view / "top")
        (view / "beside").write_text("changed\n")
        if is_mounted:
            yolofs("restore", "--from", "before" if origin == "generation" else "base", "top")
    if not is_mounted:
        yolofs("restore", "--from", "before" if origin == "generation" else "base", "top")
    with yolofs.mounted() as view:
        assert looks(view / "top") == before
        assert (view / "beside").read_text() == "changed\n"
        if change is _move:
            assert looks(view / "elsewhere").keys() == before.keys()
        yolofs("commit", "--yes", "--trusted")
    assert looks(yolofs.project / "top") == before
    if origin == "base":
        assert os.getxattr(yolofs.project / "top/deep/file", "user.one") == b"1"


def test_a_file_restored_to_what_base_has_is_not_staged_any_more(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        (view / "new").write_text("new\n")
        yolofs("restore", "a.txt")
        assert (view / "a.txt").read_text() == (yolofs.project / "a.txt").read_text()
        assert [change["kind"] for change in yolofs("status", "--json").json["changes"]] == ["A"]
        yolofs("restore", "new")
        assert not (view / "new").exists()
        assert yolofs("status", "--json").json["changes"] == []


def test_what_has_moved_away_keeps_its_edits_when_its_old_directory_comes_back(yolofs: Program) -> None:
    (yolofs.project / "src").mkdir()
    (yolofs.project / "src/edited").write_text("one\n")
    (yolofs.project / "src/other").write_text("one\n")
    (yolofs.project / "src/deleted").write_text("one\n")
    with yolofs.mounted() as view:
        (view / "src").rename(view / "new")
        (view / "new/edited").write_text("two\n")
        (view / "new/deleted").unlink()
        yolofs("restore", "src/edited")
        yolofs("restore", "src")
        assert not (view / "new/deleted").exists()
        assert (view / "src/deleted").read_text() == "one\n"
        assert (view / "src/edited").read_text() == "one\n"
        assert (view / "src/other").read_text() == "one\n"
        assert (view / "new/edited").read_text() == "two\n"


def test_a_restore_is_taken_back_by_a_travel(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        told = yolofs("restore", "a.txt").err
        assert "to undo that: yolofs travel 1" in told
        yolofs("travel", "1")
        assert (view / "a.txt").read_text() == "changed\n"


def test_what_is_partly_in_base_and_partly_copied_comes_back_in_one_generation(yolofs: Program) -> None:
    (yolofs.project / "one").write_text("one\n")
    (yolofs.project / "more").mkdir()
    (yolofs.project / "more/two").write_text("two\n")
    with yolofs.mounted() as view:
        (view / "one").unlink()
        (view / "one").mkdir()
        (view / "more").rename(view / "renamed")
        (view / "more").symlink_to("renamed")
        yolofs("snapshot", "work")
        yolofs("restore", "one", "more")
        assert (view / "one").read_text() == "one\n"
        assert (view / "more/two").read_text() == "two\n"
    named = [line.rpartition("snapshot  ")[2] for line in yolofs("log").out.splitlines()]
    assert named == ["work", "restored from base"]
    yolofs("travel", "work")
    assert "one" in yolofs("status").out


def test_restore_takes_the_number_of_a_run_for_what_that_left(yolofs: Program) -> None:
    with yolofs.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(yolofs.project).lstrip("/")
        yolofs("run", "--", "sh", "-c", "echo one > new")
        yolofs("run", "--", "sh", "-c", "echo two > new")
        yolofs("restore", "--from", "run", "1", "new")
        assert (view / "new").read_text() == "one\n"
        yolofs("restore", "--from", "run:2", "new")
        assert (view / "new").read_text() == "two\n"


def test_travel_only_brings_back_the_named_path_alone(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "one").write_text("one\n")
        (view / "two").write_text("two\n")
        yolofs("snapshot", "both")
        (view / "one").unlink()
        (view / "two").unlink()
        yolofs("travel", "--only", "one", "both")
        assert (view / "one").read_text() == "one\n"
        assert not (view / "two").exists()


def test_a_program_keeps_the_content_of_an_open_file_that_is_restored(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        with (view / "a.txt").open() as file:
            yolofs("restore", "a.txt")
            assert file.read() == "changed\n"
            assert (view / "a.txt").read_text() == (yolofs.project / "a.txt").read_text()


def test_for_a_path_that_is_like_no_other_the_directory_is_named_whose_list_helps(yolofs: Program) -> None:
    (yolofs.project / "d e").mkdir()
    (yolofs.project / "d e/file").write_text("text")
    assert "hint: yolofs ls 'base:d e' lists what is there" in yolofs.refused("cat", "base:d e/qqqq", code=2)
    assert "hint: yolofs ls 'base:d e' lists what is there" in yolofs.refused("ls", "base:d e/zz/qqqq", code=2)
    assert yolofs("ls", "base:d e").out.split() == ["file"]


def test_travel_only_takes_several_paths_before_or_after_the_generation(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for words in (
            ["--only", "a.txt", "new", "0"],
            ["0", "--only", "a.txt", "new"],
            ["--only", "a.txt", "--only", "new", "0"],
            ["--json", "--only=a.txt", "--only", "new", "--", "0"],
        ):
            (view / "a.txt").write_text("changed\n")
            (view / "new").write_text("new\n")
            yolofs("travel", *words)
            assert yolofs("diff", "--name-only").out == ""
    assert "missing argument" in yolofs.refused("travel", "--only", "a.txt", code=2)


def test_a_run_is_two_words_also_after_an_equals_sign_and_needs_its_number(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("new\n")
        yolofs("commit", "--yes")
        (view / "a.txt").write_text("newer\n")
        assert yolofs("restore", "--from=commit", "1", "a.txt").out.startswith("M  a.txt\n")
        assert "'commit 1' is a generation, and names no path" in yolofs.refused("ls", "commit 1", code=2)
        assert "there is no snapshot named commit ²" in yolofs.refused("cat", "commit ²:a.txt", code=7)
        said = yolofs.refused("restore", "a.txt", "--from", "commit", code=7)
        assert "no number is given\nhint: yolofs commits lists them; then commit N" in said
        said = yolofs.refused("restore", "--from", "commit", code=2)
        assert "needs a number, and a path to bring back\nhint: yolofs commits lists them; then --from commit N" in said


def test_a_travel_with_a_second_word_is_told_how_a_part_of_a_generation_comes_back(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("new\n")
        yolofs("snapshot")
        said = yolofs.refused("travel", "1", "a.txt", "b.txt", code=2)
        assert "takes one generation" in said
        assert "hint: paths alone: yolofs travel 1 --only a.txt b.txt" in said


def test_restore_and_cat_refuse_a_path_that_is_nowhere(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "new").write_text("new\n")
        assert "neither in base nor in the view" in yolofs.refused("restore", "nwe", code=2)
    assert "there is nothing at" in yolofs.refused("cat", "0:nwe", code=2)
    assert "names no generation" in yolofs.refused("cat", "new", code=2)
    assert "0 is a generation, and names no path in it\nhint: yolofs ls 0: lists" in yolofs.refused("ls", "0", code=2)
    assert "hint: yolofs ls 0:dir" in yolofs.refused("cat", "0:dir", code=2)
    assert "there is no snapshot named x" in yolofs.refused("cat", "x:new", code=7)


def test_files_are_read_without_a_mount(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_bytes(b"\0first\n")
        (view / "dir/sub").mkdir(parents=True)
        (view / "dir/sub/x").write_text("x\n")
        yolofs("snapshot", "one:two")
        (view / "a.txt").unlink()
        (view / "dir/sub/x").rename(view / "x")
    assert yolofs("cat", "one:two:a.txt", ":x").out.encode() == b"\0first\nx\n"
    assert "sub/x" in yolofs("ls", "-R", "one:two:dir").out.split()
    assert yolofs("ls", "one:two:dir").out.split()[-1] == "sub/"
    assert "sub/x" not in yolofs("ls", "-R", ":dir").out.split()
    line = yolofs("ls", "-l", "one:two:a.txt").out.split()
    assert line[0].startswith("-rw")
    assert line[3] == "7"


def test_cat_refuses_links_and_fifos_by_their_type_and_ls_lists_a_single_file(yolofs: Program) -> None:
    (yolofs.project / "base-link").symlink_to("a.txt")
    with yolofs.mounted() as view:
        (view / "sub").mkdir()
        (view / "sub/link").symlink_to("../a b")
        os.mkfifo(view / "sub/fifo")
        (view / "sub/file").write_text("x\n")
        yolofs("snapshot", "one")
    assert "one:sub/link is a symlink to ../a b, and cat follows none" in yolofs.refused("cat", "one:sub/link", code=2)
    assert "0:base-link is a symlink to a.txt, and cat follows none" in yolofs.refused("cat", "0:base-link", code=2)
    refused = yolofs.refused("cat", ":sub/fifo", code=2)
    assert ":sub/fifo is a fifo, and has no content" in refused
    assert "hint: yolofs ls -l :sub/fifo" in refused
    assert yolofs("ls", "one:sub/file", ":./sub/fifo").out == "sub/file\n./sub/fifo\n"
    assert yolofs("ls", "-l", "one:sub/link").out.endswith(" sub/link -> ../a b\n")


def test_a_name_with_a_newline_stays_on_one_line_of_a_message_and_is_a_word_of_the_hint(yolofs: Program) -> None:
    name = "two lines:\nin 'it'"
    with yolofs.mounted() as view:
        (view / "sub").mkdir()
        (view / "sub/link").symlink_to("a")
        yolofs("snapshot", name)
    quoted = "$'two lines:\\nin \\'it\\'"
    shown = "\"two lines:\\nin 'it'"
    for command, path, told, hint in (
        ("cat", "sub", "is a directory", "yolofs ls "),
        ("cat", "sub/link", "is a symlink to a, and cat follows none", "yolofs ls -l "),
    ):
        refused = yolofs.refused(command, f"{name}:{path}", code=2)
        assert refused == f"yolofs: {shown}:{path}\" {told}\nhint: {hint}{quoted}:{path}'\n"
    refused = yolofs.refused("diff", f"{name}:sub/link", code=2)
    assert refused.count("\n") == 2
    assert f"yolofs diff {quoted}:sub/link' :sub/link; or what generation {shown}" in refused
    assert "hint: GENERATION:PATH, or for the view as it is now: ':a b'" in yolofs.refused("cat", "a b", code=2)
    yolofs("commit", "--yes")
    told = yolofs("restore", "--from", name, "sub").err
    assert told.startswith("nothing to bring back: it is as in ")
    assert told.count("\n") == 1


def test_diff_compares_two_versions_at_different_paths(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "one").write_text("same\nold\n")
        (view / "one").chmod(0o644)
        yolofs("snapshot", "first")
        (view / "one").unlink()
        (view / "two").write_text("same\nnew\n")
        (view / "two").chmod(0o755)
    patch = yolofs("diff", "first:one", ":two").out
    assert "-old\n+new\n" in patch
    assert "new mode 100755" in patch
    assert yolofs("diff", "first:one", "1:one").out == ""
    document = yolofs("diff", "--json", "first:one", ":two").json
    assert (document["from"], document["to"], len(document["changes"])) == (None, None, 1)
    assert "is a directory" in yolofs.refused("diff", ":.", ":two", code=2)
    assert "hint: yolofs diff base..first -- .\n" in yolofs.refused("diff", "base:.", "first:.", code=2)
    assert "hint: yolofs diff base..first -- .\n" in yolofs.refused("diff", "base:", "first:", code=2)
    assert "hint: yolofs diff first.. -- .\n" in yolofs.refused("diff", "first:.", ":.", code=2)
    assert "takes no further argument" in yolofs.refused("diff", ":two", ":two", ":two", code=2)
    assert "there is nothing at" in yolofs.refused("diff", ":one", ":two", code=2)


def test_files_and_directories_of_mode_0_come_back(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "closed").mkdir()
        (view / "closed/in it").write_text("in it\n")
        (view / "locked").write_text("locked\n")
        for name in ("closed", "locked"):
            (view / name).chmod(0)
        yolofs("snapshot", "both")
        (view / "closed").chmod(0o700)
        (view / "closed/in it").unlink()
        (view / "closed").rmdir()
        (view / "locked").unlink()
        assert yolofs("cat", "both:locked", "both:closed/in it").out == "locked\nin it\n"
        yolofs("restore", "--from", "both", "closed", "locked")
        assert [stat.S_IMODE((view / name).stat().st_mode) for name in ("closed", "locked")] == [0, 0]
        (view / "closed").chmod(0o700)
        (view / "locked").chmod(0o600)
        assert (view / "closed/in it").read_text() == "in it\n"
        assert (view / "locked").read_text() == "locked\n"


def test_a_dash_means_the_generation_before_the_last_travel_in_every_command(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        (view / "new").write_text("new\n")
        yolofs("snapshot")
        yolofs("travel", "base")
        assert yolofs("cat", "-:a.txt", "1:a.txt", "-:new").out == "changed\nchanged\nnew\n"
        assert yolofs("ls", "-l", "-:new", "-R").out.split()[-1] == "new"
        assert yolofs("diff", "--name-only", "-:a.txt", "0:a.txt").out == "a.txt\n"
        assert yolofs("diff", "--name-only", "-..").out == "a.txt\nnew\n"
        assert yolofs("diff", "--name-only", "-..base", "--", "a.txt").out == "a.txt\n"
        (hunk,) = yolofs("hunks", "--json", "-..", "--", "new").json["hunks"]
        yolofs("log", "-..")
        yolofs("restore", "--from", "-", "--hunk", hunk["id"])
        assert (view / "new").read_text() == "new\n"
        assert yolofs.refused("diff", "-x", code=2).startswith("yolofs: no such option '-x'")
        assert yolofs.refused("cat", "-.a", code=2).startswith("yolofs: no such option '-.'")


def test_a_name_means_the_newest_generation_of_it_though_commits_have_ended_it(yolofs: Program) -> None:
    path = yolofs.project / "named"

    def snapshot(text: str) -> None:
        with yolofs.mounted() as view:
            (view / "named").write_text(text)
            yolofs("snapshot", "as it was")

    for text in ("first\n", "second\n"):
        snapshot(text)
        with yolofs.mounted() as view:
            (view / "named").write_text(f"after {text}")
        yolofs("commit", "--yes")
    assert path.read_text() == "after second\n"
    assert yolofs("cat", "as it was:named").out == "second\n"
    assert "named" in yolofs("ls", "as it was:.").out
    assert yolofs("diff", "as it was:named", ":named").out.splitlines()[-2:] == ["-second", "+after second"]
    assert "brought back from as it was before commit 2" in yolofs("restore", "--from", "as it was", "named").err
    assert yolofs("cat", ":named").out == "second\n"
    assert "hint: whole paths can: yolofs restore --from 'as it was' PATH\n" in yolofs.refused(
        "restore", "--from", "as it was", "--hunk", "0" * 16, code=2
    )
    snapshot("third\n")
    assert yolofs("cat", "as it was:named").out == "third\n"
    assert "there is no snapshot named nowhere" in yolofs.refused("cat", "nowhere:named", code=7)


def test_a_travel_to_a_name_that_a_commit_has_ended_says_how_to_bring_a_part_of_it_back(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "named").write_text("kept\n")
        yolofs("snapshot", "as it was")
        (view / "named").write_text("later\n")
        yolofs("commit", "--yes")
        said = yolofs.refused("travel", "as it was", code=7)
        assert "a travel cannot go back beyond a commit: to as it was before commit 1" in said
        assert "hint: a part of it comes back by: yolofs restore --from 'as it was' PATH" in said
        assert "there is no snapshot named nowhere" in yolofs.refused("travel", "nowhere", code=7)
        yolofs("restore", "--from", "as it was", "named")
        assert (view / "named").read_text() == "kept\n"


def test_what_lies_in_a_directory_that_has_replaced_a_link_has_the_path_that_lists_show(yolofs: Program) -> None:
    (yolofs.project / "sub").mkdir()
    (yolofs.project / "sub/old").write_text("old\n")
    (yolofs.project / "link").symlink_to("sub")
    with yolofs.mounted() as view:
        (view / "link").unlink()
        (view / "link").mkdir()
        (view / "link/in").write_text("in\n")
        (view / "link/old").write_text("other\n")
        yolofs("snapshot", "one")
        assert yolofs("ls", "-R", "one:link").out.split() == ["in", "old"]
        assert yolofs("cat", ":link/in").out == yolofs("cat", "one:link/in").out == "in\n"
        assert yolofs("cat", "base:link/old").out == "old\n"  # there it is a link
        assert "-old\n+other\n" in yolofs("diff", "base:link/old", "one:link/old").out
        assert yolofs("blame", "link/in").code == 0
        assert "link/in" in yolofs("diff", "--name-only", "link/in").out
        (view / "link/in").write_text("again\n")
        yolofs("restore", "--from", "one", "link/in")
        assert (view / "link/in").read_text() == "in\n"
        shutil.rmtree(view / "link")
        (view / "link").symlink_to("sub")
        assert yolofs("cat", "one:link/in").out == "in\n"
        assert yolofs("cat", ":link/old").out == "old\n"
        yolofs("restore", "--from", "one", "link/in")
        assert (view / "link/in").read_text() == "in\n"
        yolofs("commit", "--yes", "link", "link/in")
    assert (yolofs.project / "link/in").read_text() == "in\n"
    assert (yolofs.project / "sub/old").read_text() == "old\n"


@pytest.mark.parametrize("is_rewritten", [True, False], ids=["written", "as in base"])
def test_a_hard_link_that_a_commit_has_removed_is_one_in_the_states_before(yolofs: Program, is_rewritten: bool) -> None:
    (yolofs.project / "first").write_text("old\n")
    os.link(yolofs.project / "first", yolofs.project / "second")
    with yolofs.mounted() as view:
        if is_rewritten:
            with open(view / "first", "a") as file:  # nobody looks at the other name
                file.write("new\n")
        wanted = "old\nnew\n" if is_rewritten else "old\n"
        (view / "a.txt").unlink()
        yolofs("snapshot", "one")
        assert yolofs("cat", "one:second").out == wanted
        (view / "second").unlink()
        (view / "c.txt").write_text("c\n")
        yolofs("commit", "--yes")
        assert not (yolofs.project / "second").exists()
        assert yolofs("cat", "one:second").out == wanted
        (view / "first").write_text("other\n")
        yolofs("restore", "--from", "one", "first", "second")
        assert (view / "first").read_text() == wanted
        assert (view / "second").samefile(view / "first")
        yolofs("commit", "--yes")
    assert (yolofs.project / "second").samefile(yolofs.project / "first")
    assert (yolofs.project / "first").read_text() == wanted


def test_a_directory_that_a_commit_has_removed_is_whole_in_the_states_before_though_an_undo_has_put_it_back(
    yolofs: Program,
) -> None:
    for name in ("top/one", "top/two", "top/deep/three", "top/deep/four"):
        (yolofs.project / name).parent.mkdir(parents=True, exist_ok=True)
        (yolofs.project / name).write_text(f"{name}\n")
    whole = ["deep/", "deep/four", "deep/three", "one", "two"]
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        yolofs("snapshot", "first")
        os.rename(view / "top", view / "other")
        (view / "other/one").unlink()
        shutil.rmtree(view / "other")
        yolofs("commit", "--yes")
        assert yolofs("ls", "-R", "first:top").out.splitlines() == whole
        yolofs("undo", "--yes")
        (view / "c.txt").write_text("c\n")
        yolofs("commit", "--yes", "c.txt")
        assert yolofs("ls", "-R", "first:top").out.splitlines() == whole
        (yolofs.project / "c.txt").unlink()
        yolofs("abort", "--yes")
        (view / "top/two").unlink()
        (view / "top/deep/three").unlink()
        yolofs("commit", "--yes")
        assert yolofs("ls", "-R", "first:top").out.splitlines() == whole
        yolofs("restore", "--from", "first", "top")
        for name in ("top/one", "top/two", "top/deep/three", "top/deep/four"):
            assert (view / name).read_text() == f"{name}\n"


def test_a_new_file_has_the_mode_that_it_had_before_a_later_commit_changed_that(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "new").write_text("new\n")
        (view / "new").chmod(0o640)
        yolofs("snapshot", "first")
        yolofs("commit", "--yes")
        (view / "new").chmod(0o600)
        yolofs("commit", "--yes")
        assert yolofs("ls", "-l", "first:new").out.startswith("-rw-r----- ")
        yolofs("restore", "--from", "first", "new")
        assert stat.S_IMODE((view / "new").stat().st_mode) == 0o640


def test_both_names_of_a_file_have_the_mode_that_it_had_before_a_commit_changed_it(yolofs: Program) -> None:
    (yolofs.project / "first").write_text("old\n")
    (yolofs.project / "first").chmod(0o640)
    os.link(yolofs.project / "first", yolofs.project / "second")
    with yolofs.mounted() as view:
        (view / "c.txt").write_text("c\n")
        yolofs("snapshot", "kept")
        (view / "second").chmod(0o600)
        yolofs("commit", "--yes")
        for name in ("first", "second"):
            assert yolofs("ls", "-l", f"kept:{name}").out.startswith("-rw-r----- ")
        (view / "first").unlink()
        yolofs("commit", "--yes")
        for name in ("first", "second"):
            assert yolofs("ls", "-l", f"kept:{name}").out.startswith("-rw-r----- ")


def test_ls_prints_what_it_lists_as_json(yolofs: Program) -> None:
    odd = os.fsdecode(b"caf\xe9")
    with yolofs.mounted() as view:
        (view / "sub").mkdir()
        (view / "sub/link").symlink_to("../a b")
        (view / "sub" / odd).write_text("x\n")
        (view / "sub" / odd).chmod(0o640)
        yolofs("snapshot", "one")
        (view / "sub/later").write_text("x\n")
    files = yolofs("ls", "--json", "one:sub", ":sub/later").json["files"]
    assert [(file["version"], Path(file["path"]).name, file["type"]) for file in files] == [
        ("one:sub", "caf\ufffd", "file"),
        ("one:sub", "link", "symlink"),
        (":sub/later", "later", "file"),
    ]
    assert files[0]["path_bytes"].endswith("/sub/caf%E9")
    assert (files[0]["mode"], files[0]["size"], files[0]["target"]) == ("0640", 2, None)
    assert files[1]["target"] == "../a b"
    assert all(Path(file["path"]).parent == yolofs.project / "sub" for file in files)
    assert yolofs("ls", "--json", "one:sub", ":sub/nowhere", code=2).out == ""

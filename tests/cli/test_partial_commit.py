"""``yolofs commit`` of a part: the changes that it takes, those left staged, and the programs at
work in the view.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


@pytest.fixture
def yolofs(tmp_path: Path) -> Iterator[Program]:
    """A mounted project with changes in it, beside it, in a scratch directory, and across."""
    project = tmp_path / "project"
    for directory in (project, tmp_path / "cache", tmp_path / "other"):
        directory.mkdir()
    (project / "a").write_text("a\n")
    (tmp_path / "other/lib").write_text("lib\n")
    (tmp_path / "other/data").write_text("data\n")
    (project / ".yolofs.toml").write_text(f'scratch = ["{tmp_path}/cache"]\n')
    program = Program(project)
    program.start_session()
    program.trust()
    with program.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(tmp_path)[1:]
        (view / "project/a").write_text("A\n")
        (view / "project/new/dir").mkdir(parents=True)
        (view / "project/new/dir/file").write_text("f\n")
        (view / "other/lib").write_text("LIB\n")
        (view / "other/data").rename(view / "project/data")
        (view / "cache/page").write_text("page\n")
        yield program


def view(yolofs: Program) -> Path:
    return Path(yolofs.daemon["mountpoint"]) / str(yolofs.project.parent)[1:]


def content(top: Path) -> dict[str, str]:
    paths = (path for path in top.rglob("*") if ".yolofs" not in str(path))
    return {str(path.relative_to(top)): path.read_text() for path in paths if path.is_file()}


def test_of_many_files_that_cannot_go_alone_a_few_are_named(yolofs: Program) -> None:
    """Each has a long line, as what `uv` links to its cache: they would push the question off the
    screen.
    """
    for number in range(25):
        (view(yolofs) / f"cache/{number}").write_text("linked\n")
        (view(yolofs) / f"project/{number}").hardlink_to(view(yolofs) / f"cache/{number}")
    lines = [line for line in yolofs("commit", "--yes").err.splitlines() if line.startswith("  ")]
    assert sum("it is one file with several names (hard links)" in line for line in lines) == 3
    more = "… and 23 more that cannot go alone: yolofs status --scratch lists them, yolofs commit --outside --scratch"
    assert lines[-1] == f"  {more} takes them"
    yolofs("commit", "--yes", "--outside", "--scratch")
    assert (yolofs.project / "24").samefile(yolofs.project.parent / "cache/24")


def test_what_takes_many_linked_files_takes_the_marked_ones_among_them_too(yolofs: Program) -> None:
    """As `uv tool install` links a tool to its cache: nobody is to be told a command that leaves it
    again.
    """
    for number in range(5):
        (view(yolofs) / f"cache/{number}").write_text("linked\n")
        (view(yolofs) / f"project/.git/hooks/{number}").parent.mkdir(parents=True, exist_ok=True)
        (view(yolofs) / f"project/.git/hooks/{number}").hardlink_to(view(yolofs) / f"cache/{number}")
    lines = yolofs("commit", "--yes", "--trusted").err.splitlines()
    (more,) = (line for line in lines if "that cannot go alone" in line)
    command = more.rpartition("yolofs ")[2].removesuffix(" takes them").split()
    assert command == ["commit", "--outside", "--scratch", "--trusted"]
    yolofs(*command, "--yes")
    assert (yolofs.project / ".git/hooks/4").samefile(yolofs.project.parent / "cache/4")


def test_of_what_cannot_go_alone_the_host_code_is_named_first(yolofs: Program) -> None:
    """Nobody is to miss among others that a start file stays."""
    for number in range(5):
        (view(yolofs) / f"cache/{number}").write_text("linked\n")
        (view(yolofs) / f"project/{number}").hardlink_to(view(yolofs) / f"cache/{number}")
    (view(yolofs) / "cache/start").write_text("export A=1\n")
    (view(yolofs) / "project/.envrc").hardlink_to(view(yolofs) / "cache/start")
    done = yolofs("commit", "--yes", "--outside", "--trusted")
    lines = [line for line in done.err.splitlines() if "it is one file with several names (hard links)" in line]
    assert len(lines) == 3
    assert f"{yolofs.project}/.envrc: " in lines[0]


def test_a_commit_takes_the_project_and_says_what_stays_and_why(yolofs: Program) -> None:
    top = yolofs.project.parent
    both = f"{top}/other/data, {top}/project/data"
    before = content(view(yolofs))
    done = yolofs("commit", "--yes")
    assert done.out == "M  a\nA  new/  (and 2 in it)\n\n4 changes: 3 added, 1 modified\n"
    assert done.err.splitlines() == [
        "commit 1 done; to take it back: yolofs undo 1",
        "3 changes stay staged:",
        "  1 outside the project: yolofs commit --outside",
        "  1 in scratch directories: yolofs commit --scratch",
        f"  {both}: it goes together with {top}/other/data; yolofs commit {both.replace(',', '')}",
    ]
    assert content(top) == {
        "project/a": "A\n",
        "project/new/dir/file": "f\n",
        "other/lib": "lib\n",
        "other/data": "data\n",
    }
    assert content(view(yolofs)) == before
    status = yolofs("status", "--json").json
    assert [(change["kind"], change["region"]) for change in status["changes"]] == [("M", "outside"), ("R", "outside")]
    assert yolofs("timeline", "--json").json["generations"][-1]["name"] == "left by commit 1"


def test_committing_what_each_commit_names_leaves_nothing_staged(yolofs: Program) -> None:
    top = yolofs.project.parent
    yolofs("commit", "--yes")
    yolofs("commit", "--yes", top / "other/data", top / "project/data")
    assert (top / "project/data").read_text() == "data\n"
    assert not (top / "other/data").exists()
    assert (top / "other/lib").read_text() == "lib\n"
    done = yolofs("commit", "--yes", "--outside")
    assert "outside the project" in done.out
    assert done.err.splitlines()[1:] == [
        "1 change stays staged:",
        "  1 in scratch directories: yolofs commit --scratch",
    ]
    yolofs("commit", "--yes", "--scratch")
    assert content(top) == content(view(yolofs))
    assert yolofs("status", "--scratch").out.endswith("no changes\n")


def test_a_commit_takes_named_paths_alone_with_the_new_directories_that_they_need(yolofs: Program) -> None:
    top = yolofs.project.parent
    (view(yolofs) / "project/new/beside").write_text("b\n")
    done = yolofs("commit", "--yes", "new/dir", top / "cache")
    assert done.out == (
        f"A  new/  (and 2 in it)\n\nin scratch directories:\nA  {top}/cache/page\n\n4 changes: 4 added\n"
    )
    assert "\n  2 in the project: yolofs commit\n" in done.err
    assert sorted(content(top)) == ["cache/page", "other/data", "other/lib", "project/a", "project/new/dir/file"]


def test_what_a_partial_commit_leaves_staged_survives_a_remount_and_a_travel(yolofs: Program) -> None:
    before = content(view(yolofs))
    yolofs("commit", "--yes")
    yolofs("unmount")
    yolofs("mount")
    assert content(view(yolofs)) == before
    yolofs("travel", "base")
    assert content(view(yolofs)) == content(yolofs.project.parent)
    yolofs("travel", "left by commit 1")
    assert content(view(yolofs)) == before
    (view(yolofs) / "other/lib").write_text("again\n")
    yolofs("travel", "left by commit 1")
    assert (view(yolofs) / "other/lib").read_text() == "LIB\n"
    yolofs("abort", "--yes")
    assert content(view(yolofs)) == content(yolofs.project.parent)


def test_drift_at_a_path_that_stays_staged_does_not_stop_a_commit(yolofs: Program) -> None:
    top = yolofs.project.parent
    (top / "other/lib").write_text("by the host, and longer\n")
    yolofs("commit", "--yes")
    assert "other/lib" in yolofs("commit", "--yes", "--outside", code=9).err
    yolofs("commit", "--yes", "--outside", "--force")
    assert (top / "other/lib").read_text() == "LIB\n"


HOLDER = """
import os, sys
top = sys.argv[1]
files = [open(f"{top}/{name}", "r+") for name in ("project/a", "other/lib", "project/data", "cache/page")]
os.chdir(f"{top}/project/new")
before = [(os.fstat(file.fileno()).st_ino, file.read()) for file in files]
print("ready", flush=True)
sys.stdin.readline()
for file, (number, text) in zip(files, before):
    assert os.fstat(file.fileno()).st_ino == number == os.stat(file.name).st_ino, file.name
    file.seek(0)
    assert file.read() == text, file.name
    file.write("more\\n")
    file.close()
with open("here", "w") as file:
    file.write(os.getcwd())
"""


def test_programs_at_work_go_on_with_their_files_and_directories(yolofs: Program) -> None:
    top = yolofs.project.parent
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(view(yolofs))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        yolofs("commit", "--yes")
        holder.communicate("go\n")
    assert holder.returncode == 0
    shown = content(view(yolofs))
    assert [shown[name] for name in ("project/a", "other/lib", "project/data", "cache/page")] == [
        "A\nmore\n",
        "LIB\nmore\n",
        "data\nmore\n",
        "page\nmore\n",
    ]
    assert shown["project/new/here"].endswith("/project/new")
    assert (top / "project/a").read_text() == "A\n"
    assert not (top / "project/new/here").exists()
    assert (top / "other/lib").read_text() == "lib\n"


def test_the_json_tells_what_stays_and_what_is_held_back(yolofs: Program) -> None:
    top = yolofs.project.parent
    document = yolofs("commit", "--yes", "--json").json
    assert list(document) == [
        "commit", "steps", "changes", "stays", "held", "host_code", "excluded", "conflicts", "left_out",
        "held_hunks", "open_files", "merged", "dropped", "left",
    ]  # fmt: skip
    assert [change["region"] for change in document["stays"]] == ["scratch", "outside", "outside"]
    assert document["held"] == [
        {
            "paths": [{"path": f"{top}/other/data"}, {"path": f"{top}/project/data"}],
            "reason": f"it goes together with {top}/other/data",
            "has_to_be_named": False,
        }
    ]


def test_paths_and_flags_contradict_each_other(yolofs: Program) -> None:
    assert "paths say exactly" in yolofs.refused("commit", "--yes", "--outside", "a", code=2)


def test_a_named_path_at_which_nothing_is_staged_is_told_without_a_question(yolofs: Program) -> None:
    (yolofs.project / "same").write_text("same\n")
    for words in (["commit", "--yes", "same"], ["commit", "same"]):
        done = yolofs(*words, code=1)
        assert done.out == ""
        lines = done.err.splitlines()
        assert lines[:3] == [f"{yolofs.project}/same: nothing is staged there", "nothing to commit", lines[2]]
        assert lines[2] == "7 changes stay staged:"
    assert not (yolofs.session / "commits/1/plan.json").exists()


def test_a_path_that_is_nowhere_is_an_error_and_then_the_others_stay_too(yolofs: Program) -> None:
    top = yolofs.project.parent
    for words in (["commit", "a", "nowhere/x"], ["commit", "--yes", "a", "nowhere/x"]):
        said = yolofs.refused(*words, code=2)
        assert f"there is nothing at {top}/project/nowhere/x, neither staged nor in base" in said
    assert (top / "project/a").read_text() == "a\n"
    assert "an empty path means nothing" in yolofs.refused("commit", "--yes", "", code=2)


def test_of_several_paths_those_without_changes_are_named_and_the_others_taken(yolofs: Program) -> None:
    top = yolofs.project.parent
    (top / "other/same").write_text("same\n")
    (top / "other/dir").mkdir()
    done = yolofs("commit", "--yes", "a", top / "other/same", top / "other/dir")
    assert done.err.splitlines()[:3] == [
        f"{top}/other/same: nothing is staged there",
        f"{top}/other/dir: nothing is staged there",
        "commit 1 done; to take it back: yolofs undo 1",
    ]
    assert (top / "project/a").read_text() == "A\n"


def test_a_file_in_a_renamed_directory_is_held_with_the_directory(yolofs: Program) -> None:
    (yolofs.project / "before").mkdir()
    (yolofs.project / "before/file").write_text("1")
    (view(yolofs) / "project/before").rename(view(yolofs) / "project/after")
    done = yolofs("commit", "after/file", code=1)
    both = f"{yolofs.project}/after, {yolofs.project}/before"
    assert f"  {both}: its rename goes only as a whole; yolofs commit" in done.err
    assert "nothing is staged there" not in done.err


@pytest.mark.parametrize("named", ["after/in", "before/in"])
def test_what_has_changed_in_a_renamed_directory_is_committed_by_either_path_without_the_rename(
    yolofs: Program, named: str
) -> None:
    (yolofs.project / "before/in").mkdir(parents=True)
    (yolofs.project / "before/in/file").write_text("1")
    (yolofs.project / "before/beside").write_text("1")
    after = view(yolofs) / "project/after"
    (view(yolofs) / "project/before").rename(after)
    (after / "in/file").write_text("22")
    (after / "beside").write_text("22")
    (after / "in/new").write_text("new")
    yolofs("commit", "--yes", named)
    assert (yolofs.project / "before/in/file").read_text() == "22"
    assert (yolofs.project / "before/in/new").read_text() == "new"
    assert (yolofs.project / "before/beside").read_text() == "1"
    assert (after / "in/new").read_text() == "new"
    assert not (yolofs.project / "after").exists()


def test_what_has_come_to_the_place_of_a_renamed_directory_is_no_other_name_of_what_is_in_that(
    yolofs: Program,
) -> None:
    (yolofs.project / "before/in").mkdir(parents=True)
    (yolofs.project / "before/in/file").write_text("1")
    top = view(yolofs) / "project"
    (top / "before").rename(top / "after")
    (top / "after/in/file").write_text("22")
    (top / "before/in").mkdir(parents=True)
    (top / "before/in/other").write_text("new")
    assert "stay staged" in yolofs("commit", "--yes", "after/in", code=1).err
    assert (yolofs.project / "before/in/file").read_text() == "1"
    assert not (yolofs.project / "before/in/other").exists()


def test_without_a_terminal_a_commit_wants_yes_only_if_there_is_something_to_commit(yolofs: Program) -> None:
    done = yolofs("commit", "a", code=2)
    assert "yolofs commit --yes a" in done.err
    yolofs("abort", "--yes")
    done = yolofs("commit")
    assert (done.out, done.err) == ("", "nothing to commit\n")


def test_a_file_in_a_deleted_directory_is_held_with_the_directory(yolofs: Program) -> None:
    (yolofs.project / "old").mkdir()
    (yolofs.project / "old/one").write_text("1")
    (view(yolofs) / "project/old/one").unlink()
    (view(yolofs) / "project/old").rmdir()
    done = yolofs("commit", "--yes", "old/one", code=1)
    assert f"  {yolofs.project}/old: it goes only as a whole; yolofs commit {yolofs.project}/old" in (done.err)
    assert (yolofs.project / "old/one").exists()


def test_of_a_file_with_hard_links_all_names_are_told_at_once(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "one").write_text("1\n")
    for name in ("two", "three", "four", "five"):
        (project / name).hardlink_to(project / "one")
    yolofs = Program(project)
    yolofs.start_session()
    with yolofs.mounted() as view:
        (view / "two").write_text("2\n")
        names = " ".join(f"{project}/{name}" for name in ("five", "four", "one", "three", "two"))
        done = yolofs("commit", "--yes", "two", code=16)
        assert f"is the same file (hard link); yolofs commit {names}\n" in done.err
        assert "yolofs: 1 path that was named stays staged, as it goes only together with others\n" in done.err
        assert done.err.endswith(f"hint: yolofs commit {names}\n")
        assert (project / "two").read_text() == "1\n"
        yolofs("commit", "--yes", *names.split())
        assert (project / "five").read_text() == "2\n"


def test_a_link_to_a_file_elsewhere_that_stays_what_it_is_needs_no_more_than_its_own_name(tmp_path: Path) -> None:
    """As `git clone` of a repository on the same disk makes them of all its objects."""
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    (other / "object").write_text("1\n")
    (other / "known").write_text("2\n")
    (other / "by another name").hardlink_to(other / "known")
    yolofs = Program(project)
    yolofs.start_session()
    with yolofs.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(tmp_path)[1:]
        (view / "project/clone").mkdir()
        (view / "project/clone/object").hardlink_to(view / "other/object")
        (view / "project/clone/known").hardlink_to(view / "other/known")
        done = yolofs("commit", "--yes", "--outside", "--exclude", other)
        assert done.err.splitlines()[-1] == "commit 1 done; to take it back: yolofs undo 1"
        assert (project / "clone/object").samefile(other / "object")
        assert (project / "clone/known").samefile(other / "by another name")
        assert yolofs("status", "--json").json["changes"] == []
        (view / "project/again").hardlink_to(view / "other/object")
        (view / "other/object").write_text("more\n")
        done = yolofs("commit", "--yes", "--exclude", other)
        assert "nothing to commit\n3 changes stay staged:\n" in done.err
        assert (other / "object").read_text() == "1\n"


def test_paths_at_which_nothing_is_staged_are_no_success(yolofs: Program) -> None:
    same = yolofs.project.parent / "other/same"
    same.write_text("same\n")
    assert "nothing is staged there" in yolofs("commit", "--yes", same, code=1).err
    assert yolofs("commit", "--yes", "--json", same, code=1).json["commit"] is None
    yolofs("commit", "--yes", "a")
    yolofs("commit", "--yes", "a", code=1)
    yolofs("commit", "--yes", "--outside", "--scratch")
    yolofs("commit", "--yes")


def test_the_log_tells_what_base_had_where_something_stays_deleted(yolofs: Program) -> None:
    (view(yolofs) / "other/lib").unlink()
    yolofs("commit", "--yes")
    lib = f"{yolofs.project.parent}/other/lib"
    kept = [record for record in yolofs("log", "--json", "--", lib).json["records"] if record["kind"] == "keep"]
    assert [(record["path"], record["ino"], record["base_had"]) for record in kept] == [
        (lib, None, True),
        (lib, None, False),
    ]
    lines = [
        line.partition("other/lib")[2].strip() for line in yolofs("log", "--", lib).out.splitlines() if "keep" in line
    ]
    assert lines == ["(what base had)", "(deleted)"]

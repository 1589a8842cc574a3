"""status, diff, log, commit and abort, with and without a mount: the same session, the same
answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fault_points import way_of, ways
from tests.support.program import COMMAND, Program, run_code, with_few_files
from yolofs.cli.command_line import BROKEN_PIPE

pytestmark = pytest.mark.mount


def change(view: Path) -> None:
    """Change one thing of each kind."""
    (view / "a.txt").write_text("one\nTWO\n")
    (view / "new dir").mkdir()
    (view / "new dir/new.txt").write_text("new\n")
    (view / "dir").rename(view / "moved")
    (view / "old").unlink()
    (view / "run.sh").chmod(0o755)
    (view / "link").unlink()
    (view / "link").write_text("now a file\n")


LINES = """\
M  a.txt
T  link  (symlink -> file)
R  dir/ -> moved/
A  new dir/
A  new dir/new.txt
D  old
X  run.sh  (mode 644 -> 755)

7 changes: 2 added, 1 modified, 1 deleted, 1 renamed, 1 of another type, 1 metadata only
"""
SHORT = LINES.replace("A  new dir/\nA  new dir/new.txt\n", "A  new dir/  (and 1 in it)\n")
"""The same where a new directory is one line."""


def with_more_files(yolofs: Program) -> Program:
    """Add a file of each kind to the project."""
    project = yolofs.project
    (project / "old").write_text("old\n")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "link").symlink_to("a.txt")
    os.chmod(project / "run.sh", 0o644)
    os.chmod(project / "a.txt", 0o644)
    return yolofs


@contextlib.contextmanager
def with_changes_staged(yolofs: Program, *, is_mounted: bool) -> Iterator[Program]:
    """Stage the changes; go on with or without the mount."""
    with yolofs.mounted() as mountpoint:
        change(mountpoint)
        if is_mounted:
            yield yolofs
            return
    yield yolofs


@pytest.fixture
def yolofs(yolofs: Program) -> Program:
    return with_more_files(yolofs)


@pytest.fixture(params=ways("mounted", "unmounted"))
def staged(yolofs: Program, request: pytest.FixtureRequest) -> Iterator[Program]:
    """Return the program where the changes are staged."""
    with with_changes_staged(yolofs, is_mounted=way_of(request, "mounted", "unmounted") == "mounted") as program:
        yield program


@pytest.fixture(scope="module", params=["mounted", "unmounted"])
def looked_at(
    tmp_path_factory: pytest.TempPathFactory, traces: object, request: pytest.FixtureRequest
) -> Iterator[Program]:
    """Return the same, where tests change nothing."""
    program = with_more_files(with_few_files(tmp_path_factory.mktemp("staged") / "project"))
    is_mounted = request.param == "mounted"
    with with_changes_staged(program, is_mounted=is_mounted):
        if is_mounted:
            program.wait_for_watcher()
        yield program


def everything(directory: Path) -> dict[str, tuple[int, str]]:
    """Return mode and content of all in a directory but the session."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if not name.startswith(".yolofs"):
            content = os.readlink(path) if path.is_symlink() else "" if path.is_dir() else path.read_text()
            found[name] = (path.lstat().st_mode, content)
    return found


def test_status_lists_each_change_in_a_line(looked_at: Program) -> None:
    out = looked_at("status").out
    assert out.partition("\n\n")[2] == SHORT
    assert looked_at("status", "--unfold").out.partition("\n\n")[2] == LINES
    assert out.startswith(("mounted at ", "not mounted\n"))
    assert f"\nbase {looked_at.project}, generation 0 and 8 records since\n" in out


def test_status_as_json_has_all_that_the_lines_have_and_more(looked_at: Program) -> None:
    document = looked_at("status", "--json").json
    assert list(document) == [
        "project", "root", "mounted", "mountpoint", "pid", "warnings", "cuts", "interrupted", "size_bytes",
        "kept_bytes", "run_tmp", "generation", "records_since", "counts", "changes", "host_code", "waiting",
        "scratch_left_out", "hidden_left_out", "hidden_untracked", "open_files", "drift",
    ]  # fmt: skip
    assert document["counts"] == {"A": 2, "M": 1, "D": 1, "R": 1, "T": 1, "X": 1}
    changes = {change["path"].removeprefix(f"{looked_at.project}/"): change for change in document["changes"]}
    assert [changes[name]["kind"] for name in ("a.txt", "moved", "link", "old", "run.sh")] == ["M", "R", "T", "D", "X"]
    assert changes["moved"]["old_path"] == f"{looked_at.project}/dir"
    assert changes["moved"]["subtree"] is True
    assert (changes["link"]["old"]["type"], changes["link"]["new"]["type"]) == ("symlink", "file")
    assert (changes["run.sh"]["metadata"], changes["run.sh"]["new"]["mode"]) == (["mode"], "0755")
    assert "new" not in changes["old"]
    assert "old" not in changes["new dir"]


def test_hard_links_are_all_listed_and_patched(yolofs: Program, tmp_path: Path) -> None:
    (yolofs.project / "dir/hard.txt").hardlink_to(yolofs.project / "a.txt")
    (tmp_path / "outside.txt").hardlink_to(yolofs.project / "a.txt")
    # where anything is guarded, somebody would be asked about the name that cannot be found
    (yolofs.project / ".yolofs.toml").write_text('preset = "none"\n[rules]\n"/" = "allow"\n')
    yolofs.trust()
    copy = tmp_path / "copy"
    shutil.copytree(yolofs.project, copy, symlinks=True, ignore=shutil.ignore_patterns(".yolofs"))
    with yolofs.mounted() as mountpoint:
        (mountpoint / "a.txt").write_text("one\nTWO\n")
    note = "(1 more of its names in base)"
    assert f"\nM  a.txt  {note}\nM  dir/hard.txt  {note}\n" in yolofs("status").out
    assert {change["unseen_names"] for change in yolofs("status", "--json").json["changes"]} == {1}
    done = yolofs("diff")
    assert "note: 1 more of the names of a.txt in base change with it\n" in done.err
    subprocess.run(
        ["git", "apply", "-"], cwd=copy, input=done.out.encode(), check=True, env=os.environ | {"GIT_DIR": "/nowhere"}
    )
    assert (copy / "a.txt").read_text() == (copy / "dir/hard.txt").read_text() == "one\nTWO\n"
    yolofs("commit", "--yes")
    for path in (yolofs.project / "a.txt", yolofs.project / "dir/hard.txt", tmp_path / "outside.txt"):
        assert path.read_text() == "one\nTWO\n"
        assert path.stat().st_nlink == 3


def test_the_diff_is_a_patch_that_git_applies(looked_at: Program, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(looked_at.project, copy, symlinks=True, ignore=shutil.ignore_patterns(".yolofs"))
    done = looked_at("diff")
    for option in ("--check", "--apply"):
        command = ["git", "apply", option, "-"]
        subprocess.run(command, cwd=copy, input=done.out.encode(), check=True, env=os.environ | {"GIT_DIR": "/nowhere"})
    assert (copy / "a.txt").read_text() == "one\nTWO\n"
    assert (copy / "moved/b.txt").read_text() == "b\n"
    assert (copy / "run.sh").stat().st_mode & 0o777 == 0o755
    assert not (copy / "old").exists()


def test_a_diff_of_some_paths_shows_these_alone(looked_at: Program) -> None:
    assert looked_at("diff", "--list", "--", "a.txt", "new dir").out.splitlines()[:3] == [
        "M  a.txt", "A  new dir/", "A  new dir/new.txt",
    ]  # fmt: skip
    listed = looked_at("diff", "--list", "--", "b.txt", cwd=looked_at.project / "dir").out
    assert listed.startswith("R  dir/b.txt -> moved/b.txt\n\n1 change")


def test_a_path_in_the_mount_means_the_same_as_in_the_project(looked_at: Program) -> None:
    expected = looked_at("diff", "--", "a.txt").out
    assert "+TWO" in expected
    if (looked_at.session / "mnt").exists():
        assert looked_at("diff", "--", ".yolofs/mnt/a.txt").out == expected
        assert looked_at("diff", "--", (looked_at.session / "mnt").resolve() / "a.txt").out == expected
    assert looked_at("diff", "--", looked_at.project / "a.txt").out == expected
    assert Program(looked_at.project / "dir")("diff", "--", "../a.txt").out == expected


def test_a_path_outside_the_root_is_refused(looked_at: Program) -> None:
    assert "outside the base directory" in looked_at.refused("diff", "--", "/etc/passwd", code=2)


def test_commit_makes_base_what_the_view_was_and_leaves_nothing_staged(staged: Program) -> None:
    done = staged("commit", "--yes")
    assert done.out == SHORT
    assert "commit 1 done; to take it back: yolofs undo 1\n" in done.err
    assert everything(staged.project) == {
        "a.txt": (0o100644, "one\nTWO\n"),
        "link": (0o100644, "now a file\n"),
        "moved": (0o40755, ""),
        "moved/b.txt": (0o100644, "b\n"),
        "new dir": (0o40755, ""),
        "new dir/new.txt": (0o100644, "new\n"),
        "run.sh": (0o100755, "#!/bin/sh\n"),
    }
    assert staged("status").out.endswith("\n\nno changes\n")
    if (staged.session / "mnt").exists():
        assert everything(staged.session / "mnt") == everything(staged.project)
    assert "nothing to commit" in staged("commit", "--yes").err


def test_commit_as_json_tells_what_was_done(staged: Program) -> None:
    before = staged("status", "--json").json["changes"]
    document = staged("commit", "--yes", "--json").json
    assert list(document) == [
        "commit", "steps", "changes", "stays", "held", "host_code", "excluded", "conflicts", "left_out",
        "held_hunks", "open_files", "merged", "dropped", "left",
    ]  # fmt: skip
    assert document["stays"] == document["held"] == []
    assert (document["commit"], document["left_out"], document["changes"]) == (1, [], before)
    again = staged("commit", "--yes", "--json").json
    assert again == {
        "commit": None,
        "steps": 0,
        "changes": [],
        "stays": [],
        "held": [],
        "host_code": [],
        "excluded": [],
        "conflicts": [],
        "left_out": [],
        "held_hunks": [],
        "open_files": [],
        "merged": [],
        "dropped": [],
        "left": [],
    }


def test_commit_without_a_terminal_needs_yes(looked_at: Program) -> None:
    before = everything(looked_at.project)
    assert "hint: yolofs commit --yes" in looked_at("commit", code=2).err
    assert "hint: yolofs commit --yes a.txt\n" in looked_at("commit", "a.txt", code=2).err
    (looked_at.project / "commit").mkdir()
    again = looked_at("-C", "commit", "commit", looked_at.project / "a.txt", code=2).err
    assert f"hint: yolofs -C commit commit --yes {looked_at.project}/a.txt\n" in again
    (looked_at.project / "commit").rmdir()
    assert "hint: yolofs commit --yes --json a.txt\n" in looked_at("commit", "--json", "a.txt", code=2).err
    assert "hint: the same command with --yes\n" in looked_at("commit", "--exclude", "x" * 200, "a.txt", code=2).err
    assert "hint: yolofs abort --yes" in looked_at("abort", code=2).err
    assert everything(looked_at.project) == before
    assert looked_at("status").out.endswith(SHORT)


def test_commit_refuses_and_lists_what_changed_in_base_unless_forced(staged: Program) -> None:
    (staged.project / "a.txt").write_text("changed by the host\n")
    done = staged("commit", "--yes", code=9)
    assert done.err.startswith("yolofs: ")
    assert "/a.txt" in done.err
    assert "--ours replaces what base has" in done.err
    assert (staged.project / "old").exists()
    staged("commit", "--yes", "--force")
    assert (staged.project / "a.txt").read_text() == "one\nTWO\n"
    kept = [path.read_text() for path in (staged.session / "commits/1/replaced").iterdir() if path.is_file()]
    assert "changed by the host\n" in kept


def test_abort_drops_everything_and_base_stays(staged: Program) -> None:
    before = everything(staged.project)
    staged("snapshot", "one")
    assert staged("abort", "--yes").err == "all that was staged is dropped\n"
    assert everything(staged.project) == before
    assert staged("status").out.endswith("\n\nno changes\n")
    assert staged("timeline", "--json").json["present"] == 0
    if (staged.session / "mnt").exists():
        assert everything(staged.session / "mnt") == before
    else:
        assert list((staged.session / "files").rglob("*/*")) == []


def test_abort_of_nothing_says_so_and_asks_nobody(staged: Program) -> None:
    staged("abort", "--yes")
    assert staged("abort", "--yes").err == "nothing was staged\n"
    assert staged("abort").err == "nothing was staged\n"


def test_the_log_has_a_line_for_each_record(staged: Program) -> None:
    staged("snapshot", "first one")
    lines = [line.split("  ", 1)[1] for line in staged("log", "-v").out.splitlines()]
    assert [line.split()[1] for line in lines].count("stage") == 5
    assert "1  stage     a.txt  (copied up)" in lines
    assert "1  stage     run.sh  (copied up, metadata only)" in lines
    assert "1  rename    dir -> moved" in lines
    assert "1  delete    old" in lines
    assert lines[-1] == "1  snapshot  first one"
    assert staged("log", "--", "old").out.count("\n") == 1
    records = staged("log", "--json").json["records"]
    assert len(records) == len(lines)
    assert records[-1].items() >= {"kind": "snapshot", "name": "first one", "generation": 1, "live": True}.items()


def test_generations_can_be_compared_and_named(staged: Program) -> None:
    staged("snapshot", "first")
    staged("travel", "base")
    assert staged("status").out.endswith("no changes\n")
    assert staged("diff", "first", "--list").out.endswith(LINES)
    assert staged("diff", "base..first", "--list").out.endswith(LINES)
    assert staged("diff", "first..", "--list").out.startswith("M  a.txt\nR  moved/ -> dir/\n")
    assert "dead" in staged("log", "-v").out
    staged("travel", "-")
    assert "(-)" not in staged("status").out
    assert "(-)" not in staged("timeline").out
    assert staged("status").out.endswith(SHORT)
    assert "dead" not in staged("log", "-v").out.splitlines()[-1]


def test_every_json_document_is_one_document(staged: Program) -> None:
    staged("snapshot", "x")
    for words in (["status"], ["diff"], ["log"], ["timeline"], ["snapshot"], ["travel", "x"], ["doctor"]):
        assert isinstance(json.loads(staged(*words, "--json").out), dict)


def test_changes_outside_the_project_are_set_apart_with_absolute_paths(yolofs: Program) -> None:
    outside = yolofs.project.parent / "outside"
    (yolofs.project / ".yolofs.toml").write_text("scratch = []\n")
    with yolofs.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(yolofs.project)[1:]
        (view / "a.txt").write_text("one\n")
        (view.parent / "outside").write_text("o\n")
        (view / "old").rename(view.parent / "old")
        out = yolofs("status").out
        assert "\nM  a.txt\n\noutside the project:\n" in out
        assert f"\nA  {outside}\n" in out
        assert f"\nR  {yolofs.project}/old -> {yolofs.project.parent}/old\n" in out
        done = yolofs("diff")
        assert "note: paths are relative to /, as not all of them lie in the project" in done.err
        assert f"+++ b{outside}\n" in done.out
        inside = yolofs("diff", "--", "a.txt")
        assert (inside.err, "+++ b/a.txt\n" in inside.out) == ("", True)
        yolofs("abort", "--yes")


def test_a_name_that_would_upset_a_terminal_is_quoted(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        (mountpoint / "\x1b[31mred\n").touch()
        assert 'A  "\\033[31mred\\n"\n' in yolofs("status").out
        assert "\x1b" not in yolofs("log", "-v").out + yolofs("diff", "--list").out


def test_changes_that_a_patch_cannot_express_are_noted_on_stderr(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        (mountpoint / "empty").mkdir()
        done = yolofs("diff")
        assert done.out == ""
        assert done.err.startswith("note: ")
        assert "empty" in done.err


def test_a_closed_pipe_is_no_complaint(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        for number in range(1000):
            (mountpoint / f"{number:0200}").touch()
        for word in ("status", "log", "timeline"):
            reading, writing = os.pipe()
            os.close(reading)  # before it is written to, however little that is
            done = subprocess.run(
                [*COMMAND, word], cwd=yolofs.project, stdout=writing, stderr=subprocess.PIPE, check=False
            )
            os.close(writing)
            assert (done.returncode, done.stderr) == (141, b"")


def test_a_file_that_both_sides_have_replaced_by_the_same_is_no_conflict(yolofs: Program) -> None:
    """As git does with its index, by a new file that is renamed to its place."""
    index = yolofs.project / "index"
    index.write_bytes(b"DIRC")
    with yolofs.mounted() as mountpoint:
        for place in (mountpoint, yolofs.project):
            (place / "index.lock").write_bytes(index.read_bytes())
            (place / "index.lock").rename(place / "index")
        assert yolofs("status").out.endswith(
            "-  times alone: index  (1 change; --unfold)\n\n1 change: 1 metadata only\n"
        )
        yolofs("commit", "--yes")
        assert index.read_bytes() == b"DIRC"
        assert "no changes\n" in yolofs("status").out
        (mountpoint / "index").write_bytes(b"VIEW")
        index.write_bytes(b"HOST")
        refused = yolofs("commit", "--yes", code=9)
        assert refused.out.startswith("M  index  [changed in base, too]\n")
        assert "base has changed at 1 path since it changed in the view, so nothing is committed" in refused.err
        assert "yolofs diff -- PATH" in refused.err
        assert "yolofs commit PATH… takes other paths alone" in refused.err
        assert refused.err.splitlines()[1] == f"  {index}"
        assert index.read_bytes() == b"HOST"


def test_conflicts_are_told_as_json_whether_they_are_overridden_or_not(yolofs: Program) -> None:
    index, other = yolofs.project / "index", yolofs.project / "other"
    index.write_bytes(b"DIRC")
    with yolofs.mounted() as mountpoint:
        (mountpoint / "index").write_bytes(b"VIEW")
        (mountpoint / "other").write_bytes(b"new")
        index.write_bytes(b"HOST")
        refused = yolofs("commit", "--yes", "--json", code=9).json
        assert (refused["commit"], refused["steps"], refused["changes"]) == (None, 0, [])
        assert [change["path"] for change in refused["stays"]] == [str(index), str(other)]
        assert refused["conflicts"] == [{"path": str(index)}]
        assert index.read_bytes() == b"HOST"
        done = yolofs("commit", "--yes", "--json", "--force").json
        assert (done["commit"], done["conflicts"]) == (1, [{"path": str(index)}])
        assert [change["path"] for change in done["changes"]] == [str(index), str(other)]
        assert index.read_bytes() == b"VIEW"


def test_a_path_may_lead_through_a_link_that_only_the_view_has(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        (mountpoint / "new link").symlink_to("dir")
        (mountpoint / "dir/made").write_text("made\n")
        assert yolofs("diff", "--list", "--", "new link/made").out.startswith("A  dir/made\n")
        assert "dir/made" in yolofs("log", "--", "new link/made").out
        assert yolofs("blame", "new link/made").out.startswith("dir/made: written, ")
        yolofs("commit", "--yes", "new link/made")
        assert (yolofs.project / "dir/made").read_text() == "made\n"
        assert not os.path.lexists(yolofs.project / "new link")


def test_init_says_that_it_wrote_the_settings_file_and_leaves_one_that_is_there(tmp_path: Path) -> None:
    said = Program(tmp_path)("init").err
    assert "wrote .yolofs.toml" in said
    text = (tmp_path / ".yolofs.toml").read_text()
    assert "wrote .yolofs.toml" not in Program(tmp_path)("init").err
    assert (tmp_path / ".yolofs.toml").read_text() == text


def test_a_commit_whose_list_nobody_reads_to_its_end_does_nothing_and_says_so(yolofs: Program) -> None:
    """As `yolofs commit --yes | head` does."""
    with yolofs.mounted() as mountpoint:
        for number in range(500):
            (mountpoint / f"a name that fills buffers {number:0100}").touch()
    with subprocess.Popen(
        [*COMMAND, "commit", "--yes"], cwd=yolofs.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == BROKEN_PIPE
    assert said == "nothing is committed, as the list was not read to its end\n"
    assert "500 added" in yolofs("status").out


DAEMON_DIES = """
import os, select, signal, sys
from yolofs.cli import main
from yolofs.cli.commit import committing_changes
really_commit = committing_changes.commit
daemon = os.pidfd_open(int(sys.argv[1]))
def dying(*arguments, **named):
    result = really_commit(*arguments, **named)
    signal.pidfd_send_signal(daemon, signal.SIGKILL)
    select.select([daemon], [], [])  # until it is dead: it could answer until then
    return result
committing_changes.commit = dying
raise SystemExit(main.main(["commit", "--yes"]))
"""


def test_a_commit_that_was_done_when_the_daemon_died_is_told_as_done(yolofs: Program) -> None:
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    try:
        (mountpoint / "new").write_text("x\n")
        done = run_code(DAEMON_DIES, [str(yolofs.daemon["pid"])], yolofs.project)
    finally:
        yolofs("unmount", "--force")
    first, second = done.stderr.splitlines()
    assert first.startswith("warning: it is done, but the mount cannot take the session back: the daemon has hung up")
    assert second.startswith("commit 1 done; ")
    assert done.returncode == 0
    assert (yolofs.project / "new").read_text() == "x\n"
    assert "no changes" in yolofs("status").out


def test_status_counts_all_that_the_session_takes(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for number in range(5):
            (view / "a.txt").write_text(f"{number}\n")
            yolofs("commit", "--yes")
    session = os.path.realpath(yolofs.session)
    assert all(os.stat(f"{session}/commits/{number}/journal").st_blocks * 512 <= 16384 for number in range(1, 6))
    du = subprocess.run(["du", "--summarize", "--block-size=1", session], capture_output=True, text=True, check=True)
    taken = yolofs("status", "--json").json["size_bytes"]
    assert 0 <= int(du.stdout.split()[0]) - taken <= 16384  # du counts the directory itself, too


def test_a_file_of_which_only_a_time_differs_was_not_written(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        os.utime(view / "a.txt", ns=(1, 2))
        assert "a.txt: metadata changed, " in yolofs("blame", "a.txt").out
        (view / "a.txt").write_bytes((view / "a.txt").read_bytes())
        assert "a.txt: metadata changed, " in yolofs("blame", "a.txt").out
        (view / "a.txt").write_text("other\n")
        assert "a.txt: written, " in yolofs("blame", "a.txt").out


def test_init_in_a_part_of_a_repository_says_that_git_lies_outside(yolofs: Program) -> None:
    top = yolofs.project / "top"
    (top / "part").mkdir(parents=True)
    assert "repository" not in yolofs("init", cwd=top / "part").err
    (top / ".git").mkdir()
    (top / "other").mkdir()
    told = yolofs("init", cwd=top / "other").err
    assert f"git's repository is {top}, outside of the project" in told
    assert f"yolofs init {top} starts" in told
    assert "repository" not in yolofs("init", cwd=top).err

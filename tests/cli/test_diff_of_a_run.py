"""``diff --run N`` shows the changes of a run, also after the host has changed the same files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.stepped import stepped

pytestmark = pytest.mark.mount

FORMS = ((), ("--list",), ("--stat",))
LARGE = "a large file\n" * 450_000
"""A text that nothing is kept of."""


@pytest.fixture
def yolofs(tmp_path: Path) -> Iterator[Program]:
    """Return the program in a project with some files."""
    project = tmp_path / "project"
    project.mkdir()
    (project / ".yolofs.toml").write_text("scratch = []\n")
    for name in ("text", "moves", "same", "mode", "gone"):
        (project / name).write_text("a\nb\n")
    (project / "binary").write_bytes(b"\0" * 9)
    (project / "large").write_text(LARGE)
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/"):
        yield program


def told(program: Program, *paths: str) -> dict[tuple[str, ...], str]:
    """Return what the first run did, in each form."""
    return {form: program("diff", "--run", "1", *form, *(("--", *paths) if paths else ())).out for form in FORMS}


def host_appends(program: Program, *names: str) -> None:
    """Let the host change files."""
    for name in names:
        with (program.project / name).open("a") as file:
            file.write("of the host\n")


def test_what_a_run_changed_stays_that_whatever_the_host_does_to_the_same_files(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text; mv moves moved; echo run >> moved; sed -i s/a/A/ same")
    before = told(yolofs)
    host_appends(yolofs, "text", "moves", "same")
    for form, seen in before.items():
        done = yolofs("diff", "--run", "1", *form)
        assert (done.out, done.err) == (seen, "")
    assert yolofs("diff", "--run", "1", "--", "text").out == before[()][before[()].index("diff --git a/text") :]
    assert list(yolofs.session.glob("diff-*")) == []


def test_a_host_edit_that_keeps_the_mtime_does_not_change_the_diff_of_a_run(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text; chmod 600 mode; echo run >> mode; echo run >> binary")
    before = told(yolofs)
    for name in ("text", "mode", "binary"):
        path = yolofs.project / name
        st = path.stat()
        path.write_bytes(path.read_bytes().replace(b"a", b"A"))
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    assert told(yolofs) == before


def test_what_the_host_has_removed_or_changed_in_the_same_way_is_shown_as_the_run_did_it(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text; sed -i s/a/A/ same; chmod 600 mode")
    before = told(yolofs)
    notes = yolofs("diff", "--run", "1").err
    (yolofs.project / "text").unlink()
    (yolofs.project / "same").write_text("A\nb\n")
    (yolofs.project / "mode").chmod(0o600)
    assert told(yolofs) == before
    assert yolofs("diff", "--run", "1").err == notes


def test_a_mode_that_a_run_set_is_told_from_the_one_that_it_found(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "chmod 755 mode binary large")
    before = told(yolofs)
    host_appends(yolofs, "mode", "binary", "large")
    (yolofs.project / "mode").chmod(0o640)
    assert told(yolofs) == before
    assert "of the host" not in before[()]
    assert "old mode 100644" in before[()]


@pytest.mark.parametrize("name", ["binary", "large"])
def test_a_file_whose_old_content_is_not_kept_is_left_out_of_the_patch_with_a_note(yolofs: Program, name: str) -> None:
    size = (yolofs.project / name).stat().st_size
    yolofs("run", "sh", "-c", f"echo run >> {name}")
    listed = yolofs("diff", "--run", "1", "--list").out
    host_appends(yolofs, name)
    done = yolofs("diff", "--run", "1", "--binary")
    assert done.out == ""
    known = "9 B" if name == "binary" else "5.6 MiB"
    assert f"note: {name} is left out: base has changed since" in done.err
    assert f"all that is known is that it had {known}" in done.err
    assert yolofs("diff", "--run", "1", "--list").out == listed
    document = yolofs("diff", "--run", "1", "--json").json
    (change,) = document["changes"]
    assert (change["kind"], change["old"]["size"], change["new"]["size"]) == ("M", size, size + 4)
    assert document["unknown"] == [{"path": str(yolofs.project / name)}]


@pytest.mark.parametrize("host", ["changes", "removes", "replaces"])
def test_what_a_run_deleted_and_the_host_changed_too_is_noted_as_unknown(yolofs: Program, host: str) -> None:
    yolofs("run", "sh", "-c", "rm gone")
    path = yolofs.project / "gone"
    if host == "changes":
        host_appends(yolofs, "gone")
    elif host == "removes":
        path.unlink()
    else:
        path.rename(yolofs.project / "elsewhere")
        path.write_text("of the host\n")
    done = yolofs("diff", "--run", "1")
    assert done.out == ""
    has = "base has nothing there any more" if host == "removes" else "base has changed since"
    assert f"note: gone is left out: {has}, and what the run found there is not kept" in done.err
    assert "D  gone" in yolofs("diff", "--run", "1", "--list").out


def test_a_file_that_a_run_moved_and_the_host_removed_is_a_rename_still(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "mv moves moved")
    before = told(yolofs)
    (yolofs.project / "moves").unlink()
    assert told(yolofs) == before
    assert "rename to moved" in before[()]


def test_after_a_commit_of_ours_the_run_still_shows_what_it_wrote(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text; sed -i s/a/A/ same; echo run >> binary; rm gone")
    before = told(yolofs, "text", "same")
    host_appends(yolofs, "text", "same", "binary", "gone")
    yolofs("commit", "--yes", "--ours")
    assert told(yolofs, "text", "same") == before
    done = yolofs("diff", "--run", "1")
    assert "of the host" not in done.out
    assert "note: binary is left out: base has changed since" in done.err
    assert "note: gone is left out: base has changed since" in done.err


def test_after_a_crash_before_the_texts_were_put_away_the_run_still_shows_what_it_wrote(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text")
    before = told(yolofs)
    host_appends(yolofs, "text")
    yolofs("commit", "--yes", "--ours")
    (yolofs.session / "commits/1/bases").rename(yolofs.session / "files/bases")
    assert told(yolofs) == before


def test_the_diff_of_a_run_leaves_out_what_a_merge_added(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text")
    before = told(yolofs)
    (yolofs.project / "text").write_text("of the host\na\nb\n")
    yolofs("commit", "--yes", "--merge")
    assert (yolofs.project / "text").read_text() == "of the host\na\nb\nrun\n"
    assert told(yolofs) == before


def test_the_diff_of_a_run_stays_the_same_over_two_later_commits(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text; echo two >> same")
    before = told(yolofs)
    host_appends(yolofs, "text", "same")
    yolofs("commit", "--yes", "--ours", "text")
    assert told(yolofs) == before
    yolofs("commit", "--yes", "--ours")
    yolofs("run", "sh", "-c", "echo more >> text")
    yolofs("commit", "--yes")
    assert told(yolofs) == before


def test_texts_kept_for_merging_move_into_their_commit_and_count_for_its_size(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo run >> text")
    yolofs("commit", "--yes")
    bases = yolofs.session / "commits/1/bases"
    assert os.stat(bases).st_nlink == 1
    assert b"a\nb\n" in bases.read_bytes()
    assert not (yolofs.session / "files/bases").exists()


def test_removed_directories_hard_links_and_modes_are_shown_as_the_run_found_them(yolofs: Program) -> None:
    project = yolofs.project
    (project / "dir/sub").mkdir(parents=True)
    for name in ("dir/sub/below", "one"):
        (project / name).write_text("a\nb\n")
    os.link(project / "one", project / "two")
    yolofs("run", "sh", "-c", "echo run >> dir/sub/below; echo run >> one; chmod 700 dir")
    before = told(yolofs)
    (project / "dir/sub/below").unlink()
    (project / "dir/sub").rmdir()
    (project / "dir").chmod(0o700)
    host_appends(yolofs, "two")
    assert told(yolofs) == before
    yolofs("commit", "--yes", "--ours")
    assert told(yolofs) == before


@pytest.mark.parametrize("selected", [(), ("text",)], ids=["all", "a part"])
def test_a_run_that_went_on_during_a_commit_is_shown_before_and_after_it(
    yolofs: Program, selected: tuple[str, ...]
) -> None:
    with stepped(yolofs, "--no-review") as going_on:
        going_on.do("echo before >> text; echo stays > stays")
        yolofs("commit", "--yes", *selected)
        going_on.do("echo after >> text; echo after > new; rm gone")
    for _ in ("at once", "after another commit"):
        done = yolofs("diff", "--run", "1")
        added = [line for line in done.out.splitlines() if line in ("+before", "+after", "+stays")]
        assert sorted(added[:2]) == ["+before", "+stays"]
        assert added[2:] == ["+after", "+after"]
        assert "note: this was before commit 1\n" in done.err
        assert {"new", "gone", "text", "stays"} == set(yolofs("diff", "--run", "1", "--name-only").out.split())
        document = yolofs("diff", "--run", "1", "--json").json
        (earlier,) = document["earlier"]
        names = [[Path(change["path"]).name for change in part["changes"]] for part in (earlier, document)]
        assert [sorted(some) for some in names] == [["stays", "text"], ["gone", "new", "text"]]
        yolofs("commit", "--yes")


def test_the_diff_of_a_run_has_all_names_of_a_file_that_it_wrote_by_one(yolofs: Program) -> None:
    os.link(yolofs.project / "text", yolofs.project / "link")
    (yolofs.project / "below").mkdir()
    os.link(yolofs.project / "text", yolofs.project / "below/link")
    yolofs("run", "--", "sh", "-c", "echo c >> text; ln text fresh")
    yolofs("run", "--", "sh", "-c", "echo d >> below/link; echo x > other")
    names = {"text", "link", "below/link", "fresh"}
    for _ in range(2):
        assert set(yolofs("diff", "--run", "1", "--name-only").out.split()) == names
        assert set(yolofs("diff", "--run", "2", "--name-only").out.split()) == names | {"other"}
        assert "+c\n" in yolofs("diff", "--run", "1", "link").out
        yolofs("commit", "--yes")

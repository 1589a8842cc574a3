"""The host removes a directory in which something is staged, or a file whose content base alone
had.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program


def tree(top: Path) -> dict[str, str | None]:
    """Return the content of each file below a directory; None of directories."""
    return {str(path.relative_to(top)): None if path.is_dir() else path.read_text() for path in sorted(top.rglob("*"))}


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """Return the program where the host has removed a directory in which work of each kind is
    staged.
    """
    project = tmp_path / "project"
    for directory in ("gone/deep", "gone/moved", "gone/plain", "stays"):
        (project / directory).mkdir(parents=True)
    for name in ("gone/deep/changed", "gone/deleted", "gone/renamed", "gone/moved/old", "gone/plain/file", "stays/in"):
        (project / name).write_text("base\n")
    program = Program(project)
    program.start_session()
    view = CoreDriver(os.fsencode(project))
    view.append(b"gone/deep/changed", b"more\n")
    view.mkdir(b"gone/deep/made", 0o755)
    view.create(b"gone/deep/made/new", b"new\n", 0o644)
    view.unlink(b"gone/deleted")
    view.rename(b"gone/renamed", b"gone/other")
    view.rename(b"gone/moved", b"moved")
    view.create(b"moved/new", b"new\n", 0o644)
    view.rename(b"stays/in", b"gone/in")
    view.close()
    shutil.rmtree(project / "gone")
    return program


AFTER = {
    "gone": None,
    "gone/deep": None,
    "gone/deep/changed": "base\nmore\n",
    "gone/deep/made": None,
    "gone/deep/made/new": "new\n",
    "gone/in": "base\n",
    "moved": None,
    "moved/new": "new\n",
    "stays": None,
}
"""All that is staged and not made of what the host has removed."""


def files(program: Program) -> dict[str, str | None]:
    return {name: what for name, what in tree(program.project).items() if not name.startswith(".yolofs")}


def test_ours_makes_the_directories_again_for_the_user_alone(yolofs: Program) -> None:
    done = yolofs("commit", "--ours", "--yes")
    assert files(yolofs) == AFTER
    for name in ("gone", "gone/deep", "moved"):
        assert (yolofs.project / name).stat().st_mode & 0o7777 == 0o700
    for name in ("gone/", "gone/deep/", "moved/"):
        assert f"{name}: made again, with mode 700, as it is gone from base\n" in done.err
    assert yolofs("status", "--json").json["changes"] == []


def test_ours_of_one_path_makes_only_the_directories_above_it_again(yolofs: Program) -> None:
    yolofs("commit", "--ours", "--yes", "gone/deep/changed")
    assert files(yolofs) == {
        name: what for name, what in AFTER.items() if name in ("gone", "gone/deep", "gone/deep/changed", "stays")
    } | {"stays/in": "base\n"}
    yolofs("commit", "--ours", "--yes")
    assert files(yolofs) == AFTER


def test_ours_puts_the_directory_in_the_place_of_a_file_of_the_host_and_keeps_that(yolofs: Program) -> None:
    (yolofs.project / "gone").write_text("host\n")
    yolofs("commit", "--ours", "--yes")
    assert files(yolofs) == AFTER
    assert "host\n" in [
        path.read_text() for path in (yolofs.session / "commits/1/replaced").iterdir() if path.is_file()
    ]


def test_undo_removes_the_directories_that_ours_made_again(yolofs: Program) -> None:
    before = files(yolofs)
    yolofs("commit", "--ours", "--yes")
    yolofs("undo", "--yes")
    assert files(yolofs) == before


@pytest.mark.mount
def test_under_a_mount_ours_makes_the_directories_again_and_the_view_shows_them(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        yolofs("commit", "--ours", "--yes")
        assert (view / "gone/deep/changed").read_text() == "base\nmore\n"
        (view / "gone/deep/more").write_text("goes on\n")
    assert files(yolofs) == AFTER


@pytest.mark.parametrize("options", [["--merge", "--ours"], ["--ours"], ["--force"]])
def test_a_dry_run_names_the_directories_that_would_be_made_again_and_does_nothing(
    yolofs: Program, options: list[str]
) -> None:
    before = files(yolofs)
    done = yolofs("commit", "--dry-run", *options)
    for name in ("gone/", "gone/deep/", "moved/"):
        assert f"{name}: it would be made again, with mode 700, as it is gone from base\n" in done.err
    assert files(yolofs) == before
    assert "gone from base" in yolofs("status").out


def test_a_dry_run_of_a_merge_refuses_files_in_a_gone_directory_and_offers_ours(yolofs: Program) -> None:
    refusal = yolofs("commit", "--dry-run", "--merge", code=9).err
    assert "gone/deep/changed: " in refusal
    assert "yolofs commit --ours" in refusal


def test_a_dry_run_of_theirs_says_what_would_be_dropped(yolofs: Program) -> None:
    done = yolofs("commit", "--dry-run", "--theirs")
    assert "gone/deep/changed: base's version would be taken" in done.err


def test_a_merge_leaves_gone_directories_staged_and_commits_the_rest(yolofs: Program) -> None:
    view = CoreDriver(os.fsencode(yolofs.project))
    view.create(b"apart", b"apart\n", 0o644)
    view.close()
    done = yolofs("commit", "--yes", "--merge", code=9)
    assert files(yolofs) == {"apart": "apart\n", "stays": None, "stays/in": "base\n"}
    assert "yolofs commit --ours" in done.err
    yolofs("commit", "--ours", "--yes")
    assert files(yolofs) == AFTER | {"apart": "apart\n"}


def test_a_directory_whose_mode_is_staged_is_made_again_with_that(yolofs: Program) -> None:
    yolofs("commit", "--theirs", "--yes")
    (yolofs.project / "top/mode").mkdir(parents=True)
    view = CoreDriver(os.fsencode(yolofs.project))
    view.chmod(b"top/mode", 0o750)
    view.create(b"top/mode/new", b"new\n", 0o644)
    view.close()
    shutil.rmtree(yolofs.project / "top")
    yolofs("commit", "--ours", "--yes", "top/mode/new")
    assert (yolofs.project / "top/mode/new").read_text() == "new\n"
    assert (yolofs.project / "top/mode").stat().st_mode & 0o7777 == 0o750
    assert yolofs("status", "--json").json["changes"] == []


def test_an_early_commit_makes_no_directory_again_and_names_the_command_that_does(yolofs: Program) -> None:
    yolofs("snapshot", "early")
    refusal = yolofs("commit", "--ours", "--yes", "--up-to", "early", code=9).err
    assert str(yolofs.project / "gone/") in refusal
    assert "yolofs commit --ours PATH" in refusal


def test_theirs_drops_what_is_staged_in_a_gone_directory(yolofs: Program) -> None:
    yolofs("commit", "--theirs", "--yes")
    assert files(yolofs) == {"stays": None, "stays/in": "base\n"}
    assert yolofs("status", "--json").json["changes"] == []


def test_a_script_makes_no_directory_again_and_names_the_command_that_does(yolofs: Program) -> None:
    refusal = yolofs("commit", "--ours", "--script", code=9).err
    assert str(yolofs.project / "gone/") in refusal
    assert "yolofs commit --ours PATH" in refusal


@pytest.fixture
def lost(yolofs: Program) -> Program:
    """Return the program where nothing but the mode of a file is staged that the host has
    removed.
    """
    yolofs("commit", "--theirs", "--yes")
    (yolofs.project / "mode").write_text("base\n")
    view = CoreDriver(os.fsencode(yolofs.project))
    view.chmod(b"mode", 0o600)
    view.close()
    (yolofs.project / "mode").unlink()
    return yolofs


def test_ours_is_not_offered_for_a_file_whose_content_base_alone_had(lost: Program) -> None:
    for words in (["status"], ["commit", "--yes"], ["commit", "--yes", "--merge"], ["commit", "--dry-run"]):
        done = lost(*words, code=0 if words == ["status"] else 9)
        assert "--ours" not in done.err.partition("hint:")[2] + done.err.partition("note:")[2], words
        assert "--theirs" in done.err, words


@pytest.mark.parametrize("options", [["--yes"], ["--dry-run"], ["--script"]])
def test_ours_is_refused_for_a_file_whose_content_base_alone_had(lost: Program, options: list[str]) -> None:
    refusal = lost("commit", "--ours", *options, code=9).err
    assert "mode" in refusal
    assert "its content was in base alone" in refusal
    assert "yolofs commit --theirs" in refusal
    assert not (lost.project / "mode").exists()


def test_ours_takes_all_files_but_the_one_whose_content_base_alone_had(lost: Program) -> None:
    (lost.project / "both").write_text("base\n")
    view = CoreDriver(os.fsencode(lost.project))
    view.append(b"both", b"ours\n")
    view.close()
    (lost.project / "both").write_text("host\n")
    done = lost("commit", "--ours", "--yes", code=9)
    assert (lost.project / "both").read_text() == "base\nours\n"
    assert "1 path stays staged" in done.err
    lost("commit", "--theirs", "--yes")
    assert lost("status", "--json").json["changes"] == []


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_the_age_of_a_change_in_a_directory_that_the_view_has_not_is_that_of_the_change(
    tmp_path: Path, *, replaced: bool
) -> None:
    project = tmp_path / "project"
    (project / "dir/deep").mkdir(parents=True)
    (project / "dir/deep/file").write_text("base\n")
    program = Program(project)
    program.start_session()
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"dir/deep/file")
    view.rmdir(b"dir/deep")
    view.rmdir(b"dir")
    if replaced:
        view.create(b"dir", b"now a file\n", 0o644)
    view.close()
    (project / "dir/deep/file").write_text("by the host\n")
    (drift,) = program("status", "--json").json["drift"]
    assert drift["base_ns"] == (project / "dir/deep/file").stat().st_ctime_ns


LEFT_IN_THERE: dict[str, tuple[list[tuple[Any, ...]], list[str], int, str]] = {
    "another file": ([("append", b"top/low/deep/other", b"more\n")], ["top/file"], 0, "top/low/deep/other"),
    "a new file": ([("create", b"top/low/deep/new", b"new\n", 0o644)], ["top/file"], 0, "top/low/deep/new"),
    "a file moved in": ([("rename", b"out", b"top/low/deep/new")], ["top/file"], 0, "top/low/deep/new"),
    "metadata alone": ([("utimes", b"top/low/deep/other", 10**18)], [], 9, "top/low/deep/other"),
    "a file taken away": ([("unlink", b"top/low/deep/other")], [], 0, ""),
    "a directory taken away": ([("unlink", b"top/low/deep/other"), ("rmdir", b"top/low/deep")], [], 0, ""),
    "a file moved in there": ([("rename", b"top/low/deep/other", b"top/low/new")], [], 0, ""),
    "a file moved out": ([("rename", b"top/low/deep/other", b"new")], [], 0, ""),
    "a directory moved": ([("rename", b"top/low/deep", b"top/new")], [], 0, ""),
}
"""What else is staged deep in a directory that the host has removed; the paths of which the staged
version is taken (none: all), how that ends, and at what something stays staged.
"""


@pytest.mark.parametrize("left", LEFT_IN_THERE)
def test_a_directory_is_made_again_whatever_else_is_staged_deep_in_it(tmp_path: Path, left: str) -> None:
    work, paths, code, stays = LEFT_IN_THERE[left]
    project = tmp_path / "project"
    (project / "top/low/deep").mkdir(parents=True)
    for name in ("top/file", "top/low/deep/other", "out"):
        (project / name).write_text("base\n")
    program = Program(project)
    program.start_session()
    view = CoreDriver(os.fsencode(project))
    view.append(b"top/file", b"more\n")
    for name, *arguments in work:
        getattr(view, name)(*arguments)
    view.close()
    shutil.rmtree(project / "top")
    done = program("commit", "--ours", "--yes", *paths, code=code)
    assert "top/: made again" in done.err
    assert (project / "top/file").read_text() == "base\nmore\n"
    assert not (project / "top/low/deep").exists()
    staged = [change["path"] for change in program("status", "--json").json["changes"]]
    assert [path for path in staged if not path.endswith(("/top/low", "/top/low/deep"))] == (
        [str(project / stays)] if stays else []
    )
    program("commit", "--yes", "--theirs" if code else "--ours")
    assert program("status", "--json").json["changes"] == []
    assert not stays or code or (project / stays).exists()

"""What git ignores and tracks, asked of the real git about real work trees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from yolofs.hostcode.git_ignored import CheckedPath, Repositories
from yolofs.paths import RelPath
from yolofs.store.base import Base


def git(where: Path, *words: str) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    name = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *name, *words], cwd=where, check=True, capture_output=True, env=env)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a work tree with a commit, as a user without settings of git sees it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    tree = tmp_path / "base/tree"
    tree.mkdir(parents=True)
    git(tree, "init", "-q")
    (tree / ".gitignore").write_text("*.o\n/build/\nonly-directories/\n")
    (tree / "kept.o").write_text("")
    git(tree, "add", "-f", ".")
    git(tree, "commit", "-q", "-m", "first")
    return tree


def ignored(tree: Path, *paths: str) -> set[str]:
    """Return which paths are ignored, given relative to the work tree; a directory ends in a
    slash.
    """
    base = Base(os.fsencode(tree.parent))
    asked = [CheckedPath(RelPath(os.fsencode(f"{tree.name}/{path.rstrip('/')}")), path.endswith("/")) for path in paths]
    found = Repositories(base, os.fsencode(tree.parent.parent)).ignored(asked)
    return {os.fsdecode(path).partition("/")[2] for path in found}


def test_files_directories_and_what_is_in_them_are_told_by_gits_patterns(tree: Path) -> None:
    (tree / "sub").mkdir()
    (tree / "sub/.gitignore").write_text("!*.o\nhere\n")
    assert ignored(
        tree, "a.o", "sub/a.o", "sub/here", "here", "build/x", "sub/build/x", "only-directories/", "x/only-directories"
    ) == {"a.o", "sub/here", "build/x", "only-directories"}


def test_what_is_tracked_is_not_ignored_nor_is_a_directory_with_something_tracked(tree: Path) -> None:
    (tree / "build").mkdir()
    (tree / "build/kept").write_text("")
    git(tree, "add", "-f", "build/kept")
    assert ignored(tree, "kept.o", "build/", "build/other") == {"build/other"}


def test_the_exclude_file_and_the_users_own_count(tree: Path, tmp_path: Path) -> None:
    (tree / ".git/info/exclude").write_text("excluded\n")
    (tmp_path / ".config/git").mkdir(parents=True)
    (tmp_path / ".config/git/ignore").write_text("of-the-user\n")
    assert ignored(tree, "excluded", "of-the-user", "other") == {"excluded", "of-the-user"}


def test_a_linked_work_tree_has_the_exclude_file_of_its_repository_and_an_index_of_its_own(tree: Path) -> None:
    (tree / ".git/info/exclude").write_text("excluded\n")
    git(tree, "worktree", "add", "-q", str(tree.parent / "other"))
    git(tree, "rm", "-q", "--cached", "kept.o")
    assert ignored(tree.parent / "other", "excluded", "a.o", "kept.o") == {"excluded", "a.o"}
    assert ignored(tree, "kept.o") == {"kept.o"}


def test_a_repository_in_another_one_has_its_own_rules(tree: Path) -> None:
    (tree / "inner").mkdir()
    git(tree / "inner", "init", "-q")
    (tree / "inner/.gitignore").write_text("*.log\n")
    assert ignored(tree, "inner/a.log", "inner/a.o", "a.log") == {"inner/a.log"}


@pytest.mark.parametrize("what", ["split", "torn", "a fifo"])
def test_an_index_that_cannot_be_read_counts_as_if_all_were_tracked(tree: Path, what: str) -> None:
    index = tree / ".git/index"
    if what == "split":
        git(tree, "update-index", "--split-index")
    elif what == "torn":
        index.write_bytes(index.read_bytes()[:40])
    else:
        index.unlink()
        os.mkfifo(index)
    assert ignored(tree, "a.o") == set()


def test_an_ignore_file_that_is_a_link_a_fifo_or_huge_is_passed_over(tree: Path) -> None:
    for name, make in (
        ("link", lambda path: path.symlink_to("/etc/passwd")),
        ("fifo", os.mkfifo),
        ("huge", lambda path: os.truncate(_made(path), 1 << 31)),
    ):
        (tree / name).mkdir()
        make(tree / name / ".gitignore")
        assert ignored(tree, f"{name}/a.o", f"{name}/a") == {f"{name}/a.o"}


def _made(path: Path) -> Path:
    path.touch()
    return path


def test_outside_of_any_repository_nothing_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "base/plain").mkdir(parents=True)
    (tmp_path / "base/plain/.gitignore").write_text("*\n")
    assert ignored(tmp_path / "base/plain", "a") == set()


def test_names_of_any_bytes_are_asked_about(tree: Path) -> None:
    names = [os.fsdecode(name) for name in (b"\xff.o", b"new\nline.o", b":(top)x.o", b"-x.o", b"*.o", b'"q".o')]
    assert ignored(tree, *names) == set(names)


def test_a_path_of_two_thousand_names_is_told_as_any_other(tree: Path) -> None:
    deep = "/".join("d" * 1500)
    assert ignored(tree, f"{deep}/a.o") == {f"{deep}/a.o"}


def test_patterns_without_end_take_ten_seconds_once_and_not_of_each_repository(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def slow(git: str, directory: bytes, paths: object, timeout_s: float) -> list[bytes]:
        calls.append(timeout_s)
        raise subprocess.TimeoutExpired(git, timeout_s)

    monkeypatch.setattr("yolofs.hostcode.git_ignored._ask", slow)
    for name in ("one", "two"):
        (tree / name).mkdir()
        git(tree / name, "init", "-q")
    assert ignored(tree, "one/a.o", "two/a.o", "a.o") == set()
    assert len(calls) == 1


def test_ignore_files_without_end_are_not_copied(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yolofs.hostcode.git_ignored._MOST_COPIED_BYTES", 1000)
    (tree / ".gitignore").write_text("*.o\n" + "#" * 400)
    for name in ("one", "two"):
        (tree / name).mkdir()
        os.link(tree / ".gitignore", tree / name / ".gitignore")
    assert ignored(tree, "one/a.o") == {"one/a.o"}
    assert ignored(tree, "one/a.o", "two/a.o") == set()

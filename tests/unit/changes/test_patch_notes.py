"""What git cannot say is noted beside the patch, and what it refuses is left out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from tests.unit.changes.patching import check, files, git_apply, make, patch_of, repository, scribe, target
from yolofs.changes.changes import Change, ChangeKind, compare
from yolofs.changes.patch import write_patch
from yolofs.changes.patch_notes import is_refused_by_git
from yolofs.state.tree import Tree
from yolofs.text.git_binary import NO_BLOB, hash_blob

__all__ = ["repository", "scribe", "target"]

LINK_NAMES = b".gitmodules x/.GITmodules. .gitmodules:x gitmod~4 gitmod~5 gi7eba~9 gi7eb~10 g~123456 gi7eba~10".split()


def git_refuses(directory: Path, path: bytes, is_symlink: bool) -> bool:
    """Ask git whether it would make an empty file (or a symlink to nothing) at this path."""
    name = b'"%b"' % path.replace(b"\\", b"\\\\")
    mode = b"120000" if is_symlink else b"100644"
    patch = b"diff --git %b %b\nnew file mode %b\nindex %b..%b\n" % (
        name[:1] + b"a/" + name[1:],
        name[:1] + b"b/" + name[1:],
        mode,
        NO_BLOB,
        hash_blob(b""),
    )
    done = subprocess.run(["git", "apply", "--check"], input=patch, cwd=directory, capture_output=True, check=False)
    assert done.returncode == 0 or b"invalid path" in done.stderr, done.stderr
    return done.returncode != 0


class TestNotes:
    def notes(self, scribe: Scribe, target: Path) -> list[str]:
        """Return the notes, having seen that the rest of the patch applies."""
        patch, notes = patch_of(scribe)
        if patch:
            git_apply(target, patch)
        return notes

    def test_a_mode_that_git_does_not_know_is_noted(self, scribe: Scribe, target: Path) -> None:
        scribe.chmod(b"text", 0o640)
        scribe.chmod(b"d", 0o700)
        scribe.write(b"new", b"", mode=0o600)
        scribe.chmod(b"tool", 0o4755)
        assert self.notes(scribe, target) == [
            "mode 0700 of d cannot be expressed by git",
            "mode 0600 of new cannot be expressed by git",
            "mode 0640 of text cannot be expressed by git",
            "mode 4755 of tool cannot be expressed by git",
        ]

    def test_a_mode_that_git_apply_would_lose_is_noted_though_only_the_content_changed(
        self, scribe: Scribe, target: Path
    ) -> None:
        os.chmod(scribe.base.path(b"text"), 0o600)
        scribe.write(b"text", b"changed\n")
        assert self.notes(scribe, target) == ["mode 0600 of text cannot be expressed by git"]

    def test_a_changed_time_is_noted(self, scribe: Scribe, target: Path) -> None:
        scribe.utime(b"text", 5)
        assert self.notes(scribe, target) == ["the changed time of text cannot be expressed by git"]

    def test_an_empty_directory_that_comes_goes_or_moves_is_noted(self, scribe: Scribe, target: Path) -> None:
        os.mkdir(scribe.base.path(b"hollow"))
        os.mkdir(scribe.base.path(b"hole"))
        scribe.rename(b"hollow", b"moved")
        scribe.remove(b"hole")
        scribe.mkdir(b"empty")
        scribe.mkdir(b"full")
        scribe.mkdir(b"full/er")
        scribe.write(b"full/er/f", b"")
        assert self.notes(scribe, target) == [
            "empty is an empty directory",
            "moved is an empty directory",
            "hole is an empty directory that was deleted",
            "hollow is an empty directory that was deleted",
        ]

    def test_a_fifo_is_noted_as_unknown_to_git(self, scribe: Scribe, target: Path) -> None:
        scribe.mkfifo(b"p")
        scribe.remove(b"text")
        scribe.mkfifo(b"text")
        assert self.notes(scribe, target) == [
            "p is a fifo, which git does not know",
            "text is a fifo, which git does not know",
        ]
        assert b"text" not in files(target)

    @pytest.mark.parametrize("path", [b".git/config", b"d/.git", b".GIT/x", b"git~1/x", b".git ./x", b".git:x"])
    def test_a_path_that_git_refuses_is_noted_and_the_rest_of_the_patch_applies(
        self, scribe: Scribe, target: Path, path: bytes
    ) -> None:
        make(scribe, path)
        scribe.write(b"text", b"changed\n")
        notes = self.notes(scribe, target)
        assert f"{path.decode()} is a path that git refuses in patches" in notes
        assert files(target)[b"text"] == (b"100644", b"changed\n")

    def test_files_of_one_repository_that_git_refuses_are_one_note(self, scribe: Scribe, target: Path) -> None:
        for path in (b"d/.git/config", b"d/.git/HEAD", b"d/.git/refs/head"):
            make(scribe, path)
        assert self.notes(scribe, target) == ["d/.git holds 3 changes that git refuses in patches"]

    @pytest.mark.parametrize("path", [b".gitx", b"x.git", b".gitignore", b"git~2", b"d/.gitmodules", b".git x"])
    def test_a_path_that_only_looks_as_if_git_refused_it_is_in_the_patch(
        self, scribe: Scribe, target: Path, path: bytes
    ) -> None:
        make(scribe, path)
        check(scribe, target)

    @pytest.mark.parametrize("is_symlink", [False, True])
    @pytest.mark.parametrize("name", b".git .giT .git. .git\\x .git:x git~1 git~1.: git~2 .gitx x.git .git/x".split())
    def test_is_refused_by_git_tells_the_names_that_git_refuses(
        self, target: Path, name: bytes, is_symlink: bool
    ) -> None:
        assert is_refused_by_git(name, is_symlink=is_symlink) == git_refuses(target, name, is_symlink)
        assert is_refused_by_git(b"d/" + name, is_symlink=is_symlink) == git_refuses(target, b"d/" + name, is_symlink)

    @pytest.mark.parametrize("is_symlink", [False, True])
    @pytest.mark.parametrize("name", LINK_NAMES)
    def test_what_git_refuses_as_a_symlink_is_known(self, target: Path, name: bytes, is_symlink: bool) -> None:
        assert is_refused_by_git(name, is_symlink=is_symlink) == git_refuses(target, name, is_symlink)

    def test_a_symlink_called_gitmodules_is_noted_as_refused_by_git(self, scribe: Scribe, target: Path) -> None:
        scribe.symlink(b".gitmodules", b"x")
        assert self.notes(scribe, target) == [".gitmodules is a path that git refuses in patches"]

    def test_a_file_larger_than_any_patch_is_left_out(self, scribe: Scribe, target: Path) -> None:
        """Git takes none of that size, and a sparse file costs nobody anything but who would read
        it.
        """
        scribe.write(b"text", b"changed\n")
        os.truncate(scribe.store.path(scribe.copy_up(b"other")), 10 << 40)
        assert self.notes(scribe, target) == ["other is left out, as it has 10,240.0 GiB: no patch takes more than 1"]
        assert files(target)[b"text"] == (b"100644", b"changed\n")

    def test_a_file_that_cannot_be_read_is_left_out_of_the_patch(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"text", b"changed\n")
        scribe.write(b"other", b"changed\n")
        parts: list[bytes] = []
        found = compare(Tree(), scribe.tree, scribe.base, scribe.store)
        os.unlink(scribe.base.path(b"other"))
        notes = write_patch(found, parts.append)
        assert notes == ["other is left out, as it cannot be read: No such file or directory"]
        git_apply(target, b"".join(parts))

    def test_data_that_the_host_replaced_by_a_fifo_does_not_block(self, scribe: Scribe) -> None:
        scribe.chmod(b"text", 0o755)
        scribe.rename(b"text", b"new")
        found: list[Change] = compare(Tree(), scribe.tree, scribe.base, scribe.store, expand_renames=True)
        assert [change.kind for change in found] == [ChangeKind.RENAMED]
        os.unlink(scribe.base.path(b"text"))
        os.mkfifo(scribe.base.path(b"text"))
        found = compare(Tree(), scribe.tree, scribe.base, scribe.store, expand_renames=True)
        write_patch(found, bytes)

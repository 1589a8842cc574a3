"""The patch, given to the real git: it applies to base and makes the view's files; what git cannot
say is noted.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.scribe import Scribe, develop
from yolofs.changes.changes import Change, Kind, compare
from yolofs.changes.patch import write_patch
from yolofs.changes.patch_notes import is_refused_by_git
from yolofs.paths import RelPath
from yolofs.state.tree import Tree
from yolofs.text.git_binary import NO_BLOB, hash_blob

TEXT = b"".join(b"line %d\n" % number for number in range(12))
BINARY = bytes(range(256)) * 300
AWKWARD = [
    b"with space",
    b" leading and trailing ",
    b"tab\there",
    b"new\nline",
    b'quote"',
    b"back\\slash",
    b"100%",
    b"\xff\xfe",
    "grün".encode(),
    b"-dash",
    b"a b",
    b"\x7f",
    b"=>",
]

LINK_NAMES = b".gitmodules x/.GITmodules. .gitmodules:x gitmod~4 gitmod~5 gi7eba~9 gi7eb~10 g~123456 gi7eba~10".split()


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    """A view of a base with text, binary, executable and empty files, a symlink and a directory."""
    base = tmp_path / "base"
    (base / "d" / "sub").mkdir(parents=True)
    for name in ("text", "d/x", "d/sub/z", "other"):
        (base / name).write_bytes(name.encode() + b"\n" + TEXT)
    (base / "binary").write_bytes(BINARY)
    (base / "tool").write_bytes(b"#!/bin/sh\n")
    (base / "none").write_bytes(b"")
    (base / "link").symlink_to("text")
    for path in base.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.name == "tool" else 0o644)
    return Scribe(bytes(base), bytes(tmp_path / "store"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository's own directory, to be copied."""
    directory = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "--template=", str(directory)], check=True)
    return directory / ".git"


@pytest.fixture(params=["in a repository", "outside"])
def target(
    request: pytest.FixtureRequest, scribe: Scribe, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of base for the patch to be applied to."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    directory = tmp_path / "target"
    shutil.copytree(os.fsdecode(scribe.base.root), directory, symlinks=True)
    if request.param == "in a repository":
        shutil.copytree(repository, directory / ".git")
    return directory


def patch_of(scribe: Scribe, *, prefix: bytes = b"", max_text_bytes: int = 1 << 20) -> tuple[bytes, list[str]]:
    parts: list[bytes] = []
    found = compare(Tree(), scribe.tree, scribe.base, scribe.store, expand_renames=True)
    notes = write_patch(found, parts.append, prefix=RelPath(prefix), max_text_bytes=max_text_bytes, store=scribe.store)
    return b"".join(parts), notes


def git_apply(directory: Path, patch: bytes, *options: str) -> None:
    command = ["git", "apply", "--whitespace=nowarn", *options]
    done = subprocess.run(command, input=patch, cwd=directory, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace") + patch.decode(errors="replace")[:5000]


def files(directory: Path) -> dict[bytes, tuple[bytes, bytes]]:
    """Return all files but git's own as mode (as git has it) and content."""
    found = {}
    for parent, directories, names in os.walk(bytes(directory)):
        if b".git" in directories:
            directories.remove(b".git")
        for name in (*directories, *names):
            path = os.path.join(parent, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                found[os.path.relpath(path, bytes(directory))] = (b"120000", os.readlink(path))
            elif stat.S_ISREG(st.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
                mode = b"100755" if st.st_mode & 0o100 else b"100644"
                found[os.path.relpath(path, bytes(directory))] = (mode, content)
    return found


def view_files(scribe: Scribe) -> dict[bytes, tuple[bytes, bytes]]:
    shots = develop(scribe.tree, scribe.base, scribe.store)
    modes = {stat.S_IFREG: (b"100644", b"100755"), stat.S_IFLNK: (b"120000", b"120000")}
    return {
        path: (modes[shot.kind][bool(shot.mode & 0o100)], shot.content)
        for path, shot in shots.items()
        if shot.kind in modes
    }


def check(scribe: Scribe, target: Path, *, max_text_bytes: int = 1 << 20) -> bytes:
    """Check that the patch applies and makes the view's files, with nothing to note; return it."""
    patch, notes = patch_of(scribe, max_text_bytes=max_text_bytes)
    assert notes == []
    git_apply(target, patch)  # checks all of it before it does any of it
    assert files(target) == view_files(scribe)
    return patch


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


def make(scribe: Scribe, path: bytes) -> None:
    """Make a file, and its directory if need be."""
    directory = os.path.dirname(path)
    if directory and not scribe.kind(directory):
        scribe.mkdir(directory)
    scribe.write(path, b"x\n")


class TestForm:
    def test_a_patch_is_what_git_diff_writes(self, scribe: Scribe) -> None:
        scribe.write(b"text", b"text\n" + TEXT.replace(b"line 5\n", b"five\n"))
        scribe.write(b"d/new file", b"1\n2")
        scribe.remove(b"none")
        patch, _ = patch_of(scribe)
        assert patch == (
            b"diff --git a/none b/none\n"
            b"deleted file mode 100644\n"
            b"index e69de29bb2d1d6434b8b29ae775ad8c2e48c5391..0000000000000000000000000000000000000000\n"
            b"diff --git a/d/new file b/d/new file\n"
            b"new file mode 100644\n"
            b"index 0000000000000000000000000000000000000000..7a754f414cd8ac6c069ac2e25baff0f55bff8b4a\n"
            b"--- /dev/null\n"
            b"+++ b/d/new file\t\n"
            b"@@ -0,0 +1,2 @@\n"
            b"+1\n"
            b"+2\n"
            b"\\ No newline at end of file\n"
            b"diff --git a/text b/text\n"
            b"index e5151d9fd411c9be1b86ef2ffb8aaa80945e6cd5..64092024dc53839d5b57a7d6597303f24aaaa5f0 100644\n"
            b"--- a/text\n"
            b"+++ b/text\n"
            b"@@ -4,7 +4,7 @@\n"
            b" line 2\n"
            b" line 3\n"
            b" line 4\n"
            b"-line 5\n"
            b"+five\n"
            b" line 6\n"
            b" line 7\n"
            b" line 8\n"
        )

    def test_no_changes_are_an_empty_patch(self, scribe: Scribe) -> None:
        assert patch_of(scribe) == (b"", [])


class TestContent:
    def test_lines_of_a_text_come_and_go(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"text", b"start\ntext\n" + TEXT.replace(b"line 5\n", b"") + b"end, without newline")
        check(scribe, target)

    def test_newlines_at_the_end_come_and_go(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"text", (b"text\n" + TEXT)[:-1])
        scribe.write(b"new", b"no newline")
        scribe.write(b"none", b"\n")
        check(scribe, target)

    def test_crlf_and_lone_carriage_returns(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"text", (b"text\n" + TEXT).replace(b"\n", b"\r\n"))
        scribe.write(b"new", b"a\rb\r\n\r\nc\r")
        check(scribe, target)

    def test_files_become_empty_come_empty_and_go_empty(self, scribe: Scribe, target: Path) -> None:
        scribe.remove(b"none")
        scribe.write(b"new", b"")
        scribe.write(b"text", b"")
        check(scribe, target)

    def test_a_binary_file_is_a_binary_patch(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"binary", BINARY[::-1])
        scribe.write(b"new", os.urandom(70_000) + b"\0")
        scribe.write(b"text", b"now binary\0")
        patch = check(scribe, target)
        assert patch.count(b"GIT binary patch\nliteral ") == 3

    def test_binary_becomes_text_empty_or_nothing(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"binary", b"text\n")
        check(scribe, target)

    def test_a_deleted_binary_file(self, scribe: Scribe, target: Path) -> None:
        scribe.remove(b"binary")
        check(scribe, target)

    def test_large_files_are_written_as_binary_ones(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"text", TEXT * 300_000)
        scribe.write(b"other", b"small\n")
        patch = check(scribe, target, max_text_bytes=1000)
        assert patch.count(b"GIT binary patch\n") == 1

    def test_a_patch_can_be_reversed(self, scribe: Scribe, target: Path) -> None:
        before = files(target)
        scribe.write(b"binary", b"text\n")
        scribe.write(b"text", b"other\0")
        scribe.write(b"new", b"1\n")
        scribe.rename(b"d", b"e")
        git_apply(target, check(scribe, target), "-R")
        assert files(target) == before

    def test_data_that_is_still_in_base(self, scribe: Scribe, target: Path) -> None:
        scribe.chmod(b"text", 0o755)
        scribe.rename(b"text", b"moved")
        check(scribe, target)


class TestNames:
    @pytest.mark.parametrize("name", AWKWARD)
    def test_awkward_names_are_quoted_as_git_reads_them(self, scribe: Scribe, target: Path, name: bytes) -> None:
        scribe.write(name, b"new\n")
        scribe.rename(b"text", b"d/" + name)
        scribe.rename(b"binary", b"d/sub/" + name)
        scribe.write(b"d/sub/" + name, b"changed\n")
        scribe.symlink(b"link to " + name, name)
        check(scribe, target)

    @pytest.mark.parametrize("name", AWKWARD)
    def test_awkward_names_that_were_there_before(self, scribe: Scribe, target: Path, name: bytes) -> None:
        for root in (scribe.base.root, bytes(target)):
            os.mkdir(os.path.join(root, name))
            for below in (b"deleted", b"modified", b"executable", b"binary", name):
                with open(os.path.join(root, name, below), "wb") as file:
                    file.write(b"old\n")
                os.chmod(file.name, 0o644)
        scribe.remove(name + b"/deleted")
        scribe.write(name + b"/modified", b"new\n")
        scribe.chmod(name + b"/executable", 0o755)
        scribe.write(name + b"/binary", b"\0")
        scribe.rename(name + b"/" + name, name + b"/renamed " + name)
        check(scribe, target)


class TestModesAndTypes:
    def test_the_executable_bit_comes_and_goes(self, scribe: Scribe, target: Path) -> None:
        scribe.chmod(b"text", 0o755)
        scribe.chmod(b"tool", 0o644)
        scribe.write(b"other", b"changed\n")
        scribe.chmod(b"other", 0o755)
        scribe.write(b"new", b"#!\n", mode=0o755)
        patch = check(scribe, target)
        assert patch.count(b"old mode 100644\nnew mode 100755\n") == 2

    def test_a_symlink_gets_another_target_and_a_new_one_comes(self, scribe: Scribe, target: Path) -> None:
        scribe.remove(b"link")
        scribe.symlink(b"link", b"other")
        scribe.symlink(b"d/up", b"../\xff\n")
        check(scribe, target)

    def test_a_renamed_symlink_is_a_rename(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"link", b"d/link")
        assert b"rename from link\n" in check(scribe, target)

    def test_a_deleted_symlink_is_deleted(self, scribe: Scribe, target: Path) -> None:
        scribe.remove(b"link")
        check(scribe, target)

    def test_a_file_becomes_a_symlink_and_the_other_way_round(self, scribe: Scribe, target: Path) -> None:
        scribe.remove(b"text")
        scribe.symlink(b"text", b"other")
        scribe.remove(b"link")
        scribe.write(b"link", b"a file\n")
        check(scribe, target)

    def test_a_file_becomes_a_directory(self, scribe: Scribe, target: Path) -> None:
        scribe.remove(b"text")
        scribe.mkdir(b"text")
        scribe.write(b"text/a", b"1\n")
        scribe.remove(b"link")
        scribe.mkdir(b"link")
        scribe.write(b"link/a", b"1\n")
        check(scribe, target)

    def test_a_directory_becomes_a_file_or_a_symlink(self, scribe: Scribe, target: Path) -> None:
        scribe.remove(b"d/sub")
        scribe.symlink(b"d/sub", b"x")
        scribe.exchange(b"d", b"text")
        check(scribe, target)

    def test_a_file_moves_into_the_directory_that_takes_its_place(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"text", b"t")
        scribe.mkdir(b"text")
        scribe.rename(b"t", b"text/text")
        check(scribe, target)

    def test_a_directory_takes_the_place_of_a_renamed_symlink(self, scribe: Scribe, target: Path) -> None:
        scribe.exchange(b"link", b"d")
        check(scribe, target)


class TestRenames:
    def test_a_pure_one_has_no_content(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"text", b"d/text")
        patch = check(scribe, target)
        assert patch == (b"diff --git a/text b/d/text\nsimilarity index 100%\nrename from text\nrename to d/text\n")

    def test_renamed_files_with_other_content_say_how_similar_they_are(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"text", b"text\n" + TEXT.replace(b"line 5\n", b"five\n"))
        scribe.rename(b"text", b"renamed")
        scribe.write(b"binary", BINARY + b"more")
        scribe.rename(b"binary", b"d/binary")
        patch = check(scribe, target)
        assert b"similarity index 92%\nrename from text\nrename to renamed\nindex " in patch

    def test_of_a_directory_names_every_file(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"d", b"e")
        scribe.write(b"e/x", b"changed\n")
        patch = check(scribe, target)
        assert patch.count(b"rename from ") == 2

    def test_two_files_swap_their_names(self, scribe: Scribe, target: Path) -> None:
        scribe.exchange(b"text", b"other")
        check(scribe, target)

    def test_swapped_names_with_other_content(self, scribe: Scribe, target: Path) -> None:
        scribe.exchange(b"text", b"binary")
        scribe.write(b"text", b"one\n")
        scribe.write(b"binary", b"two\0")
        check(scribe, target)

    def test_a_directory_and_a_file_swap_their_names(self, scribe: Scribe, target: Path) -> None:
        scribe.exchange(b"d", b"text")
        scribe.exchange(b"text/x", b"other")
        check(scribe, target)

    def test_renames_in_a_chain_and_in_a_circle(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"none", b"5")
        scribe.rename(b"tool", b"none")
        scribe.rename(b"other", b"tool")
        scribe.rename(b"text", b"other")
        scribe.rename(b"d/x", b"text")
        scribe.rename(b"d/sub/z", b"d/x")
        scribe.rename(b"5", b"d/sub/z")
        check(scribe, target)

    def test_a_file_is_renamed_over_another(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"text", b"other")
        scribe.write(b"text", b"new\n")
        check(scribe, target)

    def test_an_unexpanded_list_is_refused(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"e")
        found = compare(Tree(), scribe.tree, scribe.base, scribe.store)
        with pytest.raises(ValueError, match="expand_renames"):
            write_patch(found, bytes)


class TestPrefix:
    def test_paths_are_relative_to_it(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"d/x", b"changed\n")
        scribe.rename(b"d/sub/z", b"d/z")
        patch, notes = patch_of(scribe, prefix=b"d")
        assert notes == []
        git_apply(target, patch, "--directory=d")
        assert files(target) == view_files(scribe)

    def test_moves_across_it_are_deletions_and_additions(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"d/x", b"x")
        scribe.rename(b"text", b"d/text")
        patch, _ = patch_of(scribe, prefix=b"d")
        assert b"rename" not in patch
        git_apply(target, patch, "--directory=d")
        inside = {path: file for path, file in view_files(scribe).items() if path.startswith(b"d/")}
        assert {path: file for path, file in files(target).items() if path.startswith(b"d/")} == inside

    def test_what_is_outside_is_noted(self, scribe: Scribe) -> None:
        scribe.write(b"text", b"changed\n")
        assert patch_of(scribe, prefix=b"d") == (b"", ["text is outside of the patch's directory"])

    def test_notes_name_paths_as_the_patch_does(self, scribe: Scribe) -> None:
        scribe.mkdir(b"d/empty")
        scribe.mkfifo(b"d/p")
        make(scribe, b"d/.git/config")
        scribe.chmod(b"d", 0o700)
        assert patch_of(scribe, prefix=b"d")[1] == [
            "mode 0700 of . cannot be expressed by git",
            "p is a fifo, which git does not know",
            ".git/config is a path that git refuses in patches",
            "empty is an empty directory",
        ]


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

    def test_an_unusual_mode_that_git_apply_would_lose(self, scribe: Scribe, target: Path) -> None:
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
    def test_paths_that_git_refuses(self, scribe: Scribe, target: Path, path: bytes) -> None:
        make(scribe, path)
        scribe.write(b"text", b"changed\n")
        notes = self.notes(scribe, target)
        assert f"{path.decode()} is a path that git refuses in patches" in notes
        assert files(target)[b"text"] == (b"100644", b"changed\n")

    def test_what_git_refuses_of_one_repository_is_one_note(self, scribe: Scribe, target: Path) -> None:
        for path in (b"d/.git/config", b"d/.git/HEAD", b"d/.git/refs/head"):
            make(scribe, path)
        assert self.notes(scribe, target) == ["d/.git holds 3 changes that git refuses in patches"]

    @pytest.mark.parametrize("path", [b".gitx", b"x.git", b".gitignore", b"git~2", b"d/.gitmodules", b".git x"])
    def test_paths_that_only_look_as_if_git_refused_them(self, scribe: Scribe, target: Path, path: bytes) -> None:
        make(scribe, path)
        check(scribe, target)

    @pytest.mark.parametrize("is_symlink", [False, True])
    @pytest.mark.parametrize("name", b".git .giT .git. .git\\x .git:x git~1 git~1.: git~2 .gitx x.git .git/x".split())
    def test_what_git_refuses_is_known(self, target: Path, name: bytes, is_symlink: bool) -> None:
        assert is_refused_by_git(name, is_symlink=is_symlink) == git_refuses(target, name, is_symlink)
        assert is_refused_by_git(b"d/" + name, is_symlink=is_symlink) == git_refuses(target, b"d/" + name, is_symlink)

    @pytest.mark.parametrize("is_symlink", [False, True])
    @pytest.mark.parametrize("name", LINK_NAMES)
    def test_what_git_refuses_as_a_symlink_is_known(self, target: Path, name: bytes, is_symlink: bool) -> None:
        assert is_refused_by_git(name, is_symlink=is_symlink) == git_refuses(target, name, is_symlink)

    def test_gitmodules_as_a_symlink(self, scribe: Scribe, target: Path) -> None:
        scribe.symlink(b".gitmodules", b"x")
        assert self.notes(scribe, target) == [".gitmodules is a path that git refuses in patches"]

    def test_what_no_patch_could_carry_is_left_out(self, scribe: Scribe, target: Path) -> None:
        """Git takes none of that size, and a sparse file costs nobody anything but who would read
        it.
        """
        scribe.write(b"text", b"changed\n")
        os.truncate(scribe.store.path(scribe.copy_up(b"other")), 10 << 40)
        assert self.notes(scribe, target) == ["other is left out, as it has 10,240.0 GiB: no patch takes more than 1"]
        assert files(target)[b"text"] == (b"100644", b"changed\n")

    def test_what_cannot_be_read_is_left_out(self, scribe: Scribe, target: Path) -> None:
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
        assert [change.kind for change in found] == [Kind.RENAMED]
        os.unlink(scribe.base.path(b"text"))
        os.mkfifo(scribe.base.path(b"text"))
        found = compare(Tree(), scribe.tree, scribe.base, scribe.store, expand_renames=True)
        write_patch(found, bytes)

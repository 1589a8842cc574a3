"""The patch, given to the real git: it applies to base and makes the view's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from tests.unit.changes.patching import (
    BINARY,
    TEXT,
    check,
    files,
    git_apply,
    make,
    patch_of,
    repository,
    scribe,
    target,
    view_files,
)
from yolofs.changes.changes import compare
from yolofs.changes.patch import write_patch
from yolofs.state.tree import Tree

__all__ = ["repository", "scribe", "target"]

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

    def test_a_patch_keeps_crlf_and_lone_carriage_returns(self, scribe: Scribe, target: Path) -> None:
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

    def test_a_patch_deletes_a_binary_file(self, scribe: Scribe, target: Path) -> None:
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

    def test_a_patch_has_data_that_is_still_in_base(self, scribe: Scribe, target: Path) -> None:
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
    def test_awkward_names_of_base_are_quoted_as_git_reads_them(
        self, scribe: Scribe, target: Path, name: bytes
    ) -> None:
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

    def test_a_patch_applies_where_a_file_becomes_a_directory(self, scribe: Scribe, target: Path) -> None:
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
    def test_a_pure_rename_has_no_content(self, scribe: Scribe, target: Path) -> None:
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

    def test_a_patch_of_a_renamed_directory_names_every_file(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"d", b"e")
        scribe.write(b"e/x", b"changed\n")
        patch = check(scribe, target)
        assert patch.count(b"rename from ") == 2

    def test_two_files_swap_their_names(self, scribe: Scribe, target: Path) -> None:
        scribe.exchange(b"text", b"other")
        check(scribe, target)

    def test_a_patch_applies_where_files_swapped_names_and_content(self, scribe: Scribe, target: Path) -> None:
        scribe.exchange(b"text", b"binary")
        scribe.write(b"text", b"one\n")
        scribe.write(b"binary", b"two\0")
        check(scribe, target)

    def test_a_directory_and_a_file_swap_their_names(self, scribe: Scribe, target: Path) -> None:
        scribe.exchange(b"d", b"text")
        scribe.exchange(b"text/x", b"other")
        check(scribe, target)

    def test_a_patch_of_renames_in_a_chain_and_in_a_circle_applies(self, scribe: Scribe, target: Path) -> None:
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

    def test_changes_with_a_renamed_directory_unexpanded_make_no_patch(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"e")
        found = compare(Tree(), scribe.tree, scribe.base, scribe.store)
        with pytest.raises(ValueError, match="expand_renames"):
            write_patch(found, bytes)


class TestPrefix:
    def test_paths_are_relative_to_the_prefix(self, scribe: Scribe, target: Path) -> None:
        scribe.write(b"d/x", b"changed\n")
        scribe.rename(b"d/sub/z", b"d/z")
        patch, notes = patch_of(scribe, prefix=b"d")
        assert notes == []
        git_apply(target, patch, "--directory=d")
        assert files(target) == view_files(scribe)

    def test_moves_across_the_prefix_are_deletions_and_additions(self, scribe: Scribe, target: Path) -> None:
        scribe.rename(b"d/x", b"x")
        scribe.rename(b"text", b"d/text")
        patch, _ = patch_of(scribe, prefix=b"d")
        assert b"rename" not in patch
        git_apply(target, patch, "--directory=d")
        inside = {path: file for path, file in view_files(scribe).items() if path.startswith(b"d/")}
        assert {path: file for path, file in files(target).items() if path.startswith(b"d/")} == inside

    def test_a_change_outside_of_the_prefix_is_noted(self, scribe: Scribe) -> None:
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

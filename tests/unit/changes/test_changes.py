"""Comparing two states: one line for each net difference, and nothing for what came to nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from yolofs.changes.changes import Aspect, Change, ChangeKind, compare
from yolofs.errors import YolofsError
from yolofs.paths import RelPath
from yolofs.state.tree import Tree

LONG_AGO_NS = 1_000_000_000_123_456_789


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    """A view of a base with files a and b, a symlink s and a directory d that has files at two
    depths.
    """
    base = tmp_path / "base"
    (base / "d" / "sub").mkdir(parents=True)
    (base / "empty").mkdir()
    for name in ("a", "b", "d/x", "d/y", "d/sub/z"):
        (base / name).write_text(f"{name}\n")
    (base / "s").symlink_to("a")
    for path in (base, *base.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS), follow_symlinks=False)
    return Scribe(bytes(base), bytes(tmp_path / "store"))


def changes(scribe: Scribe, old: Tree | None = None, *, paths: Sequence[bytes] = ()) -> list[Change]:
    """Compare base, or an older state, with the present one."""
    return compare(old or Tree(), scribe.tree, scribe.base, scribe.store, paths=[RelPath(path) for path in paths])


def lines(found: list[Change]) -> list[str]:
    """Write each change as ``KIND path`` or ``KIND old -> path``, with ``+M`` where R has other
    content.
    """
    return [
        change.kind.value
        + ("+M" if change.kind is ChangeKind.RENAMED and change.content else "")
        + (f" {change.old_path.decode()} ->" if change.old_path is not None else "")
        + f" {change.path.decode()}"
        for change in found
    ]


def check(scribe: Scribe, *expected: str, old: Tree | None = None) -> None:
    assert lines(changes(scribe, old)) == list(expected)


class TestNet:
    def test_equal_states_have_no_change(self, scribe: Scribe) -> None:
        check(scribe)

    def test_a_file_created_and_then_deleted_is_no_change(self, scribe: Scribe) -> None:
        scribe.write(b"new", b"x")
        scribe.mkdir(b"d/n")
        scribe.remove(b"new")
        scribe.remove(b"d/n")
        check(scribe)

    def test_each_kind_of_change_has_its_letter(self, scribe: Scribe) -> None:
        scribe.write(b"new", b"x")
        scribe.write(b"a", b"other\n")
        scribe.remove(b"b")
        scribe.rename(b"d/x", b"d/w")
        scribe.chmod(b"d/y", 0o600)
        scribe.remove(b"s")
        scribe.write(b"s", b"a")
        check(scribe, "M a", "D b", "R d/x -> d/w", "X d/y", "A new", "T s")

    def test_states_compared_the_other_way_round_give_the_inverse(self, scribe: Scribe) -> None:
        scribe.write(b"new", b"x")
        scribe.write(b"a", b"other\n")
        scribe.remove(b"b")
        scribe.rename(b"d", b"e")
        found = compare(scribe.tree, Tree(), scribe.base, scribe.store)
        assert lines(found) == ["M a", "A b", "R e -> d", "D new"]

    def test_a_copy_up_alone_is_no_change(self, scribe: Scribe) -> None:
        scribe.copy_up(b"a")
        scribe.copy_up(b"d", data=False)
        scribe.copy_up(b"s")
        check(scribe)

    def test_same_size_and_bytes_is_not_modified_but_its_time_is_told(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"a\n")
        (change,) = changes(scribe)
        assert change.kind is ChangeKind.METADATA
        assert change.metadata == (Aspect.TIME,)

    def test_same_size_and_other_bytes_is_modified(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"A\n")
        scribe.utime(b"a", LONG_AGO_NS)
        check(scribe, "M a")

    def test_deleted_and_made_again_with_the_same_content_and_time_is_nothing(self, scribe: Scribe) -> None:
        scribe.remove(b"a")
        scribe.write(b"a", b"a\n")
        scribe.utime(b"a", LONG_AGO_NS)
        check(scribe)

    def test_a_directory_with_touched_names_only_is_no_change(self, scribe: Scribe) -> None:
        scribe.chmod(b"d", 0o755)
        scribe.write(b"d/n", b"")
        check(scribe, "A d/n")

    def test_a_symlink_with_another_target_is_modified(self, scribe: Scribe) -> None:
        scribe.remove(b"s")
        scribe.symlink(b"s", b"b")
        check(scribe, "M s")
        (change,) = changes(scribe)
        assert change.old is not None
        assert change.new is not None
        assert (change.old.target(), change.new.target()) == (b"a", b"b")

    def test_a_changed_mode_of_the_root_is_told(self, scribe: Scribe) -> None:
        scribe.chmod(b"", 0o700)
        check(scribe, "X ")

    def test_many_changes_report_progress(self, scribe: Scribe) -> None:
        for number in range(600):
            scribe.write(b"d/%d" % number, b"")
        calls: list[tuple[int, int]] = []
        compare(Tree(), scribe.tree, scribe.base, scribe.store, progress=lambda *call: calls.append(call))
        total = calls[-1][1]
        assert total >= 600
        assert calls[0] == (0, total)
        assert calls[-1] == (total, total)
        assert len(calls) < 10


class TestRenames:
    def test_a_file_renamed_several_times_is_one_rename(self, scribe: Scribe) -> None:
        scribe.rename(b"a", b"1")
        scribe.rename(b"1", b"d/2")
        scribe.rename(b"d/2", b"3")
        check(scribe, "R a -> 3")

    def test_a_file_and_a_directory_back_in_their_places_are_no_change(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"e")
        scribe.rename(b"e/x", b"x")
        scribe.rename(b"e", b"d")
        scribe.rename(b"x", b"d/x")
        check(scribe)

    def test_a_renamed_file_with_other_content_is_one_rename(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"other")
        scribe.rename(b"a", b"c")
        check(scribe, "R+M a -> c")

    def test_content_of_a_copied_up_but_equal_file_does_not_differ(self, scribe: Scribe) -> None:
        scribe.copy_up(b"a")
        scribe.rename(b"a", b"c")
        check(scribe, "R a -> c")

    def test_a_swap_of_two_files_is_two_renames(self, scribe: Scribe) -> None:
        scribe.exchange(b"a", b"b")
        check(scribe, "R b -> a", "R a -> b")

    def test_a_swap_of_a_file_and_a_directory_is_two_renames(self, scribe: Scribe) -> None:
        scribe.exchange(b"a", b"d")
        check(scribe, "R d -> a", "R a -> d")

    def test_a_rename_over_another_file_says_that_the_other_is_lost(self, scribe: Scribe) -> None:
        scribe.rename(b"a", b"b")
        check(scribe, "D b", "R a -> b")

    def test_a_new_file_over_an_old_one_as_editors_save_is_a_modification(self, scribe: Scribe) -> None:
        scribe.write(b"a.tmp", b"better")
        scribe.rename(b"a.tmp", b"a")
        check(scribe, "M a")

    def test_a_new_file_in_the_place_of_a_moved_one_is_added(self, scribe: Scribe) -> None:
        scribe.rename(b"a", b"c")
        scribe.write(b"a", b"new")
        check(scribe, "A a", "R a -> c")

    def test_a_rename_between_generations_of_a_file_born_in_the_view_is_found(self, scribe: Scribe) -> None:
        scribe.write(b"n", b"1")
        old = scribe.freeze()
        scribe.write(b"n", b"2")
        scribe.rename(b"n", b"m")
        check(scribe, "R+M n -> m", old=old)
        check(scribe, "A m")

    def test_a_new_hard_link_is_listed_as_added(self, scribe: Scribe) -> None:
        scribe.link(b"a", b"l")
        check(scribe, "A l")

    def test_renaming_one_of_two_hard_links_is_a_rename(self, scribe: Scribe) -> None:
        scribe.link(b"a", b"l")
        old = scribe.freeze()
        scribe.rename(b"l", b"d/l")
        check(scribe, "R l -> d/l", old=old)

    def test_of_several_new_names_the_first_is_that_of_the_rename(self, scribe: Scribe) -> None:
        """And not the one that a set of names happens to have last: it would change from call to
        call.
        """
        scribe.rename(b"a", b"m5")
        for number in (8, 2, 7, 1, 4, 3, 6):
            scribe.link(b"m5", b"m%d" % number)
        check(scribe, "R a -> m1", *(f"A m{number}" for number in range(2, 9)))

    def test_the_last_name_of_a_file_that_was_linked_is_a_rename(self, scribe: Scribe) -> None:
        scribe.link(b"a", b"l")
        scribe.remove(b"a")
        check(scribe, "R a -> l")


class TestDirectories:
    def test_a_renamed_directory_is_one_line(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"e")
        check(scribe, "R d -> e")
        (change,) = changes(scribe)
        assert change.is_subtree

    def test_what_differs_below_a_renamed_one_has_both_paths(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"e")
        scribe.write(b"e/x", b"other")
        scribe.chmod(b"e/y", 0o600)
        scribe.write(b"e/n", b"")
        scribe.remove(b"e/sub/z")
        check(scribe, "D d/sub/z", "R d -> e", "A e/n", "M d/x -> e/x", "X d/y -> e/y")

    def test_renames_below_a_renamed_directory_have_both_paths(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"e")
        scribe.rename(b"e/sub", b"e/bus")
        scribe.rename(b"e/x", b"top")
        check(scribe, "R d -> e", "R d/sub -> e/bus", "R d/x -> top")

    def test_a_directory_moved_into_a_new_one_is_a_rename(self, scribe: Scribe) -> None:
        scribe.mkdir(b"n")
        scribe.rename(b"d/sub", b"n/sub")
        scribe.remove(b"d")
        check(scribe, "D d", "D d/x", "D d/y", "A n", "R d/sub -> n/sub")

    def test_a_directory_renamed_below_a_new_one_of_its_name_is_a_rename(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"t")
        scribe.mkdir(b"d")
        scribe.rename(b"t", b"d/t")
        check(scribe, "A d", "R d -> d/t")

    def test_a_deleted_directory_lists_every_lost_file(self, scribe: Scribe) -> None:
        scribe.remove(b"d")
        check(scribe, "D d", "D d/sub", "D d/sub/z", "D d/x", "D d/y")

    def test_a_directory_deleted_and_made_again_is_its_differences(self, scribe: Scribe) -> None:
        scribe.remove(b"d")
        scribe.mkdir(b"d")
        scribe.write(b"d/y", b"d/y\n")
        scribe.utime(b"d/y", LONG_AGO_NS)
        check(scribe, "D d/sub", "D d/sub/z", "D d/x")

    def test_a_directory_made_again_with_another_mode_is_a_change_of_metadata(self, scribe: Scribe) -> None:
        scribe.remove(b"empty")
        scribe.mkdir(b"empty", 0o700)
        check(scribe, "X empty")

    def test_a_file_that_becomes_a_directory_is_of_another_type(self, scribe: Scribe) -> None:
        scribe.remove(b"a")
        scribe.mkdir(b"a")
        scribe.write(b"a/n", b"")
        check(scribe, "T a", "A a/n")

    def test_a_directory_that_becomes_a_file_is_of_another_type_and_lists_what_was_in_it(self, scribe: Scribe) -> None:
        scribe.remove(b"d")
        scribe.write(b"d", b"")
        check(scribe, "T d", "D d/sub", "D d/sub/z", "D d/x", "D d/y")

    def test_a_directory_in_the_place_of_a_deleted_one_is_a_rename_and_a_deletion(self, scribe: Scribe) -> None:
        scribe.remove(b"d")
        scribe.rename(b"empty", b"d")
        check(scribe, "D d", "R empty -> d", "D d/sub", "D d/sub/z", "D d/x", "D d/y")

    def test_expanded_every_file_below_a_renamed_one_has_a_line(self, scribe: Scribe) -> None:
        scribe.rename(b"d", b"e")
        scribe.write(b"e/x", b"other")
        found = compare(Tree(), scribe.tree, scribe.base, scribe.store, expand_renames=True)
        assert lines(found) == [
            "R d -> e",
            "R d/sub -> e/sub",
            "R d/sub/z -> e/sub/z",
            "R+M d/x -> e/x",
            "R d/y -> e/y",
        ]
        assert not any(change.is_subtree for change in found)

    def test_a_renamed_base_directory_is_not_listed(self, scribe: Scribe, monkeypatch: pytest.MonkeyPatch) -> None:
        scribe.rename(b"d", b"e")
        scribe.exchange(b"e/x", b"e/y")
        scribe.rename(b"e", b"f")
        monkeypatch.setattr(os, "listdir", lambda directory: pytest.fail(f"listed {directory!r}"))
        check(scribe, "R d -> f", "R d/y -> f/x", "R d/x -> f/y")

    def test_directories_too_deep_for_recursion_are_compared(self, scribe: Scribe) -> None:
        path = b"r"
        for _ in range(1500):
            scribe.mkdir(path)
            path += b"/r"
        assert len(changes(scribe)) == 1500


class TestMetadata:
    def test_a_mode_that_alone_differs_is_told(self, scribe: Scribe) -> None:
        scribe.chmod(b"a", 0o600)
        (change,) = changes(scribe)
        assert (change.kind, change.metadata, change.content) == (ChangeKind.METADATA, (Aspect.MODE,), False)
        assert change.old is not None
        assert change.new is not None
        assert (change.old.mode, change.new.mode) == (0o644, 0o600)
        assert change.new.data == scribe.base.path(b"a")
        assert change.new.size == 2

    def test_a_time_that_alone_differs_is_told(self, scribe: Scribe) -> None:
        scribe.utime(b"a", 5)
        (change,) = changes(scribe)
        assert change.metadata == (Aspect.TIME,)

    def test_the_time_of_a_modified_file_is_not_told_apart(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"other")
        (change,) = changes(scribe)
        assert change.metadata == ()

    def test_a_modified_file_with_another_mode_is_one_change(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"other")
        scribe.chmod(b"a", 0o755)
        (change,) = changes(scribe)
        assert (change.kind, change.metadata) == (ChangeKind.MODIFIED, (Aspect.MODE,))

    def test_another_mode_of_a_directory_is_a_change_of_metadata(self, scribe: Scribe) -> None:
        scribe.chmod(b"d", 0o700)
        check(scribe, "X d")

    def test_a_mode_set_back_is_no_change(self, scribe: Scribe) -> None:
        scribe.chmod(b"a", 0o600)
        scribe.chmod(b"a", 0o644)
        check(scribe)

    def test_an_extended_attribute_that_differs_is_told(self, scribe: Scribe) -> None:
        ino = scribe.copy_up(b"a", data=False)
        try:
            os.setxattr(scribe.store.path(ino), "user.note", b"1")
        except OSError:
            pytest.skip("no xattrs here")
        os.utime(scribe.store.path(ino), ns=(0, LONG_AGO_NS))
        (change,) = changes(scribe)
        assert (change.kind, change.metadata) == (ChangeKind.METADATA, (Aspect.XATTRS,))

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
    def test_an_owner_that_alone_differs_is_told(self, scribe: Scribe) -> None:
        ino = scribe.copy_up(b"a", data=False)
        os.chown(scribe.store.path(ino), 12, 34)
        (change,) = changes(scribe)
        assert change.metadata == (Aspect.OWNER,)
        assert change.new is not None
        assert (change.new.uid, change.new.gid) == (12, 34)


class TestSides:
    def test_a_modified_file_can_be_read_on_both_sides(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"other")
        (change,) = changes(scribe)
        assert change.old is not None
        assert change.new is not None
        read = []
        for side in (change.old, change.new):
            with open(side.open(scribe.store), "rb") as file:
                read.append(file.read())
        assert read == [b"a\n", b"other"]
        assert (change.old.ino, change.new.ino) == (None, 1)
        assert (change.old.size, change.new.size) == (2, 5)

    def test_a_fifo_has_no_data_and_a_new_directory_none(self, scribe: Scribe) -> None:
        scribe.mkfifo(b"p")
        scribe.mkdir(b"n")
        fifo, directory = reversed(changes(scribe))
        assert fifo.new is not None
        assert directory.new is not None
        assert (fifo.new.type, fifo.new.data, fifo.new.size) == (stat.S_IFIFO, None, 0)
        assert (directory.new.type, directory.new.data) == (stat.S_IFDIR, None)


class TestPaths:
    def test_a_comparison_at_a_path_lists_only_what_is_at_or_below_it(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"other")
        scribe.write(b"d/x", b"other")
        scribe.write(b"dx", b"")
        assert lines(changes(scribe, paths=[b"d"])) == ["M d/x"]
        assert lines(changes(scribe, paths=[b"a", b"d/x"])) == ["M a", "M d/x"]
        assert lines(changes(scribe, paths=[b""])) == ["M a", "M d/x", "A dx"]

    def test_a_rename_is_found_by_either_path(self, scribe: Scribe) -> None:
        scribe.rename(b"d/x", b"x")
        assert lines(changes(scribe, paths=[b"d"])) == ["R d/x -> x"]
        assert lines(changes(scribe, paths=[b"x"])) == ["R d/x -> x"]
        assert changes(scribe, paths=[b"b"]) == []


class TestHost:
    """Base may change under the view at any moment."""

    def test_a_vanished_file_under_a_staged_one_makes_it_new(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"other")
        os.unlink(scribe.base.path(b"a"))
        check(scribe, "A a")

    def test_a_vanished_file_that_was_renamed_is_nowhere(self, scribe: Scribe) -> None:
        scribe.rename(b"a", b"c")
        os.unlink(scribe.base.path(b"a"))
        check(scribe)

    def test_a_vanished_file_that_was_deleted_is_no_change(self, scribe: Scribe) -> None:
        scribe.remove(b"a")
        os.unlink(scribe.base.path(b"a"))
        check(scribe)

    def test_a_file_with_staged_metadata_whose_data_vanished_is_added_and_cannot_be_read(self, scribe: Scribe) -> None:
        scribe.chmod(b"a", 0o600)
        os.unlink(scribe.base.path(b"a"))
        (change,) = changes(scribe)
        assert (change.kind, change.path) == (ChangeKind.ADDED, b"a")
        assert change.new is not None
        with pytest.raises(FileNotFoundError):
            change.new.open(scribe.store)

    def test_staged_work_in_a_vanished_directory_is_still_told(self, scribe: Scribe) -> None:
        scribe.write(b"empty/n", b"work")
        os.rmdir(scribe.base.path(b"empty"))
        check(scribe, "A empty", "A empty/n")

    def test_staged_work_in_a_directory_that_is_a_file_now_is_still_told(self, scribe: Scribe) -> None:
        scribe.write(b"empty/n", b"work")
        os.rmdir(scribe.base.path(b"empty"))
        Path(os.fsdecode(scribe.base.path(b"empty"))).write_text("")
        check(scribe, "T empty", "A empty/n")

    def test_a_missing_store_inode_is_an_error_with_a_hint(self, scribe: Scribe) -> None:
        scribe.write(b"a", b"other")
        scribe.store.remove(1)
        with pytest.raises(YolofsError, match="store inode 1, shown as a, is missing") as caught:
            changes(scribe)
        assert caught.value.hint == "yolofs doctor"

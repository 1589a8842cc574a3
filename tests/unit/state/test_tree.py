"""The override tree: what each record does, and that a replay of the same records gives the
same.
"""

from __future__ import annotations

import pytest

from yolofs.errors import JournalError
from yolofs.journal.records import NOTHING, ChangeRecord, Delete, Fingerprint, Keep, Rename, Stage
from yolofs.paths import ROOT, RelPath, StoreIno
from yolofs.state.tree import Shown, Tree

FINGERPRINT = Fingerprint(1, 2, 3)
OTHER = Fingerprint(4, 5, 6, (0o100644, 7, 8))


def stage(path: bytes, ino: int, *, base: bool = False, origin: bytes | None = None, time_ns: int = 1) -> Stage:
    return Stage(
        time_ns,
        RelPath(path),
        StoreIno(ino),
        base=FINGERPRINT if base else None,
        origin=RelPath(origin) if origin is not None else None,
    )


def delete(path: bytes, *, absent: bool = False) -> Delete:
    return Delete(5, RelPath(path), absent=absent)


def rename(src: bytes, dst: bytes, *, exchange: bool = False, absent: bool = False) -> Rename:
    return Rename(7, RelPath(src), RelPath(dst), exchange=exchange, absent=absent)


def shown(tree: Tree, path: bytes) -> tuple[int | None, bytes | None] | None:
    """The store inode and the base path behind a path of the view, None if it shows nothing."""
    found = tree.resolve(path)
    if found is None:
        return None
    return found.staged.ino if found.staged is not None else None, found.base


def test_an_empty_tree_is_base() -> None:
    tree = Tree()
    assert tree.resolve(b"a/b") == Shown(None, None, RelPath(b"a/b"))
    assert list(tree.walk()) == []


def test_a_new_file_shows_its_store_inode_and_touches_its_directory() -> None:
    tree = Tree([stage(b"d/f", 4, time_ns=9)])
    assert shown(tree, b"d/f") == (4, None)
    assert shown(tree, b"d/g") == (None, b"d/g")
    directory = tree.find(b"d")
    assert directory is not None
    assert directory.touched_ns == 9


def test_a_copy_up_does_not_touch_the_directory_and_keeps_which_file_it_is() -> None:
    tree = Tree([stage(b"d/f", 4, base=True), stage(b"d/f", 5)])
    assert shown(tree, b"d/f") == (5, None)
    found = tree.resolve(b"d/f")
    assert found is not None
    assert found.staged is not None
    assert (found.staged.key, found.staged.base) == (b"d/f", FINGERPRINT)
    directory = tree.find(b"d")
    assert directory is not None
    assert directory.touched_ns == 0
    assert set(tree.staged) == {5}


def test_metadata_only_keeps_the_base_path_until_the_data_follows() -> None:
    tree = Tree([stage(b"f", 4, base=True, origin=b"f")])
    assert shown(tree, b"f") == (4, b"f")
    tree.apply(stage(b"f", 4))
    assert shown(tree, b"f") == (4, None)


def test_children_of_a_metadata_only_directory_come_from_base() -> None:
    tree = Tree([stage(b"d", 4, base=True, origin=b"d"), stage(b"d/f", 5)])
    assert shown(tree, b"d/other") == (None, b"d/other")
    assert shown(tree, b"d/f") == (5, None)


def test_a_new_directory_shows_no_children_of_base() -> None:
    tree = Tree([delete(b"d"), stage(b"d", 4)])
    assert shown(tree, b"d") == (4, None)
    assert tree.resolve(b"d/f") is None


def test_a_deleted_name_leaves_a_tombstone_unless_base_has_nothing_there() -> None:
    tree = Tree([delete(b"f"), stage(b"g", 4), delete(b"g", absent=True)])
    assert tree.resolve(b"f") is None
    assert shown(tree, b"g") == (None, b"g")
    assert [path for path, _ in tree.walk()] == [b"f"]
    assert tree.staged == {}


def test_a_renamed_base_directory_is_one_redirect() -> None:
    tree = Tree([rename(b"d", b"e/x")])
    assert shown(tree, b"e/x/sub/f") == (None, b"d/sub/f")
    assert tree.resolve(b"d/sub/f") is None
    assert len(list(tree.walk())) == 3


def test_entries_move_with_their_directory() -> None:
    tree = Tree([stage(b"d/f", 4, base=True), delete(b"d/g"), rename(b"d", b"e")])
    assert shown(tree, b"e/f") == (4, None)
    assert tree.resolve(b"e/g") is None
    tree.apply(rename(b"e", b"d", absent=True))
    assert shown(tree, b"d/f") == (4, None)
    assert shown(tree, b"d/h") == (None, b"d/h")


def test_a_rename_over_a_file_drops_what_was_there() -> None:
    tree = Tree([stage(b"a", 4), stage(b"b", 5, base=True), rename(b"a", b"b", absent=True)])
    assert shown(tree, b"b") == (4, None)
    assert set(tree.staged) == {4}


def test_an_exchange_swaps_base_paths_and_store_inodes() -> None:
    tree = Tree([stage(b"a", 4), rename(b"a", b"d/b", exchange=True)])
    assert shown(tree, b"d/b") == (4, None)
    assert shown(tree, b"a") == (None, b"d/b")


def test_hard_links_share_across_copy_up() -> None:
    tree = Tree([stage(b"a", 4), stage(b"d/b", 4), stage(b"a", 5), stage(b"d/b", 5)])
    found, other = tree.resolve(b"a"), tree.resolve(b"d/b")
    assert found is not None
    assert other is not None
    assert found.staged is other.staged
    assert found.staged is not None
    assert [entry.path() for entry in found.staged.names] == [b"a", b"d/b"]
    assert found.staged.key == 4


def test_a_link_to_a_metadata_only_file_touches_its_directory() -> None:
    tree = Tree([stage(b"f", 4, base=True, origin=b"f"), stage(b"d/link", 4, origin=b"f", time_ns=9)])
    directory = tree.find(b"d")
    assert directory is not None
    assert directory.touched_ns == 9
    assert shown(tree, b"d/link") == (4, b"f")


def test_staging_a_directory_settles_its_time() -> None:
    tree = Tree([stage(b"d/f", 4), stage(b"d", 5, base=True, origin=b"d")])
    directory = tree.find(b"d")
    assert directory is not None
    assert directory.touched_ns == 0
    assert shown(tree, b"d/f") == (4, None)


@pytest.mark.parametrize("record", [stage(b"d/f", 9), delete(b"d/f"), rename(b"d/f", b"g"), rename(b"g", b"d/f")])
def test_a_record_below_a_deleted_directory_does_not_fit(record: Stage | Delete | Rename) -> None:
    tree = Tree([delete(b"d")])
    with pytest.raises(JournalError, match="does not fit"):
        tree.apply(record)


class TestHardLinksOfBase:
    """A base file with three names, ``a`` and two others, and number 3."""

    @staticmethod
    def copy_up(path: bytes, ino: int, *, links: int = 3, is_nameless: bool = False) -> Stage:
        return Stage(1, RelPath(path), StoreIno(ino), base=FINGERPRINT, links=links, is_nameless=is_nameless)

    def test_names_of_base_without_an_entry_count_as_names_of_the_file(self) -> None:
        tree = Tree([self.copy_up(b"a", 1)])
        staged = tree.staged[StoreIno(1)]
        assert tree.linked == {3: staged}
        assert (tree.nlink(staged), tree.unseen(staged), staged.home) == (3, 2, b"a")
        tree.apply(stage(b"new", 1))
        assert (tree.nlink(staged), tree.unseen(staged)) == (4, 2)
        tree.apply(Delete(2, RelPath(b"b"), unlinks=3))
        tree.apply(Rename(3, RelPath(b"x"), RelPath(b"c"), unlinks=3))
        assert (tree.nlink(staged), tree.unseen(staged)) == (2, 0)
        tree.apply(delete(b"a"))
        tree.apply(delete(b"new"))
        assert not tree.staged
        assert not tree.linked

    def test_names_that_went_before_the_copy_up_do_not_count(self) -> None:
        tree = Tree([Delete(1, RelPath(b"b"), unlinks=3), self.copy_up(b"a", 1)])
        assert tree.nlink(tree.staged[StoreIno(1)]) == 2

    def test_a_linked_file_stays_staged_without_a_name_while_base_has_others(self) -> None:
        tree = Tree([self.copy_up(b"a", 1), delete(b"a")])
        assert tree.nlink(tree.staged[StoreIno(1)]) == 2
        assert list(tree.linked) == [3]

    def test_a_new_version_takes_the_place_of_the_old_one(self) -> None:
        tree = Tree([self.copy_up(b"a", 1), stage(b"b", 1), stage(b"a", 2), stage(b"b", 2)])
        assert list(tree.staged) == [2]
        assert tree.linked[3] is tree.staged[StoreIno(2)]
        assert tree.nlink(tree.linked[3]) == 4
        assert tree.linked[3].key == Tree([self.copy_up(b"c", 9)]).linked[3].key

    def test_a_version_without_a_name_is_replaced_by_one_with_a_name(self) -> None:
        tree = Tree([Delete(1, RelPath(b"a"), unlinks=3), self.copy_up(b"a", 1, is_nameless=True)])
        assert tree.find(b"a") is not None
        assert tree.nlink(tree.linked[3]) == 2
        tree.apply(self.copy_up(b"b", 2))
        assert list(tree.staged) == [2]
        assert tree.nlink(tree.linked[3]) == 2
        assert tree.unseen(tree.linked[3]) == 1
        tree.apply(Delete(2, RelPath(b"c"), unlinks=3))
        tree.apply(delete(b"b"))
        assert not tree.staged


def gone(path: bytes, was: Fingerprint | None = FINGERPRINT) -> Delete:
    return Delete(5, RelPath(path), base=was)


def moved(
    src: bytes, dst: bytes, was: Fingerprint | None, there: Fingerprint | None, *, exchange: bool = False
) -> Rename:
    return Rename(7, RelPath(src), RelPath(dst), exchange=exchange, src_was=was, dst_was=there)


@pytest.mark.parametrize(
    ("records", "was"),
    [
        pytest.param([stage(b"f", 4)], {b"f": NOTHING}, id="new"),
        pytest.param([stage(b"d", 4), stage(b"d/f", 5)], {b"d": NOTHING}, id="new in what is new"),
        pytest.param([stage(b"f", 4, base=True)], {}, id="copied up: the staged file says it"),
        pytest.param([stage(b"f", 4), delete(b"f", absent=True)], {}, id="new and gone"),
        pytest.param([stage(b"f", 4), delete(b"f")], {b"f": NOTHING}, id="new and gone, as the host has made it too"),
        pytest.param([gone(b"f")], {b"f": FINGERPRINT}, id="gone"),
        pytest.param([delete(b"f")], {b"f": None}, id="gone, by an earlier version"),
        pytest.param([gone(b"f"), stage(b"f", 4)], {b"f": FINGERPRINT}, id="made anew"),
        pytest.param([gone(b"f"), stage(b"f", 4), delete(b"f")], {b"f": FINGERPRINT}, id="made anew and gone"),
        pytest.param([stage(b"f", 4, base=True), delete(b"f")], {b"f": FINGERPRINT}, id="copied up and gone"),
        pytest.param(
            [stage(b"f", 4, base=True), delete(b"f"), stage(b"f", 5), delete(b"f")],
            {b"f": FINGERPRINT},
            id="copied up, gone, made anew and gone",
        ),
        pytest.param([moved(b"f", b"g", OTHER, NOTHING)], {b"f": OTHER, b"g": NOTHING}, id="moved"),
        pytest.param([rename(b"f", b"g")], {b"f": None, b"g": None}, id="moved, by an earlier version"),
        pytest.param(
            [moved(b"f", b"g", OTHER, NOTHING), moved(b"g", b"f", None, None), gone(b"f")],
            {b"f": FINGERPRINT, b"g": NOTHING},
            id="moved, moved back, and gone: the last look counts",
        ),
        pytest.param([moved(b"f", b"g", OTHER, FINGERPRINT)], {b"f": OTHER, b"g": FINGERPRINT}, id="moved over"),
        pytest.param(
            [stage(b"t", 4), rename(b"t", b"g", absent=True)], {b"g": None}, id="saved, by an earlier version"
        ),
        pytest.param(
            [stage(b"t", 4), Rename(7, RelPath(b"t"), RelPath(b"g"), absent=True, dst_was=OTHER)],
            {b"g": OTHER},
            id="saved",
        ),
        pytest.param(
            [moved(b"f", b"g", OTHER, NOTHING), stage(b"g", 4, base=True)],
            {b"f": FINGERPRINT, b"g": NOTHING},
            id="moved and then copied up: the last look counts",
        ),
        pytest.param(
            [moved(b"f", b"g", OTHER, FINGERPRINT, exchange=True)], {b"f": OTHER, b"g": FINGERPRINT}, id="exchanged"
        ),
        pytest.param(
            [stage(b"f", 4), moved(b"f", b"g", None, FINGERPRINT, exchange=True)],
            {b"f": NOTHING, b"g": FINGERPRINT},
            id="exchanged with what is new",
        ),
        pytest.param(
            [gone(b"d/f", OTHER), gone(b"d"), stage(b"d", 4), stage(b"d/g", 5)],
            {b"d/f": OTHER, b"d": FINGERPRINT},
            id="a directory, and made anew",
        ),
        pytest.param(
            [moved(b"d", b"e", OTHER, NOTHING), gone(b"e/f"), stage(b"e/g", 4), delete(b"e", absent=True)],
            {b"d": OTHER, b"d/f": FINGERPRINT, b"d/g": NOTHING},
            id="in a directory that was moved: by its path in base",
        ),
        pytest.param([Keep(9, RelPath(b"f"))], {b"f": None}, id="kept, by an earlier version"),
        pytest.param(
            [Keep(9, ROOT, source=ROOT, had=RelPath(b"f"), was=OTHER), Keep(9, RelPath(b"f"))],
            {b"f": OTHER},
            id="kept",
        ),
        pytest.param(
            [Keep(9, ROOT, source=ROOT, had=RelPath(b"d/f"), was=NOTHING)], {b"d/f": NOTHING}, id="kept, of no entry"
        ),
    ],
)
def test_the_tree_tells_what_base_had_at_each_path_that_something_else_shows_at(
    records: list[ChangeRecord], was: dict[bytes, Fingerprint | None]
) -> None:
    tree = Tree(records)
    assert tree.was == was
    assert tree.copy().was == was


def test_a_record_of_what_base_had_makes_no_entry_and_touches_nothing() -> None:
    tree = Tree([Keep(3, ROOT, StoreIno(4), origin=ROOT), Keep(9, ROOT, source=ROOT, had=RelPath(b"f"), was=OTHER)])
    assert shown(tree, b"") == (4, b"")
    assert list(tree.walk()) == []

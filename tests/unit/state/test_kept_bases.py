"""Kept bases, made at copy-up, are found again, and survive a crash as far as they are whole."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support import sharing_disk
from tests.support.core_driver import CoreDriver
from yolofs.paths import RelPath
from yolofs.state import kept_bases
from yolofs.state.kept_bases import (
    MOST_COPIED_BYTES,
    MOST_KEPT_BYTES,
    KeptBase,
    KeptBases,
    digest_of_xattrs,
    find_kept,
    known_by,
    path_in,
    recorded_xattrs,
    retain,
    xattrs_option,
)
from yolofs.state.tree import Staged
from yolofs.store import copying
from yolofs.store.store import Store

OWNED = kept_bases.Owned(0o100644, 1, 2, b"")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(os.fsencode(tmp_path / "files"))


def everything(store: Store) -> dict[tuple[bytes, bytes], bytes]:
    return {place: kept.content for place, kept in find_kept(store.directory, lambda *_: True).items()}


def keep(store: Store, *items: tuple[bytes, bytes, bytes]) -> None:
    bases = KeptBases(store)
    for path, known, content in items:
        bases.add(RelPath(path), known, KeptBase(OWNED, content))
    bases.close()


def test_the_last_of_several_kept_texts_of_a_file_is_found(store: Store) -> None:
    keep(store, (b"a", b"1", b"old"), (b"a", b"2", b"other"), (b"a", b"1", b"new"))
    assert everything(store) == {(b"a", b"1"): b"new", (b"a", b"2"): b"other"}


def test_a_kept_text_that_a_crash_has_torn_off_is_passed_over(store: Store) -> None:
    keep(store, (b"a", b"1", b"whole"), (b"b", b"1", b"torn " * 100))
    path = Path(os.fsdecode(path_in(store)))
    path.write_bytes(path.read_bytes()[:-200])
    keep(store, (b"c", b"1", b"after it"))
    assert everything(store) == {(b"a", b"1"): b"whole", (b"c", b"1"): b"after it"}


def test_what_has_changed_on_the_disk_is_not_believed(store: Store) -> None:
    keep(store, (b"a", b"1", b"sound"), (b"b", b"1", b"changed"))
    path = Path(os.fsdecode(path_in(store)))
    path.write_bytes(path.read_bytes().replace(b"changed", b"CHANGED"))
    assert everything(store) == {(b"a", b"1"): b"sound"}


def test_what_takes_the_place_of_a_staged_file_has_the_same_behind_it(store: Store) -> None:
    keep(store, (b"a", b"1", b"text"))
    bases = KeptBases(store)
    bases.also_known(RelPath(b"a"), b"#7", b"1")
    bases.also_known(RelPath(b"a"), b"#8", b"#7")
    bases.also_known(RelPath(b"a"), b"#9", b"#10")
    bases.also_known(RelPath(b"a"), b"#10", b"#9")
    bases.close()
    assert everything(store) == dict.fromkeys(((b"a", known) for known in (b"1", b"#7", b"#8")), b"text")


def test_only_what_is_left_staged_is_retained(store: Store) -> None:
    keep(store, (b"a", b"#1", b"goes"), (b"b", b"#2", b"stays"))
    retain(store, [Staged(store.reserve(), None, 2, None)])
    assert everything(store) == {(b"b", b"#2"): b"stays"}
    retain(store, [])
    assert not os.path.lexists(path_in(store))


def test_a_fifo_in_the_place_of_the_kept_texts_counts_as_no_file(store: Store) -> None:
    os.mkfifo(path_in(store))
    assert everything(store) == {}


def test_a_record_tells_what_extended_attributes_there_were() -> None:
    xattrs = (("user.a", b"1"), ("user.b", b"2"))
    assert recorded_xattrs((("run", b"1"), *xattrs_option(xattrs))) == digest_of_xattrs(xattrs) != b""
    assert recorded_xattrs(xattrs_option(())) == b""
    for value in (b"zz", b"\xff", b"1"):
        assert recorded_xattrs((("xattrs", value),)) == b""


@pytest.fixture
def view(tmp_path: Path) -> CoreDriver:
    base = tmp_path / "base"
    base.mkdir()
    for name in ("a", "b"):
        (base / name).write_text("text\n")
    (base / "binary").write_bytes(b"\0text\n")
    (base / "long").write_bytes(b"line\n" * MOST_KEPT_BYTES)
    (base / "long binary").write_bytes(b"\0" + b"line\n" * 100_000)
    return CoreDriver(os.fsencode(base))


def kept(view: CoreDriver, path: bytes) -> bytes | None:
    """Return the kept base of a staged file that has its old path."""
    view.overlay.kept_bases.close()
    entry = view.overlay.tree.find(path)
    assert entry is not None
    assert entry.staged is not None
    found = find_kept(view.session.store.directory, lambda *_: True).get((RelPath(path), known_by(entry.staged)))
    return found.content if found is not None else None


def test_all_ways_to_write_keep_a_text(view: CoreDriver) -> None:
    view.append(b"a", b"more")
    assert kept(view, b"a") == b"text\n"
    view.overwrite(b"b", b"another")
    assert kept(view, b"b") == b"text\n"
    for name in (b"one", b"two"):  # the second takes the place of what is staged
        view.create(name, b"new", 0o644)
        view.rename(name, b"a")
        assert kept(view, b"a") == b"text\n"
    view.unlink(b"b")
    view.create(b"b", b"new", 0o644)
    assert kept(view, b"b") == b"text\n"
    view.close()


def test_a_text_is_kept_over_a_snapshot_and_after_a_change_of_metadata(view: CoreDriver) -> None:
    view.append(b"a", b"more")
    view.snapshot()
    view.append(b"a", b"and more")
    assert kept(view, b"a") == b"text\n"
    view.chmod(b"b", 0o600)
    assert kept(view, b"b") is None, "its data is in base"
    view.append(b"b", b"more")
    assert kept(view, b"b") == b"text\n"
    view.remount()
    assert kept(view, b"b") == b"text\n"
    view.close()


def test_a_binary_or_too_long_file_is_not_kept(view: CoreDriver) -> None:
    for name in (b"binary", b"long", b"long binary"):
        view.append(name, b"more")
        assert kept(view, name) is None
    view.close()


LARGE = 300_000


def text(size: int) -> bytes:
    return (b"line\n" * size)[: size - 1] + b"\n"


@pytest.mark.parametrize("kind", sharing_disk.KINDS)
def test_a_large_text_is_kept_where_blocks_can_be_shared(tmp_path: Path, kind: str) -> None:
    sizes = {b"1": LARGE, b"2": LARGE + 1, b"3": MOST_KEPT_BYTES - 1, b"4": MOST_KEPT_BYTES, b"5": 4096 * 100}
    with sharing_disk.sharing_disk(kind, tmp_path) as disk:
        base = disk / "base"
        base.mkdir()
        for name, size in sizes.items():
            (base / os.fsdecode(name)).write_bytes(text(size))
        (base / "small").write_bytes(b"text\n")
        view = CoreDriver(os.fsencode(base))
        for name in sizes:
            view.append(name, b"more")
            view.append(b"small", b"more")
        assert {name: kept(view, name) for name in sizes} == {name: text(size) for name, size in sizes.items()}
        assert kept(view, b"small") == b"text\n"
        (base / "1").write_bytes(b"by the host")
        view.commit_paths([b"2", b"3", b"4", b"5", b"small"])
        assert kept(view, b"1") == text(LARGE), "what is left staged takes it along"
        view.close()


@pytest.mark.parametrize("kind", sharing_disk.KINDS)
def test_shared_content_takes_no_space(tmp_path: Path, kind: str) -> None:
    with sharing_disk.sharing_disk(kind, tmp_path) as disk:
        store = Store(os.fsencode(disk / "files"))
        for number in range(10):
            share(store, disk, b"%d" % number)
        assert len(everything(store)) == 10
        assert sharing_disk.shared_bytes(Path(os.fsdecode(path_in(store)))) >= 9 * LARGE


@pytest.mark.parametrize("cut", [1, LARGE, LARGE + 10, LARGE + 2000])
def test_of_a_kept_base_that_shares_blocks_what_a_crash_has_torn_off_is_passed_over(tmp_path: Path, cut: int) -> None:
    """Also if the header is in the hole."""
    with sharing_disk.sharing_disk("xfs", tmp_path) as disk:
        store = Store(os.fsencode(disk / "files"))
        keep(store, (b"a", b"1", b"whole"))
        share(store, disk, b"b")
        path = Path(os.fsdecode(path_in(store)))
        assert everything(store) == {(b"a", b"1"): b"whole", (b"b", b"1"): text(LARGE)}
        whole = path.read_bytes()
        path.write_bytes(whole[:-cut])
        share(store, disk, b"c")
        expected = {(b"a", b"1"): b"whole", (b"c", b"1"): text(LARGE)}
        assert everything(store) == expected
        start = whole.index(whole[:16], 32)
        path.write_bytes(whole[:start] + bytes(100) + whole[start + 100 :])
        assert everything(store) == {(b"a", b"1"): b"whole"}


def share(store: Store, disk: Path, path: bytes) -> None:
    if not (disk / "file").exists():
        (disk / "file").write_bytes(text(LARGE))
    bases = KeptBases(store)
    with (disk / "file").open("rb") as file:
        bases.keep(RelPath(path), b"1", copying.read_metadata(file.fileno()), file.fileno())
    bases.close()


def test_where_blocks_cannot_be_shared_a_text_is_copied(view: CoreDriver, tmp_path: Path) -> None:
    view.overlay.kept_bases._may_share = False
    (tmp_path / "base" / "large").write_bytes(text(LARGE))
    (tmp_path / "base" / "larger").write_bytes(text(MOST_COPIED_BYTES + 1))
    for name in (b"large", b"larger"):
        view.append(name, b"more")
    assert kept(view, b"large") == text(LARGE)
    assert kept(view, b"larger") is None
    view.close()


def test_a_kept_text_ends_with_its_journal(view: CoreDriver) -> None:
    for name in (b"a", b"b"):
        view.append(name, b"more")
    view.commit_paths([b"a"])
    assert [path for path, _ in everything(view.session.store)] == [b"b"]
    assert kept(view, b"b") == b"text\n"
    view.abort()
    assert everything(view.session.store) == {}
    view.append(b"a", b"more")
    assert kept(view, b"a") == b"text\nmore"
    view.close()


def fail(_self: KeptBases, *_: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_no_error_of_the_operation(view: CoreDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    view.append(b"b", b"more")
    with monkeypatch.context() as patch:
        patch.setattr(KeptBases, "_write", fail)
        view.append(b"a", b"more")
    assert view.read(b"a") == b"text\nmore"
    assert kept(view, b"a") is None
    assert kept(view, b"b") == b"text\n"
    view.close()


@pytest.mark.parametrize("size", [10, 200 << 10])
def test_a_file_that_changes_while_it_is_read_is_not_kept(store: Store, tmp_path: Path, size: int) -> None:
    """Else what the host wrote would count as what the view took over."""
    path = tmp_path / "file"
    path.write_bytes(b"a" * size)
    bases = KeptBases(store)
    with path.open("r+b") as file:
        metadata = copying.read_metadata(file.fileno())
        file.write(b"by host")
        file.flush()
        os.utime(file.fileno(), ns=(metadata.st.st_atime_ns, metadata.st.st_mtime_ns))
        bases.keep(RelPath(b"file"), b"1", metadata, file.fileno())
    bases.close()
    assert find_kept(store.directory, lambda *_: True) == {}

"""The records that hide something of base say what it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.plain_directory import RENAME_EXCHANGE
from yolofs.journal.records import NOTHING, Delete, Fingerprint, Record, Rename, owner_of
from yolofs.paths import RelPath


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "base"
    (base / "d").mkdir(parents=True)
    for name in ("a", "b", "d/x"):
        (base / name).write_text(name)
    (base / "link").symlink_to("a")
    (base / "b linked").hardlink_to(base / "b")
    return base


@pytest.fixture
def view(base: Path) -> Iterator[CoreDriver]:
    view = CoreDriver(os.fsencode(base))
    yield view
    view.close()


def last(view: CoreDriver) -> Record:
    return list(view.session.journal.read())[-1]


def fingerprint(path: Path) -> Fingerprint:
    st = path.lstat()
    return Fingerprint(st.st_mtime_ns, st.st_size, st.st_ino, owner_of(st), st.st_ctime_ns, st.st_nlink)


@pytest.mark.parametrize("name", ["a", "link", "b"])
def test_the_record_says_what_base_had_at_a_name_that_is_removed(view: CoreDriver, base: Path, name: str) -> None:
    view.unlink(name.encode())
    record = last(view)
    assert isinstance(record, Delete)
    assert (record.base, record.absent) == (fingerprint(base / name), False)


def test_the_record_says_what_base_had_at_a_directory_that_is_removed(view: CoreDriver, base: Path) -> None:
    view.unlink(b"d/x")
    view.rmdir(b"d")
    record = last(view)
    assert isinstance(record, Delete)
    assert record.base == fingerprint(base / "d")
    assert view.session.state().was == {b"d/x": fingerprint(base / "d/x"), b"d": record.base}


def test_the_record_says_what_base_had_inside_a_directory_that_was_moved(view: CoreDriver, base: Path) -> None:
    view.rename(b"d", b"e")
    view.unlink(b"e/x")
    record = last(view)
    assert isinstance(record, Delete)
    assert record.base == fingerprint(base / "d/x")


def test_the_record_says_what_base_had_at_both_names_of_a_rename(view: CoreDriver, base: Path) -> None:
    before = fingerprint(base / "a"), fingerprint(base / "d/x")
    view.rename(b"a", b"d/x")
    record = last(view)
    assert isinstance(record, Rename)
    assert (record.src_was, record.dst_was) == before


def test_the_record_says_what_base_had_at_both_names_that_are_exchanged(view: CoreDriver, base: Path) -> None:
    before = fingerprint(base / "a"), fingerprint(base / "d")
    view.rename(b"a", b"d", RENAME_EXCHANGE)
    record = last(view)
    assert isinstance(record, Rename)
    assert (record.src_was, record.dst_was) == before


def test_the_record_says_that_base_had_nothing(view: CoreDriver, base: Path) -> None:
    view.rename(b"a", b"new")
    record = last(view)
    assert isinstance(record, Rename)
    assert (record.src_was, record.dst_was) == (fingerprint(base / "a"), NOTHING)


def test_no_record_says_what_base_had_at_a_name_that_showed_something_else(view: CoreDriver, base: Path) -> None:
    was = fingerprint(base / "a")
    view.create(b"new", b"", 0o644)
    view.append(b"a", b"more")
    view.rename(b"new", b"a")
    record = last(view)
    assert isinstance(record, Rename)
    assert (record.src_was, record.dst_was) == (None, None)
    view.unlink(b"a")
    record = last(view)
    assert isinstance(record, Delete)
    assert (record.base, record.absent) == (None, False)
    assert view.session.state().was == {b"a": was}


@pytest.mark.parametrize("how", ["unlink", "rename", "rename over"])
def test_the_record_says_what_base_had_at_another_name_of_a_staged_file(view: CoreDriver, base: Path, how: str) -> None:
    """As it was when the file was staged: the names show one file, so the view has seen it then."""
    was = fingerprint(base / "b")
    view.append(b"b", b"more")
    match how:
        case "unlink":
            view.unlink(b"b linked")
        case "rename":
            view.rename(b"b linked", b"new")
        case _:
            view.rename(b"a", b"b linked")
    assert view.session.state().was[RelPath(b"b linked")] == was

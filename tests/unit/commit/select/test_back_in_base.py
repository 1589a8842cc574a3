"""What is staged is just what base gets back, or not quite."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.old_base import scribe
from yolofs.commit.select.back_in_base import comes_back_as
from yolofs.store import copying

__all__ = ["scribe"]


def kept_copy(scribe: CommitScribe, path: bytes, tmp_path: Path) -> bytes:
    """Return a place with a copy of what is staged at a path."""
    kept = os.fsencode(tmp_path / "kept")
    entry = scribe.tree.find(path)
    assert entry is not None
    assert entry.staged is not None
    assert copying.copy_node(scribe.store.path(entry.staged.ino), kept) == ()
    return kept


def is_it(scribe: CommitScribe, path: bytes, kept: bytes) -> bool:
    entry = scribe.tree.find(path)
    assert entry is not None
    return comes_back_as(entry, kept, scribe.store)


def gets_a_link(kept: Path) -> None:
    kept.with_name("other").hardlink_to(kept)


def gets_a_note(kept: Path) -> None:
    os.setxattr(kept, "user.note", b"1")


def gets_another_mode(kept: Path) -> None:
    kept.chmod(0o600)


def gets_other_content(kept: Path) -> None:
    st = kept.stat()
    kept.write_bytes(b"X" * st.st_size)
    os.utime(kept, ns=(st.st_atime_ns, st.st_mtime_ns))


@pytest.mark.parametrize("differs", [gets_a_link, gets_a_note, gets_another_mode, gets_other_content])
def test_a_file_that_differs_in_anything_stays_staged(
    scribe: CommitScribe, tmp_path: Path, differs: Callable[[Path], None]
) -> None:
    scribe.write(b"new", b"new\n")
    kept = kept_copy(scribe, b"new", tmp_path)
    assert is_it(scribe, b"new", kept)
    differs(Path(os.fsdecode(kept)))
    assert not is_it(scribe, b"new", kept)


def test_a_link_that_leads_elsewhere_stays_staged(scribe: CommitScribe, tmp_path: Path) -> None:
    scribe.symlink(b"new", b"here")
    kept = kept_copy(scribe, b"new", tmp_path)
    assert is_it(scribe, b"new", kept)
    st = os.lstat(kept)
    os.unlink(kept)
    os.symlink(b"then", kept)
    os.utime(kept, ns=(st.st_atime_ns, st.st_mtime_ns), follow_symlinks=False)
    assert not is_it(scribe, b"new", kept)


def test_a_file_that_the_view_has_under_two_names_stays_staged(scribe: CommitScribe, tmp_path: Path) -> None:
    scribe.write(b"new", b"new\n")
    kept = kept_copy(scribe, b"new", tmp_path)
    scribe.link(b"new", b"also")
    assert not is_it(scribe, b"new", kept)


def test_what_is_a_version_of_a_file_with_hard_links_stays_staged(scribe: CommitScribe, tmp_path: Path) -> None:
    (Path(os.fsdecode(scribe.base.root)) / "other").hardlink_to(Path(os.fsdecode(scribe.base.root)) / "a")
    scribe.write(b"a", b"new\n")
    assert not is_it(scribe, b"a", kept_copy(scribe, b"a", tmp_path))

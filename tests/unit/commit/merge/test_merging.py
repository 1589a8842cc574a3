"""Merging more than text: metadata, links, sizes, and a host that goes on writing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import sharing_disk
from tests.support.core_driver import CoreDriver
from yolofs.commit.merge import text_merge
from yolofs.commit.merge.merging import Merge, Unmergeable
from yolofs.commit.merge.text_merge import MOST_MERGED_BYTES
from yolofs.errors import ConflictError
from yolofs.paths import RelPath
from yolofs.session.commit import look_at_base, split_staged
from yolofs.session.merge import merges_at, settle_conflicts
from yolofs.store import copying

OURS, WAS, THEIRS = b"ours\n2\n3\n", b"1\n2\n3\n", b"1\n2\ntheirs\n"
BOTH = b"ours\n2\ntheirs\n"
NOTE = "user.note"
_POLLS = 3000
"""So often, at most, one git looks for another; the test that passes does not wait for that."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of base that is staged with another content; what the host writes comes later."""
    file = tmp_path / "base/d/file"
    file.parent.mkdir(parents=True)
    file.write_bytes(WAS)
    return file


@pytest.fixture
def view(file: Path) -> Iterator[CoreDriver]:
    view = CoreDriver(os.fsencode(file.parent.parent))
    yield view
    view.close()


NOT_KNOWN = "what base had is not known: it was not text, or had more than 1 MiB, when the view took it over"
PATH = RelPath(b"d/file")


def merged(view: CoreDriver, path: RelPath = PATH) -> Merge | Unmergeable:
    assert path in look_at_base(view.session, split_staged(view.session, None)).conflicts
    (found,) = merges_at(view.session, [path])
    return found


def reason(view: CoreDriver, path: RelPath = PATH) -> str:
    found = merged(view, path)
    assert isinstance(found, Unmergeable)
    return found.reason


def both_changed(view: CoreDriver, file: Path) -> None:
    view.overwrite(PATH, OURS)
    file.write_bytes(THEIRS)


CHANGES: dict[str, tuple[Callable[[CoreDriver], None], Callable[[Path], None]]] = {
    "mode": (lambda view: view.chmod(PATH, 0o600), lambda file: file.chmod(0o755)),
    "extended attributes": (
        lambda view: view.setxattr(PATH, NOTE.encode(), b"here"),
        lambda file: os.setxattr(file, NOTE, b"there"),
    ),
    "owner": (lambda view: view.chown(PATH, 1, 2), lambda file: os.chown(file, 3, 4)),
}


@pytest.mark.parametrize("with_data", [True, False])
@pytest.mark.parametrize("side", ["here", "there", "both"])
@pytest.mark.parametrize("what", [pytest.param("owner", marks=pytest.mark.root_only), "mode", "extended attributes"])
def test_a_merge_takes_metadata_that_one_side_changed(
    view: CoreDriver, file: Path, what: str, side: str, with_data: bool
) -> None:
    here, there = CHANGES[what]
    if with_data:
        view.overwrite(PATH, OURS)
    if side != "there":
        here(view)
    if not with_data:
        view.utimes(PATH, 10**18)
    file.write_bytes(THEIRS)
    if side != "here":
        there(file)
    if side == "both":
        assert reason(view) == f"both changed its {what}"
        return
    found = merged(view)
    assert isinstance(found, Merge)
    assert found.content == (BOTH if with_data else None)
    settle_conflicts(view.session, [found], [])
    view._reload(committed=False)
    view.commit()
    st = file.stat()
    assert file.read_bytes() == (BOTH if with_data else THEIRS)
    assert with_data or st.st_mtime_ns == 10**18
    assert st.st_mode & 0o777 == {"mode": {"here": 0o600, "there": 0o755}}.get(what, {}).get(side, 0o644)
    if what == "owner":
        assert (st.st_uid, st.st_gid) == ((1, 2) if side == "here" else (3, 4))
    if what == "extended attributes":
        assert os.getxattr(file, NOTE) == side.encode()


def test_a_file_of_several_names_is_merged_under_all_of_them(view: CoreDriver, file: Path) -> None:
    (file.parent / "other").hardlink_to(file)
    view.link(PATH, b"d/third")
    both_changed(view, file)
    found = merged(view)
    assert isinstance(found, Merge)
    settle_conflicts(view.session, [found], [])
    view._reload(committed=False)
    for name in (PATH, b"d/other", b"d/third"):
        assert view.read(name) == BOTH
    view.commit()
    assert file.read_bytes() == BOTH
    assert file.samefile(file.parent / "other")
    assert file.samefile(file.parent / "third")


def test_a_name_that_the_host_gave_it_since_is_told(view: CoreDriver, file: Path) -> None:
    both_changed(view, file)
    (file.parent / "other").hardlink_to(file)
    assert "hard links" in reason(view)


def test_a_text_too_long_to_merge_is_told_with_the_limit(view: CoreDriver, file: Path) -> None:
    view.overwrite(PATH, OURS)
    file.write_bytes(b"line\n" * MOST_MERGED_BYTES)
    assert reason(view) == "it has more than 4 MiB"


def test_a_file_whose_base_text_was_not_kept_is_told_as_not_merged(view: CoreDriver, file: Path) -> None:
    other = file.parent / "other"
    other.write_bytes(b"\0")
    view.overwrite(b"d/other", OURS)
    other.write_bytes(THEIRS)
    assert reason(view, RelPath(b"d/other")) == NOT_KNOWN


def test_a_directory_that_is_gone_is_told(view: CoreDriver, file: Path) -> None:
    view.overwrite(PATH, OURS)
    file.parent.rename(file.parent.with_name("elsewhere"))
    assert reason(view) == "its directory is gone from base"


def test_a_file_that_is_written_while_it_is_read_is_not_merged(
    view: CoreDriver, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_changed(view, file)
    real = copying.read_metadata

    def writes(src: int | bytes, *, st: os.stat_result) -> copying.Metadata:
        file.write_bytes(b"and again\n")
        return real(src, st=st)

    monkeypatch.setattr(copying, "read_metadata", writes)
    assert reason(view) == "base is changing just now"


def test_a_file_in_whose_place_another_is_put_while_it_is_read_is_not_merged(
    view: CoreDriver, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_changed(view, file)
    real = os.fstat

    def replaces(fd: int) -> os.stat_result:
        st = real(fd)
        with contextlib.suppress(OSError):  # opened for its attributes alone
            if st.st_ino == number and os.lseek(fd, 0, os.SEEK_CUR):  # all is read
                file.with_name("another").replace(file)
        return st

    number = file.stat().st_ino
    file.with_name("another").write_bytes(b"and another\n")
    monkeypatch.setattr(os, "fstat", replaces)
    (found,) = merges_at(view.session, [PATH])
    assert isinstance(found, Unmergeable)
    assert found.reason == "base is changing just now"


def test_a_mode_that_both_changed_alike_is_no_conflict(view: CoreDriver, file: Path) -> None:
    both_changed(view, file)
    view.chmod(PATH, 0o600)
    file.chmod(0o600)
    found = merged(view)
    assert isinstance(found, Merge)
    assert found.metadata.st.st_mode & 0o777 == 0o600


def test_what_the_host_writes_between_reading_and_staging_is_not_overlooked(view: CoreDriver, file: Path) -> None:
    both_changed(view, file)
    found = merged(view)
    assert isinstance(found, Merge)
    file.write_bytes(b"and again\n")
    before = view.tree()
    with pytest.raises(ConflictError):
        settle_conflicts(view.session, [found], [])
    assert view.tree() == before


def test_a_merge_is_a_generation_and_so_is_what_was_before(view: CoreDriver, file: Path) -> None:
    both_changed(view, file)
    found = merged(view)
    assert isinstance(found, Merge)
    settle_conflicts(view.session, [found], [])
    names = [at.marker.name for at in view.session.journal.markers]
    assert names == [b"before merging", b"", b"merged with base"]
    view._reload(committed=False)
    assert view.read(PATH) == BOTH
    view.travel(1)
    assert view.read(PATH) == OURS
    view.travel(3)
    view.remount()
    assert view.read(PATH) == BOTH
    file.write_bytes(THEIRS + b"more\n")
    again = merged(view)
    assert isinstance(again, Merge)
    assert again.content == BOTH + b"more\n", "what it was merged with is what the next merge is against"


def numbered(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(count))


def both_change_lines(view: CoreDriver, file: Path, was: bytes, *, by_rename: bool) -> bytes:
    """Have both sides change one line of a text of numbers; return what the merge is to be."""
    file.write_bytes(was)
    ours = was.replace(b"\n5\n", b"\nfive\n")
    if by_rename:
        view.create(b"d/new", ours, 0o644)
        view.rename(b"d/new", PATH)
    else:
        view.overwrite(PATH, ours)
    file.write_bytes(was.replace(b"\n39000\n", b"\nhost\n"))
    return ours.replace(b"\n39000\n", b"\nhost\n")


@pytest.mark.parametrize("by_rename", [False, True], ids=["in place", "by rename"])
def test_a_large_text_merges_however_it_was_saved(view: CoreDriver, file: Path, by_rename: bool) -> None:
    both = both_change_lines(view, file, numbered(40_000), by_rename=by_rename)
    found = merged(view)
    assert isinstance(found, Merge)
    assert (found.content, found.conflicts) == (both, 0)


@pytest.mark.parametrize("by_rename", [False, True], ids=["in place", "by rename"])
def test_a_file_that_is_too_large_to_be_copied_is_refused_with_the_reason(
    view: CoreDriver, file: Path, by_rename: bool
) -> None:
    view.overlay.kept_bases._may_share = False
    both_change_lines(view, file, numbered(400_000), by_rename=by_rename)
    assert reason(view) == NOT_KNOWN


@pytest.mark.parametrize("kind", sharing_disk.KINDS)
@pytest.mark.parametrize("by_rename", [False, True], ids=["in place", "by rename"])
@pytest.mark.some(2)
def test_larger_texts_merge_where_the_disk_lets_files_share_blocks(tmp_path: Path, kind: str, by_rename: bool) -> None:
    with sharing_disk.sharing_disk(kind, tmp_path) as disk:
        file = disk / "base" / "d" / "file"
        file.parent.mkdir(parents=True)
        view = CoreDriver(os.fsencode(disk / "base"))
        both = both_change_lines(view, file, numbered(400_000), by_rename=by_rename)
        found = merged(view)
        assert isinstance(found, Merge)
        assert (found.content, found.conflicts) == (both, 0)
        view.close()


def test_git_merges_several_files_at_once(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each git begins only when another one has been started, too; what comes of it is told in the
    order asked for.
    """
    paths = [RelPath(b"d/%d" % number) for number in range(4)]
    places = [file.parent / str(number) for number in range(4)]
    for place in places:
        place.write_bytes(WAS)
    git = tmp_path / "git"
    git.write_text(
        f"""#!/bin/sh
: > {tmp_path}/started-$$
left={_POLLS}
while [ "$(ls {tmp_path} | grep -c started-)" -lt 2 ]; do
    left=$((left - 1))
    [ $left -gt 0 ] || exit 255
    sleep 0.01
done
echo "by git, from $(head -n 1 "$9")"
"""
    )
    git.chmod(0o755)
    monkeypatch.setattr(text_merge, "find_program", lambda _: os.fspath(git))
    view = CoreDriver(os.fsencode(file.parent.parent))
    try:
        for path, place in zip(paths, places, strict=True):
            view.overwrite(path, b"ours %b\n2\n3\n" % path)
            place.write_bytes(b"theirs\n2\n3\n")
        assert look_at_base(view.session, split_staged(view.session, None)).conflicts == paths
        found = merges_at(view.session, paths[::-1])
    finally:
        view.close()
    assert [(one.paths, one.content) for one in found if isinstance(one, Merge)] == [
        ((path,), b"by git, from ours %b\n" % path) for path in paths[::-1]
    ]


def test_a_new_mode_is_not_merged_into_another_file_in_whose_place_it_was_put(view: CoreDriver, file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(WAS)
    view.chmod(PATH, 0o600)
    view.rename(PATH, b"d/other")
    other.write_bytes(THEIRS)
    assert reason(view, RelPath(b"d/other")) == "its content is that of another file of base"

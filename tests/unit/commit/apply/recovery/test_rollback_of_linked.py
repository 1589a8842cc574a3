"""What is taken back where store inodes were put into base themselves."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.commit_model import CommitScribe, have_linked, scan
from tests.support.core_driver import CoreDriver
from tests.support.rolling_back import at, interrupted, whole
from yolofs.commit import execute, resume
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.commit.select.selection import Selection
from yolofs.errors import RolledBackError
from yolofs.paths import RelPath
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.system import syscalls


def store_of(scribe: CommitScribe, name: bytes) -> Path:
    """Return the path of the store inode that is staged at a name."""
    entry = scribe.tree.find(name)
    assert entry is not None
    assert entry.staged is not None
    return Path(os.fsdecode(scribe.store.path(entry.staged.ino)))


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> None:
    have_linked(monkeypatch)


@pytest.mark.usefixtures("linked")
def test_what_the_host_removed_meanwhile_is_staged_still(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"new", b"staged")
    plan = interrupted(scribe, parking, 1)
    assert at(scribe, b"new").samefile(store_of(scribe, b"new"))
    at(scribe, b"new").unlink()
    meanwhile = roll_back(plan, scribe.store, parking=parking, durable=False)
    assert not any(meanwhile)
    assert store_of(scribe, b"new").read_bytes() == b"staged"


@pytest.mark.usefixtures("linked")
def test_what_the_host_wrote_to_meanwhile_is_found_and_told_and_its_file_is_another(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.write(b"new", b"staged")
    plan = interrupted(scribe, parking, 1)
    at(scribe, b"new").write_bytes(b"the host's version")
    meanwhile = roll_back(plan, scribe.store, parking=parking, durable=False)
    assert meanwhile.found == meanwhile.written_by_host == [b"new"]
    assert not at(scribe, b"new").exists()
    (found,) = Path(os.fsdecode(parking), "found").iterdir()
    assert found.read_bytes() == store_of(scribe, b"new").read_bytes() == b"the host's version"
    assert not found.samefile(store_of(scribe, b"new"))


@pytest.mark.usefixtures("linked")
def test_a_name_that_the_host_gave_it_meanwhile_does_not_change_with_what_is_staged(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.write(b"new", b"staged")
    plan = interrupted(scribe, parking, 1)
    os.link(at(scribe, b"new"), at(scribe, b"e/the host's"))
    before = store_of(scribe, b"new").stat()
    roll_back(plan, scribe.store, parking=parking, durable=False)
    staged = store_of(scribe, b"new")
    assert staged.stat().st_nlink == at(scribe, b"e/the host's").stat().st_nlink == 1
    assert staged.stat().st_mtime_ns == before.st_mtime_ns
    staged.write_bytes(b"by an agent")
    assert at(scribe, b"e/the host's").read_bytes() == b"staged"


@pytest.mark.usefixtures("linked")
@pytest.mark.parametrize("reason", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_no_link_may_be_made_all_is_taken_back_and_may_be_copied(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """Such as where a directory has another quota (by project), or another key, than the store."""
    scribe.write(b"first", b"1")
    scribe.mkdir(b"new", 0o755)
    scribe.write(b"new/file", b"2")
    before, expected = whole(scribe), scribe.expected()
    refuse_links(monkeypatch, scribe.store.directory, b"file", reason)
    with pytest.raises(RolledBackError) as error:
        execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert error.value.may_not_link
    assert whole(scribe) == before
    assert not os.path.lexists(parking)
    execute(scribe.plan(), scribe.store, parking=parking, is_spare=lambda _: False, durable=False)
    assert scan(scribe.base.root) == expected
    assert store_of(scribe, b"first").read_bytes() == b"1"
    assert at(scribe, b"first").stat().st_nlink == 1


def refuse_links(patch: pytest.MonkeyPatch, store: bytes, name: bytes, reason: int) -> None:
    """Have it refused to give a store inode a name."""
    really = os.link

    def link(source: bytes, target: bytes, **options: Any) -> None:
        if source.startswith(store) and target == name:
            raise OSError(reason, os.strerror(reason), source)
        really(source, target, **options)

    patch.setattr(os, "link", link)


def test_a_commit_of_a_part_is_tried_again_with_copies_and_the_rest_stays_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = os.fsencode(tmp_path / "project")
    os.mkdir(project)
    view = CoreDriver(project)
    view.create(b"a", b"taken", 0o644)
    view.create(b"b", b"stays", 0o644)
    view.close()
    with Session.open(project, SessionAccess.WRITE) as session:
        refuse_links(monkeypatch, session.store.directory, b"a", errno.EXDEV)
        done = commit(session, selection=Selection(session.regions, paths=(RelPath(b"a"),)))
        assert done.number == 1
        assert Path(os.fsdecode(project), "a").read_bytes() == b"taken"
        assert os.stat(os.path.join(project, b"a")).st_nlink == 1
        (left,) = session.state().staged.values()
        assert Path(os.fsdecode(session.store.path(left.ino))).read_bytes() == b"stays"


@pytest.mark.usefixtures("linked")
def test_a_store_inode_goes_only_when_all_is_durable(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.write(b"new", b"staged")
    really, removed = os.unlink, []

    def unlink(path: bytes, *, dir_fd: int | None = None) -> None:
        directory = b"" if dir_fd is None else os.readlink(b"/proc/self/fd/%d" % dir_fd)
        whole = os.path.join(directory, path)
        if whole.startswith(scribe.store.directory):
            assert os.path.lexists(parking + b"/settled")
            removed.append(whole)
        really(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert removed == [os.fsencode(store_of(scribe, b"new"))]
    assert at(scribe, b"new").stat().st_nlink == 1


@pytest.mark.usefixtures("linked")
@pytest.mark.parametrize("gone", ["the store's", "base's"])
def test_a_commit_killed_while_names_in_the_store_went_is_finished(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    scribe.write(b"a new", b"1")
    scribe.write(b"b new", b"2")
    plan = scribe.plan()
    with monkeypatch.context() as patch:
        patch.setattr(Steps, "release_store", lambda _: os._exit(9))
        child = os.fork()
        if not child:
            execute(plan, scribe.store, parking=parking, durable=False)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    (store_of(scribe, b"a new") if gone == "the store's" else at(scribe, b"a new")).unlink()
    resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"b new").stat().st_nlink == 1
    assert not store_of(scribe, b"b new").exists()
    if gone == "base's":  # by the host: what it has lost so is not lost here
        assert not at(scribe, b"a new").exists()
        assert store_of(scribe, b"a new").read_bytes() == b"1"


@pytest.mark.usefixtures("linked")
def test_store_inodes_that_differ_from_a_copy_are_copied_and_not_linked(scribe: CommitScribe, parking: bytes) -> None:
    for name in (b"plain", b"closed", b"linked", b"reserved"):
        scribe.write(name, b"staged")
    scribe.symlink(b"symlink", b"target")
    store_of(scribe, b"closed").chmod(0o400)  # an ordinary user who reads it opens it up for a moment
    os.link(store_of(scribe, b"linked"), os.fsdecode(scribe.store.directory) + "/../elsewhere")
    with store_of(scribe, b"reserved").open("r+b") as file:
        syscalls.reserve_space(file.fileno(), 0, 1 << 20)
    scribe.write(b"a", b"replaces something")
    names = [b"plain", b"closed", b"linked", b"reserved", b"symlink", b"a"]
    numbers = {name: store_of(scribe, name).lstat().st_ino for name in names}
    execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert [name for name in names if at(scribe, name).lstat().st_ino == numbers[name]] == [b"plain"]

"""The lock of a session: who holds it is said, and what to do about it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from yolofs.errors import SessionBusyError
from yolofs.session.opening.lock import MOUNT, Holder, command_at_work, note_holder, session_locked, take_lock


@pytest.fixture
def directory(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_whoever_holds_the_session_is_named_with_what_to_do(directory: bytes) -> None:
    fd = take_lock(directory, "commit")
    try:
        with pytest.raises(SessionBusyError) as caught:
            take_lock(directory)
        assert caught.value.message == f"process {os.getpid()} (yolofs commit) is at work on this session"
        assert caught.value.hint == f"wait for it to end, or end it: kill {os.getpid()}"
        assert command_at_work(directory) == Holder(os.getpid(), "commit")
    finally:
        os.close(fd)
    assert command_at_work(directory) is None


def test_a_mount_is_no_command_but_one_that_it_has_lent_the_session_to_is(directory: bytes) -> None:
    fd = take_lock(directory, MOUNT)
    try:
        assert command_at_work(directory) is None
        with pytest.raises(SessionBusyError) as caught:
            take_lock(directory)
        assert caught.value.hint.startswith("yolofs unmount")
        note_holder(fd, "undo")
        assert command_at_work(directory) == Holder(os.getpid(), "undo")
    finally:
        os.close(fd)


@pytest.mark.parametrize("text", [b"", b"0\n", b"x\n", b"12 \x1b[m\n", b"12 commit", b"9" * 60])
def test_a_malformed_note_in_the_lock_names_no_process(directory: bytes, text: bytes) -> None:
    with session_locked(directory):
        Path(os.fsdecode(directory), "lock").write_bytes(text)
        with pytest.raises(SessionBusyError) as caught:
            take_lock(directory)
        assert caught.value.message == "process unknown is at work on this session"
        assert caught.value.hint == "wait for it to end"


def test_a_process_that_has_the_lock_no_more_is_not_named(directory: bytes) -> None:
    """A full disk that shares its blocks keeps the note of the last holder."""
    other = subprocess.Popen(["sleep", "60"])
    try:
        with session_locked(directory):
            Path(os.fsdecode(directory), "lock").write_bytes(b"%d commit\n" % other.pid)
            with pytest.raises(SessionBusyError) as caught:
                take_lock(directory)
            assert caught.value.message == "process unknown is at work on this session"
            assert caught.value.hint == "wait for it to end"
            assert command_at_work(directory) == Holder()
    finally:
        other.kill()
        other.wait()


@pytest.mark.root_only
@pytest.mark.parametrize("is_holder", [True, False])
def test_of_another_users_process_the_kernel_tells_whether_it_holds_the_lock(
    directory: bytes, *, is_holder: bool
) -> None:
    noted = os.getpid() if is_holder else os.getppid()
    with session_locked(directory):
        path = Path(os.fsdecode(directory), "lock")
        path.write_bytes(b"%d commit\n" % noted)
        with path.open("rb") as file:
            child = os.fork()
            if not child:
                os.setresuid(47110, 47110, 47110)
                os._exit(Holder.noted_in(file.fileno()) == Holder(noted, "commit"))
            status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == is_holder


def test_a_note_of_an_earlier_version_names_the_process_alone(directory: bytes) -> None:
    with session_locked(directory):
        Path(os.fsdecode(directory), "lock").write_bytes(b"%d\n" % os.getpid())
        assert command_at_work(directory) == Holder(os.getpid())


def test_nobody_is_at_work_where_there_is_no_lock(directory: bytes) -> None:
    assert command_at_work(directory) is None
    assert not os.listdir(directory)


def test_looking_at_the_lock_does_not_take_it(directory: bytes) -> None:
    os.close(take_lock(directory, "commit"))
    assert [command_at_work(directory) for _ in range(3)] == [None] * 3

"""What the kernel has cached of a file of which something is staged: the host changes it, puts
another one there, or removes it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from pathlib import Path

import pytest

from tests.mount.pages import LONG_S, PAGE, Mounter, at, change, opened
from tests.support.program import DEADLINE_S, wait_until

pytestmark = pytest.mark.mount


def test_an_open_file_of_which_the_attributes_are_staged_shows_what_the_host_changes(
    base: Path, mounted: Mounter
) -> None:
    (base / "f").write_bytes(b"old content")
    view = mounted(base_timeout_s=0.5)
    os.chmod(at(view, "f"), 0o600)
    with opened(at(view, "f")) as fd:
        assert os.pread(fd, 99, 0) == b"old content"
        change(base / "f", b"new content, longer")
        wait_until(lambda: os.fstat(fd).st_size == 19, "the new size")
        assert os.pread(fd, 99, 0) == b"new content, longer"


@pytest.mark.parametrize("flags", [None, os.O_RDONLY, os.O_RDWR])
def test_what_the_host_puts_in_the_place_of_a_file_of_which_the_attributes_are_staged_shows(
    base: Path, mounted: Mounter, flags: int | None
) -> None:
    """Whoever has it open meanwhile goes on with what they opened, until somebody opens the other
    one.
    """
    (base / "f").write_bytes(b"old content")
    view = mounted(base_timeout_s=0.5)
    os.chmod(at(view, "f"), 0o600)
    assert Path(at(view, "f")).read_bytes() == b"old content"
    with contextlib.ExitStack() as stack:
        fd = stack.enter_context(opened(at(view, "f"), flags)) if flags is not None else -1
        (base / "other").write_bytes(b"new content, longer")
        (base / "other").rename(base / "f")
        if flags is not None:
            view.mount.look_at_open()
            assert os.pread(fd, 99, 0) == b"old content"
        if flags == os.O_RDWR:
            assert Path(at(view, "f")).read_bytes() == b"old content"
            stack.close()
        if flags != os.O_RDONLY:
            wait_until(lambda: os.stat(at(view, "f")).st_size == 19, "the new size")
        assert Path(at(view, "f")).read_bytes() == b"new content, longer"
        assert os.stat(at(view, "f")).st_size == 19
    assert os.stat(at(view, "f")).st_mode & 0o777 == 0o600


def test_what_is_open_is_held_though_the_host_removes_it_and_only_its_attributes_are_staged(
    base: Path, mounted: Mounter
) -> None:
    (base / "f").write_bytes(b"old content")
    view = mounted(base_timeout_s=0.0)
    os.chmod(at(view, "f"), 0o600)
    with opened(at(view, "f")) as fd:
        assert os.pread(fd, 3, 0) == b"old"
        (base / "f").unlink()
        assert os.fstat(fd).st_size == 11
        assert os.pread(fd, 99, 0) == b"old content"


@pytest.mark.parametrize("is_chmodded", [False, True])
def test_a_fifo_that_the_host_puts_in_the_place_of_a_file_stops_nobody(
    base: Path, mounted: Mounter, is_chmodded: bool
) -> None:
    (base / "f").write_bytes(b"old content")
    (base / "g").write_bytes(b"other")
    view = mounted(base_timeout_s=LONG_S)
    if is_chmodded:
        os.chmod(at(view, "f"), 0o600)
    else:
        os.stat(at(view, "f"))
    (base / "f").unlink()
    os.mkfifo(base / "f")

    def open_and_close() -> None:
        with contextlib.suppress(OSError), opened(at(view, "f"), os.O_RDONLY | os.O_NONBLOCK):
            pass

    thread = threading.Thread(target=open_and_close, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    is_stuck = thread.is_alive()
    if is_stuck:  # else the mount could not be ended
        os.close(os.open(base / "f", os.O_RDWR | os.O_NONBLOCK))
    assert not is_stuck
    assert Path(at(view, "g")).read_bytes() == b"other"


def test_a_file_that_the_host_changes_and_gives_its_old_times_shows_what_it_has(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"old content")
    view = mounted(base_timeout_s=LONG_S)
    assert Path(at(view, "f")).read_bytes() == b"old content"

    def change_unseen(data: bytes) -> None:
        before = (base / "f").stat()
        change(base / "f", data)
        os.utime(base / "f", ns=(before.st_atime_ns, before.st_mtime_ns))

    change_unseen(b"new")
    assert Path(at(view, "f")).read_bytes() == b"new content"
    with opened(at(view, "f"), os.O_RDWR) as fd:
        assert os.pread(fd, 99, 0) == b"new content"
        change_unseen(b"3rd")
        view.mount.look_at_open()
        assert os.pread(fd, 99, 0) == b"3rd content"
        change_unseen(b"4th")
        os.pwrite(fd, b"!", 11)
        wait_until(lambda: os.pread(fd, 99, 0) == b"4th content!", "what was copied")


@pytest.mark.parametrize("is_chmodded", [False, True])
def test_a_copy_up_of_what_the_host_has_changed_shows_what_was_copied(
    base: Path, mounted: Mounter, is_chmodded: bool
) -> None:
    (base / "f").write_bytes(b"0" * 3 * PAGE)
    view = mounted(base_timeout_s=LONG_S)
    if is_chmodded:
        os.chmod(at(view, "f"), 0o600)  # only its attributes are staged
    with opened(at(view, "f"), os.O_RDWR) as fd:
        assert os.pread(fd, 3 * PAGE, 0) == b"0" * 3 * PAGE
        change(base / "f", b"the host", 2 * PAGE)
        os.pwrite(fd, b"the view", PAGE)
        expected = b"0" * PAGE + b"the view" + b"0" * (PAGE - 8) + b"the host" + b"0" * (PAGE - 8)
        wait_until(lambda: os.pread(fd, 3 * PAGE, 0) == expected, "what was copied")
    assert Path(at(view, "f")).read_bytes() == expected
    (base / "f").write_bytes(b"base does not matter any more")
    assert Path(at(view, "f")).read_bytes() == expected


def test_after_a_copy_up_that_fails_the_kernel_has_the_pages_of_base_as_before(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"0" * 2 * PAGE)
    view = mounted(base_timeout_s=LONG_S)
    for number in range(400):  # so that the store can be written to where the journal cannot
        Path(at(view, f"new{number}")).touch()
    journal = view.overlay.journal
    assert journal.size > 3 * PAGE
    with opened(at(view, "f"), os.O_RDWR) as fd:
        assert os.pread(fd, 2 * PAGE, 0) == b"0" * 2 * PAGE
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (journal.size, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                os.pwrite(fd, b"the view", PAGE)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        change(base / "f", b"the host")
        os.pwrite(fd, b"the view", PAGE)
        expected = b"the host" + b"0" * (PAGE - 8) + b"the view" + b"0" * (PAGE - 8)
        wait_until(lambda: os.pread(fd, 2 * PAGE, 0) == expected, "what was copied")


def test_what_has_no_name_any_more_is_never_opened_anew_in_base(base: Path, mounted: Mounter) -> None:
    """Another file may be there by then."""
    (base / "f").write_bytes(b"old content")
    for number in range(8):
        (base / f"other{number}").write_bytes(b"other")
    view = mounted(base_timeout_s=LONG_S)
    view.mount.call(lambda: setattr(view.overlay.descriptors, "_most", 4))
    os.chmod(at(view, "f"), 0o600)
    with opened(at(view, "f"), os.O_RDWR) as fd, contextlib.ExitStack() as stack:
        assert os.pread(fd, 3, 0) == b"old"
        Path(at(view, "f")).unlink()
        (base / "new").write_bytes(b"new content")
        (base / "new").rename(base / "f")
        for number in range(8):
            stack.enter_context(opened(at(view, f"other{number}")))
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pwrite(fd, b"!", 11)
        assert os.pread(fd, 99, 0) == b"old content!"


def test_a_truncation_by_name_of_what_the_host_has_changed_keeps_what_base_has(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"0" * 2 * PAGE)
    view = mounted(base_timeout_s=LONG_S)
    assert Path(at(view, "f")).read_bytes() == b"0" * 2 * PAGE
    change(base / "f", b"the host")
    os.truncate(at(view, "f"), PAGE)
    wait_until(lambda: Path(at(view, "f")).read_bytes() == b"the host" + b"0" * (PAGE - 8), "what was copied")

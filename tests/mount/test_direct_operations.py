"""What the transport of our own can and pyfuse3 cannot, compared with a plain directory."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mount.content_handles import Mapper
from tests.mount.hard_links import Mounter
from tests.support.gate_tools import replace_rules
from tests.support.in_process import MountedView
from tests.support.program import DEADLINE_S, wait_until
from yolofs.access.questions import Decision, Question
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.overlay.data import MOST_RANGE_BYTES
from yolofs.overlay.host_changes import HostChange, stale_after
from yolofs.paths import RelPath
from yolofs.rules import PathRule, RuleState
from yolofs.system.syscalls import fallocate

pytestmark = pytest.mark.mount

KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE, INSERT_RANGE = 1, 2, 8, 16, 32
PAGE = 4096
CONTENT = bytes(range(256)) * 256


@pytest.fixture
def view(base: Path, mounted: Mounter) -> MountedView:
    (base / "old").write_bytes(CONTENT)
    return mounted(make_transport=DirectTransport)


def places(view: MountedView, tmp_path: Path) -> list[Path]:
    """Return the same file in the view, from base and born there, and in a plain directory."""
    mountpoint = Path(os.fsdecode(view.mountpoint))
    (mountpoint / "new").write_bytes(CONTENT)
    plain = tmp_path / "plain"
    plain.write_bytes(CONTENT)
    return [plain, mountpoint / "old", mountpoint / "new"]


def outcome(path: Path, change: Callable[[int], object]) -> tuple[int, bytes, int]:
    """Change a file and return the errno, what is in it then, and how many blocks it takes."""
    number = 0
    fd = os.open(path, os.O_RDWR)
    try:
        change(fd)
    except OSError as error:
        number = error.errno or -1
    finally:
        os.fsync(fd)
        os.close(fd)
    return number, path.read_bytes(), path.stat().st_blocks


@pytest.mark.parametrize(
    ("mode", "offset", "length"),
    [
        (0, len(CONTENT), 1 << 20),
        (0, 0, PAGE),
        (0, 1, 1 << 20),
        (KEEP_SIZE, len(CONTENT), 1 << 20),
        (PUNCH_HOLE | KEEP_SIZE, PAGE, PAGE),
        (PUNCH_HOLE | KEEP_SIZE, 100, 5000),
        (ZERO_RANGE, PAGE, PAGE),
        (ZERO_RANGE, 10, 1 << 20),
        (ZERO_RANGE | KEEP_SIZE, 0, 1 << 20),
        (PUNCH_HOLE, 0, PAGE),
        (0, 0, 0),
    ],
)
def test_fallocate_does_what_it_does_in_a_plain_directory(
    view: MountedView, tmp_path: Path, mode: int, offset: int, length: int
) -> None:
    plain, *others = [outcome(path, lambda fd: fallocate(fd, mode, offset, length)) for path in places(view, tmp_path)]
    assert others == [plain, plain]


@pytest.mark.parametrize("mode", [COLLAPSE_RANGE, INSERT_RANGE])
def test_the_kernel_passes_on_no_fallocate_that_moves_content(view: MountedView, tmp_path: Path, mode: int) -> None:
    _, *others = places(view, tmp_path)
    for path in others:
        number, content, _ = outcome(path, lambda fd: fallocate(fd, mode, PAGE, PAGE))
        assert (number, content) == (errno.EOPNOTSUPP, CONTENT)


def test_fallocate_leaves_base_and_what_a_snapshot_has_alone(view: MountedView, base: Path) -> None:
    path = Path(os.fsdecode(view.mountpoint)) / "old"
    path.write_bytes(b"a" * PAGE)
    view.snapshot(b"before")
    with path.open("r+b") as file:
        fallocate(file.fileno(), PUNCH_HOLE | KEEP_SIZE, 0, PAGE)
    assert path.read_bytes() == bytes(PAGE)
    view.travel(1)
    assert path.read_bytes() == b"a" * PAGE
    assert (base / "old").read_bytes() == CONTENT


def holes(path: Path) -> list[int | None]:
    """Return where data and holes are told to be, from some places on."""
    found: list[int | None] = []
    with path.open("rb") as file:
        for start in (0, PAGE, 3 * PAGE + 7, 1 << 20, 1 << 21, 1 << 30, -1, -PAGE, -(1 << 62)):
            for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                try:
                    found.append(os.lseek(file.fileno(), start, whence))
                except OSError as error:
                    found.append(-(error.errno or 0))
    return found


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2 << 20)
        for start in (0, 64 * PAGE, 1 << 20):
            file.seek(start)
            file.write(b"d" * PAGE)
        os.fsync(file.fileno())


def test_data_and_holes_are_found_as_in_a_plain_directory(base: Path, mounted: Mounter, tmp_path: Path) -> None:
    make_sparse(tmp_path / "plain")
    make_sparse(base / "old")
    mountpoint = Path(os.fsdecode(mounted(make_transport=DirectTransport).mountpoint))
    make_sparse(mountpoint / "new")
    assert holes(mountpoint / "old") == holes(tmp_path / "plain")
    assert holes(mountpoint / "new") == holes(tmp_path / "plain")


@pytest.mark.parametrize("name", ["old", "new"])
def test_what_was_written_by_a_mapping_is_data(base: Path, mounted: Mounter, name: str) -> None:
    (base / "old").touch()
    os.truncate(base / "old", 1 << 20)
    path = Path(os.fsdecode(mounted(make_transport=DirectTransport).mountpoint)) / name
    path.touch()
    os.truncate(path, 1 << 20)
    mapper = Mapper()
    mapper("open", 1, str(path), writes=True)
    fd = os.open(path, os.O_RDONLY)
    try:
        for start in (64 * PAGE, 32 * PAGE):
            mapper("write", 1, start, b"mapped")
            assert os.lseek(fd, 0, os.SEEK_DATA) == start
            assert os.lseek(fd, start, os.SEEK_HOLE) == start + PAGE
            assert os.pread(fd, 6, start) == b"mapped"
        mapper("close", 1)
        assert os.lseek(fd, 0, os.SEEK_DATA) == 32 * PAGE
    finally:
        os.close(fd)
        mapper.end()


def copied(source: Path, target: Path, source_offset: int, offset: int, length: int) -> int:
    with source.open("rb") as one, target.open("r+b") as other:
        return os.copy_file_range(one.fileno(), other.fileno(), length, source_offset, offset)


def test_a_range_is_copied_from_base_into_base_and_into_what_is_staged(view: MountedView, base: Path) -> None:
    mountpoint = Path(os.fsdecode(view.mountpoint))
    (mountpoint / "new").write_bytes(b"n" * 100)
    assert copied(mountpoint / "old", mountpoint / "new", 10, 50, 1000) == 1000
    assert (mountpoint / "new").read_bytes() == b"n" * 50 + CONTENT[10:1010]
    assert copied(mountpoint / "new", mountpoint / "old", 0, 0, 50) == 50
    assert (mountpoint / "old").read_bytes() == b"n" * 50 + CONTENT[50:]
    assert copied(mountpoint / "old", mountpoint / "old", 0, len(CONTENT), 100) == 100
    assert (mountpoint / "old").read_bytes() == b"n" * 50 + CONTENT[50:] + b"n" * 50 + CONTENT[50:100]
    assert copied(mountpoint / "old", mountpoint / "new", 1 << 30, 0, 100) == 0
    assert (base / "old").read_bytes() == CONTENT


def test_a_large_copy_comes_in_parts_and_is_whole(view: MountedView) -> None:
    mountpoint = Path(os.fsdecode(view.mountpoint))
    content = os.urandom(2 * MOST_RANGE_BYTES + 12345)
    (mountpoint / "large").write_bytes(content)
    (mountpoint / "copy").touch()
    assert copied(mountpoint / "large", mountpoint / "copy", 0, 0, len(content)) <= MOST_RANGE_BYTES
    subprocess.run(["cp", "large", "copy"], cwd=mountpoint, check=True)
    assert (mountpoint / "copy").read_bytes() == content


def test_a_file_of_128_mib_is_copied_whole_and_with_its_holes(base: Path, mounted: Mounter, tmp_path: Path) -> None:
    for place in (base, tmp_path):
        with (place / "large").open("wb") as file:
            for start in (0, 50 << 20, (128 << 20) - 4096):
                file.seek(start)
                file.write(CONTENT[:4096] * 256 if start else CONTENT)
            file.truncate(128 << 20)
    mountpoint = Path(os.fsdecode(mounted(make_transport=DirectTransport).mountpoint))
    for place in (mountpoint, tmp_path):
        subprocess.run(["cp", "large", "copy"], cwd=place, check=True)
        subprocess.run(["cp", "--sparse=always", "copy", "again"], cwd=place, check=True)
    for name in ("copy", "again"):
        assert subprocess.run(["cmp", mountpoint / name, base / "large"], check=False).returncode == 0
        fd = os.open(mountpoint / name, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        assert (mountpoint / name).stat().st_blocks <= (tmp_path / name).stat().st_blocks + 64
    (mountpoint / "copy").unlink()
    (mountpoint / "again").unlink()


def test_a_range_copied_over_cached_pages_shows_at_once(view: MountedView) -> None:
    mountpoint = Path(os.fsdecode(view.mountpoint))
    (mountpoint / "new").write_bytes(b"x" * PAGE)
    with (mountpoint / "new").open("rb") as reader:
        assert reader.read() == b"x" * PAGE
        copied(mountpoint / "old", mountpoint / "new", 0, 0, PAGE)
        reader.seek(0)
        assert reader.read() == CONTENT[:PAGE]


# ---- listings that the kernel keeps


@contextlib.contextmanager
def open_directory(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def listed(fd: int) -> set[str]:
    """List an open directory from its beginning, through the very descriptor."""
    os.lseek(fd, 0, os.SEEK_SET)
    return set(os.listdir(fd))


@pytest.fixture
def directory(base: Path, mounted: Mounter) -> Path:
    (base / "d").mkdir()
    for name in ("one", "two"):
        (base / "d" / name).touch()
    self = mounted(make_transport=DirectTransport, base_timeout_s=3600.0)
    return Path(os.fsdecode(self.mountpoint)) / "d"


def test_a_listing_that_is_read_again_shows_what_others_have_made_and_removed(directory: Path) -> None:
    with open_directory(directory) as fd:
        assert listed(fd) == listed(fd) == {"one", "two"}
        (directory / "three").touch()
        assert listed(fd) == {"one", "two", "three"}
        (directory / "one").unlink()
        assert listed(fd) == {"two", "three"}
        (directory / "two").rename(directory / "four")
        assert listed(fd) == {"four", "three"}
        assert set(os.listdir(directory)) == {"four", "three"}


def test_a_listing_shows_what_the_host_has_made_once_that_is_noticed(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    view = mounted(make_transport=DirectTransport, base_timeout_s=3600.0)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    with open_directory(directory) as fd:
        assert listed(fd) == listed(fd) == set()
        (base / "d/new").touch()
        view.mount.invalidate(
            view.mount.call(lambda: stale_after(view.overlay, [HostChange(RelPath(b"d/new"), is_name=True)]))
        )
        assert listed(fd) == {"new"}
        assert os.listdir(directory) == ["new"]


def test_a_listing_follows_a_travel_and_a_commit(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    (base / "d/one").touch()
    view = mounted(make_transport=DirectTransport, base_timeout_s=3600.0)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    with open_directory(directory) as fd:
        (directory / "two").touch()
        view.snapshot(b"two")
        assert listed(fd) == {"one", "two"}
        view.travel(0)
        assert listed(fd) == {"one"}
        view.travel(1)
        assert listed(fd) == {"one", "two"}
        view.commit()
        assert listed(fd) == {"one", "two"}
        assert sorted(os.listdir(base / "d")) == ["one", "two"]


def test_a_listing_shows_no_name_that_a_rule_has_hidden_meanwhile(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    (base / "d/secret").touch()
    (base / "d/free").touch()
    view = mounted(make_transport=DirectTransport, base_timeout_s=3600.0)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    with open_directory(directory) as fd:
        assert listed(fd) == {"secret", "free"}
        replace_rules(view, PathRule(os.fsencode(base / "d/secret"), RuleState.HIDDEN, "test:1"))
        assert listed(fd) == {"free"}


# ---- interrupts


class Waiting:
    """Answers when the test says so, and notes who wants no answer any more."""

    def __init__(self) -> None:
        self.answers: list[Callable[[Decision], None]] = []
        self.withdrawn: list[Callable[[Decision], None]] = []

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        del question, pid
        self.answers.append(answer)

    def withdraw(self, answer: Callable[[Decision], None]) -> None:
        self.withdrawn.append(answer)
        answer(Decision.INTERRUPTED)

    def refused(self, question: Question, pid: int) -> None:
        raise AssertionError(f"{question} of {pid} was refused")


OPENING = """
import signal, sys
signal.signal(signal.SIGUSR1, lambda *_: None)
try:
    open(sys.argv[1])
except InterruptedError:
    sys.exit(4)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whoever_is_killed_while_asked_about_ends_at_once(base: Path, mounted: Mounter, number: signal.Signals) -> None:
    asker = Waiting()
    (base / "secret").touch()
    view = mounted(make_transport=DirectTransport, asker=asker)
    replace_rules(view, PathRule(os.fsencode(base / "secret"), RuleState.ASK, "test:1"))
    process = subprocess.Popen(
        [sys.executable, "-ISc", OPENING, os.path.join(os.fsdecode(view.mountpoint), "secret")],
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: len(asker.answers) == 1, "the question")
        assert not asker.withdrawn
        process.send_signal(number)
        process.wait(DEADLINE_S)
        assert asker.withdrawn == asker.answers
    finally:
        process.kill()
        process.wait()


def test_a_thread_that_is_not_interrupted_waits_on(base: Path, mounted: Mounter) -> None:
    asker = Waiting()
    (base / "secret").write_text("content")
    view = mounted(make_transport=DirectTransport, asker=asker)
    replace_rules(view, PathRule(os.fsencode(base / "secret"), RuleState.ASK, "test:1"))
    path = Path(os.fsdecode(view.mountpoint)) / "secret"
    read: list[str] = []
    thread = threading.Thread(target=lambda: read.append(path.read_text()), daemon=True)
    thread.start()
    wait_until(lambda: len(asker.answers) == 1, "the question")
    other = subprocess.Popen(["sleep", "60"])
    other.kill()
    other.wait()
    assert not asker.withdrawn
    asker.answers[0](Decision.ALLOW)
    thread.join(DEADLINE_S)
    assert read == ["content"]

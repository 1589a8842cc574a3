"""A hidden path is gone at once, also for programs that knew it; all others stay as they are."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
from pathlib import Path

import pytest

from tests.support.gate_tools import (
    LIBC,
    Answers,
    Mounter,
    at,
    book,
    path_rule,
    path_to,
    refused,
    replace_rules,
    working_in,
)
from tests.support.in_process import MountedView
from yolofs.access.questions import Operation
from yolofs.fuse.trace import Trace
from yolofs.rules import NameRule, Rule, RuleIndex, RuleSet, RuleState, SuffixRule

pytestmark = pytest.mark.mount
HIDDEN = RuleState.HIDDEN


def fill(view: MountedView) -> None:
    """Make files that the kernel may cache for a day, as they are staged."""
    os.makedirs(at(view, "top/s/deep/deeper"))
    for path in ("top/s/file", "top/s/deep/deeper/x", "top/free", "top/s/deep/open"):
        Path(at(view, path)).write_text("x" * 77)


def test_a_hidden_name_is_asked_for_once_and_shows_as_soon_as_the_rules_say_so(base: Path, mounted: Mounter) -> None:
    (base / "top").mkdir()
    (base / "top/secret").write_text("x")
    trace, rule = Trace(), path_rule(base, "top/secret", HIDDEN)
    view = mounted(book=book(base, rule), base_timeout_s=3600.0, trace=trace)
    secret = at(view, "top/secret")
    for _ in range(2):
        with refused(errno.ENOENT):
            os.stat(secret)
        before = trace.counts()["lookup"]
        for _ in range(5):
            with refused(errno.ENOENT):
                os.stat(secret)
            with refused(errno.ENOENT):
                os.open(secret, os.O_RDONLY)
        assert trace.counts()["lookup"] == before
        with refused():
            os.open(secret, os.O_WRONLY | os.O_CREAT)
        replace_rules(view)
        assert Path(secret).read_text() == "x"
        replace_rules(view, rule)


def test_a_hidden_name_in_a_staged_directory_is_asked_for_each_time(base: Path, mounted: Mounter) -> None:
    """A travel may put such a directory elsewhere, where the name is not hidden."""
    trace = Trace()
    view = mounted(book=book(base, path_rule(base, "top/secret", HIDDEN)), trace=trace)
    os.mkdir(at(view, "top"))
    before = trace.counts().get("lookup", 0)
    for _ in range(3):
        with refused(errno.ENOENT):
            os.stat(at(view, "top/secret"))
    assert trace.counts()["lookup"] == before + 3


@pytest.mark.parametrize("kind", ["path", "name", "suffix"])
def test_paths_that_the_kernel_has_cached_are_gone_once_a_rule_hides_them(
    base: Path, mounted: Mounter, kind: str
) -> None:
    view = mounted(book=book(base))
    fill(view)
    name = "s"
    if kind == "suffix":
        name = "s.x"
        os.rename(at(view, "top/s"), at(view, "top/s.x"))
    rule: Rule = SuffixRule(b".x", HIDDEN, "") if kind == "suffix" else NameRule(b"s", HIDDEN, "")
    paths = [f"top/{name}{rest}" for rest in ("", "/file", "/deep", "/deep/deeper", "/deep/deeper/x")]
    with path_to(at(view, paths[0])) as top, path_to(at(view, paths[3])) as deeper, path_to(at(view, paths[4])) as file:
        for path in paths:
            os.stat(at(view, path))
        os.stat("x", dir_fd=deeper)
        replace_rules(view, path_rule(base, "top/s", HIDDEN) if kind == "path" else rule)
        for path in paths:
            with refused(errno.ENOENT):
                os.stat(at(view, path))
        for fd in (top, deeper, file):
            with refused(errno.ENOENT):
                os.stat(fd)
            with refused(errno.ENOENT):
                os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        for directory, step in ((top, "file"), (top, "deep"), (top, "deep/deeper"), (deeper, "x"), (deeper, ".")):
            with refused(errno.ENOENT):
                os.stat(step, dir_fd=directory)
        with refused(errno.ENOENT):
            os.listdir(f"/proc/self/fd/{deeper}")
        with refused(errno.ENOENT):
            os.readlink("x", dir_fd=deeper)
        with refused(errno.ENOENT):
            os.mkdir("new", dir_fd=deeper)
        assert os.listdir(at(view, "top")) == ["free"]
        replace_rules(view)
        for path in paths:
            os.stat(at(view, path))
        os.stat("x", dir_fd=deeper)
        os.stat("file", dir_fd=top)


def test_a_process_that_works_inside_sees_nothing_there_any_more(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base))
    fill(view)
    with working_in(at(view, "top/s/deep")):
        assert sorted(os.listdir(".")) == ["deeper", "open"]
        replace_rules(view, path_rule(base, "top/s", HIDDEN))
        for path in (".", "open", "deeper/x", "../file"):
            with refused(errno.ENOENT):
                os.stat(path)
        with refused(errno.ENOENT):
            os.listdir(".")
        with refused(errno.ENOENT):
            Path("open").read_text()
        replace_rules(view)
        assert sorted(os.listdir(".")) == ["deeper", "open"]
        assert Path("open").read_text() == "x" * 77


def test_a_process_that_works_beside_or_below_what_is_hidden_stays_where_it_is(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base))
    fill(view)
    allowed = path_rule(base, "top/s/deep", RuleState.ALLOW)
    rules: tuple[Rule, ...] = (path_rule(base, "top", HIDDEN), NameRule(b"none", HIDDEN, ""))
    with working_in(at(view, "top/s/deep")):
        for more in (rules[:1], rules[1:], rules):
            replace_rules(view, *more, allowed)
            assert os.getcwd() == at(view, "top/s/deep")
            assert os.stat("deeper/x").st_size == 77
            os.stat("../../..")
            replace_rules(view)
    with working_in(at(view, "top/s")):  # hidden, and a way
        replace_rules(view, *rules, allowed)
        assert os.getcwd() == at(view, "top/s")
        replace_rules(view)
    replace_rules(view, *rules, allowed)
    assert os.listdir(at(view, "top")) == ["s"]
    assert os.listdir(at(view, "top/s")) == ["deep"]
    with refused(errno.ENOENT):
        os.stat(at(view, "top/free"))
    for change in (os.rmdir, lambda path: os.chmod(path, 0o700), lambda path: os.rename(path, path + ".new")):
        with refused():
            change(at(view, "top"))


@pytest.mark.parametrize("path", [".", ".."])
def test_the_root_itself_and_what_is_above_it_can_be_hidden(base: Path, mounted: Mounter, path: str) -> None:
    view = mounted(book=book(base))
    fill(view)
    gate = view.mount.gate
    for name in ("top", "top/free", "top/s/deep/deeper/x"):
        os.stat(at(view, name))
    kept = path_rule(base, "top/s/file", RuleState.READ_ONLY)
    stale = view.mount.call(lambda: gate.replace_rules(RuleIndex(RuleSet((path_rule(base, path, HIDDEN), kept)))))
    view.mount.invalidate(stale())
    for name in ("top/free", "top/s/deep", "top/s/deep/deeper/x"):
        with refused(errno.ENOENT):
            os.stat(at(view, name))
    assert Path(at(view, "top/s/file")).read_text() == "x" * 77
    stale = view.mount.call(lambda: gate.replace_rules(RuleIndex(RuleSet((path_rule(base, path, HIDDEN),)))))
    view.mount.invalidate(stale())
    for name in (".", "top", "top/s/file"):
        with refused(errno.ENOENT):
            os.stat(at(view, name))


def test_what_a_pattern_opens_below_the_hidden_root_is_out_of_sight(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base))
    fill(view)
    for path in (".", "top", "top/free"):
        os.stat(at(view, path))
    replace_rules(view, path_rule(base, ".", HIDDEN), NameRule(b"top", RuleState.ALLOW, ""))
    for path in ("top", "top/free", "."):
        with refused(errno.ENOENT):
            os.stat(at(view, path))
    replace_rules(view)
    assert os.stat(at(view, "top/free")).st_size == 77


def test_a_rule_that_goes_hides_what_it_had_opened(base: Path, mounted: Mounter) -> None:
    opening = (path_rule(base, "top/s/file", RuleState.ALLOW), NameRule(b"x", RuleState.ALLOW, ""))
    ways = (path_rule(base, "top/s/deep/deeper", RuleState.READ_ONLY),)
    hiding = path_rule(base, "top/s", HIDDEN)
    view = mounted(book=book(base))
    fill(view)
    replace_rules(view, hiding, *opening, *ways)
    with path_to(at(view, "top/s/deep/deeper")) as deeper:
        for path in ("top/s/file", "top/s/deep/deeper/x"):
            os.stat(at(view, path))
        os.stat("x", dir_fd=deeper)
        replace_rules(view, hiding)
        for path in ("top/s/file", "top/s/deep/deeper/x", "top/s"):
            with refused(errno.ENOENT):
                os.stat(at(view, path))
        with refused(errno.ENOENT):
            os.stat("x", dir_fd=deeper)


def test_a_file_that_is_open_when_it_gets_hidden_can_be_read_and_written(base: Path, mounted: Mounter) -> None:
    (base / "old").write_text("x" * 77)
    view = mounted(book=book(base))
    fill(view)
    for path in ("top/s/file", "old"):
        replace_rules(view)
        with open(at(view, path), "rb+", buffering=0) as file:
            assert file.read(7) == b"x" * 7
            replace_rules(view, path_rule(base, path, HIDDEN))
            assert file.read() == b"x" * 70
            assert file.read() == b""
            file.write(b"y" * 10)
            file.truncate(80)
            assert os.fstat(file.fileno()).st_size == 80
            with refused(errno.ENOENT):
                os.stat(at(view, path))
            with refused(errno.ENOENT):
                os.fchmod(file.fileno(), 0o777)
        replace_rules(view)
        assert Path(at(view, path)).read_text() == "x" * 77 + "y" * 3


def test_a_listing_has_no_gap_where_something_is_hidden(base: Path, mounted: Mounter) -> None:
    for number in range(9):
        (base / f"f{number}").write_text("x")
    view = mounted(book=book(base, *(path_rule(base, f"f{number}", HIDDEN) for number in (0, 4, 8))))
    handlers = view.mount.call(lambda: view.handlers)

    def listing() -> list[bytes]:
        handle = handlers.opendir(1)
        names = handlers.directory(handle, 0).names
        handlers.releasedir(handle)
        return names

    assert sorted(view.mount.call(listing)) == [b".", b".."] + [b"f%d" % number for number in (1, 2, 3, 5, 6, 7)]


def test_a_directory_that_was_opened_before_shows_nothing_of_it_after(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base))
    fill(view)
    fd = os.open(at(view, "top/s"), os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert sorted(os.listdir(fd)) == ["deep", "file"]
        replace_rules(view, path_rule(base, "top/s", HIDDEN))
        os.lseek(fd, 0, os.SEEK_SET)
        with refused(errno.ENOENT):
            os.listdir(fd)
        replace_rules(view, path_rule(base, "top/s/file", HIDDEN))
        os.lseek(fd, 0, os.SEEK_SET)
        assert os.listdir(fd) == ["deep"]
    finally:
        os.close(fd)


def test_a_listing_that_was_begun_goes_on_with_what_is_not_hidden_itself(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base))
    fill(view)
    with os.scandir(at(view, "top/s")) as entries:
        replace_rules(view, path_rule(base, "top/s", HIDDEN), NameRule(b"file", RuleState.ALLOW, ""))
        assert [entry.name for entry in entries] == ["file"]


def test_no_file_handle_leads_to_what_is_hidden(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base), asker=(answers := Answers()))
    fill(view)
    handlers = view.mount.call(lambda: view.handlers)
    with path_to(at(view, "top/s")) as directory, path_to(at(view, "top/s/file")) as file:
        numbers = [os.stat(directory).st_ino, os.stat(file).st_ino]
        for number in numbers:
            answer = view.mount.call(lambda: handlers.lookup(number, b"."))  # noqa: B023 - called at once
            assert answer.attr is not None
            view.mount.call(lambda: handlers.forget([(number, 1)]))  # noqa: B023 - called at once
        replace_rules(view, path_rule(base, "top/s", HIDDEN))
        for number in numbers:
            with refused(errno.ENOENT):
                view.mount.call(lambda: handlers.lookup(number, b"."))  # noqa: B023 - called at once
        with refused(errno.ENOENT):
            os.stat(file)
    assert {question.operation for question in answers.refusals} == {Operation.READ}


AT_EMPTY_PATH, AT_STATX_DONT_SYNC = 0x1000, 0x4000


def size_by_statx(fd: int, path: bytes = b"") -> int:
    """Return what statx(2) tells of a size without asking the filesystem."""
    room = ctypes.create_string_buffer(256)
    if LIBC.statx(fd, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0x7FF, room):
        raise OSError(ctypes.get_errno(), "statx")
    size: int = struct.unpack_from("Q", room, 40)[0]
    return size


def test_attributes_that_are_not_asked_for_tell_a_holder_nothing_new(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    (base / "d/f").write_text("x" * 77)
    view = mounted(book=book(base), base_timeout_s=0.0)
    with path_to(at(view, "d")) as directory, path_to(at(view, "d/f")) as file:
        assert size_by_statx(file) == 77
        replace_rules(view, path_rule(base, "d", HIDDEN))
        (base / "d/f").write_text("x" * 99)
        for fd, path in ((file, b""), (directory, b"f"), (directory, b"."), (file, b"")):
            with refused(errno.ENOENT):
                os.stat(path, dir_fd=fd) if path else os.stat(fd)
        with refused(errno.ENOENT):
            size_by_statx(directory, b"f")
        assert size_by_statx(file) == 77


def test_a_watch_that_was_set_before_tells_nothing_of_what_is_hidden(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base), base_timeout_s=0.0)
    fill(view)
    (base / "shown").mkdir()
    (base / "shown/key.pem").write_text("x")
    os.listdir(at(view, "shown"))
    watch = LIBC.inotify_init1(os.O_NONBLOCK)
    with path_to(at(view, "top/s/deep")) as deep, path_to(at(view, "top/s/file")) as file:
        for path in ("top", "top/s", "top/s/deep", "top/s/file", "shown"):
            assert LIBC.inotify_add_watch(watch, os.fsencode(at(view, path)), 0xFFF) > 0
        replace_rules(view, path_rule(base, "top/s", HIDDEN), SuffixRule(b".pem", HIDDEN, "test:2"))
        with contextlib.suppress(BlockingIOError):
            os.read(watch, 1 << 16)
        for act in (
            lambda: os.open("new", os.O_CREAT, dir_fd=deep),
            lambda: os.unlink("open", dir_fd=deep),
            lambda: os.rename("open", at(view, "open"), src_dir_fd=deep),
            lambda: os.open(f"/proc/self/fd/{file}", os.O_RDONLY),
            lambda: os.unlink(at(view, "shown/key.pem")),
            lambda: os.chmod(at(view, "shown/key.pem"), 0),
        ):
            with refused(errno.ENOENT):
                act()
        (base / "shown/other.pem").write_text("x")
        (base / "shown/key.pem").unlink()
        with refused(errno.ENOENT):
            os.stat(at(view, "shown/key.pem"))
        with pytest.raises(BlockingIOError):
            os.read(watch, 1 << 16)
        for path in ("top/s", "top/s/file", f"/proc/self/fd/{deep}", f"/proc/self/fd/{file}"):
            assert LIBC.inotify_add_watch(watch, os.fsencode(at(view, path)), 0xFFF) == -1
            assert ctypes.get_errno() == errno.ENOENT
    os.close(watch)


def test_a_directorys_link_count_does_not_tell_of_hidden_ones_in_it(base: Path, mounted: Mounter) -> None:
    for name in ("with/shown", "with/hidden", "without/shown", "way/hidden/open", "plain/shown"):
        (base / name).mkdir(parents=True)
    view = mounted(
        book=book(
            base,
            *(path_rule(base, f"{name}/hidden", RuleState.HIDDEN) for name in ("with", "without")),
            path_rule(base, "way", RuleState.HIDDEN),
            path_rule(base, "way/hidden/open", RuleState.ALLOW),
        )
    )
    for name in ("with", "without", "way"):
        for _ in range(2):
            assert os.stat(at(view, name)).st_nlink == 1, name
            assert os.listdir(at(view, name))
    assert os.stat(at(view, "plain")).st_nlink == 3

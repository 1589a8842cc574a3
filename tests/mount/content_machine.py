"""A state machine that compares the content of files with a model, through the mount of a real
daemon.

Descriptors of all kinds stay open over writes, renames, what the host does in base, snapshots,
travels, aborts and commits.  What the documents promise is looked for as they promise it: at the
next open at once; in what is open, and in stat(2), after a change by the host within a second, so
that for these there is a deadline (:data:`tests.mount.content_handles.SOON_S`).

Not asked for, as nothing is promised: what an open file without a name in the view shows once the
host has changed that file in place.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.mount.content_handles import MODES, SOON_S, Handle, Mapper
from tests.mount.content_model import Contents, HostFile, Inode
from tests.support.program import Program, connected
from tests.support.transports import IS_DIRECT
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import BusyFilesError
from yolofs.paths import Generation
from yolofs.session.commit import abort, commit
from yolofs.session.session import Session, SessionAccess
from yolofs.state.hard_links import staged_for
from yolofs.system import syscalls
from yolofs.system.clock import coarse_clock_ns

PAGE = mmap.PAGESIZE
READ_AHEAD = 128 << 10
LARGE = 1 << 20
BASE_NAMES = ("a", "b", "c", "h1", "h2")
NAMES = (*BASE_NAMES, "n1", "n2")

names = st.sampled_from(NAMES)
slots = st.integers(0, 3)
sizes = st.sampled_from(
    (0, 1, 10, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, READ_AHEAD - 1, READ_AHEAD + 1, LARGE, LARGE + 1)
)
small_sizes = st.sampled_from((1, 10, PAGE - 1, PAGE, PAGE + 1, READ_AHEAD + 1))
offsets = st.sampled_from((0, 1, 10, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, READ_AHEAD - 1, READ_AHEAD, LARGE - 1, LARGE))


HOST = {
    "slot": slots,
    "path": names,
    "sets_back": st.booleans(),
    "is_late": st.sampled_from([False, False, True]),
    "held": st.booleans(),
}
"""How the host changes a file in place: one that is open, if there is any, or else the one at
``path``.
"""
STEPS: dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]] = {
    "open": (
        8,
        {
            "slot": slots,
            "name": names,
            "kind": st.sampled_from([*MODES, "read", "map for writing"]),
            "truncates": st.sampled_from([False] * 4 + [True]),
        },
    ),
    "overwrite": (4, {"name": names, "size": small_sizes}),
    "close": (2, {"slot": slots}),
    "write": (8, {"slot": slots, "offset": offsets, "size": small_sizes}),
    "truncate_open": (3, {"slot": slots, "size": sizes}),
    "truncate": (2, {"name": names, "size": sizes}),
    "copy": (2, {"slot": slots, "name": names, "start": offsets, "offset": offsets, "size": small_sizes}),
    "allocate": (1, {"slot": slots, "offset": offsets, "size": small_sizes}),
    "rename": (3, {"old": names, "new": names}),
    "link": (2, {"old": names, "new": names}),
    "unlink": (2, {"name": names}),
    "write_in_base": (6, HOST | {"offset": offsets, "size": small_sizes, "is_answered": st.booleans()}),
    "truncate_in_base": (2, HOST | {"size": sizes}),
    "replace_in_base": (2, {"path": names, "size": sizes, "held": st.booleans()}),
    "snapshot": (3, {"slot": slots, "size": small_sizes}),
    "travel": (3, {"number": st.integers(0, 20), "is_forced": st.sampled_from([False, False, True])}),
    "abort": (1, {}),
    "commit": (2, {}),
}
"""What a step may be: how often, and with which arguments.

One rule for all, as hypothesis leaves out whole rules from an example, and without open files there
is little to see.
"""


def step_of(name: str) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return the strategy for one kind of step."""
    return st.tuples(st.just(name), st.fixed_dictionaries(STEPS[name][1]))


steps = st.sampled_from([name for name, (weight, _) in STEPS.items() for _ in range(weight)]).flatmap(step_of)


class ContentMachine(RuleBasedStateMachine):
    """One project, mounted by a daemon, and what its files should hold."""

    def __init__(self) -> None:
        super().__init__()
        self._ending = contextlib.ExitStack()
        self._handles: dict[int, Handle] = {}
        self._numbers = itertools.count()
        self._tags = itertools.count(1)
        self._late: set[HostFile] = set()
        """What the host has just changed and is not looked at before another step."""

    @initialize(is_watched=st.booleans(), opened=st.lists(step_of("open"), min_size=2, max_size=4))
    def begin(self, is_watched: bool, opened: list[tuple[str, dict[str, Any]]]) -> None:
        top = self._ending.enter_context(tempfile.TemporaryDirectory(prefix="yolofs-test."))
        self._project = Path(top) / "p"
        self._project.mkdir()
        self._yolofs = Program(self._project)
        self._yolofs("init")
        watch = "true" if is_watched else "false"
        settings = f'[rules]\n"/" = "allow"\n[mount]\nwatch = {watch}\nbase_timeout = 0.5\n'
        (self._project / ".yolofs.toml").write_text(settings)
        self._yolofs.trust()
        base = {}
        for name, size in (("a", 3 * PAGE + 5), ("b", 0), ("c", LARGE + 1), ("h1", READ_AHEAD + 1)):
            base[name] = HostFile(bytearray(self._pattern(size)))
            Path(self._in_base(name)).write_bytes(base[name].data)
        os.link(self._in_base("h1"), self._in_base("h2"))
        base["h2"] = base["h1"]
        self._model = Contents(base)
        self._last = 0
        self._mapper = Mapper()
        self._ending.callback(self._mapper.end)
        self._mountpoint = self._ending.enter_context(self._yolofs.mounted())
        self._client = self._ending.enter_context(connected(self._yolofs))
        for step in opened:
            self.do(step)

    def teardown(self) -> None:
        try:
            if hasattr(self, "_client"):
                self._look(is_held_first=True)
                for slot in list(self._handles):
                    self._close(slot)
                for number in self._model.generations:
                    self._look_at_generation(number)
                self._look(is_held_first=True)
        finally:
            for handle in self._handles.values():  # of a step that failed
                with contextlib.suppress(OSError, EOFError):
                    self._close_handle(handle)
            self._ending.close()

    @rule(step=steps)
    def do(self, step: tuple[str, dict[str, Any]]) -> None:
        """Take a step, and compare what there is then."""
        name, arguments = step
        getattr(self, name)(**arguments)

    # ---- programs in the view

    def open(self, slot: int, name: str, kind: str, truncates: bool) -> None:
        self._close(slot)
        inode = self._model.at(name)
        is_map = kind.startswith("map")
        if inode is None:
            if is_map:
                return
            inode = self._model.create(name)
        if is_map:
            if not inode.data:
                return
            number = next(self._numbers)
            mapped = self._mapper("open", number, self._in_view(name), writes=kind != "map")
            self._handles[slot] = Handle(kind, number, inode, mapped)
            assert mapped == len(inode.data)
        else:
            truncates = truncates and kind != "read"
            flags = MODES[kind] | os.O_CREAT | (os.O_TRUNC if truncates else 0)
            self._handles[slot] = Handle(kind, os.open(self._in_view(name), flags, 0o644), inode)
            if truncates:
                self._model.truncate(inode, 0)
        self._look()

    def overwrite(self, name: str, size: int) -> None:
        """Open, write and close at once, as most programs do."""
        inode, data = self._model.at(name), self._pattern(size)
        if inode is None:
            inode = self._model.create(name)
        Path(self._in_view(name)).write_bytes(data)
        self._model.truncate(inode, 0)
        self._model.write(inode, 0, data)
        self._look()

    def close(self, slot: int) -> None:
        self._close(slot)
        self._look()

    def write(self, slot: int, offset: int, size: int) -> None:
        handle = self._one(slot, lambda handle: handle.may_write)
        if handle is None:
            return
        length = len(handle.inode.data)
        if handle.kind == "direct":
            offset, size = offset // PAGE * PAGE, -(-size // PAGE) * PAGE
        elif handle.kind == "append":
            if not IS_DIRECT:
                self._wait_for_size(handle)  # danger for what the host appends, too: as documented
            offset = length
        data = self._pattern(size)
        if handle.is_map:
            self._write_mapped(handle, offset, data)
            self._look()
            return
        if handle.kind == "append":
            assert os.write(handle.number, data) == size
        elif handle.kind == "direct":
            with mmap.mmap(-1, size) as aligned:
                aligned[:] = data
                assert os.pwritev(handle.number, [aligned], offset) == size
        else:
            assert os.pwrite(handle.number, data, offset) == size
        self._model.write(handle.inode, offset, data)
        self._look()

    def _write_mapped(self, handle: Handle, offset: int, data: bytes) -> None:
        data = data[: max(0, min(handle.mapped, len(handle.inode.data)) - offset)]
        self._wait_for_content(handle)  # a page of which a part is written to is written out whole
        self._mapper("write", handle.number, offset, data)
        handle.is_dirty = True
        self._model.write(handle.inode, offset, data)

    def truncate_open(self, slot: int, size: int) -> None:
        handle = self._one(slot, lambda handle: handle.may_write and not handle.is_map)
        if handle is not None:
            os.ftruncate(handle.number, size)
            self._model.truncate(handle.inode, size)
            self._look()

    def truncate(self, name: str, size: int) -> None:
        inode = self._model.at(name)
        if inode is not None:
            self._wait_for_name(name)
            os.truncate(self._in_view(name), size)
            self._model.truncate(inode, size)
            self._look()

    def copy(self, slot: int, name: str, start: int, offset: int, size: int) -> None:
        handle, source = self._one(slot, lambda handle: handle.kind in ("write", "both")), self._model.at(name)
        if handle is None or source is None or source is handle.inode:
            return
        fd = os.open(self._in_view(name), os.O_RDONLY)
        try:
            self._wait(lambda: os.fstat(fd).st_size == len(source.data), f"the size of {name!r}")
            count = os.copy_file_range(fd, handle.number, size, start, offset)
        finally:
            os.close(fd)
        data = bytes(source.data[start : start + size])
        assert count == len(data)
        self._model.write(handle.inode, offset, data)
        self._look()

    def allocate(self, slot: int, offset: int, size: int) -> None:
        """Reserve room; where the transport has no fallocate(2) it says so.  What is read stays."""
        handle = self._one(slot, lambda handle: handle.may_write and not handle.is_map)
        if handle is not None and IS_DIRECT:
            syscalls.reserve_space(handle.number, offset, size)
            self._model.allocate(handle.inode)
            self._look()
        elif handle is not None:
            with pytest.raises(OSError, match="not supported") as raised:
                syscalls.reserve_space(handle.number, offset, size)
            assert raised.value.errno == errno.EOPNOTSUPP
            self._look()

    def rename(self, old: str, new: str) -> None:
        if old in self._model.view and old != new:
            self._wait_for_name(old)
            self._wait_for_name(new)
            os.rename(self._in_view(old), self._in_view(new))
            self._model.rename(old, new)
            self._look()

    def link(self, old: str, new: str) -> None:
        inode = self._model.at(old)
        if inode is not None and inode.host is None and new not in self._model.view:
            os.link(self._in_view(old), self._in_view(new))
            self._model.link(old, new)
            self._look()

    def unlink(self, name: str) -> None:
        if name in self._model.view:
            self._wait_for_name(name)
            os.unlink(self._in_view(name))
            self._model.unlink(name)
            self._look()

    # ---- the host

    def write_in_base(
        self,
        path: str,
        offset: int,
        size: int,
        is_answered: bool,
        slot: int,
        sets_back: bool,
        is_late: bool,
        held: bool,
    ) -> None:
        path = self._held_path(slot) or path
        host = self._changing(path, sets_back=sets_back, is_late=is_late)
        if host is None:
            return
        data = self._pattern(size)
        with self._host_file(path, sets_back=sets_back) as fd:
            os.pwrite(fd, data, offset)
        host.data.extend(bytes(max(0, offset - len(host.data))))
        host.data[offset : offset + size] = data
        if is_answered:
            self._answer(host)
        self._look(is_held_first=held)

    def truncate_in_base(self, path: str, size: int, slot: int, sets_back: bool, is_late: bool, held: bool) -> None:
        path = self._held_path(slot) or path
        host = self._changing(path, sets_back=sets_back, is_late=is_late)
        if host is None:
            return
        with self._host_file(path, sets_back=sets_back) as fd:
            os.ftruncate(fd, size)
        del host.data[size:]
        host.data.extend(bytes(size - len(host.data)))
        self._look(is_held_first=held)

    def replace_in_base(self, path: str, size: int, held: bool) -> None:
        host = self._model.base.get(path)
        if host is None or len(self._model.names_in_base(host)) > 1:
            return
        self._sync(host)
        data = self._pattern(size)
        other = Path(self._in_base(path) + ".other")
        other.write_bytes(data)
        os.rename(other, self._in_base(path))
        self._model.replace(path, data)
        self._look(is_held_first=held)

    def _held_path(self, slot: int) -> str:
        """Return where in base a file lies that is open, an empty string if none is."""
        handle = self._one(
            slot, lambda handle: handle.inode.host is not None and handle.inode.host.inode is handle.inode
        )
        paths = (
            self._model.names_in_base(handle.inode.host) if handle is not None and handle.inode.host is not None else []
        )
        return paths[0] if paths else ""

    def _answer(self, host: HostFile) -> None:
        """Write into a part of what the host has just changed, before anybody could notice: the
        rest is copied.
        """
        for handle in self._handles.values():
            if handle.inode.host is host and handle.kind in ("write", "both"):
                data = self._pattern(10)
                assert os.pwrite(handle.number, data, 0) == len(data)
                self._model.write(handle.inode, 0, data)
                break

    def _changing(self, path: str, *, sets_back: bool, is_late: bool) -> HostFile | None:
        """Prepare for that the host changes a file in place; return what it is."""
        host = self._model.base.get(path)
        if host is None:
            return None
        self._sync(host)
        for slot, handle in list(self._handles.items()):
            if handle.inode.host is host:
                if host.inode is handle.inode:
                    handle.is_behind = True
                else:
                    self._close(slot)
        if is_late:
            self._late.add(host)
        return host

    @contextlib.contextmanager
    def _host_file(self, path: str, *, sets_back: bool) -> Any:
        before = os.stat(self._in_base(path))
        # another tick of the clock, so that old kernels give the change another ctime, too
        self._wait(lambda: coarse_clock_ns() > before.st_ctime_ns, "the clock")
        fd = os.open(self._in_base(path), os.O_RDWR)
        try:
            yield fd
        finally:
            os.close(fd)
        if sets_back:
            os.utime(self._in_base(path), ns=(before.st_atime_ns, before.st_mtime_ns))

    def _sync(self, host: HostFile) -> None:
        """Have the kernel write out what is mapped of a file: else its pages would go over what the
        host writes.
        """
        for handle in self._handles.values():
            if handle.is_dirty:
                self._mapper("sync", handle.number)
                handle.is_dirty = False

    # ---- time

    def snapshot(self, slot: int, size: int) -> None:
        """Keep what was just written into a mapping, too."""
        handle = self._one(slot, lambda handle: handle.kind == "map for writing")
        if handle is not None:
            self._write_mapped(handle, 0, self._pattern(size))
        number = self._client.snapshot(b"", if_changed=False)
        assert number is not None
        assert number == self._last + 1
        self._last = int(number)
        self._model.snapshot(number)
        self._look_at_generation(number)
        self._look()

    def travel(self, number: int, is_forced: bool) -> None:
        target = number % (self._last + 1)
        if not is_forced and any(handle.may_write for handle in self._handles.values()):
            with pytest.raises(BusyFilesError, match="files are open for writing"):
                self._client.travel(str(target), force=False)
        else:
            _, present = self._client.travel(str(target), force=is_forced)
            assert present == self._last + (2 if self._model.is_changed else 1)
            self._last = int(present)
            self._model.travel(target, present)
        self._look()

    def abort(self) -> None:
        with self._client.lend(LoanKind.ABORT), self._session() as session:
            abort(session)
        self._last = 0
        self._model.abort()
        self._look()

    def commit(self) -> None:
        with self._client.lend(LoanKind.COMMIT) as in_use, self._session() as session:
            session.in_use = in_use
            result = commit(session, force=True)  # also over what the host has changed
        if result.number is None:  # nothing to be done, and so no new timeline
            assert self._model.view == {name: name for name in self._model.base}
        else:
            self._last = 0
            self._model.commit()
        self._look()

    def _session(self) -> Session:
        return Session.open(os.fsencode(self._project), SessionAccess.LENT)

    # ---- comparing

    def _look(self, *, is_held_first: bool = False) -> None:
        """Compare everything visible, with the open files before or after newly opened ones."""
        late, self._late = self._late, set()
        looks = [self._look_at_names, self._look_at_handles]
        for look in reversed(looks) if is_held_first else looks:
            look(late)
        self._look_at_base()

    def _look_at_names(self, late: set[HostFile]) -> None:
        shown = set(os.listdir(self._mountpoint)) - {".yolofs.toml"}
        assert shown == set(self._model.view)
        for name in self._model.view:
            inode = self._model.at(name)
            assert inode is not None
            if inode.host in late:
                continue
            with open(self._in_view(name), "rb", buffering=0) as file:
                self._compare(file.readall(), inode, f"{name!r}, opened anew")
            size = len(inode.data)
            self._wait(lambda: os.stat(self._in_view(name)).st_size == size, f"the size of {name!r}")  # noqa: B023 - called in this round

    def _look_at_handles(self, late: set[HostFile]) -> None:
        for handle in self._handles.values():
            if handle.inode.host in late or handle.kind == "write":
                continue
            if handle.is_behind:
                self._wait_for_content(handle)
            else:
                self._compare(self._content(handle), handle.inode, f"{handle.kind} handle", handle.mapped)
        for handle in self._handles.values():
            if handle.kind == "write" and handle.inode.host not in late:
                self._wait_for_size(handle)

    def _look_at_generation(self, number: int) -> None:
        """Compare what a generation has staged: what was written after it is not to be in it."""
        with Session.open(os.fsencode(self._project), SessionAccess.READ) as session:
            tree = session.state(Generation(number))
            for name, place in self._model.generations[number].items():
                shown = tree.resolve(os.fsencode(name))
                assert shown is not None
                staged = shown.staged
                if staged is None and shown.base is not None and os.path.lexists(session.base.path(shown.base)):
                    staged = staged_for(tree, session.base, session.base.lstat(shown.base))
                if isinstance(place, str):
                    assert staged is None
                    assert shown.base == os.fsencode(place)
                else:
                    assert staged is not None
                    with open(session.store.path(staged.ino), "rb", buffering=0) as file:
                        assert file.readall() == place[1], f"{name!r} in generation {number}"

    def _look_at_base(self) -> None:
        shown = set(os.listdir(self._project)) - {".yolofs", ".yolofs.toml"}
        assert shown == set(self._model.base)
        for name, host in self._model.base.items():
            with open(self._in_base(name), "rb", buffering=0) as file:
                assert file.readall() == host.data, f"{name!r} in base"

    @staticmethod
    def _compare(found: bytes, inode: Inode, what: str, mapped: int = 0) -> None:
        expected = bytes(inode.data[:mapped] if mapped else inode.data)
        if found != expected:
            at = next((i for i, (x, y) in enumerate(zip(found, expected, strict=False)) if x != y), -1)
            raise AssertionError(
                f"{what}: {len(found)} bytes and not {len(expected)}; first difference at {at}: "
                f"{found[at : at + 24]!r} and not {expected[at : at + 24]!r}"
            )

    def _content(self, handle: Handle, *, is_whole: bool = True) -> bytes:
        """Return what a handle shows: all, or no more than there should be.

        What goes beyond the end has the kernel ask for the size, and so the daemon look at the
        file.
        """
        if handle.is_map:
            size = min(handle.mapped, len(handle.inode.data))
            content: bytes = self._mapper("read", handle.number, size)
            return content
        if handle.kind == "direct":
            read = b""
            with mmap.mmap(-1, LARGE) as aligned:
                while count := os.preadv(handle.number, [aligned], len(read)):
                    read += aligned[:count]
            return read
        size = len(handle.inode.data)
        found = os.pread(handle.number, size, 0)
        return found if len(found) < size or not is_whole else found + os.pread(handle.number, LARGE, size)

    def _wait_for_content(self, handle: Handle) -> None:
        expected = bytes(handle.inode.data[: handle.mapped] if handle.is_map else handle.inode.data)
        deadline = time.monotonic() + SOON_S
        for is_whole in (False, True):
            while self._content(handle, is_whole=is_whole) != expected and time.monotonic() < deadline:
                time.sleep(0.01)  # between two looks at a condition with a deadline
        self._compare(self._content(handle), handle.inode, f"{handle.kind} handle, after a while", handle.mapped)
        handle.is_behind = False

    def _wait_for_size(self, handle: Handle) -> None:
        self._wait(
            lambda: os.fstat(handle.number).st_size == len(handle.inode.data), f"the size of a {handle.kind} handle"
        )

    def _wait_for_name(self, name: str) -> None:
        """Have the kernel look up a name: checks that open nothing rely on its knowledge."""
        with contextlib.suppress(FileNotFoundError):
            os.close(os.open(self._in_view(name), os.O_RDONLY))

    @staticmethod
    def _wait(condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + SOON_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {SOON_S} s: {what}"
            time.sleep(0.005)  # between two looks at a condition with a deadline

    # ---- inside

    def _one(self, slot: int, is_wanted: Callable[[Handle], bool]) -> Handle | None:
        """Return one of the handles that are wanted, None if there is none."""
        wanted = [handle for handle in self._handles.values() if is_wanted(handle)]
        return wanted[slot % len(wanted)] if wanted else None

    def _pattern(self, size: int) -> bytes:
        """Return bytes that are nowhere else, and tell their place."""
        return random.Random(next(self._tags)).randbytes(size)

    def _in_view(self, name: str) -> str:
        return str(self._mountpoint / name)

    def _in_base(self, name: str) -> str:
        return str(self._project / name)

    def _close(self, slot: int) -> None:
        if slot in self._handles:
            self._close_handle(self._handles[slot])
            del self._handles[slot]

    def _close_handle(self, handle: Handle) -> None:
        if handle.is_map:
            self._mapper("close", handle.number)
        else:
            os.close(handle.number)

"""A process that searches directories before they are bound straight from base, for anything that a
run must not reach.

``python -I -S native_survey.py STATE_FD HASTE`` reads the paths of directories, with NUL bytes
between them, and writes a report for each: its path, and the paths of what was found in it, with a
NUL byte between them and two at the end.
It looks for sockets and fifos, as these lead to the program at the other end even from a read-only
mount, and for what belongs to sessions, which no view shows.  What the user may not read is passed
over: the sandbox has the same user and no more rights.  What cannot be looked through for another
reason counts as found.

What it has seen is kept in the state directory (``STATE_FD``, -1 for none).  Of a directory that is
the same one and was not changed since, nothing is read the next time
(``docs/design/native-binds.md``).  ``HASTE``: how many directories are read before nobody waits any
more.  Then the report ``idle`` comes, and the process goes on when nobody else wants the CPU.  The
last report is ``read`` and the number of directories that were read.

A survey with haste is the first of a mount, and is started before anybody knows what runs will
want.  Until its input ends, it looks through what was wanted last, which is kept, too.

Why a process: looking at a hundred thousand names takes a second and holds the interpreter lock,
which the daemon that serves a mount cannot spare.  It imports nothing of yolofs, so it starts at
once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence

SESSION_LINK = b".yolofs"
JOURNAL = b"journal"
STATE_MARK = b".yolofs-state"
SESSIONS = b"sessions"
DISK_STATE = b".yolofs-"
NATIVE_SURVEY = b"native-survey"
"""As in :mod:`yolofs.system.own_names`; the last but one stands before a user's number."""
_MOST = 50
"""Up to this number, each is told."""

_MAGIC = b"yolofs native survey 1 "
_MAX_BYTES = 64 << 20
_MAX_KEPT = 200_000
"""How many directories are remembered."""
_YOUNG_NS = 2_000_000_000
"""If a directory was changed so shortly before it was read, it may change once more without another
ctime: filesystems count in ticks of the kernel, or in seconds.
"""
_LOCAL_TYPES = frozenset(b"bcachefs btrfs erofs ext2 ext3 ext4 f2fs overlay ramfs squashfs tmpfs xfs zfs".split())
"""Filesystems on which the kernel of this machine, and its clock, write each ctime."""
_SAVE_EVERY = 5_000
"""What is known so far is saved each time this many directories were read."""
_PASSED_OVER = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""The user may not look into it, or it is no directory (any more)."""
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "loongarch64": 30}

_IS_MARK = ord("!")
_WANTED = b"wanted"
"""The record of what was wanted last; all others are about absolute paths."""

KnownDirectories = dict[bytes, bytes]
"""What is known of directories, by their paths: which directory it was (device, inode, ctime), then
``/NAME`` for each directory in it and ``!NAME`` for each thing found, ``!`` alone for itself, with
NUL bytes between them."""


class Survey:
    """Looks through directories, by what is known of them as far as that still holds.

    ``now_ns``: tells the time (the realtime clock).  ``mounts``: the mountpoints of this moment,
    with their filesystem types.  ``on_read`` is called after each directory that was read.
    """

    def __init__(
        self,
        known: KnownDirectories,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        mounts: Callable[[], Mapping[bytes, bytes]] | None = None,
        on_read: Callable[[Survey], object] = lambda _: None,
    ) -> None:
        self._known = known
        self._now_ns = now_ns
        self._mounts = mounts or read_mounts
        self._types = self._mounts()
        self._is_local_by_device: dict[int, bool] = {}
        self._seen: KnownDirectories = {}
        self._tops: list[bytes] = []
        self._on_read = on_read
        self.read_count = 0
        """The names of how many directories were read."""

    def find(self, top: bytes) -> list[bytes]:
        """Return the paths below ``top`` that must not be reached; ``top`` itself if there are
        many.
        """
        found: list[bytes] = []
        todo = [] if os.path.islink(top) else [top]
        self._tops.append(top)
        while todo and len(found) <= _MOST:
            directory = todo.pop()
            for word in self._look(directory):
                if word[0] != _IS_MARK:
                    todo.append(directory + word)
                else:
                    found.append(directory + b"/" + word[1:] if len(word) > 1 else directory)
        return found if len(found) <= _MOST else [top]

    def _look(self, directory: bytes) -> list[bytes]:
        """Return what is in a directory, as in :data:`KnownDirectories`."""
        known = self._known.get(directory)
        if known is not None:
            identity, *words = known.split(b"\0")
            try:
                st = os.lstat(directory)
            except OSError:
                pass  # reading it says why
            else:
                if identity == _identity(st):
                    self._seen[directory] = known
                    return words
        try:
            return self._read(directory)
        except OSError as error:
            if os.path.basename(directory) == SESSION_LINK and os.path.lexists(os.path.join(directory, JOURNAL)):
                return [b"!"]
            return [] if error.errno in _PASSED_OVER else [b"!"]

    def _read(self, directory: bytes) -> list[bytes]:
        now_ns = self._now_ns()
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            st = os.fstat(fd)  # before it is read: what changes meanwhile has another ctime
            words = _words(fd, os.path.basename(directory))
        finally:
            os.close(fd)
        if st.st_ctime_ns < now_ns - _YOUNG_NS and self._is_local(st.st_dev, directory):
            self._seen[directory] = b"\0".join((_identity(st), *words))
        self.read_count += 1
        self._on_read(self)
        return words

    def _is_local(self, device: int, path: bytes) -> bool:
        """Tell whether ctimes on a device can be gone by; ``path`` is on it."""
        if device not in self._is_local_by_device:
            while path not in self._types and path != b"/":
                path = os.path.dirname(path)
            self._is_local_by_device[device] = self._types.get(path) in _LOCAL_TYPES
        return self._is_local_by_device[device]

    def to_keep(self) -> KnownDirectories:
        """Return what may be kept for the next survey.

        A directory in which something is mounted is left out: what is below a mount shows when it
        ends, and no ctime tells.
        """
        points = {os.path.dirname(point) for point in (*self._types, *self._mounts())}
        tops = [os.path.join(top, b"") for top in self._tops]

        def is_elsewhere(path: bytes) -> bool:
            return not any(os.path.join(path, b"").startswith(top) for top in tops)

        kept = {path: known for path, known in self._seen.items() if path not in points}
        others = [path for path in self._known if path not in kept and path not in points and is_elsewhere(path)]
        if len(kept) + len(others) <= _MAX_KEPT:
            kept |= {path: self._known[path] for path in others}
        return kept if len(kept) <= _MAX_KEPT else dict(list(kept.items())[:_MAX_KEPT])


def _words(fd: int, name: bytes) -> list[bytes]:
    """Return what is in an open directory of that name, as in :data:`KnownDirectories`."""
    names: set[bytes] = set()
    words: list[bytes] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below = os.fsencode(entry.name)
                names.add(below)
                is_state = below.startswith(DISK_STATE) and below[len(DISK_STATE) :].isdigit()
                words.append((b"!" if is_state else b"/") + below)
            elif not entry.is_file(follow_symlinks=False) and _leads_out(entry):  # the name of a file says nothing
                words.append(b"!" + os.fsencode(entry.name))
    is_state = SESSIONS in names and _has(fd, STATE_MARK)
    return [b"!"] if is_state or (name == SESSION_LINK and _has(fd, JOURNAL)) else words


def _has(fd: int, name: bytes) -> bool:
    try:
        os.lstat(name, dir_fd=fd)
    except OSError:
        return False
    return True


def _leads_out(entry: os.DirEntry[str]) -> bool:
    """Tell whether somebody else is at the other end, or it is the link to a session."""
    if entry.is_symlink():
        return os.fsencode(entry.name) == SESSION_LINK
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _identity(st: os.stat_result) -> bytes:
    return b"%d:%d:%d" % (st.st_dev, st.st_ino, st.st_ctime_ns)


def read_mounts() -> dict[bytes, bytes]:
    """Return the mountpoints that this process sees, and what is mounted there (proc(5))."""
    found = {}
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            fields, _, rest = line.partition(b" - ")
            first, *others = fields.split(b" ")[4].split(b"\\")  # of blanks and the like the octal number stands there
            point = first + b"".join(bytes([int(other[:3], 8)]) + other[3:] for other in others)
            found[point] = rest.split(b" ", 1)[0]
    return found


# ---- what is kept


def load(state: int) -> KnownDirectories:
    """Return what is kept in an open state directory; nothing if that is damaged, or not the user's
    own.
    """
    try:
        fd = os.open(NATIVE_SURVEY, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=state)
    except OSError:
        return {}
    try:
        st = os.fstat(fd)
        is_own = stat.S_ISREG(st.st_mode) and st.st_uid == os.geteuid() and not st.st_mode & 0o022
        if not is_own or st.st_size > _MAX_BYTES:
            return {}
        with open(fd, "rb", closefd=False) as file:
            head, _, body = file.read(_MAX_BYTES).partition(b"\n")
    except OSError:  # of the disk
        return {}
    finally:
        os.close(fd)
    if head != _head(body):
        return {}
    return {path: known for path, _, known in (record.partition(b"\0") for record in body.split(b"\0\0")) if known}


def save(state: int, known: KnownDirectories) -> None:
    """Replace what is kept in an open state directory.  It does without if that fails."""
    body = b"\0\0".join(path + b"\0" + one for path, one in known.items())
    ending = b".%b.new" % NATIVE_SURVEY
    temporary = b".%d%b" % (os.getpid(), ending)
    with contextlib.suppress(OSError):
        for name in map(os.fsencode, os.listdir(state)):  # of others that were killed
            if name.endswith(ending):
                os.unlink(name, dir_fd=state)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=state)
        with open(fd, "wb") as file:
            file.write(_head(body) + b"\n" + body)
        os.rename(temporary, NATIVE_SURVEY, src_dir_fd=state, dst_dir_fd=state)


def _head(body: bytes) -> bytes:
    import zlib

    return _MAGIC + b"%08x" % zlib.crc32(body)


# ---- the process


def be_idle() -> None:
    """Use the CPU when nobody else wants it.  The disk serves this process like others, but last:
    one that is never served may hold what others wait for.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    number = _IOPRIO_SET.get(os.uname().machine)
    if number is not None:
        import ctypes  # takes long, and most surveys are over by then

        best_effort, lowest = 2 << 13, 7
        ctypes.CDLL(None).syscall(number, 1, 0, best_effort | lowest)  # ioprio_set(2), of this process


def write(report: bytes) -> None:
    """Write a report to stdout, all of it."""
    report += b"\0\0"
    while report:
        report = report[os.write(1, report) :]


def read_wanted() -> list[bytes]:
    """Return the directories that stdin names, when that has ended."""
    data = b""
    while part := os.read(0, 1 << 16):
        data += part
    return data.split(b"\0") if data else []


def main(state: int, haste: int, wanted: Callable[[], Sequence[bytes]]) -> None:
    """Report on each wanted directory as soon as it is read; ``wanted`` waits until it is told
    which these are.
    """

    def on_read(survey: Survey) -> None:
        if survey.read_count == haste:
            write(b"idle")
            be_idle()
        if state >= 0 and not survey.read_count % _SAVE_EVERY:
            save(state, survey.to_keep() | before)

    if not haste:
        be_idle()
    known = load(state) if state >= 0 else {}
    before = {_WANTED: known.pop(_WANTED)} if _WANTED in known else {}
    survey = Survey(known, on_read=on_read)
    told = set()

    def tell(directories: Sequence[bytes]) -> None:
        for directory in directories:
            if directory not in told:
                told.add(directory)
                write(b"\0".join((directory, *survey.find(directory))))

    try:
        if haste and before:
            tell(before[_WANTED].split(b"\0"))
        now = wanted()
        tell(now)
        write(b"read\0%d" % survey.read_count)
    except BrokenPipeError:  # the daemon has been killed: nobody wants to know any more
        return
    after = {_WANTED: b"\0".join(now)} if now else before
    if state >= 0 and (survey.read_count or after != before):
        kept = survey.to_keep()
        if kept != known or after != before:
            save(state, kept | after)


if __name__ == "__main__":
    os.chdir("/")  # whoever started the daemon may want to unmount where it was
    main(int(sys.argv[1]), int(sys.argv[2]), read_wanted)

"""Seals: proofs that the plan of a commit was written here, by this user, for this session and this
base.

A plan that lies in a session says what is done to base.  Whoever can put one there (by a clone, an
archive, a copy, or as another user) could have anything written.  So each plan is sealed before its
first step, with a key that lies only in the user's own state directory.  A plan without a seal that
fits is not carried out.

The seal lies beside the plan (``commits/N/seal``, JSON) and says in plain words what it was made
for.  So a message about a seal that does not fit can say what differs.  An HMAC-SHA256 (RFC 2104)
over all that follows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import struct
from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from yolofs.errors import TrustError
from yolofs.registry.identity import DirectoryIdentity
from yolofs.registry.private import place_in, read_private, write_private
from yolofs.registry.state_directory import open_state
from yolofs.system.plain_files import is_there, naming
from yolofs.text.percent import quote_from_bytes

KEY = b"seal.key"
MACHINE = b"machine-id"
MACHINE_FILES = (b"/etc/machine-id", b"/var/lib/dbus/machine-id")
"""Where systems keep what tells them from all others, over reboots (machine-id(5))."""
_KEY_BYTES = 32
_BOOT_FILE = b"/proc/sys/kernel/random/boot_id"
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR})
_is_machine_id = re.compile(rb"[0-9a-f]{32}").fullmatch
_VERSION = 1


# ---- the key and the machine


def seal_key(state: int, *, make: bool = False) -> bytes:
    """Return the key in an open state directory; ``make``: it is made if there is none.

    Raises:
        FileNotFoundError: there is none (and it is not to be made).
        TrustError: it is not a file of the user's alone, or no key.
    """
    return _kept(state, KEY, os.urandom(_KEY_BYTES) if make else b"", lambda key: len(key) == _KEY_BYTES)


def machine_id(state: int, files: Sequence[bytes] = MACHINE_FILES) -> bytes:
    """Return what tells this machine from others and stays over reboots.

    Where the system has nothing of the kind (in many containers the file is missing, empty or says
    "uninitialized"), it is made once and kept in the open state directory.
    """
    for path in files:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            text = file.read(64).strip()
            if _is_machine_id(text) and text.strip(b"0"):
                return text
    return _kept(state, MACHINE, os.urandom(16).hex().encode(), lambda text: bool(_is_machine_id(text)))


def _kept(state: int, name: bytes, new: bytes, is_right: Callable[[bytes], bool]) -> bytes:
    """Return what a file in the state directory holds; if it is missing, put ``new`` there, unless
    that is empty.
    """
    try:
        found = read_private(state, name)
    except FileNotFoundError:
        if not new:
            raise
        _write_if_missing(state, name, new)
        found = read_private(state, name)  # another process may have been faster
    if not is_right(found):
        raise TrustError(
            f"{name.decode()} in the state directory is not as yolofs made it",
            hint="put it back from a backup, or remove it: then an interrupted commit can only be given up",
        )
    return found


def _write_if_missing(state: int, name: bytes, content: bytes) -> None:
    """Write a file, durably, whole or not at all, unless there is one by now."""
    temporary = b"%b.%d" % (name, os.getpid())
    write_private(state, temporary, content)
    with naming(place_in(state, name)):
        try:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, name, src_dir_fd=state, dst_dir_fd=state, follow_symlinks=False)
        finally:
            os.unlink(temporary, dir_fd=state)
        os.fsync(state)


def seal(key: bytes, fields: Sequence[bytes]) -> str:
    """Return the HMAC-SHA256 over some fields in their order, in hex; each goes in with its length
    before it.
    """
    import hmac  # takes a while, and only commits want it

    made = hmac.new(key, digestmod="sha256")
    for field in fields:
        made.update(struct.pack(">Q", len(field)))
        made.update(field)
    return made.hexdigest()


def _is_equal(one: str, other: str) -> bool:
    import hmac

    return hmac.compare_digest(one.encode(), other.encode())


def read_plainly(path: bytes) -> bytes | None:
    """Return the content of a file that anybody may have put there; None if there is no regular
    file.

    A link is not followed, and nobody is waited for at the other end of a fifo.

    Raises:
        OSError: it cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        return None
    try:
        with naming(path):
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            with open(fd, "rb", buffering=0, closefd=False) as file:  # buffers take four system calls more for each
                return file.readall()
    finally:
        os.close(fd)


def digest_of_file(path: bytes) -> str | None:
    """Return the SHA-256 of a file in hex; None if there is nothing, "" if it is not a file.

    Raises:
        OSError: it cannot be read.
    """
    if not is_there(path):
        return None
    text = read_plainly(path)
    return _digest(text) if text is not None else ""


def _digest(text: bytes) -> str:
    import hashlib

    return hashlib.sha256(text).hexdigest()


# ---- the seal of a commit


class SealedBase(msgspec.Struct, frozen=True):
    """Which base directory it is."""

    path: bytes
    identity: DirectoryIdentity


class Seal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``commits/N/seal``.  Paths are percent-encoded bytes."""

    version: int
    time_ns: int
    """When the commit began."""
    number: int
    session: str
    """Where its session lies."""
    uid: int
    machine: str
    """Made from the machine's id, which is not to be told to others."""
    root: str
    """The path of base."""
    inode: int
    birth_ns: int | None
    device: int
    boot: str
    """Since when device numbers count: see :meth:`Sealer.problems`."""
    plan: str
    """SHA-256 of ``plan.json``."""
    carried: str | None
    """SHA-256 of the journal that is to follow; None if there is none."""
    key: str
    """Which key it is sealed with, without giving it away."""
    seal: str = ""
    """The HMAC over all the rest."""

    def fields(self) -> list[bytes]:
        """Return all that is sealed."""
        without = msgspec.structs.replace(self, seal="")
        return [b"%b=%b" % (name.encode(), msgspec.json.encode(value)) for name, value in _items(without)]


def _items(struct_: msgspec.Struct) -> list[tuple[str, object]]:
    return list(msgspec.structs.asdict(struct_).items())


class Sealer:
    """Makes and checks the seals of one session, in this place and for this user."""

    def __init__(self, session: bytes, key: bytes, machine: bytes) -> None:
        """``session``: the session's directory.  Use :meth:`open`."""
        self._session = quote_from_bytes(os.path.realpath(session))
        self._key = key
        self._key_name = seal(key, [b"which key"])[:16]
        self._machine = seal(machine, [b"yolofs", b"which machine"])[:32]
        self._boot = _boot()

    @classmethod
    def open(cls, session: bytes, *, make: bool = False, machine_files: Sequence[bytes] = MACHINE_FILES) -> Self:
        """Return what seals for the session in a directory; ``make``: a key is made if there is
        none.

        Raises:
            FileNotFoundError: there is no key (and none is to be made).
            TrustError: the state directory, or a file in it, is not the user's alone.
        """
        state = open_state(make=make)
        try:
            return cls(session, seal_key(state, make=make), machine_id(state, machine_files))
        finally:
            os.close(state)

    def sealed(self, number: int, base: SealedBase, plan: bytes, carried: str | None, time_ns: int) -> bytes:
        """Return the seal of commit ``number``; ``carried`` is the digest of the journal to
        follow.
        """
        made = Seal(
            version=_VERSION,
            time_ns=time_ns,
            number=number,
            session=self._session,
            uid=os.geteuid(),
            machine=self._machine,
            root=quote_from_bytes(base.path),
            inode=base.identity.inode,
            birth_ns=base.identity.birth_ns,
            device=base.identity.device,
            boot=self._boot,
            plan=_digest(plan),
            carried=carried,
            key=self._key_name,
        )
        return msgspec.json.encode(msgspec.structs.replace(made, seal=seal(self._key, made.fields()))) + b"\n"

    def end(self, sealed: bytes, steps: int) -> bytes:
        """Return what says that all steps of the commit with this seal are done."""
        return b"%d %b\n" % (steps, seal(self._key, [b"done", sealed, b"%d" % steps]).encode())

    def is_end(self, text: bytes, sealed: bytes) -> bool:
        """Tell whether a text is what :meth:`end` made for the commit with this seal."""
        steps = text.split(b" ")[0]
        return steps.isdigit() and _is_equal(text.decode(errors="replace"), self.end(sealed, int(steps)).decode())

    def given_up(self, number: int) -> bytes:
        """Return what says that commit ``number`` is not to be finished."""
        return b"%b\n" % seal(self._key, [b"given up", self._session.encode(), b"%d" % number]).encode()

    def is_given_up(self, text: bytes, number: int) -> bool:
        """Tell whether a text is what :meth:`given_up` made for commit ``number``."""
        return _is_equal(text.decode(errors="replace"), self.given_up(number).decode())

    def problems(
        self, sealed: bytes, number: int, plan: bytes, carried: str | None = None, *, has_ended: bool = False
    ) -> list[str]:
        """Return what does not fit of the seal of commit ``number``, each in words to follow "…: ";
        nothing if it fits.

        Where the commit ``has_ended``, the journal that was to follow it is not asked about: it has
        been put in force.

        Whether base fits is told by :func:`base_problems`.
        """
        try:
            found = msgspec.json.decode(sealed, type=Seal)
        except msgspec.DecodeError:
            return ["its seal cannot be read"]
        if found.version != _VERSION:
            return [f"its seal has version {found.version}, and only {_VERSION} is known"]
        if found.key != self._key_name:
            return ["its seal was made with another key than yours"]
        if not _is_equal(found.seal, seal(self._key, found.fields())):
            return ["its seal was changed"]
        fits = {
            "it belongs to another session, or this one lay elsewhere": found.session == self._session,
            f"it was commit {found.number}": found.number == number,
            "it began as another user": found.uid == os.geteuid(),
            "it began on another machine, or this one was set up anew": found.machine == self._machine,
            "its plan was changed": _is_equal(found.plan, _digest(plan)),
            "the journal that is to follow it (carried) was changed": has_ended or found.carried == carried,
        }
        return [what for what, is_so in fits.items() if not is_so]

    def base_problems(self, sealed: bytes, base: SealedBase) -> list[str]:
        """Return what does not fit of base; the seal itself is known to be right.

        The number of a device may be another after a reboot, and after each mount of some
        filesystems.  So it counts only where there is no time of birth to tell a directory by, and
        within one boot.
        """
        found = msgspec.json.decode(sealed, type=Seal)
        now = base.identity
        if found.root != quote_from_bytes(base.path):
            return ["its base was at another path"]
        is_same = (found.inode, found.birth_ns) == (now.inode, now.birth_ns)
        if not now.birth_ns and found.boot == self._boot:
            is_same = is_same and found.device == now.device
        return [] if is_same else ["another directory is in the place of its base"]


def began_ns(sealed: bytes) -> int | None:
    """Return when the commit with this seal began, as the seal says it, whether it fits or not;
    None if it does not.
    """
    try:
        said = msgspec.json.decode(sealed, type=Seal).time_ns
    except msgspec.DecodeError:
        return None
    return said if 0 < said < 1 << 63 else None


def _boot() -> str:
    try:
        with open(_BOOT_FILE, "rb") as file:
            return file.read(64).strip().decode(errors="replace")
    except OSError:
        return ""

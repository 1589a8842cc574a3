"""The user's state directory: where it is, and what lies in it.

::

    STATE/.yolofs-state     tells any view that this directory is yolofs', and not to be shown
    STATE/registry/         one small file for each session
    STATE/sessions/ID/      a session
    STATE/trust/            which settings of which project the user has agreed to
    STATE/seal.key          what plans of commits are sealed with
    STATE/machine-id        which machine this is, where the system does not say
    STATE/native-survey     what was seen in directories that sandboxes may have straight from base

STATE is ``$YOLOFS_STATE``, or ``state`` in the user's own ``config.toml``, or
``$XDG_STATE_HOME/yolofs``, or ``~/.local/state/yolofs`` (XDG Base Directory Specification 0.8).
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd

from yolofs.config.load import user_file, user_places
from yolofs.errors import ConfigError, TrustError, UsageError
from yolofs.paths import display
from yolofs.registry.private import ELSEWHERE, check_safe, open_private, write_private
from yolofs.system.own_names import STATE_MARK, STATE_NAME
from yolofs.system.plain_files import naming

SESSIONS = b"sessions"
REGISTRY = b"registry"
TRUST = b"trust"
_VARIABLE = b"YOLOFS_STATE"
_MARK_TEXT = b"""\
The state of yolofs: what is staged, and which rules hold.  No view shows this directory.
To take a session away: yolofs sessions --forget ID
"""


def user_home() -> bytes:
    """Return the user's home directory, absolute, as the environment or the password database has
    it.
    """
    home = os.path.expanduser(b"~")
    if not os.path.isabs(home):  # whatever it is relative to, it is not the user's home
        home = os.fsencode(pwd.getpwuid(os.geteuid()).pw_dir)
    return os.path.normpath(home)


def state_directory() -> bytes:
    """Return the user's state directory, absolute; it may not be there yet, and is not looked at.

    Raises:
        ConfigError: the user's ``config.toml`` or ``$YOLOFS_STATE`` is wrong.
    """
    chosen = _chosen()
    if chosen is not None:
        return chosen
    configured = os.environb.get(b"XDG_STATE_HOME", b"")
    above = configured if os.path.isabs(configured) else os.path.join(user_home(), b".local/state")
    return os.path.join(os.path.normpath(above), STATE_NAME)


def state_above(path: bytes) -> bytes | None:
    """Return the state directory that an absolute path lies in, None if it lies in none."""
    while not os.path.lexists(os.path.join(path, STATE_MARK)):
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def has_chosen_state() -> bool:
    """Tell whether the user has said where the state directory is to be, whatever disk a project is
    on.
    """
    return _chosen() is not None


def _chosen() -> bytes | None:
    chosen = os.environb.get(_VARIABLE)
    if chosen:
        return _absolute(chosen, "YOLOFS_STATE")
    home = user_home()
    text = user_places(home).state
    return _absolute(os.path.expanduser(os.fsencode(text)), f"{display(user_file(home))}: state") if text else None


def _absolute(path: bytes, what: str) -> bytes:
    if not os.path.isabs(path) or not path.strip(b"/"):
        raise ConfigError(f"{what}: expected an absolute path or one below ~, got {display(path)}")
    return os.path.normpath(path)


def open_state(path: bytes | None = None, *, make: bool = False) -> int:
    """Open a state directory, the user's own if no other is named, and return its descriptor.

    ``make``: it is made and marked if it is not there.

    Raises:
        FileNotFoundError: it is not there (and not to be made).
        TrustError: others could change what lies in it.
        UsageError: it holds other things already.
        OSError: it cannot be opened or made.
    """
    path = path if path is not None else state_directory()
    fd = open_private(path, make=make)
    try:
        if make and not _is_marked(fd):
            if not all(name.startswith(".") and name.endswith(".new") for name in os.listdir(fd)):  # of another start
                raise UsageError(f"{display(path)} holds other things", hint="name a directory that is empty or new")
            write_private(fd, STATE_MARK, _MARK_TEXT)
        return fd
    except BaseException:
        os.close(fd)
        raise


def open_part(state: int, name: bytes, *, make: bool = True) -> int:
    """Open a directory in an open state directory (:data:`REGISTRY`, …), made if it is missing.

    Raises:
        FileNotFoundError: it is missing, and not to be made.
        TrustError: it is no directory, or others could change what lies in it.
    """
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=state)
    path = os.path.join(os.readlink(b"/proc/self/fd/%d" % state), name)
    try:
        with naming(path):
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=state)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise TrustError(
            f"{display(path)} is not a directory", hint=f"look at it, and remove it; or {ELSEWHERE}"
        ) from None
    try:
        with naming(path):
            check_safe(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def state_of(session: bytes) -> bytes:
    """Return the state directory that a session lies in."""
    return os.path.dirname(os.path.dirname(session))


def _is_marked(state: int) -> bool:
    try:
        os.stat(STATE_MARK, dir_fd=state, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True

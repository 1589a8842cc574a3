"""``--as-owner``: root works with the rights of a directory's owner, and no others."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Sequence

from yolofs.errors import TrustError, UsageError
from yolofs.paths import display

FLAG = "--as-owner"
_KEPT = ("LANG", "LC_ALL", "NO_COLOR", "PATH", "TERM", "TZ")
"""What of root's environment the owner gets: nothing that leads to root's files."""
_UMASK = 0o022
_FIRST_NOT_STANDARD = 3
"""The descriptors from here on are no terminal that the command is to speak to."""


def become_owner(directory: bytes, words: Sequence[str]) -> None:
    """Carry out a command line as the owner of the directory that it starts from; does not return.

    ``words`` lack :data:`FLAG`, and ``-C``.  Returns if that is who we are.  Traits of root's that
    the owner's processes could use are dropped: open files, a current directory closed to the
    owner, a umask that lets all write.

    Raises:
        UsageError: only root can become somebody else.
        TrustError: the owner has no name, or may not run this Python or go to the directory.
    """
    uid = os.stat(directory).st_uid
    if uid == os.geteuid():
        return
    if os.geteuid() != 0:
        raise UsageError(
            f"only root can work with the rights of {display(directory)}'s owner", hint=f"leave out {FLAG}"
        )
    try:
        owner = pwd.getpwuid(uid)
    except KeyError:
        raise TrustError(
            f"{display(directory)} belongs to user {uid}, whom /etc/passwd does not know", hint="run it as that user"
        ) from None
    environment = _environment(owner)
    os.initgroups(owner.pw_name, owner.pw_gid)
    os.setresgid(owner.pw_gid, owner.pw_gid, owner.pw_gid)
    os.setresuid(uid, uid, uid)
    try:
        os.chdir(directory)
    except OSError as error:
        raise TrustError(
            f"{owner.pw_name} cannot go to {display(directory)}: {error.strerror}",
            hint="see who may enter the directories above it",
        ) from None
    os.umask(os.umask(_UMASK) | _UMASK)
    if not os.access(sys.executable, os.X_OK) or not os.access(__file__, os.R_OK):
        raise TrustError(
            f"{owner.pw_name} may not run {sys.executable} with {__file__}",
            hint="install yolofs where all users may read it",
        )
    os.closerange(_FIRST_NOT_STANDARD, os.sysconf("SC_OPEN_MAX"))
    command = [sys.executable, "-P", "-m", "yolofs.cli.main", *words]
    os.execve(sys.executable, command, environment)  # anew, so that nothing of root's stays in memory


def _environment(owner: pwd.struct_passwd) -> dict[str, str]:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"HOME": owner.pw_dir, "USER": owner.pw_name, "LOGNAME": owner.pw_name, "SHELL": owner.pw_shell}
    runtime = f"/run/user/{owner.pw_uid}"
    if os.path.isdir(runtime):
        environment["XDG_RUNTIME_DIR"] = runtime
    return environment

"""``--as-owner``: root works with the rights of who owns a directory, and no others."""

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


def become_owner(directory: bytes, words: Sequence[str]) -> None:
    """Carry out a command line, of which ``words`` lack :data:`FLAG`, as the owner of a directory; does not return.

    Returns if that is who we are.

    Raises:
        UsageError: only root can become somebody else.
        TrustError: the owner has no name, or may not run this Python.
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
    if not os.access(sys.executable, os.X_OK) or not os.access(__file__, os.R_OK):
        raise TrustError(
            f"{owner.pw_name} may not run {sys.executable} with {__file__}",
            hint="install yolofs where all users may read it",
        )
    command = [sys.executable, "-P", "-m", "yolofs.cli.main", *words]
    os.execve(sys.executable, command, environment)  # anew, so that nothing of root's stays in memory


def _environment(owner: pwd.struct_passwd) -> dict[str, str]:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"HOME": owner.pw_dir, "USER": owner.pw_name, "LOGNAME": owner.pw_name, "SHELL": owner.pw_shell}
    runtime = f"/run/user/{owner.pw_uid}"
    if os.path.isdir(runtime):
        environment["XDG_RUNTIME_DIR"] = runtime
    return environment

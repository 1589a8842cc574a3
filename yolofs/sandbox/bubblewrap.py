"""The command line of bubblewrap that makes the sandbox.  What each part keeps out:
``docs/reference/sandbox.md``.
"""

import os
from collections.abc import Iterator, Sequence

import msgspec

from yolofs.registry.runtime import AGENT_SOCKET_NAME

PROGRAM = "bwrap"
DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom", b"/dev/tty")
"""The host's devices that ``--dev`` shows inside, besides the terminal that is passed on anyway."""


class Sandbox(msgspec.Struct, frozen=True):
    """What a sandbox is made of.  Paths are absolute, without symbolic links."""

    view: bytes
    """The mountpoint of the view of ``/``, which becomes the root, with what is mounted in
    there.
    """
    runtime_root: bytes
    """Where the control sockets of all sessions lie: covered, except for the next one."""
    agent_socket: bytes
    """The restricted socket; shown as ``agent.sock`` in ``runtime_root``."""
    covered: tuple[bytes, ...]
    """Directories of the view that show as empty ones, private to this sandbox."""
    has_network: bool
    has_user_namespace: bool
    is_root: bool
    seccomp_fd: int
    info_fd: int
    """Gets bubblewrap's own JSON about the namespaces that it made."""
    block_fd: int
    """Nothing is started before there is something to read from this."""
    covers_runtime_root: bool = True
    """Whether ``runtime_root`` is still to be covered; it is not where that was done before
    (:mod:`yolofs.sandbox.tmp_mounts`).
    """

    def command(self, start: Sequence[bytes]) -> list[bytes]:
        """Return the command line that makes the sandbox and runs ``start`` in it."""
        return [PROGRAM.encode(), *self._namespaces(), *self._files(), *self._descriptors(), b"--", *start]

    def _namespaces(self) -> Iterator[bytes]:
        if self.has_user_namespace:
            yield b"--unshare-user"
        yield from (b"--unshare-pid", b"--unshare-ipc", b"--unshare-uts", b"--unshare-cgroup-try")
        if not self.has_network:
            yield b"--unshare-net"
        yield from (b"--cap-drop", b"ALL")
        yield b"--die-with-parent"

    def _files(self) -> Iterator[bytes]:
        yield from (b"--bind", self.view, b"/")
        yield from (b"--proc", b"/proc")
        # The first process is bubblewrap's own, and the user's as all the others are: its memory
        # could be written to.
        yield from (b"--perms", b"0555", b"--tmpfs", b"/proc/1")
        if self.is_root:
            # Files of /proc/sys belong to root, who may write them without any capability:
            # core_pattern, for example, names a program that the kernel starts outside of every
            # sandbox.
            yield from (b"--remount-ro", b"/proc")
        yield from (b"--dev", b"/dev")
        for path in self.covered:
            yield from (b"--perms", b"0700", b"--tmpfs", path)
        if self.covers_runtime_root:
            yield from (b"--perms", b"0700", b"--tmpfs", self.runtime_root)
            yield from (b"--ro-bind", self.agent_socket, agent_socket_inside(self.runtime_root))
            yield from (b"--remount-ro", self.runtime_root)
        yield from (b"--chdir", b"/")  # the launcher goes to the directory that the command is to start in

    def _descriptors(self) -> Iterator[bytes]:
        yield from (b"--seccomp", b"%d" % self.seccomp_fd)
        yield from (b"--info-fd", b"%d" % self.info_fd)
        yield from (b"--block-fd", b"%d" % self.block_fd)


def agent_socket_inside(runtime_root: bytes) -> bytes:
    """Return the path of the restricted socket inside."""
    return os.path.join(runtime_root, AGENT_SOCKET_NAME)

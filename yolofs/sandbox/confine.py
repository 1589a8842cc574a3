"""Starting a command in the sandbox, or saying exactly why that cannot be."""

import _socket
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from yolofs.errors import NotExecutableError, SandboxError, YolofsError
from yolofs.paths import display, in_shell, is_below
from yolofs.registry.runtime import AGENT_SOCKET_NAME, login_directory
from yolofs.sandbox import launcher
from yolofs.sandbox.bubblewrap import PROGRAM, Sandbox
from yolofs.sandbox.host_files import make_read_only, own_host_files
from yolofs.sandbox.host_names import HostNames
from yolofs.sandbox.jobs import SandboxJob, Terminal, ignoring_signals
from yolofs.sandbox.namespaces import find_possible, leave_mounts
from yolofs.sandbox.native_mounts import mount_over
from yolofs.sandbox.seccomp import compile_filter, has_filter
from yolofs.sandbox.start_errors import start_error
from yolofs.sandbox.tmp_mounts import Cover, PrivateTmp, mount_private
from yolofs.system import descriptor_passing
from yolofs.system.host_programs import find_program
from yolofs.system.processes import pidfd_of

_MOST_HANDLES = 250
"""A few less than the number of descriptors that can be sent at once."""
_STAGED_TMP = 'try it again, or have the view show it: run.tmp = "view" in ~/.config/yolofs/config.toml'
_GONE_S = 5.0
"""How long the processes that a command has left behind may take to die."""


class SandboxInfo(msgspec.Struct, frozen=True, rename="kebab"):
    """What bubblewrap tells of a sandbox: the pid of its first process, and its pid namespace."""

    child_pid: int
    pid_namespace: int


class StartingPlace(msgspec.Struct, frozen=True):
    """Where a command is started."""

    mountpoint: bytes
    runtime_root: bytes
    agent_socket: bytes
    directory: bytes
    native: Mapping[bytes, Sequence[bytes]]
    """What comes straight from base, as :func:`yolofs.sandbox.native_mounts.mount_over` takes
    it.
    """
    has_network: bool
    tmp: PrivateTmp = PrivateTmp()
    """What it has in place of the view's ``/tmp``, where mounts can be made."""
    is_for_shell: bool = False
    """Whether the command is a shell for somebody at a terminal."""


class Confined:
    """A sandbox that waits for :meth:`run`.  Use :func:`confined`."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        info: SandboxInfo,
        init_fd: int | None,
        block_fd: int,
        report_fd: int,
        names: HostNames,
    ) -> None:
        self._process = process
        self._names = names
        self._init_fd = init_fd
        self._block_fd = block_fd
        self._report_fd = report_fd
        self.info = info

    def run(self, tell: Callable[[str], None]) -> int:
        """Start the command, wait for it and return its exit code; all its processes are gone then.

        ``tell`` is called with the reason if it has to be ended.

        Raises:
            SandboxError: the sandbox could not be finished.
        """
        terminal = Terminal()
        try:
            job = SandboxJob(
                self._process,
                self.info.child_pid,
                terminal,
                kill=self._kill_all,
                each_look=self._names.look,
                tell=tell,
            )
            if _has_terminal():  # before a shell in there puts a group of its own into the foreground
                terminal.lend(self._process.pid)
            with contextlib.suppress(BrokenPipeError):  # the sandbox is gone: its exit code tells
                os.write(self._block_fd, b"\n")
            code = job.wait()
            if job.was_killed:
                terminal.restore()
        finally:
            terminal.close()
        if not self._is_gone(_GONE_S if self._process.returncode >= 0 else 0):
            self._kill()
        return self._checked(code)

    def end(self) -> None:
        """Kill what there is still."""
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
            self._kill()

    def _kill(self) -> None:
        """Kill the sandbox's first process, and with it all others, as bubblewrap does when it ends
        by itself.
        """
        self._kill_first()
        self._is_gone(_GONE_S)

    def _kill_all(self) -> None:
        """Kill bubblewrap, inside and outside: whatever either waits for, or has been stopped
        by.
        """
        self._kill_first()
        os.kill(self._process.pid, signal.SIGKILL)  # not waited for yet, so it is still this process

    def _kill_first(self) -> None:
        if self._init_fd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)

    def _is_gone(self, patience_s: float) -> bool:
        """Tell whether the first process has ended, or does within a time."""
        return self._init_fd is None or bool(select.select([self._init_fd], [], [], patience_s)[0])

    def _checked(self, code: int) -> int:
        """Return the exit code, or what it is if the command was never started."""
        os.set_blocking(self._report_fd, False)
        try:
            lines = os.read(self._report_fd, 4096).splitlines()
        except BlockingIOError:
            lines = []
        if not lines:
            raise _failure(code, f"let programs in the view read {display(_python())}; if they can, {why_not()}")
        if len(lines) == 1:
            return code
        number, _, what = lines[1].partition(b" ")
        raise _NotStarted(int(number), is_directory=what.decode() == launcher.CHANGE_DIRECTORY)


class _NotStarted(Exception):  # noqa: N818 - never seen outside
    def __init__(self, number: int, *, is_directory: bool) -> None:
        super().__init__(os.strerror(number))
        self.number = number
        self.is_directory = is_directory


@contextlib.contextmanager
def confined(
    place: StartingPlace, command: Sequence[bytes], environment: Mapping[bytes, bytes], stdin: int
) -> Iterator[Confined]:
    """Make a sandbox for a command and give it; what is left of it at the end of the block is
    killed.

    Raises:
        SandboxError: this machine forbids it; the hint says how to allow it.
        CommandNotFoundError, NotExecutableError: the command cannot be started in the view.
    """
    machine = os.uname().machine
    if not has_filter(machine):
        raise SandboxError(
            f"there is no filter of system calls for {machine}, so there is no sandbox",
            hint="yolofs mount works without one",
        )
    possible = find_possible()
    native = place.native if possible.native_mounts else {}
    tmp = place.tmp if possible.native_mounts else PrivateTmp()
    is_root = os.geteuid() == 0
    search_path = os.fsdecode(environment.get(b"PATH", os.defpath.encode()))
    program = find_program(PROGRAM, search_path)
    if program is None:
        raise SandboxError("bubblewrap is not installed, so there is no sandbox", hint="install the package bubblewrap")
    guarded = own_host_files(search_path) if possible.native_mounts or is_root else ()
    with contextlib.ExitStack() as kept, contextlib.ExitStack() as handed_on:
        info_read, info_write = _pipe(kept, handed_on)
        block_read, block_write = _pipe(handed_on, kept)
        report_read, report_write = _pipe(kept, handed_on)
        sandbox = Sandbox(
            view=place.mountpoint,
            runtime_root=place.runtime_root,
            agent_socket=place.agent_socket,
            covered=_covered(place, tmp),
            has_network=place.has_network,
            has_user_namespace=possible.user_namespace,
            is_root=is_root,
            seccomp_fd=_filter(handed_on, machine, has_network=place.has_network),
            info_fd=info_write,
            block_fd=block_read,
            covers_runtime_root=not tmp.lies_in(place.runtime_root),
        )
        here, there = _socket.socketpair()
        kept.callback(here.close)
        handed_on.callback(there.close)
        with ignoring_signals() as ignored:
            start = _start(report_write, ignored, place, command)
            process = _popen(program, sandbox, native, tmp, guarded, start, environment, stdin, report_write, there)
        handed_on.close()
        names = HostNames(_received(here, kept), [path for paths in native.values() for path in paths])
        try:
            info = _read_info(info_read, process)
        except BaseException:
            process.kill()
            process.wait()
            raise
        init_fd = kept.enter_context(pidfd_of(info.child_pid))
        running = Confined(process, info, init_fd, block_write, report_read, names)
        try:
            yield running
        except _NotStarted as error:
            raise _command_error(error, command, place, environment.get(b"PATH")) from None
        finally:
            running.end()


def _covered(place: StartingPlace, tmp: PrivateTmp) -> tuple[bytes, ...]:
    """Return the directories that are covered besides the runtime root.

    Raises:
        SandboxError: a rule keeps the runtime root out of the view, so it cannot be covered.
    """
    login = login_directory()
    covered = (login,) if _is_shown(place, login) else ()
    root = place.runtime_root
    if not (covered and is_below(root, login)) and not _is_shown(place, root) and not tmp.lies_in(root):
        raise SandboxError(
            f"the sandbox needs {display(root)} for its socket, and the view does not show that",
            hint=f"yolofs rule explain {in_shell(root)}; make its rule read-only: the directory then shows as empty",
        )
    return covered


def _is_shown(place: StartingPlace, path: bytes) -> bool:
    return os.path.isdir(place.mountpoint + path)


def _popen(
    program: str,
    sandbox: Sandbox,
    native: Mapping[bytes, Sequence[bytes]],
    tmp: PrivateTmp,
    guarded: Sequence[bytes],
    start: Sequence[bytes],
    environment: Mapping[bytes, bytes],
    stdin: int,
    report_fd: int,
    handles: _socket.socket,
) -> subprocess.Popen[bytes]:
    cover = None
    if not sandbox.covers_runtime_root:
        cover = Cover(sandbox.runtime_root, AGENT_SOCKET_NAME, sandbox.agent_socket)
    told_read, told_write = os.pipe()

    def prepare() -> None:
        leave_mounts()
        try:
            mount_private(sandbox.view, tmp, cover)
        except OSError as error:
            os.write(told_write, b"%b: %b" % (display(os.fsencode(error.filename or b"/tmp")).encode(), _reason(error)))
            raise
        descriptor_passing.send(handles, mount_over(sandbox.view, native)[:_MOST_HANDLES])
        make_read_only(guarded)

    try:
        return subprocess.Popen(
            sandbox.command(start),
            executable=program,
            stdin=stdin or None,
            env=environment,
            process_group=0,
            preexec_fn=prepare if native or guarded or tmp.sources else None,
            pass_fds=(sandbox.seccomp_fd, sandbox.info_fd, sandbox.block_fd, report_fd),
        )
    except subprocess.SubprocessError:
        os.set_blocking(told_read, False)
        with contextlib.suppress(BlockingIOError):
            told = os.read(told_read, 4096).decode()
            raise SandboxError(f"the private /tmp of a run cannot be mounted: {told}", hint=_STAGED_TMP) from None
        raise SandboxError("the mounts of a sandbox cannot be made here", hint=why_not()) from None
    finally:
        os.close(told_read)
        os.close(told_write)


def _reason(error: OSError) -> bytes:
    return (error.strerror or "it failed").encode()


def _received(handles: _socket.socket, stack: contextlib.ExitStack) -> list[int]:
    """Return the descriptors that bubblewrap's process sent before it became that."""
    fds = descriptor_passing.receive(handles, 1, _MOST_HANDLES)[1]
    for fd in fds:
        stack.callback(os.close, fd)
    return fds


def _start(report: int, ignored: Sequence[int], place: StartingPlace, command: Sequence[bytes]) -> list[bytes]:
    """Return the command line of the launcher."""
    with open(launcher.__file__, "rb") as file:
        source = file.read()
    numbers = ",".join(map(str, ignored)).encode()
    leads = b"%d" % (place.is_for_shell and _has_terminal())
    return [_python(), b"-I", b"-S", b"-c", source, b"%d" % report, numbers, leads, place.directory, *command]


def _has_terminal() -> bool:
    return os.isatty(0) and os.isatty(1)


def _python() -> bytes:
    """Return the interpreter that the launcher is run by: not a venv's, which takes longer to
    start.
    """
    return os.fsencode(getattr(sys, "_base_executable", sys.executable))


def _pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
    """Return the ends of a pipe, for reading and writing, and have each closed once."""
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _filter(stack: contextlib.ExitStack, machine: str, *, has_network: bool) -> int:
    fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    stack.callback(os.close, fd)
    os.write(fd, compile_filter(machine, has_network=has_network))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _read_info(fd: int, process: subprocess.Popen[bytes]) -> SandboxInfo:
    """Wait for bubblewrap to have made the namespaces."""
    text = b""
    while True:
        data = os.read(fd, 4096)
        text += data
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(text, type=SandboxInfo)
        if not data:
            raise _failure(process.wait(), why_not())


def _command_error(
    error: _NotStarted, command: Sequence[bytes], place: StartingPlace, search: bytes | None
) -> YolofsError:
    if error.is_directory:
        reason = os.strerror(error.number)
        hint = f"yolofs rule explain {in_shell(place.directory)}"
        return NotExecutableError(f"cannot go to {display(place.directory)} in the view: {reason}", hint=hint)

    def outside(path: bytes) -> bytes:
        return place.tmp.outside(path) or os.path.join(place.mountpoint, path.lstrip(b"/"))

    return start_error(
        command[0],
        error.number,
        outside=outside,
        is_private=place.tmp.is_private,
        directory=place.directory,
        search=search,
    )


def _failure(code: int, hint: str) -> SandboxError:
    """Return the error for a sandbox that could not be made; bubblewrap itself has said why on
    stderr.
    """
    return SandboxError(
        f"bubblewrap cannot make the sandbox here (exit code {code}; its own message stands above)", hint=hint
    )


_APPARMOR = (
    "AppArmor keeps user namespaces from programs without a profile: install the profile bwrap-userns-restrict "
    "(package apparmor-profiles), or, as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
)
_FORBIDDING = (
    ("/proc/sys/user/max_user_namespaces", "0", "as root: sysctl user.max_user_namespaces=10000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "as root: sysctl kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", _APPARMOR),
)
"""Settings that forbid user namespaces to all but root: file, forbidding value, and remedy."""


def why_not() -> str:
    """Return what on this machine forbids a sandbox, and how to allow it, as far as that can be
    seen.
    """
    if os.geteuid() == 0:
        return "in a container: start it with --cap-add SYS_ADMIN and without a seccomp profile that forbids mount"
    for path, value, hint in _FORBIDDING:
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            if file.read().strip() == value:
                return hint
    return "in a container: allow user namespaces and mount in its seccomp profile, or run as root there"

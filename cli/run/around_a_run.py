"""What happens around a command of ``yolofs run``: mount, generation, sandbox, generation, summary.

Imports only what every run needs: starting one on a mounted session should not be felt.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from yolofs.cli import output
from yolofs.cli.options import start_directory
from yolofs.cli.project.which_project import find_project, session_directory
from yolofs.cli.rules.untrusted_settings import say_what_waits
from yolofs.cli.run.new_feedback import say_new_feedback
from yolofs.cli.run.shells import is_shell
from yolofs.config.load import is_default, load
from yolofs.config.settings import Settings
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.daemon_files import log_path, mountpoint_path, read_daemon_file, root_path
from yolofs.daemon.rpc.protocol import unquote
from yolofs.daemon.rpc.run_messages import BeginRunResult, EndRunResult
from yolofs.errors import (
    CommandNotFoundError,
    DaemonError,
    NoSessionError,
    NotExecutableError,
    SandboxError,
    UsageError,
    YolofsError,
)
from yolofs.paths import Generation, check_snapshot_name, display, is_reserved_name
from yolofs.sandbox.standard_streams import check_descriptors
from yolofs.sandbox.start_errors import start_error
from yolofs.system.mounts import is_ours, mounts_at

if TYPE_CHECKING:
    from yolofs.cli.run.read_only_places import ReadOnlyPlace
    from yolofs.daemon.rpc.launch import StartedDaemon

_NAME_CHARS = 60


class RunManner(msgspec.Struct, frozen=True):
    """How a run is to be."""

    is_reviewed: bool = True
    as_json: bool = False
    has_snapshots: bool = True
    name: bytes | None = None
    unsaid: tuple[bytes, ...] = ()
    """Words at the end of the command line that the user did not type: they are not shown."""


def run_command(words: Sequence[bytes], manner: RunManner) -> int:
    """Run a command in the sandbox and return its exit code.

    Inside a sandbox the command is simply run, as it is confined already.

    Raises:
        SandboxError: there can be no sandbox here, or the view that is mounted is not that of /.
        CommandNotFoundError, NotExecutableError: the command cannot be started.
        UsageError: stdin, stdout or stderr is a directory.
        DaemonError: the daemon has just ended.
    """
    if not words[0]:  # which execve(2) would take for the current directory, and Python not at all
        raise start_error(b"", errno.ENOENT)
    if is_in_sandbox():
        if not os.isatty(2):
            from yolofs.cli.run.feedback_inside import has_news, run_and_tell  # hardly a command comes here

            if has_news():
                return run_and_tell([*words, *manner.unsaid])
        _replace_us([*words, *manner.unsaid])
    if manner.name is not None:
        check_snapshot_name(manner.name)
    check_descriptors()
    project = find_project()
    session = session_directory(project)
    settings, waiting = _settings(project, session)
    with _connected(project, session, settings) as client:
        described = read_daemon_file(session)
        if described is None:
            raise DaemonError("the daemon has just ended", hint="yolofs mount")
        _check_root(root_path(described), settings)
        directory = start_directory()
        started_ns = time.time_ns()
        run = settings.run
        begun = client.begin_run(
            words,
            directory,
            snapshot=manner.has_snapshots,
            native=run.native_binds,
            tmp=run.tmp,
            home=os.path.abspath(os.path.expanduser(b"~")),
            meanwhile=_make_ready,
        )
        from yolofs.cli.run.early_summary import EarlySummary  # by now these are there
        from yolofs.cli.run.sandboxed_command import run_in_sandbox

        say_what_waits(waiting + begun.waiting_rules)
        code: int | None = None
        try:
            early = EarlySummary(project, session, Generation(begun.generation)) if manner.is_reviewed else None
            place = mountpoint_path(described)
            code = ended = run_in_sandbox(client, place, session, begun, words, manner.unsaid, run, directory, early)
        except (CommandNotFoundError, NotExecutableError) as error:
            code = error.exit_code
            raise
        finally:
            result = _end(client, begun, code, words, manner)
    generation = Generation(result.generation) if result.generation is not None else None
    has_changes = generation is not None or not manner.has_snapshots
    read_only: list[ReadOnlyPlace] = []
    if manner.is_reviewed and (ended or is_shell(words[0])):
        from yolofs.cli.run.read_only_places import which_are_read_only

        native = [unquote(path) for path in begun.native]
        read_only = which_are_read_only(native, words, os.environb, directory, ended)
    if manner.is_reviewed and (has_changes or result.has_notes or (manner.as_json and read_only)):
        from yolofs.audit.audit import Point
        from yolofs.cli.run.summary import EndedRun, summarise

        before = Point(begun.generation, begun.marker_ns)
        what = EndedRun(
            begun.run, tuple(words), ended, before, generation, has_changes, started_ns, result.going_on, read_only
        )
        try:
            summarise(project, what, early, as_json=manner.as_json)
        except (YolofsError, OSError) as error:  # a commit that came just now, for instance: the exit code counts
            hint = error.hint if isinstance(error, NoSessionError) else "yolofs status"
            output.warn(f"cannot tell what run {begun.run} changed: {error}; {hint}")
    if manner.is_reviewed and not manner.as_json:
        if read_only:
            from yolofs.cli.run.read_only_places import say_places

            say_places(read_only)
        if ended and os.geteuid() == 0:
            from yolofs.cli.run.others_files import say_others_files

            say_others_files(project)
        say_new_feedback(project, session)
    return ended


def _make_ready() -> None:
    """Import what makes the sandbox, and find out what the machine permits, while the daemon begins
    the run.
    """
    from yolofs.cli.run.sandboxed_command import make_ready

    make_ready()


def _settings(project: bytes, directory: bytes) -> tuple[Settings, int]:
    """Return the settings in force, and how many lines wait besides rules."""
    written = load(project)
    if is_default(written):
        return written, 0
    from yolofs.registry.trust import load_in_force  # takes long, and hardly a project comes here

    loaded = load_in_force(project, directory)
    return loaded.settings, len(loaded.waiting)


def passed_on(code: int) -> int:
    """Return the exit code of a command; if Ctrl-C ended it at a terminal, end in the same way."""
    if code == 128 + signal.SIGINT and os.isatty(0):  # so that a shell's loop around us ends, too
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def is_in_sandbox() -> bool:
    """Tell whether the root of this process is a view: nothing that a variable could feign."""
    return any(map(is_ours, mounts_at(b"/")))


def snapshot_name(words: Sequence[bytes]) -> bytes:
    """Return what the generation after a command is called: the command, or the script of
    ``sh -c``, shortened.

    What has a meaning of its own where generations are named is avoided.
    """
    if len(words) >= 3 and is_shell(words[0]) and words[1] in (b"-c", b"-lc"):
        text = os.fsdecode(words[2])
    else:
        text = " ".join(os.fsdecode(word) for word in words)
    text = " ".join(text.split()).replace("..", "‥")
    if len(text) > _NAME_CHARS:
        text = text[: _NAME_CHARS - 1].rstrip() + "…"
    if not text or is_reserved_name(text):
        text = f"command {text}".strip()
    return os.fsencode(text)


@contextlib.contextmanager
def _connected(project: bytes, directory: bytes, settings: Settings) -> Iterator[Client]:
    """Connect to the project's daemon, or start one; where there is no sandbox, what was started
    ends again.
    """
    client = Client.connect(directory)
    is_started = client is None
    if client is None:
        started = _launched(project, directory, settings)
        started.process.returncode = 0  # it goes on without us: no complaint that nobody waited for it
        for warning in started.info.warnings:
            output.warn(warning)
        client = Client.connect(directory)
        if client is None:
            raise DaemonError("the daemon has ended at once", hint=f"see {display(log_path(directory))}")
    with client:
        try:
            yield client
        except SandboxError:
            if is_started:
                with contextlib.suppress(YolofsError):  # others are at work in it by now: it stays for them
                    client.stop(force=False)
            raise


def _launched(project: bytes, directory: bytes, settings: Settings) -> StartedDaemon:
    """Start the daemon: with the whole machine as its base if the settings say so, whatever the
    last mount had.

    After an interrupted commit, the daemon's own error about that comes first.
    """
    from yolofs.daemon.rpc.launch import launch
    from yolofs.session.archive import interrupted_commit
    from yolofs.session.opening.root import known_root

    last = known_root(directory)
    if last in (None, b"/") or settings.root != "/" or interrupted_commit(directory) is not None:
        return launch(project, directory, root=None, in_foreground=False)
    try:
        return launch(project, directory, root=b"/", in_foreground=False)
    except UsageError as error:  # only the daemon can tell for sure whether anything is staged
        raise SandboxError(
            f"{error.message}, and only a view of / can be the root of a sandbox", hint=error.hint
        ) from error


def _check_root(root: bytes, settings: Settings) -> None:
    if root != b"/":
        hint = "yolofs unmount, then: yolofs mount --root /; if something is staged, commit or abort it before"
        if settings.root != "/":
            hint += f"; root in .yolofs.toml is {display(os.fsencode(settings.root))}"
        raise SandboxError(
            f"the session's base is {display(root)}, and only a view of / can be the root of a sandbox", hint=hint
        )


def _end(
    client: Client, begun: BeginRunResult, code: int | None, words: Sequence[bytes], manner: RunManner
) -> EndRunResult:
    """Note the end of a run; a daemon that has died meanwhile does not take the command's exit code
    along.
    """
    name = manner.name if manner.name is not None else snapshot_name(words)
    try:
        return client.end_run(begun.run, code, name, snapshot=manner.has_snapshots)
    except DaemonError as error:
        output.warn(f"{error.message}: the end of run {begun.run} is not noted, and nothing was snapshotted")
        return EndRunResult(None)


def _replace_us(words: Sequence[bytes]) -> None:
    """Become a command.

    Raises:
        CommandNotFoundError, NotExecutableError: it cannot be started.
    """
    try:
        os.execvp(words[0], list(words))
    except OSError as error:
        raise start_error(words[0], error.errno or errno.EIO) from None

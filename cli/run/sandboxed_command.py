"""A command of ``yolofs run`` in its sandbox, from the daemon's answer on.

What this needs is imported while the daemon begins the run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

from yolofs.cli.output import warn
from yolofs.cli.run import private_tmp
from yolofs.cli.run.early_summary import EarlySummary
from yolofs.cli.run.shells import is_shell
from yolofs.cli.run.wait_notice import announcing_asks
from yolofs.config.settings import RunSettings
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.protocol import unquote
from yolofs.daemon.rpc.run_messages import BeginRunResult
from yolofs.errors import SandboxError
from yolofs.paths import display
from yolofs.sandbox.bubblewrap import agent_socket_inside
from yolofs.sandbox.confine import StartingPlace, confined
from yolofs.sandbox.environment import hidden_variables, with_own_tmux, without
from yolofs.sandbox.namespaces import find_possible
from yolofs.sandbox.native_mountable import bindable, by_directory
from yolofs.sandbox.standard_streams import Stdin
from yolofs.system.mounts import is_ours, read_mounts

SOCKET_VARIABLE = b"YOLOFS_SOCKET"
RUN_VARIABLE = b"YOLOFS_RUN"
_INTERACTIVE = frozenset({b"-i", b"-l", b"-il", b"-li", b"--login"})


def make_ready() -> None:
    """Find out what the machine permits, ahead of when that is needed."""
    with contextlib.suppress(OSError):  # whoever needs it asks again, and gets it
        find_possible()


def run_in_sandbox(
    client: Client,
    mountpoint: bytes,
    session: bytes,
    begun: BeginRunResult,
    words: Sequence[bytes],
    unsaid: Sequence[bytes],
    settings: RunSettings,
    directory: bytes,
    early: EarlySummary | None,
) -> int:
    """Run a command and return its exit code; if it is reviewed, tell of its asks meanwhile, and
    read early.

    ``unsaid``: words at its end that the user did not type.

    Raises:
        SandboxError: there can be no sandbox here.
        CommandNotFoundError, NotExecutableError: the command cannot be started.
    """
    mounts = read_mounts()
    if not any(is_ours(entry) and entry.mountpoint == mountpoint for entry in mounts):
        raise SandboxError(f"the view is not mounted at {display(mountpoint)} as seen from here", hint="yolofs status")
    native = bindable([unquote(path) for path in begun.native], mounts)
    runtime_root = os.path.dirname(os.path.dirname(mountpoint))
    environment = _environment(begun, runtime_root, settings)
    tmp = private_tmp.make(session, begun, environment, runtime_root)
    private_tmp.say_what_is_ruled(begun)
    private_tmp.say_what_is_not_there(tmp, words, environment, directory, mountpoint)
    place = StartingPlace(
        mountpoint=mountpoint,
        runtime_root=runtime_root,
        agent_socket=unquote(begun.agent_socket),
        directory=directory,
        native=by_directory(native, mounts),
        has_network=settings.network == "host",
        tmp=tmp,
        is_for_shell=_is_for_shell(words),
    )
    stdin = Stdin()
    try:
        with confined(place, [*words, *unsaid], environment, stdin.fd) as running:
            client.enter_run(begun.run, running.info.pid_namespace)
            if early is None:
                return running.run(warn)
            with announcing_asks(early.directory, begun.run, running.info.pid_namespace), early.reading():
                return running.run(warn)
    finally:
        stdin.close()


def _environment(begun: BeginRunResult, runtime_root: bytes, settings: RunSettings) -> Mapping[bytes, bytes]:
    hidden = hidden_variables(os.environ, settings.hide_env, settings.keep_env)
    own = with_own_tmux(without(os.environ, hidden), settings.keep_env)
    environment = {os.fsencode(k): os.fsencode(v) for k, v in own.items()}
    environment[SOCKET_VARIABLE] = agent_socket_inside(runtime_root)
    environment[RUN_VARIABLE] = b"%d" % begun.run
    return environment


def _is_for_shell(words: Sequence[bytes]) -> bool:
    """Tell whether a command is a shell that reads from the terminal."""
    return is_shell(words[0]) and _INTERACTIVE.issuperset(words[1:])

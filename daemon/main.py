"""The daemon's own program: start, report to whoever started it, serve, and end cleanly."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import fcntl
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Sequence

import msgspec
import trio

from yolofs.daemon.checkpoints import note_lengths, write_checkpoints
from yolofs.daemon.control import Control
from yolofs.daemon.follow.base_watch import look_after_open, watch_base
from yolofs.daemon.follow.rule_watch import watch_rules
from yolofs.daemon.host import Host
from yolofs.daemon.native_binds import NativeBinds
from yolofs.daemon.rpc import endpoint
from yolofs.daemon.rpc.protocol import INTERNAL_ERROR, ErrorObject, Info, Readiness, error_object
from yolofs.daemon.rpc.server import BACKLOG, Server
from yolofs.daemon.runs.survey_process import STATE_OPTION, SurveyProcess
from yolofs.daemon.upkeep.collector import collect_when_idle
from yolofs.daemon.upkeep.log_limit import LogLimit
from yolofs.errors import DaemonError, YolofsError
from yolofs.os_errors import explain_os_error
from yolofs.system.open_file_limit import allow_open_files

log = logging.getLogger("yolofs.daemon")

_MAX_FILES = 1 << 20
_RESERVED_FILES = 1024
"""More than a mount keeps open by itself."""
_DRAIN_S = 2.0
"""How long the end waits for answers that are on their way."""


def main(arguments: Sequence[str] | None = None, first_survey: SurveyProcess | None = None) -> int:
    """Run the daemon and return its exit status; ``first_survey`` has begun already."""
    options = _parse(arguments)
    _prepare_process()
    reporter = _Reporter(options.ready_fd)
    try:
        trio.run(_run, os.fsencode(options.project), options.root and os.fsencode(options.root), reporter, first_survey)
    except YolofsError as error:
        log.error("%s", error.message)
        reporter.failed(error_object(error))
        return error.exit_code
    except OSError as error:
        text, hint = explain_os_error(error)
        log.exception("the daemon failed: %s", text)
        reporter.failed(error_object(DaemonError(f"the daemon cannot go on: {text}", hint=hint)))
        return DaemonError.exit_code
    except BaseException as error:
        log.critical("the daemon failed", exc_info=True)
        reporter.failed(ErrorObject(INTERNAL_ERROR, f"the daemon failed: {error!r}"))
        return 1
    log.info("ended")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="yolofs.daemon", description="Started by `yolofs mount`.")
    parser.add_argument("--project", required=True)
    parser.add_argument("--root")
    parser.add_argument(STATE_OPTION, type=int, help="of the survey that has begun")
    parser.add_argument("--ready-fd", type=int, default=-1)
    return parser.parse_args(arguments)


def _prepare_process() -> None:
    """Set up what holds for the whole process: log, limits, working directory."""
    gc.freeze()  # what is imported stays: no collection looks at it, 14 of the 17 ms of the first
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(LogLimit())
    logging.captureWarnings(True)
    threading.excepthook = _log_thread_failure
    faulthandler.enable()
    with contextlib.suppress(ValueError, OSError):
        _reserve_descriptors(min(_RESERVED_FILES, allow_open_files(_MAX_FILES)))
    os.umask(0o077)
    os.chdir("/")  # nobody's directory is kept busy, least of all one inside the mount


def _reserve_descriptors(count: int) -> None:
    """Have the kernel make a table for a number of descriptors: with threads, each doubling of it
    stops us for 15 ms.
    """
    os.close(fcntl.fcntl(sys.stderr.fileno(), fcntl.F_DUPFD_CLOEXEC, count - 1))


def _log_thread_failure(failure: threading.ExceptHookArgs) -> None:
    name = failure.thread.name if failure.thread is not None else "a thread"
    error = failure.exc_value
    log.critical("%s failed", name, exc_info=error if isinstance(error, Exception) else None)


async def _run(project: bytes, root: bytes | None, reporter: _Reporter, first_survey: SurveyProcess | None) -> None:
    token = trio.lowlevel.current_trio_token()
    mount_ended = trio.Event()

    def on_end() -> None:
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(mount_ended.set)

    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        host = await trio.to_thread.run_sync(lambda: Host.start(project, root, on_end))
        native = NativeBinds(host, first_survey)
        control = Control(host, native)
        try:
            with _listening(host.socket_path) as listener, _listening(host.agent_socket_path) as agent_listener:
                host.publish()
                info = host.info()
                _log_start(info)
                reporter.ready(info)
                await _serve(host, control, native, listener, agent_listener, signals, mount_ended)
        finally:
            await control.end(unmount=False)


def _listening(path: bytes) -> socket.socket:
    listener = endpoint.bind(path)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


async def _serve(
    host: Host,
    control: Control,
    native: NativeBinds,
    listener: socket.socket,
    agent_listener: socket.socket,
    signals: AsyncIterator[int],
    mount_ended: trio.Event,
) -> None:
    """Serve until the mount has ended, a signal asks for the end, or a command does."""
    server = Server(control.converse)
    agent_server = Server(control.converse_with_agent, host.runs.number_of)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.broker.run)
        nursery.start_soon(host.notifier.run, host.broker)
        nursery.start_soon(native.run)
        nursery.start_soon(watch_base, host.base_changes)
        nursery.start_soon(look_after_open, host.base_changes)
        nursery.start_soon(write_checkpoints, host)
        nursery.start_soon(note_lengths, host)
        nursery.start_soon(collect_when_idle, host.collector)
        nursery.start_soon(watch_rules, host.rules, lambda: host.broker.warn((*host.warnings, *host.rules.waits)))
        nursery.start_soon(server.run, listener)
        nursery.start_soon(agent_server.run, agent_listener)
        nursery.start_soon(_end_on_signal, control, signals)
        nursery.start_soon(_end_with_mount, control, mount_ended)
        await control.ended.wait()
        with trio.move_on_after(_DRAIN_S):
            await server.drain()
        nursery.cancel_scope.cancel()


async def _end_on_signal(control: Control, signals: AsyncIterator[int]) -> None:
    async for number in signals:
        log.info("ending on %s", signal.Signals(number).name)
        await control.end(unmount=True)
        return


async def _end_with_mount(control: Control, mount_ended: trio.Event) -> None:
    await mount_ended.wait()
    await control.end(unmount=False)


def _log_start(info: Info) -> None:
    log.info("yolofs %s serves %s at %s", info.version, info.root, info.mountpoint)
    for warning in info.warnings:
        log.warning("%s", warning)


class _Reporter:
    """Tells whoever started the daemon, once, how that went."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def ready(self, info: Info) -> None:
        self._report(Readiness(ready=info))

    def failed(self, error: ErrorObject) -> None:
        self._report(Readiness(error=error))

    def _report(self, readiness: Readiness) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(BrokenPipeError), open(fd, "wb") as pipe:
                pipe.write(msgspec.json.encode(readiness) + b"\n")

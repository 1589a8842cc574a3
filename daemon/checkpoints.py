"""Notes the length of the journal while it is mounted, and writes checkpoints of a long one.

Without the length nobody would see that its last lines went missing after a kill.  Without
checkpoints every command would replay all of it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys

import trio

from yolofs.daemon.host import Host
from yolofs.errors import DaemonError
from yolofs.session.generations import CHECKPOINT_RECORDS

log = logging.getLogger("yolofs.daemon")

_LOOK_S = 5.0


async def write_checkpoints(host: Host) -> None:
    """Have one written each time that the journal has grown by enough, until cancelled."""
    covered = host.checkpointed_records
    while True:
        await trio.sleep(_LOOK_S)
        count = host.record_count
        if count < covered:  # another journal, after a commit or an abort
            covered = 0
        if count - covered >= CHECKPOINT_RECORDS:
            covered = count
            await _write_one(host.project)


async def note_lengths(host: Host) -> None:
    """Note the journal's length each time that it has grown, until cancelled."""
    while True:
        await trio.sleep(_LOOK_S)
        with contextlib.suppress(DaemonError):  # the mount has ended
            await trio.to_thread.run_sync(host.note_length)


async def _write_one(project: bytes) -> None:
    command = [sys.executable, "-P", "-m", "yolofs.daemon.upkeep.checkpointer", os.fsdecode(project)]
    try:
        done = await trio.run_process(command, stdin=subprocess.DEVNULL, capture_stderr=True, check=False)
    except OSError as error:  # the system's limit on processes
        log.info("no checkpoint: %s", error)
        return
    if done.returncode == 0:
        log.info("wrote a checkpoint")
    else:
        log.info("no checkpoint: %s", done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}")

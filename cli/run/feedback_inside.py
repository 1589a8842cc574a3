"""For an agent that runs inside the sandbox: prints what the user dropped at the end of its next
command, once.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence

from yolofs.cli.run.inside_a_sandbox import carry_out
from yolofs.daemon.rpc.client import Client
from yolofs.errors import YolofsError
from yolofs.sandbox.start_errors import start_error

_STDERR = 2


def has_news() -> bool:
    """Tell whether there is something that no agent was told yet, as far as the daemon says."""
    path = os.environ.get("YOLOFS_SOCKET", "")
    with contextlib.suppress(YolofsError, OSError), Client(os.fsencode(path)) as client:
        return client.has_news()
    return False


def run_and_tell(words: Sequence[bytes]) -> int:
    """Run a command, say what is new on stderr, and return the command's exit code.

    Raises:
        CommandNotFoundError, NotExecutableError: it cannot be started.
    """
    try:
        code = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise start_error(words[0], error.errno or 0) from None
    sys.stderr.flush()
    with contextlib.suppress(YolofsError, OSError):
        if has_news():  # the command itself may have printed it
            carry_out(["feedback", "--new"], os.environ["YOLOFS_SOCKET"], out=_STDERR)
    return code if code >= 0 else 128 - code

"""A shell in a sandbox, in which ``y`` is yolofs.

It is run as ``python -c CODE SCRIPT`` with this file as the code, as the checkout need not be there
to be read.

Python and the program are started once, and each ``y`` is a fork: a start takes 200 to 400 ms of
processor time inside.  As with a start, a command has the shell's streams, directory and
environment.  That it starts in a sandbox, other tests show.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from yolofs.cli import group, main  # noqa: F401 - so that no command imports them
from yolofs.cli.run import around_a_run, inside_a_sandbox  # noqa: F401 - the same

_Y = """
y() {{
    local shell=$BASHPID code
    (printf '%s\\0' "$shell" "$#" "$@"; env -0; printf '\\0') >&{asking}
    read -r -u {told} code
    return "$code"
}}
"""
"""Tells its process, its words and the environment, and hears how the command ended; the shell's
streams are as they are all the time.  No two may be called at once."""


def _items(stream: BinaryIO) -> Iterator[bytes]:
    """Yield what comes, each ended by a NUL byte."""
    item = bytearray()
    while byte := stream.read(1):
        if byte == b"\0":
            yield bytes(item)
            item.clear()
        else:
            item += byte


def _be(shell: int, words: list[bytes], environment: dict[bytes, bytes]) -> NoReturn:
    """Be a command, with what a process of the shell has."""
    try:
        for fd, flags in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
            os.dup2(os.open(f"/proc/{shell}/fd/{fd}", flags), fd)
        os.chdir(f"/proc/{shell}/cwd")
        os.chdir(environment[b"PWD"])
        os.closerange(3, 100)
        os.environb.clear()
        os.environb.update(environment)
        sys.argv = [main.__file__, *map(os.fsdecode, words)]
        main.program()
    except BaseException:  # noqa: BLE001 - the process must not go on as the shell's
        traceback.print_exc()
    os._exit(99)


def _serve(asking: BinaryIO, telling: int) -> None:
    """Fork a command whenever the shell asks for one, until it has ended."""
    items = _items(asking)
    for pid in items:
        words = [next(items) for _ in range(int(next(items)))]
        environment = dict(item.split(b"=", 1) for item in iter(lambda: next(items), b""))
        child = os.fork()
        if not child:
            _be(int(pid), words, environment)
        os.write(telling, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _run(script: str) -> int:
    (heard, asking), (told, telling) = os.pipe(), os.pipe()
    functions = _Y.format(asking=asking, told=told)
    with subprocess.Popen(["bash", "-c", functions + script], pass_fds=(asking, told)) as shell:
        os.close(asking)
        os.close(told)
        with open(heard, "rb", buffering=0) as stream:
            _serve(stream, telling)
    return shell.returncode


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1]))

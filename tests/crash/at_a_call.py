"""A command in a process of its own, in which something happens just before one of its calls.

The program takes as arguments the call, as ``module:Class.method``, how often it is called until
then, a place for what happens, and the command's own words.
"""

from __future__ import annotations

_PROGRAM = """
import fcntl, importlib, os, struct, subprocess, sys
from yolofs.cli import main
module, _, name = sys.argv[1].rpartition(":")
owner, name = getattr(importlib.import_module(module), name.split(".")[0]), name.split(".")[1]
really, left = getattr(owner, name), int(sys.argv[2])
def happen(place):
    %s
def call(*arguments, **options):
    global left
    left -= 1
    if left == 0:
        happen(sys.argv[3])
    return really(*arguments, **options)
setattr(owner, name, call)
sys.exit(main.main(sys.argv[4:]))
"""


_WAITING = """
import fcntl, importlib, sys, termios, time
from yolofs.cli import main, progress
from yolofs.system import stop_signals
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
progress._DELAY_S = 0
module, _, name = sys.argv[1].rpartition(":")
owner, name = getattr(importlib.import_module(module), name.split(".")[0]), name.split(".")[1]
really, left = getattr(owner, name), int(sys.argv[2])
def wait(*arguments, **options):
    global left
    left -= 1
    if left == 0:
        print(SAYS, file=sys.stderr, flush=True)
        while stop_signals._signals.noted is None:  # or until it is raised in here
            time.sleep(0.01)  # between two looks; the test that sends the signal ends it in time
    return really(*arguments, **options)
setattr(owner, name, wait)
del sys.argv[1:3]
main.program()
"""


def program_that_waits(says: str) -> str:
    """Return one that waits at the call for a signal from its terminal, and says so.

    It takes no place, and shows how far it is from the beginning.
    """
    return _WAITING.replace("SAYS", repr(says))


def program_in_which(happens: str) -> str:
    """Return the program; ``happens`` is a line of Python, in which ``place`` is its third
    argument.
    """
    return _PROGRAM % happens

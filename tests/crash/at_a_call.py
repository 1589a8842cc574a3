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


def program_in_which(happens: str) -> str:
    """Return the program; ``happens`` is a line of Python, in which ``place`` is its third
    argument.
    """
    return _PROGRAM % happens

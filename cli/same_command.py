"""The command line of this process, to be given again with another option."""

from __future__ import annotations

import os
import sys

from yolofs.paths import in_shell

_MOST_CHARACTERS = 200
"""A longer one is not repeated."""


def same_command_with(command: str, option: str) -> str:
    """Return the present command line for a shell with one more option; if it is too long, only the
    option to add.
    """
    words = sys.argv[1:]
    at = 2 if words[:1] == ["-C"] else 0  # whose value may have the command's name
    if command in words[at:]:
        at = words.index(command, at) + 1
        text = " ".join(in_shell(os.fsencode(word)) for word in ("yolofs", *words[:at], option, *words[at:]))
        if len(text) <= _MOST_CHARACTERS:
            return text
    return f"the same command with {option}"

"""Marks: why a commit takes a file only by its name or with ``--trusted``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from yolofs.paths import RelPath

if TYPE_CHECKING:
    from yolofs.changes.changes import Change


class Mark(Enum):
    """What a file becomes by a change; the value is the word that JSON has for it."""

    SETUID = "setuid"
    SETGID = "setgid"
    CAPABILITY = "capability"
    DEVICE = "device"
    COMMAND = "command"
    GIT = "git"
    SHELL = "shell"
    LOGIN = "login"
    SSH = "ssh"
    EDITOR = "editor"
    AGENT = "agent"
    DIRECTORY = "directory"
    TOOL = "tool"
    SYSTEM = "system"
    YOLOFS = "yolofs"
    UNSEEN = "unseen"
    """Nobody looks at what comes with it: it leads out of what commits look at, or is closed."""
    LISTED = "listed"

    @property
    def text(self) -> str:
        """What a person reads."""
        return _TEXTS.get(self, self.value)

    @property
    def is_of_names(self) -> bool:
        """Whether people have to see the name of each such file to judge it: a command, a key."""
        return self not in _OF_PLACES


_TEXTS = {
    Mark.COMMAND: "command on PATH",
    Mark.GIT: "run by git",
    Mark.SHELL: "run by shells",
    Mark.LOGIN: "run at login",
    Mark.SSH: "trusted by ssh",
    Mark.EDITOR: "run by editors",
    Mark.AGENT: "run by agents",
    Mark.DIRECTORY: "run on entering the directory",
    Mark.TOOL: "run by tools",
    Mark.SYSTEM: "run by the system",
    Mark.YOLOFS: "governs yolofs",
    Mark.UNSEEN: "leads to what no commit has seen",
    Mark.LISTED: "listed in host_code",
}

_OF_PLACES = frozenset(
    (Mark.GIT, Mark.SHELL, Mark.LOGIN, Mark.EDITOR, Mark.AGENT, Mark.DIRECTORY, Mark.TOOL, Mark.SYSTEM)
)
"""The marks that tell which program reads what lies in a place."""

Marks: TypeAlias = Mapping[RelPath, tuple[Mark, ...]]
"""What becomes of the files at which paths."""


def is_marked(change: Change, marks: Marks) -> bool:
    """Tell whether a change is taken only if it is named."""
    return change.path in marks and change.new is not None

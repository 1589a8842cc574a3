"""What of the staged changes is marked as code that the host would run."""

from __future__ import annotations

import os

import pytest

from tests.support.scribe import Scribe
from yolofs.changes.changes import compare
from yolofs.compiled import is_compiled
from yolofs.hostcode.code_files import CodeFileTable, FileMarkFinder
from yolofs.hostcode.commands import SearchPath
from yolofs.hostcode.mark_finder import MarkFinder
from yolofs.state.tree import Tree

HARMLESS = b'[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/x\n'


EVIL = b"[core]\n\tfsmonitor = ./x\n"


def marks(
    scribe: Scribe,
    *more: str,
    search: tuple[str, ...] = (),
    own: tuple[bytes, ...] = (),
    states: tuple[bytes, ...] = (),
) -> dict[str, str]:
    """Return the marks of what has been done, by paths relative to the home directory."""
    base = scribe.base
    home = base.path(b"home/u")
    table = CodeFileTable(base, home + b"/p", home, more, None, own, states)
    marker = MarkFinder(
        SearchPath(base, [base.path(path.encode()) for path in search]),
        lambda changes: FileMarkFinder(table, base, scribe.store, changes),
    )
    changes = compare(Tree(), scribe.tree, base, scribe.store)
    found = marker.marks(changes)
    if not is_compiled():  # then nothing can be put in the place of a method
        with pytest.MonkeyPatch.context() as patch:  # the shortcut that most files take says nothing else
            patch.setattr(FileMarkFinder, "_is_plain", lambda *_: False)
            assert marker.marks(changes) == found
    words = {path: " ".join(mark.value for mark in one) for path, one in found.items()}
    return {os.fsdecode(path).removeprefix("home/u/"): word for path, word in words.items()}


def write(scribe: Scribe, name: str, content: bytes = b"#!/bin/sh\nx\n", mode: int = 0o644) -> None:
    """Write a file below the home directory, with the directories that it needs."""
    path = f"home/u/{name}".encode()
    above = b""
    for part in path.split(b"/")[:-1]:
        above = above + b"/" + part if above else part
        if scribe.shown(above) is None:
            scribe.mkdir(above)
    scribe.write(path, content, mode)

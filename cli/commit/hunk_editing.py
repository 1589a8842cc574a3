"""A hunk in the user's editor: what comes back is what is staged."""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolofs.changes.hunk_edit import edited, to_edit
from yolofs.changes.hunks import FileHunks, Hunk
from yolofs.changes.picks import parse_picks
from yolofs.cli.output import ask, can_ask, say
from yolofs.cli.project.project import changing, reading_whole, relative_paths
from yolofs.cli.terminal.at_terminal import run_at_terminal
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import UsageError, YolofsError, reason
from yolofs.paths import Generation, RelPath, display
from yolofs.session.selecting import Hunks, stage_text
from yolofs.session.session import Session
from yolofs.state.tree import Tree
from yolofs.system.plain_files import read_plain
from yolofs.system.processes import ending_text
from yolofs.system.work_directories import work_directory
from yolofs.text import git_binary

_EDITORS = ("GIT_EDITOR", "VISUAL", "EDITOR")
_DEFAULT = "vi"
_MOST_BYTES = 4 * git_binary.MAX_TEXT_BYTES
"""No more is read of what an editor leaves: both versions of a hunk may be of the largest text."""
_EDITED = b"hunk edited"
"""The name of the generation that an edit makes."""


def edit_by_id(project: bytes, word: str, typed: Sequence[bytes], patch: bytes | None) -> None:
    """Have a hunk edited, or take ``patch`` as what it has become; say what came of it.

    Raises:
        StaleHunkError: there is no such hunk (any more).
        UsageError: it is no text, or what came back does not apply.
    """
    picks = parse_picks([word])
    (name,) = picks
    if picks[name] is not None:
        raise UsageError("a hunk is edited as a whole", hint=f"yolofs hunks --edit {name}")
    with reading_whole(project) as session:
        paths = relative_paths(session, typed)
        file, hunk, texts = find_text(session, name, paths)
        directory = session.directory
    text = edited(hunk, *texts, patch) if patch is not None else edit_in_editor(hunk, texts, directory)
    if text is None or text == texts[1]:
        say("nothing is changed")
        return
    before = stage_edited(project, file, hunk, text)
    say(f"edited; to undo that: yolofs travel {before}")


def find_text(session: Session, name: str, paths: Sequence[RelPath]) -> tuple[FileHunks, Hunk, tuple[bytes, bytes]]:
    """Return a hunk by its id, and both versions of its text.

    Raises:
        StaleHunkError: there is no such hunk (any more).
        UsageError: it is no text.
    """
    hunks = Hunks(session, Tree(), paths=paths)
    (file,) = hunks.find({name: None}).values()
    hunk = next(hunk for hunk in file.hunks if hunk.id == name)
    texts = hunks.texts(file) if hunk.line_count and file.change.new is not None else None
    if texts is None:
        raise UsageError(f"hunk {name} has no lines that could be edited", hint="yolofs hunks")
    return file, hunk, texts


def edit_in_editor(hunk: Hunk, texts: tuple[bytes, bytes], session: bytes) -> bytes | None:
    """Return the new text with the hunk as the user has edited it; None if there is to be no edit.

    What is edited lies in the session's directory meanwhile, which no view shows: rules may hide it
    from the agent.

    Raises:
        UsageError: what came back does not apply, and is not to be edited again.
        YolofsError: the editor fails.
    """
    patch = to_edit(hunk, *texts)
    while True:
        patch = _edit(patch, session)
        try:
            return edited(hunk, *texts, patch)
        except UsageError as error:
            if not can_ask():
                raise
            say(f"{error.message}")
            if not ask("edit it again?"):
                return None


def stage_edited(project: bytes, file: FileHunks, hunk: Hunk, text: bytes) -> Generation:
    """Stage a text in which a hunk was edited; return the generation of what was there before.

    Raises:
        StaleHunkError: the hunk has become another one meanwhile; nothing is done.
    """
    with changing(project, LoanKind.RESTORE) as (session, _):
        find_text(session, hunk.id, [file.path])
        return stage_text(session, file.path, text, _EDITED)


def _edit(patch: bytes, session: bytes) -> bytes:
    """Have the user edit something; blocks until the editor has ended.

    Raises:
        YolofsError: it cannot be started, or fails.
    """
    editor = next((os.environ[name] for name in _EDITORS if os.environ.get(name, "").strip()), _DEFAULT)
    with work_directory(session, "edit") as directory:
        path = os.path.join(directory, b"hunk.diff")
        with open(path, "wb") as file:
            file.write(patch)
        code = run_at_terminal(editor, [path])
        if code:
            raise YolofsError(
                f"the editor {display(os.fsencode(editor))} {ending_text(code)}",
                hint="set EDITOR to one that works",
            )
        try:
            return read_plain(path, _MOST_BYTES)
        except OSError as error:
            raise YolofsError(
                f"what the editor {display(os.fsencode(editor))} has left cannot be read: {reason(error)}",
                hint="set EDITOR to one that works",
            ) from error
